"""Permute and flip: candidates in random order, each accepted with probability e^(score - best).

References: McKenna & Sheldon (2020); proof in docs/proofs/noisy_max.md.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import BOOLEAN, POSITIVE
from accountant.losses.laplace import LaplaceLoss
from accountant.numerics import Array
from accountant.numerics.quadrature import gauss_legendre_panels
from accountant.numerics.search import least_float_that
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
from mechanisms.exact_noise.exact_selection import draw_by_flips
from mechanisms.families.selection import (
    MONOTONE_TEXT,
    SelectionMechanism,
    drawn_winners,
    recentred_large_scores,
    scaled_gap_to_best,
)


@final
@declare
class PermuteAndFlip(SelectionMechanism):
    """The first r, in random order, whose coin of ``exp((score[r] - best) / scale)`` shows heads.

    Its expected error never exceeds that of the exponential mechanism of the same epsilon e0.  It
    is not of bounded range e0: if two tied scores move to a gap of e0, the log-ratios of the two
    winners differ by e0 + ln(2 - e^-e0).

    Examples
    --------
    >>> from mechanisms import PermuteAndFlip
    >>> one = PermuteAndFlip(scale=0.5)
    >>> int(one.release([0.0, 1.0, 4.0], rng=0))
    2
    >>> one.loss
    LaplaceLoss(shift=4.0)
    """

    statistic: ClassVar[str | None] = "selection"
    reference: ClassVar[str] = "McKenna & Sheldon (2020); Ding, Kifer, Steinke et al. (2021)"
    limits: ClassVar[str] = "idealised: good to about 1e-15; exact: the time of a draw varies"

    scale: float = param(POSITIVE, "divisor of the scores", typical=(2.0,), knob=True)
    sensitivity: float = param(POSITIVE, "sensitivity of each score", typical=(1.0,), default=1.0)
    monotone: bool = param(BOOLEAN, MONOTONE_TEXT, typical=(False, True), default=False)
    arithmetic: str = arithmetic_field(EXACT, IDEALISED)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the winner, by coins or by exponential noise; see `Mechanism.release`."""
        scores, source = self.noise_centre(self.values.check(value)), generator(rng)
        refuse_size_for_batch(size, scores, 1)
        if self.arithmetic is EXACT:
            return drawn_winners(draw_by_flips, scores, self.drawn_scale, size, source)
        noisy = source.exponential(self.scale, size=draw_shape(size, scores.shape))
        noisy += recentred_large_scores(scores, self.scale)
        return noisy.argmax(axis=-1)

    def log_probabilities(self, scores: Array) -> Array:
        """Return log-probabilities, to a few units in the last place of the probabilities."""
        height = scaled_gap_to_best(self.noise_centre(scores), self.drawn_scale)
        heads, count = np.exp(height), scores.shape[-1]
        # P(r wins) = heads_r int_0^1 prod_{j != r} (1 - heads_j t) dt.  The product is a polynomial
        # of degree count - 1, of which half as many nodes give the exact integral.  If the
        # candidates are many, it falls about as e^(-count t) or more slowly.  So the panels between
        # the edges 0, h, 2 h, 4 h, ..., 1 with h <= 4 / count need no more than 16 nodes each.
        halvings = max(0, math.ceil(math.log2(count / 4)))
        edges = np.append(0.0, 0.5 ** np.arange(halvings, -1.0, -1.0))
        nodes, weights, _ = gauss_legendre_panels(edges, min(count // 2 + 1, 16))
        share = np.zeros_like(heads)
        for node, weight in zip(nodes, weights, strict=True):
            log_tails = np.log1p(-node * heads)
            share += weight * np.exp(log_tails.sum(axis=-1, keepdims=True) - log_tails)
        result: Array = height + np.log(share)
        return result

    def selection_error(self, candidates: int) -> float:
        """Return the bound on the error of `Exponential`, which is no better (Theorem 2)."""
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

        # At worst all others lie just below the gap x, and their coins show heads with probability
        # h = e^{-x / scale}.  Then the best one wins with probability int_0^1 (1 - h t)^(k - 1) dt
        # = (1 - (1 - h)^k) / (k h), for k candidates.
        def is_reached(gap: float) -> bool:
            heads = math.exp(-gap)
            tails = candidates * math.log1p(-heads) if heads < 1 else -math.inf
            return -math.expm1(tails) >= probability * candidates * heads * (1 + 1e-12)

        # The exponential mechanism reaches it at ln((k - 1) p / (1 - p)), and is no better.
        highest = math.log(candidates) + math.log1p(probability / (1 - probability))
        gap = least_float_that(is_reached, low=0.0, high=highest, steps=60)
        return self.drawn_scale * gap * (1 + 1e-12) + self._rounding_error

    @property
    def loss(self) -> LaplaceLoss:
        """The loss of Laplace noise on a number moved by ``2 sensitivity / scale``, or half of it.

        Two candidates attain it; see `docs/proofs/noisy_max.md`.
        """
        return LaplaceLoss(self._score_range)

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Array, Array]:
        """Return scores of two candidates with opposite order on the two sides."""
        # The first of two wins with the probability that Laplace noise stays below the gap of their
        # scores.  The gap moves from g to g - range.  The densities of Laplace noise at these two
        # gaps are in the ratio e^epsilon for g = (range - epsilon) / 2.
        score_range = self._score_range
        return self._pair_with_gap((score_range - min(max(epsilon, -score_range), score_range)) / 2)
