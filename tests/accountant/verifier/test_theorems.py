"""What `docs/proofs/trusted-base.md` states, in floats: each theorem holds, and a wrong one fails.

A theorem is a function of a random case and of itself as published or changed: it returns by how
much its inequality holds, relative to its terms; an identity returns minus its error.
"""

import importlib
import itertools
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import iv, ndtr, ndtri
from scipy.stats import norm

import accountant.verifier
from tests.accountant.verifier import best_of_runs_theorems, lattice_theorems
from tests.accountant.verifier.theorem_tools import (
    chernoff_constant,
    g,
    gap,
    product,
    random_pair,
    same,
    transform,
)

CHECKER = Path(accountant.verifier.__file__).parent
ROUND_OFF = 1e-9
WRONG_CASES = 60  # random cases, one of which must show that a changed theorem is wrong


# --- the contour


def line_of(rng):
    """A pair, epsilon, abscissa and step of a line."""
    (p, q), a = random_pair(rng), rng.uniform(0.3, 3.0)
    return p, q, rng.uniform(-0.5, 0.8) * float(np.max(np.log(p / q))), a, rng.uniform(0.05, 20.0)


def trapezoid_sum(p, q, epsilon, a, h, count):
    """(h / 2 pi) sum over |j| < count of M(z) e^(-z eps) / (z (z + 1)), and a bound of the rest."""
    z = a + 1j * h * np.arange(count)
    terms = (transform(p, q, z) * np.exp(-z * epsilon) / (z * (z + 1))).real
    rest = float(transform(p, q, a)) * math.exp(-a * epsilon) / (math.pi * h * (count - 1))
    return h / (2 * math.pi) * (terms[0] + 2 * terms[1:].sum()), rest


def aliases(p, q, epsilon, a, h):
    period = 2 * math.pi / h
    k = np.arange(-math.ceil(40 / (a * period)), math.ceil(30 / period) + 2)
    return np.exp(a * k * period), g(p, q, epsilon + k * period), k


def poisson_summation(rng, changed):
    p, q, epsilon, a, h = line_of(rng)
    factors, values, k = aliases(p, q, epsilon, a, h)
    found, rest = trapezoid_sum(p, q, epsilon, a, h, 4000)
    total = values[k == 0].sum() if changed else factors @ values
    return (rest - abs(found - total)) / (rest + abs(found))


def truncation(rng, changed):
    p, q, epsilon, a, h = line_of(rng)
    few, rest = trapezoid_sum(p, q, epsilon, a, h, 12)
    many, less = trapezoid_sum(p, q, epsilon, a, h, 12_000)
    return gap(rest / (20 if changed else 1) + less, abs(few - many))


def aliases_below(rng, changed):
    p, q, epsilon, a, h = line_of(rng)
    factors, values, k = aliases(p, q, epsilon, a, h)
    period = 2 * math.pi / h
    bound = p.sum() / math.expm1(a * period)
    return gap(bound * (0.5 if changed else 1), (factors * values)[k < 0].sum())


def aliases_above(rng, changed):
    p, q, epsilon, a, h = line_of(rng)
    factors, values, k = aliases(p, q, epsilon, a, h)
    b, period = a + rng.uniform(0.05, 20.0), 2 * math.pi / h
    falls = math.exp(-(b - a) * period)
    size = float(transform(p, q, b)) * math.exp(-b * epsilon) * chernoff_constant(b)
    bound = size * (falls * falls if changed else falls) / (1 - falls)
    return gap(bound, (factors * values)[k > 0].sum())


def chernoff(rng, changed):
    (p, q), b = random_pair(rng), rng.uniform(0.05, 30.0)
    constant = chernoff_constant(b) * (1 - 1e-3 if changed else 1)
    # an atom at L is worst ln (1 + 1/b) below itself
    worst = np.log(p / q) - math.log1p(1 / b)
    alone = (1 - np.exp(worst - np.log(p / q))) * np.exp(-b * (np.log(p / q) - worst))
    bound = transform(p, q, b) * np.exp(-b * worst) * constant
    return min(float(np.min(bound - g(p, q, worst)) / bound.max()), float(constant - alone.max()))


