"""The durable ledger on both databases: sums, refusals, stored answers, users, plans."""

import copy
import math
import os
import pickle
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    BudgetExceeded,
    Filter,
    LedgerBusy,
    Loss,
    OffPlan,
    Parallel,
    ParameterError,
    PrivateValueError,
    Repeat,
    Sequential,
    UnhealthyRandomness,
    UnsupportedPlan,
)
from accountant.book.reservations import Reservations
from accountant.plans.plan import Release
from mechanisms import Gaussian, Laplace
from tests.accountant.book.throwaway_books import exit_status_in_child, unlooked
from tests.processor_time import standard

DATA = np.arange(20.0)
TENTH = Laplace(10.0)  # costs 0.1


@pytest.fixture
def book(any_book):
    with Book.create(any_book.url) as found:
        yield found


class Watched:
    """A generator that may not be asked any more."""

    def __init__(self, ledger):
        self.ledger = ledger

    def __enter__(self):
        self.kept, self.ledger._noise = self.ledger._noise, None

    def __exit__(self, *_):
        self.ledger._noise = self.kept


def test_rows_11_and_12_ten_tenths_fit_exactly_and_nothing_after(any_book, book):
    book.dataset("d", Budget(1.0))
    with book.ledger("d", DATA) as ledger:
        for k in range(10):
            ledger.release(TENTH, np.sum)
            assert book.spent("d") == (k + 1) / 10
        before = any_book.hash_rows()
        for least in (TENTH, Laplace(1e299)):
            with (
                pytest.raises(BudgetExceeded, match="and 0 is left of the limit 1 "),
                Watched(ledger),
            ):
                ledger.release(least, unlooked)
    assert any_book.hash_rows() == before
    assert [line.outcome for line in book.history("d")] == ["answered"] * 10
    assert book.verify().entries == 22


def test_row_22_a_refusal_looks_at_nothing_draws_nothing_and_is_constant(any_book, book):
    book.dataset("d", Budget(0.5))
    words = set()
    before = any_book.hash_rows()
    for data in (DATA, DATA * 1e6, -DATA):
        with book.ledger("d", data) as ledger, Watched(ledger):
            with pytest.raises(BudgetExceeded) as refused:
                ledger.release(Laplace(1.0), unlooked)
            words.add(str(refused.value))
    assert len(words) == 1
    assert words.pop().startswith(
        "this needs epsilon 1, and 0.5 is left of the limit 0.5 (0 is spent; "
        "Budget(epsilon=0.5, delta=0.0)); Laplace(scale=2.000"
    )
    assert any_book.hash_rows() == before


@pytest.mark.parametrize(
    ("notion", "budget", "mechanism"),
    [
        ("pure", Budget(1.0), TENTH),
        ("zcdp", Budget(1.0, 1e-6), Gaussian(20.0)),
        ("rdp", Budget(1.0, 1e-6), Gaussian(20.0)),
        ("gdp", Budget(1.0, 1e-6), Gaussian(20.0)),
    ],
)
def test_a_book_refuses_when_the_filter_in_memory_does(any_book, notion, budget, mechanism):
    gate = Filter(DATA, budget, notion)
    allowed = 0
    try:
        while True:
            gate.spend(mechanism)
            allowed += 1
    except BudgetExceeded:
        made = 0
    Book.create(any_book.url).close()
    try:
        while made <= allowed:
            with Book.open(any_book.url) as book:  # anew for every few spends
                book.dataset("d", budget, notion)
                with book.ledger("d", DATA) as ledger:
                    for _ in range(7):
                        ledger.spend(mechanism)
                        made += 1
    except BudgetExceeded:
        pass
    with Book.open(any_book.url) as book:
        assert made == allowed
        status = book.status("d")
        assert status.total == gate.spent
        assert 0.8 < status.epsilon <= 1.0
        assert book.spent("d") == status.epsilon
        book.verify()


