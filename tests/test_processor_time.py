"""The yardstick of processor time: work counts, waiting does not."""

import subprocess
import sys

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
