"""`ledger roles`, `ledger grants`, `ledger head` and `verify --against`: a team and its files."""

import getpass
import json
import warnings

import pytest

from accountant import Book
from accountant.__main__ import app as accountant_app
from accountant.cli.exit_status import run_app
from accountant.cli.ledger import app
from accountant.cli.ledger_options import PASSPHRASE_VARIABLE
from accountant.reports.history_page import HistoryFigures
from tests.accountant.book.people import People, spend, with_passphrase

pytest.importorskip("cryptography")


def run(*words):
    return run_app(app, "dp-attest ledger", [str(word) for word in words])


@pytest.fixture
def people(tmp_path):
    folder = tmp_path / "keys"
    folder.mkdir()
    found = People(folder)
    for name, line in found.lines.items():
        (folder / f"{name}.pub").write_text(f"{line}\n")
    return found


def roles_file(folder, curators, **more):
    path = folder / "roles.toml"
    lists = {"analysts": ["keys/ana.pub"], "auditors": ["keys/aud.pub"], **more}
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in
                            {"curators": curators, **lists}.items()))  # fmt: skip
    return path


def test_a_team_works_from_files(any_book, people, tmp_path, capsys):
    book, key = any_book.url, people.keys
    curators = [people.lines["ada"], "keys/bob.pub"]
    file = roles_file(tmp_path, curators, raise_needs=2)
    assert run("roles", book, "--set", file, "--new", "--key", key["ada"]) == 0
    shown = capsys.readouterr().out
    assert "ana: analyst, SHA256:" in shown
    assert "a larger budget, a later end and other roles need two curators" in shown
    assert run("open", book, "d", "--epsilon", 1, "--key", key["ada"]) == 0
    more = ("raise", book, "d", "--epsilon", 2, "--reason", "a second wave", "--key")
    capsys.readouterr()
    assert run(*more, key["ana"]) == 2
    said = capsys.readouterr()
    assert "'ana' is an analyst, and only a curator proposes a change: ada, bob" in said.err
    assert len(said.err.splitlines()) == 1
    assert run(*more, key["ada"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "of 1 at delta 0" in said
    assert "proposed by ada; another curator approves it by the same call" in said
    assert run(*more, key["ada"]) == 2
    capsys.readouterr()
    proposal = "proposal of budget epsilon 2 at delta 0 (a second wave)"
    assert run("history", book, "d") == 0
    assert capsys.readouterr().out.endswith(f"  ada  open  epsilon 0  {proposal}\n")
    assert run(*more, key["bob"]) == 0
    assert "of 2 at delta 0" in capsys.readouterr().out
    with people.open(any_book, "ana") as opened:
        spend(opened)
    assert run("history", book, "d") == 0
    shown = capsys.readouterr().out
    assert f"  ada  seconded  epsilon 0  {proposal}, seconded by bob\n" in shown
    with people.open(any_book, "aud") as opened:
        figures = HistoryFigures(opened.status("d"), opened.iter_history("d"))
    assert (figures.count, figures.released) == (3, 1)
    assert [total.group.name for total in figures.totals.shares(figures._status)["author"]] == [
        "ana"]  # fmt: skip
    head = tmp_path / "monday.head"
    assert run("head", book, "--key", key["aud"]) == 0
    head.write_text(capsys.readouterr().out)
    assert head.read_text().startswith("dp-attest/")
    assert run("head", book, "--key", key["aud"], "--json") == 0
    assert json.loads(capsys.readouterr().out)["head"] == head.read_text()
    for option in ("--against", "--head"):
        assert run("verify", book, option, head) == 0
    assert run("verify", book, "--against", head.read_text()) == 0
    alone = roles_file(tmp_path, ["keys/ada.pub"])
    change = ("roles", book, "--set", alone, "--reason", "bob has left", "--key")
    capsys.readouterr()
    assert run(*change, key["ada"]) == 0
    assert "other roles (bob has left), proposed by ada" in capsys.readouterr().out
    assert run(*change, key["bob"]) == 0
    capsys.readouterr()
    assert run("roles", book, "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["roles"]["curators"] == [people.lines["ada"]]
    assert shown["proposed"] == ""
    if any_book.kind == "sqlite":
        any_book.tamper("DELETE FROM entries WHERE seq > 5", "PRAGMA user_version = 5")
        assert run("verify", book, "--against", head) == 1
        assert "rolled back" in capsys.readouterr().err


def test_a_data_set_asks_for_two_curators(any_book, people, tmp_path, capsys):
    book, key = any_book.url, people.keys
    file = roles_file(tmp_path, ["keys/ada.pub", "keys/bob.pub"])
    assert run("roles", book, "--set", file, "--new", "--key", key["ada"]) == 0
    opened = ("open", book, "d", "--epsilon", 1, "--key", key["ada"], "--raise-needs")
    assert run(*opened, 3) == 2
    assert "raise_needs" in capsys.readouterr().err
    assert run(*opened, 2) == 0
    assert run("raise", book, "d", "--epsilon", 2, "--reason", "more", "--key", key["ada"]) == 0
    capsys.readouterr()
    assert run("status", book) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "a larger budget or a later end needs two curators" in shown
    assert "another curator approves it by the same call" in shown
    assert run("status", book, "--json") == 0
    assert '"raise_needs": 2' in capsys.readouterr().out


def refuses_to_ask(prompt):
    raise AssertionError(prompt)


def shows_what_is_typed(_):
    warnings.warn("may be echoed", getpass.GetPassWarning, stacklevel=2)


def test_a_passphrase_is_asked_for_or_taken_from_a_variable(
    sqlite_book, people, tmp_path, capsys, monkeypatch
):
    monkeypatch.delenv(PASSPHRASE_VARIABLE, raising=False)
    book, key = sqlite_book.url, with_passphrase(people.keys["ada"], "a secret of ada")
    people.keys["bob"] = with_passphrase(people.keys["bob"], "a secret of bob")
    prompts = []
    monkeypatch.setattr(
        getpass, "getpass", lambda text: (prompts.append(text), "a secret of ada")[1]
    )
    file = roles_file(tmp_path, [people.lines["ada"], people.lines["bob"]])
    assert run("roles", book, "--set", file, "--new", "--key", key) == 0
    assert prompts == [f"passphrase of {key}: "]
    assert run("open", book, "d", "--epsilon", 1, "--key", people.keys["bob"]) == 2
    monkeypatch.setattr(getpass, "getpass", refuses_to_ask)
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "a secret of ada")
    assert run("open", book, "d", "--epsilon", 1, "--key", key) == 0
    page = tmp_path / "page.html"
    words = ["page", "--ledger", book, "--out", page, "--key", key]
    assert run_app(accountant_app, "dp-attest account", [str(word) for word in words]) == 0
    assert run("open", book, "e", "--epsilon", 1, "--key", people.keys["bob"]) == 2
    monkeypatch.delenv(PASSPHRASE_VARIABLE)
    # a key without a passphrase asks for none
    assert run("verify", book, "--key", people.keys["ana"]) == 0
    # where no terminal hides what is typed
    monkeypatch.setattr(getpass, "getpass", shows_what_is_typed)
    assert run("head", book, "--key", key) == 2
    said = capsys.readouterr()
    for words in (
        "key must be opened with its own passphrase; the given one is wrong",
        f"--key must be used in a terminal, or with its passphrase in {PASSPHRASE_VARIABLE}",
    ):
        assert words in said.err
    assert "a secret" not in said.err + said.out


def test_a_book_without_roles_says_so(sqlite_book, capsys):
    with Book.create(sqlite_book.url):
        pass
    assert run("roles", sqlite_book.path) == 0
    assert "this book has no roles" in capsys.readouterr().out
    assert run("roles", sqlite_book.path, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"roles": None, "proposed": ""}
    assert run("grants", sqlite_book.path) == 2
    assert "of a book on a PostgreSQL server" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "No such file"),
        ("curators = [", "a .toml file of roles"),
        ("analysts = []", "a file that states curators"),
        ("curators = []\nbosses = []", "a file that states curators"),
        ("curators = 'ada.pub'", "curators must be a list of keys in quotes"),
        ("curators = [3]", "curators must be a list of keys in quotes"),
        ("curators = ['nobody.pub']", "curators must be lines 'ssh-ed25519"),
        ("curators = []", "curators must be keys of at least 1 people"),
    ],
)
def test_a_file_that_states_no_roles_is_refused(sqlite_book, tmp_path, capsys, text, sentence):
    file = tmp_path / "roles.toml"
    if text is not None:
        file.write_text(text)
    assert run("roles", sqlite_book.path, "--set", file, "--new") == 2
    assert sentence in capsys.readouterr().err
    assert not sqlite_book.path.exists()


@pytest.mark.parametrize(
    "words", [("--set", "x"), ("--reason", "x"), ("--new",), ("--new", "--reason", "x")]
)
def test_roles_are_set_with_a_reason(sqlite_book, capsys, words):
    assert run("roles", sqlite_book.path, *words) == 2
    assert not sqlite_book.path.exists()


def test_grants_are_sql(postgres_server, capsys):
    place = postgres_server.database()
    with Book.create(place.url):
        pass
    assert run("grants", place.url, "--prefix", "clinic") == 0
    sql = capsys.readouterr().out
    for words in ("GRANT clinic_analysts TO ana", "SECURITY DEFINER", "entries_need_role"):
        assert words in sql
    place.execute(sql)
