"""A plan that is set aside when a data set is opened: it fits at its exact cost, run by run."""

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    BudgetExceeded,
    LedgerCorrupt,
    ParameterError,
    PoissonSampled,
    Tight,
)
from accountant.book.dataset_terms import rule_for
from accountant.ledger.composition_notions import notion_of
from mechanisms import Gaussian, Laplace
from tests.accountant.book.throwaway_books import rewritten, unlooked

DATA = np.arange(20.0)
NOISE = Laplace(25.0)
PLAN = 20 * NOISE
EXACT = Tight().epsilon(2 * PLAN, 1e-6)  # its sums need more


def run_of(book, name, plan=PLAN):
    with book.ledger("d", DATA, plan, run=name) as ledger:
        return ledger.release(NOISE, np.sum)


def test_a_plan_fits_a_book_of_its_own_cost_run_by_run(any_book):
    with Book.create(any_book.url) as book, Book.open(any_book.url) as other:
        opened = book.dataset("d", Budget(EXACT, 1e-6), plan=PLAN, runs=2)
        assert (opened.epsilon, opened.runs, opened.after_plan) == (EXACT, (0, 2), True)
        first = run_of(book, "one")
        assert run_of(other, "one") == first  # the same run, which is paid for once
        assert other.remaining("d", PLAN) == 1
        run_of(other, "two")
        before = any_book.hash_rows()
        for asked in (PLAN, 1 * Laplace(1000.0)):
            with pytest.raises(BudgetExceeded):
                run_of(book, "three", asked)
        assert any_book.hash_rows() == before
        assert book.status("d").runs == (2, 2)
        assert [line.outcome for line in book.history("d") if line.kind == "plan"] == [
            "set aside", "planned", "planned"
        ]  # fmt: skip
        assert book.spent("d") == EXACT
        book.verify()


@pytest.mark.parametrize("users", [None, 20])
def test_releases_beside_a_plan_have_what_is_left(sqlite_book, users):
    with Book.create(sqlite_book.url, author="ada") as book:
        book.dataset("d", Budget(EXACT + 0.5, 1e-6), "pure", plan=PLAN, runs=2, users=users)
        run_of(book, "one")
        book.set_quota("d", "ada", 0.35, "beside the plan")  # the plan is no author's
        with book.ledger("d", DATA) as ledger:
            for _ in range(3):
                ledger.release(Laplace(10.0), np.sum)
            with pytest.raises(BudgetExceeded, match="quota"):
                ledger.release(Laplace(10.0), unlooked)
        run_of(book, "two")
        assert book.quotas("d") == [("ada", 0.3, 0.35)]
        assert book.spent("d") == pytest.approx(EXACT + 0.3, rel=1e-12)
        book.verify()


def test_a_plan_above_the_budget_opens_nothing(sqlite_book):
    with Book.create(sqlite_book.url) as book:
        with pytest.raises(BudgetExceeded, match="exact cost: fewer runs or more noise"):
            book.dataset("d", Budget(EXACT * 0.999, 1e-6), plan=PLAN, runs=2)
        with pytest.raises(ParameterError, match='arithmetic="exact"'):
            book.dataset("d", Budget(9.0, 1e-6), plan=Gaussian(9.0, arithmetic="idealised"))
        assert book.names == []
        assert book.verify().entries == 1
        book.dataset("d", Budget(EXACT, 1e-6), plan=PLAN)
        with pytest.raises(ParameterError, match="runs must be 1"):
            book.dataset("d", plan=PLAN, runs=2)


@pytest.mark.parametrize("users", [None, 20])
@pytest.mark.parametrize("change", ["twice", "other plan", "nothing aside", "more runs"])
def test_runs_that_were_not_paid_for_do_not_verify(sqlite_book, change, users):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(4.0), plan=PLAN, runs=2, users=users)  # by its sums
        run_of(book, "one")
        run_of(book, "two")
        book.verify()
        aside, _, last = [one.seq for one in book.history("d") if one.kind == "plan"]
    first = {"twice": last, "other plan": last, "nothing aside": last, "more runs": 2}[change]

    def change_facts(facts):
        if facts["seq"] == first and change == "twice":
            facts["nth"] = 1
        elif facts["seq"] == first and change == "other plan":
            facts["plan"]["count"] = 2000
        elif facts["seq"] == first and change == "nothing aside":
            facts["paid"] = aside + 1
        elif facts["seq"] == first:
            facts["aside"]["runs"] = 3

    sqlite_book.tamper(*rewritten(sqlite_book, first, change_facts))
    with Book.open(sqlite_book.url) as book, pytest.raises(LedgerCorrupt):
        book.verify()


@pytest.mark.parametrize(
    ("plan", "more", "name", "fits"),
    [
        (PLAN, 1.6, "pure-or-rdp", True),
        (30 * Gaussian(20.0), 1.0, "gdp", True),
        (PoissonSampled(Gaussian(1.0), 0.01) * 500, 1.5, "pure-or-rdp", True),
        (2 * PLAN, 1.0, "pure-or-rdp", False),
    ],
)
def test_the_rule_is_the_first_in_which_the_plan_fits(plan, more, name, fits):
    budget = Budget(Tight().epsilon(plan, 1e-6) * more, 1e-6)
    found, order = rule_for(plan, budget)
    assert found == name
    notion = notion_of(found, budget, order)
    assert fits == (not notion.exceeds(notion.after(notion.zero, plan)))
    assert rule_for(plan, Budget(1.0)) == ("pure", None)
