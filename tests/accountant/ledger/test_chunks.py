"""Chunks hand out the users that were charged."""

import numpy as np
import pytest

from accountant import Chunks, Ledger, Parallel, ParameterError
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
