"""What a ledger's lines come to: a step curve over time, and totals by kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import final

from accountant.book.history import Line, Status
from accountant.errors import BudgetExceeded, ParameterError, UnsupportedPlan
from accountant.formats.plan_json import from_dict
from accountant.formatting import escape_html, format_short, format_upper
from accountant.ledger.composition_notions import notion_of
from accountant.reports.svg_axes import LEFT, RIGHT, TOP, svg_text

WIDTH, HEIGHT, BOTTOM = 640, 300, 50
MAX_DRAWN_STEPS = 400  # more are finer than the picture
ROUND_OFF_MARGIN = 1e-9


@final
@dataclass(frozen=True, slots=True)
class ReleaseKind:
    """One kind of release; ``capacity``: how many more the rest would pay for, None if unknown."""

    what: str
    requested: int
    answered: int
    failed: int
    capacity: int | None


def releases_by_kind(status: Status, lines: Sequence[Line]) -> list[ReleaseKind]:
    """The kinds in the order in which they first came, plans left out: their steps are there."""
    by: dict[str, list[Line]] = {}
    for line in lines:
        if line.kind != "plan":
            by.setdefault(line.what, []).append(line)
    return [
        ReleaseKind(
            what, len(some), sum(line.outcome == "answered" for line in some),
            sum(line.outcome != "answered" for line in some), _remaining_capacity(status, some[0]),
        )
        for what, some in by.items()
    ]  # fmt: skip


def _remaining_capacity(status: Status, line: Line) -> int | None:
    """How many more of it fit into what remains, as the ledger's notion adds them up."""
    notion = notion_of(status.notion, status.budget, status.order)
    try:
        one = notion.spend(notion.zero, from_dict(line.facts)).spent
    except BudgetExceeded:
        return 0
    except (ParameterError, UnsupportedPlan):  # of a package that is not installed here
        return None
    left = Decimal(repr(status.limit)) - Decimal(repr(status.total))
    if not one or left <= 0:
        return None if not one else 0
    if notion.adds_exactly:  # decimals
        return int(left / one)
    # the others are rounded up at every step
    return int(left / (Decimal(repr(one)) * Decimal(1 + ROUND_OFF_MARGIN)))


def spending_figure(status: Status, lines: Sequence[Line]) -> str:
    """Epsilon over time as a staircase, the budget a line above it."""
    times = [datetime.fromisoformat(line.time) for line in lines]
    start, end = datetime.fromisoformat(status.opened), times[-1]
    span = max((end - start).total_seconds(), 1e-6)
    top = 1.08 * max(status.budget.epsilon, *(line.epsilon for line in lines[-1:]))

    def x(when: datetime) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (when - start).total_seconds() / span

    def y(epsilon: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(epsilon, top) / top

    kept = range(0, len(lines), max(1, len(lines) // MAX_DRAWN_STEPS))
    steps = (f"H{x(times[i]):.1f}V{y(lines[i].epsilon):.1f}" for i in [*kept, len(lines) - 1])
    path = [f"M{x(start):.1f} {y(0):.1f}", *steps, f"H{WIDTH - RIGHT}"]
    parts = _frame(y, top, start, end)
    limit = y(status.budget.epsilon)
    parts.append(f'<path class="budgetline" d="M{LEFT} {limit:.1f}H{WIDTH - RIGHT}"/>')
    parts.append(f'<path class="spentarea" d="{"".join(path)}V{y(0):.1f}Z"/>')
    parts.append(f'<path class="spent" d="{"".join(path)}"/>')
    words = (
        f"epsilon spent over time: {format_upper(status.epsilon)} of "
        f"{format_short(status.budget.epsilon)}"
    )
    keys = (
        '<li><svg viewBox="0 0 28 12" aria-hidden=true><path class="spent" d="M1 10H14V3H27"/>'
        f"</svg>spent, at delta {format_short(status.budget.delta)}</li>"
        '<li><svg viewBox="0 0 28 12" aria-hidden=true><path class="budgetline" d="M1 6H27"/>'
        "</svg>the budget</li>"
    )
    drawn = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape_html(words)}">'
    return f"<figure>{drawn}{''.join(parts)}</svg><ul class=legend>{keys}</ul></figure>"


def _frame(y: Callable[[float], float], top: float, start: datetime, end: datetime) -> list[str]:
    parts, step = [], _step(top)
    for k in range(int(top / step) + 1):
        height = y(k * step)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>'
        )
        parts.append(svg_text(LEFT - 8, height + 4, format_short(float(f"{k * step:.6g}")), "end"))
    form = _form(end - start)
    ends = ((0.0, "start", "tick"), (0.5, "middle", "tick odd"), (1.0, "end", "tick"))
    for share, anchor, kind in ends:
        place = LEFT + (WIDTH - LEFT - RIGHT) * share
        words = (start + share * (end - start)).strftime(form)
        parts.append(svg_text(place, HEIGHT - BOTTOM + 20, words, anchor, kind))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text class="axis" x="16" y="{middle:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 16 {middle:.0f})">epsilon</text>'
    )
    return parts


def _step(top: float) -> float:
    """A round step of which about five reach the top."""
    size = 10.0 ** math.floor(math.log10(top / 5))
    return size * next(step for step in (1, 2, 5, 10) if top / (size * step) <= 6)


def _form(span: timedelta) -> str:
    if span > timedelta(days=3):
        return "%Y-%m-%d"
    return "%Y-%m-%d %H:%M" if span > timedelta(hours=1) else "%H:%M:%S"
