"""Parts of the outcomes of each release: masses by distribution functions, and losses."""

import math
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from flint import arb
from scipy import stats

from accountant.verifier.cells import cells
from accountant.verifier.document import NoProof, ProofError
from tests.accountant.verifier.test_outcomes import masses

HALF, RATE, SQUARE = Fraction(1, 2), Fraction(1, 4), Fraction(9, 16)
ONE, ZERO = Fraction(1), Fraction(0)
STILL = ((ONE, ZERO),)
MU, R = 0.75, 0.25
LAPLACE, SAMPLED_LAPLACE = ("laplace", HALF, ONE, 0), ("sampled laplace", HALF, RATE)
GAUSSIAN = ("gaussian", SQUARE)
ADDED = ("mixture", SQUARE, ((1 - RATE, ZERO), (RATE, ONE)), STILL)
REPLACED = (*ADDED[:3], ((1 - RATE, ZERO), (RATE, -ONE)))
RANGE = ("range", Fraction(3, 2))


pytestmark = pytest.mark.usefixtures("at_128_bits")


def laplaces(rate):
    """Tails of P and Q of a Laplace of shift 1/2, sampled or not, and the loss at an output."""

    def p(x):
        return (1 - rate) * stats.laplace.sf(x) + rate * stats.laplace.sf(x, 0.5)

    def loss(x):
        return math.log(1 - rate + rate * math.exp(abs(x) - abs(x - 0.5)))

    return p, stats.laplace.sf, loss


def normals(first, second):
    """Tails of mixtures of normals, and the loss, from the chance of each shift."""

    def tail(side):
        return lambda x: sum(w * stats.norm.sf(x - s * MU) for s, w in side.items())

    def density(side, x):
        return sum(w * stats.norm.pdf(x - s * MU) for s, w in side.items())

    return tail(first), tail(second), lambda x: math.log(density(first, x) / density(second, x))


def greatest(s, n):
    """Tails of the greatest of n normals; its losses are not asked for."""
    return *(
        lambda x, mean=mean: 1 - stats.norm.cdf(x - mean * MU) * stats.norm.cdf(x) ** (n - 1)
        for mean in (s + 1, s)
    ), lambda x: 0.0


def rule(first, step, count):
    return {"first": float(first).hex(), "step": float(step).hex(), "count": count}


CONTINUOUS = {
    "Laplace": (LAPLACE, laplaces(1.0), True), "sampled": (SAMPLED_LAPLACE, laplaces(R), True),
    "Gaussian": (GAUSSIAN, normals({1: 1.0}, {0: 1.0}), False),
    "mixture": (ADDED, normals({0: 1 - R, 1: R}, {0: 1.0}), False),
    "replaced": (REPLACED, normals({0: 1 - R, 1: R}, {0: 1 - R, -1: R}), False),
    "first of batches": (("greatest", SQUARE, 0, 5), greatest(0, 5), False),
    "second of batches": (("greatest", SQUARE, 1, 3), greatest(1, 3), False),
}  # fmt: skip


def ends_of(release, points, bounded):
    """The ends of the parts: infinite ones, or those beyond which losses are constant."""
    if bounded:
        points = [min(max(x, 0.0), 0.5) for x in (-1.0, *points, 0.5)]
    return [-math.inf, *points, math.inf]


def bounds_of(cell):
    """The least and the greatest loss of a part, in floats."""
    low = -math.inf if cell.low is None else float(cell.low)
    return low, math.inf if cell.high is None else float(cell.high)


def check_parts(found, tails, ends, *, is_bounded):
    p, q, loss = tails
    limits = (loss(-9.0), loss(9.0)) if is_bounded else (-math.inf, math.inf)
    assert len(found) == len(ends) - 1
    for cell, a, b in zip(found, ends[:-1], ends[1:], strict=True):
        for mass, tail in ((cell.p, p), (cell.q, q)):
            assert float(mass) == pytest.approx(tail(a) - tail(b), abs=1e-13)
        wanted = (limits[0] if a == -math.inf else loss(a), limits[1] if b == math.inf else loss(b))
        assert bounds_of(cell) == pytest.approx(wanted)


