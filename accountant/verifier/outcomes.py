"""Releases with finitely many outcomes: their masses, and delta as a sum over all outcomes.

A release is a tuple of a kind and exact numbers (`releases`) that stands for a pair (P, Q) of laws
on two neighbours.  The masses p and q of an outcome are its probabilities under P and Q.  Those of
a release that is repeated are the coefficients of a power of a polynomial.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb, arb_poly

from .balls import exact, spend
from .document import need
from .releases import EQUAL_STEPS, UNLISTED_TAILS, Release
from .summed_noise import pairs_of_masses

MOST = 300_000  # different sums of losses at most, which bounds the time of an enumeration
Masses = list[tuple[arb, arb]]  # (p, q) of each outcome


def outcomes(release: Release, back: bool) -> tuple[Masses, arb]:
    """Return (p, q) of each listed outcome, and a ball that contains the whole mass of P.

    Of noise on all whole numbers not all outcomes are listed; the mass of P that is listed and 1
    are both in the ball.  With ``back`` the roles are exchanged: (q, p) of each outcome, and the
    mass of Q.
    """
    kind = release[0]
    need(kind in MASSES, f"a {kind} has more than finitely many outcomes")
    masses = MASSES[kind](release)
    spend(20 * len(masses))
    masses = [(q, p) for p, q in masses] if back else masses
    need(all(mass > 0 or mass == 0 for pair in masses for mass in pair), "a mass that may be 0")
    total = sum((p for p, _ in masses), arb(0))
    kinds = {part[0] for part in release[2]} if kind == "sampled" else {kind}
    return masses, total.union(arb(1)) if kinds & UNLISTED_TAILS else total


def pair_masses(release: Release) -> Masses:
    """Return the masses that the plan itself lists."""
    return [(exact(p), exact(q)) for p, q in release[1]]


def response_masses(release: Release) -> Masses:
    """Return the masses of a response, which with chance d shows the record."""
    _, epsilon, d = release
    chance, odds = exact(d), exact(epsilon).exp()
    low, high = (1 - chance) / (1 + odds), (1 - chance) * odds / (1 + odds)
    certain = [(arb(0), chance), (chance, arb(0))] if d else []
    return [(low, high), (high, low), *certain]


def discrete_laplace_masses(release: Release) -> Masses:
    """Return the masses of integers in proportion to r^|k|, in cells of one ratio each.

    With r = e^{-1/scale} all k <= 0 have the ratio r^shift, and all k >= shift its inverse.
    """
    _, scale, shift = release
    r = (-1 / exact(scale)).exp()
    inner_masses = ((1 - r) / (1 + r) * r**k for k in range(1, shift))
    q = [1 / (1 + r), *inner_masses, r**shift / (1 + r)]
    return list(zip(reversed(q), q, strict=True))


def discrete_gaussian_masses(release: Release) -> Masses:
    """Return the masses of integers in proportion to e^{-k^2 / (2 s^2)}, up to 16 deviations.

    Theorem (`geometric_tail`): ratios of terms fall, so what is not listed beyond a last k is at
    most its term over 1 - e^{-k/s^2}.
    """
    _, scale, shift = release
    s, last = exact(scale), int(16 * scale) + 2 + shift
    terms = [(-((arb(k) / s) ** 2) / 2).exp() for k in range(last + 1)]
    # The ball arb(0.5, 0.5) is [0, 1]: what is not listed is between 0 and its bound.
    not_listed = 2 * terms[-1] / (1 - (-last / s**2).exp()) * arb(0.5, 0.5)
    total = not_listed + (terms[0] + 2 * sum(terms[1:], arb(0)))
    places = range(shift - last, last + 1)
    return [(terms[abs(k - shift)] / total, terms[abs(k)] / total) for k in places]


def sampled_masses(release: Release) -> Masses:
    """Return the masses of finite releases of one sample of rate r.

    Theorem (`poisson_sample`): the outcome of masses p and q has (1 - r) q + r p against q; masses
    of independent releases multiply (`composition`).
    """
    _, rate, parts = release
    product, r = [(arb(1), arb(1))], exact(rate)
    for part_masses, _ in (outcomes(part, back=False) for part in parts):
        need(len(product) * len(part_masses) <= MOST // 10, "too many outcomes")
        product = [(a * p, b * q) for a, b in product for p, q in part_masses]
    return [((1 - r) * q + r * p, q) for p, q in product]


MASSES: dict[str, Callable[[Release], Masses]] = {
    "pair": pair_masses,
    "response": response_masses,
    "discrete laplace": discrete_laplace_masses,
    "discrete gaussian": discrete_gaussian_masses,
    "summed noise": lambda release: pairs_of_masses(*release[1:]),
    "sampled": sampled_masses,
}


def delta_by_enumeration(
    items: list[tuple[Release, int]], back: bool, epsilon: float
) -> tuple[arb, arb]:
    """Return bounds of delta, summed over all outcomes; those not listed add at most their P.

    Theorems (`composition`, `smallest_test`): masses of independent releases multiply, and delta is
    sum (p - e^eps q)_+ over the outcomes of all.
    """
    sums, mass, listed_mass = [(arb(1), arb(1))], arb(1), arb(1)
    for release, count in items:
        masses, total = outcomes(release, back)
        # outcomes that Q never has are infinite losses: what they have of P is added at the end
        masses = [(p, q) for p, q in masses if p > 0 and q > 0]
        is_equally_spaced = release[0] in EQUAL_STEPS or count == 1
        need(masses and (is_equally_spaced or len(masses) < 20), "too many sums of losses")
        mass = mass * total**count
        listed_mass = listed_mass * sum((p for p, _ in masses), arb(0)) ** count
        powers = powers_of_outcomes(len(masses), count, is_equally_spaced)
        terms = powers[-1] * count + 1
        need(len(sums) * terms <= MOST, "too many sums of losses")
        spend(2 * len(sums) * terms + (terms - 1) ** 2 / 300)
        repeated = masses_of_repetition(masses, powers, count)
        sums = [(a * b, c * d) for a, c in sums for b, d in repeated]
    odds, infinite = arb(epsilon).exp(), mass - listed_mass
    hockey_stick = sum(((p - odds * q).max(arb(0)) for p, q in sums), arb(0))
    return hockey_stick + infinite.lower().max(arb(0)), hockey_stick + infinite.upper()


def powers_of_outcomes(size: int, count: int, is_equally_spaced: bool) -> list[int]:
    """Return the power of x that stands for each outcome of a release that is repeated.

    It is x^k where losses are an equal step apart: the exponent of a product says the sum of
    losses.  Else it is x^((n + 1)^(k - 1)): the exponent, in base n + 1, counts each outcome.
    """
    return [k if is_equally_spaced or not k else (count + 1) ** (k - 1) for k in range(size)]


def masses_of_repetition(masses: Masses, powers: list[int], count: int) -> Masses:
    """Return the masses of n releases: the coefficients of the n-th power of a polynomial."""
    at_power, nothing = dict(zip(powers, masses, strict=True)), (arb(0), arb(0))
    coefficients = [at_power.get(k, nothing) for k in range(powers[-1] + 1)]
    p, q = (arb_poly(list(side)) ** count for side in zip(*coefficients, strict=True))
    return [(p[k], q[k]) for k in range(powers[-1] * count + 1) if not p[k] == q[k] == 0]
