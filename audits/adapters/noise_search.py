"""The largest noise factor at which an audit still falsifies the claim, by bisection."""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.numerics.search import greatest_float_that

MIN_FACTOR = 1e-3  # below this factor an algorithm counts as noise-free


def largest_falsified_factor(falsifies: Callable[[float], bool], tries: int = 7) -> float | None:
    """The largest noise factor below 1 at which the claim fell; None if it stood even at 0.

    Bisection of the logarithm between 1e-3 and 1, each try with runs of its own.  With 7 tries it
    is within 6 % if the power falls with the noise; at the factor it returns, the claim fell in
    any case.
    """
    if not falsifies(0.0):
        return None
    factor = greatest_float_that(
        falsifies, MIN_FACTOR, 1.0, steps=tries, mean=lambda a, b: math.sqrt(a * b)
    )
    return factor if factor > MIN_FACTOR else 0.0


def describe_factor(factor: float | None) -> str:
    """The result of the search in words."""
    if factor is None:
        return "not falsified even without noise"
    if factor == 0:
        return (
            f"falsified without noise, and at no factor of {MIN_FACTOR:g} or above that was tried"
        )
    return f"still falsified with noise times {factor:.3g}"
