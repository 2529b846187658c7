"""The plans of the corpus: realistic ones weighted, drawn once and then kept as data.

`drawn` is asked by `write.py` alone; the tests read the plans back with `plan_of`.
"""

import math
import random

from accountant import (
    ApproxLoss,
    BinaryTree,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
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
    Shuffled,
    ShuffledEpoch,
    TruncatedPoisson,
    ZCDPLoss,
)
from accountant.serialisation.plan_json import from_dict, to_dict
from mechanisms import Exponential, Gaussian, Laplace, MatrixMechanism, NoisyMax
from tests.laws.random_plans import DRAWS, random_plan

DELTAS = (1e-4, 1e-5, 1e-6, 1e-9)
RANDOM_OF_A_KIND = 4


def plan_of(stored):
    """The plan of a row: a document of the serialisation, or a schedule of sampled Gaussians."""
    return schedule(**stored["schedule"]) if "schedule" in stored else from_dict(stored)


def schedule(noise, rate, steps, repeats, seed=None):
    """Sampled Gaussians whose noise and rate go from one end to the other by a factor.

    With a seed they are drawn between both ends instead, each alone.
    """
    rng = random.Random(seed)
    members = []
    for i in range(steps):
        places = (i / (steps - 1),) * 2 if seed is None else (rng.random(), rng.random())
        scale, chance = (
            low * (high / low) ** place
            for (low, high), place in zip((noise, rate), places, strict=True)
        )
        members.append(repeats * PoissonSampled(GaussianLoss(1 / scale), chance))
    return Sequential(members)


def drawn():
    """Yield a kind and a stored plan for each row of the corpus."""
    for kind, count, draw in FAMILIES:
        for number in range(count):
            made = draw(random.Random(f"{kind} {number}"))
            yield kind, made if isinstance(made, dict) else to_dict(made)
    for kind in DRAWS:
        for number in range(RANDOM_OF_A_KIND):
            yield f"random: {kind}", to_dict(random_plan(kind, number))
    for kind, plan in named_plans():
        yield kind, plan if isinstance(plan, dict) else to_dict(plan)


def between(rng, low, high):
    """A number between two, with a uniform logarithm, of three digits."""
    return float(f"{low * (high / low) ** rng.random():.3g}")


def whole(rng, low, high):
    return round(between(rng, low, high))


def sampled_gaussian(rng, noise=(0.5, 4.0), rate=(1e-4, 0.1), relation="add-remove"):
    return PoissonSampled(GaussianLoss(1 / between(rng, *noise)), between(rng, *rate), relation)


def training(rng):
    """DP-SGD as it is common."""
    return whole(rng, 100, 50_000) * sampled_gaussian(rng)


def wide_training(rng):
    """DP-SGD with settings at the ends of the usual ranges."""
    return whole(rng, 1, 1e6) * sampled_gaussian(rng, (0.1, 50.0), (1e-6, 1.0))


def few_samples(rng):
    return whole(rng, 1, 20) * sampled_gaussian(rng, (0.5, 10.0), (1e-3, 0.5))


def phases(rng):
    """A training in two to ten phases, each with its own noise and rate."""
    return Sequential(
        whole(rng, 50, 5000) * sampled_gaussian(rng) for _ in range(whole(rng, 2, 10))
    )


