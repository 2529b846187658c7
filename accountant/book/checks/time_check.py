"""Verification of times: they never run back but by a correction, and windows follow the clock.

An entry states the time of its clock; the latest time of all entries so far, by which data sets
expire; and the time by which windows count.  The last is that of the clock, or that of the entry
before where the clock was behind it, or more than `BELIEVED_STEP` ahead and not confirmed by the
writer.  Where a wrong clock was believed, a correction sets the later two back to a time that they
had jumped over.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from datetime import UTC, datetime, timedelta

from accountant.book.chain.entries import BELIEVED_STEP, CLOCK, EVERY_CLOCK, LogEntry, times_after
from accountant.book.log import Log
from accountant.errors import LedgerCorrupt

EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


class TimeCheck:
    """Reads the times of a log's entries, one entry after another."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._before: LogEntry | None = None
        self._latest = self._window_time = ""  # of the entry before
        self._timed = False  # whether the terms of any data set depend on the time
        # The different times for windows so far, in microseconds, rising: a correction removes
        # those after the time that it sets.
        self._window_times: array[int] = array("q")
        self._corrections: list[LogEntry] = []

    def check_entry(self, entry: LogEntry) -> None:
        """Check the times of an entry, and take note of them.

        Entries that were written before any data set could expire did not note the latest time.
        """
        facts, latest, stated = entry.facts, entry.latest, entry.window_time
        if facts["kind"] == CLOCK:
            self.check_correction(entry)
        elif self._timed and self._before is not None:
            clock = facts["time"]
            if latest < self._latest:
                self._refuse("its time is before that of the entry before", entry)
            if latest != max(self._latest, clock):
                self._refuse("states a latest time that no clock showed", entry)
            # The writer of the entry may have confirmed the clock, however far ahead it was, or may
            # have not.
            follows_clock = stated == clock > self._window_time
            if not follows_clock and stated not in {
                times_after(self._before, clock, confirmed).window
                for confirmed in (EVERY_CLOCK, "")
            }:
                self._refuse("counts windows by neither the clock nor the entry before", entry)
        self._latest = max(latest, facts["time"])
        self._timed = self._timed or facts.get("expires") is not None or "window" in facts
        if stated != self._window_time:
            moment = _microseconds(stated)
            if not self._window_times or moment > self._window_times[-1]:
                self._window_times.append(moment)
        self._before, self._window_time = entry, stated

    def check_correction(self, entry: LogEntry) -> None:
        """Check that a correction sets a time that ran ahead back to one that it has jumped over.

        Its facts state which latest time "was" wrong, and the number of the "earlier" correction.
        """
        facts, now = entry.facts, entry.facts["time"]
        if not facts["reason"]:
            self._refuse("corrects the clock without a reason", entry)
        if facts["was"] != self._latest or not (
            entry.latest == entry.window_time == now < self._latest
        ):
            self._refuse("corrects a clock that had not run ahead", entry)
        if facts["earlier"] != (self._corrections[-1].seq if self._corrections else 0):
            self._refuse("does not name the correction before it", entry)
        times, moment = self._window_times, _microseconds(now)
        first_later = bisect_right(times, moment)
        # No step led over a moment before all times, or after them.
        if 0 < first_later < len(times):
            step = times[first_later] - times[first_later - 1]
            if step <= BELIEVED_STEP // MICROSECOND:
                self._refuse("corrects a time to which the log came step by step", entry)
        del times[first_later:]
        self._corrections.append(entry)

    def window_time_now(self, entry: LogEntry) -> str:
        """Return the time by which windows count an earlier entry, as corrections left it."""
        corrections = (correction for correction in self._corrections if correction.seq > entry.seq)
        later = [correction.window_time for correction in corrections]
        return min([entry.window_time, *later])

    def _refuse(self, why: str, entry: LogEntry) -> None:
        raise LedgerCorrupt(self._log.name, why, entry.seq)


def _microseconds(time: str) -> int:
    """Return a time in microseconds since 1970."""
    return (datetime.fromisoformat(time) - EPOCH) // MICROSECOND
