"""Randomness is an argument: a generator, a seed, or None for operating-system entropy."""

from __future__ import annotations

import numpy as np

from accountant.errors import ParameterError

Rng = np.random.Generator | int | None


def generator(rng: Rng) -> np.random.Generator:
    """Return ``rng`` as a generator; None draws its state from the operating system."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return np.random.default_rng()
    if isinstance(rng, (bool, np.bool_)) or not isinstance(rng, (int, np.integer)) or rng < 0:
        raise ParameterError("rng", rng, "a numpy Generator, a seed of at least 0, or None")
    return np.random.default_rng(int(rng))
