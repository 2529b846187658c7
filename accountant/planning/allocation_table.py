"""The result of `allocate`: each wanted release with its noise and its error, and the total cost.

The errors are those of the measure of each request (`Wanted`), the cost is epsilon at the delta of
the budget.  The result prints as a table.
"""

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
    """Wanted releases with the noise scales that `allocate` found for them.  Prints as a table.

    Parameters
    ----------
    releases : tuple of Wanted
        The requests: a family of mechanisms, a count, and the wanted accuracy of each.
    scales : tuple of float or None
        The noise scale for each of ``releases``, in the units of its query; None where the family
        is a plan, whose noise is fixed.
    budget : Budget
        The epsilon and delta that all releases together may cost.
    epsilon : float
        Upper bound on what they cost at the budget's delta, by `Tight`.

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
        """All releases in sequence, as the plan to give to a `Ledger`."""
        return sequential_plan(self.releases, self.scales)

    @functools.cached_property
    def errors(self) -> tuple[float | None, ...]:
        """For each request the error of a single release; None without an error measure."""
        pairs = zip(self.releases, self.scales, strict=True)
        return tuple(release.error_at(scale) for release, scale in pairs)

    @property
    def total(self) -> float:
        """The sum that `allocate` minimises: of count times weight times error, if weighted."""
        pairs = zip(self.releases, self.errors, strict=True)
        return sum(
            release.count * (release.weight or 0.0) * (error or 0.0) for release, error in pairs
        )

    def __repr__(self) -> str:
        epsilon_upper = format_upper(self.epsilon, 9)
        return f"<Allocation: epsilon {epsilon_upper} for {self.plan!r}>"

    def _table(self) -> Table:
        rows = []
        for release, scale, error in zip(self.releases, self.scales, self.errors, strict=True):
            noise_scale = scale
            if scale is None:  # a fixed plan: the scale that all its mechanisms share, if any
                scales = {getattr(part, "scale", None) for part in inner_plans(release.plan(None))}
                noise_scale = scales.pop() if len(scales) == 1 else None
            source = "noise set by hand"
            if release.weight is not None:
                source = f"weight {release.weight:g}"
            elif release.target is not None:
                source = f"target {release.target:g}"
            rows.append((release.label, release.count, noise_scale, error, source))
        budget = f"budget: epsilon {self.budget.epsilon:g} at delta {self.budget.delta:g}"
        caption = f"epsilon {format_upper(self.epsilon, 9)}; {budget}"
        return Table(COLUMNS, rows, caption)

    def __str__(self) -> str:
        table = self._table()
        rows = [COLUMNS, *map(table.shown_row, table.rows)]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = [
            f"{label:<{widths[0]}}  {count:>{widths[1]}}  {noise_text:>{widths[2]}}  "
            f"{error:>{widths[3]}}  {source}".rstrip()
            for label, count, noise_text, error, source in rows
        ]
        budget = f"the budget is {self.budget.epsilon:g} at delta {self.budget.delta:g}"
        return "\n".join([*lines, f"epsilon {format_upper(self.epsilon, 9)}; {budget}"])


def sequential_plan(releases: tuple[Wanted, ...], scales: tuple[float | None, ...]) -> Plan:
    """Return one sequence of all releases, each repeated ``count`` times, at the given scales."""
    parts = [
        release.plan(scale) if release.count == 1 else Repeat(release.plan(scale), release.count)
        for release, scale in zip(releases, scales, strict=True)
    ]
    return parts[0] if len(parts) == 1 else Sequential(parts)
