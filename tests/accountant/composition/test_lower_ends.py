"""The lower end of a certificate holds the truth of the mechanism, not of its rounded pair.

The truth is enumerated with 50 digits from the parameters of the mechanism; it shares no code.
"""

import math
import random
from fractions import Fraction
from itertools import combinations_with_replacement

import mpmath as mp
import pytest

from accountant import ApproxLoss, Certificate, DiscreteLaplaceLoss, PairLoss, PureLoss, Tight
from accountant.composition.composition import Composition, EpsilonProblem
from accountant.losses.finite_pair import response_pair
from accountant.losses.loss import exact_cgf
from accountant.numerics.rounding import ULP
from mechanisms import BinaryLabel, DiscreteLaplace, Laplace, RandomizedResponse, Staircase

ROUNDS, MANY_ROUNDS = 24, 300


def true_epsilon(pair, count, delta):
    """Return the epsilon of ``count`` copies of a pair, the greater of both directions."""
    found = [_one_way(pair, count, delta), _one_way([(q, p) for p, q in pair], count, delta)]
    return max(mp.mpf(0), *found)


def _one_way(pair, count, delta):
    outcomes = []
    for kinds in combinations_with_replacement(range(len(pair)), count):
        ways = math.factorial(count)
        p = q = mp.mpf(1)
        for kind in set(kinds):
            ways //= math.factorial(kinds.count(kind))
        for kind in kinds:
            p, q = p * pair[kind][0], q * pair[kind][1]
        outcomes.append((mp.log(p / q), ways * p, ways * q))
    outcomes.sort(reverse=True)
    if delta == 0:
        return outcomes[0][0]
    # delta(e) = P - e^e Q over the outcomes whose loss is above e
    above_p = above_q = mp.mpf(0)
    for i, (_, p, q) in enumerate(outcomes):
        above_p, above_q = above_p + p, above_q + q
        ratio = (above_p - mp.mpf(delta)) / above_q
        least = outcomes[i + 1][0] if i + 1 < len(outcomes) else -mp.inf
        if ratio > 0 and mp.log(ratio) >= least:
            return mp.log(ratio)
    return mp.mpf(0)


def discrete_laplace(rng):
    scale, shift = 10 ** rng.uniform(-1, 3.5), rng.randint(1, 4)
    ratio = mp.exp(-1 / mp.mpf(scale))
    end, top = 1 / (1 + ratio), (1 - ratio) / (1 + ratio)
    p = [end, *(top * ratio**x for x in range(1, shift)), ratio**shift / (1 + ratio)]
    loss = rng.choice([DiscreteLaplace, DiscreteLaplaceLoss])(scale, shift)
    return loss, list(zip(p, p[::-1], strict=True))


def geometric(rng):
    scale = 10 ** rng.uniform(-1, 4)
    ratio = mp.exp(-1 / mp.mpf(scale))
    p = 1 / (1 + ratio)
    return DiscreteLaplace(scale), [(p, 1 - p), (1 - p, p)]


def staircase(rng):
    found = Staircase(10 ** rng.uniform(-1, 2), 1.0, rng.uniform(0.05, 0.95))
    upper, fall = mp.mpf(found.drawn_upper), mp.exp(-1 / mp.mpf(found.scale))
    density = (1 - fall) / (2 * (upper + fall * (1 - upper)))
    up = 0.5 + density * min(upper, 1 - upper)
    return found, responses(up, up * fall)


def randomised_response(rng):
    k = rng.randint(2, 40)
    keep = 1 - (1 - 1 / k) * 10 ** rng.uniform(-6, -0.05)
    other = (1 - mp.mpf(keep)) / (k - 1)
    return RandomizedResponse(k=k, keep=keep), responses(mp.mpf(keep), other)


def binary_label(rng):
    keep = 0.5 + 0.49 * rng.random()
    found = BinaryLabel(bound=1.0, keep=keep)
    return found, responses(mp.mpf(keep), 1 - mp.mpf(keep))


def test_short_numbers_are_meant_as_they_are_printed():
    assert Tight().certify(10 * PureLoss(0.1), 0.0) == Certificate(1.0, 1.0, "sum of the bounds")
    assert Fraction(Tight().certify(Laplace(3.0), 0.0).lower) < Fraction(1, 3)
    for scale in (57.6144909399195, 1.3137433485667833):  # printed, their ratio was too small
        exact = 3 * 4 / Fraction(scale)
        found = Tight().certify(3 * DiscreteLaplace(scale, 4), 0.0)
        assert Fraction(found.lower) <= exact <= Fraction(repr(found.upper))


def pure(rng):
    epsilon = 10 ** rng.uniform(-4, 1)
    high = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
    return PureLoss(epsilon), responses(high, 1 - high)


def exact_pair(rng):
    size = rng.randint(2, 4)
    # multiples of 2^-44 add up to 1 without round-off
    p, q = ([rng.randint(1, 2**40) for _ in range(size - 1)] for _ in range(2))
    p, q = ([x / 2**44 for x in [*part, 2**44 - sum(part)]] for part in (p, q))
    return PairLoss(p, q), [(mp.mpf(x), mp.mpf(y)) for x, y in zip(p, q, strict=True)]


