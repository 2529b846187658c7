"""``dp-attest audit replay``: run a result again from its own seed, and list what differs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audits.cli.options import LIMITS, AllowImport, Options, takes

if TYPE_CHECKING:
    from audits.results.result_file import Result
    from audits.results.rows import AuditCase
    from audits.runner.target_processes import TargetLimits

CHANGED = 1  # exit status if the new result differs from the saved one
MAX_SHOWN = 20  # differences that are printed
FILE = "RESULT.json"  # what error messages call the result file
# Commands whose subjects draw their own random numbers, whatever the seed: only the outcome of each
# row is compared.
OWN_RANDOMNESS = {"libraries"}


@takes("jobs", *LIMITS)
def replay(
    result: Annotated[str, typer.Argument(metavar=FILE, help="A file that --json wrote.")],
    options: Options,
    allow_import: AllowImport = False,
) -> None:
    """Run a result again and report whether it is identical but for times.

    Other libraries draw their own randomness, so of their rows only verdicts are compared.

    Example: dp-attest audit --seed 7 --json report.json; dp-attest audit replay report.json

    Exit status: 0 the same, 1 something differs, 2 bad input, 130 interrupted.
    """
    from rich.console import Console

    from audits.cli.perform import parse_limits, parse_threads
    from audits.report.terminal import literal_text
    from audits.results.result_file import read_result, without_times

    threads, limits = parse_threads(options), parse_limits(options)
    saved_result = read_result(result, FILE)
    new_result = rerun(saved_result, threads, allow_import, limits)
    screen = Console()
    if new_result.versions != saved_result.versions:
        changed = [
            f"{name} {saved_result.versions.get(name, '-')} -> {new_result.versions.get(name, '-')}"
            for name in {**saved_result.versions, **new_result.versions}
            if saved_result.versions.get(name) != new_result.versions.get(name)
        ]
        screen.print(literal_text(f"versions differ: {', '.join(changed)}"), style="yellow")
    changes = differences(saved_result, new_result)
    for line in changes[:MAX_SHOWN]:
        screen.print(literal_text(line))
    if changes:
        screen.print(f"[bold red]{len(changes)} differences[/] in {len(saved_result.rows)} rows")
        raise typer.Exit(CHANGED)
    is_identical = without_times(saved_result) == without_times(new_result)
    agreement = "identical but for times" if is_identical else "the same verdicts"
    screen.print(
        f"[green]{agreement}[/]: {len(new_result.rows)} rows, seed {new_result.request.seed}"
    )


def rerun(before: Result, threads: int | None, allow_import: bool, limits: TargetLimits) -> Result:
    """Run the request of a result again.

    It raises `ParameterError` if the request is not one that the commands can make, and for a
    user's function unless ``allow_import`` permits to import the code that the file names.
    """
    from accountant.domains import IntegerRange
    from accountant.errors import ParameterError
    from audits.claims.arguments import CONFIDENCE, RUNS
    from audits.cli.perform import run_cases

    request = before.request
    RUNS.check(f"{FILE}: samples", request.samples)
    CONFIDENCE.check(f"{FILE}: confidence", request.confidence)
    IntegerRange(0).check(f"{FILE}: seed", request.seed)
    if not all(isinstance(name, str) for name in request.names):
        raise ParameterError(f"{FILE}: names", request.names, "a list of words")
    saved_cases, packages = _cases(before, allow_import, limits)
    threads = threads or os.cpu_count() or 1
    return run_cases(
        request.command, saved_cases, request, threads, Options(), absent={}, extra=packages
    )


def differences(before: Result, now: Result) -> list[str]:
    """The differences as text, one line each: rows that only one has, and fields that changed.

    The running time of a row, ``seconds``, is not compared, nor what a test of time measured.
    """
    from audits.runner.target import TIMING_PREFIX

    old_rows, new_rows = _by_subject(before), _by_subject(now)
    changes = [f"{subject}: only in the file" for subject in old_rows if subject not in new_rows]
    changes += [f"{subject}: not in the file" for subject in new_rows if subject not in old_rows]
    compares_verdicts_alone = before.request.command in OWN_RANDOMNESS
    for subject in [subject for subject in old_rows if subject in new_rows]:
        for key, old_value in old_rows[subject].items():
            new_value = new_rows[subject][key]
            is_timed = subject.startswith(TIMING_PREFIX)
            if key == "seconds" or ((compares_verdicts_alone or is_timed) and key != "outcome"):
                continue
            if new_value != old_value:
                shown = f"{key} was {_shorten(old_value)}, is {_shorten(new_value)}"
                changes.append(f"{subject}: {shown}")
    return changes


def _cases(
    before: Result, allow_import: bool, limits: TargetLimits
) -> tuple[list[AuditCase], tuple[str, ...]]:
    """The cases of the saved command, and the packages whose versions the result states."""
    from accountant.errors import ParameterError
    from audits.runner.execution import select_cases

    request = before.request
    if request.command == "run":
        from audits.runner.cases import cases

        return _cases_again(before, cases()), ()
    if request.command == "papers":
        from audits.papers.cases import cases as papers

        return _cases_again(before, papers()), ()
    if request.command == "libraries":
        from audits.libraries import LIBRARIES, available_cases

        every, _ = available_cases(list(request.names))
        return select_cases(request.names, every), tuple(LIBRARIES)
    if request.command == "target":
        from audits.runner.target import TargetRequest, target_cases

        if not allow_import:
            name = request.names[0] if request.names else ""
            raise ParameterError("--allow-import", name, "given, for this file names code to run")
        return target_cases(TargetRequest.from_request(request), limits), ()
    if request.command == "scores":
        from audits.runner.scores import ScoresRequest, scores_cases

        return scores_cases(ScoresRequest.from_request(request)), ()
    commands = "run, papers, libraries, target or scores"
    raise ParameterError(f"{FILE}: command", request.command, commands)


def _cases_again(before: Result, every: list[AuditCase]) -> list[AuditCase]:
    """The cases that the request names, and those that the rows name; all if it names none.

    An older file may have rows that its names no longer stand for; they are named by their rows.
    """
    from audits.runner.execution import select_cases

    repeated_subjects = {case.subject for case in every} & {row.subject for row in before.rows}
    names = before.request.names
    return select_cases((*names, *repeated_subjects) if names else (), every)


def _by_subject(result: Result) -> dict[str, dict[str, Any]]:
    """The fields of each row, with its details, by the subject of the row."""
    from audits.results.result_file import document

    contents = document(result)
    return {
        str(row["subject"]): {**row, **details}
        for row, details in zip(contents["findings"], contents["details"], strict=True)
    }


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
