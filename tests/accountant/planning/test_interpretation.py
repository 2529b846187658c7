"""What a guarantee means in words, and what-if questions: against their formulas."""

import math
import re

import pytest
from hypothesis import given
from scipy.stats import norm

from accountant import (
    ParameterError,
    Tight,
    explanation,
)
from accountant.planning.interpretation import SUSPICIONS, worst_case_posterior
from accountant.plans.adjacency import Adjacency
from mechanisms import Gaussian, RandomizedResponse
from tests.strategies import epsilons, priors


@given(priors, epsilons(0.0, 50.0))
def test_a_suspicion_grows_as_bayes_says(prior, epsilon):
    # the worst answer is e^eps times as likely if the suspicion is true
    exact = prior * math.exp(epsilon) / (prior * math.exp(epsilon) + 1 - prior)
    assert (
        exact <= worst_case_posterior(prior, epsilon) <= exact * (1 + 1e-12)
        or worst_case_posterior(prior, epsilon) == 1
    )
    assert worst_case_posterior(prior, 1e300) == 1.0


def test_a_suspicion_of_next_to_nothing_grows_as_well():
    # the odds against it fall from 1e305 to 3e-6
    odds = math.exp(305 * math.log(10) - 715)
    assert worst_case_posterior(1e-305, 715.0) >= (1 - 1e-12) / (1 + odds)
    assert worst_case_posterior(1e-310, 720.0) > 0.99
    assert worst_case_posterior(1e-310, 0.0) >= 1e-310


def test_randomised_response_reaches_what_is_told():
    # an answer that is kept with e^eps times the chance of the other moves 1 in 100 just so far
    response = RandomizedResponse(2, keep=0.8)
    epsilon = response.loss.pure
    shown = re.search(r"at most ([\d.]+) %", explanation(epsilon, 0.0))
    reached = 100 * 0.01 * 0.8 / (0.01 * 0.8 + 0.99 * 0.2)
    assert reached <= float(shown[1]) <= reached + 0.01


@pytest.mark.parametrize("relation", [None, *Adjacency])
def test_sentences_name_the_suspicion_and_who_sees_the_data(relation):
    words = explanation(0.7, 1e-6, relation)
    assert len(re.findall(r"[.](?: |$)", words)) == 4
    assert "1 in 1,000,000 (delta 1e-6)" in words
    assert "epsilon 0.7" in words
    assert ("trust no one" in words) == (relation == "local-replace")
    assert Adjacency(relation or "add-remove").difference in words
    assert set(SUSPICIONS) == set(Adjacency)


def test_the_numbers_are_on_the_safe_side():
    assert "2.67 %" not in explanation(1.0, 0.0)  # 2.6730...
    assert "2.68 %" in explanation(1.0, 0.0)
    assert "epsilon 1.00001" in explanation(1.000000001, 0.0)
    assert "1 in 3 " in explanation(1.0, 0.3)
    assert "100 %" in explanation(800.0, 0.0)
    assert "never fails" in explanation(1.0, 0.0)
    for bad in (-1.0, math.nan, math.inf, "1", True):
        with pytest.raises(ParameterError):
            explanation(bad, 0.0)


def test_the_exception_is_not_told_as_the_chance_that_a_belief_exceeds_the_limit():
    # of Gaussian noise that chance is 26 times delta here: no sentence may say it is delta
    mu = 0.18
    epsilon = Tight().epsilon(Gaussian(1 / mu), 1e-6)
    exceeds = norm.sf(epsilon / mu - mu / 2)
    assert exceeds > 20e-6
    *_, exception, _ = explanation(epsilon, 1e-6).split(". ")
    assert "chance of at most 1 in 1,000,000 (delta 1e-6) that this fails" not in exception
    # Kairouz, Oh & Viswanath: no more than a release that reveals all with chance delta
    assert "reveal no more than a release that reveals all about you with a chance" in exception
    assert exception.endswith("and otherwise keeps the limit")
    assert "may fail" not in explanation(epsilon, 0.0)
