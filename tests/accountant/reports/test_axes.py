"""Axes: values at their places, ticks at round numbers, on every page alike."""

from datetime import datetime

import pytest

from accountant.reports.html_document import render
from accountant.reports.svg_axes import Axes, LinearScale, LogScale, TimeScale


def labels(scale):
    return [tick.label for tick in scale.ticks()]


def test_ticks_are_round_numbers():
    assert labels(LinearScale(0.0, 1.1)) == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert labels(LinearScale(1.05, 3.0)) == ["1.5", "2", "2.5", "3"]
    assert labels(LogScale(0.3, 12.0)) == ["0.5", "1", "2", "5", "10"]
    assert labels(LogScale(1e-12, 1e-6, every=2)) == ["1e-12", "1e-10", "1e-8", "1e-6"]
    assert labels(LogScale(0.9, 2.2)) == ["1", "1.5", "2"]


def test_a_span_of_time_is_labelled_at_its_ends():
    noon = datetime(2026, 1, 1, 12)
    assert labels(TimeScale(noon, noon.replace(hour=14)))[1:] == [
        "2026-01-01 13:00", "2026-01-01 14:00",
    ]  # fmt: skip
    assert labels(TimeScale(noon, noon.replace(day=9)))[2] == "2026-01-09"
    assert labels(TimeScale(noon, noon)) == ["12:00:00"] * 3


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
