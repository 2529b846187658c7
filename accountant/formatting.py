"""Text and numbers for output: control characters escaped, bounds rounded to stay valid."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

DIGITS = 4  # significant digits of a bound where the caller states no other number


def escape_control(value: object) -> str:
    r"""Return the text on one line, with every non-printing character as its escape.

    Control characters, terminal escapes, line breaks and marks that reverse the reading order
    become ``\x1b``, ``\n``, ``\u202e``: a reader sees each character that is there.
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def format_upper(x: float, digits: int = DIGITS) -> str:
    """Return the shortest text of an upper bound with ``digits`` digits, rounded up."""
    return _format_rounded(x, Context(prec=digits, rounding=ROUND_CEILING))


def format_lower(x: float, digits: int = DIGITS) -> str:
    """Return the shortest text of a lower bound or a remaining amount, rounded down."""
    return _format_rounded(x, Context(prec=digits, rounding=ROUND_FLOOR))


def _format_rounded(x: float, context: Context) -> str:
    """Return a number as text, rounded as ``context`` says: ∞ for infinity, – for NaN."""
    if math.isinf(x) or math.isnan(x):
        return "∞" if x > 0 else "–"
    if x == 0:
        return "0"
    # as it is printed, so that 0.1 stays 0.1
    decimal = context.create_decimal(repr(float(x)))
    size = decimal.adjusted()  # the exponent of the first digit
    # below 1e-5, and with more than three zeros after the digits, an exponent is shorter
    if not -5 <= size < context.prec + 3:
        return f"{decimal.normalize():e}"
    if size >= context.prec - 1:
        return f"{int(decimal):,}"
    return str(decimal.quantize(Decimal(1).scaleb(size - context.prec + 1)))


def format_short(x: float) -> str:
    """Return a delta, a budget or a factor in its usual short form."""
    return f"{x:g}" if x == 0 or 0.01 <= x < 1e6 else f"{Decimal(f'{x:.6g}').normalize():e}"


def short_upper(x: float) -> str:
    """Return an upper bound in its usual short form of at most six digits, rounded up.

    A claim stays true of a larger epsilon, and at a larger delta.
    """
    return f"{as_displayed(x, 6):.6g}"


def format_guarantee(epsilon: float, delta: float) -> str:
    """Return the words of a guarantee, both of whose numbers are rounded up."""
    return f"({short_upper(epsilon)}, {short_upper(delta)})-differential privacy"


def as_displayed(epsilon: float, digits: int = DIGITS) -> float:
    """Return the number that a reader sees, from which later numbers are computed."""
    return float(
        format_upper(epsilon, digits).replace(",", "").replace("∞", "inf").replace("–", "nan")
    )


def format_remaining(total: float, taken: float) -> str:
    """Return what remains of the whole after the displayed ``taken``, in decimal."""
    remaining = Decimal(repr(total)) - Decimal(repr(as_displayed(taken)))
    return format_lower(max(0.0, float(remaining)))
