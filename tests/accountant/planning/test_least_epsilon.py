"""The least epsilon for wanted errors: quantiles of noise, the choice of mechanisms, files."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy import stats

from accountant import (
    ParameterError,
    Quantile,
    Selection,
    Sequential,
    Statistic,
    Tight,
    least_epsilon,
    read_plan,
)
from accountant.__main__ import main
from mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    PermuteAndFlip,
    Staircase,
)

PROBABILITIES = [0.3, 0.5, 0.75, 0.95, 0.999, 1 - 1e-9]


@pytest.mark.parametrize("probability", PROBABILITIES)
@pytest.mark.parametrize("scale", [0.7, 3.0, 250.0])
def test_quantiles_of_continuous_noise(scale, probability):
    laws = [(Laplace(scale), stats.laplace(scale=scale)), (Gaussian(scale), stats.norm(0, scale))]
    for mechanism, law in laws:
        quantile = Quantile(probability).of(mechanism)
        assert quantile == pytest.approx(law.isf((1 - probability) / 2), rel=1e-9)
        assert quantile > law.isf((1 - probability) / 2)


@pytest.mark.parametrize("probability", PROBABILITIES)
@pytest.mark.parametrize("scale", [0.3, 0.9, 2.0, 7.3])
@pytest.mark.parametrize("family", [DiscreteLaplace, DiscreteGaussian])
def test_quantiles_of_noise_on_whole_numbers(family, scale, probability):
    mechanism, values = family(scale), np.arange(400)
    weights = np.exp(mechanism.terms(values, 0)) * np.where(values, 2, 1)
    beyond = weights[::-1].cumsum()[::-1] - weights  # P(|noise| > each value)
    exact = values[np.argmax(beyond <= 1 - probability)]
    quantile = Quantile(probability).of(mechanism)
    assert quantile >= exact
    # the Gaussian's is a bound: at most one more
    assert quantile - exact <= (family is DiscreteGaussian)


@pytest.mark.parametrize("probability", PROBABILITIES[:-1])
@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("upper", [0.1, 0.5, "best"])
def test_quantiles_of_a_staircase(upper, scale, probability):
    mechanism = Staircase(scale, upper=upper)
    quantile = Quantile(probability).of(mechanism)
    # the mass of each part of a stair, whose density is constant
    edges = np.arange(3000)[:, None] + [0.0, mechanism.drawn_upper]
    edges = np.unique(np.append(edges.ravel(), quantile / mechanism.drawn_stair))
    middles = (edges[1:] + edges[:-1]) / 2 * mechanism.drawn_stair
    masses = 2 * np.diff(edges) * mechanism.drawn_stair * np.exp(mechanism.terms(middles, 0.0))
    inside = masses[middles < quantile].sum()
    assert inside == pytest.approx(probability, abs=1e-9)
    assert inside >= probability


@pytest.mark.parametrize("probability", [0.2, 0.6, 0.95, 0.9999])
@pytest.mark.parametrize("candidates", [2, 7, 200])
@pytest.mark.parametrize("family", [Exponential, PermuteAndFlip])
def test_a_selection_keeps_to_its_gap_where_all_others_lie_just_beyond(
    family, candidates, probability
):
    mechanism = family(scale=3.0)
    gap = Selection(candidates, probability).of(mechanism)
    scores = np.full(candidates, -gap)
    scores[0] = 0.0
    right = math.exp(mechanism.log_probabilities(scores)[0])
    assert right >= probability
    assert right == pytest.approx(max(probability, 1 / candidates), rel=1e-6)


def test_each_statistic_has_the_largest_noise_of_its_error():
    found = least_epsilon([Statistic("count", 3.0), Statistic("sum", 3.0, 0.9)], 1e-6)
    for answer, statistic in zip(found.answers, found.statistics, strict=True):
        assert answer.error <= statistic.error
        wider = answer.mechanism.with_noise_factor(1.001)
        assert statistic.measure.of(wider) > statistic.error


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_other_choice_of_mechanisms_is_cheaper(delta):
    statistics = [
        Statistic("count", 6.0, count=5),
        Statistic("count", 2.0, 0.8),
        Statistic("sum", 4.0, sensitivity=0.5, count=12),
    ]
    found = least_epsilon(statistics, delta)
    requests = [statistic.requests() for statistic in statistics]
    assert [len(each) for each in requests] == [2, 2, 3]
    costs = [
        Tight().epsilon(Sequential([one.plan(one.settled) * one.count for one in choice]), delta)
        for choice in itertools.product(*requests)
    ]
    assert found.epsilon <= min(costs) * (1 + 2e-3)
    assert found.epsilon == Tight().epsilon(found.plan, delta)


def test_many_answers_take_gaussian_noise_and_few_take_laplace_noise():
    few = least_epsilon([Statistic("sum", 10.0)], 1e-6)
    many = least_epsilon([Statistic("sum", 10.0, count=200)], 1e-6)
    assert isinstance(few.answers[0].mechanism, Laplace | Staircase)
    assert isinstance(many.answers[0].mechanism, Gaussian)
    pure = least_epsilon([Statistic("sum", 10.0, count=200)], 0.0)
    assert pure.epsilon > 3 * many.epsilon


def test_equal_statistics_are_answered_alike():
    twice = [Statistic("count", 5.0, name="a"), Statistic("count", 5.0, name="b", count=3)]
    found = least_epsilon(twice, 1e-6)
    assert found.answers[0] == found.answers[1]
    assert found.epsilon == least_epsilon([Statistic("count", 5.0, count=4)], 1e-6).epsilon


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "median", "error": 1.0}, "kind"),
        ({"kind": "count", "error": 0.0}, "error"),
        ({"kind": "count", "error": math.nan}, "error"),
        ({"kind": "count", "error": 1.0, "probability": 1.0}, "probability"),
        ({"kind": "count", "error": 1.0, "probability": True}, "probability"),
        ({"kind": "count", "error": 1.0, "count": 0}, "count"),
        ({"kind": "count", "error": 1.0, "sensitivity": 0.5}, "sensitivity"),
        ({"kind": "count", "error": 1.0, "candidates": 5}, "candidates"),
        ({"kind": "count", "error": 1.0, "monotone": True}, "monotone"),
        ({"kind": "selection", "error": 1.0}, "candidates"),
        ({"kind": "sum", "error": 1.0, "name": "a\nb"}, "name"),
        ({"kind": "sum", "error": 1.0, "name": 3}, "name"),
    ],
)
def test_what_is_no_statistic_is_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        Statistic(**arguments)


def test_what_cannot_be_answered_is_refused():
    with pytest.raises(ParameterError, match="a mechanism can reach, for patients"):
        least_epsilon([Statistic("sum", 1e-200, sensitivity=1e200, name="patients")], 0.0)
    for wrong in (None, [], [1.0], Statistic("count", 1.0)):
        with pytest.raises(ParameterError, match="statistics"):
            least_epsilon(wrong, 0.0)
    with pytest.raises(ParameterError, match="delta"):
        least_epsilon([Statistic("count", 1.0)], 1.0)


WANTED = """delta = 1e-6

