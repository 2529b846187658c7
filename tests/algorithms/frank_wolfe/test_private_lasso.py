"""PrivateLasso: plan without data, enforced bounds, one pass a round, and scikit-learn's habits."""

import copy
import math
import pickle
import re
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq

from accountant import ZCDP, Budget, BudgetExceeded, Chunks, OffPlan, ParameterError, Repeat
from algorithms import PrivateLasso, PrivateLinearRegression, PrivateLogisticLasso
from algorithms.base.exact_minimum import project_to_l1_ball
from algorithms.base.glm_losses import LOGISTIC, SQUARED
from algorithms.base.row_blocks import clipped_rows
from algorithms.base.signal import NoSignalWarning
from algorithms.frank_wolfe.constant_scores import ConstantScores
from algorithms.frank_wolfe.constants import Bounds, optimal_rounds
from algorithms.frank_wolfe.dense_scores import DenseScores
from audits import privacy_losses, replay
from tests.algorithms.scikit_learn_checks import passes_scikit_learn_checks
from tests.laws.exact_fits import lasso_in_a_ball

RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, (500, 6))
Y = np.clip(X @ [0.6, -0.3, 0, 0, 0, 0] + 0.05 * RNG.normal(size=500), -1, 1)
THETA = np.array([0.6, -0.3, 0.1])


@passes_scikit_learn_checks(PrivateLasso(1.0, 1e-6, rounds=5, random_state=0))
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_noise_is_of_the_operating_system_unless_a_seed_is_given():
    fits = [PrivateLasso(1.0, 1e-6, rounds=2, random_state=state).fit(X, Y) for state in (None, 3)]
    marks = [{entry.seeded for entry in fit.transcript_} for fit in fits]
    assert marks == [{False}, {True}]


@pytest.mark.parametrize("selection", ["gumbel", "laplace"])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (5.0, 1e-3)])
def test_the_plan_meets_the_budget_and_wastes_none(selection, relation, epsilon, delta):
    lasso = PrivateLasso(epsilon, delta, rounds=49, selection=selection, relation=relation)
    plan = lasso.plan((1000, 20))
    assert isinstance(plan, Repeat)
    assert plan.count == 51  # two selections are of the constant
    assert lasso.set_params(fit_intercept=False).plan((1000, 20)).count == 49
    assert plan.part.noise == selection
    spent = Budget(epsilon, delta).check(plan)
    assert spent >= 0.99 * epsilon
    with pytest.raises(BudgetExceeded):
        Budget(0.98 * epsilon, delta).check(plan)


def test_sensitivity_is_the_bound_of_the_gradient():
    # methods 7.1, 7.2: L1 = 4 on unit bounds; 2 L1 / n under replace-one, half of it add-remove
    assert PrivateLasso(1.0, 1e-6, rounds=5).plan((100, 3)).part.sensitivity == 8 / 100
    halved = PrivateLasso(1.0, 1e-6, rounds=5, relation="add-remove").plan((100, 3))
    assert halved.part.sensitivity == 4 / 100
    wide = PrivateLasso(1.0, 1e-6, rounds=5, radius=3.0, x_bound=2.0, y_bound=5.0)
    assert wide.plan((100, 3)).part.sensitivity == 2 * 3 * 2 * 2 * (3 * 2 + 5) / 100


@pytest.mark.parametrize("weighted", [False, True])
def test_no_record_moves_a_score_by_more_than_declared(weighted):
    rng = np.random.default_rng(3)
    bounds = Bounds(1.5, 1.0, 1.0, 2.0)
    declared = bounds.score_sensitivity(20, "replace")
    greatest = 0.0
    for _ in range(300):
        x, y = rng.choice([-1.0, 1.0], (20, 3)), rng.choice([-1.0, 1.0], 20)
        other_x, other_y = x.copy(), y.copy()
        other_x[0], other_y[0] = 1e6 * rng.normal(size=3), 1e6 * rng.normal()  # clipped
        queries = DenseScores(bounds), DenseScores(bounds)
        weights = rng.uniform(0.0, 3.0, 20)
        others = np.append(rng.uniform(-9.0, 9.0), weights[1:])
        pair = ((x, y, weights), (other_x, other_y, others)) if weighted else (
            (x, y), (other_x, other_y))  # fmt: skip
        for t in range(1, 6):
            one, two = queries[0](pair[0]), queries[1](pair[1])
            greatest = max(greatest, np.abs(one - two).max())
            step = 2 / (t + 2)
            feature, vertex = int(rng.integers(3)), 1.5 * rng.choice([-1, 1])
            for query in queries:
                query.move(step, feature, vertex)
    assert 0.5 * declared < greatest <= declared * (1 + 1e-12)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=["squared", "logistic"])
