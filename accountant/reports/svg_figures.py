"""The curves of a page: every accountant's epsilon against delta, and the plan's under change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from accountant.formatting import escape_html, format_short, format_upper
from accountant.reports.svg_axes import Axes, padded_range

Curve = Sequence[float]


def curves_figure(
    deltas: Sequence[float], curves: Mapping[str, Curve], budget: tuple[float, float]
) -> str:
    """One line an accountant, in the order of their names; the budget is a cross."""
    shown = [(i, delta) for i, delta in enumerate(deltas) if delta > 0]
    tight = [value for curve in curves.values() for value in curve if 0 < value < math.inf]
    least = min(tight, default=1.0)
    # a bound thirty times the least one tells nothing more by being drawn
    seen = [value for value in tight if value <= 30 * least]
    axes = Axes((shown[0][1], shown[-1][1]), padded_range([*seen, budget[0]]))
    parts = [axes.clip("inside"), *axes.frame("delta", "epsilon")]
    lines, keys = [], []
    for place, (name, curve) in enumerate(curves.items()):
        drawn = [(delta, curve[i]) for i, delta in shown if 0 < curve[i] < math.inf]
        seen_somewhere = any(value <= axes.y[1] for _, value in drawn)
        lines.append(f'<polyline class="curve c{place}" points="{axes.points(drawn)}"/>')
        note = "" if seen_somewhere else " (above the picture)" if drawn else " (no bound)"
        keys.append(_key(f"c{place}", f"{name}{note}"))
    parts.append(f'<g clip-path="url(#inside)">{"".join(lines)}</g>')
    parts += _cross(axes, budget)
    keys += _cross_key(budget)
    words = f"epsilon against delta by {', '.join(curves)}; the table below has the numbers"
    return f"<figure>{axes.drawing(parts, words)}<ul class=legend>{''.join(keys)}</ul></figure>"


def change_figure(
    deltas: Sequence[float], plan: Curve, axes: Axes, budget: tuple[float, float]
) -> str:
    """The plan's curve, and one above or below it that a script moves."""
    points = [(delta, plan[i]) for i, delta in enumerate(deltas) if delta > 0]
    finite = [(delta, value) for delta, value in points if 0 < value < math.inf]
    parts = [axes.clip("within"), *axes.frame("delta", "epsilon")]
    parts.append(
        f'<g clip-path="url(#within)"><polyline class="curve asplanned" '
        f'points="{axes.points(finite)}"/><polyline class="curve moved" id="moved" '
        f'points="{axes.points(finite)}"/><g id="dots"></g></g>'
    )
    parts += _cross(axes, budget)
    parts.append('<circle id="here" class="here" r="6" cx="-20" cy="-20"/>')
    keys = [
        _key("moved", "as the sliders stand: dots are computed, lines only join them"),
        _key("asplanned", "the plan as it is"),
        *_cross_key(budget),
    ]
    drawn = axes.drawing(parts, "epsilon against delta, of the plan and as the sliders stand")
    return f"<figure>{drawn}<ul class=legend>{''.join(keys)}</ul></figure>"


def budget_bar(spent: float, total: float, name: str = "") -> str:
    """A bar of how much of the budget is taken; its words say the same."""
    share = 1.0 if math.isinf(spent) else min(spent / total, 1.0)
    kind = "over" if spent > total else "taken"
    known = f' id="{name}"' if name else ""
    words = f"{format_upper(spent)} of {format_short(total)} is taken"
    return (
        f'<svg{known} class=meter viewBox="0 0 100 4" preserveAspectRatio=none role=img '
        f'aria-label="{escape_html(words)}"><rect class=rest width=100 height=4 />'
        f'<rect class={kind} width="{100 * share:.2f}" height=4 /></svg>'
    )


def _cross(axes: Axes, budget: tuple[float, float]) -> list[str]:
    epsilon, delta = budget
    if delta <= 0:
        return []
    x, y = axes.across(delta), axes.down(epsilon)
    bottom = axes.down(axes.y[0])
    left = axes.across(axes.x[0])
    return [
        f'<path class="budgetline" d="M{left:.1f} {y:.1f}H{x:.1f}V{bottom:.1f}"/>',
        f'<path class="budget" d="M{x - 6:.1f} {y:.1f}h12M{x:.1f} {y - 6:.1f}v12"/>',
    ]


def _key(kind: str, words: str) -> str:
    line = f'<polyline class="curve {kind}" points="1,6 27,6"/>'
    return f'<li><svg viewBox="0 0 28 12" aria-hidden=true>{line}</svg>{escape_html(words)}</li>'


def _cross_key(budget: tuple[float, float]) -> list[str]:
    if budget[1] <= 0:  # no logarithmic axis has a place for it
        return []
    cross = '<path class="budget" d="M8 6h12M14 0v12"/>'
    return [f'<li><svg viewBox="0 0 28 12" aria-hidden=true>{cross}</svg>the budget</li>']
