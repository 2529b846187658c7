"""Wrong private LASSOs, and the runs that convict them."""

import numpy as np

from accountant import Repeat
from algorithms import PrivateLasso
from algorithms.frank_wolfe.constants import Bounds
from algorithms.frank_wolfe.dense_scores import DenseScores, run_frank_wolfe
from mechanisms import NoisyMax
from tests.laws.algorithms import Run

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
            ledger.release(plan.part, scores, shape=2 * ledger.shape[1])
            if scores._residual[0] > 0:
                break
        return np.zeros(6)


def run_of(kind, delta, rounds, neighbour):
    """A run of a private LASSO beside one record more or less."""
    return Run(kind(1.0, delta, rounds=rounds, fit_intercept=False), (X, Y), neighbour)


FLIPPED = with_first_record(1.0, 1.0 if Y[0] < 0 else -1.0)
LOSSES = {
    mutant.__name__: (
        run_of(mutant, 0.0, 10, neighbour), run_of(PrivateLasso, 0.0, 10, neighbour)
    )
    for mutant, neighbour in (
        (SmallSensitivity, with_first_record(1.0, -1.0)), (NoClipping, with_first_record(1e4, -1e4))
    )
}  # fmt: skip
HONEST = run_of(PrivateLasso, 1e-6, 6, FLIPPED)
LEAKS = {"ReadsDataPastTheGate": (run_of(ReadsDataPastTheGate, 1e-6, 6, FLIPPED), HONEST)}
PLANS = {"StopsOnPrivateResidual": (run_of(StopsOnPrivateResidual, 1e-6, 6, FLIPPED), HONEST)}