def falling_noise(rng):
    """Noise that falls, or a rate that grows, from epoch to epoch or from step to step."""
    first, rate = between(rng, 0.8, 5.0), between(rng, 5e-4, 0.05)
    if rng.random() < 0.5:
        ends = {"noise": [first, between(rng, 0.5, first)], "rate": [rate, rate]}
    else:
        ends = {"noise": [first, first], "rate": [rate, between(rng, rate, 0.1)]}
    steps = whole(rng, 10, 1000)
    return {"schedule": ends | {"steps": steps, "repeats": max(1, whole(rng, 200, 5000) // steps)}}


def different_steps(rng):
    """Steps of which each has noise and a rate of its own."""
    low, rate = between(rng, 0.5, 2.0), between(rng, 1e-5, 0.01)
    ends = {"noise": [low, 4 * low], "rate": [rate, 10 * rate]}
    steps, seed = whole(rng, 3, 500), rng.randrange(10**6)
    return {"schedule": ends | {"steps": steps, "repeats": 1, "seed": seed}}


def training_and_more(rng):
    """A training, and statistics beside it."""
    more = [
        whole(rng, 1, 20) * GaussianLoss(between(rng, 0.02, 0.3)),
        whole(rng, 1, 20) * LaplaceLoss(between(rng, 0.005, 0.1)),
        whole(rng, 1, 50) * PureLoss(between(rng, 0.005, 0.1)),
    ]
    return training(rng) + more[rng.randrange(3)]


def gaussians(rng):
    return Sequential(
        whole(rng, 1, 1000) * GaussianLoss(between(rng, 0.003, 0.5))
        for _ in range(rng.randrange(1, 4))
    )


def laplaces(rng):
    return Sequential(
        whole(rng, 1, 500) * LaplaceLoss(between(rng, 0.005, 0.5))
        for _ in range(rng.randrange(1, 4))
    )


def mixed(rng):
    return laplaces(rng) + gaussians(rng)


def many_scales(rng):
    """Laplace and Gaussian noise of many scales, and all a few times."""
    low = between(rng, 30.0, 300.0)
    scales = [low * (1 + i / 20) for i in range(whole(rng, 10, 60))]
    each = whole(rng, 1, 10)
    return Sequential(each * Laplace(s) for s in scales) + Sequential(
        each * Gaussian(s) for s in scales
    )


def discrete(rng):
    kinds = [
        DiscreteGaussianLoss(between(rng, 2.0, 50.0), 1),
        DiscreteLaplaceLoss(between(rng, 1.0, 100.0), 1),
    ]
    return whole(rng, 1, 500) * kinds[rng.randrange(2)]


def responses(rng):
    return whole(rng, 1, 1000) * PureLoss(between(rng, 0.01, 1.0))


def different_responses(rng):
    return Sequential(PureLoss(between(rng, 0.02, 0.5)) for _ in range(whole(rng, 2, 200)))


def approximate(rng):
    one = ApproxLoss(between(rng, 0.05, 1.0), between(rng, 1e-12, 1e-7))
    return whole(rng, 1, 100) * one + gaussians(rng)


def selections(rng):
    noise = between(rng, 5.0, 50.0)
    return whole(rng, 1, 200) * [Exponential(noise), NoisyMax(noise, 0.5)][rng.randrange(2)]


def bounds_on_many_pairs(rng):
    one = [BoundedRangeLoss(between(rng, 0.02, 0.5)), ZCDPLoss(between(rng, 1e-4, 0.05))]
    return whole(rng, 1, 100) * one[rng.randrange(2)] + GaussianLoss(between(rng, 0.05, 1.0))


def allocated(rng):
    part = GaussianLoss(1 / between(rng, 0.6, 3.0))
    return RandomAllocation(part, whole(rng, 5, 1000), epochs=whole(rng, 1, 10))


def replaced(rng):
    return whole(rng, 10, 5000) * sampled_gaussian(rng, relation="replace-one")


def truncated_batches(rng):
    records = whole(rng, 1000, 10**5)
    rate = between(rng, 0.001, 0.05)
    batch = math.ceil(records * rate * rng.uniform(1.0, 1.5))
    part = GaussianLoss(1 / between(rng, 0.7, 3.0))
    return whole(rng, 10, 1000) * TruncatedPoisson(part, rate, records, batch)


def shuffled(rng):
    return whole(rng, 1, 10) * Shuffled(PureLoss(between(rng, 0.2, 3.0)), whole(rng, 100, 10**6))


def passes(rng):
    part = GaussianLoss(1 / between(rng, 0.7, 5.0))
    one = [OnePass(part, whole(rng, 10, 1000)), ShuffledEpoch(part, whole(rng, 10, 1000))]
    return whole(rng, 1, 20) * one[rng.randrange(2)]


def groups(rng):
    parts = [
        whole(rng, 1, 100) * LaplaceLoss(between(rng, 0.005, 0.1)),
        whole(rng, 10, 500) * sampled_gaussian(rng, (1.0, 4.0), (1e-3, 0.05)),
    ]
    return Grouped(parts[rng.randrange(2)], rng.randrange(2, 6))


def in_parallel(rng):
    parts = [
        whole(rng, 1, 50) * LaplaceLoss(between(rng, 0.01, 0.2)),
        whole(rng, 1, 50) * GaussianLoss(between(rng, 0.01, 0.2)),
        whole(rng, 100, 2000) * sampled_gaussian(rng),
    ]
    rng.shuffle(parts)
    found = Parallel(parts[: rng.randrange(2, 4)])
    return found + GaussianLoss(between(rng, 0.05, 0.5)) if rng.random() < 0.5 else found


def without_replacement(rng):
    population = whole(rng, 100, 10**5)
    sample = max(1, population // whole(rng, 10, 1000))
    part = GaussianLoss(1 / between(rng, 0.8, 4.0))
    return whole(rng, 10, 500) * SampledWithoutReplacement(part, sample, population)


def sampled_others(rng):
    """Sampled Laplace noise or randomised response, or a sample with several releases."""
    parts = [
        LaplaceLoss(between(rng, 0.1, 1.5)),
        PureLoss(between(rng, 0.1, 1.5)),
        GaussianLoss(between(rng, 0.1, 1.0)) + LaplaceLoss(between(rng, 0.1, 1.0)),
    ]
    return whole(rng, 1, 500) * PoissonSampled(parts[rng.randrange(3)], between(rng, 1e-3, 0.3))


def correlated(rng):
    return whole(rng, 1, 5) * MatrixMechanism(
        BinaryTree(whole(rng, 100, 2000)), between(rng, 1.0, 10.0)
    )


def one_release(rng):
    return [Gaussian(between(rng, 0.5, 10.0)), Laplace(between(rng, 0.5, 10.0))][rng.randrange(2)]


FAMILIES = (
    ("training", 80, training),
    ("training, wide", 20, wide_training),
    ("few samples", 10, few_samples),
    ("training in phases", 16, phases),
    ("falling noise", 14, falling_noise),
    ("different steps", 10, different_steps),
    ("training and more", 12, training_and_more),
    ("Gaussians", 10, gaussians),
    ("Laplaces", 12, laplaces),
    ("mixed noise", 10, mixed),
    ("many scales", 6, many_scales),
    ("discrete noise", 10, discrete),
    ("responses", 8, responses),
    ("different responses", 6, different_responses),
    ("approximate", 4, approximate),
    ("selections", 8, selections),
    ("bounds on many pairs", 4, bounds_on_many_pairs),
    ("random allocation", 8, allocated),
    ("replaced samples", 8, replaced),
    ("truncated batches", 6, truncated_batches),
    ("shuffled", 4, shuffled),
    ("passes", 6, passes),
    ("groups", 6, groups),
    ("parallel", 8, in_parallel),
    ("without replacement", 4, without_replacement),
    ("sampled, no Gaussian alone", 8, sampled_others),
    ("correlated noise", 3, correlated),
    ("one release", 4, one_release),
)


def named_plans():
    """The plans of the benchmarks and the documentation."""
    scales = [50 + 100 * i / 49 for i in range(50)]
    yield "docs", 52 * Gaussian(40.0)
    yield "docs", 1000 * PoissonSampled(Gaussian(1.0), 0.01)
    yield "docs", 15_000 * PoissonSampled(GaussianLoss(1 / 0.8), 0.004)
    yield "docs", 10**12 * PoissonSampled(GaussianLoss(0.01), 1e-4)
    yield "docs", 1000 * GaussianLoss(0.01)
    yield "docs", 500 * Laplace(128.0)
    yield "docs", 64 * LaplaceLoss(1 / 20)
    yield "docs", 200 * PureLoss(0.1)
    yield "docs", Sequential([10 * Laplace(50.0 + s) for s in range(100)] + [3 * Gaussian(40.0)])
    yield "docs", Sequential(10 * one(1 / s) for one in (LaplaceLoss, GaussianLoss) for s in scales)
    yield "docs", 100 * NoisyMax(20.0, 0.5) + Gaussian(30.0)
    yield "docs", 200 * PoissonSampled(LaplaceLoss(0.5), 0.1)
    yield "docs", 3 * PoissonSampled(LaplaceLoss(0.5), 0.1)
    yield "docs", Sequential(40 * PureLoss(0.1 * math.sqrt(n)) for n in (1, 2, 3, 5))
    yield "docs", 1000 * PoissonSampled(GaussianLoss(1.0), 0.01, "replace-one")
    yield "docs", RandomAllocation(GaussianLoss(1.0), 1000, epochs=10)
    yield "docs", Grouped(100 * PoissonSampled(GaussianLoss(0.5), 0.01), 4)
    yield "bench_schedules", {"schedule": {"noise": [4.0, 0.8], "rate": [0.01, 0.01],
                                           "steps": 1000, "repeats": 1}}  # fmt: skip
    yield "bench_schedules", {"schedule": {"noise": [1.0, 1.0], "rate": [1e-4, 0.03],
                                           "steps": 1000, "repeats": 1}}  # fmt: skip
    yield "bench_schedules", {"schedule": {"noise": [0.5, 5.0], "rate": [1e-4, 0.05],
                                           "steps": 1000, "repeats": 1, "seed": 0}}  # fmt: skip
    yield "bench_schedules", {"schedule": {"noise": [0.7, 4.0], "rate": [1e-5, 2e-5],
                                           "steps": 50, "repeats": 1, "seed": 1}}  # fmt: skip
    # added on 2026-11-29, when such schedules had become slow: their great losses are rare
    yield "rare great losses", {"schedule": {"noise": [0.3, 1.0], "rate": [5e-5, 2e-4],
                                             "steps": 1000, "repeats": 1, "seed": 2}}  # fmt: skip
    yield "rare great losses", {"schedule": {"noise": [0.55, 1.35], "rate": [1e-6, 4e-6],
                                             "steps": 3000, "repeats": 1, "seed": 2}}  # fmt: skip
