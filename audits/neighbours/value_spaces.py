"""The possible values of private data, from which audits choose pairs of neighbours.

A `Box` is the set of all arrays of one shape with numbers between two bounds.  It yields named
patterns (all low, half high, ...), at which faults of arithmetic and of sensitivities often show,
and draws random values.  `random_neighbour` changes a value into one that a privacy claim calls a
neighbour: a record more, less or another (`Adjacency`), or other numbers (`ValueMoves`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.errors import ParameterError
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation

Generator = np.random.Generator
# Where a bound is infinite, numbers are taken up to this far from the other bound, or from 0.
UNBOUNDED_END = 2.0**50


class ValueMoves(enum.StrEnum):
    """How neighbours differ where a value is not a data set of records."""

    EACH = "each"  # Every number moves by at most 1, as answers to counting queries do.
    ANY = "any"  # Any two values are neighbours, as in the local model.


Relation = Adjacency | ValueMoves
# All names of relations; if the value is a single number, replace-one changes that number.
ALL_RELATIONS: tuple[Relation, ...] = (*RECORD_RELATIONS, *ValueMoves)


@final
@dataclass(frozen=True, slots=True)
class Box:
    """Numbers from ``low`` to ``high``: one number, or an array with a row for each record.

    Parameters
    ----------
    low : float
        The smallest number; may be -infinity.
    high : float
        The largest number, above ``low``; may be infinity.
    shape : tuple of int, optional
        Shape of a value; () is a single number.
    whole : bool, optional
        Whether the numbers are integers (int64).

    Raises
    ------
    ParameterError
        If ``low`` is not below ``high``, or a length is below 1.

    Examples
    --------
    >>> from audits import Box
    >>> box = Box(0.0, 1.0, shape=(3,))
    >>> [name for name, value in box.patterns()][:4]
    ['all low', 'all high', 'all middle', 'half low, half high']
    >>> box.array([-1.0, 0.5, 2.0])
    array([0. , 0.5, 1. ])
    """

    low: float
    high: float
    shape: tuple[int, ...] = ()
    whole: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ParameterError("Box.low", self.low, f"below high, {self.high!r}")
        if any(not isinstance(n, int) or n < 1 for n in self.shape):
            raise ParameterError("Box.shape", self.shape, "whole numbers of at least 1")

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds, both finite: 2^50 stands in for an infinite one, see `UNBOUNDED_END`."""
        return (
            self.low if self.low > -np.inf else min(-UNBOUNDED_END, self.high - UNBOUNDED_END),
            self.high if self.high < np.inf else max(UNBOUNDED_END, self.low + UNBOUNDED_END),
        )

    def array(self, numbers: Any) -> Any:
        """Clip numbers into the box, as a value of the space.

        Parameters
        ----------
        numbers : array_like
            Numbers of any size.

        Returns
        -------
        float, int or array
            A Python number if the numbers have no axis, else an array.
        """
        clipped = np.clip(np.asarray(numbers, dtype=float), *self.ends)
        if self.whole:
            clipped = np.rint(clipped).astype(np.int64)
        return clipped.item() if clipped.ndim == 0 else clipped

    def patterns(self) -> Iterator[tuple[str, Any]]:
        """Yield named values: extremes, halves, one record different, alternating, a ramp, ties.

        Yields
        ------
        tuple of (str, value)
            The name of the pattern, and the value.
        """
        (low, high), shape = self.ends, self.shape
        middle = 0.0 if low < 0 < high else (low + high) / 2
        for name, number in (("low", low), ("high", high), ("middle", middle)):
            yield f"all {name}", self.array(np.full(shape, number))
        if not shape:
            return
        # ``rows`` has, at the place of each number, the index of its row.
        rows = np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1)) + np.zeros(shape)
        last_row = max(shape[0] - 1, 1)
        yield "half low, half high", self.array(np.where(2 * rows < shape[0], low, high))
        yield "one high", self.array(np.where(rows == 0, high, low))
        yield "one low", self.array(np.where(rows == last_row, low, high))
        yield "alternating", self.array(np.where(rows % 2 == 0, low, high))
        yield "a ramp", self.array(low + (high - low) * rows / last_row)
        yield "ties around one middle", self.array(np.where(rows == shape[0] // 2, middle, high))

    def random(self, rng: Generator) -> Any:
        """Draw a value of which many numbers are extremes or equal to each other.

        With a chance of 10 % or 50 %, the same for all numbers of a value, a number is uniform in
        the box.  Otherwise it is one of one to four candidates: low, high, middle, and one random
        number.

        Parameters
        ----------
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        float, int or array
            A value of the space.
        """
        low, high = self.ends
        extremes = np.array([low, high, (low + high) / 2, rng.uniform(low, high)])
        numbers = rng.choice(extremes[: rng.integers(1, 5)], size=self.shape)
        anywhere = rng.uniform(low, high, size=self.shape)
        return self.array(
            np.where(rng.random(self.shape) < rng.choice([0.1, 0.5]), anywhere, numbers)
        )


def checked_relation(relation: str, space: Any) -> Relation:
    """Return the relation of this name; raise `ParameterError` if the space has no such pairs."""
    if not (isinstance(space, (Box, np.ndarray)) or hasattr(space, "neighbour")):
        raise ParameterError("space", space, "a Box, or the values of a mechanism")
    checked = check_relation("relation", relation, ALL_RELATIONS)
    if checked is Adjacency.ADD_REMOVE and isinstance(space, Box) and not space.shape:
        raise ParameterError("relation", relation, "another: a number has no records to remove")
    return checked


def random_neighbour(space: Box, relation: Relation, value: Any, rng: Generator) -> Any:
    """Return a random neighbour of a value.

    It moves all numbers by at most 1 (`EACH`), is any value (`ANY`, and of a single number), or has
    one row less or another one, whose numbers are often extremes.  From fewer than two rows none is
    removed: one is added.
    """
    if relation is ValueMoves.EACH:
        # Most numbers move by 1, since violations show at the largest moves.
        steps = rng.choice([-1.0, 1.0, 1.0, rng.uniform(-1, 1)], size=space.shape)
        return space.array(value + steps)
    if relation is ValueMoves.ANY or not space.shape:
        return space.random(rng)
    row = int(rng.integers(len(value)))
    new_row = np.asarray(space.random(rng))[row % space.shape[0]]
    if relation is Adjacency.ADD_REMOVE:
        is_short = len(value) < 2
        return (
            np.append(value, new_row[None], axis=0) if is_short else np.delete(value, row, axis=0)
        )
    neighbour = value.copy()
    neighbour[row] = new_row
    return neighbour
