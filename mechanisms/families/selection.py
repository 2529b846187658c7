"""Base classes of mechanisms that compare noisy scores, and of those that release the winner.

Each candidate has a score; between neighbours a score moves by at most ``sensitivity``, and the
winner is the index of a high score.  With exact arithmetic scores are rounded to a grid, and the
noise is wider, to make up for what rounding adds to the sensitivity.  The functions below the
classes are arithmetic that several of the mechanisms share.

References: McSherry & Talwar (2007); Dong, Durfee & Rogers (2020); Mironov (2012) for the attack on
floats; proofs in docs/proofs/exact_selection.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.numerics import Array
from accountant.numerics.rounding import round_up, round_up_ratio
from mechanisms.base import EXACT, Candidates, Mechanism, Scores, draw_shape
from mechanisms.exact_noise import rounding_grid as grid

# Differences of scores, over the scale, are cut to this, so that sums of two are still finite.
LARGEST_GAP = 1e300
# from scores (a row for each user), a scale, a size and a generator to the indices of winners
Sampler = Callable[[Array, float, int | None, np.random.Generator], NDArray[np.intp]]


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
        """The scale of the noise, and the step of the grid or 0; see `Mechanism.drawn_numbers`."""
        step = grid.grid_step(self.scale) if self.arithmetic is EXACT else 0.0
        monotone = getattr(self, "monotone", False)
        return {"drawn_scale": self.drawn_scale, "step": step, "monotone": monotone}

    @property
    def charged_sensitivity(self) -> float:
        """The sensitivity from which the loss follows, in the units of the scores.

        It is that of the scores: the wider noise of exact arithmetic makes up for rounding.  Where
        a step of the grid is more than the sensitivity, noise is not widened, and one step is added
        to the sensitivity instead.
        """
        is_widened = self.drawn_scale > self.scale  # `grid.widened_scale` says where it is not
        if self.arithmetic is EXACT and not is_widened:
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


MONOTONE_TEXT = "whether all scores move up, or all down, between neighbours"


class SelectionMechanism(ScoreMechanism):
    """A mechanism that releases the index of a high score."""

    __slots__ = ()
    releases = "the index of a high score"
    monotone: bool

    @abstractmethod
    def log_probabilities(self, scores: Array) -> Array:
        """Return the log-probability that each candidate wins.

        Parameters
        ----------
        scores : numpy.ndarray
            Checked scores of shape (candidates,) or (users, candidates).  The probabilities are
            those of `noise_centre`, at the `drawn_scale`.

        Returns
        -------
        numpy.ndarray
            Natural logarithms, of the same shape.
        """

    @abstractmethod
    def selection_error(self, candidates: int) -> float:
        """Return an upper bound of the expected gap between the best score and the winner's.

        Parameters
        ----------
        candidates : int
            Number of candidates.

        Returns
        -------
        float
            In the units of the scores.
        """

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return the log-probability of the winner; see `Mechanism.log_density`."""
        return log_probability_of_output(
            self.log_probabilities(self.values.check(value)), output, each
        )

    @property
    def values(self) -> Scores:
        """Vectors of scores."""
        return Scores(self.sensitivity, self.monotone)

    @property
    def support(self) -> Candidates:
        """The indices of the candidates."""
        return Candidates()

    @property
    def _score_range(self) -> float:
        # How much the gap of two scores changes between neighbours at most, over the scale: both
        # scores may move, in opposite directions unless they are monotone.
        return round_up_ratio((1 if self.monotone else 2) * self.charged_sensitivity, self.scale)

    @property
    def _rounding_error(self) -> float:
        # How much rounding adds at most to the gap between the best score and the winner's: each
        # of the two is rounded by at most half a step.
        return grid.grid_step(self.scale) if self.arithmetic is EXACT else 0.0

    def _pair_with_gap(self, gap: float) -> tuple[Array, Array]:
        # Scores of two candidates whose gap is ``gap`` scales, and a neighbour where it is less by
        # the largest change, `_score_range`.
        return two_candidate_pair(gap * self.scale, self.sensitivity, self.monotone)


