"""Fits that draw on a budget: charged whole before data are read, else refused, nothing spent."""

import gc
import pickle
import weakref
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline

from accountant import (
    ApproxLoss,
    Book,
    Budget,
    BudgetExceeded,
    Filter,
    LargeDeltaWarning,
    ParameterError,
    Tight,
)
from accountant.plans.plan import Repeat
from algorithms import (
    BoundsScaler,
    FrankWolfe,
    GaussianFrankWolfe,
    LabelIHT,
    LabelLasso,
    LabelPrivateClassifier,
    LabelSGD,
    LocalHistogram,
    LocalIHT,
    LocalMean,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogisticLasso,
    PrivateLogisticRegression,
    PrivateMean,
    PrivateSearchCV,
    PrivateSelection,
    SignVote,
    SparseERM,
    ThresholdedMean,
)
from algorithms.base import budgets
from algorithms.base.estimators import cloned
from algorithms.frank_wolfe.convex_sets import L2Ball
from algorithms.frank_wolfe.polytopes import Simplex
from tests.laws.test_fits import CASES

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (120, 3))
Y = X[:, 0]
CODES = (Y > 0).astype(int)
MACHINES = [X[i::12] for i in range(12)]
CLAIM = {"epsilon": 1.0, "delta": 1e-6}
FITS = {
    "PrivateLasso": (PrivateLasso(**CLAIM, rounds=3), (X, Y)),
    "PrivateLogisticLasso": (PrivateLogisticLasso(**CLAIM, rounds=3, classes=[0, 1]), (X, CODES)),
    "PrivateLinearRegression": (PrivateLinearRegression(**CLAIM, rounds=3), (X, Y)),
    "PrivateLogisticRegression": (
        PrivateLogisticRegression(**CLAIM, rounds=3, classes=[0, 1]),
        (X, CODES),
    ),
    "FrankWolfe": (FrankWolfe("squared", Simplex(), **CLAIM, rounds=3), (X, Y)),
    "GaussianFrankWolfe": (GaussianFrankWolfe("squared", L2Ball(1.0), **CLAIM, rounds=3), (X, Y)),
    "SparseERM": (SparseERM(**CLAIM, sparsity=1, rounds=2, classes=[0, 1]), (X, CODES)),
    "LocalIHT": (LocalIHT(epsilon=1.0, sparsity=1, noise_bound=0.1), (X, Y)),
    "LabelIHT": (LabelIHT(**CLAIM, sparsity=1, y_bound=1.0), (X, Y)),
    "LabelLasso": (LabelLasso(**CLAIM, y_bound=1.0, noise_bound=0.1), (X, Y)),
    "LabelSGD": (LabelSGD(epsilon=1.0, k=2, diameter=1.0), (X, CODES)),
    "LabelPrivateClassifier": (LabelPrivateClassifier(1.0, classes=[0, 1]), (X, CODES)),
    "SignVote": (SignVote(**CLAIM, k=1), (MACHINES,)),
    "ThresholdedMean": (ThresholdedMean(**CLAIM, sparsity=1, x_bound=1.0), (MACHINES,)),
    "LocalMean": (LocalMean(epsilon=1.0), (X,)),
    "LocalHistogram": (LocalHistogram(epsilon=1.0, k=2), (CODES,)),
    "PrivateMean": (PrivateMean(**CLAIM), (X,)),
    "PrivateSelection": (PrivateSelection(epsilon=1.0), (X,)),
}
LASSO = PrivateLasso(**CLAIM, rounds=3)


@pytest.mark.filterwarnings("ignore::accountant.errors.IdealisedNoiseWarning")
@pytest.mark.parametrize("name", FITS)
def test_every_fit_is_charged_once_and_refused_whole(name):
    made, data = clone(FITS[name][0]), FITS[name][1]
    with pytest.raises(BudgetExceeded, match="is left of the limit"):
        made.fit(*data, ledger=Budget(0.9, 1e-6))
    assert not hasattr(made, "ledger_")
    whole = Budget(1.000001, 1e-6)
    made.fit(*data, ledger=whole)
    assert hasattr(made, "ledger_")
    assert Tight().epsilon(made.plan_, 1e-6) <= whole.epsilon
    with pytest.raises(BudgetExceeded):  # clones spend it together
        clone(made).fit(*data, ledger=whole)
    plan = made.plan_
    with pytest.raises(BudgetExceeded):
        made.set_params(epsilon=0.5).fit(*data, ledger=whole)
    assert made.plan_ is plan  # a refused fit changes nothing that is said of the last one


