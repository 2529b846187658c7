"""`assert_private` in plain tests, unittest, Hypothesis and asynchronous tests."""

import asyncio
import dataclasses
import enum
import unittest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant import ApproxLoss, Budget, GaussianLoss, ParameterError, PureLoss, Tight, ZCDPLoss
from audits import Sensitivity, assert_private, audit
from audits.attacks import assertion
from audits.attacks.assertion import excess_over
from audits.claims.findings import Outcome
from mechanisms import Gaussian, Laplace, RandomizedResponse


def noisy(value, rng, size):
    return np.sum(value) + rng.laplace(size=size)


def half(value, rng, size):
    return np.sum(value) + rng.laplace(scale=0.5, size=size)


async def awaited_half(value, rng, size):
    await asyncio.sleep(0)
    return half(value, rng, size)


@pytest.mark.parametrize("claim", [1.0, PureLoss(1.0), (1.0, 1e-5), Budget(1.0), Budget(1.0, 1e-5)])
def test_a_true_claim_passes_and_returns_the_finding(claim):
    found = assert_private(noisy, (0.0, 1.0), claim, runs=20_000)
    # half of Gaussian noise, which stands for any claim with a delta, takes more runs
    has_delta = claim in [(1.0, 1e-5), Budget(1.0, 1e-5)]
    assert found.outcome is (Outcome.INCONCLUSIVE if has_delta else Outcome.SURVIVED)
    assert has_delta == (found.needed_runs is not None)
    assert found.seed == 0
    assert found.confidence == 1 - 1e-6


def test_a_false_claim_fails_with_the_sentence_of_the_verdict():
    with pytest.raises(AssertionError) as error:
        assert_private(half, ([0.0, 5.0], [1.0, 5.0]), 1.0, runs=20_000)
    words = str(error.value)
    assert words.startswith("half leaks epsilon >= 1.8")
    assert "at delta = 0, and 1 is claimed: guessing the first value where" in words
    assert "each a list of length 2; differ in item 0; sha256" in words
    assert "(seed 0)" in words
    with pytest.raises(AssertionError, match=r"leaks epsilon >= .*, and 0 is claimed"):
        assert_private(lambda v, r, size: v + r.normal(size=size), (0.0, 1.0), GaussianLoss(0.7))


def test_notes_are_part_of_the_sentence():
    def own(value):
        return value

    with pytest.raises(AssertionError, match=r"The release takes no rng"):
        assert_private(own, (0.0, 1.0), 1.0, runs=1000)


def test_a_declared_mechanism_is_computed_first_and_has_a_claim_of_its_own():
    assert assert_private(Laplace(1.0), runs=2000).claim == Laplace(1.0).loss
    assert assert_private(Laplace(1.0), claim=1.0, runs=2000).outcome is Outcome.SURVIVED
    with pytest.raises(AssertionError, match=r"costs epsilon = 2 .* and 1 is claimed \(computed"):
        assert_private(Laplace(0.5), claim=1.0)


@pytest.mark.parametrize(
    ("mechanism", "claim", "delta"),
    [
        # At delta = 1e-5 each costs less than is claimed.
        (Laplace(1.0), GaussianLoss(0.3), "0.1"),
        (Laplace(1.0), ZCDPLoss(0.045), "0.121"),
        (Laplace(1 / 2.7), GaussianLoss(2.0), "0.6827"),  # less down to epsilon 0 alone
        (Gaussian(4.0), (1.1, 1e-13), "1e-13"),
    ],
)
def test_a_claim_is_compared_with_a_mechanism_at_every_point_of_audits(mechanism, claim, delta):
    with pytest.raises(AssertionError, match=rf"at delta = {delta}, and .* \(computed, no runs"):
        assert_private(mechanism, claim=claim, runs=2000)
    # the delta of the call is the only one that counts
    found = assert_private(mechanism, None, claim, 2000, delta=1e-5, allow_inconclusive=True)
    assert found.claim == mechanism.loss


def test_round_off_of_an_epsilon_above_0_breaks_no_claim_of_0():
    coin = RandomizedResponse(2, 0.75)  # its total variation is 1/2
    assert Tight().epsilon(coin, 0.5) > 0
    assert excess_over(ApproxLoss(0.0, 0.5), coin, None) is None
    assert excess_over(ApproxLoss(0.0, 0.5), coin, 0.5) is None
    assert excess_over(ApproxLoss(0.0, 0.4999), coin, None).delta == 0.4999


def test_a_function_needs_a_claim_and_a_pair_that_differs():
    with pytest.raises(ParameterError, match="claim must be a loss"):
        assert_private(noisy, (0.0, 1.0))
    with pytest.raises(ParameterError, match="differ"):
        assert_private(noisy, (1.0, 1.0), 1.0)


def test_a_sensitivity_is_a_claim_too():
    pair = np.zeros(2), np.array([0.0, 3.0])
    assert_private(np.sum, pair, Sensitivity(3.0))
    with pytest.raises(AssertionError, match=r"sum breaks its claim Sensitivity\(value=1.0"):
        assert_private(np.sum, pair, Sensitivity(1.0))


def test_what_did_not_survive_fails_unless_it_is_allowed(monkeypatch):
    class Third(enum.Enum):
        UNDECIDED = "the runs are too few"

    def undecided(*given, **named):
        return dataclasses.replace(audit(*given, **named), outcome=Third.UNDECIDED)

    monkeypatch.setattr(assertion, "audit", undecided)
    with pytest.raises(AssertionError, match="noisy: UNDECIDED, the runs are too few: guessing"):
        assert_private(noisy, (0.0, 1.0), 1.0, runs=1000)
    found = assert_private(noisy, (0.0, 1.0), 1.0, runs=1000, allow_inconclusive=True)
    assert found.outcome is Third.UNDECIDED


@given(st.lists(st.floats(0, 1), min_size=1, max_size=4))
@settings(max_examples=15, deadline=None)
def test_it_works_under_hypothesis(records):
    assert_private(noisy, (records, records[1:]), 1.0, runs=400) if any(records) else None


def test_hypothesis_finds_the_pair_that_fails():
    @given(st.integers(0, 5))
    @settings(max_examples=50, deadline=None, database=None)
    def worse_when_high(value):
        def release(v, rng, size):
            return v + rng.laplace(scale=0.2 if v > 2 else 1.0, size=size)

        assert_private(release, (value, value + 1), 1.0, runs=2000)

    with pytest.raises(AssertionError, match="leaks epsilon"):
        worse_when_high()


class TestOfUnittest(unittest.TestCase):
    def test_it_works_in_unittest(self):
        assert_private(noisy, (0.0, 1.0), 1.0, runs=1000)
        with self.assertRaises(AssertionError):  # noqa: PT027
            assert_private(half, (0.0, 1.0), 1.0, runs=20_000)


class TestOfAsynchronousUnittest(unittest.IsolatedAsyncioTestCase):
    async def test_it_works_while_a_loop_runs(self):
        assert_private(noisy, (0.0, 1.0), 1.0, runs=1000)
        with self.assertRaisesRegex(AssertionError, "awaited_half leaks"):  # noqa: PT027
            assert_private(awaited_half, (0.0, 1.0), 1.0, runs=20_000)
