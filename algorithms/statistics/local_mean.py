"""The mean of vectors in the local model of privacy: each user sends one randomised vector.

User i shortens the vector x_i to Euclidean length r at most and sends a report Z_i with
``E Z_i = x_i`` that is epsilon-DP by itself.  The estimate is the mean of the reports, shortened to
length r.

References: Bhowmick et al. (2018) for PrivUnit; Asi, Feldman & Talwar (2022), who show that it is
optimal.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, Self, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from accountant.domains import POSITIVE, OneOf
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.planning.calibration import calibrate
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Plan, Release
from algorithms.base.erm_losses import norm_clip_factors
from algorithms.base.fit_data import checked_shape, validated_data
from algorithms.base.hard_thresholding import project_to_ball
from algorithms.base.intervals import normal_interval
from algorithms.base.non_private import NoPrivacy
from algorithms.base.number_noise import NUMBER_NOISE, least_noise, number_noise
from algorithms.base.partial_fits import NO_CALLS, Calls, PartlyFitted, first_release
from algorithms.base.renamed_parameters import renamed_arguments, renamed_parameters
from algorithms.base.row_blocks import equal_slices, rows_per_block
from mechanisms.hemisphere import HemisphereL2
from mechanisms.priv_unit import PrivUnit

RANDOMIZER = OneOf(("auto", "priv_unit", "hemisphere", *NUMBER_NOISE))


@renamed_parameters(radius="row_bound", noise="randomizer")
@dataclass(eq=False, repr=False)
class LocalMean(PartlyFitted):
    """The mean of the users' vectors, epsilon-DP for each of them.

    Vectors are shortened to Euclidean length ``row_bound``, and so is the estimate.

    Parameters
    ----------
    epsilon : float
        Target epsilon of each user, positive, in nats; infinity with ``non_private=True``.
    row_bound : float
        Largest Euclidean norm of a vector.
    randomizer : {"auto", "priv_unit", "hemisphere", "bounded", "piecewise", "staircase", "laplace"}
        The mechanism of each user's report; the last four are for vectors of one coordinate.
        "auto" takes that of least variance: PrivUnit for two coordinates or more, and one of the
        last four for one.
    non_private : bool
        Fit without noise, for comparison; needs ``epsilon=inf``.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    mean_ : numpy.ndarray of shape (dimension,)
        The estimated mean.
    n_samples_seen_ : int
        Number of users of all calls.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Bhowmick et al. (2018); Asi, Feldman & Talwar (2022), who show that PrivUnit is optimal.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import LocalMean
    >>> X = np.tile([0.6, -0.8], (2000, 1))
    >>> LocalMean(epsilon=4.0, random_state=0).fit(X).mean_.round(1).tolist()
    [0.6, -0.8]
    """

    delta = 0.0

    _: KW_ONLY
    epsilon: float
    row_bound: float = 1.0
    randomizer: str = "auto"
    non_private: bool = False
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Parallel:
        """Return what a fit on ``shape = (users, dimension)`` will release; needs no data."""
        users, dimension = checked_shape(shape)
        return Parallel([self.mechanism(dimension)] * users)

    def mechanism(self, dimension: int) -> Release:
        """Return the mechanism of each user's report.

        Parameters
        ----------
        dimension : int
            Number of coordinates.

        Returns
        -------
        Release
            A mean oracle whose epsilon is at most the target.
        """
        row_bound, epsilon = POSITIVE.check("row_bound", self.row_bound), self._checked_epsilon()
        randomizer = RANDOMIZER.check("randomizer", self.randomizer)
        if self.non_private:
            return NoPrivacy()
        return mean_randomizer(dimension, epsilon, row_bound, randomizer)

    def run(self, ledger: Any, executor: Executor | None = None, before: Calls = NO_CALLS) -> Array:
        """Return the mean of the released reports, (dimension,), shortened to ``row_bound``."""
        users, dimension = ledger.shape
        blocks = equal_slices(0, users, rows_per_block(dimension))
        mechanism, total = ledger.plan.parts[0], np.zeros(dimension)
        takes_vectors = isinstance(mechanism, (PrivUnit, HemisphereL2, NoPrivacy))
        query = ClippedVectors(self.row_bound, numbers=not takes_vectors)
        shape = (dimension,) if takes_vectors else ()
        for reports in ledger.release_blocks(mechanism, query, blocks, executor, shape=shape):
            total += reports.sum(axis=0)
        if before.users:
            total = total + before.users * before.sums.mean
        mean = total / (users + before.users)
        return project_to_ball(mean / self.row_bound) * self.row_bound

    def _report_sums(self, plan: Plan, transcript: Any) -> Moments:
        """Return the moments of the reports of a call."""
        del plan
        size = self.n_features_in_
        reports = [np.asarray(entry.output).reshape(-1, size) for entry in transcript]
        users = sum(len(block) for block in reports)
        mean = sum((block.sum(axis=0) for block in reports), np.zeros(size)) / users
        squares = sum(((block - mean) ** 2).sum(axis=0) for block in reports)
        return Moments(users, mean, np.asarray(squares))

    def fit(
        self, X: Any, y: Any = None, executor: Executor | None = None, ledger: Any = None
    ) -> Self:
        """Fit on vectors, anew; nothing is released if the input is bad.

        Parameters
        ----------
        X : array_like of shape (users, dimension)
            One vector for each user.
        y : object
            Ignored.
        executor : concurrent.futures.Executor or None
            Where blocks of users are processed; None takes threads.  It changes no bit of the
            result.
        ledger : Budget, Filter, Book, tuple or None
            What the fit draws on, see `PrivateEstimator`; None charges nothing.

        Returns
        -------
        self
            The fitted estimator.
        """
        del y
        return self._fit_rows(X, executor, ledger, NO_CALLS)

    def partial_fit(
        self, X: Any, y: Any = None, executor: Executor | None = None, ledger: Any = None
    ) -> Self:
        """Add the vectors of other users: each person in one call only.

        Reports of all calls are averaged together.  A person pays for the own call, so `plan_` is
        that of all calls in parallel; `ledger_` and `transcript_` are those of the last call.

        Parameters
        ----------
        X : array_like of shape (users, dimension)
            One vector for each user of this call.
        y : object
            Ignored.
        executor : concurrent.futures.Executor or None
            As in `fit`.
        ledger : Budget, Filter, Book, tuple or None
            What this call draws on: a budget of its own persons.  One that several calls share is
            charged for each.

        Returns
        -------
        self
            The estimator, fitted on the users of all calls since the last `fit`.
        """
        del y
        return self._fit_rows(X, executor, ledger, self._calls)

    def _fit_rows(self, X: Any, executor: Executor | None, ledger: Any, before: Calls) -> Self:
        """Add the reports of a call to those before it."""
        X = validated_data(self, X, dtype=np.float64, reset=not before.plans)
        self.mean_ = self._fit_call(X, executor, ledger, before)
        self._warn_if_not_private("the mean is")
        return self

    @renamed_arguments(level="confidence")
    def interval(self, confidence: float = 0.95) -> Array:
        """Return confidence intervals of the mean, at no further cost in privacy.

        With m the mean and s the standard deviation of the n users' reports in a coordinate, an
        interval is ``m +- z s / sqrt(n)``, z a normal quantile, clipped to [-row_bound, row_bound].
        Reports vary by the noise and by the sampling of users, so both are counted.  What is
        covered is the mean of vectors shortened to ``row_bound``, in the population that users
        come from.

        Parameters
        ----------
        confidence : float
            Probability that the interval of a coordinate covers its mean, in (0, 1), where users
            are many.

        Returns
        -------
        numpy.ndarray of shape (dimension, 2)
            Lower and upper ends, in [-row_bound, row_bound]; not rounded outwards.
        """
        check_is_fitted(self)
        self._warn_if_not_private("intervals are")
        moments = self._calls.sums
        if moments is None:
            moments = self._report_sums(self._calls.plans[0], self.transcript_)
        deviation = np.sqrt(moments.squares / max(moments.users - 1, 1) / moments.users)
        interval = normal_interval(moments.mean, deviation, confidence)
        return np.clip(interval, -self.row_bound, self.row_bound)

    def _noise_summary(self) -> str:
        mechanism = first_release(self.plan_)
        if not hasattr(mechanism, "length"):
            return f"numbers of at most {self.row_bound:.4g} by {mechanism!r}"
        length = mechanism.length
        return f"reports of length {length:.4g} for vectors of length at most {self.row_bound:.4g}"


@final
@dataclass(frozen=True, slots=True)
class Moments:
    """The number of reports, their mean, and the sum of squared deviations from it."""

    users: int
    mean: Array
    squares: Array

    def __add__(self, others: Moments) -> Moments:
        """Return the moments of the reports of both (Chan, Golub & LeVeque 1979)."""
        users, difference = self.users + others.users, others.mean - self.mean
        mean = self.mean + difference * (others.users / users)
        between = difference**2 * (self.users * others.users / users)
        return Moments(users, mean, self.squares + others.squares + between)


@lru_cache(maxsize=64)
def mean_randomizer(dimension: int, epsilon: float, radius: float, name: str = "auto") -> Release:
    """Return the named mechanism for vectors of length ``radius``, calibrated to epsilon.

    "auto" returns that of least variance: PrivUnit, or one for numbers if ``dimension`` is 1.
    """
    if name in NUMBER_NOISE or (name == "priv_unit" and dimension == 1):
        if name == "priv_unit" or dimension > 1:
            allowed = f"'auto' or one that fits vectors of {dimension} coordinates"
            raise ParameterError("randomizer", name, allowed)
        return number_noise(name, radius, epsilon)
    if name == "hemisphere":
        return calibrate(HemisphereL2, dimension=dimension, radius=radius, epsilon=epsilon)
    # The hemisphere is one of the spherical caps that PrivUnit chooses from, so PrivUnit is never
    # worse.
    return (
        PrivUnit.optimised(dimension, epsilon, radius)
        if dimension > 1
        else least_noise(radius, epsilon)
    )


@final
@dataclass(frozen=True, slots=True)
class ClippedVectors:
    """The query of a block of users: their vectors, shortened to length ``radius`` at most.

    With ``numbers`` it returns the single coordinate of each vector, without an axis for it.
    """

    radius: float
    numbers: bool = False

    def __call__(self, rows: Any) -> Array:
        """Return one vector, or one number, for each user."""
        vectors = np.asarray(rows, dtype=np.float64)
        # Coordinates are clipped to 1e6 radii first, so that no square overflows.  Vectors are then
        # shortened to 1 - 1e-12 radii, so that rounding does not make them longer than the radius.
        vectors = np.clip(vectors, -1e6 * self.radius, 1e6 * self.radius)
        scaled = vectors / self.radius
        shortened = scaled * norm_clip_factors(scaled, 1 - 1e-12)[:, None] * self.radius
        return np.asarray(shortened[:, 0] if self.numbers else shortened)
