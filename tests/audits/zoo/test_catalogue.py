"""The zoo: every true epsilon by another road, every specimen judged as it deserves."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import laplace as lap
from scipy.stats import logistic, norm

from audits.zoo.catalogue import MECHANISMS, MISSED, PROGRAMS, SPECIMENS, ZOO
from audits.zoo.honest.programs import specimens_by_kind
from audits.zoo.scorecard import (
    MAX_SPECIMENS,
)

NAMED = {one.name: one for one in SPECIMENS}
KINDS = {"guess test", "bits", "atoms", "timing", "sensitivity", "replay", "privacy losses"}


def test_there_are_enough_of_every_kind():
    assert len(NAMED) == len(SPECIMENS) == len(MECHANISMS) + len(PROGRAMS)
    assert len(PROGRAMS) >= 180
    assert sum(one.honest for one in PROGRAMS) >= 40
    assert not {one.name for one in MISSED} & set(NAMED)
    assert len(SPECIMENS) <= MAX_SPECIMENS  # whom the verdicts' error is shared with
    assert sum(one.honest for one in SPECIMENS) >= 15
    assert {one.caught_by for one in SPECIMENS} == KINDS
    assert {one.name for one in ZOO} <= set(NAMED)
    for one in SPECIMENS:
        assert one.description.endswith(".")
        claimed = one.claim.epsilon_at(max(one.claim.infinity, 0.0))
        if one.true_epsilon is not None:
            assert (one.true_epsilon <= claimed + 1e-9) is one.honest


# --- the true epsilons, by enumeration or quadrature of what the code is said to do ---


def largest(p, q):
    """The greatest |log ratio| of two lists of probabilities of the same outcomes."""
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    assert p.sum() == pytest.approx(1, abs=1e-7)
    assert q.sum() == pytest.approx(1, abs=1e-7)
    return np.max(np.abs(np.log(p / q)))


def integral(f):
    """Gauss-Legendre on panels between the kinks at -1, 0 and 1 and out to +-150."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    ends = np.concatenate([np.arange(-150, -1, 7), np.arange(-1, 2), np.arange(2, 151, 7), [300]])
    return sum(
        (b - a) / 2 * weights @ f((a + b) / 2 + (b - a) / 2 * nodes)
        for a, b in itertools.pairwise(np.unique(ends))
    )


def grid(density, first, second):
    """The greatest |log ratio| of densities on a grid of the line."""
    x = np.linspace(-40, 40, 4001)
    return np.max(np.abs(np.log(density(x, first) / density(x, second))))


def response(k, keep):
    first, second = np.full(k, (1 - keep) / (k - 1)), np.full(k, (1 - keep) / (k - 1))
    first[0], second[1] = keep, keep
    return largest(first, second)


def unary(p, q, k=5):
    """Of all 2^k vectors of bits, labels 0 and 1."""
    rows = []
    for label in (0, 1):
        chance = np.where(np.arange(k) == label, p, q)
        rows.append([
            np.prod(np.where(bits, chance, 1 - chance))
            for bits in np.array(list(itertools.product([0, 1], repeat=k)))
        ])  # fmt: skip
    return largest(*rows)


def noisy_max(scores, scale):
    def won(i):
        return lambda x: (
            lap.pdf(x, scores[i], scale)
            * np.prod([lap.cdf(x, s, scale) for j, s in enumerate(scores) if j != i], axis=0)
        )

    return [integral(won(i)) for i in range(len(scores))]


def first_above(answers, threshold, scale):
    def stops(k):
        return lambda t: (
            lap.pdf(t, 0, threshold)
            * np.prod([lap.cdf(t, a, scale) for a in answers[:k]] or [1], axis=0)
            * (lap.sf(t, answers[k], scale) if k < len(answers) else 1)
        )

    return [integral(stops(k)) for k in range(len(answers) + 1)]


def all_told(above, below, ten, threshold=2.0, scale=4.0):
    """One pattern: ``above`` of the first ten answered above, ``below`` of the last ten."""
    up, down = ten
    return integral(
        lambda t: lap.pdf(t, 0, threshold)
        * lap.sf(t, up, scale) ** above * lap.cdf(t, up, scale) ** (10 - above)
        * lap.sf(t, down, scale) ** below * lap.cdf(t, down, scale) ** (10 - below)
    )  # fmt: skip


