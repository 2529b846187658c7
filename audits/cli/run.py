"""``python -m audits run`` and ``list``: the project's own mechanisms, zoo and algorithms."""

from __future__ import annotations

from audits.cli.options import REPORTS, Options, takes


@takes(*REPORTS)
def run(options: Options) -> None:
    """Audit mechanisms, the zoo and algorithms: claimed, exact, attacked, replayed.

    A claim is FALSIFIED when an attacker guesses better than it allows, or when a run on other
    data with the same answers differs in one bit. SURVIVED means that the runs saw no violation;
    it is no proof of privacy.

    A NAME is a mechanism, which means its first instance, or else a part of the subjects meant:
    Laplace is one row, laplace all rows with that word, "low bits" the floating-point leak test.

    Examples: python -m audits; python -m audits Laplace --samples 10000000;
    python -m audits --seed 7 --json report.json --html report.html; python -m audits list

    Other commands (each has --help): list, all subjects; papers, published claims; libraries,
    known faults of other libraries; target, your own function; record, its draws on two data sets;
    scores, one training run by its canaries; replay, run a result again; power, how many runs find
    a violation; zoo, how good the auditor is; bounds, least possible errors; index, one page over
    plans, ledgers and audits.

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

    from audits.papers.cases import cases as papers
    from audits.report.terminal import literal_text
    from audits.runner.cases import cases

    table = Table("kind", "subject", "about")
    for case in [*cases(), *papers()]:
        table.add_row(case.kind, literal_text(case.subject), literal_text(case.about))
    Console().print(table)
