"""Gradient descent on a linear model: each record's gradient is clipped, each mean is noisy.

The gradient of a record (x, y) at theta is ``x r'`` with residuals ``r(x' theta, y)``, one for each
output of the model.  Its length is ``|x| |r|``, so that clipping needs no array of gradients.
docs/proofs/clipped_gradients.md, points 3 to 5, proves how far one record moves the mean, round-off
included.

References: Song, Chaudhuri & Sarwate (2013); Abadi et al. (2016), Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from accountant.ledger.chunks import HELD_BYTES, Chunks
from accountant.ledger.ordered_map import map_in_order
from accountant.ledger.private_data import first_array, take_rows
from accountant.numerics import Array
from accountant.numerics.rounding import ULP
from algorithms.base.row_blocks import (
    clipped_rows,
    ordered_sum,
    row_blocks,
    row_lengths,
    row_products,
    same_memory,
    squared_lengths,
    weight_shares,
    weighted_row_sum,
)

Residuals = Callable[[Array, Array], Array]
Within = Callable[[Array, Array], Any]  # which records count, by their scores and targets
MAX_ENTRY = 1e100  # largest absolute entry: its square is a finite float
# This factor shortens gradients by more than the round-off of a length of 1 can add; see point 5.
WITHIN = 1 - 1e-9


def row_weights(rows: Any, row_bound: float, intercept: float) -> Array:
    """Return ``min(1, row_bound / length)^2`` of every row: what a record counts in a fit.

    If a row and its target are both multiplied by s, the squared error of a linear model is
    multiplied by s^2.  So the weight is what shortening both to the bound does to that loss, while
    the model stays one of whole rows.
    """
    if row_bound == np.inf:
        return np.ones(rows.shape[0])
    weights: Array = np.square(row_bound / np.maximum(row_lengths(rows, intercept), row_bound))
    return weights


@final
@dataclass(frozen=True, slots=True)
class FeatureMap:
    """The features of a model: ``root' (clip(x) - centre)``, and a constant if ``intercept``.

    Scores, lengths and gradients are those of the mapped rows, and are computed from the rows as
    they are: no array of mapped rows is made for scores and gradients.
    """

    x_bound: float = MAX_ENTRY  # entries of x are clipped to it
    intercept: float = 0.0  # the value of the constant feature, which stands last; 0: there is none
    centre: Array | None = None  # None: 0
    root: Array | None = None  # None: the identity
    row_bound: float = np.inf  # see `row_weights`

    def coefficients(self, theta: Array) -> tuple[Array, Array]:
        """Return (features, outputs) coefficients of clipped rows, and (outputs,) intercepts."""
        slopes, constant = theta, np.zeros(theta.shape[1])
        if self.intercept:
            slopes, constant = theta[:-1], self.intercept * theta[-1]
        if self.root is not None:
            slopes = np.einsum("ij,jk->ik", self.root, slopes)
        if self.centre is not None:
            constant = constant - np.einsum("i,ij->j", self.centre, slopes)
        return slopes, constant

    def row_weights(self, rows: Any) -> Array:
        """Return the weight of each record, by its clipped row; see `row_weights`."""
        return row_weights(rows, self.row_bound, float(bool(self.intercept)))

    def lengths(self, rows: Any) -> Array:
        """Return the Euclidean lengths of the mapped rows, whose entries are clipped already."""
        if self.root is None and self.centre is not None and not isinstance(rows, np.ndarray):
            # |x - m|^2 = |x|^2 - 2 <x, m> + |m|^2 needs no array of differences.  What is added is
            # more than what the three sums of so many terms may lose: no length is too small.
            room = 1e-12 + rows.shape[1] * ULP
            squares, of_centre = squared_lengths(rows), float(self.centre @ self.centre)
            distances = squares - 2 * row_products(rows, self.centre) + of_centre
            distances = np.maximum(distances, 0.0) + room * (squares + of_centre)
            return np.asarray(np.sqrt(distances + self.intercept**2))
        if self.root is not None or self.centre is not None:
            rows = self.mapped(rows)
        return row_lengths(rows, self.intercept)

    def mapped(self, rows: Any) -> Array:
        """Return the mapped rows without their constant; entries are clipped already."""
        rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
        rows = rows if self.centre is None else rows - self.centre
        mapped: Array = rows if self.root is None else np.einsum("ij,jk->ik", rows, self.root)
        return mapped

    def gradient(self, rows: Any, slopes: Array) -> Array:
        """Return the sum of ``mapped row slopes'``, of the shape of theta."""
        total = np.stack([weighted_row_sum(rows, column) for column in slopes.T], axis=1)
        sums = slopes.sum(axis=0)
        if self.centre is not None:
            total = total - np.outer(self.centre, sums)
        if self.root is not None:
            total = np.einsum("ji,jk->ik", self.root, total)
        return np.vstack([total, self.intercept * sums]) if self.intercept else total


