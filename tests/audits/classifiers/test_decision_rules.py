"""Rules by a threshold of the score: infinite scores count, and no score reaches infinite cuts."""

import numpy as np
import pytest

from audits.attacks.tested_rules import guess_counts
from audits.classifiers.decision_rules import ThresholdRule, best_cuts
from audits.classifiers.objective import NO_GUESS, Objective

INFINITE = np.array([np.inf, 0.0, -np.inf])


def scores_as_they_are(outputs):
    return outputs


@pytest.mark.parametrize(("cut", "low", "counts"), [
    (1.0, -1.0, (3, 4)), (np.inf, -1.0, (1, 2)), (1.0, -np.inf, (2, 2)), (np.inf, -np.inf, (0, 0)),
])  # fmt: skip
def test_a_value_with_an_infinite_cut_is_never_guessed(cut, low, counts):
    rule = ThresholdRule(scores_as_they_are, cut, NO_GUESS, "the score", low)
    first, second = np.array([np.inf, 2.0, -np.inf]), np.array([0.0, -np.inf])
    assert rule.counts(first, second) == counts
    assert rule.guessed_values == (cut < np.inf) + (low > -np.inf)


def test_a_release_that_only_leaks_with_probability_delta_is_not_refuted():
    """Its scores are 0 or infinite: the rule guesses on the leaks, and the bound counts them."""
    delta, runs = 0.01, 2_000
    objective = Objective(runs=runs, delta=delta, alpha=1e-6, epsilon=0.5)
    cuts = best_cuts(INFINITE, objective, np.array([delta / 2, 1 - delta, delta / 2]))
    rule = ThresholdRule(scores_as_they_are, cuts.upper, cuts.expected, "the score", cuts.lower)
    leaks = np.where(np.arange(runs // 2) < delta * runs / 2, np.inf, 0.0)
    right, guesses = rule.counts(leaks, -leaks)
    assert right == guesses == delta * runs
    assert guess_counts(rule, right, guesses, runs).epsilon_lower(delta, 1 - 1e-6) == 0.0
