"""Equal values have equal digests, whatever they are; values of one pair are not taken for one."""

import collections
import datetime
import fractions

import numpy as np
import pytest

from audits.values.digests import digest, equal_values, surely_differ

NAN = float("nan")


class Plain:
    def __init__(self, inside):
        self.inside = inside


class Slotted:
    __slots__ = ("inside",)

    def __init__(self, inside):
        self.inside = inside


class Unreadable:
    def __reduce_ex__(self, protocol):
        raise OSError("no")


EQUAL = [
    (1, 1.0), (True, 1), (0.0, -0.0), (NAN, np.float64("nan")), (2 + 0j, 2), (10**5000, 10**5000),
    ([NAN, 1], [float("nan"), 1.0]), ({1: 2, 3: [4]}, {3: [4], 1: 2}), ({1, 2}, {2, 1}),
    (np.array([1, np.nan]), np.array([1, np.nan])), (np.array([1, 2]), np.array([1, 2], np.int8)),
    (np.array([True]), np.array([1.0])), (np.float32(0.5), 0.5), (np.array([1 + 0j]), np.ones(1)),
    (np.array(["a", "bb"]), np.array(["a", "bb"], "U9")),
    (np.array([None, "a"], object), np.array([None, "a"], object)),
    (np.array(["NaT"], "M8[D]"), np.array(["NaT"], "M8[D]")),
    (np.array([(1, "a")], "i4,U2"), np.array([(1, "a")], "i4,U2")),
    (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[0, 1])),
    (Plain([1]), Plain([1.0])), (Slotted({1}), Slotted({1})), (None, None), (b"ab", b"ab"),
    (fractions.Fraction(1, 2), fractions.Fraction(2, 4)),
    (collections.deque([1, [2]]), collections.deque([1, [2]])),
    (datetime.date(2026, 1, 2), datetime.date(2026, 1, 2)), (int, int),
]  # fmt: skip
DIFFERENT = [
    (0, 1), (0, None), ([1], (1,)), (["ab"], ["a", "b"]), ("a", b"a"), (1.5, 1.25), (2, 2 + 1j),
    ({1: 2}, {1: 3}), ({1}, {2}), (2**60, 2**60 + 1), (np.array([2**60]), np.array([2**60 + 1])),
    (np.array([2**64 - 1], np.uint64), np.array([2**64 - 2], np.uint64)),
    (np.zeros(3), np.zeros(4)), (np.zeros((3, 2)), np.zeros((2, 3))), (np.array([1j]), np.ones(1)),
    (np.ones(1, np.longdouble) + np.finfo(np.longdouble).eps, np.ones(1)),
    (np.array(["a"]), np.array(["b"])), (np.array([1, "a"], object), np.array([1, "b"], object)),
    (Plain(1), Plain(2)), (Plain(1), Slotted(1)), (Slotted(1), Slotted(2)),
    (collections.deque([1]), collections.deque([2])), (int, float),
    (np.array(["2026-01-01"], "M8[D]"), np.array(["2026-01-02"], "M8[D]")),
    (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[1, 0])),
]  # fmt: skip


@pytest.mark.parametrize("pair", EQUAL)
def test_equal_values_have_equal_digests(pair):
    assert equal_values(*pair)
    assert not surely_differ(*pair)


@pytest.mark.parametrize("pair", DIFFERENT)
def test_different_values_have_different_digests(pair):
    assert not equal_values(*pair)
    assert surely_differ(*pair)


def test_what_cannot_be_read_is_known_by_identity():
    deep = []
    deep.append(deep)
    for one, other in [(Unreadable(), Unreadable()), (lambda: 0, lambda: 0), (deep, [deep]),
                       ((x for x in ()), (x for x in ()))]:  # fmt: skip
        assert digest(one) is None
        assert equal_values(one, one)
        assert not equal_values(one, other)
        assert not surely_differ(one, other)


def test_frames_are_read_by_names_index_and_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, NAN], "b": ["x", "y"]})
    assert equal_values(frame, frame.copy())
    assert equal_values(frame["a"], frame["a"].copy())
    others = [frame.iloc[1:], frame[["b", "a"]], frame.rename(columns={"a": "c"}),
              frame.set_axis([1, 2]), frame.assign(b=["x", "z"])]  # fmt: skip
    assert all(surely_differ(frame, other) for other in others)
    doubled = pandas.concat([frame, frame], axis=1)
    assert equal_values(doubled, doubled.copy())


def test_a_value_with_many_cycles_is_unreadable_at_once():
    items = [1]
    items.extend([items, {"all": [items, items]}])
    assert digest(items) is None


def test_a_value_that_lies_about_its_class_is_unreadable():
    class Liar:
        __class__ = property(lambda self: int)

    assert digest([Liar()]) is None
