"""Noise scales at which no release would rather have some of another's budget.

Write E_i for the weighted error of release i and K_i(a) for its cumulant at the tilt a at which
delta is decided (its Rényi divergence of order a + 1, times a). Where sum E_i is least at a given
delta, the derivatives of E_i and of K_i by ln scale_i have the same ratio for all i. Both are
nearly powers of the scale, so that each step solves for powers with the present exponents.

Reference: Boyd & Vandenberghe (2004), Sections 4.5 (geometric programs) and 5.5 (multipliers).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast, final

import numpy as np

from accountant.accountant import atoms, total
from accountant.budget import Budget
from accountant.errors import ParameterError
from accountant.loss import Loss
from accountant.numerics import Array
from accountant.plan import Plan, directions
from accountant.wanted import Wanted

H = 0.02  # of ln scale: for derivatives
# the last move's square is what is missed
STEPS, CLOSE, FURTHEST = 30, 0.03, 3.0
TILTS = np.geomspace(0.02, 200.0, 56)


def shares(
    wanted: Sequence[Wanted], counts: Sequence[float], settled: Plan, budget: Budget
) -> Array:
    """Return a noise scale for each of ``wanted``, released so often, up to a common factor."""
    return _Sharing(wanted, counts, settled, budget).scales()


@final
class _Sharing:
    """The search: one multiplier, and the common factor at which delta is met."""

    def __init__(
        self, wanted: Sequence[Wanted], counts: Sequence[float], settled: Plan, budget: Budget
    ) -> None:
        self._wanted, self._settled, self._budget = wanted, settled, budget
        self._counts = np.array(counts, dtype=float)
        self._weights = np.array([one.weight for one in wanted], dtype=float)
        # Gaussians whose rho is rho in all cost rho + 2 sqrt(rho nats), at a = sqrt(nats / rho)
        nats = -math.log(budget.delta) if budget.delta else 1.0
        root = budget.epsilon / (math.sqrt(nats + budget.epsilon) + math.sqrt(nats))
        self._tilts = TILTS * math.sqrt(nats) / root if budget.delta else np.ones(1)
        self._start = math.log(math.sqrt(float(self._counts.sum()) / 2) / root)
        self._fixed = np.exp(self._log_cost(settled))

    def scales(self) -> Array:
        """See `shares`."""
        logs = np.array([self._start + math.log(one.unit) for one in self._wanted])
        low, high = (
            np.log([getattr(one.domain, end) for one in self._wanted]) for end in ("low", "high")
        )
        known = np.full(logs.shape, np.nan)
        for _ in range(STEPS):
            logs = np.clip(logs, low, high)
            costs, falls, errors, rises = self._measured(logs, known)
            known = logs.copy()
            factor, tilt = self._factor(costs, falls)
            fall = falls[:, tilt]
            gain = np.log(self._counts * fall) + costs[:, tilt] - fall * factor
            pain = np.log(self._counts * self._weights * rises) + errors + rises * factor
            wish, pull = gain - pain, fall + rises
            # what is moved leaves delta where it is, to first order
            share = np.exp(gain - gain.max()) / pull
            move = np.clip((wish - share @ wish / share.sum()) / pull, -FURTHEST, FURTHEST)
            logs = logs + factor + move
            if np.abs(move).max() < CLOSE and abs(factor) < 1:
                break
        found: Array = np.exp(np.clip(logs, low, high))
        return found

    def _measured(self, logs: Array, known: Array) -> tuple[Array, Array, Array, Array]:
        """ln K with minus its slope, and ln error with its slope; ``logs`` move where they must."""
        rows = []
        for i, one in enumerate(self._wanted):
            for away in _away(known[i] - logs[i]):
                try:
                    scales = math.exp(logs[i] + away), math.exp(logs[i] + away + H)
                    plans = [one.plan(s) for s in scales]
                    near, far = map(self._log_cost, plans)
                    error, more = map(one.error_of, plans, scales)
                except ParameterError:  # no mechanism has this noise
                    continue
                logs[i] += away
                break
            else:
                raise ParameterError("releases", one.label, "mechanisms that exist at some scale")
            if not 0 < error <= more:
                raise ParameterError("error", error, "a positive number that grows with the scale")
            rows.append((near, (near - far) / H, math.log(error), math.log(more / error) / H))
        costs, falls, errors, rises = (np.array(column) for column in zip(*rows, strict=True))
        return costs, np.maximum(falls, 1e-3), errors, np.maximum(rises, 1e-3)

    @np.errstate(all="ignore")  # some tilts are beyond what floats can say
    def _log_cost(self, plan: Plan) -> Array:
        """``ln K`` at every tilt; ``ln epsilon`` where delta is 0."""
        a, pure = self._tilts, not self._budget.delta

        def fact(loss: Loss) -> Array | float:
            return loss.bound if pure else loss.renyi(a + 1)

        items = list(plan.losses())
        if all(isinstance(item, Loss) and item.reversed is item for item, _ in items):
            found = [sum(n * fact(cast("Loss", item)) for item, n in items) * a]
        else:
            found = [total(way, fact) * a for way in directions(plan)]
        worst = np.maximum.reduce(found) * np.ones_like(a)
        logs: Array = np.clip(np.log(np.nan_to_num(worst, nan=np.inf)), -700.0, 700.0)
        return logs

    def _factor(self, costs: Array, falls: Array) -> tuple[float, int]:
        """The common factor of all scales, as a logarithm, at which delta is met, and the tilt."""
        low, high = -60.0, 60.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (
                (low, middle) if self._excess(costs, falls, middle)[0] <= 0 else (middle, high)
            )
        return high, self._excess(costs, falls, high)[1]

    def _excess(self, costs: Array, falls: Array, factor: float) -> tuple[float, int]:
        """How far ln delta is above its target, and the place of the tilt that decides it."""
        a, epsilon = self._tilts, self._budget.epsilon
        whole = self._fixed + self._counts @ np.exp(np.minimum(costs - falls * factor, 700.0))
        if not self._budget.delta:
            return float(whole[0] - epsilon), 0
        height = whole - a * epsilon - np.log(a) - np.log1p(a)
        at = min(max(int(np.argmin(height)), 1), a.size - 2)
        # the saddle point: delta = e^height / sqrt(2 pi height'')
        slopes = np.diff(height[at - 1 : at + 2]) / np.diff(a[at - 1 : at + 2])
        bend = max(2 * float(slopes[1] - slopes[0]) / (a[at + 1] - a[at - 1]), 1e-300)
        return float(height[at]) - math.log(2 * math.pi * bend) / 2 - self._log_delta, at

    @property
    def _log_delta(self) -> float:
        # what the masses at infinity leave of delta
        return math.log(max(self._budget.delta - atoms(self._settled), self._budget.delta / 2))


def _away(back: float) -> Sequence[float]:
    """Where else to look when there is no mechanism: back towards the last that existed."""
    if math.isnan(back):
        return [0.0, *(sign * jump for jump in (0.5, 1, 2, 4, 8, 16, 32) for sign in (1, -1))]
    return [0.0, back / 2, 0.9 * back, back]
