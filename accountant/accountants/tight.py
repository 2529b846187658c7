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
from accountant.composition.certified_composition import CertifiedComposition
from accountant.composition.closed_form import ENVELOPE, closed_form
from accountant.composition.composed_loss import losses_of_items, with_exact_cgf
from accountant.domains import DELTA, Interval
from accountant.losses.loss import Loss, single_loss
from accountant.numerics.rounding import ACCURACY
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan, as_plan, directions

DISCRETISATION_ERROR = 1e-6  # of epsilon: how much too large dots are
LOOSE_WIDTH = 0.01
MAX_TERMS = 5000


@final
@dataclass(frozen=True, slots=True)
class Tight(Accountant):
    """The exact composition, rounded up by at most ``width`` of itself wherever that is possible.

    Where a loss covers several worst pairs (`Loss.is_upper_envelope`) it returns the least sound
    bound, and the lower end of `bracket` is that of one of those pairs.  Valid for plans fixed in
    advance.
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
            if self._chernoff_epsilon(way, delta) <= found.lower:
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

    def _chernoff_epsilon(self, way: Plan, delta: float) -> float:
        """A bound that costs one sweep over orders; infinite where that is not for the asking."""
        items = [
            (item, n) for item, n in way.losses() if isinstance(item, Loss) and item.has_exact_cgf
        ]
        if delta == 0 or len(items) < len(list(way.losses())):
            return math.inf
        return CertifiedComposition(items, self.width).chernoff(delta)

    def _certify(self, way: Plan, delta: float) -> Certificate:
        items = list(way.losses())
        if delta == 0:
            total = Basic()._epsilon(way, 0.0)
            return Certificate(total, total, "sum of the bounds")
        if len(items) == 1 and items[0][1] == 1:
            return self._certify_item(items[0][0], delta)
        losses = losses_of_items(items)
        if not any(
            one.is_upper_envelope or one.is_numerical or not one.has_exact_cgf for one, _ in losses
        ):
            found = CertifiedComposition(losses, self.width).certify(delta)
            if found.width <= DISCRETISATION_ERROR * min(found.upper, 1e300) or math.isinf(
                found.lower
            ):
                return found
            # few smooth losses, far up a contour: dots need fewer terms
            other = self._certify_discretised(way, losses, delta, max_terms=MAX_TERMS)
            return min(found, other, key=lambda one: one.width)
        return self._certify_discretised(way, losses, delta)

    def _certify_item(self, item: Item, delta: float) -> Certificate:
        """One release: its own profile; one parallel: the dearest part."""
        if isinstance(item, Parallel):
            parts = [self._certify(part, delta) for part in item.distinct]
            worst = max(parts, key=lambda one: one.upper)
            return Certificate(
                max(one.lower for one in parts), worst.upper, worst.engine, worst.nodes
            )
        return closed_form(single_loss(item), delta)

    def _certify_discretised(
        self, way: Plan, losses: list[tuple[Loss, int]], delta: float, max_terms: float = math.inf
    ) -> Certificate:
        """Dots above and below what has no closed cumulant, one pair below what covers many."""
        above = Certificate(0.0, math.inf, ENVELOPE)
        if not all(one.determined_by_rdp for one, _ in losses):
            dots = with_exact_cgf(losses, delta, upper=True, max_terms=max_terms)
            above = CertifiedComposition(dots, max(self.width, DISCRETISATION_ERROR)).certify(delta)
        others = [above.upper]
        if (
            any(one.is_upper_envelope for one, _ in losses)
            or not above.width < LOOSE_WIDTH * above.upper
        ):
            # facts of their own that a dominating pair does not know
            others += [one._epsilon(way, delta) for one in (Basic(), Advanced(), ZCDP(), RDP())]
        upper = max(0.0, min(others))
        lower = 0.0
        if not any(one.is_numerical for one, _ in losses):
            pairs = [(one.attained_pair, n) for one, n in losses]
            dots = with_exact_cgf(pairs, delta, upper=False, max_terms=max_terms)
            below = CertifiedComposition(dots, max(self.width, DISCRETISATION_ERROR))
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
        losses = losses_of_items(items)
        found = 1.0
        if not losses or not all(one.determined_by_rdp for one, _ in losses):
            whole = all(one.has_exact_cgf for one, _ in losses)
            width = self.width if whole else max(self.width, DISCRETISATION_ERROR)
            above = CertifiedComposition(with_exact_cgf(losses, 1e-12, upper=True), width)
            found = above.delta(epsilon)[1]
        if any(one.is_upper_envelope for one, _ in losses):
            others = (Basic(), Advanced(), ZCDP(), RDP())
            found = min(found, *(one._delta(plan, epsilon) for one in others))
        return found