def test_no_record_moves_the_score_of_a_constant_by_more_than_declared(loss, weighted, relation):
    rng, declared, greatest = np.random.default_rng(4), 0.01, 0.0
    query = ConstantScores(Bounds(1.0, 1.0, 1.0, 2.0), loss, THETA, 1.0, relation, declared)
    for _ in range(200):
        x, y, weights = rng.choice([-1.0, 1.0], (9, 3)), rng.choice([-1.0, 1.0], 9), np.ones(9)
        y[0], weights[0] = np.sign(-x[0] @ THETA), 9.0
        other_x, other_y, others = x.copy(), y.copy(), weights.copy()
        other_x[0] *= 0.0 if relation == "add-remove" else -1e6  # what is removed adds nothing
        other_y[0] *= 0.0 if relation == "add-remove" else rng.choice([-1e6, 1e6])
        others[0] = 0.0 if relation == "add-remove" else rng.choice([-1.0, 1.0, 1e9])
        arrays = 3 if weighted else 2
        moved = query((x, y, weights)[:arrays]) - query((other_x, other_y, others)[:arrays])
        greatest = max(greatest, np.abs(moved).max())
    assert 0.9 * declared < greatest <= declared


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=["squared", "logistic"])
def test_the_score_of_a_constant_is_the_mean_slope_there(loss, weighted):
    x, y, weights = X[:, :3], np.where(Y > 0, 1.0, -1.0), np.linspace(-1.0, 3.0, 500)
    query = ConstantScores(Bounds(1.0, 1.0, 1.0, 2.0), loss, THETA, 1.0, "replace", 0.01)
    shares = np.clip(weights, 0, 2) / 2 if weighted else np.ones(500)
    slopes = [shares @ loss.slope(x @ THETA + constant, y) / 500 for constant in query.candidates]
    scores = query((x, y, weights)[: 2 + weighted])
    slopes = np.abs(slopes) / (2 if loss is SQUARED else 1)  # whose slope is twice the residual
    moved = 4.0 if loss is SQUARED else 1 + math.tanh(0.5)
    assert scores == pytest.approx(-0.01 * 500 / moved * slopes, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("weights", [(), (np.linspace(-1.0, 3.0, 500),)], ids=["equal", "weighted"])
def test_scores_are_the_gradient_at_theta(weights):
    bounds, theta = Bounds(2.0, 1.0, 1.0, 2.0), np.zeros(6)
    query, shares = DenseScores(bounds), np.clip(weights[0], 0, 2) / 2 if weights else np.ones(500)
    for t, (feature, vertex) in enumerate([(1, 2.0), (4, -2.0), (1, -2.0)], start=1):
        gradient = 2 * X.T @ (shares * (X @ theta - Y)) / len(Y)
        assert query((X, Y, *weights)) == pytest.approx(2.0 * np.concatenate([gradient, -gradient]))
        step = 2 / (t + 2)
        theta *= 1 - step
        theta[feature] += step * vertex
        query.move(step, feature, vertex)


def test_the_data_are_not_touched():
    x, y = 3 * X, 3 * Y
    before = x.copy(), y.copy()
    PrivateLasso(1.0, 1e-6, rounds=5, random_state=0).fit(x, y)
    assert np.array_equal(x, before[0])
    assert np.array_equal(y, before[1])


def test_without_noise_worth_mentioning_it_is_frank_wolfe():
    lasso = PrivateLasso(1e7, 1e-6, rounds=400, random_state=0).fit(X, Y)
    assert lasso.coef_ == pytest.approx([0.6, -0.3, 0, 0, 0, 0], abs=0.06)
    assert np.abs(lasso.coef_).sum() <= 1 + 1e-12
    assert lasso.score(X, Y) > 0.9


def test_best_rounds_is_the_paper_formula():
    # T* = (2 n sqrt(2 rho) / H_2p)^(2/3) for Laplace on unit bounds
    n, p, bounds = 10_000, 50, Bounds(1.0, 1.0, 1.0)
    rho = brentq(lambda rho: ZCDP().epsilon(_rho(rho), 1e-6) - 1.0, 1e-3, 1.0, rtol=1e-6)
    harmonic = sum(1 / k for k in range(1, 2 * p + 1))
    expected = (2 * n * math.sqrt(2 * rho) / harmonic) ** (2 / 3)
    sensitivity = bounds.score_sensitivity(n, "replace")
    rounds = optimal_rounds(bounds.curvature(), sensitivity, 2 * p, "laplace", 1.0, 1e-6)
    assert rounds == pytest.approx(expected, rel=5e-3)
    lasso = PrivateLasso(1.0, 1e-6, selection="laplace", fit_intercept=False)
    assert (
        lasso.plan((n, p)).count == lasso.best_rounds((n, p)) == pytest.approx(expected, rel=5e-3)
    )


def _rho(rho):
    from accountant import ZCDPLoss

    return ZCDPLoss(rho)


def test_the_plan_is_what_the_ledger_spent():
    lasso = PrivateLasso(1.0, 1e-6, rounds=7, random_state=1).fit(X, Y)
    assert [entry.mechanism for entry in lasso.transcript_] == list(lasso.plan_.leaves())
    assert lasso.ledger_.next is None
    assert lasso.rounds_ == 7
    with pytest.raises(OffPlan):
        lasso.ledger_.release(lasso.plan_.part, lambda data: np.zeros(12), shape=12)


def test_seeds_repeat_and_their_absence_does_not():
    fits = [PrivateLasso(1.0, 1e-6, rounds=20, random_state=s).fit(X, Y).coef_
            for s in (3, 3, np.random.default_rng(3), None, None)]  # fmt: skip
    assert np.array_equal(fits[0], fits[1])
    assert np.array_equal(fits[0], fits[2])
    assert not np.array_equal(fits[3], fits[4])


NEIGHBOUR = X.copy(), Y.copy()
NEIGHBOUR[0][0], NEIGHBOUR[1][0] = 1.0, -1.0


@pytest.mark.parametrize("selection", ["gumbel", "laplace"])
def test_replay_finds_no_leak_and_losses_stay_below_the_curve(selection):
    lasso = PrivateLasso(2.0, 1e-6, rounds=10, selection=selection)
    found = replay(lasso, (X, Y), NEIGHBOUR, rng=4)
    assert found.leak_free
    assert found.on_plan
    assert found.deterministic
    losses = privacy_losses(lasso, (X, Y), NEIGHBOUR, 50, rng=5)
    assert losses.shape == (50,)
    assert np.abs(losses).max() <= 10 * lasso.plan(X.shape).part.loss.pure
    assert np.std(losses) > 0


BAD = {
    "epsilon": [float("nan"), float("inf"), 0, -1.0, True, "1", None],
    "delta": [float("nan"), -1e-9, 1.0, True, "0"],
    "radius": [0, float("inf"), None],
    "rounds": [0, -1, 1.5, True, "5", float("nan")],
    "selection": ["argmax", None, 1],
    "x_bound": [0, float("nan"), True],
    "y_bound": [-1, "1"],
    "relation": ["label-replace", "any", "", None, 1],
    "random_state": [True, -1, 1.5, "seed"],
}


@pytest.mark.parametrize(
    ("name", "bad"), [(name, bad) for name, values in BAD.items() for bad in values]
)
def test_nonsense_is_refused_before_anything_is_spent(name, bad):
    arguments = {"epsilon": 1.0, "delta": 1e-6, "rounds": 5, name: bad}
    lasso = PrivateLasso(**arguments)
    with pytest.raises(ParameterError, match="must be") as caught:
        lasso.fit(X, Y)
    assert name in str(caught.value)
    assert not hasattr(lasso, "ledger_")


@pytest.mark.parametrize(
    ("x", "y"),
    [(X[:0], Y[:0]), (X, Y[:-1]), (X, np.array(["secret"] * 500)), (X.astype(str) + "secret", Y),
     (X + 1j, Y), (X, Y * 1j), ([[1.0], [1.0, 2.0]], [1.0, 2.0]), (X[:, 0], Y), (X[:, :0], Y)],
)  # fmt: skip
def test_data_that_are_none_are_refused_before_anything_is_spent(x, y):
    lasso = PrivateLasso(1.0, 1e-6, rounds=5)
    with pytest.raises(ParameterError, match="X, y must be") as caught:
        lasso.fit(x, y)
    words = str(caught.value)
    assert "\n" not in words
    assert "secret" not in words
    assert not re.search(r"0\.\d{3}", words)  # no number out of the data
    assert not hasattr(lasso, "ledger_")


@pytest.mark.parametrize(
    ("x", "y"),
    [(X * np.nan, Y), (np.where(X > 0.9, np.inf, X), Y), (X, Y * np.nan), (X, -np.inf * Y)],
)  # fmt: skip
def test_numbers_that_are_missing_or_infinite_refuse_no_fit(x, y):
    """A refusal would say that such a record is there."""
    with np.errstate(invalid="ignore"):
        lasso = PrivateLasso(1.0, 1e-6, rounds=5).fit(x, y)
    assert np.isfinite(lasso.coef_).all()


def test_pure_privacy_shares_epsilon():
    assert PrivateLasso(1.0, 0.0, rounds=5).plan((100, 3)).part.loss.pure <= 0.2
    for n in (1000, 100_000):
        lasso = PrivateLasso(1.0, 0.0, fit_intercept=False)
        plan = lasso.plan((n, 20))
        assert Budget(1.0).check(plan) >= 0.99

        # no other number of rounds has a smaller bound 2 Gamma / T + scale ln(2p)
        def bound(rounds, n=n, lasso=lasso):
            bare = lasso.set_params(rounds=rounds)
            scale = bare.plan((n, 20)).part.scale
            return 16 / rounds + scale * math.log(40)

        assert all(bound(plan.count) <= bound(t) * (1 + 1e-9)
                   for t in (plan.count - 1, plan.count + 1) if t > 0)  # fmt: skip


def test_a_shape_that_is_none_is_refused():
    for shape in ((100,), (0, 3), (100, 3, 1), (1.5, 2), None, 200):
        with pytest.raises(ParameterError, match="shape must be"):
            PrivateLasso(1.0, 1e-6).plan(shape)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_ledger_is_not_copied_but_a_fit_is(duplicate):
    lasso = PrivateLasso(1.0, 1e-6, rounds=3, random_state=0).fit(X, Y)
    with pytest.raises(TypeError, match="a ledger cannot be copied"):
        duplicate(lasso.ledger_)
    twin = pickle.loads(pickle.dumps(lasso))
    assert np.array_equal(twin.predict(X), lasso.predict(X))
    assert len(twin.transcript_) == 5  # two of the constant


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(7,), (1, 5), (3000, 1500), (5, 1_000_000)])
def test_clipping_in_blocks_is_clipping(shape, order):
    array = np.asarray(RNG.normal(size=shape), order=order)
    array.flat[0] = 3.0
    found = clipped_rows(array, 1.0)
    assert np.array_equal(found, np.clip(array, -1.0, 1.0))
    assert found.flags.f_contiguous == array.flags.f_contiguous
    assert clipped_rows(found, 1.0) is found


