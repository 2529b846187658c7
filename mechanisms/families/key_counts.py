"""Keys with the number of people who hold each, as one private value of a key selection.

A key selection releases those keys, such as search words, that enough people hold.  The set of keys
is private itself.  This file has the value (`KeyCounts`), what a mechanism knows of its values
(`KeyCountValues`), and the outputs (`KeptKeys`): sets of keys that were selected, or *kept*.

References: Korolova, Kenthapadi, Mishra & Ntoulas (2009) for a bounded number of keys a person.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import IntegerRange
from accountant.errors import ParameterError, PrivateValueError
from accountant.numerics import Array
from mechanisms.base import Cells, Support
from mechanisms.base.supports import bit_rows
from mechanisms.base.values import as_int64

IndexArray = NDArray[np.int64]
STEPS = 1 << 12  # steps of the weight of a person's only key


@final
class KeyCounts:
    """Distinct keys in ascending order, and how many people hold each: a value of key selections.

    Parameters
    ----------
    keys : array_like
        Distinct keys: whole numbers from 0, or strings that are not empty.
    counts : array_like of int
        How many people hold each, at least 0.

    Examples
    --------
    >>> from mechanisms.families.key_counts import KeyCounts
    >>> KeyCounts.of_people([1, 1, 2], ["tea", "tea", "tea"], most=1).counts.tolist()
    [2]
    """

    def __init__(self, keys: ArrayLike, counts: ArrayLike) -> None:
        key_array, holders = checked_keys(keys), as_int64(counts, "whole numbers from 0")
        if holders.shape != key_array.shape or (holders < 0).any():
            raise PrivateValueError("counts", "a whole number from 0 for each key")
        self.keys, order = np.unique(key_array, return_index=True)
        if self.keys.size < key_array.size:
            raise PrivateValueError("keys", "distinct")
        self.counts: IndexArray = holders[order]

    @classmethod
    def of_people(cls, people: ArrayLike, keys: ArrayLike, most: int) -> KeyCounts:
        """Count the people who hold each key; only the first ``most`` keys of a person count.

        Parameters
        ----------
        people : array_like
            Who a row belongs to.
        keys : array_like
            The key of the row.
        most : int
            How many distinct keys of a person count: the first ones in the order of the rows.

        Returns
        -------
        KeyCounts
            If one person is added or removed, at most ``most`` counts change, each by 1.
        """
        person_codes = np.unique(np.asarray(people), return_inverse=True)[1]
        key_of_row = checked_keys(keys)
        limit = IntegerRange(1).check("most", most)
        if person_codes.shape != key_of_row.shape:
            raise PrivateValueError("keys", "as many as people")
        distinct, key_codes = np.unique(key_of_row, return_inverse=True)
        # Each pair of a person and a key is one number, person times the number of keys plus key.
        # The distinct pairs are put in order of the person, then of their first row.
        pairs, first_rows = np.unique(
            person_codes.astype(np.int64) * distinct.size + key_codes, return_index=True
        )
        person, key = np.divmod(
            pairs[np.lexsort((first_rows, pairs // max(distinct.size, 1)))], distinct.size
        )
        starts = np.flatnonzero(np.append(True, person[1:] != person[:-1]))
        rank = np.arange(person.size) - np.repeat(starts, np.diff(np.append(starts, person.size)))
        return cls(distinct, np.bincount(key[rank < limit], minlength=distinct.size))

    def __repr__(self) -> str:
        return f"KeyCounts({self.keys.size} keys)"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        # An array of this is one object without axes; numpy gets the counts if it asks for numbers.
        del copy
        if dtype is not None and np.dtype(dtype).kind != "O":
            return self.counts.astype(dtype)
        handle = np.empty(1, dtype=object)
        handle[0] = self
        return handle.reshape(())


def checked_keys(keys: ArrayLike) -> NDArray[Any]:
    """Return keys as an array of 64-bit whole numbers from 0, or of strings."""
    key_array = np.asarray(keys)
    if key_array.dtype == object and all(isinstance(key, str) for key in key_array.ravel()):
        key_array = key_array.astype(str)
    are_strings = key_array.dtype.kind == "U" and bool((key_array != "").all())
    # An unsigned number from 2^63 on becomes negative here, and -1 stands for a key not kept.
    are_integers = key_array.dtype.kind in "iu" and not (key_array.astype(np.int64) < 0).any()
    if key_array.ndim != 1 or not (are_strings or are_integers or key_array.size == 0):
        allowed = "a list of whole numbers from 0, below 2^63, or of strings, not empty"
        raise PrivateValueError("keys", allowed)
    return key_array if are_strings else key_array.astype(np.int64)


@dataclass(frozen=True, slots=True)
class KeyCountValues:
    """The values of a key selection: `KeyCounts`, and which of them are neighbours.

    Between neighbours at most ``keys`` counts change, by 1 each: all up, or all down.
    """

    keys: int
    axes: ClassVar[int] = 0

    def check(self, value: Any) -> NDArray[np.object_]:
        """Return one `KeyCounts`, or many, as an array of objects; refuse anything else."""
        objects = np.asarray(value)
        if objects.dtype != object or not all(
            isinstance(entry, KeyCounts) for entry in objects.ravel()
        ):
            raise PrivateValueError("value", "KeyCounts: keys, and how many people hold each")
        return objects

    def example(self, rng: np.random.Generator) -> KeyCounts:
        """Return two or three keys; each is held by 0 to 8 people, or by 7 times as many."""
        size = int(rng.integers(2, 4))
        return KeyCounts(np.arange(size), rng.integers(0, 9, size) * rng.choice([1, 7], size))

    def neighbour(self, value: Any, rng: np.random.Generator) -> KeyCounts:
        """Return the counts with one person more, or one less where there is one to remove.

        The person holds randomly chosen keys, at most ``keys`` of them.
        """
        counts = np.asarray(value).item().counts.copy()
        moved_keys = rng.permutation(counts.size)[: self.keys]
        decreased = moved_keys[counts[moved_keys] > 0]
        if decreased.size and rng.random() < 0.5:
            counts[decreased] -= 1
        else:
            counts[moved_keys] += 1
        return KeyCounts(np.asarray(value).item().keys, counts)


def key_weight(keys_of_person: Any) -> Any:
    """Return the weight of each key of a person who holds so many, in whole steps of 1 / `STEPS`.

    It is 1 / sqrt(keys_of_person), rounded down: the squares of all weights of a person sum to 1
    at most.
    """
    return np.floor(STEPS / np.sqrt(keys_of_person)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class KeyWeightValues(KeyCountValues):
    """The values of a selection by weights: `KeyCounts` of steps, and which are neighbours.

    Between neighbours a person comes or goes who holds at most ``keys`` keys, each of
    `key_weight`; with ``persons`` 2 one goes and another comes.
    """

    persons: int = 1

    def example(self, rng: np.random.Generator) -> KeyCounts:
        """Return two or three keys; each is held by 0 to 8 people, or by 7 times as many."""
        size = int(rng.integers(2, 4))
        people = rng.integers(0, 9, size) * rng.choice([1, 7], size)
        return KeyCounts(np.arange(size), people * STEPS)

    def neighbour(self, value: Any, rng: np.random.Generator) -> KeyCounts:
        """Return the weights with one person more or less, or with one for another."""
        weights = np.asarray(value).item().counts.copy()
        changes = [-1, 1] if self.persons > 1 else [1 if rng.random() < 0.5 else -1]
        for change in changes:
            keys_held = int(rng.integers(1, min(self.keys, weights.size) + 1))
            moved = rng.permutation(weights.size)[:keys_held]
            if change > 0 or (weights[moved] >= key_weight(keys_held)).all():
                weights[moved] += change * key_weight(keys_held)
        return KeyCounts(np.asarray(value).item().keys, weights)


@dataclass(frozen=True, slots=True)
class KeptKeys(Support):
    """Sets of keys, as rows in which -1 or an empty string stands for a key that is not kept."""

    def cells(self, first: Any, second: Any) -> Cells | None:
        """Return every set of the keys that two values have, for sums over all outputs.

        There are 2^20 sets at most.
        """
        keys = np.union1d(np.asarray(first).item().keys, np.asarray(second).item().keys)
        if keys.size > 20:
            raise ParameterError("value", keys.size, "at most 20 keys, whose sets can be listed")
        subsets = bit_rows(keys.size).astype(bool)
        bit_weights = np.int64(1) << np.arange(keys.size)
        return Cells(
            kept_rows(keys, subsets),
            np.ones(len(subsets)),
            lambda output: (keys_present(output, keys) * bit_weights).sum(axis=-1),
        )

    def may_hold(self, outputs: NDArray[Any]) -> bool:
        """Return whether outputs have the type of keys: whole numbers or strings."""
        return outputs.dtype.kind in "iU"


def kept_rows(keys: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[Any]:
    """Return a row of keys for each row of the mask, with a `filler` where a key is not kept."""
    return np.where(mask, keys, filler(keys))


def filler(keys: NDArray[Any]) -> Any:
    """Return what stands for a key that is not kept: an empty string, or -1."""
    return "" if keys.dtype.kind == "U" else -1


def keys_present(output: ArrayLike, keys: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which of the keys are in each row of an output."""
    present: NDArray[np.bool_] = (np.asarray(output)[..., None] == keys).any(axis=-2)
    return present


def has_other_keys(output: ArrayLike, keys: NDArray[Any]) -> Array:
    """Return which rows of an output hold a value that is not one of the keys."""
    rows = np.asarray(output)
    recognised = np.isin(rows, keys) | (rows == filler(keys))
    unknown: Array = ~recognised.all(axis=-1)
    return unknown
