"""Every figure: its runs over seeds, its curves in panels, and its CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from signal import SIG_DFL, SIGINT, signal
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

Look = dict[str, Any]  # what matplotlib is given
# dark on white; a figure gives every curve of a panel a line or a mark of its own beside them
BLUE, RED, GREEN, PURPLE = COLOURS = ("#0550ae", "#b3161b", "#116329", "#8250df")
INK, GREY = "#222222", "#707070"
MARKS = ("o", "s", "^", "D")
COLUMNS = ("chart", "panel", "curve", "x", "seeds", "mean", "standard_error")


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    quick: bool
    seeds: Sequence[int]
    data: Path
    unnormalised: bool = False


@dataclass(frozen=True)
class Curve:
    """Values at every x, one for each seed or one for all, and how they are drawn."""

    name: str
    x: Sequence[float]
    runs: np.ndarray  # (x, seeds)
    look: Look = field(default_factory=dict)

    @property
    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard error at every x; the error is 0 where all runs agree."""
        mean, error = np.array([mean_and_error(some) for some in self.runs]).reshape(-1, 2).T
        return mean, np.where(error > 1e-12 * np.abs(mean), error, 0.0)

    @property
    def slope(self) -> str:
        """The power of x that the mean follows."""
        return power_law(self.x, self.runs)

    def __str__(self) -> str:
        points = zip(self.x, *self.means, strict=True)
        words = [f"{x:,g}: {mean:.4g}" + (f" ± {error:.2g}" if error else "")
                 for x, mean, error in points]  # fmt: skip
        return f"{self.name}: {', '.join(words)}"


@dataclass(frozen=True)
class Panel:
    """Curves over one quantity; ``log`` names the logarithmic axes."""

    name: str
    title: str
    xlabel: str
    ylabel: str
    curves: Sequence[Curve]
    log: str = "xy"


@dataclass(frozen=True)
class Chart:
    """Panels side by side, and lines to print.

    Without a ``key`` each curve is named once below all panels.  With one, its curves (without
    points) explain the lines there; panels then share the y axis and name their own curves.
    ``table`` is the header and the rows of the CSV where the curves alone do not make it; the
    first column is left to `csv`.
    """

    panels: list[Panel]
    lines: list[str]
    key: Sequence[Curve] = ()
    table: tuple[Sequence[str], list[Sequence[Any]]] | None = None

    def printed(self) -> list[str]:
        """Values of all curves (where the CSV is made of them), and the chart's own lines."""
        curves = [f"{p.name}, {c}" for p in self.panels for c in p.curves if not self.table]
        return [*curves, *self.lines]

    def csv(self, name: str) -> str:
        """All that is drawn; the first column is the name."""
        rows = [
            (panel.name, curve.name, *(f"{number:.6g}" for number in (x, len(some), *numbers)))
            for panel in self.panels
            for curve in panel.curves
            for x, some, *numbers in zip(curve.x, curve.runs, *curve.means, strict=True)
        ]
        header, body = self.table or (COLUMNS, rows)
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerows([header, *((name, *row) for row in body)])
        return text.getvalue()


def power_of_ten(value: float) -> str:
    """As 10⁻⁶ or 2·10⁻⁵: how figures write every δ."""
    digits, power = f"{value:.6e}".split("e")
    factor = f"{float(digits):g}"
    ten = "10" + str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return ten if factor == "1" else f"{factor}·{ten}"


def mean_and_error(runs: np.ndarray) -> tuple[float, float]:
    """Mean of the runs, and its standard error."""
    error = runs.std(ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else 0.0
    return float(runs.mean()), float(error)


def power_law(x: Sequence[float], runs: np.ndarray) -> str:
    """Least squares of ln(mean) on ln(x), and its jackknife standard error."""
    seeds = runs.shape[1]
    total = runs.sum(axis=1, keepdims=True)
    means = np.hstack([total / seeds, (total - runs) / max(seeds - 1, 1)])  # all, all but one
    logs = np.log(np.maximum(means, 1e-12))
    slope, *others = np.polyfit(np.log(np.asarray(x, float)), logs, 1)[0]
    return f"{slope:+.3f} ± {np.sqrt((seeds - 1) * np.var(others)):.3f}"


def curves_of(
    found: dict[Any, np.ndarray], panel: str, x: Sequence[float], looks: dict[str, Look]
) -> list[Curve]:
    """A curve for each look, of values by panel, curve and x."""
    return [
        Curve(name, x, np.array([found[panel, name, at] for at in x]), look)
        for name, look in looks.items()
    ]


def slopes(panels: list[Panel]) -> list[str]:
    """The slope of every curve of panels with two logarithmic axes."""
    return [f"{panel.name}, {curve.name}: n^({curve.slope})"
            for panel in panels for curve in panel.curves]  # fmt: skip


def over_seeds(
    measure: Callable[[int], dict[Any, Any]], seeds: Sequence[int]
) -> dict[Any, np.ndarray]:
    """``measure`` of every seed, in processes; what it returns gains a first axis of seeds."""
    work = partial(_on_one_thread, measure)
    if len(seeds) <= 2:  # processes are not worth their start
        return _gathered(map(work, seeds), len(seeds))
    # Ctrl-C ends the processes at once and without a traceback of theirs
    with ProcessPoolExecutor(initializer=signal, initargs=(SIGINT, SIG_DFL)) as pool:
        return _gathered(pool.map(work, seeds), len(seeds))


def _gathered(done: Any, seeds: int) -> dict[Any, np.ndarray]:
    """A bar on stderr, where it is a terminal, while the seeds come in."""
    from rich.console import Console
    from rich.progress import track

    screen = Console(stderr=True)
    found: list[dict[Any, Any]] = list(track(
        done, "seeds", seeds, console=screen, transient=True, disable=not screen.is_terminal
    ))  # fmt: skip
    return {key: np.array([one[key] for one in found]) for key in found[0]}


def _on_one_thread(measure: Callable[[int], Any], seed: int) -> Any:
    with threadpool_limits(1):
        return measure(seed)
