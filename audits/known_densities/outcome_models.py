"""Releases as probabilities of outcomes: a few shapes, and the worst pair of any mechanism.

From such a pair of distributions `sample_size` computes how many runs detect a violated claim.
``truth`` is the true epsilon of the pair.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.errors import ParameterError
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss
from accountant.numerics import Array
from mechanisms.base.mechanism import Mechanism
from mechanisms.base.supports import Lattice

# Cells into which continuous outputs are divided, and draws in place of cells where a mechanism has
# none.  More would be more accurate, and take longer.
CELLS, DRAWS = 4000, 200_000
# Draws for less noise than is claimed; and the share of the claimed epsilon at which the worst pair
# is taken of a mechanism without a scale, as at the whole epsilon it may differ in rare outputs
# alone.
LESS_NOISE_DRAWS, PAIR_SHARE = 20_000, 0.5


@final
@dataclass(frozen=True, slots=True)
class OutcomePair:
    """Probabilities of the outcomes of two neighbouring releases."""

    name: str
    first: Array  # the probability of each outcome at the first value
    second: Array  # and at the second one

    @property
    def losses(self) -> Array:
        """``ln first / second`` of each outcome."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.first) - np.log(self.second))


def two_outcomes(truth: float) -> OutcomePair:
    """Binary randomised response, the release whose violation is easiest to detect."""
    keep = 1 / (1 + math.exp(-truth))
    return OutcomePair("two outcomes", np.array([keep, 1 - keep]), np.array([1 - keep, keep]))


def ten_outcomes(truth: float) -> OutcomePair:
    """Ten-ary randomised response."""
    # The outcomes are the first value's label, the second's, and all eight others as one.
    keep, lie = math.exp(truth) / (math.exp(truth) + 9), 1 / (math.exp(truth) + 9)
    probabilities = np.array([keep, lie, 8 * lie])
    return OutcomePair("ten outcomes", probabilities, probabilities[[1, 0, 2]])


def laplace(truth: float) -> OutcomePair:
    """Laplace noise whose two values are ``truth`` scales apart."""
    x = np.linspace(0.0, truth, CELLS + 1)
    # The cells lie between the values, and there is one more beyond either value.
    probabilities = 0.5 * np.concatenate([[1.0], -np.diff(np.exp(-x)), [math.exp(-truth)]])
    return OutcomePair("Laplace", probabilities, probabilities[::-1].copy())


def gaussian(truth: float, delta: float) -> OutcomePair:
    """Gaussian noise whose epsilon at ``delta`` is ``truth``."""
    return gaussian_at_distance(gaussian_distance(truth, delta))


def gaussian_distance(epsilon: float, delta: float) -> float:
    """The distance of two values, in scales of Gaussian noise, that costs (epsilon, delta)."""
    from accountant.planning.calibration import calibrate
    from mechanisms.gaussian import Gaussian

    mechanism: Any = calibrate(Gaussian, sensitivity=1.0, epsilon=epsilon, delta=delta)
    return float(1 / mechanism.scale)


def claimed_distance(claim: Loss, delta: float) -> float | None:
    """The distance of two values, in scales of Gaussian noise, that costs what is claimed.

    It is None if none does.  For a claim of a whole curve it is the distance that has the claimed
    delta at epsilon 0.
    """
    from scipy.special import ndtri

    if isinstance(claim, GaussianLoss):
        return claim.mu
    if isinstance(claim, ApproxLoss):
        epsilon = claim.epsilon_at(delta)
        return gaussian_distance(epsilon, delta) if delta > 0 and 0 < epsilon < math.inf else None
    variation = claim.delta_at(0.0)
    if claim.pure < math.inf or not 0 < variation < 1:
        return None
    # The values are mu apart, and delta at epsilon 0 is P(|X| < mu / 2) of standard normal X.
    return 2 * float(ndtri((1 + variation) / 2))


def gaussian_at_distance(mu: float) -> OutcomePair:
    """Gaussian noise whose two values are ``mu`` scales apart."""
    from scipy.special import ndtr

    x = np.concatenate([[-np.inf], np.linspace(-8.5, 8.5 + mu, CELLS), [np.inf]])
    # Masses are differences of the smaller tail, so that far cells keep their digits.
    first_masses, second_masses = (
        np.where(x[1:] + x[:-1] < 2 * at, np.diff(ndtr(x - at)), -np.diff(ndtr(at - x)))
        for at in (0.0, mu)
    )
    keep = (first_masses > 0) & (second_masses > 0)
    return OutcomePair("Gaussian", first_masses[keep], second_masses[keep])