[[statistic]]
name = "visits"
kind = "count"
error = 20.0
count = 52

[[statistic]]
kind = "selection"
candidates = 30
monotone = true
error = 50.0
probability = 0.9
"""


def test_the_command_prints_a_plan_that_costs_what_it_says(tmp_path, capsys):
    wanted, plan = tmp_path / "wanted.toml", tmp_path / "plan.toml"
    wanted.write_text(WANTED)
    assert main(["least", str(wanted), "--out", str(plan), "--json", "-"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["statistics"][0]["mechanism"] == "DiscreteGaussian"
    assert Tight().epsilon(read_plan(plan), 1e-6) == facts["epsilon"]
    assert main(["plan", str(plan)]) == 0
    assert "fits the budget" in capsys.readouterr().out
    assert main(["least", str(wanted), "--out", str(plan)]) == 2
    assert "--force" in capsys.readouterr().err
    document = {"schema": 1, "statistic": [{"kind": "count", "error": 3.0}]}
    (tmp_path / "wanted.json").write_text(json.dumps(document))
    assert main(["least", str(tmp_path / "wanted.json")]) == 0
    assert "epsilon 0.831889236 at delta 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('"count"', '"median"', "line 5"),
        ("20.0", "-1", "line 6"),
        ("52", "1.5", "line 7"),
        ("candidates = 30", "", "line 9"),
        ("monotone = true", "weight = 1", "line 12"),
        ("delta = 1e-6", "delta = 1", "line 1"),
        ("delta = 1e-6", "epsilon = 1", "line 1"),
        ('name = "visits"', "name = 3", "line 4"),
        ('kind = "count"\n', "", "line 3"),
        ("[[statistic]]", "[[release]]", "line 1"),
    ],
)
def test_a_wrong_file_of_statistics_is_refused_with_its_line(old, new, place, tmp_path, capsys):
    path = tmp_path / "wanted.toml"
    path.write_text(WANTED.replace(old, new))
    assert main(["least", str(path)]) == 2
    error = capsys.readouterr().err
    assert place in error
    assert error.count("\n") == 1
