"""Chunks hand out the users that were charged."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from accountant import Chunks, Ledger, Parallel, ParameterError
from accountant.ledger import chunks as chunks_module
from mechanisms import Laplace


def test_chunks_hand_out_the_users_that_were_charged_in_any_order():
    data = np.arange(100.0, 108.0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        who = rng.permutation(8)[: rng.integers(1, 9)]
        pieces = Chunks(lambda: [data[:4], data[4:4], data[4:7], data[7:]], (8,))
        ledger = Ledger(pieces, Parallel([Laplace(1e-9)] * 2), rng=0)
        seen = ledger.release_each(ledger.plan.parts[0], np.copy, who)
        assert np.round(seen).tolist() == data[who].tolist()
    with pytest.raises(ParameterError, match="the 9 of the shape"):
        Chunks(lambda: [data], (9,))[np.array([8, 0])]
    assert Chunks(lambda: [data], (8,))[0:0].shape == (0,)
    assert Chunks(lambda: [data], (8,))[np.array([], dtype=int)].shape == (0,)


def test_few_users_are_read_once_where_queries_take_arrays(monkeypatch):
    data, starts = np.arange(12.0).reshape(6, 2), []

    def pieces():
        starts.append(len(starts))
        return [data[:4], data[4:]]

    def sums(takes_arrays):
        mapped = Chunks(pieces, (6, 2)).mapped(np.negative, (6, 2))
        mapped.takes_arrays = takes_arrays
        ledger, starts[:] = Ledger(mapped, 3 * Laplace(1e-9), rng=0), []
        found = [ledger.release(Laplace(1e-9), lambda rows: rows[0:6].sum()) for _ in range(3)]
        return np.round(found).tolist(), len(starts)

    assert sums(True) == ([-66.0] * 3, 1)
    assert sums(False) == ([-66.0] * 3, 3)
    monkeypatch.setattr(chunks_module, "HELD_BYTES", 6 * 2 * 8 - 1)
    assert sums(True) == ([-66.0] * 3, 3)


def test_arrays_are_checked_where_they_are_read():
    nan = np.array([0.0, 1.0, np.nan, 3.0])
    assert Chunks(lambda: [nan], (4,))[0:2].tolist() == [0.0, 1.0]
    for who in (slice(2, 4), np.array([3, 2])):
        with pytest.raises(ParameterError, match="finite"):
            Chunks(lambda: [nan[:3], nan[3:]], (4,))[who]
    ragged = np.ones((4, 2)), np.ones(5)
    with pytest.raises(ParameterError, match="equal length"):
        Chunks(lambda: [ragged], (4, 2))[0:4]


def test_a_function_gets_large_arrays_in_parts_of_one_size(monkeypatch):
    monkeypatch.setattr(chunks_module, "PART_ENTRIES", 6)
    lengths, data = [], np.arange(22.0).reshape(11, 2)

    def noted(rows):
        lengths.append(len(rows))
        return rows

    assert Chunks(lambda: [data[:7], data[7:]], (11, 2)).mapped(noted, (11, 2))[0:11].tolist() == (
        data.tolist()
    )
    assert lengths == [3, 3, 1, 3, 1]


def test_slices_rise_and_a_function_keeps_one_row_for_each_user():
    chunks = Chunks(lambda: [np.zeros((2, 3)), np.zeros((1, 3))], (3, 3))
    with pytest.raises(ParameterError, match="in rising order"):
        chunks[::-1]
    twice = chunks.mapped(lambda rows: np.vstack([rows, rows]), (3, 3))
    with pytest.raises(ParameterError, match="one a user, got '4 rows of 2'"):
        twice[:]


def test_a_function_of_pieces_restarts_and_an_iterator_does_not():
    pieces = [np.ones((2, 3)), np.ones((1, 3))]
    for given, restarts in ((lambda: iter(pieces), True), (iter(pieces), False)):
        chunks = Chunks(given, (3, 3))
        assert chunks.restarts is restarts
        assert chunks.mapped(np.negative, (3, 3)).restarts is restarts


FORMS = {
    "numbers": lambda rows: rows[:, 0],
    "rows": lambda rows: rows,
    "pairs": lambda rows: (rows, -rows[:, 0]),
    "sparse": sparse.csr_array,
}


def plain(rows):
    """Arrays of a selection, dense."""
    if isinstance(rows, tuple):
        return [plain(part) for part in rows]
    return (rows.toarray() if hasattr(rows, "tocsr") else rows).tolist()


@pytest.mark.parametrize("form", FORMS)
def test_any_requests_give_the_rows_of_the_whole_data(form):
    rng = np.random.default_rng(4)
    for _ in range(12):
        users = int(rng.integers(1, 12))
        data = rng.normal(size=(users, 3))
        ends = np.sort(rng.integers(0, users + 1, 4))  # some pieces are empty
        pieces = [FORMS[form](part) for part in np.split(data, ends)]
        shape = (users,) if form == "numbers" else (users, 3)
        chunks = Chunks(lambda pieces=pieces: pieces, shape)
        if rng.random() < 0.5:
            assert chunks.sparse == (form == "sparse")
        for which in rng.random(8):
            start, stop = np.sort(rng.integers(0, users + 1, 2))
            who = slice(int(start), int(stop), int(rng.integers(1, 3)))
            if which < 0.3:
                who = rng.permutation(users)[: int(rng.integers(0, users + 1))]
            assert plain(chunks[who]) == plain(FORMS[form](data[who]))
        twice = chunks.mapped(lambda piece: piece, shape)
        assert plain(twice[0:users]) == plain(FORMS[form](data))
        assert chunks.sparse == (form == "sparse")


@pytest.mark.parametrize("form", [form for form in FORMS if form != "numbers"])
@pytest.mark.parametrize("held", [False, True])
def test_a_column_stands_beside_its_users(form, held):
    data, column = np.arange(33.0).reshape(11, 3), np.arange(11.0)
    pieces = [FORMS[form](part) for part in np.split(data, [4, 4, 9])]
    chunks = Chunks(lambda: pieces, (11, 3))
    chunks.takes_arrays = held
    beside = chunks.beside(column)
    assert (beside.restarts, beside.takes_arrays) == (True, held)
    for who in (slice(2, 10, 3), slice(0, 11), np.array([7, 0, 9])):
        *rows, numbers = beside[who]
        known = chunks[who] if form == "pairs" else (chunks[who],)
        assert plain(tuple(rows)) == plain(known)
        assert numbers.tolist() == column[who].tolist()
    with pytest.warns(UserWarning, match="hold more users; they were not read"):
        *_, numbers = Chunks(pieces, (8, 3)).beside(column[:8])[0:8]
    assert numbers.tolist() == column[:8].tolist()


def test_what_is_no_whole_data_set_is_refused_or_said():
    rows = np.ones((4, 3))
    once = Chunks(iter([rows]), (4, 3))
    assert once[0:4].shape == (4, 3)
    with pytest.raises(ParameterError, match="read more than once"):
        once[0:2]
    with pytest.raises(ParameterError, match="the 5 of the shape"):
        Chunks([rows], (5, 3))[0:5]
    for wrong in (np.ones((4, 2)), np.ones(4)):
        with pytest.raises(ParameterError, match="rows as in"):
            Chunks([wrong], (4, 3))[0:4]
    for pieces in ([rows, rows], [np.ones((5, 3))]):
        with pytest.warns(UserWarning, match="hold more users; they were not read"):
            assert Chunks(pieces, (4, 3))[0:4].shape == (4, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Chunks([rows, np.ones((0, 3))], (4, 3))[1:3].shape == (2, 3)
        assert Chunks([rows, np.ones((0, 3))], (4, 3))[0:4].shape == (4, 3)
