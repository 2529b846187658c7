"""The pairs that samples of the data stand for: one function for each scheme of sampling.

Each reads the numbers of its node of a plan, a table of the proof file that is checked, then the
part that is released on the sample; that part must be of a kind whose sample has a pair that is
known.  It returns a release, a tuple that stands for a pair (P, Q), as `releases` lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb

from .document import Fields, need
from .neighbours import ADD_REMOVE, REPLACE_ONE, ZERO_OUT
from .releases import ALONE, IN_SAMPLE, ONE, ZERO, Group, Release, Releases, single_release

ReadPart = Callable[[], Releases]


def relation_of(fields: Fields) -> str:
    """Return the neighbours of a Poisson sample."""
    relations = ADD_REMOVE, REPLACE_ONE, ZERO_OUT
    return str(fields.take("relation", ADD_REMOVE, fits=relations.__contains__))


def once(release: Release | None) -> Releases:
    """Return one release, or none."""
    return Releases({release: 1} if release else {})


def poisson_sampled(fields: Fields, read_part: ReadPart, group: Group) -> Releases:
    """A Poisson sample: each record is in it with the chance ``rate``."""
    rate, relation = fields.number("rate", 0, 1), relation_of(fields)
    return once(sampled_pair(rate, read_part(), group, replaced=relation == REPLACE_ONE))


def sampled_pair(
    rate: Fraction, releases: Releases, group: Group, *, replaced: bool
) -> Release | None:
    """Return the pair of a Poisson sample of a part; None where the sample releases nothing.

    Theorem (`poisson_sample`: Balle, Barthe & Gaboardi 2018, Theorem 2): a sample of rate r has
    (1-r) Q + r P against Q, P and Q those of the part.
    """
    if rate == 0 or not releases:
        return None
    is_one_record_added = group == ALONE and not replaced
    if is_one_record_added and {release[0] for release in releases} <= IN_SAMPLE:
        need(releases.total() <= 20, "a sample of so many listed releases has no proof here")
        return "sampled", rate, tuple(sorted(releases.elements(), key=repr))
    release = single_release(releases)
    if release[0] == "bound" and release[1][0] == "gaussian":
        # Theorem (`domination`): what dominates the part does so in a sample.
        above = sampled_pair(rate, Releases({release[1]: 1}), group, replaced=replaced)
        return "bound", above, None
    # Chances are exact fractions, whose length grows with the group and the digits of the rate: the
    # limit bounds the time of a check.
    digits = max(80, rate.denominator.bit_length())
    need(sum(group) * digits <= 5120, "a sampled group so large has no proof here")
    if is_one_record_added and release[0] in ("laplace", "sampled laplace"):
        return ("sampled laplace", release[1], release[2] * rate) if rate < 1 else release
    if is_one_record_added and release[0] == "allocation":
        return ("sampled allocation", *release[1:], rate) if rate < 1 else release
    need(release[0] == "gaussian", f"a sample of a {release[0]} has no proof here")
    if not replaced:
        return sampled_group(rate, release[1], group)
    need(group == ALONE, "a group of replaced records has no proof here")
    unsampled = ((1 - rate, ZERO),) if rate < 1 else ()
    return "mixture", release[1], (*unsampled, (rate, ONE)), (*unsampled, (rate, -ONE))


def sampled_group(rate: Fraction, mu_squared: Fraction, group: Group) -> Release:
    """Return the pair of a group of records in a Poisson sample with Gaussian noise.

    Theorem (`sampled_group`: docs/proofs/mixtures.md, 1): it costs most that all records of the
    group move the centre by mu in the same direction.  So with b of them in P alone and g - b in Q
    alone, the centre is at mu Bin(b, r) under P, and at -mu Bin(g - b, r) under Q.
    """
    if rate == 1 and not group[1]:
        return "gaussian", mu_squared * group[0] ** 2
    sides = (
        tuple(
            (comb(n, k) * rate**k * (1 - rate) ** (n - k), sign * k * ONE)
            for k in range(n + 1)
            if rate < 1 or k == n
        )
        for n, sign in zip(group, (1, -1), strict=True)
    )
    return "mixture", mu_squared, *sides


def sampled_without_replacement(fields: Fields, read_part: ReadPart) -> Releases:
    """A sample of a fixed size, of which a record is replaced.

    Theorem (`symmetrised_sample`: Balle, Barthe & Gaboardi 2018; docs/proofs/grid_pairs.md,
    Masses): its delta is that of a Poisson sample at epsilon >= 0, and mirrored below 0.  The
    Poisson sample itself is one such pair.
    """
    fields.take("relation", REPLACE_ONE, fits=(REPLACE_ONE,).__contains__)
    population = fields.whole("population", 1, 10**15)
    rate = Fraction(fields.whole("sample", 0, population), population)
    poisson = sampled_pair(rate, read_part(), ALONE, replaced=False)
    if not poisson or rate == 1:
        return once(poisson)
    is_plain = poisson[0] != "sampled" or [part[0] for part in poisson[2]] == ["response"]
    need(is_plain, "a sample without replacement of this part has no proof here")
    return once(("bound", ("subset", poisson), poisson))


def truncated_poisson(fields: Fields, read_part: ReadPart) -> Releases:
    """A Poisson sample of which at most ``batch`` records stay: see `bounding_pairs`."""
    records, batch = (fields.whole(key, 1, 10**15) for key in ("records", "batch"))
    rate, relation = fields.number("rate", 0, 1), relation_of(fields)
    poisson = sampled_pair(rate, read_part(), ALONE, replaced=relation == REPLACE_ONE)
    if not poisson or batch >= records:
        return once(poisson)
    has_proof = poisson[0] == "mixture" and rate < 1 and relation in (ADD_REMOVE, REPLACE_ONE)
    need(has_proof, "no proof of this batch")
    return once(("truncated", poisson[1], rate, records, batch, relation == REPLACE_ONE))


def shuffled_epoch(fields: Fields, read_part: ReadPart) -> Releases:
    """Batches of equal size in a random order, each released once.

    Theorem (`greatest_batch`: docs/proofs/shuffled_epoch.md): such a pass costs at most what its
    part does, by joint convexity, and with Gaussian noise at least what the greatest output does;
    where a record is replaced, at least what its move in one of the batches does.
    """
    relation = fields.take("relation", ZERO_OUT, fits=(ZERO_OUT, REPLACE_ONE).__contains__)
    batches, part = fields.whole("batches", 1, 10**9), single_release(read_part())
    if batches == 1:
        return once(part)
    if part[0] != "gaussian":
        return once(("bound", part, None))
    greatest, moved = ("greatest", part[1], 1, batches), ("allocation", part[1], batches)
    return once(("bound", part, greatest if relation == ZERO_OUT else moved))


def random_allocation(fields: Fields, read_part: ReadPart) -> Releases:
    """An epoch in which each record is used in ``picks`` random steps.

    Theorem (docs/proofs/random_allocation.md, The pair): k of t steps cost at most k epochs of 1
    of floor(t / k) steps; where k is 1 or t, an epoch costs that.
    """
    steps, part = fields.whole("steps", 1, 10**7), single_release(read_part())
    fields.take("relation", ADD_REMOVE, fits=(ADD_REMOVE, ZERO_OUT).__contains__)
    picks = fields.whole("picks", 1, steps, 1)
    count, steps_per_pick = picks * fields.whole("epochs", 1, 10**6, 1), steps // picks
    need(part[0] == "gaussian", "allocation of this part has no proof here")
    epoch = ("allocation", part[1], steps_per_pick) if steps_per_pick > 1 else part
    is_bound = 1 < picks < steps
    return Releases({("bound", epoch, None) if is_bound else epoch: count})


SAMPLES: dict[str, Callable[[Fields, ReadPart], Releases]] = {
    "SampledWithoutReplacement": sampled_without_replacement,
    "TruncatedPoisson": truncated_poisson,
    "ShuffledEpoch": shuffled_epoch,
    "RandomAllocation": random_allocation,
}
