"""Theorems of pairs on a lattice, of samples and of bounds, in floats: see `test_theorems.py`."""

import itertools
import math

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom, norm

from tests.accountant.verifier.theorem_tools import (
    chernoff_constant,
    g,
    gap,
    product,
    random_pair,
    same,
    transform,
)

# --- pairs on a lattice


def sticks(p, q, t):
    """Sum (p - e^t q)_+ at every t, q = 0 included."""
    return np.maximum(p - np.exp(np.asarray(t)[..., None]) * q, 0).sum(axis=-1)


def cell(rng):
    """Outcomes within a cell of a lattice of step h, and those of another release."""
    h, k = rng.uniform(0.05, 1.0), int(rng.integers(-2, 3))
    loss, p = h * (k + rng.uniform(0, 1, 4)), rng.dirichlet(np.ones(4)) / 3
    return h, k, p, p * np.exp(-loss), random_pair(rng), np.linspace(-3, 4, 71)


def split_above(rng, changed):
    # to both ends of the cell, p and q kept; changed: all to the nearer end
    h, k, p, q, other, t = cell(rng)
    low, high = math.exp(-h * k), math.exp(-h * (k + 1))
    above = (p.sum() * low - q.sum()) / (low - high)
    if changed:
        above = p.sum() if math.log(p.sum() / q.sum()) / h - k > 0.5 else 0.0
    ends = np.array([p.sum() - above, above])
    both = ends, ends * np.array([low, high])
    kept = 0.0 if changed else same(both[1].sum(), q.sum())
    beside = sticks(*product(both, other), t) - sticks(*product((p, q), other), t)
    return min(kept, float((sticks(*both, t) - sticks(p, q, t)).min()), float(beside.min()))


def joined_below(rng, changed):
    # parts before a point, and a share of the last one, with that ratio as their mean; the rest
    # of what is before it goes a point down (changed: to the point)
    h, k, p, q, other, t = cell(rng)
    ratio = math.exp(h * k)
    before = p * np.exp(h * (rng.uniform(0, 1, 4) - k))
    lost, gained = ratio * before.sum() - p.sum(), p.sum() - ratio * q.sum()
    share, rest = min(1.0, lost / gained), 0.0 if changed else max(0.0, 1 - gained / lost)
    at = (1 - rest) * p.sum() + share * p.sum()
    left = (
        np.array([at, rest * p.sum()]),
        np.array([at / ratio, rest * p.sum() * math.exp(h) / ratio]),
    )
    left = tuple(np.append(one, (1 - share) * x) for one, x in zip(left, (p, q), strict=True))
    true = np.append(p, p), np.append(before, q)
    beside = sticks(*product(true, other), t) - sticks(*product(left, other), t)
    return min(float((sticks(*true, t) - sticks(*left, t)).min()), float(beside.min()))


def lowered_losses(rng, changed):
    # q e^s in place of q lowers a loss by s: n of them and epsilon by n s
    (p, q), n, s = random_pair(rng), int(rng.integers(1, 4)), rng.uniform(-1, 1)
    e, one, other = rng.uniform(-0.5, 1.0), (np.ones(1), np.ones(1)), (np.ones(1), np.ones(1))
    for _ in range(n):
        one, other = product(one, (p, q)), product(other, (p, q * math.exp(s)))
    return same(
        float(sticks(*one, e)) + 1, float(sticks(*other, e - (s if changed else n * s))) + 1
    )


def left_out_of_the_tilted(rng, changed):
    # where less is kept of each outcome than p e^{aL} / M, what is lost costs this at most
    (p, q), a, e = random_pair(rng), rng.uniform(0.1, 9.0), rng.uniform(-0.5, 0.8)
    loss = np.log(p / q)
    if rng.random() < 0.5:
        e = float(loss.max()) - math.log1p(1 / a)  # worst for one outcome
    kept, moment = rng.uniform(0, 1, p.size), float(transform(p, q, a))
    lost = 1 - float((p * kept * np.exp(a * loss)).sum()) / moment
    bound = lost * moment * math.exp(-a * e) * chernoff_constant(a) * (0.3 if changed else 1)
    return bound - float(sticks(p, q, e) - sticks(p * kept, q * kept, e))


# --- samples


def normal_cells(weights, shifts, x):
    """Masses of a mixture of N(s, 1) between points."""
    tails = ndtr(np.subtract.outer(shifts, x)).T @ np.asarray(weights)
    return -np.diff(np.concatenate([[np.sum(weights)], tails, [0.0]]))


