"""A book that is not there, or was put back from a backup, gives no budget again."""

import errno
import fcntl
import os
import re
import shutil

import numpy as np
import pytest

from accountant import Book, Budget, LedgerCorrupt, ParameterError
from accountant.__main__ import main
from accountant.book.chain.entries import ChainHead
from accountant.book.chain.head_pin import HeadPin, OwnPin, own_pin
from mechanisms import Laplace

DATA = np.arange(5.0)


@pytest.fixture
def pins(tmp_path, monkeypatch):
    folder = tmp_path / "configuration" / "pins"
    monkeypatch.setenv("DP_ATTEST_PINS", str(folder))
    return folder


def spend(book, epsilon=0.25):
    with book.ledger("ages", DATA) as ledger:
        ledger.spend(Laplace(1 / epsilon))


@pytest.fixture
def restored(pins, sqlite_book, tmp_path):
    """A book that was put back from a backup after a spend of .75 of its budget of 1."""
    with Book.create(sqlite_book.url) as book:
        book.dataset("ages", Budget(1.0))
    backup = shutil.copy(sqlite_book.path, tmp_path / "backup.db")
    with Book.open(sqlite_book.url) as book:
        spend(book, 0.75)
    shutil.copy(backup, sqlite_book.path)
    return sqlite_book


# --- a book that is not there


def test_what_is_not_there_is_not_made(stored_book):
    with pytest.raises(ParameterError, match=r"Book.create, or `ledger open --new`, makes one"):
        Book.open(stored_book.url)
    with Book.create(stored_book.url) as book:
        book.dataset("ages", Budget(1.0))
    with pytest.raises(ParameterError, match="opens this one"):
        Book.create(stored_book.url)
    with Book.open(stored_book.url) as book:
        assert book.names == ["ages"]


def test_a_file_without_bytes_is_no_book(sqlite_book):
    sqlite_book.path.touch()
    for make in (Book.open, Book.create):
        with pytest.raises(ParameterError, match="this file has no bytes"):
            make(sqlite_book.url)
    with pytest.warns(FutureWarning), pytest.raises(ParameterError, match="no bytes"):
        Book.open(sqlite_book.url, create=True)
    assert sqlite_book.path.read_bytes() == b""


def test_the_old_keyword_works_and_warns(sqlite_book):
    with (
        pytest.warns(FutureWarning, match=r"Book.create makes a book"),
        pytest.raises(ParameterError, match="a book that is there"),
    ):
        Book.open(sqlite_book.url, create=False)
    for _ in range(2):
        with pytest.warns(FutureWarning, match=r"Book.create makes a book"):
            Book.open(sqlite_book.url, create=True).close()


# --- the pin of this machine


def test_every_machine_that_writes_keeps_the_end(pins, stored_book):
    with Book.create(stored_book.url) as book:
        book.dataset("ages", Budget(1.0))
        spend(book)
        [pin] = pins.iterdir()
        assert pin.read_text().lstrip("0").strip() == book.head
    with Book.open(stored_book.url) as book:  # another process of this machine
        spend(book)
        assert pin.read_text().lstrip("0").strip() == book.head
        assert book.verify().head == book.head


def test_nothing_is_spent_from_a_book_that_was_put_back(restored):
    with Book.open(restored.url) as book:
        assert book.spent("ages") == 0.0  # it can be looked at
        for attempt in (spend, lambda book: book.dataset("others", Budget(1.0)), Book.verify):
            with pytest.raises(LedgerCorrupt, match=r"rolled back; .*accept_restored="):
                attempt(book)


def test_a_backup_elsewhere_is_spent_from_there(restored, pins, monkeypatch):
    monkeypatch.setenv("DP_ATTEST_PINS", str(pins / "of another machine"))
    with Book.open(restored.url) as book:
        spend(book)
        assert book.verify().entries == 3


