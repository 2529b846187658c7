"""Opening a book shows no password and leaves nothing behind; media may be read-only."""

import gc
import os
import shutil
import sqlite3

import numpy as np
import pytest

from accountant import Book, Budget, LedgerBusy, LedgerCorrupt, LedgerUnwritable, ParameterError
from accountant.book.databases import postgres, sqlite
from accountant.book.databases.database_names import scheme_of
from accountant.cli.exit_status import run_app
from accountant.cli.ledger import app
from mechanisms import Laplace
from tests.accountant.book.throwaway_books import exit_status_in_child

DATA = np.arange(20.0)
TENTH = Laplace(10.0)
UNPRIVILEGED = 65534
SECRET = "hunter2"
WRONG_URLS = {
    "a port that is a word": "postgresql://u:hunter2@h:port/d",
    "a port in the query": "postgresql://u:hunter2@h/d?port=hunter2",
    "a password with a slash": "postgresql://u:1/hunter2@h/d",
    "a password with a hash": "postgresql://u:1#hunter2@h/d",
    "a password with an at sign": "postgresql://u:x@hunter2@h/d",
    "half an address": "postgresql://u:hunter2@[::1/d",
    "an unknown option": "postgresql://u@h/d?hunter2=hunter2",
    "another scheme": "mysql://u:hunter2@h/d",
    "a connection string": "host=h user=u password=hunter2",
    "a connection string with a URL": "password=hunter2 host=x://y",
    "a connection string as a file": "sqlite:///host=h password=hunter2",
    "a URL that lacks a slash": "sqlite:///postgresql:/u:hunter2@h/d",
}


@pytest.mark.parametrize("what", WRONG_URLS)
def test_a_wrong_url_is_refused_in_one_line_without_its_password(
    what, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("psycopg")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError) as refused:
        Book.open(WRONG_URLS[what])
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(refused.value)
    url = WRONG_URLS[what].removeprefix("sqlite:///")
    assert run_app(app, "ledger", ["status", url]) == 2
    said = capsys.readouterr()
    assert SECRET not in said.err + said.out
    assert len(said.err.splitlines()) == 1
    assert SECRET not in str(scheme_of(url))
    assert os.listdir(tmp_path) == []


def test_what_may_hold_a_password_is_in_no_name_and_no_error(postgres_server, monkeypatch):
    place = postgres_server.database()
    url = f"{place.url}&password={SECRET}&sslpassword={SECRET}&application_name={SECRET}"
    with Book.create(url, wait=0.2) as book:
        assert SECRET not in repr(book)
        assert repr(book).startswith("Book('postgresql://postgres@")
        assert str(postgres_server.folder) in repr(book).replace("%2F", "/")
        book.dataset("d", Budget(1.0))
        other = place.hold_lock()
        with book.ledger("d", DATA) as ledger, pytest.raises(LedgerBusy) as busy:
            ledger.spend(TENTH)
        assert SECRET not in str(busy.value)
        other.close()
    gone = url.replace(str(postgres_server.folder), "/nowhere")
    with pytest.raises(LedgerUnwritable, match="no server listens") as refused:
        Book.open(gone)
    assert SECRET not in str(refused.value)
    assert postgres._shown_name({"dbname": f"host=h password={SECRET}"}) == "postgresql://@/"


def test_words_in_a_query_may_be_joined_by_a_plus(postgres_server):
    place = postgres_server.database()
    url = place.url.replace("-csearch_path", "-c+search_path")
    assert url != place.url
    with Book.create(url) as book:
        book.dataset("d", Budget(1.0))
    assert place.fetch("SELECT count(*) FROM entries")[0][0] == 2


def open_descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are not listed here")
def test_a_failed_open_leaves_no_descriptor_open(sqlite_book, tmp_path, request):
    Book.create(sqlite_book.url).close()
    other = tmp_path / "other.db"
    other.write_bytes(b"no database at all, but long enough to be one" * 100)
    pin = tmp_path / "pin"
    pin.write_text("no pin")
    kept, before = [], None
    for _ in range(3):
        for url, options in (
            (sqlite_book.url, {"pin": tmp_path / "nowhere" / "pin"}),
            (sqlite_book.url, {"pin": pin}),
            (f"sqlite:///{other}", {}),
        ):
            with pytest.raises((ParameterError, LedgerCorrupt)) as refused:
                Book.open(url, **options)
            kept.append(refused.value)  # and its traceback, which holds what was local
        before = open_descriptors() if before is None else before
    assert open_descriptors() == before


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are not listed here")
def test_a_failed_open_leaves_no_connection_open(postgres_server, monkeypatch):
    place, kept = postgres_server.database(), []
    Book.create(place.url).close()
    monkeypatch.setattr(postgres.Postgres, "ask", lambda *_, **__: [("off",)])
    before = open_descriptors()
    for _ in range(3):
        with pytest.raises(ParameterError, match="fsync on") as refused:
            Book.open(place.url)
        kept.append(refused.value)
    assert open_descriptors() == before


