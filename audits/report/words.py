"""Numbers and untrusted text as reports show them."""

from __future__ import annotations

import math


def format_percent(confidence: float) -> str:
    """A confidence as a percentage."""
    return f"{100 * confidence:.6g} %"


def format_number(x: float | None, digits: str = ".4g") -> str:
    """A number, or a dash if it is None or NaN."""
    return "-" if x is None or math.isnan(x) else format(x, digits)
