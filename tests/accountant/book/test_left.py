"""What is left of a budget: never more than can still be spent, and never less than 0."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant import (
    Book,
    Budget,
    BudgetExceeded,
    DatasetClosed,
    GaussianLoss,
    LedgerNewer,
    ParameterError,
    PureLoss,
    Tight,
    ZCDPLoss,
)
from accountant.__main__ import main
from accountant.accountants.budget import TOLERANCE
from accountant.book import log
from accountant.book.export import status_facts
from accountant.book.status import format_spent
from accountant.formatting import format_upper
from accountant.ledger.composition_notions import notion_of
from accountant.numerics.search import geometric_mean, greatest_float_that
from accountant.reports.history_page import history_page
from mechanisms import Laplace
from tests.accountant.book.throwaway_books import rewritten

DATA = np.arange(6.0)


def loss_of(notion, epsilon):
    """A loss that has this epsilon by the notion, or a little less; None where it gives none."""
    if notion.name == "pure":
        return PureLoss(epsilon)
    family = GaussianLoss if notion.name == "gdp" else ZCDPLoss

    def fits(size):
        return notion.epsilon(notion.cost(family(size))) <= epsilon

    if not fits(1e-12):  # at one Rényi order even a nearly free release has some epsilon
        return None
    return family(greatest_float_that(fits, 1e-12, 1e3, relative=1e-12, mean=geometric_mean))


@given(
    name=st.sampled_from(["pure", "zcdp", "gdp", "rdp", "pure-or-rdp"]),
    shares=st.lists(st.sampled_from([0.001, 0.1, 0.3, 0.5, 1.0]), max_size=4),
)
@settings(max_examples=60)
def test_a_plan_of_what_is_left_fits(name, shares):
    notion = notion_of(name, Budget(1.5, 1e-6))
    total = notion.zero
    assert notion.epsilon_left(total) == 1.5
    for share in shares:
        left = notion.epsilon_left(total)
        assert 0 <= left <= 1.5 - notion.epsilon(total) + 1e-15
        loss = loss_of(notion, share * left) if left else None
        if loss is None:
            return
        after = notion.add(total, notion.cost(loss))
        assert not notion.refuses(total, after)
        total = after
    assert not math.isnan(notion.epsilon_left(total))


@pytest.mark.parametrize("kind", ["plain", "users", "buckets", "window"])
def test_what_is_left_is_what_all_have_left(kind, any_book, monkeypatch):
    day = "2026-11-10"
    monkeypatch.setattr(log, "clock_time", lambda _: f"{day}T12:00:00.000000+00:00")
    options = {
        "plain": {}, "users": {"users": 6}, "buckets": {"buckets": "region"},
        "window": {"window": "month", "carry": 1},
    }[kind]  # fmt: skip
    with Book.create(any_book.url, clock="trusted") as book:
        book.dataset("d", Budget(1.0), **options)
        assert book.left("d") == book.status("d").left == 1.0
        if kind == "buckets":
            book.ledger("d", DATA, buckets=["a"]).spend(PureLoss(0.1))
            gate = book.ledger("d", DATA, buckets=["b"])
        else:
            gate = book.ledger("d", DATA)
            gate.spend(PureLoss(0.1), *([slice(0, 2, 1)] if kind == "users" else []))
        gate.spend(PureLoss(0.2), *([slice(1, 3, 1)] if kind == "users" else []))
        left = {"buckets": 0.8}.get(kind, 0.7)
        assert book.left("d") == book.status("d").left == left
        assert book.remaining("d", PureLoss(left)) == 1
        assert book.remaining("d", PureLoss(math.nextafter(left * (1 + 1e-8), 1))) == 0
        if kind == "window":
            day = "2026-12-10"
            assert book.left("d") == 1.7  # November leaves what it did not spend
            gate.spend(PureLoss(1.7))
        else:
            gate.spend(PureLoss(left))
        assert book.left("d") == 0
        with pytest.raises(BudgetExceeded):
            gate.spend(PureLoss(1e-9))


def test_after_its_end_nothing_is_left(sqlite_book):
    with Book.create(sqlite_book.url) as book:
        for name in ("closed", "expired"):
            book.dataset(name, Budget(1.0))
        book.close_dataset("closed", "the end")
        book.expire("expired", "2026-01-01", "consent ended")
        for name in ("closed", "expired"):
            assert book.left(name) == book.status(name).left == 0.0
            with pytest.raises(DatasetClosed):
                book.ledger(name, DATA).spend(PureLoss(0.1))
        with pytest.raises(ParameterError, match="a data set of this book"):
            book.left("none")


def test_what_a_certified_plan_leaves_is_left(sqlite_book):
    plan = 20 * Laplace(25.0)
    exact = Tight().epsilon(plan, 1e-6)
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(exact + 0.0625, 1e-6), "pure", plan=plan)
        left = book.left("d")
        assert 0.0625 - 1e-9 < left <= 0.0625 + 1e-9
        book.ledger("d", DATA).spend(PureLoss(left))
        assert book.left("d") == 0


def test_where_limits_are_unknown_nothing_is_said_to_be_left(sqlite_book):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
    sqlite_book.tamper(*rewritten(
        sqlite_book, 2, lambda one: one["kind"] == "dataset" and one.update({"per day": 3})
    ))  # fmt: skip
    with Book.open(sqlite_book.url) as book:
        assert book.status("d").left == 0.0
        with pytest.raises(LedgerNewer):
            book.left("d")


def test_a_status_says_each_number_once(sqlite_book):
    with Book.create(sqlite_book.url) as book:
        book.dataset("visits", Budget(1.0), unit="one patient")
        book.ledger("visits", DATA).spend(PureLoss(0.25))
        assert str(book.status("visits")) == (
            "visits: spent epsilon 0.2500 of 1 at delta 0, for one patient"
        )
        [row] = book.status("visits").to_records()
        assert (row["epsilon"], row["of"], row["left"], row["counts"]) == (0.25, 1.0, 0.75, "")
        book.dataset("rho", Budget(1.0, 1e-6), "zcdp")
        book.ledger("rho", DATA).spend(ZCDPLoss(0.005))
        [row] = book.status("rho").to_records()
        assert row["counts"] == "rho 0.005001 of 0.024356"
        assert row["left"] == pytest.approx(1 - row["epsilon"], abs=1e-15)


# --- what is shown of a sum within its limit


@given(st.floats(1e-6, 1e6), st.floats(0.0, 1.0 + TOLERANCE))
def test_a_sum_within_its_limit_is_never_shown_above_it(limit, share):
    text = format_spent(share * limit, limit)
    shown = float(text.replace(",", ""))
    assert shown <= float(f"{limit:.6g}")
    assert shown >= share * limit * (1 - 1e-5)  # the sixth digit of a limit that is shown itself
    over = limit * (1 + 3 * TOLERANCE)
    assert format_spent(over, limit) == format_upper(over)


def test_round_off_does_not_look_like_overspending(sqlite_book, capsys):
    part = math.nextafter(1 / 6, 1.0)  # six of these are 1.0000000000000002
    with Book.create(sqlite_book.url, author="ada") as book:
        book.dataset("d", Budget(1.0), buckets="region")
        with book.ledger("d", np.arange(5.0), buckets=["north"]) as ledger:
            for _ in range(6):
                ledger.spend(PureLoss(part))
        status = book.status("d")
        assert status.epsilon > 1.0
        assert str(status).startswith("d: spent epsilon 1 of 1 at")
        assert status_facts(status)["epsilon"] > 1.0
        html = history_page(status, book.history("d"), "a book")
        assert "100 %" in html
    for command in ("status", "history", "buckets", "quota"):
        assert main(["ledger", command, str(sqlite_book.path), *["d"] * (command != "status")]) == 0
    assert "1.001" not in capsys.readouterr().out + html
