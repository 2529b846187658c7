"""The printed constants at the paper's C and delta: for comparison only."""

from __future__ import annotations

from functools import lru_cache

from common import Setting

from algorithms import LabelIHT
from audits.papers.sparse_regression import PublishedClaim, label_bound, printed_label_noise
from mechanisms.gaussian import Gaussian

NOISE_BOUND, DELTA = 0.05, 1e-3  # C and delta of the paper


def greatest_label(sparsity: int, link: str) -> float:
    """Greatest label of the model."""
    return label_bound(sparsity, NOISE_BOUND, link)


@lru_cache(maxsize=256)
def printed_noise(epsilon: float, sparsity: int, link: str) -> PublishedClaim:
    """The printed label noise, and what it costs."""
    return printed_label_noise(epsilon, DELTA, sparsity, NOISE_BOUND, link)


@lru_cache(maxsize=256)
def printed_epsilon(setting: Setting, link: str) -> float:
    """What the printed noise really gives: labels move by twice their bound (E1)."""
    return printed_noise(setting.epsilon, setting.sparsity, link).true_epsilon


class PrintedNoise(LabelIHT):
    """LabelIHT with the printed noise: NOT private at its epsilon."""

    def mechanism(self) -> Gaussian:
        """Labels within the bound, noise for labels that move by 4 C."""
        scale = printed_noise(self.epsilon, self.sparsity, self.link).plan.scale
        return Gaussian(scale, 2 * self.label_bound)
