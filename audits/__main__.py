"""``python -m audits``: audit everything on the embedded data, or what you name."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accountant.command_line import leave, number, status_of

if TYPE_CHECKING:
    from audits.cases import Case, Row

PROGRAM = "python -m audits"
FAILED, INCONCLUSIVE = 1, 3
app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
    help="Try to falsify the privacy claims of mechanisms and algorithms.",
)  # fmt: skip


@app.command()
def run(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Parts of subject names; all if none."),
    ] = None,
    samples: Annotated[
        str, typer.Option(metavar="N", help="Runs of each guess test, learning included.")
    ] = "200000",
    confidence: Annotated[
        str, typer.Option(metavar="C", help="Confidence of the bounds shown.")
    ] = "0.95",
    seed: Annotated[str | None, typer.Option(metavar="S", help="Repeats a report exactly.")] = None,
    jobs: Annotated[
        str | None, typer.Option(metavar="J", help="Threads; the rows do not depend on it.")
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="FILE|-", help="Write JSON; - is stdout.")
    ] = None,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write one self-contained page.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 3 where runs are too few to decide.")
    ] = False,
) -> None:
    """Audit mechanisms, the zoo and algorithms: claimed, exact, attacked, replayed.

    A claim is FALSIFIED when an attacker guesses better than it allows, or when a run on other
    data with the same answers differs in one bit. Surviving proves nothing.

    Examples: python -m audits; python -m audits Laplace --samples 10000000;
    python -m audits --seed 7 --json report.json --html report.html; python -m audits list

    Exit status: 0 all as expected, 1 a claim was falsified or a broken specimen survived,
    2 bad usage or input, 3 inconclusive under --strict, 130 interrupted.
    """  # fmt: skip
    from accountant.domains import Whole
    from accountant.outputs import check_writable
    from audits.guess import CONFIDENCE, RUNS, seeded
    from audits.running import chosen

    runs = RUNS.check("--samples", number(samples))
    level = CONFIDENCE.check("--confidence", number(confidence))
    threads = os.cpu_count() or 1
    if jobs is not None:
        threads = Whole(1, 1024).check("--jobs", number(jobs))
    start = None if seed is None else Whole(0).check("--seed", number(seed))
    check_writable({"--json": None if json == "-" else json, "--html": html})
    todo = chosen(names or [])
    used = seeded(start)[0] or 0
    rows = _with_progress(todo, runs, level, used, threads)
    _report(rows, used, json, html)
    raise typer.Exit(_status(rows, strict))


@app.command("list")
def list_() -> None:
    """List every subject that can be audited, with what it is."""
    from rich.console import Console
    from rich.table import Table

    from audits.cases import cases

    table = Table("kind", "subject", "about")
    for case in cases():
        table.add_row(case.kind, case.subject, case.about)
    Console().print(table)


def _with_progress(
    todo: list[Case], samples: int, confidence: float, seed: int, jobs: int
) -> list[Row]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from audits.cases import LOSS_SAMPLES, Settings
    from audits.running import run_all

    screen = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        longest = sum(case.kind == "algorithm" for case in todo) * LOSS_SAMPLES
        task = bar.add_task("auditing", total=len(todo) + longest)
        settings = Settings(samples, confidence, seed, lambda _: bar.advance(task))
        return run_all(todo, settings, jobs, lambda _: bar.advance(task))


def _report(rows: list[Row], seed: int, json: str | None, html: str | None) -> None:
    from rich.console import Console

    from accountant.outputs import write_whole
    from audits.report.document import to_json
    from audits.report.terminal import show

    show(rows, seed, Console(stderr=json == "-"))
    if json == "-":
        sys.stdout.write(to_json(rows, seed))
    elif json is not None:
        write_whole(Path(json), to_json(rows, seed))
    if html is not None:
        from audits.report.page import to_html

        write_whole(Path(html), to_html(rows, seed))


def _status(rows: list[Row], strict: bool) -> int:
    wrong = [row for row in rows if not row.as_expected]
    if any(row.decisive for row in wrong):
        return FAILED
    if strict and not all(row.decisive for row in rows):
        return INCONCLUSIVE
    return FAILED if wrong else 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status; errors are one line on stderr."""
    words = sys.argv[1:] if arguments is None else arguments
    # a first word that is no subcommand means `run`
    if not words or words[0] not in {"run", "list"}:
        words = ["run", *words]
    return status_of(app, PROGRAM, words)


if __name__ == "__main__":
    leave(PROGRAM, main())
