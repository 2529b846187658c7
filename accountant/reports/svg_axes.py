"""Two logarithmic axes as inline SVG; a script that draws along has the same ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, final

from accountant.formatting import escape_html, format_short

LEFT, RIGHT, TOP, BOTTOM = 74, 22, 14, 50


@final
@dataclass(frozen=True, slots=True)
class Axes:
    """Places in a picture of values from ``x`` and ``y``, (least, greatest) each."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: int = 640
    height: int = 330

    def across(self, value: float) -> float:
        """Place along the picture."""
        return LEFT + (self.width - LEFT - RIGHT) * _log_fraction(value, self.x)

    def down(self, value: float) -> float:
        """Place down the picture."""
        return self.height - BOTTOM - (self.height - TOP - BOTTOM) * _log_fraction(value, self.y)

    def points(self, points: Iterable[tuple[float, float]]) -> str:
        """Places of points, as SVG wants them."""
        return " ".join(f"{self.across(a):.1f},{self.down(b):.1f}" for a, b in points)

    def as_data(self) -> dict[str, Any]:
        """What a script needs to place the same points."""
        return {**asdict(self), "left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM}

    def frame(self, across: str, down: str) -> list[str]:
        """Grid lines, ticks, and the names of the axes."""
        left, right = self.across(self.x[0]), self.across(self.x[1])
        top, bottom = self.down(self.y[1]), self.down(self.y[0])
        parts = []
        for value in _ticks(self.y, (1, 2, 5)):
            y = self.down(value)
            parts.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(svg_text(left - 8, y + 4, format_short(value), "end"))
        for place, value in enumerate(_ticks(self.x, (1,))):
            x, kind = self.across(value), "tick odd" if place % 2 else "tick"
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}"/>')
            parts.append(svg_text(x, bottom + 20, format_short(value), "middle", kind))
        parts.append(svg_text((left + right) / 2, self.height - 6, across, "middle", "axis"))
        middle = (top + bottom) / 2
        parts.append(
            f'<text class="axis" x="16" y="{middle:.0f}" text-anchor="middle" '
            f'transform="rotate(-90 16 {middle:.0f})">{escape_html(down)}</text>'
        )
        return parts

    def clip(self, name: str) -> str:
        """A clip path of the picture's inside."""
        return (
            f'<clipPath id="{name}"><rect x="{LEFT}" y="{TOP}" '
            f'width="{self.width - LEFT - RIGHT}" height="{self.height - TOP - BOTTOM}"/>'
            "</clipPath>"
        )

    def drawing(self, parts: Sequence[str], words: str, name: str = "") -> str:
        """The picture, with words for whoever does not see it."""
        known = f' id="{name}"' if name else ""
        return (
            f'<svg{known} viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape_html(words)}">{"".join(parts)}</svg>'
        )


def svg_text(x: float, y: float, words: str, anchor: str, kind: str = "tick") -> str:
    """Words in a picture."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape_html(words)}</text>'


def padded_range(values: Iterable[float]) -> tuple[float, float]:
    """A range that leaves some air around the finite positive values; at least a factor of 2."""
    seen = [value for value in values if 0 < value < math.inf] or [1.0]
    low, high = min(seen), max(seen)
    air = max((high / low) ** 0.06, math.sqrt(2 / min(high / low, 2)), 1.05)
    return low / air, high * air


def _log_fraction(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return math.log(min(max(value, low / 1e3), high * 1e3) / low) / math.log(high / low)


def _ticks(ends: tuple[float, float], steps: Sequence[float]) -> list[float]:
    low, high = ends
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    if high < 6 * low:
        steps = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    elif len(powers) > 6:
        steps = (1,)
    # decimal words, so that 5e-6 is not 4.999e-6
    found = [float(f"{step}e{power}") for power in powers for step in steps]
    return [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
