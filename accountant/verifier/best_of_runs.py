"""The best of a random number of runs: a pair above it, from bounds on delta of one run.

A run releases some releases (`releases`), K runs are made, K drawn apart from the data, and the
output of the run with the best score is published.  With f(x) = E x^K, an outcome that one run
betters with chance u is the best with f'(1 - u) times its density in one run.  P and Q are the laws
of one run on two neighbours, and delta(e) is the delta of one run, P against Q.

Theorem (`tests_of_one_run`: docs/proofs/repeated.md, 4): an event of chance u under P has under Q a
chance of at most u + gap(u), gap(u) the least of (e^s - 1) u + d(s) over any s >= 0, where d(s) is
the delta of Q against P at s; and of at most 1.

Theorem (`best_of_runs`: the same): the delta of the best run at e is at most E_P Phi(e^e q / p),
Phi(y) = sup over u of max(0, f'(1 - u) - y f'(1 - u - gap(u))).  A convex polygon above Phi with
the corners (y_k, h_k), the last of height 0, is a sum of terms w_k max(0, 1 - y / y_k), and then
delta of the best run is at most the sum of w_k delta(e - ln y_k).  For a Poisson number, which may
be 0, this holds at e >= 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial, reduce
from itertools import pairwise
from typing import Any

from flint import arb, ctx

from .balls import exact, spend
from .bounding_pairs import bounding_pair
from .document import Fields, ProofError, is_list, need
from .lattice_sums import composed
from .methods import METHODS, Items, delta_bounds
from .releases import POISSON, Release, Releases

MOST_POINTS = 2000  # of each list of an entry, which bounds the time of a check
Points = list[tuple[Fraction, arb]]  # (epsilon, upper bound on delta) of one run
Profile = Callable[[arb], arb]  # an upper bound on delta, as a function of epsilon


def items_above(releases: Releases, back: bool, entry: Fields) -> Items:
    """Return the releases with a pair above each best of runs, for an upper end.

    Each takes its table from the front of the field "best".  Every other release is exchanged by
    `bounding_pair`.
    """
    tables = entry.take("best", [], fits=is_list)
    items: Items = []
    for release, count in releases.items():
        if release[0] == "best":
            need(tables, "a best of runs without a table")
            items.append((pair_above_best(release, back, Fields(tables.pop(0), "a best")), count))
        else:
            items += pairs_above([(release, count)])
    need(not tables, "more tables than bests of runs", ProofError)
    return items


def pairs_above(items: Iterable[tuple[Release, int]]) -> Items:
    """Return a pair above each release; there is always one."""
    pairs = ((bounding_pair(release, above=True), count) for release, count in items)
    return [(pair, count) for pair, count in pairs if pair]


def one_run(releases: Releases) -> Releases:
    """Return the releases with one run in place of each best of runs, for a lower end.

    Theorem (`one_run`: docs/proofs/repeated.md, 6): where there is surely a run, a score that is
    always the same releases the output of one.  A Poisson number may be 0, and nothing is released.
    """
    paid = Releases()
    for release, count in releases.items():
        if release[0] != "best":
            paid[release] += count
        elif release[1][0] != POISSON:
            paid.update({run: n * count for run, n in release[2]})
    return paid


def pair_above_best(release: Release, back: bool, table: Fields) -> Release:
    """Return a pair above the best of runs whose profile has corners at the knots of a table.

    At a knot it has the bound on delta that the points of the table show.  The table has the points
    for P against Q, then those for Q against P; with ``back`` the other way round.

    Theorem (`mirrored_delta`): at e < 0, delta is 1 - e^e (1 - d(-e)), d of Q against P.

    Theorem (`chords_of_a_set`): delta is convex in e^e, and so at most the polygon through (0, 1)
    and bounds at some knots, which is constant after the last one.  The polygon is the delta of the
    pair of masses q_j at the losses of the knots, the change of its slope, and p_j = e^loss q_j.
    """
    _, tries, runs = release
    items = pairs_above(runs)
    points, mirrored = (
        points_of_run(table.take(key, fits=is_list), items, is_back)
        for key, is_back in (("points", back), ("mirrored", not back))
    )
    ahead = best_profile(tries, points, mirrored, table.take("terms"))
    behind_terms = table.take("mirrored terms", None)
    behind = best_profile(tries, mirrored, points, behind_terms) if behind_terms else None
    corners = [(arb(0), arb(1))]
    for knot in reals(table, "knots", -1e6, 1e6):
        y, e = arb(knot).exp(), arb(knot)
        if knot >= 0:
            delta = ahead(e)
        else:
            need(behind, "a knot below 0 without mirrored terms")
            delta = 1 - y * (1 - behind(-e)) if behind else arb(1)
        corner = y, delta.upper().min(arb(1))
        while len(corners) > 1 and not is_convex(*corners[-2:], corner):
            corners.pop()
        if corner[1] < corners[-1][1]:
            corners.append(corner)
    table.done()
    slopes = [(d - c) / (y - x) for (x, c), (y, d) in pairwise(corners)] + [arb(0)]
    q_masses = [after - before for before, after in pairwise(slopes)]
    masses = [(y * q, q) for (y, _), q in zip(corners[1:], q_masses, strict=True)]
    masses.append((corners[-1][1], arb(0)))
    return "pair", tuple((q, p) if back else (p, q) for p, q in masses)


def is_convex(*corners: tuple[arb, arb]) -> bool:
    """Return whether the second of three corners is surely below the chord of the others."""
    (x, a), (y, b), (z, c) = corners
    return bool((b - a) * (z - y) < (c - b) * (y - x))


def reals(fields: Fields, key: str, low: float, high: float) -> list[float]:
    """Return a list of rising floats of a field, each in its hexadecimal form."""
    texts = fields.take(key, fits=is_list)
    need(len(texts) <= MOST_POINTS, f"too many {key}")
    values = [Fields({key: text}, fields.name).real(key, low, high) for text in texts]
    need(all(x < y for x, y in pairwise(values)), f"{key} that do not rise", ProofError)
    return values


def points_of_run(rows: list[Any], items: Items, back: bool) -> Points:
    """Return (epsilon, upper bound on delta) of one run for each end of the rows.

    Each row names the method for its ends; only one lattice serves several of them.
    """
    points: Points = []
    for row in rows:
        fields = Fields(row, "a point")
        ends, method = (
            reals(fields, "ends", -1e6, 1e6),
            fields.take("road", fits=METHODS.__contains__),
        )
        with ctx.workprec(fields.whole("bits", 64, 4096)):
            if method == "lattice":
                bounds = composed(items, back, fields, above=True)
            else:
                need(len(ends) == 1, "only one lattice serves several points")
                bounds = partial(delta_bounds, method, items, back, fields, above=True)
            points += [(Fraction(end), bounds(end)[1].upper().min(arb(1))) for end in ends]
        fields.done()
    need(len(points) <= MOST_POINTS, "too many points")
    need(all(x < y for (x, _), (y, _) in pairwise(points)), "points that do not rise", ProofError)
    return points


def best_profile(
    tries: tuple[Any, ...],
    points: Points,
    mirrored: Points,
    value: Any,
) -> Profile:
    """Return a bound on the delta of the best run, at every epsilon of at least 0.

    ``points`` bound delta of one run, and ``mirrored`` that of the other direction.  The terms name
    ``tails`` between which u is cut into ``parts`` equal cells, and the logarithms of the corners.

    In a cell from u to v, f'(1 - u) is greatest at u; and the ratio of f'(1 - u) to
    f'(1 - u - gap(u)) is at most that of the tail u and gap(v), as it falls with the tail and rises
    with the gap.  Along one line it is monotone, and where the line is above 1 it falls; so for
    each line it is at most the greater of its values at u = 0 and where the line is 1.
    """
    fields = Fields(value, "the terms of a best")
    ends, parts = reals(fields, "tails", 2.0**-999, 1 - 2.0**-53), fields.whole("parts", 1, 100)
    tails = [
        x + (y - x) * k / parts
        for x, y in pairwise(map(arb, [0.0, *ends, 1.0]))
        for k in range(parts)
    ]
    tails.append(arb(1))
    shifts = [arb(s) for s in reals(fields, "shifts", -1e6, 1e6)]
    fields.done()
    lines = [(exact(s).exp() - 1, d) for s, d in mirrored if s >= 0]
    need(lines and shifts, "a best without lines or corners")
    spend(5 * len(tails) * (len(lines) + len(shifts)))
    ratios_of_lines = []
    for rise, delta in lines:
        tail_at_one = (1 - delta) / (1 + rise)
        at_ends = (arb(0), delta), (tail_at_one, 1 - tail_at_one)
        ratios_of_lines.append(reduce(arb.max, (slope_ratio(tries, u, gap) for u, gap in at_ends)))
    greatest = reduce(arb.min, ratios_of_lines).upper()
    cells = []
    for u, v in pairwise(tails):
        gap = reduce(arb.min, (rise * v + delta for rise, delta in lines), 1 - u)
        cells.append((slope_share(tries, u), slope_ratio(tries, u, gap).min(greatest).upper()))
    corners = [shift.exp() for shift in shifts]
    need(all(ratio <= corners[-1] for _, ratio in cells), "a last corner below the greatest ratio")
    heights = [
        reduce(arb.max, (share * (1 - y / ratio) for share, ratio in cells), arb(0)).upper()
        for y in [arb(0), *corners[:-1]]
    ]
    heights.append(arb(0))
    points_of_polygon = zip([arb(0), *corners], heights, strict=True)
    slopes = [(h - g) / (y - x) for (x, g), (y, h) in pairwise(points_of_polygon)]
    # The polygon is convex up to the radii of its heights: a weight that may be negative is raised
    # to 0, which raises the sum.
    mean = mean_of_tries(tries)
    weights = [
        (mean * (after - before) * y).upper().max(arb(0))
        for before, after, y in zip(slopes, [*slopes[1:], arb(0)], corners, strict=True)
    ]

    def delta_of_run(epsilon: arb) -> arb:
        if epsilon < 0:
            return 1 - epsilon.exp() * (1 - delta_between(mirrored, -epsilon))
        return delta_between(points, epsilon)

    def profile(epsilon: arb) -> arb:
        terms = (w * delta_of_run(epsilon - s) for w, s in zip(weights, shifts, strict=True))
        return sum(terms, arb(0))

    return profile


def delta_between(points: Points, epsilon: arb) -> arb:
    """Return a bound on delta by the chord of two points: delta is convex in e^epsilon, and falls.

    Below the first point the chord begins at delta = 1 where e^epsilon = 0; beyond the last point
    delta is at most what it is there.
    """
    below, above = None, None
    for end, delta in points:
        if exact(end) <= epsilon:
            below = end, delta
        else:
            above = end, delta
            break
    if above is None:
        return below[1] if below else arb(1)
    x, delta_x = (exact(below[0]).exp(), below[1]) if below else (arb(0), arb(1))
    y, delta_y = exact(above[0]).exp(), above[1]
    share = ((epsilon.exp() - x) / (y - x)).max(arb(0)).min(arb(1))
    return (delta_x + (delta_y - delta_x) * share).upper()


def mean_of_tries(tries: tuple[Any, ...]) -> arb:
    """Return E K: the mean of a Poisson law, or eta (1 - g) / (g (1 - g^eta)) with stop g."""
    family, *numbers = tries
    if family == POISSON:
        return exact(numbers[0])
    shape, stop = map(exact, numbers)
    share = shape / (1 - stop**shape) if numbers[0] else -1 / stop.log()
    return share * (1 - stop) / stop


def slope_share(tries: tuple[Any, ...], tail: arb) -> arb:
    """Return f'(1 - u) / f'(1): e^{-mean u}, or (1 + c u)^{-(1 + eta)} with c = (1 - g) / g."""
    family, *numbers = tries
    if family == POISSON:
        return (-exact(numbers[0]) * tail).exp()
    shape, stop = map(exact, numbers)
    return (1 + (1 - stop) / stop * tail) ** (-1 - shape)


def slope_ratio(tries: tuple[Any, ...], tail: arb, gap: arb) -> arb:
    """Return f'(1 - u) / f'(1 - u - gap), which falls with u and rises with the gap."""
    family, *numbers = tries
    if family == POISSON:
        return (exact(numbers[0]) * gap).exp()
    shape, stop = map(exact, numbers)
    c = (1 - stop) / stop
    return (1 + c * gap / (1 + c * tail)) ** (1 + shape)
