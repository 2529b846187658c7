"""Estimators whose privacy is of labels or local: ours beside textbook ones on the same reports.

Simulated features are -1 or 1, uncorrelated or with correlations of .5 between all of them; theta
has length 1 and entries of U[0, 1] at random places.  Noise of y is uniform on [-.05, .05].
"""

import math
from functools import lru_cache, partial

import numpy as np

from algorithms import LabelIHT, LabelLasso, LabelPrivateClassifier, LocalIHT
from algorithms.base.hard_thresholding import default_step, keep_largest, project_to_ball
from benchmarks.estimator_rows import Kind, Method, Split, Task, package_data

NOISE = 0.05


@lru_cache(maxsize=1)
def regression(seed, quick, users, features, sparsity, correlated):
    """Features and targets, and the true theta as what a fit is scored with."""
    users = min(users, 2000) if quick else users
    rng = np.random.default_rng([seed, users, features, sparsity])
    theta = np.zeros(features)
    theta[rng.permutation(features)[:sparsity]] = rng.random(sparsity)
    theta /= np.linalg.norm(theta)
    x = rng.choice(np.array([-1, 1], dtype=np.int8), (users, features))
    if correlated:  # each entry is the row's common sign with probability sqrt .5
        common = rng.choice(np.array([-1, 1], dtype=np.int8), (users, 1))
        x = np.where(rng.random((users, features), dtype=np.float32) < math.sqrt(0.5), common, x)
    x = x.astype(float)
    return Split((x, x @ theta + rng.uniform(-NOISE, NOISE, users)), (theta,))


def error(data, coef):
    """The relative error of coefficients, in the unit ball."""
    theta = data.test[0]
    return float(np.linalg.norm(project_to_ball(coef) - theta) / np.linalg.norm(theta))


def bound(data):
    """The largest label of the model."""
    return math.sqrt(np.count_nonzero(data.test[0])) + NOISE


def sparsity_of(data):
    return np.count_nonzero(data.test[0])


def two_valued(numbers, epsilon, rng):
    """Numbers of [-1, 1], each reported as one of two, with the number as expectation."""
    length = 1 / math.tanh(epsilon / 2)
    up = rng.random(len(numbers)) < 0.5 + numbers / (2 * length)
    return np.where(up, length, -length)


def label_iht(data, epsilon, seed, **settings):
    made = LabelIHT(epsilon=epsilon, delta=1e-5, sparsity=sparsity_of(data),
                    y_bound=bound(data), random_state=seed, **settings)  # fmt: skip
    return error(data, made.fit(*data.train).coef_)


def label_lasso(data, epsilon, seed):
    made = LabelLasso(epsilon=epsilon, delta=1e-5, y_bound=bound(data), noise_bound=NOISE,
                      random_state=seed)  # fmt: skip
    return error(data, made.fit(*data.train).coef_)


def noisy_labels(data, epsilon, seed):
    """Features, the two-valued labels that ours fits to, and the deviation of a label's noise."""
    made = LabelIHT(epsilon=epsilon, delta=1e-5, sparsity=1, y_bound=bound(data), rounds=1, step=1.0,
                    randomizer="bounded", random_state=seed)  # fmt: skip
    labels = np.asarray(made.fit(*data.train).transcript_[0].output)
    return data.train[0], labels, bound(data) / math.tanh(epsilon / 2)


def least_squares(x, y, columns):
    theta = np.zeros(x.shape[1])
    if len(columns):
        theta[columns] = np.linalg.lstsq(x[:, columns], y, rcond=None)[0]
    return theta


def thresholded_labels(data, epsilon, seed):
    """Two-valued noise, gradient steps with hard thresholding, least squares at last."""
    x, y, _ = noisy_labels(data, epsilon, seed)
    gram, products, theta = x.T @ x / len(y), x.T @ y / len(y), np.zeros(x.shape[1])
    for _ in range(20):
        moved = theta + default_step() * (products - gram @ theta)
        theta = project_to_ball(keep_largest(moved, sparsity_of(data)))
    return error(data, least_squares(x, y, np.flatnonzero(theta)))


def universal_lasso(data, epsilon, seed):
    """Two-valued noise, the universal penalty, least squares at last."""
    from sklearn.linear_model import Lasso

    x, y, deviation = noisy_labels(data, epsilon, seed)
    penalty = deviation * math.sqrt(2 * math.log(x.shape[1]) / len(y))
    found = Lasso(alpha=penalty, fit_intercept=False).fit(x, y).coef_
    return error(data, least_squares(x, y, np.flatnonzero(found)))


def local_iht(data, epsilon, seed, **settings):
    made = LocalIHT(epsilon=epsilon, sparsity=sparsity_of(data), noise_bound=NOISE,
                    random_state=seed, **settings)  # fmt: skip
    return error(data, made.fit(*data.train).coef_)