def kept_records(rng, changed):
    # P(the record is in the batch and another would be) is (B/n) P(Bin(n, q) > B)
    n, rate = int(rng.integers(2, 7)), rng.uniform(0.1, 0.9)
    B, found = int(rng.integers(1, n)), 0.0
    for coins in itertools.product((0, 1), repeat=n):
        chance = math.prod(rate if c else 1 - rate for c in coins)
        found += (
            chance * coins[0] * min(1.0, B / sum(coins)) * (sum(coins[1:]) >= B) if coins[0] else 0
        )
    return -abs(found - B / n * float(binom.sf(B - (1 if changed else 0), n, rate)))


def last_place(rng, changed):
    # all samples of n records, contributions x to the sum; at most B of them stay
    n, B, rate, mu = 4, 2, rng.uniform(0.1, 0.9), rng.uniform(0.3, 2.0)
    x, grid, e = rng.uniform(-mu, mu, n), np.linspace(-12, 12, 1200), rng.uniform(-0.3, 1.0)
    x[0], x[1:] = mu, x[1:] if rng.random() < 0.3 else -mu
    laws = [np.zeros(grid.size + 1), np.zeros(grid.size + 1)]
    for law, records in zip(laws, (range(n), range(1, n)), strict=True):
        for coins in itertools.product((0, 1), repeat=len(records)):
            drawn = [r for r, c in zip(records, coins, strict=True) if c]
            chance = rate ** len(drawn) * (1 - rate) ** (len(records) - len(drawn))
            sets = list(itertools.combinations(drawn, min(B, len(drawn))))
            shifts = [x[list(some)].sum() for some in sets]
            law += normal_cells(np.full(len(sets), chance / len(sets)), shifts, grid)
    # one place or none is left for a record that stays: the others are at 0 or -mu, it is at mu
    one_place, full = (float(binom.sf(k - 1, n - 1, rate)) for k in (B - 1, B))
    last, kept = one_place - full, B / n * float(binom.sf(B, n, rate)) / rate
    pairs = []
    for y in (0.0 if changed else -mu, *([mu] if e < 0 else [])):
        others = normal_cells([last, full], [0, y], grid)
        with_record = normal_cells(
            [(1 - rate) * last, full - rate * kept, rate * (last + kept)], [0, y, mu], grid
        )
        pairs.append(sticks(with_record, others, e))
    added = normal_cells([1 - rate, rate], [0, mu], grid), normal_cells([1], [0], grid)
    above = (1 - one_place) * sticks(*added, e) + max(pairs)
    return float(above - sticks(*laws, e)) + 1e-4


def symmetrised_sample(rng, changed):
    # a pair alike in both directions, sampled; its positive losses, their mirror image and the rest
    m, rate, e = rng.uniform(0.2, 2.0), rng.uniform(0.05, 0.95), rng.uniform(-1.0, 1.0)
    p, q = (
        np.array([math.exp(m), 1.0]) / (1 + math.exp(m)),
        np.array([1.0, math.exp(m)]) / (1 + math.exp(m)),
    )
    mixed = (1 - rate) * q + rate * p
    up, down = mixed[0], q[0]
    rest = 1 - up - down
    found = float(sticks(np.array([up, down, rest]), np.array([down, up, rest]), e))

    def profile(e):
        return rate * float(sticks(p, q, math.log1p(math.expm1(e) / rate)))

    below_0 = -math.expm1(e) + (0 if changed else math.exp(e) * profile(max(-e, 0.0)))
    return -abs(found - (profile(e) if e >= 0 else below_0))


def sampled_group(rng, changed):
    # b records in P alone and c in Q alone, each sampled: no contributions cost more than these
    b, c = int(rng.integers(0, 4)), int(rng.integers(1, 3))
    rate, mu, grid = rng.uniform(0.1, 0.9), rng.uniform(0.2, 1.0), np.linspace(-14, 14, 900)
    x, e = rng.uniform(-mu, mu, b + c), rng.uniform(-0.5, 1.0)
    if rng.random() < 0.5:
        x = mu * np.sign(np.arange(b + c) - b + 0.5) * -1
    sides = []
    for some in (x[:b], x[b:]):
        hits = list(itertools.product((0, 1), repeat=some.size))
        chances = [math.prod(rate if h else 1 - rate for h in one) for one in hits]
        sides.append(normal_cells(chances, [float(some @ np.array(one)) for one in hits], grid))
    worst = [normal_cells(binom.pmf(np.arange(n + 1), n, rate), s * mu * np.arange(n + 1), grid)
             for n, s in ((b, 1), (c, 0 if changed else -1))]  # fmt: skip
    return float(sticks(*worst, e) - sticks(*sides, e)) + 1e-4


