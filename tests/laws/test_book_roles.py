"""Laws of roles: the log refuses what `verify` would find, and each finds what no role allows."""

import contextlib
import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest

from accountant import (
    Budget,
    LedgerCorrupt,
    LedgerNewer,
    LedgerViolated,
    ParameterError,
    RoleRefused,
)
from accountant.book import opening
from accountant.book.chain import entries
from accountant.book.chain.approvals import proposed_facts
from accountant.book.chain.entries import FORMAT, PROPOSAL, ROLES, TERMS
from accountant.book.limits.terms import Terms
from tests.accountant.book.people import DATA, TENTH, People, spend
from tests.accountant.book.throwaway_books import SQLiteBookFile, unlooked

# Whose each act is, stated apart from the table of the book.
WHOSE = {
    "dataset": "curator", "set aside": "curator", TERMS: "curator", PROPOSAL: "curator",
    ROLES: "curator", "clock": "curator", "restored": "curator", "plan": "analyst",
    "reserve": "analyst", "step": "analyst", "release": "analyst", "failed": "analyst",
    "seed": "analyst", "index": "no role", "book": "no role", "gift": "no role",
}  # fmt: skip
NOT_ALLOWED = "was not to be written by its author"
TEAM = {"curator": "ada bob", "analyst": "ana", "auditor": "aud"}
ROLE_SETS = [
    pytest.param(" ".join(chosen), marks=pytest.mark.slow if size > 1 else ())
    for size in range(1, 4)
    for chosen in itertools.combinations(TEAM, size)
]


@contextlib.contextmanager
def team(of_eve="", **roles):
    """A book of ada, bob, ana and aud, in which eve has some roles."""
    pytest.importorskip("cryptography")
    with tempfile.TemporaryDirectory() as name:
        people, place = People(Path(name)), SQLiteBookFile(Path(name) / "book.db")
        lists = {f"{role}s": f"{names} eve" if role in of_eve.split() else names
                 for role, names in TEAM.items()}  # fmt: skip
        people.make(place, **lists, **roles)
        yield people, place


def why_corrupt(people, place):
    """What `verify` says of a book; "" of a good one."""
    try:
        with people.open(place, "aud") as book:
            book.verify()
    except LedgerCorrupt as error:
        return error.why
    return ""


def why_refused(people, place, kind, facts):
    """Why the log writes no such entry of eve's; "" if it would."""
    with people.open(place, "eve") as book, contextlib.suppress(ZeroDivisionError):
        try:
            with book._log.writing():
                book._log.append(kind, dict(facts), "d")
                _ = 1 / 0  # nothing is written
        except RoleRefused as error:
            return error.why
    return ""


@pytest.mark.parametrize("of_eve", ROLE_SETS)
def test_the_log_refuses_what_verify_finds_and_no_more(of_eve):
    with team(of_eve) as (people, place):
        before = place.path.read_bytes()
        for act, whose in WHOSE.items():
            place.path.write_bytes(before)
            kind, facts = ("plan", {"runs": 1}) if act == "set aside" else (act, {})
            facts |= {"reason": "x", "total": ["0", "0"]} | ({"at": 1} if act == "index" else {})
            if kind == ROLES:
                facts |= people.roles().facts()
            refused = why_refused(people, place, kind, facts)
            assert bool(refused) is (whose not in of_eve.split()), act
            with people.forging(place, "eve") as log:
                log.append(kind, dict(facts), "d")
            found = why_corrupt(people, place)
            assert (NOT_ALLOWED in found) is bool(refused), act
            assert found.endswith(refused)
            assert ("no role writes entries of the kind " in found) is (whose == "no role"), act


# --- two curators


def raised(log, epsilon, **more):
    """The facts of a raise, as an account would write them."""
    terms = Terms.of(log.entry(3).facts).facts()
    return {**terms, "epsilon": epsilon, "change": "raised", "reason": "mine", **more}


def propose(people, place, author, epsilon):
    with people.forging(place, author) as log:
        stated = {"proposed": proposed_facts(raised(log, epsilon), TERMS), "reason": "x"}
        return log.append(PROPOSAL, stated, "d").seq


def raise_as(people, place, author, epsilon, **more):
    with people.forging(place, author) as log:
        log.append(TERMS, raised(log, epsilon, **more), "d")


def no_proposal(people, place):
    raise_as(people, place, "ada", 2.0)


def the_same_curator_twice(people, place):
    raise_as(people, place, "ada", 2.0, proposal=propose(people, place, "ada", 2.0))


def another_change(people, place):
    raise_as(people, place, "ada", 2.0, proposal=propose(people, place, "bob", 1.5))


def a_proposal_that_was_used(people, place):
    used = propose(people, place, "bob", 2.0)
    for epsilon in (2.0, 1.0, 2.0):
        raise_as(people, place, "ada", epsilon, proposal=used)


