"""Integer noise that many clients add in shares: masses of the sum, and the Gaussian above it.

Each share is a discrete Gaussian, or the difference of two Poisson numbers (Skellam).  ``law`` is
"discrete gaussian" or "skellam"; ``scale`` is that of one share, of ``terms`` shares.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

from flint import acb, arb, ctx

from .balls import exact
from .document import need

# Masses fall to about e^-300 of the largest: balls of so many more bits have all their digits.
MORE_BITS = 640
LISTED_VARIANCE = 2500  # of noise whose outcomes are listed
Masses = list[arb]


def variance_of(scale: Fraction, terms: int) -> Fraction:
    """Return the variance of the sum: for discrete Gaussians that of continuous ones."""
    return terms * scale * scale


def skellam_masses(scale: Fraction, terms: int, last: int) -> Masses:
    """Return P(k) = e^-V I_k(V) of k = 0 ... ``last``, with the variance V.

    Downwards from the last two, I_{k-1} = I_{k+1} + (2 k / V) I_k has positive terms only.
    """
    v = exact(variance_of(scale, terms))
    masses = [v.bessel_i(arb(k)) * (-v).exp() for k in (last, last - 1)]
    for k in range(last - 1, 0, -1):
        masses.append(masses[-2] + masses[-1] * 2 * k / v)
    return masses[::-1]


def discrete_gaussian_masses(scale: Fraction, terms: int, last: int) -> Masses:
    """Return P(k) of k = 0 ... ``last`` of the sum, by a Fourier transform of N points."""
    size = last + int(60 * float(scale) * terms**0.5) + 60
    powers = [share_transform(scale, Fraction(j, size)) ** terms for j in range(size // 2 + 1)]
    total = powers[0] * size
    mirrored = [*powers, *powers[size - len(powers) : 0 : -1]]
    aliases = aliases_of(scale, terms, size - last)
    return [
        value.real / total + aliases for value in acb.dft([acb(x) for x in mirrored])[: last + 1]
    ]


def share_transform(scale: Fraction, u: Fraction) -> arb:
    """Return the characteristic function of one discrete Gaussian at 2 pi u, times a constant.

    Theorem (`theta_constant`): sum_k e^{-k^2 / (2 s^2)} e^{2 pi i k u} is in proportion to
    sum_n e^{-2 pi^2 s^2 (u + n)^2}.  The shorter of both sums is taken, for u in [0, 1/2]; what it
    leaves out beyond 12 is at most twice the next term on either side.
    """
    s, x = exact(scale), exact(u)
    if 2 * scale >= 1:
        width = 2 * (arb.pi() * s) ** 2
        beyond = 4 * (-width * arb(12.5) ** 2).exp() * arb(0.5, 0.5)
        return sum(((-width * (x + n) ** 2).exp() for n in range(-12, 13)), beyond)
    beyond = 4 * (-((13 / s) ** 2) / 2).exp() * arb(0, 1)
    turns = ((-((k / s) ** 2) / 2).exp() * (2 * k * x).cos_pi() for k in range(1, 13))
    return 1 + 2 * sum(turns, arb(0)) + beyond


def aliases_of(scale: Fraction, terms: int, distance: int) -> arb:
    """Return a ball of what all outcomes from a distance on have.

    Theorem (`sub_gaussian_shares`: docs/proofs/summed_noise.md, 4): P(|k| >= d) of discrete
    Gaussians is at most 2 e^{-d^2 / 2V}.
    """
    return 2 * (-exact(Fraction(distance**2) / variance_of(scale, terms)) / 2).exp() * arb(0.5, 0.5)


LAWS: dict[str, Callable[[Fraction, int, int], Masses]] = {
    "skellam": skellam_masses,
    "discrete gaussian": discrete_gaussian_masses,
}


def masses_of(law: str, scale: Fraction, terms: int, shift: int) -> Masses:
    """Return the masses of 0, 1, ... as far as they matter to a shift, and are surely above 0."""
    return known_masses(law, scale, terms, shift, ctx.prec + MORE_BITS)


@cache
def known_masses(law: str, scale: Fraction, terms: int, shift: int, bits: int) -> Masses:
    """Return the same with so many bits; a proof asks for them several times."""
    farthest = int(16 * float(variance_of(scale, terms)) ** 0.5) + 30 + shift
    with ctx.workprec(bits):
        masses = LAWS[law](scale, terms, farthest)
    return masses[: next((k for k, mass in enumerate(masses) if not mass > 0), len(masses))]


def pairs_of_masses(law: str, scale: Fraction, terms: int, shift: int) -> list[tuple[arb, arb]]:
    """Return (P(k - shift), P(k)) of all k for which both are listed."""
    half = masses_of(law, scale, terms, shift)
    need(len(half) > shift, "noise so narrow has no list of outcomes here")
    places = range(shift - len(half) + 1, len(half))
    return [(half[abs(k - shift)], half[abs(k)]) for k in places]


def mass_of(law: str, scale: Fraction, terms: int, k: int) -> arb:
    """Return P(k).

    Theorem (`waves_of_a_sum`: Kairouz, Liu & Steinke 2021, Theorem 1): all masses of n discrete
    Gaussians of scale s are those of one of variance n s^2, but for a factor between 1 - t and
    1 + t, where t = 10 n e^{-pi^2 s^2}.  Those are in turn (`theta_constant`) the density's.
    """
    v = exact(variance_of(scale, terms))
    if law == "skellam":
        return v.bessel_i(arb(k)) * (-v).exp()
    if v <= LISTED_VARIANCE:
        masses = masses_of(law, scale, terms, 1)
        return masses[k] if k < len(masses) else arb(0)
    share = 10 * terms * (-((arb.pi() * exact(scale)) ** 2)).exp()
    return (-(arb(k) ** 2) / v / 2).exp() / (2 * arb.pi() * v).sqrt() * (1 + 2 * share * arb(0, 1))


def curvature(law: str, scale: Fraction, terms: int) -> arb:
    """Return 2 ln(P(0) / P(1)).

    Theorem (`curvature_at_zero`: docs/proofs/summed_noise.md, 1): the curvature of -ln P, which is
    ln(P(k)^2 / (P(k - 1) P(k + 1))), is greatest at k = 0.
    """
    v = exact(variance_of(scale, terms))
    if law == "skellam":
        return 2 * (v.bessel_i(arb(0)) / v.bessel_i(arb(1))).log()
    # P(0) and P(1) are means of f(u)^n and of f(u)^n cos(2 pi u) over N points u, but for aliases;
    # f falls, so that no point beyond the last one has more than it.
    root = float(scale) * terms**0.5
    size = 2 * int(20 * root + 20)
    need(2 * scale >= 1 or size <= 10**4, "the sum of so many narrow shares has no proof here")
    count = min(size // 2, int(3 * size / root) + 3) if 2 * scale >= 1 else size // 2
    points = [Fraction(j, size) for j in range(count + 1)]
    powers = [share_transform(scale, u) ** terms for u in points]
    weights = [1 if 2 * u in (0, 1) else 2 for u in points]
    beyond = size * powers[-1] * arb(0.5, 0.5) if count < size // 2 else arb(0)
    zero = sum((w * f for w, f in zip(weights, powers, strict=True)), beyond)
    fall = sum(
        (
            w * f * 2 * exact(u).sin_pi() ** 2
            for w, f, u in zip(weights, powers, points, strict=True)
        ),
        2 * beyond,
    )
    aliases = aliases_of(scale, terms, size - 1) * size * powers[0]
    mass_at_1 = zero - fall - aliases
    need(mass_at_1 > 0, "noise so narrow has no proof here")
    return 2 * (zero / mass_at_1).log()


def gaussian_above(law: str, scale: Fraction, terms: int, squared_distance: Fraction) -> Fraction:
    """Return mu^2 of a Gaussian that costs at least as much as the noise on whole vectors.

    Theorem (`summed_noise`: docs/proofs/summed_noise.md, 2 and 3): where -ln P curves by at most c,
    moving a coordinate by 1 costs at most a Gaussian of mu^2 (1 - mu^2 / 12) = c <= 3, or of
    mu^2 = 2 pi c.  So a vector of whole numbers costs at most mu^2 times its squared length.
    """
    with ctx.workprec(192):
        c = curvature(law, scale, terms)
        squared: Any = 2 * c / (1 + (1 - c / 3).sqrt()) if c <= 3 else 2 * arb.pi() * c
        upper = (squared * exact(squared_distance)).upper().fmpq()
    return Fraction(int(upper.p), int(upper.q))
