"""Buffered linear Toeplitz strategies: coefficients that are sums of geometric series.

A matrix mechanism adds noise z to C x; C is its strategy, and row i of x is the sum of what all
records add in step i.  The noise of step i in x is row i of C^-1 z.  With such a C it is computed
without a memory of all steps before: from one buffer for each series, which decays from step to
step.

References: Dvijotham, McMahan, Pillutla, Steinke & Thakurta (2024), "Efficient and near-optimal
noise generation for streaming differential privacy"; McMahan, Xu & Zhang (2024), "A hassle-free
algorithm for strong differential privacy in federated learning systems".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from accountant.correlated_noise.participation import Participation
from accountant.correlated_noise.strategy import STEPS, Entrywise, Sensitivity, Strategy
from accountant.correlated_noise.toeplitz import Toeplitz
from accountant.domains import Interval, each_checked
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_sum
from accountant.numerics.rounding import ULP, round_up
from accountant.plans.declared_releases import plan_field

DECAY = Interval(0.0, 1.0)
WEIGHT = Interval(-1e6, 1e6)
MAX_BUFFERS = 64  # pairs of a decay and a weight
# Relative error of a coefficient, in units in the last place, for each buffer: more than those of a
# power, a product with the weight, and an addition to the sum.
POWER_ULPS = 16


@plan_field
@final
@dataclass(frozen=True, slots=True)
class BufferedToeplitz(Strategy):
    """The Toeplitz matrix with diagonal 1 and ``sum_i weights[i] decays[i]^(d - 1)`` at distance d.

    Parameters
    ----------
    decays : sequence of float
        By how much each buffer decays in a step, from 0 to 1; jax-privacy's ``buf_decay``.
    weights : sequence of float
        The weight of each buffer; jax-privacy's ``output_scale``.
    steps : int
        Steps of the run.

    References
    ----------
    McMahan, Xu & Zhang (2024).

    Examples
    --------
    >>> from accountant import BufferedToeplitz, MinSeparation, sensitivity
    >>> one = BufferedToeplitz(decays=(0.9, 0.5), weights=(0.2, 0.3), steps=100_000)
    >>> one.coefficients[:3].round(3).tolist()
    [1.0, 0.5, 0.33]
    >>> round(sensitivity(one, MinSeparation(participations=10, separation=10_000)).value, 4)
    3.9354
    """

    decays: tuple[float, ...]
    weights: tuple[float, ...]
    steps: int

    def __init__(self, decays: Sequence[float], weights: Sequence[float], steps: int) -> None:
        checked_decays = tuple(each_checked(DECAY, "decays", decays))
        checked_weights = tuple(each_checked(WEIGHT, "weights", weights))
        if not 0 < len(checked_decays) <= MAX_BUFFERS:
            raise ParameterError("decays", decays, f"1 to {MAX_BUFFERS} numbers")
        if len(checked_weights) != len(checked_decays):
            raise ParameterError(
                "weights", weights, f"{len(checked_decays)} numbers, one for each decay"
            )
        object.__setattr__(self, "decays", checked_decays)
        object.__setattr__(self, "weights", checked_weights)
        object.__setattr__(self, "steps", STEPS.check("steps", steps))

    @property
    def coefficients(self) -> Array:
        """The first column: 1, then ``sum_i weights[i] decays[i]^(d - 1)``."""
        column = np.ones(self.steps)
        column[1:] = 0.0
        with np.errstate(under="ignore"):
            for decay, weight in zip(self.decays, self.weights, strict=True):
                column[1:] += weight * decay ** np.arange(self.steps - 1)
        return column

    @property
    def toeplitz(self) -> Toeplitz:
        """The same matrix, with its coefficients as floats."""
        return Toeplitz(self.coefficients, self.steps)

    @property
    def columns(self) -> int:
        """The steps."""
        return self.steps

    @property
    def rows(self) -> int:
        """As many as steps."""
        return self.steps

    @property
    def largest_entry(self) -> float:
        """The greatest absolute coefficient."""
        return float(np.abs(self.coefficients).max())

    @property
    def bands(self) -> int:
        """The rows that a step can reach: all, unless the last coefficients are 0."""
        return self.toeplitz.bands

    @property
    def is_invertible(self) -> bool:
        """True: the diagonal is 1."""
        return True

    @property
    def log_volume(self) -> float:
        """0: the diagonal is 1."""
        return 0.0

    def sensitivity_under(self, participation: Participation) -> Sensitivity:
        """Return that of the Toeplitz matrix, more by the round-off of its coefficients."""
        sensitivity = self.toeplitz.sensitivity_under(participation)
        ulps = POWER_ULPS * len(self.decays)
        # `squared` is None, as the square is not known exactly.
        # Without cancellation each coefficient, and so the norm, is right to ``ulps`` ulps.  Else
        # the error is as many ulps of the sums of absolute values, which ``sizes`` has.
        if min(self.weights) >= 0:
            return replace(sensitivity, value=round_up(sensitivity.value, ulps), squared=None)
        sizes = replace(self, weights=tuple(map(abs, self.weights))).toeplitz
        round_off = ulps * ULP * sizes.sensitivity_under(participation).value
        return replace(sensitivity, value=round_up(sensitivity.value + round_off), squared=None)

    def times(self, steps: Array, entrywise: Entrywise | None = None) -> Array:
        """Return the product with the Toeplitz matrix."""
        return self.toeplitz.times(steps, entrywise)

    def recovered(self, rows: Array) -> Array:
        """Return the solution x of C x = rows.

        Buffer k holds ``sum_(d >= 1) decays[k]^(d - 1) x_(i - d)``, so row i of C x is x_i plus the
        weighted sum of the buffers.
        """
        values = np.asarray(rows, dtype=float)
        flat = values.reshape(self.steps, -1)
        decays, weights = np.array(self.decays), np.array(self.weights)
        buffers = np.zeros((decays.size, flat.shape[1]))
        solution = np.empty_like(flat)
        for i, row in enumerate(flat):
            solution[i] = row - ordered_sum(weights, buffers)
            buffers = decays[:, None] * buffers + solution[i]
        return solution.reshape(values.shape)

    def rounded(self, bits: int) -> Toeplitz:
        """Return the Toeplitz matrix with rounded coefficients."""
        return self.toeplitz.rounded(bits)
