"""Private Frank-Wolfe, Talwar et al. (2015): excess risk against records, and the claims."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn.linear_model import lars_path_gram

from algorithms import PrivateLasso
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
from experiments.charts import (
    BLUE,
    GREEN,
    GREY,
    INK,
    PURPLE,
    RED,
    Chart,
    Curve,
    Options,
    Panel,
    curves_of,
    over_seeds,
    slopes,
)

DELTA, NOISE = 1e-6, 0.1
CLAIM = 1.0, 1e-6
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
        theta /= np.abs(theta).sum()
        return theta


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
    Way("Gumbel, ε = 1", 1.0, "gumbel", {"color": BLUE, "marker": "o", "lw": 2.2}),
    Way("Laplace, ε = 1", 1.0, "laplace", {"color": RED, "marker": "s", "mfc": "white"}),
    Way("Gumbel, ε = 4", 4.0, "gumbel", {"color": GREEN, "marker": "^"}),
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
        last: np.ndarray = path[:, -1]
        return last
    share = (radius - norms[after - 1]) / (norms[after] - norms[after - 1])
    between: np.ndarray = (1 - share) * path[:, after - 1] + share * path[:, after]
    return between


def excesses(
    truth: Truth, records: int, seed: int, ways: tuple[Way, ...] = WAYS
) -> dict[str, float]:
    """Excess of the mean loss over the least in the ball, by curve."""
    x, y = data(truth, records, seed)

    def loss(theta: np.ndarray) -> float:
        return float(np.square(x @ theta - y).mean())

    least = loss(best_in_ball(x, y))
    found = {ZERO: loss(np.zeros(truth.features)) - least}
    for way in ways:
        made = PrivateLasso(
            way.epsilon,
            DELTA,
            selection=way.selection,
            random_state=seed,
            method="frank-wolfe",
            fit_intercept=False,
        )
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


def risk(options: Options) -> Chart:
    """A panel for each truth."""
    sizes: tuple[int, ...] = (1_000, 2_000, 5_000, 10_000, 20_000)
    truths: tuple[Truth, ...] = TRUTHS
    if options.quick:
        sizes = (300, 3_000)
        truths = tuple(replace(one, features=50, spread=min(one.spread, 50)) for one in TRUTHS)
    found = over_seeds(partial(measured, truths, sizes), options.seeds)
    looks = {way.name: way.look for way in WAYS}
    looks[BOUND] = {"color": INK, "ls": "--"}
    looks[ZERO] = {"color": GREY, "ls": ":"}
    panels, ratios = [], []
    for truth in truths:
        curves = curves_of(found, truth.name, sizes, looks)
        private = curves[0].means[0]
        line = np.array([[private[0] * (n / sizes[0]) ** (-2 / 3)] for n in sizes])
        curves.append(Curve(REFERENCE, sizes, line, {"color": PURPLE, "ls": "-.", "lw": 1.2}))
        panels.append(
            Panel(truth.name, truth.title, "records n", "excess of the mean loss", curves)
        )
        times = curves[len(WAYS)].means[0] / private
        ratios.append(f"{truth.name}: the bound is {times.min():.0f} to {times.max():.0f} times "
                      f"what {WAYS[0].name} has")  # fmt: skip
    return Chart(panels, [*slopes(panels), *ratios])


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


def by_features(truths: tuple[Truth, ...], records: int, seed: int) -> dict[int, float]:
    """Excess of Gumbel selection at epsilon 1."""
    return {one.features: excesses(one, records, seed, WAYS[:1])[WAYS[0].name] for one in truths}


def claims(options: Options) -> Iterator[str]:
    """A line for each number of docs/frank-wolfe.md that no figure shows: errata E18 to E23."""
    for noise, relation in (("laplace", "replace"), ("gumbel", "replace"),
                            ("laplace", "add-remove")):  # fmt: skip
        for iterates in (50,) if options.quick else (50, 200):
            yield f"E18 {verdict(printed_selections(*CLAIM, iterates, noise, relation))}"
    unit = [noise_scale(*CLAIM, 49, kind, 2.0) for kind in ("gumbel", "laplace")]
    printed: Any = printed_selections(*CLAIM, 50).plan
    yield (f"E18 noise for (1, 1e-6), T = 50, in L1 |C| / n: Gumbel {unit[0]:.1f}, Laplace "
           f"{unit[1]:.1f}, printed {printed.part.scale:.1f}")  # fmt: skip
    ranges = ", ".join(
        f"{laplace_log_ratio_range(*instance):.3f}" for instance in WIDE_RANGE_EXAMPLES
    )
    yield f"E18b range of Laplace selections over e0, two instances: {ranges}"
    yield f"E19 T = {printed.count + 1} iterates take {printed.count} selections"
    for rounds in (9, 49):
        excess, bound = linear_excess(rounds)
        yield (f"E20 linear loss, no curvature, T = {rounds + 1}: excess {excess:.2e}, "
               f"2 h / (T (T + 1)) = {bound:.2e}")  # fmt: skip
    yield (f"E21 curvature {curvature():.4g} (declared {Bounds(1.0, 1.0, 1.0).curvature():g}), "
           f"4 as printed")  # fmt: skip
    size, delta = 1e6, 1e-9
    theorem = math.log(size * size) * math.sqrt(math.log(1 / delta))
    corollary = math.log(size * size / delta)
    yield (f"E22 n = p = 1e6, delta = 1e-9: factor {theorem:.0f} by Theorem 2.5, {corollary:.0f} "
           f"by Corollary 2.7")  # fmt: skip
    m = brentq(lambda m: m / math.log(m) - 1_000, 10, 1e6)
    yield f"E23 k >= p needs w >= 1,000: m = {m:.0f} and p = {1_000 * m**2:.2g}"
    records, features = (200, (50, 200)) if options.quick else (5_000, (50, 200, 800))
    truths = tuple(Truth("sparse", p, 5, harmonic=False) for p in features)
    found = over_seeds(partial(by_features, truths, records), options.seeds)
    curve = Curve("features", features, np.array([found[p] for p in features]))
    yield f"excess at n = {records:,}, epsilon 1, by {curve}: p^({curve.slope})"


FIGURES = {"frank-wolfe-risk": risk, "frank-wolfe-claims": claims}