def test_row_23_answers_may_choose_what_comes_next(book):
    book.dataset("d", Budget(1.0))
    with book.ledger("d", DATA) as ledger:
        while True:
            try:
                last = ledger.release(TENTH, np.sum)
                ledger.release(Laplace(5.0 if last > 190 else 20.0), np.sum)
            except BudgetExceeded:
                break
    assert 0.8 < book.spent("d") <= 1.0
    book.verify()


def test_row_23_a_wrong_rule_fails_the_check_of_the_log(book, monkeypatch):
    from accountant.errors import LedgerCorrupt
    from accountant.ledger.composition_notions import notion_of

    book.dataset("d", Budget(1.0))
    notion = type(notion_of(None, Budget(1.0), None))
    right = notion.add
    with book.ledger("d", DATA) as ledger, monkeypatch.context() as wrong:
        ledger.spend(TENTH)
        # the planted fault: only the last release counts, as if answers had not chosen it
        wrong.setattr(notion, "add", lambda self, _, cost: right(self, self.zero, cost))
        ledger.spend(TENTH)
    with pytest.raises(LedgerCorrupt, match="not the sum of what was spent"):
        book.verify()


def test_one_release_above_the_whole_budget_fails_the_check_of_the_log(book, monkeypatch):
    from accountant.errors import LedgerCorrupt
    from accountant.ledger.totals import CompositionNotion

    book.dataset("d", Budget(1.0))
    with book.ledger("d", DATA) as ledger, monkeypatch.context() as wrong:
        wrong.setattr(CompositionNotion, "exceeds", lambda self, total: False)  # the planted fault
        ledger.spend(Laplace(0.5))
    with pytest.raises(LedgerCorrupt, match="spends more than the budget"):
        book.verify()


def test_row_24_a_query_that_fails_is_charged_and_recorded(book):
    book.dataset("d", Budget(1.0))
    with book.ledger("d", DATA) as ledger:
        with pytest.raises(ZeroDivisionError):
            ledger.release(TENTH, lambda _: 1 / 0)
        with pytest.raises(PrivateValueError):
            ledger.release(TENTH, lambda data: [data, 1])
    assert book.spent("d") == 0.2
    assert [line.outcome for line in book.history("d")] == ["failed", "failed"]
    assert all(book.answer(line) is None for line in book.history("d"))
    book.verify()


def test_row_25_an_interrupted_release_is_charged_and_an_interrupted_wait_is_not(any_book, book):
    book.dataset("d", Budget(1.0))

    def interrupted(_):
        raise KeyboardInterrupt

    with book.ledger("d", DATA) as ledger:
        with pytest.raises(KeyboardInterrupt):
            ledger.release(TENTH, interrupted)
        assert book.spent("d") == 0.1
        before = any_book.hash_rows()
        ledger._book_meter.account.log.storage.ask = interrupted  # before anything is written
        with pytest.raises(KeyboardInterrupt):
            ledger.release(TENTH, unlooked)
    assert any_book.hash_rows() == before


def test_row_16_a_labelled_release_is_made_once(any_book, book):
    book.dataset("d", Budget(1.0))
    with book.ledger("d", DATA) as ledger:
        first = ledger.release(TENTH, lambda data: data[:3], label="three", shape=3)
        before = any_book.hash_rows()
        with Watched(ledger):
            again = ledger.release(TENTH, unlooked, label="three")
        assert np.array_equal(first, again)
        assert not again.flags.writeable
        with pytest.raises(ParameterError, match="label must be one that no other mechanism"):
            ledger.release(Laplace(20.0), unlooked, label="three")
        assert any_book.hash_rows() == before
        assert ledger.release(TENTH, lambda data: data[:3], label="others", shape=3) is not None
    with Book.open(any_book.url) as other, other.ledger("d", DATA) as ledger:
        assert np.array_equal(ledger.release(TENTH, unlooked, label="three"), first)
    assert book.spent("d") == 0.2
    assert [line.label for line in book.history("d")] == ["three", "others"]