def test_what_was_put_back_is_accepted_once_with_a_reason(restored, capsys):
    with pytest.raises(ParameterError, match="accept_restored"):
        Book.open(restored.url, accept_restored="")
    with Book.open(restored.url, author="ada", accept_restored="the disk failed") as book:
        spend(book)
        checked = book.verify()
        assert checked.entries == 4
        [words] = checked.restored
        assert re.fullmatch(r"entry 3, by ada at \d{4}-\d\d-\d\dT[\d:]{8}: the disk failed", words)
    assert main(["ledger", "verify", str(restored.path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith(f"put back from a backup, {words} 4 entries, none changed")
    [(facts,)] = restored.fetch("SELECT body FROM entries WHERE kind = 'restored'")
    assert '"reason":"the disk failed"' in facts
    assert '"known":"3:' in facts
    with pytest.raises(ParameterError, match="so it was not put back"):
        Book.open(restored.url, accept_restored="again")


def test_a_copy_that_went_on_is_another_chain(pins, sqlite_book, tmp_path):
    with Book.create(sqlite_book.url) as book:
        book.dataset("ages", Budget(1.0))
    copy = shutil.copy(sqlite_book.path, tmp_path / "copy.db")
    with Book.open(sqlite_book.url) as book:
        spend(book)
    with Book.open(copy) as book, pytest.raises(LedgerCorrupt, match="rolled back"):
        spend(book)
    with Book.open(copy, accept_restored="a try") as book:
        spend(book)
    with (
        Book.open(sqlite_book.url) as book,
        pytest.raises(LedgerCorrupt, match=r"rolled back|another chain"),
    ):
        spend(book)


def test_a_pin_that_the_caller_names_is_accepted_too(pins, sqlite_book, tmp_path):
    pin = tmp_path / "pin"
    with Book.create(sqlite_book.url, pin=pin) as book:
        book.dataset("ages", Budget(1.0))
    backup = shutil.copy(sqlite_book.path, tmp_path / "backup.db")
    with Book.open(sqlite_book.url, pin=pin) as book:
        spend(book)
    shutil.copy(backup, sqlite_book.path)
    with pytest.raises(LedgerCorrupt, match=r"accept_restored=REASON"):
        Book.open(sqlite_book.url, pin=pin)
    with Book.open(sqlite_book.url, pin=pin, accept_restored="the disk failed") as book:
        spend(book)


def test_no_spend_fails_for_a_configuration_that_cannot_be_written(pins, sqlite_book):
    pins.parent.write_text("a file, where a folder should be")
    with Book.create(sqlite_book.url) as book:
        book.dataset("ages", Budget(1.0))
        spend(book)
    assert own_pin("0" * 32) is None
    pins.parent.unlink()
    with Book.open(sqlite_book.url) as book:
        spend(book, 0.1)
    [own] = pins.iterdir()
    own.unlink()
    own.mkdir()
    with Book.open(sqlite_book.url) as book:
        spend(book, 0.1)
    assert own_pin("../outside") is None


def test_a_pin_that_a_power_cut_emptied_says_nothing(pins, sqlite_book):
    with Book.create(sqlite_book.url) as book:
        book.dataset("ages", Budget(1.0))
    [pin] = pins.iterdir()
    for damaged in (b"", b"\0" * 86, b"12"):
        pin.write_bytes(damaged)
        with Book.open(sqlite_book.url) as book:
            spend(book, 0.1)
            assert pin.read_text().lstrip("0").strip()[:86] == book.head
    os.remove(pin)


def test_a_pin_that_the_caller_names_moves_that_of_the_machine_too(pins, sqlite_book, tmp_path):
    with Book.create(sqlite_book.url, pin=tmp_path / "pin") as book:
        book.dataset("ages", Budget(1.0))
        spend(book)
        [own] = pins.iterdir()
        assert own.read_text() == (tmp_path / "pin").read_text()


def test_no_spend_waits_for_the_pin_of_the_machine(pins, sqlite_book):
    with Book.create(sqlite_book.url) as book:
        book.dataset("ages", Budget(1.0))
        [own] = pins.iterdir()
        with own.open() as another:
            fcntl.flock(another, fcntl.LOCK_EX)
            before = own.read_text()
            spend(book)
            assert own.read_text() > before
        own.unlink()
        spend(book)
        assert own.read_text() > before


def test_a_pin_is_read_anew_after_another_process_wrote_it(tmp_path):
    first, second = (OwnPin(tmp_path / "pin") for _ in range(2))
    heads = [ChainHead(seq, f"{seq:064x}") for seq in range(4)]
    first.advance(heads[1])
    second.advance(heads[3])
    first.advance(heads[2])  # the second process has written a later one meanwhile
    assert first.read() == second.read() == heads[3]
    (tmp_path / "pin").write_bytes(b"")
    assert first.read() is None
    for pin in (first, second):
        pin.close()


@pytest.mark.parametrize("name", ["pread", "pwrite"])
def test_a_disk_that_fails_keeps_no_one_from_spending(name, tmp_path, monkeypatch):
    def fails(*_):
        raise OSError(errno.EIO, "the disk failed")

    pin, heads = OwnPin(tmp_path / "pin"), [ChainHead(seq, f"{seq:064x}") for seq in range(4)]
    pin.advance(heads[1])
    with monkeypatch.context() as patch:
        patch.setattr(os, name, fails)
        pin.advance(heads[2])
        assert pin.read() == (None if name == "pread" else heads[1])
    pin.advance(heads[3])
    assert pin.read() == OwnPin(tmp_path / "pin").read() == heads[3]


@pytest.mark.parametrize("kind", [HeadPin, OwnPin])
def test_a_pin_goes_back_only_from_the_end_that_was_accepted(kind, tmp_path):
    pin = kind(tmp_path / "pin")
    heads = [ChainHead(seq, f"{seq:064x}") for seq in range(10)]
    assert pin.read() is None
    for head in (heads[5], heads[3], heads[5]):
        pin.advance(head)
        assert pin.read() == heads[5]
    pin.advance(heads[2], instead_of=heads[4])  # another process has moved the pin meanwhile
    assert pin.read() == heads[5]
    pin.advance(heads[2], instead_of=heads[5])
    assert pin.read() == heads[2]
    assert kind(tmp_path / "pin").read() == heads[2]
