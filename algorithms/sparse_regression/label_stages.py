"""Private labels in stages: later users report what the labels of earlier ones do not explain.

A user reports once, a number of [-1, 1] times the bound.  Residuals are smaller than labels, and so
is the noise on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np

from accountant.ledger.private_data import take_rows
from accountant.numerics import Array
from algorithms.base.number_noise import noise_variance
from algorithms.base.row_blocks import row_blocks, row_products
from algorithms.sparse_regression.links import Link
from algorithms.sparse_regression.support_pursuit import NormalEquations

# Shares of the users who report in each stage: labels, sizes of residuals, residuals, sizes,
# residuals.  Any shares are equally private; these decide how accurate the fit is, as do the three
# numbers below.
STAGE_SHARES = (0.32, 0.06, 0.25, 0.06, 0.31)
FEWEST_USERS = 2_000  # fewer users report their labels in one stage
LEVELS = 5  # clips to choose from, each half of the one before
BEYOND = 0.2  # share of the residuals that a clip may shorten


def stage_ends(users: int) -> list[int]:
    """Return where stages begin and end: one stage where users are few."""
    if users < FEWEST_USERS:
        return [0, users]
    return [0, *(round(users * float(share)) for share in np.cumsum(STAGE_SHARES[:-1])), users]


@final
@dataclass(frozen=True, slots=True)
class ScaledResiduals:
    """The query of a stage: residuals of the predictions, clipped and scaled to the bound."""

    predicted: Array
    clip: float
    bound: float

    def __call__(self, labels: Any) -> Array:
        """Return one number a user."""
        part = np.clip((labels - self.predicted) / self.clip, -1.0, 1.0)
        return np.asarray(part * self.bound)


@final
@dataclass(frozen=True, slots=True)
class ResidualSizes:
    """The query of a stage: the bound if a residual is beyond the user's level, else minus it."""

    predicted: Array
    levels: Array
    bound: float

    def __call__(self, labels: Any) -> Array:
        """Return one number a user."""
        user_levels = self.levels[np.arange(len(self.predicted)) % len(self.levels)]
        return np.where(np.abs(labels - self.predicted) > user_levels, self.bound, -self.bound)


@dataclass(slots=True)
class LabelStages:
    """The stages of a run: users report one stage after the other, and each stage is fitted."""

    ledger: Any  # releases the users' reports; its public rows are the features
    link: Link  # the function f of the model, label = f(<x, theta>) + noise
    bound: float  # of the absolute values of labels, and of reports
    ends: list[int]  # where stages begin and end, as `stage_ends` returns them

    def predictions(self, stage_users: slice, theta: Array) -> Array:
        """Return the public predictions of theta for the labels of users."""
        X = self.ledger.public
        pieces = [
            row_products(take_rows(X, block), theta)
            for block in row_blocks(X, stage_users.start, stage_users.stop)
        ]
        return np.asarray(self.link.function(np.concatenate(pieces)))

    def run(self, fit: Callable[[tuple[Any, ...], float], NormalEquations]) -> NormalEquations:
        """Return the fit of all reports.

        ``fit`` takes features, labels and weights, 0 for those who have not reported, and the clip
        of the reports whose weight is 1: the smallest so far, as a weight is one over its square.
        """
        X, mechanism = self.ledger.public, self.ledger.plan.parts[0]
        labels, weights = np.zeros(X.shape[0]), np.zeros(X.shape[0])
        theta, clip = np.zeros(X.shape[1]), self.bound
        equations: Any = None  # the first stage is always there
        for stage, (start, stop) in enumerate(pairwise(self.ends)):
            stage_users = slice(start, stop, 1)
            # In the first stage labels are reported as they are, as f(0) may differ from 0.
            guess = self.predictions(stage_users, theta) if stage else np.zeros(stop - start)
            if stage % 2:  # a stage of sizes: it chooses the clip of the next stage
                clip = self._clip(stage_users, guess)
                continue
            query = ScaledResiduals(guess, clip, self.bound)
            reports = np.asarray(self.ledger.release_each(mechanism, query, stage_users))
            labels[stage_users] = guess + reports * (clip / self.bound)
            weights[stage_users] = clip**-2.0
            equations = fit((X, labels, weights / weights.max()), float(weights.max() ** -0.5))
            theta = np.zeros(X.shape[1])
            theta[equations.columns] = equations.solution()
        fitted: NormalEquations = equations
        return fitted

    def _clip(self, stage_users: slice, guess: Array) -> float:
        """Return the smallest level that few residuals lie beyond, as users report.

        Each user is asked about one of the levels, in turn.
        """
        mechanism = self.ledger.plan.parts[0]
        levels: Array = np.asarray(self.bound / 2.0 ** np.arange(1, LEVELS + 1), dtype=float)
        query = ResidualSizes(guess, levels, self.bound)
        reports = np.asarray(self.ledger.release_each(mechanism, query, stage_users)) / self.bound
        places = np.arange(len(reports)) % LEVELS
        counts = np.bincount(places, minlength=LEVELS)
        shares = (np.bincount(places, reports, LEVELS) / np.maximum(counts, 1) + 1) / 2
        # The variance of the share of one user.
        variance = noise_variance(mechanism, self.bound) / self.bound**2 / 4
        with np.errstate(divide="ignore"):
            spread = np.sqrt(variance / counts)
        # A level fits if few lie beyond it even if the noise, of one deviation, hides some.  Levels
        # fall by halves from the bound: the index of the first one that does not fit counts those
        # before it, which all do.
        fits = np.append(shares + spread <= BEYOND, False)
        return float(self.bound / 2.0 ** int(np.argmin(fits)))
