"""Many different sampled Gaussians: all outputs below a cut, or all outcomes with a great loss.

The record is present.  Release i has the loss ln(1 + e^{Y_i}) + ln(1 - rate_i), where Y_i is
N(m_i, mu_i^2) without the record (see `sampled_schedule`).  Two parts of the outcomes have a delta
that is known, so that a contour integral need only sum the others:

- Certain violations: some Y_i is above a cut c, from where its loss alone exceeds epsilon and all
  that the others may give back.  Their delta has a closed form; what remains has Y_i <= c.
- Outcomes without a great loss, where these are rare.  With phi(y) = (1 - e^{-e^y / scale})^12,
  which is about 1 for great losses and 0 for small ones,

      prod_i r_i = [prod_i r_i - prod_i r_i (1 - phi_i)] + prod_i r_i (1 - phi_i).

  Both are measures.  Chernoff's bound on the delta of the second is next to nothing, and the
  transform of the first falls fast: the law of a great loss is smooth, that of small ones is not.

Both need moments E[(1 + e^Y)^s; Y <= c] of all releases at complex s, with and without phi:
`similar_parts` has those of a group of similar mu.

Proof: `docs/proofs/schedules.md`, the parts of a schedule.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian
from accountant.amplification.sampled_gaussian.sampled_gaussian_tail import (
    TruncatedSampledGaussians,
    certain_delta,
    return_of_different,
    truncated,
)
from accountant.amplification.sampled_gaussian.sampled_schedule import (
    DEVIATIONS,
    right_end,
)
from accountant.amplification.sampled_gaussian.similar_parts import (
    NATS,
    Moments,
    Path,
    SimilarParts,
    log_beyond,
)
from accountant.composition.cgf import log_chernoff
from accountant.numerics import Array, Complex
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import MAX_EXPONENT, ULP

HIGHEST = 1.25  # the height of a path in deviations: densities on it are e^{1.25^2 / 2} as large
GENTLE_HEIGHT = 0.35  # of the path for the other outcomes: on it |1 - phi| is about 1 - phi
# Fewer different sampled Gaussians are integrated one by one, as quickly.
MIN_SHARED = 32
GROUP_WIDTH = 4.0  # of the logarithms of odds in a group, in the power of 2 above mu
CELLS = 12.0  # of merged members: to an octave of mu, and to a factor e^4 of odds
FEW = 250  # as many members are not merged
# A great loss is at least about epsilon over one of these, and at most `GREATEST`: the greater it
# is, the shorter is the contour, and the more the other outcomes cost.
GREAT_SHARES, GREATEST = (1.5, 2.0, 2.7, 3.6, 5.0, 7.0, 10.0, 14.0), 2.0
RARE = 0.2  # the expected number of steps that sample a record
LOG_NOTHING = math.log(1e-9)  # ln of the delta of the other outcomes, over delta
ORDERS = np.geomspace(3.0, 200.0, 10)  # of Chernoff's bound on it, in units of 1 / epsilon
USUAL_TILT = 20.0  # in the same unit: where moments are asked for before the tilt is known
# Estimated costs in complex products of 2 ns: of a member at a node, of all outcomes and of those
# with a great loss; and of a term of a rule of one member, some exponentials.
COST_OF_A_MEMBER, COST_OF_A_SPLIT_MEMBER, COST_OF_A_TERM = 50.0, 120.0, 100.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """Different sampled Gaussians with the record present, and how often each is released.

    ``gaussians`` are a few of them, which are truncated one by one.
    """

    mu: Array
    log_odds: Array
    counts: Array
    gaussians: Sequence[SampledGaussian] = ()

    @classmethod
    def of(cls, gaussians: Sequence[SampledGaussian], counts: Array) -> Schedule:
        """Return the schedule of sampled Gaussians."""
        mu, rate = np.array([(gaussian.mu, gaussian.rate) for gaussian in gaussians]).T
        few = gaussians if len(gaussians) < MIN_SHARED else ()
        return cls(mu, np.log(rate) - np.log1p(-rate), counts.astype(float), few)

    @property
    def size(self) -> int:
        """How many members are different."""
        return self.mu.size

    @property
    def nats(self) -> Array:
        """-ln(1 - rate) of each member: a loss is never less than minus this."""
        nats: Array = np.logaddexp(0.0, self.log_odds)
        return nats

    @property
    def ends(self) -> tuple[float, float]:
        """The least point of a rule for all members, and the greatest mean."""
        mean = self.log_odds - self.mu * self.mu / 2
        return float(np.min(mean)) - DEVIATIONS * float(np.max(self.mu)), float(np.max(mean))

    def groups(self) -> list[Schedule]:
        """Return members of similar mu and odds together."""
        octave = np.frexp(self.mu)[1]
        keys = np.stack([octave, np.floor(self.log_odds / (GROUP_WIDTH * 2.0**octave))])
        _, key_index = np.unique(keys, axis=1, return_inverse=True)
        key_index = key_index.ravel()
        members = [np.flatnonzero(key_index == key) for key in range(int(np.max(key_index)) + 1)]
        return [Schedule(self.mu[i], self.log_odds[i], self.counts[i]) for i in members]

    def merged(self) -> Schedule:
        """Return few members that cost about as much, for estimates.

        In each cell of (mu, odds) the sums of the odds o, of o^2 and of o^2 e^{mu^2} stay, and so
        most of the variance of the loss.
        """
        if self.size <= FEW:
            return self
        cell = np.stack([np.floor(CELLS * np.log2(self.mu)), np.floor(CELLS / 4 * self.log_odds)])
        _, index = np.unique(cell, axis=1, return_inverse=True)
        index, odds, square = index.ravel(), np.exp(self.log_odds), self.mu**2
        once, twice = (np.bincount(index, self.counts * odds**k) for k in (1, 2))
        top = np.full(once.size, -math.inf)
        np.maximum.at(top, index, square)
        grown = np.bincount(index, self.counts * odds**2 * np.exp(square - top[index]))
        return Schedule(np.sqrt(top + np.log(grown / twice)), np.log(twice / once), once**2 / twice)

    def below(self, epsilon: float) -> ScheduleParts | TruncatedSampledGaussians | None:
        """Return all outcomes but the certain violations of ``epsilon``; None out of reach."""
        if self.gaussians:
            return truncated(self.gaussians, [int(count) for count in self.counts], epsilon)
        rate = np.exp(self.log_odds - self.nats)
        loss = (epsilon + return_of_different(self.mu, rate, self.counts)) * (1 + 1e-12)
        loss += float(np.max(self.nats)) * (1 + 1e-12)
        if not 0 < loss < MAX_EXPONENT:
            return None
        return ScheduleParts(self, epsilon, cut=math.log(math.expm1(loss)) + 1e-12 * (1 + loss))

    def with_great_losses(self, epsilon: float, log_delta: float) -> ScheduleParts | None:
        """Return the outcomes with a great loss; None where the others cost more than nothing.

        The greater the losses are, the shorter is the contour.
        """
        sampled_steps = float(ordered_dot(np.exp(self.log_odds - self.nats), self.counts))
        if self.gaussians or sampled_steps > RARE:
            return None
        few = self.merged()
        for share in GREAT_SHARES:
            log_scale = math.log(math.expm1(min(epsilon / share, GREATEST)) / 3)
            order, log_others = few.without_great_losses(epsilon, log_scale, ORDERS / epsilon)
            if log_others < LOG_NOTHING + log_delta:
                return ScheduleParts(self, epsilon, log_scale=log_scale, order=order)
        return None

    def without_great_losses(
        self, epsilon: float, log_scale: float, orders: Array
    ) -> tuple[float, float]:
        """Return the best of some orders, and ln of Chernoff's bound by it on the other part."""
        powers = orders + 1
        # Beyond the end 1 - phi is below e^{-.75 zeta} for all powers: zeta >= 4 s ln(1 + e^y).
        end = log_scale + math.log(400.0)
        while math.exp(end - log_scale) < 4 * float(powers[-1]) * float(np.logaddexp(0.0, end)):
            end += 0.5
        total = log_chernoff(0 * orders, orders) - orders * epsilon
        for group in self.groups():
            height = min(GENTLE_HEIGHT, HIGHEST * float(np.min(group.mu)))
            path = Path.line(group.ends[0], max(end, group.ends[0] + 1), height)
            part = SimilarParts(
                group.mu, group.log_odds, group.counts, path, log_scale, without_great_losses=True
            )
            log_mass, error, *_ = part.moments(float(np.median(powers)), powers)
            total += ordered_dot((log_mass + np.log1p(error)).T, group.counts)
            nats = float(ordered_dot(group.nats, group.counts))
            total -= powers * nats * (1 - 1e-12)
        best = int(np.argmin(np.where(np.isfinite(total), total, np.inf)))
        return float(orders[best]), float(total[best])


