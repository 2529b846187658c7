"""A costly path through a plan whose releases stand for sets of pairs of distributions.

At each occurrence of such a release an adversary chooses which part of the set is released.  A path
is one list of choices.  The epsilon of any path is a lower bound on the epsilon of the plan, so the
proof of a certificate's lower end is about one path.  `costly_path` searches for a path of large
epsilon, and `float_epsilon` estimates the epsilon of a path for this search.
"""

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

MOST_TRIES = 200  # paths after which the search at one set stops; each takes some milliseconds
MOST_INSIDE = 16  # combinations of choices inside a part that are tried
POINTS = 4096  # points of the grid for the law of the sum of losses
DEVIATIONS = 8.0  # standard deviations of the sum that the grid spans on each side of its mean
Score = Callable[[Counter[Any]], float]  # estimates the epsilon of some releases
Choices = list[Any]  # for each set a list of rows [times, number of the part, choices inside]


def costly_path(releases: Counter[Any], score: Score) -> Choices:
    """Return the choices, as `accountant.verifier.choices.on_path` reads them, of a costly path.

    An option is a part of a set together with choices inside it.  At first all occurrences of each
    set take its first option.  Then, set by set, ``size`` occurrences move from one option to
    another as long as that raises the score; ``size`` begins at the number of occurrences and is
    halved, down to 1, whenever no move raises it.  The result need not be the costliest path.
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
    """Return (parts, number of occurrences) of each set among some releases."""
    return [(release[1], count) for release, count in releases if release[0] == ANY_OF]


def _options(parts: Any) -> Iterator[tuple[int, Choices]]:
    """Yield (number of the part, choices inside it) for the parts of a set.

    Inside a part all occurrences of a set take the same option.
    """
    for k, part in enumerate(parts):
        rows = [
            [[[count, number, inside]] for number, inside in _options(inner)]
            for inner, count in _sets(part)
        ]
        for inside in itertools.islice(itertools.product(*rows), MOST_INSIDE):
            yield k, list(inside)


def _moved(shares: list[list[int]], i: int, size: int) -> Iterator[list[list[int]]]:
    """Yield the shares after ``size`` occurrences of set ``i`` moved from one option to another.

    ``shares[i]`` says how many occurrences of set ``i`` take each of its options.
    """
    for source, n in enumerate(shares[i]):
        for target in range(len(shares[i])):
            if n >= size and source != target:
                moved = [list(share) for share in shares]
                moved[i][source] -= size
                moved[i][target] += size
                yield moved


def _copied(choices: Choices) -> Choices:
    """Return a copy of the choices, since the checker removes them from the lists that it reads."""
    return [[[n, k, _copied(inside)] for n, k, inside in rows] for rows in choices]


@functools.lru_cache(maxsize=256)
def _float_release(release: Any, back: bool, delta: float, count: int) -> FloatRelease:
    """Return a release in floats; the cache serves the many paths with the same release."""
    return coarse_release(release, count, back, lattice_rules(release, count, delta, FEW_NODES))


def float_epsilon(items: list[tuple[Any, int]], back: bool, delta: float) -> float:
    """Return an estimate of the epsilon of releases, in floats; it only serves to compare paths.

    L is the sum of the losses ln(P/Q) of all releases, and delta(eps) = E_P (1 - e^{eps - L})_+.
    With M(a) = E_P e^{aL}, the bound (1 - e^{-x})_+ <= e^{ax} a^a / (a + 1)^{a + 1} gives

        eps <= (ln M(a) + a ln a - (a + 1) ln(a + 1) - ln delta) / a   for every order a > 0.

    At the order a with the least bound, let E_a be the mean under the law whose density with
    respect to P is e^{aL} / M(a).  Then

        delta(eps) = E_a [ M(a) e^{-aL} (1 - e^{eps - L})_+ ].

    The law of L under E_a is computed on a grid by the fast Fourier transform: each loss is divided
    between the two nearest points so that its mean stays the same.  Epsilon follows by bisection.
    """
    laws = [_float_release(release, back, delta, n) for release, n in items]
    orders = np.geomspace(0.02, 1e5, 200)
    moments = sum((law.log_moment(orders) for law in laws), np.zeros(orders.size))
    log_factors = orders * np.log(orders) - (orders + 1) * np.log1p(orders)
    bounds = (moments + log_factors - math.log(delta)) / orders
    best = int(np.nanargmin(bounds))
    a, epsilon_upper = float(orders[best]), max(float(bounds[best]), 0.0)
    # The law of each release under E_a: its losses, their weights, and the number of releases.
    tilted = [(law.loss, law.weights(a), law.count) for law in laws]
    means = [float(np.sum(loss * weight)) for loss, weight, _ in tilted]
    variance = sum(
        n * float(np.sum((loss - mean) ** 2 * weight))
        for mean, (loss, weight, n) in zip(means, tilted, strict=True)
    )
    # The step is at least 1e-9 nats; a law without variance would give 0.
    step = max(2 * DEVIATIONS * math.sqrt(variance) / POINTS, 1e-9)
    transform = np.ones(POINTS // 2 + 1, dtype=complex)
    for mean, (loss, weight, n) in zip(means, tilted, strict=True):
        position = (loss - mean) / step  # in steps; the grid is a circle of POINTS points
        lower_point = np.floor(position).astype(int)
        masses = np.zeros(POINTS)
        np.add.at(masses, lower_point % POINTS, weight * (1 - (position - lower_point)))
        np.add.at(masses, (lower_point + 1) % POINTS, weight * (position - lower_point))
        transform *= np.fft.rfft(masses) ** n
    law_of_sum = np.maximum(np.fft.irfft(transform, POINTS), 0.0)
    # The points of the circle stand for the sums centre + k step, -POINTS / 2 <= k < POINTS / 2.
    centre = math.fsum(n * mean for mean, (*_, n) in zip(means, tilted, strict=True))
    losses = centre + step * ((np.arange(POINTS) + POINTS // 2) % POINTS - POINTS // 2)
    log_weights = float(moments[best]) - a * losses
    low_end, high_end = 0.0, epsilon_upper
    for _ in range(50):
        epsilon = (low_end + high_end) / 2  # 50 halvings of the interval from 0 to the bound
        exceeds = losses > epsilon
        delta_terms = (
            law_of_sum[exceeds]
            * np.exp(log_weights[exceeds])
            * -np.expm1(epsilon - losses[exceeds])
        )
        low_end, high_end = (epsilon, high_end) if delta_terms.sum() > delta else (low_end, epsilon)
    return low_end
