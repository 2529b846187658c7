"""Classifications: ours, plain clipped gradient descent, diffprivlib, no privacy."""

import csv
import gzip
import sys
import warnings
from functools import lru_cache, partial

import numpy as np
from scipy.special import expit

from algorithms import PrivateLogisticLasso, PrivateLogisticRegression, SparseERM
from benchmarks.estimator_rows import DIFFPRIVLIB, Kind, Method, Split, Task
from benchmarks.estimator_rows.regression import DELTA, mu_of
from experiments.datasets import COVTYPE, MNIST, SHARED, covtype, mnist, present

ADULT = "adult/adult.csv.gz"
# public bounds of Adult's numbers, stated without the data; what lies outside is clipped
BOUNDS = {
    "age": (0, 100), "fnlwgt": (0, 1_500_000), "education_num": (0, 16),
    "capital_gain": (0, 100_000), "capital_loss": (0, 5_000), "hours_per_week": (0, 100),
}  # fmt: skip


def scaled(values, low, high):
    """Numbers between their bounds as numbers from -1 to 1."""
    return np.clip(2 * (values - low) / (np.asarray(high) - low) - 1, -1, 1)


def one_hot(values):
    """A column of 0 and 1 for each value, which are public."""
    found, index = np.unique(values, return_inverse=True)
    return np.eye(found.size)[index]


def made_up(seed, classes=2):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (2000, 12))
    y = np.digitize(x[:, :3] @ [1.0, -0.5, 0.3], np.linspace(-0.5, 0.5, classes + 1)[1:-1])
    return Split((x[:1500], y[:1500]), (x[1500:], y[1500:]))


def adult(seed, quick):
    """Numbers between bounds, categories as columns; the published split."""
    if quick:
        return made_up(seed)
    return adult_parts() if present(SHARED, ADULT) else None


@lru_cache
def adult_parts():
    """Both parts of the published split; every seed has the same."""
    with gzip.open(SHARED / ADULT, "rt", newline="") as lines:
        rows = [{key.replace("-", "_"): value for key, value in row.items()}
                for row in csv.DictReader(lines)]  # fmt: skip
    columns = []
    for name in rows[0]:
        values = [row[name].strip() for row in rows]
        if name in BOUNDS:
            columns.append(scaled(np.array(values, float), *BOUNDS[name])[:, None])
        elif name not in {"income", "split"}:
            columns.append(one_hot(values))
    x, y = np.hstack(columns), np.array([row["income"].strip() == ">50K" for row in rows]) * 1
    train = np.array([row["split"] == "train" for row in rows])
    return Split((x[train], y[train]), (x[~train], y[~train]))


def cover(seed, quick, classes=2):
    """Class 2 against the rest, or all seven; 74,000 records to fit on."""
    if quick:
        return made_up(seed, min(classes, 3))
    return cover_parts(classes) if present(SHARED, COVTYPE) else None


@lru_cache
def cover_parts(classes):
    """Both parts; every seed has the same."""
    x, y = covtype(SHARED)
    x = np.hstack([2 * x[:, :10] - 1, x[:, 10:]])
    return parted(x, (y == 2) * 1 if classes == 2 else y, 74_000, 0)


def digits(seed, quick):
    """Ten thousand digits, of which 8,000 to fit on; pixels from -1 to 1."""
    if quick:
        return made_up(seed, 3)
    return digit_parts() if present(SHARED, MNIST) else None


@lru_cache
def digit_parts():
    """Both parts; every seed has the same."""
    x, y = mnist(SHARED)
    return parted(2 * x - 1, y, 8000, 1)


def parted(x, y, records, seed):
    """A random part of so many records to fit on, and the rest."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:records], order[records:]
    return Split((x[train], y[train]), (x[test], y[test]))


def fitted(made, data, epsilon, seed):
    """The chances of classes by an estimator that takes epsilon, delta, classes and a seed."""
    model = made(epsilon=epsilon, delta=DELTA, random_state=seed)
    if "classes" in model.get_params():
        model.set_params(classes=np.unique(data.train[1]))
    return model.fit(*data.train).predict_proba(data.test[0])


def accuracy(chances, codes):
    """The share of records whose most probable class is their own."""
    return float(np.mean(chances.argmax(axis=1) == codes))


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


# accuracy alone hides chances that are far off
MEASURES = {"accuracy": (accuracy, 1.0), "log loss": (log_loss, 0.0),
            "calibration error": (calibration_error, 0.0)}  # fmt: skip


class Chances:
    """What a method says of test records, fitted once for all measures on the same data."""

    def __init__(self, method):
        self._method, self._data, self._known = method, None, {}

    def measured(self, measure, data, epsilon, seed):
        """One measure of a fit; None where the method cannot run."""
        if data is not self._data:
            self._data, self._known = data, {}
        if (epsilon, seed) not in self._known:
            self._known[epsilon, seed] = self._method(data, epsilon, seed)
        chances = self._known[epsilon, seed]
        if chances is None:
            return None
        codes = np.searchsorted(np.unique(data.train[1]), data.test[1])
        return MEASURES[measure][0](chances, codes)


def clipped_gradient_descent(data, epsilon, seed, rounds=100, clip=0.5, step=16.0):
    """Every record's gradient is clipped to a norm; noise of replacing one record each round."""
    (x, y), (new, _) = data.train, data.test
    x, new = (np.hstack([one, np.ones((len(one), 1))]) for one in (x, new))
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size > 2:
        return None
    rng, theta = np.random.default_rng(seed), np.zeros(x.shape[1])
    # T rounds, each moved by 2 clip / n, cost mu in all
    noise = 2 * clip * np.sqrt(rounds) / (mu_of(epsilon) * len(y))
    lengths = np.linalg.norm(x, axis=1)
    for _ in range(rounds):
        residual = expit(x @ theta) - codes
        kept = residual * np.minimum(1, clip / np.maximum(np.abs(residual) * lengths, 1e-300))
        theta -= step * (x.T @ kept / len(y) + noise * rng.normal(size=theta.size))
    return np.stack([expit(-(new @ theta)), expit(new @ theta)], axis=1)


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


OURS = ("PrivateLogisticRegression", Kind.OURS, partial(fitted, PrivateLogisticRegression))
PEERS = (
    ("clipped gradient descent", Kind.PEER, clipped_gradient_descent),
    ("diffprivlib (delta 0)", Kind.PEER, diffprivlib),
    ("scikit-learn", Kind.FREE, without_privacy),
)
SPARSE = ("SparseERM, 10 features", Kind.OURS, partial(fitted, partial(SparseERM, sparsity=10)))
LASSO = ("PrivateLogisticLasso", Kind.OURS, partial(fitted, PrivateLogisticLasso))
TWO = (OURS, LASSO, SPARSE, *PEERS)
MANY = (OURS, *PEERS)


def tasks_of(name, load, methods):
    """A task for each measure of the same fits."""
    fits = [(method, kind, Chances(chances)) for method, kind, chances in methods]
    for measure, (_, best) in MEASURES.items():
        measured = tuple(Method(method, kind, partial(chances.measured, measure))
                         for method, kind, chances in fits)  # fmt: skip
        yield Task(name, measure, best, load, measured)


TASKS = (
    *tasks_of("Adult", adult, TWO),
    *tasks_of("covtype, two classes", cover, TWO),
    *tasks_of("covtype, seven classes", partial(cover, classes=7), MANY),
    *tasks_of("MNIST, 8,000 digits", digits, MANY),
)