def test_row_16_killed_after_the_commit_the_stored_answer_comes_back(any_book, book, monkeypatch):
    book.dataset("d", Budget(1.0))

    def dies():
        from accountant.book.book_ledger import BookLedger

        with Book.open(any_book.url) as own, own.ledger("d", DATA) as ledger:
            store = BookLedger._store_answer

            def stores_and_dies(*of):
                store(*of)
                os._exit(9)

            monkeypatch.setattr(BookLedger, "_store_answer", stores_and_dies)
            ledger.release(TENTH, np.sum, label="sum")

    assert exit_status_in_child(dies) == 9
    [line] = book.history("d")
    assert (line.outcome, book.spent("d")) == ("answered", 0.1)
    with book.ledger("d", DATA) as ledger, Watched(ledger):
        assert ledger.release(TENTH, unlooked, label="sum") == book.answer(line)
    assert book.spent("d") == 0.1


def test_row_19_a_book_and_its_ledgers_are_not_copied(any_book, book):
    book.dataset("d", Budget(1.0))
    with book.ledger("d", DATA) as ledger:
        before = any_book.hash_rows()
        for one in (book, ledger):
            for how in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(TypeError, match="cannot be copied or pickled"):
                    how(one)

        def forked():
            with pytest.raises(OffPlan, match="belongs to the process that forked"):
                ledger.release(TENTH, unlooked)
            for asked in (book.verify, lambda: book.dataset("e", Budget(1.0)), lambda: book.names):
                with pytest.raises(ParameterError, match="may not cross a fork"):
                    asked()
            with pytest.raises(ParameterError, match="may not cross a fork"):
                book.ledger("d", DATA, 3 * TENTH)

        assert exit_status_in_child(forked) == 0
        assert any_book.hash_rows() == before
        ledger.release(TENTH, np.sum)  # the parent's connection still works
    book.verify()


@pytest.mark.parametrize(
    "data",
    [np.array([1.0, math.nan]), np.array([math.inf]), np.array([]), np.array(1.0),
     np.array([object()]), [[1.0], [1.0, 2.0]], (DATA, DATA[:3])],
    ids=["nan", "inf", "empty", "scalar", "object", "ragged", "lengths"],
)  # fmt: skip
def test_row_26_wrong_data_are_refused_before_any_spend(any_book, book, data):
    book.dataset("d", Budget(1.0))
    before = any_book.hash_rows()
    with pytest.raises(ParameterError):
        book.ledger("d", data, 3 * TENTH, run="june")
    assert any_book.hash_rows() == before


def test_row_32_a_seed_must_be_called_insecure_and_is_marked(any_book, book):
    book.dataset("d", Budget(1.0))
    before = any_book.hash_rows()
    for rng in (7, np.random.Generator(np.random.PCG64(7))):
        with pytest.raises(ParameterError, match="rng must be None") as refused:
            book.ledger("d", DATA, rng=rng)
        assert "7" not in str(refused.value)
    assert any_book.hash_rows() == before
    with book.ledger("d", DATA, rng=7, insecure_seed=True) as ledger:
        ledger.release(TENTH, np.sum)
    with book.ledger("d", DATA) as ledger:
        ledger.release(TENTH, np.sum)
    assert [line.seeded for line in book.history("d")] == [True, False]


def test_row_33_the_same_seed_twice_is_refused(any_book, book):
    book.dataset("d", Budget(1.0))
    book.dataset("e", Budget(1.0))
    with book.ledger("d", DATA, rng=7, insecure_seed=True) as ledger:
        ledger.release(TENTH, np.sum)
    before = any_book.hash_rows()
    for name, plan in (("d", None), ("e", None), ("e", 2 * TENTH)):
        with pytest.raises(ParameterError, match="the same noise twice cancels"):
            book.ledger(name, DATA, plan, rng=7, insecure_seed=True)
    assert any_book.hash_rows() == before
    book.ledger("d", DATA, rng=8, insecure_seed=True)


