"""Many different sampled Gaussians without their greatest outputs, which alone cost an epsilon.

As `sampled_gaussian_tail` for one: A is that some Y_i is above a common cut, from where each loss
exceeds epsilon and what the others give back.  Proof: `docs/proofs/schedules.md`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.hit_line import greatest_power
from accountant.amplification.sampled_gaussian.returned_losses import REST_CHANCE
from accountant.amplification.sampled_gaussian.sampled_schedule import SimilarSampledGaussians
from accountant.amplification.sampled_gaussian.schedule_decay import (
    DIFFERENCES,
    UniformParts,
    uniform_differences,
    uniform_parts,
)
from accountant.amplification.sampled_gaussian.similar_below_cut import SimilarBelowCut, normal_tail
from accountant.amplification.schedule_hits import HitSchedule
from accountant.amplification.similar_losses import Index, alike
from accountant.numerics import Array, Complex
from accountant.numerics.rounding import ULP
from accountant.numerics.search import least_float_that

MERGED = 12  # merged members to an octave of mu; a quarter as many to a factor e of the odds
MAX_MERGED = 200
NODES_AT_A_TIME = 512
MAX_LOG_CUT = 200.0
LARGEST_TILT = 50.0  # over epsilon: for greater ones the rule errs by more
GROUP_WIDTH = 8.0  # of log odds, in mu
# what rows may miss of the longest one: few members, many, and an estimate
FINE, COARSE, ROUGH = 1e-14, 1e-10, 1e-6
MAX_FINE = 20_000  # members of a group
BOUNDS_ON_NODES = 24
# expected, of a schedule whose great losses are summed: of few steps, and of many
MAX_HITS, FEW_STEPS, MAX_HITS_OF_MANY = 0.2, 500, 0.5
LEAST_GREAT_LOSS = 0.15  # of epsilon: where losses are smaller, other contours are shorter
FEW_ROWS = 1e-9  # as FINE, of hits: what rows miss is of second order
MAX_ON_CURVES = 2_000  # members whose transforms are bounded one by one


@dataclass(frozen=True, eq=False)
class SampledSchedule:
    """Different sampled Gaussians with the record present, and how often each is released."""

    mu: Array
    log_odds: Array
    counts: Array
    is_estimate: bool = False

    @property
    def size(self) -> int:
        """How many members are different."""
        return self.mu.size

    @property
    def groups(self) -> list[Index]:
        """The places of members with mu in one octave and odds that are alike."""
        octave = np.frexp(self.mu)[1]
        row = np.floor(self.log_odds / (GROUP_WIDTH * 2.0**octave))
        _, place = np.unique(octave + 1j * row, return_inverse=True)
        return [np.flatnonzero(place == one) for one in range(int(np.max(place)) + 1)]

    def merged(self) -> SampledSchedule:
        """Return few members that cost about as much: for estimates."""
        for cells in (MERGED, MERGED / 2):
            column, row = np.floor(cells * np.log2(self.mu)), np.floor(cells / 4 * self.log_odds)
            _, place = np.unique(column + 1j * row, return_inverse=True)
            if np.max(place) < MAX_MERGED:
                break
        # sums of the odds o, of o^2 and of o^2 e^{mu^2} stay: with them most of the variance
        odds, square = np.exp(self.log_odds), self.mu**2
        once, twice = (np.bincount(place, self.counts * odds**k) for k in (1, 2))
        most = np.full(once.size, -math.inf)
        np.maximum.at(most, place, square)
        grown = self.counts * odds**2 * np.exp(square - most[place])
        mu = np.sqrt(most + np.log(np.bincount(place, grown) / twice))
        return SampledSchedule(mu, np.log(twice / once), once**2 / twice, is_estimate=True)

    def rough_epsilon(self, delta: float) -> float:
        """Return an estimate of epsilon: one great loss, beside many that are about normal."""
        rate = np.exp(self.log_odds - self._nats)
        mean = self.log_odds + self.mu**2 / 2

        def chance(y: float) -> float:
            return float(np.sum(self.counts * rate * normal_tail((y - mean) / self.mu)))

        great = least_float_that(lambda y: chance(y) <= delta, -50.0, MAX_LOG_CUT, steps=14)
        variance = float(np.sum(self.counts * rate**2 * np.expm1(np.minimum(self.mu**2, 2.0))))
        normal = variance / 2 + math.sqrt(-2 * variance * math.log(delta))
        hits = float(np.sum(self.counts * rate * np.maximum(self.mu**2 / 2 + self.log_odds, 0.0)))
        return float(np.logaddexp(0.0, great)) + max(normal, hits)

    @functools.cached_property
    def _nats(self) -> Array:
        return np.logaddexp(0.0, self.log_odds)  # -ln(1 - rate)

    @functools.cached_property
    def least_return(self) -> float:
        """What all losses are above the negative of, under Q, but for `REST_CHANCE`."""
        most = math.fsum((self.counts * self._nats).tolist())
        # Q(sum L < -s) <= E_Q r^-t e^-ts
        rate = np.exp(self.log_odds - self._nats)
        variance = float(np.sum(self.counts * rate**2 * np.expm1(np.minimum(self.mu**2, 2.0))))
        t = np.geomspace(0.05, 20.0, 10) * math.sqrt(-2 * math.log(REST_CHANCE) / variance)
        total = np.zeros(t.shape)
        for some in alike(self.mu, self.log_odds):
            group = SimilarSampledGaussians(self.mu[some], self.log_odds[some], record_added=True)
            value, error = group.cgf(t, self.counts[some])
            total = total + value + error
        bound = (total - math.log(REST_CHANCE)) / t
        return min(most, float(np.min(bound[np.isfinite(bound)], initial=np.inf)))

    def single_loss(self, delta: float) -> tuple[float, float] | None:
        """Return about epsilon and the slope of ln delta there if one great loss costs it all.

        None where many hits are expected, or where small losses cost as much.
        """
        rate = np.exp(self.log_odds - self._nats)
        mean = self.log_odds - self.mu**2 / 2
        most = MAX_HITS if float(np.sum(self.counts)) <= FEW_STEPS else MAX_HITS_OF_MANY
        if float(np.sum(self.counts * rate)) > most:
            return None

        def deltas(epsilon: float) -> tuple[float, float]:
            far = (np.log(np.expm1(epsilon + self._nats)) - mean) / self.mu
            above = normal_tail(far)
            gain = rate * (normal_tail(far - self.mu) - above) - math.expm1(epsilon) * above
            return float(np.sum(self.counts * gain)), float(np.sum(self.counts * above))

        found = least_float_that(lambda e: deltas(e)[0] <= delta, 0.0, MAX_LOG_CUT, steps=20)
        if not LEAST_GREAT_LOSS < found < MAX_LOG_CUT / 2:
            return None
        return found, deltas(found)[1] * math.exp(found) / delta

    def with_a_great_loss(
        self, epsilon: float, *, odds: float, highest: float
    ) -> HitSchedule | None:
        """Return the members with a hit among their outputs; None where rules are long.

        ``epsilon`` is about where it will be asked.
        """
        tolerance, groups = ROUGH if self.is_estimate else FEW_ROWS, self.groups
        most = min(greatest_power(self.mu[some], self.log_odds[some]) for some in groups)
        members = self.mu, self.log_odds, self.counts
        found = HitSchedule(
            members,
            groups,
            epsilon=epsilon,
            odds=odds,
            highest=min(highest, most),
            tolerance=tolerance,
        )
        return found if found.is_short else None

    def without_sure_events(self, epsilon: float) -> TruncatedSchedule | None:
        """Return the members without outputs that cost more than epsilon; None out of reach."""
        least = (epsilon + self.least_return) * (1 + 1e-12) + float(np.max(self._nats))
        if not 0 < least < MAX_LOG_CUT:
            return None
        cut = math.log(math.expm1(least * (1 + 1e-12))) + 1e-12 * (1 + least)
        found = TruncatedSchedule(self, cut, LARGEST_TILT / epsilon + 2)
        return found if found.is_short else None


class TruncatedSchedule:
    """All members with their outputs below a cut, seen as one release."""

    count = 1

    def __init__(self, schedule: SampledSchedule, cut: float, greatest_power: float) -> None:
        mu, log_odds, counts = schedule.mu, schedule.log_odds, schedule.counts
        tolerance = ROUGH if schedule.is_estimate else FINE
        self._groups = [
            SimilarBelowCut(
                mu[some],
                log_odds[some],
                counts[some],
                cut,
                greatest_power=greatest_power,
                tolerance=tolerance if some.size <= MAX_FINE else COARSE,
            )
            for some in schedule.groups
        ]
        self._cut = cut
        self._nats = math.fsum((counts * np.logaddexp(0.0, log_odds)).tolist())
        self._decay: dict[float, list[UniformParts]] = {}

    @property
    def points(self) -> int:
        """About the number of exponentials that a node costs."""
        return sum(one.points for one in self._groups)

    @property
    def is_short(self) -> bool:
        """Whether all rules are short."""
        return all(one.is_short for one in self._groups)

    @property
    def has_short_sum(self) -> bool:
        """False: the rules serve many members."""
        return False

    def rough_cgf(self, a: Array) -> Array:
        """Return the cumulant at real ``a``."""
        rough: Array = self.cgf(a)[0]
        return rough

    def cgf(self, z: Any) -> tuple[Any, Array]:
        """Return ``ln E[e^{zL}; Y <= cut]`` of all; at many real orders, a bound and its size."""
        powers = np.ravel(z).real + 1
        if powers.size == 1:
            p = float(powers[0])
            both = [group.log_height(p) for group in self._groups]
            off = math.fsum(error for _, error in both) + 16 * ULP * p * self._nats
            value = np.array([math.fsum(one for one, _ in both) - p * self._nats])
            return value.reshape(np.shape(z)), np.full(np.shape(z), off)
        most = sum(one.upper_sum(powers) for one in self._groups)
        most = most - powers * self._nats * (1 - 16 * ULP)
        return (most / 2).reshape(np.shape(z)), (np.abs(most) / 2).reshape(np.shape(z))

    def cf_ratio(self, z: Complex) -> tuple[Complex, Array]:
        """Return ``E[e^{zL}; Y <= cut]`` over its value at Re z on nodes, and its error."""
        p = float(z[0, 0].real) + 1
        turns: Complex = (1j * z[0].imag).astype(complex)
        ratio = np.exp(-1j * z.imag * self._nats)
        error = 16 * ULP * np.abs(z) * self._nats
        besides = np.zeros(z.shape)
        rows = max(1, NODES_AT_A_TIME // turns.size)
        for first in range(0, z.shape[0], rows):
            part = slice(first, first + rows)
            powers: Complex = (p + 1j * z[part, 0].imag).astype(complex)
            for group in self._groups:
                own, missed, more = group.ratios(p, powers, turns)
                ratio[part] *= own.reshape(ratio[part].shape)
                error[part] += missed.reshape(ratio[part].shape)
                besides[part] += more.reshape(ratio[part].shape)
        error = np.expm1(np.minimum(error, 700.0))
        more = np.abs(ratio) * np.expm1(np.minimum(besides, 700.0))
        error += np.where(np.isfinite(besides), more, math.inf)
        # where that is more than the transform can be
        u = z.imag
        some = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, BOUNDS_ON_NODES) * u[-1, -1]])
        most = np.exp(self.log_cf_bound(float(z[0, 0].real), some))
        most = most[np.searchsorted(some, u, side="right") - 1]  # it holds for greater ones
        return ratio, np.minimum(error, np.abs(ratio) + most)

    def log_cf_bound(self, a: float, u: Array) -> Array:
        """Return a bound on ``ln |E e^{(a+iv)L}| / E e^{aL}`` for every ``v >= u``."""
        if a not in self._decay:
            masses = [group.log_mass(a + 1) for group in self._groups]
            each = [
                (g.mu, g.log_odds, a + 1, m, self._cut)
                for g, m in zip(self._groups, masses, strict=True)
            ]
            counts = [group.counts for group in self._groups]
            alone = [(uniform_parts(*one), n) for one, n in zip(each, counts, strict=True)]
            # the transform of a difference is a square
            pairs = [
                (uniform_differences(*one), n / 2) for one, n in zip(each, counts, strict=True)
            ]
            self._decay = {a: [UniformParts(alone), UniformParts(pairs, DIFFERENCES)]}
        bound = np.minimum(*(parts.log_bound(u) for parts in self._decay[a]))
        if sum(group.mu.size for group in self._groups) <= MAX_ON_CURVES:
            bound = np.minimum(bound, sum(group.log_decay(a + 1, u) for group in self._groups))
        return bound

    def sure_delta(self, epsilon: float) -> tuple[float, float]:
        """Return ``E[(1 - e^{eps - L})+; A]`` between two bounds."""
        none = more = doubt = ulps = 0.0
        for group in self._groups:
            q, moved = group.tails
            rate = np.exp(group.log_odds - np.logaddexp(0.0, group.log_odds))
            far = np.abs(self._cut - group.mean) / group.mu
            none += math.fsum((group.counts * np.log1p(-q)).tolist())
            gain = group.counts * np.log1p(-rate * np.maximum(moved - q, 0.0) / (1 - q))
            more += math.fsum(gain.tolist())
            doubt += float(np.sum(group.counts * q))
            place = abs(self._cut) + np.abs(group.mean)
            own = 64 + 8 * far * (far + group.mu + place / group.mu)
            ulps += math.fsum(
                (group.counts * own * (q * math.exp(epsilon) + rate * moved)).tolist()
            )
        # P(A) - Q(A) = prod (1-q) (1 - prod (1 - p) / (1 - q))
        gain_all = -math.exp(none) * math.expm1(more)
        paid = -math.expm1(epsilon) * math.expm1(none)
        error = 2 * ULP * (ulps + 64 * (gain_all + abs(paid))) + 1e-290
        doubt *= math.exp(epsilon) * REST_CHANCE
        return gain_all - paid - error, gain_all - paid + error + doubt
