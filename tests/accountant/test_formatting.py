"""Numbers are rounded towards the honest side."""

import math
from decimal import Decimal

from hypothesis import example, given
from hypothesis import strategies as st

from accountant.formatting import (
    as_displayed,
    escape_control,
    format_guarantee,
    format_lower,
    format_remaining,
    format_short,
    format_upper,
)
from tests.strategies import positive_floats


def test_a_number_is_rounded_towards_honesty():
    assert format_upper(1.70031) == "1.701"
    assert format_lower(1.70099) == "1.700"
    assert format_upper(0.1) == format_lower(0.1) == "0.1000"  # decimal, as it is printed
    assert format_upper(math.inf) == "∞"
    assert format_upper(math.nan) == "–"
    assert format_short(1e-6) == "1e-6"
    assert format_short(0.00033) == "3.3e-4"
    assert format_remaining(2.0, 1.70031) == "0.2990"
    assert format_guarantee(1.0000004, 1 / 30_000) == "(1.00001, 3.33334e-05)-differential privacy"
    assert format_guarantee(1.0, 1e-6) == "(1, 1e-06)-differential privacy"


@given(positive_floats)
def test_rounding_keeps_its_side(x):
    assert Decimal(repr(as_displayed(x))) >= Decimal(repr(x))
    assert Decimal(format_lower(x).replace(",", "")) <= Decimal(repr(x))
    assert as_displayed(x) <= x * 1.00101


@given(st.text())
@example("é ε\x1b[0m — ü\u202e\n")
@example("'\\\"\x00")
def test_only_characters_that_do_not_print_are_escaped(text):
    shown = escape_control(text)
    assert shown.isprintable()
    assert shown == "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def test_a_value_that_is_no_text_is_shown_as_its_text():
    assert escape_control(1.5) == "1.5"
    assert escape_control(ValueError("two\nlines")) == "two\\nlines"
