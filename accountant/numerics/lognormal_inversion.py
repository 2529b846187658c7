"""The excess of a sum of log-normal variables, by a vertical line of its Laplace transform.

S = V_1 + ... + V_t, one V_i for each step; the V_i are independent, each e^{mu x - mu^2/2} for a
standard normal x.  phi(s) = E e^{-sV} is the transform of one of them, and E(K - S)_+ or E(S - K)_+
the excess of the one number over the other.  A jump is a V above a value M.  A line at Re s = tilt
gives, for many K at a time, one of

    E[(K - S)_+]                  Law.WHOLE       tilt > 0    by phi^t
    E[(K - S)_+; max V > M]       Law.JUMPS       tilt > 0    by phi^t - (phi - psi)^t
    E[(S - K)_+; max V <= M]      Law.NO_JUMPS    tilt < 0    by (phi - psi)^t

as (1 / 2 pi i) int e^{sK} (transform) / s^2 ds, where psi(s) = E[e^{-sV}; V > M].  The integral is
a trapezoid sum over u = Im s in [0, reach].  Such a sum with step h adds aliases, weighted copies
of the excess at K +- T, K +- 2 T, ..., T = 2 pi / h.  A `Line` chooses the reach, from a bound on
how fast the transform decays, and the step, from a bound on aliases, and adds up what both and the
values of phi leave.  It is most exact at the K whose saddle point is the tilt.

Proof: `docs/proofs/random_allocation.md`, errors 1, 2 and 5.
"""

from __future__ import annotations

import enum
import math
from typing import Any, final

import numpy as np

from accountant.numerics import Array
from accountant.numerics.exponential_sums import phases
from accountant.numerics.lognormal_rule import (
    LogNormalRule,
    TooManyNodes,
    VerticalLine,
)
from accountant.numerics.logspace import log1p
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

