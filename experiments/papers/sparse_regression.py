"""Sparse regression, Wang & Xu (2021), on the paper's synthetic data: Figures 1, 2, 5 and 6."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from accountant.numerics import Array
from algorithms import LabelIHT, LocalIHT
from algorithms.base.hard_thresholding import default_rounds, default_step
from algorithms.sparse_regression.links import link_of
from audits.papers.sparse_regression import (
    PublishedClaim,
    label_bound,
    printed_label_noise,
    printed_probability,
)
from experiments.charts import Chart, Options
from experiments.method_grids import Error, Grid, Method, Setting, compare
from mechanisms.gaussian import Gaussian

NOISE_BOUND, DELTA = 0.05, 1e-3  # C and delta of the paper
WAVE = "8x + cos x"
PRINTED_STEPS = {0.1: ":", 0.2: "-."}  # and how they are drawn
Sample = tuple[np.ndarray, np.ndarray, np.ndarray]  # features, labels, the true theta


def model(setting: Setting, users: int, seed: int, link: str, normalise: bool = True) -> Sample:
    """x uniform on {-1, 1}^p, y = f(<x, theta>) + U[-C, C], theta U[0, 1] at s* random places.

    ``normalise`` scales theta to length 1: algorithms and proofs assume the unit ball, which
    the paper's theta leaves from s* = 4 on, as a rule.  (On the sphere s* = 1 is a mere sign.)
    """
    rng = np.random.default_rng([seed, users, setting.features, setting.sparsity])
    theta = np.zeros(setting.features)
    theta[rng.permutation(setting.features)[: setting.sparsity]] = rng.random(setting.sparsity)
    if normalise:
        theta /= np.linalg.norm(theta)
    x = rng.integers(0, 2, (users, setting.features), dtype=np.int8) * 2.0 - 1
    y = link_of(link).function(x @ theta) + rng.uniform(-NOISE_BOUND, NOISE_BOUND, users)
    return x, y, theta


def relative_error(found: np.ndarray, theta: np.ndarray) -> float:
    """The paper's measure."""
    return float(np.linalg.norm(found - theta) / np.linalg.norm(theta))


@lru_cache(maxsize=256)
def printed_noise(epsilon: float, sparsity: int, link: str) -> PublishedClaim:
    """The printed label noise, and what it costs: labels move by twice their bound (E1)."""
    return printed_label_noise(epsilon, DELTA, sparsity, NOISE_BOUND, link)


@lru_cache(maxsize=256)
def printed_epsilon(setting: Setting, link: str) -> float:
    """What the printed noise really gives."""
    return printed_noise(setting.epsilon, setting.sparsity, link).true_epsilon


class PrintedBound(LocalIHT):
    """LocalIHT with gradients clipped to the printed bound, ``b C sqrt p``: private, and biased.

    As printed the gradients are not clipped, and `printed_probability` exceeds 1: that is no
    mechanism (docs/errata.md, E2).
    """

    def norm_bound(self, features: int) -> float:
        """Wang & Xu (2021), Algorithms 1 and 4."""
        return link_of(self.link).high * math.sqrt(features) * self.noise_bound


class PrintedSign(LabelIHT):
    """LabelIHT with the printed sign of the gradient: as private, and its iterates diverge.

    See docs/errata.md, E3.
    """

    def gradient(self, theta: Array, data: Any, executor: Executor | None = None) -> Array:
        """Wang, Smith & Xu (2018), Algorithm 2, line 5."""
        return -super().gradient(theta, data, executor)


class PrintedNoise(LabelIHT):
    """LabelIHT with the printed noise: NOT private at its epsilon."""

    def mechanism(self) -> Gaussian:
        """Labels within the bound, noise for labels that move by 4 C."""
        plan: Any = printed_noise(self.epsilon, self.sparsity, self.link).plan
        return Gaussian(plan.scale, 2 * self.y_bound)


@dataclass(frozen=True)
class Regression:
    """A study of one link; steps lie in the window where rounds contract, T = ceil ln(n/p)."""

    link: str = "identity"
    normalise: bool = True
    ylabel: str = "relative error"

    def sample(self, setting: Setting, users: int, seed: int) -> Sample:
        """New data of the setting."""
        return model(setting, users, seed, self.link, self.normalise)

    @property
    def step(self) -> float:
        """In the middle of the window: .958, or .0152 (E7) for 8x + cos x."""
        link = link_of(self.link)
        return default_step(link.low, link.high)


