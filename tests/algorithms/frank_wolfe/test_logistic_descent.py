"""PrivateLogisticLasso by clipped gradients: when, within which sensitivity, how well."""

import math

import numpy as np
import pytest

from accountant import Budget, Chunks, ParameterError
from algorithms import PrivateLogisticLasso
from algorithms.base.adaptive_descent import BlockVector, vector_sensitivity
from algorithms.base.glm_losses import LOGISTIC
from audits import replay
from mechanisms import Gaussian, NoisyMax

RNG = np.random.default_rng(6)
X = RNG.uniform(-1, 1, (4000, 4))
LABELS = np.where(X @ [3.0, -2.0, 0.0, 0.0] > 0, 1.0, -1.0)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_gradients_where_the_plan_shows_little_noise(epsilon):
    made = PrivateLogisticLasso(epsilon, 1e-6)
    plan = made.plan((20_000, 4))
    assert isinstance(plan.part, Gaussian)
    assert 0.999 * epsilon <= Budget(epsilon, 1e-6).check(plan) <= epsilon
    assert isinstance(made.plan((20, 4)).part, NoisyMax)
    for settings in ({"rounds": 5}, {"selection": "laplace"}, {"delta": 0.0}):
        asked = PrivateLogisticLasso(**{"epsilon": epsilon, "delta": 1e-6, **settings})
        assert not isinstance(asked.plan((20_000, 4)).part, Gaussian)
    with pytest.raises(ParameterError, match="delta must be"):
        PrivateLogisticLasso(epsilon, 0.0, method="descent").plan((20_000, 4))


@pytest.mark.parametrize("weighted", [False, True])
def test_no_record_moves_the_vector_of_a_round_by_more_than_declared(weighted):
    rng, declared, greatest = (
        np.random.default_rng(5),
        20 * vector_sensitivity(20, "replace-one"),
        0,
    )
    for _ in range(300):
        theta = rng.normal(size=3) * 10 ** rng.uniform(-2, 2)
        norm = 10 ** rng.uniform(-3, 0)
        work = BlockVector(1.0, 1.0, False, 3.0, theta, norm, LOGISTIC.slope, 2.0)
        one = rng.normal(size=(1, 3)) * 10 ** rng.uniform(-3, 2)
        other, label = one * 10 ** rng.uniform(-2, 2), rng.choice([-1.0, 1.0], 1)
        weights = rng.uniform(-1.0, 9.0, (2, 1)) if weighted else np.empty((2, 0))
        pair = ((one, label, weights[0]), (other, -9 * label, weights[1]))
        moved = work(pair[0][: 2 + weighted]) - work(pair[1][: 2 + weighted])
        greatest = max(greatest, float(np.linalg.norm(moved)))
    assert 0.9 * declared < greatest <= declared


def test_it_learns_where_selections_of_radius_one_stop():
    made = PrivateLogisticLasso(1.0, 1e-6, classes=[-1, 1], random_state=0).fit(X, LABELS)
    assert made.score(X, LABELS) > 0.97
    assert np.abs(made.coef_).sum() <= 64 * (1 + 1e-12)
    assert "clipping norms" in made.summary()
    whole = made.coef_.tobytes()
    pieces = Chunks(lambda: ((X[at : at + 900], LABELS[at : at + 900])
                             for at in range(0, 4000, 900)), X.shape)  # fmt: skip
    assert made.fit(pieces).coef_.tobytes() == whole


def test_replay_finds_no_leak():
    other = X[:300].copy()
    other[0] = -9.0
    made = PrivateLogisticLasso(1.0, 1e-5, method="descent", classes=[-1, 1])
    found = replay(made, (X[:300], LABELS[:300]), (other, LABELS[:300]), rng=1)
    assert found.leak_free
    assert found.on_plan
    assert found.deterministic


def test_the_intercept_is_in_the_units_of_the_labels():
    # all labels are 1 whatever the features: the constant alone lowers the loss
    rows = np.random.default_rng(2).uniform(-0.25, 0.25, (400, 2))
    fits = [
        PrivateLogisticLasso(
            1e6, 1e-6, radius=1.0, x_bound=bound, method="descent", fit_intercept=True,
            classes=[-1, 1], random_state=0,
        ).fit(bound * rows, np.where(np.arange(400) < 300, 1.0, -1.0))
        for bound in (0.25, 1.0, 4.0)
    ]  # fmt: skip
    # the share of 3 / 4 is that of the logit ln 3, in units of x where x is scaled
    for fit in fits:
        assert float(np.ravel(fit.intercept_)[0]) == pytest.approx(math.log(3), abs=0.1)