SIGNS = np.where(np.arange(64) % 2, 1.0, -1.0)


@pytest.mark.parametrize(
    "kind", [PrivateLasso, partial(PrivateLogisticLasso, classes=[-1, 1])]
)  # fmt: skip
def test_the_lasso_streams_from_other_processes(kind):
    x = np.random.default_rng(0).uniform(-1, 1, (64, 4))
    pieces = Chunks(lambda: iter([(x[:30], SIGNS[:30]), (x[30:], SIGNS[30:])]), x.shape)
    made = kind(1.0, 1e-5, rounds=2, random_state=0)
    expected = made.fit(pieces).coef_.tobytes()
    with ProcessPoolExecutor(1) as pool:
        assert made.fit(pieces, executor=pool).coef_.tobytes() == expected


def test_the_descent_of_linear_regression_ends_at_the_nearest_point_of_the_ball():
    rng = np.random.default_rng(4)
    z = rng.normal(size=(20_000, 5))
    z[:, 1] = 0.9 * z[:, 0] + 0.4 * z[:, 1]  # collinear: the nearest is another than in lengths
    x = np.clip(z / 4, -1, 1)
    y = np.clip(x @ [0.8, -0.3, 0.2, 0.0, 0.0] + 0.1 + 0.05 * rng.normal(size=20_000), -1, 1)
    claim = {"epsilon": 50.0, "delta": 1e-6, "method": "descent", "random_state": 0}
    lasso = PrivateLasso(**claim, radius=0.5).fit(x, y)
    model = PrivateLinearRegression(**claim).fit(x, y)
    assert lasso.plan_ == model.plan_
    assert lasso.transcript_[-1].output == pytest.approx(model.transcript_[-1].output)
    assert np.abs(lasso.coef_).sum() == pytest.approx(0.5)
    _, exact = lasso_in_a_ball(x, y, 0.5)
    assert np.append(lasso.coef_, lasso.intercept_) == pytest.approx(exact, abs=0.01)
    assert np.array_equal(PrivateLasso(**claim).fit(x, y).coef_, model.coef_)
    bare = {"fit_intercept": False}
    for kind in (PrivateLasso, PrivateLogisticLasso):
        classes = {} if kind is PrivateLasso else {"classes": [-1, 1]}
        made = kind(**claim, **bare, **classes, radius=0.3).fit(x, np.where(y > 0, 1, -1))
        assert np.abs(made.coef_).sum() == pytest.approx(0.3)
        assert made.intercept_ == 0


def test_a_descent_without_products_ends_at_the_nearest_point_in_lengths():
    rows = RNG.uniform(-1, 1, (60, 40))
    claim = {"epsilon": 1.0, "delta": 1e-6, "method": "descent", "random_state": 0}
    with pytest.warns(NoSignalWarning, match="PrivateLasso"):
        lasso = PrivateLasso(**claim, radius=1e-3).fit(rows, rows[:, 0])
    with pytest.warns(NoSignalWarning):
        model = PrivateLinearRegression(**claim).fit(rows, rows[:, 0])
    assert len(list(lasso.plan_.leaves())) == len(list(model.plan_.leaves()))
    assert lasso.coef_ == pytest.approx(project_to_l1_ball(model.coef_, 1e-3))
