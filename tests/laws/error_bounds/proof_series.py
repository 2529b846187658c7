"""Coarse lines of the checker of proofs: few nodes, far apart, and short rules.

Each law computes the truth on another road, and asks whether the interval still contains it.
"""

import math
from fractions import Fraction

import numpy as np
from flint import acb, arb, ctx
from scipy.special import ndtr

from accountant.verifier import contour
from accountant.verifier.allocation import EpochTransform, epoch_tails, read_line
from accountant.verifier.balls import Budget
from accountant.verifier.document import Fields, NoProof
from accountant.verifier.moments import (
    FiniteMoments,
    GaussianMoments,
    LaplaceMoments,
    MixtureMoments,
    log_density_ratios,
    mixture_sides,
)

ROUND_OFF = 1e-12  # of the truths, which are floats


def fields(**given):
    """Fields of an entry; floats as the checker reads them."""
    hexadecimal = {
        key: value.hex() if isinstance(value, float) else value for key, value in given.items()
    }
    return Fields(hexadecimal, "an entry")


def claim_violation(bounds, truth, case):
    """Say that a truth is not between two balls, with room for the truth's own round-off."""
    low, high = (float(one) for one in (bounds[0].lower(), bounds[1].upper()))
    room = ROUND_OFF * (1 + abs(truth))
    return "" if low - room <= truth <= high + room else f"{case}: {truth} not in [{low}, {high}]"


# --- contours


def _finite(rng):
    """A pair of two or three outcomes, at times with one that Q never has."""
    p, q = rng.dirichlet(np.full(int(rng.integers(2, 4)), 1.5), 2)
    if rng.random() < 0.3:
        p = np.append(0.8 * p, 0.2)
        q = np.append(q, 0.0)
    law = [(arb(a), arb(b)) for a, b in zip(p.tolist(), q.tolist(), strict=True)]
    some = q > 0

    def delta(epsilon):
        return float(np.maximum(p[some] - math.exp(epsilon) * q[some], 0).sum())

    return FiniteMoments(law, arb(1)), delta, float(np.max(np.log(p[some] / q[some])))


def _gaussian(rng):
    mu = float(rng.uniform(0.2, 2.0))

    def delta(epsilon):
        far = math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
        return float(ndtr(mu / 2 - epsilon / mu) - far)

    return GaussianMoments(arb(mu) ** 2), delta, mu


def _laplace(rng):
    m = float(rng.uniform(0.2, 3.0))

    def delta(epsilon):
        return -math.expm1((min(epsilon, m) - m) / 2) if epsilon > -m else -math.expm1(epsilon)

    return LaplaceMoments(arb(m)), delta, m


def contour_violation(seeds=range(300)):
    """A line of few nodes, for one release of each kind."""
    with ctx.workprec(128):
        for seed in seeds:
            rng = np.random.default_rng(seed)
            part, delta, size = (_finite, _gaussian, _laplace)[seed % 3](rng)
            epsilon = float(rng.uniform(-0.8, 1.0)) * size
            a, h = float(rng.uniform(0.2, 3.0)), float(10 ** rng.uniform(-1.5, 1.0))
            entry = fields(
                a=a, b=0.0 if seed % 5 == 0 else a + float(10 ** rng.uniform(-1.5, 1.5)), h=h,
                nodes=int(rng.integers(2, 12)),
                smooth=0.0 if rng.random() < 0.5 else float(10 ** rng.uniform(-4, 0)),
            )  # fmt: skip
            Budget.remaining = math.inf
            found = contour.contour([(part, 1)], entry, epsilon)
            wrong = claim_violation(found, delta(epsilon), f"seed {seed}")
            if wrong:
                return wrong
    return ""


# --- transforms of one release: what is left out of a rule, and how they decay


def _mixture_case(rng):
    """A mixture on either side, a coarse rule, and a real part."""

    def side(most, sign):
        few = int(rng.integers(1, 3))
        weights = rng.integers(1, 9, few)
        shifts = sign * (rng.permutation(8)[:few] + 1)
        shifts[0] *= few == 1 or rng.random() < 0.5
        total = int(weights.sum())
        return [(Fraction(int(w), total), Fraction(int(s), 8) * most)
                for w, s in zip(weights, shifts, strict=True)]  # fmt: skip

    away = side(Fraction(1), -1) if rng.random() < 0.6 else [(Fraction(1), Fraction(0))]
    sides = mixture_sides(1, side(Fraction(2), 1), away)
    wide = float(max(s for _, s in sides[0]) - min(s for _, s in sides[1]))
    rule = {
        "y": float(rng.uniform(0.2, 0.99)) * math.pi / 2 / wide,
        "h": float(10 ** rng.uniform(-1, 0.2)),
        "first": -int(rng.integers(0, 8)), "last": int(rng.integers(0, 8)),
    }  # fmt: skip
    a = float(10 ** rng.uniform(-1, 1.3))
    most = max(float(s) for _, s in sides[0])
    least = min(float(s) for _, s in sides[1])
    centre = (1 + a) * most - a * least
    rule["far"] = max(rule["last"], math.ceil(centre / rule["h"]) + int(rng.integers(1, 4)))
    return sides, rule, a


