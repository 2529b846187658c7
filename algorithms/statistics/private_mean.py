"""The mean of vectors by a trusted curator: noise once, then a projection to the ball.

References: Dwork, McSherry, Nissim & Smith (2006); Balle & Wang (2018).
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from accountant.domains import DELTA, POSITIVE
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
    """The mean of the records, (epsilon, delta)-DP for the replacement of one record.

    Records are shortened to Euclidean length ``radius``, and so is the estimate.  Noise is
    Gaussian, or Laplace if delta is 0.

    Parameters
    ----------
    epsilon : float
        Target epsilon, positive, in nats; infinity with ``non_private=True``.
    delta : float
        Target delta, in [0, 1).
    radius : float
        Largest Euclidean norm of a record.
    non_private : bool
        Fit without noise, for comparison; needs ``epsilon=inf``.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    mean_ : numpy.ndarray of shape (dimension,)
        The noisy mean, of norm at most ``radius``.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Dwork, McSherry, Nissim & Smith (2006); Balle & Wang (2018) for the Gaussian.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import PrivateMean
    >>> mean = PrivateMean(epsilon=1.0, delta=1e-6, random_state=0)
    >>> mean.fit(np.tile([0.6, -0.8], (1000, 1))).mean_.round(2).tolist()
    [0.61, -0.79]
    >>> round(mean.plan_.scale, 5)
    0.00845
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
        """Return the mean, computed from the released value only."""
        shortened = ClippedVectors(self.radius)
        noisy = ledger.release(ledger.plan, lambda rows: shortened(rows).mean(axis=0))
        return project_to_ball(noisy / self.radius) * self.radius

    def fit(self, X: Any, y: Any = None, ledger: Any = None) -> Self:
        """Fit on records; nothing is released if the input is bad.

        Parameters
        ----------
        X : array_like of shape (records, dimension)
            Records.
        y : object
            Ignored.
        ledger : Budget, Filter, Book, tuple or None
            What the fit draws on, see `PrivateEstimator`; None charges nothing.

        Returns
        -------
        self
            The fitted estimator.
        """
        del y
        X = validated_data(self, X, dtype=np.float64)
        self.plan_, rng = self.plan(X.shape), generator_of(self.random_state)
        self.ledger_ = self.open_ledger(X, self.plan_, rng=rng, ledger=ledger)
        self.mean_ = self.run(self.ledger_)
        self._warn_if_not_private("the mean is")
        self.transcript_ = self.ledger_.transcript
        return self

    def _noise_summary(self) -> str:
        kind = type(self.plan_).__name__
        return f"{kind} noise of scale {self.plan_.scale:.4g} on every coordinate of the mean"