def clipped_lengths(features: FeatureMap, rows: Any) -> Array:
    """Return the lengths of mapped rows whose entries are clipped here."""
    return features.lengths(clipped_rows(rows, features.x_bound))


class KnownLengths(NamedTuple):
    """The lengths of the mapped rows of a block, and how to see that the rows are still the same.

    A row that differs has another product with a random vector, but for a chance of about one in a
    thousand million at a difference that a clipped gradient would feel.
    """

    lengths: Array
    products: Array
    vector: Array

    @classmethod
    def of(cls, features: FeatureMap, vector: Array, rows: Any) -> KnownLengths:
        """Return those of rows whose entries are clipped here."""
        rows = clipped_rows(rows, features.x_bound)
        return cls(features.lengths(rows), row_products(rows, vector), vector)

    def are_of(self, rows: Any) -> bool:
        """Return whether these clipped rows are those that were measured."""
        return np.array_equal(row_products(rows, self.vector), self.products)


@final
@dataclass(frozen=True, slots=True)
class BlockClippedGradient:
    """The summed gradients of a block of records, in units of the clipping norm.

    A block is (rows, targets) or (rows, targets, weights); a weight counts as its share of
    ``weight_bound``, clipped to ``[0, 1]``.
    ``theta`` has a row for each feature and, with an intercept, a last one for the constant.
    With a ``row_bound`` of the features a record with a longer row counts less, see `row_weights`.
    If ``unclipped_weight`` is positive, it is what a record adds to one more coordinate if its
    gradient is not clipped, or if it is ``within`` where that is given; with ``squares`` every
    record adds the squared length of its clipped gradient, in units of the clipping norm, times
    that weight.  ``class_weights``, from 0 to 1, say what a record counts by its class: the targets
    are 0, 1, ...
    """

    residuals: Residuals
    clip: float
    features: FeatureMap
    weight_bound: float
    theta: Array
    unclipped_weight: float = 0.0
    squares: bool = False
    within: Within | None = None
    class_weights: Array | None = None

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return the sum in the shape of ``theta``; as one vector if it has the last coordinate."""
        return self.with_lengths((block, None))

    def with_lengths(self, block: tuple[tuple[Any, ...], Array | KnownLengths | None]) -> Array:
        """Return what a call does; the block may come with the lengths of its mapped rows."""
        (rows, targets, *weights), lengths = block
        rows = clipped_rows(rows, self.features.x_bound)
        if isinstance(lengths, KnownLengths):
            lengths = lengths.lengths if lengths.are_of(rows) else None
        slopes, constant = self.features.coefficients(self.theta)
        scores = np.stack([row_products(rows, column) for column in slopes.T], axis=1) + constant
        residuals = self.residuals(scores, targets)
        row_norms = self.features.lengths(rows) if lengths is None else lengths
        gradient_norms = row_norms * np.sqrt(np.square(residuals).sum(axis=1))
        # A gradient over max(its length, clip) is at most 1 long.
        factors = WITHIN / np.maximum(gradient_norms, self.clip) * self.features.row_weights(rows)
        if weights:
            factors = factors * weight_shares(weights[0], self.weight_bound)
        if self.class_weights is not None:
            nearest_class = np.clip(targets, 0, len(self.class_weights) - 1).astype(np.intp)
            factors = factors * self.class_weights[nearest_class]
        total = self.features.gradient(rows, residuals * factors[:, None])
        if not self.unclipped_weight:
            return total
        counted = gradient_norms <= self.clip
        if self.within is not None:
            counted = self.within(scores, targets)
        last = float(np.count_nonzero(counted))
        if self.squares:
            last = float(np.square(np.minimum(gradient_norms / self.clip, 1.0)).sum())
        return np.append(total, self.unclipped_weight * last)


class MeanOfClippedGradients:
    """The query of every round: the mean of clipped gradients over the clipping norm.

    ``records`` is what the sum is divided by.  The presence of a record moves the mean gradient by
    at most ``1 / records``, and its exchange for another by twice that.  The answer is one vector:
    the rows of the mean gradient in turn, then the share of records that are not clipped, times
    ``unclipped_weight``, if that is positive; with ``squares`` the mean squared length of clipped
    gradients in place of that share, with ``within`` the share of records within.  Before a round
    the caller sets ``theta``, and the other public attributes where they change.
    """

    def __init__(
        self,
        residuals: Residuals,
        clip: float,
        records: float,
        features: FeatureMap,
        executor: Executor | None = None,
        weight_bound: float = 1.0,
        unclipped_weight: float = 0.0,
        class_weights: Array | None = None,
    ) -> None:
        self.residuals, self._weight_bound = residuals, weight_bound
        self._class_weights = class_weights
        self._unclipped_weight = unclipped_weight
        self.clip, self.squares = clip, False
        self.within: Within | None = None
        self._features, self._records, self._executor = features, records, executor
        self._known_lengths: tuple[Any, list[Array | KnownLengths | None]] | None = None
        self.theta: Array = np.empty((0, 1))

    def __call__(self, data: Any) -> Array:
        """Return the answer; the lengths of mapped rows are computed once for the same data.

        In one fit the map and the data stay the same for all rounds.  Chunks may hold other rows
        when they are read again: what is known of a block is compared with its rows.
        """
        features = first_array(data)
        if not features.shape[0]:  # an empty sample
            return np.zeros(self.theta.size + (self._unclipped_weight > 0))
        blocks = row_blocks(data)
        lengths: list[Array | KnownLengths | None] = [None] * len(blocks)
        # Without the root of a map, lengths cost no more than to see that rows are the same.
        if not isinstance(features, Chunks) or self._features.root is not None:
            if self._known_lengths is None or not same_memory(self._known_lengths[0], features):
                work: Callable[[Any], Any] = partial(clipped_lengths, self._features)
                read_blocks = blocks
                if isinstance(features, Chunks):
                    vector = np.random.default_rng().uniform(0.5, 1.0, features.shape[1])
                    work = partial(KnownLengths.of, self._features, vector)
                    read_blocks = [
                        rows for rows in blocks if 2 * vector.itemsize * rows.stop <= HELD_BYTES
                    ]
                kept_rows = (first_array(take_rows(features, rows)) for rows in read_blocks)
                measured_lengths = list(map_in_order(work, kept_rows, self._executor))
                self._known_lengths = features, measured_lengths + lengths[len(read_blocks) :]
            lengths = self._known_lengths[1]
        pieces = (
            (take_rows(data, block_rows), block_lengths)
            for block_rows, block_lengths in zip(blocks, lengths, strict=True)
        )
        of_block = BlockClippedGradient(
            self.residuals,
            self.clip,
            self._features,
            self._weight_bound,
            self.theta,
            self._unclipped_weight,
            self.squares,
            self.within,
            self._class_weights,
        )
        return ordered_sum(of_block.with_lengths, pieces, self._executor).ravel() / self._records


def descend(
    ledger: Any,
    mechanism: Any,
    gradient: MeanOfClippedGradients,
    start: Array,
    step: float,
    rounds: int,
    averaged: bool = True,
) -> Array:
    """Return the mean of the iterates of ``rounds`` noisy gradient steps from ``start``.

    ``mechanism`` is the part of the ledger's plan that a round releases.  A step is ``step`` times
    the released gradient, which is in units of the clipping norm.  Later iterates have larger
    weights in the mean; unless ``averaged``, the last one is returned.
    """
    theta, mean = start, start
    for t in range(1, rounds + 1):
        gradient.theta = theta
        noisy = np.reshape(ledger.release(mechanism, gradient, shape=start.size), start.shape)
        theta = theta - step * noisy
        # Iterate t of T weighs 2 t / (T (T + 1)) in the mean.
        mean = mean + 2 / (t + 1) * (theta - mean)
    return mean if averaged else theta