def responses(greater, lesser):
    rest = 1 - greater - lesser
    both = [(greater, lesser), (lesser, greater)]
    return [*both, (rest, rest)] if rest > 0 else both


KINDS = [
    discrete_laplace, geometric, staircase, randomised_response, binary_label, pure, exact_pair
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.__name__)
@pytest.mark.parametrize(
    "rounds", [ROUNDS, pytest.param(MANY_ROUNDS, marks=pytest.mark.slow)], ids=str
)
def test_no_lower_end_is_above_the_truth(kind, rounds):
    rng, width = random.Random(f"{kind.__name__} {rounds}"), 0.0
    with mp.workdps(50):
        for i in range(rounds):
            loss, pair = kind(rng)
            count, delta = 1 + i % 3, 0.0 if i % 4 == 0 else 10 ** rng.uniform(-12, -1)
            found = Tight().certify(count * loss if count > 1 else loss, delta)
            truth = true_epsilon(pair, count, delta)
            assert mp.mpf(found.lower) <= truth, (loss, count, delta)
            if delta:  # at 0, `Basic` adds epsilons as they are printed
                assert truth <= mp.mpf(found.upper), (loss, count, delta)
            width = max(width, found.width / max(found.upper, 1e-6))
    assert width < 1e-8


def test_a_rest_of_which_nothing_is_known_is_moved_apart():
    pair = response_pair(0.5, 0.5 - 1e-15)
    assert len(pair.p) == 2
    assert pair.p[1] > 0.5
    sure = response_pair(0.75, 0.2)
    assert len(sure.p) == 3
    assert 0 < sure.rounding < 1e-12
    assert sure.reversed.rounding == sure.rounding
    assert sure == PairLoss(sure.p, sure.q)
    assert hash(sure) == hash(PairLoss(sure.p, sure.q))
    assert 1e-10 < response_pair(0.5, 0.5 - 1e-6).rounding < 1e-7


@pytest.mark.parametrize("epsilon", [0.01, 0.3])
@pytest.mark.parametrize("ulps", [-2, 0, 2])
def test_where_delta_is_the_mass_at_infinity_the_ends_are_0_and_the_largest_loss(epsilon, ulps):
    delta = (1 - 0.9**3) * (1 + ulps * 2.0**-52)
    found = Tight().certify(3 * ApproxLoss(epsilon, 0.1), delta)
    assert found.lower == 0.0
    assert 3 * epsilon <= found.upper <= 3 * epsilon * (1 + 1e-9)
    assert found.engine == "mass at infinity"


@pytest.mark.parametrize(
    ("spreads", "engine", "lower", "upper"),  # of delta beyond the mass, in its round-offs
    [
        (-2.0, "mass at infinity", math.inf, math.inf),
        (-1.0, "mass at infinity", math.inf, math.inf),
        (-0.5, "mass at infinity", 0.0, 0.6),
        (0.5, "mass at infinity", 0.0, 0.6),
        (1.0, "mass at infinity", 0.0, 0.6),
        (1.5, "greatest outcome", 0.6, 0.6),
    ],
)
def test_of_a_mass_at_infinity_both_ends_of_the_round_off_count_as_possible(
    spreads, engine, lower, upper
):
    composition = Composition([(ApproxLoss(0.3, 0.5), 2)])
    low, high = EpsilonProblem(composition, composition.infinity, 1e-9).finite_delta
    assert (low, high) == (-16 * ULP * 0.75 / 2, 16 * ULP * 0.75 / 2)
    # The numbers are multiples of a unit of the mass: at one round-off what remains is exactly 0.
    problem = EpsilonProblem(composition, composition.infinity + spreads * high, 1e-9)
    assert (0.0 in problem.finite_delta) == (abs(spreads) == 1)
    interval = problem.outcome_bounds()
    assert interval.engine == engine
    assert (interval.lower, interval.upper) == pytest.approx((lower, upper), rel=1e-9)


SHARES = [0.0, 1e-12, 0.01, 0.5, 1 - 1e-6, 1.0, 1 + 1e-12, 1.5]  # delta over the mass


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize(("first", "second"), [(1, 0), (3, 0), (2, 5)])
def test_the_largest_outcome_alone_bounds_epsilon(first, second, share):
    losses = PairLoss((0.5, 0.5), (0.25, 0.75)), PairLoss((0.125, 0.875), (0.1, 0.9))
    items = [(loss, n) for loss, n in zip(losses, (first, second), strict=True) if n]
    composition = Composition(items)
    log_mass = sum(n * math.log(exact_cgf(loss).max_loss_mass(loss)) for loss, n in items)
    assert log_mass == pytest.approx(first * math.log(0.5) + second * math.log(0.125))
    log_delta = log_mass + math.log(share) if share else -math.inf
    if share == 1.0:
        log_delta = log_mass
    found = composition.lower_bound_of_largest_loss(log_delta)
    largest = first * math.log(2) + second * math.log(1.25)
    # delta = p_max (1 - e^{epsilon - L}) of the outcome of the largest loss L
    truth = max(0.0, largest + math.log1p(-share)) if share < 1 else 0.0
    assert found <= truth
    assert found == pytest.approx(truth, abs=1e-9)
