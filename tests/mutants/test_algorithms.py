"""Wrong private LASSOs, each caught by replay or by its own privacy losses."""

import numpy as np
import pytest

from accountant import Repeat
from algorithms import PrivateLasso
from algorithms.frank_wolfe.polytope import Bounds, DenseScores, run_frank_wolfe
from audits import privacy_losses, replay
from mechanisms import NoisyMax

RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, (50, 6))
Y = np.clip(X @ [0.6, -0.3, 0, 0, 0, 0] + 0.05 * RNG.normal(size=50), -1, 1)


def with_first_record(x, y):
    other = X.copy(), Y.copy()
    other[0][0], other[1][0] = x, y
    return other


class SmallSensitivity(PrivateLasso):
    """Declares an eighth of what a record can move."""

    def plan(self, shape):
        honest = super().plan(shape)
        return Repeat(NoisyMax(honest.part.scale / 8, honest.part.sensitivity / 8), honest.count)


class NoClipping(PrivateLasso):
    """Assumes the bounds instead of enforcing them."""

    def run(self, ledger):
        honest = self._bounds()
        return run_frank_wolfe(
            ledger, ledger.plan.part, ledger.plan.count, Bounds(honest.radius, 1e9, 1e9)
        )


class ReadsDataPastTheGate(PrivateLasso):
    """Breaks ties by looking at the data past the gate."""

    def run(self, ledger):
        return super().run(ledger) + 1e-12 * float(ledger._data[1].mean())


class StopsOnPrivateResidual(PrivateLasso):
    """Stops as soon as the residual, which is private, is small."""

    def run(self, ledger):
        scores, plan = DenseScores(self._bounds()), ledger.plan
        for _ in range(plan.count):
            ledger.release(plan.part, scores)
            if scores._residual[0] > 0:
                break
        return np.zeros(6)


def greatest_loss(algorithm, neighbour):
    return np.abs(privacy_losses(algorithm, (X, Y), neighbour, 200, rng=1)).max()


@pytest.mark.parametrize(
    ("mutant", "neighbour"),
    [(SmallSensitivity, with_first_record(1.0, -1.0)), (NoClipping, with_first_record(1e4, -1e4))],
)
def test_privacy_losses_exceed_the_pure_claim(mutant, neighbour):
    assert greatest_loss(mutant(1.0, 0.0, rounds=10), neighbour) > 1.0
    assert greatest_loss(PrivateLasso(1.0, 0.0, rounds=10), neighbour) <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("mutant", "verdict"),
    [(ReadsDataPastTheGate, "leak_free"), (StopsOnPrivateResidual, "on_plan")],
)
def test_replay_convicts(mutant, verdict):
    neighbour = with_first_record(1.0, 1.0 if Y[0] < 0 else -1.0)
    assert not getattr(replay(mutant(1.0, 1e-6, rounds=6), (X, Y), neighbour, rng=1), verdict)
    assert getattr(replay(PrivateLasso(1.0, 1e-6, rounds=6), (X, Y), neighbour, rng=1), verdict)