def test_row_34_no_seed_and_no_data_value_is_in_the_book(any_book, book):
    seed, value = 918273645, 0.123456789123
    book.dataset("d", Budget(1.0))
    with book.ledger("d", np.full(5, value), rng=seed, insecure_seed=True) as ledger:
        ledger.release(TENTH, np.sum)
        with pytest.raises(ValueError, match="no"):
            ledger.release(TENTH, lambda _: int("no" + str(value)))
        shown = [repr(book), repr(ledger), str(book.history("d")), str(book.status("d"))]
    shown.append(str(any_book.fetch("SELECT * FROM entries")))
    for words in shown:
        for secret in (str(seed), str(value), value.hex(), hex(seed)[2:]):
            assert secret not in words


class Faulty:
    """A generator that gives what it is told."""

    def __init__(self, words):
        self.words = words

    def integers(self, *_, **__):
        return np.array(next(self.words), dtype=np.uint64)


@pytest.mark.parametrize(
    "words",
    [[0, 0, 0, 0], [2**64 - 1] * 4, [5, 6, 7, 5], None],
    ids=["zeros", "ones", "repeats", "stuck"],
)
def test_row_35_a_broken_generator_releases_nothing(any_book, book, words):
    book.dataset("d", Budget(1.0))
    with book.ledger("d", DATA) as ledger:
        if words is None:
            words = [1, 2, 3, 4]
            ledger._noise = Faulty(iter([words]))
            ledger.spend(TENTH)
        before = any_book.hash_rows()
        ledger._noise = Faulty(iter([words]))
        with pytest.raises(UnhealthyRandomness, match="the same words again"):
            ledger.release(TENTH, unlooked)
        assert any_book.hash_rows() == before


def test_row_20_noise_that_another_process_used_is_refused(any_book, book):
    book.dataset("d", Budget(1.0))
    for first in (True, False):  # as two machines made from one snapshot would
        with book.ledger("d", DATA) as ledger:
            ledger._noise = Faulty(iter([[1, 2, 3, 4]]))
            if first:
                ledger.spend(TENTH)
                before = any_book.hash_rows()
            else:
                with pytest.raises(UnhealthyRandomness, match="earlier release with the same"):
                    ledger.release(TENTH, unlooked)
    assert any_book.hash_rows() == before


def test_a_copy_of_the_generator_from_before_draws_other_noise(book):
    book.dataset("d", Budget(1.0))
    made = Laplace(1e6)  # two draws are equal with a chance below 1e-6
    with book.ledger("d", DATA) as ledger:
        copied_state = ledger._noise.bit_generator.state
        first = ledger.release(made, np.sum)
        ledger._noise.bit_generator.state = copied_state
        assert ledger.release(made, np.sum) != first
    noise = np.random.default_rng(np.random.default_rng(4).bit_generator.seed_seq.spawn(2)[0])
    fingerprint = {"size": 4, "dtype": np.uint64}
    noise.integers(0, 1 << 64, **fingerprint)  # marks the seed
    with book.ledger("d", DATA, rng=4, insecure_seed=True) as seeded:
        for _ in range(2):
            noise.integers(0, 1 << 64, **fingerprint)
            assert seeded.release(made, np.sum) == made.release(DATA.sum(), noise)


@pytest.mark.parametrize(
    "name", ["", "a\nb", "\x1b[31mred", "\u202egnp", "\xa0x", "x\0", "\ud800", 3, None, "x" * 201]
)
def test_row_41_names_that_do_not_show_what_they_are_are_refused(any_book, book, name):
    book.dataset("d", Budget(1.0))
    before = any_book.hash_rows()
    with pytest.raises(ParameterError, match="1 to 200 printable characters"):
        book.dataset(name, Budget(1.0))
    with book.ledger("d", DATA) as ledger, pytest.raises(ParameterError):
        ledger.release(TENTH, unlooked, label=name if name is not None else "")
    assert any_book.hash_rows() == before