def drawn_winners(
    sampler: Sampler, scores: Array, scale: float, size: int | None, rng: np.random.Generator
) -> Any:
    """Return the winners of a batch, ``size`` winners of one vector of scores, or a single one.

    ``sampler`` draws one winner for each row of scores, or ``size`` of them for a single row.
    """
    if scores.ndim == 2:
        return sampler(scores, scale, None, rng)
    winners = sampler(scores[None], scale, math.prod(draw_shape(size, ())), rng)
    return winners[0] if size is None else winners


def scaled_difference(scores: Array, origin: ArrayLike, scale: float) -> Array:
    """Return ``(scores - origin) / scale`` of any floats, kept within ``+-LARGEST_GAP``."""
    with np.errstate(over="ignore"):  # halves can be subtracted; the quotient may still be inf
        quotient = (scores / 2 - np.asarray(origin) / 2) / (scale / 2)
    clipped: Array = np.minimum(np.maximum(quotient, -LARGEST_GAP), LARGEST_GAP)
    return clipped


def scaled_gap_to_best(scores: Array, scale: float) -> Array:
    """Return scores over the scale, with the largest of every row moved to 0."""
    return scaled_difference(scores, scores.max(axis=-1, keepdims=True), scale)


def recentred_large_scores(scores: Array, scale: float) -> Array:
    """Return the scores; if one is 1e6 scales or more from 0, the best of each row is moved to 0.

    Noise that is added to much larger floats would lose its digits.
    """
    if max(scores.max(initial=0.0), -scores.min(initial=0.0)) < 1e6 * scale:
        return scores
    with np.errstate(over="ignore"):  # minus infinity never wins, as it should
        recentred: Array = scores - scores.max(axis=-1, keepdims=True)
    return recentred


def entries_at(table: Array, index: NDArray[np.intp]) -> Array:
    """Return the entries of a row, or of every row of a table, at each index."""
    if table.ndim == 1:
        return table[index]
    return table[np.arange(len(table)), index]


def log_probability_of_output(log_probabilities: Array, output: ArrayLike, each: bool) -> Array:
    """Return the log-probability of each output; a batch is summed unless ``each``."""
    reported, count = np.asarray(output), log_probabilities.shape[-1]
    possible = (reported >= 0) & (reported < count) & (reported == np.floor(reported))
    log_probability = entries_at(log_probabilities, np.where(possible, reported, 0).astype(np.intp))
    rows: Array = np.where(possible, log_probability, -np.inf)
    total: Array = rows if each or log_probabilities.ndim == 1 else rows.sum(axis=-1)
    return total


def worst_gap(range_: float, epsilon: float) -> float:
    """Return the gap of two scores, over the scale, that has the largest delta at ``epsilon``.

    The first candidate wins with odds e^gap, and with odds e^(gap - range) on the neighbour;
    epsilon is less than the range.  A small change of the gap moves the two chances of winning, P
    and Q, in proportion to P (1 - P) and Q (1 - Q).  So delta = P - e^epsilon Q is largest where
    P (1 - P) = e^epsilon Q (1 - Q), that is where ln(P / Q) and ln((1 - P) / (1 - Q)) add up to
    epsilon.  They differ by the range, hence are t and t - range with t = (epsilon + range) / 2.
    """
    t = (epsilon + range_) / 2
    # e^gap = (e^{range - t} - 1) / (1 - e^{-t}).  For large ranges e^{range - t} may overflow; both
    # terms 1 and e^{-t} are then left out, which changes the pair a little and no privacy claim.
    return math.log(math.expm1(range_ - t) / -math.expm1(-t)) if range_ < 700 else range_ - t


def two_candidate_pair(
    gap: float, sensitivity: float, monotone: bool = False
) -> tuple[Array, Array]:
    """Return scores of two candidates ``gap`` apart, and the neighbour whose gap is least.

    Both scores move, towards each other; if scores are monotone, the first moves alone.
    """
    rise = 0.0 if monotone else sensitivity
    return np.array([gap, 0.0]), np.array([gap - sensitivity, rise])
