"""Corrections of a log's time that a wrong clock has moved ahead, and what callers say of clocks.

Windows count by the log's time, which never runs back by itself.  A correction sets it to the time
of a clock that is right.  What was charged later than this by the log counts from then on in the
window that is really open, and what was charged before counts as it did.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from accountant.book.account import Account
from accountant.book.chain.entries import (
    CLOCK,
    CLOCK_KEY,
    EVERY_CLOCK,
    START,
    TERMS,
    LogEntry,
    LogTimes,
    checked_name,
    is_jump,
)
from accountant.book.dataset_terms import append_change, change_over_quotas, state_quota
from accountant.book.limits.charges import AuthorTotals
from accountant.book.limits.terms import utc_time
from accountant.book.limits.windows import Parts, encoded
from accountant.book.log import Log
from accountant.errors import LedgerClockAhead, LedgerViolated, ParameterError

TRUSTED = "trusted"
DAY = len("2026-11-28")


def confirmed_until(clock: str | datetime | None) -> str:
    """Return the time up to which a clock is right, as `Book.open` states it; "" for never."""
    if clock is None:
        return ""
    if clock == TRUSTED:
        return EVERY_CLOCK
    time = utc_time("clock", clock, f"{TRUSTED!r}, or a day, or ")
    is_day = isinstance(clock, str) and len(clock) == DAY
    return f"{time[:DAY]}T24" if is_day else time  # the end of a day


class ClockCorrection(NamedTuple):
    """What a correction of the clock changed.

    ``log_time`` was the latest time of the log, and ``clock`` is what it was set to.  ``windows``
    are the data sets whose windows count by it, and ``expired`` those that the log had let expire:
    they stay so until `Book.expire` moves their end.
    """

    log_time: str
    clock: str
    windows: tuple[str, ...]
    expired: tuple[str, ...]


def correct_clock(log: Log, reason: str) -> ClockCorrection:
    """Set the log's time back to that of the clock; see `Book.correct_clock`."""
    checked_name("reason", reason)
    sums = WindowSums(log)
    with log.reading():
        sums.read_on()  # most entries are read before the lock, for which others wait
    with log.writing():
        sums.read_on()
        before = log.times
        sums.refuse_unless_jumped(before)
        now = before.clock
        sums.leave_out_broken()
        for account in sums.windowed_accounts:
            if not account.follow_terms().closed:
                change_over_quotas(account, reason)
        sums.read_on()
        # What has expired by the log's time, and has not by the clock's, expires now.
        expired = [
            account
            for account in sums.accounts
            for terms in [account.follow_terms()]
            if not terms.is_over(now) and terms.is_over(before.latest)
        ]
        for account in expired:
            append_change(account, "expires", {"expires": now}, reason)
        earlier = log.entry_with_key(CLOCK_KEY)
        log.times = LogTimes(now, now, now)
        facts = {
            "reason": reason,
            "was": before.latest,
            "earlier": 0 if earlier is None else earlier.seq,
        }
        log.append(CLOCK, facts)
        windowed = [
            account
            for account in sums.accounts
            if account.name in sums.parts and not account.follow_terms().closed
        ]
        for account in windowed:
            append_change(account, CLOCK, sums.corrected(account, now), reason)
        for account in windowed:
            for author, quota in sums.changed_quotas(account, now).items():
                state_quota(account, author, quota, reason)
    names = (tuple(account.name for account in accounts) for accounts in (windowed, expired))
    return ClockCorrection(before.latest, now, *names)


def is_step_ahead(start: str, end: str) -> bool:
    """Return whether a step of the log's time is a jump; the first entry, from "", is one."""
    return not start or is_jump(start, end)