def test_a_data_set_is_opened_once_and_never_changes(any_book, book):
    first = book.dataset("d", Budget(1.0, 1e-6), "gdp")
    assert book.dataset("d") == first == book.dataset("d", Budget(1.0, 1e-6), "gdp")
    before = any_book.hash_rows()
    for wrong in (
        {"budget": Budget(2.0, 1e-6)},
        {"budget": Budget(1.0, 1e-6), "notion": "zcdp"},
        {"users": 3},
        {"order": 9.0},
    ):
        with pytest.raises(ParameterError, match="as the data set was opened"):
            book.dataset("d", **wrong)
    with pytest.raises(ParameterError, match="budget must be a Budget"):
        book.dataset("e", 1.0)
    with pytest.raises(ParameterError, match="is no valid filter when answers choose"):
        book.dataset("e", Budget(1.0, 1e-6), "pld")
    with pytest.raises(ParameterError, match="name must be a data set of this book"):
        book.ledger("e", DATA)
    assert any_book.hash_rows() == before
    assert book.names == ["d"]


@pytest.mark.parametrize("url", ["", "mysql://u:secret@h/d", "sqlite://", "sqlite:///", 3, None])
def test_what_is_no_url_is_refused_without_its_password(url):
    with pytest.raises(ParameterError) as refused:
        Book.open(url)
    assert "secret" not in str(refused.value)


def test_row_14_a_locked_book_is_waited_for_and_then_busy(stored_book):
    with Book.create(stored_book.url) as book:
        book.dataset("d", Budget(1.0))
    with Book.open(stored_book.url, wait=0.3) as book, book.ledger("d", DATA) as ledger:
        before, other = stored_book.hash_rows(), stored_book.hold_lock()
        with pytest.raises(LedgerBusy, match="nothing was spent") as busy, Watched(ledger):
            ledger.release(TENTH, unlooked)
        assert busy.value.seconds == 0.3
        other.rollback()
        other.close()
        assert stored_book.hash_rows() == before
        ledger.release(TENTH, np.sum)
        assert book.spent("d") == 0.1


def test_a_plan_is_paid_at_once_and_followed(any_book, book):
    book.dataset("d", Budget(1.0))
    plan = Sequential([Repeat(TENTH, 3), Laplace(5.0)])
    with book.ledger("d", DATA, plan) as ledger:
        assert book.spent("d") == 0.5
        before = any_book.hash_rows()
        with pytest.raises(OffPlan):
            ledger.release(Laplace(5.0), unlooked)
        assert any_book.hash_rows() == before
        for _ in range(3):
            ledger.release(TENTH, np.sum)
        ledger.release(Laplace(5.0), np.sum)
        with pytest.raises(OffPlan):
            ledger.release(TENTH, unlooked)
    assert book.spent("d") == 0.5
    before = any_book.hash_rows()
    with pytest.raises(BudgetExceeded):
        book.ledger("d", DATA, Repeat(TENTH, 6))
    assert any_book.hash_rows() == before
    assert [line.outcome for line in book.history("d")] == ["planned"] + ["answered"] * 4
    book.verify()


def test_a_named_run_goes_on_after_a_crash_with_the_answers_it_gave(any_book, book):
    book.dataset("d", Budget(1.0))
    plan = Repeat(TENTH, 5)
    with book.ledger("d", DATA, plan, run="june") as ledger:
        first = [ledger.release(TENTH, np.sum) for _ in range(2)]
        coins = ledger.coins.random()
        ledger._fail = lambda _: None  # dies here, after it looked
        with pytest.raises(ZeroDivisionError):
            ledger.release(TENTH, lambda _: 1 / 0)
    assert book.spent("d") == 0.5
    with pytest.raises(ParameterError, match="a name that no run of another plan has"):
        book.ledger("d", DATA, Repeat(TENTH, 4), run="june")
    with Book.open(any_book.url) as other, other.ledger("d", DATA, plan, run="june") as ledger:
        with Watched(ledger):
            assert [ledger.release(TENTH, unlooked) for _ in range(2)] == first
        assert ledger.coins.random() == coins
        for _ in range(3):
            ledger.release(TENTH, np.sum)
        assert ledger.next is None
    # the step that was lost was looked at twice
    assert book.spent("d") == 0.6
    lines = book.history("d")
    assert [line.run for line in lines] == ["june"] * 7
    assert [line.outcome for line in lines].count("answered") == 5
    book.verify()


