"""How algorithms, estimators and functions are run for an audit of their results."""

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from accountant import ParameterError
from audits.adapters.estimators import EstimatorAdapter
from mechanisms import Laplace

X = np.arange(12.0).reshape(4, 3)
Y = np.array([1.0, -1.0, 2.0, 0.0])


def noisy_mean(data, rng, noise=1.0):
    return data.mean(axis=0) + noise * rng.normal(size=3)


def plain_mean(data, rng):
    return data.mean(axis=0) + rng.normal(size=3)


def noisy_fit(x, y, rng, noise=1.0):
    return x.T @ y + noise * rng.normal(size=3)


def plain_fit(x, y, rng):
    return x.T @ y + rng.normal(size=3)


class NoisySum:
    """An algorithm behind a gate."""

    def plan(self, shape):
        del shape
        return 1 * Laplace(2.0)

    def run(self, ledger):
        return np.array([ledger.release(Laplace(2.0), np.sum)])


class Fitted:
    """An estimator that shows what it was given."""

    random_state = None

    def fit(self, x, y):
        self.coef_ = np.array([x.sum(), y.sum(), float(self.random_state)])
        return self


class Inner(BaseEstimator):
    """An estimator with a seed."""

    def __init__(self, random_state=0):
        self.random_state = random_state


class Outer(BaseEstimator):
    """An estimator whose noise comes from the seed of another one."""

    def __init__(self, inner=None):
        self.inner = inner

    def fit(self, x, y):
        self.coef_ = np.random.default_rng(self.inner.random_state).normal(size=3)
        return self


def test_an_estimator_within_another_has_a_new_seed_in_every_run():
    adapter, rng = EstimatorAdapter.of(Outer(Inner())), np.random.default_rng(5)
    assert np.all(adapter.estimate(X, Y, rng) != adapter.estimate(X, Y, rng))
    assert adapter.algorithm.inner.random_state == 0


@pytest.mark.parametrize("noise", [1.0, 0.25, 0.0])
def test_the_noise_of_a_function_that_takes_a_factor_is_multiplied_by_it(noise):
    drawn = np.random.default_rng(5).normal(size=3)
    result = EstimatorAdapter.of(noisy_mean).release_result(X, np.random.default_rng(5), noise)
    assert result == pytest.approx(X.mean(axis=0) + noise * drawn)
    estimate = EstimatorAdapter.of(noisy_fit).estimate(X, Y, np.random.default_rng(5), noise)
    assert estimate == pytest.approx(X.T @ Y + noise * drawn)


def test_another_function_has_its_own_noise_alone():
    drawn = np.random.default_rng(5).normal(size=3)
    mean, fit = EstimatorAdapter.of(plain_mean), EstimatorAdapter.of(plain_fit)
    assert mean.release_result(X, np.random.default_rng(5)) == pytest.approx(X.mean(axis=0) + drawn)
    assert fit.estimate(X, Y, np.random.default_rng(5)) == pytest.approx(X.T @ Y + drawn)
    for call in (mean.release_result, lambda *given: fit.estimate(X, *given)):
        with pytest.raises(ParameterError, match="noise must be 1: the noise of plain_"):
            call(Y, np.random.default_rng(5), 0.5)


def test_the_noise_behind_a_gate_is_multiplied_by_the_factor():
    adapter = EstimatorAdapter.of(NoisySum())
    assert adapter.name == "NoisySum"
    assert adapter.release_result(Y, np.random.default_rng(5), 0.0) == pytest.approx([Y.sum()])
    deviations = [
        np.std([adapter.release_result(Y, rng, noise) for _ in range(200)])
        for noise in (0.01, 1.0)
        for rng in [np.random.default_rng(5)]
    ]
    assert deviations[0] == pytest.approx(0.01 * deviations[1], rel=0.5)


def test_an_estimator_is_copied_and_seeded_and_has_no_result_of_its_own():
    fitted = Fitted()
    adapter = EstimatorAdapter.of(fitted)
    first = adapter.estimate(X, Y, np.random.default_rng(5))
    second = adapter.estimate(X, Y, np.random.default_rng(5))
    other = adapter.estimate(X, Y, np.random.default_rng(6))
    assert first[:2].tolist() == [X.sum(), Y.sum()]
    assert first[2] == second[2] != other[2]
    assert not hasattr(fitted, "coef_")
    exchanged = EstimatorAdapter.of(fitted, data_of=lambda x, y: (x[:1], 2 * y))
    estimate = exchanged.estimate(X, Y, np.random.default_rng(5))
    assert estimate[:2].tolist() == [X[:1].sum(), 2 * Y.sum()]
    with pytest.raises(ParameterError, match=r"an algorithm or a function \(data, rng\)"):
        adapter.release_result(X, np.random.default_rng(5))


@pytest.mark.parametrize(
    ("coefficients", "vector"),
    [([1.0, 2.0], [1.0, 2.0]), ([[1.0, 2.0]], [1.0, 2.0]), ([[1.0, 2.0], [4.0, 9.0]], [3.0, 7.0])],
)
def test_coefficients_of_classes_are_one_vector(coefficients, vector):
    fitted = Fitted()
    adapter = EstimatorAdapter.of(fitted, data_of=lambda x, y: (x, y))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Fitted, "fit", lambda self, x, y: setattr(self, "coef_", coefficients) or self
        )
        assert adapter.estimate(X, Y, np.random.default_rng(5)).tolist() == vector
        patch.setattr(Fitted, "fit", lambda self, x, y: setattr(self, "coef_", [[[1.0]]]) or self)
        with pytest.raises(ParameterError, match=r"a result of shape \(1, 1, 1\)"):
            adapter.estimate(X, Y, np.random.default_rng(5))


@pytest.mark.parametrize("with_intercept", [True, False, None])
def test_only_an_intercept_is_left_out(with_intercept):
    class FittedBehindAGate(NoisySum):
        """Returns a number more than there are features."""

        def run(self, ledger):
            return np.append(super().run(ledger), [2.0, 3.0, 4.0])

    algorithm = FittedBehindAGate()
    if with_intercept is not None:
        algorithm.fit_intercept = with_intercept
    adapter = EstimatorAdapter.of(algorithm, data_of=lambda x, y: y)
    estimate = adapter.estimate(X, Y, np.random.default_rng(5), 0.0)
    assert estimate.tolist() == [Y.sum(), 2.0, 3.0, 4.0][: 3 if with_intercept else 4]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_result_that_is_not_finite_is_refused(value):
    for run in (
        lambda: EstimatorAdapter.of(lambda data, rng: value).release_result(X, None),
        lambda: EstimatorAdapter.of(lambda x, y, rng: [0.0, value]).estimate(X, Y, None),
    ):
        with pytest.raises(ParameterError, match="not finite"):
            run()
