"""The exponential mechanism for scores that are expensive to list: rejection from levels.

Candidates lie in levels, each with a bound on its scores that is known without computing them.
Candidates are proposed as if every score were the bound of its level, and accepted with the chance
that corrects for this, so that only scores of proposed candidates are computed.

References: McSherry & Talwar (2007); von Neumann (1951) for the rejection.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import POSITIVE
from accountant.errors import PrivateValueError
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from mechanisms.base import (
    EXACT,
    IDEALISED,
    arithmetic_field,
    declare,
    param,
    refuse_size_for_batch,
)
from mechanisms.exact_noise.exact_selection import WeightTable, exact_gap
from mechanisms.exact_noise.exponential_coins import exponential_coins, random_words
from mechanisms.exponential import Exponential
from mechanisms.families.bounded_scores import (
    BoundedScoreCandidates,
    BoundedScores,
    BoundedScoreValues,
    IndexArray,
    ListedScores,
    RoundedScores,
)
from mechanisms.families.selection import ScoreMechanism

# A function that takes a number of trials and returns the candidate of each, and whether it is
# accepted.
Proposals = Callable[[int], tuple[IndexArray, NDArray[np.bool_]]]
# Rejections of one draw before all scores are computed.  It changes the time only: with more of
# them fewer draws need all scores, but each rejection computes one more score in vain.
MAX_REJECTIONS = 16


@final
@declare
class LazyExponential(ScoreMechanism):
    """The index r with probability proportional to ``exp(score[r] / scale)``, for scores in levels.

    The value is a `BoundedScores` object.  A level is drawn by its size and bound, then one of its
    candidates at random, which is accepted with probability ``exp((score - bound) / scale)``: the
    distribution is that of `Exponential`, and only scores of drawn candidates are computed.

    Examples
    --------
    >>> from mechanisms import LazyExponential
    >>> from mechanisms.families.bounded_scores import ListedScores
    >>> mechanism = LazyExponential(scale=0.5)
    >>> int(mechanism.release(ListedScores([0.0, 1.0, 4.0]), rng=0))
    2
    >>> mechanism.loss
    BoundedRangeLoss(epsilon=4.0)
    """

    releases: ClassVar[str] = "the index of a high score, most scores unseen"
    reference: ClassVar[str] = "McSherry & Talwar (2007); von Neumann (1951) for the rejection"
    limits: ClassVar[str] = "idealised: good to about 1e-15; the time of a draw varies"

    scale: float = param(POSITIVE, "divisor of the scores", typical=(2.0,), knob=True)
    sensitivity: float = param(POSITIVE, "sensitivity of each score", typical=(1.0,), default=1.0)
    arithmetic: str = arithmetic_field(EXACT, IDEALISED)

    def release(self, value: Any, rng: Rng = None, size: int | None = None) -> Any:
        """Return the winner; see `Mechanism.release`."""
        objects, source = self.values.check(value), generator(rng)
        refuse_size_for_batch(size, objects, 0)
        if objects.ndim == 0:
            drawn = self._draw(objects.item(), source, 1 if size is None else size)
            return drawn[0] if size is None else drawn
        # Users who share an object of scores are drawn together, so that its levels are read once.
        indices: dict[int, list[int]] = {}
        for index, bounded_scores in enumerate(objects.flat):
            indices.setdefault(id(bounded_scores), []).append(index)
        drawn = np.empty(objects.size, dtype=np.intp)
        for positions in indices.values():
            drawn[positions] = self._draw(objects.item(positions[0]), source, len(positions))
        return drawn.reshape(objects.shape)

    def _draw(self, value: BoundedScores, source: np.random.Generator, size: int) -> IndexArray:
        """Return ``size`` winners, by proposals in rounds until all are accepted."""
        winners, waiting = np.empty(size, dtype=np.intp), np.arange(size)
        exact = self.arithmetic is EXACT
        propose = (self._exact_proposals if exact else self._float_proposals)(value, source)
        for _ in range(MAX_REJECTIONS):
            candidates, accepted = propose(waiting.size)
            winners[waiting[accepted]] = candidates[accepted]
            waiting = waiting[~accepted]
            if waiting.size == 0:
                return winners
        # Draws that were rejected so often are made from the list of all scores, with the same law.
        winners[waiting] = self._listed.release(value.scores(), source, waiting.size)
        return winners

    def _float_proposals(self, value: BoundedScores, source: np.random.Generator) -> Proposals:
        """Return proposals with floats: a level by its weight, and a candidate in it at random.

        The weight of a level is count e^{bound / scale}.
        """
        bounds, counts = value.levels()
        cumulative_weights = np.cumsum(counts * np.exp((bounds - bounds.max()) / self.scale))

        def propose(size: int) -> tuple[IndexArray, NDArray[np.bool_]]:
            level_draw, member_draw, accept_draw = source.random((3, size))
            level = np.searchsorted(
                cumulative_weights, level_draw * cumulative_weights[-1], side="right"
            )
            level = np.minimum(level, bounds.size - 1)
            member = np.minimum((member_draw * counts[level]).astype(np.intp), counts[level] - 1)
            candidates = value.members(level, member)
            below = (bounds[level] - value.at(candidates)) / self.scale
            return candidates, accept_draw < np.exp(-_checked_gaps(below))

        return propose

    def _exact_proposals(self, value: BoundedScores, source: np.random.Generator) -> Proposals:
        """Return the same proposals for rounded scores, by coins whose chances are exact.

        A `WeightTable` draws the level: a random word of 63 bits lies in the range of one level,
        and is accepted with the chance that corrects for the ranges' lengths, which are rounded up.
        So a proposal may already be rejected when its level is drawn.
        """
        rounded, scale = RoundedScores(value, self.scale), self.drawn_scale
        bounds, counts = rounded.levels()
        table = WeightTable.of(bounds[None], scale, counts[None])  # with a single row

        def propose(size: int) -> tuple[IndexArray, NDArray[np.bool_]]:
            uniform_words = random_words(size, source) >> np.uint64(1)  # 63 of 64 bits
            level, accepted = table.accept(uniform_words, None, source)
            candidates = rounded.members(level, source.integers(0, counts[level]))
            scores, bound = rounded.at(candidates), bounds[level]

            def exact(i: int) -> Fraction:
                return exact_gap(float(bound[i]), float(scores[i]), scale)

            with np.errstate(over="ignore"):  # a gap may be infinite
                below = _checked_gaps((bound - scores) / scale)
            accepted &= exponential_coins(random_words(size, source), below, exact, source)
            return candidates, accepted

        return propose

    @property
    def _listed(self) -> Exponential:
        """The mechanism that looks at all scores."""
        return Exponential(self.scale, self.sensitivity, arithmetic=self.arithmetic)

    def noise_centre(self, value: Any) -> Any:
        """Return the scores that a draw uses; with exact arithmetic they are rounded to a grid."""
        return RoundedScores(value, self.scale) if self.arithmetic is EXACT else value

    def log_density(self, output: ArrayLike, value: Any, each: bool = False) -> Array:
        """Return the log-probability of the winner, for which all scores are computed."""
        objects = self.values.check(value)
        scores = np.stack([bounded_scores.scores() for bounded_scores in objects.ravel()])
        return self._listed.log_density(output, scores.reshape(*objects.shape, -1), each)

    def selection_error(self, candidates: int) -> float:
        """Return an upper bound of the expected gap between the best score and the winner's.

        Parameters
        ----------
        candidates : int
            Number of candidates.

        Returns
        -------
        float
            That of `Exponential`, in the units of the scores.
        """
        return self._listed.selection_error(candidates)

    @property
    def loss(self) -> BoundedRangeLoss:
        """A bounded range, that of `Exponential`: ``2 sensitivity / scale``, or more if rounded."""
        return self._listed.loss

    @property
    def drawn_tables(self) -> list[dict[str, Any]]:
        """The tables of `Exponential`, which has the same law."""
        return self._listed.drawn_tables

    def worst_pair(self, epsilon: float = 0.0) -> tuple[ListedScores, ListedScores]:
        """Return scores of two candidates whose gap shrinks by the largest amount."""
        scores, neighbour_scores = self._listed.worst_pair(epsilon)
        return ListedScores(scores), ListedScores(neighbour_scores)

    @property
    def values(self) -> BoundedScoreValues:
        """`BoundedScores` objects."""
        return BoundedScoreValues(self.sensitivity)

    @property
    def support(self) -> BoundedScoreCandidates:
        """The indices of the candidates."""
        return BoundedScoreCandidates()


def _checked_gaps(gaps: Array) -> Array:
    """Return the gaps between scores and their level's bound; a negative one is refused."""
    if not (gaps >= 0).all():
        raise PrivateValueError("value", "scores that do not exceed their level's bound")
    return gaps
