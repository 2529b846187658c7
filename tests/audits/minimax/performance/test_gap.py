"""How far algorithms are from bounds: losses, promises, and honest risks above every bound."""

import math
import statistics

import numpy as np
import pytest
from scipy.optimize import minimize

import algorithms
from accountant import ParameterError
from audits.minimax.families.bernoulli_products import BernoulliProducts
from audits.minimax.families.fingerprints import append_ridge
from audits.minimax.performance import algorithm_losses as losses
from audits.minimax.performance.algorithm_table import ALGORITHM_TABLE, AlgorithmEntry
from audits.minimax.performance.gap import RiskGap, measure_risk_gap
from audits.minimax.problems import PROBLEMS, lower_bound

every_match = pytest.mark.parametrize(
    "match", ALGORITHM_TABLE, ids=[f"{one.problem}, {one.algorithm}" for one in ALGORITHM_TABLE]
)
SMALLER = {"central_regression": {"n": 500}, "label_optimisation": {"n": 500}}
RUNS = 8


def setting_of(match):
    return match.setting | SMALLER.get(match.problem, {})


def test_every_problem_has_an_algorithm():
    assert {one.problem for one in ALGORITHM_TABLE} == set(PROBLEMS)


@every_match
def test_risk_bound_and_promise_are_in_their_order(match):
    found = measure_risk_gap(match, setting_of(match), RUNS, 1)
    (risk, error), (free, _) = found.risk, found.noiseless_risk
    assert free >= 0
    assert math.isfinite(risk)
    # six errors of a mean below the bound would be a miracle
    assert risk + 6 * error >= found.bound.value > 0
    assert found.ratio == risk / found.bound.value
    if found.theorem_bound is not None:
        # proofs are of the expectation, or of all but 4 / p: some slack for few runs
        assert risk - 6 * error <= found.theorem_bound
        assert found.theorem_bound > found.bound.value


@pytest.mark.slow
@every_match
def test_no_honest_algorithm_is_below_its_bound_in_random_settings(match):
    """20 settings for each of the algorithms, 280 in all; 30 runs each."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        setting = dict(setting_of(match))
        if "epsilon" in setting:
            setting["epsilon"] = float(np.exp(rng.uniform(-1.5, 1.5)))
        if "rho" in setting:
            setting["rho"] = float(np.exp(rng.uniform(-4, 0)))
        if match.problem == "private_lasso":
            setting["n"] = setting["p"] + int(rng.integers(4, 60))
        else:
            setting["n"] = int(np.exp(rng.uniform(math.log(100), math.log(3_000))))
        found = measure_risk_gap(match, setting, 30, int(rng.integers(2**32)))
        risk, error = found.risk
        assert risk + 6 * error >= found.bound.value, setting


def test_same_data_with_and_without_noise():
    match = next(one for one in ALGORITHM_TABLE if one.algorithm == "LocalHistogram")
    one, two = (measure_risk_gap(match, match.setting, 3, 5) for _ in range(2))
    assert one.losses == two.losses
    assert one.noiseless_losses == two.noiseless_losses
    assert max(one.noiseless_losses) < min(one.losses)


def test_the_losses_are_those_of_the_seed():
    def loss(setting, bound, rng, noise):
        assert bound == lower_bound("private_mean", **setting)
        return float(rng.random() + 10 * noise)

    setting = {"n": 200, "dimension": 3, "epsilon": 0.5}
    entry = AlgorithmEntry("private_mean", "a draw", loss, lambda given, _: given["n"] / 4)
    gaps = [measure_risk_gap(entry, setting, 5, seed) for seed in (1, 1, 2)]
    gaps.append(measure_risk_gap(entry, setting, 5, np.random.default_rng(1)))
    first = gaps[0]
    assert first == gaps[1] == gaps[3] != gaps[2]
    assert (first.algorithm, first.setting, first.theorem_bound) == ("a draw", setting, 50.0)
    assert len(set(first.losses)) == 5
    assert [value - 10 for value in first.losses] == pytest.approx(first.noiseless_losses)
    error = statistics.stdev(first.losses) / math.sqrt(5)
    mean = statistics.fmean(first.losses)
    assert first.risk == pytest.approx((mean, error))
    assert first.noiseless_risk == pytest.approx((mean - 10, error))
    assert 0 < first.bound.value < 1
    assert first.ratio == first.risk[0] / first.bound.value
    assert math.isnan(measure_risk_gap(entry, setting, 1, 1).risk[1])
    with pytest.raises(ParameterError, match="runs must be"):
        measure_risk_gap(entry, setting, 0)


def test_uniform_points_of_any_number():
    rng = np.random.default_rng(0)
    drawn = [losses.uniform_index(3, rng) for _ in range(3_000)]
    # each of 3 a thousand times, deviation 26; 150 off has probability below 1e-7
    assert all(abs(drawn.count(i) - 1_000) < 150 for i in range(3))
    big = [losses.uniform_index(2**200, rng) for _ in range(100)]
    assert max(big) > 2**190
    assert len(set(big)) == 100


def test_the_nearest_point_of_the_l1_ball():
    rng = np.random.default_rng(1)
    for _ in range(20):
        vector = rng.normal(size=6) * rng.uniform(0.1, 2)
        near = losses.project_to_l1_ball(vector)
        assert np.abs(near).sum() <= 1 + 1e-12
        # no other point of the ball is nearer: <v - near, z - near> <= 0 at all vertices
        for vertex in np.vstack([np.eye(6), -np.eye(6)]):
            assert (vector - near) @ (vertex - near) <= 1e-12


def test_the_least_loss_of_the_ridge_by_another_road():
    rng, p = np.random.default_rng(2), 16
    family = BernoulliProducts(p)
    rows = family.sample(family.means(rng), 5, rng)
    x, y = append_ridge(rows)

    def risk(halves):
        theta = halves[:p] - halves[p:]
        return np.square(x @ theta - y).sum()

    inside = {"type": "ineq", "fun": lambda halves: 1 - halves.sum()}
    start = np.full(2 * p, 1e-3)
    found = minimize(risk, start, bounds=[(0, 1)] * (2 * p), constraints=inside, method="SLSQP")
    assert losses.least_ridge_loss(rows) == pytest.approx(found.fun, rel=1e-5)
    theta = rng.normal(size=p)
    assert losses.ridge_loss(rows, theta) == pytest.approx(np.square(x @ theta - y).sum())


def test_notions_of_local_privacy_are_met():
    # pure epsilon costs rho = epsilon^2 / 2, and chi-squared 4 sinh^2(epsilon / 2)
    assert losses.as_pure_epsilon({"rho": 0.5}) == pytest.approx(1.0)
    epsilon = losses.chi_squared_epsilon({"epsilon": 0.7})
    keep = 1 / (1 + math.exp(-epsilon))
    assert keep**2 / (1 - keep) + (1 - keep) ** 2 / keep - 1 == pytest.approx(0.7**2)


def test_a_bound_of_nothing_gives_no_ratio():
    bound = lower_bound("private_lasso", n=20, p=2, epsilon=50.0)
    assert bound.value == 0
    assert RiskGap("x", {}, bound, (1.0, 2.0), (0.0, 0.0), None).ratio == math.inf


def test_the_table_names_public_algorithms():
    for entry in ALGORITHM_TABLE:
        assert hasattr(algorithms, entry.algorithm.split(",")[0]), entry.algorithm
