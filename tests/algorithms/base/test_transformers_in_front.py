"""Transformers in front of a private estimator: what learns from private data is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
)
from sklearn.cross_decomposition import CCA, PLSSVD, PLSCanonical, PLSRegression
from sklearn.decomposition import PCA
from sklearn.ensemble._base import _fit_single_estimator
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from accountant import Budget, ParameterError
from algorithms import BoundsScaler, LabelIHT, PrivateLasso, PrivateSearchCV
from algorithms.base.non_private import NotPrivateWarning
from algorithms.base.running_fits import reads_no_data, reads_public_features
from audits.algorithm_runs.differences import difference
from audits.algorithm_runs.fits import plain

pytestmark = pytest.mark.filterwarnings("ignore::accountant.errors.IdealisedNoiseWarning")
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 3))
Y = X[:, 0]
LASSO = PrivateLasso(1.0, 1e-6, rounds=2, random_state=0)
LABELS = LabelIHT(epsilon=1.0, delta=1e-5, sparsity=1, y_bound=1.0, random_state=0)
BY_TARGET = SelectKBest(f_regression, k=2)
OF_PAIRS = {"categories": [["a", "b"]]}


class Centred(TransformerMixin, BaseEstimator):
    """A transformer of somebody else's, which says nothing of its fit."""

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_


class Halved(Centred):
    """A transformer of somebody else's, which says that its fit looks at no data."""

    fit_reads_no_data = True

    def fit(self, X, y=None):
        self.mean_ = np.zeros(X.shape[1])
        return self


FREE = {
    "passthrough": "passthrough", "BoundsScaler": BoundsScaler(-1, 1), "Normalizer": Normalizer(),
    "PolynomialFeatures": PolynomialFeatures(), "one that says so": Halved(),
    "FunctionTransformer": FunctionTransformer(np.tanh),
    "frozen": FrozenEstimator(StandardScaler().fit(RNG.normal(size=(9, 3)))),
    "a union": make_union(BoundsScaler(-1, 1), PolynomialFeatures()),
    "a pipeline": make_pipeline(BoundsScaler(-1, 1), Normalizer()),
    "columns": ColumnTransformer([("a", BoundsScaler(0, 1), [0])], remainder="passthrough"),
}  # fmt: skip
LEARNING = {
    "StandardScaler": StandardScaler(), "MinMaxScaler": MinMaxScaler(), "PCA": PCA(2),
    "SelectKBest": SelectKBest(k=2), "VarianceThreshold": VarianceThreshold(),
    "SimpleImputer": SimpleImputer(), "KBinsDiscretizer": KBinsDiscretizer(),
    "somebody's": Centred(), "inferred categories": OneHotEncoder(), "ordinals": OrdinalEncoder(),
    "refused categories": OneHotEncoder(**OF_PAIRS),
    "rare categories": OneHotEncoder(**OF_PAIRS, handle_unknown="ignore", min_frequency=3),
    "a union": make_union(BoundsScaler(-1, 1), StandardScaler()),
    "a pipeline": make_pipeline(BoundsScaler(-1, 1), StandardScaler()),
    "columns": ColumnTransformer([("a", StandardScaler(), [0])], remainder="passthrough"),
    "the rest": ColumnTransformer([("a", Normalizer(), [0])], remainder=StandardScaler()),
    "columns by a function": ColumnTransformer([("a", BoundsScaler(0, 1), lambda X: [0])]),
}  # fmt: skip


@pytest.mark.parametrize("name", FREE)
def test_what_looks_at_no_data_is_let_through(name):
    one = FREE[name]
    assert make_pipeline(one, LASSO).fit(X, Y)[-1].summary()
    if name == "passthrough":
        return
    # what is learned from other data of the shape is the same
    fitted = [plain(one.fit(data, Y)) for data in (X, RNG.normal(size=X.shape) ** 3)]
    assert difference(*fitted) == ""


@pytest.mark.parametrize("name", LEARNING)
def test_what_learns_from_private_data_is_known(name):
    assert not reads_no_data(LEARNING[name])


def test_columns_may_be_chosen_by_their_types():
    assert reads_no_data(ColumnTransformer([("a", BoundsScaler(0, 1), make_column_selector())]))


