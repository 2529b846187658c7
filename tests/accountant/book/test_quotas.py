"""Quotas: what each author may spend of a data set, below its budget."""

import json
import shutil

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    BudgetExceeded,
    DatasetClosed,
    LedgerCorrupt,
    ParameterError,
    Tight,
)
from accountant.book.chain.entries import author_key
from accountant.book.chain.key_index import descend
from accountant.book.export import history_json
from mechanisms import Gaussian, Laplace
from tests.accountant.book.throwaway_books import rewritten, unlooked
from tests.test_public_names import SNAPSHOTS

DATA = np.arange(20.0)
TENTH = Laplace(10.0)


def opened(place, author):
    """The book as one author has it; the first one makes it."""
    try:
        return Book.create(place.url, author=author)
    except ParameterError:
        return Book.open(place.url, author=author)


def spends(book, mechanism=TENTH, name="d"):
    """Spend until it is refused; how often that was possible."""
    with book.ledger(name, DATA) as ledger:
        for count in range(100):
            try:
                ledger.release(mechanism, np.sum)
            except BudgetExceeded:
                return count
    raise AssertionError("no end")


def test_an_author_spends_the_quota_and_no_more(any_book):
    with opened(any_book, "ada") as ada, opened(any_book, "bob") as bob:
        ada.dataset("d", Budget(1.0))
        with bob.ledger("d", DATA) as ledger:
            ledger.release(TENTH, np.sum)  # before there were quotas
        bob.set_quota("d", "bob", 0.3, "two more")
        assert spends(bob) == 2
        before = any_book.hash_rows()
        words = (
            r"needs epsilon 0\.1, and 0 is left of the limit 0\.3 .*quota of 'bob', which Book\.s"
        )
        with bob.ledger("d", DATA) as ledger:
            for refused in (
                lambda: ledger.release(TENTH, unlooked),
                lambda: ledger.spend(TENTH),
                lambda: bob.ledger("d", DATA, 1 * TENTH, run="r"),
            ):
                with pytest.raises(BudgetExceeded, match=words):
                    refused()
        assert any_book.hash_rows() == before
        assert spends(ada) == 7  # the whole stays below the budget
        assert bob.spent("d") == 1.0
        found = bob.quotas("d")
        assert found == [("ada", 0.7, None), ("bob", 0.3, 0.3)]
        assert [one.left for one in found] == [None, 0.0]
        assert bob.status("d").quotas == (("bob", 0.3, 0.3),)
        assert json.loads("".join(history_json(bob.status("d"), [])))["dataset"]["quotas"] == [
            {"author": "bob", "epsilon": 0.3, "quota": 0.3}
        ]
        ada.raise_budget("d", Budget(2.0), "more")
        ada.set_quota("d", "ada", Budget(0.8), "one more")
        bob.set_quota("d", "bob", 0.4, "one more")
        assert (spends(ada), spends(bob)) == (1, 1)
        ada.set_quota("d", "ada", 0, "no more")
        assert spends(ada) == 0
        assert [one.what for one in bob.history("d") if one.outcome == "quota"] == [
            "quota of bob: epsilon 0.3 (two more)", "quota of ada: epsilon 0.8 (one more)",
            "quota of bob: epsilon 0.4 (one more)", "quota of ada: epsilon 0 (no more)",
        ]  # fmt: skip
        ada.verify()


@pytest.mark.parametrize("notion", ["pure", "zcdp", "gdp", "pure-or-rdp"])
def test_own_spends_add_up_in_the_notion_of_the_data_set(sqlite_book, notion):
    noise = Laplace(50.0) if notion == "pure" else Gaussian(100.0)
    with opened(sqlite_book, "ada") as ada, opened(sqlite_book, "bob") as bob:
        ada.dataset("d", Budget(1.0, 1e-6), notion)
        bob.set_quota("d", "ada", 0.1, "a tenth")
        with bob.ledger("d", DATA) as ledger:
            ledger.spend(noise)
        made = spends(ada, noise)
        assert made >= 2
        [(_, epsilon, quota)] = ada.status("d").quotas
        assert epsilon <= quota == 0.1
        more = ada._account("d").notion
        cost = more.cost(noise.loss)
        assert more.epsilon(more.times(cost, made)) == pytest.approx(epsilon, rel=1e-9)
        assert more.epsilon(more.times(cost, made + 1)) > 0.1
        ada.verify()


