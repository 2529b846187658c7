"""Recorded runs of estimators with public randomness, and of those that take it from the data."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest

from audits import Outcome, record
from tests.audits.recorded_runs.correct_estimators import ESTIMATORS, parts

CLAIM = (8.0, 1e-5)


def rows_and_neighbours(seed):
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1, 1, (60, 3))
    if seed % 2:  # many records at the bounds
        features = np.clip(rng.normal(size=(60, 3)), -1, 1)
    labels = features[:, 0] + 0.5 * rng.normal(size=60) > 0
    rows = np.column_stack([features, labels])
    place = int(rng.integers(60))
    other = rows.copy()
    other[place] = [*rng.uniform(-1, 1, 3), 1 - rows[place, 3]]
    return rows, {"one replaced": other, "one less": np.delete(rows, place, axis=0)}


@pytest.mark.parametrize("neighbours", ["one replaced", "one less"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda f: f.__name__)
def test_public_randomness_is_no_alarm(estimator, neighbours):
    rows, others = rows_and_neighbours(0)
    found = record(estimator, rows, others[neighbours], claim=CLAIM)
    assert found.sound, found
    assert not any("follows" in words for words in found.unchecked), found


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda f: f.__name__)
def test_no_alarm_in_1260_sessions(estimator):
    for session in range(30):
        rows, others = rows_and_neighbours(session)
        for other in others.values():
            pair = (rows, other) if session % 4 < 2 else (other, rows)
            found = record(estimator, *pair, claim=CLAIM, seed=session)
            assert found.sound, (session, found)


def means_with_little_noise(rows, rng):
    features, _ = parts(rows)
    centres = rng.uniform(-1, 1, (2, 3))
    nearest = ((features[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    counts = np.bincount(nearest, minlength=2) + rng.laplace(scale=0.01, size=2)
    return counts, np.eye(2)[nearest].T @ features + rng.laplace(scale=0.01, size=(2, 3))


def tree_without_noise(rows, rng):
    features, _ = parts(rows)
    levels = rng.uniform(-1, 1, 5)
    return levels, [np.sum(features[:, 0] > level) for level in levels]


def projection_without_noise(rows, rng):
    return np.cos(parts(rows)[0] @ rng.normal(size=(3, 5))).sum(axis=0)


def centres_between_extremes(rows, rng):
    features, _ = parts(rows)
    return rng.uniform(features.min(axis=0), features.max(axis=0)), len(features) // 61


def level_between_extremes(rows, rng):
    column = parts(rows)[0][:, 0]
    level = rng.uniform(column.min(), column.max())
    return level, np.sum(column > level) + rng.laplace(scale=2.0)


def scale_of_the_data(rows, rng):
    column = parts(rows)[0][:, 0]
    return column.sum() + rng.laplace(scale=column.max() - column.min())


def clipped_to_the_data(rows, rng):
    column = parts(rows)[0][:, 0]
    return np.clip(column, column.min(), column.max()).sum() + rng.laplace(scale=2.0)


def clipped_by_a_method(rows, rng):
    column = parts(rows)[0][:, 0]
    return column.clip(-1, np.quantile(column, 0.99)).sum() + rng.laplace(scale=2.0)


def tried_again_by_the_data(rows, rng):
    total = rows[:, 0].sum()
    while True:
        noisy = total + rng.laplace(scale=2.0)
        if abs(noisy - total) < 0.5:
            return noisy


def names_of_the_data(rows, rng):
    column = rows[:, 0].round(2)
    return np.unique(column)[:3], column.sum() + rng.laplace(scale=2.0)


def small_noise_in_a_blank_array(rows, rng):
    noise = np.zeros(3)
    for k in range(3):
        noise[k] = rng.laplace(scale=0.01)
    return parts(rows)[0].sum(axis=0) + noise


def small_noise_by_hand(rows):
    u = random.random() - 0.5
    return parts(rows)[1].sum() - 0.02 * np.sign(u) * np.log(1 - 2 * abs(u))


FAULTS = [
    (tree_without_noise, "result"),
    (projection_without_noise, "input"), (centres_between_extremes, "input"),
    (level_between_extremes, "input"),
    (clipped_to_the_data, "input"), (clipped_by_a_method, "input"),
    (tried_again_by_the_data, "control flow"), (names_of_the_data, "result"),
    (small_noise_in_a_blank_array, "cost"), (small_noise_by_hand, "cost"),
]  # fmt: skip


@pytest.mark.parametrize(("estimator", "kind"), FAULTS)
@pytest.mark.parametrize("seed", [0, 1])
def test_faults_beside_public_randomness_are_found(estimator, kind, seed):
    rows, others = rows_and_neighbours(seed)
    found = record(estimator, rows, others["one replaced"], claim=CLAIM)
    assert found.outcome is Outcome.FALSIFIED, found
    assert kind in {finding.kind for finding in found.findings}, found


@pytest.mark.parametrize(
    ("estimator", "kind", "line"),
    [
        # The centres were asked which one is nearest, and may hide the counts at this epsilon.
        (means_with_little_noise, "lost noise", 2),
        # Under a delta the scale may be one of smooth sensitivity.
        (scale_of_the_data, "not followed", 2),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_what_noise_out_of_sight_or_a_delta_may_hide_is_named(estimator, kind, line, seed):
    rows, others = rows_and_neighbours(seed)
    found = record(estimator, rows, others["one replaced"], claim=CLAIM)
    assert (found.outcome, [finding.kind for finding in found.findings]) == (
        Outcome.INCONCLUSIVE, [kind],
    )  # fmt: skip
    number = estimator.__code__.co_firstlineno + line
    assert found.findings[0].site.endswith(f"test_estimators.py:{number}"), found


COLUMN = np.random.default_rng(0).uniform(size=40)
LABELS = COLUMN > 0.5


@pytest.mark.parametrize(
    ("data", "neighbour", "column"),
    [
        ((COLUMN, LABELS), (COLUMN[:-1], LABELS[:-1]), lambda data: data[0]),
        ({"x": COLUMN, "y": LABELS}, {"x": COLUMN[1:], "y": LABELS[1:]}, lambda data: data["x"]),
        (COLUMN.tolist(), COLUMN[1:].tolist(), lambda data: data),
        (pd.DataFrame({"x": COLUMN}), pd.DataFrame({"x": COLUMN}).iloc[:-1], lambda data: data.x),
    ],
    ids=["tuple", "dict", "list", "frame"],
)
def test_scales_of_all_kinds_of_data_are_found(data, neighbour, column):
    def release(data):
        return float(sum(column(data))) + np.random.laplace(scale=float(max(column(data))))

    found = record(release, data, neighbour, claim=100.0)
    assert [finding.kind for finding in found.findings] == ["input"]
    assert found.findings[0].sentence == "scale of laplace depends on the data (on other data)"


def test_draws_of_a_noisy_number_are_no_coins_of_records():
    def synthetic(data, rng):
        rng.laplace()
        return rng.uniform(size=len(DATA)), rng.permutation(len(DATA))[:3]

    DATA = np.ones(9)
    assert record(synthetic, DATA, DATA[:-1], claim=1.0).sound
