"""Families of random plans: how one is drawn, how the package builds it, and its true delta.

A plan is a dictionary of numbers, so that it can be stored.  ``truth(plan, epsilons)`` returns the
balls of delta, the worse direction of each.  A family whose kinds the package lacks is passed over.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb

import accountant
from accountant.serialisation.registry import plan_kinds
from mechanisms import DiscreteLaplace
from tests.references.arb import (
    closed_pairs,
    contour,
    few_steps,
    finite_pairs,
    log_normal_sum,
    sampled_laplace,
)
from tests.references.arb import gaussian_mixtures as mixtures


@dataclass(frozen=True)
class Family:
    """One kind of random plan; ``share`` is its weight among all."""

    share: float
    draw: Callable[[Any], dict]
    build: Callable[[dict], Any]
    truth: Callable[[dict, list], list]
    needs: tuple[str, ...] = ()
    most: Callable[[dict], Any] | None = None  # the largest loss: the truth at delta 0

    @property
    def exists(self):
        """Whether the package has the kinds, and its builder takes a plan of this family."""
        if not all(name in plan_kinds() for name in self.needs):
            return False
        try:
            self.build(self.draw(np.random.default_rng(1)))
        except (accountant.UnsupportedPlan, accountant.ParameterError):
            return False
        return True


def log_uniform(rng, low, high):
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


def steps(rng, high):
    """A count, log-uniform; small ones often."""
    return int(log_uniform(rng, 1, high + 1))


def composed(parts, epsilons):
    """Both directions of a composition by the contour; far epsilons have lines of their own."""
    found = []
    for ways in (parts, [(pair.reversed, n) for pair, n in parts]):
        close = max(epsilons) - min(epsilons) <= 1e-3 * max(epsilons)
        groups = [epsilons] if close else [[e] for e in epsilons]
        found.append([ball for group in groups for ball in _of_digits(ways, group)])
    return [a.max(b) for a, b in zip(*found, strict=True)]


def _of_digits(parts, epsilons):
    try:
        return contour.hockey_stick(parts, epsilons, 1e-17)
    except contour.OutOfReach:
        return contour.hockey_stick(parts, epsilons, 1e-11)


def either_way(pair, epsilons):
    return [few_steps.single(pair, e).max(few_steps.single(pair.reversed, e)) for e in epsilons]


# ---------------------------------------------------------------- Gaussians, sampled or not
def draw_sampled(rng, most=10**6, kinds=1):
    terms = []
    for _ in range(kinds):
        rate = 1.0 if rng.random() < 0.02 else log_uniform(rng, 1e-6, 1)
        terms.append({"mu": 1 / log_uniform(rng, 0.1, 50), "rate": rate, "count": steps(rng, most)})
    return {"terms": terms}


def build_sampled(plan):
    part = accountant.GaussianLoss
    return accountant.Sequential(
        [t["count"] * accountant.PoissonSampled(part(t["mu"]), t["rate"]) for t in plan["terms"]]
    )


def true_sampled(plan, epsilons):
    each = [(t["mu"], t["rate"]) for t in plan["terms"] for _ in range(min(t["count"], 3))]
    if len(each) == 1:
        return either_way(mixtures.sampled_gaussian(*each[0]), epsilons)
    if len(each) == 2 and max(rate for _, rate in each) < 1:
        return [few_steps.two_sampled_gaussians(*each, e).max(
                few_steps.two_sampled_gaussians(*each, e, removed=False))
                for e in epsilons]  # fmt: skip
    return composed([(mixtures.sampled_gaussian(t["mu"], t["rate"]), t["count"])
                     for t in plan["terms"]], epsilons)  # fmt: skip


def draw_training(rng):
    """What training uses: 20 steps and more, some hits."""
    rate = log_uniform(rng, 1e-4, 0.5)
    count = int(log_uniform(rng, max(20.0, 0.3 / rate), 1e6))
    return {"terms": [{"mu": 1 / log_uniform(rng, 0.4, 10), "rate": rate, "count": count}]}


def draw_noise(rng):
    """Gaussians, Laplaces and responses in one plan, with a sampled Gaussian at times."""
    plan = {"gaussian": (1 / log_uniform(rng, 0.5, 50), steps(rng, 100)),
            "laplace": (1 / log_uniform(rng, 0.5, 50), steps(rng, 100)),
            "response": (log_uniform(rng, 0.01, 2), steps(rng, 50))}  # fmt: skip
    if rng.random() < 0.5:
        plan["sampled"] = (1 / log_uniform(rng, 0.5, 5), log_uniform(rng, 0.01, 1), steps(rng, 999))
    return plan


def build_noise(plan):
    kinds = {"gaussian": accountant.GaussianLoss, "laplace": accountant.LaplaceLoss,
             "response": accountant.PureLoss}  # fmt: skip
    parts = [plan[name][1] * kind(plan[name][0]) for name, kind in kinds.items()]
    if "sampled" in plan:
        mu, rate, count = plan["sampled"]
        parts.append(count * accountant.PoissonSampled(accountant.GaussianLoss(mu), rate))
    return accountant.Sequential(parts)


def true_noise(plan, epsilons):
    kinds = {"gaussian": closed_pairs.GaussianPair, "laplace": closed_pairs.LaplacePair,
             "response": closed_pairs.BinaryResponse}  # fmt: skip
    parts = [(kind(plan[name][0]), plan[name][1]) for name, kind in kinds.items()]
    if "sampled" in plan:
        mu, rate, count = plan["sampled"]
        parts.append((mixtures.sampled_gaussian(mu, rate), count))
    return composed(parts, epsilons)


# ---------------------------------------------------------------- Laplaces and finite pairs
def draw_laplaces(rng):
    return {"mu": 1 / log_uniform(rng, 0.2, 100), "count": steps(rng, 200)}


def draw_discrete(rng):
    return {"scale": log_uniform(rng, 0.3, 50), "shift": int(rng.integers(1, 6)),
            "count": steps(rng, 60)}  # fmt: skip


def draw_responses(rng):
    return {"epsilon": log_uniform(rng, 1e-3, 4), "count": steps(rng, 1000)}


def shares(rng, outcomes):
    """Probabilities that are whole multiples of 2^-20 and sum to 1 in floats too."""
    cuts = sorted(rng.choice(2**20 - 1, outcomes - 1, replace=False) + 1)
    ends = [0, *map(int, cuts), 2**20]
    return [(b - a) / 2**20 for a, b in pairwise(ends)]


def draw_pairs(rng):
    outcomes = int(rng.integers(2, 4))
    return {"p": shares(rng, outcomes), "q": shares(rng, outcomes), "count": steps(rng, 30),
            "rate": 1.0 if rng.random() < 0.5 else log_uniform(rng, 1e-3, 1)}  # fmt: skip


def build_pairs(plan):
    part = accountant.PairLoss(plan["p"], plan["q"])
    if plan["rate"] < 1:
        part = accountant.PoissonSampled(part, plan["rate"])
    return plan["count"] * part


def true_pairs(plan, epsilons):
    p, q = plan["p"], plan["q"]
    if plan["rate"] < 1:
        p, q = finite_pairs.sampled(p, q, plan["rate"])
    outcomes = finite_pairs.composed(p, q, plan["count"])
    mirrored = [(b, a) for a, b in outcomes]
    return [finite_pairs.stick(outcomes, e).max(finite_pairs.stick(mirrored, e)) for e in epsilons]


def most_of_pairs(plan):
    p, q = plan["p"], plan["q"]
    if plan["rate"] < 1:
        p, q = finite_pairs.sampled(p, q, plan["rate"])
    largest = arb(0)
    for a, b in zip(p, q, strict=True):
        loss = (arb(a) / arb(b)).log()
        largest = largest.max(loss).max(-loss)
    return plan["count"] * largest


def most_of_discrete(plan):
    return plan["count"] * arb(repr(plan["shift"])) / arb(repr(plan["scale"]))


def draw_approximate(rng):
    def one():
        epsilon, delta = log_uniform(rng, 0.01, 2), log_uniform(rng, 1e-14, 1e-5)
        return epsilon, delta, int(rng.integers(1, 4))

    return {"one": one(), "other": one()}


def true_approximate(plan, epsilons):
    outcomes = [(arb(1), arb(1))]
    for epsilon, delta, count in plan.values():
        pair = finite_pairs.composed(*finite_pairs.binary_response(epsilon, delta), count)
        outcomes = finite_pairs.product(outcomes, pair)
    return [finite_pairs.stick(outcomes, e) for e in epsilons]


def draw_differing(rng):
    """Responses whose losses share no unit: many sums, of which none is on a lattice."""
    return {"terms": [(log_uniform(rng, 0.01, 1), steps(rng, 25)) for _ in range(3)]}


def true_differing(plan, epsilons):
    outcomes = [(arb(1), arb(1))]
    for epsilon, count in plan["terms"]:
        pair = finite_pairs.composed(*finite_pairs.binary_response(epsilon), count)
        outcomes = finite_pairs.product(outcomes, pair)
    return [finite_pairs.stick(outcomes, e) for e in epsilons]


def draw_one_sample(rng):
    """Several releases from one and the same sample, a few times."""
    pairs = [(shares(rng, 2), shares(rng, 2)) for _ in range(2)]
    return {"pairs": pairs, "rate": log_uniform(rng, 1e-3, 1), "count": int(rng.integers(1, 4))}


def build_one_sample(plan):
    parts = accountant.Sequential([accountant.PairLoss(p, q) for p, q in plan["pairs"]])
    return plan["count"] * accountant.PoissonSampled(parts, plan["rate"])


def true_one_sample(plan, epsilons):
    joint = [(arb(1), arb(1))]
    for p, q in plan["pairs"]:
        joint = finite_pairs.product(joint, [*zip(map(arb, p), map(arb, q), strict=True)])
    sampled = finite_pairs.sampled(*zip(*joint, strict=True), plan["rate"])
    outcomes = finite_pairs.composed(*sampled, plan["count"])
    mirrored = [(b, a) for a, b in outcomes]
    return [finite_pairs.stick(outcomes, e).max(finite_pairs.stick(mirrored, e)) for e in epsilons]


def draw_without_replacement(rng):
    population = int(rng.integers(2, 1000))
    return {"loss": float(log_uniform(rng, 0.1, 5)), "gaussian": bool(rng.random() < 0.5),
            "sample": int(rng.integers(1, population)), "population": population}  # fmt: skip


def build_without_replacement(plan):
    kind = accountant.GaussianLoss if plan["gaussian"] else accountant.LaplaceLoss
    return accountant.SampledWithoutReplacement(
        kind(plan["loss"]), plan["sample"], plan["population"]
    )


def true_without_replacement(plan, epsilons):
    """q delta(eps) at ln(1 + q (e^eps - 1)), of a symmetric loss."""
    q = arb(plan["sample"]) / plan["population"]
    inner = [(1 + (arb(e).exp() - 1) / q).log() for e in epsilons]
    if plan["gaussian"]:
        pair = mixtures.sampled_gaussian(plan["loss"], 1)
        return [q * few_steps.single(pair, e) for e in inner]
    return [q * closed_pairs.equal_laplaces(plan["loss"], 1, e) for e in inner]


# ---------------------------------------------------------------- mixtures
def draw_replaced(rng):
    plan = draw_sampled(rng, 10**5)["terms"][0]
    return {**plan, "rate": min(plan["rate"], 0.999)}


def build_replaced(plan):
    part = accountant.GaussianLoss(plan["mu"])
    return plan["count"] * accountant.PoissonSampled(part, plan["rate"], relation="replace-one")


def repeated_mixture(pair, count, epsilons):
    return either_way(pair, epsilons) if count == 1 else composed([(pair, count)], epsilons)


def draw_group(rng):
    return {**draw_replaced(rng), "size": int(rng.integers(2, 9))}


def draw_mixture(rng):
    k = int(rng.integers(1, 5))
    return {"scale": log_uniform(rng, 0.3, 10), "shifts": [float(j) for j in range(k + 1)],
            "weights": shares(rng, k + 1), "count": steps(rng, 10**4)}  # fmt: skip


def build_group(plan):
    part = accountant.PoissonSampled(accountant.GaussianLoss(plan["mu"]), plan["rate"])
    return accountant.Grouped(plan["count"] * part, plan["size"])


def draw_allocation(rng):
    return {"mu": 1 / log_uniform(rng, 0.5, 10), "steps": int(log_uniform(rng, 2, 5000))}


def true_allocation(plan, epsilons):
    both = [log_normal_sum.random_allocation(plan["mu"], plan["steps"], e) for e in epsilons]
    return [there.max(absent) for there, absent in both]


def draw_truncated(rng):
    records = int(log_uniform(rng, 5, 500))
    return {"mu": 1 / log_uniform(rng, 0.5, 10), "rate": float(rng.uniform(0.05, 0.9)),
            "records": records, "batch": int(rng.integers(1, records)),
            "count": steps(rng, 1000)}  # fmt: skip


def build_truncated(plan):
    part = accountant.GaussianLoss(plan["mu"])
    return plan["count"] * accountant.TruncatedPoisson(
        part, plan["rate"], plan["records"], plan["batch"])  # fmt: skip


def truncated(plan):
    names = ("mu", "rate", "records", "batch")
    return mixtures.truncated_poisson(*(plan[name] for name in names))


def true_truncated(plan, epsilons):
    """The attained value at the upper end; at the lower, that of the documented bound."""
    weights, pairs, kept = truncated(plan)
    attained = mixtures.sampled_gaussian(plan["mu"], kept)
    seen = closed_pairs.SeenChoice(weights, pairs)
    lower, upper = epsilons
    return [composed([(seen, plan["count"])], [lower])[0],
            repeated_mixture(attained, plan["count"], [upper])[0]]  # fmt: skip


def draw_sampled_laplaces(rng):
    return {"mu": 1 / log_uniform(rng, 0.2, 20), "rate": log_uniform(rng, 1e-4, 1),
            "count": int(rng.integers(1, 3))}  # fmt: skip


def build_sampled_laplaces(plan):
    part = accountant.LaplaceLoss(plan["mu"])
    return plan["count"] * accountant.PoissonSampled(part, plan["rate"])


def true_sampled_laplaces(plan, epsilons):
    road = sampled_laplace.single if plan["count"] == 1 else sampled_laplace.two_equal
    return [road(plan["mu"], plan["rate"], e).max(
            road(plan["mu"], plan["rate"], e, removed=False)) for e in epsilons]  # fmt: skip


FAMILIES = {
    "sampled Gaussians": Family(4, draw_sampled, build_sampled, true_sampled),
    "few sampled Gaussians": Family(
        4, lambda rng: draw_sampled(rng, 3), build_sampled, true_sampled),
    "training": Family(4, draw_training, build_sampled, true_sampled),
    "differing sampled Gaussians": Family(
        2, lambda rng: draw_sampled(rng, 10**5, int(rng.integers(2, 5))), build_sampled,
        true_sampled),
    "noise of several kinds": Family(3, draw_noise, build_noise, true_noise),
    "Laplaces": Family(
        20, draw_laplaces, lambda p: p["count"] * accountant.LaplaceLoss(p["mu"]),
        lambda p, es: [closed_pairs.equal_laplaces(p["mu"], p["count"], e) for e in es],
        most=lambda p: p["count"] * arb(repr(p["mu"]))),
    "discrete Laplaces": Family(
        20, draw_discrete,
        lambda p: p["count"] * accountant.DiscreteLaplaceLoss(p["scale"], p["shift"]),
        lambda p, es: [finite_pairs.discrete_laplaces(p["scale"], p["shift"], p["count"], e)
                       for e in es], most=most_of_discrete),
    "discrete Laplace mechanisms": Family(
        5, draw_discrete,
        lambda p: p["count"] * DiscreteLaplace(p["scale"], p["shift"]),
        lambda p, es: [finite_pairs.discrete_laplaces(p["scale"], p["shift"], p["count"], e)
                       for e in es], most=most_of_discrete),
    "responses": Family(
        20, draw_responses, lambda p: p["count"] * accountant.PureLoss(p["epsilon"]),
        lambda p, es: [finite_pairs.responses(p["epsilon"], p["count"], e) for e in es],
        most=lambda p: p["count"] * arb(repr(p["epsilon"]))),
    "finite pairs": Family(20, draw_pairs, build_pairs, true_pairs, most=most_of_pairs),
    "approximate": Family(
        10, draw_approximate,
        lambda p: accountant.Sequential(
            [n * accountant.ApproxLoss(e, d) for e, d, n in p.values()]),
        true_approximate),
    "differing responses": Family(
        5, draw_differing,
        lambda p: accountant.Sequential([n * accountant.PureLoss(e) for e, n in p["terms"]]),
        true_differing),
    "several releases of a sample": Family(
        8, draw_one_sample, build_one_sample, true_one_sample),
    "without replacement": Family(
        5, draw_without_replacement, build_without_replacement, true_without_replacement),
    "sampled Laplaces": Family(
        8, draw_sampled_laplaces, build_sampled_laplaces, true_sampled_laplaces),
    "groups of sampled records": Family(
        3, draw_group, build_group,
        lambda p, es: repeated_mixture(
            mixtures.sampled_group(p["mu"], p["rate"], p["size"]), p["count"], es)),
    "mixtures of Gaussians": Family(
        4, draw_mixture,
        lambda p: p["count"] * accountant.MixtureOfGaussians(
            p["scale"], p["shifts"], p["weights"]),
        lambda p, es: repeated_mixture(
            mixtures.mixture_of_gaussians(p["scale"], p["shifts"], p["weights"]), p["count"], es),
        ("MixtureOfGaussians",)),
    "replaced sampled Gaussians": Family(
        3, draw_replaced, build_replaced,
        lambda p, es: repeated_mixture(
            mixtures.replaced_sampled_gaussian(p["mu"], p["rate"]), p["count"], es)),
    "random allocation": Family(
        4, draw_allocation,
        lambda p: accountant.RandomAllocation(accountant.GaussianLoss(p["mu"]), p["steps"]),
        true_allocation, ("RandomAllocation",)),
    "truncated Poisson": Family(
        3, draw_truncated, build_truncated, true_truncated, ("TruncatedPoisson",)),
}  # fmt: skip
