"""Random plans of all losses and nodes: their certificates are proved, both ends.

A certificate that the checker refuses fails the test.  Kinds without a road to a proof are named
here: no proof is written for them, and none is refused.
"""

from collections import Counter

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant import Tight
from tests.accountant.verifier.random_plans import NAMES, random_plan

# families without a proof, and what the reason names
UNSUPPORTED = {
    "without replacement": "SampledWithoutReplacement",
    "sampled Laplaces": "a sample of a laplace",
    "groups of sampled records": "Grouped",
    "groups": "Grouped",
    "truncated Poisson": "TruncatedPoisson",
}
# numbers of plans whose certificate and check are quick; else 0, 1 and 2
NUMBERS = {
    "training": (1, 2),
    "differing sampled Gaussians": (2,),
    "several releases of a sample": (0,),
    "random allocation": (1,),
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
    """The word of the checker; a certificate that it should prove and does not fails."""
    found = Tight().certify(plan, delta)
    if found.upper == float("inf"):
        return "infinite"
    verdict = found.verify()
    if name in UNSUPPORTED:
        assert verdict.word == "PROVED" or UNSUPPORTED[name] in verdict.reason, verdict.reason
        return verdict.word
    assert verdict.word == "PROVED", (name, plan, delta, verdict.word, verdict.reason)
    assert (verdict.lower, verdict.upper, verdict.delta) == (found.lower, found.upper, delta)
    return verdict.word


@pytest.mark.parametrize("name", NAMES)
def test_certificates_of_random_plans_are_proved(name):
    for number in NUMBERS.get(name, (0, 1, 2)):
        verdict_of(*random_plan(number, names=[name]))


def test_sixty_plans_are_tried():
    assert len(QUICK) >= 60
    assert sum(name in UNSUPPORTED for name, _ in QUICK) <= 6


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(THOROUGH // CHUNK))
def test_a_thousand_random_plans_are_proved(chunk):
    words = Counter(
        verdict_of(*random_plan(number)) for number in range(chunk * CHUNK, (chunk + 1) * CHUNK)
    )
    assert words["PROVED"] >= 0.7 * CHUNK, words
