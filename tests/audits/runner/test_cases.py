"""Rows of the audit report."""

import numpy as np
import pytest

from accountant import ApproxLoss, PureLoss
from audits import Outcome, audit
from audits.results.rows import Settings
from audits.runner.cases import DRAWS, guess_test_row, mechanism_curve
from mechanisms import Gaussian, Laplace, RandomizedResponse, TruncatedLaplace


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


CURVES = [
    Laplace(1.0), Laplace(1.0, arithmetic="idealised"), Gaussian(2.0), Gaussian(0.5),
    RandomizedResponse(4, 0.6), TruncatedLaplace(1.0, reach=3.0),
]  # fmt: skip


@pytest.mark.parametrize("mechanism", CURVES, ids=repr)
def test_the_curve_of_a_mechanism_is_near_its_profile_and_within_its_band(mechanism):
    curve = mechanism_curve(mechanism, Settings(1000, 0.999, 7))
    epsilon, mean = np.array(curve.epsilon), np.array(curve.mean)
    assert epsilon[0] == 0.0
    assert np.diff(epsilon) == pytest.approx(epsilon[-1] / (epsilon.size - 1))
    profile = [mechanism.loss.delta_at(one) for one in curve.epsilon]
    assert curve.claimed == pytest.approx(profile, rel=1e-12)
    assert curve.exact == pytest.approx(profile, rel=1e-6, abs=1e-12)
    assert np.all(np.array(curve.lower) <= mean)
    assert np.all(mean <= np.array(curve.upper))
    # The mean of numbers in [0, 1], whose variance is at most their mean, errs by 5 deviations
    # with a chance below 1e-6; the seed is fixed.
    deviation = np.sqrt(np.array(profile) / DRAWS)
    assert np.all(np.abs(mean - profile) <= 5 * deviation + 1e-12)
    # Hoeffding's band: wider than 3 deviations, and narrower than 8 and a few draws.
    width = np.array(curve.upper) - np.array(curve.lower)
    assert np.all(width <= 16 * deviation + 20 / DRAWS)
    assert np.all(width > 0)
