"""Figures as inline SVG: no script, a text alternative, colours from the page's own style."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from audits.report.words import format_number
from audits.results.rows import ProfileCurve, ReportRow

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 310, 64, 28, 34, 44
MIN_DELTA = 1e-8  # the smallest delta that is drawn
BAR_WIDTH, BAR_HEIGHT = 150, 22
Points = Sequence[tuple[float, float]]


@final
@dataclass(frozen=True, slots=True)
class Axes:
    """A linear x axis and a logarithmic y axis."""

    left: float
    right: float
    low: float
    high: float

    def x(self, value: float) -> float:
        """Place of a value along the page."""
        share = (value - self.left) / (self.right - self.left)
        return LEFT + (WIDTH - LEFT - RIGHT) * share

    def y(self, value: float) -> float:
        """Place of a value down the page; a value below the axis lies on its end."""
        kept = min(max(value, self.low), self.high)
        share = math.log(self.high / kept) / math.log(self.high / self.low)
        return TOP + (HEIGHT - TOP - BOTTOM) * share

    def points(self, points: Points) -> str:
        """The places of points in SVG syntax."""
        return " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in points)

    def frame(self, across: str, down: str, step: int) -> list[str]:
        """Grid lines, ticks, and the names of the axes."""
        parts, power = [], math.ceil(math.log10(self.low) - 1e-9)
        while 10.0**power <= self.high * (1 + 1e-9):
            y = self.y(10.0**power)
            parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(_svg_text(LEFT - 6, y + 4, f"1e{power}" if power else "1", "end"))
            power += step
        for at in range(6):
            value = self.left + (self.right - self.left) * at / 5
            parts.append(_svg_text(self.x(value), HEIGHT - BOTTOM + 20, f"{value:.2f}", "middle"))
        parts.append(_svg_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, across, "middle"))
        parts.append(
            f'<text x="14" y="{(HEIGHT - BOTTOM) / 2:.0f}" text-anchor="middle" '
            f'transform="rotate(-90 14 {(HEIGHT - BOTTOM) / 2:.0f})">{html.escape(down)}</text>'
        )
        return parts


def profile_figure(curve: ProfileCurve, claimed: str = "claimed") -> str:
    """Delta against epsilon: claimed, exact, and of the samples with their band."""
    # dashed lines are drawn over the whole one, so that all are seen where they agree
    lines = {"mean": curve.mean, "claimed": curve.claimed, "exact": curve.exact}
    seen = [d for values in lines.values() for d in values if d >= MIN_DELTA]
    low = max(MIN_DELTA, 10.0 ** math.floor(math.log10(min(seen, default=1e-2)) - 1e-9))
    axes = Axes(curve.epsilon[0], curve.epsilon[-1], min(low, 1e-2), 1.0)
    parts = axes.frame("epsilon", "delta", 1 if low > 1e-5 else 2)
    if curve.upper:
        above = list(zip(curve.epsilon, curve.upper, strict=True))
        below = list(zip(curve.epsilon, curve.lower, strict=True))
        parts.append(f'<polygon class="band" points="{axes.points([*above, *below[::-1]])}"/>')
    names = {"claimed": claimed, "exact": "exact", "mean": "samples and band"}
    shown = [name for name, values in lines.items() if values]
    for place, name in enumerate(shown):
        drawn = list(zip(curve.epsilon, lines[name], strict=True))
        # a line ends where it leaves the figure
        last = next((i + 1 for i, (_, d) in enumerate(drawn) if d < axes.low), len(drawn))
        parts.append(f'<polyline class="{name}" points="{axes.points(drawn[:last])}"/>')
        parts += _legend(place, name, names[name])
    return _svg(parts, "delta against epsilon: " + ", ".join(names[name] for name in shown))


def power_figure(guess: Points, limit: Points, samples: int, claim: str) -> str:
    """The runs that detect a violation against its size, and the runs of this report."""
    runs = [y for _, y in [*guess, *limit] if math.isfinite(y)]
    axes = Axes(
        guess[0][0], guess[-1][0], 10.0 ** math.floor(math.log10(min([*runs, samples]))),
        10.0 ** math.ceil(math.log10(max([*runs, samples]))),
    )  # fmt: skip
    parts = axes.frame(f"true epsilon, where {claim} is claimed", "runs", 1)
    here = [(axes.left, float(samples)), (axes.right, float(samples))]
    for place, (name, words, points) in enumerate([
        ("mean", "guess test", guess), ("exact", "any test (limit)", limit),
        ("claimed", f"here: {samples:,} runs", here),
    ]):  # fmt: skip
        finite = [(x, y) for x, y in points if math.isfinite(y)]
        parts.append(f'<polyline class="{name}" points="{axes.points(finite)}"/>')
        parts += _legend(place, name, words)
    return _svg(parts, "runs needed against the true epsilon")


def interval_figure(row: ReportRow) -> str:
    """The bound as an interval from the lower bound upwards, the claim a bar, exact a dot."""
    lower, claim, exact = row.epsilon_lower, row.claim[0], row.exact_epsilon
    known = [x for x in (lower, claim, exact) if x is not None and math.isfinite(x)]
    if lower is None or not known or max(known) <= 0:
        return ""
    scale, middle = (BAR_WIDTH - 12) / (1.25 * max(known)), BAR_HEIGHT / 2
    start, colour = 4 + scale * lower, "good" if row.as_expected else "bad"
    parts = [f'<line x1="4" x2="{BAR_WIDTH - 6}" y1="{middle}" y2="{middle}"/>',
             f'<rect class="{colour}" x="{start:.1f}" y="{middle - 3}" height="6" '
             f'width="{BAR_WIDTH - 8 - start:.1f}"/>',
             f'<path class="{colour}" d="M{BAR_WIDTH - 9} {middle - 6}l8 6l-8 6z"/>']  # fmt: skip
    if math.isfinite(claim):
        at = 4 + scale * claim
        parts.append(f'<path class="claim" d="M{at:.1f} 2V{BAR_HEIGHT - 2}"/>')
    if exact is not None:
        parts.append(f'<circle cx="{4 + scale * exact:.1f}" cy="{middle}" r="3.5"/>')
    words = (
        f"at least {format_number(lower)}, claimed {format_number(claim)}, exact "
        f"{format_number(exact)}"
    )
    return (
        f'<svg class="interval" viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}" '
        f'width="{BAR_WIDTH}" height="{BAR_HEIGHT}" '
        f'role="img" aria-label="{words}"><title>{words}</title>{"".join(parts)}</svg>'
    )


def _legend(place: int, name: str, words: str) -> list[str]:
    x = 14 + 208 * place  # a row above the picture
    return [
        f'<polyline class="{name}" points="{x},14 {x + 26},14"/>',
        _svg_text(x + 32, 18, words, "start"),
    ]


def _svg_text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'


def _svg(parts: Sequence[str], label: str) -> str:
    top = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(label)}">'
    return top + "".join(parts) + "</svg>"