def _exact_moment(sides, z):
    """Return M(z) by Arb's own integration."""

    def integrand(x, _):
        f, g = log_density_ratios(sides, x)
        return (f + z * (f - g) - x * x / 2).exp() / (2 * arb.pi()).sqrt()

    return acb.integral(integrand, -24, 30)


# random cases, among which are some that need each term of the bound
MIXTURES = (1, 5, 6, 9, 15, 24, 28, 29, 74, 123)


def mixture_violation(seeds=MIXTURES):
    """Rules of a mixture's transform with few nodes; and its size beyond a frequency."""
    with ctx.workprec(64):
        for seed in seeds:
            rng = np.random.default_rng(seed)
            sides, rule, a = _mixture_case(rng)
            Budget.remaining = math.inf
            own = {name: fields(**rule).remaining for name in ("line", "decay")}
            h = float(rng.uniform(0.05, 3.0))
            part = MixtureMoments(sides, Fields(dict(own), "rules"))
            try:
                line = part.line(a, h, 2)
                size = MixtureMoments(sides, Fields(dict(own), "rules")).decay(a, arb(h))
            except NoProof:
                continue
            true = [_exact_moment(sides, acb(a, h * j)) for j in (0, 1)]
            if not all(x.overlaps(y) for x, y in zip(line, true, strict=True)):
                return f"seed {seed}: {true} are not in {line}"
            if not size >= abs(true[1]).lower():
                return f"seed {seed}: {abs(true[1])} is above {size}"
    return ""


class _Rule:
    """A rule of a mixture, in floats: phases of Q cancel most at a node that is often left out."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        wide, shift = float(rng.uniform(0.1, 2.0)), float(rng.choice([0.0, rng.uniform(0, 1.5)]))
        near = -float(rng.choice([0.0, rng.uniform(0, 0.5)]))
        self.a, self.h = float(10 ** rng.uniform(-1, 0.9)), float(10 ** rng.uniform(-1.3, 0))
        self.y = float(rng.uniform(0.5, 0.999)) * math.pi / 2 / (wide + shift - near)
        centre = int(((1 + self.a) * shift + self.a * (wide - near)) / self.h)
        # both normals of Q have the same size at this node
        even = self.h * int(rng.choice([0, centre]) + rng.integers(-8, 9))
        odds = math.exp(wide * even + wide * (wide - 2 * near) / 2)
        first, self.last = (int(k) for k in rng.choice([0, 2, 6, 14, 99], 2))
        self.first, self.far = -first, max(self.last, centre + int(rng.choice([1, 4, 40])))
        self.sides = [(1.0, shift)], [(1 / (1 + odds), near), (odds / (1 + odds), near - wide)]
        self.wide = wide

    def part(self):
        """The checker's transform of this mixture."""
        given = {name: getattr(self, name) for name in ("y", "h", "first", "last", "far")}
        rules = {name: fields(**given).remaining for name in ("line", "decay")}
        Budget.remaining = math.inf
        return MixtureMoments(
            [[(arb(w), arb(s)) for w, s in side] for side in self.sides], Fields(rules, "rules")
        )

    def terms(self, y, h):
        """Places k, and the weights h F and the losses there, on a line Im x = y."""
        k = np.arange(-int(30 / h), int(50 / h))
        x = h * k + 1j * y
        f, g = (np.log(sum(w * np.exp(s * x - s * s / 2) for w, s in side)) for side in self.sides)
        weights = h / math.sqrt(2 * math.pi) * np.exp(f + self.a * (f - g) - x * x / 2)
        return k, weights, f - g

    def outside(self):
        """The sizes of all terms that the rule leaves out."""
        k, weights, _ = self.terms(self.y, self.h)
        return np.abs(weights)[(k < self.first) | (k > self.last)].sum()


def outside_violation(seeds=range(100)):
    """The bound on all terms that a rule of a mixture leaves out."""
    with ctx.workprec(64):
        for seed in seeds:
            rule = _Rule(seed)
            bound = rule.part().outside_bound(
                rule.a, arb(rule.y), arb(rule.h), rule.first, rule.last, rule.far
            )
            truth = rule.outside()
            if not truth <= float(bound.upper()) * (1 + ROUND_OFF):
                return f"seed {seed}: {truth} is above {bound}"
    return ""


def rule_violation(seeds=range(40)):
    """The error of a rule, and its decay: that of the theorem, from the sizes on two lines."""
    with ctx.workprec(64):
        for seed in seeds:
            rule = _Rule(seed)
            on_real, on_far = (
                np.abs(rule.terms(y, min(rule.h, 0.1))[1]).sum() for y in (0.0, 2 * rule.y)
            )
            factor = math.expm1(2 * math.pi * rule.y / rule.h)
            growth = math.exp(2 * rule.y**2) * math.cos(rule.y * rule.wide) ** -rule.a
            if (1 + max(1.0, growth)) / factor > 0.49:  # such a rule is refused
                continue
            error = float(rule.part().quadrature(rule.a, "line")[2])
            if not error >= ((on_real + on_far) / factor + rule.outside()) * (1 - ROUND_OFF):
                return f"seed {seed}: {on_real + on_far} / {factor} is above {error}"
            k, weights, losses = rule.terms(rule.y, rule.h)
            kept = (rule.first <= k) & (k <= rule.last)
            height = float(rule.h * (1 + seed % 7))
            size = np.abs(weights * np.exp(1j * height * losses))[kept].sum() + error
            decay = float(rule.part().decay(rule.a, arb(height)))
            if not abs(decay - size) <= ROUND_OFF * size:
                return f"seed {seed}: a decay of {decay}, not {size}"
    return ""