@pytest.mark.parametrize(
    "given", [(-3.0, 0.5, 14), (0.0, 0.0625, 8), (0.25, 1.0, 1), (-1.0, 0.3, 5)]
)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_parts_have_the_masses_and_losses_between_points(name, given):
    release, tails, is_bounded = CONTINUOUS[name]
    first, step, count = given
    rules = [rule(*given), "next"]
    found = cells(release, False, rules)
    assert rules == ["next"]
    points = [first + step * i for i in range(count + 1)]
    check_parts(found, tails, ends_of(release, points, is_bounded), is_bounded=is_bounded)
    for end in (0, 1):
        assert float(sum((cell[end] for cell in found), arb(0))) == pytest.approx(1)
    back = cells(release, True, [rule(*given)])
    assert len(back) == len(found)
    for cell, mirror in zip(back, reversed(found), strict=True):
        assert (float(cell.p), float(cell.q)) == (float(mirror.q), float(mirror.p))
        low, high = bounds_of(mirror)
        assert bounds_of(cell) == pytest.approx((-high, -low))


SYMMETRIC = {
    "Laplace": (("subset", SAMPLED_LAPLACE), laplaces(R), 0.25, True),
    "Laplace itself": (("subset", LAPLACE), laplaces(1.0), 0.25, True),
    "mixture": (("subset", ADDED), normals({0: 1 - R, 1: R}, {0: 1.0}), MU / 2, False),
}  # fmt: skip


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_a_symmetric_pair_has_the_parts_of_positive_loss_twice(name, back):
    release, tails, middle, is_bounded = SYMMETRIC[name]
    found = cells(release, back, [rule(-7.0, 0.125, 6)])  # it begins where the loss is 0
    points = [middle + 0.125 * i for i in range(7)]
    if is_bounded:
        points = [min(max(x, middle), 0.5) for x in (middle, *points, 0.5)]
    half = len(points)
    assert len(found) == 2 * half + 1
    ends = [*points, math.inf]
    p, q, loss = tails
    top = loss(9.0) if is_bounded else math.inf
    assert loss(middle) == pytest.approx(0, abs=1e-12)
    for k in range(half):
        a, b = ends[k], ends[k + 1]
        wanted = p(a) - p(b), q(a) - q(b)
        losses = loss(a), top if b == math.inf else loss(b)
        right, left = found[half + 1 + k], found[half - 1 - k]
        assert (float(right.p), float(right.q)) == pytest.approx(wanted, abs=1e-13)
        assert (float(left.q), float(left.p)) == pytest.approx(wanted, abs=1e-13)
        assert bounds_of(right) == pytest.approx(losses, abs=1e-12)
        assert bounds_of(left) == pytest.approx((-losses[1], -losses[0]), abs=1e-12)
    zero = found[half]
    assert bounds_of(zero) == (0, 0)
    assert float(zero.p) == float(zero.q) == pytest.approx(1 - p(middle) - q(middle))


def delta_of_range(t, e=1.5):
    """The greatest delta at t of pairs of two losses, e apart."""
    top = np.linspace(0, e, 20_001)
    p_top = np.exp(top) * np.expm1(e - top) / math.expm1(e)  # so that Q has the mass 1
    return max(0.0, np.max(p_top * -np.expm1(t - top)))


def test_the_pair_above_a_range_has_the_greatest_delta_of_two_losses():
    found = cells(RANGE, False, [rule(0.0, 0.125, 14)])
    half = len(found) // 2
    positive = found[half + 1 :]
    for k, t in enumerate(0.125 * np.arange(13)):
        beyond = positive[k:]
        p, q = (float(sum((cell[side] for cell in beyond), arb(0))) for side in (0, 1))
        assert p - math.exp(t) * q == pytest.approx(delta_of_range(t), abs=1e-7)
        slope = (delta_of_range(t + 1e-3) - delta_of_range(t - 1e-3)) / (2e-3 * math.exp(t))
        if 0 < k < 12:
            assert q == pytest.approx(-slope, rel=1e-3, abs=1e-6)
        assert float(positive[k].low) == pytest.approx(min(t, 1.5))
    back = cells(RANGE, True, [rule(0.0, 0.125, 14)])
    assert [float(cell.p) for cell in back] == [float(cell.p) for cell in found]
    for side in (0, 1):
        assert float(sum((cell[side] for cell in found), arb(0))) == pytest.approx(1)


