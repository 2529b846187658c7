"""Both privacy profiles of Gaussian noise in one of many steps, between proved bounds.

With S a sum of ``steps`` log-normal variables (see `lognormal_inversion`) and K = t e^eps,
delta = E(S - K)_+ / t where the record is there, and (e^eps / t) E(t e^-eps - S)_+ where it is not.
Proof: `docs/proofs/random_allocation.md`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import final

import numpy as np
from numpy.typing import NDArray

from accountant.amplification.allocation.few_steps import few_steps_bounds, serves
from accountant.amplification.allocation.lognormal_cut import excess_above
from accountant.amplification.allocation.lognormal_inversion import Law, Line
from accountant.amplification.allocation.lognormal_rule import LogNormalRule, TooManyNodes
from accountant.losses.gaussian import GaussianLoss
from accountant.numerics import Array
from accountant.numerics.lognormal_lattice import excess_bounds
from accountant.numerics.rounding import ULP

CUTS = np.arange(1.5, 31.0, 0.25)  # of the normal variable: larger ones are jumps
RATIO = 2.0**0.375  # between the tilts of neighbouring lines
NARROW = 2e-8  # relative: such bounds need no better ones
CLOSE = 5e-8  # the same of the cut's
SHORT_WIDTH = 1e-5  # relative: such bounds of a lattice need no contour
DEEP, DEEP_WIDTH = -45.0, 1e-3  # logarithms of deltas that need not be so narrow
NEGLIGIBLE_IN_SUMS = -50.0  # logarithm of deltas that a quick bound is good enough for
OCTAVES_IN_SUMS = 2  # of K, that one lattice serves
LEAST_MU, MOST_STEPS = 0.19, 20_000  # of a lattice
WIDEST = 150.0
UNEVEN_WITHOUT = 3.2  # steps over mu, without the record, up to which lines are long
MOST_UNEVEN = 4.0  # logarithm of steps over mu, where one step decides
EVEN, MANY_OF_FEW = 0.3, 5  # mu below which lines of so many steps are short
MOST_IN_SUM = 3  # steps of a lattice across, where thousands of epsilons are asked for
GREAT = 0.7  # epsilons above which one step decides among many, too
STRETCH = 1.5  # of an estimate beyond what is known
DIGITS = 28.0  # e-foldings by which a part is negligible
Bounds = tuple[Array, Array]


def log_profile_bounds(
    mu: float, steps: int, epsilon: Array, *, added: bool, in_sum: bool = False
) -> Bounds:
    """Return logarithms of a lower and an upper bound on delta at each of many epsilons.

    ``added``: the record is only in the second data set.  The upper ones may be infinite.
    ``in_sum``: for a composition, which needs neither tiny deltas nor the last digits.
    """
    low, high = np.full(epsilon.shape, -np.inf), np.full(epsilon.shape, np.inf)

    def narrow(method: Callable[..., Bounds], wide: NDArray[np.bool_]) -> None:
        if wide.any():
            bounds = method(mu, steps, epsilon[wide], added=added)
            low[wide], high[wide] = np.fmax(low[wide], bounds[0]), np.fmin(high[wide], bounds[1])

    lattice = functools.partial(_lattice_bounds, octaves=OCTAVES_IN_SUMS if in_sum else 1)
    preferred, fallback = _contour_bounds, lattice
    if is_short(mu, steps, added=added):
        preferred, fallback = fallback, preferred
    with np.errstate(all="ignore"):
        is_few = serves(mu, steps, added=added) and (mu >= EVEN or steps < MANY_OF_FEW)
        # each epsilon is a sum over a lattice across, and in sums there are thousands of them
        if is_few and not (in_sum and steps > MOST_IN_SUM):
            narrow(few_steps_bounds, np.ones(epsilon.shape, dtype=bool))
        cut = one_decides(mu, steps, added=added) | (not added) & (epsilon > GREAT)
        narrow(_cut_bounds, cut & ~(high - low <= CLOSE))
        narrow(preferred, ~(high - low <= CLOSE))
        narrow(_cut_bounds, ~(high - low <= CLOSE) & (not added) & ~cut)
        if mu >= LEAST_MU and steps <= MOST_STEPS:
            wide = ~(high - low <= np.where(high > DEEP, SHORT_WIDTH, DEEP_WIDTH))
            if in_sum:
                wide &= high > NEGLIGIBLE_IN_SUMS
            narrow(fallback, wide)
    return low, high


def is_short(mu: float, steps: int, *, added: bool) -> bool:
    """Return whether a lattice is tried first: contours of few or uneven terms are long."""
    if mu < LEAST_MU:
        return False
    if added:
        return steps <= min(UNEVEN_WITHOUT * mu, MOST_STEPS)
    uneven = max(5.0 if mu > 0.7 else 1.0, 2 * math.exp(min(mu * mu, 20.0)))
    return steps <= min(uneven, MOST_STEPS)


def one_decides(mu: float, steps: int, *, added: bool) -> bool:
    """Return whether a large loss is mostly that of one step."""
    return not added and math.log(steps) <= MOST_UNEVEN * mu


def _cut_bounds(mu: float, steps: int, epsilon: Array, *, added: bool) -> Bounds:
    """Return the bounds by the cut of the transform, where the record is there."""
    excess = excess_above(mu, steps, _excess_limit(steps, epsilon))
    low, high = (np.log(bound) - math.log(steps) for bound in excess)
    return low, high


def _lattice_bounds(
    mu: float, steps: int, epsilon: Array, *, added: bool, octaves: int = 1
) -> Bounds:
    """Return the bounds by laws on a lattice."""
    k = _excess_limit(steps, -epsilon if added else epsilon)
    low, high = excess_bounds(mu, steps, k, below=added, octaves=octaves)
    factor = (epsilon if added else 0.0) - math.log(steps)
    return np.log(low) + factor, np.log(high) + factor


def _excess_limit(steps: int, epsilon: Array) -> Array:
    """Return K, which S exceeds or not."""
    return steps * np.exp(np.clip(epsilon, -600.0, 600.0))


def _contour_bounds(mu: float, steps: int, epsilon: Array, *, added: bool) -> Bounds:
    """Return the bounds by contour integrals."""
    tilts = _tilts(mu, steps)
    with np.errstate(all="ignore"):
        if added:
            low, high = _excess_below(tilts, -epsilon)
            return low + epsilon - math.log(steps), high + epsilon - math.log(steps)
        gap = steps * np.expm1(np.minimum(epsilon, 600.0))
        low, high = np.full(gap.shape, -np.inf), np.full(gap.shape, np.inf)
        _improve(tilts, gap, low, high)
        wide = ~(high - low <= NARROW)
        if wide.any():
            excess = _plain_excess(tilts, epsilon[wide], gap[wide])
            low[wide], high[wide] = np.fmax(low[wide], excess[0]), np.fmin(high[wide], excess[1])
        _improve(tilts, gap, low, high, jumps_alone=True)
        return low - math.log(steps), high - math.log(steps)


def _improve(
    tilts: Tilts, gap: Array, low: Array, high: Array, *, jumps_alone: bool = False
) -> None:
    """Narrow wide bounds on ``ln E(S - K)_+``, in place, by sums of two parts."""
    wide = ~(high - low <= NARROW)
    split = np.full(gap.shape, -1)
    split[wide] = tilts.splits(gap[wide], jumps_alone=jumps_alone)
    for cut in np.unique(split[split >= 0]):
        at_cut = split == cut
        excess = _split_excess(tilts, gap[at_cut], float(CUTS[cut]), jumps_alone=jumps_alone)
        low[at_cut] = np.fmax(low[at_cut], excess[0])
        high[at_cut] = np.fmin(high[at_cut], excess[1])


def rough_epsilon(mu: float, steps: int, delta: float, *, added: bool) -> float:
    """Return about the epsilon at ``delta``: a start for a search."""
    if one_decides(mu, steps, added=added):  # one step is large, the others are about 1
        step_epsilon = GaussianLoss(mu).inverse_profile(delta)
        return float(np.logaddexp(step_epsilon, math.log(steps - 1)) - math.log(steps))
    tilts = _tilts(mu, steps)
    with np.errstate(all="ignore"):
        if added:
            epsilon = -np.log1p(tilts.gap / steps)
            log_delta = tilts.height + epsilon - math.log(steps)
        else:
            tilt = float(tilts.line_below(np.zeros(1))[0])
            line = _line(Law.WHOLE, mu, steps, tilt, math.inf)
            epsilon = mu / math.sqrt(steps) * np.geomspace(0.01, 50.0, 150)
            if not line.usable:
                return rough_epsilon(mu, steps, delta, added=True)
            value, error, height = line.excess(steps * (np.exp(epsilon) - line.centre))
            excess = value * np.exp(height) - steps * np.expm1(epsilon)
            log_delta = np.where(
                excess > 3 * error * np.exp(height), np.log(excess / steps), np.nan
            )
    is_valid = np.isfinite(log_delta) & (epsilon > 0)
    if not is_valid.any():
        return mu / math.sqrt(steps)
    order = np.argsort(log_delta[is_valid])
    x, y = log_delta[is_valid][order], epsilon[is_valid][order]
    missing = x[0] - math.log(delta)
    if missing > 0 and x.size > 2 and y[0] > y[2]:  # what follows falls less steeply
        return float(y[0] + STRETCH * missing * (y[0] - y[2]) / (x[2] - x[0]))
    return float(np.interp(math.log(delta), x, y))


@final
class Tilts:
    """Saddles of the three kinds of lines, roughly: which line serves which K."""

    def __init__(self, mu: float, steps: int) -> None:
        self.mu, self.steps = mu, steps
        x = np.arange(-60.0, 31.0, 0.1)
        value = np.exp(np.minimum(mu * x - mu * mu / 2, 700.0))
        mass = 0.1 * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        with np.errstate(all="ignore"):
            # gaps K - t = 2 / a - t d/da ln E e^{-a(V-1)}, falling with a
            self.tilt = RATIO ** np.arange(-80, 160)
            size = np.log(mass) - np.multiply.outer(self.tilt, value)
            top = size.max(axis=1, keepdims=True)
            weight = np.exp(size - top)
            mean = (weight * value).sum(axis=1) / weight.sum(axis=1)
            self.gap = 2 / self.tilt + steps * (mean - 1)
            power = np.log(weight.sum(axis=1)) + top[:, 0] + self.tilt
            square = (weight * value**2).sum(axis=1) / weight.sum(axis=1) - mean**2
            bend = steps * square + 2 / self.tilt**2
            self.height = self.tilt * self.gap + steps * power - np.log(self.tilt**2)
            self.height -= np.log(2 * math.pi * bend) / 2
            # for each cut: gaps K - t = t d/db ln E[e^{b(V-1)}; x <= cut] - 2 / b, rising with b
            self.jump_tilt = RATIO ** np.arange(-107, 40)
            at_cut = np.searchsorted(x, CUTS)
            rows = []
            for b in self.jump_tilt:
                terms = mass * np.exp(np.minimum(b * (value - 1), 600.0))
                total = np.cumsum(terms)[at_cut]
                slope = np.cumsum(terms * (value - 1))[at_cut]
                rows.append((np.log(total), slope / total))
            power, slope = (np.array(column).T for column in zip(*rows, strict=True))
            gaps = steps * slope - 2 / self.jump_tilt
            gaps = np.maximum.accumulate(np.where(np.isfinite(gaps), gaps, np.inf), axis=1)
            self._jump_middle = (gaps[:, 1:] + gaps[:, :-1]) / 2
            self._jump_height = steps * power - 2 * np.log(self.jump_tilt)
            beyond = mass[::-1].cumsum()[::-1][at_cut]
            self._log_jump = np.log(-np.expm1(steps * np.log1p(-np.minimum(beyond, 0.999))))
            self.value = value[at_cut]
        end_tilts = np.array([0.5, 2.0]) / (mu * math.sqrt(steps))
        self.widest_gap, self.least_gap = np.interp(end_tilts, self.tilt, self.gap)

    def splits(self, gap: Array, *, jumps_alone: bool = False) -> NDArray[np.intp]:
        """Return for each gap the cut with the least round-off; -1 where none is better.

        ``jumps_alone``: Chernoff's bound on what has no jumps shall be negligible.
        """
        margin, wide = (DIGITS, WIDEST) if jumps_alone else (0.0, 1.0)
        best = np.empty(gap.size, dtype=np.intp)
        for start in range(0, gap.size, 64):
            gaps = gap[start : start + 64]
            saddle_index = np.array([np.searchsorted(row, gaps) for row in self._jump_middle])
            rows = np.arange(CUTS.size)[:, None]
            height = self._jump_height[rows, saddle_index] - self.jump_tilt[saddle_index] * gaps
            jumps = self._log_jump[:, None] + np.log(gaps + self.value[:, None])
            cost = np.fmax(height + margin, jumps)
            # a line of jumps far below K would need too many nodes, unless jumps are negligible
            is_far = gaps - self.value[:, None] > wide * self.widest_gap
            cost[is_far & (jumps > height - DIGITS)] = np.inf
            if not jumps_alone:  # fewer lines
                cost[1::2] = np.inf
            best_cut = np.argmin(cost, axis=0)
            # a sum of two is more work: for one digit it is not done
            worth = cost.min(axis=0) - margin + 2 < np.log(np.maximum(gaps, 1e-300))
            best[start : start + 64] = np.where(worth, best_cut, -1)
        return best

    def line_below(self, gap: Array) -> Array:
        """Return the tilts of the lines of the whole law whose saddles are nearest."""
        middle = (self.gap[1:] + self.gap[:-1]) / 2
        return np.asarray(self.tilt[::-1][np.searchsorted(middle[::-1], gap)])

    def line_above(self, cut: int, gap: Array) -> Array:
        """Return the tilts, without sign, of the lines without jumps beyond a cut."""
        return np.asarray(self.jump_tilt[np.searchsorted(self._jump_middle[cut], gap)])


@functools.lru_cache(maxsize=64)
def _tilts(mu: float, steps: int) -> Tilts:
    return Tilts(mu, steps)


@functools.lru_cache(maxsize=512)
def _line(law: Law, mu: float, steps: int, tilt: float, cut: float) -> Line:
    return Line(law, mu, steps, tilt, cut)


def _by_line(
    tilts: Tilts, law: Law, tilt: Array, cut: float, gap: Callable[[Line, NDArray[np.bool_]], Array]
) -> tuple[Array, Array, Array]:
    """Return the excess and its error over e^height, and the height, each from its own line."""
    value, height = np.zeros(tilt.shape), np.zeros(tilt.shape)
    error = np.full(tilt.shape, np.inf)
    for line_tilt in np.unique(tilt):
        on_line = tilt == line_tilt
        # far from the saddle a line is less exact, and has fewer nodes
        exponents = (0,) if law is Law.NO_JUMPS else (0, 3, 6, 9)
        candidates = (
            _line(law, tilts.mu, tilts.steps, float(line_tilt) * RATIO**n, cut) for n in exponents
        )
        line = next((candidate for candidate in candidates if candidate.usable), None)
        if line is not None:
            value[on_line], error[on_line], height[on_line] = line.excess(gap(line, on_line))
    return value, error, height


def _excess_below(tilts: Tilts, epsilon: Array) -> Bounds:
    """Return bounds on ``ln E(K - S)_+``, K = t e^epsilon."""
    t = tilts.steps
    plain = t * np.expm1(epsilon)

    def gap(line: Line, on_line: NDArray[np.bool_]) -> Array:
        if line.centre == 1:
            return plain[on_line]
        return t * (np.exp(epsilon[on_line]) - line.centre)

    value, error, height = _by_line(tilts, Law.WHOLE, tilts.line_below(plain), math.inf, gap)
    return np.log(np.maximum(value - error, 0.0)) + height, np.log(value + error) + height


def _plain_excess(tilts: Tilts, epsilon: Array, gap: Array) -> Bounds:
    """Return bounds on ``ln E(S - K)_+ = ln [E(K - S)_+ + t - K]``."""
    low, high = (np.exp(log_bound) for log_bound in _excess_below(tilts, epsilon))
    off = 4 * ULP * gap
    return np.log(np.maximum(low - gap - off, 0.0)), np.log(high * (1 + 4 * ULP) - gap + off)


def _split_excess(tilts: Tilts, gap: Array, cut: float, *, jumps_alone: bool) -> Bounds:
    """Return bounds on ``ln E(S - K)_+``, without and with jumps beyond the cut."""
    mu, t = tilts.mu, tilts.steps
    index = int(np.searchsorted(CUTS, cut))
    b = tilts.line_above(index, gap)
    if jumps_alone:
        value, error, height = np.zeros(gap.shape), np.full(gap.shape, np.inf), np.zeros(gap.shape)
    else:
        value, error, height = _by_line(
            tilts, Law.NO_JUMPS, -b, cut, lambda line, on_line: gap[on_line]
        )
    value = np.where(np.isfinite(error), value, 0.0)
    height = np.where(np.isfinite(error), height, 0)
    error = np.where(np.isfinite(error), error, _chernoff(mu, t, b, cut, gap))
    # E[S - K; a jump] = t P(no jump)^{(t-1)/t} E[V - 1; V > M] - (K - t) P(a jump)
    mass, mean = (math.erfc(x / math.sqrt(2)) / 2 for x in (cut, cut - mu))
    no_other_jump = math.exp((t - 1) * math.log1p(-mass))
    jump_part = t * no_other_jump * (mean - mass)
    gap_part = -math.expm1(t * math.log1p(-mass)) * gap
    aim = np.clip(gap - tilts.value[index], tilts.least_gap, WIDEST * tilts.widest_gap)
    a = tilts.line_below(aim)
    jump, jump_error, jump_height = _by_line(
        tilts, Law.JUMPS, a, cut, lambda line, on_line: gap[on_line]
    )
    size = np.exp(jump_height)
    total = jump_part - gap_part + jump * size
    off = jump_error * size + (16 + abs(cut) * mu) * ULP * (
        t * no_other_jump * (mean + mass) + gap_part
    )
    scale = np.exp(height)
    low = np.maximum(value - error, 0.0) * scale + total - off
    return np.log(np.maximum(low, 0.0)), np.log((value + error) * scale + total + off)


def _chernoff(mu: float, steps: int, tilt: Array, cut: float, gap: Array) -> Array:
    """Return an upper bound on ``E[(S - K)_+; no jump]``: ``y <= e^{by} / (e b)``."""
    bound = np.empty(gap.shape)
    for b in np.unique(tilt):
        at_tilt = tilt == b
        log_upper = _log_upper(mu, float(b), cut)
        bound[at_tilt] = np.exp(steps * log_upper - b * gap[at_tilt] - 1 - np.log(b))
    return bound


@functools.lru_cache(maxsize=512)
def _log_upper(mu: float, tilt: float, cut: float) -> float:
    try:
        return float(LogNormalRule(mu, -tilt, tilt, cut).log_upper(np.array([-tilt]))[0])
    except TooManyNodes:
        return math.inf
