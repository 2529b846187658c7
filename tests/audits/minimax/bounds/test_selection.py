"""Private selection: the best mechanism that a linear programme finds, and ours."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from accountant import ParameterError
from algorithms import PrivateSelection
from algorithms.base.non_private import NotPrivateWarning
from audits.minimax.bounds.selection import FewVotes, expected_gap, private_selection


def best_mechanism(k, reach, delta=0.0):
    """Greatest mean probability of the right choice of k data sets, all ``reach`` apart."""
    # variables P(choice j | data i) >= 0, rows sum to 1; for a pair of data sets and a choice
    # P(j|i) <= e^reach P(j|i'), and with a delta the excess over all choices is at most it
    rows, right = [], []
    extra = k * k * k if delta else 0
    for i in range(k):
        for other in range(k):
            if i == other:
                continue
            total = np.zeros(k * k + extra)
            for j in range(k):
                row = np.zeros(k * k + extra)
                row[i * k + j], row[other * k + j] = 1, -math.exp(reach)
                if delta:
                    at = k * k + (i * k + other) * k + j
                    row[at], total[at] = -1, 1
                rows.append(row)
                right.append(0.0)
            if delta:
                rows.append(total)
                right.append(delta)
    sums = np.hstack([np.kron(np.eye(k), np.ones(k)), np.zeros((k, extra))])
    goal = np.concatenate([-np.eye(k).ravel() / k, np.zeros(extra)])
    return -linprog(goal, rows, right, sums, np.ones(k)).fun


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0])
@pytest.mark.parametrize(("k", "votes"), [(2, 1), (3, 2), (5, 3)])
def test_no_mechanism_is_right_more_often_and_one_is_as_often(k, votes, epsilon):
    family = FewVotes(k, 10, votes)
    best = best_mechanism(k, votes * epsilon)
    assert family.most_right(10, epsilon) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("delta", [1e-3, 0.05])
@pytest.mark.parametrize("k", [2, 4])
def test_a_delta_helps_by_no_more_than_the_bound_says(k, delta):
    best = best_mechanism(k, 0.7, delta)
    assert best_mechanism(k, 0.7) < best <= FewVotes(k, 10, 1).most_right(10, 0.7, delta)
    # each release of delta tells one more in 1 + (k-1) e^-epsilon at most: not far above
    assert FewVotes(k, 10, 1).most_right(10, 0.7, delta) <= best + delta


@pytest.mark.parametrize(
    ("n", "k", "epsilon"), [(100, 10, 1.0), (1000, 1000, 0.1), (10, 2, 0.5), (3, 50, 0.01)]
)
def test_the_number_of_votes_is_the_best(n, k, epsilon):
    bound = private_selection(n, k, epsilon)
    every = [expected_gap(m, k, epsilon) for m in range(1, n + 1)]
    assert bound.value == pytest.approx(max(every), rel=1e-9)
    assert bound.value < max(every)
    assert bound.construction.separation == bound.construction.votes


def measured(algorithm, family, runs, seed):
    """Mean gap over uniform points, its standard error, and right choices."""
    gaps, right = [], 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        which = int(rng.integers(family.points))
        data = family.sample(which, family.n, rng)
        chosen = algorithm.set_params(random_state=rng).fit(data).chosen_
        sums = family.parameter(which)
        gaps.append(sums.max() - sums[chosen])
        right += family.decode(np.array(chosen)) == which
    return np.mean(gaps), np.std(gaps) / math.sqrt(runs), right


@pytest.mark.parametrize(("n", "k", "epsilon"), [(60, 10, 1.0), (100, 100, 0.3), (40, 2, 0.5)])
def test_our_selection_is_near_the_bound_and_never_below(n, k, epsilon):
    bound = private_selection(n, k, epsilon)
    risk, error, _ = measured(PrivateSelection(epsilon=epsilon), bound.construction, 400, 1)
    # 6 standard errors: false alarms of 1e-9
    assert bound.value - 6 * error <= risk <= 3 * bound.value


@pytest.mark.parametrize(("k", "epsilon"), [(10, 1.0), (1000, 0.1), (2, 0.5)])
def test_ours_is_within_a_factor_two_on_any_number_of_votes(k, epsilon):
    # exactly: permute-and-flip at half the epsilon a vote, against the bound
    from mechanisms import PermuteAndFlip

    made, worst = PermuteAndFlip(2 / epsilon), 0.0
    for votes in range(1, 200):
        scores = FewVotes(k, 200, votes).parameter(0)
        wrong = votes * -math.expm1(float(made.log_density(0, scores)))
        assert wrong >= expected_gap(votes, k, epsilon) * (1 - 1e-9)
        worst = max(worst, wrong)
    # a vote more or less, as the best number of votes is whole
    assert worst <= 2 * private_selection(200, k, epsilon).value + 1


def test_too_accurate_choices_are_told_and_honest_ones_are_not():
    n, k, epsilon, runs = 50, 20, 0.5, 20
    family = FewVotes(k, n, 3)
    most = family.most_right(n, epsilon)
    bare = PrivateSelection(epsilon=math.inf, non_private=True)
    with pytest.warns(NotPrivateWarning):
        right = measured(bare, family, runs, 2)[2]
    assert right == runs
    assert binom.sf(right - 1, runs, most) < 1e-6
    honest = measured(PrivateSelection(epsilon=epsilon), family, runs, 2)[2]
    assert binom.sf(honest - 1, runs, most) > 0.01


def test_the_family_is_what_it_says():
    family, rng = FewVotes(4, 10, 3), np.random.default_rng(0)
    for which in range(4):
        data = family.sample(which, 10, rng)
        assert data.sum(axis=0).tolist() == family.parameter(which).tolist()
        assert family.decode(data.sum(axis=0)) == which
        assert family.decode(which) == which
    # exchanging 3 records leads from any data set to any other
    assert family.separation == 3
    with pytest.raises(ParameterError, match="size of these"):
        family.sample(0, 11, rng)
    with pytest.raises(ParameterError, match="which"):
        family.parameter(4)
    with pytest.raises(ParameterError, match="votes"):
        FewVotes(4, 10, 11)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((0, 5, 1.0), "n must"), ((5, 1, 1.0), "k must"), ((5, 5, 0.0), "epsilon"),
     ((5, 5, math.nan), "epsilon"), ((5, 5, math.inf), "epsilon"), ((5, True, 1.0), "k must")],
    ids=str,
)  # fmt: skip
def test_bad_input_is_refused(arguments, said):
    with pytest.raises(ParameterError, match=said):
        private_selection(*arguments)
