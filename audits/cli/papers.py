"""``python -m audits papers``: claims as printed, and the true cost of their constants."""

from __future__ import annotations

import typer

from audits.cli.options import (
    CONFIDENCE,
    SAMPLES,
    Confidence,
    Dask,
    Html,
    Jobs,
    Json,
    Junit,
    Names,
    Options,
    Resume,
    Samples,
    Seed,
    Strict,
)


def papers(
    names: Names = None,
    samples: Samples = SAMPLES,
    confidence: Confidence = CONFIDENCE,
    seed: Seed = None,
    jobs: Jobs = None,
    dask: Dask = None,
    json: Json = None,
    html: Html = None,
    junit: Junit = None,
    resume: Resume = False,
    strict: Strict = False,
) -> None:
    """Audit published claims: what is printed, what can be proved, what an attack shows.

    "provable" is the accountants' upper bound; "at least" is what an attack shows, where one is
    quick. A claim that is neither proved nor refuted is shown as SURVIVED; that is no proof.

    Examples: python -m audits papers; python -m audits papers LASSO --html papers.html

    Exit status: 0 all as known, 1 a verdict is not what it was, 2 bad usage, 130 interrupted.
    """  # fmt: skip
    from audits.cli.perform import exit_status, parse_request, run_cases, write_reports
    from audits.papers.cases import cases
    from audits.runner.execution import select_cases

    options = Options(samples, confidence, seed, jobs, dask, json, html, junit, resume, strict)
    request, threads = parse_request("papers", names, options)
    result = run_cases("papers", select_cases(request.names, cases()), request, threads, options)
    write_reports(result, options)
    raise typer.Exit(exit_status(result.rows, strict))
