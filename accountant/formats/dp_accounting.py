"""An accountant for the library dp-accounting whose answers are certified bounds of `Tight`.

dp-accounting describes releases by events (`DpEvent`).  `TightAccountant` has the interface of its
`PrivacyAccountant`: each event that is composed is read as a plan of this package, and the plan is
accounted here.  Events without noise, which no plan describes, are handled in this file.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from dp_accounting import dp_event, privacy_accountant

from accountant.accountants.gaussian_fit import TAIL, TAILS, gdp_of
from accountant.accountants.rdp import RDP
from accountant.accountants.tight import Tight
from accountant.accountants.tradeoff_curves import tradeoff
from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import EPSILON, IntegerRange, Interval, each_checked
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.formats.dp_event_readers import response_without_value
from accountant.formats.dp_events import from_dp_event
from accountant.numerics import Array
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Plan, Repeat, Sequential, directions

Neighbours = privacy_accountant.NeighboringRelation
# the adjacency of this package for each relation of dp-accounting
STATED = {
    Neighbours.ADD_OR_REMOVE_ONE: Adjacency.ADD_REMOVE,
    Neighbours.REPLACE_ONE: Adjacency.REPLACE_ONE,
    Neighbours.REPLACE_SPECIAL: Adjacency.ZERO_OUT,
}
COUNT = IntegerRange(0)
# Attributes of events.  A 0 in one of `NEVER` means that nothing is released; a 0 in one of
# `NOISE`, or infinity in one of `CLAIM`, means that something is released without noise.
NEVER = (
    "sampling_probability",
    "num_selected",
    "sample_size",
    "count",
    "dataset_size",
    "truncated_batch_size",
    "sensitivity",
)
NOISE = ("noise_multiplier", "standard_deviation", "sigma", "noise_parameter")
CLAIM = ("epsilon", "rho", "xi")
ORDER = Interval(1.0, 1e6, "(]")  # of a Rényi divergence
PROBABILITY = Interval(0.0, 1.0)


class TightAccountant(privacy_accountant.PrivacyAccountant):  # type: ignore[misc]  # no types
    """An accountant of dp-accounting whose answers are the upper ends that `Tight` proves.

    `dp_accounting.calibrate_dp_mechanism` works with it.

    Parameters
    ----------
    neighboring_relation : dp_accounting.NeighboringRelation
        The neighbours; add or remove one by default.
    width : float
        Relative width of the certified interval that is aimed at, in [1e-10, 1e-2].

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    >>> from accountant.formats.dp_accounting import TightAccountant
    >>> step = PoissonSampledDpEvent(0.08, GaussianDpEvent(1.0))
    >>> round(TightAccountant().compose(step, 100).get_epsilon(1e-5), 3)
    5.613
    """

    def __init__(
        self, neighboring_relation: Any = Neighbours.ADD_OR_REMOVE_ONE, width: float = 1e-6
    ) -> None:
        if neighboring_relation not in STATED:
            raise ParameterError(
                "neighboring_relation", neighboring_relation, "a NeighboringRelation"
            )
        super().__init__(neighboring_relation)
        self._tight, self._parts = Tight(width), list[Plan]()
        self._contains_non_dp_event = False  # named as in dp-accounting, whose tests read it

    @property
    def plan(self) -> Plan:
        """What was composed, as a plan, without the events that are not private."""
        return Sequential(self._parts)

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        """Add an event ``count`` times and return None, or return why it cannot be added.

        dp-accounting calls this; with ``do_compose`` false it only asks.
        """
        count = COUNT.check("count", count)
        if isinstance(event, dp_event.ComposedDpEvent):
            problems = (
                self._maybe_compose(part_event, count, do_compose) for part_event in event.events
            )
            return next((problem for problem in problems if problem is not None), None)
        try:
            if isinstance(event, dp_event.SelfComposedDpEvent):
                times = COUNT.check("count", event.count)
                return self._maybe_compose(event.event, times * count, do_compose)
            if _has_no_noise(event) and (_is_never_released(event) or _is_not_private(event)):
                self._contains_non_dp_event |= bool(
                    do_compose and count and not _is_never_released(event)
                )
                return None
            part = _read(event, self._neighboring_relation)
        except (UnsupportedPlan, ParameterError) as error:
            return self.CompositionErrorDetails(event, str(error) + self._relation_remedy(event))
        if do_compose and count:
            last_part = self._parts[-1] if self._parts else None
            if isinstance(last_part, Repeat) and last_part.part == part:
                self._parts[-1] = Repeat(part, last_part.count + count)
            else:
                self._parts.append(Repeat(part, count))
        return None

    def _relation_remedy(self, event: Any) -> str:
        """Return a hint: the relations for which the event can be read; empty if there are none."""
        readable = []
        for relation in Neighbours:
            with contextlib.suppress(UnsupportedPlan, ParameterError):
                _read(event, relation)
                readable.append(f"`{relation.name}`")
        return f"; neighboring_relation must be {' or '.join(readable)}" if readable else ""

    def get_epsilon(self, target_delta: float) -> float:
        """Return an upper bound on the epsilon of what was composed.

        Parameters
        ----------
        target_delta : float
            In [0, 1].

        Returns
        -------
        float
            Rounded up; infinite after an event that is not private, also at a delta of 1.
        """
        delta = PROBABILITY.check("target_delta", target_delta)
        if self._contains_non_dp_event:
            return math.inf
        return self._tight.epsilon(self.plan, delta) if delta < 1 else 0.0

    def get_delta(self, target_epsilon: float) -> float:
        """Return an upper bound on the delta of what was composed.

        Parameters
        ----------
        target_epsilon : float
            At least 0.  At infinity delta is the mass of the outcomes that are impossible on a
            neighbour.

        Returns
        -------
        float
            Rounded up; 1 after an event that is not private.
        """
        if target_epsilon != math.inf:
            target_epsilon = EPSILON.check("target_epsilon", target_epsilon)
        if self._contains_non_dp_event:
            return 1.0
        if target_epsilon == math.inf:
            return max(loss_of_plan(direction).infinity for direction in directions(self.plan))
        return self._tight.delta(self.plan, target_epsilon)

    def get_true_positive_rates(
        self, false_positive_rates: float | Array, deltas: Array | None = None
    ) -> float | Array:
        """Return the greatest true-positive rate of any test at each false-positive rate.

        Parameters
        ----------
        false_positive_rates : float or array
            In [0, 1].
        deltas : array, optional
            Not used: the search over (epsilon, delta) needs no grid.  dp-accounting has it.

        Returns
        -------
        float or array
            Of the shape of ``false_positive_rates``, rounded up; 1 after an event that is not
            private.
        """
        del deltas
        miss = tradeoff(self.plan, false_positive_rates)
        if self._contains_non_dp_event:
            miss = np.zeros_like(miss)
        hit = 1 - miss
        hit = np.where(1 - hit > miss, np.nextafter(hit, 2), hit)  # the subtraction rounded it down
        return hit if hit.ndim else float(hit)

    def get_gdp_parameter_estimate(
        self, false_positive_rates: Array | None = None, deltas: Array | None = None
    ) -> float:
        """Return the mu of Gaussian differential privacy of what was composed.

        Parameters
        ----------
        false_positive_rates : array, optional
            Only the least of them counts, 1e-10 by default and at most 0.01: tests with a smaller
            error rate are left out.  No grid is needed between them.
        deltas : array, optional
            Not used, as in `get_true_positive_rates`.

        Returns
        -------
        float
            A mu that holds for all these tests, no estimate; infinite if there is none.
        """
        del deltas
        tail = TAIL
        if false_positive_rates is not None:
            smallest_rate = PROBABILITY.check(
                "false_positive_rates", float(np.min(false_positive_rates))
            )
            tail = min(smallest_rate, TAILS.high)
        return math.inf if self._contains_non_dp_event else gdp_of(self.plan, tail).mu

    def get_rdp(self, orders: Sequence[float] | Array) -> Array:
        """Return the Rényi divergence of what was composed at each order.

        Parameters
        ----------
        orders : sequence of float
            Each above 1.

        Returns
        -------
        array of shape (n,)
            In nats, rounded up, the greater of both directions of the neighbours.
        """
        checked = np.array(each_checked(ORDER, "orders", orders))
        if self._contains_non_dp_event:
            return np.full(checked.shape, np.inf)
        curves = [RDP().curve(direction, checked) for direction in directions(self.plan)]
        return np.array(np.maximum.reduce(curves))


def _read(event: Any, relation: Any) -> Plan:
    """Return the plan of an event for dp-accounting's neighbours."""
    is_response = isinstance(event, dp_event.RandomizedResponseDpEvent)
    if is_response and relation is Neighbours.REPLACE_SPECIAL:
        return response_without_value(event)
    return from_dp_event(event, STATED[relation])


