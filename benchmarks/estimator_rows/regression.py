"""Linear regressions: ours, clipped gradient descent, AdaSSP, TukeyEM, diffprivlib, a constant."""

import math
import sys
from functools import partial

import numpy as np

from algorithms import PrivateLasso, PrivateLinearRegression
from benchmarks.estimator_rows import (
    DELTA,
    DIFFPRIVLIB,
    Kind,
    Method,
    Task,
    mu_of,
    package_data,
    simulators,
)

MODELS = 1000  # of TukeyEM, as its authors chose


def r2(predicted, targets):
    return 1 - float(np.mean((targets - predicted) ** 2) / np.var(targets))


def with_constant(data):
    """Both parts, with a feature that is always 1, for methods that have no intercept."""
    return tuple((np.column_stack([x, np.ones(len(x))]), y) for x, y in data)


def fitted(made, data, epsilon, seed):
    """R2 of an estimator of ours with its defaults."""
    model = made(epsilon=epsilon, delta=DELTA, random_state=seed).fit(*data.train)
    return r2(model.predict(data.test[0]), data.test[1])


def constant(data, epsilon, seed):
    """The mean of targets in [-1, 1] with Gaussian noise."""
    targets = data.train[1]
    noise = 2 / (len(targets) * mu_of(epsilon)) * np.random.default_rng(seed).normal()
    return r2(np.mean(targets) + noise, data.test[1])


def clipped_gradient_descent(data, epsilon, seed, rounds=200, clip=0.8):
    """Every record's gradient is clipped to a norm; noise of replacing one record each round.

    The step is the longest of those that are safe, found from the data, which favours it.
    """
    (x, y), (other_x, other_y) = with_constant(data)
    rng, theta = np.random.default_rng(seed), np.zeros(x.shape[1])
    # T rounds, each moved by 2 clip / n, cost mu in all
    noise = 2 * clip * np.sqrt(rounds) / (mu_of(epsilon) * len(y))
    lengths = np.linalg.norm(x, axis=1)
    step = 1 / float(np.mean(lengths**2))
    for _ in range(rounds):
        residual = x @ theta - y
        kept = residual * np.minimum(1, clip / np.maximum(np.abs(residual) * lengths, 1e-300))
        theta -= step * (x.T @ kept / len(y) + noise * rng.normal(size=theta.size))
    return r2(other_x @ theta, other_y)


def adassp(data, epsilon, seed):
    """Wang (2018), Algorithm 2, with three equal Gaussians whose composition is exact.

    The bounds are those of features and targets in [-1, 1]; a record replaced moves every
    statistic by at most its largest value, or twice it for products with the target.
    """
    (x, y), (other_x, other_y) = with_constant(data)
    rng, p = np.random.default_rng(seed), x.shape[1]
    mu, square = mu_of(epsilon) / np.sqrt(3), float(p)
    gram = x.T @ x
    least = float(np.linalg.eigvalsh(gram)[0])
    low = max(0.0, least + square / mu * rng.normal() - 3 * square / mu)
    ridge = max(0.0, np.sqrt(p * np.log(2 * p**2 / 0.05)) * np.sqrt(2) * square / mu - low)
    # a replaced row moves the Gram matrix by at most sqrt 2 |x|^2 in Frobenius norm
    upper = np.triu(rng.normal(size=(p, p))) * np.sqrt(2) * square / mu
    noisy = gram + upper + np.triu(upper, 1).T
    products = x.T @ y + 2 * np.sqrt(square) / mu * rng.normal(size=p)
    theta = np.linalg.solve(noisy + ridge * np.eye(p), products)
    return r2(other_x @ theta, other_y)