def test_a_divergence_that_gives_any_spend_more_than_the_quota_is_named(sqlite_book):
    with opened(sqlite_book, "ada") as book:
        book.dataset("d", Budget(1.0, 1e-6), "rdp")
        with pytest.raises(ParameterError, match=r"quota must be 0, or at least epsilon 0\.3"):
            book.set_quota("d", "ada", 0.1, "a tenth")
        book.set_quota("d", "ada", 0.8, "most")
        assert spends(book, Gaussian(30.0)) >= 2
        book.verify()


def test_a_plan_counts_for_the_author_who_started_it(sqlite_book):
    plan = 40 * Laplace(25.0)
    certified = Tight().epsilon(plan, 1e-6)
    with opened(sqlite_book, "ada") as ada, opened(sqlite_book, "bob") as bob:
        ada.dataset("d", Budget(certified + 0.2, 1e-6), "pure")
        ada.set_quota("d", "ada", certified + 0.1, "the plan and a little")
        with ada.ledger("d", DATA, plan, run="plan") as ledger:
            ledger.release(Laplace(25.0), np.sum)
        with bob.ledger("d", DATA, plan, run="plan") as ledger:
            for _ in range(2):  # paid for by ada
                ledger.release(Laplace(25.0), np.sum)
        assert bob.quotas("d")[0].epsilon == pytest.approx(certified, rel=1e-12)
        assert len(bob.quotas("d")) == 1
        assert (spends(ada), spends(bob)) == (1, 1)
        assert ada.status("d").after_plan
        ada.verify()


def test_wrong_quotas_are_refused_and_write_nothing(sqlite_book):
    with opened(sqlite_book, "ada") as book:
        book.dataset("d", Budget(1.0, 1e-6), "pure")
        book.dataset("each", Budget(1.0), users=20)
        entries = book.verify().entries
        for quota in (-1, float("nan"), float("inf"), True, "1", None, Budget(0.1)):
            with pytest.raises(ParameterError, match="quota must be"):
                book.set_quota("d", "bob", quota, "why")
        for author in ("", None, " bob", "b\nob"):
            with pytest.raises(ParameterError, match="author must be"):
                book.set_quota("d", author, 0.1, "why")
        with pytest.raises(ParameterError, match="reason must be"):
            book.set_quota("d", "bob", 0.1, "")
        assert book.verify().entries == entries
        book.close_dataset("d", "over")
        with pytest.raises(DatasetClosed):
            book.set_quota("d", "bob", 0.1, "why")


def test_authors_and_data_sets_of_alike_names_have_totals_of_their_own(sqlite_book):
    names = [("d", "e:f"), ("d:e", "f"), ('d","author', "f")]
    for name, author in names:
        with opened(sqlite_book, author) as book:
            book.dataset(name, Budget(1.0))
            book.set_quota(name, author, 0.2, "a fifth")
            assert spends(book, name=name) == 2
            assert book.quotas(name) == [(author, 0.2, 0.2)]
    with opened(sqlite_book, "f") as book:
        book.verify()


def test_an_author_s_total_is_found_without_reading_the_log(sqlite_book):
    with opened(sqlite_book, "ada") as ada, opened(sqlite_book, "bob") as bob:
        ada.dataset("d", Budget(1e3))
        ada.set_quota("d", "ada", 900, "most")
        with ada.ledger("d", DATA) as ledger:
            ledger.spend(TENTH)
        with bob.ledger("d", DATA) as ledger:
            for _ in range(60):
                ledger.spend(TENTH)
        read = set()
        with ada._log.reading():
            log = ada._log
            descend(
                author_key("d", "ada"), log.head.index_root,
                lambda seq: read.add(seq) or log.nodes_of(seq),
            )  # fmt: skip
        assert len(read) <= 12
        assert ada.status("d").quotas == (("ada", 0.1, 900.0),)


