"""The two figures of an audit's report: delta against epsilon, and runs against a violation's size.

Both are lines on the axes of `accountant.reports`, for a page of HTML with SVG.  `profile_figure`
compares the privacy profile that is claimed with the exact one and with that of the samples;
`power_figure` says how many runs would have detected a violation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from accountant.reports.svg_axes import Axes, LinearScale, LogScale
from accountant.reports.svg_figures import Figure, Line
from audits.results.rows import ProfileCurve

HEIGHT = 290  # of a figure, in units of its viewBox
MIN_DELTA = 1e-8  # the smallest delta that is drawn
Points = Sequence[tuple[float, float]]


def profile_figure(curve: ProfileCurve, claimed: str = "claimed") -> Figure:
    """The figure of delta against epsilon: as claimed, exact, and of the samples with their band.

    ``claimed`` is the legend's word for the claimed line.  The axis of delta is logarithmic, from a
    power of ten below the smallest delta shown, in [1e-8, 0.01], up to 1.
    """
    # By the name of a line's style its deltas.  Dashed lines are drawn over the solid one, that of
    # the samples, so that all are visible where they agree.
    lines = {"mean": curve.mean, "claimed": curve.claimed, "exact": curve.exact}
    shown_deltas = [delta for deltas in lines.values() for delta in deltas if delta >= MIN_DELTA]
    smallest = min(shown_deltas, default=1e-2)
    # The 1e-9 puts the lowest tick below the smallest delta also where that is a power of ten.
    lowest_tick = max(MIN_DELTA, 10.0 ** math.floor(math.log10(smallest) - 1e-9))
    tick_step = 1 if lowest_tick > 1e-5 else 2  # a label for every power of ten, or every second
    delta_scale = LogScale(min(lowest_tick, 1e-2), 1.0, (1,), tick_step, _format_power)
    axes = Axes(_epsilon_scale(curve.epsilon), delta_scale, "epsilon", "delta", HEIGHT)
    upper = _within(delta_scale, zip(curve.epsilon, curve.upper, strict=False))
    lower = _within(delta_scale, zip(curve.epsilon, curve.lower, strict=False))
    labels = {"claimed": claimed, "exact": "exact", "mean": "samples and band"}
    drawn = []
    for name, deltas in lines.items():
        if not deltas:
            continue
        # A line ends at its first point below the axis.
        shown_count = next(
            (i + 1 for i, delta in enumerate(deltas) if delta < delta_scale.low), len(deltas)
        )
        points = _within(
            delta_scale, zip(curve.epsilon[:shown_count], deltas[:shown_count], strict=True)
        )
        drawn.append(Line(name, labels[name], axes.points(points)))
    caption = "delta against epsilon: " + ", ".join(line.words for line in drawn)
    return Figure(axes, tuple(drawn), caption, band=axes.points([*upper, *lower[::-1]]))


def power_figure(guess: Points, limit: Points, samples: int, claim: str) -> Figure:
    """The figure of the runs that detect a violation, against the true epsilon.

    ``guess`` and ``limit`` are points (true epsilon, runs needed) of the guess test and of the best
    possible test; runs may be infinite, and such points are not drawn.  A third line is the number
    of runs that there were, ``samples``.  ``claim`` is the claimed epsilon as text.
    """
    runs = [samples, *(needed for _, needed in [*guess, *limit] if math.isfinite(needed))]
    low_power, high_power = math.floor(math.log10(min(runs))), math.ceil(math.log10(max(runs)))
    run_scale = LogScale(10.0**low_power, 10.0**high_power, (1,), label=_format_power)
    epsilon_scale = _epsilon_scale([epsilon for epsilon, _ in guess])
    axes = Axes(epsilon_scale, run_scale, f"true epsilon, where {claim} is claimed", "runs", HEIGHT)
    own_runs = [(epsilon_scale.low, float(samples)), (epsilon_scale.high, float(samples))]
    lines = (
        ("mean", "guess test", guess),
        ("exact", "any test (limit)", limit),
        ("claimed", f"here: {samples:,} runs", own_runs),
    )
    drawn = [
        Line(name, label, axes.points([(x, y) for x, y in points if math.isfinite(y)]))
        for name, label, points in lines
    ]
    return Figure(axes, tuple(drawn), "runs needed against the true epsilon")


def _epsilon_scale(epsilons: Sequence[float]) -> LinearScale:
    return LinearScale(epsilons[0], epsilons[-1])


def _within(scale: LogScale, points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points; those beyond an end of the scale are moved to that end."""
    return [(x, min(max(y, scale.low), scale.high)) for x, y in points]


def _format_power(value: float) -> str:
    """A power of ten as 1, 1e1, 1e-2, ..."""
    return "1" if value == 1 else f"1e{round(math.log10(value))}"
