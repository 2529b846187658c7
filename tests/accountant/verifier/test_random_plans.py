"""Random plans of all losses and nodes: their certificates are proved, both ends.

A certificate that the checker refuses fails the test.  Kinds without a road to a proof are named
here: no proof is written for them.
"""

from collections import Counter

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant import Tight
from tests.accountant.verifier.random_plans import NAMES, random_plan

# families of kinds without a proof, and what the reason says
UNSUPPORTED = {
    "without replacement": "the kind SampledWithoutReplacement has no proof here",
    "sampled Laplaces": "a sample of a laplace has no proof here",
    "groups of sampled records": "the kind Grouped has no proof here",
    "groups": "the kind Grouped has no proof here",
    "truncated Poisson": "the kind TruncatedPoisson has no proof here",
}
# of plans of all other families, of which few may be so
RARE = (
    "too long",  # a sum that would take the checker minutes
    "the largest loss of a",  # at delta 0, of finite pairs
)
# numbers of plans whose certificate and check are quick; else 0, 1 and 2
NUMBERS = {
    "training": (1, 2, 3),
    "differing sampled Gaussians": (2,),
    "several releases of a sample": (0, 2),
    "random allocation": (1,),
    "noise of several kinds": (0, 1, 2, 3),
    "discrete Laplaces": (0, 1, 2, 3),
    "nested plans": (0, 1, 2, 3),
    "mechanisms": (0, 1, 2, 3),
    "mixtures of Gaussians": (1, 2),
    "truncated Poisson": (0,),
    "sampled Laplaces": (3,),
    "groups of sampled records": (3,),
    "without replacement": (0,),
    "groups": (0,),
    "discrete Gaussians": (0, 1),
    "sampled mechanisms": (1, 2),
}
QUICK = [(name, number) for name in NAMES for number in NUMBERS.get(name, (0, 1, 2))]
THOROUGH, CHUNK = 1_000, 20


def verdict_of(name, plan, delta):
    """The word of the checker, or why there is no proof; a refused certificate fails."""
    found = Tight().certify(plan, delta)
    if found.upper == float("inf"):
        return "infinite"
    verdict = found.verify()
    assert verdict.delta == delta
    assert (verdict.lower, verdict.upper) == (found.lower, found.upper)
    if name in UNSUPPORTED and UNSUPPORTED[name] in verdict.reason:
        return "unsupported"
    if any(words in verdict.reason for words in RARE):
        return "rare"
    assert verdict.word == "PROVED", (name, plan, delta, verdict.word, verdict.reason)
    return verdict.word


@pytest.mark.parametrize("name", NAMES)
def test_certificates_of_random_plans_are_proved(name):
    for number in NUMBERS.get(name, (0, 1, 2)):
        wanted = "unsupported" if name in UNSUPPORTED else "PROVED"
        assert verdict_of(*random_plan(number, names=[name])) in (wanted, "infinite")


def test_sixty_plans_are_tried():
    tried = Counter(name in UNSUPPORTED for name, _ in QUICK)
    assert tried[False] >= 60
    assert tried[True] == len(UNSUPPORTED)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(THOROUGH // CHUNK))
def test_a_thousand_random_plans_are_proved(chunk):
    """In each chunk plans are tried until so many are proved."""
    words, number = Counter(), 10_000 * chunk
    while words["PROVED"] < CHUNK:
        words[verdict_of(*random_plan(number))] += 1
        number += 1
        assert words["rare"] <= 4, words
        assert words.total() <= 2 * CHUNK, words
