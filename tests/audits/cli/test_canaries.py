"""`dp-attest audit canaries`: what canaries would show, as a table and JSON."""

import json

import pytest

from audits.__main__ import main

# one step of all records is quick to account for
NUMBERS = ["--rate", "1", "--steps", "1", "--noise", "1"]


def test_the_command_tells_a_table_and_json(capsys):
    assert main(["canaries", "2000", *NUMBERS, "--json", "-"]) == 0
    shown = capsys.readouterr()
    answer = json.loads(shown.out)
    assert answer["canaries"] == 2000
    assert 0 < answer["chance"] <= 1
    assert answer["epsilon_lower"] < answer["provable"]
    assert "half the noise is falsified" in shown.err


def test_too_few_canaries_say_what_would_do_and_fail_under_strict(capsys):
    assert main(["canaries", "30", *NUMBERS, "--parameters", "2000", "--strict"]) == 3
    assert "would do" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["5", *NUMBERS], "from 10"),
        (["20", "--rate", "2", "--steps", "1", "--noise", "1"], "rate"),
        (["20", *NUMBERS, "--batch", "9"], "parameters"),
        (["20", *NUMBERS, "--plan", "no-such.toml"], "no-such.toml"),
        (["20", *NUMBERS, "--parameters", "10"], "parameters"),
    ],
)
def test_what_is_no_training_is_refused(words, remedy, capsys):
    assert main(["canaries", *words]) == 2
    assert remedy in capsys.readouterr().err
