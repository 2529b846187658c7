"""The process between the auditor and the processes of a user's function: it holds their limits.

It is run by its path and imports the standard library alone, never the function.  It is the parent
of whatever the function leaves behind, so that it can end all of it, when the auditor closes
standard input or is gone, when a process of the function ends, or when a limit is exceeded.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
TICK = 0.05  # seconds between two looks at memory and processes
LAST_SECONDS = 10.0  # for processes to end after SIGKILL
PAGE = resource.getpagesize()


def supervise(work: dict[str, Any]) -> dict[str, Any]:
    """Run the processes of the function until one reason to stop, and return it."""
    _process_control(PR_SET_CHILD_SUBREAPER, 1)
    _process_control(PR_SET_DUMPABLE, 0)  # other processes of the user cannot write into this one
    samplers = {_start(work["command"], number, work["memory"]) for number in work["sockets"]}
    try:
        return _watch(samplers, work["memory"], work["processes"])
    finally:
        _end_all(samplers)


def _start(command: list[str], number: int, memory: int) -> int:
    """Start one process of the function, with its end of a connection."""
    parent = os.getpid()

    def limit() -> None:
        _process_control(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(ValueError, OSError):  # no such limit on this system
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))

    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        [*command, str(number)],
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
        pass_fds=[number],
        start_new_session=True,
        preexec_fn=limit,  # this process has one thread  # noqa: PLW1509
    )
    os.close(number)
    return process.pid


def _watch(samplers: set[int], memory: int, processes: int) -> dict[str, Any]:
    while True:
        if select.select([0], [], [], TICK)[0] and not os.read(0, 1):
            return {"why": "closed"}
        for pid, status in _reap():
            if pid in samplers:
                return {"why": "ended", "code": os.waitstatus_to_exitcode(status)}
        descendants = _descendants()
        if len(descendants) > len(samplers) + processes:
            return {"why": "processes"}
        if sum(map(_resident_bytes, descendants)) > memory:
            return {"why": "memory"}


def _end_all(samplers: set[int]) -> None:
    """Kill all descendants, again and again until none is left."""
    end = time.monotonic() + LAST_SECONDS
    for pid in samplers:  # a whole group at once, even one that forks quickly
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
    while time.monotonic() < end:
        for pid in _descendants():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        list(_reap())
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        time.sleep(0.002)


def _reap() -> Iterator[tuple[int, int]]:
    """Yield children that have ended, and their statuses."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            yield pid, status


def _descendants() -> list[int]:
    """All processes below this one; where /proc does not list children, none."""
    descendants: list[int] = []
    unvisited = [os.getpid()]
    while unvisited:
        tasks = f"/proc/{unvisited.pop()}/task"
        with contextlib.suppress(OSError):
            for task in os.listdir(tasks):
                with open(f"{tasks}/{task}/children", "rb") as file:
                    below = [int(word) for word in file.read().split()]
                descendants += below
                unvisited += below
    return descendants


def _resident_bytes(pid: int) -> int:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * PAGE
    return 0


def _process_control(option: int, value: int) -> None:
    """Linux's prctl; other systems have none."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    answer = json.dumps(supervise(json.loads(sys.argv[1])))
    os.write(1, answer.encode())
    os._exit(0)