def example_pairs(truth: float, delta: float) -> list[OutcomePair]:
    """Shapes of releases with a true epsilon, from the easiest to detect to the hardest."""
    pure_pairs = [two_outcomes(truth), laplace(truth), ten_outcomes(truth)]
    return [*pure_pairs, gaussian(truth, delta)] if delta > 0 else pure_pairs


def worst_outcome_pair(
    mechanism: Mechanism, epsilon: float, sharpness: float = 1.0, draws: int = DRAWS
) -> OutcomePair:
    """The worst pair of a declared mechanism: its outcomes, or draws with their density.

    The densities are taken to the power ``sharpness``, and normalised: that multiplies every
    privacy loss, as less noise does.
    """
    first_value, second_value = mechanism.worst_pair(epsilon)
    cells = None
    axes = 0 if isinstance(mechanism.support, Lattice) else np.ndim(first_value)
    with contextlib.suppress(ParameterError):  # too many outputs to be listed
        if np.ndim(first_value) == axes:
            cells = mechanism.support.cells(first_value, second_value)
    if cells is not None:
        outputs, log_measure = cells.outputs, np.log(cells.measure)
    else:
        rng, half = np.random.default_rng(0), draws // 2
        drawn = [mechanism.release(value, rng, half) for value in (first_value, second_value)]
        outputs, log_measure = np.concatenate(drawn), np.zeros(1)
    log_p, log_q = (
        np.ravel(mechanism.log_density(outputs, value)) for value in (first_value, second_value)
    )
    if cells is None:
        # The draws from both values have the density p + q, so each stands for 1 / (p + q).
        log_measure = -np.logaddexp(log_p, log_q)
    masses = [log_measure + sharpness * log_density for log_density in (log_p, log_q)]
    p, q = (np.ravel(np.exp(log_mass - np.max(log_mass))) for log_mass in masses)
    keep = (p > 0) | (q > 0)
    return OutcomePair(repr(mechanism), p[keep] / p.sum(), q[keep] / q.sum())


def less_noise(
    mechanism: Mechanism | None, claim: Loss, delta: float, factor: float
) -> OutcomePair | None:
    """A release that costs ``factor`` times what is claimed, for it has so much less noise.

    It has the kind of noise that `noise_kind` names.  None where the claim's epsilon at ``delta``
    is 0 or infinite, or no noise of this kind has it.
    """
    epsilon = claim.epsilon_at(delta)
    if mechanism is None and claim.pure < math.inf:
        return laplace(factor * claim.pure) if claim.pure > 0 else None
    if mechanism is None or isinstance(mechanism.loss, GaussianLoss):
        mu = claimed_distance(claim, delta)
        return None if mu is None else gaussian_at_distance(factor * mu)
    own_epsilon = mechanism.loss.epsilon_at(delta)
    if not (0 < epsilon < math.inf and 0 < own_epsilon < math.inf):
        return None
    sharpness = factor * epsilon / own_epsilon
    if hasattr(mechanism, "scale"):
        scaled: Any = mechanism
        with contextlib.suppress(ParameterError):
            scaled = scaled.with_noise_factor(1 / sharpness)
            return worst_outcome_pair(scaled, epsilon, draws=LESS_NOISE_DRAWS)
    return worst_outcome_pair(mechanism, PAIR_SHARE * epsilon, sharpness, LESS_NOISE_DRAWS)


def true_epsilon(mechanism: Mechanism | None, claim: Loss, delta: float, factor: float) -> float:
    """The epsilon at ``delta`` of the release of `less_noise`."""
    is_gaussian = mechanism is None or isinstance(mechanism.loss, GaussianLoss)
    if is_gaussian and isinstance(claim, (GaussianLoss, ApproxLoss)) and delta > 0:
        mu = claimed_distance(claim, delta)
        if mu is not None:
            return GaussianLoss(factor * mu).epsilon_at(delta)
    return factor * claim.epsilon_at(delta)


def noise_kind(mechanism: Mechanism | None, claim: Loss) -> str:
    """The kind of noise of a release, in words; a function's is assumed by its claim."""
    if mechanism is not None:
        return f"the noise of {type(mechanism).__name__}"
    return f"{'Laplace' if claim.pure < math.inf else 'Gaussian'} noise"
