"""How fast the characteristic functions of many sampled Gaussians fall: by uniform laws inside.

Delta of many releases is an integral of their transform over a line, a contour.  It is cut off at a
frequency beyond which ``|E e^{ivL}|`` of the sum L of all losses, under their tilted laws, is known
to be small.  If the law of one loss has the part

    sum_k c_k Uniform(an interval of length w_k),

then |E e^{ivL}| <= 1 - sum_k c_k (1 - |sin(v w_k / 2)| / (v w_k / 2)), and the bounds of
independent losses multiply.  `uniform_parts` finds such parts, nested around the mode of a loss.

A release of Gaussian noise 1 / mu, for sensitivity 1, on a sample that has each record at a rate q
has, up to a constant, the loss ln(1 + e^Y).  Here Y is N(m, mu^2) without the record,
m = log_odds - mu^2 / 2 and log_odds = ln(q / (1 - q)).  The law tilted by the power p has the
density n(y; m, mu^2) (1 + e^y)^p / G of y, with n the normal density and G = E (1 + e^Y)^p.
Proof: `docs/proofs/schedules.md`, proof step 6.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_schedule import MAX_SEPARATE_LOSSES
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import MAX_EXPONENT, ULP

CELLS = 16  # on either side of the mode: more bring more mass into uniform parts, and take longer
# Ends of the cells, in deviations mu from the mode, up to 6.4.  Cells grow outwards: the part
# that is far to the right is the longest in the loss, so that its transform falls first.
CELL_ENDS = 0.2 * np.arange(CELLS + 1.0) * (1 + np.arange(CELLS + 1.0) / CELLS)
NEWTON_STEPS = 8  # steps of Newton's method to the mode; any other centre gives a valid bound too
# A factor that takes away more than the round-off of few operations on what it multiplies:
# densities, lengths, and the sums of c (1 - |sin| / ...).  The smaller these are, the larger is the
# bound on the transform.
ROUNDED_DOWN = 1 - 1e-9
LENGTHS_PER_OCTAVE = 16  # classes of lengths, each as long as its shortest: more are sharper
SIDE_LOBES = 0.21724  # the greatest |sin x / x| beyond its first zero, rounded up


def uniform_parts(mu: Array, log_odds: Array, power: float, log_mass: Array) -> tuple[Array, Array]:
    """Return masses c and lengths w of uniform laws inside the tilted laws.

    Results have a row for each loss and a column for each interval; ``power`` is p, ``log_mass`` at
    least ln G of each loss.  The density of the loss l = ln(1 + e^y) is

        f(l) = n(y; m, mu^2) (1 + e^y)^{p + 1} e^{-y} / G.

    Interval I_k has the k + 1 cells next to the mode on either side, so that each contains the one
    before.  Let h_k be at most f on I_k, falling in k, and 0 after the last.  Where the smallest
    interval around l is I_j, f(l) >= h_j = sum_{k >= j} (h_k - h_{k+1}).  So f is at least the sum
    of (h_k - h_{k+1}) on I_k over all k: I_k has a uniform part of mass c_k = (h_k - h_{k+1}) w_k.
    """
    mean, variance = log_odds - mu * mu / 2, mu * mu
    # The modes of f solve y = m - mu^2 (1 - (p + 1) s(y)), s(y) = 1 / (1 + e^-y).  Newton's method
    # starts from the solutions for s = 0 and s = 1; of two modes the higher serves.
    mode = np.array([mean - variance, mean + variance * max(power, 0.0)])
    for _ in range(NEWTON_STEPS):
        with np.errstate(under="ignore"):
            logistic = np.exp(-np.logaddexp(0.0, -mode))  # without overflow
        slope = 1 - variance * (power + 1) * logistic * (1 - logistic)
        step = (mode - mean + variance * (1 - (power + 1) * logistic)) / np.maximum(slope, 0.5)
        mode = mode - np.clip(step, -3 * mu, 3 * mu)
    peak = (power + 1) * np.logaddexp(0.0, mode) - mode - (mode - mean) ** 2 / (2 * variance)
    mode = np.where(peak[0] >= peak[1], mode[0], mode[1])
    ends = np.concatenate([-CELL_ENDS[:0:-1], CELL_ENDS])
    edges = mode[:, None] + mu[:, None] * ends  # the mode is in column CELLS
    loss = np.logaddexp(0.0, edges)
    deviation = (edges - mean[:, None]) / mu[:, None]
    log_normal = -(deviation**2) / 2 - np.log(mu * math.sqrt(2 * math.pi))[:, None]
    log_power = (power + 1) * loss
    # Sums err by ulps of their terms; an ulp of the mean or of an edge moves n by its slope there.
    slope = np.abs(deviation) / mu[:, None]
    ulps = slope * np.abs(mean)[:, None] + (1 + slope) * np.abs(edges)
    ulps += deviation**2 + np.abs(log_power) + np.abs(log_mass)[:, None]
    round_off = 8 * ULP * np.maximum(ulps[:, 1:], ulps[:, :-1])
    # On a cell a factor of f is at least the smaller of its values at both edges: n has no minimum
    # inside, the others are monotone.
    log_density = np.minimum(log_normal[:, 1:], log_normal[:, :-1]) - edges[:, 1:]
    log_density -= log_mass[:, None] + round_off
    log_density += np.minimum(log_power[:, 1:], log_power[:, :-1])
    with np.errstate(under="ignore"):
        density = np.exp(np.minimum(log_density, MAX_EXPONENT)) * ROUNDED_DOWN
    # Column k: the smaller density of the k-th cells right and left of the mode, counted outwards.
    both_sides = np.minimum(density[:, CELLS:], density[:, CELLS - 1 :: -1])
    height = np.minimum.accumulate(both_sides, axis=1)
    right = loss[:, CELLS + 1 :]
    length = (right - loss[:, CELLS - 1 :: -1] - 4 * ULP * right) * ROUNDED_DOWN
    length = np.maximum(length, 0.0)
    return -np.diff(height, axis=1, append=0.0) * length, length


class UniformParts:
    """Uniform parts of many losses: results of `uniform_parts`, each with its losses' counts."""

    def __init__(self, parts: Iterable[tuple[tuple[Array, Array], Array]]) -> None:
        part_list = list(parts)
        self._mass = np.concatenate([np.zeros((0, CELLS)), *(mass for (mass, _), _ in part_list)])
        self._length = np.concatenate([np.zeros((0, CELLS)), *(size for (_, size), _ in part_list)])
        self._counts = np.concatenate([np.zeros(0), *(counts for _, counts in part_list)])
        # A shorter interval has the larger transform: each class has its shortest length.
        mass = (self._mass * self._counts[:, None]).ravel()
        log_length = LENGTHS_PER_OCTAVE * np.log2(np.maximum(self._length.ravel(), 1e-300))
        classes, class_index = np.unique(np.floor(log_length), return_inverse=True)
        self._class_mass = np.bincount(class_index, mass, minlength=classes.size)
        self._class_length = 2.0 ** (classes / LENGTHS_PER_OCTAVE) * ROUNDED_DOWN

    def log_bound(self, u: Array) -> Array:
        """Return a bound on ``sum counts ln |E e^{ivL}|`` for every ``v >= u``.

        With y = sum_k c_k (1 - |sin(v w_k / 2)| / (v w_k / 2)) a loss has |E e^{ivL}| <= 1 - y.
        Few losses are bounded so, one by one.  For more, the weaker ln(1 - y) <= -y is linear in
        the masses, which are summed over classes of equal length first.
        """
        if self._counts.size <= MAX_SEPARATE_LOSSES:
            # Axes n, k, u: losses, intervals, frequencies.
            decay = 1 - _max_sinc(self._length[:, :, None] * u / 2)
            decay = np.einsum("nk,nku->nu", self._mass, decay)
            log_transform = np.log(np.maximum(1 - decay * ROUNDED_DOWN, 1e-300))
            log_product: Array = np.einsum("n,nu->u", self._counts, log_transform)
            return log_product
        decay = 1 - _max_sinc(np.outer(u, self._class_length) / 2)
        total: Array = -ordered_dot(decay, self._class_mass) * ROUNDED_DOWN
        return total


def _max_sinc(x: Array) -> Array:
    """Return the greatest ``|sin t / t|`` over ``t >= x``, rounded up."""
    first_lobe = np.sinc(np.minimum(x, math.pi) / math.pi)
    with np.errstate(divide="ignore"):
        side_lobes = np.minimum(SIDE_LOBES, 1 / x)
    return np.where(first_lobe > SIDE_LOBES, np.minimum(first_lobe * (1 + 1e-15), 1.0), side_lobes)
