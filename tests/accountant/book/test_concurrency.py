"""Rows 13, 14, 20, 21: many threads and processes on one book neither lose nor overspend."""

import sys
import threading
import time

import numpy as np
import pytest

from accountant import Book, BoundedRangeLoss, Budget, BudgetExceeded, GaussianLoss, Repeat, Tight
from mechanisms import Gaussian, Laplace
from tests.child_processes import FRESH

DATA = np.arange(20.0)
TENTH = Laplace(10.0)


def spends(ledger, times, made):
    for _ in range(times):
        try:
            made.append(float(ledger.release(TENTH, np.sum)))
        except BudgetExceeded:
            return


@pytest.mark.parametrize("shared", ["book", "ledger"])
def test_row_13_eight_threads_spend_what_there_is_and_no_more(stored_book, shared):
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with Book.create(stored_book.url) as book:
            book.dataset("d", Budget(1.0))
            made = []
            one = book.ledger("d", DATA)
            ledgers = [one if shared == "ledger" else book.ledger("d", DATA) for _ in range(8)]
            threads = [
                threading.Thread(target=spends, args=(ledger, 20, made)) for ledger in ledgers
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(made) == 10
            assert book.spent("d") == 1.0
            assert {float(book.answer(line)) for line in book.history("d")} == set(made)
            book.verify()
    finally:
        sys.setswitchinterval(before)


def in_threads(place, work):
    """Do some work in four threads, each with a book of its own."""
    failed = []

    def one(number):
        try:
            with Book.open(place.url) as book:
                work(book, number)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_buckets_are_paid_together_whoever_asks_first(stored_book):
    made = []

    def work(book, number):
        for names in (["a", "b"], ["b", "c"], ["c", "a"])[:: 1 - 2 * (number % 2)]:
            before = len(made)
            with book.ledger("d", DATA, buckets=names) as ledger:
                spends(ledger, 5, made)
            assert len(made) >= before

    with Book.create(stored_book.url) as book:
        book.dataset("d", Budget(1.0), buckets="region")
        in_threads(stored_book, work)
        charged = [round(10 * one.epsilon) for one in book.buckets("d")]
        assert sum(charged) == 2 * len(made)  # each release is of two buckets
        assert sorted(charged)[1:] == [10, 10]  # no two of them have room for one more
        book.verify()


def test_runs_that_were_set_aside_are_handed_out_once_each(stored_book):
    made, refused = [], []

    def work(book, number):
        for k in range(3):
            try:
                with book.ledger("d", DATA, 2 * TENTH, run=f"{number}, {k}") as ledger:
                    made.append(float(ledger.release(TENTH, np.sum)))
            except BudgetExceeded:
                refused.append(number)

    with Book.create(stored_book.url) as book:
        book.dataset("d", Budget(1.0), plan=2 * TENTH, runs=5)
        in_threads(stored_book, work)
        assert (len(made), len(refused)) == (5, 7)
        assert book.status("d").runs == (5, 5)
        assert book.spent("d") == 1.0
        book.verify()


def process(url, times, sent):
    made = {"small": [], "large": []}
    with Book.open(url) as book:
        for name, answers in made.items():
            spends(book.ledger(name, DATA), times, answers)
    sent.send(made)


def in_processes(place, processes, times):
    ends = []
    for _ in range(processes):
        here, there = FRESH.Pipe(duplex=False)
        one = FRESH.Process(target=process, args=(place.url, times, there))
        one.start()
        there.close()
        ends.append((one, here))
    found = [here.recv() for _, here in ends]
    for one, here in ends:
        one.join()
        here.close()
        assert one.exitcode == 0
        one.close()
    return found


def test_row_14_processes_on_one_book_lose_no_spend(stored_book):
    with Book.create(stored_book.url) as book:
        book.dataset("small", Budget(1.0))
        book.dataset("large", Budget(1000.0))
        found = in_processes(stored_book, 4, 20)
        for name, expected in (("small", 10), ("large", 80)):
            answers = [one for made in found for one in made[name]]
            assert len(answers) == expected
            assert book.spent(name) == expected / 10
            # row 20: no two workers drew the same noise
            assert len(set(answers)) == expected
        book.verify()


def plans(url, names, seconds, sent):
    """Plans and releases on two data sets, now in this order and now in that."""
    rounds, end = 0, time.monotonic() + seconds
    with Book.open(url) as book:
        while time.monotonic() < end:
            one, two = (book.ledger(name, DATA, Repeat(Gaussian(1e4), 2)) for name in names)
            one.release(Gaussian(1e4), np.sum)
            two.release(Gaussian(1e4), np.sum)
            one.release(Gaussian(1e4), np.sum)
            rounds += 1
    sent.send(rounds)


@pytest.mark.parametrize("seconds", [0.5, pytest.param(60, marks=pytest.mark.slow)])
def test_row_21_two_plans_in_opposite_order_do_not_wait_for_each_other(stored_book, seconds):
    with Book.create(stored_book.url) as book:
        for name in "ab":
            book.dataset(name, Budget(1e6, 1e-6))
    ends = []
    for names in ("ab", "ba"):
        here, there = FRESH.Pipe(duplex=False)
        one = FRESH.Process(target=plans, args=(stored_book.url, names, seconds, there))
        one.start()
        there.close()
        ends.append((one, here))
    for one, here in ends:
        assert here.poll(seconds + 60)
        assert here.recv() >= 1
        one.join()
        here.close()
        one.close()
    with Book.open(stored_book.url) as book:
        book.verify()


def test_runs_that_are_set_aside_may_be_made_at_the_same_time(tmp_path):
    """Both noisy answers may be known before both choices, which costs more than run after run."""
    noise, choice, budget = GaussianLoss(1.0), BoundedRangeLoss(1.0), Budget(4.46, 0.01)
    run_after_run = Tight().epsilon(2 * (noise + choice), budget.delta)
    at_the_same_time = Tight().certify(2 * noise + 2 * choice, budget.delta).lower
    assert run_after_run < at_the_same_time < budget.epsilon
    with Book.create(f"sqlite:///{tmp_path}/runs.db") as book:
        book.dataset("d", budget, plan=noise + choice, runs=2)
        assert at_the_same_time <= book.spent("d") <= budget.epsilon
