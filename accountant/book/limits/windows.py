"""Budgets of windows of time: of each calendar month, or of any 30 days in a row.

A window limits what is spent within it.  That protects a person's data of one window, if each
release reads data of its own window only: proof and carry-over in docs/proofs/book_limits.md.
Times are those of the log, which never run back.
"""

from __future__ import annotations

from datetime import date
from functools import reduce
from typing import Any, NamedTuple

from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.ledger.totals import CompositionNotion, Total

MONTH, ROLLING = "month", "30 days"
DAYS = 30  # length of a rolling window; a day ends at midnight, UTC
CARRY = IntegerRange(0, 12)  # windows before that may leave what they did not spend
Parts = dict[str, Total[Any]]  # what was spent in each month, or on each day
WHOLE = ""  # the only part of a data set without a window


class Window(NamedTuple):
    """A window of a data set that was opened on a day.

    ``carry`` says how many windows before leave what they did not spend to a later one.
    """

    kind: str  # "month" or "30 days"
    carry: int
    opened: str  # the time of the opening, as the log states times

    @property
    def length(self) -> str:
        """Return the length of a window in words."""
        return "one calendar month" if self.kind == MONTH else f"{DAYS} days in a row"

    def label(self, now: str) -> str:
        """Return the month, or the day, of a time, such as 2026-11 or 2026-11-28."""
        return now[:7] if self.kind == MONTH else now[:10]

    def age(self, label: str, now: str) -> int:
        """Return how many windows ago a month or a day was; 0 is the window that is open."""
        if self.kind == MONTH:
            year, month = map(int, label[:7].split("-"))
            this_year, this_month = map(int, now[:7].split("-"))
            return 12 * (this_year - year) + this_month - month
        return (date.fromisoformat(now[:10]) - date.fromisoformat(label)).days // DAYS

    def live(self, parts: Parts, now: str) -> Parts:
        """Return the parts that count at this time, or are carried over."""
        return {
            label: total for label, total in parts.items() if self.age(label, now) <= self.carry
        }

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
        carried = notion
        # The oldest window comes first: what it left, the next one may have spent.
        for age in range(self._before(now), 0, -1):
            carried = notion.with_more(carried.left(self.spent(notion, parts, now, age)))
        return carried

    def widest(self, notion: CompositionNotion[Any]) -> CompositionNotion[Any]:
        """Return the notion of the largest limit that a window can have."""
        carried = notion
        for _ in range(self.carry):
            carried = notion.with_more(carried.left(notion.zero))
        return carried

    def _before(self, now: str) -> int:
        """Return how many windows before this one carry over.

        The month of the opening counts as a whole one; a rolling window counts if none of its
        days is before that of the opening.
        """
        since = self.age(self.label(self.opened), now)
        if self.kind == ROLLING:  # a window counts from the opening on
            days = (date.fromisoformat(now[:10]) - date.fromisoformat(self.opened[:10])).days
            since = (days + 1) // DAYS - 1
        return max(min(self.carry, since), 0)


def checked_window(window: object, carry: object) -> dict[str, Any]:
    """Return a window as the entry of an opening states it; nothing for none."""
    if window is None:
        if carry is not None:
            raise ParameterError("carry", carry, "given with window=")
        return {}
    if window not in (MONTH, ROLLING):
        raise ParameterError("window", window, f"{MONTH!r}, {ROLLING!r} or None")
    return {"window": window, "carry": 0 if carry is None else CARRY.check("carry", carry)}


def window_of(facts: dict[str, Any]) -> Window | None:
    """Return the window that the opening of a data set states."""
    if "window" not in facts:
        return None
    return Window(facts["window"], facts["carry"], facts.get("latest", facts["time"]))


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
