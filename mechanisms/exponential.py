"""The exponential mechanism: select with probability proportional to e^(score / scale).

References: McSherry & Talwar (2007); Dong, Durfee & Rogers (2020).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import BOOLEAN, POSITIVE
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.randomness import Rng, generator
from mechanisms.base import (
    EXACT,
    IDEALISED,
    arithmetic_field,
    declare,
    draw_shape,
    param,
    refuse_size_for_batch,
)
from mechanisms.exact_noise.exact_selection import WeightTable, draw_by_weights
from mechanisms.families.selection import (
    MONOTONE_TEXT,
    SelectionMechanism,
    drawn_winners,
    scaled_gap_to_best,
    worst_gap,
)


@final
@declare
class Exponential(SelectionMechanism):
    """The index r of a score, with probability proportional to ``exp(score[r] / scale)``.

    Examples
    --------
    >>> from mechanisms import Exponential
    >>> one = Exponential(scale=0.5)
    >>> int(one.release([0.0, 1.0, 4.0], rng=0))
    2
    >>> one.loss
    BoundedRangeLoss(epsilon=4.0)
    """

    statistic: ClassVar[str | None] = "selection"
    reference: ClassVar[str] = "McSherry & Talwar (2007); Dong, Durfee & Rogers (2020)"
    limits: ClassVar[str] = "idealised: good to about 1e-15; exact: the time of a draw varies"

    scale: float = param(
        POSITIVE,
        "divisor of the scores; the scale of the equivalent Gumbel noise",
        typical=(2.0,),
        knob=True,
    )
    sensitivity: float = param(POSITIVE, "sensitivity of each score", typical=(1.0,), default=1.0)
    monotone: bool = param(BOOLEAN, MONOTONE_TEXT, typical=(False, True), default=False)
    arithmetic: str = arithmetic_field(EXACT, IDEALISED)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the winner, by weights in integers; see `Mechanism.release`."""
        scores, source = self.noise_centre(self.values.check(value)), generator(rng)
        refuse_size_for_batch(size, scores, 1)
        if self.arithmetic is EXACT:
            return drawn_winners(draw_by_weights, scores, self.drawn_scale, size, source)
        cumulative = np.cumsum(np.exp(self.log_probabilities(scores)), axis=-1)
        cumulative[..., -1] = np.inf  # rounding must not leave a gap above the last entry
        if scores.ndim == 1:
            uniform = source.random(draw_shape(size, ()))
            return np.searchsorted(cumulative, uniform, side="right")
        return np.argmax(cumulative > source.random((len(scores), 1)), axis=-1)

    def log_probabilities(self, scores: Array) -> Array:
        """Return the log-softmax of the scores over the scale, both as they are drawn."""
        height = scaled_gap_to_best(self.noise_centre(scores), self.drawn_scale)
        result: Array = height - logsumexp(height)[..., None]
        return result

    def selection_error(self, candidates: int) -> float:
        """Return ``scale ln(candidates)``, and what rounding adds."""
        # A softmax maximises the expected score over the scale plus the entropy, which is at most
        # the logarithm of the number of candidates.
        return self.drawn_scale * math.log(candidates) + self._rounding_error

    def selection_quantile(self, candidates: int, probability: float) -> float:
        """Return how far the winner lies below the best at most, with a probability.

        Parameters
        ----------
        candidates : int
            Number of candidates.
        probability : float
            In (0, 1).

        Returns
        -------
        float
            In the units of the scores; rounded up.
        """
        # At worst all others lie just below the gap x: they win with the odds (candidates - 1)
        # e^{-x / scale}, and more of them, or higher ones, can only win more often.
        log_odds = math.log(max(candidates - 1, 1)) + math.log(probability / (1 - probability))
        return self.drawn_scale * max(log_odds, 0.0) * (1 + 1e-12) + self._rounding_error

    @property
    def loss(self) -> BoundedRangeLoss:
        """Bounded range ``2 sensitivity / scale``, or half of it if monotone."""
        return BoundedRangeLoss(self._score_range)

    @property
    def drawn_tables(self) -> list[dict[str, Any]]:
        """The ranges of words of the two candidates of the worst pair."""
        if self.arithmetic is not EXACT:
            return []
        scores = self.noise_centre(self.worst_pair()[0])
        return [WeightTable.of(scores[None], self.drawn_scale).table]

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Array, Array]:
        """Return scores of two candidates whose gap shrinks by the largest amount."""
        score_range = self._score_range
        # `worst_gap` needs an epsilon below the range.
        inside = min(abs(epsilon), score_range * (1 - 1e-9)) * np.sign(epsilon)
        return self._pair_with_gap(worst_gap(score_range, inside))
