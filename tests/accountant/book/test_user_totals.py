"""Users are stored in little room, in their order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from accountant.book.user_totals import decode_users, encode_users
from tests.strategies import users


@given(users, st.booleans())
def test_users_come_back_in_their_order(who, rising):
    index = np.array(sorted(who) if rising else who, dtype=np.intp)
    assert np.array_equal(decode_users(*encode_users(index)), index)


def test_a_million_users_take_little_room():
    every = np.arange(10**6)
    some = np.flatnonzero(np.random.default_rng(0).random(10**6) < 0.1)
    assert len(encode_users(every)[1]) < 10_000
    assert len(encode_users(some)[1]) < 1.2 * some.size
    assert encode_users(slice(0, 10**6, 1)) == ([0, 10**6, 1], None)
