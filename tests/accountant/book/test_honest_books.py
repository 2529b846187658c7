"""Books of ordinary spends are good: verification adds up what they state as they did."""

import numpy as np
import pytest

from accountant import Book, Budget, Parallel, Sequential
from accountant.ledger.composition_notions import notion_of
from mechanisms import Gaussian, Laplace
from tests.accountant.book.throwaway_books import rewritten

KINDS_OF_DATASETS = [
    {}, {"users": 6}, {"buckets": "region"}, {"window": "month"}, {"window": "30 days"},
]  # fmt: skip


def spends(noise):
    """One release, and plans that are spent as one: repeated, in sequence, in parallel."""
    return [
        noise(50.0),
        3 * noise(300.0),
        Sequential([noise(170.0), 7 * noise(1100.0)]),
        3 * Parallel([2 * noise(700.0), noise(230.0)], by="index"),
    ]


@pytest.mark.parametrize("notion", ["pure", "pure-or-rdp", "zcdp", "rdp", "gdp"])
@pytest.mark.parametrize("kind", KINDS_OF_DATASETS, ids=str)
def test_a_book_of_any_spends_is_good(tmp_path, notion, kind):
    # A plan that is spent as one release has one cost, which is added to what was spent before.
    # Rounded up in another order, the sum would be another one.
    with Book.create(tmp_path / "honest.db", author="ada") as book:
        book.dataset("d", Budget(2.0, 0.0 if notion == "pure" else 1e-5), notion, **kind)
        buckets = {"buckets": ["a", "b"]} if "buckets" in kind else {}
        ledger = book.ledger("d", np.arange(6.0), **buckets)
        plans = spends(Gaussian if notion == "gdp" else Laplace)
        for plan in [*plans, *plans]:
            ledger.spend(plan)
        if not kind:
            book.set_quota("d", "ada", 1.9, "nearly all")
            ledger.spend(plans[1])
        assert book.verify().entries > 2 * len(plans)


def test_a_book_that_added_the_parts_of_a_release_one_by_one_is_good(sqlite_book):
    # Earlier versions did, and so rounded up in another order.
    notion, plan = notion_of(None, Budget(2.0, 1e-5), None), 3 * Laplace(30.0)
    with Book.create(sqlite_book.url, author="ada") as book:
        book.dataset("d", Budget(2.0, 1e-5))
        ledger = book.ledger("d", np.arange(6.0))
        ledger.spend(Laplace(5.0))
        ledger.spend(plan)

    def as_it_was(facts):
        if facts["kind"] == "reserve" and facts["loss"]["kind"] == "Repeat":
            before = notion.charge(notion.zero, Laplace(5.0))
            total = notion.encode(notion.after(before, plan))
            assert total != facts["total"]
            facts["total"] = total

    sqlite_book.tamper(*rewritten(sqlite_book, 1, as_it_was))
    with Book.open(sqlite_book.url, author="ada") as book:
        assert book.verify().entries == 4
        book.ledger("d", np.arange(6.0)).spend(plan)
        assert book.verify().entries == 5
