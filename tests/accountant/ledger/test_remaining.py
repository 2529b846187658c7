"""How many more releases fit: exactly so many, of every notion, in a filter and in a book."""

import json

import numpy as np
import pytest

from accountant import Book, Budget, BudgetExceeded, Filter, ParameterError, UnsupportedPlan
from accountant.__main__ import main
from accountant.plans.parallel import Parallel
from mechanisms import Gaussian, Laplace

DATA = np.arange(1000.0)
BUDGET = Budget(1.0, 1e-6)
RELEASES = [
    Laplace(10.0), Laplace(0.5), Gaussian(50.0), 3 * Laplace(20.0) + Gaussian(80.0),
    Parallel([Laplace(10.0), Gaussian(60.0)]),
]  # fmt: skip


@pytest.mark.parametrize("notion", ["zcdp", "rdp", "pure-or-rdp"])
@pytest.mark.parametrize("release", RELEASES, ids=range(len(RELEASES)))
def test_so_many_fit_and_one_more_does_not(release, notion):
    gate = Filter(DATA, BUDGET, notion)
    gate.spend(Laplace(40.0))
    count = gate.remaining(release)
    for _ in range(count):
        gate.spend(release)
    assert gate.remaining(release) == 0
    with pytest.raises(BudgetExceeded):
        gate.spend(release)


def test_asking_spends_nothing_and_has_an_end():
    gate = Filter(DATA, Budget(1.0))
    assert gate.remaining(Laplace(1e30)) == 10**9
    assert gate.spent == 0
    with pytest.raises(UnsupportedPlan):
        gate.remaining(Gaussian(3.0))
    with pytest.raises(ParameterError):
        gate.remaining("Laplace")


def test_a_book_says_what_fits(tmp_path, capsys):
    path, plan = tmp_path / "book.db", tmp_path / "plan.toml"
    with Book.create(f"sqlite:///{path}") as book:
        book.dataset("survey", Budget(1.0))
        book.ledger("survey", DATA).release(Laplace(10.0), np.sum)
        assert book.remaining("survey", Laplace(10.0)) == 9
        assert book.remaining("survey", 4 * Laplace(10.0)) == 2
        assert len(book.history("survey")) == 1
    plan.write_text(
        '[[release]]\nname = "ages"\nkind = "Laplace"\nscale = 10.0\ncount = 3\n'
        '[[release]]\nkind = "Laplace"\nscale = 30.0\n'
    )
    words = ["ledger", "remaining", str(path), "survey", str(plan)]
    assert main(words) == 0
    shown = "there is room for 9 more of ages, or else 27 more of Laplace, or else 2 more of"
    assert capsys.readouterr().out == f"{shown}\n    the whole plan\n"
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "dataset": "survey", "whole": 2,
        "lines": [{"release": "ages", "count": 9}, {"release": "Laplace", "count": 27}],
    }  # fmt: skip
    assert main(["ledger", "remaining", str(path), "survy", str(plan)]) == 2
