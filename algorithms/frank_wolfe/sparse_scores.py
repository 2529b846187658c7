"""Frank-Wolfe over the l1 ball on sparse data: a round reads only what the chosen feature touches.

A round selects one of the vertices -radius e_j and +radius e_j, for each feature j, by the
exponential mechanism.  The *score* of a vertex is minus its product with the gradient of the mean
loss.  `LazyExponential` draws exactly from this law, and computes the scores of few vertices: it
only needs an upper bound on every score, with the vertices in *levels* of one bound.

The *margin* of a row x is <x, theta>.  A step changes the margins of rows that have the chosen
feature, and multiplies all others by 1 - step.  The slope of a convex loss is monotone in the
margin, so that between two updates the slope of an untouched row stays in a known interval.  The
sums of these intervals bound the scores.

References: Raff, Khanna & Lu (2023) for updates of only what changed.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from accountant.numerics import Array
from algorithms.base.glm_losses import SQUARED, LinearLoss
from algorithms.base.row_blocks import block_shares, clipped_rows
from algorithms.frank_wolfe.constants import Bounds
from mechanisms.families.bounded_scores import IndexArray

# Rounds until the first refresh of all bounds; each later refresh comes when their number has
# doubled.
FIRST_REFRESH = 16
# How far bounds may exceed scores, in noise scales; before it is more, they are recomputed.  This
# and the other two constants change the time of a round, and not the law of the answers.
MAX_SLACK = 1.0
MAX_BUCKETS = 256  # about the most buckets by upper bound when the buckets are made


@final
class SparseScores:
    """The query of every round: an object that computes scores on demand (see `BoundedScores`).

    The margins of all rows are ``_shrink * _scaled_margins``, so that a step changes one factor and
    few entries.  ``_gradient_sum[j]`` is the sum of x_j times the slope, at the margins that rows
    had when they were last touched.  Until the next refresh the sum at the present margins is
    within ``_slack[j]`` of it.  ``_slope`` and ``_slope_slack`` are the same for each row.  Slopes
    here are multiplied by what a record counts, in [0, 1].
    """

    def __init__(self, bounds: Bounds, loss: LinearLoss, scale: float) -> None:
        self._bounds, self._loss, self._scale = bounds, loss, scale
        self._steepest = loss.bound(bounds.radius * bounds.x, bounds.y)
        # This is added to bounds, as the order of a sum's terms may make one slightly too small:
        # sums of n terms differ by about sqrt(n) units in the last place.  If a score exceeded its
        # bound in spite of it, `LazyExponential` would refuse the draw.
        self._rounding_margin = 1e-9 * scale + 1e-12 * bounds.radius * bounds.lipschitz(loss)
        self._moves: list[tuple[int, float]] = []
        self._moved = False
        self._x: Any = None
        self._next_refresh, self._shrink = 0, 1.0

    @property
    def move_count(self) -> int:
        """The number of moves so far."""
        return len(self._moves)

    def move(self, feature: int, vertex: float) -> None:
        """Record the public move ``theta <- (1 - step) theta + step * vertex * e_feature``."""
        self._moves.append((feature, vertex))
        self._moved = True

    def __call__(self, data: tuple[Any, ...]) -> ScoreSnapshot:
        """Return the scores of this round."""
        if self._x is None:
            self._x = clipped_rows(data[0], self._bounds.x)
            self._columns, self._absolute_x = self._x.tocsc(), abs(self._x)
            self._y: Array = np.clip(data[1], -self._bounds.y, self._bounds.y)
            shares = block_shares(data, self._bounds.weight)
            self._shares = np.broadcast_to(shares, self._y.shape)
            self._gradient_scale = self._bounds.radius / len(self._y)
            self._refresh()
        elif self.move_count >= self._next_refresh:
            self._refresh()
        elif self._moved:  # of a query that is asked twice in a round the second has no move
            self._apply_move(*self._moves[-1])
        self._moved = False
        return ScoreSnapshot(self, self.move_count)

    def candidates(self, level: IndexArray, place: IndexArray) -> IndexArray:
        """Return vertices at places in levels.

        A bucket holds features.  Feature j stands at two places of its level, for the vertices j
        and j + p of `L1Ball`, where p is the number of features.
        """
        pairs = zip(level.tolist(), place.tolist(), strict=True)
        features = self._x.shape[1]
        vertices = [self.buckets.member(k, i >> 1) + features * (i & 1) for k, i in pairs]
        return np.array(vertices, dtype=np.intp)

    def at(self, candidates: IndexArray) -> Array:
        """Return the scores of some vertices."""
        scores, features = np.empty(candidates.size), self._x.shape[1]
        for i, candidate in enumerate(candidates.tolist()):
            rows, values = column_entries(self._columns, candidate % features)
            gradient = values @ self._slope_of(self._shrink * self._scaled_margins[rows], rows)
            scores[i] = self._gradient_scale * (gradient if candidate < features else -gradient)
        return scores

    def scores(self, moves: int) -> Array:
        """Return the scores of all vertices after some moves."""
        is_current = moves == self.move_count
        margin = self._shrink * self._scaled_margins if is_current else self._x @ self._theta(moves)
        gradient = self._gradient_scale * np.asarray(self._slope_of(margin) @ self._x)
        return np.concatenate([gradient, -gradient])

    def _refresh(self) -> None:
        """Recompute margins, gradient, slack and levels."""
        self._shrink, self._scaled_margins = 1.0, np.asarray(self._x @ self._theta(self.move_count))
        self._next_refresh = max(FIRST_REFRESH, 2 * self.move_count)
        self._slope, self._slope_slack = self._slopes(self._scaled_margins)
        self._gradient_sum = np.asarray(self._slope @ self._x)
        self._slack = np.asarray(self._slope_slack @ self._absolute_x)
        slack_ratio = self._gradient_scale * self._slack.max() / (MAX_SLACK * self._scale)
        if slack_ratio > 1:
            # Slack grows about linearly with the number of moves until the next refresh, so there
            # are to be fewer of them by this ratio.
            self._next_refresh = self.move_count + max(
                1, int((self._next_refresh - self.move_count) / slack_ratio)
            )
            _, self._slope_slack = self._slopes(self._scaled_margins)
            self._slack = np.asarray(self._slope_slack @ self._absolute_x)
        width = math.log(2) * self._scale
        self.buckets = ScoreBuckets(self._score_bounds(slice(None)), width, self._rounding_margin)

    def _apply_move(self, feature: int, vertex: float) -> None:
        """Apply one move: update rows with the feature, and the features in those rows."""
        step = step_size(self.move_count)
        self._shrink *= 1 - step
        rows, values = column_entries(self._columns, feature)
        if rows.size == 0:
            return
        self._scaled_margins[rows] += step * vertex / self._shrink * values
        slope, away = self._slopes(self._shrink * self._scaled_margins[rows], rows)
        positions, lengths = row_entries(self._x, rows)
        features, x = self._x.indices[positions], self._x.data[positions]
        np.add.at(self._gradient_sum, features, x * np.repeat(slope - self._slope[rows], lengths))
        np.add.at(
            self._slack, features, abs(x) * np.repeat(away - self._slope_slack[rows], lengths)
        )
        self._slope[rows], self._slope_slack[rows] = slope, away
        touched = unique_items(features, self._x.shape[1])
        self.buckets.update(touched, self._score_bounds(touched))

    def _slopes(self, margin: Array, rows: Any = slice(None)) -> tuple[Array, Array]:
        """Return the current slopes, and how far they can move until the next refresh."""
        # The steps are 2 / (t + 2), so from m moves to u an untouched margin shrinks by the product
        # of t / (t + 2) for t = m + 1 to u, which is (m + 1) (m + 2) / ((u + 1) (u + 2)).  Between
        # the margin now and the shrunk one, slopes are between the two slopes.
        shrinkage = (
            (self.move_count + 1)
            * (self.move_count + 2)
            / ((self._next_refresh + 1) * (self._next_refresh + 2))
        )
        slope = self._slope_of(margin, rows)
        return slope, abs(self._slope_of(shrinkage * margin, rows) - slope)

    def _slope_of(self, margin: Array, rows: Any = slice(None)) -> Array:
        slope = np.clip(self._loss.slope(margin, self._y[rows]), -self._steepest, self._steepest)
        return np.asarray(slope * self._shares[rows])

    def _score_bounds(self, features: Any) -> Array:
        """Return for each feature the upper bound of the scores of its two vertices."""
        upper_bounds: Array = self._gradient_scale * (
            abs(self._gradient_sum[features]) + self._slack[features]
        )
        return upper_bounds

    def _theta(self, moves: int) -> Array:
        """Return the coefficients after some of the recorded moves."""
        theta, shrink = np.zeros(self._x.shape[1]), 1.0
        for t, (feature, vertex) in enumerate(self._moves[:moves], start=1):
            shrink *= 1 - step_size(t)
            theta[feature] += step_size(t) * vertex / shrink
        return shrink * theta


@final
class ScoreSnapshot:
    """The scores after some moves; levels are valid until the next move."""

    def __init__(self, query: SparseScores, moves: int) -> None:
        self._query, self._moves = query, moves

    def levels(self) -> tuple[Array, IndexArray]:
        """Return the bounds and sizes of the levels; see `BoundedScores.levels`."""
        bounds, counts = self._current_query().buckets.bounds()
        return bounds, 2 * counts

    def members(self, level: IndexArray, place: IndexArray) -> IndexArray:
        """Return candidates by level and place; see `BoundedScores.members`."""
        return self._current_query().candidates(level, place)

    def at(self, candidates: IndexArray) -> Array:
        """Return the scores of some candidates; see `BoundedScores.at`."""
        return self._current_query().at(candidates)

    def scores(self) -> Array:
        """Return all scores; see `BoundedScores.scores`."""
        return self._query.scores(self._moves)

    def _current_query(self) -> SparseScores:
        if self._query.move_count != self._moves:
            raise RuntimeError(
                "these scores are out of date: a later move was recorded; query the ledger again"
            )
        return self._query


def run_sparse_frank_wolfe(
    ledger: Any, mechanism: Any, rounds: int, bounds: Bounds, loss: LinearLoss = SQUARED
) -> Array:
    """Return the last iterate of the rounds released by the ledger."""
    query, features = SparseScores(bounds, loss, mechanism.scale), ledger.shape[1]
    theta, shrink = np.zeros(features), 1.0  # the iterate is shrink * theta
    for t in range(1, rounds + 1):
        chosen = int(ledger.release(mechanism, query))
        feature, vertex = chosen % features, bounds.radius * (-1 if chosen < features else 1)
        shrink *= 1 - step_size(t)
        theta[feature] += step_size(t) * vertex / shrink
        query.move(feature, vertex)
    return shrink * theta


def step_size(t: int) -> float:
    """Return the step of round t = 1, 2, ..."""
    return 2 / (t + 2)


@final
class ScoreBuckets:
    """Items 0, 1, ... in buckets by an upper bound; an item moves in constant time.

    The items are features.  Bucket k holds those whose bound is above ``(k - 1) width`` and at most
    ``k width``; a rounding margin is added when its bound is asked for.
    """

    def __init__(self, upper_bounds: Array, width: float, rounding_margin: float) -> None:
        self._width = max(width, float(upper_bounds.max()) / MAX_BUCKETS)
        self._rounding_margin = rounding_margin
        self._bucket = self._bucket_of(upper_bounds)
        order = np.argsort(self._bucket, kind="stable")
        levels, level_starts = np.unique(self._bucket[order], return_index=True)
        groups = np.split(order, level_starts[1:])
        self._members: dict[int, list[int]] = {
            int(level): group.tolist() for level, group in zip(levels, groups, strict=True)
        }
        positions = np.empty(upper_bounds.size, dtype=np.intp)
        for group in groups:
            positions[group] = np.arange(group.size)
        self._place: list[int] = positions.tolist()
        self._keys: list[int] = []  # the buckets in the order of the last `bounds`

    def update(self, items: IndexArray, upper_bounds: Array) -> None:
        """Set new bounds of some items."""
        level = self._bucket_of(upper_bounds)
        moved = level != self._bucket[items]
        movers = items[moved]
        for item, old_level, new_level in zip(
            movers.tolist(), self._bucket[movers].tolist(), level[moved].tolist(), strict=True
        ):
            # The last member of the old bucket takes the place of the item.
            members = self._members[old_level]
            last_member = members.pop()
            if last_member != item:
                members[self._place[item]] = last_member
                self._place[last_member] = self._place[item]
            if not members:
                del self._members[old_level]
            bucket = self._members.setdefault(new_level, [])
            self._place[item] = len(bucket)
            bucket.append(item)
        self._bucket[movers] = level[moved]

    def bounds(self) -> tuple[Array, IndexArray]:
        """Return the bounds of the buckets, and the number of items in each."""
        self._keys = list(self._members)
        counts = [len(members) for members in self._members.values()]
        return np.array(self._keys) * self._width + self._rounding_margin, np.array(counts)

    def member(self, level: int, place: int) -> int:
        """Return the item at a place in a bucket, in the order of `bounds`."""
        return self._members[self._keys[level]][place]

    def _bucket_of(self, upper_bounds: Array) -> Any:
        return np.ceil(upper_bounds / self._width).astype(np.int64)


def column_entries(columns: Any, feature: int) -> tuple[IndexArray, Array]:
    """Return rows and values of one column of a matrix stored by columns."""
    part = slice(columns.indptr[feature], columns.indptr[feature + 1])
    return columns.indices[part], columns.data[part]


def row_entries(matrix: Any, rows: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return where the entries of rows are stored, and the number of entries of each row."""
    row_starts = matrix.indptr[rows]
    lengths = matrix.indptr[rows + 1] - row_starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(row_starts - before, lengths) + np.arange(lengths.sum()), lengths


def unique_items(items: IndexArray, count: int) -> IndexArray:
    """Return each of some items below ``count`` once."""
    if 8 * items.size < count:  # sorting few items is faster than counting all
        return np.unique(items)
    return np.flatnonzero(np.bincount(items, minlength=count))
