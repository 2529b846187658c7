"""Every estimator: clones, seeds, and marks of fits without privacy."""

import math
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sklearn
from sklearn.base import clone

from accountant import LargeDeltaWarning, ParameterError
from algorithms import (
    FrankWolfe,
    GaussianFrankWolfe,
    LabelIHT,
    LabelPrivateClassifier,
    LabelSGD,
    LocalHistogram,
    LocalMean,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogisticLasso,
    PrivateLogisticRegression,
    PrivateMean,
    PrivateQuantiles,
    PrivateSearchCV,
    PrivateSelection,
    PrivateTopK,
    SignVote,
)
from algorithms.base.non_private import NotPrivateWarning
from algorithms.base.signal import NoSignalWarning
from algorithms.frank_wolfe.convex_sets import L2Ball
from algorithms.frank_wolfe.polytopes import L1Ball
from audits.algorithm_runs.fits import is_fitted_through_gates
from tests.algorithms.scikit_learn_checks import passes_scikit_learn_checks
from tests.laws.test_fits import CASES


def test_clones_share_a_generator_and_an_executor():
    rng, x = np.random.default_rng(5), np.ones((30, 2))
    made = LabelIHT(epsilon=1.0, delta=1e-5, sparsity=1, y_bound=1.0, random_state=rng,
                    randomizer="gaussian")  # fmt: skip
    twins = [clone(made).fit(x, np.zeros(30)) for _ in range(2)]
    first, second = (one.transcript_[0].output for one in twins)
    assert not np.any(first == second)
    with ThreadPoolExecutor(1) as pool:
        assert clone(SignVote(1.0, 1e-3, 2, executor=pool)).executor is pool
    again = pickle.loads(pickle.dumps(twins[0]))
    assert again.coef_.tobytes() == twins[0].coef_.tobytes()


def test_a_legacy_random_state_gives_more_than_a_short_seed():
    x, y = np.ones((30, 2)), np.zeros(30)
    made = LabelIHT(epsilon=1.0, delta=1e-5, sparsity=1, y_bound=1.0, randomizer="gaussian")
    made.random_state = np.random.RandomState(7)
    first = made.fit(x, y).transcript_[0].output
    made.random_state = int(np.random.RandomState(7).randint(2**31))
    assert not np.any(made.fit(x, y).transcript_[0].output == first)


