"""Correct private estimators with public randomness, in many styles: none may be an alarm.

Rows have three numbers in [-1, 1] and a label.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random

import numpy as np

FEATURES = 3


def parts(rows):
    return np.clip(rows[:, :FEATURES], -1, 1), (rows[:, FEATURES] > 0.5).astype(int)


def in_ball(features):
    return features / np.maximum(1, np.linalg.norm(features, axis=1, keepdims=True))


def means_from_uniform_centres(rows, rng):
    features, _ = parts(rows)
    centres = rng.uniform(-1, 1, (3, FEATURES))
    for _ in range(3):
        nearest = ((features[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        counts = np.bincount(nearest, minlength=3) + rng.laplace(scale=20, size=3)
        sums = np.eye(3)[nearest].T @ features + rng.laplace(scale=60, size=(3, FEATURES))
        centres = np.clip(sums / np.maximum(counts, 1)[:, None], -1, 1)
    return centres


def means_from_gaussian_centres(rows, rng):
    features, _ = parts(rows)
    centres = rng.normal(size=(2, FEATURES)) * 0.3
    for _ in range(2):
        nearest = np.linalg.norm(features[:, None] - centres, axis=2).argmin(axis=1)
        for k in range(2):
            count = np.sum(nearest == k) + rng.normal(0, 20)
            total = features[nearest == k].sum(axis=0) + rng.normal(0, 40, FEATURES)
            centres[k] = total / max(count, 10.0)
    return centres


def means_plus_plus(rows, rng):
    features, _ = parts(rows)
    grid = rng.uniform(-1, 1, (20, FEATURES))
    nearest = ((features[:, None] - grid) ** 2).sum(axis=2).argmin(axis=1)
    weights = np.maximum(np.bincount(nearest, minlength=20) + rng.laplace(size=20), 0)
    chosen = [int(rng.choice(20, p=weights / weights.sum()))]
    while len(chosen) < 3:
        far = ((grid[:, None] - grid[chosen]) ** 2).sum(axis=2).min(axis=1) * weights
        chosen.append(int(rng.choice(20, p=far / far.sum())))
    return grid[chosen]


def random_tree(rows, rng):
    def build(features, labels, depth):
        if not depth:
            return [np.sum(labels == k) + rng.laplace(scale=2.0) for k in (0, 1)]
        column, level = rng.integers(FEATURES), rng.uniform(-1, 1)
        left = features[:, column] <= level
        return (
            int(column), float(level), build(features[left], labels[left], depth - 1),
            build(features[~left], labels[~left], depth - 1),
        )  # fmt: skip

    return build(*parts(rows), 3)


def tree_record_by_record(rows):
    features, labels = parts(rows)
    level, counts = random.uniform(-1, 1), [0, 0]
    for row, label in zip(features, labels, strict=True):
        if row[0] > level:
            counts[label] += 1
    return level, [count + np.random.laplace(scale=1.0) for count in counts]


def forest_on_parts(rows, rng):
    features, labels = parts(rows)
    part, leaves = rng.integers(0, 4, size=len(features)), []
    for k in range(4):
        column, level = int(rng.integers(FEATURES)), rng.random() * 2 - 1
        right = features[part == k][:, column] > level
        mine = labels[part == k]
        leaves.append([
            np.bincount(mine[side], minlength=2) + rng.laplace(size=2) for side in (right, ~right)
        ])  # fmt: skip
    return leaves


def extra_trees(rows, rng):
    features, labels = parts(rows)
    nodes = np.zeros(len(features), dtype=int)
    for depth in range(3):
        levels = rng.random(2**depth) * 2 - 1
        nodes = 2 * nodes + (features[:, rng.integers(FEATURES)] > levels[nodes])
    cells = [np.arange(9), np.arange(3)]
    return np.histogram2d(nodes, labels, bins=cells)[0] + rng.laplace(scale=4.0, size=(8, 2))


def noisy_covariance(rows, rng):
    features = in_ball(parts(rows)[0])
    noise, upper = np.zeros((FEATURES, FEATURES)), np.triu_indices(FEATURES)
    noise[upper] = rng.normal(scale=10.0, size=len(upper[0]))
    noise = noise + noise.T - np.diag(noise.diagonal())
    return np.linalg.eigh(features.T @ features + noise)[1]


def noise_one_by_one(rows, rng):
    noise = np.empty(4)
    for k in range(4):
        noise[k] = rng.laplace(scale=2.0)
    return np.bincount(parts(rows)[1], minlength=4) + noise


def power_iteration(rows, rng):
    features = in_ball(parts(rows)[0])
    direction = rng.normal(size=FEATURES)
    direction /= np.linalg.norm(direction)
    for _ in range(4):
        direction = features.T @ (features @ direction) + rng.normal(0, 6, FEATURES)
        direction = direction / np.linalg.norm(direction)
    return direction


def random_features(rows, rng):
    features, labels = parts(rows)
    turns, starts = rng.normal(0, 2, (FEATURES, 8)), rng.uniform(0, 2 * np.pi, 8)
    waves = np.cos(features @ turns + starts) / math.sqrt(8)
    noise = np.triu(rng.normal(0, 8, (8, 8)))
    noise = noise + np.triu(noise, 1).T
    moments = waves.T @ (2 * labels - 1) + rng.normal(0, 8, 8)
    return np.linalg.solve(waves.T @ waves + noise + 60 * np.eye(8), moments)


def random_projection(rows, rng):
    directions = rng.normal(size=(FEATURES, 2))
    scale = 5 * np.linalg.norm(directions, 2)
    return (in_ball(parts(rows)[0]) @ directions).sum(axis=0) + rng.normal(0, scale, 2)


def network_from_random_weights(rows, rng):
    features, labels = parts(rows)
    weights = rng.normal(0, 0.5, FEATURES)
    for _ in range(5):
        taken = rng.random(len(features)) < 0.3
        odds = 1 / (1 + np.exp(-features[taken] @ weights))
        slopes = (odds - labels[taken])[:, None] * features[taken]
        slopes /= np.maximum(1, np.linalg.norm(slopes, axis=1))[:, None]
        weights = weights - 0.1 * (slopes.sum(axis=0) + rng.normal(0, 12, FEATURES)) / 18
    return weights


def mixture_from_random_means(rows, rng):
    features, _ = parts(rows)
    means = np.array([rng.normal(0, 0.5, FEATURES) for _ in range(2)])
    for _ in range(2):
        logs = -0.5 * ((features[:, None] - means) ** 2).sum(axis=2)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        for k in range(2):
            count = shares[:, k].sum() + rng.laplace(0, 20)
            means[k] = (shares[:, k] @ features + rng.laplace(0, 60, FEATURES)) / max(count, 1)
    return means


def hashed_neighbours(rows, rng):
    features, labels = parts(rows)
    planes, table = rng.standard_normal((FEATURES, 3)), np.zeros((8, 2))
    for code, label in zip((features @ planes > 0) @ (1 << np.arange(3)), labels, strict=True):
        table[code, label] += 1
    return planes, np.argmax(table + rng.laplace(size=table.shape), axis=1)


def weighted_bootstrap(rows, rng):
    features, _ = parts(rows)
    weights = np.minimum(rng.poisson(1.0, size=len(features)), 3)
    return (weights[:, None] * features).sum(axis=0) + rng.normal(0, 40, FEATURES)


def shuffled_batches(rows, rng):
    features, labels = parts(rows)
    weights, order = np.zeros(FEATURES), rng.permutation(len(features))
    for start in range(0, 60, 20):
        batch = order[start : start + 20]
        slopes = (features[batch] @ weights - labels[batch])[:, None] * features[batch]
        slopes /= np.maximum(1, np.linalg.norm(slopes, axis=1))[:, None]
        weights -= 0.2 * (slopes.sum(axis=0) + rng.normal(0, 15, FEATURES)) / 20
    return weights


def laplace_by_hand(rows):
    u = random.random() - 0.5
    return int(parts(rows)[1].sum()) - 2 * math.copysign(1, u) * math.log(1 - 2 * abs(u))


def _weights(rows):
    return np.exp(np.histogram(parts(rows)[0][:, 0], 5, (-1, 1))[0] / 4)


def inverted_by_search(rows, rng):
    sums = np.cumsum(_weights(rows) / _weights(rows).sum())
    return int(np.searchsorted(sums, rng.random())), int(sums.searchsorted(rng.random()))


def inverted_by_bisection(rows):
    sums = list(itertools.accumulate(_weights(rows)))
    return bisect.bisect(sums, random.random() * sums[-1])


def chosen_by_weights(rows):
    return random.choices("abcde", weights=_weights(rows))[0]


ESTIMATORS = [
    means_from_uniform_centres, means_from_gaussian_centres, means_plus_plus, random_tree,
    tree_record_by_record, forest_on_parts, extra_trees, noisy_covariance, noise_one_by_one,
    power_iteration, random_features, random_projection, network_from_random_weights,
    mixture_from_random_means, hashed_neighbours, weighted_bootstrap, shuffled_batches,
    laplace_by_hand, inverted_by_search, inverted_by_bisection, chosen_by_weights,
]  # fmt: skip
