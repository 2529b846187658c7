"""Figures of a report: curves on the axes of `accountant.reports`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from accountant.reports.svg_axes import Axes, LinearScale, LogScale
from accountant.reports.svg_figures import Figure, Line
from audits.results.rows import ProfileCurve

HEIGHT = 290
MIN_DELTA = 1e-8  # the smallest delta that is drawn
Points = Sequence[tuple[float, float]]


def profile_figure(curve: ProfileCurve, claimed: str = "claimed") -> Figure:
    """Delta against epsilon: claimed, exact, and of the samples with their band."""
    # Dashed lines are drawn over the solid one, so that all are visible where they agree.
    lines = {"mean": curve.mean, "claimed": curve.claimed, "exact": curve.exact}
    visible = [d for values in lines.values() for d in values if d >= MIN_DELTA]
    low = max(MIN_DELTA, 10.0 ** math.floor(math.log10(min(visible, default=1e-2)) - 1e-9))
    every = 1 if low > 1e-5 else 2
    deltas = LogScale(min(low, 1e-2), 1.0, (1,), every, _format_power)
    axes = Axes(_epsilon_scale(curve.epsilon), deltas, "epsilon", "delta", HEIGHT)
    upper = _within(deltas, zip(curve.epsilon, curve.upper, strict=False))
    lower = _within(deltas, zip(curve.epsilon, curve.lower, strict=False))
    names = {"claimed": claimed, "exact": "exact", "mean": "samples and band"}
    drawn = []
    for name, values in lines.items():
        if not values:
            continue
        # A line ends where it leaves the picture.
        end = next((i + 1 for i, d in enumerate(values) if d < deltas.low), len(values))
        points = _within(deltas, zip(curve.epsilon[:end], values[:end], strict=True))
        drawn.append(Line(name, names[name], axes.points(points)))
    caption = "delta against epsilon: " + ", ".join(line.words for line in drawn)
    return Figure(axes, tuple(drawn), caption, band=axes.points([*upper, *lower[::-1]]))


def power_figure(guess: Points, limit: Points, samples: int, claim: str) -> Figure:
    """Runs that a violation takes against its size, and the runs that there were."""
    runs = [samples, *(y for _, y in [*guess, *limit] if math.isfinite(y))]
    low, high = math.floor(math.log10(min(runs))), math.ceil(math.log10(max(runs)))
    scale = LogScale(10.0**low, 10.0**high, (1,), label=_format_power)
    truths = _epsilon_scale([x for x, _ in guess])
    axes = Axes(truths, scale, f"true epsilon, where {claim} is claimed", "runs", HEIGHT)
    here = [(truths.low, float(samples)), (truths.high, float(samples))]
    lines = (
        ("mean", "guess test", guess),
        ("exact", "any test (limit)", limit),
        ("claimed", f"here: {samples:,} runs", here),
    )
    drawn = [
        Line(name, label, axes.points([(x, y) for x, y in points if math.isfinite(y)]))
        for name, label, points in lines
    ]
    return Figure(axes, tuple(drawn), "runs needed against the true epsilon")


def _epsilon_scale(epsilons: Sequence[float]) -> LinearScale:
    return LinearScale(epsilons[0], epsilons[-1])


def _within(scale: LogScale, points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points with what lies beyond an end of the scale at that end."""
    return [(x, min(max(y, scale.low), scale.high)) for x, y in points]


def _format_power(value: float) -> str:
    return "1" if value == 1 else f"1e{round(math.log10(value))}"
