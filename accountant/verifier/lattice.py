"""Pairs on a lattice of losses, above and below each release."""

from collections import defaultdict
from itertools import pairwise
from typing import Any

from flint import acb, arb

from .parts import balls, exact, logs, outcomes, spend, tail
from .plan import FINITE, ONE, STILL, Fields, need
from .series import allocated

LISTED = FINITE | {"discrete gaussian", "sampled"}
def case(release: Any, *, above: bool) -> Any:
    """Return the pair above a release, or the one below it (None for none)."""
    if release[0] == "any of":  # on a path below there is none
        parts = (tuple((case(member, above=True), n) for member, n in part) for part in release[1])
        return "any of", tuple(parts)
    if release[0] == "bound":
        return case(release[1 if above else 2], above=above) if release[1 if above else 2] else None
    if release[0] != "truncated":
        return release
    # Whether the n - 1 others fill the batch b is seen; then the record is in it with chance P(more
    # than b of n) b / n / P(full), in the place of another.  Below, the others contribute nothing.
    mu2, rate, n, b, replaced = release[1:]
    spend(4e5)
    full, spill = (exact(rate).beta_lower(k, m - k + 1, True) for m, k in ((n - 1, b), (n, b + 1)))
    def sampled(mu2: Any, r: Any) -> Any:
        away = ((1 - r, 0 * ONE), (r, -ONE)) if replaced else STILL
        return "mixture", mu2, ((1 - r, 0 * ONE), (r, ONE)), away
    if not above:
        return sampled(mu2, (1 - full) * exact(rate) + spill * b / n)
    swapped = sampled(4 * mu2, spill * b / n / full)
    return "choice", ((1 - full, sampled(mu2, rate)), (full, swapped))
def tails(release: Any, rule: Fields, *, half: bool) -> list[Any]:
    """Return P(X > x), Q(X > x) and the loss at x, for x of a rule; ``half``: from loss 0 on."""
    kind, *params = release
    if kind == "allocation":
        return allocated(exact(params[0]), params[1], rule)  # type: ignore
    start, step = rule.real("first", -1e6, 1e6) * (not half), rule.real("step", 1e-9, 99.0)
    spend(60 * (n := rule.whole("count", 1, 10**5)))
    x = [start + arb(step) * i for i in range(n + 1)]
    rule.done()
    if kind == "range":  # delta = u^2 / (1 - 1/e^2), u = 1 - k/e, k = e^{eps/2}; -d delta / dk^2
        e = (exact(params[0]) / 2).exp()
        scaled = [((1 - s / e) / (1 - 1 / e**2), s) for s in ((t / 2).exp().min(e) for t in x)]
        return [(u * (1 - s / e) + s * u / e, u / (s * e), 2 * s.log()) for u, s in scaled]
    if "laplace" in kind:
        m, r = exact(params[0]), exact(params[1])
        x = [(m / 2 if half else arb(0)).max(t + half * m / 2).min(m) for t in (arb(-1), *x, m)]
        return [((1 - r) * (-t).exp() / 2 + r * (1 - (t - m).exp() / 2), (-t).exp() / 2,
                 (1 - r + r * (2 * t - m).exp()).log()) for t in x]
    if kind == "greatest":  # one of n normals has mean (s + 1) mu under P, s mu under Q; others 0
        mu, (s, n) = exact(params[0]).sqrt(), params[1:]
        below = [[(1 - tail(t - u * mu)) * (1 - tail(t)) ** (n - 1) for u in (s + 1, s)] for t in x]
        return [(1 - p, 1 - q, arb(0)) for p, q in below]
    need(kind in ("gaussian", "mixture"), f"a {kind} has no lattice")
    sides = balls(*(params if kind == "mixture" else (params[0], ((ONE, ONE),), STILL)))
    spend(20 * n * sum(map(len, sides)))
    x = [t + half * sides[0][-1][1] / 2 for t in x]
    losses = [(f - g).real for f, g in (logs(sides, acb(t)) for t in x)]
    return [(*(sum((w * tail(t - s) for w, s in side), arb(0)) for side in sides), loss)
            for t, loss in zip(x, losses, strict=True)]
