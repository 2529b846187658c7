"""How fast the transforms of many sampled Gaussians decay: uniform laws inside the tilted ones.

If the law of a loss is at least a mixture of uniform laws of mass c_k and length w_k, then
``|E e^{ivL}| <= 1 - sum_k c_k (1 - |sin(v w_k / 2)| / (v w_k / 2))``.  Proof:
`docs/proofs/schedules.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot

CELLS = 16  # on either side of the mode
# their ends, in deviations: what lies far to the right is long, and decays first
CELL_ENDS = 0.2 * np.arange(CELLS + 1.0) * (1 + np.arange(CELLS + 1.0) / CELLS)
BINS_PER_OCTAVE = 16
MAX_ONE_BY_ONE = 200
# of the difference of two equal losses: cells of one, and of where the difference is
BULK_ENDS = np.array([-1.6, -0.8, -0.2, 0.3, 0.8, 1.3, 2.0])
BULK = np.array([0.157056, 0.208884, 0.197171, 0.170233, 0.115054, 0.07405])  # N(0, 1), below
DIFFERENCES = 24
FIRST_DIFFERENCE, LAST_DIFFERENCE = -1.0, 1.5  # deviations; the last one and two mu
ROWS = 2_000
FIRST_LOBE = 0.21724  # |sin x / x| is below it from where it first falls to it


def uniform_parts(
    mu: Array, log_odds: Array, power: float, log_mass: Array, cut: float = math.inf
) -> tuple[Array, Array]:
    """Return masses and lengths of uniform laws below the tilted laws, a row for each loss.

    ``log_mass`` is at least ``ln E[(1 + e^Y)^p; Y <= cut]``.
    """
    # the density of ln(1 + e^y) is n(y; m, mu^2) (1 + e^y)^{p+1} e^{-y} / E (1 + e^Y)^p
    mean, square = log_odds - mu * mu / 2, mu * mu
    # any centre is valid; of the modes near either end the higher one is best
    mode = np.array([mean - square, mean + square * max(power, 0.0)])
    for _ in range(8):
        share = 1 / (1 + np.exp(-mode))
        slope = 1 - square * (power + 1) * share * (1 - share)
        step = (mode - mean + square * (1 - (power + 1) * share)) / np.maximum(slope, 0.5)
        mode = mode - np.clip(step, -3 * mu, 3 * mu)
    peak = (power + 1) * np.logaddexp(0.0, mode) - mode - (mode - mean) ** 2 / (2 * square)
    # below a cut the mass is near the lower one
    mode = np.where((peak[0] >= peak[1]) | math.isfinite(cut), mode[0], mode[1])
    away = np.concatenate([-CELL_ENDS[:0:-1], CELL_ENDS])
    edges = np.minimum(mode[:, None] + mu[:, None] * away, cut)
    size = np.logaddexp(0.0, edges)
    normal = -(((edges - mean[:, None]) / mu[:, None]) ** 2) / 2
    normal -= np.log(mu * math.sqrt(2 * math.pi))[:, None]
    powers = (power + 1) * size
    # below all that the factors take on a cell
    density = np.minimum(normal[:, 1:], normal[:, :-1]) - edges[:, 1:] - log_mass[:, None]
    density += np.minimum(powers[:, 1:], powers[:, :-1])
    with np.errstate(under="ignore"):
        density = np.exp(density) * (1 - 1e-9)
    inner = np.minimum(density[:, CELLS:], density[:, CELLS - 1 :: -1])
    height = np.minimum.accumulate(inner, axis=1)
    length = (size[:, CELLS + 1 :] - size[:, CELLS - 1 :: -1]) * (1 - 1e-9)
    return -np.diff(height, axis=1, append=0.0) * length, length


def uniform_differences(
    mu: Array, log_odds: Array, power: float, log_mass: Array, cut: float
) -> tuple[Array, Array]:
    """Return masses and lengths of uniform laws below that of L - L', L' being as L and apart.

    Its transform is the square of the absolute value of L's.  Arguments as of `uniform_parts`.
    """
    mass, length = np.empty((mu.size, DIFFERENCES)), np.empty((mu.size, DIFFERENCES))
    share = np.arange(DIFFERENCES) / (DIFFERENCES - 1)
    for first in range(0, mu.size, ROWS):
        part = slice(first, first + ROWS)
        own, mean = mu[part, None], (log_odds[part] - mu[part] ** 2 / 2)[:, None]
        scale = log_mass[part, None]
        reach = 2 * own + LAST_DIFFERENCE - FIRST_DIFFERENCE
        away = np.logaddexp(0.0, mean + own * (FIRST_DIFFERENCE + share * reach))
        nearer = np.concatenate([np.zeros(own.shape), away[:, :-1]], axis=1)
        bulk = np.minimum(mean + own * BULK_ENDS, cut)
        bulk_loss = np.logaddexp(0.0, bulk)
        chance = np.where(mean + own * BULK_ENDS[1:] <= cut, BULK, 0.0)
        chance = chance * np.exp(power * bulk_loss[:, :-1] - scale)
        density = np.zeros(away.shape)
        for j in range(BULK.size):
            # where L' is in the bulk's cell and L - L' in its own, L is between these
            low, high = nearer + bulk_loss[:, [j]], away + bulk_loss[:, [j + 1]]
            ends = np.log(np.expm1(np.array([low, high])))
            # n(y) e^-y has one mode: the least is at an end
            normal = np.min(-(((ends - mean) / own) ** 2) / 2 - ends, axis=0)
            normal += (power + 1) * low - np.log(own * math.sqrt(2 * math.pi)) - scale
            found = chance[:, [j]] * np.exp(normal)
            density += np.where(ends[1] <= cut - 1e-9 * (1 + abs(cut)), found, 0.0)
        height = np.minimum.accumulate(density, axis=1) * (1 - 1e-9)
        length[part] = 2 * away * (1 - 1e-9)
        mass[part] = -np.diff(height, axis=1, append=0.0) * length[part]
    return mass, length


class UniformParts:
    """The uniform parts of many losses: (masses, lengths), a row for each loss, and counts."""

    def __init__(
        self, parts: Iterable[tuple[tuple[Array, Array], Array]], cells: int = CELLS
    ) -> None:
        kept = list(parts)
        self._mass = np.concatenate([np.zeros((0, cells)), *(mass for (mass, _), _ in kept)])
        self._length = np.concatenate([np.zeros((0, cells)), *(size for (_, size), _ in kept)])
        self._counts = np.concatenate([np.zeros(0), *(counts for _, counts in kept)])
        # parts of similar length are one
        weight = (self._mass * self._counts[:, None]).ravel()
        octave = np.floor(BINS_PER_OCTAVE * np.log2(np.maximum(self._length.ravel(), 1e-300)))
        bins, place = np.unique(octave, return_inverse=True)
        self._total = np.bincount(place, weight, minlength=bins.size)
        self._shortest = 2.0 ** (bins / BINS_PER_OCTAVE) * (1 - 1e-9)

    def log_bound(self, u: Array) -> Array:
        """Return a bound on ``sum counts ln |E e^{ivL}|`` for every ``v >= u``."""
        if self._counts.size <= MAX_ONE_BY_ONE:  # each transform may become small
            kept = 1 - _sinc(self._length[:, :, None] * u / 2)
            kept = np.einsum("nk,nku->nu", self._mass, kept)
            each = np.log(np.maximum(1 - kept * (1 - 1e-9), 1e-300))
            alone: Array = np.einsum("n,nu->u", self._counts, each)
            return alone
        # ln(1 - y) <= -y
        kept = 1 - _sinc(np.outer(u, self._shortest) / 2)
        total: Array = -ordered_dot(kept, self._total) * (1 - 1e-9)
        return total


def _sinc(x: Array) -> Array:
    """Return the greatest ``|sin t / t|`` over ``t >= x``, rounded up."""
    near = np.sinc(np.minimum(x, math.pi) / math.pi)
    with np.errstate(divide="ignore"):
        far = np.minimum(FIRST_LOBE, 1 / x)
    return np.where(near > FIRST_LOBE, np.minimum(near * (1 + 1e-15), 1.0), far)
