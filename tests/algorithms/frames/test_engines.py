"""One seed gives the same bits on every engine, whatever it leaves open."""

import datetime as dt

import dask
import numpy as np
import pyarrow as pa
import pytest

from accountant import Ledger
from algorithms.frames import (
    Category,
    Date,
    Flag,
    Integer,
    Key,
    Number,
    Schema,
    col,
    contingency,
    count,
    histogram,
    mean,
    median,
    quantiles,
    regression,
    sum_,
    top_k,
    variance,
)
from tests.algorithms.frames.engines_of import HERE, on

COLUMNS = {
    "age": Number(0, 100), "kids": Integer(0, 8, missing=0), "change": Number(-3.1, 5.7, missing=0.5),
    "job": Category(["cook", "nurse"], missing="other"), "owner": Flag(), "code": Category([1, 2]),
    "day": Date("2024-01-10", "2025-02-20"), "shop": Key(2), "time": Integer(0, 9),
}  # fmt: skip
ASKED = [
    count(by=["job", "owner"], epsilon=1.0),
    sum_("change", where=(col("age") > 30) & ~(col("job") == "cook"), epsilon=1.0),
    mean("age", by="code", epsilon=1.0),
    variance("age", rho=0.5),
    contingency(["job", "age"], bins={"age": 7}, epsilon=1.0),
    histogram("age", [10, 20.5, 60, 99], epsilon=1.0),
    histogram("day", "month", epsilon=1.0),
    count(where=(col("day") >= "2024-06-01") | (col("code").is_in([2])), epsilon=1.0),
    regression("change", ["age", "job", "owner"], epsilon=1.0, delta=1e-6),
    top_k("job", 2, epsilon=1.0),
    top_k("job", 1, by="owner", epsilon=1.0),
    median("age", epsilon=1.0),
    quantiles("kids", [0.2, 0.7], by="owner", epsilon=2.0),
    mean("age", by="shop", epsilon=3.0, delta=1e-3),
]  # fmt: skip
SLOW = {"Spark", "SQLFrame"}


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set({"scheduler": "sync", "dataframe.convert-string": False}):
        yield


def some_rows(n=300, seed=3):
    """Rows of persons with values that engines treat in their own ways."""
    rng = np.random.default_rng(seed)

    def gaps(values, share=0.1):
        return [None if gap else v for v, gap in zip(values, rng.random(n) < share, strict=True)]

    ages = rng.normal(45, 40, n)
    ages[::9] = np.nan
    ages[1::9] = rng.choice([-0.0, 0.0, np.inf, -np.inf, 50.0, 100.0, 25.0, 5e-324], ages[1::9].size)
    start = dt.datetime(2023, 11, 1)
    times = [start + dt.timedelta(hours=int(h)) for h in rng.integers(0, 24 * 600, n)]
    return pa.table({
        "age": pa.array(gaps(ages.tolist()), pa.float64(), from_pandas=False),
        "kids": pa.array(gaps((rng.integers(-4, 40, n) / 2).tolist()), pa.float64()),
        "change": pa.array(gaps(rng.integers(-5, 8, n).tolist()), pa.int64()),
        "job": pa.array(gaps(rng.choice(["cook", "Cook", "nurse", "nurse ", ""], n).tolist())),
        "owner": pa.array(gaps((rng.random(n) < 0.3).tolist())),
        "code": pa.array(gaps(rng.integers(0, 4, n).tolist()), pa.int64()),
        "day": pa.array(gaps(times), pa.timestamp("us")),
        "shop": pa.array(gaps(rng.choice(["a", "b", "c", "", "\u00e9", "C"], n).tolist())),
        "id": pa.array(gaps(rng.integers(0, 80, n).tolist(), 0.02), pa.int64()),
        "time": pa.array(gaps(rng.integers(0, 9, n).tolist()), pa.int64()),
    })  # fmt: skip


TABLE = some_rows()
SCHEMAS = {
    "rows": Schema(COLUMNS),
    "order": Schema(COLUMNS, "id", 2, order="time"),
    "hash": Schema(COLUMNS, "id", 2, order="hash"),
}


def answered(query, frame, schema):
    answer = query.release(Ledger(frame, query.plan(schema), rng=4), schema)
    return np.asarray(answer.value).tolist()


def asked_of(name):
    """The questions; a hash orders no rows that have a private key."""
    return [query for query in ASKED if name == "rows" or "shop" not in query.used]


EXPECTED = {
    name: [answered(query, on("polars", TABLE), schema) for query in asked_of(name)]
    for name, schema in SCHEMAS.items()
}


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("engine", HERE)
def test_one_seed_gives_the_same_bits_on_every_engine(engine, name):
    frame = on(engine, TABLE)
    for query, expected in zip(asked_of(name), EXPECTED[name], strict=True):
        assert answered(query, frame, SCHEMAS[name]) == expected, str(query)
