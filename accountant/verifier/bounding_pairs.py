"""For each release that stands for many pairs: a pair that dominates them all, or one of them.

A release is a tuple of a kind and exact numbers (`releases`), which stands for a pair (P, Q) of
laws on two neighbours, or for a set of pairs where no single one is the worst.  An upper end of
epsilon is proved with the dominating pair ("above"), a lower end with a pair of the set ("below").
`verdict` exchanges releases here before it computes delta.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .balls import exact, spend
from .releases import ANY_OF, ONE, STILL, ZERO, Release


def bounding_pair(release: Release, *, above: bool) -> Release | None:
    """Return the pair above a release, or the pair below it; None where no pair below is known.

    Theorem (`domination`: Zhu, Dong & Wang 2022, Theorem 10): a pair that dominates another does so
    next to any third release.
    """
    if release[0] == ANY_OF:  # only above: the path of a lower end has chosen a part of each set
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
    and batch B.  Let f = P(Bin(n - 1, r) >= B), the chance that the other records fill the batch.
    Above, the output may say whether that happened.  If it did not, this is a sample of rate r.  If
    it did, the record stays with chance c / f, c = (B / n) P(Bin(n, r) > B), and then takes the
    place of another record, so that the centre moves by 2 mu.  Below, the other records contribute
    nothing, and the record is in the batch with chance (1 - f) r + c.
    """
    _, mu_squared, rate, n, batch, replaced = release
    spend(4e5)  # about what the two incomplete beta functions take
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
    """Return a Gaussian of mu^2 on a Poisson sample, as a mixture of the shifts 0 and mu under P.

    Under Q the shift is 0, or -mu with the same chance where the record is replaced by another one.
    """
    away = ((1 - rate, ZERO), (rate, -ONE)) if replaced else STILL
    return "mixture", mu_squared, ((1 - rate, ZERO), (rate, ONE)), away
