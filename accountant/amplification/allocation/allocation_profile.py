"""Both privacy profiles of Gaussian noise in one random step of t, between proved bounds.

A record is used in one of t = ``steps`` releases with noise N(0, 1) and sensitivity mu, at random.
The likelihood ratio of the epoch is S / t, where S = V_1 + ... + V_t and V = e^{mu x - mu^2/2}, x
standard normal without the record.  Its privacy profile is

    delta(epsilon) = E(S - K)_+ / t,    K = t e^epsilon,     where the record is removed,
    delta(epsilon) = E(K - S)_+ / K,    K = t e^-epsilon,    where it is added.

`log_profile_bounds` asks, until the bounds are close, those methods of four that suit mu and t:

- `few_steps`: a sum over a lattice in the space of the steps, for t up to 5;
- `lognormal_cut`: an integral along the cut of the Laplace transform, where one large V decides;
- contours (here): integrals along vertical lines of the transform (`lognormal_inversion`);
- `lognormal_lattice`: laws on a lattice on either side of V, where lines are long.

The transform is E e^{-sS} of a complex number s, and an excess is E(K - S)_+ or E(S - K)_+.  A
contour is a line of s with a constant real part, its tilt; it is a `Line`.  One line gives the
excess at every K, but with little round-off only for the K near that whose integrand has its saddle
point on the line.  `Tilts` finds which line serves which K, and where E(S - K)_+ is better split by
whether some V exceeds a cut M, a jump:

    E(S - K)_+ = E[(S - K)_+; no jump] + E[(K - S)_+; a jump] + E[S - K; a jump].

The first part is an integral of the law `Law.NO_JUMPS`, the second of `Law.JUMPS`, and the third is
a formula; `Law.WHOLE` is S without a split.  A ``gap`` is K - t, the distance of K from the mean of
S.  A ``height`` is the logarithm of an excess, or of a factor that is taken out of it.

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
from accountant.losses.gaussian import GaussianLoss
from accountant.numerics import Array
from accountant.numerics.lognormal_cut import excess_above
from accountant.numerics.lognormal_inversion import Law, Line
from accountant.numerics.lognormal_lattice import excess_bounds
from accountant.numerics.lognormal_rule import LogNormalRule, TooManyNodes
from accountant.numerics.logspace import normal_tail
from accountant.numerics.rounding import ULP

# The cuts M that are tried, given as values of the normal variable x: every cut gives valid bounds,
# and of more of them the best is better.
CUTS = np.arange(1.5, 31.0, 0.25)
# The ratio of the tilts of neighbouring lines: nearer to 1, a line is nearer to each saddle point,
# and more lines are computed.
RATIO = 2.0**0.375

# Differences of ln delta between the two bounds.  Where they are at most this, no further method is
# asked.  Any choice gives valid bounds: it trades their width for time.
NARROW = 2e-8  # after the integral on one line, before it is split by jumps
CLOSE = 5e-8  # after one method, before the next one
CLOSE_FOR_LATTICE = 1e-5  # before the last method: the slower one of contours and a lattice
# The same where ln delta is below DEEP, as only the tails of compositions ask for.
DEEP, CLOSE_WHERE_DEEP = -45.0, 1e-3
NEGLIGIBLE_IN_SUMS = -50.0  # ln delta: below it a composition takes closed bounds

# Where a method is tried, in mu and in the number of steps t; see `lattice_is_quicker` and
# `one_decides`.  Only the proved least mu matters for the bounds; the others decide about time.
# A lattice is proved for mu from the first number on; with as many steps as the second number it
# takes about ten seconds, and with more of them it is not tried.
LATTICE_MIN_MU, LATTICE_MAX_STEPS = 0.19, 20_000
LATTICE_STEPS_PER_MU = 3.2  # if the record is added, a lattice is quicker up to t = 3.2 mu
LOG_STEPS_PER_MU = 4.0  # up to ln t = 4 mu a large S is mostly one large V
MAX_STEPS_IN_SUMS = 3  # most steps of `few_steps` where thousands of epsilons are asked for
LARGE_EPSILON = 0.7  # above this epsilon one V decides, whatever the number of steps
# Octaves of K that one lattice serves in a composition, which needs fewer lattices so; it is 1
# otherwise.
OCTAVES_IN_SUMS = 2

# For lines through a saddle point:
DIGITS = 28.0  # e-foldings by which a part of the split must be smaller to be negligible: 7e-13
# The largest gap for which the line of jumps is computed if the part without jumps is negligible:
# so many times `Tilts.widest_gap`.
FARTHEST_GAPS = 150.0
# Where delta is below those of all lines, an estimate of epsilon grows by 1.5 times what the last
# slope says, as ln delta falls less and less steeply there.
EXTRAPOLATION = 1.5
Bounds = tuple[Array, Array]


def log_profile_bounds(
    mu: float, steps: int, epsilon: Array, *, added: bool, in_sum: bool = False
) -> Bounds:
    """Return logarithms of a lower and an upper bound on delta at each of many epsilons >= 0.

    With ``added`` the record is only in the second data set.  Where nothing is known, bounds are
    those of delta 0 and of an infinite delta.  With ``in_sum`` the bounds are for a composition,
    which needs neither tiny deltas nor the last digits.
    """
    low, high = np.full(epsilon.shape, -np.inf), np.full(epsilon.shape, np.inf)

    def narrow(method: Callable[..., Bounds], wide: NDArray[np.bool_]) -> None:
        """Intersect wide bounds with those of another method."""
        if wide.any():
            bounds = method(mu, steps, epsilon[wide], added=added)
            low[wide], high[wide] = np.fmax(low[wide], bounds[0]), np.fmin(high[wide], bounds[1])

    lattice = functools.partial(_lattice_bounds, octaves=OCTAVES_IN_SUMS if in_sum else 1)
    preferred, fallback = _contour_bounds, lattice
    if lattice_is_quicker(mu, steps, added=added):
        preferred, fallback = fallback, preferred
    with np.errstate(all="ignore"):
        if serves(mu, steps, added=added) and not (in_sum and steps > MAX_STEPS_IN_SUMS):
            narrow(few_steps_bounds, np.ones(epsilon.shape, dtype=bool))
        # The cut of the transform serves the removed record alone.  It comes first where one step
        # decides, and else after the preferred method.
        cut_first = one_decides(mu, steps, added=added) | ((not added) & (epsilon > LARGE_EPSILON))
        narrow(_cut_bounds, cut_first & ~(high - low <= CLOSE))
        narrow(preferred, ~(high - low <= CLOSE))
        narrow(_cut_bounds, ~(high - low <= CLOSE) & (not added) & ~cut_first)
        if mu >= LATTICE_MIN_MU and steps <= LATTICE_MAX_STEPS:
            wide = ~(high - low <= np.where(high > DEEP, CLOSE_FOR_LATTICE, CLOSE_WHERE_DEEP))
            if in_sum:
                wide &= high > NEGLIGIBLE_IN_SUMS
            narrow(fallback, wide)
    return low, high


def lattice_is_quicker(mu: float, steps: int, *, added: bool) -> bool:
    """Return whether to try a lattice before contours, which need many nodes for few, uneven terms.

    Terms V are uneven where mu is large.  The answer changes the time only.
    """
    if mu < LATTICE_MIN_MU:
        return False
    if added:
        return steps <= min(LATTICE_STEPS_PER_MU * mu, LATTICE_MAX_STEPS)
    # As E V^2 = e^{mu^2}, the sum S is uneven up to about this number of steps.
    uneven = max(5.0 if mu > 0.7 else 1.0, 2 * math.exp(min(mu * mu, 20.0)))
    return steps <= min(uneven, LATTICE_MAX_STEPS)


def one_decides(mu: float, steps: int, *, added: bool) -> bool:
    """Return whether a large S is mostly one large V: for few steps, or a large mu."""
    return not added and math.log(steps) <= LOG_STEPS_PER_MU * mu


def _cut_bounds(mu: float, steps: int, epsilon: Array, *, added: bool) -> Bounds:
    """Return the bounds by the cut of the transform, where the record is removed."""
    excess = excess_above(mu, steps, _excess_limit(steps, epsilon))
    low, high = (np.log(bound) - math.log(steps) for bound in excess)
    return low, high


def _lattice_bounds(
    mu: float, steps: int, epsilon: Array, *, added: bool, octaves: int = 1
) -> Bounds:
    """Return the bounds by laws on a lattice.

    One lattice serves all K between two powers of ``2^octaves``.
    """
    k = _excess_limit(steps, -epsilon if added else epsilon)
    low, high = excess_bounds(mu, steps, k, below=added, octaves=octaves)
    log_factor = (epsilon if added else 0.0) - math.log(steps)
    return np.log(low) + log_factor, np.log(high) + log_factor


def _excess_limit(steps: int, epsilon: Array) -> Array:
    """Return ``K = t e^epsilon``, which S exceeds or not."""
    return steps * np.exp(np.clip(epsilon, -600.0, 600.0))


def _contour_bounds(mu: float, steps: int, epsilon: Array, *, added: bool) -> Bounds:
    """Return the bounds by contour integrals: along one line, and where that is wide, split."""
    tilts = _tilts(mu, steps)
    with np.errstate(all="ignore"):
        if added:
            low, high = _excess_below(tilts, -epsilon)
            return low + epsilon - math.log(steps), high + epsilon - math.log(steps)
        gap = steps * np.expm1(np.minimum(epsilon, 600.0))
        low, high = np.full(gap.shape, -np.inf), np.full(gap.shape, np.inf)
        # First splits that gain much, then one line, then splits whose part without jumps is
        # negligible.
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
    """Narrow wide bounds on ``ln E(S - K)_+``, in place, by splits at the best cut of each gap."""
    wide = ~(high - low <= NARROW)
    split = np.full(gap.shape, -1)
    split[wide] = tilts.splits(gap[wide], jumps_alone=jumps_alone)
    for cut in np.unique(split[split >= 0]):
        at_cut = split == cut
        excess = _split_excess(tilts, gap[at_cut], float(CUTS[cut]), jumps_alone=jumps_alone)
        low[at_cut] = np.fmax(low[at_cut], excess[0])
        high[at_cut] = np.fmin(high[at_cut], excess[1])


def rough_epsilon(mu: float, steps: int, delta: float, *, added: bool) -> float:
    """Return about the epsilon at ``delta``: a start for a search, of which nothing is proved."""
    if one_decides(mu, steps, added=added):
        # One V is large, the others are about 1:  S = e^{epsilon of one step} + t - 1.
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
            # In units of mu / sqrt(t), about the mu of the epoch for many steps.
            epsilon = mu / math.sqrt(steps) * np.geomspace(0.01, 50.0, 150)
            if not line.usable:  # The other direction is as good a start.
                return rough_epsilon(mu, steps, delta, added=True)
            value, error, height = line.excess(steps * (np.exp(epsilon) - line.centre))
            # E(S - K)_+ = E(K - S)_+ - (K - t)
            excess = value * np.exp(height) - steps * np.expm1(epsilon)
            # Where the difference is below the errors it is not used.
            log_delta = np.where(
                excess > 3 * error * np.exp(height), np.log(excess / steps), np.nan
            )
    is_valid = np.isfinite(log_delta) & (epsilon > 0)
    if not is_valid.any():
        return mu / math.sqrt(steps)
    order = np.argsort(log_delta[is_valid])
    x, y = log_delta[is_valid][order], epsilon[is_valid][order]
    missing = x[0] - math.log(delta)
    if missing > 0 and x.size > 2 and y[0] > y[2]:  # Beyond, ln delta falls less steeply.
        return float(y[0] + EXTRAPOLATION * missing * (y[0] - y[2]) / (x[2] - x[0]))
    return float(np.interp(math.log(delta), x, y))


@final
class Tilts:
    """Which vertical line serves which K, from rough saddle points of the three kinds of lines.

    ``tilt`` are the real parts a of lines of the whole law, ``gap`` the K - t of their saddles and
    ``height`` the logarithms of their excess there.  ``jump_tilt`` are the b of lines Re s = -b of
    the law without jumps.  Of its tables each row is for one of `CUTS`: `_jump_middle` has the gaps
    half way between neighbouring saddles, `_jump_height` the logarithms of the excess without the
    factor e^{-b gap}, `_log_jump` that of the chance of a jump, and ``value`` the cuts M.

    All are sums over a coarse grid of x.  No bound is derived of them: they only choose lines.
    """

    def __init__(self, mu: float, steps: int) -> None:
        self.mu, self.steps = mu, steps
        x = np.arange(-60.0, 31.0, 0.1)
        value = np.exp(np.minimum(mu * x - mu * mu / 2, 700.0))
        mass = 0.1 * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        with np.errstate(all="ignore"):
            self._tabulate_whole_law(value, mass)
            self._tabulate_cuts(value, mass, at_cut=np.searchsorted(x, CUTS))
        # The gaps at half and at twice the inverse of mu sqrt(t), for a small mu the deviation of
        # S.
        end_tilts = np.array([0.5, 2.0]) / (mu * math.sqrt(steps))
        self.widest_gap, self.least_gap = np.interp(end_tilts, self.tilt, self.gap)

    def _tabulate_whole_law(self, value: Array, mass: Array) -> None:
        """Set the tilts, gaps and heights of the whole law, from the values of V and their masses.

        The integrand's logarithm at s = a is g(a) = aK + t ln E e^{-aV} - 2 ln a.  Its saddle, with
        g'(a) = 0, is at K - t = 2 / a - t d/da ln E e^{-a(V-1)}, which falls with a.  There the
        excess is about e^g / sqrt(2 pi g'').
        """
        self.tilt = RATIO ** np.arange(-80, 160)
        log_terms = np.log(mass) - np.multiply.outer(self.tilt, value)
        top = log_terms.max(axis=1, keepdims=True)
        weight = np.exp(log_terms - top)
        mean = (weight * value).sum(axis=1) / weight.sum(axis=1)
        self.gap = 2 / self.tilt + self.steps * (mean - 1)
        log_transform = np.log(weight.sum(axis=1)) + top[:, 0] + self.tilt  # ln E e^{-a(V-1)}
        variance = (weight * value**2).sum(axis=1) / weight.sum(axis=1) - mean**2
        curvature = self.steps * variance + 2 / self.tilt**2
        self.height = self.tilt * self.gap + self.steps * log_transform - np.log(self.tilt**2)
        self.height -= np.log(2 * math.pi * curvature) / 2

    def _tabulate_cuts(self, value: Array, mass: Array, at_cut: NDArray[np.intp]) -> None:
        """Set the tables of the law without jumps, and the chances of jumps, for every cut.

        ``at_cut`` are the places of the cuts among the values of V.  The saddles are at
        K - t = t d/db ln E[e^{b(V-1)}; V <= M] - 2 / b, which rises with b.
        """
        self.jump_tilt = RATIO ** np.arange(-107, 40)
        rows = []
        for b in self.jump_tilt:
            terms = mass * np.exp(np.minimum(b * (value - 1), 600.0))
            total = np.cumsum(terms)[at_cut]
            slope = np.cumsum(terms * (value - 1))[at_cut]
            rows.append((np.log(total), slope / total))
        log_transform, slope = (np.array(column).T for column in zip(*rows, strict=True))
        gaps = self.steps * slope - 2 / self.jump_tilt
        gaps = np.maximum.accumulate(np.where(np.isfinite(gaps), gaps, np.inf), axis=1)
        self._jump_middle = (gaps[:, 1:] + gaps[:, :-1]) / 2
        self._jump_height = self.steps * log_transform - 2 * np.log(self.jump_tilt)
        beyond = mass[::-1].cumsum()[::-1][at_cut]
        self._log_jump = np.log(-np.expm1(self.steps * np.log1p(-np.minimum(beyond, 0.999))))
        self.value = value[at_cut]

    def splits(self, gap: Array, *, jumps_alone: bool = False) -> NDArray[np.intp]:
        """Return for each gap the index of the cut whose split has the least round-off.

        It is -1 where no split is better than the line of the whole law.  Round-off is a share of
        the largest part of the split: the costs are logarithms of this part.  ``jumps_alone``: the
        part without jumps is not integrated, and Chernoff's bound on it must be negligible.
        """
        margin, wide = (DIGITS, FARTHEST_GAPS) if jumps_alone else (0.0, 1.0)
        # Rows are cuts and columns are gaps, 64 at a time to spare memory.
        best = np.empty(gap.size, dtype=np.intp)
        for start in range(0, gap.size, 64):
            gaps = gap[start : start + 64]
            saddle_index = np.array([np.searchsorted(row, gaps) for row in self._jump_middle])
            rows = np.arange(CUTS.size)[:, None]
            height = self._jump_height[rows, saddle_index] - self.jump_tilt[saddle_index] * gaps
            # The parts with a jump are about its chance times K - t + M.
            jumps = self._log_jump[:, None] + np.log(gaps + self.value[:, None])
            cost = np.fmax(height + margin, jumps)
            # A line of jumps far below K needs too many nodes, unless jumps are negligible.
            is_far = gaps - self.value[:, None] > wide * self.widest_gap
            cost[is_far & (jumps > height - DIGITS)] = np.inf
            if not jumps_alone:  # Every other cut is enough, with half as many lines.
                cost[1::2] = np.inf
            best_cut = np.argmin(cost, axis=0)
            # The whole law's line has the round-off of the gap; a split must gain e^2.
            is_better = cost.min(axis=0) - margin + 2 < np.log(np.maximum(gaps, 1e-300))
            best[start : start + 64] = np.where(is_better, best_cut, -1)
        return best

    def line_below(self, gap: Array) -> Array:
        """Return the tilts of the lines of the whole law whose saddles are nearest to the gaps."""
        middle = (self.gap[1:] + self.gap[:-1]) / 2
        return np.asarray(self.tilt[::-1][np.searchsorted(middle[::-1], gap)])

    def line_above(self, cut: int, gap: Array) -> Array:
        """Return the b of the lines Re s = -b of the law without jumps beyond a cut, by its index.

        They are those whose saddles are nearest to the gaps.
        """
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
    """Return value, error and height at each K, by the line of its tilt.

    The excess is e^height times a value that is exact to the error, which is infinite where no line
    is usable.  ``gap`` takes a line and the places of the K that it serves, and gives K less t
    times the line's centre.
    """
    value, height = np.zeros(tilt.shape), np.zeros(tilt.shape)
    error = np.full(tilt.shape, np.inf)
    for line_tilt in np.unique(tilt):
        on_line = tilt == line_tilt
        # A line with a larger tilt, farther from the saddle, is less exact and has fewer nodes: the
        # third, sixth and ninth neighbours are tried, but for the law without jumps.
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
    plain = t * np.expm1(epsilon)  # K - t without cancellation

    def gap(line: Line, on_line: NDArray[np.bool_]) -> Array:
        if line.centre == 1:
            return plain[on_line]
        return t * (np.exp(epsilon[on_line]) - line.centre)

    value, error, height = _by_line(tilts, Law.WHOLE, tilts.line_below(plain), math.inf, gap)
    return np.log(np.maximum(value - error, 0.0)) + height, np.log(value + error) + height


def _plain_excess(tilts: Tilts, epsilon: Array, gap: Array) -> Bounds:
    """Return bounds on ``ln E(S - K)_+ = ln [E(K - S)_+ + t - K]``."""
    low, high = (np.exp(log_bound) for log_bound in _excess_below(tilts, epsilon))
    round_off = 4 * ULP * gap
    low_excess = np.maximum(low - gap - round_off, 0.0)
    return np.log(low_excess), np.log(high * (1 + 4 * ULP) - gap + round_off)


def _split_excess(tilts: Tilts, gap: Array, cut: float, *, jumps_alone: bool) -> Bounds:
    """Return bounds on ``ln E(S - K)_+`` by its split at a cut.

    ``jumps_alone``: E[(S - K)_+; no jump] is between 0 and Chernoff's bound.
    """
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
    plain_part, plain_error = excess_of_jumps(mu, t, cut, gap)
    # With one V at M the other steps have the gap K - t - M.
    other_gap = np.clip(gap - tilts.value[index], tilts.least_gap, FARTHEST_GAPS * tilts.widest_gap)
    a = tilts.line_below(other_gap)
    jump, jump_error, jump_height = _by_line(
        tilts, Law.JUMPS, a, cut, lambda line, on_line: gap[on_line]
    )
    size = np.exp(jump_height)
    total, total_error = plain_part + jump * size, plain_error + jump_error * size
    scale = np.exp(height)
    low = np.maximum(value - error, 0.0) * scale + total - total_error
    return np.log(np.maximum(low, 0.0)), np.log((value + error) * scale + total + total_error)


def excess_of_jumps(mu: float, steps: int, cut: float, gap: Array) -> tuple[Array, Array]:
    """Return ``E[S - K; a jump]``, K = t + gap, and a bound on its round-off.

    With q = P(V > M) = P(x > cut), and E[V; V > M] = P(x > cut - mu), it is
    t (1 - q)^{t-1} E[V - 1; V > M] - (K - t) (1 - (1 - q)^t).
    """
    t = steps
    q, mean = normal_tail(cut), normal_tail(cut - mu)
    no_other_jump = math.exp((t - 1) * math.log1p(-q))
    jump_part = t * no_other_jump * (mean - q)
    gap_part = -math.expm1(t * math.log1p(-q)) * gap
    # The logarithm of a normal tail at x has the slope -x or a little more, and the argument two
    # roundings: that makes 2 x^2 ulps of the tail.  An error of q is t q times as large in
    # (1 - q)^t.  16 ulps are more than all other operations err by.
    ulps = 16 + 2 * max(cut**2, (cut - mu) ** 2)
    size = (1 + t * q) * t * no_other_jump * (mean + q) + gap_part
    return jump_part - gap_part, ulps * ULP * size


def _chernoff(mu: float, steps: int, tilt: Array, cut: float, gap: Array) -> Array:
    """Return an upper bound on ``E[(S - K)_+; no jump]``, since y_+ <= e^{by - 1} / b."""
    bound = np.empty(gap.shape)
    for b in np.unique(tilt):
        at_tilt = tilt == b
        log_upper = _log_upper(mu, float(b), cut)
        bound[at_tilt] = np.exp(steps * log_upper - b * gap[at_tilt] - 1 - np.log(b))
    return bound


@functools.lru_cache(maxsize=512)
def _log_upper(mu: float, tilt: float, cut: float) -> float:
    """Return an upper bound on ``ln E[e^{tilt (V - 1)}; V <= M]``; infinite if not known."""
    try:
        return float(LogNormalRule(mu, -tilt, tilt, cut).log_upper(np.array([-tilt]))[0])
    except TooManyNodes:
        return math.inf
