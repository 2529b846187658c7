"""A costly path through a plan whose releases stand for several pairs, for its lower end."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from accountant.proofs.lattice_parameters import (
    FEW_NODES,
    FloatRelease,
    coarse_release,
    lattice_rules,
)
from accountant.verifier.choices import on_path
from accountant.verifier.releases import ANY_OF

MOST_TRIES = 200  # of one set; each takes some milliseconds
MOST_INSIDE = 16  # of the ways through a part that are tried
POINTS = 4096  # of the sum of losses
DEVIATIONS = 8.0  # of the sum on each side
Score = Callable[[Counter[Any]], float]  # about the epsilon of releases
Choices = list[Any]


def costly_path(releases: Counter[Any], score: Score) -> Choices:
    """Return the choices, as `accountant.verifier.choices.on_path` reads them, of a costly path.

    All occurrences of a set take one part at first.  Then many of them, half as many, ... and one
    move to another part where that costs more.
    """
    sets = _sets(releases.items())
    options = [list(_options(parts)) for parts, _ in sets]

    def choices(shares: list[list[int]]) -> Choices:
        return [
            [
                [n, k, _copied(inside)]
                for (k, inside), n in zip(part_options, share, strict=True)
                if n
            ]
            for part_options, share in zip(options, shares, strict=True)
        ]

    def cost(shares: list[list[int]]) -> float:
        return score(on_path(releases, choices(shares)))

    shares = [
        [count] + [0] * (len(part_options) - 1)
        for part_options, (_, count) in zip(options, sets, strict=True)
    ]
    highest = cost(shares) if sets else 0.0
    for i, (_, count) in enumerate(sets):
        size, tries = count, 0
        while size and tries < MOST_TRIES:
            tried = [(cost(moved), moved) for moved in _moved(shares, i, size)]
            tries += len(tried)
            best, moved = max(tried, key=lambda trial: trial[0], default=(highest, shares))
            if best > highest:
                highest, shares = best, moved
            else:
                size //= 2
    return choices(shares)


def _sets(releases: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Return the parts of each set among some releases, and how often it occurs."""
    return [(release[1], count) for release, count in releases if release[0] == ANY_OF]


def _options(parts: Any) -> Iterator[tuple[int, Choices]]:
    """Yield each part of a set with choices inside of it, the same at all occurrences."""
    for k, part in enumerate(parts):
        rows = [
            [[[count, number, inside]] for number, inside in _options(inner)]
            for inner, count in _sets(part)
        ]
        for inside in itertools.islice(itertools.product(*rows), MOST_INSIDE):
            yield k, list(inside)


def _moved(shares: list[list[int]], i: int, size: int) -> Iterator[list[list[int]]]:
    """Yield the shares where so many occurrences of a set take another option than before."""
    for source, n in enumerate(shares[i]):
        for target in range(len(shares[i])):
            if n >= size and source != target:
                moved = [list(share) for share in shares]
                moved[i][source] -= size
                moved[i][target] += size
                yield moved


def _copied(choices: Choices) -> Choices:
    """Return the choices anew: the checker takes them out of the lists."""
    return [[[n, k, _copied(inside)] for n, k, inside in rows] for rows in choices]


@functools.lru_cache(maxsize=256)
def _float_release(release: Any, back: bool, delta: float, count: int) -> FloatRelease:
    """Return a release in floats: the same ones are asked for on many paths."""
    return coarse_release(release, count, back, lattice_rules(release, count, delta, FEW_NODES))


def float_epsilon(items: list[tuple[Any, int]], back: bool, delta: float) -> float:
    """Return about the epsilon of releases, in floats: to compare paths, and for nothing else."""
    # The law of the sum of losses under the order of the best Chernoff bound, by one Fourier
    # transform; delta is its mean of M e^{-aL} (1 - e^{eps - L})_+.
    laws = [_float_release(release, back, delta, n) for release, n in items]
    orders = np.geomspace(0.02, 1e5, 200)
    moments = sum((law.log_moment(orders) for law in laws), np.zeros(orders.size))
    shares = orders * np.log(orders) - (orders + 1) * np.log1p(orders)
    bounds = (moments + shares - math.log(delta)) / orders
    best = int(np.nanargmin(bounds))
    a, highest = float(orders[best]), max(float(bounds[best]), 0.0)
    tilted = [(law.loss, law.weights(a), law.count) for law in laws]
    means = [float(np.sum(loss * weight)) for loss, weight, _ in tilted]
    spread = sum(
        n * float(np.sum((loss - mean) ** 2 * weight))
        for mean, (loss, weight, n) in zip(means, tilted, strict=True)
    )
    step = max(2 * DEVIATIONS * math.sqrt(spread) / POINTS, 1e-9)
    transform = np.ones(POINTS // 2 + 1, dtype=complex)
    for mean, (loss, weight, n) in zip(means, tilted, strict=True):
        position = (loss - mean) / step
        low = np.floor(position).astype(int)
        masses = np.zeros(POINTS)
        np.add.at(masses, low % POINTS, weight * (1 - (position - low)))
        np.add.at(masses, (low + 1) % POINTS, weight * (position - low))
        transform *= np.fft.rfft(masses) ** n
    law_of_sum = np.maximum(np.fft.irfft(transform, POINTS), 0.0)
    centre = math.fsum(n * mean for mean, (*_, n) in zip(means, tilted, strict=True))
    losses = centre + step * ((np.arange(POINTS) + POINTS // 2) % POINTS - POINTS // 2)
    logs = float(moments[best]) - a * losses
    low_end, high_end = 0.0, highest
    for _ in range(50):
        epsilon = (low_end + high_end) / 2
        over = losses > epsilon
        terms = law_of_sum[over] * np.exp(logs[over]) * -np.expm1(epsilon - losses[over])
        low_end, high_end = (epsilon, high_end) if terms.sum() > delta else (low_end, epsilon)
    return low_end
