"""Pairs on a lattice against sums over all outcomes: no bound is on the wrong side.

`brute` knows a release as a list of outcomes (p, q), q = 0 included, and multiplies them out.
Continuous noise is cut into narrow cells: that may lower delta by `CUT`, and never raises it.
"""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from scipy.special import ndtr

from accountant.verifier import lattice_pairs, lattice_sums
from accountant.verifier.document import Fields, NoProof
from accountant.verifier.releases import STILL

ROUND_OFF, CUT = 1e-12, 2e-5
HALF = Fraction(1, 2)


pytestmark = pytest.mark.usefixtures("at_128_bits")


def outcomes_of(some, n):
    """Return the masses of n releases under P and under Q."""
    p, q = law = np.array(some).T
    for _ in range(n - 1):
        p, q = (np.outer(one, each).ravel() for one, each in zip((p, q), law, strict=True))
    return p, q


def brute(some, n, epsilon):
    """Return sum (p - e^eps q)_+ over the outcomes of n releases."""
    p, q = outcomes_of(some, n)
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def composed(items, *, above, back=False, rules=(), a=2.0, h=0.05, size=4096, slack=0.0):
    """Return the checker's bounds as a function of epsilon."""
    entry = {"a": a.hex(), "h": h.hex(), "size": size, "slack": slack.hex(), "rules": list(rules)}
    return lattice_sums.composed(items, back, Fields(entry, "an entry"), above=above)


def bounds(items, epsilon, **given):
    """Return what `composed` says of an epsilon, in floats."""
    low, high = composed(items, **given)(epsilon)
    return float(low), float(high)


def rule(first, last, count):
    return {"first": first.hex(), "step": ((last - first) / count).hex(), "count": count}


