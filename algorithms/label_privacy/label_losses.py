"""Convex losses of a public row and one of K labels, for private labels.

The server never sees the label.  It has a coefficient for every label, and needs the gradients of
all labels, weighted by them.

References: Crammer & Singer (2001) for the multiclass hinge.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, final

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array
from algorithms.base.row_blocks import squared_lengths


class LabelLoss(ABC):
    """A loss that is convex in theta and Lipschitz for every row and label.

    A user's own loss defines `shape`, `lipschitz` and `gradients`.
    """

    # The gradients of all labels are (p - e_k) x, with shares p that sum to 1: the corners of a
    # regular simplex.  Then no randomiser depends on theta.
    regular: ClassVar[bool] = False

    @abstractmethod
    def shape(self, features: int, classes: int) -> tuple[int, ...]:
        """Return the shape of theta."""

    @abstractmethod
    def lipschitz(self, length: float, classes: int) -> float:
        """Return the largest norm of a gradient, for rows of at most this Euclidean length."""

    @abstractmethod
    def gradients(self, theta: Array, X: Any) -> Array:
        """Return gradients of every row and label: shape (rows, classes, *theta.shape)."""

    def estimate(self, theta: Array, X: Any, coefficients: Array) -> tuple[Array, float]:
        """Return ``sum_i g_i`` and ``sum_i |g_i|^2`` of ``g_i = sum_k c_ik gradient_ik``."""
        flat = self._flat_gradients(theta, X)
        estimates = np.einsum("ik,ikj->ij", coefficients, flat)
        total: Array = estimates.sum(axis=0).reshape(theta.shape)
        return total, float(np.vdot(estimates, estimates))

    def gram(self, theta: Array, X: Any) -> Array:
        """Return ``<gradient_ij, gradient_ik>`` of every row and two labels."""
        flat = self._flat_gradients(theta, X)
        products: Array = flat @ flat.swapaxes(-1, -2)
        return products

    def _flat_gradients(self, theta: Array, X: Any) -> Array:
        gradients = self.gradients(theta, X)
        return gradients.reshape(*gradients.shape[:2], theta.size)


class ScoreLoss(LabelLoss):
    """A loss of the labels' scores ``<theta_k, x>``; theta has a row for every label."""

    def shape(self, features: int, classes: int) -> tuple[int, ...]:
        """Return (classes, features)."""
        return classes, features

    @abstractmethod
    def values(self, scores: Array) -> Array:
        """Return the loss of every row and label."""

    @abstractmethod
    def slopes(self, scores: Array, coefficients: Array) -> Array:
        """Return ``sum_k c_ik dloss(label k) / dscores`` of every row; may overwrite the scores."""

    def gradients(self, theta: Array, X: Any) -> Array:
        """Return the outer products of slopes and rows."""
        rows = X.toarray() if hasattr(X, "toarray") else X
        gradients: Array = np.einsum("ikj,il->ikjl", self._slopes_by_label(theta, X), rows)
        return gradients

    def gram(self, theta: Array, X: Any) -> Array:
        """Return ``|x|^2`` times the products of the slopes."""
        slopes = self._slopes_by_label(theta, X)
        products: Array = slopes @ slopes.swapaxes(-1, -2) * squared_lengths(X)[:, None, None]
        return products

    def estimate(self, theta: Array, X: Any, coefficients: Array) -> tuple[Array, float]:
        """Return the same by one matrix product for the scores and one for the gradients."""
        slopes = self.slopes(X @ theta.T, coefficients)
        total = slopes.T @ X
        return total, float(squared_lengths(slopes) @ squared_lengths(X))

    def _slopes_by_label(self, theta: Array, X: Any) -> Array:
        """Return the slopes of every row and label."""
        scores = np.asarray(X @ theta.T)
        labels = np.eye(scores.shape[1])
        by_label = [
            self.slopes(scores.copy(), np.broadcast_to(label, scores.shape)) for label in labels
        ]
        return np.stack(by_label, axis=1)


@final
class MultinomialLogistic(ScoreLoss):
    """Multinomial logistic loss: ``ln sum_k e^(score_k) - score_y``."""

    regular = True

    def lipschitz(self, length: float, classes: int) -> float:
        """Return ``sqrt(2) * length``, as ``|softmax - e_y|^2 <= 2``."""
        del classes
        return math.sqrt(2) * length

    def values(self, scores: Array) -> Array:
        """Return ``ln sum_k e^(score_k) - score_y`` of every row and label."""
        top = scores.max(axis=1, keepdims=True)
        values: Array = top + np.log(np.exp(scores - top).sum(axis=1, keepdims=True)) - scores
        return values

    def slopes(self, scores: Array, coefficients: Array) -> Array:
        """Return ``sum_k c_k (softmax - e_k) = (sum_k c_k) softmax - c``."""
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores *= (coefficients.sum(axis=1) / scores.sum(axis=1))[:, None]
        scores -= coefficients
        return scores


