"""The auditor's side of a user's function: it asks other processes for outputs, within limits.

An audit draws outputs of a function that the user names on the command line.  The function runs in
processes of its own (`target_sampler`), which a supervisor process starts and ends
(`target_supervisor`).  The auditor never imports the function: it sends requests over a socket to
each process, and computes the verdict from the outputs that come back.

The first message to a process has the names of the function and of the two values; of a program it
has the arguments of its `Command`.  Each later one is a request, a list of integers whose length
says what is asked for:

- ``[value, seed, runs]``: outputs of this number of runs, on the first value (0) or the second (1);
- ``[runs]``: numbers of sentences on how the function behaves, seen in a few further calls;
- ``[]``: whether a call of the function makes many runs, and the digest of its file;
- ``[seed, pairs, batch, 0]``: the times of batches in pairs, and the noise in them.

A program (`Command`) takes the place of the function in the same way: a process starts it, asks it
for outputs, and sends them on.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.numerics import Array
from audits.runner import target_supervisor
from audits.runner.kept_outputs import KeptOutputs, outputs_key
from audits.runner.target_messages import MALFORMED, BrokenMessage, Channel, decode_outputs
from audits.runs.command import FIXED, Command
from audits.runs.release_functions import SENTENCES, IsolatedRelease
from audits.statistics.combined_tests import MAX_LEARNING_RUNS
from audits.values.digests import digest

TARGET_METAVAR = "PKG.MODULE:FUNCTION"  # how messages and the help name the user's function
COMMAND_OPTION, SQL_OPTION = "--command", "--sql"  # the same of a program, and of a query
# An answer may have this many bytes.  One with outputs of n runs may have n / MAX_LEARNING_RUNS of
# the memory limit in addition: so all outputs that a rule is learned from are within this limit.
SMALL_ANSWER = 1 << 20
Answer = TypeVar("Answer")
GRACE = 15.0  # seconds after which a supervisor that has not ended its processes is killed
MAX_ERROR = 300  # an error text from a process of the function is cut to this many characters


@final
@dataclass(frozen=True, slots=True)
class TargetLimits:
    """Limits of a function: wall time in seconds, memory in GiB, processes that it may start."""

    seconds: float = 600.0
    memory: float = 4.0
    processes: int = 32

    @property
    def memory_bytes(self) -> int:
        """The memory in bytes."""
        return int(self.memory * (1 << 30))


@final
class TargetProcesses(IsolatedRelease):
    """Processes that run a function, to be called as ``(value, rng, size)`` with a value of a pair.

    ``value_words`` are the arguments of the command line that name the two values: each process
    reads the values itself, and ``pair`` are the values as this process reads them.  ``processes``
    is the number of processes that answer at the same time.  With ``kept_outputs`` the outputs of
    an earlier, interrupted audit are taken from a file where it has them.  If there is a
    ``command``, each process starts that program, and ``name`` is only shown.  Messages call the
    argument that names the code ``argument``.
    """

    def __init__(
        self,
        name: str,
        value_words: tuple[str, str],
        pair: tuple[Any, Any],
        limits: TargetLimits,
        processes: int,
        kept_outputs: KeptOutputs | None = None,
        command: Command | None = None,
        argument: str = TARGET_METAVAR,
    ) -> None:
        self._argument = argument
        try:
            import resource  # noqa: F401  # the supervisor needs it
        except ImportError:
            allowed = (
                "audited on Linux or macOS: the limits of a function are those of their systems"
            )
            raise ParameterError(self._argument, name, allowed) from None
        self.kept = kept_outputs
        self.failure: ParameterError | None = None  # the first one, which is raised again
        self._name, self._pair, self._limits = name, pair, limits
        code: Any = name
        if command is not None:
            self.fixed = FIXED
            arguments = {"once": command.once, "timeout": command.timeout}
            code = {"command": command.words, **arguments}
        self._first_message = [code, *value_words]
        self._digests = tuple(map(digest, pair))
        self._lock = threading.Lock()  # of the failure and the report
        self._report: bytes | None = None  # what the supervisor wrote, once it has ended
        self._facts: tuple[bool, str] | None = None  # what `_describe` returns, asked for once
        # One connection for each process: this process has the first end, that process the second.
        connections = [socket.socketpair() for _ in range(processes)]
        descriptors = [process_end.fileno() for _, process_end in connections]
        work = {
            "command": [sys.executable, "-m", "audits.runner.target_sampler"],
            "sockets": descriptors,
            "memory": limits.memory_bytes,
            "processes": limits.processes,
        }
        self._supervisor = subprocess.Popen(
            # With -I no file in the current folder can replace a module of Python, and with -S no
            # installed package is loaded.  The supervisor ends when its standard input is closed.
            [sys.executable, "-I", "-S", target_supervisor.__file__, json.dumps(work)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=descriptors,
            start_new_session=True,
        )
        deadline = time.monotonic() + limits.seconds
        # The processes that wait for a request: the connection to each, and whether it is fresh,
        # so that it still needs the first message.  The last one that answered is asked first, as
        # it has loaded its code.
        self._idle: queue.LifoQueue[tuple[Channel, bool]] = queue.LifoQueue()
        for own_end, process_end in connections:
            process_end.close()
            self._idle.put((Channel(own_end, deadline), True))
        self._sockets = [own_end for own_end, _ in connections]

    def __enter__(self) -> TargetProcesses:
        return self

    def __exit__(self, *error: object) -> None:
        self._end()
        for connection in self._sockets:
            connection.close()

    def __call__(self, value: Any, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """Outputs of ``size`` runs, from a process that is idle; its seed is drawn from ``rng``."""
        which = 0 if value is self._pair[0] else 1
        # Only a seed is sent; the generator stays here, since it also tosses the audit's coins.
        request = [which, int.from_bytes(rng.bytes(16), "little"), size]
        max_bytes = SMALL_ANSWER + self._limits.memory_bytes * size // MAX_LEARNING_RUNS
        kept_outputs = self.kept
        if kept_outputs is None:
            return self._ask(request, max_bytes, decode_outputs)
        key = outputs_key((self._name, self._describe()[1], *self._digests), request)
        with contextlib.suppress(KeyError, BrokenMessage):
            return decode_outputs(kept_outputs.find(key))

        def keep(message: Any) -> NDArray[Any]:
            outputs = decode_outputs(message)
            kept_outputs.add(key, size, message)
            return outputs

        return self._ask(request, max_bytes, keep)

    @contextlib.contextmanager
    def without_keeping(self) -> Iterator[None]:
        """A context for calls that are no part of the audit: kept outputs are not used."""
        kept_outputs, self.kept = self.kept, None
        try:
            yield
        finally:
            self.kept = kept_outputs

    def _describe(self) -> tuple[bool, str]:
        """Whether the function takes a number of runs, and the digest of its file."""
        if self._facts is None:
            self._facts = self._ask([], SMALL_ANSWER, _decode_facts)
        return self._facts

    @property
    def takes_size(self) -> bool:
        """Whether one call of the function makes many runs, as a process of it says."""
        return self._describe()[0]

    def notes(self, runs: int) -> tuple[str, ...]:
        """Sentences on how the function behaves, from a few calls of it after ``runs`` runs."""
        return self._ask([runs], SMALL_ANSWER, _decode_notes)

    def times(self, pairs: int, batch: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Seconds and mean noise of batches in pairs, as `BatchTimer` measures them there."""

        def decode(answer: Any) -> tuple[Array, Array]:
            if not isinstance(answer, np.ndarray) or answer.shape != (2, pairs, 2):
                raise BrokenMessage
            if answer.dtype != float or not np.isfinite(answer).all():
                raise BrokenMessage
            return answer[0], answer[1]

        seed = int.from_bytes(rng.bytes(16), "little")
        return self._ask([seed, pairs, batch, 0], SMALL_ANSWER + 32 * pairs, decode)

    def _ask(self, request: list[int], max_bytes: int, decode: Callable[[Any], Answer]) -> Answer:
        """Send a request to an idle process and return its decoded answer.

        `ParameterError` shows its last argument as what was expected in place of the function, so
        the failures are written as a kind of code, such as "code that ends within ...".
        """
        channel, fresh = self._idle.get()
        try:
            if fresh:
                channel.send(self._first_message)
            channel.send(request)
            answer = channel.receive(max_bytes)
            if isinstance(answer, dict) and "error" in answer:
                message = str(answer["error"])[:MAX_ERROR]
                if "MemoryError" in message:  # The limit may be the cause.
                    message += f" (within --max-memory {self._limits.memory:g} GiB)"
                raise self._failed(message)
            return decode(answer)
        except BrokenMessage:
            raise self._failed("code that answers with outputs, and not too large") from None
        except TimeoutError:
            allowed = f"code that ends within --max-seconds {self._limits.seconds:g}"
            raise self._failed(allowed) from None
        except (EOFError, OSError):
            raise self._failed(self._reason()) from None
        finally:
            self._idle.put((channel, False))

    def _failed(self, allowed: str) -> ParameterError:
        """The error to raise: that of the first failure, since later ones are its consequences."""
        with self._lock:
            self.failure = self.failure or ParameterError(self._argument, self._name, allowed)
            return self.failure

    def _reason(self) -> str:
        """Why the connection was closed, as what was expected, from the supervisor's report."""
        # The supervisor ends by itself when a process of the function has ended.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._supervisor.wait(GRACE / 10)
        try:
            report = json.loads(self._end())
        except ValueError:
            return "code that leaves other processes alone: its supervisor has ended"
        limits = self._limits
        reason_of: dict[str, str] = {
            "memory": f"code that stays within --max-memory {limits.memory:g} GiB",
            "processes": f"code that stays within --max-processes {limits.processes}",
            "closed": "code that leaves its connection open",
        }
        ended = f"code that returns: its process exited with {report.get('code')}"
        return reason_of.get(report["why"], ended)

    def _end(self) -> bytes:
        """End all processes; return what the supervisor wrote."""
        with self._lock:
            if self._report is None:
                try:
                    self._report, _ = self._supervisor.communicate(timeout=GRACE)
                except subprocess.TimeoutExpired:
                    self._supervisor.kill()
                    self._report, _ = self._supervisor.communicate()
            return self._report


def _decode_facts(answer: Any) -> tuple[bool, str]:
    """Whether the function takes a number of runs, and the digest of its file."""
    try:
        return bool(answer["takes_size"]), str(answer["code"])[:MAX_ERROR]
    except MALFORMED as error:
        raise BrokenMessage from error


def _decode_notes(answer: Any) -> tuple[str, ...]:
    """The sentences whose numbers a process sent."""
    try:
        return tuple(SENTENCES[int(number)] for number in answer["notes"][: len(SENTENCES)])
    except MALFORMED as error:
        raise BrokenMessage from error
