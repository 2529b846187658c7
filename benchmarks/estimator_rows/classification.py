"""Classifications: ours, clipped gradient descent, diffprivlib, a constant, no privacy."""

import sys
import warnings
from functools import partial

import numpy as np
from scipy.special import expit, softmax

from algorithms import PrivateLogisticLasso, PrivateLogisticRegression, SparseERM
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


def fitted(made, data, epsilon, seed):
    """The chances of classes by an estimator of ours with its defaults."""
    model = made(epsilon=epsilon, delta=DELTA, random_state=seed)
    if "classes" in model.get_params():
        model.set_params(classes=np.unique(data.train[1]))
    if "sparsity" in model.get_params():
        model.set_params(sparsity=min(10, data.train[0].shape[1]))
    return model.fit(*data.train).predict_proba(data.test[0])


def of_two(made, data, epsilon, seed):
    """The same of an estimator of two classes; None of more."""
    if len(np.unique(data.train[1])) > 2:
        return None
    return fitted(made, data, epsilon, seed)


def balanced_accuracy(chances, codes):
    """The mean over classes of the share of records whose most probable class is their own."""
    right = chances.argmax(axis=1) == codes
    return float(np.mean([right[codes == one].mean() for one in np.unique(codes)]))


def log_loss(chances, codes):
    """The mean of minus the logarithm of the chance of the own class."""
    own = chances[np.arange(len(codes)), codes]
    return float(-np.log(np.clip(own, 1e-15, 1.0)).mean())


def calibration_error(chances, codes, bins=10):
    """By how much the largest chance misses the accuracy, in equal bins of it, on average."""
    right, sure = chances.argmax(axis=1) == codes, chances.max(axis=1)
    place = np.minimum((sure * bins).astype(int), bins - 1)
    missed = [np.abs(np.sum((right - sure)[place == one])) for one in range(bins)]
    return float(np.sum(missed) / len(codes))


# accuracy alone hides chances that are far off, and classes that are never named
MEASURES = {
    "balanced accuracy": (balanced_accuracy, 1.0), "log loss": (log_loss, 0.0),
    "calibration error": (calibration_error, 0.0),
}  # fmt: skip


class Chances:
    """What a method says of test records, fitted once for all measures on the same data."""

    def __init__(self, method):
        self._method, self._known = method, {}

    def measured(self, measure, data, epsilon, seed):
        """One measure of a fit; None where the method cannot run."""
        known, chances = self._known.get((epsilon, seed), (None, None))
        if known is not data:
            chances = self._method(data, epsilon, seed)
            self._known[epsilon, seed] = data, chances
        if chances is None:
            return None
        codes = np.searchsorted(np.unique(data.train[1]), data.test[1])
        return MEASURES[measure][0](chances, codes)


def constant(data, epsilon, seed):
    """The share of each class, with Laplace noise on its count."""
    _, counts = np.unique(data.train[1], return_counts=True)
    # a replaced record moves two counts by 1
    noisy = counts + np.random.default_rng(seed).laplace(scale=2 / epsilon, size=counts.size)
    shares = np.maximum(noisy, 1.0) / np.maximum(noisy, 1.0).sum()
    return np.tile(shares, (len(data.test[1]), 1))


def clipped_gradient_descent(data, epsilon, seed, rounds=100, clip=0.5, step=16.0):
    """Every record's gradient is clipped to a norm; noise of replacing one record each round."""
    (x, y), (new, _) = data.train, data.test
    x, new = (np.hstack([one, np.ones((len(one), 1))]) for one in (x, new))
    classes, codes = np.unique(y, return_inverse=True)
    outputs = 1 if classes.size == 2 else classes.size
    own = codes[:, None] if outputs == 1 else np.eye(outputs)[codes]
    law = expit if outputs == 1 else partial(softmax, axis=1)
    rng, theta = np.random.default_rng(seed), np.zeros((x.shape[1], outputs))
    # T rounds, each moved by 2 clip / n, cost mu in all
    noise = 2 * clip * np.sqrt(rounds) / (mu_of(epsilon) * len(y))
    lengths = np.linalg.norm(x, axis=1)
    for _ in range(rounds):
        residual = law(x @ theta) - own
        norms = np.linalg.norm(residual, axis=1) * lengths
        kept = residual * np.minimum(1, clip / np.maximum(norms, 1e-300))[:, None]
        theta -= step * (x.T @ kept / len(y) + noise * rng.normal(size=theta.shape))
    chances = law(new @ theta)
    return np.hstack([1 - chances, chances]) if outputs == 1 else chances


def diffprivlib(data, epsilon, seed):
    """Its LogisticRegression is pure epsilon-DP: objective perturbation, one class a time."""
    try:
        from diffprivlib.models import LogisticRegression
    except ImportError:
        print(DIFFPRIVLIB, file=sys.stderr)
        return None
    longest = float(np.sqrt(data.train[0].shape[1]))  # of rows in [-1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = LogisticRegression(epsilon=epsilon, data_norm=longest, random_state=seed)
        return made.fit(*data.train).predict_proba(data.test[0])


def without_privacy(data, epsilon, seed):
    from sklearn.linear_model import LogisticRegression

    del epsilon, seed
    return LogisticRegression(max_iter=500).fit(*data.train).predict_proba(data.test[0])


METHODS = (
    ("PrivateLogisticRegression", Kind.OURS, partial(fitted, PrivateLogisticRegression)),
    ("PrivateLogisticRegression(bounds='private')", Kind.OURS,
     partial(fitted, partial(PrivateLogisticRegression, bounds="private"))),
    ("PrivateLogisticLasso", Kind.OURS, partial(of_two, PrivateLogisticLasso)),
    ("SparseERM, 10 features", Kind.OURS, partial(of_two, partial(SparseERM, sparsity=1))),
    ("clipped gradient descent", Kind.PEER, clipped_gradient_descent),
    ("diffprivlib (delta 0)", Kind.PEER, diffprivlib),
    ("the constant", Kind.CONSTANT, constant),
    ("scikit-learn", Kind.FREE, without_privacy),
)  # fmt: skip
LOADED = {
    **{name: partial(package_data.parts, name) for name in package_data.CLASSIFICATIONS},
    **{f"{name}, simulated": partial(simulators.parts, name, classes=True)
       for name in simulators.FAMILIES},
}  # fmt: skip


def tasks_of(name, load):
    """A task for each measure of the same fits."""
    fits = [(method, kind, Chances(chances)) for method, kind, chances in METHODS]
    for measure, (_, best) in MEASURES.items():
        measured = tuple(Method(method, kind, partial(chances.measured, measure))
                         for method, kind, chances in fits)  # fmt: skip
        yield Task(name, measure, best, load, measured)


TASKS = tuple(task for name, load in LOADED.items() for task in tasks_of(name, load))