def decay_violation(seeds=range(60)):
    """How a release's transform decays, where that is a formula."""
    with ctx.workprec(128):
        for seed in seeds:
            rng = np.random.default_rng(seed)
            part = (_finite, _gaussian, _laplace)[seed % 3](rng)[0]
            a, u = float(rng.uniform(0.05, 3.0)), float(10 ** rng.uniform(-1, 1))
            Budget.remaining = math.inf
            most, step = part.decay(a, arb(u)), u / 8
            for value in part.line(a, step, 40)[8:]:
                if not abs(value).lower() <= most:
                    return f"seed {seed}: {abs(value)} is above {most}"
    return ""


# --- epochs of random allocation


def _sum_of_two(mu, k):
    """Return E (k - S)_+ and P(S < k) of two log-normals, by a fine rule over one of them."""
    x = np.linspace(-11, 11, 2201)
    weight = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    left = np.maximum(k - np.exp(mu * x - mu * mu / 2), 1e-300)
    d = np.log(left) / mu
    below = ndtr(d + mu / 2)
    return float(weight @ (left * below - ndtr(d - mu / 2))), float(weight @ below)


def allocation_violation(seeds=range(60)):
    """The sum of two log-normals by few nodes, asked for one value and for several."""
    with ctx.workprec(128):
        for seed in seeds:
            rng = np.random.default_rng(seed)
            mu, h = float(rng.uniform(0.3, 1.2)), float(10 ** rng.uniform(-1.0, 0.3))
            most = min(6.0, 0.95 * 2 * math.pi / h)
            k = float(rng.uniform(0.3, 1.0)) * most
            given = {
                "a": float(10 ** rng.uniform(-1.3, 0.5)), "h": h,
                "y": float(rng.uniform(0.05, 0.99)) * math.pi / 2 / (2 * mu),
                "step": float(10 ** rng.uniform(-0.7, 0.4)),
                "turn": float(rng.uniform(0.1, 0.99)) * math.pi / 2 / mu,
                "nodes": int(2 ** rng.uniform(1, 7)),
            }  # fmt: skip
            Budget.remaining = math.inf
            entry = fields(**given)
            excess, below = _sum_of_two(mu, k)
            one = EpochTransform(arb(mu) ** 2, 2, read_line(entry), [arb(k)]).excesses()[0]
            wrong = claim_violation((one, one), excess, f"seed {seed}")
            tails = fields(**given, first=k, length=256, count=1)
            (p, q, _), *_ = epoch_tails(("allocation", arb(mu) ** 2, 2), tails)
            wrong = wrong or claim_violation((q, q), 1 - below, f"seed {seed}, Q")
            above = (excess + 2 - k * below) / 2
            wrong = wrong or claim_violation((p, p), above, f"seed {seed}, P")
            if wrong:
                return wrong
    return ""


# random cases, among which are some that need each condition of a line and each factor of a bound
ROUGH_EPOCHS = (7, 18, 82, 130, 179, 182, 219, 343, 592, 1034, 1134, 1182)


def rough_allocation_violation(seeds=ROUGH_EPOCHS):
    """Lines of an epoch that are too far, too near or too short, where they are not refused."""
    with ctx.workprec(128):
        for seed in seeds:
            rng = np.random.default_rng(seed)
            mu, h = float(10 ** rng.uniform(-1.3, 0.3)), float(10 ** rng.uniform(-1, 0.3))
            k = float(rng.uniform(0.1, 1.0)) * min(6.0, 2.5 * 2 * math.pi / h)
            wide = 1.0 if rng.random() < 0.6 else 3.0
            given = {
                "a": float(10 ** rng.uniform(-2, 0.5)), "h": h,
                "y": min(99.0, float(rng.uniform(0.05, 0.99 * wide)) * math.pi / 4 / mu),
                "step": float(10 ** rng.uniform(-1.3, 0.3)),
                "turn": min(99.0, float(rng.uniform(0.05, 0.99 * wide)) * math.pi / 2 / mu),
                "nodes": int(2 ** rng.uniform(1, 6)),
            }  # fmt: skip
            Budget.remaining = math.inf
            try:
                epoch = EpochTransform(arb(mu) ** 2, 2, read_line(fields(**given)), [arb(k)])
            except NoProof:
                continue
            found = epoch.excesses()[0], epoch.masses_below()[0]
            for value, truth in zip(found, _sum_of_two(mu, k), strict=True):
                wrong = claim_violation((value, value), truth, f"seed {seed}")
                if value.is_finite() and wrong:
                    return wrong
    return ""
