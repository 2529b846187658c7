"""Wrong sparse regressions, and the pairs of data that convict them."""

import math

import numpy as np

from accountant import ApproxLoss, PoissonSampled, PureLoss
from accountant.ledger.ledger import Ledger
from accountant.planning.calibration import calibrate
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Repeat, Sequential
from algorithms import LabelIHT, LocalIHT, PrivateLinearRegression, SparseERM
from algorithms.base.erm_losses import ERM_LOSSES, MeanGradient
from algorithms.base.hard_thresholding import keep_largest
from algorithms.base.number_noise import least_noise
from mechanisms import Gaussian, HemisphereL2
from tests.laws.algorithms import Run

RNG = np.random.default_rng(8)
X = RNG.choice([-1.0, 1.0], (60, 4))
Y = X @ [0.6, 0.0, -0.5, 0.0] + RNG.uniform(-0.1, 0.1, 60)
FIRST = np.arange(60) == 0
LABELS = {"epsilon": 1.0, "delta": 1e-5, "sparsity": 2, "y_bound": 1.2, "rounds": 2,
          "step": 1.0, "randomizer": "gaussian"}  # fmt: skip
LOCAL = {"epsilon": 1.0, "sparsity": 2, "noise_bound": 0.1, "rounds": 2}
NUMBERS = {"epsilon": 1.0, "sparsity": 2, "noise_bound": 0.1}
PUBLIC = {"epsilon": 1.0, "delta": 0.0, "sparsity": 2, "y_bound": 1.2}
CENTRAL = {"epsilon": 1.0, "delta": 1e-5, "sparsity": 2, "rounds": 10,
           "fit_intercept": False}  # fmt: skip
LINEAR = {"epsilon": 1.0, "delta": 1e-5, "method": "descent", "rounds": 5}
WHOLE = {**LINEAR, "method": "statistics"}
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


class NumbersForTwiceEpsilon(LocalIHT):
    """Takes noise on single numbers that was calibrated for twice the epsilon."""

    def plan(self, shape):
        honest = super().plan(shape)
        return Parallel([least_noise(1.0, 2 * self.epsilon)] * len(honest.parts))


class ClipChosenByData(LocalIHT):
    """Asks everything again with a clip that it reads from the data."""

    def _narrowing_rounds(self, features, mechanism):
        honest = super()._narrowing_rounds(features, mechanism)
        honest.reach *= getattr(self, "widest", 1.0)
        return honest

    def run(self, ledger, executor=None):
        self.widest = 1 + 1e-9 * np.abs(ledger._data[1]).max()
        return super().run(ledger, executor)


class LabelsReadForTheFit(LabelIHT):
    """Solves least squares on the labels themselves."""

    def noisy_labels(self, ledger):
        return super().noisy_labels(ledger) + 1e-9 * ledger._data


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
            theta = keep_largest(theta - ledger.release(ledger.plan.part, gradient, shape=4), 2)
        return theta


class RateForgotten(SparseERM):
    """Noise for a mean over all records, where the sum of a batch is divided by its size."""

    def plan(self, shape):
        honest = super().plan(shape)
        part, rate = honest.part.part, honest.part.rate
        smaller = Gaussian(
            part.scale * rate, part.sensitivity * rate, part.arithmetic, part.dimension
        )
        return Repeat(PoissonSampled(smaller, rate), honest.count)


class TwiceTheSensitivity(SparseERM):
    """Declares for a sampled record what replacing one would cost."""

    def plan(self, shape):
        honest = super().plan(shape)
        part, rate = honest.part.part, honest.part.rate
        larger = Gaussian(2 * part.scale, 2 * part.sensitivity, part.arithmetic, part.dimension)
        return Repeat(PoissonSampled(larger, rate), honest.count)


def eighth(plan):
    """A plan of Gaussians whose noise and sensitivity are an eighth."""
    if isinstance(plan, Sequential):
        return Sequential([eighth(part) for part in plan.parts])
    one = plan.part if isinstance(plan, Repeat) else plan
    smaller = Gaussian(one.scale / 8, one.sensitivity / 8, one.arithmetic, one.dimension)
    return Repeat(smaller, plan.count) if isinstance(plan, Repeat) else smaller


class EighthOfTheNoise(PrivateLinearRegression):
    """Declares an eighth of what a record can move."""

    def plan(self, shape):
        return eighth(super().plan(shape))


class EighthOfTheStatistics(EighthOfTheNoise):
    """The same of statistics."""


class NormOfTheData(PrivateLinearRegression):
    """Takes the clipping norm from residuals past the gate."""

    def _result(self, ledger, executor=None):
        honest, largest = self.y_bound, float(np.abs(ledger._data[1]).mean())
        self.y_bound = largest
        found = super()._result(ledger, executor)
        self.y_bound = honest
        return found


