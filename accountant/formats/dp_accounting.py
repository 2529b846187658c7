"""dp-accounting with our accountant: a `PrivacyAccountant` of it that answers by `Tight`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from dp_accounting import dp_event, privacy_accountant

from accountant.accountants.rdp import RDP
from accountant.accountants.tight import Tight
from accountant.domains import IntegerRange, Interval, each_checked
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.formats.dp_events import from_dp_event
from accountant.numerics import Array
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Plan, Repeat, Sequential, directions

Neighbours = privacy_accountant.NeighboringRelation
STATED = {
    Neighbours.ADD_OR_REMOVE_ONE: Adjacency.ADD_REMOVE,
    Neighbours.REPLACE_ONE: Adjacency.REPLACE_ONE,
    Neighbours.REPLACE_SPECIAL: Adjacency.ZERO_OUT,
}
COUNT = IntegerRange(0)
# where one of these is 0 nothing is released; where noise is 0 or a claim infinite, everything is
NEVER = ("sampling_probability", "num_selected", "sample_size", "count", "dataset_size",
         "truncated_batch_size", "sensitivity")  # fmt: skip
NOISE = ("noise_multiplier", "standard_deviation", "sigma")
CLAIM = ("epsilon", "rho", "xi")
ORDER = Interval(1.0, 1e6, "(]")
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
        self, neighboring_relation: Any = Neighbours.ADD_OR_REMOVE_ONE, width: float = 1e-8
    ) -> None:
        if neighboring_relation not in STATED:
            raise ParameterError(
                "neighboring_relation", neighboring_relation, "a NeighboringRelation"
            )
        super().__init__(neighboring_relation)
        self._tight, self._parts, self._private = Tight(width), list[Plan](), True

    @property
    def plan(self) -> Plan:
        """What was composed, as a plan, without the events that are not private."""
        return Sequential(self._parts)

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        """Add an event, or return why it cannot be added; dp-accounting calls this."""
        count = COUNT.check("count", count)
        if isinstance(event, dp_event.ComposedDpEvent):
            each = (self._maybe_compose(one, count, do_compose) for one in event.events)
            return next((found for found in each if found is not None), None)
        try:
            if isinstance(event, dp_event.SelfComposedDpEvent):
                times = COUNT.check("count", event.count)
                return self._maybe_compose(event.event, times * count, do_compose)
            if _is_not_private(event):
                self._private = self._private and not (do_compose and count)
                return None
            part = from_dp_event(event, STATED[self._neighboring_relation])
        except (UnsupportedPlan, ParameterError) as error:
            return self.CompositionErrorDetails(event, str(error))
        if do_compose and count:
            last = self._parts[-1] if self._parts else None
            if isinstance(last, Repeat) and last.part == part:
                self._parts[-1] = Repeat(part, last.count + count)
            else:
                self._parts.append(Repeat(part, count))
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """Return the epsilon of what was composed.

        Parameters
        ----------
        target_delta : float
            In [0, 1].

        Returns
        -------
        float
            Rounded up; infinite after an event that is not private.
        """
        delta = PROBABILITY.check("target_delta", target_delta)
        if delta == 1:
            return 0.0
        return self._tight.epsilon(self.plan, delta) if self._private else math.inf

    def get_delta(self, target_epsilon: float) -> float:
        """Return the delta of what was composed.

        Parameters
        ----------
        target_epsilon : float
            At least 0.

        Returns
        -------
        float
            Rounded up; 1 after an event that is not private.
        """
        found = self._tight.delta(self.plan, target_epsilon)
        return found if self._private else 1.0

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
        if not self._private:
            return np.full(checked.shape, np.inf)
        curves = [RDP().curve(way, checked) for way in directions(self.plan)]
        return np.array(np.maximum.reduce(curves))


def _is_not_private(event: Any) -> bool:
    """Return whether an event releases something without noise, as a search for noise tries it."""
    if isinstance(event, dp_event.NonPrivateDpEvent):
        return True
    if isinstance(event, dp_event.ComposedDpEvent):
        return any(map(_is_not_private, event.events))
    if any(_equals(event, name, 0) for name in NEVER):
        return False
    inner = getattr(event, "event", None)
    if inner is not None:
        return _is_not_private(inner)
    return any(_equals(event, name, 0) for name in NOISE) or any(
        _equals(event, name, math.inf) for name in CLAIM
    )


def _equals(event: Any, name: str, value: float) -> bool:
    found = getattr(event, name, None)
    return isinstance(found, (int, float)) and not isinstance(found, bool) and found == value
