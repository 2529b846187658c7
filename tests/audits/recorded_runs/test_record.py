"""Recorded runs: faults of each kind are found, and correct functions raise no alarm."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

from accountant import ApproxLoss, GaussianLoss, LaplaceLoss, ParameterError, PureLoss
from audits import Primitive, record
from tests.audits.recorded_runs import correct_functions as correct
from tests.audits.recorded_runs import faulty_functions as faulty

DATA = np.random.default_rng(5).uniform(size=40)
FEWER = np.delete(DATA, 7)
OTHER = np.where(np.arange(40) == 7, 1 - DATA, DATA)
ONES = np.ones(4)


@pytest.mark.parametrize("function", correct.ADD_OR_REMOVE, ids=lambda f: f.__name__)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_correct_functions_raise_no_alarm(function, seed):
    claim = (1.0, 1e-5) if "gauss" in function.__name__ or "descent" in function.__name__ else 1.0
    found = record(function, DATA, FEWER, claim=claim, seed=seed)
    assert found.sound, found


@pytest.mark.parametrize("function", correct.REPLACE, ids=lambda f: f.__name__)
def test_correct_estimators_raise_no_alarm(function):
    found = record(function, DATA, OTHER, claim=1.0)
    assert found.sound, found


def kinds(function, data, neighbour, **options):
    found = record(function, data, neighbour, **options)
    assert not found.sound
    assert all("test" in f.site or "faulty" in f.site or not f.site for f in found.findings)
    return {finding.kind for finding in found.findings}


# data of the public examples of the recorder that this audit follows
LABELS, FEWER_LABELS = np.array([0, 1, 2, 0]), np.array([0, 1, 0])
FAULTS = [
    (faulty.mean_by_the_private_size, np.full(3, 0.5), np.full(2, 0.5), "input"),
    (faulty.domain_of_the_data, LABELS, FEWER_LABELS, "control flow"),
    (faulty.spent_twice, np.zeros(100), np.append(np.zeros(100), 1.0), "cost"),
    (faulty.clipped_with_nan, np.array([1.0, 2.0]), np.array([1.0, np.nan]), "cost"),
    (faulty.scale_of_zero, np.array([1.0, 1.0]), np.array([1.0]), "cost"),
    (faulty.clipped_in_vain, np.array([1.0, -2, 3]), np.array([1.0, -2, 100]), "cost"),
    (faulty.domain_by_maximum, LABELS, FEWER_LABELS, "input"),
    (faulty.scores_of_two_errors, np.repeat([0, 1], [6, 1]), np.repeat([0, 1], [5, 2]), "cost"),
    (faulty.covariance_not_clipped, np.eye(4, 2), np.diag([9.0, 1, 0, 0])[:, :2], "cost"),
    (faulty.same_noise_twice, DATA, OTHER, "reused noise"),
    (faulty.value_beside_its_noise, DATA, FEWER, "reused noise"),
    (faulty.tells_without_noise, DATA, np.append(DATA, 3.0), "no noise"),
    (faulty.branches_on_data, np.full(3, 0.5), np.array([0.5, 0.5, 1.0]), "control flow"),
    (faulty.stops_with_the_data, np.full(3, 0.5), np.array([1.0, 0.5, 0.5]), "control flow"),
    (faulty.keeps_the_data, DATA, OTHER, "result"),
    (faulty.seeded_by_the_data, DATA, OTHER, "input"),
    (faulty.all_thresholds, np.zeros(9), np.ones(9) * (np.arange(9) == 2), "cost"),
    (faulty.randomness_out_of_sight, DATA, OTHER, "randomness"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "data", "neighbour", "kind"), FAULTS)
def test_each_fault_is_found(function, data, neighbour, kind):
    assert kind in kinds(function, data, neighbour, claim=1.0)
