"""Replacement of losses without a closed-form cumulant by finite losses above or below them.

A finite loss has finitely many values, so that its cumulant is a plain sum, exact to round-off.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.losses.discretised import DiscretisedLoss, discretised, dominating_pair
from accountant.losses.loss import Loss

TAIL_SHARE = 1e-7  # share of delta: the mass that all discretisations may move to infinity
HIGH_FREQUENCY = 1e5  # imaginary part of an order, at which the terms of a cumulant are counted
THINNING_FACTOR = 8  # a coarse finite loss keeps every eighth value
MAX_SMOOTH_TERMS = 50  # terms of a quadrature: with more of them a finite loss is quicker


def with_exact_cgf(
    items: list[tuple[Loss, int]], delta: float, *, upper: bool, max_terms: float = math.inf
) -> list[tuple[Loss, int]]:
    """Return the losses, some replaced by finite ones above or below them.

    Replaced are those without an exact cumulant, and those whose cumulant takes more than
    ``max_terms`` terms far up a contour.
    """
    releases = sum(n for _, n in items)
    tail = delta * TAIL_SHARE / max(releases, 1)
    return [
        (loss if _is_cheap(loss, max_terms) else discretised(loss, tail, upper=upper), n)
        for loss, n in items
    ]


def with_coarse_cgf(items: list[tuple[Loss, int]], least_delta: float) -> list[tuple[Loss, int]]:
    """Return the losses, with coarse finite ones above those without an exact cumulant.

    They are the same for counts of the same power of ten, so that a plan with a few more releases
    finds them already made.
    """
    releases = sum(n for _, n in items)
    tail = least_delta * TAIL_SHARE / 10.0 ** math.ceil(math.log10(max(releases, 1)))
    return [(loss if loss.numerics.has_exact_cgf else _coarse(loss, tail), n) for loss, n in items]


@functools.lru_cache(maxsize=512)
def _coarse(loss: Loss, tail: float) -> DiscretisedLoss:
    """Return a finite loss above ``loss``, reduced to an eighth of its points, again above."""
    fine = discretised(loss, tail, upper=True)
    points = np.union1d(fine.loss[::THINNING_FACTOR], fine.loss[[0, -1]])
    if points.size <= 2:
        return fine
    return dominating_pair(fine.profile_any_epsilon, points, fine.infinity_mass)


def _is_cheap(loss: Loss, max_terms: float) -> bool:
    """Return whether a loss has an exact cumulant of at most so many terms."""
    cgf = loss.numerics.cgf
    if cgf is None:
        return False
    if math.isfinite(max_terms) and loss.loss_pmf is None:
        max_terms = min(max_terms, MAX_SMOOTH_TERMS)  # a quadrature, not a sum
    return cgf.quadrature_terms(loss, HIGH_FREQUENCY) <= max_terms
