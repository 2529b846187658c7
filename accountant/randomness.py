"""Random generators from an argument: a generator, a seed, or None for system entropy.

References: Bernstein (2008) for the cipher.
"""

from __future__ import annotations

import ctypes
import os
import secrets

import numpy as np

from accountant.errors import ParameterError

Rng = np.random.Generator | int | None
# Places in the memory of a `keyed_generator`'s state, in bytes: after a block of 64 bytes the key,
# and then the counter, with which the next block is made.
KEY_PLACE, COUNTER_PLACE = slice(64, 96), slice(96, 112)


def generator(rng: Rng) -> np.random.Generator:
    """Return ``rng`` as a generator; None is a cipher with a fresh key of the operating system.

    A seed makes a run repeatable, for audits and tests: the seed reveals the noise.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return keyed_generator(fresh_key())
    if isinstance(rng, (bool, np.bool_)) or not isinstance(rng, (int, np.integer)) or rng < 0:
        raise ParameterError("rng", rng, "a numpy Generator, a seed of at least 0, or None")
    return np.random.default_rng(int(rng))


def fresh_key() -> int:
    """Return 256 secret bits of the operating system: a key for `keyed_generator`."""
    return secrets.randbits(256)


def keyed_generator(key: int) -> np.random.Generator:
    """Return the cipher of a key of 256 bits: who has the key can draw the same again."""
    from randomgen import ChaCha  # the twenty rounds of Bernstein (2008)

    return np.random.Generator(ChaCha(key=key, rounds=20))


class RenewedKey:
    """The key of a `keyed_generator`, which can be replaced by a fresh one of the system.

    A copy of the generator from before, as a virtual machine that is restored twice has it, or a
    process that was forked, then draws other noise than the generator itself.

    The key is written to its place in memory, whose address numpy gives, where a test finds it at
    that place.  Elsewhere it is set by ``state``, which takes five times as long.
    """

    def __init__(self, noise: np.random.Generator) -> None:
        self._cipher = noise.bit_generator  # which keeps the memory
        state = dict(self._cipher.state)
        address = self._cipher.ctypes.state_address
        memory = memoryview((ctypes.c_ubyte * COUNTER_PLACE.stop).from_address(address)).cast("B")
        key, counter = state["state"]["keysetup"], state["state"]["ctr"]
        self._is_in_place = (memory[KEY_PLACE], memory[COUNTER_PLACE]) == (
            key.tobytes(),
            counter.tobytes(),
        )
        if self._is_in_place:
            self._key, self._counter = memory[KEY_PLACE], memory[COUNTER_PLACE]
        else:
            self._key, self._counter = (memoryview(words).cast("B") for words in (key, counter))
        self._state, self._zero = state, bytes(self._counter.nbytes)

    def renew(self) -> None:
        """Replace the key; the next draw begins with the first block of the new one."""
        self._key[:] = os.urandom(32)
        self._counter[:] = self._zero
        if not self._is_in_place:
            self._cipher.state = self._state


def public_generator(source: np.random.Generator) -> np.random.Generator:
    """Return a fast generator for bits that may be published, seeded by words of ``source``.

    Such bits need no secrecy, and so no cipher.  All other words of ``source`` stay secret.
    A generator that is no cipher is returned itself.
    """
    if not type(source.bit_generator).__module__.startswith("randomgen."):
        return source
    seed = source.integers(0, 2**64, 4, np.uint64)
    return np.random.Generator(np.random.SFC64(seed.tolist()))
