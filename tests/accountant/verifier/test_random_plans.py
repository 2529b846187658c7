"""Random plans of all losses and nodes: their certificates are proved, both ends.

A certificate that the checker refuses fails the test.  A proof may be a little wider than the
certificate; families whose bounds are those of few moments by more.
"""

import json
import math
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant import (
    DiscreteLaplaceLoss,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    PairLoss,
    PoissonSampled,
    PureLoss,
    Tight,
    TruncatedPoisson,
)
from accountant.proofs.writer import write_proof
from accountant.verifier import verify
from mechanisms import DiscreteLaplace, Laplace, RandomizedResponse
from tests.accountant.verifier.random_plans import NAMES, random_plan
from tests.accountant.verifier.written_proofs import document as written

WIDER = 1e-4  # of epsilon, what a proof may add to each end
# where Tight knows better bounds or events than the checker, or a lattice is coarse
BELOW = {"shuffled epochs": 0.1, "many sampled Laplaces": 1e-3, "bounded ranges": 0.2}
ABOVE = {"zCDP": 0.2, "bounded ranges": 0.2, "claimed mechanisms": 0.2,
         "truncated and replaced": 1e-3}  # fmt: skip
# reasons that few plans may have
RARE = (
    "too long",  # a sum, or an epoch of a step among few with little noise, that takes minutes
)
# numbers of plans whose certificate and check are quick; where a kind is not here 0, 1 and 2
QUICK = {
    "sampled Gaussians": (0, 3),
    "few sampled Gaussians": (0, 2),
    "training": (3,),
    "differing sampled Gaussians": (),
    "Laplaces": (0, 1),
    "several releases of a sample": (0,),
    "without replacement": (1,),
    "sampled Laplaces": (3,),
    "groups of sampled records": (),
    "mixtures of Gaussians": (1,),
    "replaced sampled Gaussians": (2,),
    "random allocation": (1,),
    "truncated Poisson": (),
    "discrete Gaussians": (0, 1),
    "groups": (0, 1),
    "sampled mechanisms": (1,),
    "epochs of allocation": (),
    "shuffled epochs": (0, 2),
    "many sampled Laplaces": (0,),
    "Laplaces of two scales": (),
    "claimed mechanisms": (0, 1),
    "zCDP": (0, 1),
    "bounded ranges": (1,),
    "truncated and replaced": (),
    "many without replacement": (2,),
}
# those whose certificate and check take longer
LONGER = {
    "sampled Gaussians": (1, 2),
    "few sampled Gaussians": (1,),
    "training": (1, 2),
    "differing sampled Gaussians": (1, 2),
    "Laplaces": (2,),
    "several releases of a sample": (2,),
    "without replacement": (0,),
    "sampled Laplaces": (0, 1, 2),
    "groups of sampled records": (3,),
    "mixtures of Gaussians": (2,),
    "replaced sampled Gaussians": (0, 1),
    "truncated Poisson": (3,),
    "discrete Gaussians": (2,),
    "sampled mechanisms": (2,),
    "epochs of allocation": (1,),
    "shuffled epochs": (1,),
    "many sampled Laplaces": (1, 2),
    "Laplaces of two scales": (0, 1),
    "claimed mechanisms": (2,),
    "zCDP": (2,),
    "bounded ranges": (2,),
    "truncated and replaced": (1,),
    "many without replacement": (1,),
}
NUMBERED = [(name, number) for name in NAMES for number in QUICK.get(name, (0, 1, 2))]
# small plans of kinds whose random ones all take longer
SMALL = [
    ("differing sampled Gaussians", 50 * PoissonSampled(GaussianLoss(0.5), 0.1)
     + 40 * PoissonSampled(GaussianLoss(0.25), 0.125), 1e-5),
    ("groups of sampled records", Grouped(PoissonSampled(GaussianLoss(0.5), 0.25), 2), 1e-3),
    ("Laplaces of two scales", 2 * LaplaceLoss(0.1) + LaplaceLoss(0.06), 1e-3),
]  # fmt: skip
THOROUGH, CHUNK = 300, 20


def verdict_of(name, plan, delta):
    """The word of the checker, or why there is no proof; a refused certificate fails.

    A proof of an interval that is wider than the certificate by more than it should be is "wide".
    """
    found = Tight().certify(plan, delta)
    if found.upper == float("inf"):
        return "infinite"
    verdict = found.verify()
    assert verdict.delta == delta
    assert verdict.lower <= found.lower <= found.upper <= verdict.upper
    if any(words in verdict.reason for words in RARE):
        return "rare"
    assert verdict.word in {"PROVED", "PROVED UPPER"}, (name, plan, delta, found, verdict)
    below = found.lower - verdict.lower <= BELOW.get(name, WIDER) * found.upper
    above = verdict.upper - found.upper <= ABOVE.get(name, WIDER) * found.upper
    return verdict.word if below and above else "wide"


