"""One pair above each release that stands for many pairs, and one of those pairs below it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .balls import exact, spend
from .releases import ANY_OF, ONE, STILL, ZERO, Release


def bounding_pair(release: Release, *, above: bool) -> Release | None:
    """Return the pair above a release, or the one below it (None for none).

    Theorem (`domination`: Zhu, Dong & Wang 2022, Theorem 10): a pair that dominates another does so
    next to any third release.
    """
    if release[0] == ANY_OF:  # on a path below there is none
        parts = (
            tuple((bounding_pair(member, above=True), count) for member, count in part)
            for part in release[1]
        )
        return ANY_OF, tuple(parts)
    if release[0] == "bound":
        _, pair_above, pair_below = release
        bound = pair_above if above else pair_below
        return bounding_pair(bound, above=above) if bound else None
    if release[0] == "truncated":
        return truncated_sample(release, above=above)
    return release


def truncated_sample(release: Release, *, above: bool) -> Release:
    """Return the pair above or below a Poisson sample of which at most a batch stays.

    Theorems (`seen_case`, `kept_records`: docs/proofs/truncated_sampling.md), for n records, rate r
    and batch B: it is as if P(Bin(n - 1, r) >= B), the chance that the others fill the batch, were
    the chance of a case that is seen.  In that case the record stays with chance
    (B / n) P(Bin(n, r) > B) in all, in the place of another.  Below, the others contribute nothing.
    """
    _, mu_squared, rate, n, batch, replaced = release
    spend(4e5)
    chance_full, chance_cut = (
        exact(rate).beta_lower(k, m - k + 1, True) for m, k in ((n - 1, batch), (n, batch + 1))
    )
    if not above:
        chance = (1 - chance_full) * exact(rate) + chance_cut * batch / n
        return sampled_gaussian(mu_squared, chance, replaced)
    exchanged = sampled_gaussian(4 * mu_squared, chance_cut * batch / n / chance_full, replaced)
    added = sampled_gaussian(mu_squared, rate, replaced)
    return "choice", ((1 - chance_full, added), (chance_full, exchanged))


def sampled_gaussian(mu_squared: Fraction, rate: Any, replaced: bool) -> Release:
    """Return a sampled Gaussian; under Q there is another record where it is replaced."""
    away = ((1 - rate, ZERO), (rate, -ONE)) if replaced else STILL
    return "mixture", mu_squared, ((1 - rate, ZERO), (rate, ONE)), away
