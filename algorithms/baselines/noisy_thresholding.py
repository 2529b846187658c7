"""Noisy hard thresholding: the largest coordinates of a vector, one by one, with noisy values.

It holds the plan of the rounds and the base class of estimators on machines' data.

References: Dwork, Su & Zhang (2021); Cai, Wang & Zhang (2021), Algorithm 3.1 (NoisyHT).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from accountant.accountants.tight import Tight
from accountant.domains import DELTA, POSITIVE, POSITIVE_DELTA, IntegerRange, OneOf
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.planning.calibration import calibrate_near
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Stated
from accountant.plans.plan import Plan, Repeat, Sequential
from algorithms.base.estimators import PrivateEstimator
from algorithms.base.fit_data import generator_of
from algorithms.base.noisy_gradient_rounds import mu_of_budget
from mechanisms.laplace import Laplace
from mechanisms.noisy_max import NoisyMax

FORM = OneOf(("calibrated", "published"))


def noisy_thresholding_plan(scale: float, sensitivity: float, select: int) -> Sequential:
    """Return the plan of NoisyHT: ``select`` selections, then a noisy value of each."""
    chosen = Repeat(NoisyMax(scale, sensitivity, "laplace"), select)
    return Sequential([chosen, Repeat(Laplace(scale, sensitivity), select)])


def published_scale(epsilon: float, delta: float, select: int) -> float:
    """Return the noise of NoisyHT over the sensitivity: ``2 sqrt(3 s ln(1 / delta)) / epsilon``."""
    return 2 * math.sqrt(3 * select * -math.log(delta)) / epsilon


@lru_cache(maxsize=256)
def calibrated_scale(epsilon: float, delta: float, select: int, rounds: int) -> float:
    """Return the least noise over the sensitivity for (epsilon, delta) in ``rounds`` of NoisyHT."""

    def plan_of(scale: float) -> Plan:
        return Repeat(noisy_thresholding_plan(scale, 1.0, select), rounds)

    # A selection has shift 2 / scale, and a value 1 / scale.  At delta 0 they add up; otherwise
    # they are nearly one Gaussian.
    start = 3 * select * rounds / epsilon
    if delta > 0:
        start = min(start, math.sqrt(5 * select * rounds) / mu_of_budget(epsilon, delta))
    return calibrate_near(plan_of, start, epsilon, delta)


def run_noisy_thresholding(ledger: Any, plan: Any, vector: Callable[[Any], Array]) -> Array:
    """Return the result of NoisyHT on ``vector(data)``, released by the ledger."""
    chosen, values = plan.parts
    features = ledger.shape[-1]
    remaining, thresholded = np.arange(features), np.zeros(features)
    selected: list[int] = []
    for _ in range(chosen.count):

        def sizes(data: Any, candidates: NDArray[np.intp] = remaining) -> Array:
            return np.abs(vector(data)[candidates])

        winner = int(ledger.release(chosen.part, sizes, shape=remaining.size))
        selected.append(int(remaining[winner]))
        remaining = np.delete(remaining, winner)
    for feature in selected:
        thresholded[feature] = ledger.release(
            values.part, lambda data, at=feature: vector(data)[at]
        )
    return thresholded


class ThresholdingEstimator(PrivateEstimator, ABC):
    """A sparse vector by noisy hard thresholding, (epsilon, delta)-DP for a machine's data."""

    epsilon: float
    delta: float
    sparsity: int
    form: str
    random_state: Any

    def fit(self, machines: Iterable[Any], ledger: Any = None) -> Self:
        """Fit on the data of every machine; nothing is released if the input is bad.

        Parameters
        ----------
        machines : iterable
            The data of each machine, all of one shape: X of shape (records, features), or (X, y).
        ledger : Budget, Filter, Book, tuple or None
            What the fit draws on, see `PrivateEstimator`; None charges nothing.

        Returns
        -------
        self
            With ``coef_``, ``signs_``, ``plan_``, ``ledger_`` and ``transcript_``.

        Raises
        ------
        ParameterError
            If machines have different shapes or a parameter is out of range.
        """
        try:
            data = self._stacked_data(list(machines))
        except ParameterError:
            raise
        except (TypeError, ValueError, IndexError) as error:
            allowed = f"data of one shape for every machine: {type(error).__name__}"
            raise ParameterError("machines", type(machines), allowed) from None
        features = data[0] if isinstance(data, tuple) else data
        plan, rng = self.plan(features.shape), generator_of(self.random_state)
        self.ledger_ = self.open_ledger(data, plan, rng=rng, ledger=ledger)
        self.coef_ = self.run(self.ledger_)
        self.signs_ = np.sign(self.coef_).astype(np.int8)
        self.transcript_ = self.ledger_.transcript
        return self

    @abstractmethod
    def plan(self, shape: tuple[int, ...]) -> Stated:
        """Return what a fit will release; needs no data."""

    @abstractmethod
    def run(self, ledger: Any) -> Array:
        """Return the coefficients, computed from released values only."""

    @abstractmethod
    def _stacked_data(self, machines: list[Any]) -> Any:
        """Return the data that the ledger holds: one row for each machine."""

    def plan_of_rounds(
        self, sensitivity: float, published_sensitivity: float, rounds: int, features: int
    ) -> Stated:
        """Return the plan of ``rounds`` of NoisyHT.

        Parameters
        ----------
        sensitivity : float
            How far one machine moves an entry of the vector.
        published_sensitivity : float
            The same as the paper states it, for ``form="published"``.
        rounds : int
            Number of rounds; as published, each has an equal share of epsilon and of delta.
        features : int
            Length of the vector.

        Returns
        -------
        Stated
            The plan, for neighbours that replace one machine.

        Raises
        ------
        ParameterError
            If the published constants exceed the target epsilon.
        """
        epsilon = POSITIVE.check("epsilon", self.epsilon)
        sparsity = IntegerRange(1, features).check("sparsity", self.sparsity)
        if FORM.check("form", self.form) == "published":
            delta = POSITIVE_DELTA.check("delta", self.delta)
            scale = published_sensitivity * published_scale(
                epsilon / rounds, delta / rounds, sparsity
            )
        else:
            delta = DELTA.check("delta", self.delta)
            scale = sensitivity * calibrated_scale(epsilon, delta, sparsity, rounds)
        plan = Stated(
            Repeat(noisy_thresholding_plan(scale, sensitivity, sparsity), rounds),
            Adjacency.MACHINE_REPLACE,
        )
        if self.form == "published" and Tight().epsilon(plan, self.delta) > epsilon:
            allowed = "small enough for the published constants, or use form='calibrated'"
            raise ParameterError("epsilon", epsilon, allowed)
        return plan


def checked_machine_shape(shape: Any, description: str, axes: int) -> tuple[int, ...]:
    """Return the shape, if it has at least two machines."""
    if not isinstance(shape, tuple) or len(shape) != axes:
        raise ParameterError("shape", shape, description)
    IntegerRange(2).check("machines", shape[0])
    return tuple(IntegerRange(1).check("shape", n) for n in shape)
