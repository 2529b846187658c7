"""Axes of a figure: scales with ticks at round numbers or times, and positions of values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, Protocol, TypeVar, final

from accountant.formatting import format_short

Value_contra = TypeVar("Value_contra", contravariant=True)  # the values of a scale
X = TypeVar("X")  # the values of a horizontal axis: numbers or times
DAY = 86_400  # seconds
# Distances between the labels of a time axis, in seconds and in months, and the most labels that it
# has; a label has up to 11 letters.
ROUND_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600,
                 43_200, DAY, 2 * DAY, 5 * DAY, 10 * DAY)  # fmt: skip
ROUND_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1_200)
MAX_TIME_TICKS = 5


@final
@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis."""

    share: float  # where it is: 0 at the low end of the axis, 1 at the high end
    label: str
    anchor: str = "middle"  # the part of the text that is there, as in SVG's text-anchor


class Scale(Protocol[Value_contra]):
    """A map from values to positions between the two ends of an axis."""

    @property
    def low(self) -> Any:
        """Return the value at the start of the axis."""

    @property
    def high(self) -> Any:
        """Return the value at the end of the axis."""

    def share(self, value: Value_contra) -> float:
        """Return the share of the axis' length: 0 at its low end, 1 at its high end."""

    def ticks(self) -> list[Tick]:
        """Return the labels of the axis."""


