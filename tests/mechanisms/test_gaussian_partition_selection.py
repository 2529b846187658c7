"""Keys that are kept by noisy sums of weights: the claim by brute force, the threshold, the law."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from accountant import GaussianLoss, ParameterError, Tight
from mechanisms import GaussianPartitionSelection
from mechanisms.families.key_counts import STEPS, KeyCounts, key_weight

SETTINGS = [(4.0, 1e-6, 1, 1), (1.5, 1e-3, 4, 1), (0.3, 0.1, 3, 1), (2.0, 0.01, 2, 2),
            (30.0, 1e-12, 512, 2), (0.06, 0.5, 5, 2)]  # fmt: skip


KEPT = np.array(list(itertools.product([True, False], repeat=6)))  # all sets of six keys


def masses(selection, value):
    """The probabilities of all sets of the keys 0 to 5."""
    counts = np.zeros(6, dtype=int)
    counts[value.keys] = value.counts
    chance = selection.keep_probability(counts)
    return np.prod(np.where(KEPT, chance, 1 - chance), axis=1)


@pytest.mark.parametrize(("scale", "own_delta", "keys", "persons"), SETTINGS)
def test_no_neighbours_show_more_than_is_claimed(scale, own_delta, keys, persons):
    selection = GaussianPartitionSelection(scale, own_delta, keys, persons)
    rng, most = np.random.default_rng(0), 0.0
    claims = {epsilon: selection.loss.delta_at(epsilon) for epsilon in (0.0, 0.3, 1.0)}
    for _ in range(100):
        base = rng.choice([0, 0, 1, STEPS], 6) + rng.choice([0, selection.threshold], 6)
        values = [base.copy(), base.copy()]
        for person in range(persons):  # who comes, or goes, holds some keys
            held = int(rng.integers(1, min(keys, 6) + 1))
            values[person][rng.permutation(6)[:held]] += key_weight(held)
        pair = [masses(selection, KeyCounts(np.flatnonzero(v), v[v > 0])) for v in values]
        for epsilon, claim in claims.items():
            for p, q in (pair, pair[::-1]):
                delta = np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
                most = max(most, delta / claim)
                assert delta <= claim * (1 + 1e-9) + 1e-15
    assert most > 0.01 or keys > 100


@pytest.mark.parametrize(("scale", "own_delta", "keys", "persons"), SETTINGS)
def test_the_threshold_hides_keys_of_one_person_and_no_more(scale, own_delta, keys, persons):
    selection = GaussianPartitionSelection(scale, own_delta, keys, persons)
    shown = []
    for held in range(1, keys + 1):
        chance = selection.keep_probability([key_weight(held)])[0]
        shown.append(-math.expm1(held * math.log1p(-chance)))
    assert max(shown) <= own_delta
    lower = [
        -math.expm1(held * math.log1p(-norm.sf((selection.threshold - 4 - key_weight(held))
                                               / (scale * STEPS))))
        for held in range(1, keys + 1)
    ]  # fmt: skip
    assert max(lower) > own_delta or own_delta == 0.5


def test_the_cost_is_that_of_gaussian_noise_and_of_own_keys():
    selection = GaussianPartitionSelection(4.0, 1e-7, keys=20)
    gaussian = GaussianLoss(0.25)
    for epsilon in (0.2, 1.0):
        expected = 1e-7 + (1 - 1e-7) * gaussian.delta_at(epsilon)
        assert selection.loss.delta_at(epsilon) == pytest.approx(expected, rel=1e-6)
    three = Tight().epsilon(3 * selection, 1e-6)
    assert three == pytest.approx(GaussianLoss(0.25 * math.sqrt(3)).epsilon_at(7e-7), rel=1e-4)
    exchanged = GaussianPartitionSelection(4.0, 1e-7, keys=20, persons=2)
    assert Tight().epsilon(exchanged, 1e-6) > Tight().epsilon(selection, 1e-6)


def test_weights_of_a_person_have_length_one_at_most():
    held = np.arange(1, 1025)
    squares = held * key_weight(held) ** 2
    assert squares.max() == STEPS**2
    assert (squares > 0.98 * STEPS**2).all()


def test_keys_are_kept_as_often_as_it_says():
    selection = GaussianPartitionSelection(2.0, 1e-3, keys=3)
    at = selection.threshold
    value = KeyCounts(["a", "b", "c", "none"], [at, at + 8000, at - 6000, 0])
    kept = selection.release(value, rng=0, size=20_000)
    shares = np.array([(kept == name).any(axis=1).mean() for name in value.keys])
    assert shares == pytest.approx(selection.keep_probability(value.counts), abs=0.02)
    assert shares[3] == 0


@pytest.mark.parametrize("change", [
    {"scale": 0.0}, {"scale": math.nan}, {"own_delta": 0.0}, {"own_delta": 0.6}, {"keys": 0},
    {"keys": 2000}, {"persons": 3}, {"persons": True}, {"keys": 1.5}, {"scale": math.inf},
])  # fmt: skip
def test_refusals(change):
    with pytest.raises(ParameterError):
        GaussianPartitionSelection(**{"scale": 1.0, "own_delta": 1e-6, **change})
