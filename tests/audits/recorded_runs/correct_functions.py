"""Correct private functions, written in the ways people write them: none may be found at fault."""

from __future__ import annotations

import math
import random
import secrets

import numpy as np
from numpy.random import default_rng
from scipy import stats
from sklearn.utils import check_random_state

from accountant import PureLoss
from algorithms import PrivateMean, PrivateSelection

EPSILON = 1.0
bits = default_rng()  # a generator of the module


def laplace_sum(data):
    return float(np.clip(data, 0, 1).sum() + np.random.laplace(scale=1 / EPSILON))


def laplace_at_its_place(data, rng):
    return rng.laplace(loc=np.clip(data, 0, 1).sum(), scale=1 / EPSILON)


def noisy_mean_of_a_noisy_count(data, rng):
    total = np.clip(data, 0, 1).sum() + rng.laplace(scale=2 / EPSILON)
    count = len(data) + rng.laplace(scale=2 / EPSILON)
    return max(0.0, min(1.0, total / max(count, 1.0)))


def histogram(data):
    counts = np.zeros(5)
    for k in range(5):
        counts[k] = np.sum((data * 5).astype(int) == k) + bits.laplace(scale=1 / EPSILON)
    return np.maximum(np.round(counts), 0)


def exponential_by_gumbel(data, rng):
    scores = np.histogram(data, bins=4, range=(0, 1))[0]
    return int(np.argmax(scores + rng.gumbel(scale=2 / EPSILON, size=4)))


def exponential_by_choice(data, rng):
    scores = np.histogram(data, bins=4, range=(0, 1))[0] * EPSILON / 2
    weights = np.exp(scores - scores.max())
    return rng.choice(["a", "b", "c", "d"], p=weights / weights.sum())


def exponential_by_inversion(data, rng):
    scores = np.histogram(data, bins=4, range=(0, 1))[0] * EPSILON / 2
    weights = np.exp(scores - scores.max())
    return int(np.argmax(rng.random() < np.cumsum(weights / weights.sum())))


def noisy_max(data, rng):
    scores = np.histogram(data, bins=4, range=(0, 1))[0]
    noisy = [score + rng.laplace(scale=1 / EPSILON) for score in scores]
    return max(range(4), key=lambda k: noisy[k])


def sparse_vector(data, rng):
    level = 3 + rng.laplace(scale=2 / EPSILON)
    for k in range(20):
        if np.sum(data > k / 20) + rng.laplace(scale=4 / EPSILON) < level:
            return k
    return None


def gaussian_descent(data, rng):
    weights = np.zeros(3)
    for _ in range(10):
        slopes = np.tanh(data[:, None] * np.ones(3) - weights)
        slopes /= np.maximum(1.0, np.linalg.norm(slopes, axis=1))[:, None]
        weights += 0.1 * (slopes.sum(axis=0) + rng.normal(scale=20.0, size=3)) / 10
    return {"weights": weights, "steps": 10}


def sampled_descent(data, rng):
    weights = np.zeros(3)
    for _ in range(10):
        taken = data[rng.random(len(data)) < 0.5]
        slopes = np.tanh(taken[:, None] * np.ones(3) - weights)
        slopes /= np.maximum(1.0, np.linalg.norm(slopes, axis=1))[:, None]
        weights = weights + 0.1 * (slopes.sum(axis=0) + rng.normal(scale=20.0, size=3)) / 10
    return weights


def laplace_of_two_exponentials(data):
    draw = random.expovariate
    return np.sum(data > 0.5) + draw(EPSILON) - draw(EPSILON)


def laplace_by_inversion(data):
    u = np.random.uniform()
    noise = np.log(2 * u) if u < 0.5 else -np.log(2 - 2 * u)
    return np.sum(data > 0.5) + noise / EPSILON


def discrete_laplace(data, rng):
    p = 1 - math.exp(-EPSILON)
    return int(np.sum(data > 0.5)) + rng.geometric(p) - rng.geometric(p)


def gaussian_by_box_and_muller(data):
    system = secrets.SystemRandom()
    u, v = system.random(), system.random()
    return np.sum(data > 0.5) + 5 * np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)


def clusters(data):
    rng = check_random_state(None)
    centres, rows = rng.uniform(0, 1, (3, 1)), np.clip(data, 0, 1)[:, None]
    for _ in range(3):
        nearest = np.abs(rows - centres.T).argmin(axis=1)
        for k in range(3):
            total = rows[nearest == k].sum() + rng.laplace(scale=20 / EPSILON)
            count = np.sum(nearest == k) + rng.laplace(scale=20 / EPSILON)
            centres[k] = np.clip(total / max(count, 1.0), 0, 1)
    return centres


def noise_of_scipy(data):
    return np.clip(data, 0, 1).sum() + stats.laplace.rvs(scale=1 / EPSILON)


def gaussian_regression(data, rng):
    rows = np.clip(np.column_stack([data, np.ones(len(data))]), 0, 1)
    noise = np.triu(rng.normal(scale=12.0, size=(2, 2)))
    noise = noise + np.triu(noise, 1).T
    moments = rows.T @ rows[:, 0] + rng.normal(scale=12.0, size=2)
    return np.linalg.lstsq(rows.T @ rows + noise, moments, rcond=None)[0]


def tree_of_counts(data, rng):
    counts, levels = np.histogram(data, bins=8, range=(0, 1))[0].astype(float), []
    while True:
        levels.append(counts + rng.laplace(scale=4 / EPSILON, size=counts.shape))
        if len(counts) == 1:
            return levels
        counts = counts[::2] + counts[1::2]


class MeanEstimator:
    """In the manner of scikit-learn: parameters, `fit`, and what was learned in attributes."""

    def __init__(self, epsilon=EPSILON, random_state=None):
        self.epsilon, self.random_state = epsilon, random_state

    def fit(self, X):
        rng = np.random.RandomState(self.random_state)
        noise = rng.laplace(0, 1 / (self.epsilon * 20), size=1)
        self.mean_ = np.clip(X, 0, 1)[:20].mean() + noise
        self.classes_ = [0, 1]
        return self


def estimator(data):
    return MeanEstimator().fit(data)


def private_mean(data):
    model = PrivateMean(epsilon=EPSILON, row_bound=1.0, random_state=default_rng(3))
    return model.fit(data[:, None]).mean_


def private_selection(data):
    rows = (data[:, None] > np.linspace(0, 1, 4)).astype(float)
    return PrivateSelection(epsilon=EPSILON, random_state=default_rng(4)).fit(rows).chosen_


ADD_OR_REMOVE = [
    laplace_sum, laplace_at_its_place, noisy_mean_of_a_noisy_count, histogram,
    exponential_by_gumbel, exponential_by_choice, exponential_by_inversion, noisy_max,
    sparse_vector, gaussian_descent, sampled_descent, laplace_of_two_exponentials,
    laplace_by_inversion, discrete_laplace, gaussian_by_box_and_muller, clusters, noise_of_scipy,
    gaussian_regression, tree_of_counts,
]  # fmt: skip
# exact noise is made of whole numbers, which are handed out as they are: its mechanism is named
REPLACE = [
    (estimator, {}),
    (private_mean, {"mechanisms.laplace:Laplace.release": PureLoss(1.0)}),
    (private_selection, {"mechanisms.permute_and_flip:PermuteAndFlip.release": PureLoss(1.0)}),
]
