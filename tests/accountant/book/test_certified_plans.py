"""A plan that is a data set's first spend is charged its certified epsilon, where that is less."""

import numpy as np
import pytest

from accountant import (
    ApproxLoss,
    Book,
    Budget,
    BudgetExceeded,
    Grouped,
    LaplaceLoss,
    LedgerCorrupt,
    OffPlan,
    ParameterError,
    PoissonSampled,
    PureLoss,
    Tight,
    UnsupportedPlan,
    calibrate,
)
from accountant.book import reservations
from accountant.book.export import registry_rows
from accountant.book.log import Log
from accountant.book.reservations import Reservations
from mechanisms import Exponential, Gaussian, Laplace

DATA = np.arange(20.0)
MIXED = 12 * Laplace(9.0) + 5 * Gaussian(20.0) + 3 * Exponential(4.0)


@pytest.fixture
def book(any_book):
    with Book.create(any_book.url) as found:
        yield found


def run(book, name, plan, **more):
    with book.ledger(name, DATA, plan=plan, **more) as ledger:
        for leaf in plan.leaves():
            if isinstance(leaf, Exponential):
                ledger.release(leaf, lambda data: data[:3], shape=3)
            else:
                ledger.release(leaf, np.sum)


@pytest.mark.parametrize("notion", [None, "zcdp"])
def test_a_plan_fits_a_budget_of_its_own_cost(book, notion):
    epsilon = Tight().epsilon(MIXED, 1e-6)
    book.dataset("d", Budget(epsilon, 1e-6), notion)
    run(book, "d", MIXED)
    assert book.spent("d") == pytest.approx(epsilon, rel=1e-12)
    assert book.status("d").after_plan
    with book.ledger("d", DATA) as ledger, pytest.raises(BudgetExceeded, match="0 is left"):
        ledger.release(Laplace(1e6), np.sum)
    assert book.verify().entries > 40


def test_what_was_spent_while_a_plan_was_certified_is_not_forgotten(book, monkeypatch):
    """The certified epsilon is computed before the lock, and is that of a first spend alone."""
    plan = 40 * Laplace(25.0)
    book.dataset("d", Budget(Tight().epsilon(plan, 1e-6), 1e-6))
    certify = reservations.exact_where_sums_exceed

    def overtaken(*given):
        with book.ledger("d", DATA) as ledger:
            ledger.release(Laplace(10.0), np.sum)
        return certify(*given)

    monkeypatch.setattr(reservations, "exact_where_sums_exceed", overtaken)
    with pytest.raises(BudgetExceeded):
        book.ledger("d", DATA, plan=plan)
    assert book.spent("d") == pytest.approx(0.1)
    book.verify()


def test_three_point_nought_nought_fits_three_point_nought_nought(book):
    scale = calibrate(lambda s: 52 * Gaussian(s), epsilon=3.0, delta=1e-6)
    book.dataset("d", Budget(3.0, 1e-6))
    run(book, "d", 52 * Gaussian(scale))
    assert 2.999 < book.spent("d") <= 3.0


def test_a_pure_plan_fits_a_pure_budget(book):
    book.dataset("d", Budget(1 / 3))
    run(book, "d", 1 * Laplace(3.0))
    assert book.spent("d") == pytest.approx(1 / 3)


