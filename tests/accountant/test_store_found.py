"""What an attacker, a careless user and a crashing machine tried on the durable ledger."""

import os
import shutil
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    BudgetExceeded,
    Filter,
    LedgerCorrupt,
    Loss,
    Parallel,
    ParameterError,
    Repeat,
    UnsupportedPlan,
)
from accountant.ledger.composition_notions import notion_of
from accountant.plans.plan import Release
from mechanisms import Gaussian, Laplace

DATA = np.arange(20.0)
TENTH = Laplace(10.0)  # costs 0.1


def unlooked(_):
    raise AssertionError("looked at the data")


SPENDING = """
    import sys
    import numpy as np
    from accountant import Book
    from mechanisms import Laplace

    with Book.open(sys.argv[1]) as book, book.ledger("d", np.arange(20.0)) as ledger:
        for _ in range(int(sys.argv[2])):
            ledger.spend(Laplace(10.0))
"""


def elsewhere(url, times):
    words = [sys.executable, "-c", textwrap.dedent(SPENDING), url, str(times)]
    subprocess.run(words, check=True, timeout=60)


def test_a_file_that_its_own_process_copied_is_not_overspent(sqlite_book, tmp_path):
    # closing any handle of the file drops this process's POSIX locks; the next process to leave
    # then believes to be the last and removes the log that is still being written here
    with Book.open(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            ledger.spend(TENTH)
            shutil.copy(sqlite_book.path, tmp_path / "backup.db")
            elsewhere(sqlite_book.url, 5)
            with pytest.raises(LedgerCorrupt, match="open it again"):
                ledger.release(TENTH, unlooked)
            with pytest.raises(LedgerCorrupt, match="open it again"):
                book.spent("d")
            elsewhere(sqlite_book.url, 4)
    with Book.open(sqlite_book.url) as book:
        assert book.spent("d") == 1.0
        book.verify()


def test_a_symbolic_link_leads_to_the_book(sqlite_book, tmp_path):
    with Book.open(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
    link = tmp_path / "other" / "link.db"
    link.parent.mkdir()
    link.symlink_to(sqlite_book.path)
    with Book.open(f"sqlite:///{link}") as one, Book.open(sqlite_book.url) as two:
        for book in (one, two) * 5:
            with book.ledger("d", DATA) as ledger:
                ledger.spend(TENTH)
        with pytest.raises(BudgetExceeded), one.ledger("d", DATA) as ledger:
            ledger.release(TENTH, unlooked)
    assert os.listdir(link.parent) == ["link.db"]


def test_a_file_of_two_names_is_refused(sqlite_book, tmp_path):
    with Book.open(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
    os.link(sqlite_book.path, tmp_path / "second.db")
    for path in (sqlite_book.path, tmp_path / "second.db"):
        with pytest.raises(ParameterError, match="without another hard link"):
            Book.open(f"sqlite:///{path}")


@pytest.mark.parametrize("name", [":memory:", "a\0b.db", "n" * 300, "folder", "pipe", "loop"])
def test_what_is_no_plain_file_is_refused_and_nothing_is_made(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(ParameterError, match="url must be"):
        Book.open(f"sqlite:///{name}")
    assert sorted(os.listdir(tmp_path)) == before


def test_an_interruption_just_after_the_lock_was_taken_lets_go_of_it(sqlite_book, monkeypatch):
    with Book.open(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            storage = book._log.storage
            begin = storage._begin

            def interrupted(words):
                begin(words)
                raise KeyboardInterrupt

            with monkeypatch.context() as once:
                once.setattr(storage, "_begin", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    ledger.spend(TENTH)
            with Book.open(sqlite_book.url, wait=0.2) as other, other.ledger("d", DATA) as second:
                second.spend(TENTH)
            ledger.spend(TENTH)
            assert book.spent("d") == 0.2


def test_what_an_interruption_left_does_not_take_the_next_answer(stored_book, monkeypatch):
    with Book.open(stored_book.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:

            def interrupted(*_):
                raise KeyboardInterrupt

            with monkeypatch.context() as once:
                once.setattr(type(ledger), "_answer", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    ledger.release(TENTH, np.sum, label="sum")
            ledger.release(TENTH, np.min)
            answer = ledger.release(TENTH, np.sum, label="sum")
            assert answer == ledger.release(TENTH, unlooked, label="sum")
        lines = book.history("d")
        assert [(one.label, one.outcome) for one in lines] == [
            ("sum", "failed"), (None, "answered"), ("sum", "answered"),
        ]  # fmt: skip
        assert book.answer(lines[2]) == answer
        book.verify()


@dataclass(frozen=True)
class Crooked(Loss):
    """A loss that states what nothing can cost."""

    stated: float
    mass: float = 0.0

    def profile(self, epsilon):
        return np.zeros(np.shape(epsilon))

    @property
    def reversed(self):
        return self

    @property
    def max_loss(self):
        return self.stated

    @property
    def infinity(self):
        return self.mass

    @property
    def rho(self):
        return self.stated


@dataclass(frozen=True)
class CrookedRelease(Release):
    loss: Crooked
    value_axes = 0

    @property
    def reversed(self):
        return self

    def losses(self):
        yield self.loss, 1

    def release(self, value, rng, size=None):
        return value + rng.standard_normal()


@pytest.mark.parametrize("budget", [Budget(1.0), Budget(1.0, 1e-6)], ids=["pure", "zcdp"])
@pytest.mark.parametrize(
    "loss",
    [Crooked(-0.5), Crooked(float("nan")), Crooked(0.1, float("nan")), Crooked(0.001, -1.0)],
    ids=["negative", "nan", "nan mass", "negative mass"],
)
def test_a_cost_below_zero_or_none_refunds_nothing(stored_book, budget, loss):
    with Book.open(stored_book.url) as book:
        book.dataset("d", budget)
        before = stored_book.hash_rows()
        with book.ledger("d", DATA) as ledger, pytest.raises((UnsupportedPlan, BudgetExceeded)):
            ledger.release(CrookedRelease(loss), unlooked)
        assert stored_book.hash_rows() == before
    gate = Filter(DATA, budget)
    with pytest.raises((UnsupportedPlan, BudgetExceeded)):
        gate.release(CrookedRelease(loss), unlooked)
    assert gate.spent == 0


def test_a_plan_of_many_repetitions_holds_nobody_up(sqlite_book):
    with Book.open(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
        start = time.perf_counter()
        with pytest.raises(BudgetExceeded):
            book.ledger("d", DATA, Repeat(Laplace(1e8), 10**8 + 1))
        with book.ledger("d", DATA, Repeat(Laplace(1e8), 10**8)) as ledger:
            ledger.release(Laplace(1e8), np.sum)
        assert time.perf_counter() - start < 2
        assert book.spent("d") == 1.0
        book.verify()


@pytest.mark.parametrize("notion", ["pure", "zcdp", "rdp", "gdp"])
def test_repetitions_at_once_cost_what_they_cost_one_by_one(notion):
    adding = notion_of(notion, Budget(8.0, 1e-6))
    one = Laplace(10.0) if notion == "pure" else Gaussian(30.0)
    least = Laplace(100.0) if notion == "pure" else Gaussian(300.0)
    for plan in (one, Parallel([one, least], by="index")):
        single = adding.zero
        for _ in range(37):
            single = adding.spend(single, plan)
        whole = adding.spend(adding.zero, Repeat(plan, 37))
        assert float(whole.spent) == pytest.approx(float(single.spent), rel=1e-13)
        if notion == "pure":
            assert whole == single


def test_a_closed_book_is_closed_and_not_corrupt(stored_book):
    book = Book.open(stored_book.url)
    book.dataset("d", Budget(1.0))
    ledger = book.ledger("d", DATA)
    book.close()
    book.close()
    for use in (lambda: book.spent("d"), book.verify, lambda: ledger.release(TENTH, unlooked)):
        with pytest.raises(ParameterError, match="it was closed"):
            use()


def test_the_unit_of_a_data_set_never_changes(stored_book):
    with Book.open(stored_book.url) as book:
        book.dataset("d", Budget(1.0), unit="one household")
        assert book.dataset("d", Budget(1.0)).unit == "one household"
        with pytest.raises(ParameterError, match="unit must be 'one household'"):
            book.dataset("d", Budget(1.0), unit="one row")


@pytest.mark.parametrize("name", ["d ", " d", " ", "cafe\u0301"])
def test_names_that_look_the_same_are_refused(stored_book, name):
    with Book.open(stored_book.url) as book:
        before = stored_book.hash_rows()
        with pytest.raises(ParameterError, match="name must be"):
            book.dataset(name, Budget(1.0))
        assert stored_book.hash_rows() == before


@pytest.mark.parametrize("head", ["²:" + "0" * 64, "0:" + "0" * 64])
def test_what_looks_like_a_head_and_is_none_is_refused(sqlite_book, head):
    with Book.open(sqlite_book.url) as book, pytest.raises(ParameterError, match="head must be"):
        book.verify(head)


def test_a_check_pins_the_end_of_a_book_that_had_no_pin(sqlite_book, tmp_path):
    with Book.open(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
    pin = tmp_path / "head.pin"
    with Book.open(sqlite_book.url, pin=pin) as book:
        assert not pin.exists()
        head = book.verify().head
    number, mark = pin.read_text().strip().split(":")
    assert f"{int(number)}:{mark}" == head


def test_a_mechanism_that_is_not_declared_here_is_no_corruption(stored_book, monkeypatch):
    from accountant.plans import plan

    @dataclass(frozen=True)
    class Ours(CrookedRelease):
        loss: Loss = Laplace(10.0).loss

    with Book.open(stored_book.url) as book:
        book.dataset("d", Budget(1.0))
        with monkeypatch.context() as there:
            there.setattr(plan, "DECLARED_PLAN_KINDS", [*plan.DECLARED_PLAN_KINDS])
            there.setattr(
                "accountant.formats.registry.DECLARED_PLAN_KINDS", [*plan.DECLARED_PLAN_KINDS, Ours]
            )
            with book.ledger("d", DATA, Repeat(Ours(), 3)) as ledger:
                ledger.release(Ours(), np.sum)
            book.verify()
        with pytest.raises(ParameterError, match="import what declares it, for entry 3"):
            book.verify()


def test_two_mechanisms_at_once_under_one_label_are_not_mixed_up(stored_book):
    with Book.open(stored_book.url) as one, Book.open(stored_book.url) as two:
        one.dataset("d", Budget(1.0))
        with one.ledger("d", DATA) as ledger, two.ledger("d", DATA) as other:

            def overtaken(data):
                other.release(Laplace(20.0), np.max, label="one")
                return np.sum(data)

            with pytest.raises(ParameterError, match="no other mechanism was released under"):
                ledger.release(TENTH, overtaken, label="one")
        made = [(line.loss, line.outcome) for line in one.history("d")]
        assert made == [
            ("LaplaceLoss(shift=0.1)", "reserved"), ("LaplaceLoss(shift=0.05)", "answered")
        ]  # fmt: skip
        one.verify()


def test_a_line_that_is_none_has_no_answer(stored_book):
    with Book.open(stored_book.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            ledger.release(TENTH, np.sum)
        [line] = book.history("d")
        with pytest.raises(ParameterError, match="line must be"):
            book.answer(line._replace(answer=line.seq))
