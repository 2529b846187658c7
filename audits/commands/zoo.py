"""``python -m audits zoo``: how good the auditor is, on specimens whose truth is known."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from audits.commands.options import CONFIDENCE, Confidence, Json, Names, Samples, Seed

WRONG = 1


def zoo(
    names: Names = None,
    samples: Samples = "100000",
    confidence: Confidence = CONFIDENCE,
    seed: Seed = "0",
    repeats: Annotated[
        str, typer.Option(metavar="R", help="Audits of each specimen at N runs, for alarms.")
    ] = "1",
    json: Json = None,
) -> None:
    """Score the auditor: runs to detection, bound over truth, false alarms, seconds.

    Honest specimens must survive, broken ones must fall; an alarm is a bound above the true
    epsilon, of which 5 in 100 are nominal at 95 %.

    Examples: python -m audits zoo; python -m audits zoo sparse --repeats 20 --json zoo.json

    Exit status: 0 all as expected, 1 one is not, 2 bad usage, 130 interrupted.
    """
    import sys
    from pathlib import Path

    from rich.console import Console

    from accountant.command_line import number
    from accountant.domains import Whole
    from accountant.outputs import check_writable, write_whole
    from audits.arguments import CONFIDENCE as LEVEL
    from audits.arguments import RUNS

    runs = RUNS.check("--samples", number(samples))
    level = LEVEL.check("--confidence", number(confidence))
    start = Whole(0).check("--seed", number(seed or "0"))
    times = Whole(1, 10_000).check("--repeats", number(repeats))
    check_writable({"--json": None if json == "-" else json})
    rows = _scored(names or [], runs, level, start, times)
    _show(rows, runs, level, Console(stderr=json == "-"))
    text = _encoded(rows, runs, level, start, times)
    if json == "-":
        sys.stdout.write(text)
    elif json is not None:
        write_whole(Path(json), text)
    raise typer.Exit(0 if all(row.as_expected for row in rows) else WRONG)


def _scored(names: list[str], runs: int, level: float, seed: int, repeats: int) -> list[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from accountant.errors import ParameterError
    from audits.scoring import score_zoo
    from audits.zoo import SPECIMENS

    chosen = [one for one in SPECIMENS
              if not names or any(name.strip().lower() in one.name for name in names)]  # fmt: skip
    if not chosen or not all(name.strip() for name in names):
        raise ParameterError("NAME", ", ".join(names), "(part of) the name of a specimen")
    screen = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("left"),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("scoring", total=len(chosen))
        return score_zoo(chosen, runs, level, seed, repeats, lambda _: bar.advance(task))


def _show(rows: list[Any], runs: int, level: float, screen: Any) -> None:
    from audits.report.terminal import plain_table, safe
    from audits.report.words import number, percent
    from audits.scoring import totals

    table = plain_table(f"The zoo at {runs:,} runs, bounds at {percent(level)}")
    table.add_column("specimen", overflow="fold", min_width=16)
    for name in ("true", "at least", "share", "found at", "alarms", "s", "verdict"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        colour = "green" if row.as_expected else "bold red"
        found = "-" if row.detected_at is None else f"{row.detected_at:,}"
        table.add_row(
            safe(row.name), number(row.true_epsilon, ".3f"),
            number(row.epsilon_lower, ".3f"), number(row.share, ".0%"), found,
            f"{row.alarms}/{row.repeats}", f"{row.seconds:.1f}",
            f"[{colour}]{row.outcome.name}[/]",
        )  # fmt: skip
    screen.print(table)
    sums = totals(rows)
    screen.print(
        f"{sums['as_expected']} of {sums['specimens']} as expected ({sums['honest']} honest), "
        f"{sums['alarms']} alarms, {sums['seconds']:.1f} s"
    )


def _encoded(rows: list[Any], runs: int, level: float, seed: int, repeats: int) -> str:
    import dataclasses
    import json as encoder
    import math

    def known(value: Any) -> Any:
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        return value.name.lower() if hasattr(value, "name") else value

    scores = [{key: known(value) for key, value in dataclasses.asdict(row).items()}
              for row in rows]  # fmt: skip
    asked = {"schema": 1, "seed": seed, "runs": runs, "confidence": level, "repeats": repeats}
    return encoder.dumps({**asked, "scores": scores}, indent=2, allow_nan=False) + "\n"
