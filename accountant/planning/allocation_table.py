"""The table of an allocation: each release with its noise and error, and the total cost."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import final

from accountant.accountants.budget import Budget
from accountant.formatting import format_upper
from accountant.planning.error_measures import inner_plans
from accountant.planning.requests import Wanted
from accountant.plans.plan import Plan, Repeat, Sequential
from accountant.table_display import Table, TableDisplay

COLUMNS = ("release", "count", "noise", "error", "decided by")


@final
@dataclass(frozen=True)
class Allocation(TableDisplay):
    """Wanted releases with the noise scales that were found for them.  Prints a table.

    Parameters
    ----------
    releases : tuple of Wanted
        What was asked for.
    scales : tuple of float or None
        One a release; None where the family was a plan, which has its noise.
    budget : Budget
        What it may cost.
    epsilon : float
        Upper bound on the cost at the budget's delta, by `Tight`.

    Examples
    --------
    >>> from accountant import Budget, Deviation, Wanted, allocate
    >>> from mechanisms import Laplace
    >>> found = allocate([Wanted(Laplace, Deviation(), weight=1.0)], Budget(0.5))
    >>> round(found.scales[0], 3), round(found.total, 3)
    (2.0, 2.828)
    """

    releases: tuple[Wanted, ...]
    scales: tuple[float | None, ...]
    budget: Budget
    epsilon: float

    @functools.cached_property
    def plan(self) -> Plan:
        """The plan for a `Ledger`."""
        return sequential_plan(self.releases, self.scales)

    @functools.cached_property
    def errors(self) -> tuple[float | None, ...]:
        """The error of one release each, in the units of its query; None where none was asked."""
        pairs = zip(self.releases, self.scales, strict=True)
        return tuple(release.error_at(scale) for release, scale in pairs)

    @property
    def total(self) -> float:
        """The minimised sum: count times weight times error."""
        pairs = zip(self.releases, self.errors, strict=True)
        return sum(
            release.count * (release.weight or 0.0) * (error or 0.0) for release, error in pairs
        )

    def __repr__(self) -> str:
        epsilon_upper = format_upper(self.epsilon, 9)
        return f"<Allocation: epsilon {epsilon_upper} for {self.plan!r}>"

    def _table(self) -> Table:
        rows = [
            (
                release.label,
                release.count,
                _own_scale(release) if scale is None else scale,
                error,
                _noise_source(release),
            )
            for release, scale, error in zip(self.releases, self.scales, self.errors, strict=True)
        ]
        budget = f"budget: epsilon {self.budget.epsilon:g} at delta {self.budget.delta:g}"
        caption = f"epsilon {format_upper(self.epsilon, 9)}; {budget}"
        return Table(COLUMNS, rows, caption)

    def __str__(self) -> str:
        rows = [COLUMNS]
        for release, scale, error in zip(self.releases, self.scales, self.errors, strict=True):
            noise_scale = _own_scale(release) if scale is None else scale
            noise = "" if noise_scale is None else f"{noise_scale:.6g}"
            shown = "" if error is None else f"{error:.6g}"
            count = f"{release.count:,}"
            rows.append((release.label, count, noise, shown, _noise_source(release)))
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = [
            f"{label:<{widths[0]}}  {count:>{widths[1]}}  {noise:>{widths[2]}}  "
            f"{error:>{widths[3]}}  {source}".rstrip()
            for label, count, noise, error, source in rows
        ]
        budget = f"the budget is {self.budget.epsilon:g} at delta {self.budget.delta:g}"
        return "\n".join([*lines, f"epsilon {format_upper(self.epsilon, 9)}; {budget}"])


def sequential_plan(releases: tuple[Wanted, ...], scales: tuple[float | None, ...]) -> Plan:
    """Return the releases as one sequence."""
    parts = [
        release.plan(scale) if release.count == 1 else Repeat(release.plan(scale), release.count)
        for release, scale in zip(releases, scales, strict=True)
    ]
    return parts[0] if len(parts) == 1 else Sequential(parts)


def _own_scale(release: Wanted) -> float | None:
    """Return the noise scale of a mechanism that has only one; else None."""
    scales = {getattr(part, "scale", None) for part in inner_plans(release.plan(None))}
    return scales.pop() if len(scales) == 1 else None


def _noise_source(release: Wanted) -> str:
    if release.weight is not None:
        return f"weight {release.weight:g}"
    return "noise set by hand" if release.target is None else f"target {release.target:g}"