def smoothed(p, q, epsilon, s):
    """delta with a further Gaussian loss of mean s/2 and variance s, and the density there."""
    mean, d = np.log(p / q) + s / 2, math.sqrt(s)
    x = (mean - epsilon) / d
    value = p @ (ndtr(x) - np.exp(epsilon - mean + s / 2) * ndtr(x - d))
    return float(value), float(p @ norm.pdf(x) / d)


def smoothing(rng, changed):
    (p, q), s = random_pair(rng), 10 ** rng.uniform(-6, 0)
    epsilon = rng.uniform(-1.0, 1.0) * float(np.max(np.log(p / q)))
    (above, density), true = smoothed(p, q, epsilon, s), float(g(p, q, epsilon))
    less = above - math.exp(s / 8) * s * density * (0.4 if changed else 1)
    return min(above - true + 1e-14, true - less + 1e-14)


def truncation_of_both(rng, changed):
    # of an atom where epsilon is, all phases are 1: nothing cancels
    s, a, h = 10 ** rng.uniform(-3, 0), rng.uniform(0.01, 1.0), rng.uniform(0.01, 0.3)
    first = int(rng.integers(1, 60))
    v = h * np.arange(first + 1, first + 60_000)
    fall = np.exp(-s * (v * v - (first * h) ** 2) / 2)
    size = 1 / np.abs((a + 1j * v) * (a + 1 + 1j * v)) + (2 if changed else 1) * s
    whole = h * fall @ size
    return gap(1 / (first * h), whole)


def laplace_decay(rng, changed):
    m, a, u = rng.uniform(0.05, 6.0), rng.uniform(0.05, 4.0), rng.uniform(0.3, 40.0)
    v = u * (1 + np.linspace(0, 3, 200))
    s = a + 0.5 + 1j * v
    value = np.abs(np.exp(-m / 2) * (np.cosh(s * m) + np.sinh(s * m) / (2 * s)))
    far = math.exp(-m / 2) * math.cosh((a + 0.5) * m) * (1 if changed else 1 + 1 / (2 * u))
    return gap(far, value.max())


# --- sampled Gaussians: a rule on a line, moved within the strip


def mixture(rng):
    """Shifts and weights above and below 0, and functions for ln R_f and ln R_g."""
    sides = [(np.sort(rng.uniform(0, 1.5, 3)), rng.dirichlet(np.ones(3))),
             (-np.sort(rng.uniform(0, 1.0, 2)), rng.dirichlet(np.ones(2)))]  # fmt: skip
    if rng.random() < 0.5:
        sides[1] = (np.zeros(1), np.ones(1))
    logs = [lambda x, s=s, w=w: np.log(np.exp(np.asarray(x)[..., None] * s - s * s / 2) @ w)
            for s, w in sides]  # fmt: skip
    return sides, logs


def on_the_line(logs, z, y, h=0.04):
    """The integral of phi R_f^(1+z) R_g^(-z) on Im x = y, and of its size."""
    x = np.arange(-12.0, 16.0, h) + 1j * y
    f, r = logs[0](x), logs[1](x)
    values = np.exp(f + z * (f - r) - x * x / 2) / math.sqrt(2 * math.pi)
    return values.sum() * h, np.abs(values).sum() * h


def moved_line(rng, changed):
    (first, second), logs = mixture(rng)
    a, v = rng.uniform(0.1, 2.0), rng.uniform(0.0, 6.0)
    wide = float(first[0].max() - second[0].min())
    y = rng.uniform(0.3, 0.9) * math.pi / (2 * wide)
    real, moved = on_the_line(logs, a + 1j * v, 0.0)[0], on_the_line(logs, a + 1j * v, y)[0]
    return 1e-6 - abs(real - (2 * moved if changed else moved)) / abs(on_the_line(logs, a, 0.0)[0])