def test_marks_follow_the_fit_and_not_the_parameters():
    x, y = np.ones((30, 2)), np.zeros(30)
    made = LabelIHT(
        epsilon=math.inf, non_private=True, delta=1e-5, sparsity=1, y_bound=1.0, random_state=0
    )
    with pytest.warns(NotPrivateWarning):
        made.fit(x, y)
    made.set_params(non_private=False, epsilon=1.0)
    with pytest.warns(NotPrivateWarning, match="predictions"):
        made.predict(x)
    assert "NOT PRIVATE" in made.summary()
    made.fit(x, y).set_params(non_private=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.predict(x)
    assert "NOT PRIVATE" not in made.summary()


def test_a_clone_keeps_which_arguments_are_routed_to_it():
    with sklearn.config_context(enable_metadata_routing=True):
        made = PrivateMean(epsilon=1.0).set_fit_request(ledger=True)
        assert clone(made).get_metadata_routing().fit.requests == {"ledger": True}


class OwnLasso(PrivateLasso):
    """A user's subclass."""


def test_errors_name_the_class_that_was_called():
    x, y = np.ones((30, 2)), np.zeros(30)
    with pytest.raises(ParameterError, match=r"^OwnLasso: epsilon must be") as caught:
        OwnLasso(-1.0, 1e-6).fit(x, y)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(ParameterError, match=r"^OwnLasso: shape must be"):
        OwnLasso(1.0, 1e-6).plan(30)
    # the model that a search fits names itself
    search = PrivateSearchCV(OwnLasso(1.0, 0.0), {"radius": [-1.0, 1.0]}, epsilon=3.0)
    with pytest.raises(ParameterError, match=r"^OwnLasso: radius must be"):
        search.fit(x, y)


# machines are no rows, and the model of a search names itself
NAMED = [name for name, fits in CASES.items()
         if "," not in name and is_fitted_through_gates(fits.made)
         and name != "PrivateSearchCV"]  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_every_error_names_the_class(name):
    fits = CASES[name]
    made = clone(fits.made).set_params(random_state=0)
    data = fits.data if isinstance(fits.data, tuple) else (fits.data,)
    data = data if fits.public is None else (fits.public, *data)

    def refused(call, *arguments, **settings):
        with pytest.raises(ParameterError) as caught:
            call(*arguments, **settings)
        assert str(caught.value).startswith(f"{name}: "), caught.value

    unused = {"random_state", "bounds_share", "validation", "classes", "rate"}
    for parameter in set(made.get_params(deep=False)) - unused:
        refused(clone(made).set_params(**{parameter: object()}).fit, *data)
    refused(made.plan, (3, 0, 1))
    made.fit(*data)
    width = getattr(made, "n_features_in_", 1)
    few = np.ones((40, width - 1 if width > 1 else 2))
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        if hasattr(made, method):
            refused(getattr(made, method), few)
    if hasattr(made, "score"):
        refused(made.score, few, data[1])
    if hasattr(made, "interval"):
        refused(made.interval, confidence=2.0)
    if hasattr(made, "partial_fit"):
        refused(made.partial_fit, np.array([["text"]]), *data[1:])


def test_the_optimiser_of_a_classifier_has_its_name():
    x, y = np.ones((30, 2)), np.arange(30) % 2
    for method in ("auto", "one pass"):
        made = LabelPrivateClassifier(1.0, classes=[0, 1], randomizer="coin", method=method)
        with pytest.raises(ParameterError, match=r"^LabelPrivateClassifier: randomizer must be"):
            made.fit(x, y)


CLAIM = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}


@passes_scikit_learn_checks(
    FrankWolfe("squared", L1Ball(1.0), **CLAIM, rounds=2),
    GaussianFrankWolfe("squared", L2Ball(1.0), **CLAIM, rounds=2),
    LabelSGD(epsilon=2.0, k=2, diameter=1.0, random_state=0),
    LocalMean(epsilon=1.0, random_state=0),
    PrivateLasso(**CLAIM, method="descent"),
    PrivateLasso(math.inf, 1e-6, weight_bound=5.0, non_private=True),
    PrivateLogisticLasso(math.inf, 1e-6, weight_bound=5.0, non_private=True),
    PrivateMean(**CLAIM),
    PrivateSelection(epsilon=1.0, random_state=0),
    PrivateTopK(k=2, categories=[1, 2, 3], epsilon=1.0, random_state=0),
)
@pytest.mark.filterwarnings("ignore::algorithms.base.non_private.NotPrivateWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("made", [LocalHistogram(k=3, epsilon=1.0),
                                  PrivateQuantiles(low=0.0, high=1.0, epsilon=1.0)])  # fmt: skip
def test_estimators_of_one_column_say_so(made):
    """scikit-learn has no checks for them."""
    tags = made.__sklearn_tags__().input_tags
    assert (tags.one_d_array, tags.two_d_array) == (True, False)


def test_warnings_point_at_the_line_of_the_caller():
    x, y = np.ones((30, 2)), np.zeros(30)
    made = PrivateLinearRegression(epsilon=math.inf, delta=1e-5, non_private=True)
    small = PrivateLinearRegression(epsilon=0.01, delta=1e-5, method="descent")
    labels = PrivateLogisticRegression(epsilon=1.0, delta=0.2, classes=[0, 1])
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        made.fit(x, y).predict(x)
        small.plan((30, 2))
        labels.fit(x, y)
    kinds = {warning.category for warning in heard}
    assert kinds == {NotPrivateWarning, NoSignalWarning, LargeDeltaWarning}
    assert {warning.filename for warning in heard} == {__file__}
