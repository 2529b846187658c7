"""Releases as probabilities of outcomes: a few shapes, and the worst pair of any mechanism.

From such a pair of distributions `sample_size` computes how many runs detect a violated claim.
``truth`` is the true epsilon of the pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.numerics import Array
from mechanisms.base.mechanism import Mechanism

# Cells into which continuous outputs are divided, and draws in place of cells where a mechanism has
# none.  More would be more accurate, and take longer.
CELLS, DRAWS = 4000, 200_000


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
    from scipy.special import ndtr

    from accountant.planning.calibration import calibrate
    from mechanisms.gaussian import Gaussian

    mechanism: Any = calibrate(Gaussian, sensitivity=1.0, epsilon=truth, delta=delta)
    mu = 1 / mechanism.scale
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


def worst_outcome_pair(mechanism: Mechanism, epsilon: float) -> OutcomePair:
    """The worst pair of a declared mechanism: its outcomes, or 200,000 draws with their density."""
    first_value, second_value = mechanism.worst_pair(epsilon)
    cells = mechanism.support.cells(first_value, second_value)
    if cells is not None:
        p, q = (
            np.ravel(cells.measure * np.exp(mechanism.log_density(cells.outputs, value)))
            for value in (first_value, second_value)
        )
        keep = (p > 0) | (q > 0)
        return OutcomePair(repr(mechanism), p[keep], q[keep])
    rng, half = np.random.default_rng(0), DRAWS // 2
    drawn = [mechanism.release(value, rng, half) for value in (first_value, second_value)]
    losses = np.concatenate(
        [
            np.ravel(
                mechanism.log_density(outputs, first_value)
                - mechanism.log_density(outputs, second_value)
            )
            for outputs in drawn
        ]
    )
    # The outcomes are the draws from both values.  Given a draw, the first value has the posterior
    # probability 1 / (1 + e^-loss), which is in proportion to the draw's probability under it.
    p, q = 1 / (1 + np.exp(-losses)), 1 / (1 + np.exp(losses))
    return OutcomePair(repr(mechanism), p / p.sum(), q / q.sum())