def size_on_a_line(rng, changed):
    (first, second), logs = mixture(rng)
    a, v = rng.uniform(0.1, 2.0), rng.choice([0.0, 3.0])
    y = rng.uniform(0.1, 0.95) * math.pi / (2 * float(first[0].max() - second[0].min()))
    growth = math.exp(y * y / 2) * math.cos(y * float(np.ptp(second[0])) / 2) ** (-a)
    real, size = on_the_line(logs, a, 0.0)[0].real, on_the_line(logs, a + 1j * v, y)[1]
    return gap(real * (1 if changed else growth), size)


def trapezoid_on_a_strip(rng, changed):
    # int e^(-x^2/2 + c x): its size on Im x = +-y is e^(y^2/2) times the integral
    h, c = rng.uniform(0.8, 3.0), rng.uniform(-1.0, 1.0)
    y = 2 * math.pi / h * rng.uniform(0.4, 1.2)
    x = h * np.arange(-60, 61)
    true = math.sqrt(2 * math.pi) * math.exp(c * c / 2)
    error = abs(h * np.exp(-x * x / 2 + c * x).sum() - true)
    power = 4 if changed else 2
    bound = 2 * math.exp(y * y / 2) * true / math.expm1(power * math.pi * y / h)
    return (bound - error) / true + 1e-14


# --- laws of several releases


def composition(rng, changed):
    one, other, z = random_pair(rng), random_pair(rng), rng.uniform(0.1, 3.0)
    both = transform(*product(one, other), z)
    apart = transform(*one, z) * transform(*(one if changed else other), z)
    return same(both, apart)


def domination(rng, changed):
    (p, q), other = random_pair(rng), random_pair(rng)
    channel = rng.dirichlet(np.ones(3), len(p))  # the dominated pair is seen through a channel
    weak = p @ channel, q @ channel
    if changed:
        p, q = weak
        weak = random_pair(rng)
    t = np.linspace(-3, 3, 61)
    return float(np.min(g(*product((p, q), other), t) - g(*product(weak, other), t)))


def rounded_masses(rng, changed):
    (p, q), r, e = random_pair(rng), rng.uniform(0, 0.3), rng.uniform(0.0, 1.0)
    moved = p * np.exp(rng.choice([-r, r], p.size)), q * np.exp(rng.choice([-r, r], q.size))
    found = float(np.maximum(moved[0] - math.exp(e) * moved[1], 0).sum())
    bound = float(np.maximum(p - math.exp(e - 2 * r) * q, 0).sum())
    return bound * (1 if changed else math.exp(r)) - found


def poisson_sample(rng, changed):
    (p, q), rate, e = random_pair(rng), rng.uniform(0.05, 0.95), rng.uniform(0.0, 1.0)
    mixed = (1 - rate) * q + rate * p
    inner = e if changed else math.log1p(math.expm1(e) / rate)
    return -abs(np.maximum(mixed - math.exp(e) * q, 0).sum() - rate * g(p, q, inner))


def largest_loss(rng, changed):
    p, q = random_pair(rng)
    top = float(np.max(np.log(p / q)))
    inside = float(g(p, q, top - 1e-3))
    return min(-float(g(p, q, top * (0.5 if changed else 1) + 1e-12)), inside)


def smallest_test(rng, changed):
    # all events: the best is {L > t}, and sum (p - e^t q)_+ is its gain
    (p, q), t = random_pair(rng), rng.uniform(-1.0, 1.0)
    events = itertools.product((0, 1), repeat=p.size)
    gains = [float(np.array(one) @ (p - math.exp(t) * q)) for one in events]
    return -abs(max(gains) - float(g(p, q, 0.0 if changed else t)))


# --- random allocation and noise


