"""Fits without privacy must be asked for, and every output of theirs says what it is."""

import inspect
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import algorithms
from accountant import ParameterError, PoissonSampled, Sequential, Tight, to_json
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Repeat
from algorithms import (
    FrankWolfe,
    GaussianFrankWolfe,
    LabelIHT,
    LabelLasso,
    LabelPrivateClassifier,
    LabelSGD,
    LocalHistogram,
    LocalIHT,
    LocalMean,
    PrivateGeneralizedLinearModel,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogisticLasso,
    PrivateLogisticRegression,
    PrivateMean,
    PrivateSelection,
    SparseERM,
)
from algorithms.base import exact_minimum
from algorithms.base.estimators import PrivateEstimator
from algorithms.base.exact_minimum import ExactMinimum
from algorithms.base.glm_losses import SQUARED, ScoreLoss
from algorithms.base.non_private import NoPrivacy, NotPrivateWarning, has_no_privacy
from algorithms.frank_wolfe.convex_sets import L2Ball
from algorithms.frank_wolfe.polytopes import L1Ball
from audits import replay
from mechanisms import Laplace

OPEN = {"epsilon": math.inf, "non_private": True}
KINDS = {
    LocalIHT: {"sparsity": 2, "noise_bound": 0.1, "rounds": 4},
    LabelIHT: {"delta": 1e-3, "sparsity": 2, "y_bound": 3.0},
    LabelLasso: {"delta": 1e-3, "y_bound": 3.0, "noise_bound": 0.1},
    SparseERM: {"delta": 1e-5, "sparsity": 2, "rounds": 200, "loss": "squared", "row_bound": 9.0,
                "step": 0.5},
    PrivateLasso: {"delta": 1e-6, "radius": 1.5, "y_bound": 2.0, "rounds": 200},
}  # fmt: skip
ALL = pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.__name__)
RNG = np.random.default_rng(0)
X = RNG.choice([-1.0, 1.0], (4000, 10))
THETA = np.array([0.6, 0.5] + [0.0] * 8)
Y = X @ THETA + RNG.uniform(-0.05, 0.05, 4000)


@ALL
def test_every_output_says_so(kind):
    made = kind(**KINDS[kind], **OPEN)
    with pytest.warns(NotPrivateWarning, match=f"{kind.__name__}: coefficients are NOT private"):
        made.fit(X, Y)
    with pytest.warns(NotPrivateWarning, match="predictions are NOT private"):
        assert made.predict(X) == pytest.approx(Y, abs=0.3)
    assert made.coef_ == pytest.approx(THETA, abs=0.1)
    assert made.summary().startswith(f"{kind.__name__}: NOT PRIVATE")
    assert Tight().epsilon(made.plan_, 0.5) == math.inf
    assert {type(entry.mechanism) for entry in made.transcript_} == {NoPrivacy}
    assert "non_private=True" in repr(made)
    with pytest.raises(ParameterError):  # a plan file is for what may be released
        to_json(made.plan_)


FEW, ROUNDS = X[:60] / 4, {"delta": 1e-6, "rounds": 5}
# of each estimator that fits without privacy: its settings, its labels, and what else it puts out
OUTPUTS = {
    FrankWolfe: ({**ROUNDS, "loss": "squared", "vertices_or_oracle": L1Ball(1.0)}, Y[:60], ()),
    GaussianFrankWolfe: ({**ROUNDS, "loss": "squared", "convex_set": L2Ball(1.0)}, Y[:60], ()),
    LabelIHT: (KINDS[LabelIHT], Y[:60], ("predict", "interval")),
    LabelLasso: (KINDS[LabelLasso], Y[:60], ("predict", "interval")),
    LabelPrivateClassifier: ({"classes": [0, 1]}, Y[:60] > 0, ("predict",)),
    LabelSGD: ({"k": 2, "diameter": 1.0}, (Y[:60] > 0).astype(int), ()),
    LocalHistogram: ({"k": 2}, None, ()),
    LocalIHT: (KINDS[LocalIHT], Y[:60], ("predict",)),
    LocalMean: ({"row_bound": 9.0}, None, ("interval",)),
    PrivateGeneralizedLinearModel: (
        {"delta": 1e-6, "loss": "huber", "y_bound": 9.0}, Y[:60], ("predict",),
    ),
    PrivateLasso: (KINDS[PrivateLasso], Y[:60], ("predict",)),
    PrivateLinearRegression: (
        {"delta": 1e-6, "method": "statistics", "intervals": True}, Y[:60], ("predict", "interval"),
    ),
    PrivateLogisticLasso: (
        {**ROUNDS, "classes": [0, 1], "radius": 0.5}, Y[:60] > 0, ("decision_function",),
    ),
    PrivateLogisticRegression: (
        {"delta": 1e-6, "classes": [0, 1]}, Y[:60] > 0, ("decision_function", "predict"),
    ),
    PrivateMean: ({"row_bound": 9.0}, None, ("interval",)),
    PrivateSelection: ({}, None, ()),
    SparseERM: (
        {"delta": 1e-5, "sparsity": 2, "rounds": 3, "classes": [0, 1]}, Y[:60] > 0, ("predict",),
    ),
}  # fmt: skip


