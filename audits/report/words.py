"""Words from outside, made harmless before anybody sees them."""

from __future__ import annotations

import math


def plain(words: object) -> str:
    r"""The words on one line, with everything that does not print as its escape.

    Control characters, terminal escapes, line breaks and marks that reverse the reading order
    become ``\x1b``, ``\n``, ``\u202e``: what is shown is what is there.
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(words))


def percent(confidence: float) -> str:
    """A confidence as people write it."""
    return f"{100 * confidence:.6g} %"


def number(x: float | None, digits: str = ".4g") -> str:
    """A number, or a dash where there is none."""
    return "-" if x is None or math.isnan(x) else format(x, digits)
