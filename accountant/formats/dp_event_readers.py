"""Readers of dp-accounting's events, by class name and attributes, so of any version.

An event of another version, or one written by ``to_named_tuple``, is read as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.amplification.random_allocation import RandomAllocation
from accountant.amplification.repeated import Repeated
from accountant.amplification.sampling_without_replacement import SampledWithoutReplacement
from accountant.amplification.tries import (
    GeometricTries,
    LogarithmicTries,
    NegativeBinomialTries,
    PoissonTries,
    Tries,
    tries_of_mean,
)
from accountant.amplification.truncated_sampling import TruncatedPoisson
from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.errors import UnsupportedPlan
from accountant.formats.dp_event_releases import (
    CLAIMS,
    COUNT,
    FREE,
    NOISE,
    NON_PRIVATE,
    RATE,
    SIZE,
)
from accountant.losses.discrete_gaussian import DiscreteGaussianLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from accountant.losses.zcdp import ZCDPLoss
from accountant.numerics.rounding import round_up
from accountant.plans.adjacency import PRESENCE_RELATIONS, Adjacency
from accountant.plans.map_leaves import map_leaves
from accountant.plans.parallel import Stated
from accountant.plans.plan import Plan, Repeat, Sequential, as_plan


def read_event(event: Any, relation: Adjacency) -> Plan:
    """Return the plan of an event, or raise `UnsupportedPlan`."""
    name = event_name(event)
    reader = READERS.get(name)
    if reader is None:
        why = REFUSED.get(name, "it is no event whose meaning is known here")
        raise UnsupportedPlan(event, "from_dp_event", why)
    return reader(event, relation)


def event_name(event: Any) -> str:
    """Return the name of an event's class, also of one that was written as a named tuple."""
    name = getattr(event, "class_name", None) if hasattr(event, "_fields") else None
    return name.decode() if isinstance(name, bytes) else name or type(event).__name__


def says_what_presence_costs(event: Any) -> bool:
    """Return whether an event's numbers are what the presence of one record adds to the noise."""
    name = event_name(event)
    if name in {"ComposedDpEvent"}:
        return all(says_what_presence_costs(part) for part in event.events)
    if name in {"SelfComposedDpEvent", "PoissonSampledDpEvent", "RandomAllocationDpEvent"}:
        return says_what_presence_costs(event.event)
    return name in NOISE or name in {"NoOpDpEvent", "TruncatedSubsampledGaussianDpEvent"}


def _poisson(event: Any, relation: Adjacency) -> Plan:
    rate = RATE.check("sampling_probability", event.sampling_probability)
    if relation in PRESENCE_RELATIONS or says_what_presence_costs(event.event):
        # noise is stated for one record's contribution, under each relation
        return PoissonSampled(read_event(event.event, Adjacency.ADD_REMOVE), rate, relation)
    part = Stated(read_event(event.event, relation), relation)
    return PoissonSampled(part, rate, relation)


def _truncated(event: Any, relation: Adjacency) -> Plan:
    noise = POSITIVE.check("noise_multiplier", event.noise_multiplier)
    rate = RATE.check("sampling_probability", event.sampling_probability)
    records = COUNT.check("dataset_size", event.dataset_size)
    batch = COUNT.check("truncated_batch_size", event.truncated_batch_size)
    if 0 in (rate, records, batch):
        return FREE
    return TruncatedPoisson(GaussianLoss(1 / noise), rate, records, batch, relation)


def _without_replacement(event: Any, relation: Adjacency) -> Plan:
    if relation is not Adjacency.REPLACE_ONE:
        why = "a sample of fixed size is exact for replace-one neighbours only"
        raise UnsupportedPlan(event, "from_dp_event", why)
    part = read_event(event.event, relation)
    return SampledWithoutReplacement(part, event.sample_size, event.source_dataset_size)


def _allocated(event: Any, relation: Adjacency) -> Plan:
    steps = SIZE.check("num_steps", event.num_steps)
    picks = IntegerRange(0, steps).check("num_selected", event.num_selected)
    if relation not in PRESENCE_RELATIONS:
        why = "random allocation is stated for add-remove neighbours; use relation='add-remove'"
        raise UnsupportedPlan(event, "from_dp_event", why)
    part = read_event(event.event, relation)
    return RandomAllocation(part, steps, picks, relation=relation) if picks else FREE


def _repeated(event: Any, relation: Adjacency) -> Plan:
    count = COUNT.check("count", event.count)
    return Repeat(read_event(event.event, relation), count)


def _composed(event: Any, relation: Adjacency) -> Plan:
    return Sequential(read_event(part, relation) for part in event.events)


def _best_of_runs(event: Any, relation: Adjacency) -> Plan:
    shape = Interval(0.0, math.inf).check("shape", event.shape)
    # the bound for runs needs losses without infinity, so discrete Gaussians are taken by their rho
    part = map_leaves(read_event(event.event, relation), _without_listed_tails)
    tries, lost = tries_of_mean(event.mean, shape), loss_of_plan(part).infinity
    if lost >= 1:
        return NON_PRIVATE
    losses = list(part.losses())
    separable = all(
        isinstance(x, Loss) and (isinstance(x, ApproxLoss) or not x.infinity) for x, _ in losses
    )
    if not lost or not separable:
        return Repeated(part, tries)
    # docs/proofs/repeated.md, part 6: each run reveals the data with chance `lost`
    clean = Sequential(n * _without_delta(loss) for loss, n in losses)
    revealed = min(round_up(tries.mean * lost, 64), math.nextafter(1.0, 0.0))
    return Sequential([ApproxLoss(0.0, revealed), Repeated(clean, _thinned(tries, 1 - lost))])


def _without_listed_tails(leaf: Plan) -> Plan:
    return ZCDPLoss(leaf.rho) if isinstance(leaf, DiscreteGaussianLoss) else leaf


def _without_delta(loss: Any) -> Plan:
    """Return the loss given that no outcome is impossible on the neighbour."""
    if isinstance(loss, ApproxLoss):
        loss = PureLoss(loss.epsilon) if loss.epsilon else FREE
    return as_plan(loss)


def _thinned(tries: Tries, clean_chance: float) -> Tries:
    """Return the law of the number of tries, given that none of them reveals the data."""
    match tries:
        case PoissonTries():
            return PoissonTries(tries.mean * clean_chance)
        case GeometricTries() | LogarithmicTries() | NegativeBinomialTries():
            # the chance to go on is multiplied by `clean_chance`
            return replace(tries, stop=min(tries.stop + (1 - tries.stop) * (1 - clean_chance), 1.0))
    raise TypeError(f"no law of tries: {type(tries).__name__}")


READERS: dict[str, Callable[[Any, Adjacency], Plan]] = {
    **NOISE,
    **CLAIMS,
    "ComposedDpEvent": _composed,
    "NoOpDpEvent": lambda event, relation: FREE,
    "PoissonSampledDpEvent": _poisson,
    "RandomAllocationDpEvent": _allocated,
    "RepeatAndSelectDpEvent": _best_of_runs,
    "SampledWithoutReplacementDpEvent": _without_replacement,
    "SelfComposedDpEvent": _repeated,
    "TruncatedSubsampledGaussianDpEvent": _truncated,
}
REFUSED = {
    "UnsupportedDpEvent": "it says itself that it has no meaning",
    "SampledWithReplacementDpEvent": "a record is drawn several times; its loss is not known",
}
