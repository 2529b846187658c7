"""Columns that follow from others: their domains, and the same bits on every engine."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from accountant import ParameterError
from algorithms.frames import (
    Category,
    Date,
    Flag,
    Formula,
    Integer,
    Number,
    Schema,
    col,
    count,
    mean,
    share,
    sum_,
)
from tests.algorithms.frames.engines_of import MARKED, on

COLUMNS = {
    "price": Number(0, 50), "number": Integer(-2, 8), "rate": Number(-1.5, 0.25, missing=0.1),
    "day": Date("1899-12-30", "2101-01-02"), "job": Category(["a", "b"]), "owner": Flag(),
}  # fmt: skip
DERIVED = Schema(COLUMNS).derive(
    cost=col("price") * col("number") - 5, whole=3 - col("number") * col("number"),
    change=col("price") * col("rate") + 0.1 * col("price"), unknown=col("price").is_null(),
    no_job=col("job").is_null(), year=col("day").dt.year(), month=col("day").dt.month(),
    weekday=col("day").dt.weekday(),
)  # fmt: skip

HUGE = Schema({"wide": Number(0, 1e300), "age": Number(0, 100)})


def some_rows(n=200, seed=0):
    rng = np.random.default_rng(seed)

    def gaps(values):
        return [None if gap else v for v, gap in zip(values, rng.random(n) < 0.15, strict=True)]

    start = dt.date(1890, 1, 1).toordinal()
    days = [dt.date.fromordinal(start + int(d)) for d in rng.integers(0, 80_000, n)]
    return pa.table({
        "price": gaps(rng.normal(20, 30, n).tolist()),
        "number": gaps(rng.integers(-5, 12, n).tolist()),
        "rate": gaps(rng.normal(0, 1, n).tolist()),
        "day": pa.array(gaps(days)).cast(pa.timestamp("us")),
        "job": gaps(rng.choice(["a", "b", "c"], n).tolist()),
        "owner": gaps((rng.random(n) < 0.3).tolist()),
    })  # fmt: skip


TABLE = some_rows()
ROWS = TABLE.to_pylist()


def test_the_domain_follows_from_the_columns():
    kinds = DERIVED.columns
    assert kinds["cost"] == Number(-105, 395)
    assert kinds["whole"] == Integer(-61, 19)  # of a square as of any product
    assert kinds["change"].bounds == pytest.approx((-75.0, 17.5))
    assert kinds["unknown"] == Flag()
    assert kinds["month"] == Category(range(1, 13))
    assert kinds["weekday"].labels == tuple(range(1, 8))
    assert kinds["year"].labels == tuple(range(1899, 2102))


@pytest.mark.parametrize("engine", MARKED)
def test_values_are_those_of_plain_loops(engine):
    table = on(engine, TABLE)

    def summed(query):
        return np.array(query.sums(table, DERIVED, "laplace")).tolist()

    known = [r for r in ROWS if r["price"] is not None and r["number"] is not None]
    costs = [min(max(r["price"], 0), 50) * min(max(r["number"], -2), 8) - 5 for r in known]
    unit = sum_("cost", epsilon=1.0).statistic.basis(DERIVED, "laplace").unit
    assert summed(sum_("cost", epsilon=1.0)) == sum(int(np.floor(c / unit + 0.5)) for c in costs)
    assert summed(count(where=col("cost") > 50, epsilon=1.0)) == sum(c > 50 for c in costs)
    gaps = [r["job"] not in {"a", "b"} for r in ROWS]
    assert summed(count(by="no_job", epsilon=1.0)) == [gaps.count(False), gaps.count(True)]
    both = sum(gap and r["price"] is None for gap, r in zip(gaps, ROWS, strict=True))
    assert summed(count(by=["no_job", "unknown"], epsilon=1.0))[3] == both
    low, high = dt.date(1899, 12, 30), dt.date(2101, 1, 2)
    days = [min(max(r["day"].date(), low), high) for r in ROWS if r["day"] is not None]
    assert summed(count(by="month", epsilon=1.0)) == [
        sum(d.month == month for d in days) for month in range(1, 13)
    ]
    assert summed(count(by="weekday", epsilon=1.0)) == [
        sum(d.isoweekday() == day for d in days) for day in range(1, 8)
    ]
    years = summed(count(by="year", epsilon=1.0))
    assert years == [sum(d.year == year for d in days) for year in range(1899, 2102)]


def test_every_day_of_four_centuries_has_its_parts():
    days = pd.date_range("1900-01-01", "2299-12-31").date
    schema = Schema({"day": Date("1900-01-01", "2299-12-31")})
    schema = schema.derive(m=col("day").dt.month(), y=col("day").dt.year())
    found = count(by=["y", "m"], epsilon=1.0).sums(
        pl.DataFrame({"day": list(days)}), schema, "laplace"
    )
    expected = pd.Series(days).groupby([[d.year for d in days], [d.month for d in days]]).size()
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_no_row_moves_a_sum_of_a_formula_by_more_than_its_bounds(seed):
    rng = np.random.default_rng(seed)
    extreme = {"price": [-1e9, 0.0, 25.0, 50.0, 1e9], "number": [-9, -2, 0, 8, 99],
               "rate": [-9.0, -1.5, 0.0, 0.25, 9.0]}  # fmt: skip
    for query in (
        sum_("change", epsilon=1.0),
        mean("change", epsilon=1.0),
        sum_("whole", epsilon=1.0),
    ):
        most = query.mechanism(DERIVED).sensitivity
        for _ in range(20):
            row = {name: [values[rng.integers(5)]] for name, values in extreme.items()}
            assert np.abs(query.sums(pa.table(row), DERIVED, "laplace")).sum() <= most


@pytest.mark.parametrize(("make", "words"), [
    (lambda: DERIVED.derive(cost=col("price") * 2), "under a new name"),
    (lambda: DERIVED.derive(more=col("cost") * 2), "of columns of the frame"),
    (lambda: DERIVED.derive(more=col("job") * 2), "a Number or an Integer, in a formula"),
    (lambda: DERIVED.derive(more=col("price").dt.year()), "a Date, which has parts"),
    (lambda: DERIVED.derive(more=col("prise") * 2), "did you mean 'price'"),
    (lambda: DERIVED.derive(more=col("price") * 0), "of columns whose values may differ"),
    (lambda: HUGE.derive(more=col("wide") * col("wide") * 0 + col("age")), "declare closer bounds"),
    (lambda: HUGE.derive(more=col("wide") * 1e9 - col("wide") * 1e9), "declare closer bounds"),
    (lambda: DERIVED.derive(more=5), "a formula, such as"),
    (lambda: col("price") * "2", "formula must be"),
    (DERIVED.to_toml, "without derived and joined columns"),
    (lambda: share("cost", epsilon=1.0).plan(DERIVED), "must be a Flag"),
])  # fmt: skip
def test_refusals(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


def test_formulas_in_words():
    assert repr(DERIVED.formulas["cost"]) == "((price * number) - 5.0)"
    assert isinstance(col("day").dt.year(), Formula)
    words = mean("cost", by="unknown", epsilon=1.0).explain(DERIVED)
    assert "cost: ((price * number) - 5.0), -105 .. 395" in words
    assert "unknown: is_null of price" in words
