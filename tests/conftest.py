"""Hypothesis profiles: quick by default, `make thorough` asks for more."""

import gc
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

QUIET = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}
settings.register_profile("quick", max_examples=15, **QUIET)
settings.register_profile("thorough", max_examples=100, **QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
# No pins of books beside the configuration of the person who runs the tests: many tests put older
# books back, or forge them.  tests/accountant/book/test_own_pins.py sets a folder.
os.environ["DP_ATTEST_PINS"] = ""
SLOW_CASES = Path(__file__).parent / "selection" / "slow_cases.txt"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as slow the cases whose lines two other cases run, but not where lines are measured.

    Cases that Hypothesis runs on examples are marked too: `make thorough` gives them more.
    """
    slow = set() if "LINE_COVERAGE" in os.environ else set(SLOW_CASES.read_text().splitlines())
    for item in items:
        if item.nodeid in slow:
            item.add_marker("slow")
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("examples")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is collected stays: the garbage collector need not look at it meanwhile."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()  # and no `gc.freeze`: older Hypothesis looks for referrers of its generator


def pytest_terminal_summary(terminalreporter):
    """Say in closing what was not tested, and why: a skip is no pass."""
    why = _skips(terminalreporter)
    if why:
        terminalreporter.section("not tested, and why")
        for (file, reason), count in sorted(why.items()):
            terminalreporter.line(f"{count:4d}  {file}: {reason}")
    for word in _missing(terminalreporter):
        terminalreporter.line(f"FAILED: REQUIRE names {word}, and tests that need it were skipped")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    """Fail a session that skips what `REQUIRE` names, such as ``REQUIRE="chromium strace"``."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and _missing(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _skips(reporter):
    """How often each reason was given for a skip, by file."""
    return Counter(_reason(report) for report in reporter.stats.get("skipped", []))


def _missing(reporter):
    """The words of `REQUIRE` that a reason for a skip names."""
    reasons = " ".join(reason for _, reason in _skips(reporter)).lower()
    return [word for word in os.environ.get("REQUIRE", "").split() if word.lower() in reasons]


def _reason(report):
    """The file of a skipped test or file, and the reason it gave."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return report.nodeid.partition("::")[0], reason.removeprefix("Skipped: ")
