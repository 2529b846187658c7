"""What a plan means where a release stands for a set of pairs, and which pairs of a set count.

A release is a pair (P, Q) of laws on two neighbours, or a set of such pairs (`releases`).  Plans
make sets: a user is in one part of a `Parallel`, and a group of records is split in one of several
ways between P and Q.  At each occurrence the part is chosen anew, and the choice may depend on all
earlier answers.  So an occurrence is one release that stands for a set, and the proof of an upper
end needs a pair that dominates every pair of the set.  A plan that is one such set and nothing else
has no earlier answers: each part is bounded alone.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from .document import ProofError, need
from .plan import read_plan
from .releases import ANY_OF, Release, Releases

MOST_PARTS = 128  # parts of one set at most, as the time of a check grows with their number
# The index of the shift in the tuple of a release, for each kind of log-concave noise.
SHIFTED = {"laplace": 1, "discrete gaussian": 2, "discrete laplace": 2, "summed noise": 4}


def alternatives(plan: Any, *, decimal: bool) -> list[Releases]:
    """Return the lists of releases that a user may pay for; delta of the plan is their greatest.

    There are several lists only where the plan is one set and nothing else: no earlier answers can
    then decide which part is chosen, so each part is bounded alone.
    """
    releases = read_plan(plan, decimal=decimal)
    items: list[Any] = list(releases.items())
    if len(items) == 1 and items[0][1] == 1 and items[0][0][0] == ANY_OF:
        return [without_dominated(Counter(dict(part))) for part in items[0][0][1]]
    return [without_dominated(releases)]


def without_dominated(releases: Releases) -> Releases:
    """Return the releases without those parts of a set that another part of it dominates.

    Theorem (`domination`: Zhu, Dong & Wang 2022, Theorem 10): a pair that another one dominates may
    be left out of a set, as whatever is chosen then costs at most what the other one does, with any
    third release.
    """
    undominated = Releases()
    for release, count in releases.items():
        if release[0] != ANY_OF:
            undominated[release] += count
            continue
        greatest: list[Releases] = []
        for part in (without_dominated(Counter(dict(option))) for option in release[1]):
            if not any(is_dominated(part, rival) for rival in greatest):
                greatest = [rival for rival in greatest if not is_dominated(rival, part)] + [part]
            need(len(greatest) <= MOST_PARTS, f"a set of more than {MOST_PARTS} parts to choose of")
        if len(greatest) == 1:
            undominated.update({release: n * count for release, n in greatest[0].items()})
        else:
            undominated[ANY_OF, tuple(tuple(part.items()) for part in greatest)] += count
    need(all(n <= 10**18 for n in undominated.values()), "too many releases")
    return undominated


def is_dominated(part: Releases, dominating: Releases) -> bool:
    """Return whether ``dominating`` is proved to cost at least as much as ``part``.

    Theorem (`composition`): Gaussians compose to one Gaussian, whose mu^2 is the sum of theirs, and
    one more release never costs less.  So Gaussians are compared by that sum, the releases that
    both lists have are taken away, and at most one kind of release that remains of ``part`` is
    compared with one kind of the other list.  False where this does not decide.
    """
    squares = [
        sum(release[1] * n for release, n in x.items() if release[0] == "gaussian")
        for x in (part, dominating)
    ]
    if squares[0] > squares[1]:
        return False
    remaining, others = (
        Counter({release: n for release, n in x.items() if release[0] != "gaussian"})
        for x in (part, dominating)
    )
    remaining, others = remaining - others, others - remaining
    if not remaining:
        return True
    if len(remaining) > 1 or len(others) != 1:
        return False
    (smaller, count), (larger, other_count) = *remaining.items(), *others.items()
    return count <= other_count and is_shifted_less(smaller, larger)


def is_shifted_less(smaller: Release, larger: Release) -> bool:
    """Return whether two releases are of one kind and the first has at most the second's shift.

    Theorem (`shifted_less`): of log-concave noise the best event is a half-line, so delta is the
    greatest of F(t) - e^eps F(t - s) over t, which rises with the shift s.  The delta of a response
    with parameters epsilon and d, which shows the record with chance d, rises with both.
    """
    if smaller[0] != larger[0]:
        return False
    if smaller[0] == "response":
        return bool(smaller[1] <= larger[1] and smaller[2] <= larger[2])
    if smaller[0] not in SHIFTED:
        return False
    at = SHIFTED[smaller[0]]
    is_alike = smaller[1:at] + smaller[at + 1 :] == larger[1:at] + larger[at + 1 :]
    return bool(is_alike and smaller[at] <= larger[at])


def on_path(releases: Releases, choices: list[Any]) -> Releases:
    """Return the releases that a user pays for where ``choices`` names the part of each set.

    The next element of ``choices`` belongs to the next set.  It is a list of rows
    [times, number, inside]: the part of this number is chosen ``times`` times, and ``inside`` are
    the choices for the sets within that part.
    """
    paid = Releases()
    for release, count in releases.items():
        if release[0] != ANY_OF:
            paid[release] += count
            continue
        need(choices, "a path without a choice for each set", ProofError)
        choice = choices.pop(0)
        need(
            isinstance(choice, list) and all(map(is_choice, choice)),
            "a choice is wrong",
            ProofError,
        )
        need(sum(times for times, *_ in choice) == count, "a path of other length", ProofError)
        for times, number, inside in choice:
            need(number < len(release[1]), "a choice of no part", ProofError)
            part = on_path(Counter(dict(release[1][number])), inside)
            paid.update({release: n * times for release, n in part.items()})
    need(not choices, "a path with more choices than sets", ProofError)
    return paid


def is_choice(row: Any) -> bool:
    """Return whether a value is a row [times, number, inside] of whole numbers and a list."""
    if not isinstance(row, list) or len(row) != 3 or not isinstance(row[2], list):
        return False
    times, number, _ = row
    return type(times) is type(number) is int and 1 <= times <= 10**18 and 0 <= number < MOST_PARTS
