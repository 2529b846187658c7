"""Sparse logistic regression, Wang & Xu (2021), a trusted curator: Figures 3 and 4, real data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from scipy import optimize
from scipy.special import expit

from accountant.accountants.tight import Tight
from accountant.planning.calibration import calibrate
from algorithms import SparseERM
from algorithms.base.hard_thresholding import keep_largest
from experiments.charts import Chart, Options, power_of_ten
from experiments.datasets import Table, covtype_signs, rcv1_signs
from experiments.method_grids import Error, Grid, Method, Setting, compare
from mechanisms.gaussian import Gaussian

PENALTY, PRINTED_DELTA, DELTA, PRINTED_STEP = 1e-3, 1e-3, 1e-5, 0.1
STEP = 1 / (2 * (0.25 + PENALTY))  # 1/(2l), of Theorem 8
Prepared = tuple[np.ndarray, np.ndarray, float, float]  # a table, its least loss, noiseless gap


def loss(theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """Mean logistic loss and the ridge."""
    return float(np.logaddexp(0, -y * (x @ theta)).mean() + PENALTY / 2 * theta @ theta)


def gradient(theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Its gradient."""
    slope: np.ndarray = -x.T @ (y * expit(-y * (x @ theta))) / len(y) + PENALTY * theta
    return slope


def noiseless(x: np.ndarray, y: np.ndarray, sparsity: int, rounds: int) -> np.ndarray:
    """The same iteration without noise, to the paper's end: a relative change of 1e-4."""
    theta = np.zeros(x.shape[1])
    for _ in range(rounds):
        moved = keep_largest(theta - 2 * gradient(theta, x, y), sparsity)
        still = np.linalg.norm(moved - theta) <= 1e-4 * np.linalg.norm(moved)
        theta = moved
        if still:
            break
    return theta


def optimum(x: np.ndarray, y: np.ndarray, sparsity: int) -> float:
    """The paper's reference, finished on the support it finds."""
    theta = noiseless(x, y, sparsity, 500)
    kept = np.flatnonzero(theta)
    some = x[:, kept]
    found = optimize.minimize(loss, theta[kept], (some, y), jac=gradient, method="L-BFGS-B")
    return float(found.fun)


@dataclass(frozen=True)
class CentralStudy:
    """Optimality gap; rows have length 1, runs differ by their noise alone, T = sqrt n.

    The paper leaves T open.  With ln n rounds gaps are those of stopping early, at any epsilon.
    """

    load: Callable[[Path], Table]
    folder: Path
    ylabel: str = "optimality gap of the loss"

    def sample(self, setting: Setting, users: int, seed: int) -> Prepared:
        """The same records in every run, and the least loss on them."""
        del seed
        return prepared(self, setting.features, setting.sparsity, users)

    @property
    def methods(self) -> tuple[Method, ...]:
        """Delta below 1/n, the printed delta, the printed step."""

        def fitted(delta: float, step: float) -> Error:
            def error(setting: Setting, data: Prepared, seed: int) -> float:
                x, y, least, _ = data
                made = SparseERM(
                    epsilon=setting.epsilon, delta=delta, sparsity=setting.sparsity,
                    rounds=math.isqrt(len(y)), step=step, ridge=PENALTY, random_state=seed,
                    slope_bound=1.0, classes=[-1.0, 1.0], fit_intercept=False,
                )  # fmt: skip
                return loss(made.fit(x, y).coef_, x, y) - least

            return error

        def floor(setting: Setting, data: Prepared, _: int) -> float:
            del setting
            return data[3]

        def note(setting: Setting) -> str:
            return f"   (- - ε = {printed_epsilon(setting.epsilon):.3g} at {small})"

        small = f"δ = {power_of_ten(DELTA)}"
        return (
            Method(f"{small}, step 1/(2l) = 2", fitted(DELTA, STEP)),
            Method(
                f"printed δ = {power_of_ten(PRINTED_DELTA)}", fitted(PRINTED_DELTA, STEP),
                lambda setting: printed_epsilon(setting.epsilon), note, "--",
            ),
            Method(
                f"{small}, printed step {PRINTED_STEP}", fitted(DELTA, PRINTED_STEP),
                line=":", base_only=True,
            ),
            Method("no noise, as many rounds", floor, line="-.", base_only=True),
        )  # fmt: skip


@lru_cache
def printed_epsilon(epsilon: float) -> float:
    """What noise for the printed delta gives at the smaller one: all rounds are one Gaussian."""
    return Tight().epsilon(calibrate(Gaussian, epsilon=epsilon, delta=PRINTED_DELTA), DELTA)


@lru_cache
def loaded(study: CentralStudy) -> Table:
    """All data in one fixed order."""
    x, y = study.load(study.folder)
    order = np.random.default_rng(0).permutation(len(y))
    return x[order], y[order]


@lru_cache(maxsize=256)
def prepared(study: CentralStudy, features: int, sparsity: int, users: int) -> Prepared:
    """The first users' first features, rows of length 1; least loss and gap without noise."""
    x, y = (part[:users] for part in loaded(study))
    x = x[:, :features]
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    least, stopped = optimum(x, y, sparsity), noiseless(x, y, sparsity, math.isqrt(users))
    return x, y, least, loss(stopped, x, y) - least


def gaps(load: Callable[[Path], Table], full: Grid, quick: Grid, options: Options) -> Chart:
    """The chart of a data set."""
    return compare(CentralStudy(load, options.data), full, quick, options)


FIGURES = {
    "sparse-regression-3": partial(gaps, covtype_signs, Grid(
        Setting(54, 10, 2.0), (300, 1_000, 3_000, 10_000, 20_000),
        {"features": (14, 34, 54), "sparsity": (5, 10, 20), "epsilon": (0.5, 1.0, 2.0)},
    ), Grid(
        Setting(20, 5, 2.0), (300, 2_000),
        {"features": (14, 20), "sparsity": (2, 5), "epsilon": (0.5, 2.0)},
    )),
    "sparse-regression-4": partial(gaps, rcv1_signs, Grid(
        Setting(200, 10, 2.0), (200, 400, 800, 1_700),
        {"features": (50, 100, 200), "sparsity": (5, 10, 20), "epsilon": (0.5, 1.0, 2.0)},
    ), Grid(
        Setting(50, 5, 2.0), (200, 1_600),
        {"features": (20, 50), "sparsity": (2, 5), "epsilon": (0.5, 2.0)},
    )),
}  # fmt: skip
