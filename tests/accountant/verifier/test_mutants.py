"""Certificates of a broken `Tight`: the checker refuses the end that is wrong."""

import functools
import json

import pytest

from accountant import (
    ApproxLoss,
    GaussianLoss,
    LaplaceLoss,
    PoissonSampled,
    RandomAllocation,
    Sequential,
    Tight,
)
from accountant.proofs.writer import write_proof
from accountant.verifier import verify
from tests.mutants import certificates as wrong

PLANS = {
    "Laplace": (40 * LaplaceLoss(0.1), 1e-4),
    "both": (Sequential([40 * LaplaceLoss(0.1), 3 * GaussianLoss(0.2)]), 1e-5),
    "infinite": (Sequential([3 * ApproxLoss(0.1, 1e-6), GaussianLoss(0.3)]), 1e-5),
    "sampled": (15_000 * PoissonSampled(GaussianLoss(1 / 0.8), 0.004), 1e-5),
    "an epoch": (RandomAllocation(GaussianLoss(1.0), 200), 1e-5),
}
TIGHT = Tight(width=1e-5)  # a wide interval has a short proof
ABOVE, BELOW = "PROVED UPPER", "NOT PROVED"
CASES = [  # what a broken certificate says is not below the truth, or not above it
    ("aliases_forgotten", "both", ABOVE),
    ("aliases_forgotten", "sampled", ABOVE),
    ("cut_off_too_early", "Laplace", BELOW),
    ("cut_off_too_early", "both", BELOW),
    ("cut_off_too_early", "sampled", None),
    ("smoothing_not_taken_off", "Laplace", ABOVE),
    ("smoothing_taken_off_the_upper_end", "Laplace", BELOW),
    ("count_off_by_one", "Laplace", ABOVE),
    ("laplace_without_its_slope", "both", BELOW),
    ("mass_at_infinity_forgotten", "infinite", BELOW),
    ("sampled_rate_doubled", "sampled", ABOVE),
    ("steps_of_an_epoch_off_by_one", "an epoch", None),
    ("line_of_an_epoch_cut_off_too_early", "an epoch", None),
]


@functools.cache
def right(name):
    """The certificate of a plan, and its proof."""
    plan, delta = PLANS[name]
    found = TIGHT.certify(plan, delta)
    return found, json.loads(write_proof(plan, delta, found.lower, found.upper))


def verdict(name, lower, upper):
    """The checker on the right parameters with other ends."""
    document = right(name)[1] | {"lower": float(lower).hex(), "upper": float(upper).hex()}
    return verify(written(document)).word


def written(document):
    """The bytes of a proof."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return f"{text}\n".encode()


@pytest.mark.parametrize("name", PLANS)
def test_the_right_certificate_is_proved(name):
    found, _ = right(name)
    assert verdict(name, found.lower, found.upper) == "PROVED"


def broken_certificate(mutant, name, monkeypatch):
    plan, delta = PLANS[name]
    right(name)
    with monkeypatch.context() as patch:
        getattr(wrong, mutant)(patch)
        return TIGHT.certify(plan, delta)


@pytest.mark.parametrize(("mutant", "name", "word"), CASES)
def test_a_broken_certificate_is_refused(mutant, name, word, monkeypatch):
    found, broken = Tight().certify(*PLANS[name]), broken_certificate(mutant, name, monkeypatch)
    said = verdict(name, broken.lower, broken.upper)
    if broken.upper < found.lower:
        assert said == BELOW
    else:
        assert broken.lower > found.upper
        assert said == ABOVE
    assert word in {None, said}


@pytest.mark.parametrize("name", PLANS)
def test_each_end_is_refused_where_it_is_wrong(name):
    found, _ = right(name)
    far = 1e-4 * found.upper
    assert verdict(name, found.lower - far, found.upper + far) == "PROVED"
    assert verdict(name, found.upper + far, found.upper + 2 * far) == ABOVE
    assert verdict(name, found.lower - 2 * far, found.lower - far) == BELOW


def test_a_direction_that_is_left_out_is_missed():
    document = dict(right("sampled")[1])
    assert len(document["above"]) == 2
    for entry in document["above"]:
        said = verify(written(document | {"above": [entry]}))
        assert (said.word, "a direction" in said.reason) == (BELOW, True)
