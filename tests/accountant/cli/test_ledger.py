"""The ledger's command line: what it says, what it writes, and how it ends."""

import csv
import inspect
import json
import os

import numpy as np
import pytest

from accountant import Book, Budget, PoissonSampled
from accountant.cli.exit_status import run_app
from accountant.cli.ledger import app
from mechanisms import Gaussian, Laplace

DATA = np.arange(20.0)
TENTH = Laplace(10.0)


def run(*words):
    return run_app(app, "dp-attest ledger", [str(one) for one in words])


@pytest.fixture
def book(any_book):
    """A book with one release, made by somebody with an odd name."""
    with Book.create(any_book.url, author="=cmd()|'x'!A1") as found:
        found.dataset("<script>", Budget(1.0), unit="@one person")
        with found.ledger("<script>", DATA) as ledger:
            ledger.release(TENTH, np.sum, label="-1+1")
            ledger.release(TENTH, np.sum)
    return any_book


def test_a_book_is_opened_looked_at_and_checked(stored_book, capsys):
    opening = ("d", "--epsilon", 1, "--delta", 1e-6, "--unit", "a person")
    assert run("open", stored_book.url, *opening) == 2
    assert "`ledger open --new`, makes one" in capsys.readouterr().err
    assert run("open", stored_book.url, *opening, "--new") == 0
    assert "d: spent epsilon 0 of 1 at delta 1e-06, for a person" in capsys.readouterr().out
    with Book.open(stored_book.url) as book, book.ledger("d", DATA) as ledger:
        ledger.release(Gaussian(50.0), np.sum)
    for words in (("status",), ("history",)):
        capsys.readouterr()
        assert run(*words, stored_book.url, *(["d"] * (words[0] == "history"))) == 0
        said = capsys.readouterr().out
        assert "epsilon 0.0" in said
    assert run("status", stored_book.url, "--name", "d", "--json") == 0
    assert json.loads(capsys.readouterr().out)["dataset"]["budget"]["epsilon"] == 1.0
    assert run("history", stored_book.url, "d", "--json") == 0
    assert json.loads(capsys.readouterr().out)["history"][0]["outcome"] == "answered"
    assert run("verify", stored_book.url) == 0
    said, head = capsys.readouterr().out.splitlines()
    assert said.startswith("4 entries, none changed")
    assert run("verify", stored_book.url, "--head", head) == 0


def test_a_signed_head_is_printed_and_checked(any_book, capsys, tmp_path):
    key, other = tmp_path / "book.key", tmp_path / "other.key"
    for file, letter in ((key, b"k"), (other, b"o")):
        file.touch(mode=0o600)
        file.write_bytes(letter * 32)
    assert run("open", any_book.url, "d", "--epsilon", 1, "--key", key, "--new") == 0
    capsys.readouterr()
    assert run("head", any_book.url, "--key", key) == 0
    head = capsys.readouterr().out.strip()
    assert head.count(":") == 2
    assert run("verify", any_book.url, "--key", key, "--head", head) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2 entries, none changed; the log ends at", head,
    ]  # fmt: skip
    assert run("head", any_book.url) == 0
    assert head.startswith(capsys.readouterr().out.strip() + ":")
    assert run("verify", any_book.url, "--key", other) == 1
    assert run("verify", any_book.url, "--head", head) == 2
    assert run("open", any_book.url, "e", "--epsilon", 1) == 2
    said = capsys.readouterr()
    assert "the entries of this book are signed" in said.err
    assert "kkkk" not in said.out + said.err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("open", ["--epsilon", 2]),
        ("raise", ["--epsilon", 2, "--reason", "more"]),
        ("expire", ["--when", "2999-01-01", "--reason", "some day"]),
        ("quota", ["--set", "ada=0.5", "--reason", "half"]),
        ("close", ["--reason", "the end"]),
    ],
)
def test_a_book_that_was_begun_without_a_key_is_signed_where_that_is_said(
    command, words, sqlite_book, capsys, tmp_path
):
    key = tmp_path / "book.key"
    key.touch(mode=0o600)
    key.write_bytes(b"k" * 32)
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
    words = [command, sqlite_book.url, "e" if command == "open" else "d", *words, "--key", key]
    assert run(*words) == 1
    assert "or --accept-unsigned of `ledger open`" in capsys.readouterr().err
    assert run(*words, "--accept-unsigned") == 0
    assert run("verify", sqlite_book.url, "--key", key) == 0