class Charged(Exception):
    """A fit that was charged and would read its data now."""


def open_no_gate(*_, **__):
    raise Charged


@pytest.mark.filterwarnings("ignore::accountant.errors.IdealisedNoiseWarning")
@pytest.mark.parametrize("name", [name for name in CASES if "," not in name])
def test_every_fit_charges_whatever_it_is_given(name, monkeypatch, book):
    fits = CASES[name]
    made = cloned(fits.made)
    data = fits.data if isinstance(fits.data, tuple) else (fits.data,)
    data = data if fits.public is None else (fits.public, *data)
    users = len(data[0])
    book.dataset("rows", budget=Budget(1e-3, 1e-9), users=users, idealised=True)
    for short in (Budget(1e-3, 1e-9), Filter(np.zeros(users), Budget(1e-3, 1e-9)), (book, "rows")):
        with pytest.raises(BudgetExceeded):
            made.fit(*data, ledger=short)
    monkeypatch.setattr(budgets, "Ledger", open_no_gate)
    enough = Budget(made.epsilon * (1 + 1e-6), 1e-6)
    gate = Filter(np.zeros(users), enough)
    for ledger in (enough, gate):
        with pytest.raises(Charged):
            made.fit(*data, ledger=ledger)
    with pytest.raises(BudgetExceeded):
        made.fit(*data, ledger=enough)
    assert gate.spent > 0.9 * made.epsilon


def test_a_refused_fit_spends_nothing_of_a_filter():
    gate = Filter(X, Budget(1.0, 1e-6))
    with pytest.raises(BudgetExceeded):
        PrivateMean(epsilon=2.0, delta=1e-6).fit(X, ledger=gate)
    assert gate.spent == 0
    PrivateMean(epsilon=1.0, delta=1e-6).fit(X, ledger=gate)  # its exact epsilon fits
    assert gate.spent == pytest.approx(1.0, rel=1e-5)
    with pytest.raises(RuntimeError):
        gate.release(PrivateMean(epsilon=0.1).plan(X.shape), np.sum)


def test_fits_add_up_in_a_filter_and_other_units_are_refused():
    gate, labels = Filter(X, Budget(1.0, 1e-6)), Filter(X, Budget(1.0, 1e-6))
    for _ in range(2):
        PrivateMean(epsilon=0.25).fit(X, ledger=gate)
    assert gate.spent == pytest.approx(0.5)
    # labels stay labels, also where each user randomises one
    for noise in ("laplace", "bounded"):
        made = LabelIHT(epsilon=0.1, delta=0.0, randomizer=noise, sparsity=1, y_bound=1.0)
        with pytest.raises(ParameterError, match="label-replace and replace-one"):
            made.fit(X, Y, ledger=gate)
        made.fit(X, Y, ledger=labels)
    assert labels.spent == pytest.approx(0.2)
    with pytest.raises(ParameterError, match="label-replace and local-replace"):
        LocalMean(epsilon=0.1).fit(X, ledger=labels)
    with pytest.raises(ParameterError, match="it has 120 rows, and the fit 240"):
        PrivateMean(epsilon=0.1).fit(np.vstack([X, X]), ledger=gate)
    assert gate.spent == pytest.approx(0.5)


def test_the_relation_of_frank_wolfe_is_what_is_charged_and_said():
    made = PrivateLasso(**CLAIM, rounds=3, relation="add-remove", random_state=0)
    assert "one record more or less" in made.fit(X, Y).summary()
    gate = Filter(X, Budget(3.0, 1e-6))
    made.fit(X, Y, ledger=gate)
    with pytest.raises(ParameterError, match="add-remove and replace-one"):
        LASSO.fit(X, Y, ledger=gate)


@pytest.fixture
def book(tmp_path):
    opened = Book.create(f"sqlite:///{tmp_path / 'budgets.db'}")
    opened.dataset("visits", budget=Budget(2.0, 1e-6), idealised=True)
    yield opened
    opened.close()


