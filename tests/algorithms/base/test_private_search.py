"""Private tuning: within its budget, of random length, and nothing shown but the best fit."""

import collections
import pickle
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from accountant import (
    Budget,
    BudgetExceeded,
    Filter,
    GeometricTries,
    LogarithmicTries,
    NegativeBinomialTries,
    OffPlan,
    ParameterError,
    PoissonTries,
    PureLoss,
    Repeated,
    Tight,
)
from accountant.formatting import format_guarantee, short_upper
from algorithms import (
    LabelIHT,
    LocalMean,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogisticLasso,
    PrivateLogisticRegression,
    PrivateSearchCV,
)
from algorithms.base.private_search import SearchPlan, draw_tries
from tests.algorithms.scikit_learn_checks import passes_scikit_learn_checks

pytestmark = pytest.mark.filterwarnings("ignore::accountant.errors.IdealisedNoiseWarning")
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (3000, 4))
Y = X[:, 0]
LASSO = PrivateLasso(1.0, 1e-6, rounds=5)
PURE = PrivateLasso(1.0, 0.0, rounds=5)
RADII = {"radius": [0.05, 1.0]}


def made(**settings):
    whole = {"epsilon": 3.0, "delta": 1e-6, "random_state": 0} | settings
    return PrivateSearchCV(LASSO, RADII, **whole)


@passes_scikit_learn_checks(
    PrivateSearchCV(
        PrivateLogisticLasso(1.0, 0.0, rounds=2, classes=[0, 1]), RADII, epsilon=3.0,
        tries=GeometricTries(0.9), random_state=0,
    )
)  # fmt: skip
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("prediction", [np.nan, np.inf, 7.0])
def test_a_wild_prediction_moves_the_mean_score_by_no_more_than_one_record_may(prediction):
    # features near the largest float give inf - inf; the laplace noise takes no NaN
    class Predicts:
        def predict(self, features):
            return np.where(features[:, 0] > 0.99, prediction, features[:, 0])

    features = np.linspace(0, 1, 10)[:, None]
    assert made()._mean_score(Predicts(), None, features, features[:, 0]) == pytest.approx(0.9)


@pytest.mark.parametrize("state", [None, 0])
def test_the_tags_are_those_of_the_estimator_that_is_tuned(state):
    kinds = (
        LASSO,
        PrivateLogisticLasso(1.0, 0.0, classes=[0, 1]),
        PrivateLinearRegression(epsilon=1.0, delta=0.1),
    )
    for estimator in kinds:
        tags = PrivateSearchCV(estimator, RADII, epsilon=9.0, random_state=state).__sklearn_tags__()
        inner = estimator.__sklearn_tags__()
        assert tags.estimator_type == inner.estimator_type
        assert tags.classifier_tags == inner.classifier_tags
        assert tags.regressor_tags == inner.regressor_tags
        assert tags.target_tags.required
        assert tags.input_tags.allow_nan == inner.input_tags.allow_nan
        assert tags.non_deterministic is (state is None)


def test_the_whole_search_keeps_within_epsilon_and_says_what_it_costs():
    search = made().fit(X, Y)
    whole = Tight().epsilon(search.plan_, 1e-6)
    one = Tight().epsilon(search.plan_.part, 1e-6)
    assert 0.99 * 3.0 < whole <= 3.0
    assert one < whole / 1.25
    said = search.summary()
    assert f"{format_guarantee(whole, 1e-6)}: one record exchanged" in said
    assert f"alone is ({short_upper(one)}, 1e-06)" in said
    assert search.plan(X.shape) == search.plan_
    assert search.score(X, Y) == search.best_estimator_.score(X, Y)


def test_the_better_setting_is_found_nearly_always():
    tries = NegativeBinomialTries(0.0001, 0.01)  # 21 fits on average
    found = [
        PrivateSearchCV(PURE, RADII, epsilon=9.0, tries=tries, random_state=seed).fit(X, Y)
        for seed in range(8)
    ]
    assert [one.best_params_["radius"] for one in found].count(1.0) >= 6


