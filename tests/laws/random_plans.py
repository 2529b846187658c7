"""Random plans of every kind of loss and node, small enough to be asked about many times."""

import math

import numpy as np

from accountant import (
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    GeometricTries,
    Grouped,
    LaplaceLoss,
    LogarithmicTries,
    MixtureOfGaussians,
    OnePass,
    PairLoss,
    Parallel,
    PoissonSampled,
    PoissonTries,
    PureLoss,
    RandomAllocation,
    Repeated,
    SampledWithoutReplacement,
    Sequential,
    Shuffled,
    ShuffledEpoch,
    Stated,
    TruncatedPoisson,
    ZCDPLoss,
)


def log_uniform(rng, low, high):
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


def count(rng, most):
    """A count, small ones often."""
    return int(log_uniform(rng, 1, most + 1))


def draw_pair(rng):
    """Two laws on three outcomes, with every outcome possible under both."""
    return PairLoss(*(row / row.sum() for row in rng.uniform(0.1, 1.0, (2, 3))))


def draw_noise(rng):
    """A Gaussian, Laplace, binary or finite loss."""
    size = log_uniform(rng, 0.05, 1.5)
    return [GaussianLoss(size), LaplaceLoss(size), PureLoss(size), draw_pair(rng)][rng.integers(4)]


def draw_tries(rng):
    stop = float(rng.uniform(0.1, 0.9))
    laws = [PoissonTries(1 / stop), GeometricTries(stop), LogarithmicTries(stop)]
    return laws[rng.integers(len(laws))]


def draw_parallel(rng):
    parts = [count(rng, 3) * draw_noise(rng), draw_noise(rng) + draw_noise(rng)]
    return Sequential([count(rng, 3) * Parallel(parts), draw_noise(rng)])


def draw_nested(rng):
    """Plans inside plans."""
    inner = Sequential([draw_noise(rng), 2 * Sequential([draw_noise(rng), PureLoss(0.1)])])
    return count(rng, 4) * inner


def draw_without_replacement(rng):
    population = int(rng.integers(2, 200))
    part = draw_noise(rng)
    return SampledWithoutReplacement(part, int(rng.integers(1, population)), population)


def draw_truncated(rng):
    records = int(log_uniform(rng, 5, 100))
    relation = "replace-one" if rng.random() < 0.5 else "add-remove"
    part = GaussianLoss(log_uniform(rng, 0.1, 1.0))
    rate, batch = rng.uniform(0.05, 0.9), int(rng.integers(1, records))
    return TruncatedPoisson(part, rate, records, batch, relation)


def draw_exchanged(rng):
    part = GaussianLoss(log_uniform(rng, 0.1, 1.5))
    return PoissonSampled(part, log_uniform(rng, 1e-3, 0.5), "replace-one")


def draw_mixture(rng):
    weights = rng.dirichlet(np.ones(3))
    return MixtureOfGaussians(log_uniform(rng, 1, 20), (0.0, 1.0, 3.0), tuple(weights))


# every kind; each is released once or a few times
DRAWS = {
    "pure": lambda rng: PureLoss(log_uniform(rng, 0.01, 3)),
    "Gaussian": lambda rng: GaussianLoss(log_uniform(rng, 0.01, 3)),
    "Laplace": lambda rng: LaplaceLoss(log_uniform(rng, 0.01, 3)),
    "pair": draw_pair,
    "approximate": lambda rng: ApproxLoss(log_uniform(rng, 0.01, 2), log_uniform(rng, 1e-12, 1e-3)),
    "discrete Gaussian": lambda rng: DiscreteGaussianLoss(log_uniform(rng, 1, 20), 1),
    "discrete Laplace": lambda rng: DiscreteLaplaceLoss(
        log_uniform(rng, 0.5, 20), int(rng.integers(1, 4))
    ),
    "mixture": draw_mixture,
    "bounded range": lambda rng: BoundedRangeLoss(log_uniform(rng, 0.01, 2)),
    "zCDP": lambda rng: ZCDPLoss(log_uniform(rng, 1e-4, 0.1), log_uniform(rng, 1e-4, 0.01)),
    "sampled": lambda rng: PoissonSampled(draw_noise(rng), log_uniform(rng, 1e-3, 0.5)),
    "exchanged": draw_exchanged,
    "truncated": draw_truncated,
    "without replacement": draw_without_replacement,
    "allocated": lambda rng: RandomAllocation(
        GaussianLoss(log_uniform(rng, 0.1, 1)), int(rng.integers(2, 100))
    ),
    "one pass": lambda rng: OnePass(draw_noise(rng), int(rng.integers(1, 50))),
    "shuffled epoch": lambda rng: ShuffledEpoch(
        LaplaceLoss(log_uniform(rng, 0.05, 1)), int(rng.integers(2, 100))
    ),
    "shuffled": lambda rng: Shuffled(
        PureLoss(log_uniform(rng, 0.1, 2)), int(log_uniform(rng, 2, 1000))
    ),
    "grouped": lambda rng: Grouped(draw_noise(rng), int(rng.integers(2, 5))),
    "group of samples": lambda rng: Grouped(
        PoissonSampled(PureLoss(log_uniform(rng, 0.05, 1)), log_uniform(rng, 0.01, 0.5)), 2
    ),
    "repeated": lambda rng: Repeated(draw_noise(rng), draw_tries(rng)),
    "parallel": draw_parallel,
    "nested": draw_nested,
    "stated": lambda rng: Stated(draw_noise(rng), "replace-one"),
}


def random_plan(kind, number):
    """A plan of a kind, released up to a hundred times: once in one of three."""
    rng = np.random.default_rng([36, list(DRAWS).index(kind), number])
    one = DRAWS[kind](rng)
    return one if rng.random() < 1 / 3 else count(rng, 100) * one
