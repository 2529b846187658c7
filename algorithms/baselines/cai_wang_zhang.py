"""Baselines: noisy hard thresholding of a mean and of regression gradients, private for machines.

References: Cai, Wang & Zhang (2021).  Their sensitivities are those of one record; here a whole
machine is replaced, and the average is over machines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.domains import POSITIVE, IntegerRange
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.parallel import Stated
from algorithms.base.fit_data import filled
from algorithms.base.hard_thresholding import project_to_ball
from algorithms.base.renamed_parameters import renamed_parameters
from algorithms.baselines.noisy_thresholding import (
    ThresholdingEstimator,
    checked_machine_shape,
    run_noisy_thresholding,
)


@renamed_parameters(select="sparsity", bound="x_bound")
@dataclass(eq=False, repr=False)
class ThresholdedMean(ThresholdingEstimator):
    """A sparse mean, (epsilon, delta)-DP for all data of a machine.

    Records are clipped to ``[-x_bound, x_bound]``, machines' means are averaged, and noisy hard
    thresholding selects coordinates.

    Parameters
    ----------
    epsilon : float
        Target epsilon, positive, in nats.
    delta : float
        Target delta, in [0, 1); positive for ``form="published"``.
    sparsity : int
        Number of coordinates to select.
    x_bound : float
        Largest absolute entry of a record; larger ones are clipped.
    form : {"calibrated", "published"}
        The least noise by exact accounting, or the constants of the paper.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    coef_ : numpy.ndarray of shape (features,)
        The noisy mean, 0 where not selected.
    signs_ : numpy.ndarray of int8
        The signs of ``coef_``.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Cai, Wang & Zhang (2021), Algorithm 3.1; Dwork, Su & Zhang (2021).

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import ThresholdedMean
    >>> machines = [np.tile([1.0, 0.0, 0.0], (10, 1))] * 200
    >>> mean = ThresholdedMean(epsilon=5.0, delta=1e-5, sparsity=1, x_bound=1.0, random_state=0)
    >>> mean.fit(machines).signs_.tolist()
    [1, 0, 0]
    """

    epsilon: float
    delta: float
    sparsity: int
    x_bound: float
    form: str = "calibrated"
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Stated:
        """Return what a fit on ``shape = (machines, features)`` will release; needs no data."""
        machines, features = checked_machine_shape(shape, "(machines, features)", 2)
        # one machine moves every mean by at most 2 R / m
        moved = 2 * POSITIVE.check("x_bound", self.x_bound) / machines
        return self.plan_of_rounds(moved, moved, 1, features)

    def run(self, ledger: Any) -> Array:
        """Return the noisy mean; the ledger holds the machines' means, which are clipped again."""
        cache: list[Array] = []

        def mean(means: Any) -> Array:
            if not cache:
                cache.append(np.clip(means, -self.x_bound, self.x_bound).mean(axis=0))
            return cache[0]

        return run_noisy_thresholding(ledger, ledger.plan.part.part, mean)

    def _stacked_data(self, machines: list[Any]) -> Any:
        bound = POSITIVE.check("x_bound", self.x_bound)
        return np.stack([np.clip(filled(X), -bound, bound).mean(0) for X in machines])


@renamed_parameters(select="sparsity")
@dataclass(eq=False, repr=False)
class ThresholdedRegression(ThresholdingEstimator):
    """Sparse regression by thresholded noisy gradients, (epsilon, delta)-DP for a machine's data.

    Machines are pairs (X, y) with equally many records each.

    Parameters
    ----------
    epsilon : float
        Target epsilon, positive, in nats.
    delta : float
        Target delta, in [0, 1); positive for ``form="published"``.
    sparsity : int
        Number of coordinates to select in every round.
    x_bound : float
        Largest absolute feature; larger ones are clipped.
    y_bound : float
        Largest absolute target; larger ones are clipped.
    radius : float
        Largest Euclidean norm of an iterate.
    rounds : int
        Number of gradient steps.
    step : float
        Step size.
    form : {"calibrated", "published"}
        The least noise by exact accounting, or the constants of the paper.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    coef_ : numpy.ndarray of shape (features,)
        Coefficients, at most ``sparsity`` of them not 0.
    signs_ : numpy.ndarray of int8
        The signs of ``coef_``.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Cai, Wang & Zhang (2021).

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import ThresholdedRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    >>> model = ThresholdedRegression(
    ...     epsilon=5.0, delta=1e-5, sparsity=1, x_bound=1.0, y_bound=1.0, radius=1.0, rounds=2,
    ...     random_state=0,
    ... )
    >>> model.fit([(X, X[:, 0])] * 500).signs_.tolist()
    [1, 0, 0]
    """

    epsilon: float
    delta: float
    sparsity: int
    x_bound: float
    y_bound: float
    radius: float
    rounds: int = 20
    step: float = 0.5
    form: str = "calibrated"
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Stated:
        """Return what a fit on ``shape = (machines, records, features)`` will release."""
        machines, _, features = checked_machine_shape(shape, "(machines, records, features)", 3)
        x, y = POSITIVE.check("x_bound", self.x_bound), POSITIVE.check("y_bound", self.y_bound)
        sparsity = IntegerRange(1, features).check("sparsity", self.sparsity)
        radius, step = POSITIVE.check("radius", self.radius), POSITIVE.check("step", self.step)
        # |<x, b>| <= x |b|_1 <= x sqrt(s) radius; a machine moves the mean of m gradients by 2 / m
        gradient_bound = (y + math.sqrt(sparsity) * radius * x) * x
        moved = 2 * step * gradient_bound / machines
        # The constant B of the paper is twice this move.
        return self.plan_of_rounds(
            moved, 2 * moved, IntegerRange(1).check("rounds", self.rounds), features
        )

    def run(self, ledger: Any) -> Array:
        """Return the coefficients; the data are X (machines, records, features) and y."""
        beta, step = np.zeros(ledger.shape[-1]), GradientStep(self.step, self.x_bound, self.y_bound)
        for _ in range(ledger.plan.part.count):
            step.start(beta)
            beta = project_to_ball(
                run_noisy_thresholding(ledger, ledger.plan.part.part, step), self.radius
            )
        return beta

    def _stacked_data(self, machines: list[Any]) -> Any:
        pairs = zip(*machines, strict=True)
        X, y = (np.stack([filled(array) for array in part]).astype(float) for part in pairs)
        if y.shape != X.shape[:2]:
            shapes = f"X of shape {X.shape[1:]}, y of shape {y.shape[1:]}"
            raise ParameterError("machines", shapes, "a target for each record")
        return X, y


class GradientStep:
    """The query of a round: ``beta - step * mean gradient`` on clipped data, computed once."""

    def __init__(self, step: float, x_bound: float, y_bound: float) -> None:
        self._step, self._x, self._y = step, x_bound, y_bound
        self._beta: Array = np.empty(0)
        self._data: tuple[Array, Array] | None = None
        self._stepped: Array | None = None

    def start(self, beta: Array) -> None:
        """Begin a round at the public ``beta``."""
        self._beta, self._stepped = beta, None

    def __call__(self, data: Any) -> Array:
        """Return the moved vector; every machine has the same weight."""
        if self._data is None:
            self._data = np.clip(data[0], -self._x, self._x), np.clip(data[1], -self._y, self._y)
        if self._stepped is None:
            X, y = self._data
            residual = X @ self._beta - y
            gradient = residual.ravel() @ X.reshape(y.size, -1) / y.size
            self._stepped = self._beta - self._step * gradient
        return self._stepped
