"""Wrong private Frank-Wolfes, each caught by a law: sensitivity, levels, replay, losses."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from accountant import PrivateValueError, Repeat
from algorithms.base.glm_losses import SQUARED, LinearLoss
from algorithms.frank_wolfe.constants import Bounds
from algorithms.frank_wolfe.convex_set import GaussianFrankWolfe
from algorithms.frank_wolfe.convex_sets import L2Ball
from algorithms.frank_wolfe.polytope import FrankWolfe
from algorithms.frank_wolfe.polytopes import L1Ball
from algorithms.frank_wolfe.private_lasso import PrivateLasso
from algorithms.frank_wolfe.private_logistic_lasso import PrivateLogisticLasso
from algorithms.frank_wolfe.sparse_scores import ScoreSnapshot, SparseScores
from audits import privacy_losses, replay
from mechanisms import LazyExponential

RNG = np.random.default_rng(8)
X = RNG.choice([-1.0, 1.0], (30, 5))
Y = np.where(X @ [0.6, -0.3, 0, 0.2, 0] > 0, 1.0, -1.0)
OTHER = X.copy(), Y.copy()
OTHER[0][0], OTHER[1][0] = [1.0, -1.0, 1.0, 1.0, 1.0], -1.0 if X[0] @ [1, -1, 1, 1, 1] > 0 else 1.0


def greatest(algorithm):
    return np.abs(privacy_losses(algorithm, (X, Y), OTHER, 200, rng=1)).max()


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


def test_privacy_losses_exceed_the_pure_claim():
    assert greatest(PrivateLogisticLasso(1.0, 0.0, rounds=8)) <= 1.0 + 1e-9
    assert greatest(HalfTheNoise(1.0, 0.0, rounds=8)) > 1.0
    lying = LinearLoss(SQUARED.slope, lambda inner, y: 0.05, 2.0, SQUARED.value)
    assert greatest(FrankWolfe(lying, L1Ball(1.0), 1.0, 0.0, rounds=8)) <= 1.0 + 1e-9
    assert greatest(Unclipped(lying, L1Ball(1.0), 1.0, 0.0, rounds=8)) > 1.0


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


def test_replay_convicts():
    thin = sparse.csr_matrix(X), Y
    other = sparse.csr_matrix(OTHER[0]), OTHER[1]
    assert replay(SparseInput(1.0, 1e-6, rounds=6), thin, other, rng=1).sound
    assert not replay(ReturnsBucketCount(1.0, 1e-6, rounds=6), thin, other, rng=1).leak_free
    settings = ("squared", L2Ball(1.0), 1.0, 1e-6)
    flipped = X, -Y
    assert replay(GaussianFrankWolfe(*settings, rounds=6), (X, Y), flipped, rng=1).sound
    assert not replay(StopsOnPrivateGradient(*settings, rounds=6), (X, Y), flipped, rng=1).on_plan


class StaleMargins(SparseScores):
    """Forgets that margins of other rows shrink: gradients only of rows that were touched."""

    def at(self, candidates):
        gradient = self._gradient_scale * self._gradient_sum
        return np.concatenate([gradient, -gradient])[candidates]


def last_look(query, rounds):
    x = sparse.random(40, 20, 0.1, "csr", rng=np.random.default_rng(0))
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        query((x, np.ones(40)))
        query.move(int(rng.integers(20)), 3.0 * rng.choice([-1.0, 1.0]))
    return query((x, np.ones(40)))


def misses(query):
    """Total variation between draws and the law, after some rounds."""
    look = last_look(query, 12)
    draws = LazyExponential(0.1).release(look, 1, 5000)
    law = softmax(look.scores() / 0.1)
    return np.abs(np.bincount(draws, minlength=40) / 5000 - law).sum() / 2


def test_stale_gradients_have_another_law():
    bounds = Bounds(3.0, 1.0, 1.0)
    assert misses(SparseScores(bounds, SQUARED, 0.1)) < 0.05
    assert misses(StaleMargins(bounds, SQUARED, 0.1)) > 0.1


class NoSlack(SparseScores):
    """Bounds that hold only where nothing changed since."""

    def _score_bounds(self, features):
        return 0.5 * self._gradient_scale * abs(self._gradient_sum[features])


def test_bounds_that_do_not_hold_are_noticed_before_anything_is_told():
    query = NoSlack(Bounds(3.0, 1.0, 1.0), SQUARED, 1e-3)
    look = last_look(query, 5)
    with pytest.raises(PrivateValueError, match="do not exceed"):
        LazyExponential(1e-3).release(look, 0, 200)
    assert isinstance(look, ScoreSnapshot)
