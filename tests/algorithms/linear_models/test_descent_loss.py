"""The expected loss of a descent: its formulas beside descents, and what follows from it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.linear_models.descent_loss import (
    Prospect,
    best_steps,
    kept_part,
    missing_part,
    noise_part,
    reference_spectra,
    separated,
)
from algorithms.linear_models.feature_moments import Moves
from algorithms.linear_models.mapped_plan import Sizes, worth_of
from algorithms.linear_models.private_logistic_regression import SHARES, PrivateLogisticRegression


def descents(path, averaged, rounds=4000):
    """The part of the way that is missing, and the variance of noise, step by step."""
    # ``responses[t]`` is what a unit gradient in round t does to the result.
    step = path / rounds
    way, mean_way, responses, means = 1.0, 1.0, np.zeros(rounds), np.zeros(rounds)
    for t in range(1, rounds + 1):
        weight = 2 / (t + 1) if averaged else 1.0
        way *= 1 - step
        responses *= 1 - step
        responses[t - 1] = 1 / rounds
        mean_way += weight * (way - mean_way)
        means += weight * (responses - means)
    return mean_way, rounds * float(means @ means)


@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("path", [0.05, 0.3, 2.0, 15.0])
def test_formulas_are_those_of_a_descent_of_many_steps(path, averaged):
    missing, variance = descents(path, averaged)
    assert missing_part(np.array([path]), averaged)[0] == pytest.approx(missing, rel=0.02, abs=1e-4)
    # The variance is over the squared travel, for gradients whose mean has the variance 1.
    assert noise_part(np.array([path]), averaged)[0] == pytest.approx(variance, rel=0.07)


@given(
    st.floats(1e-6, 1e3), st.floats(0.6, 200), st.integers(1, 60),
    st.sampled_from([0.0, 1.0, 18.0]), st.sampled_from([1e-3, 0.1, 5.0, np.inf]),
)  # fmt: skip
def test_steps_are_within_their_limits_and_no_noise_makes_them_longer(
    noise, longest, size, constant, least_ridge
):
    spectra = reference_spectra(size)
    found = best_steps(spectra, Prospect(noise, longest, 0.7, constant), least_ridge)
    assert 0 < found.travel <= longest
    assert found.ridge >= least_ridge
    assert np.isfinite(found.loss)
    quiet = best_steps(spectra, Prospect(noise / 100, longest, 0.7, constant), least_ridge)
    assert quiet.loss <= found.loss * 1.11  # the shortest travel may lose a tenth


def test_noise_hides_eigenvalues_and_moves_others():
    rng, size, deviation = np.random.default_rng(0), 200, 0.05
    true = np.zeros(size)
    true[:3] = [5.0, 3.0, 2.0]
    noise = np.triu(rng.normal(size=(size, size)), 1) * deviation / np.sqrt(2)
    matrix = np.diag(true) + noise + noise.T + np.diag(rng.normal(size=size) * deviation)
    radius = deviation * np.sqrt(2 * size)
    values = np.linalg.eigvalsh(matrix)
    found = separated(values, 1.05 * radius, 10.0)
    assert found[-3:] == pytest.approx([2.0, 3.0, 5.0], abs=0.12)
    assert np.ptp(found[:-3]) == 0
    # The largest of them lies above its own place by radius^2 / 4 v.
    assert values[-3] - 2.0 > 0.05
    assert separated(np.array([0.1, 0.4]), 0.0, 0.5).tolist() == [0.1, 0.4]


def test_what_is_kept_of_coefficients_is_what_is_no_noise():
    noise = np.full(400, 1.0)
    rng = np.random.default_rng(1)
    kept = [kept_part((signal + rng.normal(size=400)) ** 2, noise, 400.0, 0.0)
            for signal in (0.0, 1.0, 10.0)]  # fmt: skip
    assert kept == pytest.approx([0.0, 0.5, 0.99], abs=0.1)
    assert kept_part(np.full(400, 2.0), noise, 400.0, 0.4) == pytest.approx(0.5 / 0.6, rel=0.02)
    # The squares say little beside noise that is far above what is usual.
    assert kept_part(np.full(4, 1e4), np.full(4, 1e4), 1.0, 0.0) < 1e-3


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_more_records_are_worth_more_releases(relation):
    moves, before = Moves.of(relation), (0.0, 0.0)
    for records in (10, 100, 1000, 10_000, 100_000, 10**6):
        worth = worth_of(Sizes(records, 30, 31), 0.2, SHARES, moves, 0.64, 0.25)
        after = worth.shares.moments, worth.shares.products
        assert after >= before
        assert 60 <= worth.rounds <= 200
        before = after
    assert before == (0.05, 0.15)


def test_a_few_rounds_that_are_asked_for_are_stable():
    made = PrivateLogisticRegression(epsilon=50.0, delta=1e-6, classes=[0, 1], rounds=7)
    x = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    made.set_params(random_state=0).fit(x, (x[:, 0] > 0).astype(int))
    assert made.score(x, (x[:, 0] > 0).astype(int)) > 0.95
