"""Quotas: what each author may spend of a data set, below its budget."""

import json
import shutil
from decimal import Decimal

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    BudgetExceeded,
    DatasetClosed,
    LedgerCorrupt,
    LedgerViolated,
    ParameterError,
    Tight,
)
from accountant.book import log, opening
from accountant.book.chain.entries import author_key
from accountant.book.chain.key_index import descend
from accountant.book.databases.sqlite import SQLite
from accountant.book.dataset_terms import state_quota
from accountant.book.export import history_json
from accountant.book.quotas import author_limit
from mechanisms import Gaussian, Laplace
from tests.accountant.book.throwaway_books import SQLiteBookFile, rewritten, unlooked
from tests.test_public_names import SNAPSHOTS

DATA = np.arange(20.0)
TENTH = Laplace(10.0)


def opened(place, author):
    """The book as one author has it; the first one makes it."""
    try:
        return Book.create(place.url, author=author)
    except ParameterError:
        return Book.open(place.url, author=author)


def spends(book, mechanism=TENTH, name="d", data=DATA):
    """Spend until it is refused; how often that was possible."""
    with book.ledger(name, data) as ledger:
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
        assert bob.status("d").limited_authors == 1
        exported = json.loads("".join(history_json(bob.status("d"), [])))
        assert exported["dataset"]["limited_authors"] == 1
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
        [(_, epsilon, quota)] = [one for one in ada.quotas("d") if one.quota is not None]
        assert epsilon <= quota == 0.1
        more = ada._account("d").notion
        cost = more.cost(noise.loss)
        assert more.epsilon(more.times(cost, made)) == pytest.approx(epsilon, rel=1e-9)
        assert more.epsilon(more.times(cost, made + 1)) > 0.1
        ada.verify()


def test_a_divergence_that_gives_any_spend_more_than_the_quota_is_named(sqlite_book):
    with opened(sqlite_book, "ada") as book:
        book.dataset("d", Budget(1.0, 1e-6), "rdp")
        with pytest.raises(ParameterError, match=r"quota must be 0, or at least epsilon 0\.46"):
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
            entries = ada._log
            descend(
                author_key("d", "ada"), entries.head.index_root,
                lambda seq: read.add(seq) or entries.nodes_of(seq),
            )  # fmt: skip
            account = ada._account("d")
            account.follow_terms()
            limit = author_limit(account, account.notion, "ada")
        assert len(read) <= 12
        assert limit == ("ada", 900, {"": (Decimal("0.1"), 0)})


def rows_of_a_first_spend(place, patch, authors):
    """Set this many quotas; count the rows that one of the authors reads to open and to spend."""
    name, ask, counts = f"of {authors}", SQLite.ask, []
    with opened(place, "curator") as book:
        book.dataset(name, Budget(1.0))
        account = book._account(name)
        with book._log.writing():  # one flush for all
            account.follow_terms()
            for k in range(authors):
                state_quota(account, f"author {k}", 0.3, "three")

    def counted(storage, sql, **values):
        rows = ask(storage, sql, **values)
        counts.append(len(rows))
        return rows

    with patch.context() as counting:
        counting.setattr(opening, "ENTRIES_CHECKED_ON_OPEN", 10)  # of any longer log it is 1,000
        counting.setattr(SQLite, "ask", counted)
        with Book.open(place.url, author="author 7") as book, book.ledger(name, DATA) as ledger:
            ledger.spend(TENTH)
            rows = sum(counts)
            assert ("author 7", 0.1, 0.3) in book.quotas(name)
    return rows


def test_a_first_spend_reads_no_more_where_more_authors_have_quotas(sqlite_book, monkeypatch):
    rows_of_few = rows_of_a_first_spend(sqlite_book, monkeypatch, 10)
    rows_of_many = rows_of_a_first_spend(sqlite_book, monkeypatch, 100)
    assert rows_of_few <= rows_of_many < 2 * rows_of_few