@final
@dataclass(frozen=True, slots=True)
class LogScale:
    """A logarithmic scale; ticks at ``steps`` times powers of ten.

    Of these ticks every ``every``-th is shown, from the lowest one on.
    """

    low: float  # the values at the two ends of the axis, above 0
    high: float
    steps: Sequence[float] = (1, 2, 5)
    every: int = 1
    label: Callable[[float], str] = format_short  # returns the text of a tick

    def share(self, value: float) -> float:
        """Return the share of the axis' length; beyond an end, at most a factor of 1000."""
        clipped = min(max(value, self.low / 1e3), self.high * 1e3)
        return math.log(clipped / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[Tick]:
        """Return the ticks in view.

        Where the scale is shorter than a factor of 6, steps finer than ``steps`` are taken, and
        where more than six powers of ten are in view or next to it, powers alone.
        """
        low, high, steps = self.low, self.high, self.steps
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        if high < 6 * low:
            steps = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
        elif len(powers) > 6:
            steps = (1,)
        # parsed from decimal text, so that 5e-6 is not 4.999e-6
        candidates = [float(f"{step}e{power}") for power in powers for step in steps]
        # ticks at the ends themselves belong, in spite of round-off
        shown = [value for value in candidates if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        return [Tick(self.share(value), self.label(value)) for value in shown[:: self.every]]


@final
@dataclass(frozen=True, slots=True)
class LinearScale:
    """A linear scale; values beyond an end are drawn at that end."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """Return the share of the axis' length, from 0 to 1."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def ticks(self) -> list[Tick]:
        """Return at most seven ticks, at multiples of 1, 2 or 5 times a power of ten."""
        span = self.high - self.low
        # the power of ten below a fifth of the span, and the least multiple of it with <= 6 steps
        size = 10.0 ** math.floor(math.log10(span / 5))
        step = size * next(multiple for multiple in (1, 2, 5, 10) if span / (size * multiple) <= 6)
        multiples = range(
            math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1
        )
        values = [float(f"{k * step:.6g}") for k in multiples]
        return [Tick(self.share(value), format_short(value)) for value in values]


@final
@dataclass(frozen=True, slots=True)
class TimeScale:
    """A span of time, labelled at round times."""

    low: datetime
    high: datetime

    def share(self, value: datetime) -> float:
        """Return the share of the axis' length; 0 where the span is empty."""
        return (value - self.low).total_seconds() / max(self._span.total_seconds(), 1e-6)

    def ticks(self) -> list[Tick]:
        """Return at most five whole seconds, minutes, hours, days, months or years."""
        # The finest round times of which few enough are inside.  A span without a round time has
        # one label, where it starts.
        inside = (
            (form, [time for time in times if self.low <= time <= self.high] or [self.low])
            for form, times in self._round_times()
        )
        form, shown = next(candidate for candidate in inside if len(candidate[1]) <= MAX_TIME_TICKS)
        ticks = []
        for time in shown:
            share = self.share(time)
            # Labels near an end are aligned so that none is cut off.
            anchor = "start" if share < 0.06 else "end" if share > 0.94 else "middle"
            ticks.append(Tick(share, time.strftime(form), anchor))
        return ticks

    def _round_times(self) -> Iterator[tuple[str, list[datetime]]]:
        """Yield formats and the round times for each, finer ones first.

        Of times that are too fine for the span, only the first `MAX_TIME_TICKS` + 1 are made:
        enough to see that they are too many.
        """
        midnight = self.low.replace(hour=0, minute=0, second=0, microsecond=0)
        for seconds in ROUND_SECONDS:
            step = timedelta(seconds=seconds)
            first_multiple = -((midnight - self.low) // step)
            form = "%H:%M:%S" if self._span <= timedelta(hours=1) else "%m-%d %H:%M"
            form = "%Y-%m-%d" if seconds >= DAY else form
            multiples = range(first_multiple, first_multiple + MAX_TIME_TICKS + 1)
            yield form, [midnight + k * step for k in multiples]
        start = midnight.replace(day=1)
        for months in ROUND_MONTHS:
            ends = (12 * time.year + time.month - 1 for time in (self.low, self.high))
            first_multiple, last_multiple = (end // months for end in ends)
            yield (
                "%Y-%m" if months < 12 else "%Y",
                [
                    start.replace(year=k * months // 12, month=k * months % 12 + 1)
                    for k in range(first_multiple, last_multiple + 1)
                ],
            )

    @property
    def _span(self) -> timedelta:
        return self.high - self.low


@final
@dataclass(frozen=True, slots=True)
class Axes(Generic[X]):
    """The axes of a figure and their names; positions are in units of its viewBox.

    ``left``, ``right``, ``top`` and ``bottom`` are the margins, in which labels are written.
    """

    x: Scale[X]
    y: Scale[float]
    x_name: str
    y_name: str
    height: int = 330
    width: ClassVar[int] = 640
    left: ClassVar[int] = 74
    right: ClassVar[int] = 22
    top: ClassVar[int] = 14
    bottom: ClassVar[int] = 50

    @property
    def inner_width(self) -> int:
        """Return the length of the x axis."""
        return self.width - self.left - self.right

    @property
    def inner_height(self) -> int:
        """Return the length of the y axis."""
        return self.height - self.top - self.bottom

    def across(self, value: X) -> float:
        """Return the horizontal position of a value."""
        return self.left + self.inner_width * self.x.share(value)

    def down(self, value: float) -> float:
        """Return the vertical position of a value."""
        return self.top + self.inner_height * (1 - self.y.share(value))

    def points(self, points: Iterable[tuple[X, float]]) -> str:
        """Return the positions of points in SVG syntax."""
        return " ".join(f"{self.across(a):.1f},{self.down(b):.1f}" for a, b in points)

    def as_data(self) -> dict[str, Any]:
        """Return the data that a script needs to draw at the same positions."""
        names = ("width", "height", "left", "right", "top", "bottom")
        ends = {"x": (self.x.low, self.x.high), "y": (self.y.low, self.y.high)}
        return {**ends, **{name: getattr(self, name) for name in names}}


def padded_range(values: Iterable[float]) -> tuple[float, float]:
    """Return a range around the finite positive values, with an equal factor as margin at each end.

    The factor is the largest of three: 6 % of the range on a logarithmic axis, what makes the
    whole range a factor of at least 2, and 1.05.
    """
    positive = [value for value in values if 0 < value < math.inf] or [1.0]
    low, high = min(positive), max(positive)
    margin = max((high / low) ** 0.06, math.sqrt(2 / min(high / low, 2)), 1.05)
    return low / margin, high * margin
