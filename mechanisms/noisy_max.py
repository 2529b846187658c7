"""Report noisy max: noise on every score; only the winner's index is released.

References: Dwork & Roth (2014), Claim 3.9; Durfee & Rogers (2019).
"""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import BOOLEAN, POSITIVE, OneOf
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import PureLoss
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.numerics.quadrature import gauss_legendre_panels
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
from mechanisms.exact_noise.exact_selection import draw_by_weights
from mechanisms.exact_noise.lazy_laplace import draw_noisy_max
from mechanisms.exponential import Exponential
from mechanisms.families.expected_maxima import expected_max_exponential
from mechanisms.families.selection import (
    MONOTONE_TEXT,
    SelectionMechanism,
    drawn_winners,
    recentred_large_scores,
    scaled_gap_to_best,
)


@final
@declare
class NoisyMax(SelectionMechanism):
    """The index of the largest ``score + scale * noise``.

    With exact arithmetic scores are rounded to a grid, and the noise is wider by what that moves:
    `noise_centre` and `drawn_scale` are what a draw uses.

    With Gumbel noise it is the exponential mechanism and has bounded range.  With Laplace noise the
    log-ratios of five candidates can span 1.17 times that range (docs/errata.md, E18b), so its loss
    is a pure epsilon.

    Examples
    --------
    >>> from mechanisms import NoisyMax
    >>> one = NoisyMax(scale=0.5, noise="laplace")
    >>> int(one.release([0.0, 1.0, 4.0], rng=0))
    2
    >>> one.loss
    PureLoss(epsilon=4.0)
    """

    reference: ClassVar[str] = "Dwork & Roth (2014), Claim 3.9; Durfee & Rogers (2019) for Gumbel"
    limits: ClassVar[str] = "idealised: good to about 1e-15; exact: the time of a draw varies"

    scale: float = param(
        POSITIVE, "noise scale, in the units of the scores", typical=(2.0,), knob=True
    )
    sensitivity: float = param(POSITIVE, "sensitivity of each score", typical=(1.0,), default=1.0)
    noise: str = param(
        OneOf(("gumbel", "laplace")),
        "distribution of the noise",
        typical=("gumbel", "laplace"),
        default="gumbel",
    )
    monotone: bool = param(BOOLEAN, MONOTONE_TEXT, typical=(False, True), default=False)
    arithmetic: str = arithmetic_field(EXACT, IDEALISED)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the index of the largest noisy score; see `Mechanism.release`."""
        scores, source = self.noise_centre(self.values.check(value)), generator(rng)
        refuse_size_for_batch(size, scores, 1)
        if self.arithmetic is EXACT:
            # The largest score with Gumbel noise has the law of a draw by weights.
            sampler = draw_by_weights if self.noise == "gumbel" else draw_noisy_max
            return drawn_winners(sampler, scores, self.drawn_scale, size, source)
        sample = source.gumbel if self.noise == "gumbel" else source.laplace
        noisy = sample(scale=self.scale, size=draw_shape(size, scores.shape))
        noisy += recentred_large_scores(scores, self.scale)
        return noisy.argmax(axis=-1)

    def log_probabilities(self, scores: Array) -> Array:
        """Return log-probabilities: a softmax, or one integral for Laplace noise."""
        if self.noise == "gumbel":
            return self._by_weights.log_probabilities(scores)
        heights = scaled_gap_to_best(self.noise_centre(scores), self.drawn_scale)
        table: Array = (
            np.apply_along_axis(laplace_log_win_probabilities, -1, heights)
            if heights.size
            else heights
        )
        return table

    def selection_error(self, candidates: int) -> float:
        """Return the bound of `Exponential`, or of the largest of so many Laplace draws."""
        if self.noise == "gumbel":
            return self._by_weights.selection_error(candidates)
        # The noise of the best score has mean 0, and no noise exceeds the largest absolute value.
        return self.drawn_scale * expected_max_exponential(candidates) + self._rounding_error

    @property
    def loss(self) -> Loss:
        """Bounded range or pure epsilon of ``2 sensitivity / scale``, or half of it if monotone."""
        kind = BoundedRangeLoss if self.noise == "gumbel" else PureLoss
        return kind(self._score_range)

    @property
    def loss_is_upper_bound(self) -> bool:
        """Whether the noise is Laplace: pairs of scores approach its epsilon, none has it."""
        return self.noise == "laplace"

    @property
    def drawn_tables(self) -> list[dict[str, Any]]:
        """With Gumbel noise the tables of `Exponential`, which has the same law; else none."""
        return self._by_weights.drawn_tables if self.noise == "gumbel" else []

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Array, Array]:
        """Return scores of two candidates whose gap shrinks by the largest amount.

        With Laplace noise it is the best of a list of gaps.
        """
        if self.noise == "gumbel":
            return self._by_weights.worst_pair(epsilon)
        # The first wins if its gap exceeds the difference of two Laplace draws, so delta of a gap
        # is F(gap) - e^epsilon F(gap - range), with F the law of that difference.  20 scales beyond
        # 0 and the range F is within 1e-7 of 0 or 1.  The best of 401 gaps is good enough, as only
        # audits ask for the pair, and the loss is an upper bound.
        score_range = self._score_range
        gaps = np.linspace(-20.0, score_range + 20.0, 401)
        neighbour_chances = laplace_difference_cdf(gaps - score_range)
        deltas = laplace_difference_cdf(gaps) - np.exp(epsilon) * neighbour_chances
        return self._pair_with_gap(float(gaps[np.argmax(deltas)]))

    @property
    def _by_weights(self) -> Exponential:
        """The exponential mechanism, which has the law of the winner with Gumbel noise."""
        return Exponential(self.scale, self.sensitivity, self.monotone, self.arithmetic)


def laplace_difference_cdf(x: Array) -> Array:
    """Return the distribution function of the difference of two standard Laplace draws."""
    tail = (1 + np.abs(x) / 2) * np.exp(-np.abs(x)) / 2
    return np.where(x < 0, tail, 1 - tail)


def laplace_log_win_probabilities(scores: Array) -> Array:
    """Return log-probabilities of winning under standard Laplace noise, by piecewise quadrature.

    Integrates f(v - s_i) prod_{j != i} F(v - s_j) between the kinks at the scores, with the density
    f and the distribution function F of the noise; exact to about 1e-12 relative for the probable
    winners, and for the others to about e^-40 in all.  The sum of all is set to 1.
    """
    s = scores - scores.max()
    # The largest noisy score lies outside of [-40, 40] with a probability of about e^-40 for each
    # candidate.  Panels of the quadrature, with 20 nodes each, end at the kinks, and are at most 2
    # wide.
    kinks = np.unique(np.concatenate([s[s > -40.0], np.linspace(-40.0, 40.0, 41)]))
    v, weights, _ = gauss_legendre_panels(kinks, points=20)
    away = np.abs(v[:, None] - s)
    # The logarithms of f and F, density and distribution function of the Laplace law, at v - s_j.
    log_f = -away - np.log(2)
    log_cdf = np.where(v[:, None] < s, log_f, np.log1p(-np.exp(log_f)))
    terms = np.log(weights)[:, None] + log_f - log_cdf + log_cdf.sum(axis=1, keepdims=True)
    total = logsumexp(terms, axis=0)
    normalised: Array = total - np.log(np.exp(total).sum())
    return normalised
