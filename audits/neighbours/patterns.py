"""Structured pairs of neighbours: all equal, one different, extremes, halves, ties.

An audit tries them where no worst pair is known, as violations of a claim often show at such pairs.

Reference: Ding, Wang, Wang, Zhang & Kifer (2018), Table 2, for patterns of query answers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.plans.adjacency import Adjacency
from audits.neighbours.value_spaces import Box, Relation, ValueMoves, checked_relation
from mechanisms.base.values import Ball, BoundedNumbers, Categories, Integers, Reals, Scores, Values


@final
@dataclass(frozen=True, slots=True)
class NeighbourPair:
    """Two neighbours, and how they were made."""

    kind: str  # how they were made, in words
    first: Any
    second: Any

    @property
    def pair(self) -> tuple[Any, Any]:
        """The two values, as `audit` takes them."""
        return self.first, self.second


def candidate_pairs(
    space: Box | Values, relation: str = Adjacency.REPLACE_ONE
) -> list[NeighbourPair]:
    """List structured pairs of neighbours: all equal, one different, extremes, halves, ties.

    Parameters
    ----------
    space : Box or Values
        The possible values.  A mechanism's ``values`` have their own neighbours.
    relation : str, optional
        Neighbours in a `Box`: "replace-one" (one record or the number changes), "add-remove" (one
        record more or less), "each" (every number moves by at most 1) or "any" (any two values).

    Returns
    -------
    list of NeighbourPair
        Distinct pairs, each with a name.

    Raises
    ------
    ParameterError
        If the space has no such neighbours.

    References
    ----------
    Ding, Wang, Wang, Zhang & Kifer (2018), Table 2.

    Examples
    --------
    >>> from audits import Box, candidate_pairs
    >>> pairs = candidate_pairs(Box(0.0, 1.0, shape=(3,)))
    >>> pairs[0].kind, pairs[0].pair
    ('all low, first high', (array([0., 0., 0.]), array([1., 0., 0.])))
    """
    moves = checked_relation(relation, space)
    if isinstance(space, Box):
        return distinct_pairs(_box_pairs(space, moves))
    return distinct_pairs(_value_pairs(space))


def distinct_pairs(candidates: Iterable[NeighbourPair]) -> list[NeighbourPair]:
    """Return the candidates whose two values differ, each pair once."""
    keys, distinct = set(), []
    for candidate in candidates:
        key = tuple((np.shape(v), np.asarray(v).tobytes()) for v in candidate.pair)
        if key[0] != key[1] and key not in keys:
            keys.add(key)
            distinct.append(candidate)
    return distinct


def _box_pairs(space: Box, relation: Relation) -> Iterator[NeighbourPair]:
    """Yield pairs of named patterns if any two values are neighbours, else each with neighbours."""
    patterns = list(space.patterns())
    if relation is ValueMoves.ANY or (relation is Adjacency.REPLACE_ONE and not space.shape):
        for (a, first_value), (b, second_value) in itertools.combinations(patterns, 2):
            yield NeighbourPair(f"{a} against {b}", first_value, second_value)
        return
    for name, value in patterns:
        for description, neighbour in _structured_neighbours(space, relation, value):
            yield NeighbourPair(f"{name}, {description}", value, neighbour)


def _structured_neighbours(space: Box, relation: Relation, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield structured neighbours of one value, each with its description."""
    if relation is ValueMoves.EACH:
        shape = np.shape(value)
        rows = np.arange(shape[0] if shape else 1).reshape(-1, *[1] * (len(shape) - 1))
        rows = rows + np.zeros(shape, dtype=int)
        for description, step in (
            ("all above", np.ones(shape)),
            ("all below", -np.ones(shape)),
            ("one above, the rest below", np.where(rows == 0, 1, -1)),
            ("one below, the rest above", np.where(rows == 0, -1, 1)),
            ("one above", np.where(rows == 0, 1, 0)),
            ("half above, half below", np.where(2 * rows < max(rows.size, 1), 1, -1)),
            ("alternating", np.where(rows % 2 == 0, 1, -1)),
        ):
            yield description, space.array(value + (step if shape else step.flat[0]))
        return
    last_row = len(value) - 1
    if relation is Adjacency.ADD_REMOVE:
        if last_row > 0:
            yield "without its first", value[1:]
            yield "without its last", value[:-1]
        for name, end in zip(("low", "high"), space.ends, strict=True):
            added_row = space.array(np.full((1, *space.shape[1:]), end))
            yield f"with a {name} one more", np.concatenate([value, added_row])
        return
    for position_name, row in (("first", 0), ("middle", last_row // 2), ("last", last_row)):
        for name, number in zip(("low", "high"), space.ends, strict=True):
            neighbour = value.copy()
            neighbour[row] = space.array(number)
            yield f"{position_name} {name}", neighbour
        neighbour = value.copy()
        neighbour[row] = value[row - 1]
        yield f"{position_name} a tie", neighbour


def _value_pairs(space: Values) -> Iterator[NeighbourPair]:
    """Yield pairs from a mechanism's own space of values: extremes first, then random ones."""
    if isinstance(space, (Reals, Integers)):
        yield from _pairs_one_sensitivity_apart(space)
    elif isinstance(space, Categories):
        for a, b in ((0, 1), (0, space.count - 1), (space.count - 2, space.count - 1)):
            yield NeighbourPair(f"label {a} against {b}", a, b)
    elif isinstance(space, BoundedNumbers):
        for a, b in ((-1, 1), (0, 1), (0, -1)):
            kind = "ends" if a else "the middle and an end"
            yield NeighbourPair(kind, space.radius * a, space.radius * b)
    elif isinstance(space, Ball):
        yield from _pairs_of_ball(space)
    elif isinstance(space, Scores):
        yield from _pairs_of_scores(space)
    rng = np.random.default_rng(0)  # chooses pairs, never noise
    for _ in range(4):
        value = space.example(rng)
        yield NeighbourPair("drawn at random", value, space.neighbour(value, rng))


def _pairs_one_sensitivity_apart(space: Reals | Integers) -> Iterator[NeighbourPair]:
    size = space.dimension or (2 if space.axes == 1 else 0)
    step = space.sensitivity if isinstance(space, Reals) else math.floor(space.sensitivity)
    for start in (0, -step, 1000 * step):
        first_value = np.full(size, start) if size else start
        move = np.eye(size, dtype=type(step))[0] * step if size else step
        yield NeighbourPair(f"one sensitivity from {start:g}", first_value, first_value + move)


def _pairs_of_ball(space: Ball) -> Iterator[NeighbourPair]:
    """Yield opposite points, and the centre with one of them, on an axis and on the diagonal."""
    # A vector of equal entries c in dimension d has the norm c d^(1 / order).
    coordinate = 1.0 if space.order == np.inf else space.dimension ** (-1 / space.order)
    diagonal = np.full(space.dimension, coordinate)
    axis = np.eye(space.dimension)[0]
    for name, direction in (("along an axis", axis), ("along the diagonal", diagonal)):
        end = space.radius * direction
        yield NeighbourPair(f"opposite {name}", end, -space.radius * direction)
        yield NeighbourPair(f"the middle and an end {name}", 0 * direction, end)


def _pairs_of_scores(space: Scores) -> Iterator[NeighbourPair]:
    """Yield pairs of equal scores, of which some or all move by their sensitivity."""
    for count in (2, 5, 10):
        first = np.eye(count)[0]
        moves = {
            "one above": first,
            "all but one above": 1 - first,
            "all above": np.ones(count),
        }
        if not space.monotone:
            half = 2 * np.arange(count) < count
            moves["one above, the rest below"] = 2 * first - 1
            moves["half above, half below"] = np.where(half, 1.0, -1.0)
        for how, move in moves.items():
            equal = np.zeros(count)
            yield NeighbourPair(f"{count} equal, {how}", equal, equal + space.sensitivity * move)
