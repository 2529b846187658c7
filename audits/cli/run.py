"""Four commands of ``dp-attest audit``: ``run``, ``list``, ``papers`` and ``libraries``.

``run`` audits this project's mechanisms, its zoo of broken specimens and its algorithms, and
``list`` shows what can be audited; ``papers`` audits published claims, ``libraries`` mechanisms of
other libraries that are installed.  The docstring of each command is its ``--help``.  A command
parses its options, selects cases, and leaves runs and reports to `audits.cli.perform`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from accountant.cli.vocabulary import option
from audits.cli.options import REPORTS, Options, takes


@takes(*REPORTS)
def run(options: Options) -> None:
    """Audit mechanisms, the zoo and algorithms: claimed, exact, attacked, replayed.

    A claim is FALSIFIED when an attacker guesses better than it allows, or when a run on other
    data with the same answers differs in one bit. SURVIVED means that the runs saw no violation;
    it is no proof of privacy.

    A NAME is a mechanism, which means its first instance, or else a part of the subjects meant:
    Laplace is one row, laplace all rows with that word, "low bits" the floating-point leak test.

    Examples: dp-attest audit run; dp-attest audit Laplace --runs 10000000;
    dp-attest audit --seed 7 --json report.json --out report.html; dp-attest audit list;
    dp-attest audit --baseline report.json, which runs only what has changed since

    Exit status: 0 all as expected, 1 a claim was falsified or a broken specimen survived,
    2 bad usage or input, 3 inconclusive under --strict, 130 interrupted.
    """
    from audits.cli.perform import parse_request, run_and_report
    from audits.runner.execution import select_cases

    request, threads = parse_request("run", options.names, options)
    run_and_report("run", select_cases(request.names), request, threads, options)


def list_() -> None:
    """List every subject that can be audited, with what it is."""
    from rich.console import Console
    from rich.table import Table

    from audits.papers.cases import cases as paper_cases
    from audits.report.terminal import literal_text
    from audits.runner.cases import cases

    table = Table("kind", "subject", "about")
    for case in [*cases(), *paper_cases()]:
        table.add_row(case.kind, literal_text(case.subject), literal_text(case.about))
    Console().print(table)


@takes(*REPORTS)
def papers(options: Options) -> None:
    """Audit published claims: what is printed, what can be proved, what an attack shows.

    "provable" is the accountants' upper bound; "at least" is what an attack shows, where one is
    quick. A claim that is neither proved nor refuted is shown as SURVIVED; that is no proof.

    Examples: dp-attest audit papers; dp-attest audit papers LASSO --out papers.html

    Exit status: 0 all as known, 1 a verdict is not what it was, 2 bad usage, 130 interrupted.
    """
    from audits.cli.perform import parse_request, run_and_report
    from audits.papers.cases import cases
    from audits.runner.execution import select_cases

    request, threads = parse_request("papers", options.names, options)
    run_and_report("papers", select_cases(request.names, cases()), request, threads, options)


@takes(*REPORTS, runs="20000", jobs="1")
def libraries(
    *,
    faults: Annotated[str | None, option("faults")] = None,
    options: Options,
) -> None:
    """Audit other libraries: pinned faults must be found, sound mechanisms must survive.

    A library that is not installed is reported and skipped; `pip install '.[libraries]'`
    installs all. Most of them draw their own randomness, so numbers differ from run to run. The
    chance that any verdict is wrong is at most one in a million.

    Examples: dp-attest audit libraries; dp-attest audit libraries opendp --junit opendp.xml;
    dp-attest audit libraries --faults faults.md

    Exit status: 0 all as known, 1 a fault was missed or a sound control was falsified, 2 bad
    usage, 3 inconclusive under --strict, 130 interrupted.
    """
    from accountant.files import write_text
    from audits.cli.perform import exit_status, parse_request, run_cases, write_reports
    from audits.libraries import LIBRARIES, available_cases
    from audits.libraries.faults_page import faults_page
    from audits.runner.execution import select_cases

    request, threads = parse_request("libraries", options.names, options)
    cases, absent = available_cases(list(request.names))
    # `select_cases` refuses names that match no case.  The name of a library that is not installed
    # is no mistake, so it is left out; if no name remains, nothing is run.
    installed_names = [
        name
        for name in request.names
        if not any(name.strip().lower() in library for library in absent)
    ]
    selected_cases = (
        select_cases(installed_names, cases) if installed_names or not request.names else []
    )
    result = run_cases(
        "libraries", selected_cases, request, threads, options, absent, tuple(LIBRARIES)
    )
    write_reports(result, options)
    if faults is not None:
        write_text(faults, faults_page(result))
    raise typer.Exit(exit_status(result.rows, options.strict))
