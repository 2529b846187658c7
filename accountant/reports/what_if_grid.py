"""Epsilons of a plan with other noise, other counts and other deltas: what the sliders show."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from accountant.accountants.budget import Budget
from accountant.accountants.tight import Tight
from accountant.accountants.tight_curve import epsilons, helped
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.reports.plan_lines import Line, plan_of, scalable, times

NOISE = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0)
OFTEN = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
DELTAS = tuple(float(f"1e-{k}") for k in range(12, 2, -1))
Tick = Callable[[], None]


@final
@dataclass(frozen=True, slots=True)
class WhatIf:
    """``epsilon[i][j][k]`` at ``noise[i]``, ``often[j]`` and ``deltas[k]``; NaN: no such plan.

    Every value is an upper bound; those at factors of 1 are `Tight`'s own.
    """

    noise: tuple[float, ...]
    often: tuple[float, ...]
    deltas: tuple[float, ...]
    releases: tuple[int, ...]
    epsilon: tuple[tuple[tuple[float, ...], ...], ...]

    @property
    def here(self) -> tuple[int, int]:
        """Where the plan itself is."""
        return self.noise.index(1.0), self.often.index(1.0)


def axis(budget: Budget) -> tuple[float, ...]:
    """The deltas of a page, the budget's own among them."""
    return tuple(sorted({*DELTAS, budget.delta}))


def steps(lines: Sequence[Line]) -> int:
    """How often `what_if` will tick."""
    return len(_noise(lines)) * len(OFTEN)


def what_if(lines: Sequence[Line], budget: Budget, tick: Tick = lambda: None) -> WhatIf:
    """Return the grid; ``tick`` is called after every cell."""
    deltas, noise = axis(budget), _noise(lines)
    whole = plan_of(lines)
    others = helped(whole, (deltas[-1], budget.delta or deltas[1]))
    # small counts stay the same at other factors, too
    own = (1.0, *(line.count for line in lines))
    known: dict[tuple[object, ...], tuple[float, ...]] = {
        own: tuple(Tight().epsilon(whole, delta) for delta in deltas)
    }
    rows = []
    for factor in noise:
        row = []
        for often in OFTEN:
            # rounded up, small counts repeat
            key = (factor, *(times(line.count, often) for line in lines))
            if key not in known:
                known[key] = _cell(lines, factor, often, deltas, others)
            row.append(known[key])
            tick()
        rows.append(tuple(row))
    releases = tuple(sum(times(line.count, often) for line in lines) for often in OFTEN)
    return WhatIf(noise, OFTEN, deltas, releases, tuple(rows))


def _cell(
    lines: Sequence[Line], factor: float, often: float, deltas: Sequence[float], others: bool
) -> tuple[float, ...]:
    try:
        plan = plan_of(lines, factor, often)
    except ParameterError:  # a mechanism that has no such noise
        return (math.nan,) * len(deltas)
    try:
        return tuple(epsilons(plan, deltas, others=others))
    except UnsupportedPlan:
        return (math.nan,) * len(deltas)


def _noise(lines: Sequence[Line]) -> tuple[float, ...]:
    """Factors of the noise: 1 alone where nothing has noise to scale."""
    return NOISE if any(scalable(line.part) for line in lines) else (1.0,)
