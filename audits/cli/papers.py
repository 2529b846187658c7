"""``python -m audits papers``: claims as printed, and the true cost of their constants."""

from __future__ import annotations

from audits.cli.options import REPORTS, Options, takes


@takes(*REPORTS)
def papers(options: Options) -> None:
    """Audit published claims: what is printed, what can be proved, what an attack shows.

    "provable" is the accountants' upper bound; "at least" is what an attack shows, where one is
    quick. A claim that is neither proved nor refuted is shown as SURVIVED; that is no proof.

    Examples: python -m audits papers; python -m audits papers LASSO --html papers.html

    Exit status: 0 all as known, 1 a verdict is not what it was, 2 bad usage, 130 interrupted.
    """
    from audits.cli.perform import parse_request, run_and_report
    from audits.papers.cases import cases
    from audits.runner.execution import select_cases

    request, threads = parse_request("papers", options.names, options)
    run_and_report("papers", select_cases(request.names, cases()), request, threads, options)
