"""Partition selection: the published rule by another road, whole numbers, people with many keys."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from accountant import ApproxLoss, ParameterError, PrivateValueError, Tight
from accountant.ledger.ledger import Ledger
from algorithms import best_partition_selection
from algorithms.statistics.partition_selection import keys_lost
from mechanisms import PartitionSelection
from mechanisms.exact_noise.exponential_coins import exponential_bounds
from mechanisms.families.key_counts import KeyCounts
from mechanisms.partition_selection import WORDS, keeping_words

SETTINGS = [(1.0, 1e-6), (0.1, 1e-9), (4.0, 0.3), (0.01, 1e-5), (40.0, 1e-15)]


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
def test_the_coins_obey_both_bounds_in_whole_numbers(epsilon, delta):
    assert words_violation(keeping_words(epsilon, delta), epsilon, delta) == ""


def words_violation(words, epsilon, delta):
    """Where the coins of neighbouring counts are further apart than the bounds allow."""
    low, _ = exponential_bounds(Fraction(epsilon), 60)
    lost, all_words = Fraction(delta) * WORDS, [int(w) for w in words]
    if all_words[0] != 0 or all_words[-1] != WORDS:
        return "an empty key is kept, or none is kept for certain"
    for now, then in itertools.pairwise(all_words):
        # e^eps < 1 / low
        if then - lost > now / low or WORDS - now - lost > (WORDS - then) / low or then < now:
            return f"{now} and {then} are too far apart"
    return ""


@pytest.mark.parametrize("wrong", ["first count is free", "no crossing", "delta twice"])
def test_wrong_rules_are_caught(wrong):
    epsilon, delta, n = 1.0, 1e-3, float(WORDS)
    words = [0 if wrong != "first count is free" else WORDS // 2]
    for _ in range(60):
        rising = math.e * words[-1] + delta * n * (2 if wrong == "delta twice" else 1)
        falling = n - max(n - words[-1] - delta * n, 0) / math.e
        words.append(int(min(rising, n if wrong == "no crossing" else falling, n)))
    assert words_violation([0, *words[1:]] if words[0] == 0 else words, epsilon, delta) != ""


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS[:3])
def test_the_closed_form_of_the_paper(epsilon, delta):
    # their Theorem 2: a geometric sum up to the crossing, its mirror behind; words are rounded
    made, up = PartitionSelection(epsilon, delta), math.exp(epsilon)
    crossing = 1 + math.floor(math.log((up + 2 * delta - 1) / (delta * (up + 1))) / epsilon)
    first, more = np.arange(crossing + 1), np.arange(1, 30)
    rising = delta * np.expm1(first * epsilon) / math.expm1(epsilon)
    np.testing.assert_allclose(made.keep_probability(first), rising, rtol=1e-9)
    left = (1 - rising[-1]) * np.exp(-more * epsilon)
    left += delta * np.expm1(-more * epsilon) / math.expm1(epsilon)
    np.testing.assert_allclose(
        made.keep_probability(crossing + more), 1 - np.maximum(left, 0.0), rtol=1e-9
    )


def test_delta_is_attained_at_epsilon():
    made = PartitionSelection(0.7, 1e-3)
    more, less = made.worst_pair()
    p, q = (float(made.keep_probability(one.counts)[0]) for one in (more, less))
    assert p - math.exp(0.7) * q == pytest.approx(1e-3)
    assert made.loss == ApproxLoss(0.7, 1e-3)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [*SETTINGS, (1.0, 1e-15), (1e-2, 1e-15), (1.0, 1 - 1e-9)]
)
def test_the_worst_pair_attains_delta_but_for_two_words(epsilon, delta):
    more, less = PartitionSelection(epsilon, delta).worst_pair()
    words = keeping_words(epsilon, delta)
    (count,) = less.counts
    assert more.counts == count + 1
    _, high = exponential_bounds(Fraction(epsilon), 60)
    kept_more, kept_less = (Fraction(int(words[k])) for k in (count + 1, count))
    assert kept_more - kept_less / high > Fraction(delta) * WORDS - 2


def test_counts_that_nobody_can_hold_have_no_probability():
    for counts in (-1, [3, -2], 1.5):
        with pytest.raises(PrivateValueError, match="whole numbers from 0"):
            PartitionSelection(1.0, 1e-6).keep_probability(counts)


def test_what_several_keys_cost_is_the_product():
    one, many = PartitionSelection(0.1, 1e-8), PartitionSelection(0.1, 1e-8, 30)
    for delta in (1e-6, 1e-4):
        assert Tight().epsilon(many, delta) == pytest.approx(
            Tight().epsilon(30 * one, delta), rel=1e-9
        )
    assert Tight().epsilon(many, 1e-9) == math.inf


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("keys", [1, 3, 60])
def test_the_best_selection_meets_its_target(keys, relation):
    made = best_partition_selection(1.0, 1e-6, keys, relation)
    moved = keys * (2 if relation == "replace-one" else 1)
    assert made.keys == moved
    assert 0.99 < Tight().epsilon(made, 1e-6) <= 1.0
    if moved > 1:
        plain = PartitionSelection(1 / moved * (1 - 1e-9), 1e-6 / moved * (1 - 1e-9), moved)
        assert keys_lost(made) <= keys_lost(plain)


def test_a_person_counts_with_the_first_distinct_keys():
    people = ["a", "b", "a", "a", "b", "c", "a"]
    keys = ["x", "y", "x", "z", "x", "x", "y"]
    found = KeyCounts.of_people(people, keys, most=2)
    assert dict(zip(found.keys.tolist(), found.counts.tolist(), strict=True)) == {
        "x": 3, "y": 1, "z": 1,
    }  # fmt: skip
    assert KeyCounts.of_people([], [], 3).keys.size == 0


def test_a_key_beyond_64_bits_with_a_sign_is_refused():
    """2^64 - 1 would become -1, which stands for a key that is not kept."""
    for key in (2**63, 2**64 - 1):
        with pytest.raises(ParameterError, match="below 2\\^63"):
            KeyCounts(np.array([key], dtype=np.uint64), [3])
    assert KeyCounts([2**63 - 1], [3]).keys.tolist() == [2**63 - 1]


def test_one_person_moves_as_many_counts_as_are_declared():
    rng = np.random.default_rng(0)
    for _ in range(50):
        people, keys = rng.integers(0, 6, 40), rng.integers(0, 8, 40)
        most, gone = int(rng.integers(1, 4)), people == rng.integers(0, 6)
        both = [
            KeyCounts.of_people(people[rows], keys[rows], most)
            for rows in (np.full(40, True), ~gone)
        ]
        counts = [dict(zip(one.keys.tolist(), one.counts.tolist(), strict=True)) for one in both]
        moved = [counts[0].get(k, 0) - counts[1].get(k, 0) for k in range(8)]
        assert set(moved) <= {0, 1}
        assert sum(moved) <= most


def test_a_ledger_releases_the_kept_keys_alone():
    made, rows = PartitionSelection(1.0, 1e-6), np.repeat(np.arange(3), [500, 1, 40])
    ledger = Ledger(rows, 1 * made, rng=0)
    found = ledger.release(made, lambda data: KeyCounts(*np.unique(data, return_counts=True)))
    assert found.tolist() == [0, 2]
    names = made.release(KeyCounts(["ab", "a" * 99], [900, 1]), 0)
    assert names.tolist() == ["ab"]
    assert names.dtype == np.dtype("<U2")  # the longer one's width stays secret
    assert made.release(KeyCounts([], []), 0).size == 0
    assert made.release(np.array([KeyCounts(["b"], [999]), KeyCounts(["c", "d"], [0, 999])]),
                        0).tolist() == [["b", ""], ["", "d"]]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [lambda: KeyCounts([1, 1], [2, 3]), lambda: KeyCounts([-1], [2]), lambda: KeyCounts([""], [2]),
     lambda: KeyCounts([1], [-2]), lambda: KeyCounts([0.5], [2]), lambda: KeyCounts([1, 2], [3]),
     lambda: KeyCounts.of_people([1], [2, 3], 1),
     lambda: PartitionSelection(1.0, 0.1).release([3])],
)  # fmt: skip
def test_wrong_values_are_refused(wrong):
    with pytest.raises(PrivateValueError):
        wrong()


@pytest.mark.parametrize(
    "wrong",
    [lambda: PartitionSelection(1.0, 0.0), lambda: PartitionSelection(1e-4, 1e-300),
     lambda: PartitionSelection(1.0, 0.1, 0), lambda: best_partition_selection(1.0, 0.0),
     lambda: best_partition_selection(1.0, 1e-6, 10_000)],
)  # fmt: skip
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ParameterError):
        wrong()
