"""Rows of the audit report."""

import pytest

from accountant import ApproxLoss, PureLoss
from audits import Outcome, audit
from audits.runner.cases import guess_test_row


@pytest.mark.parametrize(
    ("claim", "allowed"),
    [(PureLoss(1.0), "73.1%"), (ApproxLoss(1.0, 0.1), "73.1% beside 0.1 of the runs")],
)
def test_the_evidence_says_all_that_the_claim_allows(claim, allowed):
    finding = audit(lambda value, rng, size: rng.random(size), (0.0, 1.0), claim, 200, rng=0)
    row = guess_test_row(
        "no noise", "target", claim, finding, Outcome.SURVIVED,
        exact=None, confidence_of_verdict=0.99,
    )  # fmt: skip
    assert row.evidence.endswith(f"the claim allows {allowed}")