def labels(last):
    return np.where(FIRST, last, Y)


SIGNS = np.sign(Y)
ACROSS = np.where(FIRST[:, None], X * [1, 1, -1, -1], X)  # at right angles
FAR = np.where(FIRST[:, None], -9 * X, X)
PAIRS = {
    PrintedNoise: (labels(9.0), labels(-9.0), X),
    LabelsNotClipped: (labels(90.0), labels(-90.0), X),
    StopsOnPrivateFit: (labels(9.0), labels(-9.0), X),
    RandomizerChosenByData: ((X, labels(9.0)), (X, labels(1e6)), None),
    SmallRadius: ((X, labels(1e6)), (FAR, labels(1e6)), None),
    NumbersForTwiceEpsilon: ((X, labels(1e6)), (FAR, labels(1e6)), None),
    ClipChosenByData: ((X, labels(9.0)), (X, labels(1e6)), None),
    LabelsReadForTheFit: (labels(9.0), labels(-9.0), X),
    SmallSensitivity: ((X, SIGNS), (FAR, SIGNS), None),
    EighthOfTheNoise: ((X, labels(9.0)), (FAR, labels(9.0)), None),
    EighthOfTheStatistics: ((X, labels(9.0)), (ACROSS, labels(-9.0)), None),
    RowsNotClipped: ((9 * X, SIGNS), (np.where(FIRST[:, None], -900 * X, 9 * X), SIGNS), None),
}
CASES = [
    (PrintedNoise, LABELS, "privacy losses"),
    (LabelsNotClipped, LABELS, "privacy losses"),
    (StopsOnPrivateFit, LABELS, "replay: the result changed"),
    (RandomizerChosenByData, LOCAL, "replay"),
    (SmallRadius, LOCAL, "privacy losses"),
    (NumbersForTwiceEpsilon, NUMBERS, "privacy losses"),
    (ClipChosenByData, NUMBERS, "replay"),
    (LabelsReadForTheFit, PUBLIC, "replay: the result changed"),
    (SmallSensitivity, {**CENTRAL, "classes": [-1.0, 1.0]}, "privacy losses"),
    (RowsNotClipped, {**CENTRAL, "classes": [-1.0, 1.0]}, "privacy losses"),
    (EighthOfTheNoise, LINEAR, "privacy losses"),
    (EighthOfTheStatistics, WHOLE, "privacy losses"),
]


class SameNoiseInEveryBlock(Ledger):
    """Every block draws the same noise."""

    def _block_seed(self):
        return [1]


def run_of(kind, mutant, settings):
    """A run of ``kind`` on the data that convict the mutant."""
    claim = ApproxLoss(1.0, 1e-5) if settings.get("delta") else PureLoss(1.0)
    data, neighbour, public = PAIRS[mutant]
    return Run(kind(**settings), data, neighbour, public, claim)


def honest(mutant):
    """The estimator that a mutant was made of."""
    return next(one for one in mutant.__mro__ if one.__module__.startswith("algorithms."))


REFUTED = {
    mutant.__name__: (
        run_of(mutant, mutant, settings), run_of(honest(mutant), mutant, settings), verdict
    )
    for mutant, settings, verdict in CASES
}  # fmt: skip

# Huber's loss is steepest at a far label: a row at its bound then moves the sum by all of it
STEEP = (X, np.full(60, 1e3))
BATCHES = {"loss": "squared", "rate": 0.05, **CENTRAL}
WITHOUT = (np.where(FIRST[:, None], 0.0, X), STEEP[1])  # the record adds nothing
TURNED = (X, np.where(FIRST, -1e3, 1e3))
SENSITIVITIES = {
    "RateForgotten": (
        Run(RateForgotten(**BATCHES), STEEP, WITHOUT), Run(SparseERM(**BATCHES), STEEP, WITHOUT),
        "a record moves"),
    "TwiceTheSensitivity": (
        Run(TwiceTheSensitivity(**BATCHES), STEEP, WITHOUT),
        Run(SparseERM(**BATCHES), WITHOUT, STEEP), "0."),
    "SmallSensitivity": (
        Run(SmallSensitivity(loss="squared", **CENTRAL), STEEP, TURNED),
        Run(SparseERM(loss="squared", **CENTRAL), STEEP, TURNED), "a record moves"),
}  # fmt: skip

LEAKS = {
    NormOfTheData.__name__: tuple(
        Run(kind(**LINEAR), (X, labels(9.0)), (X, labels(-90.0)))
        for kind in (NormOfTheData, PrivateLinearRegression)
    )
}