@pytest.mark.filterwarnings("ignore::accountant.errors.IdealisedNoiseWarning")
def test_a_book_keeps_every_release_of_a_fit(book):
    made = clone(LASSO).fit(X, Y, ledger=book)
    lines = book.history("visits")
    # three vertices, and two selections of the constant
    assert [line.outcome for line in lines] == ["planned"] + ["answered"] * 5
    assert [book.answer(line) for line in lines[1:]] == [one.output for one in made.transcript_]
    assert {line.title for line in lines} == {f"fit of {type(LASSO).__name__}"}
    assert made.plan_ == made.plan(X.shape)
    spent = book.spent("visits")
    with pytest.raises(BudgetExceeded):
        PrivateMean(epsilon=2.0).fit(X, ledger=(book, "visits"))
    assert book.spent("visits") == spent
    PrivateMean(epsilon=0.25, random_state=3).fit(X, ledger=book)
    assert book.history("visits", last=1)[0].seeded
    with book.ledger("visits", X) as gate:
        PrivateMean(epsilon=0.1).fit(X, ledger=gate)
        assert book.spent("visits") == pytest.approx(spent + 0.35)
        with gate.answering("the mean of May"):
            PrivateMean(epsilon=0.1).fit(X, ledger=gate)
    titles = [line.title for line in book.history("visits", last=2)]
    assert titles == ["fit of PrivateMean", "the mean of May"]


def test_a_book_of_several_data_sets_wants_a_name(book):
    book.dataset("users", budget=Budget(1.0), users=120, idealised=True)
    with pytest.raises(ParameterError, match=r"\(book, name\)"):
        PrivateMean(epsilon=0.5).fit(X, ledger=book)
    LocalMean(epsilon=1.0, random_state=0).fit(X, ledger=(book, "users"))
    assert book.spent("users") == pytest.approx(1.0)
    assert book.spent("visits") == 0


@pytest.mark.parametrize("wrong", [1.0, "book", LASSO, (1, 2), (Budget(1.0), "name")])
def test_what_is_no_budget_is_refused(wrong):
    with pytest.raises(ParameterError, match=r"ledger must be a Budget, a Filter, a Book"):
        PrivateMean(epsilon=0.5).fit(X, ledger=wrong)


def said_by(work):
    """What a routine of scikit-learn says when every fit of it was refused."""
    with pytest.raises((ValueError, BudgetExceeded)) as refused:
        work()
    return str(refused.value)


@pytest.mark.filterwarnings("ignore::accountant.errors.IdealisedNoiseWarning")
def test_cross_validation_is_refused_with_the_sum_it_would_cost():
    folds = LASSO.plan((80, 3))
    for work, fits in [
        (lambda: cross_val_score(LASSO, X, Y, cv=3), 3),
        (lambda: cross_val_predict(LASSO, X, Y, cv=3), 3),
        (lambda: GridSearchCV(LASSO, {"radius": [1.0, 2.0]}, cv=3).fit(X, Y), 7),
        (lambda: cross_val_score(make_pipeline(BoundsScaler(-1, 1), LASSO), X, Y, cv=3), 3),
    ]:
        said, total = said_by(work), Tight().epsilon(Repeat(folds, fits), 1e-6)
        assert f"{fits} fits of PrivateLasso by" in said
        assert f"needs epsilon {total:.6g}" in said
        assert "PrivateSearchCV tunes for less" in said
        budget = budgets.shared_budget(folds, fits, total, 1e-6)
        assert f"give every fit ledger={budget} (params={{'ledger': ...}} of" in said
    for name in ("PrivateLinearRegression", "PrivateLogisticRegression"):
        model, data = FITS[name]
        said = said_by(lambda m=model, d=data: GridSearchCV(m, {"rounds": [2, 3]}, cv=3).fit(*d))
        assert f"7 fits of {name} by GridSearchCV cost that much" in said
    assert "two fits, and there may be more, of PrivateLasso by BaggingRegressor" in said_by(
        lambda: BaggingRegressor(LASSO, n_estimators=2).fit(X, Y)
    )


@pytest.mark.parametrize("name", ["PrivateLasso", "PrivateLinearRegression"])
def test_the_budget_that_a_refusal_names_pays_for_all_fits_and_no_more(name):
    plan, spending = FITS[name][0].plan((80, 3)), budgets.Spending()
    total = budgets.total_epsilon(plan, 7, 1e-6)
    budget = budgets.shared_budget(plan, 7, total, 1e-6)
    assert total < budget.epsilon < 1.1 * total
    for _ in range(7):
        spending.charge(budget, plan)
    with pytest.raises(BudgetExceeded):
        spending.charge(budget, plan)


def test_no_budget_pays_for_more_failures_than_its_delta():
    assert budgets.shared_budget(ApproxLoss(1.0, 1e-6), 3, np.inf, 2e-6) is None
    assert budgets.shared_budget(ApproxLoss(1.0, 1e-6), 3, 3.0, 2e-6) is None


