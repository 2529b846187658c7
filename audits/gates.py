"""The gates of an audit: one that records what the algorithm asked, one that hands it back."""

from __future__ import annotations

from typing import Any

import numpy as np

from accountant.data import Users, checked_users, rows
from accountant.gate import Gate, Query, Releasable
from accountant.ledger import Ledger


class OffTranscript(RuntimeError):
    """A replayed run asked for something else than the recorded one: releases depend on data."""


class Recorder(Ledger):
    """A ledger that also keeps the private values it released; for audits only."""

    def __init__(self, data: Any, plan: Any, rng: Any, public: Any) -> None:
        super().__init__(data, plan, rng=rng, public=public)
        self.values: list[Any] = []

    def _draw(self, mechanism: Releasable, value: Any) -> Any:
        # a copy: a query may hand out its own working memory
        self.values.append(np.array(value))
        return super()._draw(mechanism, value)


class Replay(Gate):
    """The recorded answers and coins, other data, and no noise at all.

    ``loss`` sums log density(output | recorded value) - log density(output | value here).
    """

    def __init__(self, recorder: Recorder, data: Any) -> None:
        super().__init__(data, recorder.plan, recorder.public, recorder.coins_seed)
        if len(recorder.values) != len(recorder.transcript):
            raise OffTranscript("a query failed in the recorded run: there is nothing to replay")
        self._entries = list(zip(recorder.transcript, recorder.values, strict=True))
        self._users = len(self._data[0] if isinstance(self._data, tuple) else self._data)
        self._at = 0
        self.loss = 0.0

    def release(self, mechanism: Releasable, query: Query) -> Any:
        """Hand back the recorded answer if the request is the recorded one."""
        recorded, output = self._next(mechanism, None)
        self._account(mechanism, output, recorded, np.asarray(query(self._data)))
        return output

    def release_each(self, mechanism: Releasable, query: Query, who: Any = None) -> Any:
        """Hand back the recorded answers; the values of at most one user may differ."""
        users = checked_users(who, self._users)
        recorded, output = self._next(mechanism, users)
        value = np.asarray(query(rows(self._data, users)))
        if value.shape != recorded.shape:
            raise OffTranscript(f"values of shape {value.shape}, recorded were {recorded.shape}")
        changed = (value != recorded).reshape(len(value), -1).any(axis=1)
        if np.count_nonzero(changed) > 1:
            count = np.count_nonzero(changed)
            raise OffTranscript(f"the values of {count} users changed with one user's record")
        # the others' terms are equal and cancel
        self._account(mechanism, output[changed], recorded[changed], value[changed])
        return output

    def finish(self) -> None:
        """Raise `OffTranscript` unless every recorded release was asked for again."""
        if self._at < len(self._entries):
            total = len(self._entries)
            raise OffTranscript(f"the run stopped after {self._at} of {total} recorded releases")

    def _next(self, mechanism: Releasable, who: Users | None) -> tuple[Any, Any]:
        if self._at == len(self._entries):
            raise OffTranscript(f"the run asked for more than the {self._at} recorded releases")
        entry, value = self._entries[self._at]
        if mechanism != entry.mechanism:
            raise OffTranscript(f"asked for {mechanism!r}, recorded was {entry.mechanism!r}")
        if not _same_users(who, entry.who):
            raise OffTranscript(f"release {self._at} asked other users than the recorded one")
        self._at += 1
        return value, entry.output

    def _account(self, mechanism: Any, output: Any, recorded: Any, value: Any) -> None:
        here, there = mechanism.log_density(output, value), mechanism.log_density(output, recorded)
        if np.size(output):
            self.loss += float(np.sum(there - here))


def _same_users(one: Users | None, other: Users | None) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return (
            isinstance(one, np.ndarray)
            and isinstance(other, np.ndarray)
            and np.array_equal(one, other)
        )
    return one == other
