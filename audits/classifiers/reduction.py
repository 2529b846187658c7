"""Outputs of many numbers reduced to few columns, from which a classifier of an audit can learn.

The columns are weighted sums of all numbers, the single numbers that differ most between the two
audited values, and summaries such as extremes.  The weights and the choice depend on screening runs
alone; a score is learned from other runs.  Any function of an output costs no more privacy than the
output, so a claim about the release holds for its columns.

Each number x of an output has a middle and a spread, its median and quartile range in a few runs
(the `Reference`).  Weights are in units of z = (x - middle) / spread, as the screening finds them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from audits.classifiers.output_features import summary_columns
from audits.classifiers.screening import (
    CLIP,
    STEP,
    Reference,
    block_rows,
    contrasts,
    number_rows,
)

CHOSEN_NUMBERS = 16  # numbers with a column of their own: those that differ most
# Standard errors: a number that differs by more is in the sums of clear numbers.  Of those that do
# not differ at all, about 1 % seem to by chance.
CLEAR = 2.5
# Standard errors: a larger correlation is not taken for noise, even as one of two million.
CLEAR_CORRELATION = 6.0
# If a larger share of the squared correlations may be sampling noise, all of it counts as noise.
MAX_NOISE_SHARE = 0.8
# Covariances are estimated for outputs of at most this many numbers: time grows as their cube.
MAX_WHITENED_WIDTH = 2048
SUMMARIES = 14  # number of columns of `summary_columns`
# The first look for correlations takes this many runs of each value, and as many more as an output
# has numbers.
LOOKED_RUNS = 100
FEW_OF = 4  # a sum of at most one in this many numbers is computed from these alone
MAX_SIZE = 1e100  # no covariances are estimated with larger numbers, whose squares may overflow
DIAGONAL_EXCESS = 1e-9  # added to the ones of a correlation matrix, so that it can be factorised


@final
@dataclass(frozen=True, slots=True)
class WeightedSum:
    """A weighted sum over all numbers of an output, or over a feature of each.

    The ``feature`` is "number" for the number itself, else "mean", "step" or "size", see
    `feature_values`.  The ``weights`` are for numbers in units of their spread.
    """

    feature: str
    weights: Array
    description: str

    def __call__(
        self, rows: NDArray[Any], reference: Reference, cached: dict[str, NDArray[Any]]
    ) -> Array:
        """The sums of rows; ``cached`` keeps the values of all numbers for other sums."""
        # Features are in the units of the numbers, so the weights are divided by the spreads.
        weights, support = self.weights / reference.spread, np.flatnonzero(self.weights)
        if support.size * FEW_OF <= weights.size:
            rows, weights, reference = rows[:, support], weights[support], reference.of(support)
            values = feature_values(self.feature, rows, reference)
        else:
            if self.feature not in cached:
                cached[self.feature] = feature_values(self.feature, rows, reference)
            values = cached[self.feature]
        with np.errstate(invalid="ignore", over="ignore"):
            # einsum does not call BLAS, whose last bits may depend on the number of threads
            sums: Array = np.einsum("ij,j->i", values, weights)
            if self.feature != "number" and np.isnan(sums).any():
                # A missing number counts as one in the middle, which has size 0.
                missing = reference.middle if self.feature != "size" else 0.0
                imputed = np.where(np.isnan(values), missing, values)
                sums = np.einsum("ij,j->i", imputed, weights)
        return sums


def feature_values(feature: str, rows: NDArray[Any], reference: Reference) -> NDArray[Any]:
    """The feature of each number x of rows, which the sums add.

    With middle and spread of the number, "mean" is x clipped to middle +- `CLIP` spread, "step" is
    x clipped to middle +- `STEP` spread, and "size" is |x - middle|, at most `CLIP` spread.
    """
    if feature == "number":
        return rows
    middle, spread = reference.middle, reference.spread
    with np.errstate(invalid="ignore", over="ignore"):
        if feature == "size":
            x: NDArray[Any] = np.subtract(rows, middle)
            np.abs(x, out=x)
            np.minimum(x, CLIP * spread, out=x)
        else:
            reach = (CLIP if feature == "mean" else STEP) * spread
            x = np.maximum(rows, middle - reach)
            np.minimum(x, middle + reach, out=x)
    return x


@final
@dataclass(frozen=True, slots=True)
class Reduction:
    """Columns of wide outputs: first the sums, then chosen numbers, then summaries."""

    reference: Reference  # the median and the quartile range of each number of an output
    sums: tuple[WeightedSum, ...]
    chosen: NDArray[np.intp]  # the indices of the chosen numbers in an output
    needed: frozenset[int] | None = None  # the columns to compute; others are 0; None for all

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.sums) + self.chosen.size + SUMMARIES

    def only(self, needed: frozenset[int] | None) -> Reduction:
        """The reduction that computes only the needed columns."""
        return replace(self, needed=needed)

    def describe(self, column: int) -> str:
        """A column in words."""
        if column < len(self.sums):
            return self.sums[column].description
        return f"number {self.chosen[column - len(self.sums)]} of the output"

    def __call__(self, outputs: NDArray[Any]) -> Array:
        """The columns of outputs, read in blocks."""
        table, block = np.zeros((len(outputs), self.width)), block_rows(self.reference.width)
        start, stop = len(self.sums), len(self.sums) + self.chosen.size
        needed = range(self.width) if self.needed is None else self.needed
        for done in range(0, len(outputs), block):
            part = table[done : done + block]
            rows = number_rows(outputs[done : done + block], self.reference.width)
            cached: dict[str, NDArray[Any]] = {}
            for column, weighted_sum in enumerate(self.sums):
                if column in needed:
                    part[:, column] = weighted_sum(rows, self.reference, cached)
            if any(start <= column < stop for column in needed):
                part[:, start:stop] = rows[:, self.chosen]
            if any(column >= stop for column in needed):
                part[:, stop:] = summary_columns(rows)
        return table


@final
@dataclass(frozen=True, slots=True)
class ReducedDraw:
    """A draw whose outputs are rows of a reduction, drawn and read in blocks."""

    draw: Any
    reduction: Reduction

    def __call__(self, value: Any, rng: np.random.Generator, size: int) -> Array:
        """The reduced outputs of ``size`` runs."""
        block = block_rows(self.reduction.reference.width)
        parts = [
            self.reduction(self.draw(value, rng, min(block, size - done)))
            for done in range(0, size, block)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.reduction.width))


def fit_reduction(
    first: Array, second: Array, reference: Reference, rows: tuple[Any, Any]
) -> Reduction:
    """The reduction that the screening chooses.

    ``first`` and ``second`` are the `screening_sums` of runs on either value.  ``rows`` are whole
    outputs of some of these runs, by which covariances are estimated.
    """
    contrast_of = contrasts(first, second)
    width = reference.width
    sums = []
    whitened = _whitened_weights(*rows, reference)
    if whitened is not None:
        sums.append(WeightedSum("number", whitened, f"a discriminant of {width:,} numbers"))
    # In each row: the feature that is summed, the contrast of the screening that gives its weights,
    # and what the sum is over, in words.
    for feature, weighted_by, noun in (
        ("number", "mean", "numbers"),
        ("mean", "mean", "clipped numbers"),
        ("step", "step", "steps of numbers"),
        ("size", "size", "sizes of numbers"),
    ):
        contrast = contrast_of[weighted_by]
        clear = np.abs(contrast.z_scores) > CLEAR
        sums.append(WeightedSum(feature, contrast.weights, f"a weighted sum of {width:,} {noun}"))
        if 0 < clear.sum() < width:
            clear_weights = np.where(clear, contrast.weights, 0.0)
            sums.append(
                WeightedSum(feature, clear_weights, f"a weighted sum of {clear.sum():,} {noun}")
            )
    equal_weights = np.ones(width)
    sums.append(WeightedSum("number", equal_weights, f"the sum of {width:,} numbers"))
    sums.append(WeightedSum("size", equal_weights, f"the sum of {width:,} sizes of numbers"))
    # A number differs as much as the feature of it that differs most, in standard errors.
    strength = np.max([np.abs(contrast.z_scores) for contrast in contrast_of.values()], axis=0)
    chosen = np.argsort(-strength, kind="stable")[:CHOSEN_NUMBERS]
    return Reduction(reference, tuple(sums), chosen)


def _whitened_weights(
    first: NDArray[Any], second: NDArray[Any], reference: Reference
) -> Array | None:
    """Weights of the linear discriminant, its covariances shrunk to their diagonal.

    They are C^-1 (difference of means), C the covariance matrix of the numbers.  With R the matrix
    of correlations and D the diagonal matrix of deviations, C = D R D, so that they are
    D^-1 R^-1 D^-1 (difference of means).  None if R cannot be estimated, or if no correlation is
    clear: then other sums are as good.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    runs, width = len(first) + len(second), reference.width
    if width > MAX_WHITENED_WIDTH or runs < width or min(len(first), len(second)) < 2:
        return None
    if not all(max(x.max(), -x.min()) < MAX_SIZE for x in (first, second)):  # also false for NaN
        return None
    # A few runs, in single precision, are enough to see whether numbers are correlated at all.
    few = width + LOOKED_RUNS
    if _shrunk_correlation(_standardised(first[:few], second[:few], np.float32)) is None:
        return None
    correlation = _shrunk_correlation(_standardised(first, second))
    if correlation is None:
        return None
    gap, deviation = np.mean(first, axis=0) - np.mean(second, axis=0), _deviation(first, second)
    try:
        solved: Array = cho_solve(cho_factor(correlation), gap / deviation)
    except LinAlgError:  # numbers that are sums of each other
        return None
    return solved * reference.spread / deviation  # in units of the spread, as all weights


