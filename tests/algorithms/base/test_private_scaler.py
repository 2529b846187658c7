"""PrivateScaler: scikit-learn's contract, what it says, and the budget that a pipeline shares."""

import math
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

from accountant import Budget, BudgetExceeded, Filter, ParameterError, Tight
from algorithms import BoundsScaler, PrivateLinearRegression, PrivateScaler, PrivateSearchCV
from tests.algorithms.scikit_learn_checks import passes_scikit_learn_checks

CLAIM = {"epsilon": 0.3, "delta": 1e-6}
X = np.random.default_rng(0).uniform(-1, 1, (6000, 3)) * [3e-4, 1.0, 2e5]
Y = X[:, 0] / 3e-4
SCALER = PrivateScaler(**CLAIM, random_state=0)
MODEL = PrivateLinearRegression(epsilon=0.5, delta=1e-6, rounds=5, random_state=0)
BUDGET = Budget(0.8, 1e-6)


def steps_of():
    """A pipeline of copies, whose spending is their own."""
    parts = {"scaler": SCALER, "model": MODEL}
    return Pipeline([(name, type(made)(**made.get_params())) for name, made in parts.items()])


def paid_by(scaler, model=None):
    """The arguments of a fit of the pipeline."""
    return {"scaler__ledger": scaler, "model__ledger": scaler if model is None else model}


@passes_scikit_learn_checks(PrivateScaler(epsilon=100.0, delta=1e-6, random_state=0))
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_columns_are_over_powers_of_two_and_come_back_exactly():
    made = SCALER.fit(X)
    scaled = made.transform(X)
    assert np.abs(scaled).max() <= 1.0
    assert (np.abs(scaled).max(axis=0) > 0.4).all()
    assert (np.log2(made.column_bounds_.scales) % 1 == 0).all()
    inside = (np.abs(X) <= made.column_bounds_.limits).all(axis=1)
    assert np.array_equal(made.inverse_transform(scaled)[inside], X[inside])
    assert np.array_equal(made.transform(sparse.csr_array(X)).toarray(), scaled)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_plan_is_what_a_fit_spends(relation):
    made = PrivateScaler(**CLAIM, relation=relation, random_state=0)
    plan = made.plan(X.shape)
    assert made.fit(X).plan_ == plan
    assert 0.999 * CLAIM["epsilon"] < Tight().epsilon(plan, CLAIM["delta"]) <= CLAIM["epsilon"]
    assert "(0.3, 1e-06)" in made.summary()
    assert f"{plan.scale:.4g} records" in made.summary()


def test_a_bound_for_each_column_is_kept_where_nothing_shows():
    made = PrivateScaler(**CLAIM, x_bound=[1.0, 5.0, 1e6], random_state=0).fit(np.zeros((50, 3)))
    assert made.column_bounds_.limits.tolist() == [1.0, 5.0, 1e6]
    assert made.column_bounds_.scales.tolist() == [1.0, 8.0, 2.0**20]


@pytest.mark.parametrize("bound", [0.0, -1.0, math.nan, math.inf, "wide", [1.0, 2.0], 1e301])
def test_bad_bounds_are_refused(bound):
    with pytest.raises(ParameterError, match="x_bound must be"):
        PrivateScaler(**CLAIM, x_bound=bound).plan(X.shape)


def test_missing_and_infinite_numbers_do_not_decide_whether_a_fit_is_refused():
    odd = X.copy()
    odd[0] = [math.nan, math.inf, -math.inf]
    made = SCALER.fit(odd)
    assert np.isfinite(made.transform(odd)).all()
    assert np.array_equal(made.column_bounds_.scales, SCALER.fit(X).column_bounds_.scales)


def test_a_pipeline_is_fitted_where_both_steps_draw_on_one_budget():
    model = steps_of()
    assert model.fit(X, Y, **paid_by(BUDGET)).score(X, Y) > 0.9
    # a second fit is beyond the budget, of the pipeline and of its last step alone
    for call in (
        lambda: model.fit(X, Y, **paid_by(BUDGET)),
        lambda: model[-1].fit(X, Y, ledger=BUDGET),
    ):
        with pytest.raises(BudgetExceeded):
            call()


def test_a_model_that_finds_its_bounds_may_stand_behind_it():
    model = steps_of()
    model.set_params(model__bounds="private")
    assert model.fit(X, Y, **paid_by(BUDGET)).score(X, Y) > 0.8
    with pytest.raises(ParameterError, match="PrivateScaler with the estimator's own ledger"):
        model.fit(X, Y, **paid_by(Budget(5.0, 1e-6), Budget(9.0, 1e-6)))