class LocalStudy(Regression):
    """Whole records are private: Algorithms 1 and 4."""

    @property
    def methods(self) -> tuple[Method, ...]:
        """Honest bound, printed bound, printed steps."""

        def fitted(kind: type[LocalIHT], step: float) -> Error:
            def error(setting: Setting, data: Sample, seed: int) -> float:
                made = kind(
                    epsilon=setting.epsilon, sparsity=setting.sparsity, noise_bound=NOISE_BOUND,
                    step=step, link=self.link, random_state=seed,
                )  # fmt: skip
                return relative_error(made.fit(*data[:2]).coef_, data[2])

            return error

        honest = Method(f"valid bound, step {self.step:.3g}", fitted(LocalIHT, self.step))
        clipped = fitted(PrintedBound, self.step)

        def note(setting: Setting) -> str:
            s = setting.sparsity
            asked = printed_probability(s, s, NOISE_BOUND, self.link)
            return f"   (- - unclipped: probability {asked:.3g})"

        name = "printed bound, clipped (private, biased)"
        printed = Method(name, clipped, line="--", note=note)
        steps = [
            Method(f"valid bound, printed step {step}", fitted(LocalIHT, step), line=line,
                   base_only=True)
            for step, line in PRINTED_STEPS.items()
        ]  # fmt: skip
        return honest, printed, *steps


class LabelStudy(Regression):
    """Labels alone are private: Algorithms 2 and 5."""

    @property
    def methods(self) -> tuple[Method, ...]:
        """Honest noise, printed noise, printed steps."""

        def fitted(step: float, kind: type[LabelIHT] = LabelIHT) -> Error:
            def error(setting: Setting, data: Sample, seed: int) -> float:
                x, y, theta = data
                made = kind(
                    epsilon=setting.epsilon, delta=DELTA, sparsity=setting.sparsity,
                    y_bound=label_bound(setting.sparsity, NOISE_BOUND, self.link),
                    rounds=default_rounds(*x.shape), step=step, link=self.link, random_state=seed,
                    randomizer="gaussian",
                )  # fmt: skip
                return relative_error(made.fit(x, y).coef_, theta)

            return error

        printed = fitted(self.step, PrintedNoise)
        honest = Method(f"honest noise, step {self.step:.3g}", fitted(self.step))
        steps = [
            Method(f"honest noise, printed step {step}", fitted(step), line=line, base_only=True)
            for step, line in PRINTED_STEPS.items()
        ]

        def true(setting: Setting) -> float:
            return printed_epsilon(setting, self.link)

        def note(setting: Setting) -> str:
            epsilon = true(setting)
            return f"   (- - really ε = {epsilon:{'.3g' if epsilon < 1000 else ',.0f'}})"

        noise = Method("printed noise (NOT private at its ε)", printed, true, note, "--")
        return honest, noise, *steps


LOCAL_FULL = Grid(
    Setting(10, 2, 2.0), (10_000, 30_000, 100_000, 300_000, 1_000_000),
    {"features": (5, 10, 40), "sparsity": (2, 3, 5), "epsilon": (1.0, 2.0, 4.0)},
)  # fmt: skip
LOCAL_QUICK = Grid(
    Setting(4, 2, 4.0), (1_000, 40_000),
    {"features": (4, 16), "sparsity": (2, 3), "epsilon": (2.0, 4.0)},
)  # fmt: skip
LABEL_FULL = Grid(
    Setting(100, 5, 1.0), (2_000, 5_000, 10_000, 20_000, 50_000),
    {"features": (50, 100, 400), "sparsity": (2, 5, 10), "epsilon": (0.5, 1.0, 2.0)},
)  # fmt: skip
LABEL_QUICK = Grid(
    Setting(20, 2, 1.0), (300, 10_000),
    {"features": (20, 40), "sparsity": (2, 3), "epsilon": (0.5, 1.0)},
)  # fmt: skip


def figure(kind: type[LocalStudy | LabelStudy], link: str, options: Options) -> Chart:
    """Whole records, or labels alone, are private."""
    grids = (LOCAL_FULL, LOCAL_QUICK) if kind is LocalStudy else (LABEL_FULL, LABEL_QUICK)
    return compare(kind(link, not options.unnormalised), *grids, options)


FIGURES = {
    "sparse-regression-1": partial(figure, LocalStudy, "identity"),
    "sparse-regression-2": partial(figure, LabelStudy, "identity"),
    "sparse-regression-5": partial(figure, LocalStudy, WAVE),
    "sparse-regression-6": partial(figure, LabelStudy, WAVE),
}
