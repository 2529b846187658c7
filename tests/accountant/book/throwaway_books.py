"""Where books are kept in tests: a file, or a throw-away PostgreSQL server; and how they die."""

import contextlib
import ctypes
import hashlib
import json
import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from accountant.book.chain.entries import canonical_json, next_hash

TABLES = ("entries", "blobs")


class SQLiteBookFile:
    """A book in a file, seen from outside."""

    kind = "sqlite"

    def __init__(self, path):
        self.path, self.url = path, f"sqlite:///{path}"

    def fetch(self, sql):
        # what the statement refuses leaves no connection open
        with contextlib.closing(sqlite3.connect(self.path)) as db, db:
            return db.execute(sql).fetchall()

    def tamper(self, *statements):
        """As somebody with the file would who knows SQL."""
        db = sqlite3.connect(self.path)
        for name in ("update", "delete"):
            db.execute(f"DROP TRIGGER IF EXISTS entries_no_{name}")
        for one in statements:
            db.execute(one)
        db.commit()
        db.close()

    def hold_lock(self):
        """A transaction of somebody else that is not ended."""
        db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        db.execute("BEGIN IMMEDIATE")
        return db

    def hash_rows(self):
        return hash_of_rows(self.fetch)


class PostgresBookSchema:
    """A book in a schema of a database of a server, seen from outside."""

    kind = "postgres"

    def __init__(self, folder, name):
        self.url = f"postgresql://postgres@/postgres?host={folder}&options=-csearch_path%3D{name}"
        self._to = {"host": str(folder), "user": "postgres", "dbname": "postgres"}
        self._name = name

    def connect(self, autocommit=True):
        import psycopg

        options = f"-csearch_path={self._name}"
        return psycopg.connect(**self._to, options=options, autocommit=autocommit)

    def fetch(self, sql):
        with self.connect() as db:
            return db.execute(sql).fetchall()

    def execute(self, sql):
        with self.connect() as db:
            db.execute(sql)

    def tamper(self, *statements):
        with self.connect() as db:
            db.execute("ALTER TABLE entries DISABLE TRIGGER ALL")
            for one in statements:
                db.execute(one)

    def hold_lock(self):
        db = self.connect(autocommit=False)
        db.execute("LOCK TABLE entries IN EXCLUSIVE MODE")
        return db

    def hash_rows(self):
        return hash_of_rows(self.fetch)


def hash_of_rows(ask):
    """Every row of every table, hashed in order."""
    found = hashlib.sha256()
    for table in TABLES:
        for row in ask(f"SELECT * FROM {table} ORDER BY seq"):
            found.update(repr([bytes(x) if isinstance(x, memoryview) else x for x in row]).encode())
    return found.hexdigest()


def rewritten(place, first, change):
    """SQL for a log whose hashes are right again after a change to the facts of some entries."""
    rows = place.fetch("SELECT seq, body, hash FROM entries ORDER BY seq")
    previous, words = rows[first - 2][2] if first > 1 else "0" * 64, []
    for seq, body, _ in rows[first - 1 :]:
        facts = json.loads(body)
        change(facts)
        body = canonical_json(facts)
        previous = next_hash(previous, body)
        body = body.replace("'", "''")
        words.append(f"UPDATE entries SET body = '{body}', hash = '{previous}' WHERE seq = {seq}")
    return words


class PostgresServer:
    """A PostgreSQL server of one's own on a socket in a folder that goes away."""

    def __init__(self, *settings):
        program, initdb = server_program("postgres"), server_program("initdb")
        if program is None or initdb is None:
            pytest.skip("no PostgreSQL: apt-get install postgresql")
        as_whom = {}
        if os.getuid() == 0:  # postgres refuses to be root
            found = [one for one in ("postgres", "nobody") if user_exists(one)]
            if not found:
                pytest.skip("PostgreSQL does not run as root, and there is nobody else")
            user = pwd.getpwnam(found[0])
            as_whom = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.folder = Path(tempfile.mkdtemp(prefix="dp-pg-", dir="/tmp"))
        if as_whom:
            os.chown(self.folder, as_whom["user"], as_whom["group"])
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self.folder}
        data = self.folder / "data"
        words = [initdb, "-D", data, "-A", "trust", "-U", "postgres", "-N"]
        subprocess.run(words, check=True, **quiet, **as_whom)
        words = [program, "-D", data, "-k", self.folder, "-c", "listen_addresses="]
        words += [word for one in settings for word in ("-c", one)]
        self._start = lambda: subprocess.Popen(words, **quiet, **as_whom)
        self._process = self._start()
        self._books = 0
        self._wait()

    def crash_and_recover(self):
        """What was not flushed is lost: the buffers of the log are memory of the server."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(60)
        self._process = self._start()
        self._wait()

    def _wait(self):
        import psycopg

        for _ in range(600):
            try:
                PostgresBookSchema(self.folder, "public").fetch("SELECT 1")
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        self.stop()
        pytest.skip("the PostgreSQL server did not start in 30 s")

    def database(self):
        self._books += 1
        found = PostgresBookSchema(self.folder, f"book{self._books}")
        found.execute(f"CREATE SCHEMA book{self._books}")
        return found

    def stop(self):
        self._process.send_signal(signal.SIGQUIT)  # at once: nothing here is to be kept
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def server_program(name):
    """A program of the server: Debian keeps them, by version, off the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, folders)))


def user_exists(name):
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


TRACEME, SYSCALL = 0, 24
_libc = ctypes.CDLL(None, use_errno=True)


def kill_at_system_call(stop, work):
    """Run ``work`` in a child and kill -9 it at its ``stop``-th border of a system call.

    Returns how many borders were passed, and the child's exit status or None if it was killed.
    Every call has two borders: before the kernel does it, and after.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            if _libc.ptrace(TRACEME, 0, None, None) == 0:
                os.kill(os.getpid(), signal.SIGSTOP)
                work()
                status = 0
        finally:
            os._exit(status)
    _, state = os.waitpid(pid, 0)
    if not os.WIFSTOPPED(state):
        pytest.skip("this machine lets no process trace another")
    borders = 0
    while True:
        _libc.ptrace(SYSCALL, pid, None, None)
        _, state = os.waitpid(pid, 0)
        if os.WIFEXITED(state):
            return borders, os.WEXITSTATUS(state)
        if os.WIFSIGNALED(state):
            return borders, -os.WTERMSIG(state)
        borders += 1
        if borders == stop:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return borders, None


def exit_status_in_child(work):
    """Run ``work`` in a forked child; its exit status, 0 when nothing was raised."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    _, state = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(state)


def unlooked(_):
    raise AssertionError("looked at the data")
