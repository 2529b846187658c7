"""Linear regressions: ours, full-batch clipped gradient descent, AdaSSP, diffprivlib, none."""

import sys
from functools import lru_cache

import numpy as np

from accountant import calibrate
from algorithms import PrivateLasso, PrivateLinearRegression
from audits.runner.california_housing import load
from benchmarks.estimator_rows import Kind, Method, Split, Task
from mechanisms import Gaussian

DELTA = 1e-6


def r2(coef, test):
    x, y = test
    return 1 - float(np.mean((y - x @ coef) ** 2) / np.var(y))


@lru_cache
def california(seed, quick):
    """The embedded data; the split is fixed and the seeds are those of the noise."""
    if not quick:
        found = load()
        return Split(found.train, found.test)
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (2000, 4))
    y = x @ [0.5, 0.2, 0.0, -0.2] + 0.05 * rng.normal(size=2000)
    return Split((x[:1500], y[:1500]), (x[1500:], y[1500:]))


@lru_cache
def mu_of(epsilon):
    """The shift of Gaussian noise over its deviation that the guarantee allows in all."""
    return calibrate(Gaussian, epsilon=epsilon, delta=DELTA).loss.mu


def linear(data, epsilon, seed):
    made = PrivateLinearRegression(epsilon=epsilon, delta=DELTA, random_state=seed)
    return made.fit(*data.train).score(*data.test)


def lasso(data, epsilon, seed):
    return PrivateLasso(epsilon, DELTA, random_state=seed).fit(*data.train).score(*data.test)


def clipped_gradient_descent(data, epsilon, seed, rounds=200, clip=0.8, step=0.25):
    """Every record's gradient is clipped to a norm; noise of replacing one record each round."""
    x, y = data.train
    rng, theta = np.random.default_rng(seed), np.zeros(x.shape[1])
    # T rounds, each moved by 2 clip / n, cost mu in all
    noise = 2 * clip * np.sqrt(rounds) / (mu_of(epsilon) * len(y))
    lengths = np.linalg.norm(x, axis=1)
    for _ in range(rounds):
        residual = x @ theta - y
        kept = residual * np.minimum(1, clip / np.maximum(np.abs(residual) * lengths, 1e-300))
        theta -= step * (x.T @ kept / len(y) + noise * rng.normal(size=theta.size))
    return r2(theta, data.test)


def adassp(data, epsilon, seed):
    """Wang (2018), Algorithm 2, with three equal Gaussians whose composition is exact.

    The bounds are those of features and targets in [-1, 1]; a record replaced moves every
    statistic by at most its largest value, or twice it for products with the target.
    """
    x, y = data.train
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
    return r2(np.linalg.solve(noisy + ridge * np.eye(p), products), data.test)


def diffprivlib(data, epsilon, seed):
    """Its LinearRegression is pure epsilon-DP, so its guarantee is at least as strong."""
    try:
        from diffprivlib.models import LinearRegression
    except ImportError:
        print("left out diffprivlib: python -m pip install diffprivlib", file=sys.stderr)
        return None
    made = LinearRegression(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-1, 1),
                            fit_intercept=False, random_state=seed)  # fmt: skip
    return float(made.fit(*data.train).score(*data.test))


def least_squares(data, epsilon, seed):
    from sklearn.linear_model import LinearRegression

    del epsilon, seed
    return float(LinearRegression().fit(*data.train).score(*data.test))


METHODS = (
    Method("PrivateLinearRegression", Kind.OURS, linear),
    Method("PrivateLasso", Kind.OURS, lasso),
    Method("clipped gradient descent", Kind.PEER, clipped_gradient_descent),
    Method("AdaSSP", Kind.PEER, adassp),
    Method("diffprivlib (delta 0)", Kind.PEER, diffprivlib),
    Method("scikit-learn", Kind.FREE, least_squares),
)
TASKS = (Task("California housing", "R2", 1.0, california, METHODS),)
