"""A program in any language as a release: it reads requests and writes answers, as lines of JSON.

A request is ``{"value": V, "runs": N, "seed": S}``, its answer ``{"outputs": [...]}`` with an
output for each run.  An ``errors`` beside the outputs has the text of each run that failed, and
null for the others; ``seconds`` is the time of the runs by the program's own clock.  A line that
does not begin with a brace is no answer, and is dropped, as is what goes to standard error.  The
page ``docs/programs.md`` is the protocol for those who write such a program.

One process answers many requests, or with ``once`` one run, so that its end is an outcome too.
The program learns nothing but what a request has: of the pair one value.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import selectors
import shlex
import signal
import subprocess
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, final

import numpy as np

from accountant.domains import Interval
from accountant.errors import ParameterError
from audits.runs.release_functions import RaisedOutcome

# The first request of a call has so many runs at most, a later one as many as fill an answer of
# about ANSWER_BYTES by the one before, but at most MAX_REQUEST_RUNS.  Lines stay short, and which
# requests there are depends on no measured time: a seed repeats them.
FIRST_RUNS, MAX_REQUEST_RUNS, ANSWER_BYTES = 10, 1000, 1 << 22
MAX_ANSWER_BYTES = 1 << 28  # of an answer, and of what may be written before it
MAX_COMPLAINT = 4096  # bytes of standard error that are kept, from its end
MAX_SHOWN = 200  # characters of the line of standard error that a message shows
# A line that names an error in Python, JavaScript, Java, R and others.
ERROR_LINE = re.compile(r"[\w.]*(Error|Exception|error)\b")
SEEDS = 1 << 53  # seeds are below this, so that they are exact where all numbers are floats
EXACT_INTEGERS = 1 << 53  # floats hold every integer up to here
GRACE = 0.5  # seconds in which a program may end by itself once its input is closed
TIMEOUT, SECONDS = Interval(0.0, 1e6, "(]"), Interval(0.0, 1e6, "[]")
# What a program had in all runs, whatever it is; see `audits.attacks.not_tested`.
FIXED = "its command line, environment and files"


@final
class Command:
    """A release that a program in any language makes: wherever an audit takes a function.

    The program reads requests on standard input and answers on standard output, a line of JSON
    each; `docs/programs.md` is the protocol.  Processes are started when runs are asked for, one
    for each thread, and end with `close`, with the ``with`` block, or with this object.

    Parameters
    ----------
    command : str or sequence of str
        The program and its arguments.  A text is split as a shell would, and no shell runs it.
    once : bool, optional
        Start the program anew for each run, with its input closed after the request.  Then an exit
        status is an outcome like others, and a program may keep its output until it ends.
    timeout : float, optional
        Seconds in which the program must answer a request, of at most 1,000 runs, its start
        included.

    Raises
    ------
    ParameterError
        If an argument is out of its range.  A call raises it if the program cannot be started,
        ends, answers late, or writes an answer that is none.

    Examples
    --------
    >>> import numpy as np
    >>> from audits import Command
    >>> answer = '{"outputs": [2.5]}'
    >>> with Command(["echo", answer], once=True) as release:
    ...     release(0.0, np.random.default_rng(0), 2)
    array([2.5, 2.5])
    """

    def __init__(
        self, command: str | Sequence[str], *, once: bool = False, timeout: float = 60.0
    ) -> None:
        try:
            words = shlex.split(command) if isinstance(command, str) else list(command)
        except ValueError:  # a quotation without an end
            words = []
        if not words or not all(isinstance(word, str) and "\0" not in word for word in words):
            allowed = 'a program and its arguments, such as ["node", "release.mjs"]'
            raise ParameterError("command", command, allowed)
        if os.name == "nt":
            raise ParameterError("command", shlex.join(words), "run on Linux, macOS or in WSL")
        self.words, self.once = tuple(words), once
        self.timeout = TIMEOUT.check("timeout", timeout)
        self.__name__ = " ".join(shlex.join(words).split())  # what reports call it
        self._seconds = 0.0
        self._idle: list[_Process] = []  # processes that wait for a request
        self._finalizer = weakref.finalize(self, _end_all, self._idle, os.getpid())

    @classmethod
    def sql(cls, url: str, query: str, *, timeout: float = 60.0) -> Command:
        """A query as a release: each run is one execution, whose parameter ``:value`` is the value.

        Parameters
        ----------
        url : str
            ``sqlite:///FILE``, ``postgresql://USER@HOST/DATABASE``, ``duckdb:///FILE``, or
            ``MODULE://USER@HOST:PORT/DATABASE`` of another module of the DB-API, such as
            ``pymysql``.  A password stands in it as ``${NAME}``, a variable of the environment.
        query : str
            One statement.  Of a value that is a dictionary, its keys are the parameters.
        timeout : float, optional
            Seconds in which 1,000 executions must end.

        Returns
        -------
        Command
            The release.  Nothing that the query writes is committed.

        Raises
        ------
        ParameterError
            If the URL has no scheme, or a password that is not a variable.
        """
        import sys
        from urllib.parse import urlsplit

        from audits.runs import sql_program

        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
        if not parts.scheme or "://" not in url:
            allowed = "a URL, such as sqlite:///FILE or postgresql://USER@HOST/DATABASE"
            raise ParameterError("url", url if "@" not in url else "another text", allowed)
        if parts.password and not parts.password.startswith("$"):
            allowed = "without a password, which a report would show: write ${NAME}, a variable"
            raise ParameterError("url", f"{parts.scheme}://{parts.username}:...", allowed)

        # With -P no file beside it can replace a module of Python.
        release = cls([sys.executable, "-P", sql_program.__file__, url, query], timeout=timeout)
        release.__name__ = " ".join(query.split())
        return release

    @property
    def takes_size(self) -> bool:
        """Whether one process makes many runs."""
        return not self.once

    def clock(self) -> float:
        """Seconds that runs took so far: by the program's own clock if it says, else by answers.

        Encoding a value and decoding outputs, which may depend on the value, have no part in it.
        """
        return self._seconds

    def __call__(self, value: Any, rng: np.random.Generator, size: int) -> Any:
        """Outputs of ``size`` runs on the value; each request has a seed of its own."""
        try:
            encoded_value = json.dumps(value, allow_nan=False, default=_as_json)
        except (TypeError, ValueError, RecursionError):
            allowed = "values that JSON holds: finite numbers, texts, null, lists, tables of these"
            raise ParameterError("pair", type(value).__name__, allowed) from None
        outcomes: list[Any] = []
        most_runs = 1 if self.once else FIRST_RUNS
        while len(outcomes) < size:
            runs = min(size - len(outcomes), most_runs)
            seed = int(rng.integers(SEEDS))
            request = f'{{"value": {encoded_value}, "runs": {runs}, "seed": {seed}}}\n'
            more_outcomes, answer_bytes = self._outcomes(request.encode(), runs)
            outcomes += more_outcomes
            if not self.once:
                most_runs = min(max(ANSWER_BYTES * runs // answer_bytes, 1), MAX_REQUEST_RUNS)
        return _as_numbers(outcomes)

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Command({self.__name__!r})"

    def __reduce__(self) -> tuple[Callable[..., Command], tuple[tuple[str, ...]]]:
        # Workers elsewhere start processes of their own.
        rebuild = functools.partial(Command, once=self.once, timeout=self.timeout)
        return rebuild, (self.words,)

    def close(self) -> None:
        """End all processes; a further call starts new ones."""
        _end_all(self._idle, os.getpid())

    def _outcomes(self, request: bytes, runs: int) -> tuple[list[Any], int]:
        """The outcome of each run of a request, and the length of the answer."""
        try:
            process = self._idle.pop()
        except IndexError:  # none is idle: this is the first request, or another thread asks too
            process = self._started()
        is_reusable = False
        try:
            begin = time.perf_counter()
            line = process.answer(request, time.monotonic() + self.timeout, last=self.once)
            seconds = time.perf_counter() - begin
            if line is None or (self.once and process.status != 0):
                ending, complaint = process.ending(), process.complaint()
                if not self.once:
                    is_single = process.status == 0  # it may have made one run, as a script does
                    hint = "; one that makes one run and ends needs once" * is_single
                    shown = f"{ending}{f' ({complaint})' * bool(complaint)}{hint}"
                    allowed = "a program that answers each request and then reads the next"
                    raise self._refused(f"{allowed}: it ended with {shown}")
                self._seconds += seconds
                return [RaisedOutcome(ending, complaint)], 0
            outcomes, own_seconds = self._read(line, runs)
            self._seconds += seconds if own_seconds is None else own_seconds
            is_reusable = not self.once
        except TimeoutError:
            dropped = process.dropped_lines
            garbage = f" (it wrote {dropped:,} lines that are no answers)" if dropped else ""
            raise self._refused(
                f"a program that answers within the timeout of {self.timeout:g} s{garbage}: "
                "it must flush each answer, or be run with once, or be given more time"
            ) from None
        except _Overflow as error:
            raise self._refused(str(error)) from None
        else:
            return outcomes, len(line)
        finally:
            if is_reusable:
                self._idle.append(process)
            else:
                process.end()

    def _started(self) -> _Process:
        try:
            return _Process(self.words)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise self._refused(f"a program that can be started ({reason})") from None

    def _read(self, line: bytes, runs: int) -> tuple[list[Any], float | None]:
        """The outcomes that an answer has, and the seconds that they took if it says."""
        form = f'lines such as {{"outputs": [0.5]}}, with {runs} outputs for {runs} runs'
        try:
            answer = json.loads(line)
            outputs, errors = answer["outputs"], answer.get("errors")
            seconds = answer.get("seconds")
            errors = [None] * len(outputs) if errors is None else errors
            own_seconds = None if seconds is None else SECONDS.check("seconds", seconds)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise self._refused(
                f"a program whose answers are {form}: this one was no such line"
            ) from None
        if type(outputs) is not list or type(errors) is not list:
            raise self._refused(f"a program whose answers are {form}")
        if not len(outputs) == len(errors) == runs:
            shown = f"not {len(outputs)} outputs and {len(errors)} errors"
            raise self._refused(f"a program whose answers are {form}, {shown}")
        return [
            output if error is None else _raised(str(error))
            for output, error in zip(outputs, errors, strict=True)
        ], own_seconds

    def _refused(self, allowed: str) -> ParameterError:
        return ParameterError("command", self.__name__, allowed)


class _Overflow(ValueError):
    """Too much was written: more than an answer may be, or more answers than requests."""


@final
class _Process:
    """One process of a program: requests go in, answers come out, in step.

    No pipe ever blocks this process: while an answer is awaited, the request is written as far as
    the program reads it, and both of its outputs are read.
    """

    def __init__(self, words: tuple[str, ...]) -> None:
        self._process = subprocess.Popen(
            words,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A program in Python need not flush.  The group of its own is killed with what it
            # starts, and Ctrl-C is for this process alone.
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        self._selector = selectors.DefaultSelector()
        self._pipes: list[Any] = [self._process.stdin, self._process.stdout, self._process.stderr]
        self._stdin, *outputs = self._pipes
        for pipe in self._pipes:
            os.set_blocking(pipe.fileno(), False)
        for pipe in outputs:
            self._selector.register(pipe, selectors.EVENT_READ)
        self._answers: deque[bytes] = deque()  # lines that are answers, not yet asked for
        self._line = bytearray()  # the beginning of a line, whose end is still to come
        self._unwritten = memoryview(b"")
        self._written_bytes = 0  # by the program, since the last answer
        self._stderr_tail = b""
        self._is_open = True  # whether the program may still write to standard output
        self.dropped_lines = 0  # since the last answer
        self.status: int | None = None

    def answer(self, request: bytes, deadline: float, *, last: bool) -> bytes | None:
        """The line that answers a request; None if the program ended without one.

        If it is the ``last`` request, the input is closed after it, and the end is awaited.
        Raises TimeoutError at the deadline, `_Overflow` if too much is written.
        """
        while not last and self._receive(0.0):  # what came after the last answer
            pass
        if self._answers:
            raise _Overflow("a program that writes one answer for each request")
        self.dropped_lines = self._written_bytes = 0
        self._unwritten = memoryview(request)
        if self._is_open:
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        while self._is_open and (last or not self._answers):
            remaining_seconds = deadline - time.monotonic()
            if remaining_seconds <= 0:
                raise TimeoutError
            self._receive(remaining_seconds, closing=last)
            if self._written_bytes > MAX_ANSWER_BYTES:
                allowed = f"a program that answers in lines of at most {MAX_ANSWER_BYTES >> 20} MiB"
                raise _Overflow(f"{allowed}, with little else on its standard output")
        if not self._is_open:
            try:
                self.status = self._process.wait(max(deadline - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                raise TimeoutError from None
        if last and len(self._answers) > 1:
            raise _Overflow("a program that writes one answer for each request")
        return self._answers.popleft() if self._answers else None

    def _receive(self, seconds: float, *, closing: bool = False) -> bool:
        """Wait until a pipe is ready, then write and read what is possible; whether one was."""
        events = self._selector.select(seconds)
        for key, _ in events:
            pipe: Any = key.fileobj
            if pipe is self._stdin:
                try:
                    self._unwritten = self._unwritten[os.write(pipe.fileno(), self._unwritten) :]
                except BrokenPipeError:  # the program reads no more, and may answer all the same
                    self._unwritten = self._unwritten[:0]
                if not self._unwritten:
                    self._selector.unregister(pipe)
                    if closing:
                        pipe.close()
                continue
            chunk = os.read(pipe.fileno(), 1 << 16)
            if pipe is self._pipes[1]:
                self._add(chunk)
                self._is_open = bool(chunk)
            else:
                self._stderr_tail = (self._stderr_tail + chunk)[-MAX_COMPLAINT:]
            if not chunk:
                self._selector.unregister(pipe)
        return bool(events)

    def _add(self, chunk: bytes) -> None:
        """Split what the program wrote into lines; nothing ends the last one."""
        self._written_bytes += len(chunk)
        self._line += chunk
        if chunk and b"\n" not in chunk:
            return
        *lines, rest = bytes(self._line).split(b"\n")
        self._line = bytearray(rest if chunk else b"")
        for line in lines if chunk else [*lines, rest]:
            if line.lstrip().startswith(b"{"):
                self._answers.append(line)
            elif line.strip():
                self.dropped_lines += 1

    def ending(self) -> str:
        """How the program ended, in words."""
        if self.status is not None and self.status < 0:
            with suppress(ValueError):
                return f"signal {signal.Signals(-self.status).name}"
        return f"exit status {self.status}{' without an answer' * (self.status == 0)}"

    def complaint(self) -> str:
        """The line of standard error that names an error, else the last one."""
        lines = [
            line for line in self._stderr_tail.decode(errors="replace").splitlines() if line.strip()
        ]
        named_lines = [line for line in lines if ERROR_LINE.match(line)]
        return (named_lines or lines or [""])[-1].strip()[:MAX_SHOWN]

    def end(self) -> None:
        """Close the input, wait a moment, and kill what is left of the group."""
        process = self._process
        self._selector.close()
        for pipe in self._pipes:
            pipe.close()
        with suppress(subprocess.TimeoutExpired):
            if self.status is None and not self._unwritten:
                process.wait(GRACE)
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _end_all(idle: list[_Process], owner: int) -> None:
    """End the processes, unless this is a process that was forked from their owner."""
    while idle and os.getpid() == owner:
        idle.pop().end()


def _raised(error: str) -> RaisedOutcome:
    """The outcome of a run that failed; the class of the error is told from its message."""
    kind, colon, message = error[:MAX_SHOWN].partition(": ")
    if not colon or not kind.replace(".", "_").isidentifier():
        kind, message = "error", error[:MAX_SHOWN]
    return RaisedOutcome(kind, message)


def _as_json(value: Any) -> Any:
    """A value that `json` does not know: arrays and numbers of numpy, and tables by columns."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (set, frozenset)) or not hasattr(value, "columns"):
        raise TypeError(type(value).__name__)
    import narwhals

    columns = narwhals.from_native(value, eager_only=True).to_dict(as_series=False)
    return {str(name): list(column) for name, column in columns.items()}


def _as_numbers(outputs: list[Any]) -> Any:
    """Outputs as an array if they are numbers, or lists of numbers of one shape; else as they are.

    JSON does not tell 1 from 1.0, so integers beside floats are floats too, if floats hold them.
    """
    numbers = outputs
    while numbers and all(type(item) is list for item in numbers):
        numbers = list(itertools.chain.from_iterable(numbers))
    kinds = set(map(type, numbers))
    if not kinds or not kinds <= {int, float}:
        return outputs
    if int in kinds and max(map(abs, numbers)) > EXACT_INTEGERS:
        return outputs
    try:
        return np.array(outputs)
    except ValueError:  # lists of different lengths
        return outputs
