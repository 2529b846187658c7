"""A gate to private data without a limit, whose running epsilon holds whenever the user stops.

The time of the stop may depend on the answers.  A filter is a gate with a limit that is fixed
beforehand: here many filters run side by side, and the smallest one that holds the total counts.
The *size* of a filter is the rho of zCDP to which it corresponds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, final

import numpy as np

from accountant.accountants.budget import Budget
from accountant.domains import DELTA
from accountant.errors import BudgetExceeded, UnsupportedPlan
from accountant.ledger.additive_notions import INFINITY_SHARE
from accountant.ledger.interfaces import Releasable
from accountant.ledger.ledger import Ledger
from accountant.ledger.private_data import Users
from accountant.ledger.pure_dp_notion import PureDPNotion
from accountant.ledger.totals import CompositionNotion, Spending, Total
from accountant.losses.loss import Loss
from accountant.losses.zcdp import ZCDPLoss
from accountant.numerics import Array
from accountant.plans.adjacency import joint_relation
from accountant.plans.plan import Plan, as_plan
from accountant.randomness import Rng
from dp_attest.calls import shows_call

# The number of filters, and their sizes: 2^-20 to 2^20 in steps of sqrt 2.  With more filters the
# smallest one that fits would be closer to the total, but each would have a smaller part of delta.
FILTERS = 81
SIZES = 2.0 ** (np.arange(FILTERS) / 2 - 20)


@final
class Odometer(Ledger):
    """Data that can be asked anything, without a limit; `epsilon` holds at any stop.

    A running total of Rényi divergences is no guarantee at a stop that depends on the answers.  So
    with ``delta`` there are 81 filters of fixed sizes and orders, each with an equal share of
    ``delta``, and the epsilon of the smallest filter that the total fits holds.  The sum of the
    epsilons of the releases holds at any stop too; the smaller of both is reported.

    Parameters
    ----------
    data : array or tuple of arrays
        One row a user.
    delta : float
        In [0, 1).
    rng : int or numpy.random.Generator, optional
        Repeats a run, for audits and tests.
    public : Any
        What is public next to the data.
    undeclared : bool
        As in `Ledger`.

    References
    ----------
    Rogers, Roth, Ullman & Vadhan (2016); Feldman & Zrnic (2021), Theorem 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import Odometer
    >>> from mechanisms import Laplace
    >>> odometer = Odometer(np.ones(10), rng=0)
    >>> answer = odometer.release(Laplace(4.0), np.sum)
    >>> odometer.epsilon
    0.25
    """

    @shows_call("Odometer(data)")
    def __init__(
        self,
        data: Any,
        delta: float = 0.0,
        rng: Rng = None,
        public: Any = None,
        undeclared: bool = False,
    ) -> None:
        self._meter_of_epsilon = meter = OdometerMeter(DELTA.check("delta", delta))
        super().__init__(data, None, rng, public, "full", undeclared, meter)

    @property
    def epsilon(self) -> float:
        """Return the epsilon of all releases so far at ``delta``, valid at any stop."""
        return self._meter_of_epsilon.epsilon


class OdometerMeter:
    """A meter that adds epsilons and, with ``delta``, the divergences at the orders of filters."""

    next = None

    def __init__(self, delta: float) -> None:
        # An epsilon of 1e300 stands for no limit: a budget has a finite one.
        self.pure = PureDPNotion(
            Budget(1e300, delta), Total(Decimal("Infinity"), Decimal(repr(delta)))
        )
        self.curve = DivergencesNotion.of(delta) if delta else None
        self.pure_total: Total[Decimal] | None = self.pure.zero
        self.curve_total: Total[Array] | None = self.curve.zero if self.curve else None
        self._relation: str | None = None

    def charge(self, mechanism: Releasable, who: Users | None) -> None:
        """Charge all users; refuse what has a cost in neither sum."""
        del who
        plan = as_plan(mechanism)
        relation = joint_relation(self._relation, plan)
        pure, refusal = _charged(self.pure, self.pure_total, plan)
        curve, no_curve = _charged(self.curve, self.curve_total, plan)
        if pure is None and curve is None:
            raise no_curve or refusal or UnsupportedPlan(plan, "an odometer", "nothing adds up")
        self.pure_total, self.curve_total, self._relation = pure, curve, relation

    @property
    def epsilon(self) -> float:
        """Return the smaller of the sum of epsilons and the epsilon of the filters."""
        pure = math.inf
        if self.pure_total is not None and (self.curve is None or not self.pure_total.infinity):
            pure = self.pure.epsilon(self.pure_total)
        if self.curve is None or self.curve_total is None:
            return pure
        return min(pure, self.curve.epsilon(self.curve_total))


@final
@dataclass(frozen=True, slots=True)
class DivergencesNotion(CompositionNotion[Array]):
    """The notion that adds the divergences at one order for each of the odometer's filters.

    Filter k has the order ``orders[k]``, the largest sum of divergences ``limits[k]``, and the
    epsilon ``guarantees[k]`` at its share of delta.  Sums above all limits are not refused: then
    epsilon is infinite.
    """

    orders: Array = field(kw_only=True)
    limits: Array = field(kw_only=True)
    guarantees: Array = field(kw_only=True)

    name = "odometer"
    zero = Total(np.zeros(FILTERS), 0.0)

    @classmethod
    def of(cls, delta: float) -> DivergencesNotion:
        """Return the notion whose filters share ``delta``."""
        share = delta * (1 - INFINITY_SHARE) / FILTERS
        filters = [ZCDPLoss(size) for size in SIZES.tolist()]
        # A filter of size rho allows a divergence of rho times the order, at the order best for it.
        best = np.array([loss.order_at(share) for loss in filters])
        limit = Total(np.full(FILTERS, math.inf), delta * INFINITY_SHARE)
        guarantees = np.array([loss.epsilon_at(share) for loss in filters])
        return cls(
            Budget(1e300, delta), limit, orders=best, limits=SIZES * best, guarantees=guarantees
        )

    def exceeds(self, total: Total[Array]) -> bool:
        """Return whether the mass at infinity is above its share of delta."""
        return not total.infinity <= self.limit.infinity

    def refuses(self, before: Total[Array], after: Total[Array]) -> bool:
        """Return whether the mass at infinity is above its share of delta."""
        del before
        return self.exceeds(after)

    def add(self, total: Total[Array], cost: Total[Array]) -> Total[Array]:
        """Return the sums, rounded up."""
        spent = np.nextafter(total.spent + cost.spent, np.inf)
        return Total(spent, total.infinity + cost.infinity)

    def times(self, cost: Total[Array], count: int) -> Total[Array]:
        """Return the products, rounded up."""
        # 2^-50 is more than the rounding of the count and of the products below
        factor = float(count) * (1 + 2.0**-50)
        return Total(cost.spent * factor, cost.infinity * factor)

    def epsilon(self, total: Total[Array]) -> float:
        """Return the guarantee of the smallest filter that the total fits."""
        if not total.spent.any():
            return 0.0
        fits = np.flatnonzero(total.spent <= self.limits)
        return float(self.guarantees[fits[0]]) if fits.size else math.inf

    def shown(self, total: Total[Array], unit: str | None = None) -> Spending:
        """Return the mass at infinity, the only sum with a limit."""
        del unit
        return Spending("delta", total.infinity, self.limit.infinity)

    def how_often(self, cost: Total[Array], total: Total[Array]) -> int | None:
        """Return None: there is no limit."""
        del cost, total
        return None

    def left(self, total: Total[Array]) -> Array:
        """Return infinity: there is no limit."""
        return np.full_like(total.spent, np.inf)

    def with_more(self, increase: Array) -> DivergencesNotion:
        """Return the notion itself: there is no limit."""
        del increase
        return self

    def encode(self, total: Total[Array]) -> list[str]:
        """Return the sums as floats in hexadecimal."""
        return [amount.hex() for amount in (*total.spent.tolist(), float(total.infinity))]

    def decode(self, encoded: list[str]) -> Total[Array]:
        """Return the total that `encode` encoded."""
        *spent, infinity = map(float.fromhex, encoded)
        return Total(np.array(spent), infinity)

    def _remedy(self, total: Total[Array], plan: Plan) -> str:
        """Return what would fit: the sums have no limit, and there is nothing to search for."""
        del total, plan
        return "only a release whose own delta is less than what is left of it fits"

    def _cost(self, loss: Loss) -> Total[Array]:
        """Return the divergence at each filter's order, in the worse direction, rounded up."""
        # A filter cannot hold a loss whose divergence overflows at its order.
        with np.errstate(all="ignore"):
            divergences = [
                np.asarray(direction.renyi(self.orders)) for direction in {loss, loss.reversed}
            ]
        worst = np.maximum.reduce(divergences)
        spent = np.where(np.isnan(worst), np.inf, np.nextafter(worst, np.inf))
        if not np.all(spent >= 0) or not math.isfinite(float(spent.min())):
            raise UnsupportedPlan(loss, "an odometer", "it has no Rényi divergence")
        return Total(spent, max(loss.infinity, loss.reversed.infinity))


def _charged(
    notion: CompositionNotion[Any] | None, total: Total[Any] | None, plan: Plan
) -> tuple[Total[Any] | None, RuntimeError | None]:
    """Return the total after a plan, or None and the reason why it has none in this notion."""
    if notion is None or total is None:
        return None, None
    try:
        return notion.charge(total, plan), None
    except (UnsupportedPlan, BudgetExceeded) as error:  # the mass at infinity exceeds its share
        return None, error
