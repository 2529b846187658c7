"""Chains of data sets, each a neighbour of the next or equal to it, at which arithmetic may fail.

An audit evaluates a query along a chain, to find two neighbours whose answers are further apart
than the claimed sensitivity.

Reference: Casacuberta, Shoemate, Vadhan & Wagaman (2022), for sums of floats and integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.adjacency import Adjacency
from audits.neighbours.patterns import candidate_pairs
from audits.neighbours.value_spaces import Box, Relation, ValueMoves, random_neighbour

# Records of floats at which arithmetic often fails: no number, infinities, huge numbers,
# minus zero, and the smallest positive number.
EXTREME_RECORDS = (np.nan, np.inf, -np.inf, 1e308, -1e308, -0.0, 5e-324)
Step = tuple[str, Any]  # a link of a chain: how a data set was made, and the data set
MOST_DRAWN_NEIGHBOURS = 16  # of one data set, at most: it bounds the time
# Of the pairs near the best one so far: the share that has other equal rows, at most 1 of so many.
CHANGED_SHARE, ROWS_PER_CHANGED = 0.7, 8


def bounding_box(data: Array) -> Box:
    """Return the box between the smallest and the largest finite number of a data set."""
    if data.dtype.kind not in "iuf" or data.ndim == 0 or data.size == 0:
        raise ParameterError("space", f"data of type {data.dtype}", "numbers, a row for a record")
    finite = data[np.isfinite(data)].astype(float)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    is_integer = data.dtype.kind in "iu"
    return Box(low, high if high > low else low + 1.0, data.shape, is_integer)


def adjacent_chains(
    box: Box,
    relation: Relation,
    data: Array | None,
    hostile: bool,
    ordered: bool,
    rng: np.random.Generator,
) -> Iterator[Iterable[Step]]:
    """Yield chains of data sets in a box; if ``data`` are given, chains of their neighbours alone.

    ``hostile`` adds `EXTREME_RECORDS`.  ``ordered`` says that the order of the records matters;
    otherwise the same records in another order are tried too.
    """
    is_vector = relation is ValueMoves.EACH  # of answers, which has no records to add or exchange
    if data is not None:
        yield from _neighbour_steps(box, relation, data, hostile and not is_vector, rng)
        if not (ordered or is_vector):
            yield from _reordered(data, rng)
        return
    for candidate in candidate_pairs(box, relation):
        yield [(candidate.kind, candidate.first), (candidate.kind, candidate.second)]
    if not box.shape or is_vector:
        return
    for _, value in box.patterns():
        if not ordered:
            yield from _reordered(value, rng)
        if hostile:
            yield from _neighbour_steps(box, relation, value, hostile, rng)
    if relation is Adjacency.ADD_REMOVE:
        yield from _shrinking_sizes(box)
    else:
        yield from _staircases(box, rng)


def _neighbour_steps(
    box: Box, relation: Relation, value: Array, hostile: bool, rng: np.random.Generator
) -> Iterator[Iterable[Step]]:
    """Yield random neighbours of one data set, and, if ``hostile``, some with extreme records.

    The data set has one record at least.
    """
    for _ in range(min(len(value), MOST_DRAWN_NEIGHBOURS)):
        neighbour = random_neighbour(box, relation, value, rng)
        yield [("the data", value), ("a neighbour of the data", neighbour)]
    if hostile and not box.whole:
        for record in EXTREME_RECORDS:
            row = np.full((1, *value.shape[1:]), record)
            if relation is Adjacency.ADD_REMOVE:
                neighbour = np.concatenate([value, row])
            else:
                neighbour = np.concatenate([row, value[1:]])
            yield [("", value), (f"a record of {record}", neighbour)]


def _reordered(value: Array, rng: np.random.Generator) -> Iterator[Iterable[Step]]:
    """Yield the same records in another order: equal data sets, as the order has no meaning."""
    if len(value) < 2:
        return
    orders = {
        "reversed": np.arange(len(value))[::-1],
        "sorted": np.argsort(value.reshape(len(value), -1)[:, 0]),  # by the first column
        "shuffled": rng.permutation(len(value)),
    }
    for name, order in orders.items():
        if not np.array_equal(value[order], value):
            yield [("", value), (f"the same records, {name}", value[order])]


def _staircases(box: Box, rng: np.random.Generator) -> Iterator[Iterable[Step]]:
    """Yield chains from all low to all high, one record a step, in several orders of the records.

    On the way some sums round or wrap.
    """
    rows = box.shape[0]
    orders = {
        "from the first": np.arange(rows),
        "from the last": np.arange(rows)[::-1],
        "in random order": rng.permutation(rows),
        # numpy adds an array with eight partial sums, each of every eighth number
        "every eighth first": np.argsort(np.arange(rows) % 8, kind="stable"),
    }
    for name, order in orders.items():
        yield _staircase(box, order, f"a staircase {name}")


def _staircase(box: Box, order: Any, name: str) -> Iterator[Step]:
    all_low, all_high = (box.array(np.full(box.shape, end)) for end in box.ends)
    data = all_low.copy()
    for count, row in enumerate(order):
        yield f"{name}, {count} high", data.copy()
        data[row] = all_high[row]
    yield f"{name}, all high", data


def _shrinking_sizes(box: Box) -> Iterator[Iterable[Step]]:
    """Yield data sets of fewer and fewer records, down to none, each beside itself and one record.

    Such pairs reveal a division by a private count.
    """
    values = dict(box.patterns())
    for name, value in values.items():
        # The largest few sizes and the smallest, where a division by the size changes most.
        sizes = [n for n in range(len(value), -1, -1) if n < 12 or n > len(value) - 4]
        for size in sizes:
            shorter = value[len(value) - size :]
            for end, number in zip(("low", "high"), box.ends, strict=True):
                row = box.array(np.full((1, *box.shape[1:]), number))
                longer = np.concatenate([row, shorter])
                yield [(name, shorter), (f"{name}, {size} records and a {end} one", longer)]


def neighbours_near(
    box: Box, relation: Relation, pair: tuple[Any, Any], rng: np.random.Generator
) -> list[Step]:
    """Return a pair near the best pair so far, as a chain of two.

    Mostly a few rows that are equal in both data sets are changed to the same new rows, and the row
    in which they differ stays.  Else the first data set of the pair gets another neighbour.  Where
    it has another shape than the box, the pair is a new random one.
    """
    first_value, second_value = pair
    name = "near the best pair"
    are_alike = np.shape(first_value) == np.shape(second_value) and np.ndim(first_value)
    if are_alike and rng.random() < CHANGED_SHARE:
        row_count = int(rng.integers(1, 1 + max(1, len(first_value) // ROWS_PER_CHANGED)))
        rows = rng.integers(0, len(first_value), size=row_count)
        if len(first_value) <= box.shape[0]:
            new_rows = np.asarray(box.random(rng))[: len(first_value)]
            changed_first, changed_second = first_value.copy(), second_value.copy()
            equal_rows = [
                row for row in rows if np.array_equal(first_value[row], second_value[row])
            ]
            changed_first[equal_rows] = new_rows[equal_rows]
            changed_second[equal_rows] = new_rows[equal_rows]
            return [(name, changed_first), (name, changed_second)]
    if np.ndim(first_value) == 0 or np.shape(first_value) == box.shape:
        return [(name, first_value), (name, random_neighbour(box, relation, first_value, rng))]
    value = box.random(rng)
    return [(name, value), (name, random_neighbour(box, relation, value, rng))]
