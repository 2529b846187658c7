"""Random pairs, and their delta and moments in floats, for tests of theorems."""

import numpy as np


def random_pair(rng, most=4):
    """Two distributions on the same outcomes."""
    size = int(rng.integers(2, most + 1))
    return rng.dirichlet(np.full(size, 2.0)), rng.dirichlet(np.full(size, 2.0))


def g(p, q, t):
    """E_P (1 - e^(t - L))_+ at every t."""
    loss = np.log(p / q)
    return np.maximum(-np.expm1(np.asarray(t)[..., None] - loss), 0) @ p


def transform(p, q, z):
    """M(z) = E_P e^(zL)."""
    return np.exp(np.asarray(z)[..., None] * np.log(p / q)) @ p


def gap(larger, smaller):
    """By how much one is larger, relative to their size."""
    return float((larger - smaller) / (abs(larger) + abs(smaller) + 1e-300))


def same(one, other):
    return -abs(gap(one, other))


def chernoff_constant(b):
    return b**b / (1 + b) ** (1 + b)


def product(one, other):
    return tuple(np.outer(a, b).ravel() for a, b in zip(one, other, strict=True))
