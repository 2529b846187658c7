"""A pytest plugin that keeps which lines each test runs and how long it takes; for Python 3.12+.

    LINE_COVERAGE=/tmp/lines python -m pytest -p tests.selection.line_coverage -n 2 --dist loadfile

writes ``/tmp/lines.gw0.json`` and ``/tmp/lines.gw1.json``.  `tests.selection` chooses the quick
cases from them, and `tests.mutation` the tests that may notice a changed line.  A line is noted
once a test (`sys.monitoring`), so that this takes little more than the tests.  The lines that run
while a file of tests is collected are noted for each of its tests, which may use what was made
then.  A test that failed or was skipped is left out.
"""

import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = tuple(
    f"{ROOT / room}{os.sep}"
    for room in (
        "accountant", "mechanisms", "algorithms", "audits", "dp_attest", "experiments",
        "benchmarks", "examples",
    )
)  # fmt: skip
TOOL = 3  # of `sys.monitoring`: no debugger, coverage or profiler


class LineCoverage:
    """The lines and the processor seconds of each test."""

    def __init__(self):
        self.target = os.environ["LINE_COVERAGE"]
        self.numbers, self.seen, self.tests = {}, set(), {}
        self.seen_at_collection = {}
        self.has_children = self.has_passed = False
        monitoring = sys.monitoring
        monitoring.use_tool_id(TOOL, "lines of tests")
        monitoring.register_callback(TOOL, monitoring.events.LINE, self.note)
        monitoring.set_events(TOOL, monitoring.events.LINE)
        sys.addaudithook(self.note_child)

    def note(self, code, line):
        """Note a line of the project; no more of it until the next test."""
        file = code.co_filename
        if file and file.startswith(ROOMS):
            place = f"{os.path.relpath(file, ROOT)}:{line}"
            self.seen.add(self.numbers.setdefault(place, len(self.numbers)))
        return sys.monitoring.DISABLE

    def note_child(self, event, arguments):
        """Note that a test starts a process, whose lines are not seen."""
        del arguments
        self.has_children |= event in {"subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec"}

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector):
        """Keep what runs while a file of tests is imported and its cases are made."""
        if not isinstance(collector, pytest.Module):
            return (yield)
        self.seen = set()
        sys.monitoring.restart_events()
        try:
            return (yield)
        finally:
            self.seen_at_collection[collector.nodeid] = self.seen

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Keep what one test did."""
        self.seen, self.has_children, self.has_passed = set(), False, True
        sys.monitoring.restart_events()
        start = sum(os.times()[:4])
        try:
            return (yield)
        finally:
            seconds = round(sum(os.times()[:4]) - start, 3)
            if self.has_passed:
                file = item.nodeid.partition("::")[0]
                lines = self.seen | self.seen_at_collection.get(file, set())
                self.tests[item.nodeid] = [seconds, self.has_children, sorted(lines)]

    def pytest_runtest_logreport(self, report):
        """Note that a test does not pass."""
        self.has_passed &= report.passed

    def pytest_sessionfinish(self):
        """Stop listening, and write the file of this worker."""
        sys.monitoring.set_events(TOOL, sys.monitoring.events.NO_EVENTS)
        sys.monitoring.free_tool_id(TOOL)
        if self.tests:
            worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
            Path(f"{self.target}.{worker}.json").write_text(
                json.dumps({"lines": list(self.numbers), "tests": self.tests})
            )


def read_lines(paths):
    """Return of each test its seconds, whether it starts processes, and its lines (`FILE:LINE`)."""
    shared, tests = {}, {}
    for path in paths:
        run = json.loads(Path(path).read_text())
        lines = [shared.setdefault(line, line) for line in run["lines"]]
        for name, (seconds, has_children, seen) in run["tests"].items():
            tests[name] = seconds, has_children, {lines[number] for number in seen}
    return tests


def pytest_configure(config):
    """Start with the session."""
    config.pluginmanager.register(LineCoverage(), "lines of tests")