def a_proposal_from_before_other_roles(people, place):
    used = propose(people, place, "bob", 2.0)
    later = people.roles(curators="ada bob eve", raise_needs=2)
    with people.open(place, "ada") as ada, people.open(place, "bob") as bob:
        ada.set_roles(later, "eve joins")
        bob.set_roles(later, "eve joins")
    raise_as(people, place, "ada", 2.0, proposal=used)


def another_kind_of_entry(people, place):
    raise_as(people, place, "ada", 2.0, proposal=5)


def roles_alone(people, place):
    with people.forging(place, "ada") as log:
        log.append(ROLES, {**people.roles(curators="ada").facts(), "reason": "x"})


def a_later_end(people, place):
    with people.open(place, "ada") as book:
        book.expire("d", "2998-01-01", "an end")
    raise_as(people, place, "ada", 1.0, change="expires", expires="2999")


def a_larger_delta(people, place):
    raise_as(people, place, "ada", 1.0, delta=1e-6)


def a_raise_that_a_quota_hides(people, place):
    raise_as(people, place, "ada", 2.0)
    with people.forging(place, "ada") as log:
        facts = raised(log, 2.0, change="quota", whose="ana", quota=1.0, own=["0.1", "0.0"])
        log.append(TERMS, {**facts, "limited_authors": 1}, "d")


def a_raise_that_a_lower_budget_hides(people, place):
    for epsilon in (2.0, 0.5):
        raise_as(people, place, "ada", epsilon)


ALONE = {
    a_raise_that_a_quota_hides: "names no proposal of another curator",
    a_raise_that_a_lower_budget_hides: "names no proposal of another curator",
    no_proposal: "names no proposal of another curator",
    the_same_curator_twice: "'ada' has proposed it",
    another_change: "names a proposal of another change",
    a_proposal_that_was_used: "names a proposal from before the last change",
    a_proposal_from_before_other_roles: "names a proposal from before the last change",
    another_kind_of_entry: "names no proposal of another curator",
    roles_alone: "names no proposal of another curator",
    a_later_end: "names no proposal of another curator",
    a_larger_delta: "names no proposal of another curator",
}


def refuses_what_one_curator_gives(forge, **asking):
    with team(**asking) as (people, place):
        with people.open(place, "ana") as opened_before:
            spend(opened_before)
            forge(people, place)
            said = f"needs two curators, and {ALONE[forge]}"
            assert why_corrupt(people, place).startswith(said)
            before = place.hash_rows()
            with pytest.raises(LedgerCorrupt, match=said):
                spend(opened_before)
        with pytest.raises(LedgerCorrupt, match=said), people.open(place, "ana") as book:
            spend(book)
        assert place.hash_rows() == before


@pytest.mark.parametrize("forge", ALONE, ids=lambda forge: forge.__name__)
def test_one_curator_gives_nothing_more_alone(forge):
    refuses_what_one_curator_gives(forge, raise_needs=2)


@pytest.mark.parametrize("forge", ALONE, ids=lambda forge: forge.__name__)
def test_one_curator_gives_nothing_more_where_the_data_set_asks_for_two(forge):
    refuses_what_one_curator_gives(forge, needed_for_d=2)


def terms_that_ask_no_more(people, place):
    raise_as(people, place, "ada", 1.0, raise_needs=1)
    raise_as(people, place, "ada", 2.0, raise_needs=1)


def one_key_more(people, place):
    """Ada makes eve, whose key she holds, the second curator of her proposals."""
    with people.forging(place, "ada") as log:
        log.append(ROLES, {**people.roles(curators="ada bob eve").facts(), "reason": "x"})


@pytest.mark.parametrize("forge", [terms_that_ask_no_more, one_key_more])
def test_a_data_set_that_asks_for_two_curators_goes_on_asking(forge):
    with team(needed_for_d=2) as (people, place):
        with people.open(place, "ana") as opened_before:
            forge(people, place)
            with pytest.raises(LedgerCorrupt, match="needs two curators, and names no proposal"):
                spend(opened_before)
        assert why_corrupt(people, place) != ""


def test_a_data_set_asks_for_two_curators_by_itself():
    with team(needed_for_d=2) as (people, place):
        with people.open(place, "ada") as ada, people.open(place, "bob") as bob:
            ada.dataset("e", Budget(1.0))
            assert ada.raise_budget("e", Budget(2.0), "more").budget.epsilon == 2.0
            for epsilon in (2.0, 3.0):
                assert ada.raise_budget("d", Budget(epsilon), "more").proposal
                status = bob.raise_budget("d", Budget(epsilon), "more")
                assert (status.budget.epsilon, status.raise_needs) == (epsilon, 2)
            assert "needs two curators" in str(ada.dataset("d", raise_needs=2))
            with pytest.raises(ParameterError, match="2, as the data set was opened"):
                ada.dataset("d", raise_needs=1)
            with pytest.raises(ParameterError, match="a data set asks for two curators"):
                ada.set_roles(people.roles(curators="ada"), "bob has left")
            wider = people.roles(curators="ada bob eve")
            assert ada.set_roles(wider, "eve helps") == people.roles()
            assert bob.set_roles(wider, "eve helps") == wider
        assert why_corrupt(people, place) == ""


