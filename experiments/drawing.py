"""Charts as pictures: PNG and SVG, whose curves differ in line or mark as well as in colour."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from experiments.charts import Chart, Curve, Panel, power_of_ten

# text stays text, and neither a date nor a random name makes two drawings differ
SVG: dict[Any, Any] = {
    "svg.hashsalt": "dp-attest",
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans", "Verdana"],
}


def png(chart: Chart, title: str) -> bytes:
    """The drawing in pixels."""
    drawn = io.BytesIO()
    _sheet(chart, title).savefig(drawn, dpi=110, format="png")
    return drawn.getvalue()


def svg(chart: Chart, title: str) -> bytes:
    """The drawing in lines; the group of a curve is named after its panel and the curve."""
    from matplotlib import rc_context

    drawn = io.BytesIO()
    with rc_context(SVG):
        facts = {"Title": title, "Date": None, "Creator": None}
        _sheet(chart, title).savefig(drawn, format="svg", metadata=facts)
    return drawn.getvalue()


def _sheet(chart: Chart, title: str) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet

    sheet = Sheet(figsize=(13, 5.4), layout="constrained")
    FigureCanvasAgg(sheet)
    sheet.suptitle(title)
    every = sheet.subplots(1, len(chart.panels), squeeze=False, sharey=bool(chart.key))[0]
    for axes, panel in zip(every, chart.panels, strict=True):
        for curve in panel.curves:
            _draw(axes, curve, "y" in panel.log).set_gid(f"{panel.name}/{curve.name}")
        _label(axes, panel)
    if chart.key:
        low, high = every[0].get_ylim()
        every[0].set_ylim(low * (low / high) ** 0.3, high)  # room for the panels' own names
        for axes in every:
            axes.legend(frameon=False, fontsize=9, loc="lower left", handlelength=3.2)
        for curve in chart.key:
            _draw(every[0], curve, log=False)
    for axes, panel in zip(every, chart.panels, strict=True):
        _tick(axes, panel)
    names = {curve.name for curve in chart.key}
    handles = {
        handle.get_label(): handle
        for axes in every
        for handle in axes.get_legend_handles_labels()[0]
        if not names or handle.get_label() in names
    }
    seeds = max(curve.runs.shape[1] for panel in chart.panels for curve in panel.curves)
    sheet.legend(
        handles=list(handles.values()), loc="outside lower center", ncols=3, frameon=False,
        fontsize=10, handlelength=4, title_fontsize=9,
        title=f"means ± s.e. of {seeds} runs" if seeds > 1 else None,
    )  # fmt: skip
    return sheet


def _draw(axes: Any, curve: Curve, log: bool) -> Any:
    mean, error = curve.means
    (line,) = axes.plot(curve.x, mean, **{"label": curve.name, "lw": 1.6, "ms": 5} | curve.look)
    if error.any():
        low = np.maximum(mean - error, mean / 3) if log else mean - error
        axes.fill_between(curve.x, low, mean + error, color=line.get_color(), alpha=0.2, lw=0)
    return line


def _label(axes: Any, panel: Panel) -> None:
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel)
    axes.set_title(panel.title, fontsize=10)
    if "x" in panel.log:
        axes.set_xscale("log")
    if "y" in panel.log:
        axes.set_yscale("log")


def _tick(axes: Any, panel: Panel) -> None:
    from matplotlib.ticker import LogLocator

    if "x" in panel.log:
        ticks = sorted({x for curve in panel.curves for x in curve.x})
        axes.set_xticks(ticks, [short(tick) for tick in ticks])
    if "y" in panel.log:
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 300 else (1,)))
        axes.yaxis.set_major_formatter(lambda value, _: short(value))
    axes.minorticks_off()
    axes.grid(which="major", color="#e5e5e5", lw=0.7)


def short(value: float) -> str:
    """As 10⁻⁵, 0.05, 2, 1,200, 30k, 1M."""
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    if value >= 1e4:
        return f"{value / 1e3:g}k"
    if 0 < value < 9e-4:
        return power_of_ten(value)
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"
