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

import codecs
import datetime
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
        self._idle: list[ProgramProcess] = []  # processes that wait for a request
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
        from pathlib import Path
        from urllib.parse import urlsplit

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

        program = Path(__file__).with_name("sql_program.py")
        # With -P no file beside it can replace a module of Python.
        release = cls([sys.executable, "-P", str(program), url, query], timeout=timeout)
        release.__name__ = " ".join(query.split())
        return release

    @property
    def takes_size(self) -> bool:
        """Whether one process makes many runs."""
        return not self.once

    def clock(self) -> float:
        """Seconds that runs took so far: by the program's own clock if it says, else by answers.

        Encoding a value and decoding outputs, which may depend on the value, have no part in it.

        Returns
        -------
        float
            The seconds of all runs since this object was made.
        """
        return self._seconds

    def __call__(self, value: Any, rng: np.random.Generator, size: int) -> Any:
        """Outputs of ``size`` runs on the value; each request has a seed of its own."""
        try:
            encoded_value = json.dumps(value, allow_nan=False, default=as_json)
        except (TypeError, ValueError, RecursionError):
            allowed = "values that JSON holds: finite numbers, texts, null, lists, tables of these"
            raise ParameterError("pair", type(value).__name__, allowed) from None
        outcomes: list[Any] = []
        most_runs = 1 if self.once else FIRST_RUNS
        try:
            while len(outcomes) < size:
                runs = min(size - len(outcomes), most_runs)
                seed = int(rng.integers(SEEDS))
                request = f'{{"value": {encoded_value}, "runs": {runs}, "seed": {seed}}}\n'
                try:
                    process = self._idle.pop()
                except IndexError:  # none is idle: it is the first request, or threads ask at once
                    process = ProgramProcess(self.words)
                with process:
                    begin = time.perf_counter()
                    answer = process.answer(request.encode(), self.timeout, once=self.once)
                    seconds = time.perf_counter() - begin
                    own_seconds = None
                    if isinstance(answer, RaisedOutcome):
                        outcomes.append(answer)
                    else:
                        answered_outcomes, own_seconds = read_answer(answer, runs)
                        outcomes += answered_outcomes
                        full_runs = ANSWER_BYTES * runs // len(answer)
                        most_runs = min(max(full_runs, 1), 1 if self.once else MAX_REQUEST_RUNS)
                    self._seconds += seconds if own_seconds is None else own_seconds
                if not self.once:
                    self._idle.append(process)
        except Unanswered as error:
            raise ParameterError("command", self.__name__, str(error)) from None
        return as_numbers(outcomes)

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


class Unanswered(ValueError):
    """A request without a right answer; the message says what program was expected instead."""


def read_answer(line: bytes, runs: int) -> tuple[list[Any], float | None]:
    """The outcomes of the runs that an answer has, and the seconds they took if it says."""
    expected = f'a program whose answers are lines such as {{"outputs": [0.5]}}, with {runs} '
    expected += f"outputs for {runs} runs"
    try:
        answer = json.loads(line)
        outputs, errors = answer["outputs"], answer.get("errors")
        seconds = answer.get("seconds")
        own_seconds = None if seconds is None else SECONDS.check("seconds", seconds)
        errors = [None] * len(outputs) if errors is None else errors
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Unanswered(f"{expected}: this one was no such line") from None
    if type(outputs) is not list or type(errors) is not list:
        raise Unanswered(f"{expected}: one of them was no list")
    if not len(outputs) == len(errors) == runs:
        raise Unanswered(f"{expected}, not {len(outputs)} outputs and {len(errors)} errors")
    outcomes = [
        output if error is None else RaisedOutcome.from_text(str(error))
        for output, error in zip(outputs, errors, strict=True)
    ]
    return outcomes, own_seconds


