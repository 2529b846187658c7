"""Shares of classes and calibration: how far a record moves them, and what they are for."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from accountant import ParameterError
from accountant.plans.adjacency import Adjacency
from algorithms import PrivateLogisticRegression
from algorithms.base.clipped_gradient_descent import FeatureMap
from algorithms.base.non_private import NotPrivateWarning
from algorithms.linear_models.class_shares import (
    BlockCalibration,
    BlockClasses,
    Calibration,
    ClassWeights,
    calibration_moved,
    public_weights,
    shares_moved,
)
from audits import replay

RNG = np.random.default_rng(3)
X = RNG.normal(size=(10_000, 4)).clip(-4, 4) / 4
RARE = RNG.random(10_000) < expit(6 * X[:, 0] - 3 * X[:, 1] - 4.6)
TARGET = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_no_record_moves_shares_or_calibration_by_more_than_declared(outputs, relation):
    rng, features = np.random.default_rng(5), FeatureMap(x_bound=50.0, intercept=1.0)
    theta = rng.normal(size=(3, outputs)) * 9
    works = BlockClasses(outputs), BlockCalibration(features, theta)
    replaced = relation == "replace-one"
    declared = [moved(outputs, Adjacency(relation)) for moved in (shares_moved, calibration_moved)]
    farthest = [0.0, 0.0]
    for _ in range(150):
        blocks = [(rng.normal(size=(1, 2)) * 50, rng.integers(-1, 4, 1) * 1.0) for _ in range(2)]
        for k, work in enumerate(works):
            moved = work(blocks[0]) - (work(blocks[1]) if replaced else 0)
            farthest[k] = max(farthest[k], float(np.linalg.norm(moved)))
    assert farthest[0] <= declared[0]
    assert farthest[1] <= declared[1]
    assert np.array(farthest) == pytest.approx(declared, rel=0.05)


def test_balanced_weights_are_one_over_the_shares():
    found = ClassWeights.of(np.array([0.02]), 0.0, None)
    assert found.weights == pytest.approx([0.02 / 0.98, 1.0])
    assert found.mean == pytest.approx(0.04)
    # A share below its noise counts as the noise.
    assert ClassWeights.of(np.array([-0.01]), 0.05, None).weights == pytest.approx([0.05 / 1, 1.0])
    public = ClassWeights.of(np.array([0.5, 0.3, 0.2]), 0.0, np.array([1.0, 4.0, 2.0]))
    assert public.weights.tolist() == [0.25, 1.0, 0.5]
    assert public.mean == pytest.approx(0.5 * 0.25 + 0.3 + 0.2 * 0.5)


def test_a_rare_class_is_found_with_balanced_weights():
    made = PrivateLogisticRegression(classes=[False, True], class_weight="balanced", **TARGET)
    assert made.plan(X.shape) == made.fit(X, RARE).plan_
    peer = LogisticRegression(class_weight="balanced").fit(X, RARE)
    goal = balanced_accuracy_score(RARE, peer.predict(X))
    assert balanced_accuracy_score(RARE, made.predict(X)) > goal - 0.03 > 0.7
    assert made.calibration_ is None
    sparse_fit = PrivateLogisticRegression(**made.get_params()).fit(sparse.csr_array(X), RARE)
    assert sparse_fit.coef_ == pytest.approx(made.coef_, rel=1e-6)
    # Public weights are followed too.
    named = made.set_params(class_weight={False: 1.0, True: 40.0}).fit(X, RARE).predict(X)
    assert np.mean(named[RARE]) > 0.6
    alone = made.set_params(class_weight=None).fit(X, RARE).predict(X)
    assert np.mean(alone[RARE]) < 0.4


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_mean_probabilities_are_shares_of_classes(epsilon):
    made = PrivateLogisticRegression(
        classes=[False, True], epsilon=epsilon, delta=1e-6, random_state=1
    ).fit(X, RARE)
    mean, share = made.predict_proba(X)[:, 1].mean(), RARE.mean()
    assert abs(mean - share) < 0.25 * share
    reported = made.calibration_
    # five deviations of the noise
    assert abs(reported.shares[0] - share) < 5 * reported.noise
    before = reported.probabilities[0]
    assert abs(mean - share) < abs(before - share) + 5 * reported.noise


def test_a_shift_makes_means_equal_unless_noise_hides_them():
    shares, means = np.array([0.02]), np.array([0.05])
    shift = Calibration(shares, means, 0.0).shift()[0]
    assert shift == pytest.approx(math.log(0.02 / 0.98) - math.log(0.05 / 0.95))
    assert Calibration(shares, means, 0.05).shift() == [0.0]
    assert 0.9 < Calibration(shares, means, 0.002).shift()[0] / shift < 1
    many = Calibration(np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2]), 0.0).shift()
    assert many == pytest.approx(np.log([0.5 / 0.4, 0.3 / 0.4, 1.0]))
    assert np.isfinite(Calibration(np.array([-3.0]), np.array([7.0]), 9.0).shift()).all()


def test_without_privacy_public_weights_are_those_of_scikit_learn():
    weights = {False: 1.0, True: 25.0}
    made = PrivateLogisticRegression(
        epsilon=math.inf, delta=1e-6, non_private=True, class_weight=weights
    )
    with pytest.warns(NotPrivateWarning):
        made.fit(X[:4000], RARE[:4000])
    peer = LogisticRegression(C=1e9, class_weight=weights, tol=1e-8).fit(X[:4000], RARE[:4000])
    assert made.coef_ == pytest.approx(peer.coef_, rel=1e-3)


@pytest.mark.parametrize(
    "wrong", ["unbalanced", {True: 0.0}, {True: -1}, {"yes": 2.0}, {True: math.nan}, 3, [1, 2]]
)
def test_wrong_weights_are_refused_before_any_spend(wrong):
    made = PrivateLogisticRegression(classes=[False, True], class_weight=wrong, **TARGET)
    with pytest.raises(ParameterError, match="class_weight"):
        made.fit(X, RARE)
    assert not hasattr(made, "ledger_")
    with pytest.raises(ParameterError, match="shares of classes are released"):
        PrivateLogisticRegression(
            epsilon=math.inf, delta=1e-6, non_private=True, class_weight="balanced"
        ).plan((10, 2))
    assert public_weights({"a": 3.0}, ["a", "b"]).tolist() == [3.0, 1.0]


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 3.0}])
def test_replays_leak_nothing_and_keep_to_the_plan(class_weight):
    made = PrivateLogisticRegression(
        epsilon=4.0, delta=1e-5, classes=[0, 1], rounds=5, class_weight=class_weight
    )
    x, y = X[:400], RARE[:400] * 1
    other_x, other_y = x.copy(), y.copy()
    other_x[0], other_y[0] = -50 * x[0], 1 - y[0]
    found = replay(made, (x, y), (other_x, other_y), rng=1)
    assert (found.leak_free, found.on_plan, found.deterministic) == (True, True, True)
    kinds = [type(part).__name__ for part in made.plan(x.shape).parts]
    assert kinds[-1] == ("Gaussian" if class_weight is None else "Repeat")
    assert kinds.count("Gaussian") >= 2
