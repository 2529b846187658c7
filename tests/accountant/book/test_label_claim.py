"""Who holds a label: a process is gone only where this machine knows that it ended."""

import multiprocessing
import os

from accountant.book.label_claim import _is_gone, _start_of, _this_process


def test_only_a_process_of_this_machine_that_ended_is_gone():
    machine, own, started = _this_process(os.getpid())
    assert not _is_gone([machine, own, started])
    assert _is_gone([machine, own, "before this process started"])
    child = multiprocessing.get_context("spawn").Process(target=int)
    child.start()
    holder = [machine, child.pid, _start_of(child.pid)]
    assert not _is_gone(holder)
    child.join()
    assert _is_gone(holder)


def test_what_is_not_known_is_not_gone():
    machine, _, started = _this_process(os.getpid())
    assert not _is_gone(None)
    assert not _is_gone(["another machine", 2**22 + 1, started])
    assert _is_gone([machine, 2**22 + 1, started])
