"""Numbers of docs/frank-wolfe.md that no figure shows: errata E18 to E23."""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np
from charts import Curve, over_seeds
from frank_wolfe_risk import WAYS, Truth, excesses
from scipy.optimize import brentq

from algorithms.base.glm_losses import DeclaredLoss
from algorithms.frank_wolfe.constants import Bounds, noise_scale
from algorithms.frank_wolfe.polytope import FrankWolfe
from algorithms.frank_wolfe.polytopes import L1Ball
from audits.papers.frank_wolfe import (
    WIDE_RANGE_EXAMPLES,
    laplace_log_ratio_range,
    printed_selections,
    verdict,
)

CLAIM = 1.0, 1e-6


def linear_excess(rounds: int) -> tuple[float, float]:
    """Excess of a linear loss after rounds without noise, and the bound with its second term."""
    x = np.zeros((10, 3))
    slope = np.array([0.5, -1.0, 0.25])
    loss = DeclaredLoss(lambda theta, rows, y: np.tile(slope, (len(rows), 1)), 1.0, 1e-300)
    walk = FrankWolfe(loss, L1Ball(1.0), 1e9, 1e-6, rounds=rounds, random_state=0)
    found = walk.fit(x, x[:, 0]).coef_
    least = -np.abs(slope).max()  # of the ball; the walk starts at 0, with a gap of 1
    return float(slope @ found - least), walk.utility_bound(x.shape, -least)


def curvature() -> float:
    """Definition 2.1 at x = 1, from e_1 to -e_1: 2 / step^2 times what the tangent misses."""
    x, start, end, step = 1.0, 1.0, -1.0, 1e-3
    moved = start + step * (end - start)
    missed = (x * moved) ** 2 - (x * start) ** 2 - 2 * x * x * start * (moved - start)
    return 2 * missed / step**2


def by_features(truths: tuple[Truth, ...], seed: int) -> dict[int, float]:
    """Excess of Gumbel selection at epsilon 1, 5,000 records."""
    return {truth.features: excesses(truth, 5_000, seed)[WAYS[0].name] for truth in truths}


def main() -> None:
    """Print them."""
    began = time.perf_counter()
    for noise, relation in (("laplace", "replace"), ("gumbel", "replace"),
                            ("laplace", "add-remove")):  # fmt: skip
        for iterates in (50, 200):
            print("E18", verdict(printed_selections(*CLAIM, iterates, noise, relation)))
    unit = [noise_scale(*CLAIM, 49, kind, 2.0) for kind in ("gumbel", "laplace")]
    printed = printed_selections(*CLAIM, 50).plan.part.scale
    print(f"E18 noise for (1, 1e-6), T = 50, in L1 |C| / n: Gumbel {unit[0]:.1f}, Laplace "
          f"{unit[1]:.1f}, printed {printed:.1f}")  # fmt: skip
    ranges = ", ".join(
        f"{laplace_log_ratio_range(*instance):.3f}" for instance in WIDE_RANGE_EXAMPLES
    )
    print(f"E18b range of Laplace selections over e0, two instances: {ranges}")
    longer = printed_selections(*CLAIM, 50).plan.count + 1
    print(f"E19 T = {longer} iterates take {longer - 1} selections")
    for rounds in (9, 49):
        excess, bound = linear_excess(rounds)
        print(f"E20 linear loss, no curvature, T = {rounds + 1}: excess {excess:.2e}, "
              f"2 h / (T (T + 1)) = {bound:.2e}")  # fmt: skip
    print(f"E21 curvature {curvature():.4g} (declared {Bounds(1.0, 1.0, 1.0).curvature():g}), "
          f"4 as printed")  # fmt: skip
    size, delta = 1e6, 1e-9
    theorem = math.log(size * size) * math.sqrt(math.log(1 / delta))
    corollary = math.log(size * size / delta)
    print(f"E22 n = p = 1e6, delta = 1e-9: factor {theorem:.0f} by Theorem 2.5, {corollary:.0f} "
          f"by Corollary 2.7")  # fmt: skip
    m = brentq(lambda m: m / math.log(m) - 1_000, 10, 1e6)
    print(f"E23 k >= p needs w >= 1,000: m = {m:.0f} and p = {1_000 * m**2:.2g}")
    truths = tuple(Truth("sparse", features, 5, harmonic=False) for features in (50, 200, 800))
    found = over_seeds(partial(by_features, truths), 20)
    curve = Curve("features", tuple(found), np.array(list(found.values())))
    print(f"excess at n = 5,000, epsilon 1, by {curve}: p^({curve.slope})")
    print(f"{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
