"""Books that demand proofs: a plan is opened only with a proof of its cost that checks."""

import json
import re

import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant import (
    Book,
    Budget,
    Grouped,
    LedgerCorrupt,
    ParameterError,
    Tight,
    UnsupportedPlan,
)
from accountant.__main__ import main
from accountant.book import reservations
from accountant.book.export import history_json
from accountant.proofs.checked_proof import checked_proof
from mechanisms import DiscreteLaplace, SparseVector
from tests.accountant.book.throwaway_books import rewritten, unlooked

DATA, NOISE = np.arange(20), DiscreteLaplace(25.0)
PLAN, DELTA = 3 * NOISE, 1e-6


@pytest.fixture(scope="module")
def proofs(tmp_path_factory):
    """Files with the proofs of one run, of two, and at another delta."""
    folder = tmp_path_factory.mktemp("proofs")
    for name, plan, delta in (("one", PLAN, DELTA), ("two", 2 * PLAN, DELTA), ("far", PLAN, 1e-9)):
        Tight().certify(plan, delta, proof=folder / name)
    return folder


def released(book, name, **given):
    with book.ledger(name, DATA, **given) as ledger:
        return ledger.release(NOISE, np.sum)


def test_a_plan_is_opened_only_with_its_proof(any_book, proofs):
    digest = checked_proof(PLAN, DELTA, proofs / "one").verdict.digest
    with Book.create(any_book.url) as book:
        assert book.dataset("d", Budget(3.0, DELTA), verified=True).verified
        before = any_book.hash_rows()
        for given, said in (
            ({}, "plan must be given, with its proof="),
            ({"plan": PLAN}, "Tight().certify(plan, 1e-6, proof=FILE) writes it"),
            ({"plan": PLAN, "proof": proofs / "two"}, "of this plan"),
            ({"plan": PLAN, "proof": proofs / "far"}, "at delta 1e-6"),
            ({"plan": PLAN, "proof": b"{}"}, "a proof ("),
            ({"plan": PLAN, "proof": proofs / "none"}, "a file that can be read"),
            ({"plan": PLAN, "proof": 3}, "the bytes of a proof, or the path"),
            ({"proof": proofs / "one"}, "given with plan="),
        ):
            with (
                pytest.raises(ParameterError) as error,
                book.ledger("d", DATA, **given) as ledger,
            ):
                ledger.release(NOISE, unlooked)
            assert said in str(error.value)
        assert any_book.hash_rows() == before
        assert released(book, "d", plan=PLAN, proof=proofs / "one") != 0
        assert released(book, "d", plan=PLAN, proof=(proofs / "one").read_bytes()) != 0
        [first, *_] = lines = book.history("d")
        assert [one.proof for one in lines if one.kind == "plan"] == [digest, digest]
        assert first.proof in "".join(history_json(book.status("d"), lines))
        book.verify()


def test_a_resumed_run_needs_no_second_proof(sqlite_book, proofs):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(3.0, DELTA), verified=True)
        first = released(book, "d", plan=PLAN, run="one", proof=proofs / "one")
        assert released(book, "d", plan=PLAN, run="one") == first
        book.verify()


def test_runs_that_are_set_aside_have_one_proof(sqlite_book, proofs):
    exact = Tight().epsilon(2 * PLAN, DELTA)
    with Book.create(sqlite_book.url) as book:
        for proof in (None, proofs / "one"):
            with pytest.raises(ParameterError, match="proof"):
                book.dataset("d", Budget(exact, DELTA), plan=PLAN, runs=2, verified=True,
                             proof=proof)  # fmt: skip
        assert (book.names, book.verify().entries) == ([], 1)
        book.dataset("d", Budget(exact, DELTA), plan=PLAN, runs=2, verified=True,
                     proof=proofs / "two")  # fmt: skip
        released(book, "d", plan=PLAN, run="one")
        released(book, "d", plan=PLAN, run="two")
        with pytest.raises(ParameterError, match="proof must be"):
            released(book, "d", plan=PLAN, run="three")
        assert book.spent("d") == exact
        book.verify()
        with pytest.raises(ParameterError, match="verified must be True"):
            book.dataset("d", verified=False)


def test_a_book_can_demand_proofs_of_all_its_data_sets(sqlite_book, proofs):
    with Book.create(sqlite_book.url) as book:
        book.dataset("old", Budget(3.0, DELTA))
        released(book, "old")
    with Book.open(sqlite_book.url, verified=True) as book:
        assert book.dataset("new", Budget(3.0, DELTA)).verified
        assert not book.dataset("old").verified
        for given in ({}, {"plan": PLAN}):
            with pytest.raises(ParameterError, match="proof"):
                released(book, "old", **given)
        released(book, "old", plan=PLAN, proof=proofs / "one")
    with Book.open(sqlite_book.url) as book:
        released(book, "old", plan=PLAN)
        book.verify()
    with pytest.raises(ParameterError, match="verified must be True or False"):
        Book.open(sqlite_book.url, verified=1)


