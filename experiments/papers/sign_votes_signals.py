"""Theorems 3 and 4 of Liu, Tu, Mao & Chen (2022): how small a signal may be (beta-min)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from algorithms import SignVote
from algorithms.voting.machine_votes import lasso_signs, mean_signs, threshold_rule
from experiments.charts import Curve, Options, over_seeds
from experiments.papers.voting_machines import DELTA, correlated

EPSILON, FEATURES, SIGNALS, SELECT, RECORDS = 1.0, 50, 5, 5, 200
STRENGTHS = tuple(0.02 * 1.25**k for k in range(20))
Votes = Callable[[np.ndarray, int, int], np.ndarray]


def truth(strength: float) -> np.ndarray:
    """SIGNALS coordinates of this size, evenly spread, their signs in turns."""
    theta = np.zeros(FEATURES)
    theta[:: FEATURES // SIGNALS] = strength * (-1.0) ** np.arange(SIGNALS)
    return theta


def threshold(machines: int) -> float:
    """The rule of the theorems, with the constant that `SignVote` takes."""
    return threshold_rule(machines, RECORDS, FEATURES, SELECT, EPSILON, DELTA)


def mean_votes(theta: np.ndarray, machines: int, seed: int) -> np.ndarray:
    """Votes on the signs of means (Theorem 3)."""
    errors = correlated(np.random.default_rng(seed), (machines, FEATURES)) / math.sqrt(RECORDS)
    least = threshold(machines)
    return np.array([mean_signs(row[None], least, SELECT) for row in theta + errors], np.int8)


def lasso_votes(theta: np.ndarray, machines: int, seed: int) -> np.ndarray:
    """Votes on the signs of a regression (Theorem 4)."""
    rng, votes, least = np.random.default_rng(seed), [], threshold(machines)
    for _ in range(machines):
        x = correlated(rng, (RECORDS, FEATURES))
        votes.append(lasso_signs((x, x @ theta + rng.normal(size=RECORDS)), least, SELECT))
    return np.array(votes, dtype=np.int8)


def least_signal(votes: Votes, machines: int, seed: int) -> float:
    """The least strength of the grid at which all signs are right, by halving."""

    def right(strength: float) -> bool:
        theta = truth(strength)
        drawn = votes(theta, machines, seed)
        model = SignVote(EPSILON, DELTA, SELECT, estimator=lambda vote: vote[0], random_state=seed)
        found = model.fit([row[None] for row in drawn]).signs_
        return bool((found == np.sign(theta)).all())

    low, high = -1, len(STRENGTHS) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if right(STRENGTHS[middle]) else (middle, high)
    return STRENGTHS[high]


def one_seed(votes: Votes, counts: tuple[int, ...], seed: int) -> dict[Any, float]:
    """The least signal for every number of machines."""
    return {machines: least_signal(votes, machines, seed) for machines in counts}


def claims(options: Options) -> Iterator[str]:
    """The least signal that is found, beside the terms of the theorems' condition."""
    kinds: dict[str, tuple[Votes, tuple[int, ...]]] = {
        "Theorem 3, means": (mean_votes, (50, 200, 800, 3_200)),
        "Theorem 4, regression": (lasso_votes, (50, 100, 200, 400)),
    }
    for name, (votes, counts) in kinds.items():
        some = counts[:1] if options.quick else counts
        found = over_seeds(partial(one_seed, votes, some), options.seeds)
        for machines in some:
            sampling = math.sqrt(math.log(FEATURES) / (machines * RECORDS))
            rule = threshold(machines)
            yield (f"{name}, {machines:,} machines: least signal {found[machines].mean():.3f}, "
                   f"{found[machines].mean() / rule:.2f} times the condition of C = 5 "
                   f"({rule:.3f}), sqrt(ln p / N) = {sampling:.4f}")  # fmt: skip
        if len(some) > 1:
            curve = Curve(name, some, np.array([found[m] for m in some]))
            rules = np.polyfit(np.log(some), np.log([threshold(m) for m in some]), 1)[0]
            yield f"{name}: least signal m^({curve.slope}), condition m^({rules:.2f})"


FIGURES = {"sign-votes-signals": claims}
