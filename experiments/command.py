"""The command line of a figure: run, write the PNG and the CSV, print the slopes."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from common import Figure, run
from drawing import draw
from results import slopes, table

from accountant.files import write_atomically


def main(figure: Figure, arguments: list[str] | None = None) -> None:
    """The command line of a figure."""
    parser = argparse.ArgumentParser(description=figure.title)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, two seeds")
    parser.add_argument("--seeds", type=int, help="runs of every point (20; quick: 2)")
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the PNG and the CSV")
    figure.study.add_options(parser)
    options = parser.parse_args(arguments)
    grid, seeds = figure.quick if options.quick else figure.full, options.seeds
    seeds = (2 if options.quick else 20) if seeds is None else seeds
    if seeds < 1:
        parser.error(f"--seeds is {seeds}, not a positive number")
    figure = replace(figure, study=figure.study.configured(options))
    began = time.perf_counter()
    print(f"{figure.name}: {figure.title}; n up to {max(grid.users):,}, {seeds} seeds", flush=True)
    errors = run(figure.study, grid, seeds)
    options.out.mkdir(parents=True, exist_ok=True)
    write_atomically(options.out / f"{figure.name}.csv", table(figure, grid, errors))
    write_atomically(options.out / f"{figure.name}.png", draw(figure, grid, errors, seeds))
    print("\n".join(slopes(figure, grid, errors)))
    print(f"{figure.name}: PNG and CSV in {options.out.resolve()}, "
          f"{time.perf_counter() - began:.1f} s")  # fmt: skip
