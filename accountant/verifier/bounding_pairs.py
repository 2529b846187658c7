"""For each release that stands for many pairs: a pair that dominates them all, or one of them.

A release is a tuple of a kind and exact numbers (`releases`), which stands for a pair (P, Q) of
laws on two neighbours, or for a set of pairs where no single one is the worst.  An upper end of
epsilon is proved with the dominating pair ("above"), a lower end with a pair of the set ("below").
`verdict` exchanges releases here before it computes delta.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import arb

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

    Theorems (`last_place`, `kept_records`: docs/proofs/truncated_sampling.md), for n records, rate
    r and batch B.  Let p(k) = P(Bin(n - 1, r) >= k), the chance that k of the others or more are
    sampled.  Above, the output may say whether they leave more than one place.  If they do, this is
    a sample of rate r.  If not, they leave the last place with chance l = p(B - 1) - p(B), or none,
    with chance p(B), and the record stays then with chance s = (B / n) P(Bin(n, r) > B) / r
    together.  The centre is at 0 in the first case, at -mu in the second one, and at mu where the
    record stays.  Losses below that of the centre -mu, where the record is the less likely, are
    those of a centre mu in the second case.  A record that replaces another one has the centre -mu,
    and losses below 0 are mirrored.  Below, the other records contribute nothing, and the record is
    in the batch with chance (1 - p(B) + s) r.
    """
    _, mu_squared, rate, n, batch, replaced = release
    spend(6e5)  # about what the three incomplete beta functions take
    r = exact(rate)
    chance_last, chance_full, chance_cut = (
        r.beta_lower(k, m - k + 1, True) if k else arb(1)
        for m, k in ((n - 1, batch - 1), (n - 1, batch), (n, batch + 1))
    )
    stays = chance_cut * batch / n / r
    if not above:
        return sampled_gaussian(mu_squared, (1 - chance_full + stays) * r, replaced)
    last, full, stays = (
        chance / chance_last for chance in (chance_last - chance_full, chance_full, stays)
    )
    away = full - r * stays  # the centre is at -mu, though the record may be sampled
    unsampled, sampled = (1 - r) * last, r * (last + stays)
    with_record = (away, -ONE), (unsampled, ZERO), (sampled, ONE)
    if replaced:
        replacing = (unsampled, ZERO), (away + sampled, -ONE)
        pair: Release = ("subset", ("mixture", mu_squared, with_record, replacing))
    else:
        opposed = "mixture", mu_squared, with_record, ((full, -ONE), (last, ZERO))
        alike = ("mixture", mu_squared, ((unsampled, ZERO), (away + sampled, ONE)),
                 ((last, ZERO), (full, ONE)))  # fmt: skip
        pair = "joined", (away / full).log(), alike, opposed
    added = sampled_gaussian(mu_squared, rate, replaced)
    return "choice", ((1 - chance_last, added), (chance_last, pair))


def sampled_gaussian(mu_squared: Fraction, rate: Any, replaced: bool) -> Release:
    """Return a Gaussian of mu^2 on a Poisson sample, as a mixture of the shifts 0 and mu under P.

    Under Q the shift is 0, or -mu with the same chance where the record is replaced by another one.
    """
    away = ((1 - rate, ZERO), (rate, -ONE)) if replaced else STILL
    return "mixture", mu_squared, ((1 - rate, ZERO), (rate, ONE)), away
