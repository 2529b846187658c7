"""Private labels in stages: later users report what a fit of earlier reports does not explain.

Users of the first stage report their labels, later ones the residuals of their labels.  Residuals
are smaller, so that they can be clipped to less and have less noise.  Before each stage of
residuals other users report whether theirs are large: this chooses the clip.  A user reports once,
through the same mechanism in every stage: a number between minus the bound and the bound.
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
# residuals.  The stages with odd indices are those of sizes.  No privacy rests on the shares and on
# the three numbers below; they decide how accurate the fit is.
STAGE_SHARES = (0.32, 0.06, 0.25, 0.06, 0.31)
FEWEST_USERS = 2_000  # fewer users all report their labels, in one stage
LEVELS = 5  # clips to choose from besides the bound, each half of the one before
SHARE_BEYOND = 0.2  # the largest share of residuals that may lie beyond a clip


def stage_ends(users: int) -> list[int]:
    """Return the index of each stage's first user, and the number of users; of few, one stage."""
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
        clipped = np.clip((labels - self.predicted) / self.clip, -1.0, 1.0)
        return np.asarray(clipped * self.bound)


@final
@dataclass(frozen=True, slots=True)
class ResidualSizes:
    """The query of a stage: the bound if a residual is beyond the user's level, else minus it.

    The users are asked about the levels in turn.
    """

    predicted: Array
    levels: Array
    bound: float

    def __call__(self, labels: Any) -> Array:
        """Return one number a user."""
        user_levels = self.levels[np.arange(len(self.predicted)) % len(self.levels)]
        return np.where(np.abs(labels - self.predicted) > user_levels, self.bound, -self.bound)


@dataclass(slots=True)
class LabelStages:
    """The stages of a run: after each stage of labels or residuals, all reports are fitted."""

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

        ``fit`` takes the features, labels and weights of all users, and a clip.  The weight of a
        report is the square of the smallest clip so far over its own clip; that of a user who did
        not report a label or residual is 0.  The clip is the smallest so far.
        """
        X, mechanism = self.ledger.public, self.ledger.plan.parts[0]
        labels, weights = np.zeros(X.shape[0]), np.zeros(X.shape[0])
        theta, clip = np.zeros(X.shape[1]), self.bound
        equations: Any = None  # the first stage is always there
        for stage, (start, stop) in enumerate(pairwise(self.ends)):
            stage_users = slice(start, stop, 1)
            # In the first stage labels are reported as they are.  The prediction of theta = 0 is
            # f(0), which may differ from 0.
            predicted = self.predictions(stage_users, theta) if stage else np.zeros(stop - start)
            if stage % 2:  # a stage of sizes: it chooses the clip of the next stage
                clip = self._clip(stage_users, predicted)
                continue
            query = ScaledResiduals(predicted, clip, self.bound)
            reports = np.asarray(self.ledger.release_each(mechanism, query, stage_users))
            labels[stage_users] = predicted + reports * (clip / self.bound)
            weights[stage_users] = clip**-2.0
            equations = fit((X, labels, weights / weights.max()), float(weights.max() ** -0.5))
            theta = np.zeros(X.shape[1])
            theta[equations.columns] = equations.solution()
        fitted: NormalEquations = equations
        return fitted

    def _clip(self, stage_users: slice, predicted: Array) -> float:
        """Return the smallest level that few residuals lie beyond, as users report.

        It is the bound where already half of it is too small.
        """
        mechanism = self.ledger.plan.parts[0]
        levels: Array = np.asarray(self.bound / 2.0 ** np.arange(1, LEVELS + 1), dtype=float)
        query = ResidualSizes(predicted, levels, self.bound)
        reports = np.asarray(self.ledger.release_each(mechanism, query, stage_users)) / self.bound
        level_indices = np.arange(len(reports)) % LEVELS
        counts = np.bincount(level_indices, minlength=LEVELS)
        # A report is 1 if the residual is beyond the level, else -1, plus noise: the share beyond
        # is half of the mean report plus 1.
        means = np.bincount(level_indices, reports, LEVELS) / np.maximum(counts, 1)
        shares = (means + 1) / 2
        variance = noise_variance(mechanism, self.bound) / self.bound**2 / 4  # of one user's share
        with np.errstate(divide="ignore"):  # a level that no user was asked about does not fit
            deviation = np.sqrt(variance / counts)
        # A level fits if few residuals lie beyond it, even if the noise hides some.  Levels fall by
        # halves from the bound.  The number of levels before the first one that does not fit says
        # how often the bound is halved.
        fits = np.append(shares + deviation <= SHARE_BEYOND, False)
        return float(self.bound / 2.0 ** int(np.argmin(fits)))
