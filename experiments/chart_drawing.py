"""A chart as a PNG: panels side by side, one key below."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from charts import Curve, Panel


def draw(title: str, panels: list[Panel]) -> bytes:
    """The PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet

    sheet = Sheet(figsize=(13, 5.4), layout="constrained")
    FigureCanvasAgg(sheet)
    sheet.suptitle(title)
    for axes, panel in zip(sheet.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _panel(axes, panel)
    handles = {
        handle.get_label(): handle
        for axes in sheet.axes
        for handle in axes.get_legend_handles_labels()[0]
    }
    seeds = max(curve.runs.shape[1] for panel in panels for curve in panel.curves)
    words = f"means ± s.e. of {seeds} runs" if seeds > 1 else None
    sheet.legend(
        handles=list(handles.values()), loc="outside lower center", ncols=3, frameon=False,
        fontsize=10, handlelength=3.2, title=words, title_fontsize=9,
    )  # fmt: skip
    drawn = io.BytesIO()
    sheet.savefig(drawn, dpi=110, format="png")
    return drawn.getvalue()


def _panel(axes: Any, panel: Panel) -> None:
    from matplotlib.ticker import LogLocator

    for curve in panel.curves:
        _curve(axes, curve, "y" in panel.log)
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel)
    axes.set_title(panel.title, fontsize=10)
    if "x" in panel.log:
        axes.set_xscale("log")
        ticks = sorted({x for curve in panel.curves for x in curve.x})
        axes.set_xticks(ticks, [plain(tick) for tick in ticks])
    if "y" in panel.log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 300 else (1,)))
        axes.yaxis.set_major_formatter(lambda value, _: plain(value))
    axes.minorticks_off()
    axes.grid(which="major", color="#e5e5e5", lw=0.7)


def plain(value: float) -> str:
    """As 0.05, 2, 1,200, 30k, 1M."""
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    if value >= 1e4:
        return f"{value / 1e3:g}k"
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _curve(axes: Any, curve: Curve, log: bool) -> None:
    mean, spread = curve.means
    (line,) = axes.plot(curve.x, mean, label=curve.name, **{"lw": 1.6, "ms": 5} | curve.look)
    if spread.any():
        low = np.maximum(mean - spread, mean / 3) if log else mean - spread
        axes.fill_between(curve.x, low, mean + spread, color=line.get_color(), alpha=0.2, lw=0)
