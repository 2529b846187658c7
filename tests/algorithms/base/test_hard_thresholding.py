"""Hard thresholding keeps the greatest."""

import math

import numpy as np
import pytest

from algorithms.base.hard_thresholding import keep_largest, project_to_ball


def model(users, features, sparsity, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    theta = np.zeros(features)
    theta[:sparsity] = 1 / math.sqrt(sparsity)
    x = rng.choice([-1.0, 1.0], (users, features))
    return x, x @ theta + rng.uniform(-noise, noise, users), theta


def test_truncate_keeps_the_greatest():
    rng = np.random.default_rng(1)
    for _ in range(50):
        vector, kept = rng.normal(size=20), int(rng.integers(1, 25))
        found = keep_largest(vector, kept)
        expected = np.where(np.abs(vector) >= np.sort(np.abs(vector))[-min(kept, 20)], vector, 0)
        assert (found == expected).all()
    assert project_to_ball(np.array([3.0, 4.0])) == pytest.approx([0.6, 0.8])
    assert project_to_ball(np.array([0.3, 0.4])).tolist() == [0.3, 0.4]


NEIGHBOUR_X, NEIGHBOUR_Y, _ = model(60, 4, 2)
