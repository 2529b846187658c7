"""The true epsilon of a plan, between two proved bounds.

References: accounting by contour: Zhu, Dong & Wang (2022), Gopi, Lee & Wutschitz (2021); the
certificate is ours, see `docs/proofs/contour.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.accountant import Accountant
from accountant.basic import Basic
from accountant.certificate import Certificate
from accountant.composed import as_loss
from accountant.composition import Composition
from accountant.domains import DELTA
from accountant.loss import ACCURACY, Loss
from accountant.numerics import up
from accountant.plan import Plan, as_plan, directions
from accountant.rdp import RDP
from accountant.zcdp import ZCDP


@final
@dataclass(frozen=True, slots=True)
class Tight(Accountant):
    """The exact composition, rounded up by less than ``width`` of itself wherever that is possible.

    Where a loss covers several worst pairs (`Loss.envelope`) it returns the least sound bound, and
    the lower end of `bracket` is that of one of those pairs.  Valid for plans fixed in advance.
    """

    width: float = 1e-8

    def certify(self, plan: Plan, delta: float) -> Certificate:
        """Return the interval that holds the epsilon of ``plan`` at ``delta``, over both ways."""
        plan, delta = as_plan(plan), DELTA.check("delta", delta)
        ways = [self._certify(way, delta) for way in directions(plan)]
        worst = max(ways, key=lambda one: one.upper)
        return Certificate(max(one.lower for one in ways), worst.upper, worst.engine, worst.nodes)

    def bracket(self, plan: Plan, delta: float) -> tuple[float, float]:
        """Return (lower, upper) around the true epsilon at ``delta``."""
        found = self.certify(plan, delta)
        return found.lower, found.upper

    def _epsilon(self, plan: Plan, delta: float) -> float:
        return self._certify(plan, delta).upper

    def _certify(self, way: Plan, delta: float) -> Certificate:
        if delta == 0:
            total = Basic()._epsilon(way, 0.0)
            return Certificate(total, total, "sum of the bounds")
        items = [(as_loss(item) if not isinstance(item, Loss) else item, n) for item, n in way.losses()]
        return Composition(items, self.width).certify(delta)

    def _delta(self, plan: Plan, epsilon: float) -> float:
        items = [(item, n) for item, n in plan.losses()]
        return Composition(items, self.width).delta(epsilon)[1]
