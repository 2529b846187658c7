"""Which engines `Tight` planned for a plan, what they were to cost, and which of them answered.

An engine is a method that bounds epsilon.  `Tight` estimates what each would cost, and tries them
from the cheapest on, until an interval is narrow enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from accountant.accountants.direction import Direction
from accountant.accountants.tight import Tight
from accountant.domains import DELTA
from accountant.plans.plan import Plan, as_plan, directions
from accountant.table_display import Table, TableDisplay

# Engines estimate their costs in products of two complex numbers, which take about this long.
SECONDS_OF_A_PRODUCT = 2e-9
COLUMNS = ("direction", "engine", "planned ms", "lower", "upper")


@final
@dataclass(frozen=True, slots=True)
class EngineChoice(TableDisplay):
    """The attempts of engines at the epsilon of a plan, in the order in which they were planned.

    Parameters
    ----------
    rows : tuple
        The direction, the engine, what it was to cost in milliseconds, and the ends of its
        interval; None where a cheaper one was narrow enough.
    """

    rows: tuple[tuple[str, str, float, float | None, float | None], ...]

    def __str__(self) -> str:
        table = self._table()
        lines = [list(table.columns), *(table.shown_row(row) for row in table.rows)]
        if any(upper is None for *_, upper in self.rows):
            lines.append(["no ends: a cheaper engine was narrow enough", "", "", "", ""])
        widths = [
            max(map(len, column)) for column in zip(*lines[: 1 + len(self.rows)], strict=True)
        ]
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )

    def _table(self) -> Table:
        return Table(COLUMNS, self.rows, upper=("upper",), lower=("lower",))


def engine_choice(plan: Plan, delta: float) -> EngineChoice:
    """Return which engines answer the epsilon of a plan, and what they were to cost.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.
    delta : float
        In [0, 1).

    Returns
    -------
    EngineChoice
        For each direction of the neighbours.  An engine that is not listed was to cost more, or
        does not apply.

    Examples
    --------
    >>> from accountant import GaussianLoss
    >>> from accountant.reports.engine_choice import engine_choice
    >>> engine_choice(52 * GaussianLoss(0.1), 1e-6).rows[0][:2]
    ('only', 'closed form')
    """
    plan, delta = as_plan(plan), DELTA.check("delta", delta)
    both = directions(plan)
    names = ("forward", "reversed") if len(both) > 1 else ("only",)
    rows = [
        (name, engine, 1e3 * SECONDS_OF_A_PRODUCT * cost, *ends)
        for name, direction in zip(names, both, strict=True)
        for engine, cost, interval in Direction(direction, Tight().width).journal(delta)
        for ends in [(None, None) if interval is None else (interval.lower, interval.upper)]
    ]
    return EngineChoice(tuple(rows))
