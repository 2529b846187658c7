"""`dp-attest audit target` against code that attacks its audit: forged verdicts, no end, leaks."""

import contextlib
import itertools
import json
import os
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from audits.__main__ import main
from audits.runner import target_supervisor

CODE = """
import json, os, sys, time
import numpy as np

VERDICT = json.dumps({
    "epsilon_lower": 0.0, "confidence": 0.95, "runs": 20000, "outcome": "SURVIVED",
    "witness": "FORGED", "evidence": "FORGED", "seconds": 0.1, "decisive": True,
    "verdict_lower": 0.0, "guesses": [10000, 20000, 20000],
}).encode() + b"\\n"

def half(value, rng, size):
    return value + rng.laplace(scale=0.5, size=size)

def honest(value, rng, size):
    return value + rng.laplace(size=size)

def open_files():
    return [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]

def write_everywhere(words):
    for number in open_files():
        try:
            os.write(number, words)
        except OSError:
            pass

def writes_a_verdict(value, rng, size):
    write_everywhere(VERDICT)
    os._exit(0)

def patches_the_audit(value, rng, size):
    from audits.claims.findings import Finding, GuessCounts
    Finding.refutes = GuessCounts.refutes = lambda *_, **__: False
    GuessCounts.epsilon_lower = lambda *_, **__: 0.0
    return half(value, rng, size)

def floods(value, rng, size):
    while True:
        write_everywhere(b"\\xff" * 65536)

def sends_a_bomb(value, rng, size):
    head = (1 << 60).to_bytes(8, "big")
    write_everywhere(head + bytes(64))
    time.sleep(600)

def never_ends(value, rng, size):
    while True:
        pass

def eats(value, rng, size):
    held = [np.ones(1 << 23) for _ in range(40)]  # 64 MiB each, 2.5 GiB together
    return honest(value, rng, size)

def fork(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid

def eats_in_parts(value, rng, size):
    def part():
        held = np.ones(1 << 25)  # 256 MiB
        time.sleep(600)
    for _ in range(10):
        fork(part)
    time.sleep(600)

def forks(value, rng, size):
    for _ in range(24):
        fork(lambda: time.sleep(600))
    time.sleep(600)

def daemon(name):
    def second():
        with open("new", "w") as file:
            file.write(str(os.getpid()))
        os.rename("new", name)
        time.sleep(600)
    def first():
        os.setsid()
        fork(second)
    if not os.path.exists(name):
        os.waitpid(fork(first), 0)
        while not os.path.exists(name):
            time.sleep(0.01)

def leaves_a_daemon(value, rng, size):
    daemon("pid")
    return honest(value, rng, size)

def leaves_a_daemon_and_hangs(value, rng, size):
    daemon("pid")
    time.sleep(600)

def leaves_a_daemon_and_dies(value, rng, size):
    daemon("pid")
    os.abort()

def ends_its_parent(value, rng, size):
    with open("pid", "w") as file:
        file.write(str(os.getpid()))
    os.kill(os.getppid(), 9)
    time.sleep(600)

class Answer:
    def __init__(self, number):
        self.number = number
    def __reduce__(self):
        return os.close, (0,)
    def __repr__(self):
        return "Answer"

def objects(value, rng):
    return Answer(float(value + rng.laplace(scale=0.5)))
"""
SLOW_IMPORT = "import time\ntime.sleep(600)"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "hostile.py").write_text(textwrap.dedent(CODE))
    (tmp_path / "slow.py").write_text(SLOW_IMPORT)
    for name, value in {"a": 0.0, "b": 1.0}.items():
        np.save(tmp_path / f"{name}.npy", value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    yield tmp_path
    with contextlib.suppress(OSError, ValueError):  # only where a test fails
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def words(name, *more):
    return ["target", name, "--epsilon", "1", "--pair", "a.npy", "b.npy", "--allow-import",
            "--runs", "4000", "--seed", "1", *more]  # fmt: skip


def lives(pid):
    """Whether the process runs: a zombie has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(pid):
    """Whether the process ends, which nothing here waits for."""
    for _ in range(600):
        if not lives(pid):
            return True
        time.sleep(0.1)
    return False


def refused(name, folder, capfd, *more):
    """The one line of an audit that ends without a verdict."""
    assert main(words(f"hostile:{name}", "--json", "r.json", *more)) == 2
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert not (folder / "r.json").exists()
    return shown.err


def test_a_verdict_that_the_code_writes_is_none(folder, capfd):
    assert "FORGED" not in refused("writes_a_verdict", folder, capfd)


@pytest.mark.parametrize("name", ["floods", "sends_a_bomb"])
def test_what_is_no_answer_is_refused(name, folder, capfd):
    assert "that answers" in refused(name, folder, capfd)


def test_the_process_of_the_code_computes_no_verdict(folder, capfd):
    assert main(words("hostile:patches_the_audit", "--json", "r.json")) == 1
    (row,) = json.loads((folder / "r.json").read_text())["findings"]
    assert row["epsilon_lower"] > 1


def test_objects_are_read_where_they_are_made(folder, capfd):
    assert main(words("hostile:objects")) == 1
    os.fstat(0)


@pytest.mark.parametrize("name", ["hostile:never_ends", "slow:function"])
def test_code_that_never_ends_is_stopped(name, folder, capfd):
    assert main(words(name, "--max-seconds", "2")) == 2
    assert "that ends within --max-seconds 2" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["eats", "eats_in_parts"])
def test_memory_is_limited(name, folder, capfd):
    assert "--max-memory 0.4" in refused(name, folder, capfd, "--max-memory", "0.4")


def test_processes_are_limited(folder, capfd):
    assert "--max-processes 8" in refused("forks", folder, capfd, "--max-processes", "8")


@pytest.mark.parametrize(
    ("name", "more", "status"),
    [("leaves_a_daemon", (), 0), ("leaves_a_daemon_and_hangs", ("--max-seconds", "8"), 2),
     ("leaves_a_daemon_and_dies", (), 2)],
)  # fmt: skip
def test_no_process_outlives_the_audit(name, more, status, folder):
    assert main(words(f"hostile:{name}", *more)) == status
    assert not lives(int((folder / "pid").read_text()))


def test_an_interrupt_leaves_no_process(folder):
    process = subprocess.Popen(
        [sys.executable, "-m", "audits", *words("hostile:leaves_a_daemon_and_hangs")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while not (folder / "pid").exists() and process.poll() is None:
            time.sleep(0.1)
        process.kill()  # even so
        process.wait()
    finally:
        process.kill()
    assert ends(int((folder / "pid").read_text()))


def test_the_death_of_the_supervisor_ends_the_code(folder, capfd):
    assert "its supervisor" in refused("ends_its_parent", folder, capfd)
    assert ends(int((folder / "pid").read_text()))


def test_the_supervisor_sees_a_process_that_ends_before_the_last_one_starts(tmp_path):
    once = f"mkdir {tmp_path}/first 2>/dev/null && exit 3; exec sleep 9"
    pipes = [os.pipe() for _ in range(5)]
    ends = [write for _, write in pipes]
    work = {"sockets": ends, "memory": 2**32, "processes": 5, "command": ["/bin/sh", "-c", once]}
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", target_supervisor.__file__, json.dumps(work)],
        **dict.fromkeys(("stdin", "stdout"), subprocess.PIPE),
        pass_fds=ends,
    )
    for end in itertools.chain(*pipes):
        os.close(end)
    try:
        assert select.select([process.stdout], [], [], 8.0)[0]
        assert json.loads(process.stdout.read()) == {"why": "ended", "code": 3}
    finally:
        process.communicate()  # closes its input, so that it ends all processes


@pytest.mark.parametrize(
    ("option", "value"),
    [("--max-seconds", "0"), ("--max-seconds", "nan"), ("--max-memory", "much"),
     ("--max-memory", "-1"), ("--max-processes", "2.5"), ("--max-processes", "-1")],
)  # fmt: skip
def test_limits_are_checked_before_any_import(option, value, folder, capfd):
    (folder / "hostile.py").write_text("open('imported', 'w').close()")
    assert re.search(f"{option} must be", refused("half", folder, capfd, option, value))
    assert not (folder / "imported").exists()


def test_processes_of_several_jobs_give_the_same_row(folder):
    for jobs in ("1", "3"):
        assert main(words("hostile:half", "--jobs", jobs, "--json", f"{jobs}.json")) == 1
    one, three = (json.loads((folder / f"{jobs}.json").read_text()) for jobs in "13")
    for result in (one, three):
        del result["findings"][0]["seconds"]
    assert one["findings"] == three["findings"]
