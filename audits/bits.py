"""The low-order bits of a release: what floating-point noise tells beside its real value.

A float near 0 has finer bits than one near 1, so that noise added to a number leaves its place
on the grid of floats behind.  Source: Mironov (2012).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.randomness import Rng
from audits.drawing import vectorised
from audits.finding import Finding
from audits.guess import audit
from mechanisms.mechanism import Mechanism

NO_BIT = 2000  # of zero; every other float has its lowest bit from 2^-1074 to 2^1023


def lowest_bit(x: NDArray[Any]) -> NDArray[np.int64]:
    """k of the greatest 2^k that every float is a whole multiple of."""
    fraction, exponent = np.frexp(np.asarray(x, dtype=float))
    whole = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    lowest = np.log2(np.maximum(whole & -whole, 1)).astype(np.int64)
    return np.where(whole == 0, NO_BIT, exponent.astype(np.int64) - 53 + lowest)


def audit_bits(
    release: Mechanism | Callable[..., Any],
    pair: tuple[Any, Any] | None = None,
    claim: Any = None,
    runs: int = 20_000,
    confidence: float = 0.95,
    rng: Rng = None,
) -> Finding:
    """Try to falsify a claim by the lowest bit of released numbers alone; see `audit`.

    A function of a release is as private as the release, so the claim is the same.
    """
    if isinstance(release, Mechanism):
        pair = release.worst_pair() if pair is None else pair
        claim = release.loss if claim is None else claim
        draw: Any = release.release
    else:
        draw = vectorised(release)

    def bits(value: Any, source: np.random.Generator, size: int) -> NDArray[np.int64]:
        return lowest_bit(draw(value, source, size))

    return audit(bits, pair, claim, runs, confidence, rng=rng)
