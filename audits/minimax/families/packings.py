"""Vectors of s signs among p places that lie far apart: how many exist, and how to construct some.

A set of points that lie far apart is a packing.  By Fano's inequality, an estimator that is nearer
than half the distance must tell the points apart, so many points make a strong minimax lower bound.
Distance is the number of places in which two vectors differ, unless it is called Euclidean.

References: Gilbert (1952) and Varshamov (1957) for the count; Raskutti, Wainwright & Yu (2011),
Lemma 5, for the one that papers print.
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
from accountant.numerics.rounding import ULP

Signs = NDArray[np.int8]
_BATCH = 64  # vectors that are drawn and compared at a time


def log_points_printed(p: int, s: int) -> float:
    """``(s / 2) ln((p - s) / (s / 2))``: the papers' count at distance s / 2, ``s < 2p / 3``."""
    return s / 2 * math.log((p - s) / (s / 2))


def log_points(p: int, s: int, squared: int) -> float:
    """Log of a number of points that exist at squared Euclidean distance ``squared``; rounded down.

    It is the log of ``C(p, s) 2^s``, the number of all vectors, over the number of vectors that are
    closer to a given one: the sets of vectors closer to the points of a largest packing cover all
    vectors.  ``squared`` is at least 1.
    """
    log_sizes = _log_ball_sizes(p, s)
    # Vectors are closer if their squared distance, a whole number, is at most squared - 1.
    log_all, log_closer = log_sizes[-1], log_sizes[min(squared, len(log_sizes)) - 1]
    # A logarithm of the gamma function is right to 15 digits of the largest one, and 1e-13 of that
    # is taken off.  Each of at most (s + 1)^2 additions of sizes errs by an ulp of their logarithm.
    slack = 1e-13 * math.lgamma(p + 1) + 1e-9 + (s + 1) ** 2 * ULP * float(log_all)
    return max(float(log_all - log_closer) - slack, 0.0)


@functools.lru_cache(maxsize=256)
def _log_ball_sizes(p: int, s: int) -> Array:
    """At q = 0 .. 4 s, the log of the number of vectors at squared distance at most q from one."""
    from scipy.special import gammaln

    def log_choose(n: Any, k: Any) -> Any:
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    moved, flipped = np.indices((min(s, p - s) + 1, s + 1)).reshape(2, -1)
    moved, flipped = (part[moved + flipped <= s] for part in (moved, flipped))
    # From the given vector some places move and get any signs; some signs flip where places stay.
    log_counts = log_choose(s, moved) + log_choose(p - s, moved) + moved * math.log(2)
    log_counts += log_choose(s - moved, flipped)
    # In the squared distance a moved place counts 2, once where it was and once where it is now; a
    # flipped sign counts 4.
    squares = 2 * moved + 4 * flipped
    order = np.argsort(squares, kind="stable")
    running_logs = np.logaddexp.accumulate(log_counts[order])
    ends = np.searchsorted(squares[order], np.arange(4 * s + 1), side="right")
    log_sizes: Array = running_logs[ends - 1]
    return log_sizes


