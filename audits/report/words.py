"""Numbers, claims and confidences as the reports of audits show them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from accountant.formatting import format_short
from audits.results.rows import FAMILY_ERROR, ReportRow

# `FAMILY_ERROR` in words: the error probability that all verdicts of a run share.
ERROR_SENTENCE = "The chance that any verdict here is wrong is at most one in a million."


def format_percent(confidence: float) -> str:
    """A confidence as a percentage."""
    return f"{100 * confidence:.6g} %"


def format_number(x: float | None, digits: str = ".4g") -> str:
    """A number, or a dash if it is None or NaN."""
    return "-" if x is None or math.isnan(x) else format(x, digits)


def format_bound(x: float | None, decimals: int = 4) -> str:
    """A lower bound, rounded down; a dash if there is none."""
    if x is None or not math.isfinite(x):
        return format_number(x)
    text = f"{x:.{decimals}f}"
    return text if float(text) <= x else f"{x - 10.0**-decimals:.{decimals}f}"


def claim_text(claim: tuple[float, float]) -> str:
    """A claim in one cell: epsilon, and delta if there is one."""
    epsilon, delta = claim
    shown = f", {format_short(float(f'{delta:.4g}'))}" if delta > 0 else ""
    return format_number(epsilon) + shown


def bound_percent(rows: Sequence[ReportRow]) -> str:
    """The confidence of the bounds in a table: that of all verdicts together, or of scores."""
    one_run = bool(rows) and all(row.kind == "scores" for row in rows)
    return format_percent(rows[0].confidence if one_run else 1 - FAMILY_ERROR)


def error_sentence(rows: Sequence[ReportRow]) -> str:
    """How sure the verdicts are: those on scores are as sure as their bounds."""
    if not rows or any(row.kind != "scores" for row in rows):
        return ERROR_SENTENCE
    return f"A true claim survives with probability {format_percent(rows[0].confidence)} at least."