def one_step_allocation(rng, changed):
    # (g(K) + t - K) / t with S one log-normal is the profile of a Gaussian
    mu, e = rng.uniform(0.2, 2.0), rng.uniform(0.0, 1.5)
    K, d = math.exp(e), -e / mu + (-1 if changed else 1) * mu / 2
    put = K * ndtr(-d + mu) - ndtr(-d)  # E (K - S)_+
    true = ndtr(mu / 2 - e / mu) - K * ndtr(-mu / 2 - e / mu)
    return -abs(put + 1 - K - true)


def rotated_log_normal(rng, changed):
    # |e^(-sV)| <= 1 on Im x = -y for Im s >= 0 and mu y <= pi / 2
    mu, s = rng.uniform(0.2, 2.0), rng.uniform(0, 3) + 1j * rng.uniform(0, 3)
    y = (math.pi if changed else rng.uniform(0, 1) * math.pi / 2) / mu
    x = np.linspace(-2, 2, 81) - 1j * y
    return float(1 - np.abs(np.exp(-s * np.exp(mu * x - mu * mu / 2))).max())


def geometric_tail(rng, changed):
    scale, far = rng.uniform(0.4, 6.0), int(rng.integers(1, 12))
    k = np.arange(far, far + 400)
    tail = np.exp(-((k / scale) ** 2) / 2).sum()
    first = math.exp(-((far / scale) ** 2) / 2)
    ratio = math.exp(-2 * far / scale**2 if changed else -far / scale**2)
    return gap(first / (1 - ratio), tail)


def theta_constant(rng, changed):
    tau, y = rng.uniform(0.3, 1.5), rng.uniform(0, 1)
    values = np.exp(-((y - np.arange(-40, 41)) ** 2) / (2 * tau * tau)).sum()
    share = abs(values / (math.sqrt(2 * math.pi) * tau) - 1)
    eta = 2 * math.exp(-2 * (math.pi * tau) ** 2) * (0.1 if changed else 1)
    return eta * (1 + 2 * math.exp(-6 * (math.pi * tau) ** 2)) + 1e-14 - share


def narrower_gaussian(rng, changed):
    scale, steps, e = rng.uniform(2.3, 9.0), int(rng.integers(1, 6)), rng.uniform(0.0, 1.5)
    k = np.arange(-200, 201)
    f = np.exp(-((k / scale) ** 2) / 2)
    p, q = f / f.sum(), np.exp(-(((k - steps) / scale) ** 2) / 2) / f.sum()
    true = np.maximum(p - math.exp(e) * q, 0).sum()
    mu = steps / math.sqrt(scale**2 - (0 if changed else 4))
    above = ndtr(mu / 2 - e / mu) - math.exp(e) * ndtr(-mu / 2 - e / mu)
    return float(above * (1 + 1e-14) - true + 1e-15)


def sums_by_integrals(rng, changed):
    # of e^(-k^2 / 2w^2), k <= m: not below the integral to m, less one term where m > 0
    w, m = rng.uniform(0.5, 30.0), int(rng.integers(-40, 41))
    total = np.exp(-((np.arange(m - 400, m + 1) / w) ** 2) / 2).sum()
    to_m, to_next = math.sqrt(2 * math.pi) * w * ndtr(np.array([m, m + 1]) / w)
    low = to_next if changed else to_m - (m > 0)
    return float(min(total - low, to_next - total if m < 0 else 1.0)) + 1e-12


def geometric_noise(rng, changed):
    w, steps, e = rng.uniform(0.3, 5.0), int(rng.integers(1, 9)), rng.uniform(0.0, 2.0)
    k = np.arange(-400, 401)
    r = math.exp(-1 / w)
    f = (1 - r) / (1 + r) * r ** np.abs(k.astype(float))
    q = (1 - r) / (1 + r) * r ** np.abs(k - steps).astype(float)
    m = np.arange(steps + changed * 2)
    at = 1 - (r ** (m + 1.0 + changed) + np.exp(e - (steps - m) / w)) / (1 + r)
    return -abs(np.maximum(f - math.exp(e) * q, 0).sum() - max(0.0, at.max(initial=0.0)))