FORGED = {
    "own": ("what its author spent is not the sum", lambda f: {"own": ["0.05", "0"]}),
    "own left out": ("KeyError|not under its keys", lambda f: f.pop("own") and ()),
    "used": ("what each author spent before", lambda f: {"used": {"ada": ["0.01", "0"]}}),
    "quota": ("more than the quota", lambda f: {"quotas": {"ada": 0.15}}),
    "whose": ("other terms than it says|does not say what", lambda f: {"whose": "bob"}),
    "others": ("other terms than it says", lambda f: {"quotas": {"ada": 0.3, "bob": 0.1}}),
}


@pytest.mark.parametrize("name", FORGED)
def test_quotas_that_were_not_kept_are_found(sqlite_book, name):
    match, change = FORGED[name]
    with opened(sqlite_book, "ada") as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            ledger.spend(TENTH)
        book.set_quota("d", "ada", 0.3, "three")
        assert spends(book) == 2

    def changed(facts):
        kind = "reserve" if name.startswith("own") else "terms"
        if facts["kind"] == kind and facts["seq"] > 3:
            facts.update(change(facts))

    sqlite_book.tamper(*rewritten(sqlite_book, 3, changed))
    with opened(sqlite_book, "ada") as book, pytest.raises(LedgerCorrupt, match=match):
        book.verify()


def test_a_book_written_before_takes_terms_and_quotas(tmp_path):
    shutil.copy(SNAPSHOTS / "book.db", tmp_path / "book.db")
    with Book.open(f"sqlite:///{tmp_path / 'book.db'}", author="ada") as book:
        spent = book.spent("ages")
        book.set_quota("ages", "ada", 0.2, "two more")
        assert sum(one.epsilon for one in book.quotas("ages") if one.author != "ada") == spent
        assert spends(book, name="ages") == 2
        book.raise_budget("ages", Budget(4.0, book.status("ages").budget.delta), "more")
        book.close_dataset("ages", "over")
        assert book.verify().entries == book._log.head.seq


@pytest.mark.parametrize("first", ["quota", "spends"])
def test_with_users_a_quota_is_of_each_user(any_book, first):
    halves = slice(0, 10, 1), slice(5, 15, 1)
    with opened(any_book, "ada") as ada, opened(any_book, "bob") as bob:
        ada.dataset("d", Budget(1.0), users=20)
        if first == "quota":
            bob.set_quota("d", "ada", 0.2, "two of ten")
        with ada.ledger("d", DATA) as ledger, bob.ledger("d", DATA) as other:
            ledger.spend(TENTH, halves[0])
            other.spend(Laplace(2.0), halves[0])
            if first == "spends":
                bob.set_quota("d", "ada", 0.2, "two of ten")
            ledger.spend(TENTH, halves[1])  # of the first 5 only .1 is ada's
            ledger.spend(TENTH, slice(0, 5, 1))
            before = any_book.hash_rows()
            with pytest.raises(BudgetExceeded, match="quota of 'ada'"):
                ledger.spend(TENTH, slice(9, 12, 1))
            assert any_book.hash_rows() == before
            ledger.spend(TENTH, slice(10, 20, 1))
        assert ada.quotas("d") == [("ada", 0.2, 0.2), ("bob", 0.5, None)]
        assert ada.status("d").quotas == (("ada", 0.2, 0.2),)
        assert ada.spent_each("d").tolist() == pytest.approx([0.7] * 10 + [0.2] * 5 + [0.1] * 5)
        ada.verify()


def test_a_users_quota_that_was_not_kept_does_not_verify(sqlite_book):
    with opened(sqlite_book, "ada") as book:
        book.dataset("d", Budget(1.0), users=20)
        book.set_quota("d", "ada", 0.25, "a quarter")
        with book.ledger("d", DATA) as ledger:
            ledger.spend(TENTH, slice(0, 10, 1))
            ledger.spend(TENTH, slice(10, 20, 1))
        last = book.history("d")[-1].seq

    def change(facts):
        if facts["seq"] == last:  # of other users than were charged before: it would be .2
            facts["who"] = [9, 19, 1]

    sqlite_book.tamper(*rewritten(sqlite_book, last, change))
    with opened(sqlite_book, "ada") as book, pytest.raises(LedgerCorrupt):
        book.verify()
