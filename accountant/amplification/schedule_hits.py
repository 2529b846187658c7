"""Many different sampled Gaussians with a great loss among them; the others' cost is bounded.

As `sampled_gaussian_hits` for equal ones.  Proof: `docs/proofs/schedules.md`, steps 17 to 21.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.similar_hits import HitSums, SimilarHits
from accountant.numerics import Array, Complex
from accountant.numerics.rounding import ULP

NODES_AT_A_TIME = 512
ORDERS = np.geomspace(3.0, 200.0, 9)  # of Chernoff's bound on the others, times epsilon
FINER = np.array([0.65, 0.75, 0.87, 1.15, 1.3, 1.5])
BOUNDS_ON_NODES = 24
MAX_LOG = 1e4
POINTS_EACH = 6  # of a member, in exponentials


class HitSchedule:
    """Different releases, one of which has a great loss, seen as one release."""

    count = 1

    def __init__(
        self,
        members: tuple[Array, Array, Array],
        groups: list[Any],
        *,
        epsilon: float,
        odds: float,
        highest: float,
        tolerance: float,
    ) -> None:
        mu, log_odds, counts = members
        self._groups = [
            SimilarHits(
                mu[some],
                log_odds[some],
                counts[some],
                odds=odds,
                highest=highest,
                tolerance=tolerance,
            )
            for some in groups
        ]
        self._epsilon, self._highest, self._members = epsilon, highest, mu.size
        self._nats = math.fsum((counts * np.logaddexp(0.0, log_odds)).tolist())
        self._rest: tuple[Array, Array] | None = None

    @property
    def is_short(self) -> bool:
        """Whether all rules are short."""
        return all(one.is_short for one in self._groups)

    @property
    def points(self) -> int:
        """About the number of exponentials that a node costs."""
        return sum(one.points for one in self._groups) // 2 + POINTS_EACH * self._members

    @property
    def has_short_sum(self) -> bool:
        """False: the rules serve many members."""
        return False

    def rough_cgf(self, a: Array) -> Array:
        """Return the cumulant at real ``a``."""
        rough: Array = self.cgf(a)[0]
        return rough

    def cgf(self, z: Any) -> tuple[Any, Array]:
        """Return the logarithm of ``prod (1+w+h) - prod (1+w)`` times ``prod (1-rate)^{z+1}``.

        At many real orders, a bound on it.
        """
        powers = np.ravel(z).real + 1
        if powers.size == 1:
            value, error = self._log_height(float(powers[0]))
            return np.full(np.shape(z), value), np.full(np.shape(z), error)
        most = np.full(powers.shape, math.inf)
        for i, p in enumerate(powers.tolist()):
            if p <= self._highest:
                # prod M - prod R <= prod M sum h / M, and M >= 1
                h = max(sum(group.hits(p) for group in self._groups), 1e-300)
                most[i] = self._log_others(p) + h + math.log(h)
        return most.reshape(np.shape(z)), 16 * ULP * np.abs(most).reshape(np.shape(z))

    def _log_others(self, p: float) -> float:
        """Return a bound on the sum of ``ln E r^p (1 - phi)`` at a real power."""
        w = sum(group.others(p) for group in self._groups)
        return w - p * self._nats * (1 - 16 * ULP)

    def _log_height(self, p: float) -> tuple[float, float]:
        if p > self._highest:
            return math.inf, math.inf
        others, hits, off, off_hits = self._sums(p + 0j, np.zeros(1))
        share = math.expm1(float(hits[0].real))
        if not (share > 0 and off_hits[0] < 0.1 * share):
            return math.inf, math.inf
        value = float(others[0].real) - p * self._nats + math.log(share)
        error = float(off[0]) + 1.2 * float(off_hits[0]) * (1 + share) / share
        return value, error + 16 * ULP * (1 + abs(value) + p * self._nats)

    def _sums(self, start: complex, turns: Array) -> HitSums:
        found = [group.sums(start, turns) for group in self._groups]
        return HitSums(*(sum(part) for part in zip(*found, strict=True)))

    def cf_ratio(self, z: Complex) -> tuple[Complex, Array]:
        """Return the value at z over that at Re z, and a bound on its error."""
        p = float(z[0, 0].real) + 1
        real = self._sums(p + 0j, np.zeros(1))
        share = math.expm1(float(real.hits[0].real))
        own = float(real.hits_error[0]) * 1.2 * (1 + share) / share if share > 0 else math.inf
        at_real = float(real.others[0].real), float(real.others_error[0]) + min(own, 1e300)
        ratio, error = np.empty(z.size, dtype=complex), np.empty(z.size)
        flat = z.ravel()
        for first in range(0, z.size, NODES_AT_A_TIME):
            part = slice(first, first + NODES_AT_A_TIME)
            v = flat[part].imag
            turns = flat[: v.size].imag - flat[0].imag  # nodes are equidistant
            found = self._sums(p + 1j * float(v[0]), turns)
            known = np.isfinite(found.others_error) & (found.hits_error < 0.1)
            exponent = np.where(known, found.others - at_real[0] - 1j * v * self._nats, 0.0)
            kept: Complex = np.exp(exponent)
            hits = np.where(known, found.hits, 0.0)
            value = kept * np.expm1(hits) / share
            off = (
                found.others_error + at_real[1] + ULP * 32 * (1 + v * self._nats + np.abs(exponent))
            )
            wrong = np.abs(value) * np.expm1(np.minimum(off, 700.0))
            wrong += (
                1.2
                * np.abs(kept * np.exp(hits))
                / share
                * found.hits_error
                * np.exp(np.minimum(off, 700.0))
            )
            ratio[part], error[part] = value, np.where(known, wrong, math.inf)
        ratio[~np.isfinite(ratio)], error[~np.isfinite(error)] = 0.0, math.inf
        # where that is more than the transform can be
        some = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, BOUNDS_ON_NODES) * flat[-1].imag])
        bound = np.exp(self.log_cf_bound(p - 1, some))
        bound = bound[np.searchsorted(some, flat.imag, side="right") - 1]  # it falls
        error = np.minimum(error, np.abs(ratio) + bound)
        return ratio.reshape(z.shape), error.reshape(z.shape)

    def log_cf_bound(self, a: float, u: Array) -> Array:
        """Return the log of a bound on the ratio for every ``v >= u``."""
        p = a + 1
        value, error = self._log_height(p)
        if not math.isfinite(value):
            return np.full(u.shape, math.inf)
        # prod (R + h') - prod R <= prod (M + h') sum h', all at the real order but h'
        real = sum(group.hits(p) for group in self._groups)
        hits = np.minimum(sum(group.decay(p, u) for group in self._groups), real)
        bound: Array = self._log_others(p) + real + hits + np.log(hits) - value + error
        return bound

    def sure_delta(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on the delta of releases without a great loss."""
        return 0.0, math.exp(min(self.log_rest(epsilon), 0.0))

    def log_rest(self, epsilon: float) -> float:
        """Return the logarithm of Chernoff's bound on delta of releases without a hit."""
        if self._rest is None:
            first = np.append(self._add_orders(ORDERS / self._epsilon), 1.0)
            best = float(first[np.argmin(self._rest_bounds(self._epsilon))])
            self._add_orders(best * FINER)
        return float(np.min(self._rest_bounds(epsilon)))

    def _add_orders(self, b: Array) -> Array:
        """Add bounds at some orders; return all orders so far."""
        others = np.array([self._log_others(p) for p in (b + 1).tolist()]) + 1e-9
        good = others < MAX_LOG
        before, known = self._rest or (np.empty(0), np.empty(0))
        self._rest = np.append(before, b[good]), np.append(known, others[good])
        return self._rest[0]

    def _rest_bounds(self, epsilon: float) -> Array:
        b, others = self._rest or (np.ones(0), np.ones(0))
        bound: Array = others - b * epsilon + b * np.log(b) - (1 + b) * np.log1p(b)
        return np.append(bound, MAX_LOG)
