"""All accountants side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from accountant.accountant import Accountant
from accountant.advanced import Advanced
from accountant.basic import Basic
from accountant.domains import DELTA
from accountant.errors import UnsupportedPlan
from accountant.gdp import GDP
from accountant.plan import Plan, as_plan
from accountant.pld import PLD
from accountant.rdp import RDP
from accountant.tight import Tight
from accountant.zcdp import ZCDP

SOUND: tuple[Accountant, ...] = (Basic(), Advanced(), ZCDP(), RDP(), GDP(), PLD(), Tight())


@final
@dataclass(frozen=True, slots=True)
class Row:
    """One accountant's answer; ``epsilon`` is None where it cannot bound the plan."""

    accountant: str
    epsilon: float | None
    seconds: float


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """The answers of all accountants for one plan at one delta; prints as a table."""

    plan: Plan
    delta: float
    rows: tuple[Row, ...]

    @property
    def best(self) -> Row:
        """The row with the least epsilon."""
        known = [row for row in self.rows if row.epsilon is not None]
        return min(known, key=lambda row: row.epsilon if row.epsilon is not None else 0.0)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __str__(self) -> str:
        lines = [f"epsilon at delta {self.delta:g}", f"{'accountant':<12}{'epsilon':>14}{'ms':>10}"]
        for row in self.rows:
            shown = "cannot say" if row.epsilon is None else f"{row.epsilon:.6f}"
            mark = "  <- least" if row is self.best else ""
            lines.append(f"{row.accountant:<12}{shown:>14}{row.seconds * 1e3:>10.1f}{mark}")
        return "\n".join(lines)


def compare(plan: Plan, delta: float) -> Comparison:
    """Ask every accountant for the epsilon of ``plan`` at ``delta``; one row each."""
    plan, delta = as_plan(plan), DELTA.check("delta", delta)
    rows = []
    for one in SOUND:
        start = time.perf_counter()
        try:
            epsilon = one.epsilon(plan, delta)
        except UnsupportedPlan:
            epsilon = None
        rows.append(Row(one.name, epsilon, time.perf_counter() - start))
    return Comparison(plan, delta, tuple(rows))
