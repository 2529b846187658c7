"""The mean of vectors by a trusted curator: noise once, then a projection to the ball.

References: Dwork, McSherry, Nissim & Smith (2006); Balle & Wang (2018).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from accountant.domains import DELTA, POSITIVE, Interval
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.planning.calibration import calibrate
from accountant.plans.plan import Release, Sequential
from algorithms.base.estimators import PrivateEstimator
from algorithms.base.fit_data import checked_shape, generator_of, validated_data
from algorithms.base.hard_thresholding import project_to_ball
from algorithms.base.intervals import laplace_interval, normal_interval
from algorithms.base.non_private import NoPrivacy
from algorithms.base.renamed_parameters import renamed_arguments, renamed_parameters
from algorithms.statistics.local_mean import ClippedVectors
from mechanisms.gaussian import Gaussian
from mechanisms.laplace import Laplace

VARIANCE_SHARE = Interval(0.0, 1.0, "[)")


@renamed_parameters(radius="row_bound", spread="variance_share")
@dataclass(eq=False, repr=False)
class PrivateMean(PrivateEstimator):
    """The mean of the records, (epsilon, delta)-DP for the replacement of one record.

    Records are shortened to Euclidean length ``row_bound``, and so is the estimate.  Noise is
    Gaussian, or Laplace if delta is 0.

    Parameters
    ----------
    epsilon : float
        Target epsilon, positive, in nats; infinity with ``non_private=True``.
    delta : float
        Target delta, in [0, 1).
    row_bound : float
        Largest Euclidean norm of a record.
    variance_share : float
        Share of the budget, in [0, 1), that releases the mean squares for `interval`.
    non_private : bool
        Fit without noise, for comparison; needs ``epsilon=inf``.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    mean_ : numpy.ndarray of shape (dimension,)
        The noisy mean, of norm at most ``row_bound``.
    records_ : int
        The number of records, which is public.
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

    _: KW_ONLY
    epsilon: float
    delta: float = 0.0
    row_bound: float = 1.0
    variance_share: float = 0.0
    non_private: bool = False
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Release | Sequential:
        """Return what a fit on ``shape = (records, dimension)`` will release; needs no data."""
        records, dimension = checked_shape(shape)
        # One record moves the mean by the diameter of the ball over n, and by sqrt(p) times that
        # in the l1 norm.
        moved = round_up(2 * POSITIVE.check("row_bound", self.row_bound) / records)
        epsilon, delta = self._checked_epsilon(), DELTA.check("delta", self.delta)
        share = VARIANCE_SHARE.check("variance_share", self.variance_share)
        if share:
            return self._plan_with_squares(dimension, moved, share)
        if self.non_private:
            return NoPrivacy()
        if delta:
            return calibrate(Gaussian, sensitivity=moved, epsilon=epsilon, delta=delta)
        moved = round_up(math.sqrt(dimension) * moved)
        return Laplace(round_up(moved / epsilon), moved)

    def _plan_with_squares(self, dimension: int, moved: float, share: float) -> Sequential:
        """Return the releases of the mean and of the mean squares, which get ``share``."""
        if self.non_private:
            return Sequential([NoPrivacy(), NoPrivacy()])
        # The squares of a record are at least 0 and sum to at most row_bound^2 = R, so two records'
        # are at most sqrt(2) R apart, and 2 R in l1.
        square = round_up(self.row_bound * moved)
        if not self.delta:
            moved = round_up(math.sqrt(dimension) * moved)
            pure = moved / ((1 - share) * self.epsilon), square / (share * self.epsilon)
            mean_scale, square_scale = map(round_up, pure)
            return Sequential([Laplace(mean_scale, moved), Laplace(square_scale, square)])
        square = round_up(square / math.sqrt(2))

        def plan_of(factor: float) -> Sequential:
            mean = Gaussian(factor * moved / math.sqrt(1 - share), moved)
            return Sequential([mean, Gaussian(factor * square / math.sqrt(share), square)])

        return plan_of(calibrate(plan_of, epsilon=self.epsilon, delta=self.delta))

    def run(self, ledger: Any) -> Array:
        """Return the mean, computed from the released values only."""
        shortened, parts = ClippedVectors(self.row_bound), list(ledger.plan.leaves())
        noisy = ledger.release(
            parts[0], lambda rows: shortened(rows).mean(axis=0), shape=ledger.shape[1]
        )
        if len(parts) > 1:
            ledger.release(
                parts[1], lambda rows: (shortened(rows) ** 2).mean(axis=0), shape=ledger.shape[1]
            )
        return project_to_ball(noisy / self.row_bound) * self.row_bound

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
        plan, rng = self.plan(X.shape), generator_of(self.random_state)
        self.ledger_ = self.open_ledger(X, plan, rng=rng, ledger=ledger)
        self.mean_, self.records_ = self.run(self.ledger_), len(X)
        self._warn_if_not_private("the mean is")
        self.transcript_ = self.ledger_.transcript
        return self

    @renamed_arguments(level="confidence")
    def interval(self, confidence: float = 0.95) -> Array:
        """Return confidence intervals of the mean of the population: noise and sampling.

        What is covered is the mean of records shortened to ``row_bound``.  With ``variance_share``
        above 0 the variance of records is estimated from their noisy mean squares.  Without it the
        largest variance is taken that they can have, so intervals cover more often than
        ``confidence``.

        Parameters
        ----------
        confidence : float
            Probability that the interval of a coordinate covers its mean, in (0, 1), where records
            are many.

        Returns
        -------
        numpy.ndarray of shape (dimension, 2)
            Lower and upper ends, within ``row_bound``; to nearest.
        """
        check_is_fitted(self)
        self._warn_if_not_private("intervals are")
        mechanism, *of_squares = self.plan_.leaves()
        noisy = [np.asarray(entry.output) for entry in self.transcript_]
        scale, mean = getattr(mechanism, "scale", 0.0), noisy[0]
        laplace = isinstance(mechanism, Laplace)
        variance = np.full(mean.shape, self.row_bound**2)
        if of_squares:
            # E(mean + noise)^2 = mean^2 + variance of the noise, which is subtracted.
            squared = mean**2 - scale**2 * (2 if laplace else 1)
            variance = np.clip(noisy[1] - squared, 0.0, variance)
        sampling = variance / self.records_
        if laplace:
            ends = laplace_interval(mean, scale, np.sqrt(sampling), confidence)
        else:
            ends = normal_interval(mean, np.sqrt(sampling + scale**2), confidence)
        return np.clip(ends, -self.row_bound, self.row_bound)

    def _noise_summary(self) -> str:
        mechanism = next(self.plan_.leaves())
        kind = type(mechanism).__name__
        return f"{kind} noise of scale {mechanism.scale:.4g} on every coordinate of the mean"
