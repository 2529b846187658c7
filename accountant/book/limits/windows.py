"""Budgets of windows of time: of each day, week, month, quarter or year, or of any days in a row.

A window limits what is spent within it.  That protects a person's data of one window, if each
release reads data of its own window only: proof and carry-over in docs/proofs/book_limits.md.
Times are those by which the log counts windows (`accountant.book.chain.entries.LogTimes`).

Time is divided into *parts*: into the calendar's months, say, or into days for rolling windows.  A
window is one part of the calendar, or a number of days in a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import lru_cache, reduce
from typing import Any, NamedTuple

from accountant.book.chain.entries import window_time_of
from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.ledger.totals import CompositionNotion, Total

ROLLING = re.compile(r"([1-9]\d{0,3}) days", re.ASCII)
DAYS = IntegerRange(1, 3660)  # lengths of rolling windows
CARRY = IntegerRange(0, 12)  # windows before that may leave what they did not spend
Parts = dict[str, Total[Any]]  # what was spent in each part of time, by its label
WHOLE = ""  # the only part of a data set without a window


class WindowKind(NamedTuple):
    """How windows of one kind divide time; a day ends at midnight, UTC.

    ``number`` counts the parts of time: it returns that of the part in which a day is.  ``label``
    is the name of this part, and ``first_day`` returns the first day of a label.  A window is
    ``length`` parts in a row, in words ``in_words``; ``later`` says what the next part brings.
    """

    in_words: str
    number: Callable[[date], int]
    label: Callable[[date], str]
    first_day: Callable[[str], date]
    length: int
    later: str

    def next_day(self, label: str) -> date:
        """Return the first day of the part of time after this one."""
        day = self.first_day(label)
        while self.number(day) == self.number(self.first_day(label)):
            day += timedelta(days=1)
        return day


def _calendar(
    name: str,
    number: Callable[[date], int],
    label: Callable[[date], str],
    first_day: Callable[[str], date],
) -> WindowKind:
    in_words = "one day" if name == "day" else f"one calendar {name}"
    later = f"the next {name} has a budget of its own"
    return WindowKind(in_words, number, label, first_day, 1, later)


CALENDAR = {
    "day": _calendar("day", date.toordinal, date.isoformat, date.fromisoformat),
    # The ordinal 1 is a Monday.  The ISO year is that of the week's Thursday.
    "week": _calendar(
        "week",
        lambda day: (day.toordinal() - 1) // 7,
        lambda day: "{:04}-W{:02}".format(*day.isocalendar()[:2]),
        lambda label: date.fromisocalendar(int(label[:4]), int(label[6:]), 1),
    ),
    "month": _calendar(
        "month",
        lambda day: 12 * day.year + day.month,
        lambda day: f"{day.year:04}-{day.month:02}",
        lambda label: date(int(label[:4]), int(label[5:]), 1),
    ),
    "quarter": _calendar(
        "quarter",
        lambda day: 4 * day.year + (day.month - 1) // 3,
        lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
        lambda label: date(int(label[:4]), 3 * int(label[6:]) - 2, 1),
    ),
    "year": _calendar(
        "year",
        lambda day: day.year,
        lambda day: f"{day.year:04}",
        lambda label: date(int(label), 1, 1),
    ),
}


def window_kind(name: object) -> WindowKind | None:
    """Return the kind of windows with this name, such as "month" or "30 days"; None for others."""
    if not isinstance(name, str):
        return None
    return CALENDAR.get(name) or rolling_kind(name)


@lru_cache(maxsize=100)
def rolling_kind(name: str) -> WindowKind | None:
    """Return the kind of windows of some days in a row, such as "30 days"; None for others."""
    rolling = ROLLING.fullmatch(name)
    if rolling is None or int(rolling[1]) > DAYS.high:
        return None
    later = f"what was spent on the oldest of the {name} no longer counts"
    length = int(rolling[1])
    return WindowKind(
        f"{name} in a row", date.toordinal, date.isoformat, date.fromisoformat, length, later
    )


class Window(NamedTuple):
    """A window of a data set that was opened on a day.

    ``carry`` says how many windows before leave what they did not spend to a later one.
    """

    name: str  # the name of its kind, such as "month" or "30 days"
    carry: int
    opened: str  # the time of the opening, by which windows count

    @property
    def kind(self) -> WindowKind:
        """Return how windows of this kind divide time."""
        kind = window_kind(self.name)
        if kind is None:  # newer versions may know more kinds
            raise ValueError(f"windows of an unknown kind: {self.name[:20]!r}")
        return kind

    def label(self, now: str) -> str:
        """Return the name of the part of time in which a time is: 2026-11, say, or 2026-11-28."""
        return self.kind.label(_day(now))

    def age(self, label: str, now: str) -> int:
        """Return how many windows ago a part of time was; 0 is the window that is open.

        It is negative for a part of time that comes after the open window.
        """
        kind = self.kind
        return (kind.number(_day(now)) - kind.number(kind.first_day(label))) // kind.length

    def live(self, parts: Parts, now: str) -> Parts:
        """Return the parts that count at this time, or are carried over."""
        return {
            label: total for label, total in parts.items() if self.age(label, now) <= self.carry
        }

    def correct(self, notion: CompositionNotion[Any], parts: Parts, now: str) -> None:
        """Move to the open part of time what was charged in later ones, by a wrong clock."""
        here, number = self.label(now), self.kind.number
        this_number = number(_day(now))
        for label in sorted(parts):
            if number(self.kind.first_day(label)) > this_number:
                parts[here] = notion.add(parts.get(here, notion.zero), parts.pop(label))

    def spent(
        self, notion: CompositionNotion[Any], parts: Parts, now: str, age: int = 0
    ) -> Total[Any]:
        """Return what was spent in the window that is open, or ``age`` windows before it."""
        window_totals = [parts[label] for label in sorted(parts) if self.age(label, now) == age]
        return reduce(notion.add, window_totals) if window_totals else notion.zero

    def notion(
        self, notion: CompositionNotion[Any], parts: Parts, now: str
    ) -> CompositionNotion[Any]:
        """Return the notion whose limit includes what earlier windows did not spend."""
        # Windows before the opening carry nothing.  The calendar's part of the opening counts as a
        # whole one; a rolling window counts if none of its days is before that of the opening.
        number, length = self.kind.number, self.kind.length
        parts_since_opening = number(_day(now)) - number(_day(self.opened)) + 1
        carrying_windows = min(self.carry, parts_since_opening // length - 1)
        carried = notion
        # The oldest window comes first: what it left, the next one may have spent.
        for age in range(carrying_windows, 0, -1):
            carried = notion.with_more(carried.left(self.spent(notion, parts, now, age)))
        return carried

    def widest(self, notion: CompositionNotion[Any]) -> CompositionNotion[Any]:
        """Return the notion of the largest limit that a window can have."""
        carried = notion
        for _ in range(self.carry):
            carried = notion.with_more(carried.left(notion.zero))
        return carried


def checked_window(window: object, carry: object) -> dict[str, Any]:
    """Return a window as the entry of an opening states it; nothing for none."""
    if window is None:
        if carry is not None:
            raise ParameterError("carry", carry, "given with window=")
        return {}
    if window_kind(window) is None:
        kinds = ", ".join(map(repr, CALENDAR))
        allowed = f"{kinds}, a number of days such as '30 days' (1 to {DAYS.high}), or None"
        raise ParameterError("window", window, allowed)
    return {"window": window, "carry": 0 if carry is None else CARRY.check("carry", carry)}


def window_of(facts: dict[str, Any]) -> Window | None:
    """Return the window that the opening of a data set states."""
    if "window" not in facts:
        return None
    return Window(facts["window"], facts["carry"], window_time_of(facts))


def decoded(notion: CompositionNotion[Any], stated: Any) -> Parts:
    """Return the parts that an entry states."""
    if isinstance(stated, dict):
        return {label: notion.decode(encoded_total) for label, encoded_total in stated.items()}
    return {WHOLE: notion.decode(stated)}


def encoded(notion: CompositionNotion[Any], parts: Parts) -> Any:
    """Return the parts as an entry states them."""
    if parts.keys() == {WHOLE}:
        return notion.encode(parts[WHOLE])
    return {label: notion.encode(total) for label, total in parts.items()}


def _day(time: str) -> date:
    """Return the day of a time as the log states times."""
    return date.fromisoformat(time[:10])
