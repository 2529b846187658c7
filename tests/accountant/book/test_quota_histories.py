"""Random histories of quotas, in both databases: each does what a dictionary of quotas says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.accountant.book.throwaway_books import SQLiteBookFile
from tests.laws.test_book_quotas import (
    AUTHORS,
    DEEDS,
    HOURS,
    KINDS,
    OFFSETS,
    WHO,
    Action,
    drawn,
    follows_the_dictionary,
)

ACTIONS = st.builds(
    Action, st.sampled_from(HOURS), st.sampled_from(OFFSETS), st.sampled_from(AUTHORS),
    st.sampled_from(DEEDS), st.integers(1, 8), st.sampled_from(WHO), st.booleans(),
)  # fmt: skip


@settings(max_examples=20)
@given(kind=st.sampled_from(KINDS), actions=st.lists(ACTIONS, min_size=3, max_size=15))
def test_any_history_of_quotas_is_that_of_a_dictionary(tmp_path_factory, kind, actions):
    place = SQLiteBookFile(tmp_path_factory.mktemp("books") / "book.db")
    follows_the_dictionary(kind, actions, place.url, place.path)


@pytest.mark.parametrize("kind", ["plain", "users", "month"])
def test_histories_on_a_server_are_those_of_a_dictionary(kind, postgres_server):
    follows_the_dictionary(kind, drawn(2), postgres_server.database().url)
