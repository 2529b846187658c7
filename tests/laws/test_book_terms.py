"""Laws of terms that change: the log decides, for every process and at every place."""

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    BudgetExceeded,
    DatasetClosed,
    LedgerCorrupt,
    ParameterError,
    PureLoss,
)
from accountant.book import log
from mechanisms import Laplace
from tests.laws.test_books import append_charge, opened_book

DATA = np.arange(20.0)
EARLY, LATE, BACK = (f"2026-0{month}-01T00:00:00.000000+00:00" for month in (1, 3, 2))


@pytest.mark.parametrize("how", ["closed", "expired", "set back"])
def test_after_its_end_nothing_is_spent_in_any_process(how):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "_now", lambda: EARLY)
        with opened_book(budget=Budget(1.0)) as book:
            with (
                Book.open(f"sqlite:///{book._log.name}") as other,
                other.ledger("d", DATA) as ledger,
            ):
                ledger.release(Laplace(10.0), np.sum)
                if how == "closed":
                    book.close_dataset("d", "the end")
                else:
                    book.expire("d", BACK, "the end")
                    patch.setattr(log, "_now", lambda: LATE)
                if how == "set back":
                    book.dataset("seen later", Budget(1.0))
                    patch.setattr(log, "_now", lambda: EARLY)
                with pytest.raises(DatasetClosed):
                    ledger.release(Laplace(10.0), np.sum)
            assert book.spent("d") == 0.1
            book.verify()


@pytest.mark.parametrize("notion", ["pure", "zcdp", "pure-or-rdp"])
def test_a_budget_never_falls_below_what_was_spent(notion):
    with opened_book(budget=Budget(1.0, 1e-6), notion=notion) as book:
        with book.ledger("d", DATA) as ledger:
            ledger.spend(Laplace(8.0))
        with pytest.raises(ParameterError, match="budget must be"):
            book.raise_budget("d", Budget(0.1, 1e-6), "less")
        book.verify()


def append_terms(book, **changed):
    """Write terms with right hashes, whatever was spent."""
    with book._log.writing():
        terms = {"epsilon": 1.0, "delta": 1e-6, "expires": None, "quotas": {}}
        whole = {**terms, "change": "raised", "reason": "why not", **changed}
        book._log.append("terms", whole, "d")


@pytest.mark.parametrize(
    "what", ["after the end", "too low", "less delta", "back in time", "quota"]
)
def test_terms_that_were_not_kept_do_not_verify(what):
    with opened_book(budget=Budget(1.0, 1e-6), notion="pure") as book:
        append_charge(book, PureLoss(0.5))
        if what == "after the end":
            append_terms(book, change="closed")
            append_charge(book, PureLoss(0.1))
        elif what == "too low":
            append_terms(book, epsilon=0.4)
        elif what == "quota":
            author = book._log.author
            used = {author: ["0.5", "0"]}
            append_terms(book, change="quota", quotas={author: 0.55}, whose=author, used=used)
            append_charge(book, PureLoss(0.1), own=["0.6", "0"])
        elif what == "less delta":
            append_terms(book, delta=1e-9)
        else:
            append_terms(book, change="expires", expires="2999-01-01T00:00:00.000000+00:00")
            with book._log.writing():
                book._log._time = book._log.latest = EARLY
                book._log.append("seed", {}, "d")
        with pytest.raises(LedgerCorrupt):
            book.verify()


@pytest.mark.parametrize("first", ["quota", "spend"])
def test_an_author_never_spends_more_than_the_quota(first):
    with opened_book(budget=Budget(1.0, 1e-6), notion="pure") as book:
        author = book._log.author
        if first == "quota":
            book.set_quota("d", author, 0.25, "a quarter")
        with book.ledger("d", DATA) as ledger:
            ledger.spend(PureLoss(0.1))
            if first == "spend":
                book.set_quota("d", author, 0.25, "a quarter")
            ledger.spend(PureLoss(0.1))
            with pytest.raises(BudgetExceeded):
                ledger.spend(PureLoss(0.1))
        assert book.quotas("d") == [(author, 0.2, 0.25)]
        book.verify()
