"""Readers of dp-accounting's events of one release: what noise adds, and what a claim says.

What an event's numbers mean is what dp-accounting's own accountants take them for.  A noise
multiplier is noise over the bound on one record's contribution: adding, removing or blanking a
record moves a sum by that much, replacing one by twice as much.  An epsilon, a rho and the
sensitivity of a whole function are stated for the neighbours themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from accountant.correlated_noise.binary_tree import BinaryTree
from accountant.correlated_noise.participation import Once
from accountant.correlated_noise.sensitivities import sensitivity
from accountant.domains import NON_NEGATIVE, POSITIVE, IntegerRange, Interval
from accountant.errors import UnsupportedPlan
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.losses.discrete_gaussian import discrete_gaussian_loss
from accountant.losses.discrete_laplace import MAX_SHIFT, DiscreteLaplaceLoss
from accountant.losses.finite_pair import PairLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.laplace import LaplaceLoss
from accountant.losses.mixture_of_gaussians import MixtureOfGaussians
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from accountant.losses.zcdp import ZCDPLoss
from accountant.numerics.rounding import round_up
from accountant.plans.adjacency import PRESENCE_RELATIONS, Adjacency
from accountant.plans.plan import Plan, Sequential

RATE = Interval(0.0, 1.0)
COUNT = IntegerRange(0)
SIZE = IntegerRange(1)
FREE = Sequential(())
NON_PRIVATE = PairLoss((1.0, 0.0), (0.0, 1.0))  # every outcome is impossible on the neighbour


def contributions_moved(relation: Adjacency) -> float:
    """Return how far one neighbour moves a sum, in contributions of one record."""
    return 1.0 if relation in PRESENCE_RELATIONS else 2.0


def _gaussian(event: Any, relation: Adjacency) -> Plan:
    noise = POSITIVE.check("noise_multiplier", event.noise_multiplier)
    return GaussianLoss(contributions_moved(relation) / noise)


def _laplace(event: Any, relation: Adjacency) -> Plan:
    noise = POSITIVE.check("noise_multiplier", event.noise_multiplier)
    return LaplaceLoss(contributions_moved(relation) / noise)


def _discrete_laplace(event: Any, relation: Adjacency) -> Plan:
    a = POSITIVE.check("noise_parameter", event.noise_parameter)
    steps = COUNT.check("sensitivity", event.sensitivity) * int(contributions_moved(relation))
    if steps <= 1:
        return PureLoss(a) if steps else FREE
    if steps <= MAX_SHIFT:
        return DiscreteLaplaceLoss(1 / a, steps)
    # docs/proofs/discrete.md, part 2: no more than Laplace noise, a little closer
    return LaplaceLoss(round_up(a * steps + (a / 2) ** 2, 8))


def _discrete_gaussian(event: Any, _: Adjacency) -> Plan:
    scale = POSITIVE.check("sigma", event.sigma)
    distance = NON_NEGATIVE.check("sensitivity", event.sensitivity)
    dimension = getattr(event, "dimension", None)
    if dimension is not None:
        dimension = SIZE.check("dimension", dimension)
    return discrete_gaussian_loss(scale, distance, dimension) if distance else FREE


def _tree(event: Any, relation: Adjacency) -> Plan:
    noise = POSITIVE.check("noise_multiplier", event.noise_multiplier)
    step_counts = event.step_counts
    many = isinstance(step_counts, Iterable) and not isinstance(step_counts, str)
    steps = [
        COUNT.check("step_counts", count) for count in (step_counts if many else [step_counts])
    ]
    leaf_counts = tuple(count for count in steps if count)
    if not leaf_counts:
        return FREE
    # a record is in one step of one tree, and moves only the nodes above that step
    tree_sensitivity = sensitivity(BinaryTree(leaf_counts), Once())
    return GaussianLoss(round_up(contributions_moved(relation) * tree_sensitivity.value / noise))


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


def _response(event: Any, relation: Adjacency) -> Plan:
    p = RATE.check("noise_parameter", event.noise_parameter)
    k = SIZE.check("num_buckets", event.num_buckets)
    if relation is not Adjacency.REPLACE_ONE:
        why = "randomised response has no neighbour with a record less; use relation='replace-one'"
        raise UnsupportedPlan(event, "from_dp_event", why)
    if k == 1:
        return FREE
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


def _approximate(event: Any, _: Adjacency) -> Plan:
    epsilon = NON_NEGATIVE.check("epsilon", event.epsilon)
    delta = RATE.check("delta", event.delta)
    if delta == 1:
        return NON_PRIVATE
    return ApproxLoss(epsilon, delta) if delta else _of_size(PureLoss, epsilon)


def _zcdp(event: Any, _: Adjacency) -> Plan:
    rho, xi = NON_NEGATIVE.check("rho", event.rho), NON_NEGATIVE.check("xi", event.xi)
    # divergences of at most xi at every order are a largest loss of xi
    return ZCDPLoss(rho, xi) if rho else _of_size(PureLoss, xi)


def _exponential(event: Any, _: Adjacency) -> Plan:
    return _of_size(BoundedRangeLoss, NON_NEGATIVE.check("epsilon", event.epsilon))


def _permute_and_flip(event: Any, _: Adjacency) -> Plan:
    # docs/proofs/noisy_max.md: two candidates attain the loss of Laplace noise on a number
    return _of_size(LaplaceLoss, NON_NEGATIVE.check("epsilon", event.epsilon))


def _of_size(kind: Callable[[float], Plan], size: float) -> Plan:
    return kind(size) if size else FREE


NOISE: dict[str, Callable[[Any, Adjacency], Plan]] = {
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "MixtureOfGaussiansDpEvent": _mixture,
    "SingleEpochTreeAggregationDpEvent": _tree,
}
CLAIMS: dict[str, Callable[[Any, Adjacency], Plan]] = {
    "DiscreteGaussianDpEvent": _discrete_gaussian,
    "EpsilonDeltaDpEvent": _approximate,
    "ExponentialMechanismDpEvent": _exponential,
    "NonPrivateDpEvent": lambda event, relation: NON_PRIVATE,
    "PermuteAndFlipDpEvent": _permute_and_flip,
    "RandomizedResponseDpEvent": _response,
    "ZCDpEvent": _zcdp,
}
