"""Plans to and from dp-accounting's events.

A translation is exact or refused.  dp-accounting's noise multiplier is noise over the bound on one
record's contribution: adding or removing a record moves a sum by that much, replacing one by twice
as much.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.amplification.repeated import Repeated
from accountant.amplification.sampling_without_replacement import SampledWithoutReplacement
from accountant.amplification.tries import tries_of_mean
from accountant.amplification.truncated_sampling import TruncatedPoisson
from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.errors import UnsupportedPlan
from accountant.losses.finite_pair import PairLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.laplace import LaplaceLoss
from accountant.losses.loss import Loss
from accountant.losses.mixture_of_gaussians import MixtureOfGaussians
from accountant.losses.pure_and_approximate import PureLoss
from accountant.losses.zcdp import ZCDPLoss
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation
from accountant.plans.parallel import Stated
from accountant.plans.plan import Plan, Repeat, Sequential, as_plan

RATE = Interval(0.0, 1.0)
COUNT = IntegerRange(0)
STEP_RANGE = IntegerRange(1, 10_000)


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
    if relation not in RECORD_RELATIONS:
        raise UnsupportedPlan(plan, "to_dp_event", f"dp-accounting has no {relation} neighbours")
    return _event(plan, relation)


def _event(plan: Plan, relation: Adjacency) -> Any:
    from dp_accounting import dp_event

    if isinstance(plan, Sequential):
        return dp_event.ComposedDpEvent([_event(part, relation) for part in plan.parts])
    if isinstance(plan, Repeat):
        if plan.count == 0:
            return dp_event.NoOpDpEvent()
        return dp_event.SelfComposedDpEvent(_event(plan.part, relation), plan.count)
    if isinstance(plan, Stated):
        return _event(plan.part, relation)
    found = None
    if isinstance(plan, PoissonSampled):
        exchanged = relation is Adjacency.REPLACE_ONE
        if exchanged and isinstance(plan.loss, GaussianLoss) and plan.part.relation != relation:
            # mu is what the presence of a record costs, as the noise multiplier is
            inner = dp_event.GaussianDpEvent(1 / plan.loss.mu)
            found = dp_event.PoissonSampledDpEvent(plan.rate, inner)
        elif not exchanged and isinstance(plan.loss, (GaussianLoss, LaplaceLoss)):
            inner = _loss_event(plan.loss, relation)
            found = dp_event.PoissonSampledDpEvent(plan.rate, inner)
    elif isinstance(plan, TruncatedPoisson):
        drawn = (plan.records, plan.rate, plan.batch)
        found = dp_event.TruncatedSubsampledGaussianDpEvent(*drawn, 1 / plan.mu)
    elif isinstance(plan, SampledWithoutReplacement):
        if isinstance(plan.loss, GaussianLoss):
            inner = _loss_event(plan.loss, relation)
            sizes = (plan.population, plan.sample)
            found = dp_event.SampledWithoutReplacementDpEvent(*sizes, inner)
    elif isinstance(plan, Repeated):
        law = plan.tries
        found = dp_event.RepeatAndSelectDpEvent(_event(plan.part, relation), law.mean, law.shape)
    else:
        found = _loss_event(loss_of_plan(plan), relation)
    if found is None:
        raise UnsupportedPlan(plan, "to_dp_event", "dp-accounting has no event of this loss")
    return found


def _loss_event(loss: Loss, relation: Adjacency) -> Any:
    from dp_accounting import dp_event

    if isinstance(loss, GaussianLoss):
        return dp_event.GaussianDpEvent(_contributions_moved(relation) / loss.mu)
    if isinstance(loss, LaplaceLoss):
        return dp_event.LaplaceDpEvent(_contributions_moved(relation) / loss.shift)
    if isinstance(loss, MixtureOfGaussians) and relation is Adjacency.ADD_REMOVE:
        return dp_event.MixtureOfGaussiansDpEvent(loss.scale, loss.shifts, loss.weights)
    if isinstance(loss, PureLoss) and relation is Adjacency.ADD_REMOVE:
        # discrete Laplace noise on a whole number is binary randomised response
        return dp_event.DiscreteLaplaceDpEvent(loss.epsilon, 1)
    if isinstance(loss, ZCDPLoss):
        return dp_event.ZCDpEvent(loss.rho_per_order, loss.xi)
    return None


def from_dp_event(event: Any, relation: str = Adjacency.ADD_REMOVE) -> Plan:
    """Return the plan of a `dp_accounting.DpEvent`.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        An event whose loss is known exactly.
    relation : str
        "add-remove" or "replace-one": the neighbours that the event's numbers are for.

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
    stated = check_relation("relation", relation, RECORD_RELATIONS)
    name = type(event).__name__
    reader = READERS.get(name)
    if reader is None:
        why = REFUSED.get(name, "it is no event whose meaning is known here")
        raise UnsupportedPlan(event, "from_dp_event", why)
    return reader(event, stated)


def _contributions_moved(relation: Adjacency) -> float:
    """Return how far one neighbour moves a sum, in contributions of one record."""
    return 1.0 if relation is Adjacency.ADD_REMOVE else 2.0


def _gaussian(event: Any, relation: Adjacency) -> Plan:
    noise = POSITIVE.check("noise_multiplier", event.noise_multiplier)
    return GaussianLoss(_contributions_moved(relation) / noise)


