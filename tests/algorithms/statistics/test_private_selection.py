"""Selection among candidates: replayed, on plan, and wrong ones caught."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from accountant import ParameterError, PureLoss
from accountant.ledger.ledger import Ledger
from algorithms import PrivateSelection
from algorithms.base.non_private import NotPrivateWarning
from algorithms.statistics.private_selection import clipped_score_sums
from audits.algorithm_runs.loss_profile import audit_algorithm
from audits.algorithm_runs.replaying import replay

# two candidates are level but for one user, who turns from one to the other
LEVEL = np.tile([[1.0, 0.0], [0.0, 1.0]], (20, 1))
HERE, THERE = LEVEL.copy(), LEVEL.copy()
HERE[0], THERE[0] = [1e9, -1e9], [-1e9, 1e9]  # clipped to (1, 0) and (0, 1)
CONFIDENCE = 1 - 1e-7


def test_no_leak_and_losses_within_the_claim():
    made = PrivateSelection(epsilon=1.0)
    assert replay(made, HERE, THERE, rng=1).sound
    found = audit_algorithm(made, HERE, THERE, PureLoss(1.0), 300, np.random.default_rng(5))
    assert found.refutation(CONFIDENCE) == ""
    assert found.losses.max() > 0.4


class ForgetsToClip(PrivateSelection):
    def run(self, ledger):
        return int(
            ledger.release(ledger.plan, lambda scores: scores.sum(axis=0), shape=ledger.shape[1])
        )


class HalfTheNoise(PrivateSelection):
    def plan(self, shape):
        return PrivateSelection(epsilon=2 * self.epsilon + 0.5).plan(shape)


class DoubledScores(PrivateSelection):
    """Scores within [-1, 1], which move twice as far."""

    def run(self, ledger):
        return int(
            ledger.release(ledger.plan, lambda s: 2 * clipped_score_sums(s), shape=ledger.shape[1])
        )


class BreaksTies(PrivateSelection):
    """Prefers the first user's favourite."""

    def run(self, ledger):
        return super().run(ledger) + int(np.argmax(ledger._data[0]))


@pytest.mark.parametrize("wrong", [ForgetsToClip, HalfTheNoise, DoubledScores, BreaksTies])
def test_wrong_selections_are_caught(wrong):
    # the first is ahead by one and a half at the best, where the loss is nearly all of epsilon
    made, rng = wrong(epsilon=1.0), np.random.default_rng(5)
    data, neighbour = (np.vstack([one, [[0.0, 1.0]] * 3]) for one in (HERE, THERE))
    assert audit_algorithm(made, data, neighbour, PureLoss(1.0), 300, rng).refutation(CONFIDENCE)


def test_choices_have_the_law_of_permute_and_flip():
    data = np.vstack([np.tile([1.0, 0.5, 0.0], (4, 1)), [[-5.0, 7.0, 0.3]]])
    runs, made = 2000, PrivateSelection(epsilon=1.0)
    chances = np.exp(made.plan(data.shape).log_probabilities(np.array([4.0, 3.0, 0.3])))
    plan = made.plan(data.shape)
    chosen = [made.run(Ledger(data, plan, rng=run)) for run in range(runs)]
    counts = np.bincount(chosen, minlength=3)
    # exact, 3e-7 in all
    assert (binom.sf(counts - 1, runs, chances) > 5e-8).all()
    assert (binom.cdf(counts, runs, chances) > 5e-8).all()


def test_the_plan_needs_no_data_and_a_clear_winner_wins():
    made = PrivateSelection(epsilon=1.0, random_state=0)
    data = np.zeros((200, 6))
    data[:, 4] = 1.0
    assert made.fit(data).chosen_ == 4
    assert made.plan_ == made.plan((200, 6))
    assert "differential privacy" in made.summary()
    bare = PrivateSelection(epsilon=math.inf, non_private=True)
    with pytest.warns(NotPrivateWarning):
        assert bare.fit(data).chosen_ == 4
    assert "NOT PRIVATE" in bare.summary()


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, "1", True])
def test_bad_epsilons_are_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        PrivateSelection(epsilon=epsilon).fit(LEVEL)


def test_bad_scores_are_refused_without_showing_them():
    for bad in (np.zeros(5), np.zeros((0, 3)), np.zeros((5, 1))):
        with pytest.raises(ParameterError):
            PrivateSelection(epsilon=1.0).fit(bad)
