"""Scores in levels: each score has a known upper bound and is computed only when it is drawn.

`LazyExponential` selects from such scores without computing all of them.  A level is a set of
candidates with one upper bound on their scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.errors import PrivateValueError
from accountant.numerics import Array
from mechanisms.base import Scores, Support, finite_floats
from mechanisms.exact_noise.rounding_grid import round_to_grid

IndexArray = NDArray[np.intp]


class BoundedScores(Protocol):
    """Scores of candidates 0, 1, ...; no score exceeds the bound of its level.

    The *place* of a candidate is its number 0, 1, ... in its level.
    """

    def levels(self) -> tuple[Array, IndexArray]:
        """Return the bounds of the levels, and the positive number of candidates in each."""
        ...

    def members(self, level: IndexArray, place: IndexArray) -> IndexArray:
        """Return the candidates at given places in given levels."""
        ...

    def at(self, candidates: IndexArray) -> Array:
        """Return the scores of some candidates."""
        ...

    def scores(self) -> Array:
        """Return all scores, at full cost; the same array at every call."""
        ...


@final
class ListedScores:
    """Scores given as a list, in levels of one ``width``; a level's bound is its greatest score."""

    def __init__(self, scores: ArrayLike, width: float = 1.0) -> None:
        self._scores = finite_floats(scores)
        with np.errstate(over="ignore"):  # scores beyond the floats' widths are one level
            level = np.ceil(self._scores / width)
        self._order = np.argsort(level, kind="stable")
        _, self._first, counts = np.unique(
            level[self._order], return_index=True, return_counts=True
        )
        bounds: Array = np.maximum.reduceat(self._scores[self._order], self._first)
        self._levels = bounds, counts

    def __repr__(self) -> str:
        return f"ListedScores({self._scores.tolist()})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        # numpy gets one object, or the scores if it asks for numbers.
        del copy
        if dtype is not None and np.dtype(dtype).kind != "O":
            return self._scores.astype(dtype)
        handle = np.empty(1, dtype=object)
        handle[0] = self
        return handle.reshape(())

    def levels(self) -> tuple[Array, IndexArray]:
        """Return the bounds of the levels and their sizes; see `BoundedScores.levels`."""
        return self._levels

    def members(self, level: IndexArray, place: IndexArray) -> IndexArray:
        """Return candidates by level and place; see `BoundedScores.members`."""
        candidates: IndexArray = self._order[self._first[level] + place]
        return candidates

    def at(self, candidates: IndexArray) -> Array:
        """Return the scores of some candidates; see `BoundedScores.at`."""
        scores: Array = self._scores[candidates]
        return scores

    def scores(self) -> Array:
        """Return all scores; see `BoundedScores.scores`."""
        return self._scores


@final
@dataclass(frozen=True, slots=True)
class RoundedScores:
    """Scores and the bounds of their levels, rounded to the grid of a scale.

    Rounding keeps the order, so that no score exceeds its bound.
    """

    inner: BoundedScores
    scale: float

    def levels(self) -> tuple[Array, IndexArray]:
        """Return the rounded bounds and the sizes; see `BoundedScores.levels`."""
        bounds, counts = self.inner.levels()
        return round_to_grid(bounds, self.scale), counts

    def members(self, level: IndexArray, place: IndexArray) -> IndexArray:
        """Return candidates by level and place; see `BoundedScores.members`."""
        return self.inner.members(level, place)

    def at(self, candidates: IndexArray) -> Array:
        """Return the rounded scores of some candidates; see `BoundedScores.at`."""
        return round_to_grid(self.inner.at(candidates), self.scale)

    def scores(self) -> Array:
        """Return all rounded scores; see `BoundedScores.scores`."""
        return round_to_grid(self.inner.scores(), self.scale)


@dataclass(frozen=True, slots=True)
class BoundedScoreValues:
    """`BoundedScores` objects; between neighbours a score moves by at most ``sensitivity``."""

    sensitivity: float
    axes: ClassVar[int] = 0

    def check(self, value: Any) -> NDArray[np.object_]:
        """Return the objects in an array."""
        objects = np.asarray(value)
        method_names = ("levels", "members", "at", "scores")
        if objects.dtype != object or not all(
            hasattr(element, method_name)
            for element in objects.ravel()
            for method_name in method_names
        ):
            raise PrivateValueError(
                "value", "an object with levels, members, at and scores as methods"
            )
        return objects

    def example(self, rng: np.random.Generator) -> ListedScores:
        """Return random scores of two to six candidates."""
        return ListedScores(Scores(self.sensitivity).example(rng))

    def neighbour(self, value: Any, rng: np.random.Generator) -> ListedScores:
        """Return the scores, each moved by at most the sensitivity."""
        return ListedScores(
            Scores(self.sensitivity).neighbour(np.asarray(value).item().scores(), rng)
        )


@dataclass(frozen=True, slots=True)
class BoundedScoreCandidates(Support):
    """The candidates of a `BoundedScores` object."""

    def outcomes(self, value: Any) -> IndexArray:
        """Return one outcome for each score."""
        return np.arange(np.asarray(value).item().scores().size)
