"""Shares of classes and mean probabilities, released: class weights, and a calibrated constant.

Balanced weights are in proportion to 1 / share of a class, so that all classes count alike.  The
shares are released before the descent, at a cost that the plan has.

A descent by clipped gradients ends where the mean probability of a rare class is not its share: the
gradients of its records are the longest, and more of them are clipped.  So both are released after
the descent, and the constant is moved by the difference of their logarithms (King & Zeng 2001).
docs/proofs/clipped_gradients.md, point 3b, proves how far one record moves each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from scipy.special import expit, softmax

from accountant.domains import POSITIVE
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.adjacency import Adjacency
from algorithms.base.clipped_gradient_descent import WITHIN, FeatureMap
from algorithms.base.row_blocks import clipped_rows, row_products, weight_shares

BALANCED = "balanced"
# Of the square of a shift so many variances of its noise are taken.
SURE = 2.0
# A calibration is released where the deviation of the noise of its shift is at most this, in log
# odds, for two classes of equal shares.
MOST_NOISE = 0.5


def calibrates(records: int, mu: float, share: float) -> bool:
    """Return whether a calibration with this share of the squared mu is worth it."""
    noise = math.sqrt(2) / (records * mu * math.sqrt(share)) if share else math.inf
    # log odds at 1/2 have the slope 4, and there are two numbers
    return 4 * math.sqrt(2) * noise <= MOST_NOISE


def shares_moved(outputs: int, relation: Adjacency) -> float:
    """Return how far one record moves the sum of indicators of classes, in Euclidean length."""
    return math.sqrt(2) if outputs > 1 and relation is Adjacency.REPLACE_ONE else 1.0


def calibration_moved(outputs: int, relation: Adjacency) -> float:
    """Return how far one record moves the sum of indicators and probabilities."""
    return 2.0 if outputs > 1 and relation is Adjacency.REPLACE_ONE else math.sqrt(2)


def class_indicators(codes: Array, outputs: int) -> Array:
    """Return a column for each class, or for the second of two classes alone."""
    if outputs == 1:
        return (codes > 0).astype(float)[:, None]
    return np.asarray(np.eye(outputs)[np.clip(codes, 0, outputs - 1).astype(np.intp)])


@final
@dataclass(frozen=True, slots=True)
class BlockClasses:
    """The number of records of each class in a block; of two classes, of the second one."""

    outputs: int

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return one vector."""
        return np.asarray(class_indicators(block[1], self.outputs).sum(axis=0))


@final
@dataclass(frozen=True, slots=True)
class BlockCalibration:
    """The numbers of `BlockClasses`, and the sums of probabilities, each record by its weight."""

    features: FeatureMap
    theta: Array
    weight_bound: float = 1.0

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return one vector, the sums of probabilities last."""
        rows, codes, *weights = block
        rows = clipped_rows(rows, self.features.x_bound)
        slopes, constant = self.features.coefficients(self.theta)
        scores = np.stack([row_products(rows, column) for column in slopes.T], axis=1) + constant
        outputs = scores.shape[1]
        chances = expit(scores) if outputs == 1 else softmax(scores, axis=1)
        counts = WITHIN * self.features.row_weights(rows)
        if weights:
            counts = counts * weight_shares(weights[0], self.weight_bound)
        numbers = np.hstack([class_indicators(codes, outputs), chances])
        return np.asarray(np.einsum("i,ij->j", counts, numbers))


def public_weights(class_weight: Any, classes: Any) -> Array | None:
    """Return public weights in the order of the classes; None if the shares are to give them.

    As in scikit-learn, a class that is not named weighs 1.  Raises `ParameterError` unless
    ``class_weight`` is None, "balanced", or positive weights by class.
    """
    if class_weight is None or (isinstance(class_weight, str) and class_weight == BALANCED):
        return None
    names = np.asarray(classes).tolist()
    fits = isinstance(class_weight, Mapping) and (
        set(names) <= set(class_weight) or set(class_weight) <= set(names)
    )
    if not fits:
        allowed = 'None, "balanced", or a positive weight for each class: {class: weight}'
        raise ParameterError("class_weight", class_weight, allowed)
    return np.array([POSITIVE.check("class_weight", class_weight.get(name, 1.0)) for name in names])


class ClassWeights(NamedTuple):
    """What a record of each class counts in a fit, the largest weight 1."""

    weights: Array | None  # None: all alike
    mean: float  # the mean weight of records

    @classmethod
    def of(cls, released: Array, noise: float, public: Array | None) -> ClassWeights:
        """Return the ``public`` weights, or balanced ones, which are 1 over the share of a class.

        ``released`` is a release of `BlockClasses` over n with noise of this deviation.
        """
        shares = np.append(1 - released, released) if released.size == 1 else released
        # A share below its noise is unknown: no weight is larger than that of such a share.
        shares = np.clip(shares, max(noise, 1e-12), 1.0)
        weights = 1 / shares if public is None else public
        weights = weights / weights.max()
        return cls(weights, float(np.sum(shares * weights) / shares.sum()))


class Calibration(NamedTuple):
    """Released shares of the classes, and their mean probabilities by the model before.

    Of two classes they are those of the second one; ``noise`` is the deviation of each number.
    """

    shares: Array
    probabilities: Array
    noise: float

    def shift(self) -> Array:
        """Return what is added to the constants of the scores.

        It is the difference of log odds (of logarithms for many classes), less what its noise may
        be (James & Stein).
        """
        floor = min(max(self.noise, 1e-12), 0.5)
        shares = np.clip(self.shares, floor, 1 - floor)
        means = np.clip(self.probabilities, floor, 1 - floor)
        shift, slopes = np.log(shares / means), (1 / shares, 1 / means)
        if shares.size == 1:
            shift = shift - np.log((1 - shares) / (1 - means))
            slopes = slopes[0] / (1 - shares), slopes[1] / (1 - means)
        variance = self.noise**2 * (slopes[0] ** 2 + slopes[1] ** 2)
        return np.asarray(shift * np.maximum(1 - SURE * variance / np.maximum(shift**2, 1e-300), 0))
