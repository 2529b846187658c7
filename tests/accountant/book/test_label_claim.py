"""Who holds a label: a process is gone only where this machine knows that it ended."""

import multiprocessing
import os

import numpy as np
import pytest

from accountant import Budget
from accountant.book.label_claim import LabelClaim, _start_of, is_gone, label_key, process_here
from accountant.book.reservations import Reservations
from accountant.book.stored_values import encode_answer
from mechanisms import Laplace
from tests.laws.test_books import opened_book


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


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_label_that_another_has_taken_over_stays_with_it(is_answered):
    """Who was given up, and fails at last, frees no label that is another's by now."""
    noise, key = Laplace(10.0), label_key("d", "sum")
    with opened_book(budget=Budget(1.0)) as book:
        reservations = Reservations(book._account("d"))
        claimed = []
        for number in (1, 2):
            follows = claimed[-1].seq if claimed else 0
            claim = LabelClaim("sum", key, follows, process_here(os.getpid()))
            facts = {"label": "sum", "seeded": False}
            claimed.append(reservations.reserve(noise, None, facts, lambda n=number: n, claim))
        if is_answered:
            reservations.answer(claimed[1], encode_answer(np.float64(7.0)), key)
        reservations.fail(claimed[0], key)
        log = reservations.account.log
        with log.reading():
            last = log.entry_with_key(key)
            assert (last.kind, last.seq) == (
                ("release", claimed[1].seq + 1) if is_answered else ("reserve", claimed[1].seq)
            )
        if not is_answered:
            reservations.fail(claimed[1], key)
            with log.reading():
                assert log.entry_with_key(key).kind == "failed"
        book.verify()
