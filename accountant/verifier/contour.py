"""Delta of many releases as one integral of their moments, with bounds on all that it leaves out.

This is one of the methods by which the verifier checks the file of a proof: the file names the
nodes of the integral, and the bounds computed here in ball arithmetic hold for any nodes.

P and Q are the laws of the outcomes of all releases together on two neighbouring data sets,
L = ln dP/dQ is the privacy loss, M(z) = E_P e^{zL} is the product of the moments of all releases,
and g(t) = E_P (1 - e^{t-L})_+, where only finite losses count.  Hence delta(eps) = g(eps) where no
loss is infinite.  Proofs are in docs/proofs/contour.md.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from flint import acb, arb

from .balls import exact, nodes_on_line, spend
from .document import Fields, ProofError, is_list, need
from .moments import (
    FiniteMoments,
    GaussianMoments,
    LaplaceMoments,
    MixtureMoments,
    Moments,
    RenyiMoments,
    mixture_sides,
    range_moments,
)
from .outcomes import outcomes
from .releases import Release

Factors = list[tuple[Moments, int]]  # the moments of a release, and how often it is repeated
# the moments of each kind of release that has a formula, as a function of the release's numbers
FORMULAS: dict[str, Callable[..., Moments]] = {
    "gaussian": GaussianMoments,
    "laplace": lambda m, _rate, _is_on_grid: LaplaceMoments(m),
    "zcdp": RenyiMoments,
    "range": range_moments,
}


def delta_by_contour(
    items: list[tuple[Release, int]], back: bool, entry: Fields, epsilon: float
) -> tuple[arb, arb]:
    """Return a lower and an upper bound of delta: the integral, plus the mass of infinite losses.

    ``items`` are the releases with their counts, and ``entry`` is the part of the proof that names
    the nodes.  ``back`` exchanges P and Q of releases whose outcomes are listed.  A mixture comes
    with its sides exchanged already; the other kinds have the same losses in both directions.

    Theorem (`composition`): laws of independent releases multiply, and so do their moments.
    """
    rules, factors = entry.take("rules", fits=is_list), []
    finite_mass, total_mass = arb(1), arb(1)
    for release, count in items:
        kind, *numbers = release
        moments: Moments
        if kind == "mixture":
            moments = MixtureMoments(
                mixture_sides(*numbers), Fields(rules and rules.pop(0), "a rule")
            )
        elif kind in FORMULAS:
            moments = FORMULAS[kind](*map(exact, numbers))
        else:
            moments = FiniteMoments(*outcomes(release, back))
        factors.append((moments, count))
        finite_mass *= moments.finite_mass**count
        total_mass *= moments.total_mass**count
    need(not rules, "more rules than mixtures", ProofError)
    low, high = contour(factors, entry, epsilon)
    # P of the outcomes that have probability 0 under Q.  Where not all outcomes are listed the ball
    # of the total mass contains the listed mass, so that the lower end of this is at most 0.
    infinite = total_mass - finite_mass
    return low + infinite.lower().max(arb(0)), high + infinite.upper()


def contour(factors: Factors, entry: Fields, epsilon: float) -> tuple[arb, arb]:
    """Return a lower and an upper bound of what the finite losses add to delta.

    Theorem (`poisson_summation`: contour.md, 1 and 2): the transform of g at z, Re z = a > 0, is
    M(z) / (z (z + 1)).  So with F(z) = M(z) e^{-z eps} / (z (z + 1)) and T = 2 pi / h
    (h / 2 pi) sum_j F(a + ijh) = sum_k e^{akT} g(eps + kT), of which the term k = 0 is g(eps); the
    others are called aliases, and none is negative.  Hence the sum over the nodes a + ijh, of all
    whole j, is an upper bound.

    Theorem (`truncation`: contour.md, 3): |z (z + 1)| >= v^2 at z = a + iv, so the nodes beyond U
    add at most B / (pi U), where B >= |M(a + iv) e^{-z eps}| for all v >= U.

    The entry gives a, h, the number of nodes with j >= 0, and the variance S of the smoothing.  It
    also gives b, at which the terms k > 0 are bounded; b <= a says that only the upper bound is
    wanted, and then the lower one is 0.  With a single node the upper bound is Chernoff's at a.
    """
    a, b, h = (entry.real(key, low, 1e12) for key, low in (("a", 1e-9), ("b", 0), ("h", 1e-12)))
    count, smoothing = entry.whole("nodes", 1, 2**20), entry.real("smooth", 0, 1)
    spend(20 * count * len(factors))  # about 20 products for each node and factor
    factors = [*factors, (GaussianMoments(arb(smoothing)), 1)]
    if count == 1:
        return arb(0), chernoff_bound(factors, a, epsilon)
    step, eps = arb(h), arb(epsilon)
    nodes, cutoff, products = nodes_on_line(a, h, count), step * (count - 1), [acb(1)] * count
    truncation, mass = (-a * eps).exp() / (arb.pi() * cutoff), arb(1)
    for moments, times in factors:
        factor = moments.line(a, h, count)
        products = [m * further**times for m, further in zip(products, factor, strict=True)]
        truncation *= moments.decay(a, cutoff) ** times
        mass *= moments.finite_mass**times

    def trapezoid_sum(power: int) -> arb:
        """Return h / 2 pi times the sum of M(z) e^{-z eps} / (z (z + 1))^power over all nodes.

        The terms at the nodes below the real line are the conjugates of those above it.
        """
        terms = [
            (m * (-z * eps).exp() / (z * (z + 1)) ** power).real
            for m, z in zip(products, nodes, strict=True)
        ]
        return (2 * sum(terms, arb(0)) - terms[0]) * step / (2 * arb.pi())

    trapezoid = trapezoid_sum(1)
    if not b > a:
        return arb(0), trapezoid + truncation
    aliases = alias_bound(factors, a, b, step, mass, epsilon)
    # Theorem (`smoothing`, `truncation_of_both`: contour.md, 4): with a further Gaussian release
    # N(mu, 1) of mu^2 = S, the sum is that of D_S, the delta of all releases with this one, and
    # delta <= D_S <= delta + e^{S/8} S p_S(eps).  The density p_S of the loss is the sum without
    # 1 / (z (z + 1)).  The truncated sums of D_S and S p_S together lack at most B / (pi U).
    smoothed = (smoothing * trapezoid_sum(0) if smoothing else 0) + truncation
    lower = trapezoid - aliases - (arb(smoothing) / 8).exp() * smoothed
    return lower, trapezoid + truncation


def chernoff_bound(factors: Factors, b: float, epsilon: float) -> arb:
    """Return M(b) e^{-b eps} c_b with c_b = b^b / (1 + b)^(1 + b).

    Theorem (`chernoff`: contour.md, 2): delta(eps) is at most that, as c_b is the greatest
    (1 - e^{-y}) e^{-by}.
    """
    leading = (-b * arb(epsilon)).exp() * (arb(b) / (arb(b) + 1)) ** b / (arb(b) + 1)
    return prod((moments.at(b, "alias") ** times for moments, times in factors), start=leading)


def alias_bound(factors: Factors, a: float, b: float, step: arb, mass: arb, epsilon: float) -> arb:
    """Return an upper bound on the aliases, the terms k != 0 of `contour`; ``mass`` is P(L finite).

    Theorem (`aliases_below`): the terms k < 0 add at most P(L finite) / (e^{aT} - 1), as g is at
    most P(L finite).

    Theorem (`aliases_above`): the terms k > 0 add at most M(b) e^{-b eps} c_b r / (1 - r) with
    r = e^{-(b - a) T}, for any b > a, by `chernoff_bound` and a geometric series.
    """
    period, bound_at_b = 2 * arb.pi() / step, chernoff_bound(factors, b, epsilon)
    ratio = ((a - arb(b)) * period).exp()
    return mass / ((a * period).exp() - 1) + bound_at_b * ratio / (1 - ratio)
