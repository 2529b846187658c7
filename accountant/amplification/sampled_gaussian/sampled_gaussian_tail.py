"""Sampled Gaussians without their greatest outputs, whose loss alone exceeds an epsilon.

Let A: some output of release i is above its cut c_i.  Where each L_i(c_i) is at least epsilon and
what all other releases give back, every outcome in A costs more than epsilon, and

    delta(epsilon) = P(A) - e^epsilon Q(A) + the delta of what remains.

What remains is bounded, so that a contour through its saddle point is no larger than its delta.
Proof: `docs/proofs/sampled_gaussian.md`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.returned_losses import (
    REST_CHANCE,
    least_return,
)
from accountant.amplification.sampled_gaussian.rules_to_cut import (
    STRIP,
    STRIP_NATS,
    cut_curve,
    cut_line,
    log_ratio,
    most_points,
    normal_tail,
    place_on_curve,
    places_to_cut,
    short_rule,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian
from accountant.amplification.sampled_gaussian.sampled_gaussian_decay import LINE_LADDER, Decay
from accountant.amplification.sampled_gaussian.sampled_gaussian_lines import Line
from accountant.amplification.sampled_gaussian.sampled_gaussian_moments import (
    log_moments,
    moment_power,
)
from accountant.numerics import Array, Complex
from accountant.numerics.rounding import ULP

HIGHEST_CURVE = 1.25
MAX_CUT = 400.0  # beyond it the quadrature is long, and the tail matters little
UNDERFLOW = 1e-290  # bounds chances whose floats are 0


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
            value, error = _moment(self, float(np.ravel(z)[0]))
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
        return most_points(self.cut, self.highest)

    @property
    def highest(self) -> float:
        """The height of the curve."""
        return min(0.45 * math.pi / self.mu, HIGHEST_CURVE)

    def curve(self, power: float) -> Line:
        """Return the rule on the curve that ends at the cut, for powers with this real part."""
        return cut_curve(self.mu, self.rate, self.cut, self.highest, power)


class TruncatedSampledGaussians:
    """Different sampled Gaussians with the record present, the outputs of each below its cut."""

    def __init__(self, members: Sequence[TruncatedSampledGaussian]) -> None:
        self.members = members
        self._counts = np.array([member.count for member in members], dtype=float)
        self._decays: tuple[float, list[Decay]] = (math.nan, [])  # of one real part

    @property
    def points(self) -> int:
        """The number of points of all rules together, at most."""
        return sum(member.points for member in self.members)

    def cgf(self, z: Any) -> tuple[Any, Array]:
        """Return ``ln E[e^{zL}; all outputs at most their cuts]``, and a bound on its error."""
        total, error = np.zeros(np.shape(z), dtype=np.asarray(z).dtype), np.zeros(np.shape(z))
        for member in self.members:
            value, member_error = member.cgf(z)
            total, error = total + member.count * value, error + member.count * member_error
        return total, error

    @functools.cached_property
    def _short_rules(self) -> tuple[Array, Array, Any]:
        """Losses and logarithms of masses of few points of all members, and where each starts."""
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
        # no factor is above 1: errors of factors add
        product, error = np.ones(z.shape, dtype=complex), np.zeros(z.shape)
        for member in self.members:
            ratio, member_error = member.cf_ratio(z)
            product, error = product * ratio, error + member_error
        return product, error

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
        """Return ``E[(1 - e^{eps - L})+; A]`` between two bounds."""
        # q_i = N(0, 1)(x > cut), p_i - q_i = rate (N(mu, 1)(x > cut) - q_i)
        # P(A) - Q(A) = prod (1-q_i)^n_i - prod (1-p_i)^n_i
        log_stay = log_gain = off = off_none = above = 0.0
        for member in self.members:
            q, moved = normal_tail(member.cut), normal_tail(member.cut - member.mu)
            chance = member.count * q
            above += chance
            log_stay += member.count * math.log1p(-q)
            gained = max(moved - q, 0.0)
            log_gain += member.count * math.log1p(-member.rate * gained / (1 - q))
            # an ulp of the cut moves a tail by about cut^2 ulps
            ulps = 64 + 8 * abs(member.cut) * (abs(member.cut) + member.mu)
            off += ulps * member.count * member.rate * (moved + q)
            off_none += ulps * chance
        gain = -math.exp(log_stay) * math.expm1(log_gain)
        paid = -math.expm1(epsilon) * math.expm1(log_stay)
        off += off_none * (gain + math.expm1(epsilon)) + (64 + len(self.members)) * (gain + paid)
        error = ULP * off + UNDERFLOW
        # where the others give back more than the cuts allow: e^eps Q(A, L < eps) at most
        doubt = math.exp(epsilon) * above * REST_CHANCE
        return gain - paid - error, gain - paid + error + doubt


@functools.lru_cache(maxsize=1024)
def _moment(part: TruncatedSampledGaussian, a: float) -> tuple[Array, Array]:
    """Return the cumulant at one real order: a contour asks for its own more than once."""
    return log_moments(cut_line(part.mu, part.rate, part.cut), np.array([a + 1]))


def curves_of_decay(part: TruncatedSampledGaussian, a: float, releases: int) -> Decay:
    """Return curves that bound the transform of one of many releases."""
    mu, rate, cut, power, highest = part.mu, part.rate, part.cut, a + 1, part.highest
    # the product falls by some 60 nats: of one factor that is near 1 few digits matter
    nats = min(60 / releases + math.log(releases) + 12, STRIP_NATS)
    t, step, beyond = places_to_cut(mu, rate, cut, highest, STRIP, power, nats)
    x, speed = place_on_curve(t, cut, highest, 0.0)
    eta, rise = highest * LINE_LADDER, 1 / (1 + np.exp(t))
    value, error = part.cgf(np.array([a]))
    moment = float(value[0] - error[0])
    log_weight = -(x.real**2 + math.log(2 * math.pi)) / 2 + np.log(speed.real * step) - moment
    missed = float(part.curve(power).log_missed(np.array([power]))[0]) + STRIP_NATS - nats
    beyond += power * log_ratio(mu, rate, cut)
    errors = np.full(eta.shape, 2 * math.exp(min(np.logaddexp(missed, beyond) - moment, 700.0)))
    return Decay(mu, rate, power, x.real, log_weight, eta, errors, rise, highest)


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
    loss *= 1 + 1e-12
    y = math.log1p(math.expm1(loss) / rate) if loss < 700 else loss - math.log(rate)
    return (y + mu * mu / 2) / mu * (1 + 1e-12) + 1e-12