@pytest.mark.parametrize(
    "words",
    [
        ("open", "BOOK", "d", "--epsilon", "nan"),
        ("open", "BOOK", "d", "--epsilon", "1", "--delta", "2"),
        ("open", "BOOK", "d", "--epsilon", "1", "--notion", "pld"),
        ("open", "BOOK", "d", "--epsilon", "1", "--users", "1.5"),
        ("open", "BOOK", "<script>", "--epsilon", "2"),
        ("open", "BOOK", "a\x1b[31m", "--epsilon", "2"),
        ("status", "nowhere/book.db"),
        ("status", "BOOK", "--name", "nobody"),
        ("history", "BOOK", "nobody"),
        ("verify", "BOOK", "--head", "x"),
        ("head", "BOOK", "--key", "nowhere/book.key"),
        ("export", "BOOK", "<script>", "--out", "x.pdf"),
        ("export", "BOOK", "<script>", "--out", "nowhere/x.csv"),
        ("export", "BOOK", "<script>", "--out", "x.csv", "--relation", "sibling"),
        ("forget", "BOOK"),
    ],
    ids=" ".join,
)
def test_bad_usage_is_one_line_and_status_two(book, words, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    before = book.hash_rows()
    assert run(*(book.url if one == "BOOK" else one for one in words)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert "\x1b" not in said.err
    assert book.hash_rows() == before
    assert not list(tmp_path.glob("x.*"))


def test_a_corrupt_book_is_status_one_and_a_busy_one_three(book, capsys, monkeypatch):
    other = book.hold_lock()
    opened = inspect.unwrap(Book.open.__func__)
    monkeypatch.setattr(opened, "__kwdefaults__", {**opened.__kwdefaults__, "wait": 0.2})
    assert run("open", book.url, "new", "--epsilon", 1) == 3
    other.rollback()
    other.close()
    book.tamper("DELETE FROM entries WHERE seq = 4")
    before = book.hash_rows()
    assert run("verify", book.url) == 1
    assert "an entry is missing (entry 4)" in capsys.readouterr().err
    assert book.hash_rows() == before


def test_row_41_cells_and_lines_are_harmless(book, tmp_path, capsys):
    assert run("export", book.url, "<script>", "--out", tmp_path / "x.csv") == 0
    with open(tmp_path / "x.csv", newline="") as file:
        first, second = csv.DictReader(file)
    assert first["author"] == "'=cmd()|'x'!A1"
    assert first["label"] == "'-1+1"
    assert (first["epsilon"], second["epsilon"]) == ("0.1", "0.2")
    # a log that somebody else wrote may hold anything
    from accountant.files import _cell

    assert _cell("\x1b[31mred\n\u202e") == "\\x1b[31mred\\n\\u202e"
    assert _cell("\xa0=1") == "\\xa0=1"
    assert _cell(" =1") == "' =1"
    assert _cell("\t=1") == "\\t=1"
    assert _cell(-1.5) == "-1.5"


def test_row_40_a_file_is_replaced_only_by_force(book, tmp_path, capsys):
    out = tmp_path / "x.json"
    out.write_text("before")
    words = ("export", book.url, "<script>", "--out", out)
    assert run(*words) == 2
    assert "a file that is not there yet, or --force" in capsys.readouterr().err
    assert out.read_text() == "before"
    assert run(*words, "--force") == 0
    assert [one["outcome"] for one in json.loads(out.read_text())["history"]] == ["answered"] * 2
    assert run("export", book.url, "<script>", "--out", "-") == 0
    assert capsys.readouterr().out == out.read_text()
    assert os.listdir(tmp_path).count("x.json") == 1


def test_relations_do_not_mix_in_one_data_set(any_book):
    from accountant import ParameterError, Stated

    with Book.create(any_book.url) as book:
        book.dataset("d", Budget(1.0, 1e-6))
        with book.ledger("d", DATA) as ledger:
            ledger.release(PoissonSampled(Gaussian(20.0), 0.01), np.sum)
        before = any_book.hash_rows()
        with pytest.raises(ParameterError, match="relations do not mix"):
            book.ledger("d", DATA, Stated(Gaussian(100.0), "replace-one"))
        assert any_book.hash_rows() == before


@pytest.mark.parametrize("sign", "=＝﹦+＋﹢-－﹣@＠﹫|｜%％﹪'＇")
def test_signs_that_a_spreadsheet_reads_as_a_formula_are_quoted(sign):
    from accountant.files import _cell

    assert _cell(f"{sign}1+1") == f"'{sign}1+1"
    assert _cell(f"\u3000{sign}1").startswith(("'", "\\u3000"))


def test_claims_are_opened_and_their_evidence_is_shown(tmp_path, capsys):
    book = tmp_path / "claims.db"
    assert run("evidence", book) == 2  # there is no such book
    assert run("claim", book, "count", "--new", "--epsilon", 1, "--alpha", 0.01) == 0
    assert run("claim", book, "mean", "--epsilon", 2, "--delta", 1e-6, "--relation",
               "add-remove", "--json") == 0  # fmt: skip
    capsys.readouterr()
    with Book.open(book) as opened:
        for number in range(3):
            opened.add_evidence("count", [2.0 - number], [(1.0, 0.0)], runs=f"{number:064x}",
                                version=f"1.{number}", seen="3 of 4 guesses")  # fmt: skip
    assert run("evidence", book) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "count: PureLoss(epsilon=1.0); wealth 10.82 (audits: 3, versions: 3); alarm at 100" in shown
    )
    assert (
        "mean: ApproxLoss(epsilon=2.0, delta=1e-06), neighbours: one record more or less;" in shown
    )
    assert run("evidence", book, "count") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2].split() == ["entry", "time", "(UTC)", "e-value", "wealth", "version"]
    assert [line.split()[-3:] for line in lines[3::2]] == [
        ["7.389", "4.194", "1.0"],
        ["2.718", "10.82", "1.1"],
        ["0.9999", "10.82", "1.2"],
    ]
    assert run("evidence", book, "count", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["claim"], facts["alpha"]) == ({"kind": "PureLoss", "epsilon": 1.0}, 0.01)
    assert [line["version"] for line in facts["evidence"]] == ["1.0", "1.1", "1.2"]
    assert run("evidence", book, "--json") == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["claims"]] == [
        "count",
        "mean",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["claim", "count", "--epsilon", 2], "another claim is a process of its own"),
        (["claim", "count", "--epsilon", 1, "--alpha", 0.5], "alpha must be 0.05, as the claim"),
        (["claim", "new", "--epsilon", 1, "--alpha", 2], "alpha must be a number in [1e-300, 1)"),
        (["claim", "new", "--epsilon", "much"], "--epsilon must be a number"),
        (["claim", "new", "--epsilon", 1, "--delta", 1], "--delta must be a number"),
        (["claim", "new", "--epsilon", 1, "--relation", "x"], "relation must be one of"),
        (["evidence", "absent"], "claim must be a claim of this book"),
    ],
)
def test_bad_claims_are_refused_in_one_line(words, said, tmp_path, capsys):
    book = tmp_path / "claims.db"
    with Book.create(book) as opened:
        opened.claim("count", Budget(1.0))
    command, *others = words
    assert run(command, book, *others) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    with Book.open(book) as opened:
        assert opened.claims == ["count"]


def test_a_book_without_claims_says_how_to_open_one(tmp_path, capsys):
    Book.create(tmp_path / "empty.db").close()
    assert run("evidence", tmp_path / "empty.db") == 0
    assert "`ledger claim` opens one" in capsys.readouterr().out