def greatest_batch(rng, changed):
    # the law of the greatest output is seen through the batches: its profile is below theirs
    s, mu, e = int(rng.integers(0, 2)), rng.uniform(0.3, 2.0), rng.uniform(0.0, 1.0)
    shifts, x, grid = [(s + 1) * mu, s * mu], np.linspace(-6, 10, 500), np.linspace(-4, 8, 1500)
    sides = [norm.pdf(x) * norm.pdf(x - u)[:, None] for u in shifts]
    sides = [(one + one.T) / 2 * (x[1] - x[0]) ** 2 for one in sides]  # two batches
    tails = [1 - ndtr(grid - u) * (1 if changed and u == s * mu else ndtr(grid)) for u in shifts]
    cells = [-np.diff(np.concatenate([[1.0], one, [0.0]])) for one in tails]
    return float(sticks(*(one.ravel() for one in sides), e) - sticks(*cells, e)) + 1e-4


# --- bounds that stand for a mechanism


def two_points(e0, t):
    """The pair of losses t and t - e0."""
    p = math.expm1(t - e0) / math.expm1(-e0)
    return np.array([p, 1 - p]), np.array([p * math.exp(-t), 1 - p * math.exp(-t)])


def bounded_range(rng, changed):
    # the best two-point pair, at t = (e + e0) / 2; no pair of that range has more
    e0 = rng.uniform(0.1, 4.0)
    e = rng.uniform(0.0, 1.0) * e0
    delta = math.expm1((e - e0) / 2) ** 2 / (1 if changed else -math.expm1(-e0))
    best = max(float(sticks(*two_points(e0, t), e)) for t in np.linspace(0, e0, 101))
    loss, q = rng.uniform(0, e0, 4), rng.dirichlet(np.ones(4))
    loss -= math.log(float(q @ np.exp(loss)))
    at = float(sticks(*two_points(e0, (e + e0) / 2), e))
    return min(same(delta, at), delta - best + 1e-12, delta - float(sticks(q * np.exp(loss), q, e)))


def tails_of_a_range(rng, changed):
    # Q's tail is the slope of delta in -e^eps, and P's is delta + e^eps times it
    e0 = rng.uniform(0.1, 4.0)
    e, d = rng.uniform(0.05, 0.95) * e0, 1e-5
    k, whole = math.exp(e / 2), math.exp(e0 / 2)
    u = (1 - k / whole) / (1 - 1 / whole**2)
    q, p = u / (whole if changed else k * whole), u * (1 - k / whole) + u * k / whole
    ends = [math.expm1((x - e0) / 2) ** 2 / -math.expm1(-e0) for x in (e - d, e + d)]
    slope = (ends[0] - ends[1]) / (2 * math.exp(e) * math.sinh(d))
    return 1e-8 - abs(slope - q) - abs(math.fsum(ends) / 2 + math.exp(e) * slope - p)


def range_as_moments(rng, changed):
    # any pair of that range has M(a) <= e^{a (a + 1) e0^2 / 8}, and two points come close
    e0, a = rng.uniform(0.05, 4.0), rng.uniform(0.05, 20.0)
    some = [transform(*two_points(e0, t), a) for t in np.linspace(0.01, 0.99, 21) * e0]
    return a * (a + 1) * e0**2 / (9 if changed else 8) - math.log(float(max(some)))


def moments_of_zcdp(rng, changed):
    # D_{a + 1} <= xi + (a + 1) rho; the least of these is known, and delta is Chernoff's
    (p, q), a = random_pair(rng), rng.uniform(0.05, 20.0)
    orders = np.append(np.linspace(0.01, 25.0, 200), a)
    renyi, xi = np.log(transform(p, q, orders)) / orders, rng.uniform(0, 0.05)
    rho = float(np.max((renyi - xi) / (orders + 1)))
    moment = math.exp(a * xi + a * (a + (0 if changed else 1)) * rho)
    e = float(np.log(p / q).max()) * rng.uniform(0.2, 1.0)
    bound = moment * math.exp(-a * e) * chernoff_constant(a)
    return min(gap(moment, float(transform(p, q, a))) + 1e-12, bound - float(g(p, q, e)))


# --- random allocation: tails


def log_normals(s, mu, turn=0.0):
    """E e^(-sV), V = e^(mu x - mu^2 / 2), on Im x = -turn."""
    x = np.linspace(-12, 12, 1201) - 1j * turn
    weights = np.exp(-x * x / 2) * 0.02 / math.sqrt(2 * math.pi)
    return np.exp(-np.multiply.outer(s, np.exp(mu * x - mu * mu / 2))) @ weights


