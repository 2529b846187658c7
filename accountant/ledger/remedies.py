"""Suggestions of a release that fits, in place of one that does not."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from accountant.errors import LargeDeltaWarning, ParameterError, UnsupportedPlan
from accountant.numerics.search import geometric_mean, least_float_that
from accountant.plans.plan import Plan

LARGEST_FACTOR = 1e6  # largest factor of the noise in a suggestion
RELATIVE = 1e-6  # precision of that factor


def warn_of_large_delta(delta: float, users: int, stacklevel: int = 4) -> None:
    """Warn where delta allows a mechanism that publishes a whole record now and then."""
    if delta * users > 1:
        message = (
            f"delta {delta:g} is above 1/n = {1 / users:.3g} for {users:,} users: it allows a "
            f"release that publishes a random person's record; take "
            f"{0.1 / users:.0e} or less"
        )
        warnings.warn(message, LargeDeltaWarning, stacklevel=stacklevel)


def with_noise_that_fits(plan: Any, fits: Callable[[Plan], bool]) -> str:
    """Return words that name the same mechanism with enough noise; empty if there is none."""
    change = getattr(plan, "with_noise_factor", None)
    if change is None:
        return ""

    def fits_at(factor: float) -> bool:
        try:
            return fits(change(factor))
        # no such noise, none that has a cost, or no declared parameter
        except (ParameterError, UnsupportedPlan, TypeError):
            return False

    if not fits_at(LARGEST_FACTOR):
        return ""
    factor = least_float_that(fits_at, 1.0, LARGEST_FACTOR, relative=RELATIVE, mean=geometric_mean)
    return f"{change(factor)!r} fits"