class WindowSums:
    """What every data set with windows was charged in all of time, from the first entry on.

    Entries state only the parts of time that counted when they were written.
    """

    def __init__(self, log: Log) -> None:
        self._log, self._head = log, START
        self.accounts: list[Account] = []
        self.parts: dict[str, Parts] = {}  # of the data sets with windows that were charged
        self._windowed: dict[str, tuple[Account, AuthorTotals]] = {}
        # the steps by which the time for windows jumped ahead: the times before and after
        self._jumps: list[tuple[str, str]] = []
        self._time = ""  # that of the last entry

    def read_on(self) -> None:
        """Read the entries that are not read yet; call it inside a transaction."""
        for entry in self._log.entries_after(self._head):
            self.note_time(entry)
            if entry.kind == "dataset":
                account = Account(self._log, entry)
                self.accounts.append(account)
                if account.window is not None:
                    self._windowed[account.name] = account, account.uncharged_authors()
            elif entry.facts["dataset"] in self._windowed:
                account, authors = self._windowed[entry.facts["dataset"]]
                if entry.states_charges and "parts" in entry.facts:
                    account.note_parts(self.parts.setdefault(account.name, {}), entry)
                if entry.states_charges or entry.kind == TERMS:
                    account.charge_author(authors, entry)
            self._head = entry.chain_head

    def leave_out_broken(self) -> None:
        """Leave out the data sets from which a version has spent that does not know their limits.

        Nothing more is spent from them, so that no window of theirs opens.
        """
        for account in list(self.accounts):
            try:
                account.follow_terms()
                account.last_charge()
            except LedgerViolated:
                self.accounts.remove(account)
                self._windowed.pop(account.name, None)
                self.parts.pop(account.name, None)

    @property
    def windowed_accounts(self) -> list[Account]:
        """Return the data sets with windows."""
        return [account for account, _ in self._windowed.values()]

    def note_time(self, entry: LogEntry) -> None:
        """Note a jump of the time for windows; a correction takes back what came later."""
        now = entry.window_time
        if entry.kind == CLOCK:
            steps = [(start, min(end, now)) for start, end in self._jumps if start < now]
            self._jumps = [step for step in steps if is_step_ahead(*step)]
        elif now <= self._time:  # in the oldest logs some times run back
            return
        elif is_step_ahead(self._time, now):
            self._jumps.append((self._time, now))
        self._time = now

    def refuse_unless_jumped(self, times: LogTimes) -> None:
        """Raise `ParameterError` unless the log's time came after the clock's by a jump.

        Raise `LedgerClockAhead` where the clock itself is far ahead of what was before the jump.
        """
        now, name = times.clock, self._log.name
        if times.latest <= now:
            allowed = f"one whose time is ahead of the clock's, {now[:19]} (UTC)"
            raise ParameterError("book", name, allowed)
        jumps_over_now = [start for start, end in self._jumps if start <= now < end]
        if self._time > now and not jumps_over_now:
            allowed = (
                f"one whose time jumped ahead of the clock's: from {now[:19]} to "
                f"{self._time[:19]} (UTC) it went in steps of at most one day, as a right clock "
                "does; wait until the clock has caught up"
            )
            raise ParameterError("book", name, allowed)
        last_before = min([self._time, *jumps_over_now])
        if now > self._log.confirmed and (not last_before or is_jump(last_before, now)):
            if last_before:
                raise LedgerClockAhead(name, last_before, now)
            # no entry tells whether a clock is right that is before all of them
            allowed = (
                f"one that was made before {now[:19]} (UTC), which the clock says; if the clock is "
                f"right, open the book with clock={now[:DAY]!r}"
            )
            raise ParameterError("book", name, allowed)

    def corrected(self, account: Account, now: str) -> dict[str, Any]:
        """Return what an entry states of a data set with windows after the correction."""
        window, notion, parts = account.window, account.notion, self.parts[account.name]
        last_charge = self._log.last_charge(account.name)
        if window is None or last_charge is None:
            raise ValueError("no charge of a data set with windows")
        window.correct(notion, parts, now)
        live_parts = window.live(parts, now)
        return {
            "total": notion.encode(window.spent(notion, live_parts, now)),
            "parts": encoded(notion, live_parts),
            "relation": last_charge.facts["relation"],
        }

    def changed_quotas(self, account: Account, now: str) -> dict[str, float]:
        """Return the quotas of the authors whose charges count in other parts of time now."""
        _, authors = self._windowed[account.name]
        changed = authors.correct(account.notion, now)
        return {author: authors.quotas[author] for author in changed if author in authors.quotas}
