"""Top k: counts by another road, both ways of selection, sensitivities, intervals."""

import itertools
from functools import partial

import numpy as np
import pytest

from accountant import ParameterError, PureLoss, Sequential, Tight
from accountant.ledger.ledger import Ledger
from algorithms import PrivateTopK
from algorithms.statistics.private_top_k import (
    CountsOf,
    category_counts,
    count_noise,
    largest,
    noise_reach,
    top_k_plan,
)
from audits.algorithm_runs.loss_profile import audit_algorithm
from audits.algorithm_runs.replaying import replay
from mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential

NAMES = ["tea", "coffee", "milk", "juice"]
RNG = np.random.default_rng(0)


def test_a_category_counts_once_a_row():
    rows = RNG.integers(-1, 6, (200, 4))
    found = category_counts(rows, 5)
    assert found.tolist() == [sum(c in row for row in rows.tolist()) for c in range(5)]
    assert category_counts(rows[:0], 3).tolist() == [0, 0, 0]


def test_no_person_moves_more_than_is_declared():
    rows = RNG.integers(0, 4, (6, 2))
    most = {1: 0, 2: 0}
    for new in itertools.product(range(-1, 4), repeat=2):
        less, other = category_counts(rows[1:], 4), category_counts([list(new), *rows[1:]], 4)
        most[1] = max(most[1], np.abs(other - less).sum())
        most[2] = max(most[2], np.abs(other - category_counts(rows, 4)).sum())
    for replaced, moved in ((False, most[1]), (True, most[2])):
        assert top_k_plan(4, 2, 2, replaced, 1.0, 0.0).parts[-1].sensitivity >= moved


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(("size", "k", "held"), [(40, 10, 1), (500, 3, 100)])
def test_a_plan_meets_its_target(size, k, held, delta, replaced):
    plan = top_k_plan(size, k, held, replaced, 1.0, delta)
    assert 0.45 < Tight().epsilon(plan, delta) <= 1.0
    rounds = [one for one in plan.parts if isinstance(one, Exponential)]
    assert len(rounds) == (0 if held == 1 else k)
    assert all(one.monotone is not replaced for one in rounds)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_rounds_and_noise_spend_half_of_epsilon_and_delta_each(delta):
    *rounds, noise = top_k_plan(500, 10, 100, False, 1.0, delta).parts
    assert len(rounds) == 10
    assert isinstance(noise, DiscreteGaussian) is (delta > 0)
    for half in (Sequential(rounds), noise):
        assert 0.499 < Tight().epsilon(half, delta / 2) <= 0.5


HERE = np.repeat(np.arange(4), [9, 8, 3, 0])[:, None]
THERE = HERE.copy()
THERE[0] = 1
MANY, OTHER = np.zeros((12, 60), dtype=np.int64), np.zeros((12, 60), dtype=np.int64)
MANY += np.arange(60)
MANY[6:] = -1
OTHER += MANY
OTHER[0] = -1


@pytest.mark.parametrize(("pair", "size"), [((HERE, THERE), 4), ((MANY, OTHER), 60)])
def test_no_leak_and_losses_within_the_claim(pair, size):
    made = PrivateTopK(k=2, categories=range(size), epsilon=1.0)
    assert replay(made, *pair, rng=1).sound
    found = audit_algorithm(made, *pair, PureLoss(1.0), 60, np.random.default_rng(5))
    assert found.refutation(1 - 1e-7) == ""


class CountsEveryColumn(PrivateTopK):
    """Claims one category a person, and counts all."""

    def plan(self, shape):
        return super().plan((shape[0], 1))


class HalfTheNoise(PrivateTopK):
    def plan(self, shape):
        made = PrivateTopK(k=self.k, categories=self.categories, epsilon=4 * self.epsilon)
        return made.plan(shape)


@pytest.mark.parametrize(
    ("wrong", "pair", "size"),
    [(CountsEveryColumn, (MANY[:, :9], OTHER[:, :9]), 9), (HalfTheNoise, (HERE, THERE), 4)],
)
def test_wrong_ones_are_caught(wrong, pair, size):
    made = wrong(k=2, categories=range(size), epsilon=1.0)
    found = audit_algorithm(made, *pair, PureLoss(1.0), 100, np.random.default_rng(5))
    assert found.refutation(1 - 1e-7) != ""


def test_both_ways_find_the_largest():
    people = RNG.choice(NAMES, 3000, p=[0.2, 0.6, 0.15, 0.05])
    made = PrivateTopK(k=3, categories=NAMES, epsilon=1.0, random_state=0).fit(people)
    assert made.top_.tolist() == ["coffee", "tea", "milk"]
    truth = [(people == name).sum() for name in made.top_]
    low, high = made.intervals_.T
    assert ((low <= truth) & (truth <= high)).all()
    assert "DiscreteLaplace noise" in made.summary()
    wide = np.where(RNG.random((400, 100)) < np.linspace(0.9, 0.1, 100), np.arange(100), -1)
    made = PrivateTopK(k=2, categories=range(100), epsilon=4.0, relation="add-remove",
                       random_state=0).fit(wide)  # fmt: skip
    assert "2 rounds of selection" in made.summary()
    assert set(made.top_.tolist()) <= set(range(20))


