"""Sensitivities of binary trees: published ones, and the greatest of all patterns of small ones."""

import itertools
from collections import Counter

import pytest

from accountant import BinaryTree, FixedEpochs, MinSeparation, Once, ParameterError, sensitivity
from accountant.correlated_noise import binary_tree
from accountant.correlated_noise.binary_tree import min_separation_squared


def squared_norm(tree, steps_used):
    """The sum of squared counts in the nodes, one node after another."""
    total, start = 0, 0
    for height in tree.heights:
        inside = [step - start for step in steps_used if start <= step < start + 2**height]
        for level in range(height + 1):
            total += sum(count**2 for count in Counter(one >> level for one in inside).values())
        start += 2**height
    return total


def patterns(steps, uses, separation):
    for chosen in itertools.chain.from_iterable(
        itertools.combinations(range(steps), count) for count in range(1, uses + 1)
    ):
        if all(b - a >= separation for a, b in itertools.pairwise(chosen)):
            yield chosen


# tensorflow/privacy, tree_aggregation_accountant_test.py; its separations count the steps between
@pytest.mark.parametrize(
    ("uses", "between", "steps", "squared"),
    [(1, 7, 8, 4), (3, 3, 9, 11), (3, 2, 7, 9), (8, 2, 24, 88), (8, 0, 8, 120), (200, 0, 8, 120),
     (2, 0, 19, 18), (19, 0, 19, 31 * 16 + 2 * 3 + 1)],
)  # fmt: skip
def test_published_sensitivities(uses, between, steps, squared):
    found = sensitivity(BinaryTree(steps), MinSeparation(uses, between + 1))
    assert (found.squared, found.exact) == (squared, True)
    assert found.value**2 == pytest.approx(squared, rel=1e-15)


def most_squares(nodes, uses, separation, size):
    """The greatest sum of squared counts of nodes of this size, each filled on its own."""
    room = len(range(0, size, separation))
    greatest = [0] * (uses + 1)  # by the number of uses in the nodes so far
    for _ in range(nodes):
        greatest = [
            max(greatest[total - count] + count**2 for count in range(min(room, total) + 1))
            for total in range(uses + 1)
        ]
    return max(greatest)


@pytest.mark.parametrize(
    ("trees", "uses", "separation"),
    [((8,), 1, 8), ((7,), 3, 2), ((8,), 8, 1), ((19,), 2, 1), ((24,), 8, 3),
     ((11,), 4, 3), ((4, 1, 6), 4, 3), ((24,), 9, 7), ((9,), 3, 4)],
)  # fmt: skip
def test_without_a_search_nodes_that_are_each_as_full_as_can_be_are_a_bound(
    monkeypatch, trees, uses, separation
):
    heights, participation = BinaryTree(trees).heights, MinSeparation(uses, separation)
    greatest, _ = min_separation_squared(heights, participation)
    monkeypatch.setattr(binary_tree, "MAX_SPLITS", 0)
    squared, is_attained = min_separation_squared(heights, participation)
    uses = participation.most(sum(trees))
    assert squared >= greatest
    assert is_attained is (squared == greatest)
    if not is_attained:
        assert squared == sum(
            most_squares(
                sum(2 ** (height - level) for height in heights if height >= level),
                uses, separation, 2**level,
            )
            for level in range(max(heights) + 1)
        )  # fmt: skip


@pytest.mark.parametrize("trees", [(1,), (7,), (8,), (11,), (3, 5), (4, 1, 6), (1, 1, 2)])
@pytest.mark.parametrize(("uses", "separation"), [(1, 1), (2, 1), (2, 3), (3, 2), (4, 3), (9, 2)])
def test_no_pattern_of_a_small_tree_moves_it_further(trees, uses, separation):
    tree = BinaryTree(trees)
    greatest = max(squared_norm(tree, one) for one in patterns(tree.columns, uses, separation))
    found = sensitivity(tree, MinSeparation(uses, separation))
    assert (found.squared, found.exact) == (greatest, True)


@pytest.mark.parametrize(("trees", "epochs"), [((12,), 3), ((5, 7), 4), ((6, 6), 2), ((9,), 9)])
def test_fixed_epochs_are_the_worst_place(trees, epochs):
    tree = BinaryTree(trees)
    period = tree.columns // epochs
    places = [squared_norm(tree, range(place, tree.columns, period)) for place in range(period)]
    assert sensitivity(tree, FixedEpochs(epochs)).squared == max(places)


def test_once_is_the_deepest_leaf():
    assert sensitivity(BinaryTree((10, 40, 30)), Once()).squared == 6
    assert sensitivity(BinaryTree(2**20), Once()).squared == 21


def test_epochs_divide_the_steps():
    with pytest.raises(ParameterError, match=r"MinSeparation\(3, 3\) allows more"):
        sensitivity(BinaryTree(10), FixedEpochs(3))


@pytest.mark.parametrize("steps", [0, -1, True, 2.0, (), (4, 0), 10**8, "8", None])
def test_wrong_steps_are_refused(steps):
    with pytest.raises(ParameterError, match="steps"):
        BinaryTree(steps)
