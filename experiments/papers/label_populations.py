"""Populations of users with public rows and private labels, whose risk is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from scipy.special import softmax

from algorithms.label_privacy.label_losses import LABEL_LOSSES
from experiments.datasets import mnist as load_mnist

EPSILON, COMPONENTS = 1.0, 50
Rows = tuple[np.ndarray, np.ndarray]  # public rows, private labels
Excess = Callable[[np.ndarray], float]


@dataclass(frozen=True)
class Problem:
    """A population: how users are drawn from it, and the excess risk of a theta on it."""

    name: str
    title: str
    classes: int
    loss: str
    diameter: float
    batch_size: int
    sizes: tuple[int, ...]
    drawn: Callable[[int, int], tuple[Rows, Excess]]


def hardest(users: int, seed: int) -> tuple[Rows, Excess]:
    """The labels of the lower bound: in pairs of probability (1 +- d) / K, d the hardest for n."""
    classes, rng = 100, np.random.default_rng([seed, users])
    d = classes / (2 * math.sqrt(2 * users * math.expm1(EPSILON) ** 2))
    sign = rng.choice([-1.0, 1.0], classes // 2)
    shares = (1 + d * np.stack([sign, -sign], axis=1).ravel()) / classes
    away = np.linalg.norm(shares - 1 / classes)  # the least risk in the unit ball is minus that

    def excess(theta: np.ndarray) -> float:
        return float(away - (shares - 1 / classes) @ theta[:, 0])

    return (np.ones((users, 1)), rng.choice(classes, users, p=shares)), excess


@lru_cache
def logistic_truth() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A theta with rows of length 5, rows of length 1, and the labels' shares there."""
    rng = np.random.default_rng(99)
    theta, rows = (unit(rng.normal(size=(count, 3))) for count in (100, 2_000))
    theta *= 5
    return theta, rows, softmax(rows @ theta.T, axis=1)


def logistic(users: int, seed: int) -> tuple[Rows, Excess]:
    """100 labels as likely as a theta of length 50 says; excess over 2,000 fresh rows."""
    rng, (true, fresh, shares) = np.random.default_rng([seed, users]), logistic_truth()
    x = unit(rng.normal(size=(users, 3)))
    y = (x @ true.T + rng.gumbel(size=(users, 100))).argmax(axis=1)

    def risk(theta: np.ndarray) -> float:
        return float((LABEL_LOSSES["logistic"].values(fresh @ theta.T) * shares).sum(axis=1).mean())

    least = risk(true)
    return (x, y), lambda theta: risk(theta) - least


@lru_cache
def digits(folder: Path, radius: float) -> tuple[np.ndarray, np.ndarray, float]:
    """10,000 digits: principal components and a constant, rows of length 1; the least risk."""
    images, y = load_mnist(folder)
    images = images - images.mean(axis=0)
    _, axes = np.linalg.eigh(images.T @ images)
    x = images @ axes[:, -COMPONENTS:]
    x = unit(np.hstack([x / x.std(), np.ones((len(y), 1))]))
    # accelerated projected gradients; the Hessian is at most 1/2 on rows of length 1
    theta = ahead = np.zeros((10, x.shape[1]))
    for step in range(300):
        gradient = (softmax(x @ ahead.T, axis=1) - np.eye(10)[y]).T @ x / len(y)
        moved = ahead - 2 * gradient
        moved *= min(1.0, radius / np.linalg.norm(moved))
        theta, ahead = moved, moved + step / (step + 3) * (moved - theta)
    return x, y, risk_of(theta, x, y)


def risk_of(theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """Mean logistic loss."""
    values = LABEL_LOSSES["logistic"].values(x @ theta.T)
    return float(values[np.arange(len(y)), y].mean())


def mnist(folder: Path, radius: float, users: int, seed: int) -> tuple[Rows, Excess]:
    """Users with replacement: the digits are the population, so that its risk is known."""
    x, y, least = digits(folder, radius)
    who = np.random.default_rng([seed, users]).integers(0, len(y), users)
    return (x[who], y[who]), lambda theta: risk_of(theta, x, y) - least


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1."""
    scaled: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def problems(folder: Path, quick: bool) -> tuple[Problem, ...]:
    """Two of 100 simulated labels, and ten digits."""
    few = (1_000, 10_000) if quick else (1_000, 3_000, 10_000, 30_000, 100_000)
    many = (3_000, 30_000) if quick else (3_000, 10_000, 30_000, 100_000, 300_000)
    diameter = 2 * float(np.linalg.norm(logistic_truth()[0]))
    return (
        Problem("hardest", "hardest labels for every n, K = 100, D = 2", 100, "linear", 2.0, 16,
                many, hardest),
        Problem("logistic", "logistic loss, K = 100, D = 100", 100, "logistic", diameter, 64, many,
                logistic),
        Problem("mnist", "MNIST, logistic loss, K = 10, D = 20", 10, "logistic", 20.0, 8, few,
                partial(mnist, folder, 10.0)),
    )  # fmt: skip
