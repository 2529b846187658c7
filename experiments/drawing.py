"""A figure as a PNG: a panel for each field that varies, a colour for each value."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
from common import SYMBOLS, Errors, Figure, Grid, Method, Setting
from results import statistics

COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1")
GREYS = ("#222222", "#888888")


def draw(figure: Figure, grid: Grid, errors: Errors, seeds: int) -> bytes:
    """The PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet
    from matplotlib.ticker import LogLocator

    sheet = Sheet(figsize=(13, 5.4), layout="constrained")
    FigureCanvasAgg(sheet)
    sheet.suptitle(figure.title)
    panels = sheet.subplots(1, len(grid.panels), sharey=True)
    for axes, (field, values) in zip(panels, grid.panels.items(), strict=True):
        _panel(axes, figure, grid, errors, field, values)
    low, high = panels[0].get_ylim()
    low *= (low / high) ** 0.3  # room for legends
    subs = (1, 2, 5) if high / low < 300 else (1,)
    panels[0].set_ylim(low, high)
    panels[0].yaxis.set_major_locator(LogLocator(subs=subs))
    panels[0].yaxis.set_major_formatter("{x:g}")
    panels[0].set_ylabel(figure.study.ylabel)
    _key(sheet, figure.study.methods, seeds)
    drawn = io.BytesIO()
    sheet.savefig(drawn, dpi=110, format="png")
    return drawn.getvalue()


def _panel(
    axes: Any, figure: Figure, grid: Grid, errors: Errors, field: str, values: tuple[Any, ...]
) -> None:
    every = [method for method in figure.study.methods if not method.base_only]
    extra = [method for method in figure.study.methods if method.base_only]

    def numbers(setting: Setting, method: Method) -> np.ndarray:
        each = [statistics(errors[setting, users, method.name]) for users in grid.users]
        return np.array(each).T

    for method, grey in zip(extra, GREYS, strict=False):
        axes.plot(grid.users, numbers(grid.base, method)[0], color=grey, lw=1.3, ls=method.line)
    for value, colour in zip(values, COLOURS, strict=False):
        setting = replace(grid.base, **{field: value})
        for method in every:
            mean, spread, least = numbers(setting, method)
            honest = method is every[0]
            label = f"{SYMBOLS[field]} = {value:g}{method.note(setting)}"
            wide = 1.9 if honest else 1.2
            axes.plot(
                grid.users, mean, color=colour, ls=method.line, lw=wide,
                marker="o" if honest else None, ms=4, label=None if honest else label,
            )  # fmt: skip
            axes.fill_between(
                grid.users, np.maximum(mean - spread, mean / 3), mean + spread,
                color=colour, alpha=0.2, lw=0,
            )  # fmt: skip
            if honest:
                axes.plot(grid.users, least, color=colour, ls="", marker="v", ms=5, mfc="white")
    fixed = [f for f in SYMBOLS if f != field]
    rest = ", ".join(f"{SYMBOLS[f]} = {getattr(grid.base, f):g}" for f in fixed)
    axes.set(xscale="log", yscale="log", xlabel="n", title=rest)
    axes.set_xticks(grid.users, [_short(users) for users in grid.users])
    axes.minorticks_off()
    axes.grid(which="major", color="#e5e5e5", lw=0.7)
    legend = axes.legend(frameon=False, fontsize=9, loc="lower left")
    for handle in legend.get_lines():
        handle.set(linestyle="-", linewidth=2.5)


def _short(users: int) -> str:
    """As 300, 30k, 1M."""
    if users >= 1e6:
        return f"{users / 1e6:g}M"
    return f"{users / 1e3:g}k" if users >= 1e3 else str(users)


def _key(sheet: Any, methods: tuple[Method, ...], seeds: int) -> None:
    """What lines and marks mean, below the panels."""
    from matplotlib.lines import Line2D

    greys = iter(GREYS)
    marks = [
        Line2D(
            [], [], ls=method.line, lw=1.6, color=next(greys) if method.base_only else "#222222",
            marker="o" if method is methods[0] else None, ms=4, label=method.name,
        )
        for method in methods
    ]  # fmt: skip
    marks[0].set_label(f"{methods[0].name}: mean ± s.e. of {seeds}")
    least = Line2D([], [], ls="", marker="v", mfc="white", color="#222222",
                   label="the same: minimum of 10 runs (the paper's)")  # fmt: skip
    handles = [marks[0], least, *marks[1:]]
    sheet.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
