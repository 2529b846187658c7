"""The answer to a regression: coefficients in units of the data, with intervals.

References: Vu & Slavkovic (2009), for the covariance of solutions of noisy sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array
from algorithms.base.intervals import LEVEL, normal_interval
from algorithms.frames.answer import FRAME_LEVEL
from algorithms.frames.bases import STEPS
from algorithms.frames.cells import Axis, table_shape
from algorithms.frames.framed import FramedAnswer, named_cells, with_ends
from algorithms.frames.noise_tails import Noise
from algorithms.frames.regression.row_products import Term
from algorithms.frames.schema import Schema
from algorithms.linear_models.sufficient_statistics import (
    Statistics,
    StatisticUnits,
    coefficient_covariance,
    solved,
    unpacked,
    vector_size,
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class RegressionAnswer(FramedAnswer):
    """A released regression.

    Parameters
    ----------
    asked : str
        What was asked, in words.
    target : str
        The column that is fitted.
    terms : tuple of Term
        What the coefficients belong to.
    keys : tuple of Axis
        What rows were sorted by into cells.
    schema : Schema
        What is public of the frame.
    mechanism : DiscreteGaussian
        What was released with which noise.
    released : numpy.ndarray of int
        The noisy sums as the mechanism gave them.
    units : StatisticUnits
        The units of the sums.
    backend : str
        The library of the frame.

    Examples
    --------
    >>> import pandas as pd
    >>> from accountant import Budget, Filter
    >>> from algorithms.frames import Number, Schema, regression
    >>> schema = Schema({"age": Number(18, 70), "wage": Number(0, 90)})
    >>> frame = pd.DataFrame({"age": [18 + i % 50 for i in range(90_000)]})
    >>> ledger = Filter(frame.assign(wage=9 + frame["age"] / 2), Budget(1.0, 1e-6), rng=0)
    >>> answer = regression("wage", ["age"], rho=0.02).release(ledger, schema)
    >>> [str(term) for term in answer.terms], answer.value.round(1).tolist()
    (['age', 'constant'], [0.5, 9.0])
    """

    asked: str
    target: str
    terms: tuple[Term, ...]
    keys: tuple[Axis, ...]
    schema: Schema
    mechanism: Noise
    released: Array
    units: StatisticUnits
    backend: str

    @property
    def _shape(self) -> tuple[int, ...]:
        return *table_shape(self.keys, self.schema), len(self.terms)

    @property
    def _statistics(self) -> list[Statistics]:
        """The noisy sums of every cell."""
        size, deviation = len(self.terms), self.mechanism.deviation / STEPS
        cells = np.asarray(self.released, dtype=float).reshape(-1, vector_size(size)) / STEPS
        return [unpacked(cell, size, self.units, deviation) for cell in cells]

    @property
    def _map(self) -> tuple[Array, Array]:
        """The matrix, and the constants, that give coefficients in units of the data.

        With u = (x - middle) / half for numbers and v = (y - Middle) / Half for the target,
        v = sum of theta u + c is y = Middle + Half (c + sum of theta (x - middle) / half).
        """
        low, high = self._bounds(self.target)
        matrix, constants = np.zeros((len(self.terms),) * 2), np.zeros(len(self.terms))
        for i, term in enumerate(self.terms):
            matrix[i, i] = scale = high / 2 - low / 2
            if term.column is not None and term.label is None:
                ends = self._bounds(term.column)
                matrix[i, i] = scale / (ends[1] / 2 - ends[0] / 2)
                matrix[-1, i] = -matrix[i, i] * (ends[0] / 2 + ends[1] / 2)
        constants[-1] = low / 2 + high / 2
        return matrix, constants

    def _bounds(self, column: str) -> tuple[float, float]:
        return cast("tuple[float, float]", self.schema.kind(column).bounds)  # columns of numbers

    @property
    def value(self) -> Array:
        """The coefficients in units of the data, the constant last; after an axis for each key."""
        matrix, constants = self._map
        none = np.zeros(len(self.terms))
        coefficients = [
            matrix @ solved(statistics, none) + constants for statistics in self._statistics
        ]
        return np.array(coefficients).reshape(self._shape)

    @property
    def noise_scale(self) -> float:
        """The scale of the noise on sums in which a row is a vector of length 1."""
        return float(self.mechanism.scale / STEPS)

    @property
    def deviation(self) -> Array:
        """About the standard deviation of every coefficient, by noise alone; infinite if hidden."""
        matrix, _ = self._map
        deviations = []
        for statistics in self._statistics:
            try:  # infinitely many records: the error for the frame itself, without sampling
                _, covariance = coefficient_covariance(statistics, math.inf)
                variance = np.diag(matrix @ covariance @ matrix.T)
            except ParameterError:  # noise hides a direction of the features
                variance = np.full(len(self.terms), math.inf)
            deviations.append(np.sqrt(np.maximum(variance, 0.0)))
        return np.array(deviations).reshape(self._shape)

    def interval(self, level: float = 0.95) -> Array:
        """Return intervals for the coefficients of the frame itself, clipped and cut as declared.

        To first order of the noise, and noise is all that they count: they say nothing of a
        population.  Where noise hides a direction of the features they have no ends.

        Parameters
        ----------
        level : float
            Chance that each covers, in (0, 1).

        Returns
        -------
        numpy.ndarray
            Lower and upper end, along the last axis; to nearest.
        """
        level, value, deviation = LEVEL.check("level", level), self.value, self.deviation
        ends = normal_interval(value.ravel(), deviation.ravel(), level)
        return ends.reshape(*self._shape, 2)

    def _columns(self) -> dict[str, list[Any]]:
        columns = named_cells(self.keys, self._shape, self.schema)
        terms = [str(self.terms[i]) for i in np.indices(self._shape)[-1].ravel().tolist()]
        columns["term" + "_" * ("term" in columns)] = terms  # a key may have the name
        return with_ends(columns, "coefficient", self.value, self.interval(FRAME_LEVEL))

    def __repr__(self) -> str:
        return f"RegressionAnswer({self.asked}: {len(self.terms)} terms)"
