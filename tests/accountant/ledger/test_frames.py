"""Data frames in a gate: a query gets its own, and what it changes has no effect."""

import contextlib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from accountant import Budget, Filter, Ledger, ParameterError
from accountant.ledger.frames import FrameRows, immutable_table, type_word
from mechanisms import Laplace

COUNT = Laplace(1e-6)
COLUMNS = {"x": [1.0, 2.0, 3.0], "s": ["a", None, "c"], "n": [1, 2, 3]}
FRAMES = [pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pa.table(COLUMNS)]
LIBRARIES = ["pandas", "polars", "pyarrow"]


def columns(frame):
    return frame.column_names if isinstance(frame, pa.Table) else list(frame.columns)


def texts_of(frame):
    return frame["s"].array.__arrow_array__().chunk(0)


def spoil(frame):
    """Try all that changes a frame in place."""
    attempts = (
        lambda: np.frombuffer(texts_of(frame).buffers()[2], "u1").__setitem__(0, 90),
        lambda: frame.loc.__setitem__((0, "x"), 9.0),
        lambda: frame.insert(0, "new", 1.0),
        lambda: frame.insert_column(0, pl.Series("new", [1.0, 1.0, 1.0])),
        lambda: frame.__setitem__((0, "x"), 9.0),
        lambda: frame["x"].to_numpy().__setitem__(0, 9.0),
        lambda: frame["x"].to_numpy().setflags(write=True),
        lambda: frame["s"].array.__setitem__(0, "z"),
        lambda: frame["n"].to_numpy().base.setflags(write=True),
        lambda: np.frombuffer(frame["x"].chunk(0).buffers()[1]).__setitem__(0, 9.0),
        lambda: frame.__setitem__("x", 9.0),
    )
    for attempt in attempts:
        with contextlib.suppress(Exception):
            attempt()
    return 0.0


@pytest.mark.parametrize("frame", FRAMES, ids=LIBRARIES)
@pytest.mark.filterwarnings("ignore")
def test_a_query_cannot_change_what_the_next_one_sees(frame):
    gate = Filter(frame, Budget(1e9), rng=0)
    seen = []
    gate.release(COUNT, spoil)
    gate.release(COUNT, lambda rows: seen.append(rows) or 0.0)
    (rows,) = seen
    assert type(rows) is type(frame)
    assert columns(rows) == list(COLUMNS)
    assert {name: list(map(str, rows[name].to_numpy())) for name in ("x", "n")} == {
        "x": ["1.0", "2.0", "3.0"], "n": ["1", "2", "3"],
    }  # fmt: skip
    assert rows["s"][0] == pa.scalar("a") if isinstance(rows, pa.Table) else rows["s"][0] == "a"


def test_a_pandas_frame_that_its_owner_changes_later_stays():
    frame = pd.DataFrame({"x": np.array([1.0, 2.0]), "s": np.array(["a", "b"], dtype=object)})
    gate = Filter(frame, Budget(1e9), rng=0)
    frame.loc[0, "x"], frame.loc[0, "s"] = 50.0, "z"
    assert gate.release(COUNT, lambda rows: rows["x"].sum()) == pytest.approx(3.0, abs=1e-3)
    assert gate.release(COUNT, lambda rows: rows["s"][0] == "a") == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("frame_of", [pl.DataFrame, pa.table])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_frame_on_an_array_that_its_owner_changes_later_stays(frame_of, rows):
    array = np.arange(1.0, rows + 1)
    gate = Filter(frame_of({"x": array}), Budget(1e9), rng=0)
    array[0] = 50.0
    answer = gate.release(COUNT, lambda table: float(np.asarray(table["x"])[0]))
    assert answer == pytest.approx(1.0, abs=1e-3)


def test_columns_of_arrow_in_a_pandas_frame_are_the_same():
    kinds = {"x": "double[pyarrow]", "s": "str", "n": "int64[pyarrow]"}
    frame = pd.DataFrame(COLUMNS).astype(kinds)
    pd.testing.assert_frame_equal(
        FrameRows("data", frame[1:]).fresh(), frame[1:].reset_index(drop=True)
    )


def test_a_table_is_copied_only_where_it_can_be_written_to():
    table = pa.table({"x": [1, 2], "s": pa.array(["a", None]).dictionary_encode()})
    copied = immutable_table(table)
    assert copied.equals(table)
    assert copied is not table
    assert immutable_table(copied) is copied


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (pd.SparseDtype(float), "float64"),
        (pd.SparseDtype(int), "Sparse"),
        (pd.CategoricalDtype([1.5]), "float64"),
        (pd.ArrowDtype(pa.dictionary(pa.int8(), pa.float64())), "double"),
        (pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())), "dictionary"),
    ],
    ids=str,
)
def test_the_word_of_a_type_names_the_floats_within(kind, word):
    assert type_word(kind) == word


@pytest.mark.parametrize("frame", FRAMES, ids=LIBRARIES)
def test_what_is_public_of_a_frame(frame):
    gate = Ledger(frame, 1 * COUNT, rng=0)
    assert gate.shape == (3, 3)
    assert gate.frame_facts.backend == type(frame).__module__.split(".")[0]
    assert list(gate.frame_facts.types) == list(COLUMNS)
    labels = pd.DataFrame({"job": pd.Categorical(["secret"])})
    lists = pl.DataFrame({"job": ["secret"]}, schema={"job": pl.Enum(["secret"])})
    for one in (labels, lists, pa.table({"job": pa.array(["secret"]).dictionary_encode()})):
        assert "secret" not in str(Ledger(one, 1 * COUNT, rng=0).frame_facts)
    assert Ledger(np.zeros(3), 1 * COUNT, rng=0).frame_facts is None


@pytest.mark.parametrize("frame", FRAMES, ids=LIBRARIES)
def test_users_are_rows(frame):
    gate = Filter(frame, Budget(1e9), rng=0)
    answers = gate.release_each(COUNT, lambda rows: np.asarray(rows["x"]), [2, 0])
    assert answers.tolist() == pytest.approx([3.0, 1.0], abs=1e-3)


def test_names_of_columns_are_distinct_strings():
    for frame in (
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame([[1, 2]]),
        pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]),
        pl.DataFrame(),
    ):
        with pytest.raises(ParameterError, match="distinct names"):
            Ledger(frame, 1 * COUNT)

    class Lying(pd.DataFrame):
        """A frame of somewhere else."""

    with pytest.raises(ParameterError, match="a plain pandas, polars or Arrow frame"):
        FrameRows("data", Lying({"a": [1]}))
    with pytest.raises(ParameterError, match="a frame with columns"):
        Ledger(pl.LazyFrame(), 1 * COUNT)
    assert Ledger(pl.LazyFrame({"a": [1]}), 1 * COUNT).shape == (1, 1)
