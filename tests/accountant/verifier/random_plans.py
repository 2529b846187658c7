"""Random plans whose certificates are to be proved: those of `tests.references.arb`, and nodes.

The families of `tests.references.arb` draw losses and samples of them; here are mechanisms, groups,
parallel parts and plans inside plans.  Only the plan is drawn: the checker judges it.
"""

import numpy as np

from accountant import (
    BinaryTree,
    BoundedRangeLoss,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    OnePass,
    Parallel,
    PoissonSampled,
    PureLoss,
    RandomAllocation,
    SampledWithoutReplacement,
    Sequential,
    ShuffledEpoch,
    Stated,
    TruncatedPoisson,
    ZCDPLoss,
)
from mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    MatrixMechanism,
    NoisyMax,
    PermuteAndFlip,
    RandomizedResponse,
    SparseVector,
)
from tests.references.arb.families import FAMILIES, log_uniform, steps


def draw_mechanisms(rng):
    """Several mechanisms, each at times."""
    parts = [
        steps(rng, 50) * Gaussian(log_uniform(rng, 1, 50), sensitivity=log_uniform(rng, 0.5, 2)),
        steps(rng, 50) * Laplace(log_uniform(rng, 5, 50)),
        steps(rng, 20) * RandomizedResponse(int(rng.integers(2, 6)), float(rng.uniform(0.5, 0.9))),
    ]
    kept = [part for part in parts if rng.random() < 0.6]
    return Sequential(kept or parts)


def draw_discrete_gaussians(rng):
    return steps(rng, 30) * DiscreteGaussian(log_uniform(rng, 1, 40))


def draw_parallel(rng):
    """Users in one of several groups, each with other releases."""
    return Parallel(
        [draw_mechanisms(rng) for _ in range(int(rng.integers(2, 4)))]
        + [steps(rng, 20) * DiscreteLaplace(log_uniform(rng, 1, 20))]
    )


def draw_groups(rng):
    kind = GaussianLoss if rng.random() < 0.5 else LaplaceLoss
    return Grouped(steps(rng, 50) * kind(1 / log_uniform(rng, 5, 50)), int(rng.integers(2, 9)))


def draw_nested(rng):
    """Plans inside plans, some parts of which are stated for other neighbours or released once."""
    inner = Sequential([steps(rng, 5) * PureLoss(log_uniform(rng, 0.01, 0.5)),
                        2 * Sequential([LaplaceLoss(1 / log_uniform(rng, 5, 50))])])  # fmt: skip
    whole = steps(rng, 8) * (inner + steps(rng, 5) * GaussianLoss(1 / log_uniform(rng, 2, 50)))
    return Stated(whole, "replace-one") if rng.random() < 0.5 else whole


def draw_one_pass(rng):
    return OnePass(Gaussian(log_uniform(rng, 0.5, 5)), int(rng.integers(1, 100)))


def draw_sampled_mechanisms(rng):
    rate = float(log_uniform(rng, 1e-3, 0.5))
    return steps(rng, 2000) * PoissonSampled(Gaussian(log_uniform(rng, 0.6, 10)), rate)


def draw_epochs(rng):
    """Epochs of random allocation, in several steps each at times."""
    steps_ = int(log_uniform(rng, 4, 1000))
    part = GaussianLoss(1 / log_uniform(rng, 0.7, 5))
    picks = int(rng.integers(1, 4))
    return RandomAllocation(part, steps_, picks, int(rng.integers(1 + (picks == 1), 30)))


def draw_shuffled(rng):
    part = GaussianLoss if rng.random() < 0.7 else LaplaceLoss
    relation = "replace-one" if rng.random() < 0.5 else "zero-out"
    one = ShuffledEpoch(part(1 / log_uniform(rng, 0.7, 10)), steps(rng, 1000), relation)
    return steps(rng, 20) * one


def draw_many_sampled_laplaces(rng):
    part = LaplaceLoss(1 / log_uniform(rng, 0.5, 10))
    return int(log_uniform(rng, 3, 201)) * PoissonSampled(part, log_uniform(rng, 1e-3, 1))


