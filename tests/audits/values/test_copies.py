"""A copy for each call: what a call does to it is seen by no other."""

import collections
import copy
import random

import numpy as np
import pytest

from audits.values.copies import copier, is_shared, is_unchanging, own_copy, remaker
from audits.values.digests import equal_values


class Holder:
    def __init__(self, inside):
        self.inside = inside


class NoCopies(Holder):
    def __deepcopy__(self, memo):
        raise TypeError("no copies")


CHANGES = {
    "an array": (np.arange(6.0).reshape(2, 3), lambda v: v.fill(7)),
    "an array of objects": (np.array([[1], [2]], object), lambda v: v[0, 0].__class__),
    "a masked array": (np.ma.array([1, 2], mask=[0, 1]), lambda v: v.__setitem__(0, 9)),
    "a list": ([3, 1, 2], lambda v: v.sort()),
    "lists in a list": ([[3], [1]], lambda v: v[0].append(1)),
    "arrays in a dictionary": ({"x": np.zeros(2)}, lambda v: v["x"].fill(1)),
    "a list in a tuple": (([1],), lambda v: v[0].append(2)),
    "a set": ({1, 2}, lambda v: v.clear()),
    "a deque": (collections.deque([1]), lambda v: v.append(2)),
    "an object": (Holder([1]), lambda v: v.inside.append(2)),
    "bytes that change": (bytearray(b"ab"), lambda v: v.reverse()),
    "a record of numpy": (np.zeros(1, "i4,f8")[0], lambda v: v.__setitem__(0, 4)),
}


def test_a_method_of_an_object_that_changes_is_shared():
    assert is_unchanging(len)
    assert not is_unchanging([].append)
    assert is_shared([].append)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_a_copy_changes_nothing_else(name):
    value, change = CHANGES[name]
    before = copy.deepcopy(value)
    make = copier(value)
    first, second = make(), make()
    assert equal_values(first, value)
    assert type(first) is type(value)
    change(first)
    assert equal_values(value, before)
    assert equal_values(second, before)
    assert not is_shared(value)


def test_a_list_in_an_array_beside_a_function_is_copied():
    value = {"x": np.array([lambda: 0, [1]], object)}
    own_copy(value)["x"][1].append(2)
    assert value["x"][1] == [1]


@pytest.mark.parametrize("value", [1, 2.0, "x", b"x", None, True, (1, (2, "a")), frozenset({1}),
                                   np.float64(2), range(3), int, len])  # fmt: skip
def test_what_cannot_change_is_not_copied(value):
    assert own_copy(value) is value
    assert not is_shared(value)


def test_what_cannot_be_copied_is_shared():
    for value in (NoCopies([1]), (number for number in [1])):
        assert own_copy(value) is value
        assert is_shared(value)
    assert not is_unchanging([1])


def test_copies_keep_the_order_of_memory_and_the_shared_parts():
    fortran = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert own_copy(fortran).flags.f_contiguous
    inner = [1.0]
    made = own_copy([inner, inner])
    assert made[0] is made[1]
    fixed = np.zeros(2)
    fixed.flags.writeable = False
    assert own_copy(fixed).flags.writeable
    frame = pytest.importorskip("pandas").DataFrame({"a": [1, 2]})
    changed = own_copy(frame)
    changed.loc[0, "a"] = 5
    assert frame.loc[0, "a"] == 1
    assert own_copy(random.Random(1)).random() == random.Random(1).random()


@pytest.mark.parametrize(
    "value", [np.arange(3.0), [1.5, 2.5], (1.5, [2.5]), {"a": 1e9}, 12345.5, len, {1: lambda: 0}],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_value_is_made_again_with_its_parts(value):
    make = remaker(value)
    one, two = make(), make()
    assert str(one) == str(two) == str(value)
    if type(value) in {list, tuple}:
        assert one[0] is not value[0]
        assert one[0] is not two[0]