@final
class LinearScoreLoss(ScoreLoss):
    """The loss ``mean score - score_y``, of which the lower bound is made."""

    regular = True

    def lipschitz(self, length: float, classes: int) -> float:
        """Return ``|1/K - e_y| length = sqrt(1 - 1/K) length``."""
        return math.sqrt(1 - 1 / classes) * length

    def values(self, scores: Array) -> Array:
        """Return ``mean score - score_y`` of every row and label."""
        values: Array = scores.mean(axis=1, keepdims=True) - scores
        return values

    def slopes(self, scores: Array, coefficients: Array) -> Array:
        """Return ``sum_k c_k (1/K - e_k)``, which does not depend on the scores."""
        slopes: Array = coefficients.mean(axis=1, keepdims=True) - coefficients
        return slopes


@final
class MulticlassHinge(ScoreLoss):
    """Crammer & Singer's loss: ``max(0, 1 + max_(k != y) score_k - score_y)``."""

    def lipschitz(self, length: float, classes: int) -> float:
        """Return ``sqrt(2) * length``, as ``|e_k - e_y|^2 = 2``."""
        del classes
        return math.sqrt(2) * length

    def values(self, scores: Array) -> Array:
        """Return ``max(0, 1 + max_(k != y) score_k - score_y)`` of every row and label."""
        rival = self._best_other_labels(scores)
        values: Array = np.maximum(0.0, 1 + np.take_along_axis(scores, rival, 1) - scores)
        return values

    def slopes(self, scores: Array, coefficients: Array) -> Array:
        """Return ``sum_k c_k 1[value_k > 0] (e_rival(k) - e_k)``."""
        rival = self._best_other_labels(scores)
        active = 1 + np.take_along_axis(scores, rival, 1) - scores > 0
        weights = np.where(active, coefficients, 0.0)
        slopes: Array = -weights
        np.add.at(slopes, (np.arange(len(scores))[:, None], rival), weights)
        return slopes

    def _best_other_labels(self, scores: Array) -> Any:
        """Return, for every label, the other label with the largest score."""
        order = np.argpartition(-scores, 1, axis=1)[:, :2]
        swapped = (
            scores[np.arange(len(scores)), order[:, 0]]
            < scores[np.arange(len(scores)), order[:, 1]]
        )
        best = np.where(swapped, order[:, 1], order[:, 0])
        runner_up = np.where(swapped, order[:, 0], order[:, 1])
        labels = np.arange(scores.shape[1])
        return np.where(labels == best[:, None], runner_up[:, None], best[:, None])


LABEL_LOSSES: dict[str, ScoreLoss] = {
    "logistic": MultinomialLogistic(),
    "hinge": MulticlassHinge(),
    "linear": LinearScoreLoss(),
}


def label_loss_of(loss: object) -> LabelLoss:
    """Return the loss itself, given by name or as a `LabelLoss`."""
    if isinstance(loss, str) and loss in LABEL_LOSSES:
        return LABEL_LOSSES[loss]
    if isinstance(loss, LabelLoss):
        return loss
    raise ParameterError(
        "loss", loss, f"one of {', '.join(map(repr, LABEL_LOSSES))} or a LabelLoss"
    )


def check_loss(loss: LabelLoss, X: Any, classes: int, lipschitz: float) -> None:
    """Check a user's loss on a few public rows: shape and length of gradients at the start."""
    rows = X[:8]
    theta = np.zeros(loss.shape(X.shape[1], classes))
    gradients = np.asarray(loss.gradients(theta, rows))
    if (
        gradients.shape != (rows.shape[0], classes, *theta.shape)
        or not np.isfinite(gradients).all()
    ):
        allowed = f"finite gradients of shape (rows, {classes}, *theta.shape)"
        raise ParameterError("loss", f"gradients of shape {gradients.shape}", allowed)
    longest = math.sqrt((gradients.reshape(*gradients.shape[:2], -1) ** 2).sum(axis=2).max())
    if longest > lipschitz * (1 + 1e-9):
        measured = f"a gradient of length {longest:.6g}"
        raise ParameterError(
            "loss", measured, f"of gradients at most {lipschitz:.6g} long, as declared"
        )
