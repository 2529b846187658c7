"""What a plan would cost, or how large its error would be, if it were changed; no data are needed.

The changes are more records, one release more, another delta, or groups of people.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import final

from accountant.accountants.budget import Budget
from accountant.accountants.tight import Tight
from accountant.amplification.group_privacy import Grouped
from accountant.domains import DELTA, POSITIVE, RECORDS, IntegerRange, each_checked
from accountant.errors import BudgetExceeded, ParameterError
from accountant.numerics.search import grow_until
from accountant.planning.allocation import allocate, checked_requests
from accountant.planning.allocation_table import Allocation
from accountant.planning.requests import Wanted
from accountant.plans.plan import Plan

MAX_RECORDS = 2**50  # the search for a number of records ends here
PRECISION = 10**6  # the number of records that is returned may be a millionth too large


def with_more_records(releases: Iterable[Wanted], factor: float) -> tuple[Wanted, ...]:
    """Return the same releases of means over more records.

    The sensitivity of a mean is divided by ``factor``.

    Parameters
    ----------
    releases : iterable of Wanted
        Of mechanism classes that are given a sensitivity.
    factor : float
        How many times as many records, above 0.

    Returns
    -------
    tuple of Wanted
        The releases, in order.

    Examples
    --------
    >>> from accountant import Deviation, Wanted, with_more_records
    >>> from mechanisms import Laplace
    >>> mean = Wanted(Laplace, Deviation(), weight=1.0, sensitivity=0.01)
    >>> round(with_more_records([mean], 2.0)[0].unit, 6)
    0.005
    """
    factor = POSITIVE.check("factor", factor)
    with_more = []
    for release in checked_requests(releases):
        fields = dict(release.fields)
        if "sensitivity" not in fields:
            allowed = "of a class that is given its sensitivity"
            raise ParameterError("releases", release.label, allowed)
        fields["sensitivity"] = fields["sensitivity"] / factor
        with_more.append(
            Wanted(
                release.family,
                release.error,
                count=release.count,
                scale=release.scale,
                target=release.target,
                weight=release.weight,
                name=release.name,
                **fields,
            )
        )
    return tuple(with_more)


def one_more(found: Allocation, release: Wanted) -> Allocation:
    """Return the same budget, shared with one release more.

    Parameters
    ----------
    found : Allocation
        What was shared before.
    release : Wanted
        The new release.

    Returns
    -------
    Allocation
        New scales for all.

    Raises
    ------
    BudgetExceeded
        As `allocate`.

    Examples
    --------
    >>> from accountant import Budget, Deviation, Wanted, allocate, one_more
    >>> from mechanisms import Laplace
    >>> wanted = Wanted(Laplace, Deviation(), weight=1.0)
    >>> [round(s, 3) for s in one_more(allocate([wanted], Budget(1.0)), wanted).scales]
    [2.0, 2.0]
    """
    if not isinstance(found, Allocation):
        raise ParameterError("found", found, "an Allocation, which allocate returns")
    return allocate((*found.releases, release), found.budget)


def at_deltas(plan: Plan, deltas: Iterable[float]) -> tuple[tuple[float, float], ...]:
    """Return what a plan costs at each delta.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.
    deltas : iterable of float
        Each in [0, 1).

    Returns
    -------
    tuple of (delta, epsilon)
        Epsilons rounded up.

    Examples
    --------
    >>> from accountant import PureLoss, at_deltas
    >>> at_deltas(2 * PureLoss(0.5), [0.0])
    ((0.0, 1.0),)
    """
    checked_deltas = each_checked(DELTA, "deltas", deltas)
    return tuple((delta, Tight().epsilon(plan, delta)) for delta in checked_deltas)


def for_groups(plan: Plan, delta: float, sizes: Iterable[int]) -> tuple[tuple[int, float], ...]:
    """Return what a plan promises to groups of people whose records all are in the data.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.
    delta : float
        In [0, 1).
    sizes : iterable of int
        Each at least 1.

    Returns
    -------
    tuple of (size, epsilon)
        Epsilons rounded up.

    Examples
    --------
    >>> from accountant import PureLoss, for_groups
    >>> [(size, round(epsilon, 6)) for size, epsilon in for_groups(PureLoss(0.5), 0.0, [1, 2])]
    [(1, 0.5), (2, 1.0)]
    """
    return tuple((size, Tight().epsilon(Grouped(plan, size), delta)) for size in sizes)


@final
@dataclass(frozen=True, slots=True)
class Needed:
    """How many records an error needs.

    Parameters
    ----------
    records : int
        A number of records that suffices.
    error : float
        The error with this number of records.
    lower : int or None
        With fewer records no private algorithm has this error; None where no lower bound was given.

    Examples
    --------
    >>> from accountant import Needed
    >>> Needed(records=1200, error=0.01, lower=300).records
    1200
    """

    records: int
    error: float
    lower: int | None = None

    def __str__(self) -> str:
        sentence = f"{self.records:,} records suffice for an error of {self.error:.6g}"
        if self.lower is None:
            return sentence
        return f"{sentence}; no private algorithm has it with fewer than {self.lower:,}"


def records_needed(
    releases: Sequence[Wanted],
    budget: Budget,
    which: int,
    target: float,
    records: int,
    lower_bound: Callable[[float, Budget], int] | None = None,
) -> Needed:
    """Return how many records bring the error of one release down to a target.

    The budget is shared anew for each number tried.

    Parameters
    ----------
    releases : sequence of Wanted
        Means, their sensitivities stated for ``records``.
    budget : Budget
        What they may cost in all.
    which : int
        Index of the release.
    target : float
        Its error, above 0.
    records : int
        Records that the sensitivities were stated for.
    lower_bound : callable, optional
        ``lower_bound(target, budget)``: records that any private algorithm needs.

    Returns
    -------
    Needed
        The fewest records found.

    Raises
    ------
    BudgetExceeded
        If releases of fixed noise or target cost more than the budget with 2^50 records too.
    ParameterError
        If 2^50 records do not reach the target.

    Examples
    --------
    >>> from accountant import Budget, Deviation, Wanted, records_needed
    >>> from mechanisms import Laplace
    >>> mean = Wanted(Laplace, Deviation(), weight=1.0, sensitivity=0.01)
    >>> records_needed([mean], Budget(1.0), which=0, target=0.001, records=100).records
    1415
    """
    releases = checked_requests(releases)
    target, records = POSITIVE.check("target", target), RECORDS.check("records", records)
    which = IntegerRange(0, len(releases) - 1).check("which", which)

    @functools.cache
    def error(n: int) -> float:
        error_reached = allocate(with_more_records(releases, n / records), budget).errors[which]
        if error_reached is None:
            raise ParameterError("which", which, "a release with an error measure")
        return error_reached

    def suffices(n: int) -> bool:
        try:
            return error(n) <= target
        except BudgetExceeded:  # by releases of a given target, which cost less with more records
            return False

    low, high = grow_until(suffices, records, MAX_RECORDS)
    if error(high) > target:
        raise ParameterError("target", target, "an error that 2^50 records reach")
    while high - low > max(1, high // PRECISION):
        # Errors fall about as 1 / n, so the guess is a little above the number that suffices.
        guess = int(high * error(high) / target * (1 + 1e-6)) + 1
        middle = guess if low < guess < high else (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    bound = None if lower_bound is None else lower_bound(target, budget)
    return Needed(high, error(high), bound)