def greedy_packing(p: int, s: int, points: int, distance: int, tries: int = 200_000) -> Signs:
    """Collect sign vectors in lexicographic order that keep their distance.

    Parameters
    ----------
    p : int
        Length of a vector, at most 10^7.
    s : int
        Number of signs in a vector, 1 to p.
    points : int
        Number of vectors, 2 to 10^6.
    distance : int
        Least number of places in which two vectors differ.
    tries : int, optional
        Largest number of candidates.

    Returns
    -------
    array of int8
        Entries -1, 0 and 1, shape (points, p).

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or the candidates do not suffice; the message has the
        number of vectors found.

    References
    ----------
    Gilbert (1952); Varshamov (1957).

    Examples
    --------
    >>> from audits.minimax import greedy_packing
    >>> greedy_packing(p=4, s=2, points=3, distance=3)
    array([[ 1,  1,  0,  0],
           [-1,  0,  1,  0],
           [ 0, -1, -1,  0]], dtype=int8)
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
    """Draw sign vectors at random that keep their distance.

    Parameters
    ----------
    p : int
        Length of a vector, at most 10^7.
    s : int
        Number of signs in a vector, 1 to p.
    points : int
        Number of vectors, 2 to 10^6.
    distance : int
        Least number of places in which two vectors differ.
    rng : numpy.random.Generator
        The generator.
    tries : int, optional
        Largest number of draws.

    Returns
    -------
    array of int8
        Entries -1, 0 and 1, shape (points, p).

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or the draws do not suffice; the message has the number
        of vectors found.

    Examples
    --------
    >>> import numpy as np
    >>> from audits.minimax import random_packing
    >>> vectors = random_packing(p=30, s=5, points=8, distance=5, rng=np.random.default_rng(0))
    >>> vectors.shape, int(np.abs(vectors).sum(axis=1).max())
    ((8, 30), 5)
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
    """Put signs on separate blocks of s places, each block with both signs.

    Parameters
    ----------
    p : int
        Length of a vector, at most 10^7.
    s : int
        Number of signs in a vector, 1 to p; any two vectors differ in at least s places.
    points : int
        Number of vectors, at most ``2 floor(p / s)``.

    Returns
    -------
    array of int8
        Entries -1, 0 and 1, shape (points, p).

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or there are fewer than ``points`` such vectors.

    Examples
    --------
    >>> from audits.minimax import disjoint_packing
    >>> disjoint_packing(p=4, s=2, points=4)
    array([[ 1,  1,  0,  0],
           [-1, -1,  0,  0],
           [ 0,  0,  1,  1],
           [ 0,  0, -1, -1]], dtype=int8)
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
    """The number of places in which two rows differ, for the closest pair of rows."""
    if len(vectors) < 2:
        raise ParameterError("vectors", vectors.shape, "at least two rows")
    return min(
        int(np.count_nonzero(vectors[i + 1 :] != vectors[i], axis=1).min())
        for i in range(len(vectors) - 1)
    )


def _checked(p: int, s: int, points: int, distance: int) -> tuple[int, int, int, int]:
    """The four arguments of a packing, each in its range, or `ParameterError`."""
    p = IntegerRange(1, 10**7).check("p", p)
    s = IntegerRange(1, p).check("s", s)
    points = IntegerRange(2, 10**6).check("points", points)
    return p, s, points, IntegerRange(1, min(2 * s, p)).check("distance", distance)


def _as_vectors(places: Iterator[tuple[Any, Any]], p: int) -> Iterator[Signs]:
    """Vectors of pairs (places of the signs, signs), in batches of `_BATCH` at most."""
    while batch := list(itertools.islice(places, _BATCH)):
        vectors = np.zeros((len(batch), p), dtype=np.int8)
        for row, (support, signs) in zip(vectors, batch, strict=True):
            row[np.asarray(support)] = signs
        yield vectors


def _select_separated(batches: Iterator[Signs], points: int, distance: int, how: str) -> Signs:
    """The first ``points`` vectors of the batches that keep the distance to all selected before.

    ``how`` says in the error message where the vectors come from.
    """
    selected: list[Signs] = []
    for batch in batches:
        too_close = np.zeros(len(batch), dtype=bool)
        for earlier in selected:
            too_close |= np.count_nonzero(batch != earlier, axis=1) < distance
        accepted_of_batch: list[Signs] = []
        for row in batch[~too_close]:
            if all(np.count_nonzero(row != accepted) >= distance for accepted in accepted_of_batch):
                accepted_of_batch.append(row)
        selected += accepted_of_batch
        if len(selected) >= points:
            return np.array(selected[:points])
    raise ParameterError(
        "points", points, f"at most {len(selected)}, the number found at distance {distance} {how}"
    )
