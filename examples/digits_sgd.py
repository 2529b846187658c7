"""DP-SGD in numpy on scikit-learn's digits: the honest run, and runs with one fault.

A canary is a record whose gradient points along one parameter and is 10 times as long as the
clipping length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from accountant import GaussianLoss, Plan, PoissonSampled, Repeat

Array = NDArray[np.float64]
RATE, STEPS, NOISE, CLIP, DELTA = 0.5, 64, 4.0, 1.0, 1e-5
HIDDEN, PIXELS, DIGITS, LEARNING_RATE = 64, 64, 10, 2.0
FIRST = (PIXELS + 1) * HIDDEN  # parameters of the first layer
PARAMETERS = FIRST + (HIDDEN + 1) * DIGITS
LENGTH = 10.0  # of a canary's gradient, before it is clipped


@dataclass(frozen=True)
class Run:
    """A training run: the honest one by default, or with one fault."""

    name: str = "honest"
    noise: float = NOISE
    unclipped_layer: bool = False  # the first layer is not clipped
    clips_average: bool = False  # the average is clipped, not each gradient
    shuffles: bool = False  # each record once an epoch, though Poisson samples are claimed
    divides_by_batch: bool = False  # the sum is divided by the size of the batch that was drawn


RUNS = (
    Run(),
    Run("half the noise", noise=NOISE / 2),
    Run("one layer is not clipped", unclipped_layer=True),
    Run("clipped after averaging", clips_average=True),
    Run("shuffled, not Poisson", shuffles=True),
    Run("divided by the batch drawn", divides_by_batch=True),
)


def claim(share: float = 1.0) -> Plan:
    """Return the plan that every run claims to keep, or that of a share of its noise."""
    return Repeat(PoissonSampled(GaussianLoss(1 / (share * NOISE)), RATE), STEPS)


def digits() -> tuple[Array, NDArray[np.int64]]:
    """Return the 1,797 images, pixels in [0, 1], and what they show."""
    from sklearn.datasets import load_digits

    found: Any = load_digits()
    return found.data / 16.0, found.target


def gradients(
    weights: Array, images: Array, labels: NDArray[np.int64], run: Run
) -> tuple[Array, Array]:
    """Return the sum of the images' gradients, each clipped as the run does, and their losses.

    The gradient of a layer is (inputs, 1) times the derivatives at its outputs, so its length is
    the product of theirs.
    """
    first, last = weights[:FIRST].reshape(-1, HIDDEN), weights[FIRST:].reshape(-1, DIGITS)
    inputs = np.column_stack([images, np.ones(len(images))])
    hidden = np.column_stack([np.tanh(inputs @ first), np.ones(len(images))])
    logits = log_softmax(hidden @ last, axis=1)
    at_last = np.exp(logits) - np.eye(DIGITS)[labels]
    at_first = (at_last @ last[:-1].T) * (1 - hidden[:, :-1] ** 2)
    pairs = ((inputs, at_first), (hidden, at_last))
    squared = sum((left**2).sum(axis=1) * (right**2).sum(axis=1) for left, right in pairs)
    factor = np.ones(len(images))
    if not run.clips_average:
        factor = np.minimum(1.0, CLIP / np.sqrt(np.maximum(squared, 1e-30)))
    first_factor = np.ones(len(images)) if run.unclipped_layer else factor
    scaled = (at_first * first_factor[:, None], at_last * factor[:, None])
    added = [left.T @ right for (left, _), right in zip(pairs, scaled, strict=True)]
    losses = -logits[np.arange(len(images)), labels]
    return np.concatenate([one.ravel() for one in added]), losses


def start(seed: int) -> Array:
    """Return the point where the training begins."""
    return np.random.default_rng([seed, 1]).normal(scale=0.1, size=PARAMETERS)


def canary_gradients(chosen: NDArray[np.int64], run: Run) -> Array:
    """Return the sum of the gradients of the canaries along the parameters that are chosen."""
    found, clipped = np.zeros(PARAMETERS), min(LENGTH, CLIP)
    found[chosen] = LENGTH if run.clips_average else clipped
    if run.unclipped_layer:
        found[chosen[chosen < FIRST]] = LENGTH
    return found


def batches(count: int, run: Run, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return the records of every step: Poisson samples, or the parts of shuffled epochs."""
    if not run.shuffles:
        return [np.flatnonzero(rng.random(count) < RATE) for _ in range(STEPS)]
    parts = round(1 / RATE)
    epochs = (np.array_split(rng.permutation(count), parts) for _ in range(STEPS // parts))
    return [part for epoch in epochs for part in epoch]


def train(
    run: Run, images: Array, labels: NDArray[np.int64], inside: NDArray[np.int64], seed: int
) -> tuple[Array, Array]:
    """Train on the images and the canaries inside; return what each step released, and all points.

    The last point is where the training ends.
    """
    rng, weights = np.random.default_rng(seed), start(seed)
    expected = RATE * (len(images) + inside.size)
    released, points = np.empty((STEPS, PARAMETERS)), np.empty((STEPS + 1, PARAMETERS))
    points[0] = weights
    for step, batch in enumerate(batches(len(images) + inside.size, run, rng)):
        drawn = batch[batch < len(images)]
        total, _ = gradients(weights, images[drawn], labels[drawn], run)
        total += canary_gradients(inside[batch[batch >= len(images)] - len(images)], run)
        if run.clips_average:
            total *= min(1.0, CLIP * expected / float(np.linalg.norm(total)))
        total += rng.normal(scale=run.noise * CLIP, size=PARAMETERS)
        size = max(batch.size, 1) if run.divides_by_batch else expected
        released[step] = total / size * expected
        weights = points[step + 1] = weights - LEARNING_RATE * total / size
    return released, points
