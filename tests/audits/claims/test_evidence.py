"""Findings as evidence on a claim of a book: what they are worth, and which are refused."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from accountant import ApproxLoss, Book, Budget, GaussianLoss, ParameterError, PureLoss
from accountant.book.evidence import grown, log_total, proof
from audits import Sensitivity, audit, audit_family, watch
from audits.claims.arguments import seed_and_generator, stream_digest
from audits.neighbours.value_spaces import Box
from mechanisms import Gaussian, Laplace, RandomizedResponse

ONE, PAIR = PureLoss(1.0), (0.0, 1.0)


def laplace(scale):
    return lambda value, rng, size: value + rng.laplace(scale=scale, size=size)


@pytest.fixture
def book(tmp_path):
    with Book.create(tmp_path / "book.db") as opened_book:
        opened_book.claim("one", Budget(1.0))
        yield opened_book


def test_findings_of_versions_raise_an_alarm_that_single_audits_miss(book):
    outcomes = []
    for version in range(6):
        found = audit(laplace(0.5), PAIR, ONE, runs=80, early=True, rng=48 + version)
        evidence = found.add_to(book, "one", version=f"1.{version}")
        outcomes.append(found.outcome.name)
    assert "FALSIFIED" not in outcomes
    assert evidence.is_alarmed
    assert evidence.lines[0].seen.startswith("INCONCLUSIVE by 80 runs: ")
    assert evidence.lines[0].points == ((1.0, 0.0),)
    book.verify()


@pytest.mark.parametrize("early", [False, True])
def test_an_honest_release_loses_wealth(book, early):
    for version in range(6):
        found = audit(laplace(1.0), PAIR, ONE, runs=200, early=early, rng=version)
        evidence = found.add_to(book, "one", version=f"1.{version}")
    assert not evidence.is_alarmed
    assert evidence.wealth < 3


@pytest.mark.parametrize("early", [False, True])
def test_the_same_seed_counts_once_however_many_runs_it_made(book, early):
    for seed in (7, np.random.default_rng(8)):
        audit(laplace(1.0), PAIR, ONE, runs=100, early=early, rng=seed).add_to(book, "one", "1")
    for seed in (7, np.random.default_rng(7), np.random.default_rng(8)):
        found = audit(laplace(0.5), PAIR, ONE, runs=120, early=early, rng=seed)
        with pytest.raises(ParameterError, match="the same luck is no evidence twice"):
            found.add_to(book, "one", "2")
    rng = np.random.default_rng(9)
    for _ in range(2):  # a generator that goes on draws other runs
        audit(laplace(1.0), PAIR, ONE, runs=100, early=early, rng=rng).add_to(book, "one", "2")
    assert len(book.evidence("one").lines) == 4


def test_streams_are_told_apart_by_what_they_draw():
    digests = {stream_digest(seed_and_generator(seed)[1]) for seed in range(50)}
    digests |= {stream_digest(rng) for rng in np.random.default_rng(0).spawn(50)}
    digests |= {
        stream_digest(np.random.Generator(cls(0)))
        for cls in (np.random.MT19937, np.random.Philox, np.random.SFC64)
    }
    assert len(digests) == 103
    assert all(len(digest) == 64 for digest in digests)
    assert len({stream_digest(seed_and_generator(None)[1]) for _ in range(5)}) == 5


def test_all_members_of_a_family_are_evidence(book):
    family = audit_family(laplace(0.5), [(0.0, 1.0), (5.0, 6.0)], ONE, runs=600, rng=0)
    for member in family.members:
        evidence = member.finding.add_to(book, "one", "1")
    assert len(evidence.lines) == 2
    assert evidence.wealth > 20


@pytest.mark.parametrize("early", [False, True])
def test_curves_are_tested_at_points_that_follow_from_them(book, early):
    loss = GaussianLoss(1.0)
    book.claim("curve", loss)
    for number, (release, pair) in enumerate(
        [(Gaussian(0.5), None), (lambda v, rng, size: v + rng.normal(scale=0.5, size=size), PAIR)]
    ):
        found = audit(release, pair, loss, runs=2000, early=early, rng=number)
        evidence = found.add_to(book, "curve", "1")
        assert evidence.is_alarmed or early  # bets are at one delta, 1e-5
        for epsilon, delta in evidence.lines[-1].points:
            assert delta >= loss.delta_at(epsilon) * (1 - 1e-9)
    book.verify()


def test_a_mechanism_that_keeps_its_claim_gains_nothing(book):
    for number, mechanism in enumerate(
        [Laplace(1.0), RandomizedResponse(2, math.e / (1 + math.e))]
    ):
        for early in (False, True):
            found = audit(mechanism, runs=1000, early=early, rng=2 * number + early)
            evidence = found.add_to(book, "one", "1")
    assert len(evidence.lines) == 4
    assert evidence.wealth < 20


def test_a_claim_with_a_delta_is_refuted_beside_its_leaks(book):
    book.claim("leaks", Budget(1.0, 0.01))

    def half_the_noise(value, rng, size):
        noisy = value + rng.laplace(scale=0.5, size=size)
        return np.where(rng.random(size) < 0.01, 100.0 + value, noisy)

    for early in (False, True):
        found = audit(
            half_the_noise, PAIR, ApproxLoss(1.0, 0.01), runs=3000, early=early, rng=int(early)
        )
        evidence = found.add_to(book, "leaks", "1")
    assert evidence.is_alarmed
    assert evidence.lines[0].points == evidence.lines[1].points == ((1.0, 0.01),)


def test_an_audit_of_more_than_is_claimed_is_no_evidence(book):
    book.claim("two", Budget(2.0))
    early = watch(laplace(0.5), PAIR, ONE, runs=500, rng=0)  # bets against epsilon 1
    with pytest.raises(ParameterError, match=r"what the claim 'two', PureLoss\(epsilon=2.0\)"):
        early.add_to(book, "two", "1")
    assert audit(laplace(0.5), PAIR, ONE, runs=500, rng=0).add_to(book, "two", "1").wealth < 2
    beside_leaks = audit(laplace(0.5), PAIR, (1.0, 0.01), runs=500, rng=1)
    (point,) = beside_leaks.add_to(book, "one", "1").lines[0].points
    assert point == (ONE.epsilon_at(0.01), 0.01)
    book.claim("leaks", Budget(1.0, 0.01))
    with pytest.raises(ParameterError, match="points must be"):  # at delta 0 nothing is claimed
        audit(laplace(0.5), PAIR, ONE, runs=500, rng=2).add_to(book, "leaks", "1")


def test_findings_without_guesses_are_no_evidence(book):
    box = Box(0.0, 1.0, shape=(5,))
    found = audit(lambda data: data.sum(), box, Sensitivity(0.1), runs=50, rng=0)
    with pytest.raises(ParameterError, match="finding must be of an audit by guesses"):
        found.add_to(book, "one", "1")
    with pytest.raises(ParameterError, match="a claim of this book"):
        audit(laplace(1.0), PAIR, ONE, runs=50, rng=0).add_to(book, "other", "1")
    assert not book.evidence("one").lines


def test_the_last_digit_of_outputs_is_evidence_too(book):
    def leaks_in_the_last_digit(value, rng, size):
        return [int(value) + 10 * int(n) for n in rng.integers(-50, 50, size)]

    found = audit(leaks_in_the_last_digit, (0, 1), ONE, runs=1000, rng=0)
    assert found.add_to(book, "one", "1").is_alarmed


def life(seed, chance, audits, made):
    """Whether the evidence of counts of guesses, right with a chance, ever is a proof."""
    rng, wealth = np.random.default_rng(seed), []
    for nth in range(1, audits + 1):
        counts = rng.binomial(made, chance)
        guesses = audit_counts(int(counts), made)
        wealth = grown(wealth, guesses.log_e_values(1.0, 0.0).tolist(), nth)
        if log_total(wealth, nth) >= proof(0.05):
            return True
    return False


def audit_counts(correct, made):
    from audits.claims.findings import GuessCounts

    return GuessCounts(correct, made, made, every_run=True)


def test_few_lives_of_a_true_claim_ever_raise_an_alarm():
    # Guesses that are right as often as the claim allows, in 50 versions of very different sizes.
    alarms = sum(
        life(seed, 1 / (1 + math.exp(-1.0)), 50, 5 + 7 * (seed % 40)) for seed in range(300)
    )
    assert alarms <= binom.isf(1e-6, 300, 0.05)
    # a chance of 0.8 is a release of epsilon 1.39
    assert sum(life(seed, 0.8, 50, 40) for seed in range(20)) == 20


@pytest.mark.slow
@pytest.mark.parametrize("early", [False, True])
def test_few_lives_of_an_honest_release_ever_raise_an_alarm(early):
    alarms = 0
    for seed in range(60):
        rng, wealth = np.random.default_rng(seed), []
        for nth in range(1, 21):
            found = audit(laplace(1.0), PAIR, ONE, runs=60, early=early, rng=rng)
            wealth = grown(wealth, found.log_e_values(ONE)[1], nth)
            alarms += log_total(wealth, nth) >= proof(0.05)
    assert alarms <= binom.isf(1e-6, 60, 0.05)
