"""The ledger's command line, where terms change: close, raise, expire and quota."""

import json

import numpy as np
import pytest

from accountant import Book, Budget, Tight, write_plan
from accountant.book import log
from accountant.cli.exit_status import run_app
from accountant.cli.ledger import app
from mechanisms import Gaussian, Laplace

DATA = np.arange(20.0)
TENTH = Laplace(10.0)


def run(*words):
    return run_app(app, "dp-attest ledger", [str(one) for one in words])


@pytest.fixture
def url(tmp_path):
    """A book with a release by ada."""
    found = f"sqlite:///{tmp_path / 'book.db'}"
    with Book.create(found, author="ada") as book:
        book.dataset(
            "d", Budget(1.0, 1e-6), "pure", expires="2999-01-01", unit="a person of the study"
        )
        with book.ledger("d", DATA) as ledger:
            ledger.release(TENTH, np.sum)
    return found


def test_what_remains_of_a_plan_that_the_notion_cannot_bound_is_refused_in_one_line(
    url, tmp_path, capsys
):
    write_plan(2 * Gaussian(10.0), tmp_path / "plan.toml")
    assert run("remaining", url, "d", tmp_path / "plan.toml") == 2
    error = capsys.readouterr().err
    assert "a pure filter cannot bound GaussianLoss" in error
    assert error.count("\n") == 1


def test_terms_are_changed_and_shown(url, capsys):
    assert run("raise", url, "d", "--epsilon", 2, "--reason", "second wave") == 0
    assert run("expire", url, "d", "--when", "2998-01-01", "--reason", "consent") == 0
    assert run("quota", url, "d", "--set", "bob=0.25", "--reason", "pilot") == 0
    capsys.readouterr()
    assert run("status", url) == 0
    assert capsys.readouterr().out.splitlines() == [
        "d: spent epsilon 0.1000 of 2 at delta 1e-06, for a person of the study",
        "  expires 2998-01-01T00:00:00 (UTC)",
        "  authors with a quota: 1",
    ]
    assert run("close", url, "d", "--reason", "over", "--json") == 0
    shown = json.loads(capsys.readouterr().out)["dataset"]
    assert (shown["reason"], shown["expires"][:10]) == ("over", "2998-01-01")
    assert shown["budget"] == {"epsilon": 2.0, "delta": 1e-6}
    assert run("status", url) == 0
    assert "\n  closed 2" in capsys.readouterr().out
    for refused in (
        ("raise", url, "d", "--epsilon", 3, "--reason", "x"),
        ("expire", url, "d", "--when", "2998-02-01", "--reason", "x"),
        ("quota", url, "d", "--set", "bob=1", "--reason", "x"),
    ):
        assert run(*refused) == 2
        assert "(over); stored answers can be read" in capsys.readouterr().err
    assert run("history", url, "d") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[3] for line in lines] == [
        "answered", "raised", "expires", "quota", "closed"
    ]  # fmt: skip
    assert lines[3].endswith("quota of bob: epsilon 0.25 (pilot)")
    assert run("verify", url) == 0


def test_quotas_are_a_table_of_80_columns(url, capsys):
    assert run("quota", url, "d", "--set", "a=b=0.3333333333", "--reason", "odd names") == 0
    said = capsys.readouterr().out
    assert said.splitlines() == [
        "     epsilon       quota        left  author",
        "           0    0.333333      0.3333  a=b",
        "      0.1000                          ada",
    ]
    assert run("quota", url, "d", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"dataset": "d", "quotas": [
        {"author": "a=b", "epsilon": 0.0, "quota": 0.3333333333, "left": 0.3333333333},
        {"author": "ada", "epsilon": 0.1, "quota": None, "left": None},
    ]}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("raise", "d", "--epsilon", "x", "--reason", "r"), "--epsilon must be"),
        (("raise", "d", "--epsilon", 1, "--delta", 1e-9, "--reason", "r"), "delta of at least"),
        (("raise", "d", "--epsilon", 0.05, "--reason", "r"), "budget must be"),
        (("raise", "d", "--epsilon", 2), "--reason"),
        (("expire", "d", "--when", "soon", "--reason", "r"), "when must be a time"),
        (("close", "nothing", "--reason", "r"), "a data set of this book"),
        (("quota", "d", "--set", "bob", "--reason", "r"), "--set must be WHO=E"),
        (("quota", "d", "--set", "bob=x", "--reason", "r"), "quota must be"),
        (("quota", "d", "--set", "bob=1"), "--reason must be given with --set"),
        (("history", "d", "--until", "soon"), "until must be"),
    ],
)
def test_bad_usage_changes_nothing(url, capsys, words, said):
    command, name, *options = words
    assert run(command, url, name, *options) == 2
    assert said in capsys.readouterr().err
    with Book.open(url) as book:
        assert [one.outcome for one in book.history("d")] == ["answered"]


