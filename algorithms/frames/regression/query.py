"""Least squares of a column on others: noisy sums of products, released at once.

References: Vu & Slavkovic (2009); Wang (2018), Algorithm 2; docs/proofs/frames.md, section 9.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.ledger.frames import FrameFacts
from accountant.numerics import Array
from accountant.plans.plan import Plan
from algorithms.base.intervals import CONFIDENCE, normal_interval
from algorithms.base.renamed_parameters import renamed_arguments
from algorithms.frames.answer import FRAME_LEVEL
from algorithms.frames.arguments import answered
from algorithms.frames.bases import STEPS, Sensitivities
from algorithms.frames.cells import Axis, keys_of, table_shape
from algorithms.frames.columns.numbers import Integer, Number
from algorithms.frames.conditions import Condition, checked_where
from algorithms.frames.framed import FramedAnswer, named_cells, with_ends
from algorithms.frames.guarantees import Guarantee
from algorithms.frames.noise_tails import Noise
from algorithms.frames.questions import Question, unseen
from algorithms.frames.regression.row_products import RowProducts, Term
from algorithms.frames.schema import Schema
from algorithms.linear_models.sufficient_statistics import (
    Statistics,
    StatisticUnits,
    coefficient_covariance,
    solved,
    unpacked,
    vector_size,
)

MOST_NUMBERS = 2**20  # numbers of one release


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

    @renamed_arguments(level="confidence")
    def interval(self, confidence: float = 0.95) -> Array:
        """Return intervals for the coefficients of the frame itself, clipped and cut as declared.

        To first order of the noise, and noise is all that they count: they say nothing of a
        population.  Where noise hides a direction of the features they have no ends.

        Parameters
        ----------
        confidence : float
            Probability that each covers, in (0, 1).

        Returns
        -------
        numpy.ndarray
            Lower and upper end, along the last axis; to nearest.
        """
        confidence = CONFIDENCE.check("confidence", confidence)
        value, deviation = self.value, self.deviation
        ends = normal_interval(value.ravel(), deviation.ravel(), confidence)
        return ends.reshape(*self._shape, 2)

    def _columns(self) -> dict[str, list[Any]]:
        columns = named_cells(self.keys, self._shape, self.schema)
        terms = [str(self.terms[i]) for i in np.indices(self._shape)[-1].ravel().tolist()]
        columns["term" + "_" * ("term" in columns)] = terms  # a key may have the name
        return with_ends(columns, "coefficient", self.value, self.interval(FRAME_LEVEL))

    def __repr__(self) -> str:
        return f"RegressionAnswer({self.asked}: {len(self.terms)} terms)"


@answered("regression('wage', ['age'], rho=0.1)")
def regression(
    target: str,
    features: str | Sequence[str],
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    where: Condition | None = None,
    by: str | Sequence[str] | Mapping[str, Any] = (),
) -> RegressionQuery:
    """Fit a column by least squares on others, with a constant.

    It is `PrivateLinearRegression` by sufficient statistics: sums of products of features, and of
    those with the target, get Gaussian noise once.

    Parameters
    ----------
    target : str
        A column of numbers.
    features : str or list of str
        Columns of numbers, dates, flags or categories.  A category has a term for each label but
        the first, and a flag one for True: how far it lies above the first.
    epsilon, delta : float, optional
        The privacy that the answer may cost; delta is above 0.
    rho : float, optional
        The privacy that it may cost as zero-concentrated rho, in place of epsilon and delta.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.
    by : str, list of str or dict
        Columns of categories or flags: every combination of their labels has its own fit.  A dict
        gives columns of numbers and dates their bins, as in `histogram`.

    Returns
    -------
    RegressionQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import Flag, Number, Schema, regression
    >>> schema = Schema({"wage": Number(0, 90), "age": Number(18, 70), "owner": Flag()})
    >>> print(regression("wage", ["age", "owner"], rho=0.1).explain(schema))
    regression of wage on age, owner
      wage: clipped to 0 .. 90, rows without one do not count
      age: clipped to 18 .. 70, rows without one do not count
      owner: False or True, rows without one do not count
      neighbours: one person more or less (each row is a person)
      terms: age, owner = True, constant
      DiscreteGaussian noise of scale 2.236 on 10 sums, each row adds a vector of length 1
      costs rho 0.1
    """
    if not isinstance(target, str):
        raise ParameterError("target", type(target), "the name of a column")
    names = tuple(axis.column for axis in keys_of(features, "features"))
    if not names or target in names:
        raise ParameterError("features", list(names), f"columns beside the target {target!r}")
    if epsilon is not None and not delta:
        allowed = "above 0, or a rho instead of epsilon: the noise of a regression is Gaussian"
        raise ParameterError("delta", delta, allowed)
    guarantee = Guarantee(epsilon, delta, rho, noise="gaussian")
    return RegressionQuery(target, names, keys_of(by), checked_where(where), guarantee)


@final
@dataclass(frozen=True, slots=True)
class RegressionQuery(Question[RegressionAnswer]):
    """Least squares of a column on others; made by `regression`.

    Parameters
    ----------
    target : str
        A column of numbers.
    features : tuple of str
        The other columns.
    keys : tuple of Axis
        What rows are sorted by into cells.
    where : Condition or None
        Which rows count.
    guarantee : Guarantee
        The privacy that the answer may cost.

    Examples
    --------
    >>> from accountant import Tight
    >>> from algorithms.frames import Number, Schema, regression
    >>> schema = Schema({"wage": Number(0, 90), "age": Number(18, 70)})
    >>> plan = regression("wage", ["age"], epsilon=0.5, delta=1e-6).plan(schema)
    >>> 0.49 < Tight().epsilon(plan, delta=1e-6) <= 0.5
    True
    """

    target: str
    features: tuple[str, ...]
    keys: tuple[Axis, ...]
    where: Condition | None
    guarantee: Guarantee

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that it reads, but the one that names persons."""
        return tuple(dict.fromkeys((self.target, *self.features, *self._used(None))))

    @property
    def _cost(self) -> Guarantee:
        return self.guarantee

    def _check_own(self, schema: Schema) -> None:
        """Refuse a target that is no number, and too many terms."""
        kind = schema.kind(self.target)
        if not isinstance(kind, Number | Integer):
            allowed = "a Number or an Integer, which have public bounds, to be a target"
            raise ParameterError(f"column {self.target!r}", kind, allowed)
        numbers = self._numbers(schema)
        if numbers > MOST_NUMBERS:
            allowed = f"of fewer labels in all: at most {MOST_NUMBERS:,} sums of products"
            raise ParameterError("features", f"{numbers:,} sums", allowed)

    def products(self, schema: Schema) -> RowProducts:
        """Return what a row adds.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.

        Returns
        -------
        RowProducts
            With the terms of the fit, and the units of its sums.
        """
        return RowProducts(self.target, self.features, schema)

    def mechanism(self, schema: Schema) -> Noise:
        """Return the mechanism that releases it.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.

        Returns
        -------
        DiscreteGaussian
            Noise on sums in steps of 2^-30 of what a row adds.
        """
        self.check(schema)
        length = self.products(schema).length
        moved = Sensitivities(0, float(schema.rows_per_person * length))
        numbers = self._numbers(schema)
        return self.guarantee.mechanism("gaussian", moved, numbers, 1 / STEPS)

    def _numbers(self, schema: Schema) -> int:
        """Return how many sums are released."""
        return self.products(schema).size * math.prod(table_shape(self.keys, schema))

    def _planned(self, schema: Schema) -> Plan:
        """Return one release: a person moves it as far as all rows that count of one person can."""
        return self.mechanism(schema)

    def _noise_lines(self, schema: Schema, steps: list[Any]) -> Iterator[str]:
        """Yield the terms, and the noise."""
        yield f"terms: {', '.join(map(str, self.products(schema).terms))}"
        scale, sums = f"{steps[0].scale / STEPS:.4g}", self._numbers(schema)
        noise = f"DiscreteGaussian noise of scale {scale} on {sums} sums"
        yield f"{noise}, each row adds a vector of length 1"

    def __str__(self) -> str:
        return self._words(f"regression of {self.target} on {', '.join(self.features)}")

    def _released(
        self, ledger: Any, schema: Schema, steps: list[Any], facts: FrameFacts, label: str | None
    ) -> RegressionAnswer:
        """Release the sums, and fit by them."""
        (mechanism,) = steps
        exact_sums = unseen(lambda frame: self.sums(frame, schema))
        released = ledger.release(mechanism, exact_sums, label, shape=self._numbers(schema))
        row = self.products(schema)
        return RegressionAnswer(
            str(self),
            self.target,
            tuple(row.terms),
            self.keys,
            schema,
            mechanism,
            np.asarray(released),
            row.units,
            facts.backend,
        )

    def sums(self, frame: Any, schema: Schema) -> NDArray[np.int64]:
        """Return what is released, before noise: exact sums of whole numbers.

        Parameters
        ----------
        frame : data frame
            The rows.
        schema : Schema
            What is public of the frame.

        Returns
        -------
        numpy.ndarray
            The numbers of each cell after those of the cell before.
        """
        from algorithms.frames.cell_sums import summed_in_cells
        from algorithms.frames.rows import Reading

        reading = Reading(self.used, self.where, schema)
        products = self.products(schema)(reading.values)
        return summed_in_cells(frame, reading, self.keys, products).T.ravel()