def _laplace(event: Any, relation: Adjacency) -> Plan:
    noise = POSITIVE.check("noise_multiplier", event.noise_multiplier)
    return LaplaceLoss(_contributions_moved(relation) / noise)


def _discrete_laplace(event: Any, relation: Adjacency) -> Plan:
    a = POSITIVE.check("noise_parameter", event.noise_parameter)
    steps = STEP_RANGE.check("sensitivity", event.sensitivity) * int(_contributions_moved(relation))
    if steps == 1:
        return PureLoss(a)
    # pmf tanh(a/2) e^{-a|x|} at 0 against `steps`: both tails are one outcome each
    ends = 1 / (1 + math.exp(-a)), math.exp(-a * steps) / (1 + math.exp(-a))
    inside = [math.tanh(a / 2) * math.exp(-a * x) for x in range(1, steps)]
    p = [ends[0], *inside, ends[1]]
    total = math.fsum(p)
    return PairLoss([x / total for x in p], [x / total for x in reversed(p)])


def _response(event: Any, relation: Adjacency) -> Plan:
    p, k = RATE.check("noise_parameter", event.noise_parameter), event.num_buckets
    k = IntegerRange(2).check("num_buckets", k)
    if relation is not Adjacency.REPLACE_ONE:
        why = "randomised response has no neighbour with a record less; use relation='replace-one'"
        raise UnsupportedPlan(event, "from_dp_event", why)
    other = p / k
    kept, rest = 1 - p + other, max(0.0, 1 - (1 - p + 2 * other))
    return PairLoss((kept, other, rest), (other, kept, rest))


def _zcdp(event: Any, _: Adjacency) -> Plan:
    return ZCDPLoss(event.rho, event.xi)


def _poisson(event: Any, relation: Adjacency) -> Plan:
    rate = RATE.check("sampling_probability", event.sampling_probability)
    # the noise multiplier is stated for one record's contribution, under either relation
    part = from_dp_event(event.event, Adjacency.ADD_REMOVE)
    if relation is Adjacency.REPLACE_ONE and not isinstance(part, GaussianLoss):
        why = "replace-one Poisson sampling is translated for Gaussian noise only"
        raise UnsupportedPlan(event, "from_dp_event", why)
    return PoissonSampled(part, rate, relation)


def _mixture(event: Any, relation: Adjacency) -> Plan:
    if relation is not Adjacency.ADD_REMOVE:
        why = "a mixture of Gaussians compares the data with and without a record"
        raise UnsupportedPlan(event, "from_dp_event", why)
    both = zip(event.sensitivities, event.sampling_probs, strict=True)
    pairs = [(shift, chance) for shift, chance in both if chance]
    shifts, weights = zip(*pairs, strict=True) if pairs else ((), ())
    return MixtureOfGaussians(event.standard_deviation, shifts, weights)


def _truncated(event: Any, relation: Adjacency) -> Plan:
    noise = POSITIVE.check("noise_multiplier", event.noise_multiplier)
    if event.sampling_probability == 0 or event.truncated_batch_size == 0:
        return Sequential(())
    sizes = (event.dataset_size, event.truncated_batch_size)
    return TruncatedPoisson(GaussianLoss(1 / noise), event.sampling_probability, *sizes, relation)


def _without_replacement(event: Any, relation: Adjacency) -> Plan:
    if relation is not Adjacency.REPLACE_ONE:
        why = "a sample of fixed size is exact for replace-one neighbours only"
        raise UnsupportedPlan(event, "from_dp_event", why)
    part = from_dp_event(event.event, relation)
    return SampledWithoutReplacement(part, event.sample_size, event.source_dataset_size)


def _repeated(event: Any, relation: Adjacency) -> Plan:
    count = COUNT.check("count", event.count)
    return Repeat(from_dp_event(event.event, relation), count)


def _composed(event: Any, relation: Adjacency) -> Plan:
    return Sequential(from_dp_event(one, relation) for one in event.events)


def _best_of_runs(event: Any, relation: Adjacency) -> Plan:
    shape = Interval(0.0, math.inf).check("shape", event.shape)
    return Repeated(from_dp_event(event.event, relation), tries_of_mean(event.mean, shape))


READERS: dict[str, Callable[[Any, Adjacency], Plan]] = {
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "RandomizedResponseDpEvent": _response,
    "ZCDpEvent": _zcdp,
    "PoissonSampledDpEvent": _poisson,
    "MixtureOfGaussiansDpEvent": _mixture,
    "TruncatedSubsampledGaussianDpEvent": _truncated,
    "SampledWithoutReplacementDpEvent": _without_replacement,
    "SelfComposedDpEvent": _repeated,
    "ComposedDpEvent": _composed,
    "RepeatAndSelectDpEvent": _best_of_runs,
    "NoOpDpEvent": lambda event, relation: Sequential(()),
}
REFUSED = {
    "NonPrivateDpEvent": "it is not private",
    "UnsupportedDpEvent": "it says itself that it has no meaning",
    "SampledWithReplacementDpEvent": "a record is drawn several times; its loss is not known",
    "SingleEpochTreeAggregationDpEvent": "it is stated for records replaced by a zero record",
}
