"""Laws of reports, against all reports of small mechanisms and integrals on the sphere."""

import itertools
import math
from collections import Counter

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from scipy.integrate import quad

from accountant.verifier.claimed_laws import WORDS, exact_parameters, fraction
from accountant.verifier.claimed_reports import REPORTS

EPSILONS = (0.0, 0.25, 1.0, 2.5)


def response(k, keep):
    lie = (1 - keep) / (k - 1)
    return [(1, keep if x == 0 else lie, keep if x == 1 else lie) for x in range(k)]


def hadamard_response(k, keep):
    """Columns of a Hadamard matrix of more rows than labels, of which the first is no label's."""
    size = next(2**b for b in range(1, 9) if 2**b > k)
    halves = [[(x & row).bit_count() % 2 for x in range(size)] for row in (1, 2)]
    density = [keep / (size / 2), (1 - keep) / (size / 2)]
    return [(1, density[a], density[b]) for a, b in zip(*halves, strict=True)]


def cube_corner(dimension, keep):
    """A corner is likely where its product with the value, all ones, is above 0."""
    sums = [sum(corner) for corner in itertools.product((-1, 1), repeat=dimension)]
    weights = [[keep if sign * x > 0 else 1 - keep for x in sums] for sign in (1, -1)]
    totals = list(map(sum, weights))
    return [(1, a / totals[0], b / totals[1]) for a, b in zip(*weights, strict=True)]


def subset_selection(k, size, keep):
    subsets = list(itertools.combinations(range(k), size))
    inside = sum(0 in subset for subset in subsets)
    density = {True: keep / inside, False: (1 - keep) / (len(subsets) - inside)}
    return [(1, density[0 in subset], density[1 in subset]) for subset in subsets]


def unary_encoding(k, p, q):
    def chance(bits, label):
        ones = [p if x == label else q for x in range(k)]
        return math.prod(one if bit else 1 - one for bit, one in zip(bits, ones, strict=True))

    return [(1, chance(b, 0), chance(b, 1)) for b in itertools.product((0, 1), repeat=k)]


def local_hashing(k, buckets, keep):
    """All functions ax + b of a prime field whose a is not 0, and all buckets."""
    prime = next(p for p in range(max(k, 2), 99) if all(p % n for n in range(2, p)))
    count, found = prime * (prime - 1), []
    for a, b, bucket in itertools.product(range(1, prime), range(prime), range(buckets)):
        truths = [(a * label + b) % prime % buckets == bucket for label in (0, 1)]
        found.append((1, *(keep / count if one else (1 - keep) / (buckets - 1) / count
                           for one in truths)))  # fmt: skip
    return found


def priv_unit(dimension, height, keep):
    """The sphere in the cap of a value, the cap of its opposite, and the rest."""

    def slice_(t):
        return (1 - t * t) ** ((dimension - 3) / 2)

    mass = quad(slice_, height, 1)[0] / quad(slice_, -1, 1)[0]
    share = (keep - mass) / (1 - mass)
    inside, far = share / mass + 1 - share, 1 - share
    return [(mass, inside, far), (mass, far, inside), (1 - 2 * mass, far, far)]


CASES = {
    "two labels": ("RandomizedResponse", {"k": 2, "keep": 0.625}, response(2, 0.625)),
    "labels": ("RandomizedResponse", {"k": 7, "keep": 0.625}, response(7, 0.625)),
    "few truths": ("RandomizedResponse", {"k": 3, "keep": 0.125}, response(3, 0.125)),
    "binary label": ("BinaryLabel", {"keep": 0.875}, response(2, 0.875)),
    "half spheres": ("HemisphereL2", {"dimension": 3, "keep": 0.75},
                     [(0.5, 1.5, 0.5), (0.5, 0.5, 1.5)]),
    **{f"hadamard {k}": ("HadamardResponse", {"k": k, "keep": 0.75}, hadamard_response(k, 0.75))
       for k in (3, 4, 7, 8)},
    **{f"corners {d}": ("CubeLinf", {"dimension": d, "keep": 0.75}, cube_corner(d, 0.75))
       for d in (1, 2, 3, 4, 7)},
    **{f"subsets {k} {size}": ("SubsetSelection", {"k": k, "size": size, "keep": 0.75},
                               subset_selection(k, size, 0.75))
       for k, size in ((2, 1), (5, 1), (5, 2), (6, 3), (6, 5))},
    "pieces": ("PiecewiseUniform", {"keep": 0.75, "piece": 3, "rest": 7, "unit": 0.25},
               [(0.75, 1.0, 0.25 / 1.75), (0.75, 0.25 / 1.75, 1.0), (1.0, *[0.25 / 1.75] * 2)]),
    **{f"bits {k}": ("UnaryEncoding", {"k": k, "p": 0.75, "q": 0.125},
                     unary_encoding(k, 0.75, 0.125))
       for k in (2, 3, 5)},
    **{f"hashing {k} {g}": ("LocalHashing", {"k": k, "buckets": g, "keep": 0.75},
                            local_hashing(k, g, 0.75))
       for k, g in ((2, 2), (3, 2), (5, 2), (5, 3), (6, 3), (7, 7), (10, 4))},
    **{f"caps {d} {height}": (
        "PrivUnit",
        {"dimension": d, "height": height, "keep": 0.75, "error": 0.0, "cap_share": 0.0},
        priv_unit(d, height, 0.75))
       for d, height in ((2, 0.25), (3, 0.5), (5, 0.125), (12, 0.25))},
}  # fmt: skip


