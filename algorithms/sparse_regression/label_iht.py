"""Sparse regression by hard thresholding when labels alone are private."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.domains import POSITIVE, IntegerRange
from accountant.ledger.private_data import take_rows
from accountant.numerics import Array
from algorithms.base.hard_thresholding import checked_step, default_step, iht_step
from algorithms.base.row_blocks import ordered_sum, row_blocks, row_products, weighted_row_sum
from algorithms.sparse_regression.links import Link, link_of
from algorithms.sparse_regression.noisy_labels import LabelRegressor


class LabelIHT(LabelRegressor):
    """``y = f(<x, theta>) + noise`` with a sparse theta of the unit ball; labels are private.

    Labels are clipped to ``[-label_bound, label_bound]`` and noised once: ``noise`` is
    "gaussian", or of pure epsilon "laplace", "bounded" (two values) or "pure" (Gaussian noise
    made pure).  ``rounds`` are free of cost; None takes ``log2(users)``.

    After ``fit``: ``coef_``, ``plan_``, ``ledger_``, ``transcript_``.
    Source: Wang & Xu (2021), Algorithms 2 and 5, with the sensitivity, the sign and the loss
    of the link put right (docs/sparse-regression.md).
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        sparsity: int,
        label_bound: float,
        rounds: int | None = None,
        step: float | None = None,
        link: str | Link = "identity",
        noise: str = "gaussian",
        non_private: bool = False,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.sparsity = sparsity
        self.label_bound = label_bound
        self.rounds = rounds
        self.step = step
        self.link = link
        self.noise = noise
        self.non_private = non_private
        self.random_state = random_state

    def plan(self, shape: tuple[int, ...]) -> Any:
        """Return what a fit on ``shape = (users, features)`` will release; needs no data."""
        plan = super().plan(shape)
        self._settings(*shape)
        return plan

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return the coefficients, seen through the gate alone."""
        X = ledger.public
        sparsity, rounds, step = self._settings(*X.shape)
        data, theta = (X, self.noisy_labels(ledger)), np.zeros(X.shape[1])
        for _ in range(rounds):
            theta = iht_step(theta, self.gradient(theta, data, executor), step, sparsity)
        return theta

    def gradient(self, theta: Array, data: Any, executor: Executor | None = None) -> Array:
        """Of ``1/2n sum_i (f(<x_i, theta>) - y_i)^2`` on public features and noisy labels."""
        pieces = (take_rows(data, who) for who in row_blocks(data))
        return ordered_sum(LinkGradient(link_of(self.link), theta), pieces, executor) / len(data[1])

    def predict(self, X: Any) -> Array:
        """Predict for X (records, features)."""
        predicted: Array = link_of(self.link).function(super().predict(X))
        return predicted

    def _settings(self, users: int, features: int) -> tuple[int, int, float]:
        link, sparsity = (
            link_of(self.link),
            IntegerRange(1, features).check("sparsity", self.sparsity),
        )
        rounds = max(1, math.ceil(math.log2(users)))
        if self.rounds is not None:
            rounds = IntegerRange(1).check("rounds", self.rounds)
        if self.step is None:
            return sparsity, rounds, default_step(link.low, link.high)
        step = checked_step(POSITIVE.check("step", self.step), link.low, link.high)
        return sparsity, rounds, step


@final
@dataclass(frozen=True, slots=True)
class LinkGradient:
    """Gradient of ``1/2 sum_i (f(<x_i, theta>) - y_i)^2`` over the rows of a block."""

    link: Link
    theta: Array

    def __call__(self, block: tuple[Any, Array]) -> Array:
        """One vector."""
        x, y = block
        inner = row_products(x, self.theta)
        return weighted_row_sum(x, (self.link.function(inner) - y) * self.link.derivative(inner))
