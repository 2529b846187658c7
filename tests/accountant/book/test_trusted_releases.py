"""What had to be trusted stands in the log of a book, in its history and in every report."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from typer.testing import CliRunner

from accountant import Book, Budget, GaussianLoss, Parallel, ParameterError, PureLoss
from accountant.__main__ import app
from accountant.book.export import history_csv, history_json, registry_rows
from accountant.reports.history_page import history_page
from mechanisms import Clamped, Laplace, RandomizedResponse
from tests.laws.test_gate import Lookalike, make_quiet

DATA, COIN = np.arange(6.0), RandomizedResponse(2, 0.75)


def labels(rows):
    return (rows > 2).astype(int)


@pytest.fixture
def path(tmp_path):
    """A book with an undeclared release, one by the workers of an executor, and an honest one."""
    found = tmp_path / "book.db"
    with Book.create(f"sqlite:///{found}") as book:
        book.dataset("d", Budget(10.0))
        with book.ledger("d", DATA) as ledger, pytest.raises(ParameterError, match="undeclared"):
            ledger.release(Lookalike(100.0), np.sum)
        with book.ledger("d", DATA, undeclared=True) as ledger:
            ledger.release(Lookalike(100.0), np.sum)
        with (
            book.ledger("d", DATA, Parallel([COIN])) as ledger,
            ThreadPoolExecutor(1) as pool,
        ):
            list(ledger.release_blocks(COIN, labels, [slice(None)], pool))
        with book.ledger("d", DATA, undeclared=True) as ledger:
            ledger.release(Laplace(100.0), np.sum)
        book.verify()
    return found


UNDECLARED = "tests.laws.test_gate.Lookalike"
EXECUTOR = "concurrent.futures.thread.ThreadPoolExecutor"


def test_the_history_names_what_was_trusted(path):
    with Book.open(f"sqlite:///{path}") as book:
        status, lines = book.status("d"), book.history("d")
    assert [(one.undeclared, one.executor) for one in lines] == [
        (UNDECLARED, ""), ("", ""), ("", EXECUTOR), ("", ""),
    ]  # fmt: skip
    assert lines[0].facts != lines[-1].facts  # the log does not take it for the declared class
    for text in (
        "".join(history_json(status, lines)), "".join(history_csv(lines)),
        history_page(status, lines, "book"),
    ):  # fmt: skip
        assert UNDECLARED in text
        assert EXECUTOR in text
    rows = registry_rows(status, lines, None)
    assert rows[0]["undeclared releases"] == rows[0]["releases by trusted workers"] == 1
    page = history_page(status, lines, "book")
    assert "no package declares" in page
    assert "workers that the ledger did not start" in page
    page = history_page(status, [lines[-1]], "book")
    assert "no package declares" not in page
    assert "workers that the ledger did not start" not in page


@pytest.mark.parametrize("plan", [None, Parallel([COIN]) + Laplace(100.0)], ids=["none", "two"])
def test_a_release_after_the_blocks_of_an_executor_names_none(tmp_path, plan):
    with Book.create(f"sqlite:///{tmp_path}/book.db") as book:
        book.dataset("d", Budget(10.0))
        with book.ledger("d", DATA, plan) as ledger, ThreadPoolExecutor(1) as pool:
            list(ledger.release_blocks(COIN, labels, [slice(None)], pool))
            ledger.release(Laplace(100.0), np.sum)
        assert [line.executor for line in book.history("d")][-2:] == [EXECUTOR, ""]


def test_spends_of_releases_made_elsewhere_are_held_to_the_same(path):
    plan = GaussianLoss(0.01) + 2 * Clamped(Lookalike(100.0), 0.0, 1.0)
    with Book.open(f"sqlite:///{path}") as book:
        with book.ledger("d", DATA) as ledger:
            for made in (plan, Lookalike(100.0)):
                with pytest.raises(ParameterError, match="undeclared=True"):
                    ledger.spend(made)
            ledger.spend(2 * Laplace(100.0) + PureLoss(0.01))
            assert book.history("d")[-1].undeclared == ""
        with book.ledger("d", DATA, undeclared=True) as ledger:
            ledger.spend(2 * Clamped(Lookalike(100.0), 0.0, 1.0) + PureLoss(0.01))
            assert book.history("d")[-1].undeclared == UNDECLARED
        book.verify()


def test_the_command_line_names_what_was_trusted(path):
    shown = CliRunner().invoke(app, ["ledger", "history", str(path), "d"])
    assert shown.output.count(f"undeclared {UNDECLARED}") == 1
    assert shown.output.count(f"executor {EXECUTOR}") == 1
    plain = json.loads(
        CliRunner().invoke(app, ["ledger", "history", str(path), "d", "--json", "-"]).output
    )
    assert plain["history"][0]["undeclared"] == UNDECLARED


def test_a_plan_that_was_paid_for_does_not_change(path):
    plan = 2 * Laplace(100.0)
    with Book.open(f"sqlite:///{path}") as book, book.ledger("d", DATA, plan, run="r") as ledger:
        for held in (plan.part, ledger.plan.part, ledger.next):
            make_quiet(held)
            with pytest.raises(RuntimeError, match="the plan allows Laplace\\(scale=100"):
                ledger.release(held, np.sum)
        ledger.release(Laplace(100.0), np.sum)
        assert book.history("d")[-1].what.startswith("Laplace(scale=100.0")