@final
class ProgramProcess:
    """One process of a program: requests go in, answers come out, in step.

    No pipe ever blocks this process: while an answer is awaited, the request is written as far as
    the program reads it, and both of its outputs are read.
    """

    def __init__(self, words: tuple[str, ...]) -> None:
        try:
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
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise Unanswered(f"a program that can be started ({reason})") from None
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
        self._dropped_lines = 0  # since the last answer
        self._status: int | None = None
        self._has_ended = False

    def __enter__(self) -> ProgramProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self.end()

    def answer(self, request: bytes, timeout: float, *, once: bool) -> bytes | RaisedOutcome:
        """The line that answers a request within a number of seconds.

        If it makes one run ``once``, its input is closed after the request and its end is awaited;
        where it ends otherwise than well, that is the outcome.  Raises `Unanswered`.
        """
        deadline = time.monotonic() + timeout
        if self._unwritten:
            raise Unanswered("a program that reads a whole request before it answers")
        self._dropped_lines = self._written_bytes = 0
        # what came after the last answer
        while not once and time.monotonic() < deadline and self._receive(0.0):
            pass
        self._unwritten = memoryview(request)
        is_answered = bool(self._answers)
        if self._is_open and not is_answered:
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        while self._is_open and (once or not self._answers):
            remaining_seconds = deadline - time.monotonic()
            if remaining_seconds <= 0 or not self._receive(remaining_seconds, closing=once):
                raise Unanswered(self._late(timeout))
        if is_answered or len(self._answers) > 1:
            raise Unanswered("a program that writes one answer for each request")
        if not self._is_open:
            try:
                self._status = self._process.wait(max(deadline - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                raise Unanswered(self._late(timeout)) from None
        if self._answers and not (once and self._status != 0):
            answer = self._answers.popleft()
            if once:
                self.end()
            return answer
        ending = self.ending()
        self.end()
        if once:
            return ending
        complaint = f" ({ending.message})" if ending.message else ""
        # A program that ends well may have made one run, as a script does.
        hint = "; one that makes one run and ends needs once" * (self._status == 0)
        raise Unanswered(
            "a program that answers each request and then reads the next: it ended with "
            f"{ending.kind}{complaint}{hint}"
        )

    def ending(self) -> RaisedOutcome:
        """How the program ended, with a line of its standard error."""
        kind = f"exit status {self._status}{' without an answer' * (self._status == 0)}"
        if self._status is not None and self._status < 0:
            with suppress(ValueError):
                kind = f"signal {signal.Signals(-self._status).name}"
        lines = self._stderr_tail.decode(errors="replace").splitlines()
        lines = [line.strip()[:MAX_SHOWN] for line in lines if line.strip()]
        named_lines = [line for line in lines if ERROR_LINE.match(line)]
        return RaisedOutcome(kind, (named_lines or lines or [""])[-1])

    def _late(self, timeout: float) -> str:
        """What was expected in place of a program that is late."""
        dropped = self._dropped_lines
        garbage = f" (it wrote {dropped:,} lines that are no answers)" if dropped else ""
        return (
            f"a program that answers within the timeout of {timeout:g} s{garbage}: it must flush "
            "each answer, or be run with once, or be given more time"
        )

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
                self.add_output(chunk)
            else:
                self._stderr_tail = (self._stderr_tail + chunk)[-MAX_COMPLAINT:]
            if not chunk:
                self._selector.unregister(pipe)
        return bool(events)

    def add_output(self, chunk: bytes) -> None:
        """Split what the program wrote into lines; an empty chunk is its end."""
        self._is_open = bool(chunk)
        self._written_bytes += len(chunk)
        if self._written_bytes > MAX_ANSWER_BYTES:
            raise Unanswered(
                f"a program that answers in lines of at most {MAX_ANSWER_BYTES >> 20} MiB, "
                "with little else on its standard output"
            )
        self._line += chunk
        *lines, self._line = self._line.split(b"\n") if b"\n" in chunk else [self._line]
        if not chunk:  # nothing ends the last line
            lines, self._line = [self._line], bytearray()
        for line in lines:
            if line.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{"):
                self._answers.append(bytes(line))
            elif line.strip():
                self._dropped_lines += 1

    def end(self) -> None:
        """Close the input, wait a moment, and kill what is left of the group."""
        if self._has_ended:
            return
        self._has_ended, process = True, self._process
        self._selector.close()
        for pipe in self._pipes:
            pipe.close()
        with suppress(subprocess.TimeoutExpired):
            if self._status is None and not self._unwritten:
                process.wait(GRACE)
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _end_all(idle: list[ProgramProcess], owner: int) -> None:
    """End the processes, unless this is a process that was forked from their owner."""
    while idle and os.getpid() == owner:
        idle.pop().end()


def as_json(value: Any) -> Any:
    """A value that `json` does not know: arrays and numbers of numpy, times, tables by columns."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if not hasattr(value, "columns"):
        raise TypeError(type(value).__name__)
    import narwhals

    table = narwhals.from_native(value, eager_only=True)
    return {
        str(column.name): [
            None if is_missing else item
            for item, is_missing in zip(column.to_list(), column.is_null().to_list(), strict=True)
        ]
        for column in table.iter_columns()
    }


def as_numbers(outputs: list[Any]) -> Any:
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