def test_pure_releases_beside_it_add_up_and_others_are_refused(book):
    plan = 40 * Laplace(25.0)
    certified = Tight().epsilon(plan, 1e-6)
    assert certified < 0.9 * 40 / 25
    budget = Budget(certified + 0.2, 1e-6)
    book.dataset("d", budget, "pure")
    run(book, "d", plan)
    status = book.status("d")
    assert status.after_plan
    assert status.total == pytest.approx(certified, rel=1e-12)
    assert (status.counts, status.limit) == ("epsilon", budget.epsilon)
    [row] = registry_rows(status, book.iter_history("d"), None)
    assert row["composition"].startswith("the certified epsilon of a fixed plan")
    assert (row["releases"], row["paid for"]) == (40, "by a plan")
    with book.ledger("d", DATA) as ledger:
        ledger.release(Laplace(10.0), np.sum)
        ledger.release(PoissonSampled(Laplace(1.0), 0.05), len)
        with pytest.raises(UnsupportedPlan, match="it has no epsilon; beside a plan"):
            ledger.release(Gaussian(100.0), np.sum)
        with pytest.raises(BudgetExceeded, match="needs delta 1e-09, and 0 is left of the limit 0"):
            ledger.spend(ApproxLoss(1e-3, 1e-9))
        with pytest.raises(BudgetExceeded, match=r"arithmetic=EXACT\) fits$"):
            ledger.release(Laplace(1.0), np.sum)
    spent = certified + 0.1 + np.log1p(0.05 * np.expm1(1.0))
    assert book.spent("d") == pytest.approx(spent, rel=1e-12)
    lines = book.history("d")
    assert round(lines[-1].epsilon, 9) == round(spent, 9)
    for k in (0, -2):  # in the notion beside the plan, also of a step, which says no total
        assert book.history("d", since=lines[k].seq) == lines[k:][1:]
    book.verify()


def test_a_plan_whose_sum_fits_is_added_up(book):
    # so that releases without an epsilon fit beside it
    book.dataset("d", Budget(3.0, 1e-6))
    run(book, "d", 4 * Gaussian(30.0))
    assert not book.status("d").after_plan
    with book.ledger("d", DATA) as ledger:
        ledger.release(Gaussian(30.0), np.sum)
    # a plan after another spend is added up
    book.dataset("later", Budget(3.0, 1e-6))
    with book.ledger("later", DATA) as ledger:
        ledger.release(Laplace(100.0), np.sum)
    with pytest.raises(BudgetExceeded):
        run(book, "later", 1 * calibrate(Gaussian, epsilon=3.0, delta=1e-6))
    assert len(book.history("later")) == 1
    book.verify()


def test_the_choice_survives_processes_and_a_named_run(any_book):
    epsilon = Tight().epsilon(MIXED, 1e-6)
    with Book.create(any_book.url) as book:
        book.dataset("d", Budget(epsilon + 0.2, 1e-6), "pure", users=20)
        run(book, "d", MIXED, run="monthly")
        first = book.status("d")
    with Book.open(any_book.url) as again:
        assert again.status("d") == first
        run(again, "d", MIXED, run="monthly")
        assert again.status("d") == first
        with again.ledger("d", DATA) as ledger:
            ledger.release_each(Laplace(10.0), lambda rows: rows, who=[1, 2])
        assert again.spent_each("d")[[0, 1]] == pytest.approx([epsilon, epsilon + 0.1])
        again.verify()


def test_users_who_fit_by_different_sums_fit(book):
    budget = Budget(1.0, 1e-6)
    book.dataset("d", budget, users=20)
    with book.ledger("d", DATA) as ledger:
        ledger.release_each(Laplace(1.0), lambda rows: rows, who=[0])
        for _ in range(15):
            ledger.release_each(Gaussian(25.0), lambda rows: rows, who=[1])
    each = book.spent_each("d")
    assert each[0] == 1.0
    assert 0.5 < each[1] <= 1.0
    assert book.spent("d") <= 1.0 + 1e-9
    book.verify()
    with book.ledger("d", DATA) as ledger:
        with pytest.raises(BudgetExceeded):
            ledger.release_each(Laplace(1e9), lambda rows: rows, who=[0])
        ledger.release_each(Laplace(1.0), lambda rows: rows, who=[2])


def test_an_understated_certificate_is_found(book, monkeypatch):
    book.dataset("d", Budget(3.0, 1e-6), "zcdp")
    with monkeypatch.context() as wrong:
        wrong.setattr("accountant.ledger.composition_notions.Tight.epsilon", lambda *_: 0.01)
        run(book, "d", 2 * Laplace(1.0))
    assert book.spent("d") == 0.01
    with pytest.raises(LedgerCorrupt, match="less than what its plan costs"):
        book.verify()


