"""The true epsilon of a plan, between two proved bounds.

References: Zhu, Dong & Wang (2022) for the characteristic function of a loss; Gopi, Lee &
Wutschitz (2021) for two-sided answers; the certificate is proved in `docs/proofs/contour.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from accountant.accountants.advanced import Advanced
from accountant.accountants.base import Accountant
from accountant.accountants.basic import Basic
from accountant.accountants.rdp import RDP
from accountant.accountants.zcdp import ZCDP
from accountant.composition.certificate import Certificate
from accountant.composition.certified_composition import Composition
from accountant.composition.closed_form import ENVELOPE, closed_form
from accountant.composition.composed_loss import as_losses, certified
from accountant.domains import DELTA, Interval
from accountant.losses.loss import Loss, single_loss
from accountant.numerics import ACCURACY
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan, as_plan, directions

ROUGH = 1e-6  # of epsilon: how much too large dots are
LOOSE = 0.01
MOST_TERMS = 5000


@final
@dataclass(frozen=True, slots=True)
class Tight(Accountant):
    """The exact composition, rounded up by at most ``width`` of itself wherever that is possible.

    Where a loss covers several worst pairs (`Loss.envelope`) it returns the least sound bound, and
    the lower end of `bracket` is that of one of those pairs.  Valid for plans fixed in advance.
    """

    width: float = 1e-8

    def __post_init__(self) -> None:
        Interval(1e-10, 1e-2).check("width", self.width)

    def certify(self, plan: Plan, delta: float) -> Certificate:
        """Return the interval that holds the epsilon of ``plan`` at ``delta``, both ways."""
        plan, delta = as_plan(plan), DELTA.check("delta", delta)
        first, *rest = directions(plan)
        found = self._certify(first, delta)
        for way in rest:
            if self._quick(way, delta) <= found.lower:
                continue  # it cannot be the worse direction
            other = self._certify(way, delta)
            worse = max(found, other, key=lambda one: one.upper)
            lower = max(found.lower, other.lower)
            found = Certificate(min(lower, worse.upper), worse.upper, worse.engine, worse.nodes)
        return found

    def bracket(self, plan: Plan, delta: float) -> tuple[float, float]:
        """Return (lower, upper) around the true epsilon at ``delta``."""
        found = self.certify(plan, delta)
        return found.lower, found.upper

    def epsilon(self, plan: Plan, delta: float) -> float:
        """Return the upper end of `bracket`."""
        return self.certify(plan, delta).upper

    def _epsilon(self, plan: Plan, delta: float) -> float:
        return self._certify(plan, delta).upper

    def _quick(self, way: Plan, delta: float) -> float:
        """A bound that costs one sweep over orders; infinite where that is not for the asking."""
        items = [(item, n) for item, n in way.losses() if isinstance(item, Loss) and item.certified]
        if delta == 0 or len(items) < len(list(way.losses())):
            return math.inf
        return Composition(items, self.width).chernoff(delta)

    def _certify(self, way: Plan, delta: float) -> Certificate:
        items = list(way.losses())
        if delta == 0:
            total = Basic()._epsilon(way, 0.0)
            return Certificate(total, total, "sum of the bounds")
        if len(items) == 1 and items[0][1] == 1:
            return self._single(items[0][0], delta)
        losses = as_losses(items)
        if not any(one.envelope or one.rounded or not one.certified for one, _ in losses):
            found = Composition(losses, self.width).certify(delta)
            if found.width <= ROUGH * min(found.upper, 1e300) or math.isinf(found.lower):
                return found
            # few smooth losses, far up a contour: dots need fewer terms
            other = self._between(way, losses, delta, most=MOST_TERMS)
            return min(found, other, key=lambda one: one.width)
        return self._between(way, losses, delta)

    def _single(self, item: Item, delta: float) -> Certificate:
        """One release: its own profile; one parallel: the dearest part."""
        if isinstance(item, Parallel):
            parts = [self._certify(part, delta) for part in item.distinct]
            worst = max(parts, key=lambda one: one.upper)
            return Certificate(
                max(one.lower for one in parts), worst.upper, worst.engine, worst.nodes
            )
        return closed_form(single_loss(item), delta)

    def _between(
        self, way: Plan, losses: list[tuple[Loss, int]], delta: float, most: float = math.inf
    ) -> Certificate:
        """Dots above and below what has no closed cumulant, one pair below what covers many."""
        above = Certificate(0.0, math.inf, ENVELOPE)
        if not all(one.by_renyi for one, _ in losses):
            dots = certified(losses, delta, upper=True, most=most)
            above = Composition(dots, max(self.width, ROUGH)).certify(delta)
        others = [above.upper]
        if any(one.envelope for one, _ in losses) or not above.width < LOOSE * above.upper:
            # facts of their own that a dominating pair does not know
            others += [one._epsilon(way, delta) for one in (Basic(), Advanced(), ZCDP(), RDP())]
        upper = max(0.0, min(others))
        lower = 0.0
        if not any(one.rounded for one, _ in losses):
            pairs = [(one.attained, n) for one, n in losses]
            dots = certified(pairs, delta, upper=False, most=most)
            below = Composition(dots, max(self.width, ROUGH))
            lower = below.certify(delta).lower
        engine = f"{above.engine}, dots" if upper == above.upper else ENVELOPE
        return Certificate(min(lower, upper), upper, engine, above.nodes)

    def _delta(self, plan: Plan, epsilon: float) -> float:
        items = list(plan.losses())
        if len(items) == 1 and items[0][1] == 1:
            item = items[0][0]
            if isinstance(item, Parallel):
                return max(self._delta(part, epsilon) for part in item.distinct)
            return min(1.0, float(single_loss(item).profile(epsilon)) * (1 + ACCURACY))
        losses = as_losses(items)
        found = 1.0
        if not losses or not all(one.by_renyi for one, _ in losses):
            whole = all(one.certified for one, _ in losses)
            width = self.width if whole else max(self.width, ROUGH)
            above = Composition(certified(losses, 1e-12, upper=True), width)
            found = above.delta(epsilon)[1]
        if any(one.envelope for one, _ in losses):
            others = (Basic(), Advanced(), ZCDP(), RDP())
            found = min(found, *(one._delta(plan, epsilon) for one in others))
        return found