def test_intervals_hold_for_all_categories_at_once():
    """The largest of level counts is chosen by its noise: a pointwise interval misses too often."""
    truth, missed, runs = np.full(30, 500), 0, 400
    ledger_rows = np.repeat(np.arange(30), 500)[:, None]
    made = PrivateTopK(k=1, categories=range(30), epsilon=0.5, relation="add-remove")
    plan = made.plan(ledger_rows.shape)
    noise = plan.parts[0]
    for seed in range(runs):
        ledger = Ledger(ledger_rows, plan, rng=seed)
        _, counts, ends = made.run(ledger)
        missed += not ends[0, 0] <= truth[0] <= ends[0, 1]
    assert missed / runs <= 0.13  # 5 % but for a chance below 1e-9
    assert np.mean(counts) > 500
    # what a pointwise one would miss
    drawn = noise.release(np.full((runs, 30), 500), 1).max(axis=1)
    assert np.mean(np.abs(drawn - 500) > noise_reach(noise, 0.95)) > 0.4


def test_equal_counts_are_in_the_order_of_the_categories_and_none_is_below_0():
    noisy = np.array([[3, -2, 5] * 20, [0, 1, -1] * 20])
    top, counts, ends = largest(noisy, 45, 0.95, DiscreteLaplace(3.0))
    for row, indices in zip(noisy.tolist(), top.tolist(), strict=True):
        assert indices == sorted(range(60), key=lambda i: (-row[i], i))[:45]
    released = np.take_along_axis(noisy, top, axis=1)
    half = noise_reach(DiscreteLaplace(3.0), 0.95 ** (1 / 60))
    assert np.array_equal(counts, np.maximum(released, 0))
    assert np.array_equal(ends, np.maximum(np.stack([released - half, released + half], -1), 0))
    chosen_ends = largest(noisy, 45, 0.95, DiscreteLaplace(3.0), chosen=True)[2]
    half = noise_reach(DiscreteLaplace(3.0), 0.95)
    assert np.array_equal(chosen_ends[..., 1], np.maximum(released + half, 0))


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(3.0), DiscreteGaussian(4.0), DiscreteLaplace(0.3)]
)
def test_noise_is_within_its_reach(noise):
    far = np.abs(noise.release(np.zeros(400_000, dtype=np.int64), 3))
    reach = noise_reach(noise, 0.95)
    assert np.mean(far > reach) <= 0.0525  # 0.05 but for a chance below 1e-11
    if isinstance(noise, DiscreteLaplace) and reach > 0:
        assert np.mean(far > reach - 1) > 0.0475


def test_laplace_or_gaussian_noise_by_the_smaller_largest():
    assert isinstance(count_noise(1, 40, 1.0, 1e-6), DiscreteLaplace)
    assert isinstance(count_noise(100, 400, 1.0, 1e-6), DiscreteGaussian)


def test_codes_and_queries():
    made = PrivateTopK(k=1, categories=NAMES, epsilon=1.0)
    assert made.codes(["milk", "water", "tea"]).tolist() == [[2], [-1], [0]]
    assert made.codes([["milk", "tea"]]).tolist() == [[2, 0]]
    numbers = PrivateTopK(k=1, categories=[5, 1.5], epsilon=1.0)
    assert numbers.codes([1.5, 5, 7, np.nan]).tolist() == [[1], [0], [-1], [-1]]
    assert CountsOf(partial(category_counts, size=4), np.array([3, 0]))(HERE).tolist() == [0, 9]
    with pytest.raises(ParameterError, match="0 sample"):
        made.codes([])


@pytest.mark.parametrize(
    ("categories", "rows", "codes"),
    [
        (["b", "a", "7"], ["a", None, 7, "c"], [1, -1, 2, -1]),
        (["b", "a", "7"], np.array(["a", "c", "b"]), [1, -1, 0]),
        (["b", "a", "7"], np.array([b"a", b"c"]), [-1, -1]),
        (["b", "a", "7"], np.array([7, 8]), [2, -1]),
        ([2, -1, 0.5], [0.5, "2", None, "x", 10**400], [2, 0, -1, -1, -1]),
        ([2, -1, 0.5], np.array([0.5, 2.0, np.nan, -1.0]), [2, 0, -1, 1]),
        ([2, -1, 0.5], np.array([-1, 3]), [1, -1]),
        ([2, -1, 0.5], np.array(["2", "x"]), [-1, -1]),
    ],
)
def test_what_is_no_category_has_no_code_whatever_its_type(categories, rows, codes):
    made = PrivateTopK(k=1, categories=categories, epsilon=1.0)
    assert made.codes(rows).tolist() == [[code] for code in codes]


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"k": 0}, "k"), ({"k": 5}, "k"), ({"categories": ["a", "a"]}, "categories"),
     ({"categories": []}, "categories"), ({"epsilon": -1.0}, "epsilon"),
     ({"relation": "local-replace"}, "relation"), ({"confidence": 0.0}, "confidence")],
)  # fmt: skip
def test_wrong_arguments_name_themselves(wrong, name):
    given = {"k": 2, "categories": NAMES, "epsilon": 1.0, **wrong}
    with pytest.raises(ParameterError, match=name):
        PrivateTopK(**given).plan((10, 1))
