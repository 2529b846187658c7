"""A figure of a plan's cost: delta over epsilon by every accountant, and the trade-off."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np

from accountant.accountants.tight import Tight
from accountant.accountants.tradeoff_curves import tradeoff
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.files import write_atomically
from accountant.plans.plan import Plan, as_plan
from accountant.reports.every_accountant import ALL_ACCOUNTANTS

# from dark to light in the order of `ALL_ACCOUNTANTS`; Tight is drawn last, as a thick line
COLOURS = ("#9c755f", "#b07aa1", "#76b7b2", "#f28e2b", "#59a14f", "#4e79a7", "#111111")


def plot(plan: Plan, delta: float, path: str | Path) -> None:
    """Write the figure of ``plan`` to ``path`` (.png, .svg or .pdf); needs matplotlib."""
    if Path(path).suffix not in {"", ".png", ".svg", ".pdf"}:
        raise ParameterError("--plot", str(path), "a .png, .svg or .pdf file")
    drawn, kind = io.BytesIO(), Path(path).suffix.lstrip(".") or "png"
    cost_figure(plan, delta).savefig(drawn, dpi=120, format=kind)
    write_atomically(Path(path), drawn.getvalue())


def cost_figure(plan: Plan, delta: float) -> Any:
    """Return the figure of ``plan``; needs matplotlib."""
    plan = as_plan(plan)
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        allowed = "used where matplotlib is installed (pip install matplotlib)"
        raise ParameterError("plot", "no matplotlib", allowed) from None
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    curve_axes, attack_axes = figure.subplots(1, 2)
    # from a thousandth of the plan's delta towards 1, closer together where curves bend to 0
    least_delta = max(delta, 1e-12) * 1e-3
    deltas = np.concatenate([np.geomspace(least_delta, 0.02, 48), np.linspace(0.04, 0.98, 25)])
    for accountant, colour in zip(ALL_ACCOUNTANTS, COLOURS, strict=True):
        is_tight = isinstance(accountant, Tight)
        # an interval that is narrower than the line
        drawn = Tight(width=1e-4) if is_tight else accountant
        try:
            epsilons = drawn.epsilons(plan, deltas)
        except UnsupportedPlan:
            continue
        finite = np.where(np.isfinite(epsilons), epsilons, np.nan)
        line_width = 2.6 if is_tight else 1.4
        curve_axes.plot(finite, deltas, color=colour, lw=line_width, label=accountant.name)
    curve_axes.set(
        yscale="log",
        xlabel="epsilon",
        ylabel="delta",
        ylim=(max(delta, 1e-300) * 1e-3, 1.0),
        title="What each accountant can promise",
    )
    top = Tight().epsilon(plan, deltas[0])
    curve_axes.set_xlim(0.0, 1.5 * top if 0 < top < math.inf else 1.0)
    curve_axes.axhline(max(delta, 1e-300), color="#888888", lw=0.8, ls=":")
    curve_axes.legend(frameon=False)
    alpha = np.linspace(0, 1, 201)
    beta = tradeoff(plan, alpha)
    attack_axes.fill_between(alpha, beta, 1 - alpha, color="#4e79a7", alpha=0.15, lw=0)
    attack_axes.plot(alpha, beta, color="#111111", lw=2, label="any test, at best")
    attack_axes.plot(alpha, 1 - alpha, color="#888888", lw=0.8, ls=":", label="guessing")
    attack_axes.set(
        xlabel="type I error",
        ylabel="type II error",
        aspect="equal",
        xlim=(0, 1),
        ylim=(0, 1),
        title="What an attacker can do",
    )
    attack_axes.legend(frameon=False)
    return figure