def worst_odds(rng, changed):
    r = rng.uniform(0.2, 4.0)
    e = rng.uniform(0.0, 0.95) * r
    gaps = np.linspace(-20, 20, 2001)

    def stick(x):
        return 1 / (1 + np.exp(-x)) - math.exp(e) / (1 + np.exp(r - x))

    t = (e + r) / 2 if not changed else r / 2
    best = math.log(math.expm1(r - t) / -math.expm1(-t))
    return float(stick(best) - stick(gaps).max()) + 1e-12


def staircase_pair(rng, changed):
    share, f, e = rng.uniform(0.05, 0.95), rng.uniform(0.2, 3.0), rng.uniform(0.0, 1.0)
    b, cells = math.exp(-f), 4000
    x = (np.arange(-30 * cells, 31 * cells) + 0.5) / cells
    level = [b ** (np.floor(np.abs(x - v) - share) + 1) for v in (0, 1)]
    a = (1 - b) / (2 * (share + b * (1 - share)))
    true = a * np.maximum(level[0] - math.exp(e) * level[1], 0).sum() / cells
    p = 0.5 + a * (max if changed else min)(share, 1 - share)
    return 2e-3 - abs(true - max(0.0, p * (1 - math.exp(e - f))))


def word_ranges(rng, changed):
    # rejection from ranges at least c w_k long makes P(k) in proportion to w_k, exactly
    weights = [Fraction(int(x), 97) for x in rng.integers(1, 97, 4)]
    c, ranges = 50, [math.ceil(50 * w) for w in weights]
    if changed:
        ranges[0] = math.floor(c * weights[0]) // 2
    accepted = [min(c * w, size) for w, size in zip(weights, ranges, strict=True)]
    return -float(max(abs(x / sum(accepted) - w / sum(weights))
                      for x, w in zip(accepted, weights, strict=True)))  # fmt: skip


def summed_noise_case(rng):
    """The masses of -60 ... 60 of the sum of a few shares of noise, and the variance."""
    k = np.arange(-60, 61)
    if rng.random() < 0.5:
        variance = rng.uniform(0.2, 6.0)
        return np.exp(-variance) * iv(np.abs(k), variance), variance, math.inf
    scale, terms = rng.uniform(0.3, 1.4), int(rng.integers(1, 5))
    share = np.exp(-((k / scale) ** 2) / 2)
    total = np.ones(1)
    for _ in range(terms):
        total = np.convolve(total, share / share.sum())
    middle = total.size // 2
    return total[middle - 60 : middle + 61], terms * scale**2, scale


def curvature_at_zero(rng, changed):
    """The curvature of -ln P is greatest at 0; changed: at 1."""
    masses, _, _ = summed_noise_case(rng)
    logs = np.log(masses[60 : 60 + 8])
    curvature = 2 * logs - np.append(logs[1], logs[:-1]) - np.append(logs[1:], -math.inf)
    greatest = curvature[1 if changed else 0]
    return float(np.min(greatest - curvature[:-1][masses[61:68] > 1e-290])) / greatest


def summed_noise(rng, changed):
    """Normal deviates of P(k < t) rise by at most mu for each t; changed: mu^2 is the curvature."""
    masses, _, _ = summed_noise_case(rng)
    c = 2 * math.log(masses[60] / masses[61])
    squared = 6 * (1 - math.sqrt(1 - c / 3)) if c <= 3 else 2 * math.pi * c
    mu = math.sqrt(c if changed else squared)
    tails = np.cumsum(masses[::-1])[::-1][60:]
    z = -ndtri(tails[tails > 1e-200])
    steps = np.append(2 * z[1], np.diff(z)[1:])  # from t = 0 the step is symmetric
    return 1 - float(np.max(steps)) / mu


