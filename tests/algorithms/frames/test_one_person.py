"""Sums of the rows of one person, in cells of every kind, beside what the schema says of them."""

import datetime as dt
import math
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from accountant.numerics.rounding import round_up
from algorithms.frames import (
    Category,
    Date,
    Flag,
    Integer,
    Number,
    Schema,
    col,
    count,
    histogram,
    mean,
    persons,
    share,
    sum_,
    top_k,
    variance,
)
from algorithms.frames.cell_sums import groups_of
from algorithms.frames.cells import keys_of, table_shape
from algorithms.frames.columns.keys import SelectedKeys
from algorithms.frames.rows import Reading
from algorithms.frames.sources import grouped, source_of
from tests.algorithms.frames.engines_of import on

COLUMNS = {
    "job": Category(["cook", "nurse"], missing="other"), "code": Category([0, 1, 2]),
    "owner": Flag(), "age": Number(0, 100), "kids": Integer(0, 8), "shop": SelectedKeys(("a", "b")),
    "day": Date("2023-11-15", "2024-04-20"), "time": Integer(0, 10**6),
}  # fmt: skip
FORMULAS = {"late": col("day").is_null(), "cost": col("age") * col("kids")}
AXES = [
    {}, {"job": None}, {"code": None}, {"owner": None}, {"shop": None}, {"late": None},
    {"age": 4}, {"age": [10, 30.5, 60]}, {"kids": 3}, {"cost": [0, 100, 400]},
    *({"day": period} for period in ("day", "week", "month", "quarter", "year")),
    {"day": ["2023-12-03", "2024-01-31", "2024-02-01", "2024-03-15"]},
    {"day": "month", "job": None}, {"code": None, "age": [20, 40, 60], "day": "week"},
]  # fmt: skip
QUESTIONS = [
    persons, count, partial(sum_, "cost"), partial(mean, "cost"), partial(variance, "cost"),
    partial(share, "owner"),
]  # fmt: skip
LIMITS = [{"rows_per_person": 1}, {"rows_per_person": 3},
          {"groups_per_person": 2, "rows_per_person_and_group": 2}]  # fmt: skip
NOISE, RELATIONS = ["laplace", "gaussian"], ["add-remove", "replace-one"]
ENGINES = ["pandas", "polars", "Arrow", "DuckDB"]


def rows_of_one(rng, n=40):
    """Rows of one person, of few values or of many."""
    start, days = dt.datetime(2023, 11, 1), int(rng.choice([3, 40, 200]))

    def chosen(values):
        few = rng.choice(values, int(rng.integers(1, len(values) + 1)))
        return rng.choice(few, n).tolist()

    return pa.table({
        "id": pa.array([7] * n, pa.int64()),
        "job": chosen(["cook", "nurse", "pilot", "Cook"]), "shop": chosen(["a", "b", "c"]),
        "code": chosen([-0.0, 0.0, 1.0, 2.0]), "owner": chosen([True, False]),
        "age": chosen([-3.0, 0.0, -0.0, 30.5, 60.0, 99.0, 120.0]), "kids": chosen(range(10)),
        "day": pa.array([start + dt.timedelta(int(d)) for d in rng.integers(0, days, n)],
                        pa.timestamp("us")),
        "time": pa.array(rng.permutation(n).tolist(), pa.int64()),
    })  # fmt: skip


def moved_by(query, schema, kind, frames):
    """What one person adds, or what an exchange for another person moves."""
    sums = [np.atleast_1d(query.sums(frame, schema, kind)) for frame in frames]
    return sums[0] - sums[1] if schema.relation == "replace-one" else sums[0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("by", AXES, ids=str)
def test_no_person_moves_sums_by_more_than_is_declared(by, engine):
    rng = np.random.default_rng(len(str(by)) + len(engine))
    frames = [on(engine, rows_of_one(rng)) for _ in range(2)]
    for question in (persons, QUESTIONS[rng.integers(1, len(QUESTIONS))]):
        kind, relation = str(rng.choice(NOISE)), str(rng.choice(RELATIONS))
        limits = LIMITS[rng.integers(len(LIMITS))]
        schema = Schema(COLUMNS, "id", relation=relation, order="time", **limits).derive(**FORMULAS)
        query = question(by=by, epsilon=1.0)
        cells = math.prod(table_shape(query.keys, schema))
        declared = query.statistic.moved(schema, kind, cells)
        moved = moved_by(query, schema, kind, frames).astype(float)
        assert np.abs(moved).sum() <= declared.l1, (str(query), limits, relation)
        assert np.linalg.norm(moved) <= round_up(declared.l2), (str(query), limits, relation)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("by", [by for by in AXES if "job" not in by], ids=str)
def test_no_person_has_more_labels_than_is_declared(by, engine):
    rng = np.random.default_rng(len(str(by)) + len(engine))
    frame = on(engine, rows_of_one(rng))
    for limits in LIMITS[1:]:
        schema = Schema(COLUMNS, "id", order="time", **limits).derive(**FORMULAS)
        query = top_k("job", 3, by=by, epsilon=1.0)  # of all labels, so all counts get noise
        (noise,) = query.plan(schema).leaves()
        assert query.persons_of_labels(frame, schema).sum() <= noise.sensitivity


@pytest.mark.parametrize("by", [by for by in AXES if len(by) == 1], ids=str)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_cell_is_one_group(by, engine):
    schema = Schema(COLUMNS, "id", 40, order="time").derive(**FORMULAS)
    (axis,) = keys_of(by)
    reading = Reading((axis.column,), None, schema)
    query = partial(grouped, groups=groups_of([axis], reading), sums={})
    for seed in range(3):
        frame = on(engine, rows_of_one(np.random.default_rng(seed)))
        groups = source_of(frame, reading).then(query).columns()["g0"]
        index = axis.index(groups, schema)
        assert len(set(index.tolist())) == groups.size
        assert (index < axis.size(schema)).all()


def test_a_person_counts_once_in_a_month():
    days = [dt.date(2024, 1, day) for day in range(1, 10)]
    frame = pa.table({"id": [7] * 9, "day": days})
    columns = {"day": Date("2024-01-01", "2024-12-31")}
    assert persons(by={"day": "month"}, epsilon=1.0).sums(
        frame, Schema(columns, "id", 9), "laplace"
    ).tolist() == [1] + [0] * 11  # fmt: skip
    few = Schema(columns, "id", groups_per_person=2, rows_per_person_and_group=4)
    counts = histogram("day", "month", epsilon=1.0).sums(frame, few, "laplace")
    assert counts.tolist() == [4] + [0] * 11


@pytest.mark.parametrize("engine", ENGINES)
def test_a_zero_with_a_sign_is_the_label_zero(engine):
    frame = on(engine, pa.table({"id": [7] * 3, "code": [0.0, -0.0, 1.0], "time": [1, 2, 3]}))
    schema = Schema({"code": Category([0, 1])}, "id", 3, order="time")
    assert persons(by="code", epsilon=1.0).sums(frame, schema, "laplace").tolist() == [1, 1]
    assert count(by="code", epsilon=1.0).sums(frame, schema, "laplace").tolist() == [2, 1]
