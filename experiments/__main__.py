"""``python -m experiments``: a paper's figure drawn again, or the numbers of its page in docs/."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from accountant.cli.exit_status import USAGE, exit_process, parse_number, run_app
from experiments.catalogue import FIGURES, function_of, nearest

PROGRAM = "python -m experiments"
HELP = """Draw a figure of a paper again, or print the numbers that its page in docs/ claims.

\b
  python -m experiments --list                              names and titles
  python -m experiments sparse-regression-1 --quick         a few seconds, tiny sizes
  python -m experiments sparse-regression-1 --out figures   all sizes, 20 seeds: minutes
  python -m experiments frank-wolfe-claims                  numbers alone

A figure writes CSV, PNG and SVG and prints its values and slopes; names that end in -claims only
print. Seeds S, S + 1, ... always give the same values. Progress and paths go to stderr.

Exit status: 0 done, 2 bad usage or missing data, 130 interrupted.
"""
app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip


@app.command(help=HELP)
def draw(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="FIGURE", help="A name that --list shows.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Show all names and titles.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Tiny sizes, 2 seeds: seconds.")] = False,
    seeds: Annotated[
        str | None, typer.Option(metavar="N", help="Runs of every point; 20, or 2 if quick.")
    ] = None,
    seed: Annotated[str, typer.Option(metavar="S", help="The first seed.")] = "0",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the files go.")] = Path(),
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Real data; ../shared/data by default.")
    ] = None,
    unnormalised: Annotated[
        bool,
        typer.Option("--unnormalised", help="sparse-regression-1, 2, 5, 6: theta of any length."),
    ] = False,
) -> None:
    """Check what was asked for, then run it."""
    from accountant.domains import IntegerRange
    from accountant.errors import ParameterError
    from accountant.files import check_writable, write_atomically

    if list_:
        widest = max(map(len, FIGURES))
        print("\n".join(f"{name:<{widest}}  {one.title}" for name, one in FIGURES.items()))
        return
    if name is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(USAGE)
    if name not in FIGURES:
        raise ParameterError(
            "FIGURE", name, f"a name that --list shows (near: {', '.join(nearest(name))})"
        )
    figure = FIGURES[name]
    count = (
        (2 if quick else 20)
        if seeds is None
        else IntegerRange(1, 100_000).check("--seeds", parse_number(seeds))
    )
    first = IntegerRange(0).check("--seed", parse_number(seed))
    if unnormalised and not figure.unnormalised:
        raise ParameterError("--unnormalised", name, "given to sparse-regression-1, 2, 5 or 6")

    from experiments.charts import Chart, Options
    from experiments.datasets import SHARED
    from experiments.drawing import png, svg

    folder = SHARED if data is None else data
    for file in figure.data:
        if not (folder / file).is_file():
            raise ParameterError("--data", str(folder), f"a folder with {file}")
    if figure.file:
        out.mkdir(parents=True, exist_ok=True)
        paths = [out / f"{figure.file}.{kind}" for kind in ("csv", "png", "svg")]
        for path in paths:
            check_writable({"--out": str(path)})
    began = time.perf_counter()
    print(f"{name}: {figure.title}; seeds {first} to {first + count - 1}", file=sys.stderr)
    found = function_of(name)(Options(quick, range(first, first + count), folder, unnormalised))
    if isinstance(found, Chart):
        write_atomically(paths[0], found.csv(figure.file))
        write_atomically(paths[1], png(found, figure.title))
        write_atomically(paths[2], svg(found, figure.title))
        print(f"{name}: wrote {paths[0]}, {paths[1]} and {paths[2]}", file=sys.stderr)
    for line in found.printed() if isinstance(found, Chart) else found:
        print(line, flush=True)
    print(f"{name}: {time.perf_counter() - began:.1f} s", file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status; errors are one line on stderr."""
    return run_app(app, PROGRAM, sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    exit_process(PROGRAM, main())
