"""Numbers and untrusted text as reports show them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from audits.results.rows import ReportRow

# rows.FAMILY_ERROR in words: the error rate that all verdicts of a run share
ERROR_SENTENCE = "The chance that any verdict here is wrong is at most one in a million."


def format_percent(confidence: float) -> str:
    """A confidence as a percentage."""
    return f"{100 * confidence:.6g} %"


def format_number(x: float | None, digits: str = ".4g") -> str:
    """A number, or a dash if it is None or NaN."""
    return "-" if x is None or math.isnan(x) else format(x, digits)


def error_sentence(rows: Sequence[ReportRow]) -> str:
    """How sure the verdicts are: those on scores are as sure as their bounds."""
    if not rows or any(row.kind != "scores" for row in rows):
        return ERROR_SENTENCE
    return f"A true claim survives with probability {format_percent(rows[0].confidence)} at least."
