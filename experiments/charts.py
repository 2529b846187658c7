"""Charts: curves in panels over any quantity, their CSV, and the command line.

The figures of `common` have a panel for each field that varies, and users along x; here a script
says what its panels are.
"""

from __future__ import annotations

import argparse
import csv
import io
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from results import statistics
from threadpoolctl import threadpool_limits

from accountant.files import write_atomically

SHARED = Path(__file__).parents[2] / "shared" / "data"
COLUMNS = ("chart", "panel", "curve", "x", "seeds", "mean", "standard_error")


@dataclass(frozen=True)
class Curve:
    """Values at every x, one a seed or one for all, and how they are drawn."""

    name: str
    x: tuple[float, ...]
    runs: np.ndarray  # (x, seeds)
    look: dict[str, Any] = field(default_factory=dict)

    @property
    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard error at every x; none of what is always the same."""
        mean, error, _ = np.array([statistics(some) for some in self.runs]).T
        return mean, np.where(error > 1e-12 * np.abs(mean), error, 0.0)

    @property
    def slope(self) -> str:
        """Least squares of ln(mean) on ln(x), and its jackknife standard error."""
        seeds = self.runs.shape[1]
        total = self.runs.sum(axis=1, keepdims=True)
        means = np.hstack([total / seeds, (total - self.runs) / max(seeds - 1, 1)])
        logs = np.log(np.maximum(means, 1e-12))
        fitted, *others = np.polyfit(np.log(self.x), logs, 1)[0]
        return f"{fitted:+.3f} ± {np.sqrt((seeds - 1) * np.var(others)):.3f}"

    def __str__(self) -> str:
        points = zip(self.x, *self.means, strict=True)
        words = [f"{x:,g}: {mean:.4g}" + (f" ± {error:.2g}" if error else "")
                 for x, mean, error in points]  # fmt: skip
        return f"{self.name}: {', '.join(words)}"


@dataclass(frozen=True)
class Panel:
    """Curves over one quantity; ``log`` says which axes are logarithmic."""

    name: str
    title: str
    xlabel: str
    ylabel: str
    curves: tuple[Curve, ...]
    log: str = "xy"


@dataclass(frozen=True)
class Chart:
    """A drawing: how its panels are measured, what is told of them, the data files it needs."""

    name: str
    title: str
    panels: Callable[[argparse.Namespace], list[Panel]]
    told: Callable[[list[Panel]], list[str]] = lambda _: []
    data: tuple[str, ...] = ()


def main(chart: Chart, arguments: list[str] | None = None) -> None:
    """The command line of a chart: measure, write the PNG and the CSV, tell."""
    from chart_drawing import draw

    parser = argparse.ArgumentParser(description=chart.title)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, two seeds")
    parser.add_argument("--seeds", type=int, help="runs of every point (20; quick: 2)")
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the PNG and the CSV")
    if chart.data:
        files = ", ".join(chart.data)
        parser.add_argument("--data", type=Path, default=SHARED, help=f"folder of {files}")
    options = parser.parse_args(arguments)
    if options.seeds is None:
        options.seeds = 2 if options.quick else 20
    if options.seeds < 1:
        parser.error(f"--seeds is {options.seeds}, not a positive number")
    for file in chart.data:
        if not (options.data / file).is_file():
            words = f"no data at {options.data / file}; give the folder of {file} with --data PATH"
            raise SystemExit(f"{chart.name}: {words}")
    began = time.perf_counter()
    print(f"{chart.name}: {chart.title}", flush=True)
    panels = chart.panels(options)
    options.out.mkdir(parents=True, exist_ok=True)
    write_atomically(options.out / f"{chart.name}.csv", table(chart.name, panels))
    write_atomically(options.out / f"{chart.name}.png", draw(chart.title, panels))
    values = [f"{panel.name}, {curve}" for panel in panels for curve in panel.curves]
    print("\n".join([*values, *chart.told(panels)]))
    print(f"{chart.name}: PNG and CSV in {options.out.resolve()}, "
          f"{time.perf_counter() - began:.1f} s")  # fmt: skip


def table(name: str, panels: Iterable[Panel]) -> str:
    """All that is drawn, as CSV."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(COLUMNS)
    for panel in panels:
        for curve in panel.curves:
            for x, some, *numbers in zip(curve.x, curve.runs, *curve.means, strict=True):
                told = (f"{number:.6g}" for number in (x, len(some), *numbers))
                out.writerow([name, panel.name, curve.name, *told])
    return text.getvalue()


def over_seeds(measure: Callable[[int], dict[Any, Any]], seeds: int) -> dict[Any, np.ndarray]:
    """``measure`` of every seed, in processes; what it returns gains a first axis of seeds."""
    work = partial(_one_thread, measure)
    if seeds <= 2:  # processes are not worth their start
        found = list(map(work, range(seeds)))
    else:
        with ProcessPoolExecutor() as pool:
            found = list(pool.map(work, range(seeds)))
    return {key: np.array([one[key] for one in found]) for key in found[0]}


def _one_thread(measure: Callable[[int], Any], seed: int) -> Any:
    with threadpool_limits(1):
        return measure(seed)


def slopes(panels: list[Panel]) -> list[str]:
    """The slope of every curve of panels with two logarithmic axes."""
    return [f"{panel.name}, {curve.name}: n^({curve.slope})"
            for panel in panels for curve in panel.curves]  # fmt: skip
