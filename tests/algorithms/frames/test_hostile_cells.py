"""No single row decides between an answer and an exception, whatever its cells hold."""

import datetime as dt
import decimal
import uuid

import dask.dataframe as dd
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dask import config

from accountant import Ledger, ParameterError
from algorithms.frames import (
    Category,
    Date,
    Flag,
    Integer,
    Key,
    Number,
    Schema,
    col,
    count,
    median,
    sum_,
    top_k,
)
from algorithms.frames.rows import PERSON, Reading
from algorithms.frames.sources import cells_of_objects, source_of

ROWS = 12


class Raises:
    """An object of which every question raises."""

    def _raise(self, *_):
        raise RuntimeError("a cell was asked")

    __eq__ = __hash__ = __str__ = __repr__ = __len__ = __bool__ = __float__ = _raise


CELLS = {
    "list": [1], "dict": {"x": 1}, "array": np.array([1, 2]), "array of texts": np.array(["a"]),
    "set": {1}, "tuple": (1,), "tuple of lists": ([1],), "float": 1.5, "NaN": np.nan, "None": None,
    "NA": pd.NA, "NaT": pd.NaT, "huge": 2**70, "complex": 3 + 4j, "decimal": decimal.Decimal(1),
    "signalling": decimal.Decimal("sNaN"), "bytes": b"a", "object": object(),
    "surrogate": "\ud800", "empty": "", "null": "a\0", "long": "x" * 300, "True": True,
    "integer": np.int64(3), "void": np.void(b"ab"), "time": pd.Timestamp("2020-01-01"),
    "date": dt.date(2020, 1, 1), "infinity": np.inf, "raises": Raises(), "series": pd.Series([1]),
    "frame": pd.DataFrame({"a": [1]}), "2^53": float(2**53), "class": int, "uuid": uuid.UUID(int=5),
}  # fmt: skip
SCHEMA = Schema(
    {"x": Integer(0, 9), "label": Category(["a", "b"]), "flag": Flag(), "key": Key()},
    person="id", rows_per_person=2,
)  # fmt: skip
ASKED = {
    "label": [count(by="label", epsilon=1.0), count(where=col("label") == "a", epsilon=1.0),
              top_k("label", 1, epsilon=1.0)],
    "flag": [sum_("x", by="flag", epsilon=1.0)],
    "key": [count(by="key", epsilon=1.0, delta=1e-3)],
    "id": [count(by="label", epsilon=1.0), median("x", epsilon=1.0)],
}  # fmt: skip
LIBRARIES = ("pandas", "categories", "polars", "dask")


def columns_with(hostile, cells):
    """Twelve rows of two for each person, and one with each hostile cell."""
    rows = {
        "label": ["a", "b"] * 6, "flag": [True, False] * 6, "key": ["k", "l"] * 6,
        "id": [f"p{i // 2}" for i in range(ROWS)],
    }  # fmt: skip
    last = {"label": "a", "flag": True, "key": "k", "id": "p9"}
    del last[hostile]
    added = {name: [value] * len(cells) for name, value in last.items()} | {hostile: cells}
    return {name: [*values, *added[name]] for name, values in rows.items()}


def objects(values):
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return pd.Series(found, dtype=object)


def is_category(cell):
    """Whether pandas holds a cell in a column of categories."""
    try:
        objects(["a", cell]).astype("category")
    except (TypeError, RuntimeError, ValueError, decimal.InvalidOperation):
        return False
    return True


def frame_with(library, hostile, cells):
    """The frame, of the cells that the library has; None if it has none of them."""
    if library == "categories" and not (cells := [one for one in cells if is_category(one)]):
        return None
    columns, numbers = columns_with(hostile, cells), np.arange(ROWS + len(cells)) % 9
    if library == "polars":
        made = {
            name: pl.Series(name, values, dtype=pl.Object) if name == hostile else values
            for name, values in columns.items()
        }
        return pl.DataFrame({"x": numbers, **made})
    made = {name: objects(values) for name, values in columns.items()}
    if library == "categories":
        made[hostile] = made[hostile].astype("category")
    frame = pd.DataFrame({"x": numbers, **made})
    if library == "dask":
        return dd.from_pandas(frame, npartitions=3)
    return frame