def said_of(call, *arguments):
    """What a call says of its output, without the name of the class."""
    with pytest.warns(NotPrivateWarning) as heard:
        call(*arguments)
    (words,) = {str(one.message) for one in heard if one.category is NotPrivateWarning}
    return words


@pytest.mark.parametrize("kind", OUTPUTS, ids=lambda one: one.__name__)
def test_every_output_of_every_estimator_is_named(kind):
    settings, y, methods = OUTPUTS[kind]
    made = kind(**{**settings, **OPEN})
    rows = (np.arange(60) % 2) if kind is LocalHistogram else FEW
    said = {"fit": said_of(made.fit, rows) if y is None else said_of(made.fit, rows, y)}
    for method in methods:
        arguments = () if method == "interval" else (rows,)
        said[method] = said_of(getattr(made, method), *arguments)
    for words in said.values():
        named = rf"{kind.__name__}: (the )?[a-z]+ (is|are) NOT private \(non_private=True\)"
        assert re.fullmatch(named, words)
    if "interval" in said:
        assert "intervals are" in said["interval"]
    if "predict" in said:
        assert "predictions are" in said["predict"]
    assert ("coefficients are" in said["fit"]) == hasattr(made, "coef_")


def test_the_table_has_every_estimator_that_fits_without_privacy():
    public = {getattr(algorithms, name) for name in algorithms.__all__}
    assert set(OUTPUTS) == {
        one for one in public if inspect.isclass(one) and issubclass(one, PrivateEstimator)
        and "non_private" in inspect.signature(one).parameters
    }  # fmt: skip


@pytest.mark.parametrize("value", [2.5, [1.0, 2.0], np.eye(2), "word"], ids=repr)
def test_the_absence_of_a_mechanism_releases_the_value_as_often_as_asked(value):
    made = NoPrivacy()
    assert np.array_equal(made.release(value), np.array(value))
    for size in (0, 1, 3):
        released = made.release(value, size=size)
        assert len(released) == size
        assert all(np.array_equal(one, np.array(value)) for one in released)
    for output, log in ((value, 0.0), ([9.0], -np.inf)):
        assert made.log_density(output, value) == log


@ALL
@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": math.inf}, {"epsilon": 1.0, "non_private": True},
     {"epsilon": math.inf, "non_private": 1}, {"epsilon": True, "non_private": True},
     {"epsilon": math.nan, "non_private": True}, {"epsilon": -math.inf}, {"epsilon": "inf"}],
)  # fmt: skip
def test_it_must_be_asked_for(kind, wrong):
    made = kind(**KINDS[kind], **wrong)
    with pytest.raises(ParameterError, match=r"epsilon|non_private"):
        made.fit(X, Y)
    assert not hasattr(made, "ledger_")


@pytest.mark.parametrize(
    "made",
    [
        FrankWolfe("squared", L1Ball(1.5), delta=1e-6, rounds=200, y_bound=2.0, **OPEN),
        GaussianFrankWolfe("squared", L2Ball(1.0), delta=1e-6, row_bound=4.0, y_bound=2.0, **OPEN),
        PrivateLogisticLasso(delta=1e-6, radius=3.0, **OPEN),
    ],
    ids=lambda made: type(made).__name__,
)
def test_frank_wolfe_over_any_set_says_so(made):
    name = type(made).__name__
    y = Y > 0 if name == "PrivateLogisticLasso" else Y
    with pytest.warns(NotPrivateWarning, match=f"{name}: coefficients are NOT private"):
        made.fit(X, y)
    assert made.summary().startswith(f"{name}: NOT PRIVATE")
    inner = X @ made.coef_
    assert np.corrcoef(inner, X @ THETA)[0, 1] > 0.75
    assert np.mean((inner > 0) == (Y > 0)) > 0.98
    assert {type(entry.mechanism) for entry in made.transcript_} == {NoPrivacy}
    with pytest.raises(ParameterError, match="non_private=True"):
        type(made)(**{**made.get_params(), "non_private": False}).plan(X.shape)


