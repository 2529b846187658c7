"""``python -m audits replay``: run a result again from its own seed and settings."""

from __future__ import annotations

from typing import Annotated

import typer

from audits.cli.options import LIMITS, Options, takes

CHANGED = 1  # exit status if the new result differs from the saved one
MAX_SHOWN = 20  # differences that are printed


@takes("jobs", *LIMITS)
def replay(
    result: Annotated[str, typer.Argument(metavar="RESULT.json", help="A file that --json wrote.")],
    options: Options,
    allow_import: Annotated[
        bool, typer.Option("--allow-import", help="Import the target that the file names.")
    ] = False,
) -> None:
    """Run a result again and report whether it is identical but for times.

    Other libraries draw their own randomness, so of their rows only verdicts are compared.

    Example: python -m audits --seed 7 --json report.json; python -m audits replay report.json

    Exit status: 0 the same, 1 something differs, 2 bad input, 130 interrupted.
    """
    from rich.console import Console

    from audits.cli.perform import parse_limits, parse_threads
    from audits.cli.rerun import differences, rerun
    from audits.report.terminal import literal_text
    from audits.results.result_file import read_result, without_times

    threads, limits = parse_threads(options), parse_limits(options)
    saved_result = read_result(result, "RESULT.json")
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
