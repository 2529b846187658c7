"""Scores of outputs that are not single numbers: a table of outputs, an additive model, a sum.

An audit learns from runs on two values to tell them apart by the output, whose numbers are a row.
Each learner takes rows and labels (1 for the first value, 0 for the second) and returns a function
of rows: about the log-odds that the row came from the first value.  An additive model is a sum of a
function of each column; it is fitted as a weighted sum of basis functions of the columns, whose
values at the rows are the *design*.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from audits.classifiers.output_features import Codes
from audits.classifiers.smoothed_log_odds import raw_log_odds

# Limits of the additive model.  More basis functions fit more shapes, and more of chance.
FEW_VALUES = 8  # a column of at most this many different numbers has one indicator for each
MAX_COLUMNS = 48  # most columns of the additive model: those whose means differ most
LOGISTIC_STEPS = 12  # steps of the iteration for logistic weights, which need not be exact
# If an output has at most this many numbers, products of their basis functions are in the model
# too.
MAX_CROSSED_COLUMNS = 4
MAX_DISTINCT_ROWS = 1 << 14  # rows in which the different numbers of a column are counted
CONSTANT_PENALTY = 1e-3  # ridge penalty of the constant, which only keeps the system solvable
MAX_ODDS = 30  # log-odds are clipped here: beyond it e^-odds is below any error of the weights
# Stands for infinite numbers; and the size up to which numbers have a square that is a float.
LARGE, MAX_SIZE = 1e300, 1e150
SMALLEST_SPREAD = 1e-300  # a spread of 0 counts as this, so that it can be divided by


@final
@dataclass(frozen=True, slots=True)
class CategoryTable:
    """A table of the log-odds of outputs, by their codes in ascending order; 0 for other codes."""

    known: Codes
    log_odds: Array

    def __call__(self, output: Codes) -> Array:
        """The log-odds of outputs."""
        index = np.minimum(np.searchsorted(self.known, output), self.known.size - 1)
        return np.where(self.known[index] == output, self.log_odds[index], 0.0)


@final
@dataclass(frozen=True, slots=True)
class LinearScore:
    """A weighted sum of columns."""

    weights: NDArray[Any]

    def __call__(self, design: NDArray[Any]) -> Array:
        """The sums of rows."""
        return _weighted_sums(design, self.weights).astype(float)


@final
@dataclass(frozen=True, slots=True)
class Pipeline:
    """The composition of functions, in order."""

    steps: tuple[Callable[[Any], Any], ...]

    def __call__(self, outputs: Any) -> Any:
        """The result of the last step."""
        for step in self.steps:
            outputs = step(outputs)
        return outputs


def fit_category_table(codes: Codes, labels: Array) -> Callable[[Codes], Array]:
    """A table of the log-odds of each distinct output, from its counts by `raw_log_odds`."""
    categories, category_index = np.unique(codes, return_inverse=True)
    ones = np.bincount(category_index, labels, minlength=categories.size).astype(float)
    zeros = np.bincount(category_index, 1 - labels, minlength=categories.size).astype(float)
    return CategoryTable(categories, raw_log_odds(ones, zeros))


def mean_difference_weights(rows: Array, labels: Array) -> Array:
    """Weights ``difference of means / variance`` of each coordinate.

    If the coordinates were independent, the mean of this weighted sum would differ most between the
    two values, in its standard deviations.
    """
    x = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = _gap_of_means(x, labels)
        spread = x.var(axis=0)
        weights: Array = np.divide(gap, spread, out=np.zeros_like(gap), where=spread > 0)
    return weights


def _gap_of_means(rows: NDArray[Any], labels: Array) -> Array:
    """The difference of the means of both values; 0 where all runs are of one of them."""
    rows_of_ones, rows_of_zeros = rows[labels == 1], rows[labels == 0]
    if not (len(rows_of_ones) and len(rows_of_zeros)):
        return np.zeros(rows.shape[1])
    gap: Array = rows_of_ones.mean(axis=0) - rows_of_zeros.mean(axis=0)
    return gap


@final
@dataclass(frozen=True, slots=True)
class SplineBasis:
    """Basis functions of the columns of a row, after a constant.

    A column of few values has an indicator of each.  Any other is standardised to
    z = (x - middle) / spread, clipped to [-3, 3], and has z, max(z - knot, 0) for each knot, and
    an indicator of z > 0.
    """

    # for each column its index, its knots or its few values, its middle, and its spread, which is 0
    # for a column of few values
    columns: tuple[tuple[int, Array, float, float], ...]
    missing: tuple[int, ...]  # the columns that also have an indicator of NaN
    crossed: int = 0  # products of the columns below this index are in the basis too

    def __call__(self, rows: Array) -> NDArray[np.float32]:
        """The basis functions at rows, one column each, after a constant."""
        groups: dict[int, list[NDArray[Any]]] = {}
        for column, knots, middle, spread in self.columns:
            x = rows[:, column]
            if spread == 0.0:  # few values
                groups[column] = [x == value for value in knots]
            else:
                with np.errstate(over="ignore"):  # a nearly constant number overflows here
                    z = np.clip((np.nan_to_num(x, nan=middle) - middle) / spread, -3.0, 3.0)
                groups[column] = [z, *(np.maximum(z - knot, 0.0) for knot in knots), z > 0.0]
        parts = [part for group in groups.values() for part in group]
        # Products of two columns leave out the last function of each: the indicator of the last of
        # few values, which the other ones and the constant determine, or that of z > 0.
        crossed = [column for column in groups if column < self.crossed]
        for left_column, right_column in itertools.combinations(crossed, 2):
            parts += [u * v for u in groups[left_column][:-1] for v in groups[right_column][:-1]]
        parts += [np.isnan(rows[:, column]) for column in self.missing]
        design = np.ones((len(rows), 1 + len(parts)), np.float32)
        for position, part in enumerate(parts, 1):
            design[:, position] = part
        return design


def fit_spline_basis(rows: Array, labels: Array, width: int) -> SplineBasis:
    """A basis for the columns whose means differ most between the values.

    The first ``width`` columns are an output's own numbers; if they are few, their products are in
    the basis too.
    """
    x = np.nan_to_num(rows, nan=0.0, posinf=LARGE, neginf=-LARGE)
    # Without the largest and the smallest 1 % of a column, so that no single run decides.
    clipped = np.clip(x, *np.quantile(x, [0.01, 0.99], axis=0))
    with np.errstate(over="ignore", invalid="ignore"):
        gap = _gap_of_means(clipped, labels)
        strength = np.abs(np.nan_to_num(gap / np.maximum(clipped.std(axis=0), SMALLEST_SPREAD)))
    chosen = np.sort(np.argsort(-strength, kind="stable")[:MAX_COLUMNS])
    columns, missing = [], []
    for column in chosen.tolist():
        observed = x[:, column][~np.isnan(rows[:, column])]
        if 0 < observed.size < len(rows):
            missing.append(column)
        values = np.unique(observed[:MAX_DISTINCT_ROWS])
        if values.size <= FEW_VALUES:
            if values.size > 1:
                columns.append((column, values, 0.0, 0.0))
            continue
        low, middle, high = np.quantile(observed, [0.25, 0.5, 0.75])
        spread = float(high - low)
        if not high > low:
            spread = float(np.std(np.clip(observed, -MAX_SIZE, MAX_SIZE)))
        spread = max(spread, SMALLEST_SPREAD)
        knots = (np.array([low, middle, high]) - middle) / spread
        columns.append((column, knots, float(middle), spread))
    return SplineBasis(tuple(columns), tuple(missing), width if width <= MAX_CROSSED_COLUMNS else 0)


@final
@dataclass(frozen=True, slots=True)
class PooledSteps:
    """Step functions of each number, summed over all numbers with a weight in [-1, 1] for each.

    ``knots[k]`` are the places of the k-th step, one for each number; ``signs`` are the weights.
    """

    signs: Array
    knots: Array

    def __call__(self, rows: Array) -> NDArray[np.float32]:
        """One column per step, after a constant."""
        design = np.ones((len(rows), 1 + len(self.knots)), np.float32)
        for position, knot in enumerate(self.knots, 1):
            design[:, position] = _weighted_sums((rows > knot).astype(np.float32), self.signs)
        return design


def fit_pooled_steps(rows: Array, labels: Array) -> PooledSteps:
    """Steps at deciles, for many numbers that shift alike, such as one noise on each of them."""
    x = np.nan_to_num(rows, nan=0.0, posinf=LARGE, neginf=-LARGE)
    knots = np.quantile(x, np.arange(0.1, 0.91, 0.1), axis=0)
    is_above_median = x > knots[4]
    gap = _gap_of_means(is_above_median, labels)
    # The weight is the difference of the shares above the median, in units of two standard errors
    # and clipped, so that numbers that do not move have a weight near 0.  From n runs, half of them
    # on each value, the difference of two shares of 1/2 has the standard error 1 / sqrt(n).
    signs = np.clip(gap * np.sqrt(len(x)) / 2, -1.0, 1.0)
    return PooledSteps(signs.astype(np.float32), knots)


# A block of runs: their design (a row of basis functions for each run), labels, design' design.
DesignBlock = tuple[NDArray[np.float32], NDArray[np.float32], Array]


def design_block(first: NDArray[np.float32], second: NDArray[np.float32]) -> DesignBlock:
    """Designs of both values as one, and the products that every fit needs."""
    design = np.concatenate([first, second])
    labels = np.append(np.ones(len(first), np.float32), np.zeros(len(second), np.float32))
    return design, labels, (design.T @ design).astype(float)


def fit_logistic(blocks: Sequence[DesignBlock], penalty: float) -> Array:
    """Ridge logistic weights on blocks of runs; the first column is the constant."""
    from scipy.linalg import cho_factor, cho_solve

    # With X the design, the Hessian of the negative log-likelihood is X' diag(p (1 - p)) X, and
    # p (1 - p) <= 1/4.  A step with X'X / 4 in its place never decreases the penalised likelihood,
    # and the matrix is factorised only once (Boehning & Lindsay 1988).
    curvature: Array = np.sum([product for _, _, product in blocks], axis=0) / 4
    ridge = np.full(len(curvature), penalty)
    ridge[0] = CONSTANT_PENALTY
    factor = cho_factor(curvature + np.diag(ridge))
    weights = np.zeros(len(curvature))
    for _ in range(LOGISTIC_STEPS):
        gradient = -ridge * weights
        for design, labels, _ in blocks:
            odds = np.clip(_weighted_sums(design, weights.astype(np.float32)), -MAX_ODDS, MAX_ODDS)
            gradient = gradient + np.einsum("ij,i->j", design, labels - 1 / (1 + np.exp(-odds)))
        weights = weights + cho_solve(factor, gradient)
    return weights


def _weighted_sums(rows: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    # BLAS is not used: its result may depend on the number of its threads, which also wait for each
    # other on busy cores.
    sums: NDArray[Any] = np.einsum("ij,j->i", rows, weights)
    return sums
