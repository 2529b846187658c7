"""The page of a claim of a book: the wealth of bets against it after each audit, and its alarm."""

from __future__ import annotations

import math

from accountant.book.evidence import Evidence
from accountant.reports.html_document import csv_address, render
from accountant.reports.svg_axes import Axes, LinearScale, LogScale

# The figure shows wealth from 1e-4 to 1e4 times that of the alarm; beyond, it runs along the frame.
SHOWN_FACTOR = 1e4


def evidence_page(evidence: Evidence, book: str) -> str:
    """Return the page as HTML; ``book`` is the name of the book."""
    alarm_at, lines = 1 / evidence.alpha, evidence.lines
    low, high = 1 / SHOWN_FACTOR, SHOWN_FACTOR * alarm_at
    wealth = [min(max(line.wealth, low), high) for line in lines]
    # A margin keeps the curve and the line of the alarm off the frame.
    ends = min([1.0, *wealth]) / 1.5, 1.5 * max([alarm_at, *wealth])
    scale = LogScale(*ends, every=1 + int(math.log10(ends[1] / ends[0])) // 20)
    # From 6 on all ticks are whole numbers.
    axes = Axes(LinearScale(0.0, max(len(lines), 6)), scale, "audits", "wealth", height=300)
    columns = ["entry", "time", "author", "version", "e-value", "wealth", "seen"]
    table = [
        (line.seq, line.time, line.author, line.version, line.e_value, line.wealth, line.seen)
        for line in lines
    ]
    return render(
        "evidence.html",
        evidence=evidence,
        book=book,
        alarm_at=alarm_at,
        axes=axes,
        points=axes.points(enumerate([1.0, *wealth])),
        saved=csv_address([columns, *table]),
    )
