"""Books of a version that charged more or less: what was paid counts, and less is refused."""

import numpy as np
import pytest

from accountant import Book, Budget, LedgerCorrupt, LedgerViolated, PureLoss
from mechanisms import Laplace

DATA = np.arange(5.0)
NOTIONS = {"plain": {}, "window": {"window": "7 days"}, "users": {"users": 5}}


def written(book, share):
    """Spends and plans of a version in which rho is this share of what it is today."""
    rho = PureLoss.rho.fget
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PureLoss, "rho", property(lambda loss: share * rho(loss)))
        for name, options in NOTIONS.items():
            book.dataset(name, Budget(4.0, 1e-6), "zcdp", **options)
            book.ledger(name, DATA).spend(PureLoss(0.4))
            if name != "users":  # a plan of all users is charged to each of them
                with book.ledger(name, DATA, PureLoss(0.3) + Laplace(9.0)) as ledger:
                    ledger.spend(PureLoss(0.3))
                    ledger.release(Laplace(9.0), np.sum)
            book.ledger(name, DATA).spend(2 * PureLoss(0.1))


def test_what_an_older_version_charged_too_much_stays_charged(stored_book):
    with Book.create(stored_book.url) as book:
        written(book, 1.08)
        paid = {name: book.spent(name) for name in NOTIONS}
    with Book.open(stored_book.url) as book:
        assert book.verify().entries > 10
        for name, spent in paid.items():
            assert book.spent(name) == spent
            book.ledger(name, DATA).spend(PureLoss(0.1))
            assert book.spent(name) > spent
        assert book.verify().entries > 13


def test_what_costs_more_than_was_charged_is_found(stored_book):
    with Book.create(stored_book.url) as book:
        written(book, 1 - 1e-9)
    with (
        Book.open(stored_book.url) as book,
        pytest.raises((LedgerCorrupt, LedgerViolated), match="not what its loss costs"),
    ):
        book.verify()
