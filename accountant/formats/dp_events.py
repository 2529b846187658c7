"""Plans to and from dp-accounting's events.

A translation is exact, an upper bound that the plan says, or refused.  Events are of the installed
version of dp-accounting.  What their numbers mean for each relation is said where they are read, in
`dp_event_readers`.
"""

from __future__ import annotations

from typing import Any

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.amplification.random_allocation import RandomAllocation
from accountant.amplification.repeated import Repeated
from accountant.amplification.sampling_without_replacement import SampledWithoutReplacement
from accountant.amplification.truncated_sampling import TruncatedPoisson
from accountant.composition.composed_loss import loss_of_plan
from accountant.errors import UnsupportedPlan
from accountant.formats.dp_event_readers import (
    NON_PRIVATE,
    contributions_moved,
    read_event,
    says_what_presence_costs,
)
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.losses.discrete_gaussian import DiscreteGaussianLoss
from accountant.losses.discrete_laplace import DiscreteLaplaceLoss
from accountant.losses.finite_pair import PairLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.laplace import LaplaceLoss
from accountant.losses.loss import Loss
from accountant.losses.mixture_of_gaussians import MixtureOfGaussians
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from accountant.losses.zcdp import ZCDPLoss
from accountant.plans.adjacency import (
    PRESENCE_RELATIONS,
    SAMPLING_RELATIONS,
    Adjacency,
    check_relation,
)
from accountant.plans.parallel import Stated
from accountant.plans.plan import Plan, Repeat, Sequential, as_plan

NO_EVENT = "dp-accounting has no event of this loss"


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
    return _event_of(plan, relation)


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


def _event_of(plan: Plan, relation: Adjacency) -> Any:
    """Return the event of a plan, or raise `UnsupportedPlan`."""
    match plan:
        case Sequential():
            return _event("ComposedDpEvent", plan, [_event_of(x, relation) for x in plan.parts])
        case Repeat(count=0):
            return _event("NoOpDpEvent", plan)
        case Repeat():
            part = _event_of(plan.part, relation)
            return _event("SelfComposedDpEvent", plan, part, plan.count)
        case Stated():
            return _event_of(plan.part, relation)
        case PoissonSampled():
            return _poisson_event(plan, relation)
        case TruncatedPoisson():
            drawn = (plan.records, plan.rate, plan.batch)
            return _event("TruncatedSubsampledGaussianDpEvent", plan, *drawn, 1 / plan.mu)
        case SampledWithoutReplacement():
            part = _merged(plan.part, relation)
            sizes = (plan.population, plan.sample)
            return _event("SampledWithoutReplacementDpEvent", plan, *sizes, part)
        case RandomAllocation():
            part, name = _merged(plan.part, relation), "RandomAllocationDpEvent"
            allocation = _event(
                name, plan, event=part, num_selected=plan.picks, num_steps=plan.steps
            )
            if plan.epochs > 1:
                return _event("SelfComposedDpEvent", plan, allocation, plan.epochs)
            return allocation
        case Repeated():
            part = _event_of(plan.part, relation)
            law = (plan.tries.mean, plan.tries.shape)
            return _event("RepeatAndSelectDpEvent", plan, part, *law)
    event = _loss_event(loss_of_plan(plan), relation)
    if event is None:
        raise UnsupportedPlan(plan, "to_dp_event", NO_EVENT)
    return event


def _event(name: str, plan: Plan, *fields: Any, **named: Any) -> Any:
    """Return an event of this class, or say that the installed version lacks it."""
    from dp_accounting import dp_event

    event_class = getattr(dp_event, name, None)
    if event_class is None:
        why = f"the installed {NO_EVENT}; a version with {name} has"
        raise UnsupportedPlan(plan, "to_dp_event", why)
    return event_class(*fields, **named)


def _merged(part: Plan, relation: Adjacency) -> Any:
    """Return the event of a part; several Gaussians are one."""
    loss = loss_of_plan(part)
    return _event_of(loss if isinstance(loss, GaussianLoss) else part, relation)


def _poisson_event(plan: PoissonSampled, relation: Adjacency) -> Any:
    # a loss for replaced records does not say what the presence of one costs
    stated = plan.part.relation is Adjacency.REPLACE_ONE
    inner = _merged(plan.part, Adjacency.REPLACE_ONE if stated else Adjacency.ADD_REMOVE)
    if relation is Adjacency.REPLACE_ONE and says_what_presence_costs(inner) == stated:
        raise UnsupportedPlan(plan, "to_dp_event", NO_EVENT)
    return _event("PoissonSampledDpEvent", plan, plan.rate, inner)


def _loss_event(loss: Loss, relation: Adjacency) -> Any:
    """Return the event of one release; None where there is none."""
    moved = contributions_moved(relation)
    match loss:
        case GaussianLoss():
            return _event("GaussianDpEvent", loss, moved / loss.mu)
        case LaplaceLoss():
            return _event("LaplaceDpEvent", loss, moved / loss.shift)
        case MixtureOfGaussians() if relation in PRESENCE_RELATIONS:
            law = (loss.scale, loss.shifts, loss.weights)
            return _event("MixtureOfGaussiansDpEvent", loss, *law)
        case PureLoss() if relation in PRESENCE_RELATIONS:
            # discrete Laplace noise on a whole number is binary randomised response
            return _event("DiscreteLaplaceDpEvent", loss, loss.epsilon, 1)
        case PureLoss():
            return _event("EpsilonDeltaDpEvent", loss, loss.epsilon, 0.0)
        case DiscreteLaplaceLoss() if loss.shift % int(moved) == 0:
            steps = loss.shift // int(moved)
            return _event("DiscreteLaplaceDpEvent", loss, 1 / loss.scale, steps)
        case DiscreteGaussianLoss():
            return _event("DiscreteGaussianDpEvent", loss, loss.scale, float(loss.shift), 1)
        case ZCDPLoss():
            return _event("ZCDpEvent", loss, loss.rho_per_order, loss.xi)
        case ApproxLoss():
            return _event("EpsilonDeltaDpEvent", loss, loss.epsilon, loss.delta)
        case BoundedRangeLoss():
            return _event("ExponentialMechanismDpEvent", loss, loss.epsilon)
        case PairLoss():
            return _pair_event(loss, relation)
    return None


def _pair_event(loss: PairLoss, relation: Adjacency) -> Any:
    """Return randomised response over k buckets if the pair has this form, or no privacy."""
    if loss == NON_PRIVATE:
        return _event("NonPrivateDpEvent", loss)
    # outcomes are in order of their ratios; p_true = 1 - p + p / k, p_other = p / k
    has_form = len(loss.p) in (2, 3) and loss.q == loss.p[::-1]
    if relation is not Adjacency.REPLACE_ONE or not has_form:
        return None
    p_other, p_true = sorted((loss.p[0], loss.p[-1]))
    noise = 1 - (p_true - p_other)
    buckets = round(noise / p_other) if p_other else 2
    # the number of buckets was rounded; a probability that is off by more is no response's
    if not 2 <= buckets < 1e9 or abs(p_other * buckets - noise) > 1e-12 * noise:
        return None
    return _event("RandomizedResponseDpEvent", loss, noise, buckets)
