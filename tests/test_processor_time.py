"""The yardstick of processor time: work counts, waiting does not."""

import time

from tests.processor_time import NOMINAL, standard_seconds


def test_work_counts_and_waiting_does_not():
    assert standard_seconds(lambda: time.sleep(0.5)) < 0.1
    assert standard_seconds(lambda: sum(i * i for i in range(2_000_000))) > NOMINAL
