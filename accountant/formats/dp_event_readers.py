"""Readers of dp-accounting's events, by class name and attributes, so of any version.

An event of another version, or one written by ``to_named_tuple``, is read as well.

What an event's numbers mean is what dp-accounting's own accountants take them for.  A noise
multiplier is noise over the bound on one record's contribution: adding, removing or blanking a
record moves a sum by that much, replacing one by twice as much.  An epsilon, a rho and the
sensitivity of a whole function are stated for the neighbours themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
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
from accountant.correlated_noise.binary_tree import BinaryTree
from accountant.correlated_noise.participation import Once
from accountant.correlated_noise.strategy import sensitivity
from accountant.domains import NON_NEGATIVE, POSITIVE, IntegerRange, Interval
from accountant.errors import UnsupportedPlan
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.losses.discrete_gaussian import DiscreteGaussianLoss, discrete_gaussian_loss
from accountant.losses.discrete_laplace import MAX_SHIFT, DiscreteLaplaceLoss
from accountant.losses.finite_pair import PairLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.laplace import LaplaceLoss
from accountant.losses.loss import Loss
from accountant.losses.mixture_of_gaussians import MixtureOfGaussians
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from accountant.losses.zcdp import ZCDPLoss
from accountant.numerics.rounding import round_up
from accountant.plans.adjacency import PRESENCE_RELATIONS, Adjacency
from accountant.plans.map_leaves import map_leaves
from accountant.plans.parallel import Stated
from accountant.plans.plan import Plan, Repeat, Sequential, as_plan

RATE = Interval(0.0, 1.0)
COUNT = IntegerRange(0)
SIZE = IntegerRange(1)
FREE = Sequential(())  # the plan of an event that releases nothing
NON_PRIVATE = PairLoss((1.0, 0.0), (0.0, 1.0))  # every outcome is impossible on the neighbour

Reader = Callable[[Any, Adjacency], Plan]
READERS: dict[str, Reader] = {}  # by the names of the events' classes; `_reads` fills it
# Events that have no plan, and why.
REFUSED = {
    "UnsupportedDpEvent": "it says itself that it has no meaning",
    "SampledWithReplacementDpEvent": "a record is drawn several times; its loss is not known",
}
# Events whose numbers say how far the presence of one record, against none, moves the output.
STATED_FOR_PRESENCE = {
    "DiscreteLaplaceDpEvent",
    "GaussianDpEvent",
    "LaplaceDpEvent",
    "MixtureOfGaussiansDpEvent",
    "NoOpDpEvent",
    "SingleEpochTreeAggregationDpEvent",
    "TruncatedSubsampledGaussianDpEvent",
}


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
    """Return whether an event's numbers are for the presence of one record, against none.

    Those of other events, such as an epsilon, are for the neighbours of the relation.
    """
    name = event_name(event)
    if name == "ComposedDpEvent":
        return all(says_what_presence_costs(part) for part in event.events)
    if name in {"SelfComposedDpEvent", "PoissonSampledDpEvent", "RandomAllocationDpEvent"}:
        return says_what_presence_costs(event.event)
    return name in STATED_FOR_PRESENCE


def contributions_moved(relation: Adjacency) -> float:
    """Return how far apart two neighbours move a sum, in contributions of one record."""
    return 1.0 if relation in PRESENCE_RELATIONS else 2.0


def _reads(event: str) -> Callable[[Reader], Reader]:
    """Return the decorator of the reader of events of this class name."""

    def noted(reader: Reader) -> Reader:
        READERS[event] = reader
        return reader

    return noted


@_reads("NoOpDpEvent")
def _nothing(event: Any, relation: Adjacency) -> Plan:
    return FREE


@_reads("NonPrivateDpEvent")
def _everything(event: Any, relation: Adjacency) -> Plan:
    return NON_PRIVATE


@_reads("GaussianDpEvent")
def _gaussian(event: Any, relation: Adjacency) -> Plan:
    noise = POSITIVE.check("noise_multiplier", event.noise_multiplier)
    return GaussianLoss(contributions_moved(relation) / noise)


@_reads("LaplaceDpEvent")
def _laplace(event: Any, relation: Adjacency) -> Plan:
    noise = POSITIVE.check("noise_multiplier", event.noise_multiplier)
    return LaplaceLoss(contributions_moved(relation) / noise)


@_reads("DiscreteLaplaceDpEvent")
def _discrete_laplace(event: Any, relation: Adjacency) -> Plan:
    a = POSITIVE.check("noise_parameter", event.noise_parameter)
    steps = COUNT.check("sensitivity", event.sensitivity) * int(contributions_moved(relation))
    if steps <= 1:
        return PureLoss(a) if steps else FREE
    if steps <= MAX_SHIFT:
        return DiscreteLaplaceLoss(1 / a, steps)
    # This costs no more than Laplace noise on numbers a little farther apart: the shift s becomes
    # s + (a / 2)^2 (docs/proofs/discrete.md, part 2).  Eight units in the last place are more than
    # the round-off of the three operations.
    return LaplaceLoss(round_up(a * steps + (a / 2) ** 2, 8))


@_reads("DiscreteGaussianDpEvent")
def _discrete_gaussian(event: Any, _: Adjacency) -> Plan:
    scale = POSITIVE.check("sigma", event.sigma)
    distance = NON_NEGATIVE.check("sensitivity", event.sensitivity)
    dimension = getattr(event, "dimension", None)
    if dimension is not None:
        dimension = SIZE.check("dimension", dimension)
    return discrete_gaussian_loss(scale, distance, dimension) if distance else FREE


@_reads("SingleEpochTreeAggregationDpEvent")
def _tree(event: Any, relation: Adjacency) -> Plan:
    noise = POSITIVE.check("noise_multiplier", event.noise_multiplier)
    step_counts = event.step_counts  # steps of each tree, or of the only one
    is_one_tree = isinstance(step_counts, str) or not isinstance(step_counts, Iterable)
    checked_counts = [
        COUNT.check("step_counts", count)
        for count in ([step_counts] if is_one_tree else step_counts)
    ]
    leaf_counts = tuple(count for count in checked_counts if count)
    if not leaf_counts:
        return FREE
    # A record is in one step of one tree, and moves only the nodes above that step.
    tree_sensitivity = sensitivity(BinaryTree(leaf_counts), Once())
    return GaussianLoss(round_up(contributions_moved(relation) * tree_sensitivity.value / noise))


@_reads("MixtureOfGaussiansDpEvent")
def _mixture(event: Any, relation: Adjacency) -> Plan:
    if relation not in PRESENCE_RELATIONS:
        why = (
            "a mixture of Gaussians compares the data with and without a record; use "
            "relation='add-remove'"
        )
        raise UnsupportedPlan(event, "from_dp_event", why)
    shifts, weights = tuple(event.sensitivities), tuple(event.sampling_probs)
    if len(shifts) == len(weights):  # shifts that never occur may be of any size
        occurring = [i for i, chance in enumerate(weights) if chance]
        shifts, weights = (tuple(values[i] for i in occurring) for values in (shifts, weights))
    return MixtureOfGaussians(event.standard_deviation, shifts, weights)


@_reads("RandomizedResponseDpEvent")
def _response(event: Any, relation: Adjacency) -> Plan:
    p = RATE.check("noise_parameter", event.noise_parameter)
    k = SIZE.check("num_buckets", event.num_buckets)
    if relation is not Adjacency.REPLACE_ONE:
        why = "randomised response has no neighbour with a record less; use relation='replace-one'"
        raise UnsupportedPlan(event, "from_dp_event", why)
    if k == 1:
        return FREE
    # With probability p the answer is uniform over the k buckets, else it is the true one.  Two
    # neighbours differ in their true bucket; all other buckets together are one outcome.
    p_other = p / k
    p_true, p_rest = 1 - p + p_other, max(0.0, 1 - (1 - p + 2 * p_other))
    return PairLoss((p_true, p_other, p_rest), (p_other, p_true, p_rest))


def response_without_value(event: Any) -> Plan:
    """Return the cost of a record that is replaced by a record without a value.

    The answer of the latter is drawn uniformly.
    """
    p = RATE.check("noise_parameter", event.noise_parameter)
    k = SIZE.check("num_buckets", event.num_buckets)
    if k == 1:
        return FREE
    p_true = 1 - p + p / k
    return PairLoss((p_true, 1 - p_true), (1 / k, 1 - 1 / k))


@_reads("EpsilonDeltaDpEvent")
def _approximate(event: Any, _: Adjacency) -> Plan:
    epsilon = NON_NEGATIVE.check("epsilon", event.epsilon)
    delta = RATE.check("delta", event.delta)
    if delta == 1:
        return NON_PRIVATE
    return ApproxLoss(epsilon, delta) if delta else _of_size(PureLoss, epsilon)


@_reads("ZCDpEvent")
def _zcdp(event: Any, _: Adjacency) -> Plan:
    rho, xi = NON_NEGATIVE.check("rho", event.rho), NON_NEGATIVE.check("xi", event.xi)
    # Divergences of at most xi at every order mean that the largest loss is xi.
    return ZCDPLoss(rho, xi) if rho else _of_size(PureLoss, xi)


@_reads("ExponentialMechanismDpEvent")
def _exponential(event: Any, _: Adjacency) -> Plan:
    return _of_size(BoundedRangeLoss, NON_NEGATIVE.check("epsilon", event.epsilon))


@_reads("PermuteAndFlipDpEvent")
def _permute_and_flip(event: Any, _: Adjacency) -> Plan:
    # Two candidates attain the loss of Laplace noise on a number (docs/proofs/noisy_max.md).
    return _of_size(LaplaceLoss, NON_NEGATIVE.check("epsilon", event.epsilon))


def _of_size(kind: Callable[[float], Plan], size: float) -> Plan:
    return kind(size) if size else FREE


@_reads("PoissonSampledDpEvent")
def _poisson(event: Any, relation: Adjacency) -> Plan:
    rate = RATE.check("sampling_probability", event.sampling_probability)
    if relation in PRESENCE_RELATIONS or says_what_presence_costs(event.event):
        # The noise is stated for one record's contribution, under each relation.
        return PoissonSampled(read_event(event.event, Adjacency.ADD_REMOVE), rate, relation)
    part = Stated(read_event(event.event, relation), relation)
    return PoissonSampled(part, rate, relation)


@_reads("TruncatedSubsampledGaussianDpEvent")
def _truncated(event: Any, relation: Adjacency) -> Plan:
    noise = POSITIVE.check("noise_multiplier", event.noise_multiplier)
    rate = RATE.check("sampling_probability", event.sampling_probability)
    records = COUNT.check("dataset_size", event.dataset_size)
    batch = COUNT.check("truncated_batch_size", event.truncated_batch_size)
    if 0 in (rate, records, batch):
        return FREE
    # The noise is stated for one record's contribution, under each relation.
    return TruncatedPoisson(GaussianLoss(1 / noise), rate, records, batch, relation)


@_reads("SampledWithoutReplacementDpEvent")
def _without_replacement(event: Any, relation: Adjacency) -> Plan:
    if relation is not Adjacency.REPLACE_ONE:
        why = "a sample of fixed size is exact for replace-one neighbours only"
        raise UnsupportedPlan(event, "from_dp_event", why)
    part = read_event(event.event, relation)
    return SampledWithoutReplacement(part, event.sample_size, event.source_dataset_size)


@_reads("RandomAllocationDpEvent")
def _allocated(event: Any, relation: Adjacency) -> Plan:
    steps = SIZE.check("num_steps", event.num_steps)
    picks = IntegerRange(0, steps).check("num_selected", event.num_selected)
    if relation not in PRESENCE_RELATIONS:
        why = "random allocation is stated for add-remove neighbours; use relation='add-remove'"
        raise UnsupportedPlan(event, "from_dp_event", why)
    part = read_event(event.event, relation)
    return RandomAllocation(part, steps, picks, relation=relation) if picks else FREE


@_reads("SelfComposedDpEvent")
def _repeated(event: Any, relation: Adjacency) -> Plan:
    count = COUNT.check("count", event.count)
    return Repeat(read_event(event.event, relation), count)


@_reads("ComposedDpEvent")
def _composed(event: Any, relation: Adjacency) -> Plan:
    return Sequential(read_event(part, relation) for part in event.events)


@_reads("RepeatAndSelectDpEvent")
def _best_of_runs(event: Any, relation: Adjacency) -> Plan:
    # The part is run a random number of times, and the best run is released.
    shape = Interval(0.0, math.inf).check("shape", event.shape)
    # The bound for runs needs losses without infinity: discrete Gaussians are taken by their rho.
    part = map_leaves(
        read_event(event.event, relation),
        lambda leaf: ZCDPLoss(leaf.rho) if isinstance(leaf, DiscreteGaussianLoss) else leaf,
    )
    tries, reveal_chance = tries_of_mean(event.mean, shape), loss_of_plan(part).infinity
    if reveal_chance >= 1:
        return NON_PRIVATE
    losses = list(part.losses())
    is_separable = all(
        isinstance(loss, Loss) and (isinstance(loss, ApproxLoss) or not loss.infinity)
        for loss, _ in losses
    )
    if not reveal_chance or not is_separable:
        return Repeated(part, tries)
    # Each run reveals the data with this chance (docs/proofs/repeated.md, part 7).
    clean_part = Sequential(n * _without_delta(loss) for loss, n in losses)
    any_reveals = min(round_up(tries.mean * reveal_chance, 64), math.nextafter(1.0, 0.0))
    clean_runs = Repeated(clean_part, _thinned(tries, 1 - reveal_chance))
    return Sequential([ApproxLoss(0.0, any_reveals), clean_runs])


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
            # The chance to go on is multiplied by `clean_chance`.
            return replace(tries, stop=min(tries.stop + (1 - tries.stop) * (1 - clean_chance), 1.0))
    raise TypeError(f"no law of tries: {type(tries).__name__}")
