"""The releases of a plan: pairs of distributions (P, Q) written as tuples, and sets of pairs.

The verifier reads a plan from a file and turns every loss in it into such a tuple; its other files
compute with the tuples.  P is the law of the output on the data with the record, and Q that on the
data without it; where the plan states other neighbours, they are the laws on these two.  The first
entry of a tuple is its kind; numbers are exact fractions.  N(m, 1) is the normal law of mean m and
variance 1, Laplace(m, 1) the Laplace law of centre m and scale 1.  "P against Q" names the pair.

    ("gaussian", mu^2)                    N(mu, 1) against N(0, 1)
    ("laplace", m, 1, 1 if on a grid)     Laplace(m, 1) against Laplace(0, 1); the third entry is
                                          the sampling rate, 1 here
    ("sampled laplace", m, rate)          (1-rate) Laplace(0, 1) + rate Laplace(m, 1) against
                                          Laplace(0, 1)
    ("mixture", unit^2, P, Q)             the sum of w N(s unit, 1) over the entries (w, s) of the
                                          first list, against the same sum over the second list
    ("allocation", mu^2, steps)           N(mu, 1) in one secret step and N(0, 1) in the others,
                                          against N(0, 1) in all
    ("sampled allocation", mu^2, steps, rate)
                                          (1-rate) Q + rate P against Q, P and Q those of such an
                                          allocation
    ("response", epsilon, d)              masses (d, (1-d) r / (1+r), (1-d) / (1+r), 0) of four
                                          outcomes with r = e^epsilon, against the same in reverse
    ("discrete laplace", scale, shift)    integers in proportion to e^{-|k - shift| / scale},
                                          against the same about 0
    ("discrete gaussian", scale, shift)   the same with e^{-(k - shift)^2 / (2 scale^2)}
    ("summed noise", law, scale, n, shift)
                                          the sum of n shares of integer noise of this law (see
                                          `summed_noise`) about a shift, against the same about 0
    ("pair", masses)                      one outcome for each (p, q), its masses under P and Q
    ("sampled", rate, parts)              (1-rate) Q + rate P against Q, where P against Q is the
                                          product of the parts, listed releases that all use one
                                          sample
    ("greatest", mu^2, s, n)              the greatest of n normal numbers of variance 1, one of
                                          which has mean (s + 1) mu under P, and s mu under Q; the
                                          others have mean 0
    ("truncated", mu^2, rate, n, batch, 1 if replaced)
                                          a Poisson sample of n records, of which at most ``batch``
                                          records stay; 1 if neighbours replace a record
    ("subset", release)                   the pair of a sample without replacement: its delta is
                                          that of ``release`` at epsilon >= 0, mirrored below 0
    ("range", e)                          all pairs whose losses lie in an interval of length e
    ("zcdp", rho, xi)                     all pairs that satisfy zCDP with rho and xi
    ("choice", ((chance, release), ...))  one of the releases at random, and the output says which
    ("bound", above, below)               a set of pairs: a release that dominates them all, and one
                                          of the pairs, or None where none is known
    ("best", tries, runs)                 the best of a random number of runs, each of which makes
                                          all (release, count) in ``runs``; ``tries`` is (POISSON,
                                          mean) or (NEGATIVE_BINOMIAL, shape, stop)
    ("any of", parts)                     one of these lists of (release, count), chosen anew at
                                          each occurrence; see `choices`
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

from .document import need

Release = tuple[Any, ...]
Releases = Counter[Any]  # each release, and how often the plan has it
Group = tuple[int, int]  # how many records of a group are in P alone, and how many in Q alone

ONE, ZERO = Fraction(1), Fraction(0)
STILL = ((ONE, ZERO),)  # the side of a mixture that is N(0, 1)
ALONE: Group = (1, 0)  # one record, which is in the data of P alone
ANY_OF = "any of"
POISSON, NEGATIVE_BINOMIAL = "poisson", "negative binomial"  # laws of a number of runs
# Kinds whose outcomes are listed by `outcomes`: of the second line not all of them, as the noise
# may be any whole number.
FINITE = {"response", "pair", "discrete laplace"}
UNLISTED_TAILS = {"discrete gaussian", "summed noise"}
IN_SAMPLE = FINITE | UNLISTED_TAILS  # these may be in "sampled"
LISTED = IN_SAMPLE | {"sampled"}
# The losses ln(p/q) of these kinds are equally spaced, and Q against P has the same losses.
EQUAL_STEPS = {"response", "discrete laplace", "discrete gaussian"}


def any_of(parts: list[Releases]) -> Releases:
    """Return the one release that stands for the set of these parts, without repeated parts.

    A part that is itself a set and nothing else adds its options to the set.  Where all parts are
    equal they are no set, and the part itself is returned.
    """
    options: dict[Any, Any] = {}
    for part in parts:
        items: list[Any] = list(part.items())
        is_set_alone = len(items) == 1 and items[0][1] == 1 and items[0][0][0] == ANY_OF
        inner_options = items[0][0][1] if is_set_alone else [tuple(items)]
        options.update(
            (frozenset(option), option)
            for option in inner_options
            if frozenset(option) not in options
        )
    if len(options) < 2:
        return Releases(dict(*options.values()))
    return Releases({(ANY_OF, tuple(options.values())): 1})


def inner_releases(release: Release) -> list[Release]:
    """Return the release itself, or all releases in the parts of a set, at any depth."""
    if release[0] != ANY_OF:
        return [release]
    return [inner for part in release[1] for member, _ in part for inner in inner_releases(member)]


def single_release(releases: Releases) -> Release:
    """Return the one release that stands for the part of which a sample is taken.

    Several Gaussians are one Gaussian, whose mu^2 is the sum of theirs.  For any other part of
    several releases there is no proof here.
    """
    need(
        all(release[0] != ANY_OF for release in releases),
        "a sample of one of several has no proof here",
    )
    if {release[0] for release in releases} == {"gaussian"} and len(releases) < 99:
        return "gaussian", sum(release[1] * count for release, count in releases.items())
    need(list(releases.values()) == [1], "a sample of several has no proof here")
    release: Release = next(iter(releases))
    return release