def tukey_em(data, epsilon, seed):
    """Amin, Joseph, Ribero & Vassilvitskii (2022): a deep point among least squares of parts.

    There are 1,000 parts, or fewer of as many records as coefficients.  Depth is that of sorted
    coordinates, and the weight of a point is e to the epsilon times depth, as in the authors' code,
    which favours it.  Where the check of distance fails there is no model: then it is the constant.
    """
    (x, y), (other_x, other_y) = with_constant(data)
    rng, half = np.random.default_rng(seed), epsilon / 2
    size = min(max(x.shape[1], len(y) // MODELS), len(y))
    parts = np.split(rng.permutation(len(y))[: len(y) // size * size], len(y) // size)
    models = np.array([np.linalg.lstsq(x[rows], y[rows], rcond=None)[0] for rows in parts])
    # Row i has the ends of the box of all points of depth i + 1 and more.
    ordered = np.sort(models + 1e-10 * rng.random(models.shape), axis=0)
    low, high = ordered[: len(parts) // 2], ordered[::-1][: len(parts) // 2]
    volumes = np.log(np.maximum(high - low, 1e-300)).sum(axis=1)
    depth = len(low) // 2
    distance = distance_to_unsafety(volumes, depth, half)
    noisy = distance + rng.laplace(scale=1 / half)
    if noisy <= math.log(1 / (2 * DELTA)) / half:
        return constant(data, epsilon, seed)
    # The density grows by e^half from box to box: it is a mixture of uniform laws on the boxes.
    weights = volumes[depth - 1 :] + half * np.arange(len(low) - depth + 1)
    weights[1:] += math.log(-math.expm1(-half))
    box = depth - 1 + int(np.argmax(weights + rng.gumbel(size=weights.size)))
    return r2(other_x @ rng.uniform(low[box], high[box]), other_y)


def distance_to_unsafety(volumes, depth, epsilon):
    """How many records must change at least before the law at a depth is unsafe."""
    threshold = math.log(DELTA / 8) - epsilon
    for k in range(max(0, depth - 1)):
        inner = volumes[depth + k + 1 : -1]
        gaps = volumes[depth - k - 2] - inner - epsilon / 2 * np.arange(1, len(inner) + 1)
        if not gaps.size or gaps.min() > threshold:
            return k - 1
    return depth - 2


def diffprivlib(data, epsilon, seed):
    """Its LinearRegression is pure epsilon-DP, so its guarantee is at least as strong."""
    try:
        from diffprivlib.models import LinearRegression
    except ImportError:
        print(DIFFPRIVLIB, file=sys.stderr)
        return None
    made = LinearRegression(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-1, 1),
                            random_state=seed)  # fmt: skip
    return r2(made.fit(*data.train).predict(data.test[0]), data.test[1])


def least_squares(data, epsilon, seed):
    from sklearn.linear_model import LinearRegression

    del epsilon, seed
    return r2(LinearRegression().fit(*data.train).predict(data.test[0]), data.test[1])


METHODS = (
    Method("PrivateLinearRegression", Kind.OURS, partial(fitted, PrivateLinearRegression)),
    Method("PrivateLinearRegression(bounds='private')", Kind.OURS,
           partial(fitted, partial(PrivateLinearRegression, bounds="private"))),
    Method("PrivateLasso", Kind.OURS, partial(fitted, PrivateLasso)),
    Method("clipped gradient descent", Kind.PEER, clipped_gradient_descent),
    Method("AdaSSP", Kind.PEER, adassp),
    Method("TukeyEM", Kind.PEER, tukey_em),
    Method("diffprivlib (delta 0)", Kind.PEER, diffprivlib),
    Method("the constant", Kind.CONSTANT, constant),
    Method("scikit-learn", Kind.FREE, least_squares),
)  # fmt: skip
LOADED = {
    **{name: partial(package_data.parts, name) for name in package_data.REGRESSIONS},
    **{f"{name}, simulated": partial(simulators.parts, name, classes=False)
       for name in simulators.FAMILIES},
}  # fmt: skip
TASKS = tuple(Task(name, "R2", 1.0, load, METHODS) for name, load in LOADED.items())
