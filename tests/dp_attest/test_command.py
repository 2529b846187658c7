"""One command for both command lines."""

import os
import subprocess
import sys

import pytest

import dp_attest
from dp_attest.__main__ import main

PLAN = """
[budget]
epsilon = 1.0
delta = 1e-6

[[release]]
kind = "Laplace"
scale = 60.0
count = 12
"""


def output_of(capsys, *words):
    status = main(list(words))
    return status, capsys.readouterr()


def test_version(capsys):
    import accountant.__main__
    import audits.__main__

    assert output_of(capsys, "--version")[1].out == f"dp-attest {dp_attest.__version__}\n"
    for part in (accountant.__main__, audits.__main__):
        assert part.main(["--version"]) == 0
        assert capsys.readouterr().out == f"{part.PROGRAM} {dp_attest.__version__}\n"


def test_no_word_shows_the_commands(capsys):
    status, shown = output_of(capsys)
    assert status == 0
    assert all(word in shown.out for word in ("audit ", "account ", "ledger ", "page "))


def test_parts_answer_as_their_own_command_lines(tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    status, shown = output_of(capsys, "account", "plan", str(plan))
    assert status == 0
    assert "fits the budget" in shown.out
    # the word `run` may be left out
    status, shown = output_of(capsys, "audit", "half_the_noise", "--runs", "20000", "--seed", "1")
    assert status == 0
    assert "half_the_noise" in shown.out


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["acount"], "dp-attest: No such command 'acount'. Did you mean 'account'?"),
        (["account", "plan"], "dp-attest account: Missing argument"),
        (["audit", "Laplace", "--sample", "3"], "dp-attest audit: No such option"),
        (["ledger", "sing"], "dp-attest: No such command 'sing'"),
    ],
)
def test_bad_usage_is_one_line_that_names_the_part(words, start, capsys):
    status, shown = output_of(capsys, *words)
    assert status == 2
    assert shown.err.startswith(start)
    assert shown.err.count("\n") == 1


def test_a_shell_completes_the_words_of_parts():
    asked = {"COMP_WORDS": "dp-attest audit t", "COMP_CWORD": "2",
             "_DP_ATTEST_COMPLETE": "complete_bash"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "dp_attest"],
        env={**os.environ, **asked}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["target"]
