"""Laws: a parameter with a new name is the same parameter, and its old name warns once.

Every old name of `algorithms` is in a table here: of estimators, of methods and of functions.
"""

import inspect
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import algorithms
from accountant import Budget, Filter, ParameterError
from algorithms import (
    LabelIHT,
    LabelLasso,
    LabelPrivateClassifier,
    LabelSGD,
    LocalHistogram,
    LocalIHT,
    LocalMean,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMean,
    PrivateQuantiles,
    PrivateSearchCV,
    PrivateTopK,
    SignVote,
    SparseERM,
    ThresholdedMean,
    ThresholdedRegression,
    best_randomizer,
    frames,
)
from algorithms.frames import Category, Integer, Schema, mean, median, quantile, quantiles, top_k

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (60, 3))
Y, CODES = X[:, 0], (X[:, 0] > 0).astype(int)
MACHINES = ([X[at::4] for at in range(4)],)
PAIRS = ([(X[at::4], Y[at::4]) for at in range(4)],)
CLAIM = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
PURE = {"epsilon": 1.0, "random_state": 0}
SPARSE = {**CLAIM, "sparsity": 1}

# of each estimator: its data, its other settings, and {old name: (new name, a value)}
ESTIMATORS = {
    LabelIHT: ((X, Y), SPARSE, {"label_bound": ("y_bound", 0.7),
                                "noise": ("randomizer", "laplace")}),
    LabelLasso: ((X, Y), {**CLAIM, "noise_bound": 0.1}, {
        "label_bound": ("y_bound", 0.7), "noise": ("randomizer", "laplace")}),
    LabelPrivateClassifier: ((X, CODES), {**PURE, "classes": [0, 1], "method": "one pass"}, {
        "batch_size": ("batch", 6), "penalty": ("ridge", 0.25)}),
    LabelSGD: ((X, CODES), {**PURE, "diameter": 1.0}, {
        "classes": ("k", 3), "batch_size": ("batch", 6)}),
    LocalHistogram: ((CODES,), {**PURE, "k": 3}, {"oracle": ("randomizer", "unary")}),
    LocalIHT: ((X, Y), {**PURE, "sparsity": 1, "noise_bound": 0.1}, {
        "residual_clip": ("residual_bound", 0.5)}),
    LocalMean: ((X,), PURE, {"radius": ("row_bound", 0.5), "noise": ("randomizer", "hemisphere")}),
    PrivateLogisticRegression: ((X, CODES), {**CLAIM, "classes": [0, 1], "rounds": 2}, {
        "batch_rate": ("rate", 0.5)}),
    PrivateMean: ((X,), CLAIM, {"radius": ("row_bound", 0.5), "spread": ("variance_share", 0.25)}),
    PrivateQuantiles: ((X[:, :1],), PURE, {
        "lower": ("low", -1.0), "upper": ("high", 1.0), "step": ("grid_step", 0.125),
        "level": ("confidence", 0.75)}),
    PrivateTopK: ((CODES[:, None],), {**PURE, "k": 1, "categories": [0, 1]}, {
        "level": ("confidence", 0.75)}),
    SignVote: (MACHINES, CLAIM, {"select": ("k", 2)}),
    SparseERM: ((X, CODES), {**SPARSE, "classes": [0, 1], "rounds": 2}, {
        "batch_rate": ("rate", 0.5), "penalty": ("ridge", 0.25),
        "residual_clip": ("slope_bound", 0.25)}),
    ThresholdedMean: (MACHINES, CLAIM, {"select": ("sparsity", 2), "bound": ("x_bound", 0.5)}),
    ThresholdedRegression: (PAIRS, {**CLAIM, "x_bound": 1.0, "y_bound": 1.0, "radius": 1.0,
                                    "rounds": 2}, {"select": ("sparsity", 2)}),
}  # fmt: skip
NAMES = [
    pytest.param(kind, old, id=f"{kind.__name__}-{old}")
    for kind, (*_, names) in ESTIMATORS.items()
    for old in names
]
FRAME = pd.DataFrame({"age": RNG.integers(0, 100, 500), "job": RNG.choice(["cook", "nurse"], 500)})
SCHEMA = Schema({"age": Integer(0, 100), "job": Category(["cook", "nurse"])})
COST = {"epsilon": 1.0}


