"""Who holds a label: a process is gone only where this machine knows that it ended."""

import multiprocessing
import os

from accountant.book.label_claim import _start_of, is_gone, process_here


def test_only_a_process_of_this_machine_that_endedis_gone():
    machine, own, started = process_here(os.getpid())
    assert not is_gone([machine, own, started])
    assert is_gone([machine, own, "before this process started"])
    child = multiprocessing.get_context("spawn").Process(target=int)
    child.start()
    holder = [machine, child.pid, _start_of(child.pid)]
    assert not is_gone(holder)
    child.join()
    assert is_gone(holder)


def test_what_is_not_known_is_not_gone():
    machine, _, started = process_here(os.getpid())
    assert not is_gone(None)
    assert not is_gone(["another machine", 2**22 + 1, started])
    assert is_gone([machine, 2**22 + 1, started])