def outcome(library, hostile, cells, queries=None):
    """The shapes of the answers, or the error that a row raised."""
    with config.set({"dataframe.convert-string": False, "scheduler": "synchronous"}):
        frame = frame_with(library, hostile, cells)
        if frame is None:
            return None
        found = []
        for query in ASKED[hostile][:queries]:
            ledger = Ledger(frame, query.plan(SCHEMA), rng=0)
            try:
                query.release(ledger, SCHEMA)
            except Exception as error:
                return repr(error)
            found.append(len(ledger.transcript))
    return found


def violations(library, hostile, queries=None):
    """The cells, each alone in a frame, that change what is answered."""
    usual = outcome(library, hostile, USUAL[hostile], queries)
    found = {name: outcome(library, hostile, [cell], queries) for name, cell in CELLS.items()}
    return {name: one for name, one in found.items() if one not in (usual, None)}


USUAL = {"label": ["a"], "flag": [True], "key": ["k"], "id": ["p0"]}


@pytest.mark.parametrize("hostile", ASKED)
@pytest.mark.parametrize("library", LIBRARIES)
def test_cells_of_all_kinds_together_are_an_answer(library, hostile):
    usual = outcome(library, hostile, USUAL[hostile])
    assert outcome(library, hostile, [*CELLS.values()]) == usual


@pytest.mark.parametrize("hostile", ASKED)
def test_a_cell_of_any_kind_alone_is_an_answer(hostile):
    assert violations("pandas", hostile, queries=1) == {}


@pytest.mark.slow  # a minute: every cell in every library, asked every query
@pytest.mark.parametrize("hostile", ASKED)
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_cell_of_any_kind_is_an_answer_in_every_library(library, hostile):
    assert violations(library, hostile) == {}


FAR = 2**62
TYPED = {
    "float": (Number(0, 9), pa.array([1.0, None, float("nan"), float("inf"), 1e308, 5e-324])),
    "half": (Number(0, 9), pa.array(np.array([1, np.inf, np.nan], dtype=np.float16))),
    "unsigned": (Number(0, 9), pa.array([1, 2**64 - 1], pa.uint64())),
    "signed": (Integer(0, 9), pa.array([1, 2**63 - 1, -(2**63)])),
    "decimal": (Number(0, 9), pa.array([decimal.Decimal(1), decimal.Decimal("9" * 38)])),
    "text": (Category(["a", "b"]), pa.array(["a", None, "", "x" * 300, "a\0"])),
    "seconds": (Date("2020-01-01", "2021-01-01"), pa.array([0, FAR, -FAR], pa.timestamp("s"))),
    "nanoseconds": (Date("2020-01-01", "2021-01-01"),
                    pa.array([0, FAR, -FAR], pa.timestamp("ns"))),
    "with a zone": (Date("2020-01-01", "2021-01-01"),
                    pa.array([0, FAR, -FAR], pa.timestamp("us", "Europe/Berlin"))),
    "days": (Date("2020-01-01", "2021-01-01"), pa.array([0, 2**31 - 1, -(2**31)], pa.date32())),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPED)
def test_extreme_cells_of_arrow_are_answers(name):
    kind, column = TYPED[name]
    schema = Schema({"x": kind})
    for rows in ([0, 0], [0, *range(len(column))]):
        query = count("x", epsilon=1.0)
        frame = pa.table({"x": column.take(rows)})
        assert np.shape(query.release(Ledger(frame, query.plan(schema), rng=0), schema).value) == ()


def two_persons(first, second):
    """Twenty rows of two persons, ten each."""
    return [first] * 10 + [second] * 10


FLOATS = np.array(two_persons(2.0**53, 2.0**53 + 1))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"id": FLOATS}),
        pd.DataFrame({"id": FLOATS.astype(np.float32)}),
        pd.DataFrame({"id": pd.array(FLOATS, dtype="Float64")}),
        pl.DataFrame({"id": FLOATS}),
        pl.DataFrame({"id": FLOATS}).lazy(),
        pa.table({"id": FLOATS}),
        pa.table({"id": pa.array([decimal.Decimal(1)])}),
        pd.DataFrame({"id": pd.Categorical(FLOATS)}),
        pd.DataFrame({"id": pd.arrays.SparseArray(FLOATS)}),
        pa.table({"id": pa.array(FLOATS).dictionary_encode()}),
        dd.from_pandas(pd.DataFrame({"id": FLOATS}), npartitions=2),
    ],
    ids=[
        "pandas",
        "single",
        "Float64",
        "polars",
        "lazy",
        "Arrow",
        "decimal",
        "categories",
        "sparse",
        "dictionary",
        "Dask",
    ],
)
def test_persons_that_are_floats_are_refused(frame):
    schema = Schema({"x": Integer(0, 9)}, person="id", rows_per_person=10)
    query = count(epsilon=1.0)
    ledger = Ledger(frame, query.plan(schema), rng=0)
    with pytest.raises(ParameterError, match=r"of floats two persons beyond 2\^53 are one.*Int64"):
        query.release(ledger, schema)
    assert ledger.transcript == ()


