"""Vectors of s signs among p places that lie far apart: how many there are, and how to find some.

Distance is the number of places in which two vectors differ.  References: Gilbert (1952) and
Varshamov (1957) for the count; Raskutti, Wainwright & Yu (2011), Lemma 5, for the printed one.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.numerics import Array

Signs = NDArray[np.int8]
_BATCH = 64


def log_points_printed(p: int, s: int) -> float:
    """``(s / 2) ln((p - s) / (s / 2))``: the papers' count at distance s / 2, ``s < 2p / 3``."""
    return s / 2 * math.log((p - s) / (s / 2))


def log_points(p: int, s: int, squared: int) -> float:
    """Log of a number of points that surely exist with squared Euclidean distance ``squared``.

    All ``C(p, s) 2^s`` vectors over those closer to one of them: a largest packing covers.
    """
    closer = _log_ball_sizes(p, s)
    every, near = closer[-1], closer[min(squared, len(closer) - 1) - 1]
    # a gamma function's logarithm is right to 15 digits of the largest one
    slack = 1e-13 * math.lgamma(p + 1) + 1e-9
    return max(float(every - near) - slack, 0.0)


@functools.lru_cache(maxsize=256)
def _log_ball_sizes(p: int, s: int) -> Array:
    """At q, the log of how many vectors have a squared distance of at most q from one of them."""
    from scipy.special import gammaln

    def choose(n: Any, k: Any) -> Any:
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    moved, flipped = np.indices((min(s, p - s) + 1, s + 1)).reshape(2, -1)
    moved, flipped = (part[moved + flipped <= s] for part in (moved, flipped))
    # moved places with any signs, flipped signs among those that stay
    logs = choose(s, moved) + choose(p - s, moved) + moved * math.log(2)
    logs += choose(s - moved, flipped)
    # a place given up and one taken count 1 each, a sign turned counts 4
    order = np.argsort(2 * moved + 4 * flipped, kind="stable")
    running = np.logaddexp.accumulate(logs[order])
    ends = np.searchsorted((2 * moved + 4 * flipped)[order], np.arange(4 * s + 1), side="right")
    closer: Array = running[ends - 1]
    return closer


def greedy_packing(p: int, s: int, points: int, distance: int, tries: int = 200_000) -> Signs:
    """The first vectors in lexicographic order that keep their distance, (points, p) of int8.

    Raises `ParameterError` with how many were found where ``tries`` candidates, or all there are,
    do not suffice.
    """
    p, s, points, distance = _checked(p, s, points, distance)
    ordered = (
        (places, signs)
        for places in itertools.combinations(range(p), s)
        for signs in itertools.product((1, -1), repeat=s)
    )
    candidates = _as_vectors(itertools.islice(ordered, IntegerRange(1).check("tries", tries)), p)
    return _select_separated(
        candidates, points, distance, f"in the first {tries:,} candidates in order"
    )


def random_packing(
    p: int, s: int, points: int, distance: int, rng: np.random.Generator, tries: int = 200_000
) -> Signs:
    """Vectors drawn at random that keep their distance, (points, p) of int8.

    Raises `ParameterError` with how many were found in ``tries`` draws.
    """
    p, s, points, distance = _checked(p, s, points, distance)
    tries = IntegerRange(1).check("tries", tries)

    def drawn() -> Iterator[tuple[Any, Any]]:
        for _ in range(tries):
            yield rng.choice(p, s, replace=False), rng.choice((-1, 1), s)

    return _select_separated(
        _as_vectors(drawn(), p), points, distance, f"in {tries:,} random draws"
    )


def disjoint_packing(p: int, s: int, points: int) -> Signs:
    """Signs on separate blocks of s places, and their opposites: s places apart at least.

    Raises `ParameterError` with the number there is where it is below ``points``.
    """
    p, s, points, _ = _checked(p, s, points, 1)
    if points > 2 * (p // s):
        allowed = f"at most {2 * (p // s)}, as there are {p // s} blocks of {s} in {p} places"
        raise ParameterError("points", points, allowed)
    vectors = np.zeros((points, p), dtype=np.int8)
    for i, row in enumerate(vectors):
        row[(i // 2) * s : (i // 2 + 1) * s] = 1 if i % 2 == 0 else -1
    return vectors


def least_distance(vectors: Signs) -> int:
    """The least number of places in which two rows differ."""
    if len(vectors) < 2:
        raise ParameterError("vectors", vectors.shape, "at least two rows")
    return min(
        int(np.count_nonzero(vectors[i + 1 :] != vectors[i], axis=1).min())
        for i in range(len(vectors) - 1)
    )


def _checked(p: int, s: int, points: int, distance: int) -> tuple[int, int, int, int]:
    p = IntegerRange(1, 10**7).check("p", p)
    s = IntegerRange(1, p).check("s", s)
    points = IntegerRange(2, 10**6).check("points", points)
    return p, s, points, IntegerRange(1, min(2 * s, p)).check("distance", distance)


def _as_vectors(places: Iterator[tuple[Any, Any]], p: int) -> Iterator[Signs]:
    """Batches of vectors, (at most 64, p)."""
    while batch := list(itertools.islice(places, _BATCH)):
        vectors = np.zeros((len(batch), p), dtype=np.int8)
        for row, (support, signs) in zip(vectors, batch, strict=True):
            row[np.asarray(support)] = signs
        yield vectors


def _select_separated(batches: Iterator[Signs], points: int, distance: int, how: str) -> Signs:
    kept: list[Signs] = []
    for batch in batches:
        near = np.zeros(len(batch), dtype=bool)
        for earlier in kept:
            near |= np.count_nonzero(batch != earlier, axis=1) < distance
        fresh: list[Signs] = []
        for row in batch[~near]:
            if all(np.count_nonzero(row != other) >= distance for other in fresh):
                fresh.append(row)
        kept += fresh
        if len(kept) >= points:
            return np.array(kept[:points])
    raise ParameterError(
        "points", points, f"at most {len(kept)}, as far as was got at distance {distance} {how}"
    )
