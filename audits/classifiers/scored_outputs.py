"""A score that the caller of an audit gives, of which only the cut is learned.

It is a function of outputs, or a direction: a vector of one weight for each number of an output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.errors import ParameterError
from accountant.numerics import Array
from audits.classifiers.screening import block_rows
from audits.runs.release_functions import Draw

Score = Callable[[Any], Any] | ArrayLike


@final
@dataclass(frozen=True, slots=True)
class ScoredDraw:
    """A draw whose outputs are their scores, drawn and read in blocks."""

    draw: Draw
    score: Any

    def __call__(self, value: Any, rng: np.random.Generator, size: int) -> Array:
        """The scores of ``size`` runs."""
        is_direction = isinstance(self.score, np.ndarray)
        # A function gets all outputs at once.
        block = block_rows(self.score.size) if is_direction else size
        parts = [np.empty(0)]
        for done in range(0, size, max(block, 1)):
            outputs = self.draw(value, rng, min(block, size - done))
            parts.append(self._along(outputs) if is_direction else self._scores(outputs))
        return np.concatenate(parts)

    def _along(self, outputs: NDArray[Any]) -> Array:
        """The sums of outputs along the direction."""
        width = outputs[:1].size
        if outputs.dtype.kind not in "biuf" or width != self.score.size:
            shown = f"{self.score.size} weights for outputs of {width} numbers"
            if outputs.dtype.kind not in "biuf":
                shown = "a direction for outputs that are no arrays of numbers"
            raise ParameterError("score", shown, "one weight for each number, or a function")
        rows = outputs.reshape(len(outputs), width).astype(float, copy=False)
        with np.errstate(invalid="ignore", over="ignore"):
            sums: Array = np.einsum("ij,j->i", rows, self.score)
        return sums

    def _scores(self, outputs: NDArray[Any]) -> Array:
        """The scores of outputs by the function, checked to be one number for each."""
        scores = np.asarray(self.score(outputs))
        if scores.shape != (len(outputs),) or scores.dtype.kind not in "biuf":
            shown = f"a function that returns {scores.dtype} of shape {scores.shape}"
            allowed = f"one that returns a number for each of {len(outputs)} outputs"
            raise ParameterError("score", shown, allowed)
        return scores.astype(float)


def scored_draw(draw: Draw, score: Score) -> ScoredDraw:
    """The draw of scores; a direction must be finite and not zero."""
    if callable(score):
        return ScoredDraw(draw, score)
    allowed = "a direction of finite numbers, one for each number of an output, or a function"
    try:
        direction = np.asarray(score, dtype=float).ravel()
    except (TypeError, ValueError) as error:
        raise ParameterError("score", score, allowed) from error
    if direction.size == 0 or not np.isfinite(direction).all() or not direction.any():
        raise ParameterError("score", score, allowed)
    return ScoredDraw(draw, direction)
