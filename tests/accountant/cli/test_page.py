"""``dp-attest page``: it writes a page, and never over one."""

import contextlib
import os
import stat

import pytest
import typer

from accountant.accountants.budget import Budget
from accountant.book.book import Book
from accountant.cli.exit_status import run_app
from accountant.cli.page import page
from accountant.files import write_text
from tests.accountant.example_files import PLAN, spent_book

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command("page")(page)
app.command("other")(lambda: None)


def run(*words):
    return run_app(app, "dp-attest account", ["page", *map(str, words)])


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.mark.usefixtures("small_grid")
def test_the_command_writes_a_page_and_never_over_one(plan, tmp_path, capsys):
    out = tmp_path / "budget.html"
    assert run(plan, "--out", out) == 0
    first = out.read_bytes()
    assert b"ages" in first
    assert run(plan, "--out", out) == 2
    assert "--force" in capsys.readouterr().err
    assert out.read_bytes() == first
    assert run(plan, "--out", out, "--force", "--epsilon", "3", "--delta", "1e-7") == 0
    assert b"epsilon at delta 1e-7" in out.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["budget.html", "plan.toml"]


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_new_files_keep_the_umask(book, tmp_path, umask, mode):
    before, out = os.umask(umask), tmp_path / "h.html"
    try:
        assert run("--ledger", book, "--out", out) == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(out.stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o666])
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_file_that_is_replaced_keeps_its_mode_and_owner(tmp_path, umask, mode):
    path = tmp_path / "export.csv"
    path.write_text("old")
    path.chmod(mode)
    with contextlib.suppress(PermissionError):  # root alone may give a file away
        os.chown(path, 1234, 4321)
    earlier, before = path.stat(), os.umask(umask)
    try:
        write_text(str(path), ["n", "ew"])
    finally:
        os.umask(before)
    now = path.stat()
    assert path.read_text() == "new"
    assert (now.st_mode, now.st_uid, now.st_gid) == (
        earlier.st_mode, earlier.st_uid, earlier.st_gid
    )  # fmt: skip
    assert os.listdir(tmp_path) == ["export.csv"]


@pytest.mark.usefixtures("small_grid")
def test_noise_left_open_is_found_first(tmp_path):
    path, out = tmp_path / "plan.toml", tmp_path / "p.html"
    path.write_text(PLAN.replace("scale = 20.0", "weight = 1.0"))
    assert run(path, "--out", out) == 0
    assert "The plan fits the budget" in out.read_text()


@pytest.fixture
def book(tmp_path):
    return spent_book(tmp_path)


def test_the_command_shows_a_ledger(book, tmp_path, monkeypatch):
    monkeypatch.delattr(Book, "history")  # which holds all lines at once
    out = tmp_path / "h.html"
    assert run("--ledger", book, "--dataset", "visits <script>", "--out", out) == 0
    assert "Spent over time" in out.read_text()
    # as `ledger` takes it: a file, and the only data set there is
    plain = tmp_path / "p.html"
    assert run("--ledger", book.removeprefix("sqlite:///"), "--out", plain) == 0
    assert plain.read_text() == out.read_text()
    pin, key = tmp_path / "book.pin", tmp_path / "book.key"
    key.touch(mode=0o600)
    key.write_bytes(b"k" * 32)
    words = ("--ledger", book, "--dataset", "visits <script>", "--pin", pin, "--key", key,
             "--out", plain, "--force")  # fmt: skip
    assert run(*words) == 2  # it is not signed
    with Book.open(book, key=key, accept_unsigned=True) as signed:
        signed.dataset("other", Budget(1.0))
    assert run(*words) == 0
    pin.write_text(f"99 {'0' * 64}\n")  # no pin that a book writes
    assert run(*words) == 2


def test_the_command_shows_the_evidence_on_a_claim(book, tmp_path, capsys):
    out = tmp_path / "e.html"
    with Book.open(book) as opened:
        opened.claim("program", Budget(1.0))
    assert run("--ledger", book, "--claim", "program", "--out", out) == 0
    assert "Wealth over audits" in out.read_text()
    for words in (
        ["--claim", "absent"],
        ["--claim", "program", "--dataset", "visits <script>"],
    ):
        assert run("--ledger", book, *words, "--out", tmp_path / "f.html") == 2
        assert "claim must be" in capsys.readouterr().err
    assert not (tmp_path / "f.html").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan.toml", "--claim", "program", "--out", "x.html"], "given with --ledger"),
        (["--out", "no/such/folder.html"], "--out"),
        (["--out", "x.html"], "one of the two"),
        (["plan.toml", "--ledger", "sqlite:///x", "--out", "x.html"], "one of the two"),
        (["--ledger", "sqlite:///x.db", "--out", "x.html"], "a book that is there"),
        (["--ledger", "x.db", "--epsilon", "1", "--out", "x.html"], "without a budget"),
        (["plan.toml", "--dataset", "d", "--out", "x.html"], "--ledger"),
        (["plan.toml", "--pin", "p", "--out", "x.html"], "--ledger"),
        (["plan.toml", "--key", "k", "--out", "x.html"], "with --ledger, got 'k'"),
        (["plan.toml", "--epsilon", "nan", "--out", "x.html"], "--epsilon"),
        (["plan.toml", "--epsilon", "1", "--delta", "1.5", "--out", "x.html"], "--delta"),
        (["bare.toml", "--delta", "1e-6", "--out", "x.html"], "--epsilon"),
        (["tight.toml", "--out", "x.html"], "a budget to share"),
        (["none.toml", "--out", "x.html"], "none.toml"),
        (["--ledger", "sqlite:///none.db", "--dataset", "d", "--out", "x.html"], "none.db"),
        (["plan.toml"], "--out"),
    ],
)
def test_bad_words_are_refused_before_anything_is_written(words, said, plan, monkeypatch, capsys):
    monkeypatch.chdir(plan.parent)
    (plan.parent / "bare.toml").write_text(PLAN[PLAN.index("[[") :])
    shared = PLAN.replace("scale = 20.0", "scale = 0.1").replace("scale = 15.0", "weight = 1.0")
    (plan.parent / "tight.toml").write_text(shared)
    assert run(*words) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
    kept = {"plan.toml", "bare.toml", "tight.toml"}
    assert {path.name for path in plan.parent.iterdir()} == kept