def test_a_data_set_is_opened_with_its_end(tmp_path, capsys):
    book = tmp_path / "new.db"
    assert run("open", book, "d", "--new", "--epsilon", 1, "--expires", "then") == 2
    assert not book.exists()
    assert (
        run("open", book, "d", "--new", "--epsilon", 1, "--expires", "2999-01-01T01:00+01:00") == 0
    )
    assert "  expires 2999-01-01T00:00:00 (UTC)" in capsys.readouterr().out


def test_history_filters_runs_and_ends_and_fits_a_terminal(url, capsys, monkeypatch):
    plan = 2 * Laplace(100.0)
    with Book.open(url) as book, book.ledger("d", DATA, plan, run="june") as ledger:
        ledger.release(Laplace(100.0), np.sum)
        book.raise_budget("d", Budget(1.0, 1e-3), "a larger delta")
    assert run("history", url, "d", "--run", "june", "--json") == 0
    assert [one["kind"] for one in json.loads(capsys.readouterr().out)["history"]] == [
        "plan", "step"
    ]  # fmt: skip
    assert run("history", url, "d", "--until", 3) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert run("history", url, "d", "--until", "2020-01-01") == 0
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run("history", url, "d") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) > 4


def test_a_plan_is_set_aside_at_its_own_cost(tmp_path, capsys):
    book, plan = tmp_path / "b.db", tmp_path / "plan.toml"
    noise = 5 * Laplace(6.0)
    write_plan(noise, plan)
    aside = ("--plan", plan, "--runs", 2, "--delta", 1e-6)
    assert run("open", book, "d", "--new", *aside, "--json") == 0
    cost = Tight().epsilon(2 * noise, 1e-6)
    shown = json.loads(capsys.readouterr().out)["dataset"]
    assert shown["budget"] == {"epsilon": cost, "delta": 1e-6}
    assert (shown["epsilon"], shown["runs"]) == (cost, [0, 2])
    with Book.open(f"sqlite:///{book}") as found:
        found.ledger("d", DATA, noise, run="one").close()
    assert run("status", book) == 0
    assert "  1 of 2 runs of the plan that was set aside are made" in capsys.readouterr().out
    assert run("remaining", book, "d", plan) == 0
    assert " ".join(capsys.readouterr().out.split()) == (
        "there is room for 1 more of the whole plan (runs that are paid for count); "
        "no room for one more of Laplace"
    )
    assert run("history", book, "d") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "  set aside  " in first
    assert second.endswith("  one")
    write_plan(noise, plan, Budget(0.5, 1e-6))  # its own budget, which it does not fit
    for name, more in (("e", ()), ("f", ("--epsilon", 0.6))):
        assert run("open", book, name, "--plan", plan, *more) == 2
        assert "fewer runs or more noise fit" in capsys.readouterr().err
    for words, said in (
        (("--plan", plan, "--runs", 0), "runs must be"),
        (("--epsilon", 1, "--runs", 2), "runs must be given with plan="),
        ((), "--epsilon must be given, or a --plan whose cost it is"),
    ):
        assert run("open", book, "g", *words) == 2
        assert said in capsys.readouterr().err
    with Book.open(f"sqlite:///{book}") as found:
        assert found.names == ["d"]