def waves_of_a_sum(rng, changed):
    """Sums of n discrete Gaussians are one but for 10 n e^(-pi^2 s^2); changed: four times that."""
    scale, terms = rng.uniform(0.6, 0.9), int(rng.integers(2, 5))
    k = np.arange(-60, 61)
    share, total = np.exp(-((k / scale) ** 2) / 2), np.ones(1)
    for _ in range(terms):
        total = np.convolve(total, share / share.sum())
    middle = total.size // 2
    one = np.exp(-(k**2) / (2 * terms * scale**2))
    near = np.abs(k) < 5 * scale
    ratios = total[middle - 60 : middle + 61][near] / (one / one.sum())[near]
    t = 10 * terms * math.exp(-((math.pi * scale) ** 2) * (4 if changed else 1))
    return t - float(np.max(np.abs(ratios - 1)))


def sub_gaussian_shares(rng, changed):
    """P(|k| >= d) <= 2 e^(-d^2 / 2V) of discrete Gaussians; changed: of half the variance."""
    scale, d = rng.uniform(0.5, 6.0), int(rng.integers(1, 20))
    k = np.arange(-120, 121)
    masses = np.exp(-((k / scale) ** 2) / 2)
    tail = masses[np.abs(k) >= d].sum() / masses.sum()
    return 1 - tail / (2 * math.exp(-(d**2) / (1 if changed else 2) / scale**2))


THEOREMS = [
    poisson_summation, truncation, aliases_below, aliases_above, chernoff, smoothing,
    truncation_of_both, laplace_decay,
    moved_line, size_on_a_line, trapezoid_on_a_strip, composition, domination, rounded_masses,
    poisson_sample, largest_loss, smallest_test, one_step_allocation,
    rotated_log_normal, geometric_tail, theta_constant, narrower_gaussian, sums_by_integrals,
    geometric_noise, worst_odds, staircase_pair, word_ranges, curvature_at_zero, summed_noise,
    waves_of_a_sum, sub_gaussian_shares, *lattice_theorems.THEOREMS,
    *best_of_runs_theorems.THEOREMS,
]  # fmt: skip


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda one: one.__name__)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_theorem_holds(theorem, seed):
    assert theorem(np.random.default_rng(seed), False) >= -ROUND_OFF


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda one: one.__name__)
def test_a_changed_theorem_is_wrong(theorem):
    cases = (theorem(np.random.default_rng(seed), True) for seed in range(WRONG_CASES))
    assert any(margin < -ROUND_OFF for margin in cases)


def test_the_page_names_every_theorem_and_no_other():
    root = Path(__file__).parents[3]
    page = (root / "docs" / "proofs" / "trusted-base.md").read_text(encoding="utf-8")
    rows = [line.replace(r"\|", "").split("|") for line in page.splitlines() if line[:2] == "| "]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[2])}
    assert named == {theorem.__name__ for theorem in THEOREMS}
    for place in {place for row in rows for place in re.findall(r"`(\w+\.\w+)`", row[3])}:
        module, name = place.split(".")
        assert hasattr(importlib.import_module(f"accountant.verifier.{module}"), name), place
    files = {path.name for path in CHECKER.glob("*.py") if not path.name.startswith("__")}
    listed = {name for row in rows for name in re.findall(r"`(?:[\w/]+/)?(\w+\.py)`", row[2])}
    assert files == listed


def test_the_checker_names_every_theorem_where_it_is_applied():
    sources = "".join(path.read_text(encoding="utf-8") for path in CHECKER.glob("*.py"))
    clauses = re.findall(r"[Tt]heorems? \(([^)]*)", sources)
    named = {name for clause in clauses for name in re.findall(r"`(\w+)`", clause)}
    assert named == {theorem.__name__ for theorem in THEOREMS} - {"rounded_masses"}
