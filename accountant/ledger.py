"""The gate that spends: it checks a request against the plan, charges it, then looks and draws."""

from __future__ import annotations

import hashlib
import threading
from typing import Any

import numpy as np

from accountant.data import Users, checked_users, number, rows
from accountant.domains import OneOf
from accountant.errors import ParameterError, PrivateValueError
from accountant.gate import Entry, Gate, Query, Releasable
from accountant.plan import Plan, as_plan
from accountant.randomness import Rng, generator
from accountant.walk import Walk

TRANSCRIPT = OneOf(("full", "digest"))


class Ledger(Gate):
    """Data that can only be asked through a plan, one release at a time.

    ``data`` is an array or a tuple of arrays with one row a user; ``public`` whatever is public
    beside it.  ``transcript="digest"`` keeps SHA-256 digests in place of the answers.
    """

    def __init__(
        self,
        data: Any,
        plan: Plan,
        rng: Rng = None,
        public: Any = None,
        transcript: str = "full",
    ) -> None:
        self._noise, coins = _apart(rng)
        super().__init__(data, as_plan(plan), public, coins)
        self._digest = TRANSCRIPT.check("transcript", transcript) == "digest"
        self._users = len(self._data[0] if isinstance(self._data, tuple) else self._data)
        self._walk = Walk(self.plan, self._users)
        self._entries: list[Entry] = []
        self._lock = threading.RLock()

    def __reduce__(self) -> Any:
        raise TypeError("a ledger cannot be copied or pickled: two copies would spend it twice")

    def __repr__(self) -> str:
        return f"Ledger(shape={self.shape}, released={len(self._entries)}, next={self.next!r})"

    @property
    def transcript(self) -> tuple[Entry, ...]:
        """What was released so far, in order."""
        return tuple(self._entries)

    @property
    def next(self) -> Plan | None:
        """The leaf of the plan that may be released next; None when all is spent."""
        return self._walk.next

    def release(self, mechanism: Releasable, query: Query) -> Any:
        """Charge ``mechanism``, then release ``query(data)`` through it; see `Gate.release`."""
        mechanism, query = _checked(mechanism, query)
        with self._lock:
            return self._spend(mechanism, query, None)

    def release_each(self, mechanism: Releasable, query: Query, who: Any = None) -> Any:
        """Let each user in ``who`` randomise their own value; see `Gate.release_each`."""
        mechanism, query = _checked(mechanism, query)
        users = checked_users(who, self._users)
        with self._lock:
            return self._spend(mechanism, query, users)

    def _spend(self, mechanism: Releasable, query: Query, who: Users | None) -> Any:
        # Charge first, then look: whatever happens from here on, the release is spent.
        self._walk.charge(mechanism, who)
        output = None
        try:
            value = query(self._data if who is None else rows(self._data, who))
            if who is not None and np.shape(value)[:1] != (number(who),):
                raise PrivateValueError("value", f"one for each of {number(who)} users")
            output = read_only(self._draw(mechanism, value))
        finally:
            kept = digest(output) if self._digest and output is not None else output
            self._entries.append(Entry(mechanism, who, kept))
        return output

    def _draw(self, mechanism: Releasable, value: Any) -> Any:
        return mechanism.release(value, self._noise)


def _checked(mechanism: Releasable, query: Query) -> tuple[Releasable, Query]:
    # not isinstance: a runtime check of a protocol costs as much as the draw
    if not (isinstance(mechanism, Plan) and hasattr(mechanism, "release")):
        raise ParameterError("mechanism", mechanism, "a mechanism: it has a loss and can release")
    if not callable(query):
        raise ParameterError("query", query, "a function of the data")
    return mechanism, query


def _apart(rng: Rng) -> tuple[np.random.Generator, np.random.SeedSequence]:
    """Noise and public coins; whoever knows all about the coins learns nothing of the noise."""
    if rng is None:
        return np.random.default_rng(), np.random.SeedSequence()
    seeds = generator(rng).bit_generator.seed_seq
    if not isinstance(seeds, np.random.SeedSequence):
        raise ParameterError("rng", rng, "a Generator that was made from a SeedSequence")
    noise, other = seeds.spawn(2)
    # A spawned sequence carries its parent's entropy, from which the noise could be made again:
    # the coins get only words hashed from it.
    words = [int(word) for word in other.generate_state(4)]
    return np.random.default_rng(noise), np.random.SeedSequence(words)


def read_only(output: Any) -> Any:
    """The output; an array is owned, so that arithmetic in place cannot reach it."""
    if isinstance(output, np.ndarray):
        output = output if output.base is None else output.copy()
        output.flags.writeable = False
    return output


def digest(output: Any) -> str:
    """SHA-256 of an answer's type, shape and bytes."""
    array = np.ascontiguousarray(output)
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()
