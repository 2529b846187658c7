"""Run cases to the end for any command: progress, interruption, continuing from a partial file.

With ``--json FILE`` an interrupted command leaves FILE.part, with the rows of finished cases, and
for a user's function FILE.part.outputs, with the outputs that were drawn for a case that is not
finished.  ``--resume`` continues from both; a command that ends well deletes them.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, final

from accountant.cli.progress import terminal_progress
from accountant.errors import ParameterError
from accountant.files import write_atomically
from audits.cli.options import Options
from audits.results.result_file import PARTIAL_SUFFIX, Request
from audits.results.rows import Settings
from audits.runner import execution as running
from audits.runner.execution import RunnableCase, WorkerFailed
from audits.runner.kept_outputs import SUFFIX, KeptOutputs

SCHEDULER_TIMEOUT = "5s"  # how long to wait for an answer of a Dask scheduler
# At the end of the name of a file with the outputs of rows that are not finished.
KEPT_SUFFIX = f"{PARTIAL_SUFFIX}{SUFFIX}"
Row = TypeVar("Row")  # of a report, or a score: with the name of its subject


@contextlib.contextmanager
def progress_bar(
    todo: Sequence[RunnableCase[Any]], ticking: bool
) -> Iterator[tuple[Callable[[Any], None], Callable[[str], None]]]:
    """A bar on stderr with the time left, if stderr is a terminal.

    It yields two functions: the first is called with each finished row, the second while an audit
    of an algorithm goes on, once for each sampled loss.  If ``ticking``, the bar counts these too.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from audits.runner.cases import LOSS_SAMPLES

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with terminal_progress(*columns) as bar:
        algorithms = sum(case.kind == "algorithm" for case in todo)
        ticks = algorithms * LOSS_SAMPLES if ticking else 0
        task = bar.add_task("auditing", total=len(todo) + ticks)
        yield (lambda row: bar.advance(task)), (lambda subject: bar.advance(task))


@contextlib.contextmanager
def dask_executor(address: str | None) -> Iterator[Executor | None]:
    """The executor of a Dask cluster; None without an address."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise ParameterError("--dask", address, "used where `distributed` is installed") from None
    try:
        connect: Any = Client
        client = connect(address, timeout=SCHEDULER_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        allowed = f"the address of a scheduler that answers ({type(error).__name__})"
        raise ParameterError("--dask", address, allowed) from None
    with client:
        yield client.get_executor()


class Interrupted(Exception):  # no error of the program
    """The run was interrupted; the message says which rows are saved."""


@final
@dataclass(frozen=True, slots=True)
class RowFormat(Generic[Row]):
    """How the rows of a command are written to a file and read back."""

    read: Callable[[str, str], tuple[Request, list[Row]]]
    write: Callable[[Request, list[Row]], str]


@final
class _FinishedRows:
    """The rows of a command by subject, and the file in which an interruption saves them."""

    def __init__(
        self,
        rows: dict[str, Any],
        subjects: list[str],
        request: Request,
        partial_file: str | None,
        form: RowFormat[Any],
    ) -> None:
        self.by_subject, self.partial_file = rows, partial_file
        self._subjects, self._request, self._form = subjects, request, form

    @property
    def in_order(self) -> list[Any]:
        """The rows in the order of the cases."""
        return [self.by_subject[name] for name in self._subjects if name in self.by_subject]

    def save(self, kept_runs: int) -> str:
        """Write the rows to the partial file, and return a sentence that says so.

        ``kept_runs`` is the number of runs whose outputs are in the file next to it.
        """
        part = self.partial_file
        if not (self.by_subject or kept_runs) or part is None:
            return "no rows were saved"
        write_atomically(Path(part), self._form.write(self._request, self.in_order))
        also = f"outputs of {kept_runs:,} runs are in {part}{SUFFIX}, " if kept_runs else ""
        count = f"{len(self.in_order)} of {len(self._subjects)} rows"
        return f"{also}{count} are in {part}; continue with --resume"


def run_remaining(
    family: str,
    todo: Sequence[RunnableCase[Any]],
    request: Request,
    threads: int,
    options: Options,
    form: RowFormat[Any],
    outputs: KeptOutputs | None = None,
) -> tuple[Request, list[Any]]:
    """Run the remaining cases; an interruption or a failure keeps finished rows in FILE.part.

    ``outputs`` keeps those of rows that are not finished in a file next to it.  ``family`` is the
    command whose cases these are; by it a worker elsewhere finds a case from its name.
    """
    partial_file = None if options.json in {None, "-"} else f"{options.json}{PARTIAL_SUFFIX}"
    saved_rows, request = _partial_rows(request, options, form)
    subjects = [case.subject for case in todo]
    rows = _FinishedRows(saved_rows, subjects, request, partial_file, form)
    remaining_cases = [case for case in todo if case.subject not in saved_rows]
    settings = Settings(
        request.samples,
        request.confidence,
        request.seed,
        request.curves,
        # Threads that are not needed for rows share the runs of each row.
        jobs=1 if options.dask is not None else max(1, threads // max(len(remaining_cases), 1)),
        repeats=request.options.get("repeats", 1),
    )
    may_continue = False  # then the file of outputs stays, if it has any
    if outputs is not None:
        outputs.begin(again=options.resume)
    try:
        with (
            dask_executor(options.dask) as executor,
            progress_bar(remaining_cases, executor is None) as (advance, step),
        ):

            def add(row: Any) -> None:
                rows.by_subject[row.subject] = row
                advance(row)

            ticking = dataclasses.replace(settings, tick=step)
            running.run_all(remaining_cases, ticking, threads, add, executor, family)
    except KeyboardInterrupt:
        may_continue = True
        raise Interrupted(f"interrupted: {rows.save(_kept_runs(outputs))}") from None
    except ParameterError as error:
        may_continue = _kept_runs(outputs) > 0
        # It is bad usage and no failure of a worker: without kept outputs nothing is saved.
        if not may_continue and not isinstance(error, WorkerFailed):
            raise
        kind = WorkerFailed if isinstance(error, WorkerFailed) else ParameterError
        allowed = f"{error.allowed} ({rows.save(_kept_runs(outputs))})"
        raise kind(error.argument, error.value, allowed) from error
    finally:
        if outputs is not None:
            outputs.close(remove=not (may_continue and outputs.runs))
    if partial_file is not None:
        Path(partial_file).unlink(missing_ok=True)
    return request, rows.in_order


def _kept_runs(outputs: KeptOutputs | None) -> int:
    return 0 if outputs is None else outputs.runs


def _partial_rows(
    request: Request, options: Options, form: RowFormat[Any]
) -> tuple[dict[str, Any], Request]:
    """Rows that an interrupted run of the same request has saved, and its seed."""
    if not options.resume:
        return {}, request
    part = f"{options.json}{PARTIAL_SUFFIX}"
    saved_request, rows = form.read(part, "--resume")
    seed = request.seed if options.seed is not None else saved_request.seed
    continued_request = dataclasses.replace(request, seed=seed)
    if continued_request != saved_request:
        page_option = " --out FILE" if saved_request.curves else ""
        command = saved_request.repeat_command + page_option
        raise ParameterError("--resume", part, f"of the same request, which was: {command}")
    return {row.subject: row for row in rows}, continued_request
