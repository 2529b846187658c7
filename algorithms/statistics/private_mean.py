"""The mean of vectors by a trusted curator: noise once, and back into the ball."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from accountant.domains import DELTA, POSITIVE
from accountant.ledger.ledger import Ledger
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.planning.calibration import calibrate
from accountant.plans.plan import Release
from algorithms.base.estimators import PrivateEstimator, checked_shape, generator_of, validated_data
from algorithms.base.hard_thresholding import project_to_ball
from algorithms.base.non_private import NoPrivacy
from algorithms.statistics.local_mean import ClippedVectors
from mechanisms.gaussian import Gaussian
from mechanisms.laplace import Laplace


class PrivateMean(PrivateEstimator):
    """The mean of the records, (epsilon, delta)-DP for one record exchanged for another.

    Records are shortened to Euclidean length ``radius``, and so is the estimate.  Noise is
    Gaussian, or Laplace where delta is 0; ``epsilon`` infinite with ``non_private=True`` has none,
    for comparison.  After ``fit``: ``mean_``, ``plan_``, ``ledger_``, ``transcript_``.
    Source: Dwork, McSherry, Nissim & Smith (2006); Balle & Wang (2018) for the Gaussian.
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 0.0,
        radius: float = 1.0,
        non_private: bool = False,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.radius = radius
        self.non_private = non_private
        self.random_state = random_state

    def plan(self, shape: tuple[int, ...]) -> Release:
        """Return what a fit on ``shape = (records, dimension)`` will release; needs no data."""
        records, dimension = checked_shape(shape)
        # one record moves the mean by the ball's diameter over n, in l1 by sqrt(p) times that
        moved = round_up(2 * POSITIVE.check("radius", self.radius) / records)
        epsilon, delta = self._checked_epsilon(), DELTA.check("delta", self.delta)
        if self.non_private:
            return NoPrivacy()
        if delta:
            return calibrate(Gaussian, sensitivity=moved, epsilon=epsilon, delta=delta)
        moved = round_up(math.sqrt(dimension) * moved)
        return Laplace(round_up(moved / epsilon), moved)

    def run(self, ledger: Any) -> Array:
        """Return the mean, seen through the gate alone."""
        shortened = ClippedVectors(self.radius)
        noisy = ledger.release(ledger.plan, lambda rows: shortened(rows).mean(axis=0))
        return project_to_ball(noisy / self.radius) * self.radius

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on X (records, dimension); y is ignored; nothing is spent on bad input."""
        del y
        X = validated_data(self, X, dtype=np.float64)
        self.plan_, rng = self.plan(X.shape), generator_of(self.random_state)
        self.ledger_ = Ledger(X, self.plan_, rng=rng)
        self.mean_ = self.run(self.ledger_)
        self._warn_if_not_private("the mean is")
        self.transcript_ = self.ledger_.transcript
        return self

    def _noise_summary(self) -> str:
        kind = type(self.plan_).__name__
        return f"{kind} noise of scale {self.plan_.scale:.4g} on every coordinate of the mean"
