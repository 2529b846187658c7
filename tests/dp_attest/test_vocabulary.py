"""All commands take their options from one table, and overwrite no file without --force."""

import contextlib
import io
import re
from collections import defaultdict

import pytest
import typer.main

from accountant.cli.exit_status import CommandLineError
from accountant.cli.vocabulary import VOCABULARY, table_of_options
from accountant.errors import ParameterError
from dp_attest.__main__ import COMMON, app, main

PLAN = """
[budget]
epsilon = 1.0
delta = 1e-6

[[release]]
kind = "Gaussian"  # a comment
scale = 60.0
count = 12
"""
OLD_SPELLINGS = {"--samples": "--runs", "--html": "--out", "--plot": "--out", "--proof": "--out",
                 "--name": "--dataset", "--claim": "--epsilon", "--head": "--against"}  # fmt: skip


def commands():
    """Every command by the words that call it; those of two groups are once in the list."""

    def inside(command, words):
        if not hasattr(command, "commands"):
            return [(words, command)]
        return [
            row for name, one in command.commands.items() for row in inside(one, [*words, name])
        ]

    rows = inside(typer.main.get_command(app), [])
    return list(
        {command.callback.__wrapped__: (words, command) for words, command in rows[::-1]}.values()
    )


def options_of(command):
    return [one for one in command.params if one.param_type_name == "option"]


ROWS = [(" ".join(words), command) for words, command in commands()]
WRITING = [
    (name, one.opts[0])
    for name, command in ROWS
    for one in options_of(command)
    if one.opts[0][2:] in VOCABULARY and VOCABULARY[one.opts[0][2:]].writes
]


def test_an_option_of_two_commands_is_in_the_table_as_the_table_says():
    users = defaultdict(list)
    for name, command in ROWS:
        for one in options_of(command):
            users[one.opts[0].removeprefix("--")].append((name, one))
    assert {word for word, rows in users.items() if len(rows) > 1} <= VOCABULARY.keys()
    assert VOCABULARY.keys() <= users.keys()
    for word, (value, _, writes) in VOCABULARY.items():
        for name, one in users[word]:
            assert one.is_flag == (value is None), name
            assert value is None or set(one.metavar.split("|")) <= set(value.split("|")), name
            assert (one.callback is not None) == writes, name


def test_old_spellings_stay_and_are_second():
    for _, command in ROWS:
        for one in options_of(command):
            assert all(OLD_SPELLINGS[old] == one.opts[0] for old in one.opts[1:])
    power = dict(ROWS)["audit power"]
    assert power.make_context("power", ["--claim", "0.5"]).params["epsilon"] == "0.5"


@pytest.mark.parametrize("name", sorted({name for name, _ in WRITING}))
def test_a_command_that_writes_can_be_forced(name):
    assert any(one.opts[0] == "--force" for one in options_of(dict(ROWS)[name]))


@pytest.mark.parametrize(("name", "option"), WRITING)
def test_no_command_replaces_a_file_without_a_word(name, option, tmp_path):
    kept, command = tmp_path / "keep.json", dict(ROWS)[name]
    kept.write_text("{}")
    with pytest.raises(ParameterError, match=f"{option} must be a file that is not there yet"):
        command.make_context(name, [option, str(kept)])
    with pytest.raises(ParameterError, match="must be a file in a folder that exists"):
        command.make_context(name, ["--force", option, str(tmp_path / "no" / "folder.json")])
    # what else the command needs is not there
    with contextlib.suppress(CommandLineError):
        assert command.make_context(name, [option, str(kept), "--force"]).params["force"]


def test_two_options_cannot_name_one_file(tmp_path, capsys):
    words = ["audit", "half_the_noise", "--json", str(tmp_path / "a"), "--out", str(tmp_path / "a")]
    assert main(words) == 2
    assert "--out must be another file than the others" in capsys.readouterr().err


def test_help_has_one_dialect_and_the_table(capsys):
    for name, command in ROWS:
        texts = [command.help, *(one.help for one in command.params)]
        assert not any("python -m" in str(text) for text in texts), name
    for part in (["account", "plan"], ["audit", "target"], ["ledger", "open"]):
        assert main([*part, "--help"]) == 0
        assert f"Usage: dp-attest {' '.join(part)} " in capsys.readouterr().out
    assert main([]) == 0
    text = capsys.readouterr().out
    assert all(line in text for line in table_of_options(COMMON))


@pytest.mark.parametrize("group", [["audit"], ["account"], ["ledger"], ["receipt"]])
def test_a_group_alone_prints_its_commands(group, capsys):
    assert main(group) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("acount plan x.toml", "'account'"),
        ("account pln x.toml", "'plan'"),
        ("account verfy x.json", "'verify'"),
        ("ledger stauts book.db", "'status'"),
        ("audit tagret mycode:f --epsilon 1 --pair 0 1", "'target'"),
        ("audit Laplce", "'Laplace'"),
        ("audit run Gausian", "'Gaussian'"),
        ("audit power Gausian", "'Gaussian'"),
    ],
)
def test_a_misspelled_word_is_corrected(words, meant, capsys):
    assert main(words.split()) == 2
    shown = capsys.readouterr().err
    assert "id you mean" in shown
    assert meant in shown


@pytest.mark.parametrize(
    "words",
    ["account plan -", "account certify -", "account -", "account fit -"],
)
def test_a_plan_may_be_standard_input(words, tmp_path, monkeypatch, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    assert main(words.replace(" -", f" {plan}").split()) == 0
    of_file = capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO(PLAN))
    assert main(words.split()) == 0
    times = re.compile(r" *\d+\.\d")  # of the accountants
    shown = capsys.readouterr()
    assert times.sub("", shown.out + shown.err) == times.sub("", of_file.out + of_file.err)


def test_a_plan_in_json_may_be_standard_input_and_comments_stay(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(PLAN))
    fitted = tmp_path / "fitted.json"
    assert main(["account", "fit", "-", "--out", str(fitted)]) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(fitted.read_text()))
    assert main(["account", "plan", "-"]) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(PLAN))
    assert main(["account", "fit", "-", "--out", str(tmp_path / "fitted.toml")]) == 0
    assert "# a comment" in (tmp_path / "fitted.toml").read_text()
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO("[[release]]\nkind = 'Laplac'"))
    assert main(["account", "plan", "-"]) == 2
    assert "-, line 2, column 1" in capsys.readouterr().err


def test_json_without_a_file_is_standard_output(tmp_path, capsys):
    book = str(tmp_path / "book.db")
    assert main(["ledger", "open", book, "survey", "--new", "--epsilon", "1", "--json"]) == 0
    opened = capsys.readouterr().out
    for words in (["--json"], ["--json", "-"], ["--json", "--dataset", "survey"]):
        assert main(["ledger", "status", book, *words]) == 0
        assert capsys.readouterr().out.startswith("{")
    assert main(["ledger", "status", book, "--name", "survey", "--json", f"{book}.json"]) == 0
    assert "survey" in capsys.readouterr().out
    with open(f"{book}.json", encoding="utf-8") as file:
        assert file.read() == opened
