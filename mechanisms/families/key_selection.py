"""The base of mechanisms that release which keys are kept, each by a draw of its own.

A subclass says by which chance a key is kept (`keep_probability`), draws it (`_kept`), and states
its loss and which values are neighbours.

References: Korolova, Kenthapadi, Mishra & Ntoulas (2009).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.errors import PrivateValueError
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from mechanisms.base import EXACT, Arithmetic, Mechanism, draw_shape, refuse_size_for_batch
from mechanisms.base.values import as_int64
from mechanisms.families.key_counts import (
    KeptKeys,
    KeyCounts,
    KeyCountValues,
    has_other_keys,
    kept_rows,
    keys_present,
)

COUNTS = "whole numbers from 0"


class KeySelection(Mechanism):
    """Keys that are kept, independently of each other; a value is a `KeyCounts`."""

    __slots__ = ()

    @abstractmethod
    def _kept(
        self, counts: NDArray[np.int64], size: int, source: np.random.Generator
    ) -> NDArray[np.bool_]:
        """Return ``size`` rows of draws, one for every count: whether its key is kept."""

    @abstractmethod
    def chances(self, counts: NDArray[np.int64]) -> Array:
        """Return the probability that a key is kept.

        Parameters
        ----------
        counts : numpy.ndarray of int
            Checked counts, at least 0.

        Returns
        -------
        numpy.ndarray
            Probabilities, to nearest.
        """

    @property
    @abstractmethod
    def values(self) -> KeyCountValues:
        """Keys with counts, and what a person moves."""

    def keep_probability(self, counts: ArrayLike) -> Array:
        """Return the probability that a key is kept, by the count of it.

        Parameters
        ----------
        counts : array_like of int
            How many people hold the key, or the sum of their weights; at least 0.

        Returns
        -------
        numpy.ndarray
            Probabilities, to nearest; what is drawn is rounded towards privacy.

        Raises
        ------
        PrivateValueError
            If a count is no whole number from 0.
        """
        holders = as_int64(counts, COUNTS)
        if (holders < 0).any():
            raise PrivateValueError("counts", COUNTS)
        return self.chances(holders)

    def release(self, value: Any, rng: Rng = None, size: int | None = None) -> Any:
        """Return the kept keys; see `Mechanism.release`."""
        values, source = self.values.check(value), generator(rng)
        refuse_size_for_batch(size, values, 0)
        if values.ndim:
            return self._batch(values, source)
        key_counts = values.item()
        if size is not None:
            return kept_rows(
                key_counts.keys, self._kept(key_counts.counts, draw_shape(size, ())[0], source)
            )
        selected = key_counts.keys[self._kept(key_counts.counts, 1, source)[0]]
        # The strings get a new width: the width of the longest key of all is private.
        return np.array(selected.tolist(), dtype=str) if selected.dtype.kind == "U" else selected

    def _batch(self, values: NDArray[np.object_], source: np.random.Generator) -> NDArray[Any]:
        """Return a row for each value; the rows of one `KeyCounts` are drawn together."""
        indices: dict[int, list[int]] = {}
        for index, key_counts in enumerate(values):
            indices.setdefault(id(key_counts), []).append(index)
        width = max((key_counts.keys.size for key_counts in values), default=0)
        text = any(key_counts.keys.dtype.kind == "U" for key_counts in values)
        rows: Any = np.full((values.size, width), "" if text else -1, dtype=object)
        for same in indices.values():
            key_counts = values[same[0]]
            rows[same, : key_counts.keys.size] = kept_rows(
                key_counts.keys, self._kept(key_counts.counts, len(same), source)
            )
        released: NDArray[Any] = rows.astype(str if text else np.int64)
        return released

    def log_density(self, output: ArrayLike, value: Any, each: bool = False) -> Array:
        """Return log-probabilities of sets of keys; see `Mechanism.log_density`."""
        values = self.values.check(value)
        if values.ndim == 0:
            return self._log_probability(np.asarray(output), values.item())
        rows = np.asarray(output)
        log_probabilities = np.stack(
            [
                self._log_probability(rows[..., i, :], key_counts)
                for i, key_counts in enumerate(values)
            ],
            axis=-1,
        )
        return log_probabilities if each else log_probabilities.sum(axis=-1)

    def _log_probability(self, output: NDArray[Any], key_counts: KeyCounts) -> Array:
        """Return the log-probability of each set of kept keys; -inf if it has any other key."""
        keep = self.keep_probability(key_counts.counts)
        with np.errstate(divide="ignore"):
            terms = np.where(keys_present(output, key_counts.keys), np.log(keep), np.log1p(-keep))
        is_impossible = has_other_keys(output, key_counts.keys)
        log_probability: Array = np.where(is_impossible, -np.inf, terms.sum(axis=-1))
        return log_probability

    @property
    def arithmetic(self) -> Arithmetic:
        """EXACT: what is drawn are whole numbers, which satisfy the privacy inequalities."""
        return EXACT

    def outputs_fault(self, outputs: NDArray[Any], users: int) -> str:
        """Return why these cannot be outputs of so many users; see `Mechanism.outputs_fault`."""
        # A set of keys has any length.  Worker processes, whose outputs are checked here, return
        # whole numbers alone and never strings.
        fits = outputs.dtype == np.int64 and outputs.ndim == 2 and len(outputs) == users
        return (
            ""
            if fits and bool((outputs >= -1).all())
            else "rows of whole keys, a row for each user"
        )

    @property
    def support(self) -> KeptKeys:
        """Sets of keys."""
        return KeptKeys()
