"""What events cost: for pairs of laws the epsilon that the gain of one event shows.

Each function returns a function of delta.  An event of masses p and q under the two laws shows that
epsilon is at least ln((p - delta) / q).  Where the likelihood ratio rises with the output, the
events above a point are the best ones, and the greatest of these numbers is epsilon itself.
"""

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import binom, hypergeom

POINTS = np.linspace(-12.0, 30.0, 8401)


def of_events(p: Any, q: Any, delta: float) -> float:
    """The greatest epsilon at which an event of masses p and q says more than delta."""
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    if np.any((q == 0) & (p > delta)):
        return math.inf
    telling = (q > 1e-300) & (p > delta)
    return float(np.max(np.log((p[telling] - delta) / q[telling]), initial=0.0))


def greatest_of(*costs):
    return lambda delta: max(cost(delta) for cost in costs)


def just(epsilon):
    """The same at every delta."""
    return lambda _: epsilon


def normals(ahead: dict[float, float], behind: dict[float, float] | None = None):
    """Mixtures of normal laws by their shifts: outputs above a point."""

    def above(weights):
        return sum(w * ndtr(m - POINTS) for m, w in weights.items())

    return lambda delta: of_events(above(ahead), above(behind or {0.0: 1.0}), delta)


def laplaces(ahead: dict[float, float], behind: dict[float, float] | None = None):
    """Mixtures of Laplace laws by their shifts: outputs above a point."""

    def above(weights):
        return sum(
            w * np.where(x > m, np.exp(-np.abs(x - m)) / 2, 1 - np.exp(-np.abs(x - m)) / 2)
            for m, w in weights.items()
        )

    x = np.append(POINTS, list(ahead))
    return lambda delta: of_events(above(ahead), above(behind or {0.0: 1.0}), delta)


def outcomes(p, q, count=1):
    """Finitely many outcomes, repeated, the most telling first."""
    p, q = np.array(p, dtype=float), np.array(q, dtype=float)
    ps, qs = np.ones(1), np.ones(1)
    for _ in range(count):
        ps, qs = np.outer(ps, p).ravel(), np.outer(qs, q).ravel()
    with np.errstate(divide="ignore"):
        order = np.argsort(-ps / np.where(qs > 0, qs, 1e-300))
    return lambda delta: of_events(np.cumsum(ps[order]), np.cumsum(qs[order]), delta)


def response(epsilon, revealed=0.0, count=1):
    """Randomised responses, each of which with a chance shows the record."""
    p = (1 - revealed) * np.array([math.exp(epsilon), 1.0]) / (1 + math.exp(epsilon))
    return outcomes([revealed, *p, 0.0], [0.0, *p[::-1], revealed], count)


def many_responses(epsilon, count):
    """Randomised responses, of which at least some number tell the truth."""
    k, truth = np.arange(count + 1), 1 / (1 + math.exp(-epsilon))
    return lambda delta: of_events(
        binom.sf(k - 1, count, truth), binom.sf(k - 1, count, 1 - truth), delta
    )


def logit_range(epsilon):
    """Two outcomes whose logit moves by epsilon, of which each delta has a worst pair.

    No pair whose losses have this range costs more (Dong, Durfee & Rogers 2020, Lemma 3.2).
    """

    def excess(t, delta):
        s, r = math.exp(t / 2), math.exp(epsilon / 2)
        return (1 - s / r) ** 2 / (1 - r**-2) - delta

    return lambda delta: brentq(excess, -epsilon, epsilon, args=(delta,))


def zcdp_at_most(rho):
    """No pair of (0, rho)-zCDP costs more (Bun & Steinke 2016, Proposition 1.3)."""
    return lambda delta: rho + 2 * math.sqrt(rho * math.log(1 / delta))


def integers(log_weight, shift):
    """Integer noise, moved by a whole number."""
    k = np.arange(-90, 91)
    weight = np.exp(log_weight(k))
    return outcomes(np.exp(log_weight(k - shift)) / weight.sum(), weight / weight.sum())


def hits(mu, size, rate):
    """The shifts of a group of which each is in a sample."""
    return {mu * j: float(binom.pmf(j, size, rate)) for j in range(size + 1)}


def kept(size, rate, records, batch, own, other):
    """The shifts of a sample, a batch of which stays, by what its records contribute.

    ``size`` of the records are a group, each of which contributes ``own``, and the rest ``other``.
    """
    shifts: dict[float, float] = {}
    for of_group in range(size + 1):
        for of_others in range(records - size + 1):
            sampled = of_group + of_others
            chance = binom.pmf(of_group, size, rate) * binom.pmf(of_others, records - size, rate)
            stay = min(sampled, batch)
            for j in range(min(of_group, stay) + 1):
                shift = j * own + (stay - j) * other
                share = hypergeom.pmf(j, sampled, of_group, stay) if stay else 1.0
                shifts[shift] = shifts.get(shift, 0.0) + float(chance * share)
    return shifts


def truncated(size, rate, records, batch, *, replaced):
    """A group in a sample of which a batch stays; the others contribute nothing, or oppose it."""
    own = -1.0 if replaced else 0.0
    return greatest_of(*(
        normals(
            kept(size, rate, records, batch, 1.0, other),
            kept(size if replaced else 0, rate, records - (0 if replaced else size), batch, own,
                 other),
        )
        for other in (0.0, -1.0)
    ))  # fmt: skip


def greatest_batch(mu, batches, offset=0.0):
    """The greatest of several sums, one of which has the record."""

    def above(first):
        return 1 - ndtr(POINTS - first) * ndtr(POINTS) ** (batches - 1)

    return lambda delta: of_events(above(offset + mu), above(offset), delta)


def one_of_many(mu, steps):
    """A record in one of several steps: events of a large mean likelihood ratio.

    The ratios V = e^(mu x - mu^2 / 2) of the steps are added up on a grid of 0.01.
    """
    edges = 0.01 * (np.arange(1601) - 0.5)
    below = ndtr(np.log(np.maximum(edges, 1e-300)) / mu + mu / 2)
    size = 2**14
    law = np.fft.irfft(np.fft.rfft(np.diff(below), size) ** steps, size)
    ratio = 0.01 * np.arange(size) / steps
    q, p = (np.cumsum(mass[::-1])[::-1] for mass in (law, law * ratio))
    known = q > 1e-9  # beyond, the transform's round-off decides
    return lambda delta: of_events(p[known], q[known], delta)
