"""Random plans whose certificates are to be proved: those of `tests.references.arb`, and nodes.

The families of `tests.references.arb` draw losses and samples of them; here are mechanisms, groups,
parallel parts and plans inside plans.  Only the plan is drawn: the checker judges it.
"""

import numpy as np

from accountant import (
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    OnePass,
    Parallel,
    PoissonSampled,
    PureLoss,
    Sequential,
    Stated,
)
from mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, RandomizedResponse
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


DRAWS = {
    "mechanisms": draw_mechanisms,
    "discrete Gaussians": draw_discrete_gaussians,
    "parallel parts": draw_parallel,
    "groups": draw_groups,
    "nested plans": draw_nested,
    "one pass": draw_one_pass,
    "sampled mechanisms": draw_sampled_mechanisms,
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