def answer_of(query):
    """The answer to a question, with a seed."""
    return query.release(Filter(FRAME, Budget(10.0, 1e-6), rng=0), SCHEMA)


def fitted(kind):
    """A fitted estimator."""
    data, settings, names = ESTIMATORS[kind]
    return kind(**settings, **dict(names.values())).fit(*data)


# a function or a method, its other arguments, and {old name: (new name, a value)}
LEVEL = {"level": ("confidence", 0.75)}
LINEAR = PrivateLinearRegression(**CLAIM | {"epsilon": 1e3}, method="statistics", intervals=True)
FUNCTIONS = {
    "best_randomizer": lambda: (best_randomizer, {"epsilon": 1.0}, {"classes": ("k", 10)}),
    "quantiles": lambda: (quantiles, {"column": "age", **COST}, {
        "shares": ("quantiles", [0.1, 0.9]), **LEVEL}),
    "quantile": lambda: (quantile, {"column": "age", **COST}, {
        "share": ("quantile", 0.9), **LEVEL}),
    "median": lambda: (median, {"column": "age", **COST}, LEVEL),
    "top_k": lambda: (top_k, {"column": "job", "k": 1, **COST}, LEVEL),
    "Answer.interval": lambda: (answer_of(mean("age", **COST)).interval, {}, LEVEL),
    "ListedAnswer.interval": lambda: (
        answer_of(median("age", confidence=0.75, **COST)).interval, {}, LEVEL),
    "RegressionAnswer.interval": lambda: (
        answer_of(frames.regression("age", ["job"], rho=0.5)).interval, {}, LEVEL),
    "PrivateLinearRegression.interval": lambda: (LINEAR.fit(X, Y).interval, {}, LEVEL),
    "LabelIHT.interval": lambda: (fitted(LabelIHT).interval, {}, LEVEL),
    "LabelLasso.interval": lambda: (fitted(LabelLasso).interval, {}, LEVEL),
    "LocalMean.interval": lambda: (fitted(LocalMean).interval, {}, LEVEL),
    "PrivateMean.interval": lambda: (fitted(PrivateMean).interval, {}, LEVEL),
}  # fmt: skip


def warned(made, old, new, owner=r"[\w.]+"):
    """What a call returns that warns once of an old name of its owner, at this line."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = made()
    of_names = [one for one in heard if issubclass(one.category, FutureWarning)]
    assert len(of_names) == 1, heard
    assert re.fullmatch(f"{old} of {owner} is now called {new}", str(of_names[0].message))
    assert of_names[0].filename == __file__
    return found


def as_text(value):
    """A value as it is shown to its last digit."""
    with np.printoptions(floatmode="unique", threshold=10**6):
        return repr(value)


def test_every_old_name_is_in_the_table():
    public = {
        kind for name in algorithms.__all__ if inspect.isclass(kind := getattr(algorithms, name))
    }
    found = {
        (kind, name)
        for kind in public
        for name, value in vars(kind).items()
        if isinstance(value, property) and str(value.__doc__).startswith("The old name of ")
    }
    named = {(kind, old) for kind, (*_, names) in ESTIMATORS.items() for old in names}
    assert found == named | {(LabelSGD, "excess_bound")}


@pytest.mark.parametrize(("kind", "old"), NAMES)
def test_the_old_name_is_the_same_parameter(kind, old):
    data, settings, names = ESTIMATORS[kind]
    new, value = names[old]
    others = settings | {key: one for key, one in names.values() if key != new}
    made = kind(**others, **{new: value})
    by_old_name = warned(lambda: kind(**others, **{old: value}), old, new, kind.__name__)
    assert by_old_name.get_params().keys() == made.get_params().keys()
    assert as_text(by_old_name) == as_text(made)
    assert as_text(by_old_name.get_params()[new]) == as_text(value)
    set_later = warned(lambda: clone(made).set_params(**{old: value}), old, new, kind.__name__)
    assert set_later.get_params()[new] == value
    assert warned(lambda: getattr(made, old), old, new, kind.__name__) == value
    warned(lambda: setattr(set_later, old, value), old, new, kind.__name__)
    assert old not in vars(set_later)
    transcripts = [
        as_text([entry.output for entry in quiet_fit(one, data).transcript_])
        for one in (made, clone(by_old_name), set_later)
    ]
    assert len(set(transcripts)) == 1


def test_a_private_search_takes_old_names():
    made = PrivateSearchCV(
        SparseERM(**SPARSE, classes=[0, 1], rounds=2), {"penalty": [0.1, 0.5]}, **CLAIM
    )
    with pytest.warns(FutureWarning, match="penalty of SparseERM is now called ridge"):
        fitted = quiet_fit(made, (X, CODES))
    assert fitted.best_params_.keys() == {"ridge"}


def quiet_fit(made, data):
    """A fit whose noise may exceed any signal, which is not what is tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return made.fit(*data)


