"""Plans to and from dp-accounting's events.

A translation is exact, an upper bound that the plan says, or refused.  What the numbers of an event
mean for each relation is said where they are read, in `dp_event_releases`.
"""

from __future__ import annotations

from typing import Any

from accountant.errors import UnsupportedPlan
from accountant.formats.dp_event_readers import read_event
from accountant.formats.dp_event_writers import write_event
from accountant.plans.adjacency import SAMPLING_RELATIONS, Adjacency, check_relation
from accountant.plans.plan import Plan, as_plan


def to_dp_event(plan: Plan) -> Any:
    """Return a plan as a `dp_accounting.DpEvent`.

    The event is stated for the plan's neighbours, add-remove by default.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.

    Returns
    -------
    dp_accounting.DpEvent
        The event.

    Raises
    ------
    UnsupportedPlan
        If no event has this loss.

    Examples
    --------
    >>> from accountant import GaussianLoss, to_dp_event
    >>> to_dp_event(10 * GaussianLoss(0.5)).count
    10
    """
    plan = as_plan(plan)
    relation = plan.relation or Adjacency.ADD_REMOVE
    if relation not in SAMPLING_RELATIONS:
        raise UnsupportedPlan(plan, "to_dp_event", f"dp-accounting has no {relation} neighbours")
    return write_event(plan, relation)


def from_dp_event(event: Any, relation: str = Adjacency.ADD_REMOVE) -> Plan:
    """Return the plan of a `dp_accounting.DpEvent`.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        An event whose loss is known exactly.
    relation : str
        "add-remove", "zero-out" (REPLACE_SPECIAL there) or "replace-one": the neighbours that the
        event's numbers are for.

    Returns
    -------
    Plan
        The plan.

    Raises
    ------
    UnsupportedPlan
        If the event's loss is not known exactly.

    Examples
    --------
    >>> from dp_accounting import dp_event
    >>> from accountant import from_dp_event
    >>> from_dp_event(dp_event.GaussianDpEvent(2.0))
    GaussianLoss(mu=0.5)
    """
    return read_event(event, check_relation("relation", relation, SAMPLING_RELATIONS))