def test_a_pure_search_costs_by_the_theorem():
    search = PrivateSearchCV(
        PrivateLasso(1.0, 0.0, rounds=5), RADII, epsilon=3.0, tries=GeometricTries(0.3)
    )
    plan = search.plan((3000, 4))
    assert Tight().epsilon(plan, 0.0) == pytest.approx(3.0, rel=2e-3)
    # At delta 0 the search costs less than three runs, by the theorem for any runs of an epsilon.
    run = Tight().epsilon(plan.part, 0.0)
    assert run > 1.6
    assert Tight().epsilon(Repeated(PureLoss(run), GeometricTries(0.3)), 0.0) > 3.0


@pytest.mark.parametrize(
    "tries",
    [LogarithmicTries(0.05), GeometricTries(0.1), NegativeBinomialTries(0.5, 0.05),
     NegativeBinomialTries(-0.5, 0.01), GeometricTries(1.0)],
)  # fmt: skip
def test_the_number_of_fits_has_its_law(tries):
    rng, runs = np.random.default_rng(1), 20_000
    drawn = np.array([draw_tries(tries, rng) for _ in range(runs)])
    assert drawn.min() >= 1
    for x in (0.2, 0.5, 0.9):
        values = x**drawn
        error = values.std() / runs**0.5 + 1e-12
        assert abs(values.mean() - tries.generating_function(x)) < 5 * error


class Counted(PrivateLasso):
    fits: ClassVar[collections.Counter] = collections.Counter()

    def fit(self, X, y=None, executor=None, ledger=None):
        Counted.fits[len(X)] += 1
        return super().fit(X, y, executor, ledger)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.25, 0.5, 0.99])
def test_every_record_fits_or_scores_and_both_have_one(share):
    search = SearchPlan(LASSO, RADII, 3.0, 1e-6, GeometricTries(0.3), share)
    for records in (2, 3, 5, 7, 10, 64, 101, 1000):
        fit_size, score_size = search.sizes((records, 4))
        assert fit_size + score_size == records
        assert min(fit_size, score_size) >= 1
        # no other split has a share that is nearer
        splits = np.arange(1, records) / records
        assert abs(score_size / records - share) == np.abs(splits - share).min()


def test_fits_see_the_public_part_alone_and_leave_no_trace():
    Counted.fits.clear()
    search = PrivateSearchCV(
        Counted(1.0, 1e-6, rounds=2), RADII, epsilon=3.0, delta=1e-6, random_state=5,
        tries=GeometricTries(0.05), validation=0.25,
    ).fit(X, Y)  # fmt: skip
    assert list(Counted.fits) == [2250]
    assert Counted.fits[2250] > 3
    kept = {name for name in vars(search) if name.endswith("_")}
    assert kept == {"plan_", "run_epsilon_", "n_features_in_", "best_estimator_", "best_params_",
                    "best_score_"}  # fmt: skip
    assert 0 < search.best_score_ < 1.2


class OtherPlan(PrivateLasso):
    """Fits with less noise than it plans for."""

    def fit(self, X, y=None, executor=None, ledger=None):
        self.set_params(epsilon=2 * self.epsilon)
        return super().fit(X, y, executor, ledger)


def test_a_fit_off_its_plan_is_refused():
    search = PrivateSearchCV(OtherPlan(1.0, 1e-6, rounds=2), RADII, epsilon=3.0, delta=1e-6)
    with pytest.raises(OffPlan, match="a fit released something else"):
        search.fit(X, Y)


def shown(search):
    return search.best_params_, search.best_score_, search.best_estimator_.coef_.tobytes()


def test_a_search_repeats_from_its_seed_and_is_kept():
    tries = GeometricTries(0.2)
    first = made(tries=tries).fit(X, Y)
    assert shown(made(tries=tries).fit(X, Y)) == shown(first)
    assert shown(made(tries=tries, random_state=1).fit(X, Y)) != shown(first)
    kept = pickle.loads(pickle.dumps(first))
    assert shown(kept) == shown(first)
    assert kept.plan_ == first.plan_
    assert len(kept.best_estimator_.transcript_) == len(first.best_estimator_.transcript_)
    assert not hasattr(kept.best_estimator_, "ledger_")


def test_noise_on_scores_repeats_from_its_seed_alone():
    few = {"epsilon": 9.0, "tries": GeometricTries(0.9)}
    first, again, other = (
        PrivateSearchCV(PURE, RADII, **few, random_state=seed).fit(X[:99], Y[:99]).best_score_
        for seed in (3, 3, 4)
    )
    assert first == again != other