def test_declared_categories_are_let_through():
    words = pd.DataFrame({"word": np.where(Y > 0, "a", "b")})
    for kind, more in (
        (OneHotEncoder, {"handle_unknown": "ignore", "sparse_output": False}),
        (OrdinalEncoder, {"handle_unknown": "use_encoded_value", "unknown_value": -1}),
    ):
        model = make_pipeline(kind(**OF_PAIRS, **more), LASSO).fit(words, Y)
        assert model.predict(words).shape == (60,)


def search():
    return PrivateSearchCV(LASSO, {"radius": [0.5, 1.0]}, epsilon=3.0, delta=1e-6)


def grid(first):
    return GridSearchCV(
        make_pipeline(first, LASSO), {"privatelasso__radius": [0.5]}, cv=2, error_score="raise"
    )


BUDGET = {"privatelasso__ledger": Budget(20.0, 1e-3)}
REFUSED = {
    "a pipeline": lambda: make_pipeline(StandardScaler(), LASSO).fit(X, Y),
    "one in another": lambda: make_pipeline(PCA(2), make_pipeline(Normalizer(), LASSO)).fit(X, Y),
    "behind what is free": lambda: make_pipeline(BY_TARGET, Normalizer(), LASSO).fit(X, Y),
    "of targets": lambda: TransformedTargetRegressor(LASSO, transformer=MinMaxScaler()).fit(X, Y),
    "of private targets": lambda: TransformedTargetRegressor(LABELS, transformer=PCA(1)).fit(X, Y),
    "selection by private labels": lambda: make_pipeline(BY_TARGET, LABELS).fit(X, Y),
    "a search in a pipeline": lambda: make_pipeline(StandardScaler(), search()).fit(X, Y),
    "a grid": lambda: grid(StandardScaler()).fit(X, Y, **BUDGET),
    "folds": lambda: cross_val_score(
        make_pipeline(StandardScaler(), LASSO), X, Y, error_score="raise", params=BUDGET
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_fit_behind_what_learned_from_private_data_is_refused(name):
    with pytest.raises(ParameterError, match=r"BoundsScaler\(low, high\) with public bounds"):
        REFUSED[name]()


def test_budgets_pay_for_a_grid_behind_public_bounds():
    assert grid(BoundsScaler(-1, 1)).fit(X, Y, **BUDGET).best_estimator_[-1].coef_.shape == (3,)


def test_where_labels_alone_are_private_public_features_may_be_scaled():
    model = make_pipeline(SimpleImputer(), StandardScaler(), PCA(2), LABELS).fit(X, Y)
    assert model[-1].coef_.shape == (2,)
    known = [reads_public_features(one) for one in (SelectKBest(), Centred(), Halved())]
    assert known == [False, False, True]


@pytest.mark.parametrize("transformer", [PLSRegression(1), PLSCanonical(1), CCA(1), PLSSVD(1)])
def test_what_learns_from_private_labels_without_a_tag_is_known(transformer):
    fits = [plain(clone(transformer).fit(X, targets)) for targets in (Y, RNG.normal(size=60))]
    assert difference(*fits) != ""
    assert not reads_public_features(transformer)


@pytest.mark.parametrize("settings", [{}, {"ledger": Budget(20.0, 1e-3)}], ids=["free", "paid"])
@pytest.mark.parametrize("estimator", [LASSO, search()], ids=["a fit", "a search"])
def test_a_fit_in_a_worker_is_refused_as_nothing_around_it_is_seen(estimator, settings):
    # What workers of a VotingRegressor call; real ones would change the warnings of other tests.
    with pytest.raises(ParameterError, match="n_jobs must be None or 1"):
        _fit_single_estimator(clone(estimator), X, Y, settings)
    with pytest.raises(ParameterError, match="n_jobs must be None or 1"):
        _fit_single_estimator(grid(BoundsScaler(-1, 1)), X, Y, {})


def test_without_privacy_nothing_is_refused():
    free = PrivateLasso(math.inf, 1e-6, rounds=2, non_private=True)
    with pytest.warns(NotPrivateWarning):
        make_pipeline(StandardScaler(), free).fit(X, Y)
    func = TransformedTargetRegressor(LASSO, func=np.arcsinh, inverse_func=np.sinh)
    assert func.fit(X, Y).predict(X).shape == (60,)
