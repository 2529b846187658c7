"""Figures 3 and 4 of Wang & Xu (2021) on all records, and on all terms of rcv1."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, sparse
from scipy.special import expit

from algorithms import SparseERM
from algorithms.base.hard_thresholding import keep_largest
from experiments.charts import Options, over_seeds
from experiments.datasets import COVTYPE, RCV1, covtype_signs, present
from experiments.papers.sparse_logistic import DELTA, PENALTY, STEP

BASE: dict[str, Any] = {"sparsity": 10, "epsilon": 2.0}
VARIED: tuple[dict[str, Any], ...] = (
    {},
    {"sparsity": 5},
    {"sparsity": 20},
    {"epsilon": 1.0},
    {"epsilon": 0.5},
)


def all_terms(folder: Path) -> tuple[Any, np.ndarray]:
    """All records and terms of rcv1, sparse, and CCAT against the rest."""
    with np.load(folder / RCV1) as file:
        parts = file["data"].astype(float), file["indices"], file["indptr"]
        return sparse.csr_array(parts, shape=file["shape"]), file["label"].astype(float)


def loss(theta: np.ndarray, x: Any, y: np.ndarray) -> float:
    """Mean logistic loss and the ridge."""
    return float(np.logaddexp(0, -y * (x @ theta)).mean() + PENALTY / 2 * theta @ theta)


def gradient(theta: np.ndarray, x: Any, y: np.ndarray) -> np.ndarray:
    """Its gradient."""
    slope: np.ndarray = -(x.T @ (y * expit(-y * (x @ theta)))) / len(y) + PENALTY * theta
    return slope


def least_loss(x: Any, y: np.ndarray, sparsity: int) -> float:
    """The loss of hard thresholding without noise, finished on the support it finds."""
    theta = np.zeros(x.shape[1])
    for _ in range(500):
        moved = keep_largest(theta - 2 * gradient(theta, x, y), sparsity)
        still = np.linalg.norm(moved - theta) <= 1e-4 * np.linalg.norm(moved)
        theta = moved
        if still:
            break
    kept = np.flatnonzero(theta)
    some = x[:, kept]
    found = optimize.minimize(loss, theta[kept], (some, y), jac=gradient, method="L-BFGS-B")
    return float(found.fun)


def unit_rows(x: Any) -> Any:
    """Rows of length 1."""
    if sparse.issparse(x):
        rows: Any = x
        lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        return sparse.csr_array(sparse.diags_array(1 / np.maximum(lengths, 1e-12)) @ rows)
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)


def gaps(x: Any, y: np.ndarray, settings: list[dict[str, Any]], seed: int) -> dict[int, float]:
    """The gap of a private fit in every setting; the least loss is subtracted later."""
    found = {}
    for number, one in enumerate(settings):
        made = SparseERM(
            **one, delta=DELTA, rounds=math.isqrt(len(y)), step=STEP, ridge=PENALTY,
            random_state=seed, slope_bound=1.0, classes=[-1.0, 1.0], fit_intercept=False,
        )  # fmt: skip
        found[number] = loss(made.fit(x, y).coef_, x, y)
    return found


def claims(options: Options) -> Iterator[str]:
    """The gap on all there is, in the settings of both figures."""
    for name, file, load in (("covtype", COVTYPE, covtype_signs), ("rcv1", RCV1, all_terms)):
        if not present(options.data, file):
            continue
        x, y = load(options.data)
        if options.quick:
            some = slice(0, None, max(1, len(y) // 1_000))
            x, y = x[some], y[some]
        x = unit_rows(x)
        settings = [BASE | more for more in (VARIED[:1] if options.quick else VARIED)]
        found = over_seeds(partial(gaps, x, y, settings), options.seeds)
        zero = math.log(2)
        for number, one in enumerate(settings):
            least = least_loss(x, y, one["sparsity"])
            gap = found[number] - least
            spread = gap.std() / math.sqrt(max(gap.size - 1, 1))
            yield (f"{name}, n = {len(y):,}, p = {x.shape[1]:,}, s = {one['sparsity']}, epsilon "
                   f"{one['epsilon']:g}: gap {gap.mean():.4f} ± {spread:.4f}, of theta = 0 "
                   f"{zero - least:.4f}")  # fmt: skip


FIGURES = {"sparse-regression-whole": claims}