@pytest.mark.parametrize("other_users", [[3, 4, 5], [0, 1]])
def test_a_step_of_a_named_run_gives_its_answers_to_its_users_alone(sqlite_book, other_users):
    plan = Parallel([TENTH] * 2)
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA, plan, run="june") as ledger:
            ledger.release_each(TENTH, lambda rows: rows, [0, 1, 2])
        with book.ledger("d", DATA, plan, run="june") as ledger:
            with pytest.raises(OffPlan, match="this run released something else here"):
                ledger.release_each(TENTH, unlooked, other_users)
            ledger.release_each(TENTH, unlooked, [0, 1, 2])  # the answers that are stored


def test_one_run_in_two_processes_is_drawn_once(book, any_book):
    book.dataset("d", Budget(1.0))
    plan = Repeat(TENTH, 2)
    with book.ledger("d", DATA, plan, run="r") as one, Book.open(any_book.url) as other:
        with other.ledger("d", DATA, plan, run="r") as two:
            given = one.release(TENTH, np.sum)
            assert two.release(TENTH, unlooked) == given
            given = two.release(TENTH, np.sum)
        assert one.release(TENTH, unlooked) == given
    assert book.spent("d") == 0.2
    book.verify()


def test_users_of_the_local_model_pay_for_themselves(any_book, book):
    users, coin = 1000, TENTH
    book.dataset("d", Budget(0.3), users=users)
    data = np.arange(users, dtype=float)
    expected = np.zeros(users)
    rng = np.random.default_rng(0)
    with book.ledger("d", data) as ledger:
        for _ in range(3):
            who = rng.permutation(users)[:300]
            assert ledger.release_each(coin, lambda rows: rows, who).shape == (300,)
            expected[who] += 1
        ledger.release_each(coin, lambda rows: rows, slice(0, 0))
        before = any_book.hash_rows()
        full = np.flatnonzero(expected == 3)
        assert full.size
        with pytest.raises(BudgetExceeded):
            ledger.release_each(coin, unlooked, full[:1])
        with pytest.raises(BudgetExceeded):
            ledger.release(coin, unlooked)  # everybody would pay
        assert any_book.hash_rows() == before
        ledger.release_each(coin, lambda rows: rows, expected < 2)
        expected[expected < 2] += 1
    found = book.spent_each("d")
    assert np.allclose(found, expected / 10, rtol=0, atol=1e-12)
    assert book.spent("d") == expected.max() / 10
    with Book.open(any_book.url) as other:
        assert np.array_equal(other.spent_each("d"), found)
    assert [line.who for line in book.history("d")][:4] == [300, 300, 300, 0]
    book.verify()
    with pytest.raises(ParameterError, match="data must be of 1000 users"):
        book.ledger("d", DATA)


def unlooked_at_all(*_, **__):
    raise AssertionError("no step is reserved")


def test_a_run_of_users_goes_on_after_a_refused_step(any_book, book):
    groups = [np.arange(0, 12), np.arange(12, 20)]
    plan = Parallel([2 * TENTH, 2 * TENTH]) + TENTH
    book.dataset("d", Budget(1.0), users=20)
    with book.ledger("d", DATA, plan, run="r") as ledger:
        for users in groups:
            ledger.release_each(TENTH, lambda rows: rows, users)
        with pytest.MonkeyPatch.context() as broken:
            broken.setattr(Reservations, "reserve_step", unlooked_at_all)
            with pytest.raises(AssertionError):
                ledger.release_each(TENTH, unlooked, groups[0])
        with pytest.raises(OffPlan):
            ledger.release(TENTH, unlooked)  # both groups have a step to make
        for users in groups:
            ledger.release_each(TENTH, lambda rows: rows, users)
        ledger.release(TENTH, np.sum)
    book.verify()


