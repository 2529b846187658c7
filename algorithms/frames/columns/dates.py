"""The kind `Date`: a column of dates with public bounds, which can be put into calendar bins.

Dates count as numbers of days since 1970-01-01.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, final

from accountant.domains import OneOf
from accountant.errors import ParameterError
from algorithms.frames.arguments import answered_class
from algorithms.frames.columns.kinds import DROP, ColumnKind, missing_in_words

PERIODS = OneOf(("day", "week", "month", "quarter", "year"))
EPOCH = dt.date(1970, 1, 1).toordinal()  # day 0 of the numbers, in days of Python's calendar
ISO = "a date, such as '2026-03-31' or datetime.date(2026, 3, 31)"
MONTHS = {"month": 1, "quarter": 3, "year": 12}  # lengths of periods, in months


@final
@answered_class("Date('2026-01-01', '2026-12-31')")
@dataclass(frozen=True, slots=True)
class Date(ColumnKind):
    """A column of dates, or of times whose date counts, with public bounds.

    Dates beyond the bounds are clipped to them.  A time with a zone counts as the date in that
    zone.

    Parameters
    ----------
    low, high : str or datetime.date
        The first and the last date, known without the data, such as "2026-01-31".
    missing : "drop" or str or datetime.date
        Whether a row without a date is left out, or the date that it counts as.

    Examples
    --------
    >>> from algorithms.frames import Date
    >>> Date("2026-01-01", "2026-12-31").rule
    'clipped to 2026-01-01 .. 2026-12-31, rows without one do not count'
    """

    types: ClassVar[str] = "date|datetime|timestamp"
    kind: ClassVar[str] = "date"

    low: str
    high: str
    missing: str = DROP

    def __post_init__(self) -> None:
        low, high = checked_date("low", self.low), checked_date("high", self.high)
        if high <= low:
            raise ParameterError("high", self.high, f"a date after low, which is {low}")
        object.__setattr__(self, "low", low.isoformat())
        object.__setattr__(self, "high", high.isoformat())
        if self.missing != DROP:
            filled = checked_date("missing", self.missing)
            if not low <= filled <= high:
                raise ParameterError("missing", self.missing, '"drop", or a date within the bounds')
            object.__setattr__(self, "missing", filled.isoformat())

    @property
    def bounds(self) -> tuple[float, float]:
        """The public bounds, in days since 1970."""
        return days_since(self.low), days_since(self.high)

    @property
    def filled(self) -> Any:
        """What a missing value counts as in sums, in days since 1970; or "drop"."""
        return self.missing if self.missing == DROP else days_since(self.missing)

    @property
    def rule(self) -> str:
        """How values are clipped or replaced before they count, in words."""
        return f"clipped to {self.low} .. {self.high}, {missing_in_words(self.missing)}"

    def edges(self, bins: Any) -> tuple[float, ...]:
        """Return the first days of bins, and the day after the last one.

        Parameters
        ----------
        bins : str or tuple of datetime.date
            A period of the calendar, or the edges of the bins.  A bin holds its lower edge and not
            its upper one; the last bin holds both.

        Returns
        -------
        tuple of float
            In days since 1970.
        """
        low, high = (dt.date.fromisoformat(end) for end in (self.low, self.high))
        if isinstance(bins, str):
            starts = [max(low, start) for start in period_starts(bins, low, high)]
            return *map(days_since, starts), days_since(high) + 1
        *starts, last_edge = bins
        return *map(days_since, starts), days_since(last_edge) + 1


def checked_date(argument: str, value: object) -> dt.date:
    """Return a date; refuse an object that is not a date, or that has a time."""
    if isinstance(value, str):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            raise ParameterError(argument, value, ISO) from None
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise ParameterError(argument, value, ISO)
    return value


def days_since(date: str | dt.date) -> float:
    """Return the days from 1970 to a checked date."""
    parsed = dt.date.fromisoformat(date) if isinstance(date, str) else date
    return float(parsed.toordinal() - EPOCH)


def date_of(days: float) -> dt.date:
    """Return the date of a number of days since 1970."""
    return dt.date.fromordinal(round(days) + EPOCH)


def period_starts(period: str, low: dt.date, high: dt.date) -> Iterator[dt.date]:
    """Yield the first days of the periods from that of ``low`` to that of ``high``."""
    if period in MONTHS:
        length = MONTHS[period]
        first_month = (low.year * 12 + low.month - 1) // length * length
        for month in range(first_month, high.year * 12 + high.month, length):
            yield dt.date(month // 12, month % 12 + 1, 1)
    else:
        step, day = (7, low.weekday()) if period == "week" else (1, 0)
        # A week begins on Monday.  The first day of the calendar, 0001-01-01, is one too.
        for days in range(low.toordinal() - day, high.toordinal() + 1, step):
            yield dt.date.fromordinal(days)
