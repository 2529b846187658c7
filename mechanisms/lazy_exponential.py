"""The exponential mechanism for scores that are expensive to list: rejection from levels.

References: McSherry & Talwar (2007); von Neumann (1951) for the rejection.
"""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE
from accountant.errors import PrivateValueError
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.numerics import Array
from accountant.numerics.rounding import round_up_ratio
from accountant.randomness import Rng, generator
from mechanisms.base import Mechanism, declare, param, refuse_size_for_batch
from mechanisms.exponential import Exponential
from mechanisms.families.bounded_scores import (
    BoundedScoreCandidates,
    BoundedScores,
    BoundedScoreValues,
    IndexArray,
    ListedScores,
)

MAX_REJECTIONS = 16  # rejections of one draw before all scores are looked at


@final
@declare
class LazyExponential(Mechanism):
    """The index r with probability proportional to ``exp(score[r] / scale)``, for scores in levels.

    The value is a `BoundedScores` object.  A level is drawn by its size and bound, then one of its
    candidates at random, which is accepted with probability ``exp((score - bound) / scale)``: the
    distribution is that of `Exponential`, and only scores of drawn candidates are computed.

    Examples
    --------
    >>> from mechanisms import LazyExponential
    >>> from mechanisms.families.bounded_scores import ListedScores
    >>> one = LazyExponential(scale=0.5)
    >>> int(one.release(ListedScores([0.0, 1.0, 4.0]), rng=0))
    2
    >>> one.loss
    BoundedRangeLoss(epsilon=4.0)
    """

    releases: ClassVar[str] = "the index of a high score, most scores unseen"
    reference: ClassVar[str] = "McSherry & Talwar (2007); von Neumann (1951) for the rejection"
    limits: ClassVar[str] = "idealised: as floats are; the time of a draw varies"

    scale: float = param(POSITIVE, "divisor of the scores", typical=(2.0,), knob=True)
    sensitivity: float = param(POSITIVE, "sensitivity of each score", typical=(1.0,), default=1.0)

    def release(self, value: Any, rng: Rng = None, size: int | None = None) -> Any:
        """Return the winner; see `Mechanism.release`."""
        objects, source = self.values.check(value), generator(rng)
        refuse_size_for_batch(size, objects, 0)
        if objects.ndim == 0:
            drawn = self._draw(objects.item(), source, 1 if size is None else size)
            return drawn[0] if size is None else drawn
        places: dict[int, list[int]] = {}
        for place, one in enumerate(objects.flat):
            places.setdefault(id(one), []).append(place)
        drawn = np.empty(objects.size, dtype=np.intp)
        for same in places.values():
            drawn[same] = self._draw(objects.item(same[0]), source, len(same))
        return drawn.reshape(objects.shape)

    def _draw(self, value: BoundedScores, source: np.random.Generator, size: int) -> IndexArray:
        bounds, counts = value.levels()
        weights = np.cumsum(counts * np.exp((bounds - bounds.max()) / self.scale))
        winners, waiting = np.empty(size, dtype=np.intp), np.arange(size)
        for _ in range(MAX_REJECTIONS):
            one, two, three = source.random((3, waiting.size))
            level = np.searchsorted(weights, one * weights[-1], side="right")
            level = np.minimum(level, bounds.size - 1)
            place = np.minimum((two * counts[level]).astype(np.intp), counts[level] - 1)
            candidates = value.members(level, place)
            below = (value.at(candidates) - bounds[level]) / self.scale
            if not (below <= 0).all():
                raise PrivateValueError("value", "scores that do not exceed their level's bound")
            taken = three < np.exp(below)
            winners[waiting[taken]] = candidates[taken]
            waiting = waiting[~taken]
            if waiting.size == 0:
                return winners
        # draws rejected so often are drawn by the listed mechanism: the same distribution
        listed = Exponential(self.scale, self.sensitivity)
        winners[waiting] = listed.release(value.scores(), source, waiting.size)
        return winners

    def log_density(self, output: ArrayLike, value: Any, each: bool = False) -> Array:
        """Return the log-probability of the winner, for which all scores are computed."""
        objects = self.values.check(value)
        scores = np.stack([one.scores() for one in objects.ravel()])
        listed = Exponential(self.scale, self.sensitivity)
        return listed.log_density(output, scores.reshape(*objects.shape, -1), each)

    def selection_error(self, candidates: int) -> float:
        """Return an upper bound of the expected gap between the best score and the winner's.

        Parameters
        ----------
        candidates : int
            Number of candidates.

        Returns
        -------
        float
            That of `Exponential`, ``scale ln(candidates)``, in the units of the scores.
        """
        return Exponential(self.scale, self.sensitivity).selection_error(candidates)

    @property
    def loss(self) -> BoundedRangeLoss:
        """Bounded range ``2 sensitivity / scale``."""
        return BoundedRangeLoss(round_up_ratio(2 * self.sensitivity, self.scale))

    def worst_pair(self, epsilon: float = 0.0) -> tuple[ListedScores, ListedScores]:
        """Return scores of two candidates whose gap shrinks by the largest amount."""
        first, second = Exponential(self.scale, self.sensitivity).worst_pair(epsilon)
        return ListedScores(first), ListedScores(second)

    @property
    def values(self) -> BoundedScoreValues:
        """`BoundedScores` objects."""
        return BoundedScoreValues(self.sensitivity)

    @property
    def support(self) -> BoundedScoreCandidates:
        """The indices of the candidates."""
        return BoundedScoreCandidates()
