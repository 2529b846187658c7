"""The queries of local sparse regression: each user reports one number in [-1, 1].

The number is a slope ``x_j r / clip``, a product ``x_j x_k``, or whether ``|r|`` is beyond a level,
where x are the user's features, r is the residual and f the link.  Users are processed in blocks of
rows, and a user's place in the block decides which question is asked: which coordinate j, pair
(j, k) or level.  Places and blocks are public.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np

from accountant.numerics import Array
from algorithms.base.row_blocks import equal_slices, row_products, rows_per_block
from algorithms.sparse_regression.links import Link
from algorithms.sparse_regression.narrowing_rounds import SHARES, Indices, candidates

# Residuals are cut here so that they stay finite floats, also after the division by the link's
# derivative; clipping makes them far smaller later.
MAX_RESIDUAL = 1e150


@final
@dataclass(frozen=True, slots=True)
class Residuals:
    """Residuals ``(y - f(<x, theta>)) / f'(<x, theta>)`` of a block of users."""

    link: Link
    theta: Array

    def __call__(self, rows: tuple[Any, Array]) -> Array:
        """Return the residual of each user."""
        support = np.flatnonzero(self.theta)
        inner = row_products(dense_columns(rows[0], support), self.theta[support])
        residuals = np.clip(rows[1] - self.link.function(inner), -MAX_RESIDUAL, MAX_RESIDUAL)
        return np.asarray(residuals / self.link.derivative(inner))


@final
@dataclass(frozen=True, slots=True)
class SlopeReports:
    """The query of a block: ``x_j r / clip`` in [-1, 1], j by the user's place."""

    residuals: Residuals
    columns: Indices
    clip: float

    def __call__(self, rows: tuple[Any, Array]) -> Array:
        """Return the number that each user reports."""
        part = np.clip(self.residuals(rows) / self.clip, -1.0, 1.0)
        return np.asarray(own_entries(rows[0], self.columns) * part)


@final
@dataclass(frozen=True, slots=True)
class ProductReports:
    """The query of a block: ``x_j x_k``, the pair by the user's place."""

    pairs: Indices

    def __call__(self, rows: tuple[Any, Array]) -> Array:
        """Return the number that each user reports."""
        return own_entries(rows[0], self.pairs[0]) * own_entries(rows[0], self.pairs[1])


@final
@dataclass(frozen=True, slots=True)
class SizeReports:
    """The query of a block: 1 if ``|r|`` is beyond a level, else -1; the level by the place."""

    residuals: Residuals
    levels: Array

    def __call__(self, rows: tuple[Any, Array]) -> Array:
        """Return the number that each user reports."""
        sizes = np.abs(self.residuals(rows))
        question = question_of_users(len(sizes), len(self.levels))
        return np.where(sizes > self.levels[question], 1.0, -1.0)


@final
@dataclass(frozen=True, slots=True)
class LedgerUsers:
    """Users behind a ledger, as the rounds ask them; each is asked in one stage."""

    ledger: Any
    link: Link
    stages: list[list[slice]]
    executor: Executor | None

    def slopes(
        self, stage: int, columns: Indices, theta: Array, clip: float
    ) -> tuple[Array, Array]:
        """Return means of ``x_j r`` and how many users each had."""
        query = SlopeReports(Residuals(self.link, theta), columns, clip)
        means, counts = self._means(stage, query, len(columns))
        return clip * means, counts

    def products(self, stage: int, pairs: Indices) -> tuple[Array, Array]:
        """Return means of ``x_j x_k`` and how many users each had."""
        return self._means(stage, ProductReports(pairs), pairs.shape[1])

    def beyond(self, stage: int, levels: Array, theta: Array) -> tuple[Array, Array]:
        """Return shares of residuals beyond each level, and how many users each had."""
        query = SizeReports(Residuals(self.link, theta), levels)
        means, counts = self._means(stage, query, len(levels))
        return (means + 1) / 2, counts

    def _means(self, stage: int, query: Any, questions: int) -> tuple[Array, Array]:
        """Return the mean report on each question, and how many users each had."""
        total, counts, blocks = np.zeros(questions), np.zeros(questions), self.stages[stage]
        sums: Iterable[Array] = ()
        if blocks:  # a stage may have no users if there are few
            mechanism, summed = self.ledger.plan.parts[0], SumsByQuestion(questions)
            sums = self.ledger.release_blocks(mechanism, query, blocks, self.executor, summed)
        for part, block in zip(sums, blocks, strict=True):
            total += part
            question = question_of_users(block.stop - block.start, questions)
            counts += np.bincount(question, minlength=questions)
        return total / np.maximum(counts, 1), counts


@final
@dataclass(frozen=True, slots=True)
class SumsByQuestion:
    """The sums of a block's reports on each question."""

    questions: int

    def __call__(self, reports: Array) -> Array:
        """Return a sum for each question."""
        question = question_of_users(len(reports), self.questions)
        return np.asarray(np.bincount(question, reports, self.questions), dtype=np.float64)


def stage_blocks(
    users: int, features: int, sparsity: int, enough_users: Array
) -> list[list[slice]]:
    """Return the blocks of users of every stage; a block but the last has a user per question.

    A stage has its share of the users, or as many as are enough; the last one has all others.
    """
    candidate_count = candidates(features, sparsity)
    block_rows = max(
        rows_per_block(features), features, candidate_count * (candidate_count + 1) // 2
    )
    sizes = np.minimum(users * np.array(SHARES[:-1]), enough_users)
    ends = [0, *(int(end) for end in np.rint(np.cumsum(sizes))), users]
    return [equal_slices(start, stop, block_rows) for start, stop in pairwise(ends)]


def question_of_users(users: int, questions: int) -> Indices:
    """Return which of the questions each user of a block is asked: they take turns."""
    return np.arange(users) % questions


def own_entries(x: Any, columns: Indices) -> Array:
    """Return for each row its entry in the column of its place, clipped to [-1, 1]."""
    users = x.shape[0]
    entries = np.asarray(
        x[np.arange(users), columns[question_of_users(users, len(columns))]], dtype=np.float64
    )
    return np.clip(entries.reshape(-1), -1.0, 1.0)


def dense_columns(x: Any, columns: Indices) -> Array:
    """Return some columns, clipped to [-1, 1], dense."""
    selected = x[:, columns]
    dense = np.asarray(
        selected.toarray() if hasattr(selected, "toarray") else selected, dtype=np.float64
    )
    return np.clip(dense, -1.0, 1.0)
