"""The tests of a room: its folder, every law that uses it, and what is no room."""

import pytest

from tests.laws import registry, test_error_bounds
from tests.selection import room


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("accountant/book", "tests/laws/test_books.py"),
        ("accountant/book", "tests/laws/test_book_roles.py"),  # by a helper of the room's tests
        ("accountant/book", "tests/laws/test_refusals.py"),  # by another law
        ("accountant/losses", "tests/laws/test_accountants.py"),  # by a public name
        ("accountant/verifier", "tests/laws/test_false_claims.py"),
        ("mechanisms/exact_noise", "tests/laws/test_exact.py"),  # by a module below the room
        ("audits/attacks", "tests/laws/test_early_stops.py"),
    ],
)
def test_a_law_is_of_the_rooms_that_it_uses(name, law):
    assert {f"tests/{name}", law} <= set(room.tests_of(name))


def test_a_law_is_not_of_other_rooms():
    assert "tests/laws/test_power_cuts.py" not in room.tests_of("mechanisms/exact_noise")


def test_every_law_about_an_error_bound_is_of_a_room_and_has_its_case():
    cases = set()
    for name in ("accountant", "mechanisms", "audits"):
        cases |= {one for one in room.tests_of(name) if one.startswith(room.MUTANTS)}
    ids = {
        f"{room.MUTANTS}[{law}-{mutant}]".replace(" ", "_"): law
        for law, found in registry.LAWS.items()
        for mutant in found.mutants
    }
    assert {ids[one] for one in cases} == {f"error bounds: {one}" for one in test_error_bounds.LAWS}


@pytest.mark.parametrize("word", ["", "/", ".", "..", "accountant/none", "../accountant/book"])
def test_what_is_no_room_is_refused_with_a_sentence(word, capsys):
    assert room.main([word]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"{word!r} is no room: give ROOM=accountant/book")


def test_the_command_prints_what_pytest_takes(capsys):
    assert room.main(["accountant/book/"]) == 0
    assert capsys.readouterr().out.startswith(
        "tests/accountant/book tests/laws/test_book_clocks.py "
    )