def tails_of_sums(rng, changed):
    # (h / 2 pi) sum e^(sK) phi^2 / s is P(S < K), and aliases of at most x / (1 - x), x = e^(-aT)
    mu, h, a, K = (
        rng.uniform(0.4, 1.2),
        rng.uniform(0.3, 0.6),
        rng.uniform(0.1, 0.4),
        rng.uniform(1, 4),
    )
    turn = 0.95 * math.pi / 2 / mu / 2
    s = a + 1j * h * np.arange(1 if changed else 2400)
    terms = (np.exp(s * K) * log_normals(s, mu, turn) ** 2 / s).real
    found = h / (2 * math.pi) * (2 * terms.sum() - terms[0])
    x = np.linspace(-9, 9, 6001)  # of one of them, given the other
    left = np.maximum(K - np.exp(mu * x - mu * mu / 2), 1e-300)
    true = float(norm.pdf(x) @ ndtr(np.log(left) / mu + mu / 2)) * 0.003
    falls = math.exp(-a * 2 * math.pi / h)
    return min(found - true, true + falls / (1 - falls) - found) + 1e-5


def far_on_a_line(rng, changed):
    # phi(r) <= e^(mu^2) / r; beyond U phi^t / s adds at most this, by a turned line
    mu, a, u, d = (
        rng.uniform(0.4, 1.5),
        rng.uniform(0.05, 1.0),
        rng.uniform(3.0, 30.0),
        rng.uniform(0.2, 1.0),
    )
    r = 10 ** rng.uniform(-1, 3)
    ratio = gap(
        (0.2 if changed else 1) * math.exp(mu * mu) / r,
        float(log_normals(np.array([r]), mu)[0].real),
    )
    v = u * np.exp(np.linspace(0, 5, 400))
    turned = math.exp(d * d / 2) * log_normals(a * math.cos(mu * d) + v * math.sin(mu * d), mu).real
    size = np.abs(log_normals(a + 1j * v, mu, 0.7 / mu))
    whole = float(np.trapezoid(size**2 / v, v))
    bound = float(turned[0]) * math.exp(d * d / 2 + mu * mu) / (u * math.sin(mu * d))
    return min(ratio, float((turned - size).min()) + 1e-8, gap(bound, whole))


# --- sets of pairs


def pairs_of_a_set(rng):
    """Two or three pairs of finite losses."""
    return [random_pair(rng) for _ in range(int(rng.integers(2, 4)))]


def greatest_at_points(pairs, x):
    """The pair whose delta at the points x = e^eps is the greatest, and straight between them."""
    values = np.max([sticks(p, q, np.log(x)) for p, q in pairs], axis=0)
    slopes = np.diff(np.append(1.0, values)) / np.diff(np.append(0.0, x))
    q = np.diff(np.append(slopes, 0.0))
    return np.append(x * q, values[-1]), np.append(q, 0.0)


def chords_of_a_set(rng, changed):
    # delta is convex in e^eps; changed: the losses of the first pair alone
    pairs, x = pairs_of_a_set(rng), np.exp(np.linspace(-4, 4, int(rng.integers(9, 40))))
    above = greatest_at_points(pairs[:1] if changed else pairs, x)
    t = np.linspace(-5, 5, 101)
    margins = [sticks(*above, t) - sticks(p, q, t) for p, q in pairs]
    return float(min(np.min(margins), np.min(above[0])))


def chosen_by_answers(rng, changed):
    # the second pair is chosen by the first answer; changed: bounded by the best fixed path
    pairs, x, t = pairs_of_a_set(rng), np.exp(np.linspace(-4, 4, 200)), rng.uniform(-0.5, 1.0)
    gains = []
    for p, q in pairs:
        second = np.max([sticks(a, b, t - np.log(p / q)) for a, b in pairs], axis=0)
        gains.append(float(p @ second))
    above = greatest_at_points(pairs, x)
    bound = float(sticks(*product(above, above), t))
    fixed = max(float(sticks(*product(one, other), t)) for one in pairs for other in pairs)
    return (fixed if changed else bound) - max(gains)


def shifted_less(rng, changed):
    # log-concave noise: the best event is a half-line; changed: two humps
    density = (lambda x: np.exp(-np.abs(x))) if rng.random() < 0.5 else norm.pdf
    humps = lambda x: norm.pdf(x) + norm.pdf(x - 4)  # noqa: E731
    made = humps if changed else density
    x = np.linspace(-30, 40, 7001)
    less, more = np.sort(rng.uniform(0.1, 6.0, 2))
    t = np.linspace(-2, 3, 21)
    laws = [made(x - s) / made(x).sum() for s in (0.0, less, more)]
    return float((sticks(laws[2], laws[0], t) - sticks(laws[1], laws[0], t)).min())


THEOREMS = [
    chords_of_a_set, chosen_by_answers, shifted_less,
    split_above, joined_below, lowered_losses, left_out_of_the_tilted, kept_records, last_place,
    symmetrised_sample, sampled_group, greatest_batch, bounded_range, tails_of_a_range,
    range_as_moments, moments_of_zcdp, tails_of_sums, far_on_a_line,
]  # fmt: skip
