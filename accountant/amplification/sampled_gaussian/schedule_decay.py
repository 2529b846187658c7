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
FIRST_LOBE = 0.21724  # |sin x / x| is below it from where it first falls to it


def uniform_parts(mu: Array, log_odds: Array, power: float, log_mass: Array) -> tuple[Array, Array]:
    """Return masses and lengths of uniform laws below the tilted laws, a row for each loss.

    ``log_mass`` is at least ``ln E (1 + e^Y)^p``.
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
    mode = np.where(peak[0] >= peak[1], mode[0], mode[1])
    away = np.concatenate([-CELL_ENDS[:0:-1], CELL_ENDS])
    edges = mode[:, None] + mu[:, None] * away
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


class UniformParts:
    """The uniform parts of many losses: (masses, lengths), a row for each loss, and counts."""

    def __init__(self, parts: Iterable[tuple[tuple[Array, Array], Array]]) -> None:
        part_list = list(parts)
        self._mass = np.concatenate([np.zeros((0, CELLS)), *(mass for (mass, _), _ in part_list)])
        self._length = np.concatenate([np.zeros((0, CELLS)), *(size for (_, size), _ in part_list)])
        self._counts = np.concatenate([np.zeros(0), *(counts for _, counts in part_list)])
        # parts of similar length are one
        weight = (self._mass * self._counts[:, None]).ravel()
        octave = np.floor(BINS_PER_OCTAVE * np.log2(np.maximum(self._length.ravel(), 1e-300)))
        bins, bin_index = np.unique(octave, return_inverse=True)
        self._total = np.bincount(bin_index, weight, minlength=bins.size)
        self._shortest = 2.0 ** (bins / BINS_PER_OCTAVE) * (1 - 1e-9)

    def log_bound(self, u: Array) -> Array:
        """Return a bound on ``sum counts ln |E e^{ivL}|`` for every ``v >= u``."""
        if self._counts.size <= MAX_ONE_BY_ONE:  # each transform may become small
            decay = 1 - _sinc(self._length[:, :, None] * u / 2)
            decay = np.einsum("nk,nku->nu", self._mass, decay)
            log_transform = np.log(np.maximum(1 - decay * (1 - 1e-9), 1e-300))
            log_product: Array = np.einsum("n,nu->u", self._counts, log_transform)
            return log_product
        # ln(1 - y) <= -y
        decay = 1 - _sinc(np.outer(u, self._shortest) / 2)
        total: Array = -ordered_dot(decay, self._total) * (1 - 1e-9)
        return total


def _sinc(x: Array) -> Array:
    """Return the greatest ``|sin t / t|`` over ``t >= x``, rounded up."""
    first_lobe = np.sinc(np.minimum(x, math.pi) / math.pi)
    with np.errstate(divide="ignore"):
        envelope = np.minimum(FIRST_LOBE, 1 / x)
    return np.where(first_lobe > FIRST_LOBE, np.minimum(first_lobe * (1 + 1e-15), 1.0), envelope)