def test_blocks_of_users_are_stored_one_by_one(any_book, book):
    book.dataset("d", Budget(1.0), users=20)
    blocks = [slice(0, 7), np.arange(7, 20)]
    with book.ledger("d", DATA) as ledger:
        given = list(ledger.release_blocks(TENTH, lambda rows: rows, blocks))
    assert [len(one) for one in given] == [7, 13]
    assert all(
        np.array_equal(book.answer(line), one)
        for line, one in zip(book.history("d"), given, strict=True)
    )
    assert np.array_equal(book.spent_each("d"), np.full(20, 0.1))
    with book.ledger("d", DATA) as ledger:
        some = ledger.release_blocks(TENTH, lambda rows: rows, blocks)
        next(some)
        some.close()
    assert {line.outcome for line in book.history("d")} == {"answered", "failed"}
    book.verify()


def test_a_closed_ledger_releases_nothing(any_book, book):
    book.dataset("d", Budget(1.0))
    with book.ledger("d", DATA) as ledger:
        pass
    before = any_book.hash_rows()
    with pytest.raises(OffPlan, match="was closed"):
        ledger.release(TENTH, unlooked)
    assert any_book.hash_rows() == before


def test_live_epsilon_is_not_composed_anew(book):
    book.dataset("d", Budget(10.0, 1e-6))
    with book.ledger("d", DATA) as ledger:
        seconds = []
        for k in range(20):
            ledger.spend(Gaussian(50.0 + k))
            start = time.process_time()
            book.spent("d")
            seconds.append(time.process_time() - start)
    assert standard(sorted(seconds)[10]) < 0.015


