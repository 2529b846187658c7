"""Random histories of a book whose clocks are wrong: each does what the definitions say."""

from hypothesis import given
from hypothesis import strategies as st

from tests.laws.test_book_clocks import DEEDS, HOURS, KINDS, OFFSETS, Action, follows_the_model

ACTIONS = st.builds(
    Action, st.sampled_from(HOURS), st.sampled_from(OFFSETS), st.booleans(),
    st.sampled_from(DEEDS), st.integers(1, 6),
)  # fmt: skip


@given(st.sampled_from(KINDS), st.lists(ACTIONS, min_size=3, max_size=12))
def test_any_clocks_give_each_window_its_budget_once(kind, actions):
    follows_the_model(kind, actions)
