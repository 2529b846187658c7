"""Data sets about the same people: their budgets add up."""

import numpy as np
import pytest

from accountant import Book, Budget, ParameterError
from accountant.cli.exit_status import run_app
from accountant.cli.ledger import app
from mechanisms import Laplace

DATA = np.arange(20.0)


def test_budgets_of_the_same_people_add_up_upwards(sqlite_book, capsys):
    with Book.create(sqlite_book.url) as book:
        assert book.people() == []
        book.dataset("survey", Budget(0.1, 1e-7), "pure", people="staff-2026")
        book.dataset("visits", Budget(0.2, 2e-7), "pure", people="staff-2026")
        book.dataset("pupils", Budget(1.0), people="pupils")
        book.dataset("alone", Budget(1.0))
        with book.ledger("visits", DATA) as ledger:
            ledger.spend(Laplace(10.0))
        with book.ledger("survey", DATA) as ledger:
            ledger.spend(Laplace(20.0))
        staff, pupils = book.people()
        assert staff == ("staff-2026", ("survey", "visits"), 0.3, 3e-7, 0.15)
        assert pupils == ("pupils", ("pupils",), 1.0, 0.0, 0.0)
        assert book.status("visits").people == "staff-2026"
        assert book.people().to_records()[0]["data_sets"] == "survey, visits"
        book.raise_budget("survey", Budget(0.7, 1e-7), "more")
        assert book.people()[0].epsilon == 0.9  # in decimal: as floats they come to less
        assert book.dataset("survey", people="staff-2026").people == "staff-2026"
        for wrong in ("staff", "", 3):
            with pytest.raises(ParameterError, match="people must be"):
                book.dataset("survey", people=wrong)
        with pytest.raises(ParameterError, match="people must be"):
            book.dataset("new", Budget(1.0), people=" staff")
        book.verify()
    program = "dp-attest ledger"
    words = ["open", str(sqlite_book.path), "late", "--epsilon", "1", "--people", "staff-2026"]
    assert run_app(app, program, words) == 0
    for more, shown in (([], True), (["--name", "survey"], True), (["--name", "pupils"], False)):
        capsys.readouterr()
        assert run_app(app, program, ["status", str(sqlite_book.path), *more]) == 0
        said = capsys.readouterr().out
        line = "staff-2026: spent epsilon 0.1500 of 1.900 at delta 3e-7 in survey, visits, late,\n"
        assert (line + "    about the same people\n" in said) is shown
