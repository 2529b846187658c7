"""Machines that vote on signs, of a sparse mean and of sparse regression; their baselines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import lfilter

from algorithms import ThresholdedMean, ThresholdedRegression
from algorithms.voting.machine_votes import lasso_signs, mean_signs
from experiments.method_grids import Setting

DELTA, RECORDS, SELECT, STRENGTH, CORRELATION = 1e-3, 200, 20, 0.5, 0.5


@dataclass(frozen=True)
class Machines:
    """Votes (machines, features), and what the baseline takes: means, or x and y."""

    votes: np.ndarray
    data: Any

    def first(self, count: int) -> Machines:
        """Of the first machines."""
        whole = self.data
        some = tuple(d[:count] for d in whole) if isinstance(whole, tuple) else whole[:count]
        return Machines(self.votes[:count], some)


@dataclass(frozen=True)
class MeanStudy:
    """X = theta + N(0, Toeplitz): a machine's mean of normal records is drawn as such."""

    threshold: float = 0.05

    def sample(self, setting: Setting, machines: int, seed: int) -> Machines:
        """The same first machines, however many."""
        errors = correlated(np.random.default_rng(seed), (machines, setting.features))
        means = signals(setting) + errors / math.sqrt(RECORDS)
        votes = [mean_signs(mean[None], self.threshold, SELECT) for mean in means]
        return Machines(np.array(votes, dtype=np.int8), means)

    def baseline(self, setting: Setting, machines: int, form: str) -> ThresholdedMean:
        """Records are clipped to ``sqrt(2 ln N)``, which hardly any exceeds."""
        bound = math.sqrt(2 * math.log(machines * RECORDS))
        return ThresholdedMean(setting.epsilon, DELTA, SELECT, bound, form)


@dataclass(frozen=True)
class RegressionStudy:
    """y = <x, theta> + N(0, 1), x normal with Toeplitz covariance."""

    # local Lasso paths reach ``SELECT`` features long before they reach a smaller penalty
    threshold: float = 0.1

    def sample(self, setting: Setting, machines: int, seed: int) -> Machines:
        """The same first machines, however many."""
        rng, theta = np.random.default_rng(seed), signals(setting)
        x, votes = np.empty((machines, RECORDS, setting.features)), []
        y = np.empty((machines, RECORDS))
        for j in range(machines):
            x[j] = correlated(rng, x[j].shape)
            y[j] = x[j] @ theta + rng.normal(size=RECORDS)
            votes.append(lasso_signs((x[j], y[j]), self.threshold, SELECT))
        return Machines(np.array(votes, dtype=np.int8), (x, y))

    def baseline(self, setting: Setting, machines: int, form: str) -> ThresholdedRegression:
        """20 steps; of the bounds that were tried, those under which it does best."""
        del machines
        return ThresholdedRegression(setting.epsilon, DELTA, SELECT, 0.5, 1.0, 0.5, form=form)


Study = MeanStudy | RegressionStudy


def correlated(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Normal rows whose covariance of i and j is ``.5^|i - j|``."""
    # x_j = r x_(j-1) + sqrt(1 - r^2) z_j, and x_0 = z_0
    white, step = rng.normal(size=shape), math.sqrt(1 - CORRELATION**2)
    white[:, 0] /= step
    return lfilter([step], [1.0, -CORRELATION], white, axis=1)


def signals(setting: Setting) -> np.ndarray:
    """The truth: s coordinates of size .5, evenly spread, their signs in turns."""
    theta = np.zeros(setting.features)
    spacing = setting.features // setting.sparsity
    theta[: spacing * setting.sparsity : spacing] = (-1.0) ** np.arange(setting.sparsity)
    return STRENGTH * theta
