"""Scores in levels: each is known by an upper bound, and looked at only when it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.errors import PrivateValueError
from accountant.numerics import Array
from mechanisms.base.checks import finite_floats
from mechanisms.base.supports import Support
from mechanisms.base.values import Scores

IndexArray = NDArray[np.intp]


class BoundedScores(Protocol):
    """Scores of candidates 0, 1, ..., each in a level whose bound it does not exceed."""

    def levels(self) -> tuple[Array, IndexArray]:
        """Bounds of the levels, and how many candidates are in each: one at least."""
        ...

    def members(self, level: IndexArray, place: IndexArray) -> IndexArray:
        """The candidates at places in levels."""
        ...

    def at(self, candidates: IndexArray) -> Array:
        """Scores of some candidates."""
        ...

    def scores(self) -> Array:
        """All scores, at whatever they cost; the same whenever it is asked."""
        ...


@final
class ListedScores:
    """Scores that are listed, in levels ``width`` apart."""

    def __init__(self, scores: ArrayLike, width: float = 1.0) -> None:
        self._scores = finite_floats(scores)
        self._level = np.ceil(self._scores / width)
        self._order = np.argsort(self._level, kind="stable")
        bounds, self._first, counts = np.unique(
            self._level[self._order], return_index=True, return_counts=True
        )
        # a quotient rounded down may be too low a level by a hair
        self._levels = np.nextafter(bounds * width, np.inf), counts

    def __repr__(self) -> str:
        return f"Listed({self._scores.tolist()})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        # one object, but as numbers its scores
        del copy
        if dtype is not None and np.dtype(dtype).kind != "O":
            return self._scores.astype(dtype)
        handle = np.empty(1, dtype=object)
        handle[0] = self
        return handle.reshape(())

    def levels(self) -> tuple[Array, IndexArray]:
        """See `BoundedScores`."""
        return self._levels

    def members(self, level: IndexArray, place: IndexArray) -> IndexArray:
        """See `BoundedScores`."""
        found: IndexArray = self._order[self._first[level] + place]
        return found

    def at(self, candidates: IndexArray) -> Array:
        """See `BoundedScores`."""
        found: Array = self._scores[candidates]
        return found

    def scores(self) -> Array:
        """See `BoundedScores`."""
        return self._scores


@dataclass(frozen=True, slots=True)
class BoundedScoreValues:
    """Objects with scores in levels; a neighbour moves each score by at most ``sensitivity``."""

    sensitivity: float
    axes: ClassVar[int] = 0

    def check(self, value: Any) -> NDArray[np.object_]:
        """The objects, in an array."""
        objects = np.asarray(value)
        words = ("levels", "members", "at", "scores")
        if objects.dtype != object or not all(
            hasattr(one, word) for one in objects.ravel() for word in words
        ):
            raise PrivateValueError("value", "an object with levels(), members, at and scores()")
        return objects

    def example(self, rng: np.random.Generator) -> ListedScores:
        """Scores of two to six candidates."""
        return ListedScores(Scores(self.sensitivity).example(rng))

    def neighbour(self, value: Any, rng: np.random.Generator) -> ListedScores:
        """All move as far as they may, or some way."""
        return ListedScores(
            Scores(self.sensitivity).neighbour(np.asarray(value).item().scores(), rng)
        )


@dataclass(frozen=True, slots=True)
class BoundedScoreCandidates(Support):
    """The candidates whose scores an object has."""

    def outcomes(self, value: Any) -> IndexArray:
        """One outcome for each score."""
        return np.arange(np.asarray(value).item().scores().size)