def test_sparse_features_are_fitted_without_privacy_too():
    with pytest.warns(NotPrivateWarning):
        made = PrivateLasso(**KINDS[PrivateLasso], **OPEN).fit(sparse.csr_matrix(X), Y)
    with pytest.warns(NotPrivateWarning):
        dense = PrivateLasso(**KINDS[PrivateLasso], **OPEN).fit(X, Y)
    assert made.coef_ == pytest.approx(dense.coef_)


@pytest.mark.parametrize("features", [X, sparse.csr_matrix(X)], ids=["dense", "sparse"])
def test_without_privacy_gradients_are_the_default(features):
    with pytest.warns(NotPrivateWarning):
        made = PrivateLasso(delta=1e-6, y_bound=2.0, **OPEN).fit(features, Y)
    assert made.bounds_.radius == 64.0
    best = np.linalg.lstsq(X, Y, rcond=None)[0]
    assert made.coef_ == pytest.approx(best, abs=2e-3)
    assert made.plan_ == made.plan(X.shape)


def test_a_replay_sees_what_is_revealed():
    other = X.copy()
    other[0] = -X[0]
    with pytest.warns(NotPrivateWarning):
        LocalIHT(**KINDS[LocalIHT], **OPEN).fit(X, Y)
    with pytest.warns(NotPrivateWarning):
        found = replay(LocalIHT(**KINDS[LocalIHT], **OPEN), (X, Y), (other, Y), rng=1)
    assert found.loss == math.inf
    assert NoPrivacy().reversed == NoPrivacy().loss
    assert dict(Repeat(NoPrivacy(), 3).losses()) == {NoPrivacy().loss: 3}


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_sample_without_noise_is_seen_in_any_plan(relation):
    sampled = PoissonSampled(NoPrivacy(), 0.5, relation)
    for plan in (
        sampled,
        2 * sampled,
        Parallel([2 * sampled]),
        Sequential([Laplace(1.0), sampled]),
    ):
        assert has_no_privacy(plan)
    assert not has_no_privacy(Parallel([Laplace(1.0)]))


@pytest.mark.filterwarnings("ignore::algorithms.base.non_private.NotPrivateWarning")
def test_the_minimum_in_a_ball_is_the_same_where_features_are_many(monkeypatch):
    made = PrivateLogisticLasso(delta=1e-6, radius=0.4, classes=[0, 1], **OPEN)
    rows, codes = X[:300, :4], (Y[:300] > 0).astype(int)
    few = made.fit(rows, codes).coef_.copy()
    monkeypatch.setattr(exact_minimum, "MOST_WHITENED", 3)
    assert made.fit(rows, codes).coef_ == pytest.approx(few, abs=1e-4)


@pytest.mark.parametrize("radius", [math.inf, 0.4])
def test_a_minimum_does_not_depend_on_the_unit_of_targets(radius):
    rows, targets = X[:200, :4] * np.linspace(0.1, 1.0, 4), Y[:200]
    query = ExactMinimum(
        ScoreLoss.within(SQUARED, -2.0, 2.0), lambda rows: rows, True, l1_radius=radius
    )
    small = replace(query, l1_radius=1e-12 * radius)((rows, 1e-12 * targets))
    assert 1e12 * small == pytest.approx(query((rows, targets)), abs=1e-4)


def test_a_minimum_does_not_depend_on_the_units_of_features():
    rows, targets, units = X[:200, :4], Y[:200], np.array([1e-9, 1.0, 1.0, 1e5])
    query = ExactMinimum(ScoreLoss.within(SQUARED, -2.0, 2.0), lambda rows: rows, True)
    slopes = query((rows * units, targets))[:-1, 0] * units
    assert slopes == pytest.approx(query((rows, targets))[:-1, 0], rel=1e-9)


def test_of_several_minimisers_the_shortest_is_taken():
    rows = np.column_stack([X[:200, :3], 1e-3 * X[:200, 0], np.full(200, 2.0), np.zeros(200)])
    best = np.linalg.lstsq(np.column_stack([rows, np.ones(200)]), Y[:200], rcond=None)[0]
    query = ExactMinimum(ScoreLoss.within(SQUARED, -2.0, 2.0), lambda rows: rows, True)
    assert query((rows, Y[:200]))[:, 0] == pytest.approx(best, abs=1e-9)


@pytest.mark.filterwarnings("ignore::algorithms.base.non_private.NotPrivateWarning")
def test_a_descent_without_noise_has_rounds_too():
    made = PrivateLasso(delta=1e-6, radius=1.5, y_bound=2.0, method="descent", rounds=20, **OPEN)
    assert made.fit(X, Y).coef_ == pytest.approx(THETA, abs=0.1)