@pytest.mark.parametrize(("kind", "old"), NAMES)
def test_only_the_new_name_is_shown_and_both_are_refused(kind, old):
    _, settings, names = ESTIMATORS[kind]
    new, value = names[old]
    made = kind(**settings, **dict(names.values()))
    assert old not in inspect.signature(kind).parameters
    assert old not in made.get_params()
    assert not re.search(rf"\b{old}=", repr(made))
    assert not re.search(rf">\s*{old}\b", made._repr_html_())
    for given in (kind, clone(made).set_params):
        with pytest.raises(ParameterError, match=f"{old} must be left out where {new} is given"):
            given(**settings | dict(names.values()) | {old: value})


@pytest.mark.parametrize(("kind", "old"), NAMES)
def test_pickles_of_old_names_are_read(kind, old):
    _, settings, names = ESTIMATORS[kind]
    new, value = names[old]
    made = kind(**settings, **dict(names.values()))
    state = made.__getstate__()
    written_before = {old if key == new else key: one for key, one in state.items()}
    read = kind.__new__(kind)
    read.__setstate__(written_before)
    for one in (read, pickle.loads(pickle.dumps(made))):
        assert vars(one)[new] == value
        assert as_text(one) == as_text(made)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_accept_the_old_name(name):
    function, settings, names = FUNCTIONS[name]()
    for old, (new, value) in names.items():
        others = settings | {key: one for key, one in names.values() if key != new}
        expected = function(**others, **{new: value})
        found = warned(
            lambda others=others, old=old, value=value: function(**others, **{old: value}), old, new
        )
        assert as_text(found) == as_text(expected)
        with pytest.raises(ParameterError, match=f"{old} must be left out where {new} is given"):
            function(**others, **{old: value, new: value})
        assert old not in inspect.signature(function).parameters


def test_questions_and_answers_of_frames_have_the_old_names():
    query = quantiles("age", [0.1, 0.9], confidence=0.75, **COST)
    assert warned(lambda: query.shares, "shares", "quantiles") == (0.1, 0.9)
    assert warned(lambda: query.level, "level", "confidence") == 0.75
    assert warned(lambda: answer_of(query).level, "level", "confidence") == 0.75
    assert warned(lambda: top_k("job", 1, **COST).level, "level", "confidence") == 0.95
    assert pickle.loads(pickle.dumps(query)) == query


def test_the_bound_of_label_sgd_has_its_old_name():
    made = LabelSGD(epsilon=1.0, k=2, diameter=1.0)
    bound = warned(lambda: made.excess_bound, "excess_bound", "utility_bound", "LabelSGD")
    assert bound(100, 1.0) == made.utility_bound(100, 1.0)