PAIR = (
    "pair",
    tuple((Fraction(p, 8), Fraction(q, 8)) for p, q in ((2, 0), (1, 4), (5, 2), (0, 2))),
)
RESPONSE = ("response", HALF, Fraction(1, 8))
LISTED = [
    PAIR, RESPONSE, ("response", HALF, ZERO), ("discrete laplace", Fraction(2), 3),
    ("sampled", RATE, (PAIR, RESPONSE)),
]  # fmt: skip


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("release", LISTED)
def test_outcomes_of_a_list_are_parts_of_one_loss(release, back):
    found = cells(release, back, [])
    listed = [(q, p) if back else (p, q) for p, q in masses(release)]
    finite = [cell for cell in found if cell.high is not None]
    assert [float(cell.low) for cell in finite] == sorted(float(cell.low) for cell in finite)
    for cell in finite:
        assert float(cell.low) == float(cell.high)
        assert float(cell.p / cell.q) == pytest.approx(math.exp(float(cell.low)))
    infinite = sum(float(cell.p) for cell in found if cell.high is None)
    assert infinite == pytest.approx(sum(p for p, q in listed if q == 0), abs=1e-15)
    for epsilon in (-0.5, 0.0, 0.3, 1.5):
        odds = math.exp(epsilon)
        delta = sum(max(float(cell.p - odds * cell.q), 0.0) for cell in found)
        truth = sum(max(p - odds * q, 0.0) for p, q in listed)
        assert delta == pytest.approx(truth, abs=1e-9)


def test_what_is_not_listed_of_a_discrete_gaussian_may_be_an_infinite_loss():
    found = cells(("discrete gaussian", ONE, 1), False, [])
    *finite, last = found
    assert (last.low, last.high, last.q == 0) == (None, None, True)
    assert 0 < float(last.p.upper()) < 1e-35
    assert all(cell.high is not None for cell in finite)


def test_a_sample_of_one_response_is_symmetric():
    sampled = ("sampled", RATE, (("response", HALF, ZERO),))
    found = cells(("subset", sampled), False, [])
    assert all(bounds_of(cell)[0] == bounds_of(cell)[1] for cell in found[1:-1])
    found = found[1:-1]  # without the infinite losses, of no mass
    p = {side: [float(cell[side]) for cell in found] for side in (0, 1)}
    odds = math.exp(0.5)
    top, low = odds / (1 + odds), 1 / (1 + odds)
    first, second = (1 - R) * low + R * top, low
    assert p[0] == pytest.approx([second, 1 - first - second, first])
    assert p[1] == pytest.approx(p[0][::-1])
    with pytest.raises(NoProof, match="may be 0"):
        cells(("subset", ("sampled", RATE, (("response", ZERO, ZERO),))), False, [])
    with pytest.raises(NoProof, match="may be 0"):
        cells(("subset", ("sampled", RATE, (PAIR, RESPONSE))), False, [])


@pytest.mark.parametrize("back", [False, True])
def test_a_choice_shows_its_option(back):
    options = ((arb(0.25), GAUSSIAN), (arb(0.75), ADDED))
    rules = [rule(-2.0, 0.5, 8), rule(-1.0, 0.25, 6)]
    found = cells(("choice", options), back, list(rules))
    parts = [
        (chance, cell)
        for (chance, option), one in zip(options, rules, strict=True)
        for cell in cells(option, back, [one])
    ]
    assert len(found) == len(parts)
    for cell, (chance, part) in zip(found, parts, strict=True):
        assert float(cell.p) == float(chance * part.p)
        assert float(cell.q) == float(chance * part.q)
        assert bounds_of(cell) == bounds_of(part)


@pytest.mark.parametrize("change", [
    {"first": -1.1e6}, {"first": 1.1e6}, {"step": 0.0}, {"step": -1.0}, {"step": 99.5},
    {"count": 0},
    {"count": 10**5 + 1}, {"count": 2.0}, {"more": 1},
], ids=repr)  # fmt: skip
def test_a_rule_out_of_its_range_is_refused(change):
    changed = rule(-1.0, 0.5, 4) | {
        k: x.hex() if isinstance(x, float) else x for k, x in change.items()
    }
    with pytest.raises(ProofError):
        cells(GAUSSIAN, False, [changed])


@pytest.mark.parametrize("release", [("zcdp", ONE, ZERO), ("truncated", SQUARE, RATE, 9, 4, 0)])
def test_other_releases_have_no_parts(release):
    with pytest.raises(NoProof, match="has no lattice"):
        cells(release, False, [rule(-1.0, 0.5, 4)])
    with pytest.raises(ProofError, match="must be a table"):
        cells(GAUSSIAN, False, [])
