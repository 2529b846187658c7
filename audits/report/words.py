"""Words from outside, made harmless before anybody sees them."""

from __future__ import annotations

import math

from accountant.formatting import escape_control

__all__ = ["escape_control", "format_number", "format_percent"]


def format_percent(confidence: float) -> str:
    """A confidence as people write it."""
    return f"{100 * confidence:.6g} %"


def format_number(x: float | None, digits: str = ".4g") -> str:
    """A number, or a dash where there is none."""
    return "-" if x is None or math.isnan(x) else format(x, digits)
