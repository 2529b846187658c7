"""Sparse regression by hard thresholding when every user's whole record is private.

References: Wang & Xu (2021), Algorithms 1 and 4; Duchi, Jordan & Wainwright (2018) for reports of
one coordinate.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, Self, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from accountant.domains import NON_NEGATIVE, POSITIVE, IntegerRange, OneOf
from accountant.errors import ParameterError
from accountant.ledger.worker_chunks import WorkerChunks
from accountant.numerics import Array
from accountant.planning.calibration import calibrate
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Plan
from algorithms.base.estimators import PrivateRegressor
from algorithms.base.fit_data import checked_shape, generator_of, validated_data, validated_fit_data
from algorithms.base.hard_thresholding import (
    checked_step,
    default_rounds,
    default_step,
    iht_step,
    project_to_ball,
)
from algorithms.base.non_private import NoPrivacy
from algorithms.base.number_noise import least_noise, noise_variance
from algorithms.base.renamed_parameters import renamed_parameters
from algorithms.base.row_blocks import (
    equal_slices,
    row_blocks,
    row_products,
    rows_per_block,
    sum_of_rows,
)
from algorithms.sparse_regression.coordinate_reports import (
    MAX_RESIDUAL,
    LedgerUsers,
    stage_blocks,
)
from algorithms.sparse_regression.links import Link, link_of
from algorithms.sparse_regression.narrowing_rounds import ROUND_SHARES, NarrowingRounds
from mechanisms.hemisphere import HemisphereL2

METHOD = OneOf(("auto", "coordinates", "gradients"))
# A guess at the variance of the users' numbers without noise: they lie in [-1, 1], so it is at most
# 1.  With the variance of the noise it decides which measured numbers count as noise.
OWN_VARIANCE = 0.5
FULL_TRANSCRIPT_NUMBERS = 20_000_000  # most numbers that a transcript keeps in full


@renamed_parameters(residual_clip="residual_bound")
@dataclass(eq=False, repr=False)
class LocalIHT(PrivateRegressor):
    """Sparse regression ``y = f(<x, theta>) + noise``, epsilon-DP for each user, without a curator.

    Theta is sparse and in the unit ball; features are clipped to [-1, 1].  Every user reports once.
    By default a report is one number: a slope of the residual on one feature, a product of two
    features, or whether the residual is large.  From round to round fewer features are asked for
    and residuals are clipped closer, as far as reports have shown; what noise alone would explain
    becomes 0.  Features may be correlated.

    With ``method="gradients"`` a report is a whole randomised gradient, as in the paper: shortened
    to a public bound, which none exceeds where ``|noise| <= noise_bound``.

    Parameters
    ----------
    epsilon : float
        Target epsilon of each user, positive, in nats; infinity with ``non_private=True``.
    sparsity : int
        Number of coefficients that may be nonzero.
    noise_bound : float
        Bound of the noise of y.
    true_sparsity : int or None
        Number of nonzero entries of the true theta, for the bound; None takes ``sparsity``.
    method : {"auto", "coordinates", "gradients"}
        What a user reports; "auto" takes gradients where one of ``rounds``, ``step`` and
        ``residual_bound`` is given, which belong to them, else coordinates.
    rounds : int or None
        Number of rounds of gradients; None takes ``ceil(ln(users / features))``, at least 1.  One
        round is a threshold on means of ``x y``: it assumes uncorrelated features.
    step : float or None
        Step size for gradients; None takes the middle of the window for perfect features.
    link : str or Link
        The link function f, such as "identity".
    residual_bound : float or None
        Bound of the residuals in gradients instead of ``noise_bound``: less noise, and a bias.
    non_private : bool
        Fit without noise, for comparison; needs ``epsilon=inf``.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    coef_ : numpy.ndarray of shape (features,)
        Coefficients in the unit ball, at most ``sparsity`` of them not 0.
    rounds_ : int
        The number of rounds in which slopes or gradients were asked for.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Wang & Xu (2021), Algorithms 1 and 4, with a corrected norm bound.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import LocalIHT
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], (5000, 5))
    >>> model = LocalIHT(epsilon=5.0, sparsity=1, noise_bound=0.1, rounds=2, random_state=0)
    >>> model.fit(X, 0.8 * X[:, 3]).coef_.nonzero()[0].tolist()
    [3]
    """

    delta = 0.0

    _: KW_ONLY
    epsilon: float
    sparsity: int
    noise_bound: float
    true_sparsity: int | None = None
    method: str = "auto"
    rounds: int | None = None
    step: float | None = None
    link: str | Link = "identity"
    residual_bound: float | None = None
    non_private: bool = False
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Parallel:
        """Return what a fit on ``shape = (users, features)`` will release; needs no data."""
        users, features = checked_shape(shape)
        radius, epsilon = self.norm_bound(features), self._checked_epsilon()
        if self._asks_coordinates:
            report = NoPrivacy() if self.non_private else least_noise(1.0, epsilon)
            rounds = self._narrowing_rounds(features, report)
            stages = stage_blocks(users, features, self.sparsity, rounds.enough())
            return Parallel([report] * sum(map(len, stages)))
        groups = self._round_blocks(users, features)
        mechanism: Plan = NoPrivacy()
        if not self.non_private:
            mechanism = calibrate(
                HemisphereL2, dimension=features, radius=radius, longer="clip", epsilon=epsilon
            )
        return Parallel([mechanism] * sum(map(len, groups)))

    def norm_bound(self, features: int) -> float:
        """Return the bound of the gradients' length: ``sqrt(p) b (b (sqrt s + sqrt s*) + C)``.

        Parameters
        ----------
        features : int
            Number of features p.

        Returns
        -------
        float
            With b the largest slope of the link, s and s* the sparsities, and C the noise bound.
        """
        link = link_of(self.link)
        if self.step is not None:
            checked_step(POSITIVE.check("step", self.step), link.low, link.high)
        sparsity = IntegerRange(1, features).check("sparsity", self.sparsity)
        if self.residual_bound is not None:
            residual_bound = POSITIVE.check("residual_bound", self.residual_bound)
            return math.sqrt(features) * link.high * residual_bound
        true = sparsity
        if self.true_sparsity is not None:
            true = IntegerRange(1, features).check("true_sparsity", self.true_sparsity)
        noise = NON_NEGATIVE.check("noise_bound", self.noise_bound)
        # |<x, theta>| <= |theta|_1 <= sqrt s on [-1, 1]^p, and the link's slope is at most b
        residual = link.high * (math.sqrt(sparsity) + math.sqrt(true)) + noise
        return math.sqrt(features) * link.high * residual

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return the coefficients, computed from released values only."""
        users, features = ledger.shape
        if self._asks_coordinates:
            rounds = self._narrowing_rounds(features, ledger.plan.parts[0])
            stages = stage_blocks(users, features, self.sparsity, rounds.enough())
            asker = LedgerUsers(ledger, link_of(self.link), stages, executor)
            return project_to_ball(rounds.run(asker))
        link, mechanism, theta = link_of(self.link), ledger.plan.parts[0], np.zeros(features)
        step = default_step(link.low, link.high) if self.step is None else self.step
        for group in self._round_blocks(users, features):
            gradient, total = UserGradients(link, self.residual_bound, theta), np.zeros(features)
            parts = ledger.release_blocks(
                mechanism, gradient, group, executor, sum_of_rows, shape=features
            )
            for part in parts:
                total += part
            mean = total / (group[-1].stop - group[0].start)
            theta = iht_step(theta, mean, step, self.sparsity)
        return theta

    def _narrowing_rounds(self, features: int, mechanism: Any) -> NarrowingRounds:
        """Return the protocol of reports of single numbers by this mechanism."""
        link = link_of(self.link)
        true = self.sparsity if self.true_sparsity is None else self.true_sparsity
        # With a and b the least and largest slope of the link and C the noise bound, the residuals
        # (y - f) / f' at theta = 0 are at most (b sqrt s* + C) / a.  Few of them are beyond
        # (2 b + C) / a, as theta lies in the unit ball; those are clipped.
        reach = (link.high * min(math.sqrt(true), 2.0) + self.noise_bound) / link.low
        variance = OWN_VARIANCE + (0.0 if self.non_private else noise_variance(mechanism, 1.0))
        noise = self.noise_bound / link.low
        return NarrowingRounds(features, self.sparsity, variance, reach, noise)

    @property
    def _asks_coordinates(self) -> bool:
        """Whether reports are single numbers."""
        method = METHOD.check("method", self.method)
        gradient_settings = [
            n for n in ("rounds", "step", "residual_bound") if getattr(self, n) is not None
        ]
        if method == "coordinates" and gradient_settings:
            raise ParameterError(
                gradient_settings[0],
                getattr(self, gradient_settings[0]),
                "None, or method='gradients'",
            )
        return method == "coordinates" or (method == "auto" and not gradient_settings)

    def fit(
        self, X: Any, y: Any = None, executor: Executor | None = None, ledger: Any = None
    ) -> Self:
        """Fit on users' features and targets; see `PrivateRegressor.fit`.

        X may be `WorkerChunks` of pairs (X, y), with y None: workers keep rows and reports, and the
        transcript has digests of the reports.
        """
        X, y = validated_fit_data(self, X, y, single_pass=True, on_workers=True)
        plan, rng = self.plan(X.shape), generator_of(self.random_state)
        # Reports of gradients together are as large as X, so a large transcript has digests only.
        # The reports of users that workers hold stay with the workers.
        numbers = X.shape[0] if self._asks_coordinates else math.prod(X.shape)
        in_full = numbers <= FULL_TRANSCRIPT_NUMBERS and not isinstance(X, WorkerChunks)
        transcript = "full" if in_full else "digest"
        data = X if y is None else (X, y)
        self.ledger_ = self.open_ledger(data, plan, rng=rng, transcript=transcript, ledger=ledger)
        self.coef_ = self.run(self.ledger_, executor)
        self._warn_if_not_private("coefficients are")
        self.rounds_ = self._rounds(*X.shape)
        self.transcript_ = self.ledger_.transcript
        return self

    def predict(self, X: Any) -> Array:
        """Return predictions for X (records, features), clipped as in the fit."""
        check_is_fitted(self)
        X = validated_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        self._warn_if_not_private("predictions are")
        inner = [
            row_products(clipped_features(X[block_rows]), self.coef_)
            for block_rows in row_blocks(X)
        ]
        predicted: Array = link_of(self.link).function(np.concatenate(inner))
        return predicted

    def _noise_summary(self) -> str:
        mechanism = self.plan_.parts[0]
        if not isinstance(mechanism, HemisphereL2):
            return f"one number of each user, in [-1, 1], by {mechanism!r}"
        share = 1 - (mechanism.radius / mechanism.length) ** 2
        return (
            f"reports of length {mechanism.length:.4g} for gradients of length at most "
            f"{mechanism.radius:.4g}: at least {share:.1%} of each report's square is noise"
        )

    def _rounds(self, users: int, features: int) -> int:
        if self._asks_coordinates:
            return len(ROUND_SHARES) + 1
        if self.rounds is None:
            return default_rounds(users, features)
        rounds = IntegerRange(1).check("rounds", self.rounds)
        if rounds > users:
            request = f"{rounds} for n_samples={users}"
            raise ParameterError("rounds", request, "at most the number of users")
        return rounds

    def _round_blocks(self, users: int, features: int) -> list[list[slice]]:
        """Return the blocks of users of every round; rounds have nearly equal numbers of users."""
        rounds = self._rounds(users, features)
        ends = [users * t // rounds for t in range(rounds + 1)]
        block_rows = rows_per_block(features)
        return [equal_slices(start, stop, block_rows) for start, stop in pairwise(ends)]


@final
@dataclass(frozen=True, slots=True)
class UserGradients:
    """The query of a block: each user's gradient at the public ``theta``."""

    link: Link
    residual_bound: float | None
    theta: Array

    def __call__(self, rows: tuple[Any, Array]) -> Array:
        """Return ``x f'(<x, theta>) (f(<x, theta>) - y)``, one row a user."""
        x, y = clipped_features(rows[0]), rows[1]
        inner = row_products(x, self.theta)
        # A gradient of any size is shortened later, but it must be a finite float.
        largest_residual = MAX_RESIDUAL if self.residual_bound is None else self.residual_bound
        residual = np.clip(self.link.function(inner) - y, -largest_residual, largest_residual)
        residual *= self.link.derivative(inner)
        x *= residual[:, None]
        return x


def clipped_features(x: Any) -> Array:
    """Return features clipped to [-1, 1], dense."""
    dense = np.asarray(x.toarray() if hasattr(x, "toarray") else x, dtype=np.float64)
    return np.clip(dense, -1.0, 1.0)
