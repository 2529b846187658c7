"""Least squares on noisy labels: the columns found, the weights, and what noise explains."""

import math

import numpy as np
import pytest
from scipy import sparse

from algorithms import LabelIHT, LabelLasso
from algorithms.base.hard_thresholding import default_step
from algorithms.sparse_regression.links import IDENTITY, LINEAR_PLUS_COSINE
from algorithms.sparse_regression.support_pursuit import PublicRows


def model(users, features, sparsity, seed, correlated=False):
    rng = np.random.default_rng(seed)
    theta = np.zeros(features)
    theta[:sparsity] = 1 / math.sqrt(sparsity)
    x = rng.choice([-1.0, 1.0], (users, features))
    if correlated:
        x = np.where(rng.random(x.shape) < math.sqrt(0.5), rng.choice([-1.0, 1.0], (users, 1)), x)
    return x, x @ theta + rng.uniform(-0.05, 0.05, users), theta


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_equations_are_those_of_least_squares(kind):
    x, y, _ = model(200, 6, 2, 0)
    rows, some = PublicRows(IDENTITY, (kind(x), y)), np.array([0, 3, 4])
    found = rows.equations(some, np.linspace(-1, 1, 6))
    expected, residual, *_ = np.linalg.lstsq(x[:, some], y)
    assert found.solution() == pytest.approx(expected)
    assert found.residual() == pytest.approx(residual[0])
    assert found.only(np.array([1])).solution() == pytest.approx(x[:, 3] @ y / (x[:, 3] @ x[:, 3]))
    assert rows.lengths() == pytest.approx(np.linalg.norm(x, axis=0))
    # two equal columns share the weight
    twins = PublicRows(IDENTITY, (kind(x[:, [0, 0]]), y)).equations(np.arange(2), np.zeros(2))
    assert twins.solution() == pytest.approx([twins.solution()[0]] * 2)


def test_a_tangent_of_the_link_leads_to_its_minimum():
    x, _, theta = model(2000, 4, 2, 1)
    y = LINEAR_PLUS_COSINE.function(x @ theta)
    rows, found = PublicRows(LINEAR_PLUS_COSINE, (x, y)), np.zeros(4)
    for _ in range(6):
        found = rows.equations(np.arange(4), found).solution()
    assert found == pytest.approx(theta, abs=1e-9)


def test_columns_that_noise_explains_are_left_out():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(5000, 30))
    y = 0.3 * x[:, 4] + 3 * rng.normal(size=5000)
    found = PublicRows(IDENTITY, (x, y)).equations(np.arange(30), np.zeros(30)).significant(30)
    assert found.columns.tolist() == [4]
    nothing = PublicRows(IDENTITY, (x, 3 * rng.normal(size=5000)))
    left = nothing.equations(np.arange(30), np.zeros(30)).significant(30)
    assert len(left.columns) <= 2


@pytest.mark.parametrize("correlated", [False, True])
def test_labels_of_least_noise_and_a_refit_beat_gaussian_gradient_steps(correlated):
    given = {"epsilon": 1.0, "delta": 1e-5, "label_bound": math.sqrt(5) + 0.05}
    makers = {
        "iht": LabelIHT(sparsity=5, **given), "lasso": LabelLasso(noise_bound=0.05, **given),
        "paper": LabelIHT(sparsity=5, noise="gaussian", step=default_step(), **given),
    }  # fmt: skip
    errors = {name: [] for name in makers}
    for seed in range(3):
        x, y, theta = model(10_000, 30, 5, seed, correlated)
        for name, made in makers.items():
            made.set_params(random_state=seed)
            errors[name].append(np.linalg.norm(made.fit(x, y).coef_ - theta))
    # measured about .1, .13 and .3 to .9
    assert np.mean(errors["iht"]) < 0.6 * np.mean(errors["paper"])
    assert np.mean(errors["lasso"]) < 0.8 * np.mean(errors["paper"])


def test_nothing_but_zeros_gives_zero():
    x = np.zeros((40, 3))
    made = LabelIHT(epsilon=1.0, delta=0.0, sparsity=2, label_bound=1.0, random_state=0)
    assert made.fit(x, np.ones(40)).coef_.tolist() == [0.0] * 3
    lasso = LabelLasso(epsilon=1.0, delta=0.0, label_bound=1.0, noise_bound=0.1, random_state=0)
    assert lasso.fit(x, np.ones(40)).coef_.tolist() == [0.0] * 3


@pytest.mark.parametrize(("epsilon", "kind"), [(1.0, "BinaryLabel"), (3.0, "PiecewiseUniform"),
                                              (6.0, "Staircase")])  # fmt: skip
def test_the_noise_follows_epsilon(epsilon, kind):
    made = LabelIHT(epsilon=epsilon, delta=1e-6, sparsity=1, label_bound=1.0)
    assert type(made.mechanism()).__name__ == kind
    named = {"BinaryLabel": "bounded", "PiecewiseUniform": "piecewise", "Staircase": "staircase"}
    assert (
        made.set_params(noise=named[kind]).mechanism() == made.set_params(noise="auto").mechanism()
    )