def test_clones_share_a_generator_so_that_no_noise_is_drawn_twice():
    source = np.random.default_rng(0)
    search = made(random_state=source)
    assert clone(search).random_state is source
    assert shown(clone(search).fit(X, Y)) != shown(clone(search).fit(X, Y))


def test_a_search_draws_on_a_budget():
    gate = Filter(X, Budget(3.0, 1e-6))
    search = made(random_state=None)
    with pytest.raises(BudgetExceeded):
        made(epsilon=3.5).fit(X, Y, ledger=gate)
    assert gate.spent == 0
    search.fit(X, Y, ledger=gate)
    assert gate.spent > 0
    plan = search.plan_
    with pytest.raises(RuntimeError):
        search.fit(X, Y, ledger=gate)
    assert search.plan_ is plan
    with pytest.raises(ValueError, match="by cross_val_score cost that much"):
        cross_val_score(search, X, Y, cv=2)


@pytest.mark.parametrize(
    ("search", "words"),
    [
        (PrivateSearchCV(LabelIHT(epsilon=1.0, delta=1e-6, sparsity=1, y_bound=1.0),
                         {"sparsity": [1]}, epsilon=1.0, delta=1e-6), "a central estimator"),
        (PrivateSearchCV(LocalMean(epsilon=1.0), {"row_bound": [1.0]}, epsilon=1.0),
         "estimator must be an estimator with a parameter delta"),
        (PrivateSearchCV(LASSO, {"epsilon": [1.0]}, epsilon=1.0, delta=1e-6), "epsilon"),
        (PrivateSearchCV(LASSO, {"depth": [1.0]}, epsilon=1.0, delta=1e-6), "depth"),
        (PrivateSearchCV(LASSO, 3, epsilon=1.0, delta=1e-6), "candidates"),
        (PrivateSearchCV(LASSO, [], epsilon=1.0, delta=1e-6), "one setting at least"),
        (PrivateSearchCV(3, RADII, epsilon=1.0, delta=1e-6), "a private estimator"),
        (made(tries=PoissonTries(3.0)), "at least one try"),
        (made(tries=3), "at least one try"),
        (made(validation=1.0), "validation"),
        (made(epsilon=float("nan")), "epsilon"),
        (made(epsilon=True), "epsilon"),
        (made(delta=1.0), "delta"),
        (made(score_bound=0.0), "score_bound"),
    ],
)  # fmt: skip
def test_what_cannot_be_tuned_is_refused(search, words):
    with pytest.raises(ParameterError, match=words):
        search.fit(X, Y)
    assert not hasattr(search, "best_estimator_")


@pytest.mark.parametrize(
    ("model", "targets"),
    [
        (PrivateLinearRegression(epsilon=1.0, delta=1e-6), Y),
        (
            PrivateLogisticRegression(epsilon=1.0, delta=1e-6, classes=range(3), step=1.0),
            np.digitize(Y, [-0.5, 0.5]),
        ),
    ],
    ids=["linear", "three classes"],
)
def test_regressions_are_tuned(model, targets):
    search = PrivateSearchCV(model, {"rounds": [1, 20]}, epsilon=6.0, delta=1e-6, random_state=1,
                             tries=NegativeBinomialTries(0.0, 0.1))  # fmt: skip
    budget = Budget(6.0, 1e-6)
    search.fit(X, targets, ledger=budget)
    assert search.best_params_ == {"rounds": 20}
    assert search.score(X, targets) > 0.8
    assert Tight().epsilon(search.plan_, 1e-6) <= 6.0
    with pytest.raises(BudgetExceeded):
        search.fit(X, targets, ledger=budget)


def test_a_search_of_a_classifier_without_classes_is_refused_before_the_labels_are_read():
    search = PrivateSearchCV(
        PrivateLogisticLasso(1.0, 0.0, rounds=2), RADII, epsilon=3.0,
        tries=GeometricTries(0.9), random_state=0,
    )  # fmt: skip
    with pytest.raises(ParameterError, match="classes must be"):
        search.fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    assert not hasattr(search, "plan_")
