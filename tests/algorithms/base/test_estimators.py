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
    LabelIHT,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMean,
    PrivateSearchCV,
    SignVote,
)
from algorithms.base.non_private import NotPrivateWarning
from algorithms.base.signal import NoSignalWarning


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