def test_windows_and_buckets_on_the_command_line(tmp_path, capsys):
    book = tmp_path / "b.db"
    month = ("--epsilon", 1, "--window", "month", "--carry", 2, "--unit", "one person")
    assert run("open", book, "m", "--new", *month) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "for the data of one person in one calendar month (UTC)" in said
    assert "one window has at most epsilon 3" in said
    assert run("open", book, "b", "--epsilon", 1, "--buckets", "region", "--people", "all") == 0
    with Book.open(f"sqlite:///{book}") as found:
        for names in (["north", "south"], ["north"]):
            with found.ledger("b", DATA, buckets=names) as ledger:
                ledger.spend(TENTH)
    capsys.readouterr()
    assert run("buckets", book, "b") == 0
    assert capsys.readouterr().out.splitlines() == [
        "     epsilon        left  bucket",
        "      0.2000      0.8000  north",
        "      0.1000      0.9000  south",
    ]
    assert run("buckets", book, "b", "--json") == 0
    assert json.loads(capsys.readouterr().out)["buckets"][0] == {
        "bucket": "north", "epsilon": 0.2, "left": 0.8
    }  # fmt: skip
    assert run("history", book, "b") == 0
    assert [one.split("  ")[-1] for one in capsys.readouterr().out.splitlines()] == [
        "north, south", "north"
    ]  # fmt: skip
    assert run("export", book, "b", "--out", tmp_path / "b.csv") == 0
    assert "north; south" in (tmp_path / "b.csv").read_text()
    assert run("status", book, "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in whole["datasets"]] == ["m", "b"]
    assert [one["people"] for one in whole["people"]] == ["all"]
    assert run("verify", book, "--json") == 0
    assert json.loads(capsys.readouterr().out)["entries"] == 5
    assert run("head", book, "--json") == 0
    assert json.loads(capsys.readouterr().out)["head"].startswith("5:")
    assert run("buckets", book, "m") == 2


def test_a_clock_is_confirmed_and_corrected_on_the_command_line(tmp_path, monkeypatch, capsys):
    clock, book = ["2026-11-10T12:00:00.000000+00:00"], tmp_path / "b.db"
    monkeypatch.setattr(log, "clock_time", lambda _: clock[0])
    week = ("--epsilon", 1, "--window", "week")
    assert run("open", book, "w", "--new", *week) == 0
    assert run("open", book, "e", "--epsilon", 1, "--expires", "2027-01-01") == 0
    with Book.open(book) as found:
        found.ledger("w", DATA).spend(TENTH)
    clock[0] = clock[0].replace("2026", "2099")
    capsys.readouterr()
    assert run("open", book, "x", *week) == 2
    assert "open the book with clock='2099-11-10'" in capsys.readouterr().err
    assert run("status", book, "--name", "w") == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "  the log's time is 2026-11-10T12:00:00, the clock says 2099-11-10T12:00:00",
        "    (UTC); no later window opens until the clock is confirmed",
    ]
    assert run("open", book, "x", *week, "--clock", "soon") == 2
    assert run("open", book, "x", *week, "--clock", "2099-11-10") == 0
    clock[0] = clock[0].replace("2099", "2026")
    capsys.readouterr()
    assert run("status", book, "--name", "w") == 0
    assert "confirmed" not in capsys.readouterr().out
    assert run("correct-clock", book, "--reason", " ") == 2
    assert "reason must be" in capsys.readouterr().err
    assert run("correct-clock", book, "--reason", "it was 2026") == 0
    assert capsys.readouterr().out.splitlines() == [
        "the time of the book was 2099-11-10T12:00:00; it is 2026-11-10T12:00:00 (UTC)",
        "w: what was spent later counts in the window that is open",
        "e: stays expired until `expire` moves its end",
    ]
    assert run("correct-clock", book, "--reason", "again") == 2
    assert "book must be one whose time is ahead of the clock's" in capsys.readouterr().err
    with Book.open(book, clock="trusted") as found:
        clock[0] = clock[0].replace("2026", "2027")
        found.ledger("w", DATA).spend(TENTH)
    clock[0] = clock[0].replace("2027", "2026")
    assert run("correct-clock", book, "--reason", "again", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "log_time": "2027-11-10T12:00:00.000000+00:00", "clock": clock[0], "windows": ["w"],
        "expired": [],
    }  # fmt: skip
    assert run("verify", book) == 0


def test_quotas_and_exports_are_filtered(url, tmp_path, capsys):
    with Book.open(url, author="bob") as book, book.ledger("d", DATA) as ledger:
        ledger.release(TENTH, np.sum)
    assert run("quota", url, "d", "--author", "bob", "--json") == 0
    assert [one["author"] for one in json.loads(capsys.readouterr().out)["quotas"]] == ["bob"]
    assert run("export", url, "d", "--author", "ada", "--since", 1, "--out", "-") == 0
    assert [one["author"] for one in json.loads(capsys.readouterr().out)["history"]] == ["ada"]
