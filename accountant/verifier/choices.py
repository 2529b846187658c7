"""What a plan means where a release stands for several pairs.

A user is in one part of a `Parallel`, and a group of records is split in one way between P and Q.
At each occurrence the part is chosen anew, and the choice may depend on all earlier answers.  So an
occurrence is one release that stands for a set, and an upper end needs a pair above all of the set.
A plan that is one such set and nothing else has no earlier answers: each part is bounded alone.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from .document import ProofError, need
from .plan import read_plan
from .releases import ANY_OF, Release, Releases

MOST_PARTS = 128  # of a set: the work grows with their number
SHIFTED = {"laplace": 1, "discrete gaussian": 2, "discrete laplace": 2}  # where the shift stands


def alternatives(plan: Any, *, decimal: bool) -> list[Releases]:
    """Return what a user may pay for: delta of the plan is the greatest of all.

    A plan that is one set and nothing else has no earlier answers, so each part stands alone.
    """
    releases = read_plan(plan, decimal=decimal)
    items: list[Any] = list(releases.items())
    if len(items) == 1 and items[0][1] == 1 and items[0][0][0] == ANY_OF:
        return [without_dominated(Counter(dict(part))) for part in items[0][0][1]]
    return [without_dominated(releases)]


def without_dominated(releases: Releases) -> Releases:
    """Return the releases with no part in a set that another part is above.

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
    """Return whether the other releases surely cost at least as much, in both directions.

    Theorem (`composition`): Gaussians compose to one, of the sum of mu^2, and a release more costs
    at least as much.  So Gaussians are compared by that sum, what both sides have is taken away,
    and one kind of release is compared with one other.
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
    """Return whether a release is of the kind of another, of a smaller shift.

    Theorem (`shifted_less`): of log-concave noise the best event is a half-line, so delta is the
    greatest of F(t) - e^eps F(t - s), which rises with the shift s.  Of a response that shows the
    record with chance d it rises with d and with epsilon.
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
    """Return what a user pays for on one path: ``choices`` names the part at each occurrence.

    Each set of releases takes the next of the choices: rows of how often, the number of a part,
    and the choices inside of that part.
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
    """Return whether a row of a choice is: how often, the number of a part, choices inside."""
    if not isinstance(row, list) or len(row) != 3 or not isinstance(row[2], list):
        return False
    times, number, _ = row
    return type(times) is type(number) is int and 1 <= times <= 10**18 and 0 <= number < MOST_PARTS
