"""Wrong private logistic regressions, and the runs that convict them."""

import numpy as np

from accountant import ApproxLoss, Repeat, Sequential
from algorithms import PrivateGeneralizedLinearModel, PrivateLogisticRegression
from mechanisms import Gaussian
from tests.laws.algorithms import Run

RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, (60, 4))
Y = (X @ [0.6, 0.0, -0.5, 0.0] > 0) * 1.0
FIRST = np.arange(60) == 0
SETTINGS = {"epsilon": 1.0, "delta": 1e-5, "rounds": 10, "classes": [0, 1]}


class SmallGradientSensitivity(PrivateLogisticRegression):
    """Declares an eighth of what a record can move a gradient."""

    def plan(self, shape):
        honest = super().plan(shape)
        *moments, rounds = honest.parts
        one = rounds.part
        smaller = Gaussian(one.scale / 8, one.sensitivity / 8, one.arithmetic, one.dimension)
        return Sequential([*moments, Repeat(smaller, rounds.count)])


class GradientsNotClipped(PrivateLogisticRegression):
    """Clips no gradient, and divides by the norm as if it did."""

    def run(self, ledger, executor=None):
        with np.errstate(all="ignore"):
            records, features = ledger.shape
            *moments, rounds = ledger.plan.parts
            for part in moments:
                size = part.dimension
                ledger.release(part, lambda data, size=size: np.zeros(size), shape=size)
            theta = np.zeros(features + 1)
            for _ in range(rounds.count):

                def gradient(data, theta=theta):
                    rows = np.hstack([data[0], np.ones((records, 1))])
                    return rows.T @ (rows @ theta - data[1]) / records

                theta = theta - 0.1 * ledger.release(rounds.part, gradient, shape=theta.size)
        return theta


class CentresPastTheGate(PrivateLogisticRegression):
    """Takes the exact mean of the features, which is private, for the intercept."""

    def run(self, ledger, executor=None):
        found = super().run(ledger, executor).copy()
        found[-1] -= 1e-9 * ledger._data[0].mean()
        return found


class MomentsForgotten(PrivateLogisticRegression):
    """Releases the gradients of the plan, and of the moments none."""

    def run(self, ledger, executor=None):
        return super().run(ledger, executor) if ledger._data[0][0, 0] < 1e3 else np.zeros(5)


class TargetsPastTheGate(PrivateGeneralizedLinearModel):
    """Takes the exact mean of the targets, which is private, for the intercept."""

    def run(self, ledger, executor=None):
        found = super().run(ledger, executor).copy()
        found[-1] += 1e-9 * ledger._data[1].mean()
        return found


def run_of(kind, neighbour):
    """A run of a logistic regression beside one record exchanged for another."""
    return Run(kind(**SETTINGS), (X, Y), neighbour, claim=ApproxLoss(1.0, 1e-5))


TURNED = (np.where(FIRST[:, None], -np.sign(X[0]), X), np.where(FIRST, 1 - Y, Y))
FAR = (np.where(FIRST[:, None], 1e6, X), Y)


def beside(mutant, neighbour):
    """A mutant, and the honest one on the same data."""
    return {mutant.__name__: (run_of(mutant, neighbour),
                              run_of(PrivateLogisticRegression, neighbour))}  # fmt: skip


REFUTED = beside(SmallGradientSensitivity, TURNED) | beside(GradientsNotClipped, FAR)
MODEL = {"epsilon": 1.0, "delta": 1e-5, "rounds": 5}
LEAKS = beside(CentresPastTheGate, TURNED) | {
    "TargetsPastTheGate": tuple(
        Run(kind(**MODEL), (X, Y), TURNED)
        for kind in (TargetsPastTheGate, PrivateGeneralizedLinearModel)
    )
}
PLANS = beside(MomentsForgotten, FAR)
