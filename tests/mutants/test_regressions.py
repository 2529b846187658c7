"""Wrong sparse regressions, each caught by replay, by its privacy losses, or by a law of blocks."""

import math

import numpy as np
import pytest

from accountant import ApproxLoss, OffPlan, PureLoss
from accountant.ledger.ledger import Ledger
from accountant.planning.calibration import calibrate
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Repeat
from algorithms import LabelIHT, LocalIHT, SparseERM
from algorithms.base.erm_losses import ERM_LOSSES, MeanGradient
from algorithms.base.hard_thresholding import keep_largest
from audits.algorithm_runs.loss_profile import audit_algorithm
from mechanisms import Gaussian, HemisphereL2

RNG = np.random.default_rng(8)
X = RNG.choice([-1.0, 1.0], (60, 4))
Y = X @ [0.6, 0.0, -0.5, 0.0] + RNG.uniform(-0.1, 0.1, 60)
FIRST = np.arange(60) == 0
LABELS = {"epsilon": 1.0, "delta": 1e-5, "sparsity": 2, "label_bound": 1.2, "rounds": 2}
LOCAL = {"epsilon": 1.0, "sparsity": 2, "noise_bound": 0.1, "rounds": 2}
CENTRAL = {"epsilon": 1.0, "delta": 1e-5, "sparsity": 2, "rounds": 10}
CONFIDENCE = 1 - 1e-6


class PrintedNoise(LabelIHT):
    """Noise for labels that move by 4 C, with C = .1 (E1)."""

    def mechanism(self):
        return Gaussian(calibrate(Gaussian, sensitivity=0.4, epsilon=1.0, delta=1e-5).scale, 2.4)


class LabelsNotClipped(LabelIHT):
    """Assumes the bound of labels instead of enforcing it."""

    def noisy_labels(self, ledger):
        return ledger.release_each(ledger.plan.parts[0], lambda labels: labels)


class StopsOnPrivateFit(LabelIHT):
    """Stops early where the fit to the labels themselves is good."""

    def gradient(self, theta, data, executor=None):
        return super().gradient(theta, data, executor) * (1 + 1e-9 * self.seen.mean())

    def run(self, ledger, executor=None):
        self.seen = ledger._data
        return super().run(ledger, executor)


class RandomizerChosenByData(LocalIHT):
    """Chooses the randomiser by the data it should hide."""

    def run(self, ledger, executor=None):
        half = slice(0, 30) if ledger._data[1][0] < 1e3 else slice(30, 60)
        ledger.release_each(ledger.plan.parts[0], lambda rows: rows[0], half)
        return np.zeros(4)


class SmallRadius(LocalIHT):
    """Takes a keep that was calibrated for twice the epsilon."""

    def plan(self, shape):
        honest = super().plan(shape)
        one = honest.parts[0]
        keep = 1 / (1 + math.exp(-2.0))
        wrong = HemisphereL2(one.dimension, one.radius, keep, "clip")
        return Parallel([wrong] * len(honest.parts))


class SmallSensitivity(SparseERM):
    """Declares an eighth of what a record can move."""

    def plan(self, shape):
        honest = super().plan(shape)
        one = honest.part
        smaller = Gaussian(one.scale / 8, one.sensitivity / 8, one.arithmetic, one.dimension)
        return Repeat(smaller, honest.count)


class RowsNotClipped(SparseERM):
    """Assumes rows within the bound."""

    def run(self, ledger, executor=None):
        theta, gradient = np.zeros(4), MeanGradient(ERM_LOSSES["logistic"], 1e9, 60)
        for _ in range(ledger.plan.count):
            gradient.theta = theta
            theta = keep_largest(theta - ledger.release(ledger.plan.part, gradient), 2)
        return theta


def labels(last):
    return np.where(FIRST, last, Y)


SIGNS = np.sign(Y)
FAR = np.where(FIRST[:, None], -9 * X, X)
PAIRS = {
    PrintedNoise: (labels(9.0), labels(-9.0), X),
    LabelsNotClipped: (labels(90.0), labels(-90.0), X),
    StopsOnPrivateFit: (labels(9.0), labels(-9.0), X),
    RandomizerChosenByData: ((X, labels(9.0)), (X, labels(1e6)), None),
    SmallRadius: ((X, labels(1e6)), (FAR, labels(1e6)), None),
    SmallSensitivity: ((X, SIGNS), (FAR, SIGNS), None),
    RowsNotClipped: ((9 * X, SIGNS), (np.where(FIRST[:, None], -900 * X, 9 * X), SIGNS), None),
}
CASES = [
    (PrintedNoise, LABELS, "privacy losses"),
    (LabelsNotClipped, LABELS, "privacy losses"),
    (StopsOnPrivateFit, LABELS, "replay: the result changed"),
    (RandomizerChosenByData, LOCAL, "replay"),
    (SmallRadius, LOCAL, "privacy losses"),
    (SmallSensitivity, CENTRAL, "privacy losses"),
    (RowsNotClipped, CENTRAL, "privacy losses"),
]


@pytest.mark.parametrize(("mutant", "settings", "verdict"), CASES, ids=lambda one: str(one)[:40])
def test_a_mutant_is_convicted_and_its_model_is_not(mutant, settings, verdict):
    claim = ApproxLoss(1.0, 1e-5) if "delta" in settings else PureLoss(1.0)
    data, neighbour, public = PAIRS[mutant]

    def refutation(kind):
        found = audit_algorithm(
            kind(**settings), data, neighbour, claim, 300, np.random.default_rng(2), public=public
        )
        return found.refutation(CONFIDENCE)

    assert refutation(mutant).startswith(verdict)
    assert refutation(mutant.__mro__[1]) == ""


class SameNoiseInEveryBlock(Ledger):
    """Every block draws the same noise."""

    def _block_seed(self):
        return [1]


def test_blocks_with_the_same_noise_are_convicted():
    data = (np.ones((60, 2)), np.ones(60))
    plan = Parallel([HemisphereL2(2, 1.0, 0.7)] * 6)
    blocks = [slice(at, at + 10, 1) for at in range(0, 60, 10)]

    def distinct(kind):
        ledger = kind(data, plan, rng=3)
        reports = ledger.release_blocks(plan.parts[0], lambda rows: rows[0] / 2, blocks)
        return len({np.abs(block[0, 0]) for block in reports})

    assert distinct(SameNoiseInEveryBlock) == 1  # the law of test_streams: as many as blocks
    assert distinct(Ledger) == 6


def test_a_user_in_two_blocks_is_refused():
    ledger = Ledger(np.ones((60, 2)), Parallel([HemisphereL2(2, 1.0, 0.7)] * 2), rng=3)
    with pytest.raises(OffPlan):
        list(ledger.release_blocks(ledger.plan.parts[0], lambda rows: rows / 2,
                                   [slice(0, 30), slice(29, 60)]))  # fmt: skip
