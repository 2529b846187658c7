"""Interval bars: one axis a page, round ticks, a shape and a colour for every verdict."""

import itertools
import math
import re
from html.parser import HTMLParser

import pytest

from accountant.reports.html_document import _environment
from audits.claims.findings import Outcome
from audits.formats.html import (
    VERDICTS,
    EpsilonAxis,
    epsilon_axis,
    interval_bar,
    to_html,
    verdict_shape,
)
from tests.audits.results.report_rows import result, row

HIGHS = [1e-4, 0.03, 0.37, 1.0, 1.12, 2.5, 9.0, 11.95, 72.0, 1_000.0, 1e6]


class Pictures(HTMLParser):
    """The interval pictures of a page: shapes with their attributes, and what they say."""

    def __init__(self, html):
        super().__init__()
        self.axes, self.bars, self._now, self._text = [], [], None, False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        names = attrs.get("class", "").split()
        if tag == "svg":
            self._now = None
            if "interval" in names:
                self._now = {"kind": names[1:], "words": attrs["aria-label"], "shapes": [],
                             "labels": []}  # fmt: skip
                (self.bars if names[1:] else self.axes).append(self._now)
        elif self._now is not None:
            self._now["shapes"].append((tag, names, attrs))
            self._text = tag == "text"

    def handle_endtag(self, tag):
        if tag == "svg":
            self._now = None
        self._text = False

    def handle_data(self, data):
        if self._now is not None and self._text:
            self._now["labels"].append(data.strip())


ROWS = [
    row("honest", verdict_lower=0.9, exact_epsilon=0.95),
    row("nothing seen", kind="bits", verdict_lower=0.0, exact_epsilon=None),
    row("broken", kind="specimen", outcome=Outcome.FALSIFIED, expected=Outcome.FALSIFIED,
        verdict_lower=9.3, exact_epsilon=10.0),
    row("wrong", wrong=True, verdict_lower=2.5, claim=(0.5, 1e-5), exact_epsilon=None),
    row("few", outcome=Outcome.INCONCLUSIVE, verdict_lower=0.1),
    row("no bound", verdict_lower=None),
    row("any claim", verdict_lower=1.5, claim=(math.inf, 0.0)),
]  # fmt: skip


def position(shape):
    """Where a mark stands, whatever draws it."""
    attrs = shape[2]
    return float(attrs["cx"] if "cx" in attrs else re.match(r"M([\d.]+)", attrs["d"]).group(1))


def test_all_bars_of_a_page_share_one_scale():
    page = Pictures(to_html(result(*ROWS)))
    shown = [one for one in ROWS if one.verdict_lower is not None]
    assert len(page.bars) == len(shown)
    # a table of what is not as expected, and one of each kind
    assert len(page.axes) == 4
    first = page.axes[0]
    assert all(axis == first for axis in page.axes)
    values = [float(label) for label in first["labels"]]
    places = [float(attrs["x"]) for tag, _, attrs in first["shapes"] if tag == "text"]
    # ln(1 + epsilon) of the ticks is where they stand, and no other scale is used by a bar
    slope = (places[-1] - places[0]) / math.log1p(values[-1])

    def place(epsilon):
        return places[0] + slope * math.log1p(epsilon)

    assert values[0] == 0
    assert places == pytest.approx([place(value) for value in values], abs=0.1)
    by_words = {bar["words"]: bar for bar in page.bars}
    for one in shown:
        (bar,) = [
            bar for words, bar in by_words.items()
            if f"at least {one.verdict_lower:.4f}, claimed {one.claim[0]:.4g}" in words
        ]  # fmt: skip
        claims = [position(each) for each in bar["shapes"] if "claim" in each[1]]
        dots = [position(each) for each in bar["shapes"] if each[0] == "circle"]
        lines = [float(each[2]["x1"]) for each in bar["shapes"] if each[0] == "line"]
        starts = [
            float(each[2]["x"]) if each[0] == "rect" else position(each)
            for each in bar["shapes"] if each[0] == "rect" or "H" in each[2].get("d", "")
        ]  # fmt: skip
        finite = [one.claim[0]] if math.isfinite(one.claim[0]) else []
        exact = [] if one.exact_epsilon is None else [one.exact_epsilon]
        assert starts == pytest.approx([place(one.verdict_lower)], abs=0.1)
        assert claims == pytest.approx([place(value) for value in finite], abs=0.1)
        assert dots == pytest.approx([place(value) for value in exact], abs=0.1)
        assert lines == pytest.approx(places, abs=0.1)


