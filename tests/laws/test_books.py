"""Laws of running totals and books: two coordinates, neighbours that mix, pages of a long log."""

import contextlib
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from accountant import (
    ApproxLoss,
    Book,
    Budget,
    BudgetExceeded,
    Filter,
    GaussianLoss,
    LedgerCorrupt,
    Parallel,
    ParameterError,
    PoissonSampled,
    PureLoss,
    Repeat,
    Stated,
)
from accountant.book import entry_pages, history
from accountant.book.databases import storage
from accountant.book.reservations import Reservations
from accountant.ledger.composition_notions import notion_of
from accountant.ledger.odometer import OdometerMeter
from mechanisms import Laplace

DATA = np.arange(20.0)
BUDGET = Budget(1.0, 1e-3)
DEAR, LEAKY = ApproxLoss(0.6, 1e-6), ApproxLoss(0.1, 6e-4)  # each is dearest in one coordinate
NEW_BOOKS = ("filter", "book", "book with users")


@contextlib.contextmanager
def opened_book(**options):
    """A book in a folder of its own, with one data set."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'book.db'}"
        with Book.create(url) as book:
            book.dataset("d", **options)
            yield book


@contextlib.contextmanager
def opened_gate(kind, budget=BUDGET, notion="pure"):
    """A gate that adds up, in memory or in a book."""
    if kind == "filter":
        yield Filter(DATA, budget, notion, rng=0)
    elif kind == "odometer":
        meter = OdometerMeter(budget.delta)
        yield SimpleNamespace(spend=lambda loss: meter.charge(loss, None), meter=meter)
    else:
        users = {"users": 20} if kind == "book with users" else {}
        with opened_book(budget=budget, notion=notion, **users) as book:
            yield book.ledger("d", DATA)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("kind", NEW_BOOKS)
def test_a_parallel_costs_the_dearest_part_in_each_coordinate(kind, order):
    parts = [DEAR, LEAKY][::order]
    with opened_gate(kind) as gate:
        gate.spend(Parallel(parts, by="index"))
        # a user may have spent 1e-6 or 6e-4 of delta, .6 or .1 of epsilon
        for one, unit in ((LEAKY, "delta"), (ApproxLoss(0.45, 1e-7), "epsilon")):
            with pytest.raises(BudgetExceeded) as caught:
                gate.spend(one)
            assert caught.value.unit == unit
        gate.spend(ApproxLoss(0.35, 3e-4))


@pytest.mark.parametrize("order", [1, -1])
def test_users_of_a_book_pay_each_for_themselves_and_the_total_is_the_worst_of_each(order):
    halves = [slice(0, 10), slice(10, 20)][::order]
    with opened_book(budget=BUDGET, notion="pure", users=20) as book:
        gate = book.ledger("d", DATA)
        gate.spend(DEAR, halves[0])
        gate.spend(LEAKY, halves[1])
        worst = book._account("d").standing().total
        assert [float(one) for one in worst] == pytest.approx([0.6, 6e-4])
        for who, one in zip(halves, (ApproxLoss(0.45, 1e-7), LEAKY), strict=True):
            with pytest.raises(BudgetExceeded):
                gate.spend(one, who)
            with pytest.raises(BudgetExceeded):
                gate.spend(one)
        gate.spend(LEAKY, halves[0])
        book.verify()
        last = book._account("d").standing().total
        assert [float(one) for one in last] == pytest.approx([0.7, 6.01e-4])


def append_charge(book, loss, **more):
    """Write a charge with right sums and right hashes, whatever the budget says."""
    account = book._account("d")
    notion, log = account.notion, account.log
    with log.writing():
        last = log.last_charge("d")
        cost = notion.cost(loss)
        total = notion.add(account.standing().total, cost)
        before = {} if last is None else {"before": last.seq}
        facts = {
            "label": None, "seeded": False, "who": None, "block": None, "relation": None,
            "mechanism": account.description_of(loss), "loss": account.description_of(loss),
            "cost": notion.encode(cost), "total": notion.encode(total), **before, **more,
        }  # fmt: skip
        log.append("reserve", facts, "d", f"noise:{log.head.seq:032x}")


OVER = {
    "pure, epsilon": ("pure", PureLoss(1.1)),
    "pure, delta": ("pure", ApproxLoss(0.1, 2e-3)),
    "zcdp": ("zcdp", GaussianLoss(3.0)),
    "rdp": ("rdp", GaussianLoss(3.0)),
    "gdp": ("gdp", GaussianLoss(3.0)),
    "pure-or-rdp": ("pure-or-rdp", GaussianLoss(3.0)),
}


@pytest.mark.parametrize("name", OVER)
def test_a_chain_over_the_limit_in_one_coordinate_does_not_verify(name):
    notion, loss = OVER[name]
    with opened_book(budget=BUDGET, notion=notion) as book:
        append_charge(book, PureLoss(0.1))
        book.verify()
        append_charge(book, loss)
        with pytest.raises(LedgerCorrupt, match="spends more than the budget"):
            book.verify()


RELATIONS = {
    "sampled, then replaced": (
        PoissonSampled(GaussianLoss(0.1), 0.1), Stated(PureLoss(0.1), "replace-one")),
    "replaced, then sampled": (
        Stated(PureLoss(0.1), "replace-one"), PoissonSampled(PureLoss(0.1), 0.1)),
    "added, then replaced": (
        Stated(PureLoss(0.1), "add-remove"), Stated(PureLoss(0.1), "replace-one")),
}  # fmt: skip


@pytest.mark.parametrize("name", RELATIONS)
@pytest.mark.parametrize("kind", [*NEW_BOOKS, "odometer"])
def test_neighbours_of_two_kinds_do_not_mix_in_one_total(kind, name):
    first, second = RELATIONS[name]
    with opened_gate(kind, Budget(9.0, 1e-3), None) as gate:
        gate.spend(PureLoss(0.1))  # of any neighbours
        gate.spend(first)
        gate.spend(PureLoss(0.1))  # does not make it forget
        before = repr(gate)
        with pytest.raises(ParameterError, match="relations do not mix"):
            gate.spend(second)
        assert repr(gate) == before
        gate.spend(first)


@pytest.mark.parametrize("order", [1.5, 3.0, 8.0, 40.0, 300.0])
@pytest.mark.parametrize("budget", [BUDGET, Budget(4.0, 1e-6)], ids=repr)
def test_rho_is_another_name_of_the_divergence_at_an_explicit_order(order, budget):
    try:
        notion = notion_of("pure-or-rdp", budget, order)
    except ParameterError:
        return  # the order leaves nothing of the budget
    most = notion.limit.spent
    assert most.rho * order <= most.renyi
    assert notion.rdp.limit == notion_of("rdp", budget, order).limit
    assert most.rho <= notion_of("zcdp", budget).limit.spent
    # sums whose rho just fits: so does the divergence, which no other filter has to pay for
    cost = notion.cost(GaussianLoss(0.05))
    often = notion.zcdp.how_often(notion.zcdp.cost(GaussianLoss(0.05)), notion.zcdp.zero)
    total = notion.times(cost, often)
    assert total.spent.renyi <= most.renyi


@pytest.mark.parametrize("rows", [1, 2, 7, 1000])
def test_a_long_log_is_read_once_and_in_order_however_it_is_paged(rows):
    with opened_book(budget=Budget(10.0)) as book, pytest.MonkeyPatch.context() as patch:
        with book.ledger("d", DATA) as ledger:
            for k in range(9):
                ledger.release(Laplace(10.0), np.sum, label=f"sum {k}")
                with contextlib.suppress(ZeroDivisionError):
                    ledger.release(Laplace(20.0), lambda _: 1 / 0)
        with book.ledger("d", DATA, Repeat(Laplace(10.0), 3), run="june") as ledger:
            ledger.release(Laplace(10.0), np.sum)
        for module in (storage, history, entry_pages):
            patch.setattr(module, "ROWS_PER_PAGE", rows)
        lines = book.history("d")
        assert [one.seq for one in lines] == sorted({one.seq for one in lines})
        assert [one.label for one in lines[:18:2]] == [f"sum {k}" for k in range(9)]
        assert [one.outcome for one in lines] == ["answered", "failed"] * 9 + [
            "planned", "answered"
        ]  # fmt: skip
        spent = [float(one.spent[0]) for one in lines]
        assert spent == pytest.approx(
            [0.1 * (k // 2 + 1) + 0.05 * ((k + 1) // 2) for k in range(18)] + [1.65, 1.65]
        )
        for last in (1, 2, 5, 20, 50):
            assert book.history("d", last=last) == lines[-last:]
        for line in (0, 3, 17):
            assert book.history("d", since=lines[line].seq) == lines[line + 1 :]
        assert book.verify().entries == book._log.head.seq


class NoSpace(Exception):
    """What ends a transaction before its commit."""


def test_what_was_rolled_back_is_forgotten():
    """The entries of the next transaction have the same numbers."""
    with opened_book(budget=Budget(1.0)) as book:
        log = book._log
        with contextlib.suppress(NoSpace), log.writing():
            begun = log.append("dataset", {"epsilon": 100.0}, "e", "e")
            log.append("seed", {}, "e")
            assert log.entry(begun.seq).facts["epsilon"] == 100.0  # as this transaction has it
            raise NoSpace
        with Book.open(log.name) as other:
            other.dataset("e", Budget(0.3))
            other.dataset("f", Budget(0.3))
        with log.reading():
            assert log.entry(begun.seq).facts["epsilon"] == 0.3
        assert book.status("e").budget == Budget(0.3)
        book.verify()


def test_a_run_that_was_taken_meanwhile_is_no_proof_for_another():
    """Whoever saw a free run before the lock, and finds it taken, needs a proof like others."""
    plan, seen = 2 * Laplace(10.0), []
    with (
        opened_book(budget=Budget(1.0), plan=plan, runs=1) as book,
        pytest.MonkeyPatch.context() as patch,
    ):
        book.ledger("d", DATA, plan, run="june")
        account = book._account("d")
        free = account.free_runs

        def overtaken(asked):
            seen.append(asked)
            return 1 if len(seen) == 1 else free(asked)

        patch.setattr(account, "free_runs", overtaken)
        patch.setattr(account, "verified", True)
        before = book.head
        with pytest.raises(ParameterError, match="a proof of the plan"):
            Reservations(account).reserve_plan(
                plan, {"run": "july", "coins": []}, None, None, verified=False
            )
        assert (len(seen), book.head) == (2, before)
        patch.undo()
        book.verify()
