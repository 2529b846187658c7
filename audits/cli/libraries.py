"""``python -m audits libraries``: known faults and sound controls of other libraries."""

from __future__ import annotations

from typing import Annotated

import typer

from audits.cli.options import REPORTS, Options, takes


@takes(*REPORTS, samples="20000", jobs="1")
def libraries(
    *,
    faults: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the page of the faults, as Markdown.")
    ] = None,
    options: Options,
) -> None:
    """Audit other libraries: pinned faults must be found, sound mechanisms must survive.

    A library that is not installed is reported and skipped; `pip install '.[libraries]'`
    installs all. Most of them draw their own randomness, so numbers differ from run to run. The
    chance that any verdict is wrong is at most one in a million.

    Examples: python -m audits libraries; python -m audits libraries opendp --junit opendp.xml;
    python -m audits libraries --faults faults.md

    Exit status: 0 all as known, 1 a fault was missed or a sound control was falsified, 2 bad
    usage, 3 inconclusive under --strict, 130 interrupted.
    """
    from accountant.files import check_writable, write_text
    from audits.cli.perform import exit_status, parse_request, run_cases, write_reports
    from audits.libraries import LIBRARIES, available_cases
    from audits.libraries.faults_page import faults_page
    from audits.runner.execution import select_cases

    check_writable({"--faults": faults})
    request, threads = parse_request("libraries", options.names, options)
    every, missing = available_cases(list(request.names))
    # The name of a library that is not installed is no spelling mistake.
    installed_names = [
        name for name in request.names if not any(name.strip().lower() in m for m in missing)
    ]
    todo = select_cases(installed_names, every) if installed_names or not request.names else []
    result = run_cases("libraries", todo, request, threads, options, missing, tuple(LIBRARIES))
    write_reports(result, options)
    if faults is not None:
        write_text(faults, faults_page(result))
    raise typer.Exit(exit_status(result.rows, options.strict))
