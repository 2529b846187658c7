"""Law: no vectors of clients cost more than `SumOfClients` says, and less noise costs no less.

The truth is enumerated over all outcomes of vectors of a few coordinates.  Its laws are computed in
another way than the loss's: one share after the other is convolved, in whole numbers of 10^-60.
"""

import functools
import itertools
import math

import mpmath
import numpy as np
import pytest

from accountant import GaussianLoss, Tight
from accountant.losses import summed_noise
from mechanisms import ClientVectors, DiscreteGaussian, Skellam, SumOfClients

EPSILONS = (0.0, 0.3, 1.0, 2.5, 5.0)
# (share, clients who stay, move of one client)
CASES = [
    (DiscreteGaussian(0.3), 4, (1,)), (DiscreteGaussian(0.45), 1, (1, 1)),
    (DiscreteGaussian(0.45), 6, (1, 1)),
    (DiscreteGaussian(0.7), 3, (2,)), (DiscreteGaussian(1.0), 1, (1, 1)),
    (DiscreteGaussian(1.2), 2, (2, 1)), (DiscreteGaussian(2.0), 2, (3,)),
    (DiscreteGaussian(2.5), 1, (1, -1, 1)), (Skellam(0.2), 3, (1,)), (Skellam(0.4), 5, (1, 1)),
    (Skellam(0.7), 3, (2, 1)), (Skellam(1.5), 2, (1, 1, 1)), (Skellam(2.0), 1, (3,)),
]  # fmt: skip


@functools.cache
def true_masses(share, clients):
    """Return P(-reach ... reach) of the noise of so many clients."""
    if isinstance(share, Skellam):
        mean = mpmath.mpf(share.scale) ** 2 * clients / 2
        poisson = [mpmath.exp(-mean) * mean**k / mpmath.factorial(k) for k in range(80)]
        return tuple(
            sum(poisson[j] * poisson[j + abs(k)] for j in range(80 - abs(k)))
            for k in range(-30, 31)
        )
    one = {k: mpmath.exp(-mpmath.mpf(k) ** 2 / (2 * mpmath.mpf(share.scale) ** 2))
           for k in range(-30, 31)}  # fmt: skip
    total = sum(one.values())
    law = {0: mpmath.mpf(1)}
    for _ in range(clients):
        law = {
            k: sum(law.get(k - j, 0) * mass for j, mass in one.items()) / total
            for k in range(-30, 31)
        }
    return tuple(law[k] for k in range(-30, 31))


def true_delta(share, clients, move, epsilon):
    """Return delta of vectors ``move`` apart, of all outcomes within 30 of both."""
    masses = np.array([float(mass) for mass in true_masses(share, clients)])
    sides = []
    for signs in (0, 1):
        vectors = [np.zeros(61) for _ in move]
        for vector, step in zip(vectors, move, strict=True):
            shift = signs * step
            vector[max(shift, 0) : 61 + min(shift, 0)] = masses[max(-shift, 0) : 61 - max(shift, 0)]
        sides.append(functools.reduce(np.multiply.outer, vectors))
    p, q = sides
    return max(
        float(np.maximum(one - math.exp(epsilon) * other, 0.0)[one * other > 0].sum())
        for one, other in ((p, q), (q, p))
    )


def forget():
    for function in vars(summed_noise).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()


def with_move(share, move):
    """The share whose sensitivity is the length of a move."""
    return type(share)(share.scale, math.hypot(*move), len(move))


def violation() -> str:
    """A sum that costs more than its loss, or less noise that costs less."""
    forget()
    try:
        return _violation()
    finally:
        forget()


def _violation():
    for share, clients, move in CASES:
        total = SumOfClients(with_move(share, move), clients + 2, dropout=2)
        deltas = total.loss.profile(np.array(EPSILONS))
        for epsilon, delta in zip(EPSILONS, deltas, strict=True):
            true = true_delta(share, clients, move, epsilon)
            if delta < true * (1 - 1e-11) - 1e-25:
                return f"{total!r} has a delta of {true} at {epsilon}, not {delta}"
            if len(move) == 1 and delta > true * (1 + 1e-8) + 1e-12:
                return f"{total!r} has a delta of {true} at {epsilon}, and {delta} is too large"
    return _monotone_violation()


