"""Laws of clocks: whatever they say, each window has its budget once; a correction only delays.

A model in this file says by the definitions what a book does: the time by which its windows count,
which charges are in which window, and what is refused.
"""

import datetime
from typing import NamedTuple

import numpy as np
import pytest

from accountant import Book, Budget, BudgetExceeded, LedgerClockAhead, ParameterError, PureLoss
from accountant.book import log
from accountant.book.chain.entries import EVERY_CLOCK
from tests.laws.test_books import opened_book

START, DATA = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC), np.arange(3.0)
DAY = 24  # hours, in which all times are counted
DEEDS = ("spend", "spend", "spend", "other", "correct")
KINDS = ("day", "week", "month", "7 days")
# how far a clock is off: right, ahead by less than a day, ahead by days and months, behind
HOURS = (1, 5, 23, 25, 30, 10 * DAY)  # that pass between two actions
OFFSETS = (0, 0, 0, 20, 3 * DAY, 40 * DAY, -2 * DAY, -35 * DAY)


class Action(NamedTuple):
    """What happens next: hours pass, and then a person whose clock is off acts."""

    hours: int
    offset: int
    confirmed: bool
    what: str  # "spend", "other", or "correct"
    tenths: int


class Charge(NamedTuple):
    """A charge: the hour by which the log counted it, whether that was wrong, and its cost."""

    at: int
    wrong: bool
    tenths: int


def date_of(hour):
    return (START + datetime.timedelta(hours=hour)).date()


def part_of(kind, hour):
    """The part of the calendar of an hour; its day, where windows are days in a row."""
    date = date_of(hour)
    return {
        "week": date.isocalendar()[:2], "month": (date.year, date.month),
    }.get(kind, date.toordinal())  # fmt: skip


class Model:
    """A log as the definitions say: in hours, and in tenths of the budget."""

    def __init__(self, kind):
        self.kind, self.latest, self.window = kind, 0, 0
        self.entries = [0]  # the hour by which windows count each entry
        self.charges = []
        self.was_right = True  # whether no correction was made by a wrong clock

    def note(self, clock, confirmed):
        """An entry is written."""
        self.latest = max(self.latest, clock)
        self.window = self.window_after(clock, confirmed)
        self.entries.append(self.window)

    def window_after(self, clock, confirmed):
        believed = confirmed or clock - self.window <= DAY
        return max(self.window, clock) if believed else self.window

    def spent(self, window):
        """What counts in the window that is open."""
        if self.kind == "7 days":
            days = part_of(self.kind, window)
            return sum(
                c.tenths for c in self.charges if days - 7 < part_of(self.kind, c.at) <= days
            )
        here = part_of(self.kind, window)
        return sum(c.tenths for c in self.charges if part_of(self.kind, c.at) == here)

    def can_correct(self, clock, confirmed):
        """Whether the log's time is ahead, by one step of more than a day, and the clock is not.

        No entry tells whether a clock is right that is before all of them.
        """
        if self.latest <= clock:
            return False
        before = [hour for hour in self.entries if hour <= clock]
        after = [hour for hour in self.entries if hour > clock]
        if not confirmed and (not before or clock - max(before) > DAY):
            return False
        return not (before and after) or min(after) - max(before) > DAY

    def correct(self, clock):
        """All that came later counts now."""
        self.charges = [c._replace(at=min(c.at, clock)) for c in self.charges]
        self.entries = [min(hour, clock) for hour in self.entries] + [clock]
        self.latest = self.window = clock


def follows_the_model(kind, actions):
    """Do all actions in a book, and hold what it does against the model."""
    hour, clock, model = 0, [0], Model(kind)

    def now(_):
        time = START + datetime.timedelta(hours=clock[0])
        return time.isoformat(timespec="microseconds")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "clock_time", now)
        with opened_book(budget=Budget(1.0), window=kind) as book:
            book.dataset("other", Budget(1e6))
            for action in actions:
                hour += action.hours
                clock[0] = hour + action.offset
                book._log.confirmed = EVERY_CLOCK if action.confirmed else ""
                acted(book, model, action, hour, clock[0])
            book._log.confirmed = ""
            with Book.open(book._log.name) as other:
                assert other.verify().entries > 2


def acted(book, model, action, hour, clock):
    """Do one action: what is refused changes nothing, and what is done is as the model says."""
    head, window = book.head, model.window_after(clock, action.confirmed)
    if action.what == "correct":
        try:
            book.correct_clock("it was wrong")
        except (ParameterError, LedgerClockAhead):
            assert not model.can_correct(clock, action.confirmed)
            assert book.head == head
        else:
            assert model.can_correct(clock, action.confirmed)
            model.was_right &= action.offset >= 0
            model.correct(clock)
    elif action.what == "other":
        book.ledger("other", DATA).spend(PureLoss(0.1))  # no clock matters
        model.note(clock, action.confirmed)
    else:
        spent = model.spent(window)
        try:
            book.ledger("d", DATA).spend(PureLoss(action.tenths / 10))
        except LedgerClockAhead:
            assert clock > window
            assert book.head == head
        except BudgetExceeded:
            assert clock <= window
            assert spent + action.tenths > 10
            assert book.head == head
        else:
            assert clock <= window
            assert spent + action.tenths <= 10
            model.note(clock, action.confirmed)
            model.charges.append(Charge(window, window > hour + DAY, action.tenths))
    assert round(10 * book.spent("d")) == model.spent(model.window_after(clock, action.confirmed))
    if model.was_right:
        each_window_holds(model)


def each_window_holds(model):
    """The charges that were not made at a wrongly confirmed time are within the budget."""
    right = [c for c in model.charges if not c.wrong]
    days = sorted({part_of(model.kind, c.at) for c in right})
    for day in days:
        if model.kind == "7 days":
            inside = [c for c in right if day <= part_of(model.kind, c.at) < day + 7]
        else:
            inside = [c for c in right if part_of(model.kind, c.at) == day]
        assert sum(c.tenths for c in inside) <= 10


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_windows_count_by_the_definition_whatever_clocks_say(kind, seed):
    random = np.random.default_rng(seed)
    actions = [
        Action(
            int(random.choice(HOURS)), int(random.choice(OFFSETS)),
            bool(random.integers(2)), str(random.choice(DEEDS)), int(random.integers(1, 7)),
        ) for _ in range(40)
    ]  # fmt: skip
    follows_the_model(kind, actions)