def gaussian_epsilon(mu, delta):
    """By the integral of the hockey stick, not by its closed form."""

    def stick(epsilon):
        # sup_S P(S) - e^eps Q(S), S = {x > eps / mu + mu / 2}
        start = epsilon / mu + mu / 2
        body = quad(lambda x: norm.pdf(x - mu) - math.exp(epsilon) * norm.pdf(x), start, start + 40,
                    epsabs=1e-15, limit=300)  # fmt: skip
        return body[0]

    return brentq(lambda e: stick(e) - delta, 0.01, 20)


def softmax(scores):
    return np.exp(scores) / np.exp(scores).sum()


def halved(x, value):
    """A record that is in a secret sample by a coin, under Laplace noise."""
    return (lap.pdf(x, value) + lap.pdf(x, 0)) / 2


def until_positive(x, value):
    return np.where(x >= 0, lap.pdf(x, value) / lap.sf(0, value), 1.0)


def truncated(value):
    """Masses of Laplace noise without its decimals, added to a whole number."""
    whole = np.arange(-30, 31) - value
    ends = np.where(whole > 0, whole, np.where(whole < 0, whole - 1, -1))
    return lap.cdf(ends + np.where(whole == 0, 2, 1)) - lap.cdf(ends)


UP, EARLY = np.eye(5)[0], np.eye(5)[4]
LATE = np.append(np.zeros(10), 1.0)
BINARY = 1 / (1 + math.exp(-1))


def without_stop():
    """Two far patterns are the worst of all 121 (the slow test looks at them all)."""
    return max(
        abs(math.log(all_told(i, j, (0, 0)) / all_told(i, j, (1, -1))))
        for i, j in ((0, 10), (10, 0))
    )