@pytest.mark.parametrize(
    "words",
    [
        ("--users", "1.5"),
        ("--users", "0"),
        ("--notion", "pld"),
        ("--notion", "zcdp"),
        ("--unit", " "),
        ("--delta", "2"),
        ("--pin", "nowhere/pin"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("name", ["d", "d "])
def test_a_failed_open_makes_no_file(tmp_path, monkeypatch, capsys, words, name):
    monkeypatch.chdir(tmp_path)
    status = run_app(app, "ledger", ["open", "new.db", name, "--epsilon", "1", *words])
    assert status == 2
    assert os.listdir(tmp_path) == []


def test_a_book_whose_pin_knows_entries_is_not_made_anew(sqlite_book, tmp_path):
    pin = tmp_path / "head.pin"
    Book.create(sqlite_book.url, pin=pin).close()
    sqlite_book.path.unlink()
    with pytest.raises(LedgerCorrupt, match="is empty, though entries of it are known"):
        Book.open(sqlite_book.url, pin=pin)
    assert os.listdir(tmp_path) == ["head.pin"]


def as_a_reader(folder, work):
    """Run ``work`` as a user who may not write, in a folder that no one may write."""

    def reads():
        if os.getuid() == 0:
            for one in folder.parents:
                if one == folder.parent or one.name.startswith(("pytest-", "popen-")):
                    one.chmod(0o755)
            os.setuid(UNPRIVILEGED)
        work()

    folder.chmod(0o555)
    try:
        return exit_status_in_child(reads)
    finally:
        folder.chmod(0o755)


@pytest.fixture
def media(tmp_path):
    folder = tmp_path / "media"
    folder.mkdir()
    with Book.create(f"sqlite:///{folder / 'book.db'}") as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            ledger.release(TENTH, np.sum)
    return folder


def test_a_book_on_read_only_media_is_read_and_not_spent_from(media):
    def reads():
        with Book.open(f"sqlite:///{media / 'book.db'}") as book:
            assert book.spent("d") == 0.1
            assert [line.outcome for line in book.history("d")] == ["answered"]
            assert book.verify().entries == 4
            with book.ledger("d", DATA) as ledger, pytest.raises(LedgerUnwritable):
                ledger.release(TENTH, np.sum)

    assert as_a_reader(media, reads) == 0
    assert os.listdir(media) == ["book.db"]


def test_read_only_media_without_the_end_of_the_log_are_refused(media):
    db = sqlite3.connect(media / "book.db", isolation_level=None)
    with Book.open(f"sqlite:///{media / 'book.db'}") as book, book.ledger("d", DATA) as ledger:
        ledger.spend(TENTH)
        for end in ("", "-wal"):
            shutil.copy(media / f"book.db{end}", media / f"cut.db{end}")
    db.close()

    def reads():
        with pytest.raises(LedgerUnwritable, match="copy it with its -wal file"):
            Book.open(f"sqlite:///{media / 'cut.db'}")

    assert as_a_reader(media, reads) == 0


@pytest.mark.parametrize("is_reading", [False, True])
def test_a_writer_elsewhere_is_noticed_by_who_reads_without_locks(media, monkeypatch, is_reading):
    path = media / "book.db"
    monkeypatch.setattr(sqlite.SQLite, "_mode", mode_without_locks)

    def spend_elsewhere():
        with Book.open(f"sqlite:///{path}") as other, other.ledger("d", DATA) as ledger:
            ledger.spend(TENTH)

    def read(storage):
        with storage.reading():
            if is_reading:
                spend_elsewhere()

    with Book.open(f"sqlite:///{path}") as book:
        assert book.spent("d") == 0.1
        monkeypatch.undo()
        if not is_reading:
            spend_elsewhere()
        with pytest.raises(LedgerCorrupt, match="was replaced while it was open"):
            read(book._log.storage)


def mode_without_locks(storage):
    storage._is_immutable = True
    return "ro&immutable=1"