def test_an_interruption_just_after_the_lock_was_taken_lets_go_of_it(sqlite_book, monkeypatch):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            storage = book._log.storage
            begin = storage._begin

            def interrupted(words):
                begin(words)
                raise KeyboardInterrupt

            with monkeypatch.context() as once:
                once.setattr(storage, "_begin", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    ledger.spend(TENTH)
            with Book.open(sqlite_book.url, wait=0.2) as other, other.ledger("d", DATA) as second:
                second.spend(TENTH)
            ledger.spend(TENTH)
            assert book.spent("d") == 0.2


def test_what_an_interruption_left_does_not_take_the_next_answer(stored_book, monkeypatch):
    with Book.create(stored_book.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:

            def interrupted(*_):
                raise KeyboardInterrupt

            with monkeypatch.context() as once:
                once.setattr(type(ledger), "_answer", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    ledger.release(TENTH, np.sum, label="sum")
            ledger.release(TENTH, np.min)
            answer = ledger.release(TENTH, np.sum, label="sum")
            assert answer == ledger.release(TENTH, unlooked, label="sum")
        lines = book.history("d")
        assert [(one.label, one.outcome) for one in lines] == [
            ("sum", "failed"), (None, "answered"), ("sum", "answered"),
        ]  # fmt: skip
        assert book.answer(lines[2]) == answer
        book.verify()


@dataclass(frozen=True)
class Crooked(Loss):
    """A loss that states what nothing can cost."""

    stated: float
    mass: float = 0.0

    def profile(self, epsilon):
        return np.zeros(np.shape(epsilon))

    @property
    def reversed(self):
        return self

    @property
    def max_loss(self):
        return self.stated

    @property
    def infinity(self):
        return self.mass

    @property
    def rho(self):
        return self.stated


@dataclass(frozen=True)
class CrookedRelease(Release):
    loss: Crooked
    value_axes = 0

    @property
    def reversed(self):
        return self

    def losses(self):
        yield self.loss, 1

    def release(self, value, rng, size=None):
        return value + rng.standard_normal()


@pytest.mark.parametrize("budget", [Budget(1.0), Budget(1.0, 1e-6)], ids=["pure", "zcdp"])
@pytest.mark.parametrize(
    "loss",
    [
        Crooked(-0.5),
        Crooked(-1e-300),
        Crooked(float("nan")),
        Crooked(0.1, float("nan")),
        Crooked(0.001, -1.0),
    ],
    ids=["negative", "hardly negative", "nan", "nan mass", "negative mass"],
)
def test_a_cost_below_zero_or_none_refunds_nothing(any_book, budget, loss):
    with Book.create(any_book.url) as book:
        book.dataset("d", budget)
        before = any_book.hash_rows()
        with (
            book.ledger("d", DATA, undeclared=True) as ledger,
            pytest.raises((UnsupportedPlan, BudgetExceeded)),
        ):
            ledger.release(CrookedRelease(loss), unlooked)
        assert any_book.hash_rows() == before
    gate = Filter(DATA, budget, undeclared=True)
    with pytest.raises((UnsupportedPlan, BudgetExceeded)):
        gate.release(CrookedRelease(loss), unlooked)
    assert gate.spent == 0


def test_a_plan_of_many_repetitions_holds_nobody_up(sqlite_book):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
        start = time.process_time()
        with pytest.raises(BudgetExceeded):
            book.ledger("d", DATA, Repeat(Laplace(1e8), 10**8 + 1))
        with book.ledger("d", DATA, Repeat(Laplace(1e8), 10**8)) as ledger:
            ledger.release(Laplace(1e8), np.sum)
        assert standard(time.process_time() - start) < 2
        assert book.spent("d") == 1.0
        book.verify()


def test_two_mechanisms_at_once_under_one_label_are_not_mixed_up(any_book):
    with Book.create(any_book.url) as one, Book.open(any_book.url) as two:
        one.dataset("d", Budget(1.0))
        with one.ledger("d", DATA) as ledger, two.ledger("d", DATA) as other:

            def overtaken(data):
                other.release(Laplace(20.0), np.max, label="one")
                return np.sum(data)

            with pytest.raises(ParameterError, match="no other mechanism was released under"):
                ledger.release(TENTH, overtaken, label="one")
        made = [(line.loss, line.outcome) for line in one.history("d")]
        # the label was reserved for another mechanism: the second is refused, and not charged
        assert made == [("LaplaceLoss(shift=0.1)", "failed")]
        one.verify()


def test_a_label_is_of_one_question(sqlite_book):
    def ask(ledger, question, plan):
        with ledger.answering(question):
            if plan is None:
                return ledger.release(TENTH, np.sum, label="june")
            with ledger.reserving(plan, label="june"):
                return ledger.release(TENTH, np.sum)

    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            for plan, spent in ((None, 0.1), (2 * TENTH, 0.3)):
                answer = ask(ledger, "sum of a", plan)
                with pytest.raises(ParameterError, match=r"no other question .* 'sum of a'"):
                    ask(ledger, "sum of b", plan)
                assert ask(ledger, "sum of a", plan) == answer
                assert book.spent("d") == spent
            # a program that names no question, as before questions were named, is answered
            assert ledger.release(TENTH, np.sum, label="june") is not None


def test_a_mechanism_that_is_not_declared_here_is_no_corruption(any_book, monkeypatch):
    from accountant.plans import plan

    @dataclass(frozen=True)
    class Ours(CrookedRelease):
        loss: Loss = Laplace(10.0).loss

    with Book.create(any_book.url) as book:
        book.dataset("d", Budget(1.0))
        with monkeypatch.context() as there:
            there.setattr(plan, "DECLARED_PLAN_KINDS", [*plan.DECLARED_PLAN_KINDS])
            there.setattr(
                "accountant.serialisation.registry.DECLARED_PLAN_KINDS",
                [*plan.DECLARED_PLAN_KINDS, Ours],
            )
            with book.ledger("d", DATA, Repeat(Ours(), 3), undeclared=True) as ledger:
                ledger.release(Ours(), np.sum)
            book.verify()
        with pytest.raises(ParameterError, match="import what declares it, for entry 3"):
            book.verify()


def test_a_lock_that_is_let_go_in_time_is_only_waited_for(stored_book):
    with Book.create(stored_book.url) as book:
        book.dataset("d", Budget(1.0))
    with Book.open(stored_book.url, wait=60) as book, book.ledger("d", DATA) as ledger:
        other = stored_book.hold_lock()
        letting_go = threading.Timer(0.3, other.rollback)
        letting_go.start()
        ledger.release(TENTH, np.sum)
        letting_go.join()
        other.close()
        assert book.spent("d") == 0.1
