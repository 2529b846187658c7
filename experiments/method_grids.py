"""Methods compared on a grid of settings: a panel for each field that varies, users along x."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from experiments.charts import (
    COLOURS,
    GREY,
    INK,
    MARKS,
    Chart,
    Curve,
    Options,
    Panel,
    mean_and_error,
    over_seeds,
    power_law,
)

SYMBOLS = {"features": "p", "sparsity": "s*", "epsilon": "ε"}
GREYS = INK, GREY
COLUMNS = (
    "figure", "panel", "value", "method", "users", "seeds", "mean", "standard_error",
    "minimum_of_10", "epsilon", "true_epsilon",
)  # fmt: skip
PAPER_RUNS = 10  # the paper reports the least error of as many runs


@dataclass(frozen=True)
class Setting:
    """What one curve is for."""

    features: int
    sparsity: int
    epsilon: float


Error = Callable[[Setting, Any, int], float]  # of a fit to data, with a seed


@dataclass(frozen=True)
class Method:
    """One way to estimate: its error on data, the epsilon it really has, a note for the legend."""

    name: str
    error: Error
    true_epsilon: Callable[[Setting], float] = lambda setting: setting.epsilon
    note: Callable[[Setting], str] = lambda _: ""
    line: str = "-"
    base_only: bool = False


class Study(Protocol):
    """Data and methods: first the valid one, then the printed one, then those for the base."""

    @property
    def ylabel(self) -> str:
        """What is measured."""

    @property
    def methods(self) -> Sequence[Method]:
        """What is drawn."""

    def sample(self, setting: Setting, users: int, seed: int) -> Any:
        """The data of one run."""


@dataclass(frozen=True)
class Grid:
    """Panels: each varies one field of ``base``; errors at every number of ``users``."""

    base: Setting
    users: tuple[int, ...]
    panels: dict[str, tuple[Any, ...]]

    def along(self, field: str) -> dict[Any, Setting]:
        """The settings of a panel, by the value of its field."""
        return {value: replace(self.base, **{field: value}) for value in self.panels[field]}

    def settings(self) -> list[Setting]:
        """Every curve's setting, once."""
        every = [setting for field in self.panels for setting in self.along(field).values()]
        return list(dict.fromkeys([self.base, *every]))


Errors = dict[tuple[Setting, int, str], np.ndarray]  # one error a seed


def errors_of(study: Study, grid: Grid, seed: int) -> dict[tuple[Setting, int, str], float]:
    """Every method on the same data, for every setting and number of users."""
    found = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="step .* lies outside")
        for users in grid.users:
            for setting in grid.settings():
                data = study.sample(setting, users, seed)
                for method in study.methods:
                    if setting == grid.base or not method.base_only:
                        found[setting, users, method.name] = method.error(setting, data, seed)
    return found


def compare(study: Study, full: Grid, quick: Grid, options: Options) -> Chart:
    """The chart of a study."""
    grid = quick if options.quick else full
    errors = over_seeds(partial(errors_of, study, grid), options.seeds)
    panels = [_panel(study, grid, errors, field) for field in grid.panels]
    panels = [panels[0], *(replace(panel, ylabel="") for panel in panels[1:])]
    rows = list(_rows(study, grid, errors))
    return Chart(panels, _slopes(study, grid, errors), _key(study), (COLUMNS, rows))


def _rows(study: Study, grid: Grid, errors: Errors) -> Any:
    """The rows of the CSV."""
    for field in grid.panels:
        for value, setting in grid.along(field).items():
            for method in study.methods:
                for users in grid.users:
                    runs = errors.get((setting, users, method.name))
                    if runs is not None:
                        numbers = (
                            *mean_and_error(runs), runs[:PAPER_RUNS].min(), setting.epsilon,
                            method.true_epsilon(setting),
                        )  # fmt: skip
                        start = field, value, method.name, users, len(runs)
                        yield *start, *(f"{number:.6g}" for number in numbers)


def _panel(study: Study, grid: Grid, errors: Errors, field: str) -> Panel:
    """A colour and a mark for each value of the field; methods for the base alone are grey."""

    def runs_of(setting: Setting, method: Method) -> np.ndarray:
        return np.array([errors[setting, users, method.name] for users in grid.users])

    def curve(name: str, runs: np.ndarray, **look: Any) -> Curve:
        return Curve(name, grid.users, runs, {"label": None} | look)

    valid, *others = (method for method in study.methods if not method.base_only)
    extra = [method for method in study.methods if method.base_only]
    curves = [
        curve(method.name, runs_of(grid.base, method).mean(axis=1, keepdims=True),
              color=grey, lw=1.3, ls=method.line)
        for method, grey in zip(extra, GREYS, strict=False)
    ]  # fmt: skip
    looks = zip(grid.along(field).items(), COLOURS, MARKS, strict=False)
    for (value, setting), colour, mark in looks:
        name, runs = f"{SYMBOLS[field]} = {value:g}", runs_of(setting, valid)
        least = runs[:, :PAPER_RUNS].min(axis=1, keepdims=True)
        label = name + "".join(method.note(setting) for method in others)
        curves += [
            curve(f"{name}: {valid.name}", runs, color=colour, lw=1.9, marker=mark, label=label),
            curve(f"{name}: minimum", least, color=colour, ls="", marker=mark, mfc="none"),
        ]
        curves += [
            curve(f"{name}: {method.name}", runs_of(setting, method), color=colour, lw=1.2,
                  ls=method.line, marker=mark, ms=3.5)
            for method in others
        ]  # fmt: skip
    fixed = [f"{symbol} = {getattr(grid.base, name):g}"
             for name, symbol in SYMBOLS.items() if name != field]  # fmt: skip
    return Panel(field, ", ".join(fixed), "n", study.ylabel, curves)


def _key(study: Study) -> list[Curve]:
    """What lines and marks mean."""

    def entry(name: str, **look: Any) -> Curve:
        return Curve(name, (), np.empty((0, 1)), look)

    greys = iter(GREYS)
    valid, *others = study.methods
    return [
        entry(valid.name, color=INK, ls=valid.line, lw=1.9, marker=MARKS[0]),
        entry("the same: minimum of 10 runs (the paper's)", color=INK, ls="", marker=MARKS[0],
              mfc="none"),
        *(entry(method.name, color=next(greys), ls=method.line) if method.base_only
          else entry(method.name, color=INK, lw=1.2, ls=method.line, marker=MARKS[0], ms=3.5)
          for method in others),
    ]  # fmt: skip


def _slopes(study: Study, grid: Grid, errors: Errors) -> list[str]:
    """The powers of users and of each field that the mean error follows."""
    lines = []
    for method in (method for method in study.methods if not method.base_only):
        runs = np.array([errors[grid.base, users, method.name] for users in grid.users])
        parts = [f"n^({power_law(grid.users, runs)})"]
        for field in grid.panels:
            along = grid.along(field)
            runs = np.array([errors[s, grid.users[-1], method.name] for s in along.values()])
            parts.append(f"{SYMBOLS[field]}^({power_law(list(along), runs)})")
        lines.append(f"slopes, {method.name}: {', '.join(parts)}")
    return lines
