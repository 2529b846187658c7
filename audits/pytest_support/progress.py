"""How long the audit of a slow release will take, said on the terminal of a pytest session."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, final

import pytest

CALLS = 10  # of a release, after which its time is known
# A release of many runs a call may be slow in fewer calls: then its time is known after so long.
SECONDS_OF_CALLS = 2.0
MIN_SECONDS_SAID = 10.0  # nothing is said of an audit that takes less
SECONDS_PER_DRAWING = 0.5  # of the bar
BAR_WIDTH = 24


@final
class Screen:
    """The terminal of a session, past pytest's capture of what tests print."""

    def __init__(self, config: pytest.Config) -> None:
        # A worker of a parallel run has no reporter.
        self._reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._capture: Any = config.pluginmanager.get_plugin("capturemanager")

    @property
    def has_bar(self) -> bool:
        """Whether a line can be drawn again."""
        return self._reporter is not None and bool(self._reporter.isatty)

    def say(self, line: str) -> None:
        """Print a line of its own."""
        if self._reporter is not None:
            with self._uncaptured():
                self._reporter.ensure_newline()
                self._reporter.write_line(line)

    def draw(self, line: str) -> None:
        """Draw the last line again; "" erases it."""
        if self.has_bar:
            with self._uncaptured():
                self._reporter.rewrite(line, erase=True)
                self._reporter.flush()

    def _uncaptured(self) -> AbstractContextManager[None]:
        if self._capture is None:
            return nullcontext()
        uncaptured: AbstractContextManager[None] = self._capture.global_and_fixture_disabled()
        return uncaptured


@final
class RunProgress:
    """Called with the runs and the seconds of each call of a release, of ``runs`` in all.

    After a few calls it says how long all runs will take, if that is long, then it draws a bar.
    ``advice`` is called with the seconds of a run, for what takes less time.
    """

    def __init__(self, screen: Screen, runs: int, advice: Callable[[float], str]) -> None:
        self._screen, self._runs, self._advice = screen, runs, advice
        self._calls = self._done = 0
        self._seconds = self._drawn = 0.0
        self._is_slow: bool | None = None  # None as long as it is not known

    def __call__(self, runs: int, seconds: float) -> None:
        """Count a call of the release."""
        self._calls += 1
        if self._calls == 1:  # the first call pays for what is loaded once
            return
        self._done, self._seconds = self._done + runs, self._seconds + seconds
        if self._is_slow is None and (self._calls >= CALLS or self._seconds >= SECONDS_OF_CALLS):
            per_run = self._seconds / self._done
            self._is_slow = per_run * self._runs >= MIN_SECONDS_SAID
            if self._is_slow:
                shown = duration(per_run * self._runs)
                self._screen.say(f"dp: {shown} for {self._runs:,} runs{self._advice(per_run)}")
        now = time.monotonic()
        if self._is_slow and now - self._drawn >= SECONDS_PER_DRAWING:
            self._drawn = now
            self._screen.draw(self.bar)

    @property
    def bar(self) -> str:
        """The share of the runs that is done, and the time that the others take."""
        share = min(self._done / self._runs, 1.0)
        filled = round(share * BAR_WIDTH)
        remaining = duration(self._seconds / max(self._done, 1) * self._runs * (1 - share))
        return f"dp: [{'#' * filled:.<{BAR_WIDTH}}] {share:.0%}, {remaining} to go"

    def end(self) -> None:
        """Erase the bar."""
        if self._is_slow:
            self._screen.draw("")


def duration(seconds: float) -> str:
    """A number of seconds, in minutes or hours if there are many."""
    size, unit = 1.0, "s"
    if seconds >= 120:
        size, unit = (60.0, "min") if seconds < 7200 else (3600.0, "h")
    count = seconds / size
    return f"{count:.2g} {unit}" if count < 10 else f"{count:.0f} {unit}"
