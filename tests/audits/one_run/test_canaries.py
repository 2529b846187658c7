"""Canaries: fair coins, what goes into the data, files, and a training run from end to end."""

import sys

import numpy as np
import pandas as pd
import pytest

from accountant import GaussianLoss, ParameterError
from audits import Canaries, Outcome


def test_coins_repeat_with_their_seed_and_are_read_back(tmp_path):
    canaries = Canaries.flip(1000, rng=3)
    assert 400 < canaries.indices.size < 600
    assert (canaries.coins == Canaries.flip(1000, rng=3).coins).all()
    for name in ("coins.npz", "coins.json"):
        canaries.save(tmp_path / name)
        again = Canaries.load(tmp_path / name)
        assert again.seed == 3
        assert (again.coins == canaries.coins).all()
    canaries.save_indices(tmp_path / "in.npy")
    canaries.save_indices(tmp_path / "in.txt")
    assert (np.load(tmp_path / "in.npy") == canaries.indices).all()
    assert (np.loadtxt(tmp_path / "in.txt", dtype=int) == canaries.indices).all()
    with pytest.raises(ValueError, match="read-only"):
        canaries.coins[0] = True


def test_arrays_frames_and_lists_are_split_by_the_coins():
    canaries, values = Canaries.flip(20, rng=0), np.arange(20)
    assert canaries.included(values).tolist() == canaries.indices.tolist()
    assert canaries.included(list(range(20))) == canaries.indices.tolist()
    frame = pd.DataFrame({"x": values})
    assert canaries.included(frame)["x"].tolist() == canaries.indices.tolist()
    both = [*canaries.included(values), *canaries.excluded(values)]
    assert sorted(both) == values.tolist()
    assert len(canaries) == 20


def test_a_data_set_for_a_loader_needs_no_torch():
    canaries = Canaries.flip(20, rng=0)
    joined = canaries.dataset([f"canary {k}" for k in range(20)], base=["a", "b"])
    assert len(joined) == 2 + canaries.indices.size
    assert list(joined)[:3] == ["a", "b", f"canary {canaries.indices[0]}"]
    assert joined[-1] == f"canary {canaries.indices[-1]}"
    assert len(canaries.dataset(range(20))) == canaries.indices.size
    with pytest.raises(IndexError):
        joined[len(joined)]
    assert "torch" not in sys.modules


def descend(records, steps, noise, rng):
    """Full-batch DP-SGD on a mean: clipped gradients are added up with noise in every step."""
    point, noisy_sums = np.zeros(records.shape[1]), np.zeros(records.shape[1])
    for _ in range(steps):
        gradients = records - point
        sizes = np.linalg.norm(gradients, axis=1, keepdims=True)
        clipped = gradients / np.maximum(sizes, 1.0)
        released = clipped.sum(axis=0) + rng.normal(scale=noise, size=point.size)
        noisy_sums += released
        point = point + 0.001 * released / max(len(records), 1)
    return noisy_sums


@pytest.mark.parametrize(("used", "outcome"), [(1.0, "SURVIVED"), (0.25, "FALSIFIED")])
def test_a_training_run_with_a_quarter_of_its_noise_is_convicted(used, outcome):
    """White-box canaries: orthogonal gradients of full length; the claim is that of the plan."""
    steps, noise, count = 10, 4.0, 500
    canaries, gradients = Canaries.flip(count, rng=0), 100.0 * np.eye(count)
    released = descend(canaries.included(gradients), steps, used * noise, np.random.default_rng(1))
    claim = GaussianLoss(np.sqrt(steps) / noise)
    found = canaries.audit(released, claim, delta=1e-5)
    assert found.outcome is Outcome[outcome]
    assert found.coins == count
    assert found.mu_lower > claim.mu / 4


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda c: Canaries.flip(9), "10"),
        (lambda c: Canaries.flip(True), "whole number"),
        (lambda c: Canaries(np.ones(20)), "Canaries.flip"),
        (lambda c: Canaries(np.ones((20, 2), bool)), "along one axis"),
        (lambda c: Canaries(np.ones(9, bool)), "at least 10 booleans"),
        (lambda c: c.included(np.ones(19)), "each of the 20 canaries"),
        (lambda c: c.included(iter([1])), "without length"),
        (lambda c: c.audit(np.ones(19)), "each of the 20 canaries"),
        (lambda c: c.save("coins.txt"), ".npz or .json"),
        (lambda c: Canaries.load("no-such.npz"), "file to read"),
        (lambda c: Canaries.load("pyproject.toml"), "written by Canaries.save"),
    ],
)
def test_what_is_no_coins_is_refused(call, remedy):
    with pytest.raises(ParameterError, match=remedy):
        call(Canaries.flip(20, rng=0))