class ScheduleParts:
    """A part of the outcomes of a schedule: a `TruncatedLoss` of the contour engines.

    It is all outputs up to ``cut``, or the outcomes with a great loss where ``log_scale`` is given;
    ``order`` is then that of Chernoff's bound on the others.
    """

    def __init__(
        self,
        schedule: Schedule,
        epsilon: float,
        *,
        cut: float = math.inf,
        log_scale: float = -math.inf,
        order: float = 0.0,
    ) -> None:
        self._schedule, self._epsilon, self._cut = schedule, epsilon, cut
        self._log_scale, self._order = log_scale, order
        self.is_split = self.serves_all_epsilons = log_scale > -math.inf
        self._groups = schedule.groups()
        self._prepared: dict[float, list[tuple[SimilarParts, Moments]]] = {}

    @functools.cached_property
    def few(self) -> ScheduleParts:
        """The same part of few merged members, for estimates."""
        few, cut, log_scale = self._schedule.merged(), self._cut, self._log_scale
        if few is self._schedule:
            return self
        return ScheduleParts(few, self._epsilon, cut=cut, log_scale=log_scale)

    def parts(self, power: float) -> list[SimilarParts]:
        """Return the groups with their paths for this power."""
        result = []
        for group in self._groups:
            low, highest_mean = group.ends
            least_mu = float(np.min(group.mu))
            height = min((0.23 if self.is_split else 0.45) * math.pi, HIGHEST * least_mu)
            if math.isinf(self._cut):
                largest_mu, min_odds = float(np.max(group.mu)), float(np.min(group.log_odds))
                end = right_end(highest_mean, largest_mu, 1.5 * power, min_odds) + largest_mu
                path = Path.line(low, end, height)
            else:
                path = Path.to_cut(low, self._cut, height)
                log_share = log_beyond(path.t, path, float(np.max(group.mu)), highest_mean)
                log_share += power * float(np.logaddexp(0.0, self._cut))
                last_index = int(np.argmax(np.append(log_share[:-1] <= -NATS, True)))
                path = replace(path, t=path.t[: last_index + 1])
            result.append(
                SimilarParts(group.mu, group.log_odds, group.counts, path, self._log_scale)
            )
        return result

    def prepared(self, power: float) -> list[tuple[SimilarParts, Moments]]:
        """Return the groups, and their moments at this power."""
        if power not in self._prepared:
            wanted = np.array([power])
            self._prepared = {
                power: [(part, part.moments(power, wanted)) for part in self.parts(power)]
            }
        return self._prepared[power]

    @property
    def planning_cost(self) -> float:
        """The cost of planning a contour, in complex products of 2 ns."""
        parts = self.parts(next(iter(self._prepared), 1 + USUAL_TILT / self._epsilon))
        return COST_OF_A_TERM * sum(part.mu.size * part.path.t.size for part in parts)

    @property
    def points(self) -> float:
        """The number of complex products that a node of a contour takes."""
        cost_of_a_member = COST_OF_A_SPLIT_MEMBER if self.is_split else COST_OF_A_MEMBER
        return cost_of_a_member * self._schedule.size

    def cgf(self, z: Any) -> tuple[Any, Array]:
        """Return the cumulant of the part at real orders, and a bound on its error."""
        powers = np.ravel(z) + 1
        if powers.size == 1:
            prepared = self.prepared(float(powers[0]))
        else:
            base = next(iter(self._prepared), 1 + USUAL_TILT / self._epsilon)
            prepared = [(part, part.moments(base, powers)) for part in self.parts(base)]
        nats = self._schedule.nats * self._schedule.counts
        nats_ulps = 16 + 8 * np.abs(self._schedule.log_odds)
        total = -powers * float(np.sum(nats))
        error = ULP * powers * float(np.sum(nats * nats_ulps))
        great, great_error = np.zeros(powers.shape), np.zeros(powers.shape)
        for part, (log_mass, mass_error, hit_share, hit_error, _) in prepared:
            total = total + ordered_dot(log_mass.T, part.counts)
            log_error = -np.log1p(-np.minimum(mass_error, 1.0)) + 8 * ULP * np.abs(log_mass)
            error = error + ordered_dot(log_error.T, part.counts)
            if self.is_split:
                great = great - ordered_dot(np.log1p(-hit_share).T, part.counts)
                share_error = (hit_error + 8 * ULP * hit_share) / (1 - hit_share - hit_error)
                great_error = great_error + ordered_dot(share_error.T, part.counts)
        if self.is_split:
            # The part is the product of all moments times 1 - e^-great.
            total = total + np.log(-np.expm1(-great))
            error = error + 2 * great_error / np.expm1(great)
        return total.reshape(np.shape(z)), error.reshape(np.shape(z))

    def rough_cgf(self, a: Array) -> Array:
        """Return about the cumulant at real orders, that of few merged members."""
        cumulant: Array = self.few.cgf(a)[0]
        return cumulant

    def cf_ratio(self, z: Complex) -> tuple[Complex, Array]:
        """Return ``e^{K(z) - K(a)}`` of the part on nodes, and a bound on its error."""
        u, power = z.imag, float(z[0, 0].real) + 1
        nats = float(np.sum(self._schedule.nats * self._schedule.counts))
        odds_ulps = float(np.max(np.abs(self._schedule.log_odds)))
        ratio = np.exp(-1j * u * nats)
        error = ULP * (16 + 8 * odds_ulps) * nats * u
        great, great_error = np.zeros(z.shape, dtype=complex), np.zeros(z.shape)
        least_kept, great_at_power = 1.0, 0.0
        for part, height in self.prepared(power):
            nodes = part.nodes(power, z, height)
            ratio *= nodes.ratio
            error += nodes.ratio_error[0] + nodes.ratio_error[1] * u
            if self.is_split:
                great, least_kept = great + nodes.hits, min(least_kept, nodes.least_kept)
                great_error += nodes.hits_error[0] + nodes.hits_error[1] * u
                great_at_power -= float(ordered_dot(np.log1p(-height.hit_share[:, 0]), part.counts))
        if not self.is_split:
            return ratio, error
        if least_kept < 0.5:
            return ratio, np.full(z.shape, np.inf)
        # M (1 - e^-great) = R (e^great - 1), R = M - H of all; errors of M are relative to it.
        size = -math.expm1(-great_at_power)
        ratio = ratio * -np.expm1(-great) / size
        kept_size = np.exp(great.real) * math.exp(-great_at_power)
        relative = np.expm1(np.minimum(2 * error + great_error, MAX_EXPONENT))
        error = np.abs(ratio) * relative + kept_size * great_error * (1 + relative) / size
        return ratio, error

    def log_cf_bound(self, a: float, u: Array) -> Array:
        """Return a bound on ``Re K(a + iv) - K(a)`` for every ``v >= u``."""
        prepared, total = self.prepared(a + 1), np.zeros(u.shape)
        great = 0.0
        for part, height in prepared:
            total += part.log_transforms(a + 1, u, height)
            great -= float(ordered_dot(np.log1p(-height.hit_share[:, 0]), part.counts))
        if not self.is_split:
            return total
        # |prod M - prod (M - H)| <= prod R (e^{sum |H| / R} - 1), R = M - H at the real part
        return np.log(np.expm1(np.minimum(total, MAX_EXPONENT))) - math.log(math.expm1(great))

    @functools.cached_property
    def _log_others(self) -> float:
        """The logarithm of a bound on the delta of outcomes without a great loss, at `_epsilon`."""
        order = np.array([self._order])
        return self._schedule.without_great_losses(self._epsilon, self._log_scale, order)[1]

    def sure_delta(self, epsilon: float) -> tuple[float, float]:
        """Return a lower and an upper bound on the delta of all other outcomes."""
        schedule = self._schedule
        if self.is_split:
            log_others = self._log_others - self._order * (epsilon - self._epsilon)
            return 0.0, math.exp(min(log_others, MAX_EXPONENT))
        mu, log_odds = schedule.mu, schedule.log_odds
        cut, place = (self._cut - log_odds) / mu + mu / 2, (abs(self._cut) + np.abs(log_odds)) / mu
        rate = np.exp(log_odds - schedule.nats)
        return certain_delta(mu, rate, cut, schedule.counts, place, epsilon)
