"""An axis of time, with ticks at round times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import final

from accountant.reports.svg_axes import Tick

DAY = 86_400
ROUND_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600,
                 43_200, DAY, 2 * DAY, 5 * DAY, 10 * DAY)  # fmt: skip
ROUND_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1_200)
MAX_TIME_TICKS = 5


@final
@dataclass(frozen=True, slots=True)
class TimeScale:
    """A span of time, labelled at round times."""

    low: datetime
    high: datetime

    def share(self, value: datetime) -> float:
        """Return the share of the axis' length."""
        return (value - self.low).total_seconds() / max(self._span.total_seconds(), 1e-6)

    def ticks(self) -> list[Tick]:
        """Return at most five whole seconds, minutes, hours, days, months or years."""
        # a span without a round time in it is labelled where it starts
        inside = (
            (form, [time for time in times if self.low <= time <= self.high] or [self.low])
            for form, times in self._round_times()
        )
        form, shown = next(candidate for candidate in inside if len(candidate[1]) <= MAX_TIME_TICKS)
        return [
            Tick(share, time.strftime(form), _anchor(share))
            for time, share in zip(shown, map(self.share, shown), strict=True)
        ]

    def _round_times(self) -> Iterator[tuple[str, list[datetime]]]:
        """Yield formats with round times, finer ones first; too fine ones with a few times only."""
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


def _anchor(share: float) -> str:
    """Return how a label stands at its tick, so that none is cut off at an end."""
    return "start" if share < 0.06 else "end" if share > 0.94 else "middle"
