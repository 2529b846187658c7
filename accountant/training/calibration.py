"""From a target epsilon to the noise, or to how long a run may be."""

from __future__ import annotations

from dataclasses import replace

from accountant.accountants.budget import Budget
from accountant.accountants.tight import Tight
from accountant.errors import ParameterError
from accountant.planning.calibration import calibrate, calibrate_near
from accountant.planning.capacity import CAPACITY_CAP, remaining_capacity
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Plan
from accountant.training.loaders import SAMPLING
from accountant.training.rows import COARSE
from accountant.training.run import TrainingRun
from accountant.training.schemes import record_scheme


def least_noise(run: TrainingRun, relation: Adjacency, epsilon: float, delta: float) -> float:
    """Return the least noise with which a record's epsilon is within the target."""

    def plans(noise: float) -> tuple[Plan, ...]:
        micro = run.microbatching
        return record_scheme(run, noise, run.loader, relation, microbatching=micro).above

    def least_of(plan_index: int) -> float:
        def plan_of(noise: float) -> Plan:
            return plans(noise)[plan_index]

        # narrow intervals take long, so a coarse answer comes first
        coarse_noise = calibrate(plan_of, epsilon=epsilon, delta=delta, accountant=Tight(COARSE))
        return calibrate_near(plan_of, coarse_noise, epsilon, delta)

    # each plan is a bound by itself, so the one that needs the least noise decides
    return min(least_of(plan_index) for plan_index in range(len(plans(1.0))))


def longest_run(
    run: TrainingRun, noise: float, relation: Adjacency, epsilon: float, delta: float
) -> TrainingRun:
    """Return the run with the most steps, or whole passes, whose epsilon is within the target."""
    draws = run.loader in SAMPLING
    shortest_run = replace(run, steps=1 if draws else None, epochs=None if draws else 1.0)
    scheme = record_scheme(
        shortest_run, noise, run.loader, relation, microbatching=run.microbatching
    )
    budget = Budget(epsilon, delta)
    fitting = [part for part in scheme.above if budget.admits(part)]
    if not fitting:
        what = "one step" if draws else "one pass"
        raise ParameterError("epsilon", epsilon, f"more than {what} costs at this noise")
    length = max(1 + remaining_capacity(part, part, budget) for part in fitting)
    if length > CAPACITY_CAP:
        allowed = f"one that {CAPACITY_CAP:,} steps or passes exceed: give epochs or steps"
        raise ParameterError("epsilon", epsilon, allowed)
    if draws:
        return replace(shortest_run, steps=length)
    return replace(shortest_run, epochs=float(length))