TRUE = {
    "laplace": lambda: grid(lap.pdf, 0, 1),
    "even_tempo": lambda: grid(lap.pdf, 0, 1),
    "exact_laplace": lambda: grid(lap.pdf, 1 / 3, 4 / 3),
    "half_the_noise": lambda: grid(lambda x, v: lap.pdf(x, v, 0.5), 0, 1),
    "variance_for_scale": lambda: grid(lambda x, v: lap.pdf(x, v, math.sqrt(0.5)), 0, 1),
    "geometric": lambda: np.ptp(np.abs(np.arange(-9, 9)) - np.abs(np.arange(-9, 9) - 1)) / 2,
    "gaussian": lambda: gaussian_epsilon(1 / 3.7306317, 1e-5),
    "gaussian_that_forgot_l2": lambda: gaussian_epsilon(2 / 3.7306317, 1e-5),
    "ten_labels": lambda: response(10, math.e / (math.e + 9)),
    "two_answers": lambda: response(2, BINARY),
    "strings": lambda: response(2, BINARY),
    "any_length": lambda: response(2, BINARY),
    "keep_of_two_labels": lambda: response(10, BINARY),
    "truth_twice": lambda: response(10, 0.1 + 0.9 * math.e / (math.e + 9)),
    "strings_kept": lambda: response(2, 0.9),
    "length_tells": lambda: response(2, 0.9),
    "type_tells": lambda: response(2, 0.8),
    "none_tells": lambda: largest([0.5, 0.5], [0.1, 0.9]),
    "raises": lambda: max(
        abs(math.log(0.5 / 0.05)),
        grid(lambda x, v: (0.5 if v else 0.95) * lap.pdf(x, v), 0, 1),
    ),
    "second_part": lambda: 1 + response(2, 0.9),
    "sometimes_none": lambda: max(0.0, grid(lambda x, v: 0.5 * lap.pdf(x, v), 0, 1)),
    "unary_optimised": lambda: unary(0.5, 1 - BINARY),
    "unary_symmetric": lambda: unary(1 - 1 / (1 + math.exp(0.5)), 1 / (1 + math.exp(0.5))),
    "unary_budget_for_each_bit": lambda: unary(BINARY, 1 - BINARY),
    # independent coordinates: their greatest log ratios, at one sign, add
    "noisy_histogram": lambda: grid(lap.pdf, 5, 6),
    "parallel_laplaces": lambda: 20 * grid(lambda x, v: lap.pdf(x, v, 20), 0, 1),
    "scale_of_one_coordinate": lambda: 4 * grid(lap.pdf, 0, 1),
    "asked_twice": lambda: 2 * grid(lap.pdf, 0, 1),
    "histogram_of_replaced": lambda: 2 * grid(lap.pdf, 5, 6),
    "noisy_max": lambda: largest(noisy_max(UP, 2), noisy_max(1 - UP, 2)),
    "noisy_max_of_half_the_noise": lambda: largest(noisy_max(UP, 1), noisy_max(1 - UP, 1)),
    "value_of_noisy_max": lambda: grid(
        lambda x, v: 5 * lap.cdf(x, v, 2) ** 4 * lap.pdf(x, v, 2), 0, 1
    ),
    "exponential": lambda: largest(
        np.exp(UP / 2) / np.exp(UP / 2).sum(), np.exp(-UP / 2) / np.exp(-UP / 2).sum()
    ),
    "sparse_vector": lambda: largest(first_above(LATE, 2, 4), first_above(1 - LATE, 2, 4)),
    "sparse_vector_unscaled": lambda: largest(
        first_above(EARLY, 4, 4 / 3), first_above(1 - EARLY, 4, 4 / 3)
    ),
    "sparse_vector_without_stop": without_stop,
    # the twentieth is released at y = -40: all but e^-20 of the limit
    "sparse_vector_releasing_values": lambda: abs(
        math.log(
            quad(lambda t: lap.pdf(t, 0, 2) * lap.cdf(t, 0, 2) ** 19, -90, -40, epsabs=0)[0]
            / quad(lambda t: lap.pdf(t, 0, 2) * lap.cdf(t, 1, 2) ** 19, -90, -40, epsabs=0)[0]
        )
        + math.log(lap.pdf(-40, 0, 2) / lap.pdf(-40, 1, 2))
    ),
    "clamped_laplace": lambda: max(
        grid(lambda x, v: np.where((x > 0) & (x < 1), lap.pdf(x, v), 1.0), 0, 1),
        abs(math.log(lap.sf(1, 1) / lap.sf(1, 0))),
    ),
    "nothing": lambda: largest([1.0], [1.0]),
    "half_the_sensitivity": lambda: grid(lap.pdf, 0, 2),
    "clips_after_the_noise": lambda: max(
        grid(lambda x, v: np.where((x > 0) & (x < 1), lap.pdf(x, v), 1.0), 0, 3),
        abs(math.log(lap.cdf(0, 3) / lap.cdf(0, 0))),
        abs(math.log(lap.sf(1, 3) / lap.sf(1, 0))),
    ),
    "clips_above_only": lambda: grid(lap.pdf, 0, -4),
    "counts_rows_not_persons": lambda: grid(lap.pdf, 0, 3),
    "rounds_before_the_noise": lambda: grid(lap.pdf, round(14.0, -1), round(15.0, -1)),
    "squares_without_a_clip": lambda: grid(lap.pdf, 0, 2**2),
    "drops_outliers": lambda: grid(lap.pdf, 0, 2),
    "noise_of_whole_epsilon": lambda: grid(lap.pdf, 0, 1),
    "three_statistics": lambda: 3 * grid(lap.pdf, 0, 1),
    "every_level_of_a_tree": lambda: 3 * grid(lap.pdf, 0, 1),
    "prefix_sums": lambda: 8 * grid(lap.pdf, 0, 1),
    "groups_that_overlap": lambda: 2 * grid(lap.pdf, 4, 5),
    "sample_that_is_fixed": lambda: grid(lap.pdf, 0, 1),
    "sample_that_is_shown": lambda: grid(lap.pdf, 0, 1),
    "shuffle_that_does_not": lambda: response(2, 1 / (1 + math.exp(-3))),
    "truncated_noise": lambda: largest(truncated(0), truncated(1)),
    "retries_until_positive": lambda: grid(until_positive, 0, 1),
    "exponential_without_the_two": lambda: largest(softmax(UP), softmax(1 - UP)),
    "capitals_by_response": lambda: response(2, BINARY),
    "keys_by_response": lambda: response(2, BINARY),
    "logistic_noise": lambda: grid(logistic.pdf, 0, 1),
    "rounded_release": lambda: grid(lap.pdf, 0, 1),
    "complex_noise": lambda: grid(lap.pdf, 0, 1),
    "clips_both_ends": lambda: grid(lap.pdf, 0, min(5, 1)),
    "three_levels_of_a_tree": lambda: 3 * grid(lambda x, v: lap.pdf(x, v, 3), 0, 1),
    "secret_half": lambda: grid(halved, 0, 1),
    "clipped_gradient": lambda: gaussian_epsilon(1 / 3.7306317, 1e-5),
}
# All other honest programs release what they make of one noisy count.
OF_COUNTS = [one.name for kind in list(specimens_by_kind().values())[:-1] for one in kind]
TRUE |= {name: TRUE["geometric"] for name in OF_COUNTS if name not in TRUE}
AT_DELTA = {"leaky_response", "key_above_a_threshold"}  # they have a test of their own


