"""Run cases to the end for any command: progress, interruption, continuing from a partial file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, final

from accountant.errors import ParameterError
from accountant.files import write_atomically
from audits.cli.options import Options
from audits.cli.progress import dask_executor, progress_bar
from audits.results.result_file import PARTIAL_SUFFIX, Request
from audits.results.rows import Settings
from audits.runner import execution as running
from audits.runner.execution import RunnableCase, WorkerFailed
from audits.runner.kept_outputs import SUFFIX, KeptOutputs

KEPT_SUFFIX = f"{PARTIAL_SUFFIX}{SUFFIX}"
Row = TypeVar("Row")  # of a report, or a score: with the name of its subject


class Interrupted(Exception):  # no error of the program
    """The run was interrupted; the message says which rows are saved."""


@final
@dataclass(frozen=True, slots=True)
class RowFormat(Generic[Row]):
    """How the rows of a command are written to a file and read back."""

    read: Callable[[str, str], tuple[Request, list[Row]]]
    write: Callable[[Request, list[Row]], str]


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

    ``outputs`` keeps those of rows that are not finished in a file next to it.
    """
    rows, request = _partial_rows(request, options, form)
    remaining_cases = [case for case in todo if case.subject not in rows]
    settings = Settings(
        request.samples,
        request.confidence,
        request.seed,
        request.curves,
        # Threads that are not needed for rows share the runs of each row.
        jobs=1 if options.dask is not None else max(1, threads // max(len(remaining_cases), 1)),
        repeats=request.options.get("repeats", 1),
    )

    def done() -> list[Any]:
        return [rows[case.subject] for case in todo if case.subject in rows]

    def kept() -> str:
        """Which rows are saved, in words."""
        runs = outputs.runs if outputs is not None else 0
        if not (rows or runs) or options.json in {None, "-"}:
            return "no rows were saved"
        part = f"{options.json}{PARTIAL_SUFFIX}"
        write_atomically(Path(part), form.write(request, done()))
        also = f"outputs of {runs:,} runs are in {part}{SUFFIX}, " if runs else ""
        return f"{also}{len(done())} of {len(todo)} rows are in {part}; continue with --resume"

    stopped = False
    if outputs is not None:
        outputs.begin(again=options.resume)
    try:
        with (
            dask_executor(options.dask) as executor,
            progress_bar(remaining_cases, executor is None) as (advance, step),
        ):

            def add(row: Any) -> None:
                rows[row.subject] = row
                advance(row)

            ticking = dataclasses.replace(settings, tick=step)
            running.run_all(remaining_cases, ticking, threads, add, executor, family)
    except KeyboardInterrupt:
        stopped = True
        raise Interrupted(f"interrupted: {kept()}") from None
    except ParameterError as error:
        stopped = outputs is not None and outputs.runs > 0
        if not stopped and not isinstance(error, WorkerFailed):
            raise
        kind = WorkerFailed if isinstance(error, WorkerFailed) else ParameterError
        raise kind(error.argument, error.value, f"{error.allowed} ({kept()})") from error
    finally:
        if outputs is not None:
            outputs.close(remove=not (stopped and outputs.runs))
    if options.json not in {None, "-"}:
        Path(f"{options.json}{PARTIAL_SUFFIX}").unlink(missing_ok=True)
    return request, done()


def _partial_rows(
    request: Request, options: Options, form: RowFormat[Any]
) -> tuple[dict[str, Any], Request]:
    """Rows that an interrupted run of the same request has saved, and its seed."""
    if not options.resume:
        return {}, request
    part = f"{options.json}{PARTIAL_SUFFIX}"
    before, rows = form.read(part, "--resume")
    seed = request.seed if options.seed is not None else before.seed
    same = dataclasses.replace(request, seed=seed)
    if same != before:
        command = before.repeat_command + (" --html FILE" if before.curves else "")
        raise ParameterError("--resume", part, f"of the same request, which was: {command}")
    return {row.subject: row for row in rows}, same
