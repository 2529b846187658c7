"""From checked options to rows and reports: progress, interruption, resumption, exit status."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from accountant.command_line import number
from accountant.domains import Whole
from accountant.errors import ParameterError
from accountant.outputs import check_writable, write_whole
from audits.commands.options import Options
from audits.commands.watching import cluster, progress
from audits.rows import Case, Row, Settings
from audits.saved import PART, Request, Result, read, to_json, versions

FAILED, INCONCLUSIVE = 1, 3


class Interrupted(Exception):  # that is what happened
    """Somebody stopped the run; the words say what is left of it."""


def asked(
    command: str,
    names: list[str] | None,
    options: Options,
    more: dict[str, Any] | None = None,
) -> tuple[Request, int]:
    """The request and the number of threads; raises `ParameterError` before anything runs."""
    from audits.arguments import CONFIDENCE, RUNS, seeded

    runs = RUNS.check("--samples", number(options.samples))
    level = CONFIDENCE.check("--confidence", number(options.confidence))
    threads = os.cpu_count() or 1
    if options.jobs is not None:
        threads = Whole(1, 1024).check("--jobs", number(options.jobs))
    start = None if options.seed is None else Whole(0).check("--seed", number(options.seed))
    check_reports(options)
    used = seeded(start)[0] or 0
    request = Request(
        command, tuple(names or []), runs, level, used, options.html is not None, more or {}
    )
    return request, threads


def check_reports(options: Options) -> None:
    """Every report must be writable before anything runs."""
    written = None if options.json == "-" else options.json
    if options.resume and written is None:
        raise ParameterError("--resume", options.json, "given together with --json FILE")
    check_writable({"--json": written, "--html": options.html, "--junit": options.junit})


def perform(
    family: str,
    todo: list[Case],
    request: Request,
    threads: int,
    options: Options,
    absent: dict[str, str] | None = None,
    extra: tuple[str, ...] = (),
) -> Result:
    """Run the cases that are not done yet; an interruption leaves what is done in FILE.part."""
    from audits.running import run_all

    rows, request = _begun(request, options)
    left = [case for case in todo if case.subject not in rows]
    settings = Settings(request.samples, request.confidence, request.seed, request.curves)

    def result() -> Result:
        done = [rows[case.subject] for case in todo if case.subject in rows]
        return Result(request, done, versions(extra), absent or {})

    try:
        with cluster(options.dask) as executor, progress(left, executor is None) as (told, step):

            def done(row: Row) -> None:
                rows[row.subject] = row
                told(row)

            ticking = Settings(*_numbers(settings), tick=step)
            run_all(left, ticking, threads, done, executor, family)
    except KeyboardInterrupt:
        raise Interrupted(_leave(result(), len(todo), options)) from None
    if options.json not in {None, "-"}:
        Path(f"{options.json}{PART}").unlink(missing_ok=True)
    return result()


def _numbers(settings: Settings) -> tuple[int, float, int, bool]:
    return settings.samples, settings.confidence, settings.seed, settings.curves


def _begun(request: Request, options: Options) -> tuple[dict[str, Row], Request]:
    """Rows that an interrupted run of the same request has left, and its seed."""
    if not options.resume:
        return {}, request
    part = f"{options.json}{PART}"
    left = read(part, "--resume")
    seed = request.seed if options.seed is not None else left.request.seed
    same = Request(
        request.command, request.names, request.samples, request.confidence, seed,
        request.curves, request.options,
    )  # fmt: skip
    if same != left.request:
        raise ParameterError("--resume", part, f"of the same request, which was: {_words(left)}")
    return {row.subject: row for row in left.rows}, same


def _words(left: Result) -> str:
    return left.request.again + (" --html FILE" if left.request.curves else "")


def _leave(result: Result, of: int, options: Options) -> str:
    """Write what is done so far, and say so."""
    if not result.rows or options.json in {None, "-"}:
        return "interrupted: nothing was written"
    part = f"{options.json}{PART}"
    write_whole(Path(part), to_json(result))
    return f"interrupted: {len(result.rows)} of {of} rows are in {part}; go on with --resume"


def report(result: Result, options: Options) -> None:
    """Table on stdout (on stderr where stdout is JSON), and the files that were asked for."""
    from rich.console import Console

    from audits.report.terminal import show

    show(result, Console(stderr=options.json == "-"))
    written = to_json(result)
    if options.json == "-":
        sys.stdout.write(written)
    elif options.json is not None:
        write_whole(Path(options.json), written)
    if options.junit is not None:
        from audits.report.junit import to_junit

        write_whole(Path(options.junit), to_junit(result))
    if options.html is not None:
        from audits.report.page import to_html

        write_whole(Path(options.html), to_html(result))


def status(rows: list[Row], strict: bool) -> int:
    """0 all as expected, 1 something was not, 3 too few runs to decide under --strict."""
    wrong = [row for row in rows if not row.as_expected]
    if any(row.decisive for row in wrong):
        return FAILED
    if strict and not all(row.decisive for row in rows):
        return INCONCLUSIVE
    return FAILED if wrong else 0