@pytest.mark.parametrize(
    "name", [s.name for s in SPECIMENS if s.true_epsilon is not None and s.name not in AT_DELTA]
)
def test_the_true_epsilon_by_another_road(name):
    assert NAMED[name].true_epsilon == pytest.approx(TRUE[name](), abs=3e-6)


def test_the_leaky_response_is_exactly_at_its_claim():
    # delta(eps) = 0.01 + 0.99 (keep - e^eps (1 - keep)) is 0.01 at eps = 1
    for epsilon, delta in (
        (1.0, 0.01),
        (0.9, 0.01 + 0.99 * (BINARY - math.exp(0.9) * (1 - BINARY))),
    ):
        p, q = np.array([BINARY, 1 - BINARY]), np.array([1 - BINARY, BINARY])
        stick = 0.01 + 0.99 * np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert stick == pytest.approx(delta)
    assert NAMED["leaky_response"].claim.epsilon_at(0.01) == 1.0


def test_the_key_above_a_threshold_is_exactly_at_its_claim():
    # without the person the key never appears, so that delta at epsilon 0 is its probability
    threshold = 1 + math.log(0.5 / 0.01)
    assert lap.sf(threshold, 1) == pytest.approx(0.01)
    assert NAMED["key_above_a_threshold"].claim.delta_at(0.0) == pytest.approx(0.01)


@pytest.mark.slow
def test_no_other_pattern_is_worse_without_stop():
    worst = max(
        abs(math.log(all_told(i, j, (0, 0)) / all_told(i, j, (1, -1))))
        for i in range(11) for j in range(11)
    )  # fmt: skip
    assert worst == pytest.approx(NAMED["sparse_vector_without_stop"].true_epsilon, abs=1e-5)


# samples against the formulas that the roads above start from: the code does what is said of it


@pytest.mark.parametrize(
    ("name", "side", "chances"),
    [
        ("noisy_max", 0, lambda: noisy_max(UP, 2)),
        ("exponential", 0, lambda: np.exp(UP / 2) / np.exp(UP / 2).sum()),
        ("sparse_vector", 1, lambda: first_above(1 - LATE, 2, 4)),
        ("sparse_vector_unscaled", 0, lambda: first_above(EARLY, 4, 4 / 3)),
        ("truth_twice", 0, lambda: [0.1 + 0.9 * math.e / (math.e + 9)]),
        ("ten_labels", 1, lambda: [1 / (math.e + 9), math.e / (math.e + 9)]),
        ("leaky_response", 1, lambda: [0.99 * (1 - BINARY), 0.99 * BINARY, 0.0, 0.01]),
    ],
)
def test_samples_have_the_chances_said_of_them(name, side, chances):
    one, runs = NAMED[name], 40_000
    drawn = one.implementation(one.pair[side], np.random.default_rng(1), runs)
    for outcome, chance in enumerate(chances()):
        # six standard errors, twelve outcomes: 2.4e-8
        error = 6 * math.sqrt(chance * (1 - chance) / runs)
        assert abs(np.mean(drawn == outcome) - chance) <= error


# --- the verdicts ---
