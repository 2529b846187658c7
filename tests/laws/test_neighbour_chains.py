"""Laws: what a probe compares are neighbours, and no kind of them is left out."""

import itertools
from collections import Counter

import numpy as np
import pytest

from accountant import ParameterError
from audits import Box, candidate_pairs, probe_sensitivity
from audits.neighbours import adjacent_chains
from audits.neighbours.value_spaces import ALL_RELATIONS, checked_relation

BOXES = {
    "numbers": Box(0.0, 1.0, (5,)), "around 0": Box(-2.0, 1.0, (4,)), "rows": Box(0.0, 1.0, (3, 2)),
    "whole": Box(0, 9, (5,), whole=True), "one record": Box(-1.0, 1.0, (1,)),
    "two": Box(-1.0, 1.0, (2,)), "a line": Box(-np.inf, np.inf, (3,)),
}  # fmt: skip
ONE_NUMBER = Box(-1.0, 1.0)
STEPS = 60  # of random neighbours


def records(data):
    """The records of a data set, NaN and the sign of 0 told apart, as a bag."""
    return Counter(np.asarray(row).tobytes() for row in data)


def are_neighbours(box, relation, ordered, one, other):
    """Whether two data sets are neighbours, by the definition."""
    one, other = np.asarray(one), np.asarray(other)
    if relation == "any":
        return one.shape == other.shape == box.shape
    if relation == "each":
        low, high = box.ends
        moved = one.shape == other.shape and np.all(np.abs(one - other) <= 1.0)
        return bool(moved and np.all((other >= low) & (other <= high)))
    if one.shape[1:] != other.shape[1:]:
        return False
    if not ordered and records(one) == records(other):
        return True  # the same set
    if relation == "add-remove":
        return any(
            np.array_equal(np.delete(long, at, axis=0), short, equal_nan=True)
            for long, short in ((one, other), (other, one))
            if len(long) == len(short) + 1
            for at in range(len(long))
        )
    same = len(one) == len(other)
    return same and sum(a.tobytes() != b.tobytes() for a, b in zip(one, other, strict=True)) <= 1


def steps(box, relation, data=None, hostile=False, ordered=False):
    """Every two data sets that a probe compares, and how the second was made."""
    rng = np.random.default_rng(1)
    by = checked_relation(relation, box)
    chains = adjacent_chains.adjacent_chains(box, by, data, hostile, ordered, rng)
    for chain in chains:
        for (_, one), (kind, other) in itertools.pairwise(chain):
            yield kind, one, other
    best = next(iter(candidate_pairs(box, relation))).pair
    for _ in range(0 if hostile or ordered else STEPS):
        (_, one), (kind, other) = adjacent_chains.neighbours_near(box, by, best, rng)
        yield kind, one, other
        best = one, other


@pytest.mark.parametrize("relation", ALL_RELATIONS)
@pytest.mark.parametrize("name", BOXES)
def test_all_that_is_compared_are_neighbours(name, relation):
    box = BOXES[name]
    for hostile, ordered in ((False, False), (True, False), (True, True)):
        for data in (None, box.array(np.random.default_rng(2).uniform(-1, 1, box.shape))):
            for kind, one, other in steps(box, relation, data, hostile, ordered):
                near = are_neighbours(box, relation, ordered, one, other)
                assert near, f"{kind}: {one!r} and {other!r} are no neighbours"


KINDS = {  # of steps, and when they are tried
    "the same records": lambda relation, data, hostile, ordered: (
        not ordered and relation != "each"),
    "a record of nan": lambda relation, data, hostile, ordered: hostile and relation != "each",
    "a record of -inf": lambda relation, data, hostile, ordered: hostile and relation != "each",
    "a staircase": lambda relation, data, hostile, ordered: (
        data is None and relation in {"replace-one", "any"}),
    "records and a high one": lambda relation, data, hostile, ordered: (
        data is None and relation == "add-remove"),
    "0 records": lambda relation, data, hostile, ordered: (
        data is None and relation == "add-remove"),
    "a neighbour of the data": lambda relation, data, hostile, ordered: (
        data is not None or (hostile and relation != "each")),
    "near the best": lambda relation, data, hostile, ordered: not (hostile or ordered),
}  # fmt: skip


@pytest.mark.parametrize("relation", ALL_RELATIONS)
def test_every_kind_of_neighbour_is_tried_where_it_belongs(relation):
    box = BOXES["numbers"]
    for hostile, ordered in itertools.product((False, True), repeat=2):
        for data in (None, np.array([0.3, 0.1, 0.9, 0.2, 0.5])):
            found = {kind for kind, _, _ in steps(box, relation, data, hostile, ordered)}
            for words, belongs in KINDS.items():
                expected = belongs(relation, data, hostile, ordered)
                assert any(words in kind for kind in found) == expected, (words, hostile, ordered)


def test_whole_numbers_have_no_hostile_records():
    found = {kind for kind, _, _ in steps(BOXES["whole"], "replace-one", None, hostile=True)}
    assert not any("a record of" in kind for kind in found)


@pytest.mark.parametrize("relation", ["replace-one", "each", "any"])
def test_neighbours_of_one_number(relation):
    for kind, one, other in steps(ONE_NUMBER, relation):
        assert -1.0 <= min(one, other) <= max(one, other) <= 1.0, kind
        assert relation != "each" or abs(one - other) <= 1.0
    with pytest.raises(ParameterError, match="no records to remove"):
        checked_relation("add-remove", ONE_NUMBER)


def test_a_single_record_is_removed_and_not_replaced():
    found = probe_sensitivity(np.sum, BOXES["one record"], "add-remove", 1.0, budget=400, rng=1)
    assert (found.outcome.name, found.found) == ("SURVIVED", 1.0)


# what a data set of unusual numbers lies between
BOUNDS = {
    "numbers": (np.array([1.0, 3.0]), (1.0, 3.0)), "equal": (np.array([2.0, 2.0]), (2.0, 3.0)),
    "missing": (np.array([np.nan, np.inf, 4.0, 1.0]), (1.0, 4.0)),
    "none finite": (np.array([np.nan, -np.inf]), (0.0, 1.0)), "whole": (np.array([5, 7]), (5, 7)),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUNDS)
def test_a_data_set_lies_in_its_box(name):
    data, ends = BOUNDS[name]
    box = adjacent_chains.bounding_box(data)
    assert (box.low, box.high, box.shape, box.whole) == (*ends, data.shape, name == "whole")


NO_NUMBERS = {
    "one number": np.zeros(()), "no records": np.zeros((0, 2)), "words": np.array(["a"]),
    "complex numbers": np.array([1j]), "truths": np.array([True]),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_what_is_no_data_set_of_numbers_has_no_box(name):
    with pytest.raises(ParameterError, match="space must be numbers"):
        adjacent_chains.bounding_box(NO_NUMBERS[name])


@pytest.mark.parametrize("shape", [(0,), (-1,), (2.0,), (3, 0)])
def test_a_box_has_a_size(shape):
    with pytest.raises(ParameterError, match="shape"):
        Box(0.0, 1.0, shape)
    for low, high in ((1.0, 1.0), (2.0, 1.0), (np.nan, 1.0)):
        with pytest.raises(ParameterError, match="low"):
            Box(low, high)