FORGED = {
    "own": ("what its author spent is not the sum", lambda _: {"own": ["0.05", "0"]}),
    "own left out": ("is not under its keys|does not say what its", lambda f: f.pop("own") and ()),
    "own of nobody": ("is not under its keys|does not say what its", lambda _: {"own": None}),
    "own quota": ("does not say the quota of its author", lambda _: {"quota": 0.5}),
    "own quota left out": ("the quota of its author", lambda f: f.pop("quota") and ()),
    "before": ("what its author spent before", lambda _: {"own": ["0.01", "0"]}),
    "used": ("what each author spent before", lambda _: {"used": {"bob": ["0.01", "0"]}}),
    "quota": ("more than the quota|the quota of its author", lambda _: {"quota": 0.15}),
    "whose": ("what its author spent before|not under its", lambda _: {"whose": "bob"}),
    "listed": ("other terms than it says", lambda _: {"quotas": {"ada": 0.3}}),
    "count": ("other terms than it says", lambda _: {"limited_authors": 2}),
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


def test_who_has_no_quota_states_none_where_others_have_one(sqlite_book):
    with opened(sqlite_book, "ada") as ada, opened(sqlite_book, "bob") as bob:
        ada.dataset("d", Budget(1.0))
        ada.set_quota("d", "ada", 0.3, "three")
        with bob.ledger("d", DATA) as ledger:
            ledger.spend(TENTH)
        last = ada.history("d")[-1].seq
        ada.verify()
    bodies = sqlite_book.fetch(f"SELECT body FROM entries WHERE seq = {last}")
    assert json.loads(bodies[0][0])["own"] is None
    sqlite_book.tamper(
        *rewritten(sqlite_book, last, lambda one: one["seq"] == last and one.pop("own"))
    )
    # a version that knows no quotas would charge so
    with (
        opened(sqlite_book, "ada") as book,
        pytest.raises(LedgerViolated, match="does not know quotas"),
    ):
        spends(book)


def test_an_entry_of_another_author_is_no_quota_of_this_one(sqlite_book):
    with opened(sqlite_book, "ada") as ada, opened(sqlite_book, "bob") as bob:
        ada.dataset("d", Budget(1.0))
        ada.set_quota("d", "ada", 0.3, "three")
        bob.set_quota("d", "bob", 0.1, "one")

    def change(facts):
        if facts["kind"] == "terms" and facts["whose"] == "bob":
            facts["whose"] = "eve"  # the index still leads here for bob

    sqlite_book.tamper(*rewritten(sqlite_book, 3, change))
    why = "does not say what an author spent"
    with opened(sqlite_book, "bob") as bob, pytest.raises(LedgerCorrupt, match=why):
        spends(bob)


# --- books whose quotas an earlier version listed in every entry of terms


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """A book of 830740af: quotas of ada and bob, and eve without one, in three data sets."""
    monkeypatch.setattr(log, "clock_time", lambda _: "2026-11-14T12:00:00.000000+00:00")
    shutil.copy(SNAPSHOTS / "book-listed-quotas.db", tmp_path / "book.db")
    return SQLiteBookFile(tmp_path / "book.db")


def charged(book, name):
    return {one.author: (round(one.epsilon, 6), one.quota) for one in book.quotas(name)}


def charges_of(place, name, author):
    """Spend a tenth each time, until it is refused; how often that was possible."""
    with opened(place, author) as book:
        return spends(book, name=name, data=DATA[:6])


@pytest.mark.parametrize("name", ["quota", "users", "month"])
@pytest.mark.parametrize("first", ["spends", "quota"])
def test_listed_quotas_hold_and_change_over(listed, name, first):
    ada_spent = 0.3 if name == "month" else 0.2
    with opened(listed, "ada") as book:
        assert book.verify().entries == 28
        known = {"ada": (ada_spent, 0.75), "bob": (0.1, 0.5), "eve": (0.2, None)}
        assert charged(book, name) == known
        assert book.status(name).limited_authors == 2
        if first == "quota":
            book.set_quota(name, "eve", 0.3, "a little")
            assert book.verify().entries == 31  # one for each author
            assert charged(book, name) == known | {"eve": (0.2, 0.3)}
    assert charges_of(listed, name, "bob") == 4
    assert charges_of(listed, name, "ada") == (4 if name == "month" else 5)
    with opened(listed, "eve") as book:
        if first == "spends":
            book.verify()  # charges went on as the earlier version wrote them
            book.set_quota(name, "eve", 0.3, "a little")
    assert charges_of(listed, name, "eve") == 1
    with opened(listed, "ada") as book:
        assert book.status(name).limited_authors == 3
        changes = [one.what for one in book.history(name) if one.outcome == "quota"]
        assert changes[2:] == [
            "quota of ada: epsilon 0.75 (a little)", "quota of bob: epsilon 0.5 (a little)",
            "quota of eve: epsilon 0.3 (a little)",
        ]  # fmt: skip
        book.set_quota(name, "ada", 0.9, "more")
        assert charges_of(listed, name, "ada") == 2
        book.verify()


def test_a_corrected_clock_changes_listed_quotas_over(listed, monkeypatch):
    def clock(day):
        monkeypatch.setattr(log, "clock_time", lambda _: f"{day}T12:00:00.000000+00:00")

    clock("2027-02-01")
    for author in ("ada", "eve"):
        with Book.open(listed.url, author=author, clock="trusted") as book:
            book.ledger("month", DATA).spend(TENTH)
    clock("2026-11-14")
    with opened(listed, "ada") as book:
        book.correct_clock("NTP was off")
        known = {"ada": (0.4, 0.75), "bob": (0.1, 0.5), "eve": (0.3, None)}
        assert charged(book, "month") == known
        assert [one.what[:24] for one in book.history("month", last=4)] == [
            "quota of ada: epsilon 0.", "quota of bob: epsilon 0.", "windows counted anew by ",
            "quota of ada: epsilon 0.",
        ]  # fmt: skip
        book.verify()
    assert charges_of(listed, "month", "ada") == 3
    assert charges_of(listed, "month", "bob") == 4
    with opened(listed, "ada") as book:
        book.verify()


LISTED = {
    "own": ("what its author spent is not the sum", ("reserve", 3), {"own": ["0.05", "0"]}),
    "own left out": ("its author spent|not under its keys", ("reserve", 3), {"own": None}),
    "a quota": ("does not say the quota", ("reserve", 3), {"quota": 0.75}),
    "used": ("what each author spent before", ("terms", 0), {"used": {"ada": ["0.01", "0"]}}),
    "quota": ("more than the quota", ("terms", 0), {"quotas": {"ada": 0.15}}),
    "whose": ("KeyError|other terms than it says", ("terms", 1), {"whose": "eve"}),
    "others": ("other terms than it says", ("terms", 1), {"quotas": {"ada": 0.9, "bob": 0.5}}),
}


@pytest.mark.parametrize("name", LISTED)
def test_listed_quotas_that_were_not_kept_are_found(listed, name):
    match, (kind, nth), change = LISTED[name]
    numbers = [seq for (seq,) in listed.fetch(
        f"SELECT seq FROM entries WHERE dataset = 'quota' AND kind = '{kind}' ORDER BY seq"
    )]  # fmt: skip
    listed.tamper(*rewritten(
        listed, 2, lambda facts: facts["seq"] == numbers[nth] and facts.update(change)
    ))  # fmt: skip
    with opened(listed, "ada") as book, pytest.raises(LedgerCorrupt, match=match):
        book.verify()


@pytest.mark.parametrize("what", ["is missing", "is another"])
def test_a_change_over_that_loses_a_quota_is_found(listed, what):
    with opened(listed, "ada") as book:
        book.set_quota("quota", "eve", 0.3, "a little")
    if what == "is missing":
        listed.tamper("DELETE FROM entries WHERE seq > 29", "PRAGMA user_version = 29")
    else:
        listed.tamper(*rewritten(
            listed, 29, lambda facts: facts["seq"] == 30 and facts.update(quota=5.0)
        ))  # fmt: skip
    why = "comes before other quotas have an entry"
    with opened(listed, "ada") as book, pytest.raises(LedgerCorrupt, match=why):
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
        assert ada.status("d").limited_authors == 1
        assert ada.spent_each("d").tolist() == pytest.approx([0.7] * 10 + [0.2] * 5 + [0.1] * 5)
        ada.verify()


def test_a_quota_below_what_was_spent_refuses_all_that_costs(sqlite_book):
    plan = 2 * TENTH
    with opened(sqlite_book, "ada") as book:
        book.dataset("each", Budget(2.0), users=20)
        book.dataset("aside", Budget(2.0), plan=plan, runs=2)
        for name in ("each", "aside"):
            with book.ledger(name, DATA) as ledger:
                ledger.spend(Laplace(2.0), *([slice(0, 5, 1)] if name == "each" else []))
            book.set_quota(name, "ada", 0.2, "less")
        with book.ledger("each", DATA) as ledger:
            with pytest.raises(BudgetExceeded, match="quota of 'ada'"):
                ledger.spend(Laplace(2.5), slice(10, 15, 1))  # users of whom nothing was spent
            ledger.spend(TENTH, slice(10, 15, 1))
            with pytest.raises(BudgetExceeded, match="quota of 'ada'"):
                ledger.spend(TENTH, slice(4, 15, 1))
        assert book.quotas("each") == [("ada", 0.5, 0.2)]
        with book.ledger("aside", DATA, plan, run="paid before") as ledger:
            ledger.release(TENTH, np.sum)
        book.verify()


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
