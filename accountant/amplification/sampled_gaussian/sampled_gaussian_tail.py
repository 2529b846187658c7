"""Sampled Gaussians without their greatest outputs, whose loss alone exceeds an epsilon.

The losses L_i of the releases are independent, the record is present, and x_i is the output of
release i.  Cut each release at an output c_i whose loss is at least epsilon + s, and let A be the
event that some output is above its cut.  If all other losses add up to more than -s, every outcome
in A costs more than epsilon, so that with P (record present) and Q (absent)

    delta(epsilon) = P(A) - e^epsilon Q(A)  +  E_P[(1 - e^{epsilon - L})_+; all x_i <= c_i].

`TruncatedSampledGaussians.sure_delta` is the first part, the certain violations.  The second is
left to a contour integral (`accountant.composition.contour_engines`), for which the class has
the cumulant K(z) = sum_i ln E_P[e^{zL_i}; x_i <= c_i]: its losses are bounded, so that the contour
through its saddle point is no larger than delta.  `least_return` is s: how far below 0 the other
losses may return, up to a chance that is added to delta.

Proof: `docs/proofs/sampled_gaussian.md`, certain violations and the cut.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.rules_to_cut import (
    STRIP,
    STRIP_NATS,
    cut_curve,
    cut_line,
    log_ratio,
    max_points,
    place_on_curve,
    places_to_cut,
    short_rule,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian
from accountant.amplification.sampled_gaussian.sampled_gaussian_decay import LINE_LADDER, Decay
from accountant.amplification.sampled_gaussian.sampled_gaussian_lines import HIGHEST_LINE, Line
from accountant.amplification.sampled_gaussian.sampled_gaussian_moments import (
    log_moments,
    moment_power,
)
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import normal_tail
from accountant.numerics.ordered_sums import ordered_dot, product_with_errors
from accountant.numerics.rounding import ULP, UNDERFLOW

# The farthest cut, in deviations times max(mu, 1).  It leaves a tail of e^-80000, which no delta
# sees; the rule up to it has thousands of points, and the contour of all outputs is as good.
MAX_CUT = 400.0
# Q(the other losses add up to less than -s), at most.  What that adds to delta is a share of it.
RETURN_CHANCE = 1e-13
RETURN_NATS = -math.log(RETURN_CHANCE)
# Orders t of Chernoff's bound that are tried, as multiples of the best one of a normal sum: each
# gives a valid s, and the least is taken.
CHERNOFF_ORDERS = np.geomspace(0.1, 1e3, 64)
PLANNING_COST_OF_A_MEMBER = 1e6
DECAY_NATS = 60.0  # the product of all characteristic functions is bounded down to e^-60


@dataclass(frozen=True, slots=True)
class TruncatedSampledGaussian:
    """``count`` equal sampled Gaussians with the record present, their outputs at most ``cut``."""

    mu: float
    rate: float
    cut: float
    count: int

    def cgf(self, z: Any) -> tuple[Any, Array]:
        """Return ``ln E[e^{zL}; x <= cut]`` of one release, and a bound on its error."""
        if np.size(z) == 1 and not np.iscomplexobj(z):
            value, error = _cumulant_at(self, float(np.ravel(z)[0]))
            return value.reshape(np.shape(z)), error.reshape(np.shape(z))
        if np.iscomplexobj(z):
            rule = self.curve(float(np.max(z.real)) + 1)
        else:
            rule = cut_line(self.mu, self.rate, self.cut)
        value, error = log_moments(rule, np.ravel(z).astype(complex) + 1)
        cumulant = value if np.iscomplexobj(z) else value.real
        return cumulant.reshape(np.shape(z)), error.reshape(np.shape(z))

    def cf_ratio(self, z: Complex) -> tuple[Complex, Array]:
        """Return the power of ``E[e^{zL}; x <= cut]`` over that at Re z, and its error."""
        return moment_power(self.curve(float(z[0, 0].real) + 1), z + 1, self.count)

    @property
    def points(self) -> int:
        """The number of points of the rule, at most."""
        return max_points(self.cut, self.height)

    @property
    def height(self) -> float:
        """The height above the real line at which the curve runs, below pi / 2 mu."""
        return min(0.45 * math.pi / self.mu, HIGHEST_LINE)

    def curve(self, power: float) -> Line:
        """Return the rule on the curve that ends at the cut, for powers with this real part."""
        return cut_curve(self.mu, self.rate, self.cut, self.height, power)


class TruncatedSampledGaussians:
    """Different sampled Gaussians with the record present, the outputs of each below its cut."""

    serves_all_epsilons = False

    def __init__(self, members: Sequence[TruncatedSampledGaussian]) -> None:
        self.members = members
        self._counts = np.array([member.count for member in members], dtype=float)
        # The real part of the last `log_cf_bound`, and the bounds of the members there.
        self._decays: tuple[float, list[Decay]] = (math.nan, [])

    @property
    def points(self) -> float:
        """The number of points of all rules together, at most."""
        return float(sum(member.points for member in self.members))

    @property
    def planning_cost(self) -> float:
        """The cost of planning a contour, in complex products of 2 ns."""
        return PLANNING_COST_OF_A_MEMBER * len(self.members)

    def cgf(self, z: Any) -> tuple[Any, Array]:
        """Return ``ln E[e^{zL}; all outputs at most their cuts]``, and a bound on its error."""
        total, error = np.zeros(np.shape(z), dtype=np.asarray(z).dtype), np.zeros(np.shape(z))
        for member in self.members:
            value, member_error = member.cgf(z)
            total, error = total + member.count * value, error + member.count * member_error
        return total, error

    @functools.cached_property
    def _short_rules(self) -> tuple[Array, Array, Any]:
        """Losses and log-masses of short rules of all members, and where each member starts."""
        rules = [short_rule(member.mu, member.rate, member.cut) for member in self.members]
        sizes = [loss.size for loss, _ in rules]
        starts = np.concatenate([[0], np.cumsum(sizes[:-1])]).astype(int)
        losses, log_masses = zip(*rules, strict=True)
        return np.concatenate(losses), np.concatenate(log_masses), starts

    def rough_cgf(self, a: Array) -> Array:
        """Return about the cumulant at real ``a``: no bound follows from it."""
        loss, log_mass, starts = self._short_rules
        exponent = (a[:, None] + 1) * loss + log_mass
        top = np.maximum.reduceat(exponent, starts, axis=1)
        sizes = np.diff(np.append(starts, loss.size))
        exponent -= np.repeat(top, sizes, axis=1)
        moments = np.log(np.add.reduceat(np.exp(exponent), starts, axis=1)) + top
        cumulant: Array = np.einsum("am,m->a", moments, self._counts)
        return cumulant

    def cf_ratio(self, z: Complex) -> tuple[Complex, Array]:
        """Return ``e^{K(z) - K(a)}`` of all on equidistant nodes, and a bound on its error."""
        return product_with_errors((member.cf_ratio(z) for member in self.members), z)

    def log_cf_bound(self, a: float, u: Array) -> Array:
        """Return a bound on ``Re K(a + iv) - K(a)`` for every ``v >= u``."""
        if self._decays[0] != a:
            releases = int(np.sum(self._counts))
            self._decays = a, [curves_of_decay(member, a, releases) for member in self.members]
        bound = np.zeros(u.shape)
        for decay, count in zip(self._decays[1], self._counts.tolist(), strict=True):
            bound += count * decay.log_bound(u)
        return bound

    def sure_delta(self, epsilon: float) -> tuple[float, float]:
        """Return the delta of the certain violations, ``E_P[(1 - e^{eps - L})_+; A]``, as bounds.

        With q_i = Q(x_i > c_i) and p_i = P(x_i > c_i), both of N(0, 1) and of its mixture with
        N(mu, 1), and n_i releases of member i, without cancellation:

            P(A) - e^eps Q(A) = (P(A) - Q(A)) - (e^eps - 1) Q(A),
            P(A) - Q(A) = prod (1 - q_i)^n_i [1 - prod (1 - (p_i - q_i) / (1 - q_i))^n_i].
        """
        mu, rate, cut = (
            np.array([getattr(member, name) for member in self.members])
            for name in ("mu", "rate", "cut")
        )
        return certain_delta(mu, rate, cut, self._counts, np.abs(cut), epsilon)


def certain_delta(
    mu: Array, rate: Array, cut: Array, counts: Array, place: Array, epsilon: float
) -> tuple[float, float]:
    """Return `TruncatedSampledGaussians.sure_delta` of outputs above ``cut``.

    An output is the difference of numbers of the size ``place``, whose ulps it has.
    """
    q, moved = (np.array([normal_tail(x) for x in ends.tolist()]) for ends in (cut, cut - mu))
    expected_above = float(ordered_dot(q, counts))
    log_none_above = float(ordered_dot(np.log1p(-q), counts))
    gained = np.maximum(moved - q, 0.0)  # p - q = rate (moved - q)
    log_gain = float(ordered_dot(np.log1p(-rate * gained / (1 - q)), counts))
    # An ulp of the cut moves a tail by about cut^2 ulps.  8 times that and 64 are generous.
    ulps = counts * (64 + 8 * np.abs(cut) * (place + mu))
    none_above_ulps = float(ordered_dot(ulps, q))
    gain = -math.exp(log_none_above) * math.expm1(log_gain)
    paid = -math.expm1(epsilon) * math.expm1(log_none_above)
    gain_ulps = float(ordered_dot(ulps, rate * (moved + q)))
    gain_ulps += none_above_ulps * (gain + math.expm1(epsilon))
    gain_ulps += (64 + mu.size) * (gain + paid)
    error = ULP * gain_ulps + UNDERFLOW
    # Where the others are below -s the outcome may cost less: by e^eps Q(A, L < eps) at most.
    doubt = math.exp(epsilon) * expected_above * RETURN_CHANCE
    return gain - paid - error, gain - paid + error + doubt


@functools.lru_cache(maxsize=1024)
def _cumulant_at(part: TruncatedSampledGaussian, a: float) -> tuple[Array, Array]:
    """Return the cumulant at one real order: a contour asks for its own more than once."""
    return log_moments(cut_line(part.mu, part.rate, part.cut), np.array([a + 1]))


def curves_of_decay(part: TruncatedSampledGaussian, a: float, releases: int) -> Decay:
    """Return curves that bound the characteristic function of one of ``releases`` releases."""
    mu, rate, cut, power, highest = part.mu, part.rate, part.cut, a + 1, part.height
    # One of n factors, each near 1, needs fewer digits: its share of the nats of the product, ln n
    # for the sum of the errors, and 12 more.
    nats = min(DECAY_NATS / releases + math.log(releases) + 12, STRIP_NATS)
    t, step, beyond = places_to_cut(mu, rate, cut, highest, STRIP, power, nats)
    x, speed = place_on_curve(t, cut, highest, 0.0)
    heights, rise = highest * LINE_LADDER, 1 / (1 + np.exp(t))
    value, error = part.cgf(np.array([a]))
    moment = float(value[0] - error[0])
    log_weight = -(x.real**2 + math.log(2 * math.pi)) / 2 + np.log(speed.real * step) - moment
    # This rule has `nats` in place of `STRIP_NATS`, so it misses more than the curve's.
    log_missed = float(part.curve(power).log_missed(np.array([power]))[0]) + STRIP_NATS - nats
    beyond += power * log_ratio(mu, rate, cut)
    log_error = min(np.logaddexp(log_missed, beyond) - moment, 700.0)
    errors = np.full(heights.shape, 2 * math.exp(log_error))
    return Decay(
        mu, rate, power, x.real, log_weight, heights, missed=errors, rise=rise, width=highest
    )


def truncated(
    sampled: Sequence[SampledGaussian], counts: Sequence[int], epsilon: float
) -> TruncatedSampledGaussians | None:
    """Return releases without outputs that cost more than epsilon; None if a cut is too far."""
    cut_loss = epsilon + least_return(
        tuple(
            (gaussian.mu, gaussian.rate, count)
            for gaussian, count in zip(sampled, counts, strict=True)
        )
    )
    members = [
        TruncatedSampledGaussian(
            gaussian.mu, gaussian.rate, output_of(gaussian.mu, gaussian.rate, cut_loss), count
        )
        for gaussian, count in zip(sampled, counts, strict=True)
    ]
    if not all(0 < member.cut * max(1.0, member.mu) < MAX_CUT for member in members):
        return None
    return TruncatedSampledGaussians(members)


def output_of(mu: float, rate: float, loss: float) -> float:
    """Return an output whose loss is at least ``loss > 0``."""
    # loss = ln(1 - rate + rate e^y) with y = mu x - mu^2 / 2; 1e-12 is more than the round-off
    loss *= 1 + 1e-12
    y = math.log1p(math.expm1(loss) / rate) if loss < 700 else loss - math.log(rate)
    return (y + mu * mu / 2) / mu * (1 + 1e-12) + 1e-12


@functools.lru_cache(maxsize=64)
def least_return(members: tuple[tuple[float, float, int], ...]) -> float:
    """Return s with ``Q(all losses but one add up to less than -s) <= RETURN_CHANCE``.

    ``members``: the mu, the rate and the count of each kind of release.  By Chernoff, for t > 0,

        Q(sum L < -s) <= e^{-ts} prod_i (E_Q r_i^-t)^n_i,    r_i = e^{L_i},

    over all releases: no factor is below 1, so that the one left out may stay.  Equal releases take
    their cumulant.  Of different ones ln E r^-t has three bounds.  It is at most tb, as
    L >= -b = ln(1 - rate).  L is convex in the output, L(x) >= L(0) + L'(0) x, so that

        ln E r^-t <= -t L(0) + (t L'(0))^2 / 2.

    And with r = 1 + W and v the variance of W over (1 - rate)^2 (Bernstein),

        ln E r^-t <= v (t / 2 + (e^{tb} - 1 - tb) / b^2),

    as -ln r is at most b and at most -W + (W / (1 - rate))^2 / 2, and (ln r)^2 is at most
    (W / (1 - rate))^2.
    """
    if len(members) == 1:
        return _return_of_equal(*members[0])
    mu, rate, count = (np.array(column, dtype=float) for column in zip(*members, strict=True))
    return return_of_different(mu, rate, count)


def return_of_different(mu: Array, rate: Array, count: Array) -> float:
    """Return `least_return` of different releases."""
    b = -np.log1p(-rate)
    largest_return = float(np.sum(count * b) - np.min(b))
    # At x = 0 the tangent has the height ln(1 + ratio_excess) and the slope ``slope``.  `variance`
    # is that of r / (1 - rate).
    ratio_excess = rate * np.expm1(-mu * mu / 2)
    variance = (rate / (1 - rate)) ** 2 * np.expm1(mu * mu)
    slope = mu * rate * np.exp(-mu * mu / 2) / (1 + ratio_excess)
    normal_order = math.sqrt(RETURN_NATS / max(float(np.sum(count * slope**2)), UNDERFLOW))
    t = CHERNOFF_ORDERS[:, None] * normal_order
    with np.errstate(over="ignore", invalid="ignore"):
        by_tangent = -t * np.log1p(ratio_excess) + (t * slope) ** 2 / 2
        # (e^x - 1 - x) / x^2 cancels for small x, where it is at most (1 + x) / 2.
        x = t * b
        growth = np.where(x < 1e-3, (1 + x) / 2, (np.expm1(x) - x) / (x * x))
        by_variance = variance * (t / 2 + t * t * growth)
        log_moment = np.fmin(np.fmin(by_tangent, by_variance), t * b)
    bounds = (np.sum(count * log_moment, axis=1) + RETURN_NATS) / t[:, 0]
    return min(largest_return, float(np.min(bounds))) * (1 + 1e-12)


def _return_of_equal(mu: float, rate: float, releases: int) -> float:
    """Return `least_return` of equal releases, by their cumulant at one order."""
    count = releases - 1
    largest_return = -count * math.log1p(-rate) if rate < 1 else math.inf
    if count == 0:
        return 0.0
    t = np.geomspace(1e-2, 1e3, 12) / (rate * min(mu, 1.0) * math.sqrt(releases))
    gaussian = SampledGaussian(mu, rate, True)  # E_Q r^-t is the moment e^{K(t)} of that direction
    with np.errstate(over="ignore", invalid="ignore"):
        estimates = (count * gaussian.rough_cgf(t) + RETURN_NATS) / t
    best = int(np.argmin(np.where(np.isfinite(estimates), estimates, np.inf)))
    if estimates[best] > largest_return:
        return largest_return
    value, error = gaussian.cgf(t[[best]])
    bound = float((count * (value + error) + RETURN_NATS)[0]) / float(t[best])
    return min(largest_return, bound) if math.isfinite(bound) else largest_return
