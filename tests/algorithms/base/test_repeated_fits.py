"""How often scikit-learn fits clones: what is said beside what it does."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.impute import IterativeImputer
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier

from algorithms.base.running_fits import RepeatedFits, repeated_fits

X, Y = np.arange(48.0).reshape(24, 2), np.arange(24) % 2
GROUPS = np.arange(24) // 6
SAID = []


class Watched(ClassifierMixin, BaseEstimator):
    """A model that keeps what is said of the routine that fits it."""

    def __init__(self, depth=1):
        self.depth = depth

    def fit(self, X, y):
        SAID.append(repeated_fits())
        self.classes_, self.coef_ = np.unique(y), np.zeros((1, X.shape[1]))
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def predict_proba(self, X):
        return np.full((len(X), self.classes_.size), 1 / self.classes_.size)


def grid(cv=3, **settings):
    return GridSearchCV(Watched(), {"depth": [1, 2]}, cv=cv, **settings)


EXACT = {
    "cross_val_score": lambda: cross_val_score(Watched(), X, Y, cv=KFold(5)),
    "cross_validate": lambda: cross_validate(Watched(), X, Y),
    "cross_val_predict": lambda: cross_val_predict(Watched(), X, Y, cv=LeaveOneOut()),
    "learning_curve": lambda: learning_curve(Watched(), X, Y, cv=3, train_sizes=[6, 8, 16]),
    "validation_curve": lambda: validation_curve(
        Watched(), X, Y, param_name="depth", param_range=[1, 2, 3], cv=2),
    "permutation_test_score": lambda: permutation_test_score(
        Watched(), X, Y, cv=2, n_permutations=4, random_state=0),
    "GridSearchCV": lambda: grid().fit(X, Y),
    "GridSearchCV, no refit": lambda: grid(refit=False).fit(X, Y),
    "GridSearchCV, groups": lambda: grid(cv=GroupKFold(4)).fit(X, Y, groups=GROUPS),
    "cross_validate, a generator": lambda: cross_validate(Watched(), X, Y, cv=KFold(3).split(X)),
    "RandomizedSearchCV": lambda: RandomizedSearchCV(
        Watched(), {"depth": [1, 2, 3]}, n_iter=2, cv=2, random_state=0).fit(X, Y),
    "SelectFromModel": lambda: SelectFromModel(Watched()).fit(X, Y),
    "cross_val_score of a SelectFromModel": lambda: cross_val_score(
        make_pipeline(SelectFromModel(Watched()), DummyClassifier()), X, Y, cv=3),
    "cross_val_score of a GridSearchCV": lambda: cross_val_score(grid(cv=2), X, Y, cv=3),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", EXACT)
def test_the_number_said_is_the_number_of_fits(name):
    SAID.clear()
    EXACT[name]()
    assert {one.fits for one in SAID} == {len(SAID)}
    assert {one.routine for one in SAID} == {name.split(",")[0].split(" of ")[0]}


@pytest.mark.filterwarnings("ignore")
def test_routines_that_do_not_say_their_number_are_named():
    for work, name in [
        (lambda: CalibratedClassifierCV(Watched(), cv=2).fit(X, Y), "CalibratedClassifierCV"),
        (lambda: OneVsRestClassifier(Watched()).fit(X, Y), "OneVsRestClassifier"),
        (lambda: MultiOutputClassifier(Watched()).fit(X, GROUPS[:, None]), "MultiOutputClassifier"),
        (
            lambda: SequentialFeatureSelector(Watched(), n_features_to_select=1, cv=2).fit(X, Y),
            "SequentialFeatureSelector",
        ),
        (lambda: BaggingClassifier(Watched(), n_estimators=2).fit(X, Y), "BaggingClassifier"),
        (lambda: grid(cv=KFold(3).split(X)).fit(X, Y), "GridSearchCV"),
        (lambda: RFECV(Watched(), cv=2).fit(X, Y), "RFECV"),
        (lambda: BaggingClassifier(grid(cv=2), n_estimators=2).fit(X, Y), "BaggingClassifier"),
        (
            lambda: SelfTrainingClassifier(Watched()).fit(X, Y - (GROUPS == 3)),
            "SelfTrainingClassifier",
        ),
        (lambda: RANSACRegressor(Watched(), min_samples=9).fit(X, Y), "RANSACRegressor"),
        (lambda: IterativeImputer(Watched(), max_iter=1).fit(X), "IterativeImputer"),
    ]:
        SAID.clear()
        work()
        assert set(SAID) == {RepeatedFits(name, None)}


def test_a_fit_of_your_own_is_no_routine():
    SAID.clear()
    clone(Watched()).fit(X, Y)
    assert SAID == [None]
