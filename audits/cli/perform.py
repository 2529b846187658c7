"""What every command that audits does: options to a request, cases to rows, reports, exit status.

A case is a subject that is to be audited, a row its result, and a request what was asked for: the
command, names, seed and numbers of runs.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from accountant.cli.exit_status import parse_number
from accountant.domains import IntegerRange, Interval
from accountant.errors import ParameterError
from audits.cli.options import Options
from audits.cli.resume import RowFormat, run_remaining
from audits.formats.report_format import write_files
from audits.results.result_file import (
    Digests,
    Request,
    Result,
    new_result,
    read_result,
    to_json,
)
from audits.results.rows import AuditCase, ReportRow

if TYPE_CHECKING:
    from audits.runner.evidence import EvidenceBook
    from audits.runner.kept_outputs import KeptOutputs
    from audits.runner.target_processes import TargetLimits

FAILED, INCONCLUSIVE = 1, 3  # exit statuses; see `exit_status`
LIMIT = Interval(0.0, 1e6, "(]")  # seconds of --max-seconds, gibibytes of --max-memory


def parse_request(
    command: str,
    names: list[str] | None,
    options: Options,
    extra_options: dict[str, Any] | None = None,
) -> tuple[Request, int]:
    """The request and the number of threads; raises `ParameterError` before anything runs."""
    from audits.claims.arguments import CONFIDENCE, RUNS

    runs = RUNS.check("--runs", parse_number(options.runs))
    level = CONFIDENCE.check("--confidence", parse_number(options.confidence))
    threads = parse_threads(options) or os.cpu_count() or 1
    seed = parse_seed(options)
    check_resume(options)
    request = Request(
        command,
        tuple(names or []),
        runs,
        level,
        seed,
        options.out is not None,
        extra_options or {},
    )
    return request, threads


def parse_seed(options: Options) -> int:
    """The seed that was asked for, else a new one."""
    from audits.claims.arguments import seed_and_generator

    start = None
    if options.seed is not None:
        start = IntegerRange(0).check("--seed", parse_number(options.seed))
    return seed_and_generator(start)[0] or 0


def parse_threads(options: Options) -> int | None:
    """The number of threads that was asked for."""
    if options.jobs is None:
        return None
    return IntegerRange(1, 1024).check("--jobs", parse_number(options.jobs))


def parse_limits(options: Options) -> TargetLimits:
    """The limits of the code of a target."""
    from audits.runner.target_processes import TargetLimits

    return TargetLimits(
        LIMIT.check("--max-seconds", parse_number(options.max_seconds)),
        LIMIT.check("--max-memory", parse_number(options.max_memory)),
        IntegerRange(0).check("--max-processes", parse_number(options.max_processes)),
    )


def check_resume(options: Options) -> None:
    """Raise `ParameterError` before any run if there is no file to continue."""
    if options.resume and options.json in {None, "-"}:
        raise ParameterError("--resume", options.json, "given together with --json FILE")


def run_cases(
    family: str,
    todo: list[AuditCase],
    request: Request,
    threads: int,
    options: Options,
    absent: dict[str, str] | None = None,
    extra: tuple[str, ...] = (),
    kept_outputs: KeptOutputs | None = None,
) -> Result:
    """Run the cases that are not yet done; an interruption keeps the finished rows in FILE.part.

    Rows of a baseline of which nothing has changed are not run again; without a seed that is named,
    the seed is that of the baseline.  ``absent`` has the libraries that cannot be audited, with the
    reason; ``extra`` are packages whose versions the result states.
    """
    from audits.runner.baseline import compared, difference, digests_of, kept_rows

    baseline, kept_by_subject, why = None, {}, ""
    if options.baseline is not None:
        baseline = read_result(options.baseline, "--baseline")
        seed = baseline.request.seed if options.seed is None else request.seed
        request = dataclasses.replace(request, seed=seed)
        options = dataclasses.replace(options, seed=str(seed))
    has_file = options.json is not None or baseline is not None  # which needs the digests
    digests = digests_of(request) if has_file else None
    if digests is not None and options.dask is not None:
        digests = dataclasses.replace(digests, unknown="the code of a cluster is not known")
    if baseline is not None and digests is not None:
        why = difference(baseline, digests, request)
        kept_by_subject = {} if why else kept_rows(baseline, todo)
    saved_digests: list[Digests | None] = []

    def result(request: Request, rows: list[ReportRow], digests: Digests | None = None) -> Result:
        return new_result(request, rows, extra, absent, digests)

    def saved_rows(path: str, argument: str) -> tuple[Request, list[ReportRow]]:
        saved_result = read_result(path, argument)
        saved_digests.append(saved_result.digests)
        return saved_result.request, saved_result.rows

    form = RowFormat(saved_rows, lambda request, rows: to_json(result(request, rows, digests)))
    remaining = [case for case in todo if case.subject not in kept_by_subject]
    request, rows = run_remaining(family, remaining, request, threads, options, form, kept_outputs)
    if baseline is not None:
        rows = [compared(row, baseline, why) for row in rows]
    by_subject = kept_by_subject | {row.subject: row for row in rows}
    # Rows of code that changed meanwhile, or since an interruption, are of no known code.
    if digests is not None and any(
        known_digests != digests for known_digests in (digests_of(request), *saved_digests)
    ):
        changed = digests.unknown or "its code changed while it was audited"
        digests = dataclasses.replace(digests, unknown=changed)
    ordered = [by_subject[case.subject] for case in todo if case.subject in by_subject]
    return result(request, ordered, digests)


def run_and_report(
    family: str,
    todo: list[AuditCase],
    request: Request,
    threads: int,
    options: Options,
    kept_outputs: KeptOutputs | None = None,
    evidence: EvidenceBook | None = None,
) -> NoReturn:
    """Run the cases, write every report, and exit with the status of the rows.

    An alarm of the evidence to which the rows were added is a failure, whatever these rows are.
    """
    result = run_cases(family, todo, request, threads, options, kept_outputs=kept_outputs)
    write_reports(result, options)
    status = exit_status(result.rows, options.strict)
    if evidence is not None:
        options.console().print(f"Evidence: {evidence.evidence}", markup=False, highlight=False)
        status = FAILED if evidence.evidence.is_alarmed else status
    raise typer.Exit(status)


def write_reports(result: Result, options: Options) -> None:
    """Print the table on stdout (on stderr if stdout is JSON), and write the requested files."""
    from audits.report.terminal import print_report

    print_report(result, options.console())
    write_files(result, options.files)


def exit_status(rows: list[ReportRow], strict: bool) -> int:
    """0 if all is as expected, 1 if not, 3 if runs are too few to decide under --strict.

    Rows that were kept from a baseline decide nothing.
    """
    wrong = [row for row in rows if row.fails]
    if any(row.decisive for row in wrong):
        return FAILED
    if strict and not all(row.decisive or row.kept for row in rows):
        return INCONCLUSIVE
    return FAILED if wrong else 0
