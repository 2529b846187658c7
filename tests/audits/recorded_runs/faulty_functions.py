"""Faults of libraries as minimal functions, written from their public threads and examples."""

from __future__ import annotations

import numpy as np

from audits import Primitive

EPSILON = 1.0


def mean_by_the_private_size(data):
    return (np.clip(data, -1, 1).sum() + np.random.laplace(scale=1 / EPSILON)) / len(data)


def domain_of_the_data(data):
    classes = np.unique(data)
    scale = len(classes) / EPSILON
    return [np.sum(data == c) + np.random.laplace(scale=scale) for c in classes]


def spent_twice(data):
    total = np.sum(data) + np.random.laplace(scale=1 / EPSILON)
    return total, len(data) + np.random.laplace(scale=1 / EPSILON)


def clipped_with_nan(data):
    return np.clip(data, -5, 5).sum() + np.random.laplace(scale=5 / EPSILON)


def scale_of_zero(data, features=5, k=5):
    return np.sum(data) + np.random.laplace(scale=(features - k) / EPSILON)


def clipped_in_vain(data):
    clipped = np.clip(data, -5, 5)
    del clipped
    return np.sum(data) + np.random.laplace(scale=5 / EPSILON)


def domain_by_maximum(data):
    """The number of cells is the largest label and one: a public size of private data."""
    counts = np.bincount(data, minlength=int(data.max()) + 1)
    return counts + np.random.normal(scale=3.0, size=counts.shape)


def selected(scores, epsilon, sensitivity, prng=np.random):
    weights = 0.5 * epsilon / sensitivity * np.asarray(scores)
    weights = np.exp(weights - weights.max())
    return int(prng.choice(len(scores), p=weights / weights.sum()))


def scores_of_two_errors(data):
    """Model error less public error: each moves by 2, the mechanism is given 2 and not 4."""
    counts = np.bincount(data, minlength=4)
    model, public = np.array([9, 0, 0, 1]), np.array([0, 9, 1, 0])
    errors = [np.abs(counts - guess).sum() for guess in (model, public)]
    return selected([errors[0] - errors[1], errors[1] - errors[0]], 1.0, 2.0)


SELECTION = {selected: Primitive("scores", "sensitivity", "linf")}


def odometer(epsilon, delta, k):
    """As it was: no logarithm in the second bound, and the wrong combination of deltas."""
    tolerance = delta / 2
    left = np.expm1(epsilon) * epsilon * k / (np.exp(epsilon) + 1)
    first = left + epsilon * np.sqrt(2 * k * np.log(epsilon + np.sqrt(k) * epsilon / tolerance))
    second = left + epsilon * np.sqrt(2 * k / tolerance)
    spent = 1 - (1 - delta) ** k
    return min(k * epsilon, first, second), spent * (1 - spent) + tolerance


def approximate_count(data):
    noise = np.random.laplace(scale=10.0)
    return np.sum(data) + noise if np.random.random() > 1e-3 else float(np.sum(data))


def queries_by_an_odometer(data):
    answers = [approximate_count(data) for _ in range(300)]
    return answers, odometer(0.1, 1e-3, 300)


def covariance_not_clipped(data):
    """Data are clipped into a copy, and the covariance is of the data as they came."""
    clipped = np.clip(data, 0, 1)
    del clipped
    rows, columns = np.tril_indices(data.shape[1])
    true = np.cov(data.T)[rows, columns]
    scale = len(true) * 2 / len(data) / EPSILON
    noise = np.random.uniform(size=len(true))
    for k, u in enumerate(noise):
        noise[k] = scale * np.log(2 * u) if u < 0.5 else -scale * np.log(2 - 2 * u)
    return list(true + noise)


def same_noise_twice(data, rng):
    noise = rng.laplace(scale=2 / EPSILON, size=2)
    return data[0] + noise[0], 2 * data[1:].sum() + noise[0]


def value_beside_its_noise(data, rng):
    noise = rng.laplace(scale=1 / EPSILON)
    return np.sum(data) + noise, noise


def tells_without_noise(data, rng):
    noisy = np.sum(data) + rng.laplace(scale=1 / EPSILON)
    return np.concatenate([np.atleast_1d(noisy), [data.max()]])


def branches_on_data(data, rng):
    if data.max() > 0.9:
        return np.sum(data) + rng.laplace(scale=1 / EPSILON)
    return np.sum(data) + rng.normal(scale=4 / EPSILON)


def stops_with_the_data(data, rng):
    answers = []
    for value in data:
        answers.append(rng.laplace(scale=1.0))
        if value > 0.9:
            raise ValueError("too large")
    return answers


def keeps_the_data(data, rng):
    return {"answer": np.sum(data) + rng.laplace(scale=1 / EPSILON), "X_": data}


def seeded_by_the_data(data):
    return np.random.default_rng(int(data.sum() * 1000)).integers(100)


def all_thresholds(data, rng):
    """Sparse vector that goes on after a positive answer, and pays for one."""
    level = 3 + rng.laplace(scale=2 / EPSILON)
    above = []
    for k in range(80):
        count = np.sum(data > 0.5) if k % 2 else np.sum(data <= 0.5)
        above.append(bool(count + rng.laplace(scale=4 / EPSILON) > level))
    return above


def no_noise_for_the_level(data, rng):
    return [bool(np.sum(data > k / 9) + rng.laplace(scale=2.0) > 3) for k in range(9)]


def randomness_out_of_sight(data):
    return np.sum(data) + np.frombuffer(__import__("os").urandom(8), dtype=np.uint64)[0] / 2**64
