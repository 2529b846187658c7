"""A law of privacy losses on a lattice, and its exponential tilt, with a bound on the round-off.

The tilt by a > 0 of a law with the mass m at the loss l has masses proportional to ``m e^{a l}``.
It makes the large losses that decide a small delta likely, so that a Fourier transform computes
their sums accurately.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accountant.numerics import Array
from accountant.numerics.rounding import ULP

NEGLIGIBLE = 80.0  # nats: weights below e^-80 of the greatest are left out
BLOCKS = 256  # about the number of blocks of neighbouring points make up an outline of a law


@dataclass(frozen=True, slots=True, eq=False)
class GridLaw:
    """Masses at the losses ``offset + step * (first + i)``, i = 0, 1, ..., in nats."""

    step: float
    first: int
    offset: float
    mass: Array
    count: int  # how often the loss is drawn

    @property
    def points(self) -> Array:
        """The losses."""
        points: Array = self.offset + self.step * (self.first + np.arange(float(self.mass.size)))
        return points

    @property
    def size(self) -> float:
        """The sum of the sizes of the offset and of both ends: points err by ulps of it."""
        return abs(self.offset) + abs(self.last) + abs(self.offset + self.step * self.first)

    @property
    def last(self) -> float:
        """The greatest loss."""
        return self.offset + self.step * (self.first + self.mass.size - 1)


@dataclass(frozen=True, slots=True, eq=False)
class TiltedLaw:
    """A law times ``e^{a l}``, normalised: ``weight`` are its masses, at the points of ``law``.

    ``log_moment`` is the logarithm of the sum before it is normalised, and ``round_off`` bounds the
    sum of the errors of the weights.  ``outline`` has the losses and masses of a law on few points
    whose exponential moments are above those of the tilted law.
    """

    law: GridLaw
    weight: Array
    log_moment: float
    round_off: float
    outline: tuple[Array, Array]

    def log_ratio(self, shift: float) -> float:
        """Return an upper bound on ``ln E e^{(a + shift) L} - ln E e^{aL}``, L not tilted.

        That is ``ln E e^{shift L}`` under the tilted law; 1e-12 is for the round-off of the sum.
        """
        loss, mass = self.outline
        exponent = shift * loss
        top = float(np.max(exponent))
        return top + math.log(float(np.sum(mass * np.exp(exponent - top)))) + 1e-12


def tilted(law: GridLaw, tilt: float) -> TiltedLaw:
    """Return the tilted law, with a weight of 0 where the law has no mass."""
    loss = law.points
    with np.errstate(divide="ignore"):
        log_weight = np.log(law.mass) + tilt * loss
    top = float(np.max(log_weight))
    log_weight -= top
    weight = np.exp(np.maximum(log_weight, -NEGLIGIBLE))
    weight[log_weight <= -NEGLIGIBLE] = 0.0
    total = float(np.sum(weight))
    weight /= total
    # An exponent is ln m + a l - top: a logarithm, a product and two sums, each good to an ulp of
    # these sizes together.  The division by the total may double the error.
    size = np.where(weight > 0, np.abs(tilt * loss) + np.abs(log_weight) + abs(top), 0.0)
    round_off = 8 * ULP * (4 + float(np.sum(weight * size))) + weight.size * math.exp(-NEGLIGIBLE)
    return TiltedLaw(law, weight, top + math.log(total), round_off, _outline(loss, weight))


def _outline(loss: Array, weight: Array) -> tuple[Array, Array]:
    """Return losses and masses whose moments ``E e^{tL}`` are above those of a law, for every t.

    The mass of each block of points is moved to its two ends, with the same mean.  That raises
    moments, as an exponential is convex.
    """
    width = -(-weight.size // BLOCKS)  # points of a block, rounded up
    starts = np.arange(0, weight.size, width)
    left, right = loss[starts], loss[np.minimum(starts + width, weight.size) - 1]
    mass = np.add.reduceat(weight, starts)
    # the mean distance from the left end, times the mass; over the length it is what moves right
    moment = np.add.reduceat(weight * (loss - np.repeat(left, width)[: loss.size]), starts)
    mass_right = np.minimum(moment / np.maximum(right - left, 1e-300), mass)
    places = np.concatenate([left, right])
    masses = np.concatenate([mass - mass_right, mass_right])
    positive = masses > 0
    return places[positive], masses[positive]
