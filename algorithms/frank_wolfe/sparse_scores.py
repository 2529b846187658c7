"""Frank-Wolfe over the l1 ball on sparse data: a round costs what the chosen feature touches.

A step changes the margins <x, theta> of rows that have the chosen feature; all others shrink by a
known factor.  A convex loss's slope is monotone in the margin, so between two points of time
every score stays within an interval that is known beforehand.  That is enough to select by the
exponential mechanism exactly, with few scores ever computed.

The idea of touching only what changed is that of Raff, Khanna & Lu (2023).
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from accountant.numerics import Array
from algorithms.base.glm_losses import SQUARED, LinearLoss
from algorithms.frank_wolfe.constants import Bounds
from algorithms.frank_wolfe.dense_scores import clipped_sparse
from algorithms.frank_wolfe.score_buckets import Levels
from algorithms.frank_wolfe.sparse_entries import column, distinct, entries
from mechanisms.families.bounded_scores import INDICES

FIRST = 16  # rounds until all bounds are made afresh; later on, as many as there were so far
LOOSE = 1.0  # by how many scales bounds may exceed scores before they are made afresh sooner


@final
class LazyScores:
    """The query of every round: an object that looks scores up (see `Levelled`).

    Margins are ``shrink * far``.  Feature j's gradient is ``sum[j]`` at the margins that rows had
    when they were last touched, and within ``slack[j]`` of it until all is made afresh.
    """

    def __init__(self, bounds: Bounds, loss: LinearLoss, scale: float) -> None:
        self._bounds, self._loss, self._scale = bounds, loss, scale
        self._steepest = loss.bound(bounds.radius * bounds.x, bounds.y)
        # floats may take a bound for a hair less than it is
        self._hair = 1e-9 * scale + 1e-12 * bounds.radius * bounds.lipschitz(loss)
        self._moves: list[tuple[int, float]] = []
        self._moved = False
        self._x: Any = None
        self._until, self._shrink = 0, 1.0

    @property
    def moves(self) -> int:
        """How many were made."""
        return len(self._moves)

    def move(self, feature: int, vertex: float) -> None:
        """Note the public move ``theta <- (1 - step) theta + step * vertex * e_feature``."""
        self._moves.append((feature, vertex))
        self._moved = True

    def __call__(self, data: tuple[Any, Any]) -> Look:
        """The scores of this round."""
        if self._x is None:
            self._prepare(data)
        elif self.moves >= self._until:
            self._refer()
        elif self._moved:
            self._follow(*self._moves[-1])
        self._moved = False
        return Look(self, self.moves)

    def candidates(self, level: INDICES, place: INDICES) -> INDICES:
        """Vertices at places in levels, two of each feature: see `L1Ball`."""
        pairs = zip(level.tolist(), place.tolist(), strict=True)
        features = self._x.shape[1]
        found = [self.levels.member(k, i >> 1) + features * (i & 1) for k, i in pairs]
        return np.array(found, dtype=np.intp)

    def at(self, candidates: INDICES) -> Array:
        """Scores of vertices."""
        found, features = np.empty(candidates.size), self._x.shape[1]
        for i, candidate in enumerate(candidates.tolist()):
            rows, values = column(self._columns, candidate % features)
            gradient = values @ self._slope_of(self._shrink * self._far[rows], self._y[rows])
            found[i] = self._unit * (gradient if candidate < features else -gradient)
        return found

    def scores(self, moves: int) -> Array:
        """Scores of all vertices after some moves."""
        now = moves == self.moves
        margin = self._shrink * self._far if now else self._x @ self._theta(moves)
        gradient = self._unit * np.asarray(self._slope_of(margin, self._y) @ self._x)
        return np.concatenate([gradient, -gradient])

    def _prepare(self, data: tuple[Any, Any]) -> None:
        self._x = clipped_sparse(data[0], self._bounds.x)
        self._columns, self._size = self._x.tocsc(), abs(self._x)
        self._y: Array = np.clip(data[1], -self._bounds.y, self._bounds.y)
        self._unit = self._bounds.radius / len(self._y)
        self._refer()

    def _refer(self) -> None:
        """Make margins, gradient, slack and levels afresh."""
        self._shrink, self._far = 1.0, np.asarray(self._x @ self._theta(self.moves))
        self._until = max(FIRST, 2 * self.moves)
        self._slope, self._away = self._slopes(self._far, self._y)
        self._sum = np.asarray(self._slope @ self._x)
        self._slack = np.asarray(self._away @ self._size)
        loose = self._unit * self._slack.max() / (LOOSE * self._scale)
        if loose > 1:  # the interval grows about as the time does
            self._until = self.moves + max(1, int((self._until - self.moves) / loose))
            _, self._away = self._slopes(self._far, self._y)
            self._slack = np.asarray(self._away @ self._size)
        width = math.log(2) * self._scale
        self.levels = Levels(self._most(slice(None)), width, self._hair)

    def _follow(self, feature: int, vertex: float) -> None:
        """Follow one move: rows with the feature, and the features in those rows."""
        step = step_of(self.moves)
        self._shrink *= 1 - step
        rows, values = column(self._columns, feature)
        if rows.size == 0:
            return
        self._far[rows] += step * vertex / self._shrink * values
        slope, away = self._slopes(self._shrink * self._far[rows], self._y[rows])
        place, lengths = entries(self._x, rows)
        features, x = self._x.indices[place], self._x.data[place]
        np.add.at(self._sum, features, x * np.repeat(slope - self._slope[rows], lengths))
        np.add.at(self._slack, features, abs(x) * np.repeat(away - self._away[rows], lengths))
        self._slope[rows], self._away[rows] = slope, away
        touched = distinct(features, self._x.shape[1])
        self.levels.update(touched, self._most(touched))

    def _slopes(self, margin: Array, y: Array) -> tuple[Array, Array]:
        """Slopes at margins of now, and how far they can go until all is made afresh."""
        # an untouched margin shrinks by prod (1 - 2 / (t + 2)), that is to
        # (m + 1) (m + 2) / ((u + 1) (u + 2)) of its size from m moves to u
        least = (self.moves + 1) * (self.moves + 2) / ((self._until + 1) * (self._until + 2))
        slope = self._slope_of(margin, y)
        return slope, abs(self._slope_of(least * margin, y) - slope)

    def _slope_of(self, margin: Array, y: Array) -> Array:
        slope: Array = np.clip(self._loss.slope(margin, y), -self._steepest, self._steepest)
        return slope

    def _most(self, features: Any) -> Array:
        """What the scores of features cannot exceed."""
        most: Array = self._unit * (abs(self._sum[features]) + self._slack[features])
        return most

    def _theta(self, moves: int) -> Array:
        theta, shrink = np.zeros(self._x.shape[1]), 1.0
        for t, (feature, vertex) in enumerate(self._moves[:moves], start=1):
            shrink *= 1 - step_of(t)
            theta[feature] += step_of(t) * vertex / shrink
        return shrink * theta


@final
class Look:
    """The scores after some moves, in levels as long as no further move is made."""

    def __init__(self, query: LazyScores, moves: int) -> None:
        self._query, self._moves = query, moves

    def levels(self) -> tuple[Array, INDICES]:
        """See `Levelled`."""
        bounds, counts = self._now().levels.bounds()
        return bounds, 2 * counts

    def members(self, level: INDICES, place: INDICES) -> INDICES:
        """See `Levelled`."""
        return self._now().candidates(level, place)

    def at(self, candidates: INDICES) -> Array:
        """See `Levelled`."""
        return self._now().at(candidates)

    def scores(self) -> Array:
        """See `Levelled`."""
        return self._query.scores(self._moves)

    def _now(self) -> LazyScores:
        if self._query.moves != self._moves:
            raise RuntimeError("these scores have changed: a later round was asked for")
        return self._query


def descend_lazily(
    ledger: Any, mechanism: Any, rounds: int, bounds: Bounds, loss: LinearLoss = SQUARED
) -> Array:
    """Run the rounds through the gate and return the last iterate."""
    query, features = LazyScores(bounds, loss, mechanism.scale), ledger.shape[1]
    theta, shrink = np.zeros(features), 1.0  # the iterate is shrink * theta
    for t in range(1, rounds + 1):
        chosen = int(ledger.release(mechanism, query))
        feature, vertex = chosen % features, bounds.radius * (-1 if chosen < features else 1)
        shrink *= 1 - step_of(t)
        theta[feature] += step_of(t) * vertex / shrink
        query.move(feature, vertex)
    return shrink * theta


def step_of(t: int) -> float:
    """The step of round t = 1, 2, ..."""
    return 2 / (t + 2)