def _deviation(first: NDArray[Any], second: NDArray[Any]) -> Array:
    """The standard deviation of each number about the mean of its side; 1 where it is 0."""
    square, runs = np.zeros(first.shape[1]), len(first) + len(second)
    for x in (first, second):
        for away in _centred_blocks(x):
            square += np.einsum("ij,ij->j", away, away) / runs
    return np.where(square > 0, np.sqrt(square), 1.0)


def _standardised(
    first: NDArray[Any], second: NDArray[Any], dtype: type[np.floating[Any]] = np.float64
) -> NDArray[Any]:
    """Rows of both sides about their means, over their deviations."""
    rows = np.empty((len(first) + len(second), first.shape[1]), dtype)
    deviation, done = _deviation(first, second), 0
    for x in (first, second):
        for away in _centred_blocks(x):
            np.divide(away, deviation, out=rows[done : done + len(away)], casting="same_kind")
            done += len(away)
    return rows


def _centred_blocks(x: NDArray[Any]) -> Iterator[Array]:
    """Rows about their mean, in blocks that stay in the processor's cache."""
    middle, block = x.mean(axis=0), block_rows(x.shape[1])
    for done in range(0, len(x), block):
        yield x[done : done + block] - middle


def _shrunk_correlation(x: NDArray[Any]) -> NDArray[Any] | None:
    """The shrunk correlations of standardised rows; None if none is clearly above its noise.

    Correlations that are not clear are multiplied by 1 - s, where s is the share of sampling noise
    in the sum of their squares (Schaefer & Strimmer 2005).  The square of the correlation of two
    independent numbers is 1 / runs on average, so the noise is the count of these pairs over runs.
    """
    runs, width = x.shape
    correlation: NDArray[Any] = x.T @ x
    correlation /= runs
    correlation[np.diag_indices(width)] = 0.0
    clear = np.abs(correlation) > CLEAR_CORRELATION / math.sqrt(runs)
    squares = float(np.sum(correlation[~clear] ** 2))
    noise = float(np.count_nonzero(~clear) - width) / runs  # without the diagonal, which is 0
    shrunk = min(max(noise / max(squares, 1e-300), 0.0), 1.0)
    if shrunk > MAX_NOISE_SHARE:
        if not clear.any():  # the sum without correlations is as good, and has less noise
            return None
        # Only the clear correlations are kept.
        shrunk = 1.0
    correlation[~clear] *= 1 - shrunk
    correlation[np.diag_indices(width)] = 1.0 + DIAGONAL_EXCESS
    return correlation
