"""Clipped gradients: those of the formula, never longer than declared, the same however read."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from accountant import Chunks, Ledger, Repeat
from algorithms.base.clipped_gradient_descent import (
    BlockClippedGradient,
    FeatureMap,
    MeanOfClippedGradients,
    descend,
)
from algorithms.base.glm_losses import (
    HALF_SQUARED,
    LOGISTIC_OF_CLASSES,
    MultinomialLoss,
    ScoreLoss,
)
from algorithms.base.non_private import NoPrivacy
from mechanisms import Gaussian

RNG = np.random.default_rng(4)
X, THETA = RNG.normal(size=(40, 3)), RNG.normal(size=(4, 3))
CODES = RNG.integers(0, 3, 40).astype(float)
LOSSES = {
    "squared": (ScoreLoss.within(HALF_SQUARED, -2.0, 2.0).slopes, 1),
    "logistic": (LOGISTIC_OF_CLASSES.slopes, 1),
    "multinomial": (MultinomialLoss().slopes, 3),
}


def by_record(residuals, outputs, x, y, clip, weights):
    """The same sum, one gradient after another."""
    total = np.zeros((4, outputs))
    for row, target, weight in zip(np.clip(x, -1, 1), y, weights, strict=True):
        extended = np.append(row, 1.0)
        scores = extended @ THETA[:, :outputs]
        one = np.outer(extended, residuals(scores[None], np.array([target]))[0])
        total += np.clip(weight, 0, 1) * one / max(1.0, np.linalg.norm(one) / clip)
    return total


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("clip", [0.3, 50.0])
def test_gradients_are_those_of_the_formula(name, clip):
    residuals, outputs = LOSSES[name]
    weights = RNG.uniform(-0.5, 1.5, 40)
    work = BlockClippedGradient(residuals, clip, FeatureMap(1.0, 1.0), 1.0, THETA[:, :outputs])
    expected = by_record(residuals, outputs, X, CODES, clip, weights) / clip
    for rows in (X, sparse.csr_array(X)):
        assert work((rows, CODES, weights)) == pytest.approx(expected, rel=2e-9, abs=1e-9)


def test_no_length_of_a_long_sparse_row_near_the_centre_is_too_small():
    row = np.full(100_000, 0.14)
    centre = row * (1 - 3e-6)
    lengths = FeatureMap(centre=centre).lengths(sparse.csr_array(row[None]))
    assert lengths[0] >= math.sqrt(row.size) * (row[0] - centre[0])


def test_slopes_are_derivatives_of_the_losses():
    scores, h = RNG.normal(size=(5, 3)), 1e-6
    codes = np.array([0.0, 1.0, 2.0, 1.0, 0.0])
    first = np.zeros(3)
    first[0] = h

    def change(loss):
        return (loss(scores + first) - loss(scores - first)) / (2 * h)

    def multinomial(u):
        return -np.log(softmax(u, axis=1)[np.arange(5), codes.astype(int)])

    def logistic(u):
        return np.logaddexp(0, u[:, 0]) - (codes > 0) * u[:, 0]

    def half(u):
        return (u[:, 0] - codes) ** 2 / 2

    for loss, formula in (
        (MultinomialLoss(), multinomial),
        (LOGISTIC_OF_CLASSES, logistic),
        (ScoreLoss(HALF_SQUARED), half),
    ):
        assert loss.values(scores, codes) == pytest.approx(formula(scores))
        assert loss.slopes(scores, codes)[:, 0] == pytest.approx(change(formula))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_no_record_moves_a_mean_by_more_than_its_clip(name, kind):
    residuals, outputs = LOSSES[name]
    rng, greatest, clip = np.random.default_rng(5), 0.0, 0.5
    for _ in range(100):
        gradient = MeanOfClippedGradients(residuals, clip, 20, FeatureMap(1.0, 1.0))
        gradient.theta = rng.normal(size=(4, outputs)) * 10 ** rng.uniform(-3, 3)
        x, y = rng.normal(size=(20, 3)), rng.integers(0, 3, 20).astype(float)
        other_x, other_y = x.copy(), y.copy()
        other_x[0] *= 10 ** rng.uniform(-1, 9)
        y[0], other_y[0] = 10 ** rng.uniform(0, 9, 2) * [-1, 1]  # wrong in opposite directions
        moved = gradient((kind(x), y)) - gradient((kind(other_x), other_y))
        greatest = max(greatest, np.linalg.norm(moved))
    assert 0.8 * 2 / 20 < greatest <= 2 / 20


def test_chunks_and_arrays_give_the_same_bits_and_no_record_gives_none():
    gradient = MeanOfClippedGradients(LOGISTIC_OF_CLASSES.slopes, 0.5, 40, FeatureMap(1.0))
    gradient.theta = THETA[:3, :1]
    whole = gradient((X, CODES))
    pieces = Chunks(lambda: ((X[at : at + 7], CODES[at : at + 7]) for at in range(0, 40, 7)),
                    X.shape)  # fmt: skip
    assert gradient(pieces).tobytes() == whole.tobytes()
    assert gradient((X[:0], CODES[:0])).tolist() == [0.0, 0.0, 0.0]


def test_descent_averages_late_iterates_most():
    x, y, plan = np.ones((10, 1)), np.ones(10), Repeat(NoPrivacy(), 3)
    gradient = MeanOfClippedGradients(ScoreLoss(HALF_SQUARED).slopes, 1.0, 10, FeatureMap())
    mean = descend(
        Ledger((x, y), plan, rng=0), plan.part, gradient, np.zeros((1, 1)), 0.5, plan.count
    ).item()
    iterates = [0.5, 0.75, 0.875]
    assert mean == pytest.approx(sum(2 * t / 12 * one for t, one in enumerate(iterates, 1)))


def test_noise_reaches_every_coefficient():
    plan = Repeat(Gaussian(0.1, 0.1), 2)
    gradient = MeanOfClippedGradients(MultinomialLoss().slopes, 1.0, 40, FeatureMap(1.0, 1.0))
    ledger = Ledger((X, CODES), plan, rng=0)
    theta = descend(ledger, plan.part, gradient, np.zeros((4, 3)), 1.0, 2)
    assert theta.shape == (4, 3)
    assert np.all(theta != 0)
