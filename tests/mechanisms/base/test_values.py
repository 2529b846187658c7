"""What a value may be."""

import numpy as np
import pytest

from accountant import PrivateValueError
from mechanisms import Laplace
from mechanisms.base.values import Integers, Reals, Scores
from mechanisms.families.bounded_scores import BoundedScoreValues, ListedScores


def test_a_mask_is_no_way_to_hide_a_value():
    with pytest.raises(PrivateValueError, match="without a mask"):
        Laplace(1.0).release(np.ma.array([1.0, 2.0], mask=[True, False]), 1)


@pytest.mark.parametrize("kind", [Reals, Integers])
@pytest.mark.parametrize("dimension", [None, 1, 5])
def test_an_example_is_a_value(kind, dimension):
    values = kind(1, 1, dimension)
    example = values.example(np.random.default_rng(0))
    assert values.check(example) is not None


def test_a_refusal_says_what_is_declared():
    with pytest.raises(PrivateValueError, match=r"must be vectors \("):
        Reals(1.0, axes=1).check(3.0)
    with pytest.raises(PrivateValueError, match="vectors of at most 2 coordinates"):
        Reals(1.0, axes=1, dimension=2).check([1.0, 2.0, 3.0])
    with pytest.raises(PrivateValueError, match="whole numbers of an integer type"):
        Integers(1).check([2.0, 3.0])


@pytest.mark.parametrize(
    "values", [Scores(0.7), Scores(0.7, monotone=True), BoundedScoreValues(0.7)]
)
def test_neighbouring_scores_move_by_at_most_the_sensitivity(values):
    rng, sizes, greatest = np.random.default_rng(4), set(), 0.0
    for _ in range(200):
        example = values.example(rng)
        neighbour = values.neighbour(example, rng)
        assert values.check(neighbour).shape == values.check(example).shape
        scores, moved = (
            each.scores() if isinstance(each, ListedScores) else each
            for each in (example, neighbour)
        )
        moves = moved - scores
        sizes.add(scores.size)
        greatest = max(greatest, float(np.abs(moves).max()))
        if getattr(values, "monotone", False):
            assert np.all(moves >= 0) or np.all(moves <= 0)
    assert sizes == {2, 3, 4, 5, 6}
    assert greatest == pytest.approx(0.7)


@pytest.mark.parametrize(
    "value", [3.0, [1.0, 2.0], np.array([object()], dtype=object), [ListedScores([1.0]), 3.0]]
)
def test_what_is_no_object_of_bounded_scores_is_refused(value):
    with pytest.raises(PrivateValueError, match="an object with levels, members, at and scores"):
        BoundedScoreValues(1.0).check(value)
