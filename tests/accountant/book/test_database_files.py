"""Row 17: a full, read-only, failing or damaged disk refuses before anything is drawn."""

import os
import resource
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from accountant import Book, Budget, BudgetExceeded, LedgerCorrupt, LedgerUnwritable, ParameterError
from accountant.book.databases import sqlite
from mechanisms import Laplace
from tests.accountant.book.throwaway_books import exit_status_in_child, unlooked

DATA = np.arange(20.0)
TENTH = Laplace(10.0)
UNPRIVILEGED = 65534


def opened(file):
    with Book.create(file.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            ledger.release(TENTH, np.sum)


def refuses(book, error, words):
    with book.ledger("d", DATA) as ledger:
        ledger._noise_fingerprint()
        ledger._noise = None  # whoever draws now fails
        ledger._book_meter.fingerprint = lambda: "0" * 32
        with pytest.raises(error, match=words):
            ledger.release(TENTH, unlooked)


def test_a_read_only_book_can_be_read_and_not_spent(sqlite_book):
    opened(sqlite_book)
    before = sqlite_book.hash_rows()
    sqlite_book.path.chmod(0o444)

    def reads():
        if os.getuid() == 0:  # to whom every file may be written
            for folder in sqlite_book.path.parents:
                if folder.name.startswith(("pytest-", "popen-")):
                    folder.chmod(0o755)
            sqlite_book.path.parent.chmod(0o777)
            os.setuid(UNPRIVILEGED)
        with Book.open(sqlite_book.url) as book:
            assert book.spent("d") == 0.1
            assert book.history("d")[0].outcome == "answered"
            book.verify()
            refuses(book, LedgerUnwritable, "readonly")

    assert exit_status_in_child(reads) == 0
    assert sqlite_book.hash_rows() == before


def test_a_read_only_folder_lets_nothing_be_made(sqlite_book):
    sqlite_book.path.parent.chmod(0o555)

    def makes():
        if os.getuid() == 0:
            os.setuid(UNPRIVILEGED)
        with pytest.raises((LedgerUnwritable, ParameterError)):
            Book.create(sqlite_book.url)

    assert exit_status_in_child(makes) == 0
    sqlite_book.path.parent.chmod(0o755)
    assert not sqlite_book.path.exists()


def test_a_full_disk_refuses_before_drawing(sqlite_book):
    opened(sqlite_book)

    def fills():
        with Book.open(sqlite_book.url) as book, book.ledger("d", DATA) as ledger:
            ledger.spend(TENTH)
            size = os.path.getsize(f"{sqlite_book.path}-wal")
            limit = (size + 100, resource.RLIM_INFINITY)  # no whole page fits any more
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            before = sqlite_book.hash_rows()
            refuses(book, LedgerUnwritable, "nothing was answered")
            assert sqlite_book.hash_rows() == before
            assert book.spent("d") == 0.2

    assert exit_status_in_child(fills) == 0
    with Book.open(sqlite_book.url) as book:
        assert book.spent("d") == 0.2
        book.verify()


def test_a_full_disk_after_the_draw_keeps_the_answer_back(sqlite_book):
    opened(sqlite_book)

    def fills():
        with Book.open(sqlite_book.url) as book, book.ledger("d", DATA) as ledger:

            def fill(data):
                size = os.path.getsize(f"{sqlite_book.path}-wal")
                limit = (size + 100, resource.RLIM_INFINITY)
                resource.setrlimit(resource.RLIMIT_FSIZE, limit)
                return data.sum()

            with pytest.raises(LedgerUnwritable):
                ledger.release(TENTH, fill, label="sum")

    assert exit_status_in_child(fills) == 0
    with Book.open(sqlite_book.url) as book:
        assert book.spent("d") == 0.2
        assert [line.outcome for line in book.history("d")] == ["answered", "reserved"]
        book.verify()


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace on this machine")
def test_a_disk_that_fails_to_flush_refuses_before_drawing(sqlite_book):
    opened(sqlite_book)
    program = textwrap.dedent(f"""
        import numpy as np
        from accountant import Book, LedgerUnwritable
        from mechanisms import Laplace

        def unlooked(_):
            raise SystemExit("looked")

        with Book.open({sqlite_book.url!r}) as book, book.ledger("d", np.arange(20.0)) as ledger:
            try:
                ledger.release(Laplace(10.0), unlooked)
            except LedgerUnwritable as error:
                print("refused", error.strerror)
    """)
    words = ["strace", "-f", "-o", os.devnull, "-e", "trace=fdatasync",
             "-e", "inject=fdatasync:error=EIO", sys.executable, "-c", program]  # fmt: skip
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    if "ptrace" in ran.stderr:
        pytest.skip("this machine lets no process trace another")
    assert ran.stdout.startswith("refused"), ran.stderr


def test_what_is_no_book_is_refused(sqlite_book):
    sqlite_book.path.write_bytes(b"no database at all, but long enough to be one" * 100)
    before = sqlite_book.path.read_bytes()
    with pytest.raises(LedgerCorrupt):
        Book.open(sqlite_book.url)
    assert sqlite_book.path.read_bytes() == before


def test_another_database_is_no_book(sqlite_book):
    import sqlite3

    db = sqlite3.connect(sqlite_book.path)
    db.execute("CREATE TABLE others (x)")
    db.commit()
    db.close()
    with pytest.raises(LedgerCorrupt, match="is no book"):
        Book.open(sqlite_book.url)


def test_a_book_that_is_not_there_is_not_made_when_it_is_only_read(sqlite_book):
    with pytest.raises(ParameterError, match="a book that is there"):
        Book.open(sqlite_book.url)
    with pytest.raises(ParameterError, match=r"can be looked at \(File name too long\)"):
        Book.open(f"sqlite:///{sqlite_book.path.parent}/{'x' * 300}")
    with pytest.raises(ParameterError, match=r"in a folder that is there \(a disk not mounted"):
        Book.open(f"sqlite:///{sqlite_book.path.parent}/nowhere/book.db")
    assert list(sqlite_book.path.parent.iterdir()) == []


@pytest.mark.parametrize(
    "kind",
    ["nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "9p",
     "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone"],
)  # fmt: skip
def test_disks_of_the_network_are_refused(sqlite_book, monkeypatch, kind):
    monkeypatch.setattr(sqlite, "file_system", lambda _: kind)
    with pytest.raises(ParameterError, match=f"not on {kind}; use PostgreSQL"):
        Book.create(sqlite_book.url)


def test_the_file_system_is_that_of_the_deepest_mount(tmp_path):
    if not os.path.exists("/proc/self/mounts"):
        pytest.skip("this machine does not tell its mounts")
    assert sqlite.file_system(tmp_path)
    assert sqlite.file_system(Path("/proc/self")) == "proc"


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
    with Book.create(sqlite_book.url) as book:
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
    with Book.create(sqlite_book.url) as book:
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
    with Book.create(sqlite_book.url) as book:
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