def law_of(kind, parameters):
    return REPORTS[kind](exact_parameters(parameters))


def ends(law, epsilon):
    return [float(end) for end in law.delta(fraction(epsilon))]


@pytest.mark.parametrize("name", CASES)
def test_delta_is_the_sum_over_all_reports(name):
    kind, parameters, reports = CASES[name]
    for side in (1, 2):
        assert sum(one[0] * one[side] for one in reports) == pytest.approx(1)
    law = law_of(kind, parameters)
    for epsilon in EPSILONS:
        odds = math.exp(epsilon)
        truth = sum(measure * max(p - odds * q, 0) for measure, p, q in reports)
        assert ends(law, epsilon) == pytest.approx(2 * [truth], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_only_densities_of_reports_are_right(name):
    kind, parameters, reports = CASES[name]
    law = law_of(kind, parameters)
    pairs = Counter((round(math.log(p), 9), round(math.log(q), 9)) for _, p, q in reports)
    for _, p, q in reports:
        assert law.has_density("any", math.log(p), math.log(q))
        assert not law.has_density("any", math.log(p) + 1e-6, math.log(q))
    levels = sorted({math.log(x) for _, p, q in reports for x in (p, q)})
    for pair in itertools.product(levels[:: max(1, len(levels) // 5)], repeat=2):
        key = tuple(round(x, 9) for x in pair)
        if key[0] != key[1]:  # an outcome of equal densities adds nothing to delta
            assert law.has_density("any", *pair) == (key in pairs), pair


@pytest.mark.parametrize("error", [2.0**-20, 2.0**-40])
def test_caps_that_err_are_as_wide_as_their_error(error):
    share = 0.5
    parameters = {"dimension": 4, "height": 0.25, "keep": 0.9, "error": error, "cap_share": share}
    law = law_of("PrivUnit", parameters)
    mass = sum(one[0] for one in priv_unit(4, 0.25, 0.9)[:1])
    for epsilon in EPSILONS:
        odds = math.exp(epsilon)
        p, q = share + (1 - share) * mass, (1 - share) * mass
        truth, radius = max(p - odds * q, 0), (1 - share) * error * (1 + odds)
        low, high = law.delta(fraction(epsilon))
        for wrong in (-radius, radius):
            if truth > radius:
                assert float(low.lower()) <= truth + wrong * 0.999 <= float(high.upper())
        if truth > radius:
            assert float(high.upper()) == pytest.approx(truth + radius, rel=1e-9)


@pytest.mark.parametrize(
    "shares",
    [
        [0.0, 0.125, 0.5, 0.875, 1.0],
        [0.25, 0.375],
        [0.0, 0.0, 0.75],
        [0.5, 0.25],
        [0.25, 0.75, 0.625],
    ],
)
def test_a_key_is_kept_or_dropped_with_the_probability_of_its_people(shares):
    law = law_of("PartitionSelection", {"words": [int(share * WORDS) for share in shares]})
    neighbours = [*itertools.pairwise(shares), *itertools.pairwise(shares[::-1])]
    for epsilon in EPSILONS:
        odds = math.exp(epsilon)
        truth = max(max(p - odds * q, 0) + max((1 - p) - odds * (1 - q), 0) for p, q in neighbours)
        assert ends(law, epsilon) == pytest.approx(2 * [truth], abs=1e-12)

    def log(x):
        return math.log(x) if x else -math.inf

    for p, q in neighbours:
        assert law.has_density(True, log(p), log(q))
        assert law.has_density(False, log(1 - p), log(1 - q))
        assert not law.has_density(True, log(p), log(q / 2 + 1 / 32))
