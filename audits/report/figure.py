"""The profile as a figure: what the samples say, beside what was paid."""

from __future__ import annotations

import numpy as np

from accountant.numerics import Array
from audits.examination import Profile

WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM = 640, 320, 60, 24, 40
FLOOR = 1e-8  # the smallest delta that is drawn


def profile_figure(curve: Profile) -> str:
    """Delta against epsilon on a logarithmic scale, as inline SVG with a text alternative."""
    x = LEFT + (WIDTH - LEFT - RIGHT) * curve.epsilon / curve.epsilon[-1]
    band = [*_points(x, curve.upper), *reversed(_points(x, curve.lower))]
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="delta against epsilon: '
        f'the band of the samples and the curve of the accountant">',
        *(_grid_line(10.0**power) for power in range(-8, 1, 2)),
        *(_tick(at, epsilon) for at, epsilon in zip(x[::10], curve.epsilon[::10], strict=True)),
        f'<polygon class="band" points="{" ".join(band)}"/>',
        f'<polyline class="mean" points="{" ".join(_points(x, curve.mean))}"/>',
        f'<polyline class="paid" points="{" ".join(_points(x, curve.accountant))}"/>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 4}">epsilon</text>',
        f'<text class="paid" x="{WIDTH - RIGHT}" y="24" text-anchor="end">accountant</text>',
        f'<text class="mean" x="{WIDTH - RIGHT}" y="44" text-anchor="end">samples and band</text>',
        "</svg>",
    ]
    return "".join(parts)


def _height(delta: float) -> float:
    share = np.log10(max(delta, FLOOR)) / np.log10(FLOOR)
    return float(10 + (HEIGHT - BOTTOM - 10) * share)


def _points(x: Array, delta: Array) -> list[str]:
    return [f"{a:.1f},{_height(d):.1f}" for a, d in zip(x, delta, strict=True)]


def _grid_line(delta: float) -> str:
    y = _height(delta)
    line = f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return line + f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{delta:.0e}</text>'


def _tick(x: float, epsilon: float) -> str:
    return f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{epsilon:.2f}</text>'