def test_every_verdict_has_a_shape_and_a_colour_of_its_own():
    html = to_html(result(*ROWS))
    page, style = Pictures(html), _environment("audits.report").loader
    kinds = {verdict_shape(one) for one in ROWS}
    assert kinds == set(VERDICTS)
    shapes, colours = {}, {}
    css = style.get_source(_environment("audits.report"), "findings.css")[0]
    for bar in page.bars:
        (kind,) = bar["kind"]
        drawn = frozenset(
            (tag, *names, re.sub(r"[\d. -]+", "", attrs.get("d", "")))
            for tag, names, attrs in bar["shapes"]
            if tag not in {"title", "line", "circle"} and "claim" not in names
        )
        assert shapes.setdefault(kind, drawn) == drawn
        colours[kind] = re.search(rf"\.{kind} \{{ color: (var\(--\w+\))", css).group(1)
    assert len(set(shapes.values())) == len(set(colours.values())) == len(VERDICTS)
    for words in (*VERDICTS.values(), "the claim", "the exact value"):
        assert words in html
    # twice of each row, in the first picture and at its verdict, and in both legends
    assert html.count('<svg class="key falsified"') == 6
    assert "undecided" not in Pictures(to_html(result(ROWS[0]))).bars[0]["kind"]


def test_every_row_is_shown_once_and_what_is_wrong_comes_first():
    html = to_html(result(*ROWS))
    assert [html.count(f"<strong>{one.subject}</strong>") for one in ROWS] == [1] * len(ROWS)
    assert html.index("<strong>wrong</strong>") < html.index("<strong>honest</strong>")
    assert html.count("not as expected") == 1
    # a delta as on every page of a plan or a ledger
    assert "<span>1e-5</span>" in html
    assert "1e-05" not in html


@pytest.mark.parametrize("high", HIGHS)
def test_ticks_are_round_in_order_and_apart(high):
    axis = EpsilonAxis(high)
    ticks = axis.ticks()
    values = [float(tick.label) for tick in ticks]
    assert values[0] == 0
    assert len(ticks) >= 3
    assert all(re.fullmatch(r"0|[125]0*|0\.0*[125]|[125]e[+-]\d+", tick.label) for tick in ticks)
    places = [axis.across(value) for value in values]
    assert all(b - a >= 24 for a, b in itertools.pairwise(places))
    assert places[-1] <= axis.end
    shares = [axis.left + tick.share * (axis.end - axis.left) for tick in ticks]
    assert shares == pytest.approx(places)


def test_the_axis_has_room_for_every_value_and_for_none():
    assert epsilon_axis([]).high == epsilon_axis([row(verdict_lower=None)]).high
    nothing = row(verdict_lower=0.0, claim=(0.0, 0.0), exact_epsilon=0.0)
    assert interval_bar(nothing, epsilon_axis([nothing])).start == EpsilonAxis.left
    axis = epsilon_axis(ROWS)
    for one in ROWS[:5]:
        bar = interval_bar(one, axis)
        places = [x for x in (bar.start, bar.claim, bar.exact) if x is not None]
        assert all(axis.left <= x <= axis.end for x in places)
    assert interval_bar(ROWS[5], axis) is None
    assert interval_bar(row(verdict_lower=math.nan), axis) is None
