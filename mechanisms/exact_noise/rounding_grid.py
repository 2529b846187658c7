"""A grid of step 2^k for real values: values are rounded to it and get exact integer noise.

The release is a function of (rounded value + integer noise) only, so its last digits reveal
nothing more about the value.  Rounding moves every coordinate by at most half a step, which is
added to the sensitivity.

References: Canonne, Kamath & Steinke (2020), against the attack of Mironov (2012).
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np

from accountant.numerics import Array
from mechanisms.exact_noise.integer_noise import IntegerArray, IntegerNoise

# The noise scale is 2^40 to 2^41 steps.  A finer grid adds less to the sensitivity, but fewer
# values then fit into 64 bits.
GRID_BITS = 40
MAX_GRID_STEPS = 2.0**62  # larger numbers of steps may overflow 64 bits when noise is added


def grid_exponent(scale: float) -> int:
    """Return the exponent k of the grid step 2^k for noise of this scale."""
    return math.frexp(scale)[1] - 1 - GRID_BITS


def round_to_grid(value: Array, scale: float) -> Array:
    """Return every number rounded to the nearest grid point."""
    k = grid_exponent(scale)
    with np.errstate(over="ignore"):
        if abs(k) < 1000:  # products with normal powers of two are exact, and faster than ldexp
            nearest: Array = np.rint(value * 2.0**-k) * 2.0**k
        else:
            nearest = np.ldexp(np.rint(np.ldexp(value, -k)), k)
    # Where the product leaves the range of floats, the value lies on the grid already.
    return nearest if np.isfinite(nearest).all() else np.where(np.isinf(nearest), value, nearest)


def grid_step(scale: float) -> float:
    """Return the distance of neighbouring grid points, in the units of the scale."""
    return math.ldexp(1.0, grid_exponent(scale))


def widened_scale(scale: float, sensitivity: float, moved: float) -> float:
    """Return the scale at which grid noise costs at most ``sensitivity / scale``.

    Rounding moves neighbours apart by up to ``moved``; noise wider by that share of the sensitivity
    makes up for it, and for all round-off.  Where one step of the grid is more than the whole
    sensitivity the scale stays, and the loss has to state what rounding moved.
    """
    if moved > sensitivity:
        return scale
    share = moved / sensitivity
    # By docs/proofs/discrete.md, 4, (sensitivity + moved) / wider is at most
    # (sensitivity / scale) (1 - 2^-46).  The 2^-30 pays for discrete in place of continuous Laplace
    # noise, the 2^-44 for the same of Gaussian noise and for round-off.
    return scale * (1 + share * (1 + 2.0**-30) + 2.0**-44)


def add_grid_noise(
    value: Array,
    scale: float,
    drawn_scale: float,
    power: int,
    rng: np.random.Generator,
    shape: tuple[int, ...],
) -> Any:
    """Return rounded values plus integer noise on the grid, each sum as its nearest float.

    The grid is that of ``scale``, the noise that of ``drawn_scale``.
    """
    k = grid_exponent(scale)
    drawn = IntegerNoise(math.ldexp(drawn_scale, -k), power).draw(math.prod(shape), rng)
    return add_steps(value, k, drawn.reshape(shape))


def add_steps(value: Array, k: int, noise: IntegerArray, middle: bool = False) -> Any:
    """Return values rounded to the grid of step 2^k plus ``noise`` steps, as floats.

    With ``middle`` half a step is added: the noise is in the middle of its cell.  Every float is
    the nearest one to the exact sum, and so a function of it alone.
    """
    shape = noise.shape
    if not shape:  # numpy has a larger overhead than one addition
        number, added = float(value), int(noise)
        if abs(number) >= math.ldexp(MAX_GRID_STEPS, k):
            return np.float64(_far_sum(number, added, k, middle))
        # Python rounds to even, as numpy does.
        steps_of_number = round(math.ldexp(number, -k)) + added
        half_steps = 2 * steps_of_number + 1 if middle else steps_of_number
        return np.float64(math.ldexp(float(half_steps), k - middle))
    with np.errstate(over="ignore"):
        steps = np.broadcast_to(np.rint(np.ldexp(value, -k)), shape)
    in_range = np.abs(steps) < MAX_GRID_STEPS / (1 + middle)
    total = np.where(in_range, steps, 0.0).astype(np.int64) + noise
    if middle:  # half steps are counted: adding one half to a float would round a second time
        total = 2 * total + 1
    with np.errstate(over="ignore"):
        # The exact sum is rounded once, from the integer to 53 bits.
        answer: Array = np.asarray(
            np.clip(np.ldexp(total.astype(float), k - middle), -LARGEST_FLOAT, LARGEST_FLOAT)
        )
    if not in_range.all():
        distant = np.broadcast_to(value, shape)[~in_range]
        pairs = zip(distant.tolist(), noise[~in_range].tolist(), strict=True)
        answer[~in_range] = [_far_sum(number, added, k, middle) for number, added in pairs]
    return answer[()]


LARGEST_FLOAT = sys.float_info.max


def _far_sum(value: float, noise: int, k: int, middle: bool) -> float:
    # Such a value is already a whole number of steps.
    total = Fraction(value) + (noise + Fraction(int(middle), 2)) * Fraction(2) ** k
    return float(max(min(total, Fraction(LARGEST_FLOAT)), -Fraction(LARGEST_FLOAT)))
