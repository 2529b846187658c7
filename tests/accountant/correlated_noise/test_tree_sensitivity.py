"""Sensitivities of binary trees: published ones, and the greatest of all patterns of small ones."""

import itertools
from collections import Counter

import pytest

from accountant import BinaryTree, FixedEpochs, MinSeparation, Once, ParameterError, sensitivity


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