def cells(release: Any, back: bool, rules: list[Any]) -> list[Any]:
    """Return (p, q, low, high) of all outcomes in parts: masses, and ends of the losses or None."""
    kind, *params = release
    if kind == "choice":
        weighted = [(c, part) for c, option in params[0] for part in cells(option, back, rules)]
        return [(c * p, c * q, *ends) for c, (p, q, *ends) in weighted]
    if kind in LISTED:
        law, mass = outcomes(release, back)
        finite = [((p / q).log(), p, q) for p, q in law if p > 0 and q > 0]
        finite.sort(key=lambda outcome: float(outcome[0]))
        infinite = [p for p, q in law if q == 0] + [mass - sum((p for p, _ in law), arb(0))]
        return [(p, q, x, x) for x, p, q in finite] + [(p, arb(0), None, None) for p in infinite]
    half, base = kind in ("subset", "range"), params[0] if kind == "subset" else release
    if half and base[0] in LISTED:  # one response, of one loss above 0
        forward = [part for part in cells(base, False, []) if part[2] is None or part[2] > 0]
        need(sum(part[2] is not None for part in forward) == 1, "a loss that may be 0")
    else:
        points = tails(base, Fields(rules and rules.pop(0), "a rule"), half=half)
        ends = (points[0][2], points[-1][2]) if "laplace" in base[0] else (None, None)
        points = [(arb(1), arb(1), ends[0]), *points, (arb(0), arb(0), ends[1])]
        forward = [(p - u, q - v, x, y) for (p, q, x), (u, v, y) in pairwise(points)][half:]
    mirror = [(q, p, y and -y, x and -x) for p, q, x, y in forward[::-1]]
    if not half:
        return mirror if back else forward
    middle = 1 - sum((p + q for p, q, *_ in forward), arb(0))  # both directions cost the same
    return [*mirror, (middle, middle, arb(0), arb(0)), *forward]
def under(x: arb) -> int:  # the greatest whole number that is surely at most x
    floor = x.lower().floor().unique_fmpz()
    need(floor is not None, "a number is not known well enough")
    return int(floor or 0)
def law(outcome_cells: list[Any], h: arb, *, above: bool) -> tuple[dict[int, Any], arb]:
    """Return P of each loss kh of a pair above or below, and that of infinite losses."""
    # Under Q the ratio's mean in a part is p / q, and delta the mean of a convex function.  Above:
    # a part goes to the points a, b around its losses, p and q kept; what has no lowest loss moves
    # up.  Below: what waits before a point is joined with parts after it, until that is the mean;
    # where they do not suffice, the rest of what waits moves down to the point before.
    masses, infinite, k = defaultdict[int, Any](lambda: arb(0)), arb(0), 0
    # (waiting, lost): P and e^{kh} Q - P before the point k; (after, gained): P, P - e^{kh} Q after
    waiting = lost = after = gained = arb(0)
    for p, q, low, high in outcome_cells:
        if high is None and (above or q == 0):
            infinite += p
        elif above:
            a, b = under((high if low is None else low) / h), -under(-high / h)
            at_a = (h * a).exp() * q if low is not None and a < b else arb(0)
            at_b = (p - at_a) / (1 - (h * (a - b)).exp()) if low is not None and a < b else p
            masses[b] += at_b
            masses[a] += p - at_b
        elif p > 0 and q > 0:
            loss = (p / q).log()
            index, gain, unsplit = under(loss / h), p - (h * k).exp() * q, True
            if index == k and gain > lost - gained:
                share = ((lost - gained) / gain).upper().max(arb(0)).min(arb(1))  # exact
                masses[k] += waiting + after + share * p
                p, q, waiting = (1 - share) * p, (1 - share) * q, arb(0)
                unsplit = False
            elif index not in (k - 1, k):
                share = (gained / lost).lower().max(arb(0)).min(arb(1)) if lost > 0 else arb(0)
                masses[k] += after + share * waiting
                masses[k - 1] += (1 - share) * waiting
                waiting = lost = after = gained = arb(0)
            if waiting == 0 and unsplit and under(2 * loss / h) == 2 * index:
                masses[index] += p
                continue
            if waiting == 0:
                k, lost, after, gained = index + 1, arb(0), arb(0), arb(0)
            if index == k:
                after, gained = after + p, gained + gain
            else:
                waiting, lost = waiting + p, lost + (h * k).exp() * q - p
    share = (gained / lost).lower().max(arb(0)).min(arb(1)) if lost > 0 else arb(0)
    masses[k] += after + share * waiting
    masses[k - 1] += (1 - share) * waiting
    return masses, infinite