def test_earlier_versions_only_read_where_a_data_set_asks_for_two():
    earlier_limits, earlier_terms = (
        known - {"raise_needs"} for known in (entries.KNOWN_LIMITS, entries.KNOWN_TERMS)
    )
    with team(needed_for_d=2) as (people, place):
        for known, said in (
            ({"KNOWN_FORMATS": (1, 2, FORMAT)}, "has the format 4"),
            ({"KNOWN_LIMITS": earlier_limits, "KNOWN_TERMS": earlier_terms},
             "limits the data set 'd' by 'raise_needs'"),
        ):  # fmt: skip
            with pytest.MonkeyPatch.context() as patch, people.open(place, "ana") as book:
                for name, value in known.items():
                    patch.setattr(entries, name, value)
                assert book.spent("d") == 0.1
                with pytest.raises(LedgerNewer, match=said):
                    spend(book)


def test_what_one_curator_gave_is_not_hidden_by_older_roles():
    with team(raise_needs=1) as (people, place):
        with people.open(place, "ada") as book:
            book.set_roles(people.roles(raise_needs=2), "two from now on")
        with pytest.MonkeyPatch.context() as patch:
            # at the opening it finds this among the last thousand entries
            patch.setattr(opening, "check_last_entries", lambda _: None)
            with people.forging(place, "ada", roles=[2]) as log:
                log.append(TERMS, raised(log, 2.0), "d")
            with people.forging(place, "ana", roles=[6]) as log:
                log.append("seed", {}, "d", "noise:1")
            with (
                people.open(place, "ana") as book,
                pytest.raises(LedgerCorrupt, match="needs two curators, and names no proposal"),
            ):
                spend(book)


def test_one_curator_closes_what_one_curator_raised():
    with team(raise_needs=2) as (people, place):
        raise_as(people, place, "ada", 2.0)
        with people.open(place, "bob") as book:
            for change in (
                lambda: book.raise_budget("d", Budget(0.5), "less"),
                lambda: book.set_quota("d", "ana", 0.5, "half"),
                lambda: book.status("d"),
            ):
                with pytest.raises(LedgerViolated, match="data set 'd': needs two curators"):
                    change()
            book.dataset("e", Budget(1.0))
            with pytest.raises(LedgerViolated):
                book.close_dataset("d", "ada raised it alone")
            assert [line.outcome for line in book.history("d")][-2:] == ["raised", "closed"]


def test_a_step_after_an_end_that_one_curator_moved_is_refused():
    with (
        team(raise_needs=2) as (people, place),
        people.open(place, "ana") as book,
        book.ledger("d", DATA, 2 * TENTH) as ledger,
    ):
        ledger.release(TENTH, np.sum)
        a_later_end(people, place)
        with pytest.raises(LedgerViolated, match="needs two curators"):
            ledger.release(TENTH, unlooked)


@pytest.mark.parametrize("raise_needs", [1, 2])
def test_the_log_raises_a_budget_for_as_many_curators_as_it_needs(raise_needs):
    with team(raise_needs=raise_needs) as (people, place):
        with people.open(place, "ada") as ada, people.open(place, "bob") as bob:
            for epsilon in (2.0, 3.0):
                proposed = ada.raise_budget("d", Budget(epsilon), "more")
                assert bool(proposed.proposal) is (raise_needs == 2)
                assert bob.raise_budget("d", Budget(epsilon), "more").budget.epsilon == epsilon
                assert ada.raise_budget("d", Budget(1.0), "less").budget.epsilon == 1.0
        assert why_corrupt(people, place) == ""


# --- keys


def a_key_that_signs_as_another(people, place):
    with people.forging(place, "ana", holder="eve") as log:
        log.append("seed", {}, "d", "noise:1")


def a_removed_key_by_old_roles(people, place):
    with people.open(place, "ada") as book:
        book.set_roles(people.roles(analysts="bob"), "ana has left")
    with people.forging(place, "ana", roles=[2]) as log:
        log.append("seed", {}, "d", "noise:1")


def roles_that_begin_anew(people, place):
    with people.forging(place, "eve", roles=[0]) as log:
        log.append(ROLES, {**people.roles(curators="eve").facts(), "reason": "x"})


@pytest.mark.parametrize(
    "forge",
    [a_key_that_signs_as_another, a_removed_key_by_old_roles, roles_that_begin_anew],
    ids=lambda forge: forge.__name__,
)
def test_nobody_writes_with_a_key_that_the_roles_in_force_do_not_name(forge):
    with team() as (people, place), people.open(place, "aud") as reader:
        forge(people, place)
        assert why_corrupt(people, place) != ""
        with pytest.raises(LedgerCorrupt), people.open(place, "ana") as book:
            spend(book)
        with pytest.raises(LedgerCorrupt):
            reader.verify()
