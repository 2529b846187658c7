"""The figures of a plan's page: every accountant's epsilon against delta, and the plan's own curve.

The second figure has a copy of the plan's curve that a script moves with the sliders.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from accountant.accountants.budget import Budget
from accountant.reports.svg_axes import Axes, LogScale, padded_range

Curve = Sequence[float]


@final
@dataclass(frozen=True, slots=True)
class Line:
    """A line of a figure."""

    kind: str  # the class that gives it its style
    words: str  # its entry in the legend
    points: str  # in SVG's syntax


@final
@dataclass(frozen=True, slots=True)
class Figure:
    """Lines on axes, and ``words`` that describe them to a reader who cannot see them.

    ``budget`` is the position of the cross that marks the budget, and ``band`` the points of an
    area.
    """

    axes: Axes[float]
    lines: tuple[Line, ...]
    words: str
    budget: tuple[float, float] | None = None
    band: str = ""


def epsilon_axes(deltas: Sequence[float], epsilons: Iterable[float]) -> Axes[float]:
    """Return logarithmic axes of epsilon against delta that include the given values.

    ``deltas`` ascend, and one is above 0.
    """
    shown = [delta for delta in deltas if delta > 0]
    x, y = LogScale(shown[0], shown[-1]), LogScale(*padded_range(epsilons))
    return Axes(x, y, "delta", "epsilon")


def curves_figure(deltas: Sequence[float], curves: Mapping[str, Curve], budget: Budget) -> Figure:
    """Return one line for each accountant, in the order of ``curves``; the budget is a cross."""
    finite = [value for curve in curves.values() for value in curve if 0 < value < math.inf]
    smallest = min(finite, default=1.0)
    # A larger bound than thirty times the smallest would only make the axis longer.
    near_values = [value for value in finite if value <= 30 * smallest]
    axes, lines = epsilon_axes(deltas, [*near_values, budget.epsilon]), []
    for index, (name, curve) in enumerate(curves.items()):
        drawn = _drawn(deltas, curve)
        visible = any(value <= axes.y.high for _, value in drawn)
        note = "" if visible else " (above the picture)" if drawn else " (no bound)"
        lines.append(Line(f"c{index}", f"{name}{note}", axes.points(drawn)))
    caption = f"epsilon against delta by {', '.join(curves)}; the table below has the numbers"
    return Figure(axes, tuple(lines), caption, _cross(axes, budget))


def change_figure(
    deltas: Sequence[float], plan: Curve, axes: Axes[float], budget: Budget
) -> Figure:
    """Return the plan's curve, and one above or below it that a script moves."""
    points = axes.points(_drawn(deltas, plan))
    lines = (
        Line("asplanned", "the plan as it is", points),
        Line("moved", "as the sliders stand: dots are computed, lines only join them", points),
    )
    caption = "epsilon against delta, of the plan and as the sliders stand"
    return Figure(axes, lines, caption, _cross(axes, budget))


def _drawn(deltas: Sequence[float], curve: Curve) -> list[tuple[float, float]]:
    """Return the points that have a position on logarithmic axes."""
    pairs = zip(deltas, curve, strict=True)
    return [(delta, value) for delta, value in pairs if delta > 0 and 0 < value < math.inf]


def _cross(axes: Axes[float], budget: Budget) -> tuple[float, float] | None:
    """Return the position of the budget on the axes; None if it has none."""
    # a logarithmic axis cannot show delta 0
    return (axes.across(budget.delta), axes.down(budget.epsilon)) if budget.delta > 0 else None
