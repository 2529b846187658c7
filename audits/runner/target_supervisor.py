"""The process between the auditor and the processes of a user's function: it holds their limits.

`target_processes` starts this file by its path, with a description of the work as JSON in the first
argument; the reason of the end is written to standard output, as JSON.  It imports the standard
library alone, never the function.

Processes that the function starts, and whose parent ends, become children of this one (Linux's
"child subreaper").  So it can kill all of them, and does so when the auditor closes this process's
standard input or is gone, when a process of the function ends, or when a limit is exceeded.  The
processes that it starts itself, which call the function, are the *samplers*.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

# Options of Linux's prctl(2), by their numbers in <linux/prctl.h>: the signal that a process gets
# when its parent ends, whether others may read and write its memory, and whether it is a subreaper.
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
TICK = 0.05  # seconds between two looks at memory and processes; more let a limit be passed longer
LAST_SECONDS = 10.0  # longest time in which all descendants are killed again and again


def supervise(work: dict[str, Any]) -> dict[str, Any]:
    """Run the processes of the function until there is a reason to stop, end them, and return it.

    ``work`` has the ``command`` of a process, the file descriptors of ``sockets``, one for each
    process, the limit of ``memory`` in bytes, and the number of ``processes`` that the function may
    start besides these.
    """
    _process_control(PR_SET_CHILD_SUBREAPER, 1)
    _process_control(PR_SET_DUMPABLE, 0)  # other processes of the user cannot write into this one
    # These are kept until the end: one that is dropped waits for its process, as the start of the
    # next one then does too, and `_reap` would not see that the process has ended.
    started = [_start(work["command"], number, work["memory"]) for number in work["sockets"]]
    samplers = {process.pid for process in started}
    try:
        return _watch(samplers, work["memory"], work["processes"])
    finally:
        _end_all(samplers)


def _start(command: list[str], number: int, memory: int) -> subprocess.Popen[bytes]:
    """Start one process of the function, a *sampler*, with its end of a connection.

    ``number`` is the file descriptor of that end; ``memory`` limits the private memory, in bytes.
    """
    import resource  # Windows has none, where the auditor's side can still be imported

    parent = os.getpid()

    def limit() -> None:
        _process_control(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # The parent ended before the signal was asked for.
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
    return process


def _watch(samplers: set[int], memory: int, processes: int) -> dict[str, Any]:
    """Wait for a reason to stop, and return it as ``why``.

    It is "closed" (by the auditor), "ended" (a process of the function, with its exit code),
    "processes" (too many descendants) or "memory" (resident, of all descendants together).
    """
    while True:
        # Standard input (0) is readable and has no byte once the auditor has closed it.
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
    """Kill all descendants, again and again until no child is left or `LAST_SECONDS` are over."""
    deadline = time.monotonic() + LAST_SECONDS
    # First the process group of each sampler is killed at once, even if it forks quickly.
    for pid in samplers:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
    while time.monotonic() < deadline:
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
    """Yield (process id, wait status) of the children that have ended, and remove them."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            yield pid, status


def _descendants() -> list[int]:
    """The ids of all processes below this one; where /proc does not list children, none."""
    descendants: list[int] = []
    unvisited = [os.getpid()]
    while unvisited:
        tasks = f"/proc/{unvisited.pop()}/task"
        with contextlib.suppress(OSError):
            for task in os.listdir(tasks):
                with open(f"{tasks}/{task}/children", "rb") as file:
                    children = [int(word) for word in file.read().split()]
                descendants += children
                unvisited += children
    return descendants


def _resident_bytes(pid: int) -> int:
    """Physical memory of a process: the second number of its ``statm``, in pages; 0 if unknown."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE
    return 0


def _process_control(option: int, value: int) -> None:
    """Linux's prctl; other systems have none."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    answer = json.dumps(supervise(json.loads(sys.argv[1])))
    os.write(1, answer.encode())
    os._exit(0)
