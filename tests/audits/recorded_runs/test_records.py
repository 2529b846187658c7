"""What counts as records of the data, and the data of other records."""

import numpy as np
import pandas as pd
import pytest

from audits.recorded_runs.records import (
    larger_first,
    missing_record,
    number_of_records,
    other_data,
    parts_of,
)

ROWS = np.random.default_rng(3).normal(size=(30, 2))
LAST = len(ROWS) - 1
# The same rows as data of several forms.
FORMS = {
    "array": lambda rows: rows,
    "column": lambda rows: rows[:, 0],
    "list": lambda rows: rows.tolist(),
    "tuple of rows": lambda rows: tuple(map(float, rows[:, 0])),
    "features and labels": lambda rows: (rows, (rows[:, 0] > 0).astype(int)),
    "arrays and lists": lambda rows: (rows, rows[:, 1].tolist()),
    "dict of columns": lambda rows: {"a": rows[:, 0], "b": rows[:, 1].tolist()},
    "frame": lambda rows: pd.DataFrame(rows, columns=["a", "b"]),
    "frame and series": lambda rows: (pd.DataFrame(rows), pd.Series(rows[:, 0])),
}
EVERY_FORM = pytest.mark.parametrize("form", FORMS)


def replaced(rows, *places):
    other = rows.copy()
    other[list(places)] = 0.125
    return other


def same(one, other):
    return all(
        np.array_equal(np.asarray(a), np.asarray(b))
        for a, b in zip(parts_of(one), parts_of(other), strict=True)
    )


@EVERY_FORM
@pytest.mark.parametrize("missing", [0, 7, LAST])
def test_the_missing_record_is_found_from_either_side(form, missing):
    data, fewer = FORMS[form](ROWS), FORMS[form](np.delete(ROWS, missing, axis=0))
    assert (number_of_records(data), number_of_records(fewer)) == (LAST + 1, LAST)
    assert missing_record(data, fewer) == missing_record(fewer, data) == missing
    for pair in (larger_first(data, fewer), larger_first(fewer, data)):
        assert pair[0] is data
        assert pair[1] is fewer
    assert missing_record(data, FORMS[form](replaced(ROWS, missing))) is None
    assert missing_record(data, FORMS[form](ROWS[2:])) is None


@EVERY_FORM
def test_other_records_take_the_place_of_extremes(form):
    data = FORMS[form](ROWS)
    for neighbour in (ROWS[1:], ROWS[:-1], np.delete(ROWS, 7, axis=0), replaced(ROWS, 7)):
        other = other_data(data, FORMS[form](neighbour))
        assert type(other) is type(data)
        assert number_of_records(other) == LAST + 1
        assert not same(other, data)
        numbers, others = (np.asarray(parts_of(given)[0], dtype=float) for given in (data, other))
        assert others.max() < numbers.max()
        assert others.min() > numbers.min()
        assert set(others.ravel()) <= set(numbers.ravel())
        kept = np.all((numbers == others).reshape(LAST + 1, -1), axis=1)
        assert 0 < kept.sum() <= LAST
        # the parts of a record stay together
        if form in ("features and labels", "arrays and lists"):
            wanted = FORMS[form](other[0])
            assert same(other, wanted)


@EVERY_FORM
def test_pairs_that_differ_in_more_than_a_record_have_no_other_data(form):
    made = FORMS[form]
    data = made(ROWS)
    for neighbour in (
        ROWS, replaced(ROWS, 3, 7), ROWS[2:], replaced(ROWS, 3)[:-1], replaced(ROWS, 3, 4)[1:],
    ):  # fmt: skip
        assert other_data(data, made(neighbour)) is None
    for few in (1, 2):
        assert other_data(made(ROWS[:few]), made(ROWS[: few - 1])) is None
    assert other_data(made(ROWS[:3]), made(ROWS[:2])) is not None


def test_the_records_of_a_collection_are_its_items():
    words = {"b": 2.0, "a": 1.0, "c": 3.0}
    assert number_of_records(words) == 3
    assert missing_record(words, {"b": 2.0, "c": 3.0}) == 1
    assert missing_record({"a", 5, "c"}, {"a", "c"}) == sorted(["'a'", "5", "'c'"]).index("5")
    assert missing_record(frozenset("abc"), frozenset("ab")) == 2
    assert missing_record({0: 1, 1: 2}.values(), {0: 1}.values()) == 1


@EVERY_FORM
def test_data_of_one_size_get_the_same_places(form):
    data, fewer = FORMS[form](ROWS), FORMS[form](ROWS[1:])
    assert same(other_data(data, fewer), other_data(data, fewer))


def test_what_has_no_rows_has_no_other_data():
    assert other_data((ROWS, ROWS[1:]), (ROWS[1:], ROWS[1:])) is None  # parts of two lengths
    assert other_data(set(range(9)), set(range(8))) is None  # no rows that could be taken
    assert other_data(5, 5) is None
    assert number_of_records(5) is None
    assert missing_record(5, ROWS) is None
    assert parts_of((1, ROWS)) == [(1, ROWS)]
