"""The exponential mechanism: select with probability proportional to e^(score / scale)."""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.bounded import BoundedRangeLoss
from accountant.domains import POSITIVE
from accountant.numerics import Array, logsumexp
from accountant.randomness import Rng, generator
from mechanisms.mechanism import Mechanism, draws
from mechanisms.parameters import declare, param
from mechanisms.selection import gap_of_range, picked, two_candidates
from mechanisms.supports import Candidates
from mechanisms.values import Scores, unbatched


@final
@declare
class Exponential(Mechanism):
    """The index r of a score with probability proportional to ``exp(score[r] / scale)``."""

    releases: ClassVar[str] = "the index of a high score"
    reference: ClassVar[str] = "McSherry & Talwar (2007); Dong, Durfee & Rogers (2020)"

    scale: float = param(
        POSITIVE, "scores are divided by it; the scale of the equivalent Gumbel noise",
        typical=(2.0,), knob=True,
    )  # fmt: skip
    sensitivity: float = param(
        POSITIVE, "sensitivity of every single score", typical=(1.0,), default=1.0
    )

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Select by inverting the distribution function; see `Mechanism.release`."""
        scores, source = self.values.check(value), generator(rng)
        unbatched(size, scores, 1)
        cumulative = np.cumsum(np.exp(self._log_probabilities(scores)), axis=-1)
        cumulative[..., -1] = np.inf  # rounding must not leave a gap above the last
        if scores.ndim == 1:
            uniform = source.random(draws(size, ()))
            return np.searchsorted(cumulative, uniform, side="right")
        return np.argmax(cumulative > source.random((len(scores), 1)), axis=-1)

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Log-softmax of ``value / scale`` at the output."""
        return picked(self._log_probabilities(self.values.check(value)), output, each)

    @property
    def loss(self) -> BoundedRangeLoss:
        """Range ``2 sensitivity / scale``."""
        return BoundedRangeLoss(2 * self.sensitivity / self.scale)

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Array, Array]:
        """Two candidates whose gap shrinks by twice the sensitivity."""
        e0 = self.loss.epsilon
        gap = self.scale * gap_of_range(e0, min(abs(epsilon), e0 * (1 - 1e-9)) * np.sign(epsilon))
        return two_candidates(gap, self.sensitivity)

    @property
    def values(self) -> Scores:
        """Scores."""
        return Scores(self.sensitivity)

    @property
    def support(self) -> Candidates:
        """The candidates."""
        return Candidates()

    def _log_probabilities(self, scores: Array) -> Array:
        # the greatest score becomes 0 before dividing, so that nothing overflows
        with np.errstate(over="ignore"):
            shifted = (scores - scores.max(axis=-1, keepdims=True)) / self.scale
        result: Array = shifted - logsumexp(shifted)[..., None]
        return np.maximum(result, -math.inf)
