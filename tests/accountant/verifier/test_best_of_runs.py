"""Proofs of the best of a random number of runs, and false files of it."""

import json
from fractions import Fraction

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from flint import arb

from accountant import (
    GaussianLoss,
    GeometricTries,
    LaplaceLoss,
    LogarithmicTries,
    NegativeBinomialTries,
    PairLoss,
    PoissonSampled,
    PoissonTries,
    PureLoss,
    Repeated,
    Tight,
    UnsupportedPlan,
)
from accountant.proofs.writer import write_proof
from accountant.verifier import verify
from accountant.verifier.best_of_runs import (
    best_profile,
    delta_between,
    mean_of_tries,
    slope_ratio,
    slope_share,
)
from accountant.verifier.releases import NEGATIVE_BINOMIAL, POISSON
from tests.accountant.verifier.written_proofs import document

SAMPLED = PoissonSampled(GaussianLoss(1.0), 0.01)
PLANS = {
    "Gaussian": (Repeated(GaussianLoss(0.2), LogarithmicTries(0.01)), 1e-6, 0.005),
    "training": (Repeated(10 * SAMPLED, GeometricTries(0.2)), 1e-6, 0.005),
    "pure": (Repeated(PureLoss(1.0), NegativeBinomialTries(0.5, 0.1)), 1e-4, 0.005),
    "a pair": (Repeated(PairLoss([0.7, 0.3], [0.4, 0.6]), GeometricTries(0.3)), 1e-3, 0.005),
    "Poisson": (Repeated(GaussianLoss(1.0), PoissonTries(10.0)), 1e-6, 0.005),
    "Laplace": (Repeated(LaplaceLoss(0.5), GeometricTries(0.5)), 1e-3, 0.005),
    "three": (3 * Repeated(GaussianLoss(0.2), GeometricTries(0.2)), 1e-5, 0.01),
}


LONG = {"Laplace", "three"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in PLANS]
)
def test_its_upper_end_is_proved_near_that_of_the_certificate(name):
    plan, delta, width = PLANS[name]
    found = Tight().certify(plan, delta)
    said = found.verify()
    assert said.word.startswith("PROVED")
    assert found.upper <= said.upper <= found.upper * (1 + width)


@pytest.mark.parametrize("tries", [GeometricTries(0.1), PoissonTries(10.0), LogarithmicTries(0.3)])
def test_at_delta_0_its_upper_end_is_proved_exactly(tries):
    found = Tight().certify(Repeated(PureLoss(1.0), tries), 0.0)
    said = found.verify()
    assert (said.word, said.upper) == ("PROVED UPPER", found.upper)


FILE = {}


def honest():
    """The fields of the proof of one plan, and the end that it proves."""
    if not FILE:
        plan, delta, _ = PLANS["Gaussian"]
        found = Tight().certify(plan, delta)
        FILE["text"] = write_proof(plan, delta, 0.0, found.upper)
    fields = json.loads(FILE["text"])
    return fields, fields["above"][0]["best"][0]


def test_the_honest_file_is_proved():
    assert verify(document(honest()[0])).word == "PROVED"


def changed(change):
    fields, table = honest()
    change(fields, table)
    return verify(document(fields))


FALSE = {
    "a smaller end": lambda fields, table: fields.update(upper=(1.2).hex()),
    "a knot below the end": lambda fields, table: table.update(knots=[(1.0).hex()]),
    "no lines": lambda fields, table: table.update(mirrored=table["mirrored"][:0]),
    "only lines where both are nearly alike": lambda fields, table: table.update(
        mirrored=table["mirrored"][-1:]
    ),
    "a last corner that is left out": lambda fields, table: table["terms"]["shifts"].pop(),
    "no points": lambda fields, table: table.update(points=table["points"][-1:]),
    "wide cells": lambda fields, table: table["terms"].update(tails=[], parts=1),
    "more runs": lambda fields, table: fields["plan"]["tries"].update(stop=0.001),
    "a table too few": lambda fields, table: fields["above"][0]["best"].clear(),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_file_is_refused(name):
    assert changed(FALSE[name]).word == "NOT PROVED"


@pytest.mark.parametrize(
    "plan",
    [
        Repeated(3 * Repeated(GaussianLoss(0.2), GeometricTries(0.2)), GeometricTries(0.2)),
        PoissonSampled(Repeated(GaussianLoss(0.2), GeometricTries(0.2)), 0.1),
    ],
    ids=["of bests", "sampled"],
)
def test_other_places_of_it_have_no_proof_and_say_so(plan):
    with pytest.raises(UnsupportedPlan, match="no proof"):
        write_proof(plan, 1e-3, 0.0, 1.0)


def test_slopes_and_means_are_those_of_the_laws():
    cases = {
        (NEGATIVE_BINOMIAL, Fraction(1), Fraction(1, 5)): GeometricTries(0.2),
        (NEGATIVE_BINOMIAL, Fraction(0), Fraction(1, 4)): LogarithmicTries(0.25),
        (NEGATIVE_BINOMIAL, Fraction(-1, 2), Fraction(1, 8)): NegativeBinomialTries(-0.5, 0.125),
        (POISSON, Fraction(3)): PoissonTries(3.0),
    }
    for tries, law in cases.items():
        assert float(mean_of_tries(tries)) == pytest.approx(law.mean, rel=1e-12)
        for tail, gap in ((0.0, 0.1), (0.3, 0.0), (0.2, 0.7)):
            ratio = float(slope_ratio(tries, arb(tail), arb(gap)).log())
            assert ratio == pytest.approx(float(law.log_slope_ratio(tail, gap)), abs=1e-12)
            of_one = float(slope_share(tries, arb(tail)) / slope_share(tries, arb(tail + gap)))
            assert float(slope_ratio(tries, arb(tail), arb(gap))) == pytest.approx(of_one)


def test_between_two_points_delta_is_at_most_their_chord():
    points = [(Fraction(1), arb(0.2)), (Fraction(2), arb(0.1))]
    values = {0.0: 1 - 0.8 * 1 / 2.718281828459045, 1.0: 0.2, 2.0: 0.1, 3.0: 0.1}
    for epsilon, value in values.items():
        assert float(delta_between(points, arb(epsilon))) == pytest.approx(value)
    assert 0.1 < float(delta_between(points, arb(1.5))) < 0.2
    assert float(delta_between([], arb(1.0))) == 1


def test_one_surely_stopping_run_has_the_profile_of_one_run():
    """With a stop near 1 there is nearly always one run."""
    tries = (NEGATIVE_BINOMIAL, Fraction(1), Fraction(10**9 - 1, 10**9))
    points = [(Fraction(0), arb(0.5)), (Fraction(1), arb(0.2))]
    terms = {"tails": [(0.5).hex()], "parts": 1, "shifts": [(1e-3).hex()]}
    profile = best_profile(tries, points, points, terms)
    assert float(profile(arb(1.0))) == pytest.approx(0.2, rel=5e-3)
