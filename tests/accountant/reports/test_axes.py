"""Axes: values at their places, ticks at round numbers, on every page alike."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from accountant.reports.html_document import render
from accountant.reports.svg_axes import Axes, LinearScale, LogScale, TimeScale


def labels(scale):
    return [tick.label for tick in scale.ticks()]


def test_ticks_are_round_numbers():
    assert labels(LinearScale(0.0, 1.1)) == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert labels(LinearScale(1.05, 3.0)) == ["1.5", "2", "2.5", "3"]
    assert len(LinearScale(-10.0, -0.5).ticks()) == 5  # from -10 to -2
    assert labels(LogScale(0.3, 12.0)) == ["0.5", "1", "2", "5", "10"]
    assert labels(LogScale(1e-12, 1e-6, every=2)) == ["1e-12", "1e-10", "1e-8", "1e-6"]
    assert labels(LogScale(0.9, 2.2)) == ["1", "1.5", "2"]


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_span_of_time_is_labelled_at_round_times():
    start = NOON + timedelta(minutes=3, seconds=7)

    def shown(**span):
        return labels(TimeScale(start, start + timedelta(**span)))

    assert shown(seconds=9) == ["12:03:08", "12:03:10", "12:03:12", "12:03:14", "12:03:16"]
    assert shown(minutes=20) == ["12:05:00", "12:10:00", "12:15:00", "12:20:00"]
    assert shown(hours=2) == ["01-01 12:30", "01-01 13:00", "01-01 13:30", "01-01 14:00"]
    assert shown(days=1) == ["01-01 18:00", "01-02 00:00", "01-02 06:00", "01-02 12:00"]
    assert shown(days=4) == ["2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05"]
    assert shown(days=90) == ["2026-02", "2026-03", "2026-04"]
    assert shown(days=500) == ["2026-04", "2026-07", "2026-10", "2027-01", "2027-04"]
    assert shown(days=4_000) == ["2028", "2030", "2032", "2034", "2036"]


def test_a_moment_has_a_label_too():
    assert labels(TimeScale(NOON, NOON)) == ["12:00:00"]
    late = NOON + timedelta(milliseconds=300)
    assert labels(TimeScale(late, late + timedelta(milliseconds=200))) == ["12:00:00"]


@pytest.mark.parametrize("seconds", [3, 59, 700, 4_000, 90_000, 10**6, 10**7, 10**8, 2 * 10**9])
def test_time_ticks_are_in_order_apart_and_where_their_times_are(seconds):
    scale = TimeScale(NOON, NOON + timedelta(seconds=seconds))
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 5
    shares = [tick.share for tick in ticks]
    assert 0 <= shares[0] <= shares[-1] <= 1
    gaps = [b - a for a, b in itertools.pairwise(shares)]
    assert all(gap > 1 / 7 for gap in gaps)
    assert len({tick.label for tick in ticks}) == len(ticks)


def test_places_are_within_the_frame_and_ticks_where_the_values_are():
    axes = Axes(LinearScale(0.0, 2.0), LogScale(1e-4, 1.0, (1,)), "x", "y")
    assert axes.points([(0.0, 1e-4), (2.0, 1.0), (1.0, 1e-2)]) == (
        f"{axes.left}.0,{axes.height - axes.bottom}.0 {axes.width - axes.right}.0,{axes.top}.0 "
        "346.0,147.0"
    )
    assert [tick.share for tick in axes.y.ticks()] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert axes.across(7.0) == axes.width - axes.right


def test_a_page_that_lacks_a_value_is_not_written():
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError, match="is undefined"):
        render("history.html")
