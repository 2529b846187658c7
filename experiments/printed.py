"""The constants as printed: for comparison only."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from common import Setting

from accountant.tight import Tight
from algorithms import LocalIHT
from algorithms.links import link_of
from algorithms.thresholding import rounds_for, threshold
from audits.published import printed_label_noise
from mechanisms.gaussian import Gaussian

NOISE_BOUND, DELTA = 0.05, 1e-3  # C and delta of the paper


class PrintedBound(LocalIHT):
    """Gradients clipped to the printed bound, C sqrt(p) times the slope: private, and biased."""

    def norm_bound(self, features: int) -> float:
        """Algorithms 1 and 4 as printed (E2)."""
        return link_of(self.link).high * math.sqrt(features) * self.noise_bound


def printed_probability(setting: Setting, link: str) -> float:
    """What the printed bound asks of a coin, unclipped: ``1/2 + |gradient| / (2 bound)``."""
    slope, root = link_of(link).high, math.sqrt(setting.sparsity)
    return 0.5 + (slope * 2 * root + NOISE_BOUND) / (2 * NOISE_BOUND)


def label_bound(sparsity: int, link: str) -> float:
    """Greatest label of the model: ``max |f(+-sqrt s*)| + C``."""
    ends = link_of(link).function(math.sqrt(sparsity) * np.array([-1.0, 1.0]))
    return float(np.abs(ends).max()) + NOISE_BOUND


def printed_noise(setting: Setting) -> float:
    """tau as printed: for labels that move by 4 C."""
    made = printed_label_noise(setting.epsilon, DELTA, setting.sparsity, NOISE_BOUND)
    return made.plan.scale


@lru_cache(maxsize=256)
def printed_epsilon(setting: Setting, link: str) -> float:
    """What the printed noise really gives: labels move by twice their bound (E1)."""
    moved = 2 * label_bound(setting.sparsity, link)
    return Tight().epsilon(Gaussian(printed_noise(setting), moved), DELTA)


def printed_label_iht(
    x: np.ndarray, y: np.ndarray, setting: Setting, link: str, step: float, seed: int
) -> np.ndarray:
    """LabelIHT's loop on labels with the printed noise: NOT private, for comparison only."""
    f, theta = link_of(link), np.zeros(setting.features)
    noisy = y + np.random.default_rng(seed).normal(0.0, printed_noise(setting), len(y))
    for _ in range(rounds_for(*x.shape)):
        inner = x @ theta
        gradient = x.T @ ((f.function(inner) - noisy) * f.derivative(inner)) / len(y)
        theta = threshold(theta, gradient, step, setting.sparsity)
    return theta
