"""Plans of nothing and empty groups end, and block nothing."""

import numpy as np
import pytest

from accountant import (
    Budget,
    BudgetExceeded,
    Filter,
    Ledger,
    OffPlan,
    Parallel,
    Repeat,
    Sequential,
)
from mechanisms import Laplace, RandomizedResponse

L = Laplace(1.0)


def test_plans_of_nothing_end():
    assert Ledger([1.0], Repeat(Sequential([]), 10**12)).next is None
    ledger = Ledger([1.0], L + Repeat(Repeat(L, 0), 10**12), rng=1)
    ledger.release(L, np.sum)
    assert ledger.next is None
    for hollow in (Parallel([Repeat(L, 0)]), Parallel([Parallel([]), Parallel([Sequential([])])])):
        assert Ledger([1.0], hollow + L).next == L


def test_an_empty_group_pays_nothing_and_blocks_nothing():
    coin = RandomizedResponse(2, 0.75)
    for empty in ([], np.array([], dtype=int), slice(0, 0), np.zeros(3, dtype=bool)):
        ledger = Ledger(np.array([0, 1, 1]), Parallel([2 * coin, 2 * coin]) + L, rng=1)
        for who in ([0, 1, 2], empty, [0, 1, 2], empty):
            ledger.release_each(coin, lambda rows: rows, who)
        assert ledger.next == L


def test_several_releases_are_checked_before_the_first():
    one, other = Laplace(2.0), Laplace(4.0)
    ledger = Ledger(np.arange(5.0), one.loss + other + one, rng=0)
    ledger.check(one + other)  # a bare loss is met by a mechanism of it
    for plan in (other + one, one + other + one + one):
        with pytest.raises(OffPlan):
            ledger.check(plan)
    gate = Filter(np.arange(5.0), Budget(1.0), rng=0)
    gate.check(one + one)
    with pytest.raises(BudgetExceeded):
        gate.check(one + one + other)
    assert gate.spent == 0
    gate.release(one, np.sum)
    ledger.release(one, np.sum)
    ledger.check(other + one)