def draw_laplaces_of_two_scales(rng):
    """Two Laplaces, a sampled one and a Gaussian at times."""
    parts = [steps(rng, 50) * LaplaceLoss(1 / log_uniform(rng, 2, 50)) for _ in range(2)]
    parts.append(steps(rng, 20) * PoissonSampled(LaplaceLoss(rng.uniform(0.2, 2)), 0.1))
    parts.append(steps(rng, 20) * GaussianLoss(1 / log_uniform(rng, 2, 50)))
    return Sequential(parts[: int(rng.integers(2, 5))])


def draw_claimed(rng):
    """Mechanisms that the checker does not know: their claims are proved."""
    scale = log_uniform(rng, 5, 100)
    made = [
        Exponential(scale), NoisyMax(scale), PermuteAndFlip(scale),
        NoisyMax(scale, noise="laplace"), SparseVector(10.0, scale, scale),
        MatrixMechanism(BinaryTree(int(rng.integers(2, 40))), scale),
        Laplace(scale, sensitivity=0.1 * scale),
    ]  # fmt: skip
    chosen = [made[i] for i in rng.choice(len(made), int(rng.integers(1, 3)), replace=False)]
    return Sequential([steps(rng, 100) * one for one in chosen])


def draw_zcdp(rng):
    parts = [steps(rng, 50) * ZCDPLoss(log_uniform(rng, 1e-4, 0.1), log_uniform(rng, 1e-4, 0.01))]
    parts.append(steps(rng, 5) * GaussianLoss(1 / log_uniform(rng, 2, 50)))
    return Sequential(parts[: int(rng.integers(1, 3))])


def draw_ranges(rng):
    parts = [steps(rng, 200) * BoundedRangeLoss(log_uniform(rng, 0.01, 2))]
    parts.append(steps(rng, 5) * GaussianLoss(1 / log_uniform(rng, 2, 50)))
    return Sequential(parts[: int(rng.integers(1, 3))])


def draw_truncated_replaced(rng):
    records = int(log_uniform(rng, 5, 500))
    batch = int(rng.integers(1, records))
    part = GaussianLoss(1 / log_uniform(rng, 0.5, 10))
    one = TruncatedPoisson(part, rng.uniform(0.05, 0.9), records, batch, "replace-one")
    return steps(rng, 1000) * one


def draw_many_without_replacement(rng):
    population = int(rng.integers(2, 1000))
    parts = [
        GaussianLoss(1 / log_uniform(rng, 0.7, 10)), LaplaceLoss(1 / log_uniform(rng, 0.7, 10)),
        PureLoss(log_uniform(rng, 0.05, 2)),
    ]  # fmt: skip
    part = parts[int(rng.integers(len(parts)))]
    sampled = SampledWithoutReplacement(part, int(rng.integers(1, population)), population)
    return int(log_uniform(rng, 2, 300)) * sampled


DRAWS = {
    "mechanisms": draw_mechanisms,
    "discrete Gaussians": draw_discrete_gaussians,
    "parallel parts": draw_parallel,
    "groups": draw_groups,
    "nested plans": draw_nested,
    "one pass": draw_one_pass,
    "sampled mechanisms": draw_sampled_mechanisms,
    "epochs of allocation": draw_epochs,
    "shuffled epochs": draw_shuffled,
    "many sampled Laplaces": draw_many_sampled_laplaces,
    "Laplaces of two scales": draw_laplaces_of_two_scales,
    "claimed mechanisms": draw_claimed,
    "zCDP": draw_zcdp,
    "bounded ranges": draw_ranges,
    "truncated and replaced": draw_truncated_replaced,
    "many without replacement": draw_many_without_replacement,
}
SHARE = 4  # of each, beside those of the other families
NAMES = [*FAMILIES, *DRAWS]


def random_plan(number, names=None, seed=25):
    """Family, plan and delta of a number."""
    rng = np.random.default_rng([seed, number])
    shares = {one: FAMILIES[one].share if one in FAMILIES else SHARE for one in names or NAMES}
    weights = np.array(list(shares.values()), float)
    name = str(rng.choice(list(shares), p=weights / weights.sum()))
    family = FAMILIES.get(name)
    plan = DRAWS[name](rng) if family is None else family.build(family.draw(rng))
    delta = log_uniform(rng, 1e-12, 1e-3)
    if family is not None and family.most and rng.random() < 0.15:
        delta = 0.0
    return name, plan, delta
