"""Noise that floats decide: asked for by name, warned of at gates, refused by books."""

import warnings

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    Filter,
    IdealisedNoiseWarning,
    Ledger,
    Odometer,
    ParameterError,
    PoissonSampled,
    Sequential,
)
from accountant.book.reservations import Reservations
from accountant.plans.declared_releases import idealised_part, undeclared_part
from mechanisms import Clamped, Gaussian, Laplace

DATA = np.arange(20.0)
FLOATS = Laplace(10.0, arithmetic="idealised")
HIDDEN = [
    3 * FLOATS,
    Laplace(10.0) + 2 * PoissonSampled(Clamped(FLOATS, -5.0, 5.0), 0.1),
    PoissonSampled(Gaussian(9.0, arithmetic="idealised"), 0.5),
]


@pytest.mark.parametrize("plan", HIDDEN, ids=repr)
def test_idealised_noise_is_found_anywhere_in_a_plan(plan):
    assert idealised_part(plan).arithmetic == "idealised"
    assert idealised_part(Laplace(1.0) + 2 * Gaussian(1.0)) is None


@pytest.mark.parametrize(
    "made",
    [
        lambda rng: Ledger(DATA, 3 * FLOATS, rng),
        lambda rng: Filter(DATA, Budget(1.0), rng=rng),
        lambda rng: Odometer(DATA, rng=rng),
    ],
    ids=["Ledger", "Filter", "Odometer"],
)
def test_a_gate_without_a_seed_warns_once(made):
    gate = made(None)
    with pytest.warns(IdealisedNoiseWarning, match="arithmetic=IDEALISED") as found:
        gate.release(FLOATS, np.max)
    assert [one.filename for one in found] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gate.release(FLOATS, np.max)
        made(0).release(FLOATS, np.max)
        made(None).release(Laplace(10.0), np.max) if made(0).next is None else None


def test_a_book_refuses_it_before_anything_is_spent(any_book):
    with Book.create(any_book.url) as book:
        book.dataset("strict", Budget(5.0, 1e-6))
        with book.ledger("strict", DATA) as ledger:
            for ask in (
                lambda: ledger.release(FLOATS, np.sum),
                lambda: ledger.release(FLOATS, np.sum, label="one"),
                lambda: ledger.release_each(FLOATS, lambda rows: rows),
                lambda: ledger.spend(FLOATS),
            ):
                with pytest.raises(ParameterError, match="idealised=True takes idealised"):
                    ask()
        for plan in HIDDEN:
            with pytest.raises(ParameterError, match="idealised=True takes idealised"):
                book.ledger("strict", DATA, plan=plan, run="monthly")
        assert book.history("strict") == []
        assert book.spent("strict") == 0.0


def test_a_data_set_that_was_opened_for_it_takes_it(any_book):
    with Book.create(any_book.url) as book:
        book.dataset("study", Budget(1.0), idealised=True)
        with pytest.raises(ParameterError, match="as the data set was opened"):
            book.dataset("study", idealised=False)
        book.dataset("plain", Budget(1.0))
        with pytest.raises(ParameterError, match="as the data set was opened"):
            book.dataset("plain", idealised=True)
        with pytest.raises(ParameterError, match="True or False"):
            book.dataset("other", Budget(1.0), idealised=1)
    with Book.open(any_book.url) as again, again.ledger("study", DATA) as ledger:
        with pytest.warns(IdealisedNoiseWarning):
            ledger.release(FLOATS, np.sum)
        assert again.spent("study") == pytest.approx(0.1)
        again.verify()


def test_stored_answers_of_an_earlier_time_are_given(sqlite_book, monkeypatch):
    # such entries were written before idealised noise was refused
    monkeypatch.setattr(Reservations, "refuse_idealised", lambda *_: None)
    plan = 2 * FLOATS
    with Book.create(sqlite_book.url) as book:
        book.dataset("old", Budget(5.0))
        with book.ledger("old", DATA) as ledger:
            first = ledger.release(FLOATS, np.sum, label="total")
        with book.ledger("old", DATA, plan=plan, run="monthly") as ledger:
            step = ledger.release(FLOATS, np.sum)
        spent = book.spent("old")
    monkeypatch.undo()
    with Book.open(sqlite_book.url) as book:
        with book.ledger("old", DATA) as ledger:
            assert ledger.release(FLOATS, np.sum, label="total") == first
            with pytest.raises(ParameterError, match="idealised=True takes idealised"):
                ledger.release(FLOATS, np.sum, label="another")
        with book.ledger("old", DATA, plan=plan, run="monthly") as ledger:
            assert ledger.release(FLOATS, np.sum) == step
            with pytest.raises(ParameterError, match="idealised=True takes idealised"):
                ledger.release(FLOATS, np.sum)
        assert book.spent("old") == spent
        book.verify()


def test_a_plan_whose_nodes_share_parts_is_walked_once():
    plan = Laplace(1.0) + Gaussian(1.0)
    for _ in range(12):
        plan = Sequential([plan, plan])
    assert idealised_part(plan) is None
    assert undeclared_part(plan) is None