def test_a_search_behind_it_is_refused_before_it_spends():
    search = PrivateSearchCV(MODEL, {"ridge": [0.0]}, epsilon=0.5, delta=1e-6)
    scaler = steps_of()[0]
    with pytest.raises(ParameterError, match="with PrivateSearchCV behind PrivateScaler"):
        Pipeline([("scaler", scaler), ("model", search)]).fit(X, Y, **paid_by(BUDGET))
    assert scaler.set_params(epsilon=0.79).fit(X, ledger=BUDGET).summary()


def test_what_a_refused_fit_spent_on_scales_counts_for_the_model():
    model = steps_of()
    model.set_params(model__epsilon=0.79)
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            model.fit(X, Y, **paid_by(BUDGET))
    alone = steps_of()[-1].set_params(epsilon=0.79)
    assert alone.fit(X, Y, ledger=BUDGET).summary()
    with pytest.raises(BudgetExceeded):
        model[-1].fit(X, Y, ledger=BUDGET)


def test_a_fit_that_one_of_two_refuses_spends_nothing_of_the_other():
    model = steps_of()
    model.set_params(scaler__epsilon=0.6)
    model[0].fit(X, ledger=BUDGET)
    with pytest.raises(BudgetExceeded):
        model.fit(X, Y, **paid_by(BUDGET))
    assert model[-1].set_params(epsilon=0.79).fit(X, Y, ledger=BUDGET).summary()


@pytest.mark.parametrize(
    ("wrapped", "routed"),
    [
        (make_pipeline, "privatelinearregression__ledger"),
        (TransformedTargetRegressor, "ledger"),
        (lambda model: GridSearchCV(model, {"ridge": [0.0]}, cv=2), "ledger"),
    ],
)
def test_a_model_inside_of_the_last_step_is_refused_before_anything_is_spent(wrapped, routed):
    scaler, model = (step for _, step in steps_of().steps)
    nested = Pipeline([("scaler", scaler), ("outer", wrapped(model))])
    with pytest.raises(ParameterError, match="a private model is not itself the last step"):
        nested.fit(X, Y, **{"scaler__ledger": BUDGET, f"outer__{routed}": BUDGET})
    assert scaler.set_params(epsilon=0.79).fit(X, ledger=BUDGET).summary()


@pytest.mark.parametrize(
    "payment",
    [{}, {"model__ledger": BUDGET}, {"scaler__ledger": BUDGET}, paid_by(BUDGET, Budget(9.0, 1e-6))],
)
def test_a_scaler_that_another_budget_paid_is_refused(payment):
    with pytest.raises(ParameterError, match="PrivateScaler with the estimator's own ledger"):
        steps_of().fit(X, Y, **payment)


def test_a_filter_adds_up_both_steps():
    spent = Filter(X, Budget(2.0, 1e-6))
    steps_of().fit(X, Y, **paid_by(spent))
    alone = Filter(X, Budget(2.0, 1e-6))
    steps_of()[-1].fit(X, Y, ledger=alone)
    assert spent.spent > alone.spent > 0


def test_searches_of_scikit_learn_charge_every_fit():
    many = Budget(3.0, 1e-6)
    assert cross_val_score(steps_of(), X, Y, cv=2, params=paid_by(many)).min() > 0.8
    search = GridSearchCV(steps_of(), {"model__ridge": [0.0, 0.1]}, cv=2)
    assert search.fit(X, Y, **paid_by(many)).best_score_ > 0.8
    with pytest.raises(BudgetExceeded):
        cross_val_score(steps_of(), X, Y, cv=2, params=paid_by(BUDGET), error_score="raise")


def test_other_scalers_may_stand_before_it():
    model = make_pipeline(BoundsScaler(-1e9, 1e9), SCALER, MODEL)
    payment = {"privatescaler__ledger": BUDGET, "privatelinearregression__ledger": BUDGET}
    assert model.fit(X, Y, **payment).predict(X).shape == (6000,)


@pytest.mark.slow
def test_a_search_tunes_an_estimator_with_private_bounds():
    made = PrivateLinearRegression(epsilon=1.0, delta=1e-6, bounds="private", x_bound=1e9, rounds=5)
    search = PrivateSearchCV(made, {"ridge": [0.0, 1e-3]}, epsilon=2.0, delta=1e-6, random_state=0)
    assert search.fit(X, Y).score(X, Y) > 0.9


def test_a_pickle_holds_neither_data_nor_budget():
    made = pickle.loads(pickle.dumps(PrivateScaler(**CLAIM, random_state=0).fit(X, ledger=BUDGET)))
    assert not {"ledger_", "_payer"} & set(vars(made))
    assert np.array_equal(made.transform(X), SCALER.fit(X).transform(X))