def test_a_proof_of_more_than_the_budget_is_refused(sqlite_book, proofs):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(0.11, DELTA), verified=True)
        before = sqlite_book.hash_rows()
        with pytest.raises(ParameterError, match=r"of at most epsilon 0\.11 at delta 1e-6"):
            released(book, "d", plan=PLAN, proof=proofs / "one")
        assert sqlite_book.hash_rows() == before


def test_a_plan_costs_at_least_what_its_proof_shows(sqlite_book, proofs, monkeypatch):
    """Where its sum does not fit: whatever is computed in place of the proof."""
    proved = checked_proof(PLAN, DELTA, proofs / "one").epsilon
    limit = 0.5 * (proved + 0.12)
    assert proved < limit < 0.12
    for name, computed in (("less", 0.9 * proved), ("more", 0.5 * (proved + limit))):
        monkeypatch.setattr(reservations, "exact_where_sums_exceed", lambda *_, e=computed: e)
        with (Book.open if sqlite_book.path.exists() else Book.create)(sqlite_book.url) as book:
            book.dataset(name, Budget(limit, DELTA))
            released(book, name, plan=PLAN, proof=proofs / "one")
            assert book.spent(name) == pytest.approx(max(proved, computed), rel=1e-12)


def test_a_proof_that_nobody_demands_is_checked_too(sqlite_book, proofs):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(3.0, DELTA))
        with pytest.raises(ParameterError, match="of this plan"):
            released(book, "d", plan=PLAN, proof=proofs / "two")
        released(book, "d", plan=PLAN, proof=proofs / "one")
        assert book.history("d")[0].proof
        with pytest.raises(ParameterError, match="proof must be given with plan="):
            book.dataset("e", Budget(3.0, DELTA), proof=proofs / "one")


@pytest.mark.parametrize("change", ["no proof", "no digest", "above the budget", "no plan"])
def test_an_entry_without_its_proof_does_not_verify(sqlite_book, proofs, change):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(3.0, DELTA), verified=change != "no plan")
        given = {} if change == "no plan" else {"plan": PLAN, "proof": proofs / "one"}
        released(book, "d", **given)

    def change_facts(facts):
        if facts["kind"] == "dataset" and change == "no plan":
            facts["verified"] = True
        elif facts["kind"] == "plan" and change == "no proof":
            del facts["proof"]
        elif facts["kind"] == "plan" and change == "no digest":
            facts["proof"]["sha256"] = "0" * 63
        elif facts["kind"] == "plan":
            facts["proof"]["upper"] = 3.1

    sqlite_book.tamper(*rewritten(sqlite_book, 2, change_facts))
    with Book.open(sqlite_book.url) as book, pytest.raises(LedgerCorrupt, match="does not take"):
        book.verify()


def test_what_has_no_proof_is_refused_with_a_reason():
    with pytest.raises(UnsupportedPlan, match="a group of the kind DiscreteLaplace has no proof"):
        Tight().certify(Grouped(PLAN, 2), DELTA, proof="never.json")


def test_a_mechanism_that_the_checker_does_not_know_is_proved_by_its_claim(sqlite_book, tmp_path):
    one, file = SparseVector(5.0, scale=20.0, answer_scale=20.0), tmp_path / "choice"
    Tight().certify(2 * one, DELTA, proof=file)
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(3.0, DELTA), verified=True)
        with book.ledger("d", DATA, 2 * one, proof=file) as ledger:
            ledger.release(one, lambda data: data[:3], shape=3)
        other = re.sub(rb'"epsilon":[\d.]+', b'"epsilon":0.001', file.read_bytes())
        for plan, given in ((3 * one, file), (2 * one, other)):
            with pytest.raises(ParameterError, match="proof must be of this plan"):
                book.ledger("d", DATA, plan, proof=given)
        book.verify()


def test_the_command_opens_a_verified_data_set(sqlite_book, proofs, tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text('[[release]]\nkind = "DiscreteLaplace"\nscale = 25.0\ncount = 3\n')
    words = ["ledger", "open", str(sqlite_book.path), "d", "--new"]
    words += ["--plan", str(plan), "--delta", "1e-6"]
    assert main([*words, "--verified"]) == 2
    assert main([*words, "--proof", str(proofs / "two")]) == 2
    assert main([*words[:5], "--epsilon", "1", "--proof", str(proofs / "one")]) == 2
    assert capsys.readouterr().err.count("\n") == 3
    assert not sqlite_book.path.exists()
    assert main([*words, "--verified", "--proof", str(proofs / "one")]) == 0
    assert "each plan is opened with a proof of its cost" in capsys.readouterr().out
    proved = checked_proof(PLAN, DELTA, proofs / "one")
    assert main(["ledger", "status", str(sqlite_book.path), "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["datasets"]
    assert (found["budget"]["epsilon"], found["verified"]) == (proved.epsilon, True)
    assert main(["ledger", "history", str(sqlite_book.path), "d"]) == 0
    assert proved.verdict.digest in capsys.readouterr().out
    assert main(["ledger", "verify", str(sqlite_book.path)]) == 0
