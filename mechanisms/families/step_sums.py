"""What a matrix mechanism is made of: strategies, patterns of participation, and sums of steps.

References: Denisov, McMahan, Rush, Smith & Thakurta (2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accountant.correlated_noise.banded_matrix import BandedMatrix
from accountant.correlated_noise.binary_tree import BinaryTree
from accountant.correlated_noise.buffered_toeplitz import BufferedToeplitz
from accountant.correlated_noise.dense_matrix import StrategyMatrix
from accountant.correlated_noise.participation import (
    FixedEpochs,
    MinSeparation,
    Once,
    Participation,
)
from accountant.correlated_noise.strategy import Strategy
from accountant.correlated_noise.toeplitz import Toeplitz
from accountant.errors import ParameterError, PrivateValueError
from accountant.numerics import Array
from mechanisms.base import finite_floats

STRATEGIES = (BandedMatrix, BinaryTree, BufferedToeplitz, StrategyMatrix, Toeplitz)
PARTICIPATIONS = (FixedEpochs, MinSeparation, Once)


@dataclass(frozen=True, slots=True)
class Strategies:
    """Strategy matrices as a domain; a numpy matrix means a `StrategyMatrix`."""

    def check(self, argument: str, value: object) -> Strategy:
        """Return the strategy, or raise `ParameterError`."""
        if isinstance(value, np.ndarray) and value.ndim == 2:
            return StrategyMatrix(value)
        if not isinstance(value, STRATEGIES):
            raise ParameterError(argument, value, str(self))
        return value

    def __str__(self) -> str:
        names = ", ".join(cls.__name__ for cls in STRATEGIES)
        return f"a strategy ({names}) or a matrix of numpy"


@dataclass(frozen=True, slots=True)
class Participations:
    """Patterns of participation as a domain; a pair (k, b) means a `MinSeparation`."""

    def check(self, argument: str, value: object) -> Participation:
        """Return the pattern, or raise `ParameterError`."""
        if isinstance(value, tuple) and len(value) == 2:
            return MinSeparation(*value)
        if not isinstance(value, PARTICIPATIONS):
            raise ParameterError(argument, value, str(self))
        return value

    def __str__(self) -> str:
        return "Once(), MinSeparation(participations, separation) or FixedEpochs(epochs)"


@dataclass(frozen=True, slots=True)
class StepSums:
    """A row for each step: the sum of what records add to it.  A run of one step may be a number.

    Neighbours differ in the steps of a pattern, in each by at most ``sensitivity``.
    """

    strategy: Strategy
    sensitivity: float
    dimension: int | None

    @property
    def axes(self) -> int:
        """2 with coordinates; 1 for numbers, and 0 for the number of one step."""
        if self.dimension is not None:
            return 2
        return 1 if self.strategy.columns > 1 else 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        return (self.strategy.columns, self.dimension or 1)[: self.axes]

    def check(self, value: ArrayLike) -> Array:
        """Return finite floats of the shape of a value, or a batch of such."""
        steps = finite_floats(value)
        if (
            steps.shape[max(steps.ndim - self.axes, 0) :] != self.shape
            or steps.ndim > 1 + self.axes
        ):
            raise PrivateValueError("value", f"an array of shape {self.shape}, or a batch of such")
        return steps

    def example(self, rng: np.random.Generator) -> Any:
        """Return random steps."""
        steps = rng.normal(scale=10, size=self.shape)
        return float(steps) if self.axes == 0 else steps

    def neighbour(self, value: Any, rng: np.random.Generator) -> Any:
        """Return the value with one step moved by at most the sensitivity, along a coordinate."""
        step = float(rng.choice([1.0, -1.0, rng.uniform(-1, 1)])) * self.sensitivity
        if self.axes == 0:
            return value + step
        moved = np.array(value, dtype=float)
        moved.reshape(len(moved), -1)[rng.integers(len(moved)), 0] += step
        return moved
