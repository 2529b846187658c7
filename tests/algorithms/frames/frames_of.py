"""The same small frames of three libraries."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from algorithms.frames import Category, Flag, Integer, Number, Schema

COLUMNS = {
    "age": Number(0, 100),
    "kids": Integer(0, 8, missing=0),
    "change": Number(-3, 5),
    "job": Category(["cook", "nurse"], missing="other"),
    "owner": Flag(),
}


def pandas_frame(columns):
    """A frame whose persons are whole numbers also where some are missing."""
    frame = pd.DataFrame(columns)
    if "id" in columns:
        frame["id"] = pd.Series(columns["id"], dtype=object).convert_dtypes()
    return frame


LIBRARIES = {"pandas": pandas_frame, "polars": pl.DataFrame, "pyarrow": pa.table}


def schema(**facts):
    return Schema(COLUMNS, **facts)


def rows(n, seed=0, persons=None):
    """Columns with values beyond their bounds, unknown labels and missing values, as lists."""
    rng = np.random.default_rng(seed)

    def some(values, missing=0.1):
        return [None if gap else v for v, gap in zip(values, rng.random(n) < missing, strict=True)]

    return {
        "age": some(rng.normal(45, 40, n).tolist()),
        "kids": some(rng.integers(-1, 11, n).tolist()),
        "change": some(rng.normal(0, 6, n).tolist(), 0.0),
        "job": some(rng.choice(["cook", "nurse", "pilot"], n).tolist()),
        "owner": some((rng.random(n) < 0.3).tolist()),
        "id": some(rng.integers(0, persons or n, n).tolist(), 0.02),
    }


def frame_of(library, columns):
    return LIBRARIES[library](columns)


def without(columns, person):
    keep = [one != person for one in columns["id"]]
    return {k: [v for v, there in zip(c, keep, strict=True) if there] for k, c in columns.items()}
