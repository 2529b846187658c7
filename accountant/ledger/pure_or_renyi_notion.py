"""The default notion of a ledger with delta > 0: a total fits if one of its sums fits.

For the same releases it keeps the sum of the epsilons (pure privacy), the sum of the rhos (zCDP),
and the sum of the Rényi divergences of one order.  Each sum is kept by a notion of its own, with a
limit that follows from the same budget (epsilon, delta).  In every notion a total also has a mass
at infinity: the probability of outcomes that are impossible on the neighbour.

References: Rogers, Roth, Ullman & Vadhan (2016), Theorem 4.1; Feldman & Zrnic (2021), Theorem 4.3;
both at once in docs/proofs/two_filters.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple, final

from accountant.accountants.budget import Budget
from accountant.errors import UnsupportedPlan
from accountant.ledger.additive_notions import RDPNotion, ZCDPNotion
from accountant.ledger.pure_dp_notion import PureDPNotion
from accountant.ledger.totals import CompositionNotion, Spending, Total, worse_direction
from accountant.losses.loss import Loss
from accountant.plans.plan import Plan

NO_SUM = Decimal("Infinity")  # the pure sum, where one of the releases has no finite epsilon


class Sums(NamedTuple):
    """Three sums over the same releases."""

    pure: Decimal  # of epsilons
    rho: float  # of the rhos of zCDP
    renyi: float  # of Rényi divergences of one order


@final
@dataclass(frozen=True, slots=True)
class PureOrRenyiNotion(CompositionNotion[Sums]):
    """The notion that keeps the pure sum, the sum of rho, and that of divergences of one order.

    A total fits if the pure sum is within epsilon, or if rho or the divergence is within the limit
    that follows from epsilon and delta.  By default the order is the one that gives the epsilon of
    a zCDP filter whose rho is all spent.  A divergence is at most rho times the order, so whatever
    fits that zCDP filter fits here.

    ``pure``, ``zcdp`` and ``rdp`` are the notions of the three sums.  ``limit`` has their limits,
    which include a tolerance for round-off.  A sum that has reached its entry of ``full``, which
    has no tolerance, admits nothing more.
    """

    pure: PureDPNotion = field(kw_only=True)
    zcdp: ZCDPNotion = field(kw_only=True)
    rdp: RDPNotion = field(kw_only=True)

    name = "pure-or-rdp"
    zero = Total(Sums(Decimal(0), 0.0, 0.0), 0.0)

    def __post_init__(self) -> None:
        parts = self.pure, self.zcdp, self.rdp
        full = Sums(*(part.full for part in parts))
        object.__setattr__(self, "full", full)

    def add(self, total: Total[Sums], cost: Total[Sums]) -> Total[Sums]:
        """Return the sums, each as its notion adds them."""
        (sums, infinity), (cost_sums, cost_infinity) = total, cost
        return Total(
            Sums(
                self.pure.add(
                    Total(sums.pure, Decimal(0)), Total(cost_sums.pure, Decimal(0))
                ).spent,
                math.nextafter(sums.rho + cost_sums.rho, math.inf),
                math.nextafter(sums.renyi + cost_sums.renyi, math.inf),
            ),
            infinity + cost_infinity,
        )

    def times(self, cost: Total[Sums], count: int) -> Total[Sums]:
        """Return the products, each as its notion multiplies them."""
        sums, infinity = cost
        return Total(
            Sums(
                self.pure.times(Total(sums.pure, Decimal(0)), count).spent,
                self.zcdp.times(Total(sums.rho, 0.0), count).spent,
                self.rdp.times(Total(sums.renyi, 0.0), count).spent,
            ),
            self.zcdp.times(Total(0.0, infinity), count).infinity,
        )

    def exceeds(self, total: Total[Sums]) -> bool:
        """Return whether none of the three sums fits, or the mass at infinity does not."""
        (pure, rho, renyi), infinity = total
        limits, infinity_limit = self.limit
        fits = pure <= limits.pure or rho <= limits.rho or renyi <= limits.renyi
        return not (fits and infinity <= infinity_limit)

    def refuses(self, before: Total[Sums], after: Total[Sums]) -> bool:
        """Return whether a spend must be refused.

        It is admitted if one of the sums that were not full before fits now, or if it costs
        nothing, and if the mass at infinity fits.
        """
        spent, now, full, limits = before.spent, after.spent, self.full, self.limit.spent
        fits = (
            now == spent
            or (spent.pure < full.pure and now.pure <= limits.pure)
            or (spent.rho < full.rho and now.rho <= limits.rho)
            or (spent.renyi < full.renyi and now.renyi <= limits.renyi)
        )
        return not (fits and after.infinity <= self.limit.infinity)

    def is_full(self, total: Total[Sums]) -> bool:
        """Return whether every sum has reached its limit."""
        return all(amount >= full for amount, full in zip(total.spent, self.full, strict=True))

    def epsilon(self, total: Total[Sums]) -> float:
        """Return the least of the three epsilons that a fixed plan of these sums has."""
        sums = total.spent
        if sums.pure == 0:
            return 0.0
        return min(
            self.pure.epsilon(Total(sums.pure, Decimal(0))),
            self.zcdp.epsilon(Total(sums.rho, 0.0)) if math.isfinite(sums.rho) else math.inf,
            self.rdp.epsilon(Total(sums.renyi, 0.0)) if math.isfinite(sums.renyi) else math.inf,
        )

    def shown(self, total: Total[Sums], unit: str | None = None) -> Spending:
        """Return the sum that uses the smallest share of its limit, or the one in ``unit``."""
        if unit == "delta" or (unit is None and self.fails_by_infinity(total)):
            return Spending("delta", total.infinity, self.limit.infinity)
        sums = total.spent
        spendings = [
            self.pure.shown(Total(sums.pure, Decimal(0))),
            self.zcdp.shown(Total(sums.rho, 0.0)),
            self.rdp.shown(Total(sums.renyi, 0.0)),
        ]
        for spending in spendings:
            if spending.unit == unit:
                return spending
        # The share of the divergence counts as a millionth more: where it equals the share of rho,
        # rho is shown, because it needs no order.
        shares = [spending.amount / spending.limit for spending in spendings]
        shares[2] *= 1 + 1e-6
        return spendings[shares.index(min(shares))]

    def how_often(self, cost: Total[Sums], total: Total[Sums]) -> int | None:
        """Return how many more releases of ``cost`` surely fit.

        It is the largest of the counts that the three sums allow, and None for no limit.
        """
        (pure, rho, renyi), (pure_sum, rho_sum, renyi_sum) = cost.spent, total.spent
        fits = [
            self.pure.how_often(Total(pure, Decimal(0)), Total(pure_sum, Decimal(0))),
            self.zcdp.how_often(Total(rho, 0.0), Total(rho_sum, 0.0)),
            self.rdp.how_often(Total(renyi, 0.0), Total(renyi_sum, 0.0)),
        ]
        return None if None in fits else max(count for count in fits if count is not None)

    def left(self, total: Total[Sums]) -> Sums:
        """Return what remains of each sum, rounded down."""
        sums = total.spent
        return Sums(
            self.pure.left(Total(sums.pure, Decimal(0))),
            self.zcdp.left(Total(sums.rho, 0.0)),
            self.rdp.left(Total(sums.renyi, 0.0)),
        )

    def largest_epsilon(self, unspent: Sums) -> float:
        """Return the largest of the epsilons that what is left of one sum has."""
        return max(
            self.pure.largest_epsilon(unspent.pure),
            self.zcdp.largest_epsilon(unspent.rho),
            self.rdp.largest_epsilon(unspent.renyi),
        )

    def with_more(self, increase: Sums) -> PureOrRenyiNotion:
        """Return the notion with three larger limits; its budget is the largest of theirs."""
        pure = self.pure.with_more(increase.pure)
        zcdp, rdp = self.zcdp.with_more(increase.rho), self.rdp.with_more(increase.renyi)
        epsilon = max(notion.budget.epsilon for notion in (pure, zcdp, rdp))
        sums = Sums(pure.limit.spent, zcdp.limit.spent, rdp.limit.spent)
        limit = Total(sums, self.limit.infinity)
        budget = Budget(epsilon, self.budget.delta)
        widened = replace(self, budget=budget, limit=limit, pure=pure, zcdp=zcdp, rdp=rdp)
        object.__setattr__(widened, "_costs", self._costs)  # costs do not depend on the limit
        return widened

    def encode(self, total: Total[Sums]) -> list[str]:
        """Return the pure sum in decimals, the others as floats in hexadecimal."""
        sums, infinity = total
        return [str(sums.pure), sums.rho.hex(), sums.renyi.hex(), float(infinity).hex()]

    def decode(self, encoded: list[str]) -> Total[Sums]:
        """Return the total that `encode` encoded."""
        pure, *others = encoded
        rho, renyi, infinity = map(float.fromhex, others)
        return Total(Sums(Decimal(pure), rho, renyi), infinity)

    def _cost(self, loss: Loss) -> Total[Sums]:
        """Return the costs of one release: infinite in a notion in which it has none.

        The mass at infinity is the largest that one of the three notions sees.  A loss that states
        a negative number or NaN for one of them is refused, whatever the others say of it.
        """
        worse_direction(loss, lambda direction: direction.max_loss)
        worse_direction(loss, lambda direction: direction.rho)
        pure = _cost_or(self.pure.cost, loss, Total(NO_SUM, Decimal(0)))
        rho = _cost_or(self.zcdp.cost, loss, Total(math.inf, 0.0))
        renyi = _cost_or(self.rdp.cost, loss, Total(math.inf, 0.0))
        sums = Sums(pure.spent, rho.spent, renyi.spent)
        infinity = max(float(pure.infinity), rho.infinity, renyi.infinity)
        if not (math.isfinite(sums.pure) or math.isfinite(sums.renyi)):
            reason = "it has neither an epsilon nor a Rényi divergence of the filter's order"
            raise UnsupportedPlan(loss, "a filter", reason)
        if infinity > self.limit.infinity:
            reason = "it fails with a chance of its own; notion='pure' adds such deltas up"
            raise UnsupportedPlan(loss, "a filter of Rényi sums", reason)
        return Total(sums, infinity)


def _cost_or(cost: Callable[[Plan], Total[Any]], loss: Loss, without: Total[Any]) -> Total[Any]:
    """Return the cost of a loss, or ``without`` in a notion in which it has none."""
    try:
        return cost(loss)
    except UnsupportedPlan:
        return without
