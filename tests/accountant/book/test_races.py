"""Processes that ask for one label, or start one named run, at the same moment."""

import os
import time
from threading import Thread

import numpy as np
import pytest

from accountant import Book, Budget, OffPlan, Parallel, ParameterError, Repeat
from accountant.book import reservations
from mechanisms import Laplace
from tests.accountant.book.throwaway_books import exit_status_in_child, unlooked
from tests.child_processes import FRESH

DATA = np.arange(20.0)
TENTH = Laplace(10.0)
TRIALS = [4, pytest.param(100, marks=pytest.mark.slow)]


def slow_sum(data):
    time.sleep(0.005)  # so that the others come in the meantime
    return data.sum()


def ask_labels(url, trials, gate, sent):
    given = []
    with Book.open(url) as book, book.ledger("d", DATA) as ledger:
        for k in range(trials):
            gate.wait()
            given.append(float(ledger.release(TENTH, slow_sum, label=f"sum {k}")))
    sent.put(given)


def start_runs(url, trials, gate, sent):
    given = []
    with Book.open(url) as book:
        for k in range(trials):
            gate.wait()
            with book.ledger("d", DATA, Repeat(TENTH, 2), run=f"run {k}") as ledger:
                given.append([float(ledger.release(TENTH, slow_sum)) for _ in range(2)])
    sent.put(given)


def at_once(work, url, processes, trials):
    """What each process was given in each trial."""
    gate, sent = FRESH.Barrier(processes, timeout=120), FRESH.Queue()
    ones = [FRESH.Process(target=work, args=(url, trials, gate, sent)) for _ in range(processes)]
    for one in ones:
        one.start()
    try:
        return [sent.get(timeout=300) for _ in ones]
    finally:
        for one in ones:
            one.join(60)
            one.kill()
            assert one.exitcode == 0


@pytest.mark.parametrize("trials", TRIALS)
def test_one_label_asked_for_by_eight_workers_is_charged_once(stored_book, trials):
    with Book.create(stored_book.url) as book:
        book.dataset("d", Budget(1000.0))
        given = at_once(ask_labels, stored_book.url, 8, trials)
        assert all(len(set(answers)) == 1 for answers in zip(*given, strict=True))
        assert book.spent("d") == trials / 10
        assert [line.outcome for line in book.history("d")] == ["answered"] * trials
        book.verify()


@pytest.mark.parametrize("trials", TRIALS)
def test_a_run_that_two_processes_start_at_once_is_paid_for_once(stored_book, trials):
    with Book.create(stored_book.url) as book:
        book.dataset("d", Budget(1000.0))
        given = at_once(start_runs, stored_book.url, 2, trials)
        assert given[0] == given[1]
        assert len(given[0]) == trials
        plans = [line.run for line in book.history("d") if line.kind == "plan"]
        assert plans == [f"run {k}" for k in range(trials)]
        assert book.spent("d") == trials / 5
        book.verify()


def test_a_run_that_another_process_reserves_meanwhile_is_found(stored_book, monkeypatch):
    plan = Repeat(TENTH, 3)
    with Book.create(stored_book.url) as one, Book.open(stored_book.url) as two:
        one.dataset("d", Budget(1.0))
        from accountant.book.reservations import Reservations

        reserve, overtaken = Reservations.reserve_plan, []

        def overtaking(account, *of):
            if not overtaken:
                overtaken.append(two)
                with two.ledger("d", DATA, plan, run="june") as ledger:
                    overtaken.append(ledger.release(TENTH, np.sum))
            return reserve(account, *of)

        monkeypatch.setattr(Reservations, "reserve_plan", overtaking)
        with one.ledger("d", DATA, plan, run="june") as ledger:
            assert ledger.release(TENTH, unlooked) == overtaken[1]
        assert one.spent("d") == 0.3
        overtaken.clear()
        monkeypatch.setattr(Reservations, "reserve_plan", reserve)
        with pytest.raises(ParameterError, match="a name that no run of another plan has"):
            two.ledger("d", DATA, Repeat(TENTH, 2), run="june")
        one.verify()


def test_a_label_whose_process_died_is_taken_over_at_once_and_paid_again(stored_book):
    with Book.create(stored_book.url, wait=86400) as book:
        book.dataset("d", Budget(1.0))

        def dies():
            with Book.open(stored_book.url) as own, own.ledger("d", DATA) as ledger:
                ledger.release(TENTH, lambda _: os._exit(9), label="sum")

        assert exit_status_in_child(dies) == 9
        with book.ledger("d", DATA) as ledger:  # would wait for a day
            answer = ledger.release(TENTH, np.sum, label="sum")
            assert ledger.release(TENTH, unlooked, label="sum") == answer
        assert [line.outcome for line in book.history("d")] == ["reserved", "answered"]
        assert book.spent("d") == 0.2  # the one that died may have seen the data
        book.verify()