def _has_no_noise(event: Any) -> bool:
    """Return whether something in an event has no noise.

    A search for the noise that meets a target may try such events.
    """
    if isinstance(event, dp_event.NonPrivateDpEvent):
        return True
    if isinstance(event, dp_event.ComposedDpEvent):
        return any(map(_has_no_noise, event.events))
    inner = getattr(event, "event", None)
    if inner is not None:
        return _has_no_noise(inner)
    return any(_equals(event, name, 0) for name in NOISE) or any(
        _equals(event, name, math.inf) for name in CLAIM
    )


def _is_never_released(event: Any) -> bool:
    """Return whether an event, which is not composed, never releases anything."""
    if any(_equals(event, name, 0) for name in NEVER) or _equals(event, "num_buckets", 1):
        return True
    if isinstance(event, dp_event.MixtureOfGaussiansDpEvent):
        return not any(np.multiply(event.sensitivities, event.sampling_probs))
    inner = getattr(event, "event", None)
    return inner is not None and _is_never_released(inner)


def _is_not_private(event: Any) -> bool:
    """Return whether an event that has no noise somewhere releases something without noise."""
    if isinstance(event, dp_event.ComposedDpEvent):
        return any(map(_is_not_private, event.events))
    if _is_never_released(event):
        return False
    inner = getattr(event, "event", None)
    return _has_no_noise(event) if inner is None else _is_not_private(inner)


def _equals(event: Any, name: str, value: float) -> bool:
    field = getattr(event, name, None)
    is_number = isinstance(field, (int, float, np.integer, np.floating))
    return is_number and not isinstance(field, bool) and field == value
