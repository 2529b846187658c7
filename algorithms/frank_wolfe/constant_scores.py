"""The constant of a linear model, selected with noise among public candidates.

The best constant makes the mean slope of the loss 0.  So a candidate's score is minus the absolute
mean slope at it.  The scores are scaled so that a record moves them no more than it moves a
vertex's score in Frank-Wolfe: the mechanism that selects vertices then selects the constant too, as
one more round.  One selection before the vertices takes the constant alone, one after them
corrects it.

References: McSherry & Talwar (2007) for the selection.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import logit

from accountant.numerics import Array
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation
from algorithms.base.glm_losses import SQUARED, LinearLoss
from algorithms.base.row_blocks import (
    block_shares,
    clipped_rows,
    row_products,
    sum_over_blocks,
)
from algorithms.frank_wolfe.constants import Bounds
from algorithms.frank_wolfe.dense_scores import BestVertex
from mechanisms.families.bounded_scores import ListedScores
from mechanisms.lazy_exponential import LazyExponential

SELECTIONS = 2  # a constant is selected before the vertices and again after them
CANDIDATES = 257  # an odd number, so that 0 is one of them
# Share of the sensitivity that is used.  The rest covers the round-off of a record's slope, some
# units in the last place.
WITHIN = 1 - 1e-9


@final
@dataclass(frozen=True, slots=True)
class ShiftedSlope:
    """The slope of a loss at predictions to which a public constant is added."""

    loss: LinearLoss
    constant: float

    def __call__(self, inner: Array, y: Array) -> Array:
        """Return the slope of the loss at the predictions plus the constant."""
        return self.loss.slope(inner + self.constant, y)


@final
@dataclass(frozen=True, slots=True)
class BlockSlopes:
    """The summed slopes of a block of records at every candidate constant, and what they count.

    Without ``candidates``, for the squared loss, it is one sum, of ``y - <x, theta>``: the sum of
    slopes at a constant is minus that, plus the constant for each record.  The query decides which
    it is, for in another process the loss is another object.
    """

    bounds: Bounds
    loss: LinearLoss
    theta: Array
    candidates: Array | None

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return a sum for each candidate, or that of residuals; last, what the records count."""
        shares = block_shares(block, self.bounds.weight)
        y = np.clip(block[1], -self.bounds.y, self.bounds.y)
        inner = row_products(clipped_rows(block[0], self.bounds.x), self.theta)
        count = np.broadcast_to(shares, y.shape).sum()
        if self.candidates is None:
            return np.array([np.sum(shares * (y - inner)), count])
        sums = [
            np.sum(shares * self.loss.slope(inner + constant, y)) for constant in self.candidates
        ]
        return np.array([*sums, count])


@final
@dataclass(frozen=True, slots=True)
class ConstantScores:
    """A query: the score of every candidate at public coefficients of l1 norm at most ``radius``.

    ``theta`` has these coefficients, ``relation`` says which data sets are neighbours, and
    ``sensitivity`` is the sensitivity of the score of a vertex; the scores are scaled to it.
    """

    bounds: Bounds
    loss: LinearLoss
    theta: Array
    radius: float
    relation: str
    sensitivity: float
    executor: Executor | None = None

    @property
    def candidates(self) -> Array:
        """The public constants, evenly spaced.

        For the squared loss they span the range of ``y - <x, theta>``; for the logistic loss they
        are the logits of evenly spaced probabilities.
        """
        if self.loss is SQUARED:
            largest = self.bounds.y + self.radius * self.bounds.x
            return np.linspace(-largest, largest, CANDIDATES)
        return np.asarray(logit((np.arange(CANDIDATES) + 0.5) / CANDIDATES))

    def __call__(self, data: tuple[Any, ...]) -> Array:
        """Return the score of each candidate."""
        records, candidates, is_squared = data[0].shape[0], self.candidates, self.loss is SQUARED
        work = BlockSlopes(self.bounds, self.loss, self.theta, None if is_squared else candidates)
        *sums, count = sum_over_blocks(work, data, self.executor) / records
        mean = np.array(sums)
        if is_squared:
            mean = mean - count * candidates
        unit = self.sensitivity / self.moved(records, weighted=len(data) > 2)
        scores: Array = -WITHIN * unit * np.abs(mean)
        return scores

    def moved(self, records: int, weighted: bool = False) -> float:
        """Return how far a record moves a mean slope; a weight is a factor in [0, 1] of its own."""
        replaced = check_relation("relation", self.relation, RECORD_RELATIONS)
        inner = self.radius * self.bounds.x
        if self.loss is SQUARED:
            # A slope is y - <x, theta> less the constant, both at most ``largest``.  Of records of
            # equal weight the public number is known, and so is the sum of their constants: a
            # record moves the rest alone.
            largest = self.bounds.y + inner
            twice = weighted or replaced is Adjacency.REPLACE_ONE
            return (2 * largest if twice else largest) / records
        # The slopes of one label are logistic values at scores from b - inner to b + inner, b the
        # constant; at b = 0 they spread most, by tanh(inner / 2).  Those of the other label are
        # smaller by 1, so all slopes lie in a range of 1 + tanh(inner / 2).  It contains 0, so that
        # it is also the range of slopes times factors in [0, 1].
        reach = 1 + math.tanh(inner / 2) if replaced is Adjacency.REPLACE_ONE else 1.0
        return reach / records


def released_constant(ledger: Any, mechanism: Any, query: ConstantScores) -> float:
    """Return the candidate that a mechanism of vertices selects."""
    selection_query: Any = query
    shape: tuple[int, ...] | None = (query.candidates.size,)
    if isinstance(mechanism, LazyExponential):
        # A mechanism that computes scores on demand is given them as a list.
        selection_query, shape = ListedConstants(query), None
    elif not hasattr(mechanism, "scale"):  # without privacy
        selection_query, shape = BestVertex(query), ()
    return float(query.candidates[int(ledger.release(mechanism, selection_query, shape=shape))])


@final
@dataclass(frozen=True, slots=True)
class ListedConstants:
    """The query for a mechanism that computes scores on demand."""

    query: ConstantScores

    def __call__(self, data: tuple[Any, Array]) -> ListedScores:
        """Return the scores of all candidates."""
        return ListedScores(self.query(data))
