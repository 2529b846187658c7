"""Private Frank-Wolfe for squared loss over the l1 ball: constants, and the one pass a round.

References: Talwar, Thakurta & Zhang (2015), Algorithm 2; constants recomputed (docs/why.md).
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.numerics import Array
from accountant.zcdp import ZCDP
from mechanisms.noisy_max import NoisyMax

LARGE = 2**22  # entries of a block that one thread clips


@final
@dataclass(frozen=True, slots=True)
class Bounds:
    """Public bounds that make the sensitivity true: |x| and |y| are clipped to them."""

    radius: float
    x: float
    y: float

    def score_sensitivity(self, records: int, relation: str) -> float:
        """How much one record can move the gradient's product with a vertex."""
        # |d/dtheta_j (<x, theta> - y)^2| <= L1 = 2 x (radius x + y); a vertex has norm `radius`
        one = self.radius * 2 * self.x * (self.radius * self.x + self.y) / records
        return 2 * one if relation == "replace" else one

    def curvature(self) -> float:
        """Curvature constant Gamma: ``2 max |<x, a - b>|^2`` over the ball (Definition 2.1)."""
        return 8 * (self.radius * self.x) ** 2


def best_rounds(
    bounds: Bounds, sensitivity: float, features: int, selection: str, epsilon: float, delta: float
) -> int:
    """T* that minimises the utility bound ``2 Gamma / T + noise(T)``.

    Noise grows as sqrt T where rho is shared, and as T where pure epsilon is (delta 0).  On small
    data T* is several times too long: the bound's constants are worst cases.
    """
    from accountant.calibration import calibrate

    vertices = 2 * features
    # expected loss of one selection over its noise scale: ln|S| for Gumbel, H_|S| for Laplace
    harmonic = math.log(vertices) + 0.5772156649 + 1 / (2 * vertices)
    regret = math.log(vertices) if selection == "gumbel" else harmonic
    if delta == 0:
        # e0 = epsilon / T, scale 2 sensitivity / e0: noise(T) = a T, T* = sqrt(2 Gamma / a)
        a = 2 * sensitivity / epsilon * regret
        return max(1, round(math.sqrt(2 * bounds.curvature() / a)))
    # e0 = sqrt(8 rho / T) for Gumbel, sqrt(2 rho / T) for Laplace: noise(T) = a sqrt T,
    # T* = (4 Gamma / a)^(2/3)
    rho = calibrate(concentrated, epsilon=epsilon, delta=delta, accountant=ZCDP())
    range_ = math.sqrt((8 if selection == "gumbel" else 2) * rho)
    a = 2 * sensitivity / range_ * regret
    rounds: float = (4 * bounds.curvature() / a) ** (2 / 3)
    return max(1, round(rounds))


def concentrated(rho: float) -> Any:
    """Any release of this rho."""
    from accountant.concentrated import ZCDPLoss

    return ZCDPLoss(rho)


class Scores:
    """The query of every round: how well each vertex of the ball descends, on clipped data.

    It keeps the residual ``X theta - y`` across the rounds and updates it in place, so a round
    costs one pass over X.  One object serves one run and is asked once a round.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._x: Any = None
        self._y: Array = np.empty(0)
        self._residual: Array = np.empty(0)
        self._step: tuple[float, int, float] | None = None

    def move(self, step: float, feature: int, vertex: float) -> None:
        """Note the public move ``theta <- (1 - step) theta + step * vertex * e_feature``."""
        self._step = (step, feature, vertex)

    def __call__(self, data: tuple[Any, Any]) -> Array:
        """Scores of the vertices -radius e_j, then of +radius e_j; greater descends more."""
        if self._x is None:
            self._x = clipped(data[0], self._bounds.x)
            self._y = clipped(data[1], self._bounds.y)
            self._residual = -self._y
        if self._step is not None:
            # X theta - y moves by (1 - step) (X theta - y) + step (vertex x_j - y)
            step, feature, vertex = self._step
            self._residual *= 1 - step
            self._residual += step * (vertex * self._x[:, feature] - self._y)
        gradient = self._residual @ self._x
        gradient *= 2 * self._bounds.radius / len(self._y)
        return np.concatenate([gradient, -gradient])


def clipped(array: Any, bound: float) -> Array:
    """The array with entries clipped to ``[-bound, bound]``; itself where nothing exceeds it."""
    values: Array = np.asarray(array, dtype=float)
    inside = values.max(initial=0.0) <= bound and values.min(initial=0.0) >= -bound
    if inside:
        return values
    # The cost is the first touch of the copy's memory, so blocks of rows are touched side by side.
    copy = np.empty_like(values)
    step = max(1, LARGE * len(values) // values.size)
    blocks = [slice(start, start + step) for start in range(0, len(values), step)]
    with ThreadPoolExecutor() as pool:
        # the list waits for every block and raises what any of them raised
        list(pool.map(lambda rows: np.clip(values[rows], -bound, bound, out=copy[rows]), blocks))
    return copy


def descend(ledger: Any, mechanism: NoisyMax, rounds: int, bounds: Bounds) -> Array:
    """Run the rounds through the gate and return the last iterate."""
    theta, scores = np.zeros(ledger.shape[1]), Scores(bounds)
    for t in range(1, rounds + 1):
        chosen = int(ledger.release(mechanism, scores))
        feature = chosen % theta.size
        vertex = -bounds.radius if chosen < theta.size else bounds.radius
        step = 2 / (t + 2)
        theta *= 1 - step
        theta[feature] += step * vertex
        scores.move(step, feature, vertex)
    return theta
