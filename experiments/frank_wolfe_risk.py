"""Excess risk of private Frank-Wolfe against records, and the bound of Talwar et al. (2015)."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from charts import Chart, Curve, Panel, main, over_seeds, slopes
from sklearn.linear_model import lars_path_gram

from algorithms import PrivateLasso
from algorithms.frank_wolfe.polytope import FrankWolfe
from algorithms.frank_wolfe.polytopes import L1Ball

DELTA, NOISE = 1e-6, 0.1
Key = tuple[str, str, int]  # panel, curve, records


@dataclass(frozen=True)
class Truth:
    """A true parameter of l1 norm 1, on the edge of the ball."""

    name: str
    features: int
    spread: int  # coordinates that are not 0
    harmonic: bool  # the j-th like 1 / j, else of equal size

    @property
    def title(self) -> str:
        """What is true."""
        law = "the j-th like 1/j" if self.harmonic else "of equal size"
        return f"true θ: {self.spread} of {self.features} coordinates, {law}"

    @property
    def theta(self) -> np.ndarray:
        """Signs in turns."""
        theta, j = np.zeros(self.features), np.arange(self.spread)
        sizes = 1 / (j + 1) if self.harmonic else np.ones(self.spread)
        theta[j * (self.features // self.spread)] = (-1.0) ** j * sizes
        return theta / np.abs(theta).sum()


@dataclass(frozen=True)
class Way:
    """A private fit."""

    name: str
    epsilon: float
    selection: str
    look: dict[str, object]


TRUTHS = (
    Truth("sparse", 100, 5, harmonic=False),
    Truth("harmonic", 200, 200, harmonic=True),
)
WAYS = (
    Way("Gumbel, ε = 1", 1.0, "gumbel", {"color": "#4e79a7", "marker": "o", "lw": 2.2}),
    Way("Laplace, ε = 1", 1.0, "laplace", {"color": "#f28e2b", "marker": "s", "mfc": "white"}),
    Way("Gumbel, ε = 4", 4.0, "gumbel", {"color": "#59a14f", "marker": "^"}),
)
BOUND, ZERO, REFERENCE = "bound for Gumbel, ε = 1", "θ = 0", "slope −2/3"


def data(truth: Truth, records: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """x uniform on {-1, 1}^p, y = <x, theta> + U[-.1, .1], within [-1, 1]."""
    rng = np.random.default_rng([seed, records, truth.features])
    x = rng.integers(0, 2, (records, truth.features), dtype=np.int8) * 2.0 - 1
    return x, np.clip(x @ truth.theta + rng.uniform(-NOISE, NOISE, records), -1.0, 1.0)


def best_in_ball(x: np.ndarray, y: np.ndarray, radius: float = 1.0) -> np.ndarray:
    """Least squares over the l1 ball: the point of the Lasso path with that norm."""
    _, _, path = lars_path_gram(x.T @ y, x.T @ x, n_samples=len(y), method="lasso")
    norms = np.abs(path).sum(axis=0)
    after = int(np.searchsorted(norms, radius))
    if after == len(norms):
        return path[:, -1]
    share = (radius - norms[after - 1]) / (norms[after] - norms[after - 1])
    return (1 - share) * path[:, after - 1] + share * path[:, after]


def excesses(truth: Truth, records: int, seed: int) -> dict[str, float]:
    """Excess of the mean loss over the least in the ball, by curve."""
    x, y = data(truth, records, seed)

    def loss(theta: np.ndarray) -> float:
        return float(np.square(x @ theta - y).mean())

    least = loss(best_in_ball(x, y))
    found = {ZERO: loss(np.zeros(truth.features)) - least}
    for way in WAYS:
        made = PrivateLasso(way.epsilon, DELTA, selection=way.selection, random_state=seed)
        found[way.name] = loss(made.fit(x, y).coef_) - least
    walk = FrankWolfe("squared", L1Ball(1.0), 1.0, DELTA)
    return found | {BOUND: walk.utility_bound(x.shape, found[ZERO])}


def measured(truths: tuple[Truth, ...], sizes: tuple[int, ...], seed: int) -> dict[Key, float]:
    """The same for every truth and number of records."""
    return {
        (truth.name, name, records): value
        for truth in truths
        for records in sizes
        for name, value in excesses(truth, records, seed).items()
    }


def panels(options: argparse.Namespace) -> list[Panel]:
    """A panel for each truth."""
    sizes = (300, 3_000) if options.quick else (1_000, 2_000, 5_000, 10_000, 20_000)
    truths = TRUTHS
    if options.quick:
        truths = tuple(
            replace(truth, features=50, spread=min(truth.spread, 50)) for truth in TRUTHS
        )
    found = over_seeds(partial(measured, truths, sizes), options.seeds)
    looks = {way.name: way.look for way in WAYS}
    looks[BOUND] = {"color": "#222222", "ls": "--"}
    looks[ZERO] = {"color": "#888888", "ls": ":"}
    drawn = []
    for truth in truths:
        curves = [
            Curve(name, sizes, np.array([found[truth.name, name, n] for n in sizes]), look)
            for name, look in looks.items()
        ]
        start = curves[0].means[0][0]
        line = np.array([[start * (n / sizes[0]) ** (-2 / 3)] for n in sizes])
        curves.append(Curve(REFERENCE, sizes, line, {"color": "#b07aa1", "ls": "-.", "lw": 1.2}))
        drawn.append(
            Panel(truth.name, truth.title, "records n", "excess of the mean loss", tuple(curves))
        )
    return drawn


def told(drawn: list[Panel]) -> list[str]:
    """Slopes, and how far below the bound."""
    lines = slopes(drawn)
    for panel in drawn:
        curves = {curve.name: curve for curve in panel.curves}
        ratios = curves[BOUND].means[0] / curves[WAYS[0].name].means[0]
        lines.append(f"{panel.name}: the bound is {ratios.min():.0f} to {ratios.max():.0f} times "
                     f"what {WAYS[0].name} has")  # fmt: skip
    return lines


CHART = Chart(
    "frank_wolfe_risk",
    "Private Frank-Wolfe over the l1 ball: T* rounds, δ = 1e-6, one record replaced",
    panels,
    told,
)

if __name__ == "__main__":
    main(CHART)
