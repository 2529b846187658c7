"""Mechanisms that compare scores: with exact arithmetic, scores on a grid and wider noise.

References: Mironov (2012) for the attack on floats; proofs in docs/proofs/exact_selection.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accountant.numerics.rounding import round_up
from mechanisms.base import EXACT, Mechanism
from mechanisms.exact_noise import rounding_grid as grid


class ScoreMechanism(Mechanism):
    """A mechanism that compares noisy scores; exact arithmetic rounds them to a grid first."""

    __slots__ = ()
    scale: float
    sensitivity: float

    @property
    def drawn_scale(self) -> float:
        """The scale of the noise as it is drawn: exact noise is wider, to make up for the grid."""
        if self.arithmetic is EXACT:
            return grid.widened_scale(self.scale, self.sensitivity, grid.grid_step(self.scale))
        return self.scale

    @property
    def drawn_numbers(self) -> dict[str, Any]:
        """The scale of the noise, and the step of the grid or 0."""
        step = grid.grid_step(self.scale) if self.arithmetic is EXACT else 0.0
        monotone = getattr(self, "monotone", False)
        return {"drawn_scale": self.drawn_scale, "step": step, "monotone": monotone}

    @property
    def charged_sensitivity(self) -> float:
        """The sensitivity that the loss states, over ``scale``.

        That of the scores, which wider noise makes true of rounded ones; and one step of the grid
        more where a step is more than the sensitivity.
        """
        if self.arithmetic is EXACT and self.drawn_scale == self.scale:
            return round_up(self.sensitivity + grid.grid_step(self.scale))
        return self.sensitivity

    def noise_centre(self, value: ArrayLike) -> Any:
        """Return the scores whose noise is drawn.

        Parameters
        ----------
        value : array_like
            Scores.

        Returns
        -------
        numpy.ndarray
            The scores themselves, or with exact arithmetic the grid points they are rounded to.
        """
        scores = np.asarray(value, dtype=float)
        return grid.round_to_grid(scores, self.scale) if self.arithmetic is EXACT else scores