def test_a_sampled_release_is_written_with_its_own_cost(book):
    book.dataset("d", Budget(8.0, 1e-6), "rdp", order=8.0)
    sampled = PoissonSampled(Gaussian(1.0), 0.01)
    with book.ledger("d", DATA) as ledger:
        ledger.release(sampled, len)
    assert book.status("d").total == pytest.approx(float(sampled.renyi(8.0)), rel=1e-12)
    assert book.history("d")[0].loss.startswith("PoissonSampled(")
    book.verify()


def test_a_loss_can_be_spent_for_a_release_made_elsewhere(book):
    book.dataset("d", Budget(1.0))
    with book.ledger("d", DATA) as ledger:
        ledger.spend(Laplace(4.0))
        ledger.spend(PureLoss(0.25))
        ledger.spend(Grouped(LaplaceLoss(0.1), 3))
        with pytest.raises(BudgetExceeded):
            ledger.spend(2 * Laplace(9.0))
        with pytest.raises(ParameterError, match="a plan, a loss or a mechanism"):
            ledger.spend(0.1)
    assert book.spent("d") == pytest.approx(0.8)
    assert [line.what.split("(")[0] for line in book.history("d")] == [
        "Laplace", "PureLoss", "Grouped",
    ]  # fmt: skip
    book.verify()


def test_a_status_never_shows_more_than_the_limit(book):
    # the sums of a data set with users are of different users
    book.dataset("d", Budget(5.0, 1e-6), users=20)
    with book.ledger("d", DATA) as ledger:
        ledger.release_each(Gaussian(10.0), lambda rows: rows, who=[1])
        ledger.release_each(Laplace(1 / 4.9), lambda rows: rows, who=[0])
    status, line = book.status("d"), book.history("d")[-1]
    assert (status.counts, status.total, status.limit) == ("epsilon", 5.0, 5.0)
    assert (line.total, line.epsilon) == (5.0, status.epsilon)
    book.verify()


def test_a_certificate_that_takes_the_place_of_earlier_spends_is_found(book, monkeypatch):
    plan = 40 * Laplace(25.0)
    book.dataset("d", Budget(Tight().epsilon(plan, 1e-6) + 0.2, 1e-6), "pure")
    run(book, "d", plan)
    append = Log.append

    def with_certificate(log, kind, facts, *more):
        if kind == "plan":
            facts = {**facts, "certified": 0.9, "total": ["0.9", "0"]}
        return append(log, kind, facts, *more)

    with monkeypatch.context() as wrong:
        wrong.setattr(Log, "append", with_certificate)
        run(book, "d", 2 * Laplace(20.0))
    assert book.spent("d") == 0.9
    with pytest.raises(LedgerCorrupt, match="counts what was spent in another way"):
        book.verify()


@pytest.mark.parametrize("order", [float("nan"), float("inf"), 0.5, True])
@pytest.mark.parametrize("notion", ["pure", "zcdp", None])
def test_an_order_that_is_none_is_not_written(book, notion, order):
    with pytest.raises(ParameterError, match="order must be a number"):
        book.dataset("d", Budget(1.0, 1e-6), notion, order=order)
    assert book.names == []


def test_every_line_of_the_history_names_its_unit(book):
    book.dataset("d", Budget(3.0, 1e-6))
    with book.ledger("d", DATA) as ledger:
        for one in (Laplace(2.0), Laplace(2.0), Gaussian(10.0), Gaussian(4.0)):
            ledger.release(one, np.sum)
            line, status = book.history("d")[-1], book.status("d")
            assert (line.counts, line.total) == (status.counts, status.total)
    assert len({line.counts for line in book.history("d")}) > 1


def test_a_run_whose_reservation_fails_stays_where_it_was(book, monkeypatch):
    book.dataset("d", Budget(1.0))
    with book.ledger("d", DATA, plan=3 * Laplace(10.0)) as ledger:
        ledger.release(Laplace(10.0), np.sum)
        with monkeypatch.context() as patch:
            patch.setattr(Reservations, "reserve_step", lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                ledger.release(Laplace(10.0), np.sum)
        for _ in range(2):
            ledger.release(Laplace(10.0), np.sum)
        with pytest.raises(OffPlan):
            ledger.release(Laplace(10.0), np.sum)
    book.verify()