def rows_of_persons(frame):
    """The persons of the rows that count, of at most three a person."""
    schema = Schema({"x": Integer(0, 9)}, person="id", rows_per_person=3)
    return source_of(frame, Reading((), None, schema)).columns()[PERSON]


PERSONS = {
    "1 and '1'": (1, "1", 6),
    "whole numbers beyond 2^53": (2**53, 2**53 + 1, 6),
    "beyond 64 bits": (2**70, 2**70 + 1, 6),
    "a float and a number": (2**53, 2.0**53, 3),
    "True and 1": (1, True, 3),
    "a decimal and a number": (1, decimal.Decimal(1), 3),
    "lists": ([1], [2], 0),
    "texts and bytes": ("a", b"a", 6),
    "names": ("number 1", 1, 6),
}  # fmt: skip


@pytest.mark.parametrize("case", PERSONS)
def test_objects_that_are_equal_are_not_one_person(case):
    first, second, rows = PERSONS[case]
    values = two_persons(first, second)
    for frame in (
        pd.DataFrame({"id": objects(values)}),
        pl.DataFrame({"id": pl.Series(values, dtype=pl.Object)}),
    ):
        persons = rows_of_persons(frame)
        assert persons.size == rows
        assert len(set(persons.tolist())) == rows // 3


def test_whole_numbers_beyond_2_to_53_are_different_persons():
    wide = np.array(two_persons(2**53, 2**53 + 1), dtype=np.int64)
    frames = [pd.DataFrame({"id": wide}), pl.DataFrame({"id": wide}), pa.table({"id": wide})]
    frames.append(pd.DataFrame({"id": pd.array([*wide.tolist()], dtype="Int64")}))
    for frame in frames:
        assert len(set(rows_of_persons(frame).tolist())) == 2


def test_a_float_in_a_column_of_objects_names_nobody():
    frame = pd.DataFrame({"id": objects(["a", 1.0, np.nan, None, "a"])})
    assert rows_of_persons(frame).size == 2


@pytest.mark.parametrize("cells", [["a", "b"], ["a", 1], [2.5, 1], [None, "b"]], ids=str)
def test_the_type_of_a_column_and_no_cell_of_it_says_that_it_has_objects(cells):
    labels = pd.Index([cell for cell in cells if cell is not None], dtype=object)
    for column in (
        pd.Series(cells, dtype=object), pd.Series(pd.Categorical(cells, categories=labels)),
    ):  # fmt: skip
        given = cells_of_objects(nw.from_native(column, series_only=True))
        assert [None if pd.isna(cell) else cell for cell in given] == cells
    assert cells_of_objects(nw.from_native(pd.Series([1, 2]), series_only=True)) is None


ORDERED = {
    "whole": [9, 10, 100], "below zero": [-10, -9, -0.5], "large": [-(10**400), 2.0**70, 10**400],
    "times": [pd.Timestamp("2024-01-02"), pd.Timestamp("2024-01-02 10:00"), pd.Timestamp("2025")],
    "dates": [dt.date(2023, 1, 31), dt.date(2024, 1, 2), dt.date(2024, 1, 10)],
    "texts": ["10", "9", "a"], "hostile": [3, 20, "x"],
}  # fmt: skip


@pytest.mark.parametrize("places", ORDERED.values(), ids=ORDERED)
def test_categories_are_in_the_order_of_their_values(places):
    declared = Schema({"x": Integer(0, 9)}, "id", 2, order="place")
    shuffled = [places[i] for i in (2, 0, 1)]
    columns = {"id": [1] * 4, "x": [4, 1, 2, 8]}
    frames = [pd.DataFrame({**columns, "place": objects([*shuffled, None]).astype("category")})]
    if places[-1] not in (10**400, "x"):
        table = pa.table({**columns, "place": pa.array([*shuffled, None]).dictionary_encode()})
        frames += [table, table.to_pandas(types_mapper=pd.ArrowDtype)]
    for frame in frames:
        assert sum_("x", epsilon=1.0).sums(frame, declared, "laplace") == 3
