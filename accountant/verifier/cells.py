"""All outcomes of a release in parts: the masses of each part, and the ends of its losses.

A release is a tuple of a kind and numbers (`releases`) that stands for a pair (P, Q) of laws on two
neighbours; the loss of an outcome is ln dP/dQ.  Continuous noise is cut at the points of a rule: a
table of the proof file with their number and distance; bad points only make the result loose.  The
tails of the noise at these points, P(X > x) and Q(X > x), give the masses of the parts between
them.  Losses grow with x.

Of a symmetric pair (`symmetric_cells`) only the half with losses of at least 0 is cut: ``is_half``.
Its rule then begins at the output of loss 0.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

from flint import acb, arb

from .allocation import Tail, epoch_tails
from .balls import exact, normal_tail, spend
from .document import Fields, need
from .moments import log_density_ratios, mixture_sides
from .outcomes import outcomes
from .releases import LISTED, ONE, STILL, Release


class Cell(NamedTuple):
    """A part of the outcomes: its masses under P and Q, and bounds on its losses.

    ``low`` is None where no finite number is below its losses, or where all of them are infinite;
    ``high`` is None where no finite number is above them.
    """

    p: arb
    q: arb
    low: arb | None
    high: arb | None


def cells(release: Release, back: bool, rules: list[Any]) -> list[Cell]:
    """Return the parts of all outcomes of a release; with ``back`` of (Q, P).

    They come by growing loss, those of each option of a choice apart: another order makes a pair on
    a lattice looser, never wrong.  Each release with continuous noise takes its rule from the front
    of ``rules``.
    """
    kind = release[0]
    if kind == "choice":  # the output shows which option was chosen
        return [
            Cell(chance * p, chance * q, low, high)
            for chance, option in release[1]
            for p, q, low, high in cells(option, back, rules)
        ]
    if kind in LISTED:
        return listed_cells(release, back)
    if kind in ("subset", "range"):  # both directions are alike
        return symmetric_cells(release, rules)
    forward = cells_between_points(release, rules, is_half=False)
    return mirrored(forward) if back else forward


def mirrored(forward: list[Cell]) -> list[Cell]:
    """Return the parts with P and Q exchanged, whose losses have the other sign."""
    return [
        Cell(q, p, None if high is None else -high, None if low is None else -low)
        for p, q, low, high in reversed(forward)
    ]


def listed_cells(release: Release, back: bool) -> list[Cell]:
    """Return each outcome of a finite release, and what is not listed as an infinite loss."""
    masses, total = outcomes(release, back)
    finite = [((p / q).log(), p, q) for p, q in masses if p > 0 and q > 0]
    finite.sort(key=lambda outcome: float(outcome[0]))
    not_listed = total - sum((p for p, _ in masses), arb(0))
    infinite = [p for p, q in masses if q == 0] + [not_listed]
    return [
        *(Cell(p, q, loss, loss) for loss, p, q in finite),
        *(Cell(p, arb(0), None, None) for p in infinite),
    ]


def symmetric_cells(release: Release, rules: list[Any]) -> list[Cell]:
    """Return the parts of a sample without replacement, or of a bound on the range of losses.

    Theorem (`symmetrised_sample`): the pair has the parts of positive loss of the Poisson sample,
    their mirror image, and the rest of the mass at a loss of 0.
    """
    base = release[1] if release[0] == "subset" else release
    if base[0] in LISTED:  # a sample of one response, which has one loss above 0
        positive = [cell for cell in cells(base, False, []) if cell.low is None or cell.low > 0]
        need(sum(cell.low is not None for cell in positive) == 1, "a loss that may be 0")
    else:  # the first part, before the output of loss 0, is left out
        positive = cells_between_points(base, rules, is_half=True)[1:]
    middle = 1 - sum((cell.p + cell.q for cell in positive), arb(0))
    return [*mirrored(positive), Cell(middle, middle, arb(0), arb(0)), *positive]


def cells_between_points(release: Release, rules: list[Any], *, is_half: bool) -> list[Cell]:
    """Return the parts before, between and after the points of a rule."""
    at_points = tails(release, Fields(rules and rules.pop(0), "a rule"), is_half=is_half)
    # The losses of Laplace noise are constant beyond the outermost points, 0 and its shift.
    is_bounded = "laplace" in release[0]
    lowest, highest = (at_points[0][2], at_points[-1][2]) if is_bounded else (None, None)
    with_ends = [(arb(1), arb(1), lowest), *at_points, (arb(0), arb(0), highest)]
    return [
        Cell(p - p_next, q - q_next, low, high)
        for (p, q, low), (p_next, q_next, high) in pairwise(with_ends)
    ]


def tails(release: Release, rule: Fields, *, is_half: bool) -> list[Tail]:
    """Return P(X > x), Q(X > x) and the loss at x, for the points x of a rule.

    With ``is_half`` the points are distances from the output of loss 0, which is the first one.
    """
    kind = release[0]
    if "allocation" in kind:
        return epoch_tails(release, rule)
    first, step = rule.real("first", -1e6, 1e6), rule.real("step", 1e-9, 99.0)
    count = rule.whole("count", 1, 10**5)
    spend(60 * count)
    start = 0.0 if is_half else first
    points = [start + arb(step) * i for i in range(count + 1)]
    rule.done()
    need(kind in TAILS, f"a {kind} has no lattice")
    return TAILS[kind](release, points, is_half)


def range_tails(release: Release, points: list[arb], is_half: bool) -> list[Tail]:
    """Return the tails of the pair above all pairs whose losses have a range e.

    Theorems (`bounded_range`, `tails_of_a_range`: Dong, Durfee & Rogers 2020, Lemma 3.2): with
    s = e^{eps/2}, r = e^{e/2} and u = (1 - s/r) / (1 - 1/r^2), delta is at most u (1 - s/r).  The
    negative of its slope in e^eps = s^2 is Q's tail, u / (s r).  P's tail is delta plus s^2 times
    that, which is u.
    """
    r = (exact(release[1]) / 2).exp()
    roots = [(t / 2).exp().min(r) for t in points]
    scaled = [((1 - s / r) / (1 - 1 / r**2), s) for s in roots]
    return [(u, u / (s * r), 2 * s.log()) for u, s in scaled]


def laplace_tails(release: Release, points: list[arb], is_half: bool) -> list[Tail]:
    """Return the tails of Laplace noise, sampled with rate r (1 where it is not).

    P is (1-r) Laplace(0, 1) + r Laplace(m, 1), and Q is Laplace(0, 1).  At x in [0, m]

        P(X > x) = (1-r) e^{-x} / 2 + r (1 - e^{x-m} / 2),   Q(X > x) = e^{-x} / 2,
        loss = ln(1 - r + r e^{2x-m}),   which is 0 at x = m / 2.

    Below 0 and beyond m losses are constant.  So points outside are moved to these ends, and both
    ends are points.
    """
    _, shift, rate, *_ = release
    m, r = exact(shift), exact(rate)
    lowest = m / 2 if is_half else arb(0)
    moved = [lowest.max(lowest + t).min(m) for t in (arb(-1), *points, m)]
    return [
        (
            (1 - r) * (-t).exp() / 2 + r * (1 - (t - m).exp() / 2),
            (-t).exp() / 2,
            (1 - r + r * (2 * t - m).exp()).log(),
        )
        for t in moved
    ]


def greatest_tails(release: Release, points: list[arb], is_half: bool) -> list[Tail]:
    """Return the tails of the greatest of n normals.

    Theorem (`greatest_batch`: docs/proofs/shuffled_epoch.md): one of them has the mean (s + 1) mu
    under P and s mu under Q, the others 0.  The losses within a part are not known, and 0 stands
    for them: this release is only the lower pair of a "bound" (`shuffled_epoch`), and a pair below
    is made of the masses of the parts alone.
    """
    _, mu_squared, s, n = release
    mu = exact(mu_squared).sqrt()
    below = [
        [(1 - normal_tail(t - mean * mu)) * (1 - normal_tail(t)) ** (n - 1) for mean in (s + 1, s)]
        for t in points
    ]
    return [(1 - p, 1 - q, arb(0)) for p, q in below]


def mixture_tails(release: Release, points: list[arb], is_half: bool) -> list[Tail]:
    """Return the tails of mixtures of normals: sum w N(s, 1) over each side's (w, s).

    A symmetric pair has the loss 0 at half the last shift of P.
    """
    kind, *numbers = release
    if kind == "gaussian":
        numbers = [*numbers, ((ONE, ONE),), STILL]
    sides = mixture_sides(*numbers)
    spend(20 * (len(points) - 1) * sum(map(len, sides)))
    start = sides[0][-1][1] / 2 if is_half else arb(0)
    moved = [start + t for t in points]
    losses = [(f - g).real for f, g in (log_density_ratios(sides, acb(t)) for t in moved)]
    tails_of_sides = [
        [sum((w * normal_tail(t - s) for w, s in side), arb(0)) for side in sides] for t in moved
    ]
    return [(p, q, loss) for (p, q), loss in zip(tails_of_sides, losses, strict=True)]


TAILS: dict[str, Callable[[Release, list[arb], bool], list[Tail]]] = {
    "range": range_tails,
    "laplace": laplace_tails,
    "sampled laplace": laplace_tails,
    "greatest": greatest_tails,
    "gaussian": mixture_tails,
    "mixture": mixture_tails,
}
