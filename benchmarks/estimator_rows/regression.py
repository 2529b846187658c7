"""Linear regressions: ours, full-batch clipped gradient descent, AdaSSP, diffprivlib, none."""

import csv
import gzip
import sys
from functools import lru_cache, partial

import numpy as np

from accountant import calibrate
from algorithms import PrivateLasso, PrivateLinearRegression
from audits.runner.california_housing import load
from benchmarks.estimator_rows import DIFFPRIVLIB, Kind, Method, Split, Task
from experiments.datasets import COVTYPE, MNIST, SHARED, covtype, mnist, present, train_and_test
from mechanisms import Gaussian

DELTA, ADULT = 1e-6, "adult/adult.csv.gz"


def r2(coef, test):
    x, y = test
    return 1 - float(np.mean((y - x @ coef) ** 2) / np.var(y))


def california(seed, quick):
    """The embedded data; the split is fixed and the seeds are those of the noise."""
    return made_up(seed) if quick else california_parts()


@lru_cache
def california_parts():
    """Both parts; every seed has the same."""
    found = load()
    return Split(found.train, found.test)


def made_up(seed):
    """Tiny data, for a look whether the script works."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (2000, 4))
    x[:, -1] = 1.0
    y = x @ [0.5, 0.2, 0.0, -0.2] + 0.05 * rng.normal(size=2000)
    return Split((x[:1500], y[:1500]), (x[1500:], y[1500:]))


def from_file(seed, quick, file, table):
    """Made-up data if quick; None where the file is not at hand."""
    if quick:
        return made_up(seed)
    return parts_of(table) if present(SHARED, file) else None


@lru_cache(maxsize=1)
def parts_of(table):
    """Both parts; every seed has the same."""
    x, y = table()
    first, last = train_and_test(len(y), 0)
    return Split((x[first], y[first]), (x[last], y[last]))


@lru_cache
def elevation():
    """Covtype: the elevation, from all that a map shows."""
    x, _ = covtype(SHARED)
    numeric = 2 * x[:, 1:10] - 1
    return np.hstack([numeric, x[:, 10:], np.ones((len(x), 1))]), 2 * x[:, 0] - 1


@lru_cache
def age():
    """Adult: the age, from work, family and income of a year."""
    with gzip.open(SHARED / ADULT, "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    bounds = {"age": (17, 90), "education_num": (1, 16), "hours_per_week": (0, 100)}
    scaled = [np.clip(2 * (np.array([float(row[name]) for row in rows]) - low) / (high - low) - 1,
                      -1, 1) for name, (low, high) in bounds.items()]  # fmt: skip
    columns = scaled[1:]
    for name in ("workclass", "marital_status", "relationship", "sex", "income"):
        given = np.array([row[name] for row in rows])
        columns += [(given == one).astype(float) for one in np.unique(given)]
    return np.column_stack([*columns, np.ones(len(rows))]), scaled[0]


@lru_cache
def brightness():
    """MNIST: the ink of a digit's lower half, from 7 x 7 squares of the upper half."""
    x, _ = mnist(SHARED)
    images = x.reshape(-1, 28, 28)
    squares = images[:, :14].reshape(-1, 7, 2, 7, 4).mean(axis=(2, 4)).reshape(len(x), -1)
    ink = 4 * images[:, 14:].mean(axis=(1, 2)) - 1
    return np.hstack([2 * squares - 1, np.ones((len(x), 1))]), np.clip(ink, -1, 1)


@lru_cache
def mu_of(epsilon):
    """The shift of Gaussian noise over its deviation that the guarantee allows in all."""
    return calibrate(Gaussian, epsilon=epsilon, delta=DELTA).loss.mu


def linear(data, epsilon, seed):
    """It has an intercept, and needs no constant feature, the last one here."""
    (x, y), (other_x, other_y) = data
    made = PrivateLinearRegression(epsilon=epsilon, delta=DELTA, random_state=seed)
    return made.fit(x[:, :-1], y).score(other_x[:, :-1], other_y)


def lasso(data, epsilon, seed):
    """It has an intercept, as `linear`."""
    (x, y), (other_x, other_y) = data
    made = PrivateLasso(epsilon, DELTA, random_state=seed)
    return made.fit(x[:, :-1], y).score(other_x[:, :-1], other_y)


def clipped_gradient_descent(data, epsilon, seed, rounds=200, clip=0.8):
    """Every record's gradient is clipped to a norm; noise of replacing one record each round.

    The step is the longest of those that are safe, found from the data, which favours it.
    """
    x, y = data.train
    rng, theta = np.random.default_rng(seed), np.zeros(x.shape[1])
    # T rounds, each moved by 2 clip / n, cost mu in all
    noise = 2 * clip * np.sqrt(rounds) / (mu_of(epsilon) * len(y))
    lengths = np.linalg.norm(x, axis=1)
    step = 1 / float(np.mean(lengths**2))
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
        print(DIFFPRIVLIB, file=sys.stderr)
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
TASKS = (
    Task("California housing", "R2", 1.0, california, METHODS),
    *(Task(name, "R2", 1.0, partial(from_file, file=file, table=table), METHODS)
      for name, file, table in (
          ("covtype, elevation", COVTYPE, elevation), ("Adult, age", ADULT, age),
          ("MNIST, ink of the lower half", MNIST, brightness))),
)  # fmt: skip
