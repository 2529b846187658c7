"""``dp-attest audit zoo``: how good the auditor is, on specimens whose truth is known."""

from __future__ import annotations

from typing import Any

import typer

from audits.cli.options import FILES, Options, takes

WRONG = 1  # exit status if the outcome of a specimen is not the expected one


@takes("names", "runs", "confidence", "seed", "repeats", "jobs", "dask", *FILES, "resume",
       runs="100000", seed="0", jobs="1")  # fmt: skip
def zoo(options: Options) -> None:
    """Score the auditor: runs to detection, bound over truth, false alarms, seconds.

    Honest specimens must survive, broken ones must be falsified; the chance that any verdict is
    wrong is at most one in a million. A false alarm is a bound above the true epsilon; at 95 %
    confidence at most 5 in 100 are expected.

    Examples: dp-attest audit zoo; dp-attest audit zoo sparse --repeats 20 --json zoo.json

    Exit status: 0 all as expected, 1 one is not, 2 bad usage, 130 interrupted.
    """
    from accountant.cli.exit_status import parse_number
    from accountant.domains import IntegerRange
    from audits.cli.perform import parse_request
    from audits.cli.resume import RowFormat, run_remaining
    from audits.formats.report_format import write_files
    from audits.results.result_file import new_result
    from audits.runner.execution import select_cases
    from audits.zoo.scorecard import cases, read_scores, to_json

    times = IntegerRange(1, 10_000).check("--repeats", parse_number(options.repeats))
    request, threads = parse_request("zoo", options.names, options, {"repeats": times})
    todo, form = select_cases(request.names, cases()), RowFormat(read_scores, to_json)
    request, rows = run_remaining("zoo", todo, request, threads, options, form)
    _show(rows, request.samples, request.confidence, options.console())
    result = new_result(request, [row.row(request) for row in rows])
    write_files(result, options.files, to_json(request, rows))
    raise typer.Exit(0 if all(row.as_expected for row in rows) else WRONG)


def _show(rows: list[Any], runs: int, level: float, screen: Any) -> None:
    """Print the table of the scores, and their totals; bounds hold at the confidence ``level``."""
    from audits.report.terminal import borderless_table, literal_text
    from audits.report.words import format_number, format_percent
    from audits.zoo.catalogue import MISSED
    from audits.zoo.scorecard import totals

    table = borderless_table(
        f"The auditor on specimens of known truth: {runs:,} runs, bounds at {format_percent(level)}"
    )
    table.add_column("specimen", overflow="fold")
    for name in ("true", "at least", "share", "found at", "alarms", "s", "verdict"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        colour = "green" if row.as_expected else "bold red"
        detected_at = "-" if row.detected_at is None else f"{row.detected_at:,}"
        table.add_row(
            literal_text(row.name),
            format_number(row.true_epsilon, ".3f"),
            format_number(row.epsilon_lower, ".3f"),
            format_number(row.share, ".0%"),
            detected_at,
            f"{row.alarms}/{row.repeats}",
            f"{row.seconds:.1f}",
            f"[{colour}]{row.outcome.name}[/]",
        )
    screen.print(table)
    sums = totals(rows)
    screen.print(
        f"{sums['as_expected']} of {sums['specimens']} as expected ({sums['honest']} honest), "
        f"{sums['alarms']} false alarms, {sums['seconds']:.1f} s"
    )
    missed = ", ".join(specimen.name for specimen in MISSED)
    screen.print(f"Known to survive, and not scored (docs/audits.md says why): {missed}")