def three_rounds(data, epsilon, seed):
    """Two-valued reports of one coordinate; later rounds on those found, with smaller clips."""
    (x, y), s, rng = data.train, sparsity_of(data), np.random.default_rng(seed)
    theta, columns, clip = np.zeros(x.shape[1]), np.arange(x.shape[1]), bound(data)
    thirds = np.array_split(np.arange(len(y)), 3)
    for who, kept in zip(thirds, (2 * s, s, s), strict=True):
        own = np.arange(len(who)) % len(columns)
        rest = np.clip((y[who] - x[who] @ theta) / clip, -1, 1)
        reports = clip * two_valued(rest * x[who, columns[own]], epsilon, rng)
        counts = np.maximum(np.bincount(own, minlength=len(columns)), 1)
        theta[columns] += np.bincount(own, reports, len(columns)) / counts
        theta = project_to_ball(keep_largest(theta, kept))
        deviation = clip / math.tanh(epsilon / 2) / math.sqrt(counts.min())
        clip = min(clip, NOISE + 3 * deviation * math.sqrt(s))
        columns = np.flatnonzero(theta)
    return error(data, theta)


def classifier(data, epsilon, seed, **settings):
    classes = np.unique(data.train[1])
    made = LabelPrivateClassifier(epsilon, classes=classes, random_state=seed, **settings)
    return float(made.fit(*data.train).score(*data.test))


def unbiased_minimum(data, epsilon, seed, penalty=1.0):
    """The penalised minimum of the unbiased logistic loss of the same kind of reports."""
    from scipy.optimize import minimize

    from algorithms.label_privacy.label_randomizers import randomizer_of
    from algorithms.label_privacy.report_decoders import decoder_of

    (x, y), k = data.train, len(np.unique(data.train[1]))
    shell = LabelPrivateClassifier(epsilon, classes=np.arange(k), random_state=seed).fit(x, y)
    rows, (users, width) = shell.prepared(x), shell.prepared(x).shape
    decoder = decoder_of(randomizer_of("auto", k, epsilon), k, True)
    weights = decoder.coefficients(decoder.mechanism.release(y, rng=seed))
    ridge = penalty * decoder.second_moment / users

    def loss(flat):
        theta = flat.reshape(k, width)
        scores = rows @ theta.T
        top = scores.max(axis=1, keepdims=True)
        powers = np.exp(scores - top)
        total = powers.sum(axis=1, keepdims=True)
        value = (top + np.log(total)).sum() - (weights * scores).sum()
        slope = (powers / total - weights).T @ rows
        return value / users + ridge / 2 * flat @ flat, slope.ravel() / users + ridge * flat

    found = minimize(loss, np.zeros(k * width), jac=True, method="L-BFGS-B")
    guessed = (shell.prepared(data.test[0]) @ found.x.reshape(k, width).T).argmax(axis=1)
    return float((guessed == data.test[1]).mean())


IHT = (
    Method("LabelIHT", Kind.OURS, label_iht),
    Method("two-valued noise, thresholded steps, refit", Kind.PEER, thresholded_labels),
    Method("LabelIHT(randomizer='gaussian', step=.958)", Kind.PEER,
           partial(label_iht, randomizer="gaussian", step=default_step())),
)  # fmt: skip
LASSO = (
    Method("LabelLasso", Kind.OURS, label_lasso),
    Method("two-valued noise, universal penalty, refit", Kind.PEER, universal_lasso),
)
LOCAL = (
    Method("LocalIHT", Kind.OURS, local_iht),
    Method("three rounds, coordinates found, smaller clips", Kind.PEER, three_rounds),
    Method("LocalIHT(method='gradients')", Kind.PEER, partial(local_iht, method="gradients")),
)
CLASSIFIER = (
    Method("LabelPrivateClassifier", Kind.OURS, classifier),
    Method("minimum of the unbiased loss", Kind.PEER, unbiased_minimum),
    Method("LabelPrivateClassifier(method='one pass')", Kind.PEER,
           partial(classifier, method="one pass")),
)  # fmt: skip


def simulated(name, methods, users, features, sparsity, epsilon):
    """The task with uncorrelated features, and with correlated ones."""
    for correlated, words in ((False, "uncorrelated"), (True, "correlated")):
        load = partial(regression, users=users, features=features, sparsity=sparsity,
                       correlated=correlated)  # fmt: skip
        yield Task(f"{name}, n {users:,}, p {features}, {words}", "relative error", 0.0, load,
                   methods, (epsilon,))  # fmt: skip


TASKS = (
    *simulated("private labels", IHT, 20_000, 90, 5, 1.0),
    *simulated("private labels", IHT, 100_000, 90, 5, 1.0),
    *simulated("private labels, no sparsity", LASSO, 20_000, 90, 5, 1.0),
    *simulated("private records", LOCAL, 100_000, 10, 2, 2.0),
    *simulated("private records", LOCAL, 1_000_000, 10, 2, 2.0),
    *simulated("private records", LOCAL, 1_000_000, 40, 2, 2.0),
    *simulated("private records", LOCAL, 300_000, 40, 2, 1.0),
    Task(
        "digits, private labels",
        "accuracy",
        1.0,
        partial(package_data.parts, "digits"),
        CLASSIFIER,
        (0.5, 1.0, 2.0),
    ),
)
