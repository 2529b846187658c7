"""What a guarantee means in words, and what-if questions: against their formulas."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant import (
    Budget,
    BudgetExceeded,
    Deviation,
    Grouped,
    ParameterError,
    PureLoss,
    Tight,
    Wanted,
    allocate,
    at_deltas,
    explanation,
    for_groups,
    one_more,
    records_needed,
    with_more_records,
)
from accountant.__main__ import main
from accountant.planning.capacity import remaining_capacity
from accountant.planning.interpretation import SUSPICIONS, worst_case_posterior
from accountant.plans.adjacency import Adjacency
from mechanisms import Gaussian, Laplace, RandomizedResponse

BUDGET = Budget(1.0, 1e-6)


@given(st.floats(1e-9, 0.999), st.floats(0.0, 50.0))
def test_a_suspicion_grows_as_bayes_says(prior, epsilon):
    # the worst answer is e^eps times as likely if the suspicion is true
    exact = prior * math.exp(epsilon) / (prior * math.exp(epsilon) + 1 - prior)
    assert (
        exact <= worst_case_posterior(prior, epsilon) <= exact * (1 + 1e-12)
        or worst_case_posterior(prior, epsilon) == 1
    )
    assert worst_case_posterior(prior, 1e300) == 1.0


def test_randomised_response_reaches_what_is_told():
    # an answer that is kept with e^eps times the chance of the other moves 1 in 100 just so far
    response = RandomizedResponse(2, keep=0.8)
    epsilon = response.loss.pure
    told = re.search(r"at most ([\d.]+) chances in 100", explanation(epsilon, 0.0))
    reached = 100 * 0.01 * 0.8 / (0.01 * 0.8 + 0.99 * 0.2)
    assert reached <= float(told[1]) <= reached + 0.01


@pytest.mark.parametrize("relation", [None, *Adjacency])
def test_two_sentences_that_name_who_and_whom_to_trust(relation):
    words = explanation(0.7, 1e-6, relation)
    assert len(re.findall(r"[.](?: |$)", words)) == 2
    assert "1 in 1,000,000 (delta 1e-6)" in words
    assert "epsilon 0.7" in words
    assert ("nobody need be trusted" in words) == (relation == "local-replace")
    assert Adjacency(relation or "add-remove").difference in words
    assert set(SUSPICIONS) == set(Adjacency)


def test_the_numbers_are_on_the_safe_side():
    assert "2.67 chances" not in explanation(1.0, 0.0)  # 2.6730...
    assert "2.68 chances" in explanation(1.0, 0.0)
    assert "epsilon 1.00001" in explanation(1.000000001, 0.0)
    assert "1 in 3 " in explanation(1.0, 0.3)
    assert "100 chances" in explanation(800.0, 0.0)
    assert "without exception" in explanation(1.0, 0.0)
    for bad in (-1.0, math.nan, math.inf, "1", True):
        with pytest.raises(ParameterError):
            explanation(bad, 0.0)


GAUSSIAN = '[[release]]\nkind = "Gaussian"\nscale = 4.0\n'
LOCAL = """
[[release]]
kind = "Stated"
part = { kind = "PureLoss", epsilon = 1.0 }
relation = "local-replace"
"""


def test_the_command_tells_the_exact_cost(tmp_path, capsys):
    path = tmp_path / "plan.toml"
    path.write_text("[budget]\nepsilon = 9\ndelta = 1e-5\n" + GAUSSIAN)
    assert main(["explain", str(path)]) == 0
    found = float(re.search(r"epsilon ([\d.]+)", capsys.readouterr().out)[1])
    exact = Tight().epsilon(Gaussian(4.0), 1e-5)
    assert exact <= found <= exact * (1 + 1e-5)
    path.write_text(LOCAL)
    assert main(["explain", str(path), "--delta", "0"]) == 0
    assert "nobody need be trusted" in capsys.readouterr().out
    path.write_text(GAUSSIAN)
    assert main(["explain", str(path), "--delta", "0"]) == 2
    assert "one at which the plan has an epsilon" in capsys.readouterr().err


def mean(records, **given):
    return Wanted(Laplace, Deviation(), sensitivity=1 / records, **given)


def test_more_records():
    before = allocate([mean(100, weight=1.0), mean(50, weight=2.0)], BUDGET)
    after = allocate(with_more_records(before.releases, 10.0), BUDGET)
    assert after.errors == pytest.approx([e / 10 for e in before.errors], rel=1e-5)
    for release in (Wanted(Laplace(1.0)), Wanted(Laplace, Deviation(), weight=1.0)):
        with pytest.raises(ParameterError, match="given its sensitivity"):
            with_more_records([release], 2.0)
    with pytest.raises(ParameterError, match="factor"):
        with_more_records([mean(1, weight=1.0)], math.nan)


def test_other_deltas_groups_and_one_more():
    plan = 10 * Gaussian(20.0)
    told = at_deltas(plan, [1e-9, 1e-5])
    assert told == tuple((d, Tight().epsilon(plan, d)) for d in (1e-9, 1e-5))
    assert for_groups(plan, 1e-6, [1, 3])[1] == (3, Tight().epsilon(Grouped(plan, 3), 1e-6))
    # noise of a third of the size
    assert for_groups(plan, 1e-6, [3])[0][1] == pytest.approx(
        Tight().epsilon(10 * Gaussian(20.0 / 3), 1e-6), rel=1e-9
    )
    found = allocate([mean(10, weight=1.0)], BUDGET)
    more = one_more(found, mean(10, weight=1.0, name="another"))
    assert more.scales[0] == more.scales[1] > found.scales[0]
    with pytest.raises(BudgetExceeded):
        one_more(found, Wanted(PureLoss(2.0)))


@pytest.mark.parametrize("target", [1.0, 0.01, 3e-6])
def test_the_records_an_error_needs(target):
    found = records_needed([mean(100, weight=1.0)], BUDGET, 0, target, 100)
    # the error is the deviation of Laplace noise of scale 1 / (n epsilon), nearly
    exact = allocate([mean(1, weight=1.0)], BUDGET).errors[0] / target
    assert found.error <= target
    assert found.records == pytest.approx(max(exact, 1), rel=2e-6, abs=1.0)
    assert found.lower is None
    assert str(found).startswith(f"{found.records:,} records suffice")


def test_a_lower_bound_stands_beside():
    found = records_needed([mean(1, weight=1.0)], BUDGET, 0, 0.1, 1, lambda error, budget: 7)
    assert found.lower == 7 <= found.records
    assert str(found).endswith("no private algorithm has it with fewer than 7")
    with pytest.raises(ParameterError, match="which"):
        records_needed([mean(1, weight=1.0)], BUDGET, 1, 0.1, 1)
    with pytest.raises(ParameterError, match="target"):
        records_needed([mean(1, weight=1.0)], BUDGET, 0, 1e-200, 1)


@pytest.mark.parametrize(("scale", "most"), [(10.0, 6), (2.5, 1), (1.6, 0)])
def test_room_is_what_just_fits(scale, most):
    assert remaining_capacity(Laplace(2.5), Laplace(scale), Budget(1.0)) == most
    budget = Budget(1.0, 1e-6)
    count = remaining_capacity(Gaussian(30.0), Gaussian(50.0), budget)
    assert budget.admits(Gaussian(30.0) + count * Gaussian(50.0))
    assert not budget.admits(Gaussian(30.0) + (count + 1) * Gaussian(50.0))
