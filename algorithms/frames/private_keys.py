"""Answers for groups whose keys are private, such as words that people wrote.

Which keys occur is private itself.  So there are two parts: first a selection of keys that enough
persons have, with a share of epsilon and all of delta; then, with the rest of epsilon, the
statistic of each selected key, as if these keys were public.  A query here is a question to a data
frame; its `Schema` declares the columns, and how many rows of a person count.

Keys are selected by one release (`PartitionSelection`), or, for persons who may have many keys, in
rounds (`GaussianPartitionSelection`): the keys of a round are public in the next one, where each
person's other keys weigh more.

References: Desfontaines, Voss, Gipson & Mandayam (2022); Swanberg, Desfontaines & Haney (2023) for
the rounds; docs/proofs/frames.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, cast

import narwhals as nw
import numpy as np

from accountant.errors import ParameterError
from accountant.ledger.frames import FrameFacts
from accountant.ledger.gate import Gate
from accountant.losses.gaussian import GaussianLoss
from accountant.planning.calibration import calibrate
from accountant.plans.adjacency import Adjacency
from algorithms.frames.answer import Answer
from algorithms.frames.bases import Count, Persons
from algorithms.frames.cells import MOST_CELLS, Axis, shape_of_sums, table_shape
from algorithms.frames.columns.keys import Key, SelectedKeys
from algorithms.frames.noise_tails import Noise
from algorithms.frames.questions import unseen
from algorithms.frames.schema import Schema
from algorithms.statistics.partition_selection import best_partition_selection
from mechanisms.families.key_counts import STEPS, KeyCounts, key_weight
from mechanisms.families.key_selection import KeySelection
from mechanisms.gaussian_partition_selection import GaussianPartitionSelection

SHARE = 0.5  # share of epsilon for the selection of keys; the statistic has the rest
ROUNDS = (1, 9, 81)  # what the rounds of a selection cost in rho, one to another
CellCounts = Callable[[Any], KeyCounts | None]  # of a frame, see `counted_once`
OWN_SHARES = (0.3, 0.5, 0.7)  # shares of delta that keys of one person are tried with


def private_key(keys: tuple[Axis, ...], schema: Schema) -> str | None:
    """Return the name of the column whose keys are private, among those that a query groups by.

    The result is None where all are public; two such columns, or bins of one, are refused.
    """
    private_axes = [key for key in keys if isinstance(schema.kind(key.column), Key)]
    if len(private_axes) > 1:
        raise ParameterError(
            "by", [key.column for key in private_axes], "one column of private keys"
        )
    if not private_axes:
        return None
    if private_axes[0].bins is not None:
        raise ParameterError(
            "bins", private_axes[0].bins, f"None: {private_axes[0].column!r} has keys"
        )
    return private_axes[0].column


def keys_per_person(key: str, schema: Schema) -> int:
    """Return how many different keys of a person count, which is at most the number of rows."""
    kind = cast("Key", schema.kind(key))  # `private_key` has checked that the column has keys
    return min(kind.keys_per_person, schema.rows_per_person)


def steps_by_keys(query: Any, key: str, schema: Schema) -> tuple[tuple[KeySelection, ...], Noise]:
    """Return the mechanisms: the selections of keys, and the noise of their statistic.

    The epsilons of the two parts add up to that of the query; the selections get all of delta.
    """
    guarantee = query.guarantee
    if guarantee.noise == "gaussian":
        allowed = '"laplace" or "auto": how many keys will be kept is not known before'
        raise ParameterError("noise", guarantee.noise, allowed)
    in_rounds = guarantee.noise == "auto"
    selections = selections_of(guarantee.epsilon, guarantee.delta, key, schema, in_rounds)
    basis = query.statistic.basis(schema, "laplace")
    remaining = dataclasses.replace(guarantee, epsilon=(1 - SHARE) * guarantee.epsilon, delta=0.0)
    # How many keys there will be is not known yet, so it is the sensitivity of many cells.
    moved = query.statistic.moved(schema, "laplace", MOST_CELLS)
    return selections, remaining.mechanism("laplace", moved, basis.size, basis.unit)


def selections_of(
    epsilon: float | None, delta: float, key: str, schema: Schema, in_rounds: bool
) -> tuple[KeySelection, ...]:
    """Return the selections of keys, with `SHARE` of epsilon and all of delta.

    They are rounds, if these are allowed, where a key needs fewer persons then, also if each of
    them has as many keys as a person may have.  Where persons have fewer, rounds gain more.
    """
    if epsilon is None or not delta:
        allowed = f"given, with a delta: which keys of {key!r} exist is private"
        raise ParameterError("epsilon", epsilon, allowed)
    keys_each = keys_per_person(key, schema)
    persons = 2 if schema.relation is Adjacency.REPLACE_ONE else 1
    shares = OWN_SHARES if in_rounds and keys_each > 1 else ()
    selections: list[tuple[KeySelection, ...]] = []
    for own_share in shares:
        with suppress(ParameterError):  # their noise may be beyond its bounds
            selections.append(rounds_of(SHARE * epsilon, delta, keys_each, persons, own_share))
    try:
        once = best_partition_selection(SHARE * epsilon, delta, keys_each, schema.relation)
        selections.append((once,))
    except ParameterError:
        if not selections:
            raise
    return min(selections, key=lambda steps: persons_needed(steps[-1]))


@lru_cache(maxsize=256)
def rounds_of(
    epsilon: float, delta: float, keys: int, persons: int, own_share: float
) -> tuple[GaussianPartitionSelection, ...]:
    """Return rounds that cost (epsilon, delta); ``own_share`` of delta is for keys of one person.

    With probability 1 - own_delta in all rounds what is seen is Gaussian noise of one mu.
    """

    def loss_of(scale: float) -> GaussianLoss:
        return GaussianLoss(math.sqrt(persons) / scale)

    scale = calibrate(loss_of, epsilon=epsilon, delta=(1 - own_share) * delta)
    shares = [cost / math.fsum(ROUNDS) for cost in ROUNDS]
    # The discrete noise costs as much as a Gaussian of a variance that is 4 steps^2 less.
    return tuple(
        GaussianPartitionSelection(
            scale=(1 + 1e-6) * math.hypot(scale / math.sqrt(share), 2 / STEPS),
            own_delta=own_share * delta * math.sqrt(share) / math.fsum(map(math.sqrt, shares)),
            keys=keys,
            persons=persons,
        )
        for share in shares
    )


def persons_needed(selection: KeySelection) -> int:
    """Return how many persons a key needs to be kept with a chance of a half.

    Each of them has as many keys as a person may have.
    """
    if isinstance(selection, GaussianPartitionSelection):
        return math.ceil(selection.threshold / int(key_weight(selection.keys)))
    return int(np.argmax(selection.keep_probability(np.arange(1 << 20)) >= 0.5))


def with_keys(schema: Schema, key: str, names: Sequence[str | int]) -> Schema:
    """Return the schema in which these keys of the column are public, and all others dropped."""
    columns = {**schema.columns, key: SelectedKeys(tuple(names))}
    return schema.with_columns(columns)


def kept_keys(
    query: Any,
    key: str,
    ledger: Gate,
    selections: Sequence[KeySelection],
    schema: Schema,
    facts: FrameFacts,
    max_cells: int,
    of_cells: CellCounts | None = None,
) -> list[Any]:
    """Release the selections, and return the selected keys.

    With the other axes of the query, which are public, they make a table of at most ``max_cells``
    cells; further keys are left out.
    """
    names: list[str] = []
    how = partial(key_counts, query, key=key, schema=schema, of_cells=of_cells)
    for selection in selections:
        counted = partial(how, selection=selection)
        released = unseen(partial(counted, earlier=tuple(names)))
        names += np.asarray(ledger.release(selection, released)).tolist()
    public_axes = [axis for axis in query.keys if axis.column != key]
    integer_keys = "int" in facts.types[key].lower()
    selected = sorted(map(int, names)) if integer_keys else sorted(names)
    return selected[: max_cells // math.prod(table_shape(public_axes, schema))]


def selection_in_words(selections: Sequence[KeySelection], key: str, schema: Schema) -> str:
    """Return in words how many persons a key needs to be kept with a chance of a half."""
    likely = persons_needed(selections[-1])
    keys_each = keys_per_person(key, schema)
    key_limit = f"{keys_each} keys" if keys_each > 1 else "one key"
    rounds = f" in {len(selections)} rounds" if len(selections) > 1 else ""
    how = f"kept by chance{rounds}, half of those of {likely} persons"
    return f"keys of {key}: {how} ({key_limit} a person)"


def released_by_keys(
    query: Any, key: str, ledger: Gate, schema: Schema, facts: FrameFacts
) -> Answer:
    """Answer a query: release the selections, then the statistic of the keys that they kept."""
    selections, noise = steps_by_keys(query, key, schema)
    of_cells = counted_once(query, key, schema)
    names = kept_keys(query, key, ledger, selections, schema, facts, MOST_CELLS, of_cells)
    public = with_keys(schema, key, names)
    # Where no key is kept, the noise is released on a zero, because the plan contains this release.
    exact_sums = unseen(lambda frame: sums_by_keys(query, frame, key, public, names, of_cells))
    numbers = (
        math.prod(table_shape(query.keys, public)) * query.statistic.basis(public, "laplace").size
    )
    shape = shape_of_sums(numbers) if names else ()
    noisy = np.atleast_1d(ledger.release(noise, exact_sums, shape=shape))
    released = noisy if names else noisy[:0]
    return Answer(str(query), query.statistic, query.keys, public, noise, released, facts.backend)


def sums_by_keys(
    query: Any,
    frame: Any,
    key: str,
    public: Schema,
    names: list[Any],
    of_cells: CellCounts | None = None,
) -> Any:
    """Return the exact sums of the selected keys; 0 where there are none."""
    if not names or not isinstance(query.statistic, Count | Persons) or len(query.keys) > 1:
        return query.sums(frame, public, "laplace") if names else 0
    counted = (of_cells or counted_once(query, key, public))(frame)
    if counted is None:
        return query.sums(frame, public, "laplace")
    rows = dict(zip(counted.keys.tolist(), counted.counts.tolist(), strict=True))
    counts = [rows.get(str(name), 0) for name in names]
    return np.asarray(counts) if len(counts) > 1 else counts[0]


def counted_once(query: Any, key: str, schema: Schema) -> CellCounts:
    """Return a function that counts the equal cells of the frame of a query at its first call.

    The selection and the statistic of its keys see the same rows, so both use these counts.
    """
    cell_counts: list[KeyCounts | None] = []

    def counts(frame: Any) -> KeyCounts | None:
        if not cell_counts:
            cell_counts.append(counts_of_distinct(query, frame, key, schema))
        return cell_counts[0]

    return counts


def counts_of_distinct(query: Any, frame: Any, key: str, schema: Schema) -> KeyCounts | None:
    """Return how many rows have each key, where each row is a person and nothing else is asked.

    Equal cells are counted, and only distinct ones are read as texts.  The result is None of other
    questions, and of frames that are not in memory.
    """
    from algorithms.frames.rows import Reading
    from algorithms.frames.sources import COUNT, plain_series, prepared

    reading = Reading(query.used, query.where, schema)
    if schema.person is not None or query.where is not None or list(reading.columns) != ["c0"]:
        return None
    table: Any = nw.from_native(frame, pass_through=True, eager_only=True)
    if not isinstance(table, nw.DataFrame):
        return None
    cells = table[key]
    native_type: Any = getattr(cells.to_native(), "dtype", None)
    if getattr(native_type, "hasobject", False):
        table = plain_series(cells, Key()).alias(key).to_frame()
    elif getattr(native_type, "categories", None) is None and not (
        cells.dtype.is_integer() or cells.dtype == nw.String
    ):
        return None
    distinct = table.group_by(key, drop_null_keys=True).agg(nw.len().alias(COUNT))
    texts = reading.read(prepared(distinct.select(key).to_native(), reading))
    present = Key().present(nw.col("c0"))
    columns = texts.select("c0", present=present).collect()
    is_key = columns["present"].to_numpy().astype(bool)
    names, index = np.unique(columns["c0"].to_numpy()[is_key].astype(str), return_inverse=True)
    counts = np.zeros(names.size, dtype=np.int64)
    np.add.at(counts, index, distinct[COUNT].to_numpy()[is_key].astype(np.int64))
    return KeyCounts(names, counts)


def key_counts(
    query: Any,
    frame: Any,
    key: str,
    schema: Schema,
    selection: KeySelection | None = None,
    earlier: Sequence[str] = (),
    of_cells: CellCounts | None = None,
) -> KeyCounts:
    """Return how many persons have each key in a frame, or the sums of their weights.

    Only rows that the schema and the query admit count, and of a person only the first keys that
    are not among the ``earlier`` ones, which are public.  Which these are depends on the rows of
    that person alone.
    """
    from algorithms.frames.rows import PERSON, RANK, Reading
    from algorithms.frames.sources import COUNT, grouped, once_a_person, source_of

    weighs = isinstance(selection, GaussianPartitionSelection)
    of_cells = of_cells or counted_once(query, key, schema)
    if not weighs and (counted := of_cells(frame)) is not None:
        return counted
    reading = Reading(query.used, query.where, schema)
    keys_each = keys_per_person(key, schema)

    def pairs_of(rows: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        named = rows.filter(~reading.values[key].is_in(list(earlier))) if earlier else rows
        once = once_a_person(named, {"key": reading.values[key]}, schema, keys_each, weighs)
        if not weighs:
            return once
        numbers = once.group_by(PERSON).agg(nw.col(RANK).max().alias("held"))
        return once.join(numbers, on=PERSON, how="inner")

    same = {name: nw.col(name) for name in (("key", "held") if weighs else ("key",))}
    pairs = source_of(frame, reading).then(pairs_of).then(partial(grouped, groups=same, sums={}))
    columns = pairs.columns()
    weights = key_weight(columns["held"].astype(float)) if weighs else 1
    names, index = np.unique(columns["key"].astype(str), return_inverse=True)
    counts = np.zeros(names.size, dtype=np.int64)
    np.add.at(counts, index, columns[COUNT] * weights)
    return KeyCounts(names, counts)
