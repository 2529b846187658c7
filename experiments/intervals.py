"""Table of docs/algorithms.md: how often intervals cover what they are for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from algorithms import LabelIHT, LocalMean, PrivateMean
from audits.runner.california_housing import load
from experiments.charts import Options, over_seeds

HEAD = "| intervals of | data | users | ε, δ | cover |"
THETA = np.array([0.5, -0.4, 0.3] + [0.0] * 17)
CENTRE = np.array([0.3, -0.2, 0.1, 0.0, 0.05])
NUMERIC = 8  # features of California housing that are no indicators
Drawn = tuple[Any, np.ndarray]  # data of a fit, and what its intervals are for


def simulated_vectors(users: int, rng: np.random.Generator) -> Drawn:
    """Vectors in the unit ball around a known mean."""
    return (CENTRE + 0.3 * rng.uniform(-1, 1, (users, 5)),), CENTRE


def simulated_labels(users: int, rng: np.random.Generator) -> Drawn:
    """Sign vectors, and labels of known coefficients with noise."""
    x = rng.choice([-1.0, 1.0], (users, THETA.size))
    return (x, x @ THETA + rng.uniform(-0.1, 0.1, users)), THETA


@lru_cache
def districts() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numeric features of all districts, their values, and least squares on all of them."""
    data = load()
    x, y = (np.concatenate([data.train[i], data.test[i]]) for i in (0, 1))
    x = np.column_stack([x[:, :NUMERIC], np.ones(len(y))])
    return x, y, np.linalg.lstsq(x, y, rcond=None)[0]


def housing_vectors(users: int, rng: np.random.Generator) -> Drawn:
    """Districts drawn with replacement; their features have length 1 at most."""
    x = districts()[0][:, :NUMERIC] / math.sqrt(NUMERIC)
    return (x[rng.integers(len(x), size=users)],), x.mean(axis=0)


def housing_values(users: int, rng: np.random.Generator) -> Drawn:
    """Districts drawn with replacement, and their values."""
    x, y, best = districts()
    some = rng.integers(len(x), size=users)
    return (x[some], y[some]), best


@dataclass(frozen=True)
class Case:
    """Data, a fit, and how they are named in the table."""

    name: str
    data: str
    users: int
    epsilon: float
    delta: float
    draw: Callable[[int, np.random.Generator], Drawn]
    settings: tuple[tuple[str, Any], ...] = ()

    def covered(self, fits: int, seed: int) -> float:
        """The share of coefficients that intervals of .95 cover, over so many fits."""
        kind: Any = {"LocalMean": LocalMean, "LabelIHT": LabelIHT}.get(self.name, PrivateMean)
        claim = {"epsilon": self.epsilon} | ({} if kind is LocalMean else {"delta": self.delta})
        hits = []
        for number in range(fits):
            rng = np.random.default_rng((seed, number))
            data, truth = self.draw(self.users, rng)
            ends = kind(**claim, **dict(self.settings), random_state=rng).fit(*data).interval(0.95)
            hits.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        return float(np.mean(hits))


SHARED = "PrivateMean, variance share .2"
SHARE, LABELS = (("variance_share", 0.2),), (("sparsity", 3), ("y_bound", 1.4))
PURE = (*LABELS, ("randomizer", "bounded"))
CASES = (
    Case(SHARED, "simulated", 1_000, 1.0, 1e-6, simulated_vectors, SHARE),
    Case(SHARED, "simulated", 10_000, 1.0, 1e-6, simulated_vectors, SHARE),
    Case(SHARED, "simulated", 1_000, 1.0, 0.0, simulated_vectors, SHARE),
    Case(SHARED, "California housing", 2_000, 1.0, 1e-6, housing_vectors, SHARE),
    Case("PrivateMean", "California housing", 2_000, 1.0, 1e-6, housing_vectors),
    Case("LocalMean", "simulated", 2_000, 1.0, 0.0, simulated_vectors),
    Case("LocalMean", "California housing", 2_000, 4.0, 0.0, housing_vectors),
    Case("LabelIHT", "simulated", 2_000, 1.0, 1e-6, simulated_labels, LABELS),
    Case("LabelIHT", "simulated", 2_000, 1.0, 0.0, simulated_labels, PURE),
    Case("LabelIHT", "California housing", 2_000, 4.0, 1e-6, housing_values, LABELS),
)  # fmt: skip


def one_seed(fits: int, seed: int) -> dict[int, float]:
    """The coverage of every case."""
    return {number: case.covered(fits, seed) for number, case in enumerate(CASES)}


def coverage(options: Options) -> Iterator[str]:
    """A row for each case."""
    found = over_seeds(partial(one_seed, 2 if options.quick else 25), options.seeds)
    yield from (HEAD, "|" + " --- |" * 5)
    for number, case in enumerate(CASES):
        claim = f"{case.epsilon:g}, {case.delta:g}"
        share = found[number].mean()
        yield f"| {case.name} | {case.data} | {case.users:,} | {claim} | {share:.3f} |"


FIGURES = {"intervals": coverage}