def _monotone_violation():
    base = {"share": DiscreteGaussian, "scale": 0.8, "length": 1.0, "d": 1, "n": 20, "k": 3}
    for family, d in itertools.product((DiscreteGaussian, Skellam), (1, 4)):
        quiet = base | {"share": family, "d": d, "length": 1.0 if d == 1 else 3.0}
        for change in ({"scale": 0.7}, {"length": 5.0}, {"n": 12}, {"k": 9}, {"n": 19}, {"k": 4}):
            plans = [
                SumOfClients(x["share"](x["scale"], x["length"], x["d"]), x["n"], x["k"])
                for x in (quiet, quiet | change)
            ]
            costs = [plan.loss.profile(np.array(EPSILONS[:4])) for plan in plans]
            rhos = [plan.loss.rho for plan in plans]
            if not ((costs[0] < costs[1]).all() and rhos[0] < rhos[1]):
                return f"{plans[1]!r} costs less than {plans[0]!r}"
    return ""


def test_no_vector_of_clients_costs_more_than_the_loss():
    assert violation() == ""


@pytest.mark.parametrize("share", [DiscreteGaussian(0.9, 1.0), Skellam(0.9, 1.0)], ids=repr)
def test_rounds_and_samples_of_sums_cost_at_most_what_is_enumerated_above_them(share):
    total = SumOfClients(share, clients=8, dropout=0.25)
    epsilon = Tight().epsilon(2 * total, delta=1e-3)
    assert true_delta(share, 6, (1, 1), epsilon) <= 1e-3
    assert true_delta(share, 6, (1, 1), epsilon * 0.999) > 0.98e-3


def test_gaussians_above_are_near_for_wide_noise_and_never_below():
    for share, least_excess in ((DiscreteGaussian(1.0), 1 / 24), (Skellam(1.0), 7 / 24)):
        for clients in (100, 10**4):
            step = SumOfClients(share, clients).noise.gdp_per_step
            excess = (step * math.sqrt(clients) - 1) * clients
            assert least_excess < excess < least_excess * 1.03


# --- vectors that are rounded


def wrap_violation() -> str:
    """Vectors that are longer than they may be, or a sum that wraps around more often than said."""
    rng = np.random.default_rng(5)
    vectors = ClientVectors(dimension=2, clip=1.0, step=0.25, bits=6)
    longest = max(
        int(np.square(vectors.encode(x, rng)).sum())
        for x in rng.normal(size=(400, 2)) * rng.choice([0.1, 1.0, 50.0], (400, 1))
    )
    if longest > vectors.squared_norm:
        return f"a vector of squared length {longest}, above {vectors.squared_norm}"
    if longest <= vectors.squared_norm - 12:
        return f"a sensitivity for {vectors.squared_norm}, where {longest} is the most"
    total = SumOfClients(DiscreteGaussian(2.2, vectors.sensitivity, 2), clients=2, dropout=1)
    masses = np.array([float(mass) for mass in true_masses(DiscreteGaussian(2.2), 2)])
    # Both clients send (1, 0), which are 4 steps: the sum 8 + noise must stay within -32 ... 31.
    wraps = masses[30 + 24 :].sum()
    claimed = vectors.wrap_probability(total, largest=2.0)
    return "" if wraps <= claimed < 1e-8 else f"{wraps} of sums wrap around, above {claimed}"


def test_vectors_are_as_short_as_said_and_seldom_wrap_around():
    assert wrap_violation() == ""


def test_a_gaussian_of_a_continuous_sum_is_below():
    # Discrete noise reveals a little more than continuous noise of its variance.
    assert SumOfClients(DiscreteGaussian(3.0, 4.0, 9), 50).loss.mu > 4 / math.sqrt(450)
    assert isinstance(SumOfClients(DiscreteGaussian(3.0, 4.0, 9), 50).loss, GaussianLoss)
