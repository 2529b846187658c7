"""Random generators from an argument: a generator, a seed, or None for system entropy.

References: Bernstein (2008) for the cipher.
"""

from __future__ import annotations

import secrets

import numpy as np

from accountant.errors import ParameterError

Rng = np.random.Generator | int | None


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


def public_generator(source: np.random.Generator) -> np.random.Generator:
    """Return a fast generator for bits that may be published, seeded by words of ``source``.

    Such bits need no secrecy, and so no cipher.  All other words of ``source`` stay secret.
    A generator that is no cipher is returned itself.
    """
    if not type(source.bit_generator).__module__.startswith("randomgen."):
        return source
    seed = source.integers(0, 2**64, 4, np.uint64)
    return np.random.Generator(np.random.SFC64(seed.tolist()))
