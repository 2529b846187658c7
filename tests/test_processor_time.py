"""The yardstick of processor time: work counts, waiting does not."""

import re
import subprocess
import sys
from pathlib import Path

from tests.processor_time import NOMINAL

# a process of its own: threads that other tests left behind count as work of theirs
MEASURE = """
import time
from tests.processor_time import standard_seconds
print(standard_seconds(lambda: time.sleep(0.5)))
print(standard_seconds(lambda: sum(i * i for i in range(2_000_000))))
"""


def test_work_counts_and_waiting_does_not():
    shown = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    ).stdout
    waiting, working = map(float, shown.split())
    assert waiting < NOMINAL / 4
    assert working > NOMINAL


def test_no_test_reads_the_wall_clock():
    clock = re.compile(r"\b(perf_counter|monotonic)(_ns)?\b|\btime\.time(_ns)?\(|\btimeit\b")
    here = Path(__file__)
    reading = {
        path.name for path in here.parent.rglob("*.py")
        if path != here and clock.search(path.read_text(encoding="utf-8"))
    }  # fmt: skip
    # they end a loop and a hanging mutant, or print what a user waits for (`tests.heldout` too),
    # and assert no time; the programs show the time beside their answer, as `record` must allow
    programs = {"honest_programs.py", "broken_programs.py", "test_programs.py"}
    assert reading == {
        "test_concurrency.py", "running.py", "first_hour.py", "__main__.py",
    } | programs  # fmt: skip
