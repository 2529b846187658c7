"""The numeric sparse vector technique: the first answer above a threshold, and its noisy value.

References: Dwork & Roth (2014), Section 3.6; Lyu, Su & Li (2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import BOOLEAN, POSITIVE, REAL
from accountant.losses.pure_and_approximate import PureLoss
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.randomness import Rng, generator
from mechanisms.above_threshold import AboveThreshold
from mechanisms.base import (
    EXACT,
    IDEALISED,
    Cells,
    Mechanism,
    Scores,
    Support,
    arithmetic_field,
    declare,
    param,
)
from mechanisms.families.selection import MONOTONE_TEXT, entries_at, scaled_difference
from mechanisms.laplace import Laplace

# For sums over all outputs the numbers that may be released as an answer are cut into cells.
# Distances of the edges of cells from an answer, in scales of its noise: 1/2 to 64.
CELL_STEPS = 0.5 * 2.0 ** np.arange(8)
# Edges of cells between two neighbours' answers, as fractions of the way from one to the other.
# There the densities' ratio changes, by less within a cell the more cells there are.
CELL_FRACTIONS = np.linspace(0.0, 1.0, 1025)


@final
@declare
class SparseVector(Mechanism):
    """The index of the first noisy answer above the threshold, and that answer with fresh noise.

    A row (index, answer), or (number of answers, NaN) if none is found.  The noise of the
    comparison is not released: the answer would reveal the noise on the threshold.

    Examples
    --------
    >>> from mechanisms import SparseVector
    >>> first_above_5 = SparseVector(threshold=5.0, scale=0.5, answer_scale=1.0)
    >>> first_above_5.release([0.0, 2.0, 9.0, 9.0], rng=1).round(4).tolist()
    [2.0, 9.5571]
    >>> round(first_above_5.loss.epsilon, 6)
    5.0
    """

    releases: ClassVar[str] = "the first high answer and its index"
    reference: ClassVar[str] = "Dwork & Roth (2014), Section 3.6; Lyu, Su & Li (2017)"
    limits: ClassVar[str] = "idealised: low-order bits leak; exact: the time of a draw varies"

    threshold: float = param(REAL, "value that an answer has to exceed", typical=(1.0,))
    scale: float = param(
        POSITIVE,
        "noise scale on the threshold; twice as much on an answer in the comparison",
        typical=(2.0,),
        knob=True,
    )
    # The typical scale is so large that most of a target epsilon of 0.01 is left to ``scale``.
    answer_scale: float = param(POSITIVE, "noise scale on the released answer", typical=(1000.0,))
    sensitivity: float = param(POSITIVE, "sensitivity of each answer", typical=(1.0,), default=1.0)
    monotone: bool = param(BOOLEAN, MONOTONE_TEXT, typical=(False, True), default=False)
    arithmetic: str = arithmetic_field(EXACT, IDEALISED)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the index and the answer with fresh noise; see `Mechanism.release`."""
        answers = self.values.check(value)
        source = generator(rng)
        index = np.asarray(self.comparison.release(answers, source, size))
        has_index = index < answers.shape[-1]
        chosen = entries_at(answers, np.where(has_index, index, 0))
        noisy = self.answer_noise.release(chosen, source)
        return np.stack([index, np.where(has_index, noisy, np.nan)], axis=-1)

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return the log-probability of the index plus the Laplace log-density of the answer."""
        answers, reported = self.values.check(value), np.asarray(output, dtype=float)
        index, noisy = reported[..., 0], reported[..., 1]
        log_index = self.comparison.log_density(index, answers, each=True)
        # NaN stands for the number of the last index: no answer is above the threshold.
        no_answer = np.full((*answers.shape[:-1], 1), np.nan)
        centres = np.append(self.answer_noise.noise_centre(answers), no_answer, axis=-1)
        chosen = entries_at(centres, np.where(np.isneginf(log_index), 0, index).astype(np.intp))
        scale = self.answer_noise.drawn_scale
        distance = np.abs(scaled_difference(noisy, chosen, scale))
        log_density = np.where(np.isnan(distance), 0.0, -distance - np.log(2 * scale))
        # An index without its number, a number without its index, and infinity are impossible.
        possible = (np.isnan(noisy) == np.isnan(chosen)) & ~np.isinf(noisy)
        terms: Array = np.where(possible, log_index + log_density, -np.inf)
        return terms if each or answers.ndim == 1 else terms.sum(axis=-1)

    @property
    def comparison(self) -> AboveThreshold:
        """The mechanism that finds the answer."""
        return AboveThreshold(
            self.threshold, self.scale, self.sensitivity, self.monotone, self.arithmetic
        )

    @property
    def answer_noise(self) -> Laplace:
        """The mechanism that releases the answer, once it is found."""
        return Laplace(self.answer_scale, self.sensitivity, self.arithmetic, dimension=1)

    @property
    def loss(self) -> PureLoss:
        """Pure epsilon of `AboveThreshold` plus ``sensitivity / answer_scale`` for the answer."""
        return PureLoss(round_up(self.comparison.loss.epsilon + self.answer_noise.loss.shift))

    @property
    def loss_is_upper_bound(self) -> bool:
        """True, as for `AboveThreshold`."""
        return True

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Array, Array]:
        """Return the worst pair of `AboveThreshold`."""
        return self.comparison.worst_pair(epsilon)

    @property
    def values(self) -> Scores:
        """Vectors of answers."""
        return self.comparison.values

    @property
    def support(self) -> IndexAndValue:
        """Each index with a real number, and one outcome for no answer above the threshold."""
        return IndexAndValue(self.answer_noise)


@dataclass(frozen=True, slots=True)
class IndexAndValue(Support):
    """An index and a number with noise of a mechanism, or (number of answers, NaN)."""

    noise: Laplace

    def may_hold(self, outputs: NDArray[Any]) -> bool:
        """Return whether all outputs are an index and a number, or an index and NaN."""
        index = outputs[..., 0]
        is_index = (index >= 0) & (index == np.floor(index))
        return bool(is_index.all() and not np.isinf(outputs).any())

    def cells(self, first: Any, second: Any) -> Cells:
        """Return intervals of each answer; measure times density is their mass, for both values.

        The ratio of densities is constant except between two answers, where its logarithm changes
        within a cell by at most a 500th of their distance over the scale.
        """
        scale = self.noise.drawn_scale
        centres = (self.noise.noise_centre(answers) for answers in (first, second))
        steps = np.concatenate([-CELL_STEPS, CELL_STEPS]) * scale
        edges, outputs, measure = [], [], []
        for index, (x, y) in enumerate(zip(*centres, strict=True)):
            between = x * (1 - CELL_FRACTIONS) + y * CELL_FRACTIONS
            inner = np.unique(np.concatenate([x + steps, y + steps, between]))
            edges.append(inner)
            # The integral of e^(-+(x - c) / b) from c - h to c + h is 2 b sinh(h / b) for both
            # signs.  The mass beyond an edge is b times the density there.
            half = scaled_difference(inner[1:], inner[:-1], 2 * scale)
            middle = inner[1:] / 2 + inner[:-1] / 2
            places = np.concatenate([inner[:1], middle, inner[-1:]])
            outputs.append(np.stack([np.full(places.size, float(index)), places], axis=-1))
            within = 2 * np.sinh(np.minimum(half, 700.0))  # wider ones have a density near 0
            measure.append(scale * np.concatenate([[1.0], within, [1.0]]))
        starts = np.cumsum([0, *map(len, outputs)])
        outputs.append(np.array([[len(edges), np.nan]]))
        measure.append(np.ones(1))

        def locate(output: NDArray[Any]) -> NDArray[np.intp]:
            reported = np.asarray(output, dtype=float)
            cell = np.full(reported.shape[:-1], starts[-1])
            for index, inner in enumerate(edges):
                same_index = reported[..., 0] == index
                cell[same_index] = starts[index] + np.searchsorted(inner, reported[same_index, 1])
            return cell

        return Cells(np.concatenate(outputs), np.concatenate(measure), locate)
