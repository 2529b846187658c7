"""Wrong private Frank-Wolfes, and the runs and scores that convict them."""

import dataclasses

import numpy as np
from scipy import sparse

from accountant import Repeat
from algorithms.base.glm_losses import SQUARED, LinearLoss
from algorithms.frank_wolfe.constants import Bounds
from algorithms.frank_wolfe.convex_set import GaussianFrankWolfe
from algorithms.frank_wolfe.convex_sets import L2Ball
from algorithms.frank_wolfe.polytope import FrankWolfe
from algorithms.frank_wolfe.polytopes import L1Ball
from algorithms.frank_wolfe.private_lasso import PrivateLasso
from algorithms.frank_wolfe.private_logistic_lasso import PrivateLogisticLasso
from algorithms.frank_wolfe.sparse_scores import SparseScores
from tests.laws.algorithms import Run

RNG = np.random.default_rng(8)
X = RNG.choice([-1.0, 1.0], (30, 5))
Y = np.where(X @ [0.6, -0.3, 0, 0.2, 0] > 0, 1.0, -1.0)
OTHER = X.copy(), Y.copy()
OTHER[0][0], OTHER[1][0] = [1.0, -1.0, 1.0, 1.0, 1.0], -1.0 if X[0] @ [1, -1, 1, 1, 1] > 0 else 1.0


class HalfTheNoise(PrivateLogisticLasso):
    """Spends a quarter of the noise and says nothing."""

    def plan(self, shape, sparse=False):
        honest = super().plan(shape, sparse)
        part = dataclasses.replace(
            honest.part, scale=honest.part.scale / 8, sensitivity=honest.part.sensitivity / 8
        )
        return Repeat(part, honest.count)


class Unclipped(FrankWolfe):
    """Believes a loss that declares a smaller slope than it has, and does not clip."""

    def run(self, ledger):
        loose = dataclasses.replace(self.loss, steepest=lambda inner, y: 1e6)
        return FrankWolfe(loose, self.vertices_or_oracle, 1.0, 0.0, rounds=8).run(ledger)


class SparseInput(PrivateLasso):
    """On sparse data, as audits know algorithms."""

    def plan(self, shape, sparse=True):
        return super().plan(shape, sparse)


class ReturnsBucketCount(SparseInput):
    """Returns how many levels there were, which is private."""

    def run(self, ledger):
        query = SparseScores(self._bounds(), SQUARED, ledger.plan.part.scale)
        for _ in range(ledger.plan.count):
            feature = int(ledger.release(ledger.plan.part, query)) % 5
            query.move(feature, 1.0)
        return query.scores(0)


class StopsOnPrivateGradient(GaussianFrankWolfe):
    """Stops when the true gradient is small."""

    def run(self, ledger):
        theta, seen = np.zeros(5), []
        for _ in range(ledger.plan.count):
            ledger.release(ledger.plan.part, lambda data: (seen.append(data[1][0]), theta)[1])
            if seen[-1] > 0:
                break
        return theta


class StaleMargins(SparseScores):
    """Forgets that margins of other rows shrink: gradients only of rows that were touched."""

    def at(self, candidates):
        gradient = self._gradient_scale * self._gradient_sum
        return np.concatenate([gradient, -gradient])[candidates]


class NoSlack(SparseScores):
    """Bounds that hold only where nothing changed since."""

    def _score_bounds(self, features):
        return 0.5 * self._gradient_scale * abs(self._gradient_sum[features])


LYING = LinearLoss(SQUARED.slope, lambda inner, y: 0.05, 2.0, SQUARED.value)
DECLARED = (LYING, L1Ball(1.0), 1.0, 0.0)
LOSSES = {
    "HalfTheNoise": (
        Run(HalfTheNoise(1.0, 0.0, rounds=8, classes=[-1, 1]), (X, Y), OTHER),
        Run(PrivateLogisticLasso(1.0, 0.0, rounds=8, classes=[-1, 1]), (X, Y), OTHER),
    ),
    "Unclipped": (
        Run(Unclipped(*DECLARED, rounds=8), (X, Y), OTHER),
        Run(FrankWolfe(*DECLARED, rounds=8), (X, Y), OTHER),
    ),
}
THIN, OTHER_THIN = (sparse.csr_matrix(X), Y), (sparse.csr_matrix(OTHER[0]), OTHER[1])
LEAKS = {
    "ReturnsBucketCount": (
        Run(ReturnsBucketCount(1.0, 1e-6, rounds=6), THIN, OTHER_THIN),
        Run(SparseInput(1.0, 1e-6, rounds=6), THIN, OTHER_THIN),
    )
}
ON_A_BALL = ("squared", L2Ball(1.0), 1.0, 1e-6)
PLANS = {
    "StopsOnPrivateGradient": (
        Run(StopsOnPrivateGradient(*ON_A_BALL, rounds=6), (X, Y), (X, -Y)),
        Run(GaussianFrankWolfe(*ON_A_BALL, rounds=6), (X, Y), (X, -Y)),
    )
}
BOUNDS = Bounds(3.0, 1.0, 1.0)


def stale_margins():
    """Scores that forget what other rows changed."""
    return StaleMargins(BOUNDS, SQUARED, 0.1)


def right_margins():
    """Scores as they are."""
    return SparseScores(BOUNDS, SQUARED, 0.1)


def no_slack():
    """Bounds of scores that leave no room for change."""
    return NoSlack(BOUNDS, SQUARED, 1e-3)


def right_slack():
    """Bounds of scores as they are."""
    return SparseScores(BOUNDS, SQUARED, 1e-3)
