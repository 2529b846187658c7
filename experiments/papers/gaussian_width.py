"""Theorem 2.6 of Talwar, Thakurta & Zhang (2015): the Gaussian width of the l2 ball."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from algorithms import GaussianFrankWolfe
from algorithms.frank_wolfe.convex_sets import L2Ball
from audits.minimax.performance.algorithm_losses import estimator_loss, nearby_parameter
from audits.minimax.performance.algorithm_table import AlgorithmEntry, no_theorem
from audits.minimax.performance.gap import measure_risk_gap
from experiments.charts import Curve, Options, over_seeds

RECORDS, EPSILON, DELTA = 20_000, 1.0, 1e-6


def excess(records: int, features: int, seed: int) -> tuple[float, float]:
    """Excess loss over the unit ball, and the theorem's bound with its constants.

    Rows are uniform on the sphere, and y = <x, theta> with noise.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(records, features))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    theta = rng.normal(size=features)
    theta *= 0.9 / np.linalg.norm(theta)
    y = np.clip(x @ theta + 0.1 * rng.uniform(-1, 1, records), -1, 1)
    model = GaussianFrankWolfe("squared", L2Ball(1.0), EPSILON, DELTA, random_state=seed)
    found = model.fit(x, y).coef_
    least = np.linalg.lstsq(x, y, rcond=None)[0]  # inside the ball

    def loss(at: np.ndarray) -> float:
        return float(np.mean((x @ at - y) ** 2))

    gap = loss(np.zeros(features)) - loss(least)
    return loss(found) - loss(least), model.utility_bound(x.shape, gap)


def one_seed(records: int, widths: tuple[int, ...], seed: int) -> dict[Any, float]:
    """Excess and bound at every number of features."""
    found: dict[Any, float] = {}
    for p in widths:
        found[p], found[p, "bound"] = excess(records, p, seed)
    return found


def ball(setting: dict[str, Any]) -> GaussianFrankWolfe:
    """The estimator on sign vectors, whose rows have length sqrt(p)."""
    return GaussianFrankWolfe(
        "squared", L2Ball(1.0), setting["epsilon"], setting["delta"],
        row_bound=math.sqrt(setting["p"]),
    )  # fmt: skip


def claims(options: Options) -> Iterator[str]:
    """The excess and its bound as the width grows, and the distance to the lower bound."""
    widths = (4, 16) if options.quick else (4, 16, 64, 256)
    records = 2_000 if options.quick else RECORDS
    found = over_seeds(partial(one_seed, records, widths), options.seeds)
    for p in widths:
        mean, bound = found[p].mean(), found[p, "bound"].mean()
        yield (f"l2 ball, n = {records:,}, epsilon 1, p = {p}: width {math.sqrt(p):.0f}, excess "
               f"{mean:.4f}, bound {bound:.3f}")  # fmt: skip
    curve = Curve("width", widths, np.array([found[p] for p in widths]))
    line = Curve("width", widths, np.array([found[p, "bound"] for p in widths]))
    yield f"excess: p^({curve.slope}); bound: p^({line.slope})"
    entry = AlgorithmEntry(
        "central_regression", "GaussianFrankWolfe", estimator_loss(ball, nearby_parameter, 1.0),
        no_theorem, {},
    )  # fmt: skip
    for n in (500,) if options.quick else (500, 2_000, 8_000):
        setting = {"n": n, "p": 64, "s": 1, "epsilon": 1.0, "delta": DELTA}
        gap = measure_risk_gap(entry, setting, 2 if options.quick else 20, rng=0)
        (risk, error), free = gap.risk, gap.noiseless_risk[0]
        yield (f"central regression, p = 64, n = {n:,}: risk {risk:.4f} ± {error:.4f}, without "
               f"noise {free:.4f}, bound {gap.bound.value:.5f}: {gap.ratio:.1f} times")  # fmt: skip


FIGURES = {"frank-wolfe-width": claims}