def test_a_label_that_takes_too_long_is_taken_over_and_one_answer_stays(stored_book):
    with Book.create(stored_book.url) as one, Book.open(stored_book.url, wait=0.2) as two:
        one.dataset("d", Budget(1.0))
        given = []
        with one.ledger("d", DATA) as ledger, two.ledger("d", DATA) as other:

            def slow(data):
                given.append(other.release(TENTH, np.max, label="one"))
                return data.sum()

            given.append(ledger.release(TENTH, slow, label="one"))
        assert given[0] == given[1]
        assert [line.outcome for line in one.history("d")] == ["reserved", "answered"]
        assert one.spent("d") == 0.2
        one.verify()


def test_a_label_whose_release_failed_is_free_for_any_mechanism(stored_book):
    with Book.create(stored_book.url, wait=86400) as one, Book.open(stored_book.url) as two:
        one.dataset("d", Budget(1.0))
        with two.ledger("d", DATA) as ledger, pytest.raises(ZeroDivisionError):
            ledger.release(TENTH, lambda _: 1 / 0, label="sum")
        with one.ledger("d", DATA) as ledger:
            ledger.release(Laplace(20.0), np.sum, label="sum")
        assert one.spent("d") == 0.15
        one.verify()


# --- steps of a named run


def run_of(book, plan):
    return book.ledger("d", DATA, plan, run="r")


@pytest.mark.parametrize("is_known", [True, False])
def test_threads_of_one_process_share_the_steps_of_a_run(stored_book, monkeypatch, is_known):
    if not is_known:  # which process holds a step, as where there is no /proc
        monkeypatch.setattr(reservations, "process_here", lambda _: None)
    plan, given = Repeat(TENTH, 2), []
    with Book.create(stored_book.url) as book:
        book.dataset("d", Budget(1.0))

    def follow(first):
        with Book.open(stored_book.url) as book, run_of(book, plan) as ledger:
            if first:
                threads[1].start()
            given.append([ledger.release(TENTH, slow_sum) for _ in range(2)])

    threads = [Thread(target=follow, args=(first,)) for first in (True, False)]
    threads[0].start()
    for thread in threads:
        thread.join()
    assert given[0] == given[1]
    with Book.open(stored_book.url) as book:
        assert book.spent("d") == 0.2
        book.verify()


def test_a_step_that_a_process_left_is_paid_again_once(sqlite_book):
    plan = Repeat(TENTH, 2)
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))

    def dies():
        with Book.open(sqlite_book.url) as book, run_of(book, plan) as ledger:
            ledger.release(TENTH, lambda _: os._exit(0))

    assert exit_status_in_child(dies) == 0
    given = at_once(start_run, sqlite_book.url, 3, 1)
    assert given[0] == given[1] == given[2]
    with Book.open(sqlite_book.url) as book:
        assert book.spent("d") == 0.3
        book.verify()


def start_run(url, trials, gate, sent):
    with Book.open(url) as book:
        gate.wait()
        with run_of(book, Repeat(TENTH, 2)) as ledger:
            sent.put([float(ledger.release(TENTH, slow_sum)) for _ in range(2 * trials)])


def test_a_step_that_failed_is_not_waited_for(any_book):
    plan = Repeat(TENTH, 2)
    with Book.create(any_book.url, wait=86400) as book:
        book.dataset("d", Budget(1.0))
        with run_of(book, plan) as one, Book.open(any_book.url, wait=86400) as other:
            with pytest.raises(ZeroDivisionError):
                one.release(TENTH, lambda _: 1 / 0)
            with run_of(other, plan) as two:
                two.release(TENTH, np.sum)
        assert book.spent("d") == pytest.approx(0.3)
        book.verify()


def test_blocks_of_another_process_are_not_drawn_twice(any_book):
    plan, blocks = Parallel([TENTH] * 2), [slice(0, 10), slice(10, 20)]
    with Book.create(any_book.url) as book, Book.open(any_book.url) as other:
        book.dataset("d", Budget(1.0))
        with run_of(book, plan) as one, run_of(other, plan) as two:
            first = one.release_blocks(TENTH, lambda rows: rows, blocks)
            second = two.release_blocks(TENTH, lambda rows: rows, blocks)
            given = [next(first)]
            with pytest.raises(OffPlan, match="another process of this run"):
                list(second)
            given += first
        assert len(given) == 2
        with run_of(book, plan) as again:
            stored = list(again.release_blocks(TENTH, unlooked, blocks))
        assert np.array_equal(stored, given)
        assert book.spent("d") == 0.1
        book.verify()


def test_a_step_after_blocks_is_shared_with_another_process(any_book):
    plan, blocks = Parallel([TENTH] * 2) + TENTH, [slice(0, 10), slice(10, 20)]
    with Book.create(any_book.url) as book, Book.open(any_book.url) as other:
        book.dataset("d", Budget(1.0))
        with run_of(book, plan) as one:
            given = list(one.release_blocks(TENTH, lambda rows: rows, blocks))
            with run_of(other, plan) as two:
                assert np.array_equal(list(two.release_blocks(TENTH, unlooked, blocks)), given)
                last_answer = two.release(TENTH, np.sum)
            assert one.release(TENTH, unlooked) == last_answer
        assert book.spent("d") == 0.2
        book.verify()
