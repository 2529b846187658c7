"""Columns of dates: every library's types, bins of the calendar, conditions, refusals."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from accountant import Budget, Filter, ParameterError
from algorithms.frames import Category, Date, Number, Schema, col, count, histogram, mean, median
from tests.algorithms.frames.test_statistics import QUIET, released

YEAR = Date("2024-01-10", "2024-12-20")
DECLARED = Schema({"day": YEAR, "job": Category(["a", "b"]), "x": Number(0, 1)})


def some_times(n=400):
    rng = np.random.default_rng(0)
    start = dt.datetime(2023, 11, 1)
    found = [start + dt.timedelta(hours=int(h)) for h in rng.integers(0, 24 * 500, n)]
    return [None if gap else one for one, gap in zip(found, rng.random(n) < 0.1, strict=True)]


TIMES = some_times()
DATES = [one and one.date() for one in TIMES]
REST = {"job": ["a", "b"] * 200, "x": [0.25] * 400}
FRAMES = {
    "pandas": pd.DataFrame({"day": TIMES, **REST}),
    "pandas seconds": pd.DataFrame({"day": pd.Series(TIMES, dtype="datetime64[s]"), **REST}),
    "pandas zone": pd.DataFrame({"day": pd.Series(TIMES).dt.tz_localize("Asia/Tokyo"), **REST}),
    "pandas named zone": pd.DataFrame({"day": pd.Series(TIMES).dt.tz_localize("Etc/GMT+5"),
                                       **REST}),
    "pandas arrow": pd.DataFrame({"day": pd.Series(DATES, dtype=pd.ArrowDtype(pa.date32())),
                                  **REST}),
    "polars": pl.DataFrame({"day": DATES, **REST}),
    "polars times": pl.DataFrame({"day": TIMES, **REST}),
    "polars zone": pl.DataFrame({"day": pl.Series(TIMES).dt.replace_time_zone("Asia/Tokyo"),
                                 **REST}),
    "arrow": pa.table({"day": pa.array(DATES), **REST}),
    "arrow times": pa.table({"day": pa.array(TIMES), **REST}),
}  # fmt: skip


def clipped():
    low, high = dt.date(2024, 1, 10), dt.date(2024, 12, 20)
    return [min(max(one, low), high) for one in DATES if one is not None]


@pytest.mark.parametrize("name", FRAMES)
def test_every_library_has_dates(name):
    frame = FRAMES[name]
    found = released(histogram("day", "month", **QUIET), frame, DECLARED)
    months = np.bincount([one.month - 1 for one in clipped()], minlength=12)
    assert found.value.tolist() == months.tolist()
    late = count(where=col("day") >= dt.date(2024, 6, 1), **QUIET)
    assert released(late, frame, DECLARED).value == sum(one.month >= 6 for one in clipped())
    middle = median("day", epsilon=50.0, confidence=None)
    value = middle.release(Filter(frame, Budget(1e3), rng=0), DECLARED).value
    assert abs(value - sorted(clipped())[len(clipped()) // 2]) <= dt.timedelta(3)


def test_frames_of_answers_name_both_ends_of_bins():
    table = released(histogram("day", "month", **QUIET), FRAMES["polars"], DECLARED).frame
    assert table["day_from"][:2].to_list() == [dt.date(2024, 1, 10), dt.date(2024, 2, 1)]
    assert table["day_to"].to_list()[-2:] == [dt.date(2024, 11, 30), dt.date(2024, 12, 20)]
    assert repr(median("day", epsilon=1.0).release(
        Filter(FRAMES["polars"], Budget(9.0), rng=0), DECLARED
    )).startswith("ListedAnswer(quantile 0.5 of day: 2024-")  # fmt: skip


@pytest.mark.parametrize(("period", "bins"), [
    ("day", 346), ("week", 50), ("month", 12), ("quarter", 4), ("year", 1),
    (["2024-02-01", "2024-03-01", dt.date(2024, 4, 1)], 2),
])  # fmt: skip
def test_bins_of_the_calendar(period, bins):
    found = released(histogram("day", period, **QUIET), FRAMES["polars"], DECLARED)
    assert found.value.shape == (bins,)
    if period == "week":
        weeks = found.frame["day_from"].to_list()
        assert {one.weekday() for one in weeks[1:]} == {0}
    known = [one for one in clipped() if isinstance(period, str)
             or dt.date(2024, 2, 1) <= one <= dt.date(2024, 4, 1)]  # fmt: skip
    assert found.value.sum() == len(known)


def test_means_by_quarter_and_job():
    query = mean("x", by={"day": "quarter", "job": None}, **QUIET)
    found = released(query, FRAMES["pandas"], DECLARED)
    assert found.value.shape == (4, 2)
    assert found.value == pytest.approx(0.25, abs=0.01)


def test_missing_dates_count_as_declared():
    declared = Schema({"day": Date("2024-01-01", "2024-12-31", missing="2024-05-05")})
    query = histogram("day", ["2024-05-05", "2024-05-06"], **QUIET)
    found = released(query, FRAMES["arrow"], declared).value[0]
    held = sum(one in {dt.date(2024, 5, 5), dt.date(2024, 5, 6)} for one in DATES)
    assert found == held + DATES.count(None)


def test_files_keep_dates(tmp_path):
    path = str(tmp_path / "schema.toml")
    DECLARED.to_toml(path)
    assert Schema.from_toml(path) == DECLARED
    (tmp_path / "own.toml").write_text(
        "[columns.day]\nkind = 'date'\nlow = 2024-01-10\nhigh = 2024-12-20\n"
    )
    assert Schema.from_toml(str(tmp_path / "own.toml")).columns["day"] == YEAR


@pytest.mark.parametrize(("make", "words"), [
    (lambda: Date("2024", "2025"), "low must be a date, such as"),
    (lambda: Date("2024-01-01", "2023-01-01"), "high must be a date after low"),
    (lambda: Date(dt.datetime(2024, 1, 1), "2025-01-01"), "low must be a date"),
    (lambda: Date("2024-01-01", "2025-01-01", missing="2026-01-01"), "missing must be"),
    (lambda: histogram("day", 12, epsilon=1.0).plan(DECLARED), "bins must be one of 'day'"),
    (lambda: histogram("day", "monthly", epsilon=1.0), "bins must be one of 'day'"),
    (lambda: histogram("x", "month", epsilon=1.0).plan(DECLARED), "'x' has no dates"),
    (lambda: mean("day", epsilon=1.0).plan(DECLARED), "of dates ask median"),
    (lambda: count(by="day", epsilon=1.0).plan(DECLARED), "by={'day': 'month'}"),
    (lambda: count(where=col("day") > "May", epsilon=1.0).plan(DECLARED), "must be a date, such"),
    (lambda: count(where=col("day") > 5, epsilon=1.0).plan(DECLARED), "must be a date, such"),
])  # fmt: skip
def test_refusals(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


@pytest.mark.parametrize("frame", [
    pd.DataFrame({"day": ["2024-01-01"]}), pl.DataFrame({"day": ["2024-01-01"]}),
    pa.table({"day": ["2024-01-01"]}), pd.DataFrame({"day": [dt.date(2024, 1, 1)]}),
])  # fmt: skip
def test_strings_are_refused_with_a_suggestion(frame):
    ledger = Filter(frame, Budget(1.0))
    with pytest.raises(ParameterError, match=r"pandas\.to_datetime\(column\), or column\.str"):
        histogram("day", "month", epsilon=1.0).release(ledger, Schema({"day": YEAR}))
    assert ledger.spent == 0
