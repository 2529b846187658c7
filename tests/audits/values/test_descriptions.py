"""Pairs in words: kinds, places and digests, never a record."""

import numpy as np
import pytest

from audits.values.descriptions import describe_pair, describe_value, difference_place, pair_names

TABLE = np.arange(300.0).reshape(100, 3)


def changed(place):
    other = TABLE.copy()
    other[place] = -1
    return other


@pytest.mark.parametrize(
    ("value", "words"),
    [(2, "2"), (2.00001, "2"), (True, "True"), (None, "None"), (np.float32(0.25), "0.25"),
     (np.array(7), "7"), (1 + 2j, "1+2j"), (10**300, "an integer of 997 bits"),
     (np.zeros((2, 3)), "an array of shape (2, 3)"), ("Alice", "a str of length 5"),
     ([1, 2], "a list of length 2"), ({"Bob": 1}, "a dict of length 1"), ({3}, "a set of length 1"),
     (object(), "an object"), (b"x", "a bytes of length 1")],
)  # fmt: skip
def test_numbers_are_shown_and_records_are_not(value, words):
    assert describe_value(value) == words


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [(TABLE, changed(7), "differ in row 7"), (TABLE, TABLE[:-1], "the same in the first 99"),
     (TABLE, TABLE[1:], "first differ in row 0"),
     (TABLE, changed([4, 9]), "differ in 2 rows, the first is 4"),
     (TABLE[0], changed((0, 2))[0], "differ in entry 2"),
     ([1, 2, 3], [1, 9, 3], "differ in item 1"),
     ("Alice", "Alina", "differ in 2 characters, the first is 3"),
     ({"Bob": 1, "Eve": 2}, {"Bob": 1, "Eve": 3}, "differ in 1 of 2 keys"),
     (np.array([np.nan, 1]), np.array([np.nan, 2]), "differ in entry 1"),
     (np.array([[1], "a"], object), np.array([[1], "b"], object), "differ in entry 1"),
     (np.zeros((2, 3)), np.zeros((2, 4)), "differ in 2 rows, the first is 0"),
     (np.zeros((2, 3)), np.zeros((5, 4)), "first differ in row 0"),
     (np.zeros((0, 3)), np.zeros((0, 4)), "differ in their types or names"),
     ([1], (2,), ""), (object(), object(), "")],
)  # fmt: skip
def test_the_place_where_values_differ(one, other, words):
    assert difference_place(one, other) == words


def test_the_words_of_a_pair_hold_kinds_places_and_digests():
    words = describe_pair(TABLE, changed(7))
    assert words.startswith("two values, each an array of shape (100, 3); differ in row 7; sha256 ")
    one, other = words.rpartition("sha256 ")[2].split(", ")
    assert len(one) == len(other) == 8
    assert one != other
    assert describe_pair(2, 3.0) == "2 against 3"
    assert describe_pair([1], None).startswith("a list of length 1 against None; sha256")
    assert pair_names(0, 1.5) == ("0", "1.5")
    assert pair_names("Alice", 1) == ("the first value", "the second value")


def test_frames_show_neither_names_nor_values():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"secret": [17, 18, 19], "name": ["Alice", "Bob", "Eve"]})
    words = describe_pair(frame, frame.assign(secret=[17, 18, 99]))
    assert "a DataFrame of shape (3, 2); differ in row 2" in words
    assert not any(word in words for word in ("secret", "Alice", "99"))
    assert "first differ in row 0" in describe_pair(frame, frame.iloc[1:])
