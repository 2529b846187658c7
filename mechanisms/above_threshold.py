"""The sparse vector technique: the index of the first answer above a threshold.

Laplace noise is added to the threshold once, and to every answer in turn; only the index of the
first noisy answer above the noisy threshold is released.

References: Dwork & Roth (2014), Algorithm 1; Lyu, Su & Li (2017).
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import BOOLEAN, POSITIVE, REAL
from accountant.losses.pure_and_approximate import PureLoss
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.numerics.quadrature import gauss_legendre_panels
from accountant.numerics.rounding import round_up_ratio
from accountant.randomness import Rng, generator
from mechanisms.base import (
    EXACT,
    IDEALISED,
    Candidates,
    Scores,
    arithmetic_field,
    declare,
    draw_shape,
    param,
    refuse_size_for_batch,
)
from mechanisms.exact_noise.lazy_laplace import draw_first_above
from mechanisms.families.selection import (
    MONOTONE_TEXT,
    ScoreMechanism,
    drawn_winners,
    log_probability_of_output,
    scaled_difference,
)

# Distances from a kink at which Gauss-Legendre panels end, in scales of the threshold's noise.
# Beyond 80 no more than e^-40 of the probability is left, as noise of two scales falls by e^-1 in
# two.
QUADRATURE_STEPS = np.array([0.0, 2, 4, 6, 8, 10, 12, 16, 20, 28, 40, 60, 80])
QUADRATURE_STEPS = np.concatenate([-QUADRATURE_STEPS[:0:-1], QUADRATURE_STEPS])


@final
@declare
class AboveThreshold(ScoreMechanism):
    """The index of the first noisy answer above a noisy threshold; their number if there is none.

    The answers below the threshold add no privacy loss, however many they are.  To find c answers
    repeat it, every time with fresh noise on the threshold: ``c * AboveThreshold(...)``.

    Examples
    --------
    >>> from mechanisms import AboveThreshold
    >>> one = AboveThreshold(threshold=5.0, scale=0.5)
    >>> int(one.release([0.0, 2.0, 9.0, 9.0], rng=1))
    2
    >>> one.loss
    PureLoss(epsilon=4.0)
    """

    releases: ClassVar[str] = "the index of the first high answer"
    reference: ClassVar[str] = "Dwork & Roth (2014), Algorithm 1; Lyu, Su & Li (2017)"
    limits: ClassVar[str] = "idealised: good to about 1e-15; exact: the time of a draw varies"

    threshold: float = param(REAL, "value that an answer has to exceed", typical=(1.0,))
    scale: float = param(
        POSITIVE,
        "noise scale on the threshold; twice as much on an answer",
        typical=(2.0,),
        knob=True,
    )
    sensitivity: float = param(POSITIVE, "sensitivity of each answer", typical=(1.0,), default=1.0)
    monotone: bool = param(BOOLEAN, MONOTONE_TEXT, typical=(False, True), default=False)
    arithmetic: str = arithmetic_field(EXACT, IDEALISED)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the index of the first answer above the threshold; see `Mechanism.release`."""
        answers, source = self.noise_centre(self.values.check(value)), generator(rng)
        refuse_size_for_batch(size, answers, 1)
        if self.arithmetic is EXACT:
            sampler = partial(draw_first_above, threshold=self.threshold)
            return drawn_winners(sampler, answers, self.drawn_scale, size, source)
        shape = draw_shape(size, answers.shape)
        # Compared are answer + 2 scale L_i and threshold + scale L, divided by the scale.
        noisy = source.laplace(scale=2.0, size=shape)
        noisy += scaled_difference(answers, self.threshold, self.scale)
        above = noisy >= source.laplace(size=(*shape[:-1], 1))
        return np.where(above.any(axis=-1), above.argmax(axis=-1), shape[-1])[()]

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return the log-probability of the index: one integral over the threshold's noise."""
        answers = self.noise_centre(self.values.check(value))
        heights = scaled_difference(answers, self.threshold, self.drawn_scale)
        count = heights.shape[-1]
        rows = [log_first_above_probabilities(row) for row in heights.reshape(-1, count)]
        table = np.array(rows).reshape(*heights.shape[:-1], count + 1)
        return log_probability_of_output(table, output, each)

    @property
    def loss(self) -> PureLoss:
        """Pure epsilon ``2 sensitivity / scale``, or three quarters of it if monotone."""
        # To move the threshold's noise along with the answers below costs sensitivity / scale.  The
        # answer above then has to move by up to 2 sensitivity at noise of 2 scale, which costs as
        # much again, but by half of that where all answers move in one direction.
        return PureLoss(
            round_up_ratio((1.5 if self.monotone else 2) * self.charged_sensitivity, self.scale)
        )

    @property
    def loss_is_upper_bound(self) -> bool:
        """True: ten answers attain epsilon, but only on an unlikely output."""
        return True

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Array, Array]:
        """Return ten answers that rise and one that falls or stays, the best pair of eleven.

        The last answer is one scale above the threshold.  The ten are below it by a number of
        scales, of which eleven are tried.
        """
        rise = np.append(np.full(10, 1.0), 0.0 if self.monotone else -1.0)
        best, pair = -1.0, (rise, rise)
        for below in np.linspace(-2.0, 8.0, 11):
            heights = np.append(np.full(10, -below), 1.0)
            moved = heights + rise * self.sensitivity / self.scale
            log_p = log_first_above_probabilities(heights)
            log_q = log_first_above_probabilities(moved)
            delta = float(np.maximum(np.exp(log_p) - np.exp(epsilon + log_q), 0).sum())
            if delta > best:
                answers = self.threshold + self.scale * heights
                best, pair = delta, (answers, answers + self.sensitivity * rise)
        return pair

    @property
    def values(self) -> Scores:
        """Vectors of answers."""
        return Scores(self.sensitivity, self.monotone)

    @property
    def support(self) -> Candidates:
        """The indices of the answers, and one outcome for no answer above the threshold."""
        return Candidates(extra_outcomes=1)


def log_first_above_probabilities(heights: Array) -> Array:
    """Return log-probabilities that each answer is the first above the threshold, and that none is.

    ``heights`` are answers minus the threshold, over the scale.  Piecewise quadrature, exact to
    about 1e-14 relative, also for unlikely outcomes.
    """
    # P(first is i) = int f(z) prod_{j < i} F((z - h_j) / 2) (1 - F((z - h_i) / 2)) dz with the
    # density f and the distribution function F of the standard Laplace law.  The integrand has
    # kinks at 0 and at the heights h_j, and falls exponentially far away from them.
    kinks = np.unique(np.append(heights, 0.0))
    # Panels end at the kinks, and at the steps from the even number nearest to each kink.  The
    # steps are even too, so that near kinks share most ends, and panels stay few.
    steps = 2 * np.round(kinks / 2)[:, None] + QUADRATURE_STEPS
    z, weights, _ = gauss_legendre_panels(np.unique(np.append(steps, kinks)), points=12)
    away = (z[:, None] - heights) / 2
    # F(x) = e^-|x| / 2 for x < 0, and 1 minus that for x > 0.
    tail = -np.abs(away) - np.log(2)
    log_complement = np.log1p(-np.exp(tail))
    log_below, log_above = np.where(away < 0, [tail, log_complement], [log_complement, tail])
    terms = np.zeros((z.size, heights.size + 1))
    np.cumsum(log_below, axis=1, out=terms[:, 1:])
    terms[:, :-1] += log_above
    terms += (np.log(weights) - np.abs(z) - np.log(2))[:, None]
    return logsumexp(terms, axis=0)
