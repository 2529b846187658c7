"""Ticks of an axis."""

from accountant import Budget
from accountant.reports.plan_lines import PlanLine
from accountant.reports.plan_summary import step_count, summarise
from mechanisms import Gaussian

BUDGET = Budget(2.0, 1e-6)


def test_ticks_are_as_many_as_were_said():
    ticks, lines = [], [PlanLine(Gaussian(scale=20.0), 3)]
    summarise(lines, BUDGET, ticks.append)
    assert sum(ticks) == step_count(lines)