def random_pair(seed, *, sure=True):
    """A release of 2 to 4 outcomes, of which Q may lack the last."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(rng.integers(2, 4), 1.5), 2)
    if sure and seed % 2:
        p, q = np.append(0.9 * p, 0.1), np.append(q, 0.0)
    exact = [[Fraction(x) for x in one.tolist()] for one in (p, q)]
    masses = [tuple(x / sum(one) for x in one) for one in exact]
    return "pair", tuple(zip(*masses, strict=True))


def margins(pair, seed, wrong=None, *, slack=0.0, size=4096):
    """By how much the bounds above and below are on the right side; ``wrong`` changes them."""
    rng = np.random.default_rng(seed)
    n, h, a = int(rng.integers(1, 7)), 10 ** rng.uniform(-1.0, 0), rng.uniform(0.3, 9.0)
    outcomes = [(float(p), float(q)) for p, q in pair[1]]
    top = max(math.log(p / q) for p, q in outcomes if q)
    epsilon = rng.uniform(-0.5, 0.9) * n * top
    true = brute(outcomes, n, epsilon)
    same = {"a": a, "h": h, "slack": slack, "size": size}
    wrong = wrong or (lambda road: road)
    high = wrong(lambda e: bounds([(pair, n)], e, above=True, **same)[1])(epsilon)
    low = wrong(lambda e: bounds([(pair, n)], e, above=False, **same)[0])(epsilon)
    return high - true, true - low


@pytest.mark.parametrize("size", [12, 4096])
@pytest.mark.parametrize("slack", [0.0, 0.013])
def test_finite_pairs_are_between(slack, size):
    for seed in range(40):
        found = margins(random_pair(seed), seed, slack=slack, size=size)
        assert min(found) > -ROUND_OFF, (seed, found)


def test_other_releases_beside_them():
    one, other = random_pair(1), random_pair(2)
    both = [(float(p * r), float(q * s)) for (p, q), (r, s) in itertools.product(one[1], other[1])]
    for epsilon, back in itertools.product((-0.4, 0.1, 0.7), (False, True)):
        true = brute([(q, p) for p, q in both] if back else both, 1, epsilon)
        high, low = (bounds([(one, 1), (other, 1)], epsilon, back=back, above=above)[above]
                     for above in (True, False))  # fmt: skip
        assert low - ROUND_OFF <= true <= high + ROUND_OFF


def test_the_bounds_meet_on_a_fine_lattice():
    for seed in range(10):
        pair = random_pair(seed)
        true = brute([(float(p), float(q)) for p, q in pair[1]], 3, 0.3)
        high, low = (bounds([(pair, 3)], 0.3, above=above, h=1e-3, size=2**15, slack=1e-9)[above]
                     for above in (True, False))  # fmt: skip
        assert low <= true + ROUND_OFF
        assert true - ROUND_OFF <= high < low + 3e-3


# --- noise, in narrow cells


def cut(p, q):
    """Outcomes of one side of tails at points."""
    p, q = (np.concatenate([[1.0], one, [0.0]]) for one in (p, q))
    return list(zip(-np.diff(p), -np.diff(q), strict=True))


def mirrored(some):
    """Outcomes of positive losses, their mirror image, and the rest."""
    rest = 1 - sum(p + q for p, q in some)
    return [*some, *((q, p) for p, q in some), (rest, rest)]


def normals(mu, rate, *, half=False):
    x = np.linspace(mu / 2, 9, 800) if half else np.linspace(-8, 9, 1200)
    found = cut((1 - rate) * ndtr(-x) + rate * ndtr(mu - x), ndtr(-x))
    return mirrored(found[1:]) if half else found


def laplaces(m, rate, *, half=False):
    x = np.linspace(m / 2 if half else 0.0, m, 1200)
    q = np.exp(-x) / 2
    found = cut((1 - rate) * q + rate * (1 - np.exp(x - m) / 2), q)
    return mirrored(found[1:]) if half else found


def ranges(e):
    """The profile as the best two-point pair of losses t and t - e, and its masses by chords."""
    x = np.exp(np.linspace(0, e, 1200))
    t = np.linspace(0, e, 3001)[:, None]
    best = [((1 - np.exp(t - e)) * (1 - y * np.exp(-t))).max() / -math.expm1(-e) for y in x]
    slopes = -np.diff(np.maximum(best, 0)) / np.diff(x)
    q = np.minimum.accumulate(np.append(slopes, 0.0))
    return mirrored([(y * v, v) for y, v in zip(x[1:], -np.diff(q), strict=True)])


def sampled(mu2, rate):
    return "mixture", mu2, ((1 - rate, 0 * HALF), (rate, 2 * HALF)), STILL


RATE, MU2 = Fraction(1, 4), Fraction(9, 16)
CHOICE = tuple((arb(0.5), sampled(mu2, RATE)) for mu2 in (MU2, 4 * MU2))
LONG = rule(-8.0, 9.0, 900)
CASES = {
    "Laplace": (("laplace", HALF, 2 * HALF, 0), laplaces(0.5, 1.0), [rule(0.0, 0.5, 100)]),
    "sampled Laplace": (("sampled laplace", HALF, RATE), laplaces(0.5, 0.25),
                        [rule(0.0, 0.5, 100)]),
    "Gaussian": (("gaussian", MU2), normals(0.75, 1.0), [LONG]),
    "mixture": (sampled(MU2, RATE), normals(0.75, 0.25), [LONG]),
    "subset": (("subset", sampled(MU2, RATE)), normals(0.75, 0.25, half=True),
               [rule(0.0, 9.0, 500)]),
    "subset of Laplace": (("subset", ("sampled laplace", HALF, RATE)),
                          laplaces(0.5, 0.25, half=True), [rule(0.0, 0.25, 100)]),
    "range": (("range", 2 * HALF), ranges(1.0), [rule(0.0, 1.0, 200)]),
    "choice": (("choice", CHOICE), [(p / 2, q / 2) for mu in (0.75, 1.5)
                                    for p, q in normals(mu, 0.25)], [LONG, LONG]),
}  # fmt: skip


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_noise_is_between(name, n, back):
    release, some, rules = CASES[name]
    some = [(q, p) for p, q in some] if back else some
    p, q = outcomes_of(some, n)
    high, low = (
        composed([(release, n)], above=above, back=back, rules=rules, h=0.02)
        for above in (True, False)
    )
    for epsilon in (0.0, 0.15, 0.4):
        true = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
        least, most = float(low(epsilon)[0]), float(high(epsilon)[1])
        assert least - CUT <= true <= most + CUT
        assert most - least < 2e-2


def test_the_greatest_of_batches_is_cut_as_it_is():
    x, mu, n = np.linspace(-4, 9, 3000), 0.75, 6
    for s in (0, 1):
        some = cut(*(1 - ndtr(x - u * mu) * ndtr(x) ** (n - 1) for u in (s + 1, s)))
        low = bounds([(("greatest", MU2, s, n), 2)], 0.2, above=False, h=0.02,
                     rules=[rule(-4.0, 9.0, 900)])[0]  # fmt: skip
        assert low - CUT < brute(some, 2, 0.2) < low + 1e-2


def test_an_epoch_is_that_of_its_simulated_sums():
    # two steps: S = V + V', and the ratio of an outcome is S / 2
    x = np.linspace(-7.5, 7.5, 1201)
    mass = np.exp(-x * x / 2) / np.exp(-x * x / 2).sum()
    v = np.exp(0.8 * x - 0.32)
    q, ratio = np.outer(mass, mass).ravel(), np.add.outer(v, v).ravel() / 2
    line = {"a": 0.7.hex(), "h": 0.1.hex(), "y": 0.9.hex(), "step": 0.1.hex(), "turn": 1.5.hex(),
            "nodes": 8000, "first": 0.25.hex(), "length": 8192, "count": 800}  # fmt: skip
    release, size = ("allocation", Fraction(16, 25), 2), {"h": 0.05, "a": 0.5}
    for epsilon, back in ((0.2, False), (0.8, True)):
        sides = (q, q * ratio) if back else (q * ratio, q)
        true = float(np.maximum(sides[0] - math.exp(epsilon) * sides[1], 0).sum())
        high, low = (bounds([(release, 1)], epsilon, above=above, back=back, rules=[dict(line)],
                            **size)[above] for above in (True, False))  # fmt: skip
        assert low - 1e-5 <= true <= high + 1e-5
        assert high - low < 5e-2


# --- wrong ones are found


def nearest_above(some, h):
    """All of a part at the point above its loss: right above, wrong below."""
    found, sure = Counter(), arb(0)
    for p, q, *_ in some:
        if q > 0:
            found[math.ceil(float((p / q).log() / h))] += p
        else:
            sure += p
    return found, sure


def without_sure(some, h, split=lattice_pairs.split_above):
    return split(some, h)[0], arb(0)


@pytest.mark.parametrize(
    ("mutant", "name", "end"),
    [(without_sure, "split_above", 0), (nearest_above, "joined_below", 1)],
)
def test_a_wrong_law_is_found(mutant, name, end, monkeypatch):
    monkeypatch.setattr(lattice_pairs, name, mutant)
    found = [margins(random_pair(seed), seed)[end] for seed in range(40)]
    assert min(found) < -1e-6


SLACK = 0.013


@pytest.mark.parametrize(("shift", "end"), [(SLACK, 0), (-SLACK, 1)])
def test_a_forgotten_slack_is_found(shift, end):
    # losses are lowered, or raised, and epsilon is not
    def wrong(road):
        return lambda epsilon: road(epsilon + shift)

    pairs = [(random_pair(seed, sure=False), seed) for seed in range(40)]
    assert min(margins(*one, wrong, slack=SLACK)[end] for one in pairs) < -1e-6


def test_what_is_lost_of_a_small_size_is_found():
    missed = []
    for seed in range(40):
        pair, same = random_pair(seed, sure=False), {"above": True, "h": 0.3, "size": 4}
        true = brute([(float(p), float(q)) for p, q in pair[1]], 5, 0.2)
        few, high = bounds([(pair, 5)], 0.2, **same)  # without what was lost, and with it
        assert high > true - ROUND_OFF
        missed.append(true - few)
    assert max(missed) > 1e-3


# --- what has no lattice


def test_a_bound_on_moments_has_no_lattice():
    # a Gaussian of mu^2 = 2 rho costs 6.57 at 1e-5
    with pytest.raises(NoProof):
        bounds([(("zcdp", 2 * HALF, 0 * HALF), 1)], 4.6, above=True, rules=[LONG])


@pytest.mark.parametrize(
    ("release", "rules"),
    [
        (("pair", ((2 * HALF, 0 * HALF), (0 * HALF, 2 * HALF))), []),
        (("gaussian", Fraction(10**40)), [LONG]),
    ],
)
def test_losses_that_are_not_finite_are_refused(release, rules):
    with pytest.raises(NoProof):
        bounds([(release, 1)], 4.6, above=True, rules=rules)


def test_infinite_losses_of_a_pair_below_stay_infinite():
    outcomes = [(arb("0.25"), arb(0), None, None), (arb("0.75"), arb(1), arb(-1), arb(1))]
    masses, infinite = lattice_pairs.joined_below(outcomes, arb("0.5"))
    assert infinite == arb("0.25")
    assert sum(masses.values(), arb(0)).contains(arb("0.75"))
