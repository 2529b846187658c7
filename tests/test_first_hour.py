"""The first hour of a new user works from the wheel alone."""

import pytest

from tests.first_hour import play


@pytest.mark.slow
def test_the_first_hour_of_a_new_user(tmp_path):
    play(tmp_path)
