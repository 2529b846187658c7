"""Early stop: what a bet is worth, when it stops, and that an honest claim seldom pays it."""

import math
import re

import numpy as np
import pytest
from scipy.stats import binom

from accountant import ApproxLoss, ParameterError, PureLoss
from audits import Outcome, audit
from audits.attacks import sequential
from audits.attacks.sequential import BETTING_ERROR_SHARE, FIRST_RUNS, watch
from audits.classifiers.training import train_score
from mechanisms import Laplace, RandomizedResponse

ONE = PureLoss(1.0)


def noise(true):
    return lambda value, rng, size: value + rng.laplace(scale=1 / true, size=size)


def stops(release, pair, seeds, runs=60_000):
    found = [watch(release, pair, ONE, runs, rng=seed) for seed in range(seeds)]
    return float(np.median([one.stopped or math.inf for one in found]))


def test_how_soon_a_declared_mechanism_is_stopped():
    # the figures to reach: 150, 1,200 and 8,000 runs
    assert stops(Laplace(1 / 2.0), None, 41) <= 150
    assert stops(Laplace(1 / 1.25), None, 41) <= 1200
    assert stops(Laplace(1 / 1.1), None, 21) <= 8000


def test_how_soon_a_function_is_stopped():
    assert stops(noise(2.0), (0.0, 1.0), 21) <= 180
    assert stops(noise(1.25), (0.0, 1.0), 9) <= 1600


@pytest.mark.parametrize(
    ("release", "pair"), [(Laplace(1.0), None), (noise(1.0), (0.0, 1.0))], ids=["declared", "bare"]
)
def test_an_honest_claim_is_seldom_called_false(release, pair):
    repeats = 60 if pair is None else 20
    found = [watch(release, pair, ONE, 1000, rng=seed) for seed in range(repeats)]
    alarms = sum(one.outcome is Outcome.FALSIFIED for one in found)
    assert alarms <= binom.ppf(1 - 1e-6, repeats, 0.05)


def test_what_a_stopped_audit_says():
    found = audit(noise(2.0), (0.0, 1.0), ONE, rng=3, early=True)
    assert found.outcome is Outcome.FALSIFIED
    assert found.stopped <= found.runs < 1000
    assert found.epsilon_lower == 1.0
    assert "25-fold" in found.witness
    assert found.refutes(0.95)
    assert not found.refutes(0.99)  # its bets stopped at what they proved


def test_what_is_not_stopped_has_the_bound_of_the_horizon():
    found = audit(noise(1.0), (0.0, 1.0), ONE, runs=40_000, rng=3, early=True)
    assert found.stopped is None
    assert found.outcome is Outcome.SURVIVED
    assert found.runs == 40_000
    assert 0.9 < found.epsilon_lower <= 1.0


@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_bets_and_the_last_bound_share_the_error_probability(confidence):
    """Each may be wrong, so that what both may is at most 1 - confidence."""
    ended = watch(Laplace(1.0), None, ONE, 3000, confidence, rng=1)
    assert ended.stopped is None
    assert ended.epsilon_lower > 0.8
    bound_error = (1 - BETTING_ERROR_SHARE) * (1 - confidence)
    expected = ended.guesses.epsilon_lower(0.0, 1 - bound_error)
    assert ended.epsilon_lower == pytest.approx(expected, rel=1e-9)
    # Under a true claim a wealth grows f-fold with probability 1 / f at most (Ville).
    stopped = watch(Laplace(0.25), None, ONE, 3000, confidence, rng=1)
    fold = float(re.search(r"grown ([\d.e+]+)-fold", stopped.witness)[1])
    assert 1 / fold + bound_error == pytest.approx(1 - confidence, rel=0.01)


def test_what_is_not_stopped_is_judged_by_its_share_of_the_error_probability():
    confidence, verdicts = 0.5, set()
    for seed in range(40):
        ended = watch(Laplace(1 / 1.2), None, ONE, 60, confidence, rng=seed)
        if ended.stopped is None:
            error = (1 - BETTING_ERROR_SHARE) * (1 - confidence)
            refuted = ended.guesses.refutes(ONE, 0.0, 1 - error)
            assert (ended.outcome is Outcome.FALSIFIED) is refuted
            verdicts.add((refuted, ended.guesses.refutes(ONE, 0.0, confidence)))
    assert verdicts == {(False, False), (False, True), (True, True)}


def test_rules_are_learned_from_a_third_of_the_runs_for_the_bound_that_follows(monkeypatch):
    trainings = []

    def recorded(first, second, objective, cut_only):
        trainings.append((len(first) + len(second), objective))
        return train_score(first, second, objective, cut_only)

    monkeypatch.setattr(sequential, "train_score", recorded)
    watch(noise(0.5), (0.0, 1.0), ONE, 150, 0.9, rng=1)
    learned_from, objectives = zip(*trainings, strict=True)
    assert learned_from == (FIRST_RUNS, 34, 44, 54)  # at least 10 more each time, until a third
    assert [objective.runs for objective in objectives] == [150, 150, 150, 150 - 54]
    for objective in objectives:
        assert objective.alpha == pytest.approx((1 - BETTING_ERROR_SHARE) * 0.1)
        assert (objective.delta, objective.epsilon) == (0.0, 1.0)


def test_a_seed_repeats_an_early_stop():
    one, two = (watch(noise(1.5), (0.0, 1.0), ONE, rng=5) for _ in range(2))
    assert (one.stopped, one.runs, one.witness) == (two.stopped, two.runs, two.witness)


def test_strings_and_deltas_are_bet_on_too():
    def leaks(answer, rng, size):
        keep = np.where(rng.random(size) < 0.95, answer, 1 - answer)
        return np.array(["no", "yes"])[keep]

    found = watch(leaks, (0, 1), ApproxLoss(1.0, 0.01), rng=1)
    assert found.stopped is not None


@pytest.mark.parametrize("bad", [{"claim": None}, {"claim": True}, {"runs": 0}, {"delta": 2.0},
                                 {"pair": None}, {"confidence": 1.0}], ids=repr)  # fmt: skip
def test_nonsense_is_refused(bad):
    with pytest.raises(ParameterError, match="must be"):
        watch(noise(1.0), **{"pair": (0.0, 1.0), "claim": ONE, **bad})


def test_a_declared_mechanism_exactly_at_its_claim_is_guessed_on():
    # its claim is 1.0000000000000027, rounded up from the 1.0 of its log-likelihood ratios
    mechanism = RandomizedResponse(2, 1 / (1 + math.exp(-1.0)))
    found = audit(mechanism, runs=2000, rng=1, early=True)
    assert found.guesses.made == 2000
    assert 0.8 < found.epsilon_lower <= 1.0