@pytest.mark.filterwarnings("ignore::accountant.errors.IdealisedNoiseWarning")
def test_a_budget_that_covers_all_fits_lets_them_through():
    assert cross_val_score(LASSO, X, Y, cv=3, params={"ledger": Budget(3.0, 1e-6)}).size == 3
    search = GridSearchCV(clone(LASSO), {"radius": [1.0, 2.0]}, cv=2, error_score="raise")
    assert search.fit(X, Y, ledger=Budget(5.0, 1e-6)).best_estimator_.rounds_ == 3
    with pytest.raises(BudgetExceeded, match="is left of the limit"):
        search.fit(X, Y, ledger=Budget(2.0, 1e-6))
    for name in ("PrivateLinearRegression", "PrivateLogisticRegression"):
        model, data = FITS[name]
        search = GridSearchCV(clone(model), {"rounds": [2, 3]}, cv=2, error_score="raise")
        assert search.fit(*data, ledger=Budget(5.0, 1e-6)).best_params_["rounds"] > 1


@pytest.mark.filterwarnings("ignore::accountant.errors.IdealisedNoiseWarning")
@pytest.mark.parametrize("name", ["PrivateMean", "LabelIHT", "SignVote"])
def test_a_delta_above_one_over_n_is_warned_about_once(name):
    made, data = FITS[name]
    users = len(data[0])
    made = clone(made).set_params(delta=2 / users)
    with pytest.warns(LargeDeltaWarning, match=f"for {users} users") as seen:
        made.fit(*data)
    assert [Path(one.filename).name for one in seen] == ["test_budgets.py"]
    with pytest.warns(LargeDeltaWarning, match=f"delta 0.5 is above 1/n = .* for {users} users"):
        made.set_params(delta=1e-9).fit(*data, ledger=Budget(9.0, 0.5))
    # with a seed it is an experiment; and what has no noise has no delta
    made.set_params(delta=2 / users, random_state=0).fit(*data)


def test_a_search_warns_of_delta_once_and_its_fits_do_not():
    search = PrivateSearchCV(
        PrivateLasso(**CLAIM, rounds=3), {"radius": [1.0]}, epsilon=1.0, delta=0.1
    )
    with pytest.warns(LargeDeltaWarning, match="for 120 users") as seen:
        search.fit(X, Y)
    assert [warning.category for warning in seen].count(LargeDeltaWarning) == 1


def test_one_fit_of_a_clone_is_no_matter():
    clone(LASSO).fit(X, Y)
    TransformedTargetRegressor(LASSO).fit(X, Y)
    make_pipeline(BoundsScaler(-1, 1), LASSO).fit(X, Y)


@pytest.mark.filterwarnings("ignore::algorithms.base.non_private.NotPrivateWarning")
def test_fits_without_privacy_are_never_refused():
    free = PrivateLasso(epsilon=float("inf"), delta=1e-6, rounds=3, non_private=True)
    assert cross_val_score(free, X, Y, cv=2).size == 2


def test_a_copy_in_another_process_does_not_spend_a_budget_again():
    made = PrivateMean(epsilon=0.5)
    shared = made.spending()
    assert pickle.loads(pickle.dumps(made)).spending() is shared
    rebuild, (name, process) = shared.__reduce__()
    assert process == budgets.this_process()
    made._spending = rebuild(name + " unknown here", process + "1")  # as a worker unpickles it
    with pytest.raises(ParameterError, match="a Book, as this process does not see"):
        made.fit(X, ledger=Budget(1.0))


def test_a_pickled_estimator_remembers_what_it_spent_when_the_first_is_gone(monkeypatch):
    data, model = X, PrivateMean(epsilon=0.6)
    model.fit(data, ledger=Budget(1.0))
    stored = pickle.dumps(model)
    del model
    gc.collect()
    with pytest.raises(BudgetExceeded):
        pickle.loads(stored).fit(data, ledger=Budget(1.0))
    # in another process of the same number, as in a container that was started again
    monkeypatch.setattr(budgets, "IMPORTED", "another")
    monkeypatch.setattr(budgets.Spending, "_known", weakref.WeakValueDictionary())
    monkeypatch.setattr(budgets.Spending, "_pickled", {})
    with pytest.raises(ParameterError, match="does not see what clones in others spend"):
        pickle.loads(stored).fit(data, ledger=Budget(1.0))
