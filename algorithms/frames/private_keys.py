"""Groups whose keys are private: some are selected, then the statistic of each is released.

References: Desfontaines, Voss, Gipson & Mandayam (2022); docs/proofs/frames.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from accountant.errors import ParameterError
from accountant.ledger.frame_rows import FrameFacts
from accountant.ledger.gate import Gate
from algorithms.frames.answer import Answer
from algorithms.frames.cells import MOST_CELLS, Axis, shape_of_sums, table_shape
from algorithms.frames.columns.keys import Key, SelectedKeys
from algorithms.frames.noise_tails import Noise
from algorithms.frames.questions import unseen
from algorithms.frames.schema import Schema
from algorithms.frames.sensitivities import sensitivities
from algorithms.statistics.partition_selection import best_partition_selection
from mechanisms.families.key_counts import KeyCounts
from mechanisms.partition_selection import PartitionSelection

SHARE = 0.5  # of epsilon, for the selection of keys


def private_key(keys: tuple[Axis, ...], schema: Schema) -> str | None:
    """Return the column whose keys are private; None where all are public."""
    found = [key for key in keys if isinstance(schema.kind(key.column), Key)]
    if len(found) > 1:
        raise ParameterError("by", [key.column for key in found], "one column of private keys")
    if not found:
        return None
    if found[0].bins is not None:
        raise ParameterError("bins", found[0].bins, f"None: {found[0].column!r} has keys")
    return found[0].column


def keys_per_person(key: str, schema: Schema) -> int:
    """Return how many keys of a person count: no more than rows do."""
    kind = cast("Key", schema.kind(key))  # `private_key` found it
    return min(kind.keys_per_person, schema.rows_per_person)


def steps_by_keys(query: Any, key: str, schema: Schema) -> tuple[PartitionSelection, Noise]:
    """Return the selection of keys, and the noise of the statistic for those that are kept.

    Epsilons of the two add up to that of the query; delta is for the selection alone.
    """
    asked = query.guarantee
    if asked.noise == "gaussian":
        allowed = '"laplace" or "auto": how many keys will be kept is not known before'
        raise ParameterError("noise", asked.noise, allowed)
    selection = selection_of(asked.epsilon, asked.delta, key, schema)
    basis = query.statistic.basis(schema, "laplace")
    left = dataclasses.replace(asked, epsilon=(1 - SHARE) * asked.epsilon, delta=0.0)
    # of two cells or of more a person moves the same
    moved = sensitivities(basis, schema, cells=2)
    return selection, left.mechanism("laplace", moved, basis.size, basis.unit)


def selection_of(
    epsilon: float | None, delta: float, key: str, schema: Schema
) -> PartitionSelection:
    """Return the selection of keys, which gets a share of epsilon and all of delta."""
    if epsilon is None or not delta:
        allowed = f"given, with a delta: which keys of {key!r} exist is private"
        raise ParameterError("epsilon", epsilon, allowed)
    most = keys_per_person(key, schema)
    return best_partition_selection(SHARE * epsilon, delta, most, schema.relation)


def with_keys(schema: Schema, key: str, names: Sequence[str | int]) -> Schema:
    """Return a schema in which some keys of a column are public."""
    columns = {**schema.columns, key: SelectedKeys(tuple(names))}
    return Schema(columns, schema.person, schema.rows_per_person, schema.relation)


def kept_keys(
    query: Any, key: str, ledger: Gate, selection: PartitionSelection, schema: Schema,
    facts: FrameFacts, most: int,
) -> list[Any]:  # fmt: skip
    """Release the selection, and return the keys that it kept, ``most`` cells of them at most."""
    counted = unseen(lambda frame: key_counts(query, frame, key, schema))
    kept = np.asarray(ledger.release(selection, counted)).tolist()
    others = [axis for axis in query.keys if axis.column != key]
    whole = "int" in facts.types[key].lower()
    names = sorted(map(int, kept)) if whole else kept
    return names[: most // math.prod(table_shape(others, schema))]


def selection_in_words(selection: PartitionSelection, key: str, schema: Schema) -> str:
    """Return how many persons a key needs."""
    sizes = np.arange(1 << 20)
    likely = int(np.argmax(selection.keep_probability(sizes) >= 0.5))
    most = keys_per_person(key, schema)
    held = f"{most} keys" if most > 1 else "one key"
    return f"keys of {key}: kept by chance, half of those of {likely} persons ({held} a person)"


def released_by_keys(
    query: Any, key: str, ledger: Gate, schema: Schema, facts: FrameFacts
) -> Answer:
    """Release the selection, then the statistic of the keys that it kept."""
    selection, noise = steps_by_keys(query, key, schema)
    names = kept_keys(query, key, ledger, selection, schema, facts, MOST_CELLS)
    found = with_keys(schema, key, names)
    # of no keys a zero is released, as the plan has the release
    asked = unseen(lambda frame: query.sums(frame, found, "laplace") if names else 0)
    numbers = (
        math.prod(table_shape(query.keys, found)) * query.statistic.basis(found, "laplace").size
    )
    shape = shape_of_sums(numbers) if names else ()
    noisy = np.atleast_1d(ledger.release(noise, asked, shape=shape))
    released = noisy if names else noisy[:0]
    return Answer(str(query), query.statistic, query.keys, found, noise, released, facts.backend)


def key_counts(query: Any, frame: Any, key: str, schema: Schema) -> KeyCounts:
    """Return how many persons have each key, each with their first keys alone.

    Of the rows that can count; which of them are the first keys of a person depends on the rows
    of that person alone.
    """
    from algorithms.frames.partitions.reduction import Reading, reduced

    read = Reading(query.used, query.where, schema)
    found: KeyCounts = reduced(frame, read, partial(counted_keys, key=key, schema=schema), joined)
    return found


def counted_keys(rows: Any, key: str, schema: Schema) -> KeyCounts:
    """Return how many persons have each key, of the rows that count."""
    values, persons = rows.kept()
    known: dict[str, int] = {}
    codes = [known.setdefault(one, len(known)) for one in values[key]]
    most = keys_per_person(key, schema)
    found = KeyCounts.of_people(persons, np.array(codes, dtype=np.int64), most)
    names = np.array(list(known), dtype=str)
    return KeyCounts(names[found.keys], found.counts)


def joined(first: KeyCounts, second: KeyCounts) -> KeyCounts:
    """Return how many persons have each key, of two sets of persons."""
    both = [one for one in (first, second) if one.keys.size]
    if len(both) < 2:
        return both[0] if both else first
    names, place = np.unique(np.concatenate([one.keys for one in both]), return_inverse=True)
    counts = np.zeros(names.size, dtype=np.int64)
    np.add.at(counts, place, np.concatenate([one.counts for one in both]))
    return KeyCounts(names, counts)