WANTED = 40.0  # nats: truncation and aliases may leave e^-40 of the excess
MAX_NODES = 6000  # of a line; a longer one is not usable, and callers use another method
# The longest reach, as a multiple of the tilt: the step is at most about the tilt, so that a longer
# reach would have too many nodes.
FARTHEST = 4000.0
MAX_PRODUCTS = 2**23  # of nodes of the line and points of phi's rule: complex numbers of 128 MB
# Points from the tilt (0) to the turn of phi's rule (1), between which chords bound the decay.
CHORDS = np.append(0.0, np.geomspace(0.02, 1.0, 19))
# Moving x to x - ic turns V by the angle mu c.  These are the angles that are tried, as shares of
# the largest; each gives a bound on the decay, and the best is taken.
ROTATIONS = np.array([0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
# Other real parts, as shares of the tilt, at which aliases are bounded: on either side of it.
LESS, MORE = np.array([0.1, 0.25, 0.4, 0.6, 0.75, 0.9]), np.array([1.04, 1.1, 1.2, 1.4, 1.6, 2.0])


class Law(enum.Enum):
    """Which part of the law of S a line inverts."""

    WHOLE = enum.auto()
    JUMPS = enum.auto()
    NO_JUMPS = enum.auto()


@final
class Line:
    """A vertical line for ``steps`` variables; ``cut`` is M as a value of the normal variable.

    K is given as a gap, ``K - steps centre``, so that it is exact near the mean of S; the centre is
    that of the rule for phi, 1 or a number near the V that count most.  A line that would need too
    many nodes is not ``usable``.
    """

    def __init__(self, law: Law, mu: float, steps: int, tilt: float, cut: float) -> None:
        self._law, self._mu, self._steps, self._tilt = law, mu, steps, tilt
        self.usable, self.centre = False, 1.0
        try:
            reach, count = self._find_reach(cut)
        except TooManyNodes:
            return
        self.centre = self._rule.centre
        if count <= MAX_NODES and count * self._rule.size <= MAX_PRODUCTS:
            self.usable = True
            self._integrate(reach, count)

    def excess(self, gap: Array) -> tuple[Array, Array, Array]:
        """Return (value, error, height): the excess is ``e^height`` times a value +- error.

        ``gap`` is K less ``steps`` times the centre.
        """
        height = self._tilt * gap + self._log_power
        turns = phases(np.multiply.outer(gap, self._u))
        value = ordered_dot(turns.real, self._terms.real) - ordered_dot(
            turns.imag, self._terms.imag
        )
        # The exponent is inexact by ulps of its parts, the sum by at most an ulp of all terms for
        # each addition, and a phase u gap by ulps of itself.
        inexact = 4 * ULP * (np.abs(self._tilt) * self._gap_size(gap) + abs(self._log_power) + 4)
        size = ordered_dot(np.abs(self._terms), np.ones_like(self._u))
        spread = ordered_dot(np.abs(self._terms), self._u)
        error = size * (inexact + self._u.size * ULP) + 4 * ULP * spread * self._gap_size(gap)
        outside = np.exp(np.minimum(self._log_alias(gap) - height, 700.0))
        outside += np.exp(min(self._log_cut_off - self._log_power, 700.0))
        return value, error + self._missed + outside, height

    def _gap_size(self, gap: Array) -> Array:
        """Return the size of the numbers that a gap is the difference of.

        With the centre 1 callers have the gap itself; else it is K less ``steps`` times the centre.
        """
        size: Array = np.abs(gap) + (0.0 if self.centre == 1 else 2 * self._steps * self.centre)
        return size

    def _find_reach(self, cut: float) -> tuple[float, int]:
        """Return where the line is cut off, and how many nodes it needs; also set its rule.

        The rule of phi serves |s| up to a turn, which grows until the transform has decayed to
        e^-WANTED of the excess below it.  Fourteen turns, each 2.5 times the last, are more than
        FARTHEST allows.
        """
        # The rule must reach beyond the largest tilt of `MORE`, and the transform of a normal S of
        # deviation mu sqrt(steps) has fallen far at 6 inverse deviations.
        turn = 2.1 * abs(self._tilt) + 6 / (self._mu * math.sqrt(self._steps))
        for _ in range(14):
            self._rule = LogNormalRule(self._mu, self._tilt, math.hypot(self._tilt, turn), cut)
            self._find_saddle()
            ladder = np.linspace(0.1, 1.0, 19) * turn
            # int_U^oo |s|^-2 du <= 1 / U, over pi
            decay = self._log_decay(ladder) - np.log(math.pi * ladder)
            is_small = decay <= self._log_wanted - WANTED
            if is_small.any():
                reach_index = int(np.argmax(is_small))
                reach, self._log_cut_off = float(ladder[reach_index]), float(decay[reach_index])
                # the step is 2 pi / period
                count = reach * self._wanted_period() / (2 * math.pi)
                if not count <= MAX_NODES:
                    break
                return reach, max(12, math.ceil(count) + 1)
            turn *= 2.5
            if turn > FARTHEST * abs(self._tilt):
                break
        raise TooManyNodes

    def _log_powers(self, rule: LogNormalRule, r: Array) -> Array:
        """Return upper bounds on the logarithm of the law's transform of S at real ``r``.

        ``log_upper`` of a rule is for e^{-r (V - centre)}: all are relative to e^{-r steps centre}.
        """
        t = self._steps
        if self._law is not Law.JUMPS:
            return t * rule.log_upper(r)
        # phi^t - (phi - psi)^t, psi of the jumps
        value = rule.log_upper(r)
        jump, jump_error = rule.jump(r)
        share = np.minimum((jump + jump_error) * np.exp(-value), 1 - 1e-9)
        bound: Array = t * value + np.log(-np.expm1(t * np.log1p(-share)))
        return bound

    def _find_saddle(self) -> None:
        """Set the gap whose saddle is the tilt, and the logarithm of the excess there, roughly.

        Both follow from differences of the transform's logarithm at three real parts near the
        tilt, on the side where the rule is valid.
        """
        # A negative tilt is the least real part of its rule: the others are nearer to 0.
        shares = [0.97, 1.0, 1.03] if self._tilt > 0 else [0.94, 0.97, 1.0]
        tilts = self._tilt * np.array(shares)
        power = self._log_powers(self._rule, tilts)
        step = tilts[1] - tilts[0]
        # At the saddle the derivative of s gap + ln(transform) - 2 ln s is 0.
        slope = (power[2] - power[0]) / (2 * step)
        second_difference = power[2] - 2 * power[1] + power[0]
        middle = tilts[1]
        self._gap = 2 / middle - slope
        curvature = max(float(second_difference) / step**2, 0.0) + 2 / middle**2
        # The saddle-point approximation of the excess, over e^{tilt K}.
        self._log_wanted = float(
            power[1]
            + (middle - self._tilt) * self._gap
            - 2 * math.log(abs(middle))
            - math.log(2 * math.pi * curvature) / 2
        )

    def _log_decay(self, u: Array) -> Array:
        """Return the log of a bound on the law's transform of S at all heights above ``u``.

        Moving x to x - ic gives |E e^{-sV}| <= e^{c^2/2} E e^{-rV} with r = Re(s e^{-i mu c}).
        """
        mu, a, t = self._mu, self._tilt, self._steps
        # The move costs t c^2 / 2 nats.  With c = angle / mu <= 2 sqrt(90 / t) + mu that is at most
        # about 180 if mu is small.
        angle = ROTATIONS * min(math.pi / 2, 2 * mu * math.sqrt(90 / t) + mu * mu)
        angle = np.minimum(angle, math.pi / 2)
        c = angle / mu
        # one row for each u, one column for each angle
        r = a * np.cos(angle) + np.multiply.outer(u, np.sin(angle))
        rule, centre = self._rule, self._rule.centre
        served = np.clip(r, a, rule.turn)  # E e^{-rV} falls with r, so that the turn bounds more
        # ln E e^{-r(V - centre)} is convex in r: chords between upper bounds are above it.
        points = a + (rule.turn - a) * CHORDS
        log_transform = np.interp(served, points, rule.log_upper(points))
        log_size = np.where(r >= a, c * c / 2 + log_transform - served * centre, np.inf)
        if self._law is not Law.WHOLE:
            log_size = np.logaddexp(log_size, self._log_edge(u, c))
        best = np.min(log_size, axis=1) + a * centre
        if self._law is not Law.JUMPS:
            return np.asarray(t * best)
        # |phi^t - (phi - psi)^t| <= t |psi| max(|phi|, |phi - psi|)^{t-1}, |psi| largest at u = 0.
        jump, error = self._rule.jump(np.array([a]))
        return np.asarray((t - 1) * best + np.log(t * (jump[0] + error[0])))

    def _log_edge(self, u: Array, c: Array) -> Array:
        """Return the log of a bound on the part of the moved path that returns to the cut.

        It is int_0^c |density(x - iy)| e^{-Re(s V(x) e^{-i mu y})} dy at the cut x, and is bounded
        on 24 pieces; any number of pieces gives a bound.
        """
        x, mu, parts = self._rule.cut, self._mu, 24
        value = math.exp(mu * x - mu * mu / 2)
        y = np.multiply.outer(c, np.linspace(0.0, 1.0, parts + 1))
        # On each piece the least of either term of Re(s e^{-i mu y}): cos falls, sin rises.
        cosines, sines = np.cos(mu * y), np.sin(mu * y)
        least_cosine = np.minimum(self._tilt * cosines[:, 1:], self._tilt * cosines[:, :-1])
        least_real_part = least_cosine + np.multiply.outer(u, sines[:, :-1])
        log_part = y[:, 1:] ** 2 / 2 - x * x / 2 - value * least_real_part
        widths = c[:, None] / parts / math.sqrt(2 * math.pi)
        with np.errstate(over="ignore"):
            total = np.sum(widths * np.exp(np.minimum(log_part, 700.0)), axis=-1)
        bound: Array = np.log(total + 1e-300)
        return bound

    def _wanted_period(self) -> float:
        """Return a period in K at which aliases are small; also set the bounds on them.

        At a real part a, excess(x) <= e^{ax} E[e^{-aS}] / (e |a|), as y_+ <= e^{ay - 1} / a.
        """
        shares = np.concatenate([LESS, MORE])
        self._alias_tilts = self._tilt * shares
        # A rule serves real s from its tilt up, so one is made for the least of them.
        least_tilt = self._tilt * (MORE[-1] if self._tilt < 0 else LESS[0])
        rule = LogNormalRule(self._mu, float(least_tilt), self._rule.turn, self._rule.cut)
        self._log_alias_bounds = (
            self._log_powers(rule, self._alias_tilts) - 1 - np.log(np.abs(self._alias_tilts))
        )
        # The bounds are for gaps from this rule's centre, and gaps are from the other one's.
        self._log_alias_bounds += (
            self._alias_tilts * self._steps * (self._rule.centre - rule.centre)
        )
        # ln of the bound at the saddle's gap, over e^-WANTED of the excess there
        nats = self._log_alias_bounds + self._alias_tilts * self._gap
        nats -= self._log_wanted + self._tilt * self._gap - WANTED
        # The first alias is smaller by e^{-|tilt' - tilt| period}; both sides must be small.
        needed = np.maximum(nats, 1.0) / np.abs(self._alias_tilts - self._tilt)
        return float(max(needed[: LESS.size].min(), needed[LESS.size :].min()))

    def _log_alias(self, gap: Array) -> Array:
        """Return the log of a bound on ``sum_j e^{-tilt j T} excess(K + j T)``, j not 0.

        The trapezoid sum has the period T: real parts below the tilt bound j >= 1, those above it
        j <= -1, each by a geometric series.
        """
        away = np.abs(self._alias_tilts - self._tilt) * self._period
        size = self._log_alias_bounds + np.multiply.outer(gap, self._alias_tilts) - away
        size -= np.log(-np.expm1(-away))
        either = size[:, : LESS.size].min(axis=1), size[:, LESS.size :].min(axis=1)
        bound: Array = np.logaddexp(*either)
        return bound

    def _integrate(self, reach: float, count: int) -> None:
        """Evaluate the transform on the nodes, and add up the errors that it has there."""
        self._u = np.linspace(0.0, reach, count)
        step, t = reach / (count - 1), self._steps
        self._period = 2 * math.pi / step
        line = VerticalLine(self._tilt, step, count)
        value, error = self._rule.transform(line)
        power, missed = self._power(line, value, error)
        s = line.points()
        self._log_power = float(t * value[0].real)
        weight = np.full(count, step / math.pi)
        weight[0] /= 2
        self._terms = weight * power / (s * s)
        size = weight * missed / np.abs(s) ** 2
        self._missed = float(np.sum(size)) + float(np.sum(np.abs(self._terms))) * 8 * ULP

    def _power(self, line: VerticalLine, value: Any, error: Array) -> tuple[Any, Array]:
        """Return the law's transform of S over |phi|^t at the tilt, and a bound on its error.

        ``value`` is ln phi on the line, and ``error`` the relative error of phi.
        """
        t = self._steps
        base = np.exp(t * (value - value[0].real))
        # t times the error of ln phi, and ulps of the exponent
        inexact = np.expm1(np.minimum(t * np.log1p(error) + 4 * ULP * t * np.abs(value), 1.0))
        if self._law is not Law.JUMPS:
            return base, np.abs(base) * inexact
        # phi^t - (phi - psi)^t = -phi^t (e^{t ln(1 - psi / phi)} - 1)
        jump, jump_error = self._rule.jump(line)
        share = jump * np.exp(-value)
        share_error = 1.01 * (jump_error * np.exp(-value.real) + np.abs(share) * (error + 4 * ULP))
        power = t * log1p(-share)
        # what an error of psi / phi changes of (1 - psi / phi)^t
        grown = np.exp(power.real) * np.expm1(t * np.log1p(share_error / np.abs(1 - share)))
        total = -base * np.expm1(power)
        missed = np.abs(total) * (inexact + 16 * ULP * (1 + np.abs(power)))
        return total, missed + np.abs(base) * grown * (1 + inexact)
