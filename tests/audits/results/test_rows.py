"""Rows of a report: which are the user's own, and what counts as expected of them."""

import itertools

import pytest

from audits.claims.findings import Outcome
from tests.audits.results.report_rows import row

SURVIVED, FALSIFIED, INCONCLUSIVE = Outcome.SURVIVED, Outcome.FALSIFIED, Outcome.INCONCLUSIVE
OWN = ("target", "scores", "record")
OTHERS = ("mechanism", "bits", "specimen", "algorithm", "paper", "library")


@pytest.mark.parametrize("kind", [*OWN, *OTHERS])
def test_a_violation_of_ones_own_claim_is_never_expected(kind):
    for outcome, expected in itertools.product(Outcome, repeat=2):
        case = row(kind=kind, outcome=outcome, expected=expected)
        assert case.own is (kind in OWN)
        is_violation_expected = kind in OTHERS and expected is FALSIFIED
        assert case.as_expected is ((outcome is FALSIFIED) == is_violation_expected)
        assert case.decisive is (outcome in (SURVIVED, FALSIFIED))


def test_an_inconclusive_row_names_all_that_was_not_looked_into():
    few, unseen = (
        row(outcome=INCONCLUSIVE, unseen=parts) for parts in ((), ("output[1]", "output.x"))
    )
    assert few.why_inconclusive == "too few runs to decide"
    assert unseen.why_inconclusive == "not looked into: output[1], output.x"
    weak = row(outcome=INCONCLUSIVE, noise="the noise of Staircase", needed_runs=12_000)
    assert (
        weak.why_inconclusive == "too few runs to see half of the noise of Staircase; 12,000 would"
    )