@pytest.mark.parametrize(("name", "number"), NUMBERED)
def test_certificates_of_random_plans_are_proved(name, number):
    assert verdict_of(*random_plan(number, names=[name])) in ("PROVED", "infinite")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "number"), [(name, one) for name, numbers in LONGER.items() for one in numbers]
)
def test_certificates_that_take_longer_are_proved(name, number):
    words = {"PROVED", "infinite"}
    if name == "epochs of allocation":  # of several picks the checker has no pair below
        words.add("PROVED UPPER")
    assert verdict_of(*random_plan(number, names=[name])) in words


@pytest.mark.parametrize(("name", "plan", "delta"), SMALL)
def test_certificates_of_small_plans_are_proved(name, plan, delta):
    assert verdict_of(name, plan, delta) == "PROVED"


def test_sixty_plans_are_tried():
    assert len(NUMBERED) + len(SMALL) >= 60


@pytest.mark.slow
def test_an_end_is_shown_with_the_bits_of_its_entry():
    """The checker's pairs have wider balls than those of the writer, which has more bits."""
    sample = TruncatedPoisson(GaussianLoss(1.091), rate=0.84, records=19, batch=1,
                              relation="replace-one")  # fmt: skip
    assert verdict_of("truncated and replaced", sample, 7.924831746351753e-12) == "PROVED"


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(THOROUGH // CHUNK))
def test_random_plans_are_proved(chunk):
    """In each chunk plans are tried until so many are proved."""
    words, number = Counter(), 10_000 * chunk
    while words["PROVED"] < CHUNK:
        words[verdict_of(*random_plan(number))] += 1
        number += 1
        # at rates of a few millionths the lower end of a proof is some ten thousandths lower
        assert words["rare"] + words["PROVED UPPER"] + words["wide"] <= 4, words
        assert words.total() <= 2 * CHUNK, words


def zero_delta_losses(rng):
    """Losses whose largest value is known, with random and with short numbers."""
    scale, steps_, rate = float(np.exp(rng.uniform(-2, 3))), int(rng.integers(1, 6)), rng.random()
    scale = round(scale, 1) + 0.1 if rng.random() < 0.3 else scale
    keep = float(1 / (steps_ + 1) + steps_ / (steps_ + 1) * rng.uniform(0.01, 0.99))
    return [
        LaplaceLoss(scale),
        Laplace(scale),
        DiscreteLaplaceLoss(scale, steps_),
        DiscreteLaplace(scale),
        PureLoss(scale),
        RandomizedResponse(steps_ + 1, keep),
        PoissonSampled(LaplaceLoss(scale), rate),
        PoissonSampled(PureLoss(scale), rate),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_certificates_at_delta_zero_are_proved(seed):
    rng = np.random.default_rng([25, seed])
    for loss in zero_delta_losses(rng):
        for plan in (loss, int(rng.integers(2, 60)) * loss):
            assert Tight().certify(plan, 0.0).verify().word == "PROVED", plan


@pytest.mark.parametrize(
    "plan",
    [
        3 * Laplace(9.0),
        6 * DiscreteLaplaceLoss(0.3186588269681018, 3),
        7
        * PairLoss(
            (0.8214445114135742, 0.17855548858642578), (0.8231925964355469, 0.17680740356445312)
        ),
    ],
)
def test_certificates_that_were_refused_at_delta_zero(plan):
    assert Tight().certify(plan, 0.0).verify().word == "PROVED"


def test_an_end_below_the_sum_of_largest_losses_is_refused():
    found = Tight().certify(3 * LaplaceLoss(0.1), 0.0)
    low = math.nextafter(found.upper, 0)
    proof = write_proof(3 * LaplaceLoss(0.1), 0.0, 0.0, low)
    assert verify(proof).word == "NOT PROVED"


@pytest.mark.parametrize("count", [1, 2])
def test_ends_of_sampled_laplaces_that_are_wrong_are_not_claimed(count):
    """The writer finds the true end beside a wrong one; the checker refuses the wrong one."""
    plan = count * PoissonSampled(LaplaceLoss(0.7), 0.2)
    found = Tight().certify(plan, 1e-3)
    for low, high in ((0.0, 0.99 * found.lower), (1.01 * found.upper, 1.02 * found.upper)):
        document = write_proof(plan, 1e-3, low, high)
        judged = verify(document)
        assert judged.word == "PROVED"
        assert judged.lower <= found.upper
        assert judged.upper >= found.lower
        claim = json.loads(document) | {"lower": float(low).hex(), "upper": float(high).hex()}
        assert verify(written(claim)).word == ("PROVED UPPER" if low else "NOT PROVED")
