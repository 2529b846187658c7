"""A book with roles: who may write what, refused by the writer and found by `verify`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from accountant import Book, Budget, LedgerCorrupt, ParameterError, RoleRefused, Roles
from accountant.book import log as log_module
from accountant.book.chain import author_keys
from accountant.book.chain.entries import FORMAT, FORMAT_WITHOUT_ROLES, PROPOSAL, ROLES, TERMS
from accountant.book.chain.roles import ACTS, ANALYST, AUDITOR, CURATOR, SET_ASIDE, act_of
from accountant.book.limits.terms import Terms
from tests.accountant.book.people import DATA, TENTH, People, spend
from tests.accountant.book.throwaway_books import rewritten, unlooked

pytest.importorskip("cryptography")
ROOT = Path(__file__).parents[3]
NOT_ALLOWED = "was not to be written by its author"


@pytest.fixture
def people(tmp_path):
    folder = tmp_path / "keys"
    folder.mkdir()
    return People(folder)


def verify(place):
    with Book.open(place.url) as book:
        return book.verify()


def refuses(place, sentence, seq=None):
    """`verify` names the forged entry, and says why."""
    with pytest.raises(LedgerCorrupt, match=sentence) as caught:
        verify(place)
    assert seq in (None, caught.value.entry)


def test_a_team_writes_each_its_own_part(stored_book, people):
    people.make(stored_book)
    with people.open(stored_book, "ana") as book:
        for change in (
            lambda: book.dataset("e", Budget(1.0)),
            lambda: book.raise_budget("d", Budget(2.0), "more"),
            lambda: book.expire("d", "2999-01-01", "some day"),
            lambda: book.set_quota("d", "ana", 0.5, "half"),
            lambda: book.close_dataset("d", "the end"),
            lambda: book.set_roles(people.roles(curators="ana"), "me"),
        ):
            with pytest.raises(RoleRefused, match="'ana' is an analyst, and only a curator"):
                change()
    for name in ("ada", "aud"):
        with people.open(stored_book, name) as book:
            ledger = book.ledger("d", DATA)
            with pytest.raises(RoleRefused, match="only an analyst spends: ana"):
                ledger.release(TENTH, unlooked)
    with people.open(stored_book, "bob") as book:
        assert book.raise_budget("d", Budget(2.0), "more").budget.epsilon == 2.0
        book.set_quota("d", "ana", 0.25, "a quarter")
        book.close_dataset("d", "the end")
        assert [line.author for line in book.history("d")] == ["ana", "bob", "bob", "bob"]
        assert book.roles == people.roles()
    before = stored_book.hash_rows()
    with people.open(stored_book, "eve") as book:
        with pytest.raises(RoleRefused, match="the roles name no holder of this key, SHA256:"):
            book.dataset("e", Budget(1.0))
        assert book.verify().entries == 8
    for key in (None, b"a secret for a signature"):
        with (
            Book.open(stored_book.url, key=key) as book,
            pytest.raises(ParameterError, match="private key of one of its people"),
        ):
            book.dataset("e", Budget(1.0))
    assert stored_book.hash_rows() == before


def test_the_name_of_the_author_is_that_of_the_key(sqlite_book, people):
    with pytest.raises(ParameterError, match="author must be left out, or 'ada'"):
        Book.create(sqlite_book.url, key=people.keys["ada"], roles=people.roles(), author="bob")
    people.make(sqlite_book)
    with Book.open(sqlite_book.url, key=people.keys["ana"], author="ana") as book:
        spend(book)
    with (
        Book.open(sqlite_book.url, key=people.keys["ana"], author="bob") as book,
        pytest.raises(ParameterError, match="author must be left out, or 'ana'"),
    ):
        spend(book)


def test_a_book_gets_roles_later_and_its_next_entries_are_signed(any_book, people):
    with Book.create(any_book.url, author="ana at her desk") as book:
        book.dataset("d", Budget(1.0))
        spend(book)
    with people.open(any_book, "ada") as book:
        with pytest.raises(ParameterError, match=r"of a book with roles: Book\.set_roles"):
            book.dataset("e", Budget(1.0))
        with pytest.raises(LedgerCorrupt, match="has no roles, and no entry is signed by a person"):
            book.verify()
        book.set_roles(people.roles(), "three of us now")
        with pytest.raises(RoleRefused):
            spend(book)
    with people.open(any_book, "ana") as book:
        spend(book)
        assert [line.author for line in book.history("d")] == ["ana at her desk", "ana"]
    assert verify(any_book).entries == 7
    formats = [json.loads(body)["format"] for (body,) in any_book.fetch(
        "SELECT body FROM entries ORDER BY seq")]  # fmt: skip
    assert formats == [FORMAT_WITHOUT_ROLES] * 4 + [FORMAT_WITHOUT_ROLES + 1] * 3
    any_book.tamper(*rewritten(any_book, 3, lambda facts: facts.update(time="2001-01-01")))
    refuses(any_book, "is not signed by 'ada', who is said to have written it", 5)


def test_the_first_roles_are_stated_by_one_of_their_curators(any_book, people):
    with pytest.raises(ParameterError, match="the private key of one of the curators"):
        Book.create(any_book.url, key=people.keys["ana"], roles=people.roles())
    with pytest.raises(ParameterError, match="the private key of one of the curators"):
        Book.create(any_book.url, roles=people.roles())
    with Book.create(any_book.url):
        pass
    for name in ("ana", "aud", "eve"):
        with (
            people.open(any_book, name) as book,
            pytest.raises(ParameterError, match="one of the curators"),
        ):
            book.set_roles(people.roles(), "all of us")
    with pytest.raises(ParameterError, match="one of the curators"), Book.open(any_book.url) as b:
        b.set_roles(people.roles(), "all of us")


def test_a_book_with_a_secret_stays_with_it(sqlite_book, people):
    secret = b"a secret for a signature"
    Book.create(sqlite_book.url, key=secret).close()
    for key in (secret, people.keys["ada"]):
        with (
            Book.open(sqlite_book.url, key=key) as book,
            pytest.raises(ParameterError, match="such a book stays with it"),
        ):
            book.set_roles(people.roles(), "three of us")


def test_a_plan_is_the_analysts_and_setting_it_aside_the_curators():
    assert act_of({"kind": "plan", "plan": {}}) == ACTS["plan"]
    assert act_of({"kind": "plan", "plan": {}, "runs": 2}) == ACTS[SET_ASIDE]
    assert (ACTS["plan"].role, ACTS[SET_ASIDE].role) == (ANALYST, CURATOR)
    for kind in set(ACTS) - {"plan", SET_ASIDE}:
        assert act_of({"kind": kind}) == act_of({"kind": kind, "runs": 2}) == ACTS[kind]
    assert act_of({"kind": "gift"}) is None


@pytest.mark.parametrize("kind", ACTS)
def test_who_may_not_act_is_told_whose_act_it_is(people, kind):
    facts = {"kind": "plan", "runs": 2} if kind == SET_ASIDE else {"kind": kind}
    act, roles = ACTS[kind], people.roles()
    for name in roles.keys:
        refused = roles.refusal(name, facts)
        if act.role in roles.roles_of(name):
            assert refused == ""
            continue
        of_role = ", ".join(one for one in roles.keys if act.role in roles.roles_of(one))
        article = {CURATOR: "a", ANALYST: "an", AUDITOR: "an"}[act.role]
        assert refused.startswith(f"{name!r} is a")
        assert refused.endswith(f", and only {article} {act.role} {act.words}: {of_role}")


def test_acts_are_told_apart_by_their_words():
    words = [act.words for act in ACTS.values()]
    assert len(set(words)) == len(words)
    assert all(verb.endswith("s") for verb, *_ in (one.split() for one in words))


# --- forged entries


def raised(log, epsilon, **more):
    """The facts of a raise, as an account would write them."""
    terms = Terms.of(log.entry(3).facts).facts()
    return {**terms, "epsilon": epsilon, "change": "raised", "reason": "mine", **more}


FORGED = {
    "an analyst signs a raise": (
        "ana", {}, lambda log: log.append(TERMS, raised(log, 2.0), "d"), NOT_ALLOWED,
    ),
    "an auditor signs a spend": (
        "aud", {}, lambda log: log.append("seed", {}, "d", "noise:1"), "only an analyst uses",
    ),
    "a key that the roles do not name": (
        "eve", {}, lambda log: log.append("seed", {}, "d", "noise:1"),
        "is written by 'eve', whom the roles do not name",
    ),
    "roles by an analyst": (
        "ana", {}, lambda log: log.append(ROLES, log.roles.facts() | {"reason": "x"}), NOT_ALLOWED,
    ),
    "roles without a reason": (
        "ada", {}, lambda log: log.append(ROLES, log.roles.facts() | {"reason": ""}),
        "changes the roles without a reason",
    ),
    "roles that are none": (
        "ada", {}, lambda log: log.append(
            ROLES, log.roles.facts() | {"curators": [], "reason": "x"}),
        "states roles that are none",
    ),
    "a proposal of nothing": (
        "ada", {}, lambda log: log.append(PROPOSAL, {"proposed": {}, "reason": "x"}, "d"),
        "an entry does not say what it must",
    ),
    "a proposal by an analyst": (
        "ana", {}, lambda log: log.append(PROPOSAL, {"proposed": {}, "reason": "x"}, "d"),
        NOT_ALLOWED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("forgery", FORGED)
def test_a_forged_entry_is_found(any_book, people, forgery):
    people.make(any_book)
    author, how, write, sentence = FORGED[forgery]
    with people.forging(any_book, author, **how) as log:
        write(log)
    refuses(any_book, sentence, 6)
    if forgery in ("roles without a reason", "a proposal of nothing"):  # no matter of a spend
        with people.open(any_book, "ana") as book:
            spend(book)
        return
    with pytest.raises(LedgerCorrupt), people.open(any_book, "ana") as book:
        spend(book)


def seed(log, nth):
    log.append("seed", {}, "d", f"noise:{nth}")


# the roles that an entry names, before an entry that names those in force
WRONG_ROLES = {
    3: ("takes for roles what are none", 3),
    99: ("names no roles that were in force", 6),
    6: ("names no roles that were in force", 6),
    0: ("names no roles that were in force", 6),
    -1: ("names no roles that were in force", 6),
    "2": ("names no roles that were in force", 6),
}


@pytest.mark.parametrize("stated", WRONG_ROLES)
def test_an_entry_names_the_roles_in_force(sqlite_book, people, stated):
    people.make(sqlite_book)
    with people.open(sqlite_book, "aud") as reader:
        with people.forging(sqlite_book, "ana", roles=[stated, 2]) as log:
            seed(log, 1)
            seed(log, 2)
        sentence, entry = WRONG_ROLES[stated]
        with pytest.raises(LedgerCorrupt, match=sentence) as caught:
            reader.verify()
        assert caught.value.entry == entry
    refuses(sqlite_book, "does not name the roles in force before it", 6)


def test_a_book_that_was_made_with_roles_begins_with_them(sqlite_book, people, monkeypatch):
    monkeypatch.setattr(log_module, "FORMAT_WITHOUT_ROLES", FORMAT)
    with Book.create(sqlite_book.url, key=people.keys["ada"]) as book:
        with book._log.writing():
            book._log.append("index", {"at": 1}, also="book")
            book._log.append_roles(people.roles(), {"reason": "later"})
        why = "states no roles, though the book was made with them"
        with pytest.raises(LedgerCorrupt, match=why) as caught:
            book.verify()
        assert caught.value.entry == 2


@pytest.mark.parametrize("change", ["signature of another entry", "no signature", "no roles"])
def test_an_entry_without_its_own_signature_is_found(any_book, people, change):
    people.make(any_book)
    [(body,)] = any_book.fetch("SELECT body FROM entries WHERE seq = 4")

    def forge(facts):
        if change == "signature of another entry":
            facts["signature"] = json.loads(body)["signature"]
        elif change == "no signature":
            del facts["signature"]
        else:
            for name in ("signature", "roles"):
                del facts[name]

    any_book.tamper(*rewritten(any_book, 5, forge))
    refuses(
        any_book,
        "does not name the roles in force before it"
        if change == "no roles"
        else "is not signed by 'ana', who is said to have written it",
    )
    with pytest.raises(LedgerCorrupt), people.open(any_book, "ana") as book:
        spend(book)


def test_a_book_that_was_made_with_roles_is_not_rewritten_without(any_book, people):
    people.make(any_book)

    def strip(facts):
        facts.pop("roles", None)
        facts.pop("signature", None)
        if facts["kind"] == ROLES:
            facts.update(kind="seed", key="noise:0")

    any_book.tamper(*rewritten(any_book, 2, strip),
                    "UPDATE entries SET kind = 'seed', key = 'noise:0' WHERE seq = 2")  # fmt: skip
    with pytest.raises(LedgerCorrupt, match="is not signed by a person whom the roles in force"):
        Book.open(any_book.url)


def test_a_removed_key_spends_no_more(any_book, people):
    people.make(any_book)
    with people.open(any_book, "ana") as spender:
        with people.open(any_book, "ada") as book:
            book.set_roles(people.roles(analysts="bob"), "ana has left")
        with pytest.raises(RoleRefused, match="name no holder of this key"):
            spend(spender)
    with people.open(any_book, "bob") as book:
        spend(book)
    verify(any_book)


def test_roles_may_change_very_often(sqlite_book, people):
    people.make(sqlite_book)
    with people.open(sqlite_book, "ada") as book, book._log.writing():
        for _ in range(400):
            book._log.append_roles(people.roles(), {"reason": "again"})
    with people.open(sqlite_book, "ana") as book:
        spend(book)
        assert book.verify().entries == 407


# --- two curators


def test_a_larger_budget_needs_two_curators(any_book, people, capsys):
    people.make(any_book, raise_needs=2)
    with people.open(any_book, "ada") as ada, people.open(any_book, "bob") as bob:
        status = ada.raise_budget("d", Budget(2.0), "a second wave")
        assert status.budget.epsilon == 1.0
        assert status.proposal == (
            "budget epsilon 2 at delta 0 (a second wave), proposed by ada; another curator "
            "approves it by the same call"
        )
        with pytest.raises(RoleRefused, match="'ada' has proposed it: another curator"):
            ada.raise_budget("d", Budget(2.0), "a second wave")
        assert "proposed by bob" in bob.raise_budget("d", Budget(3.0), "other").proposal
        assert "proposed by ada" in ada.raise_budget("d", Budget(2.0), "again").proposal
        with people.open(any_book, "ana") as book:
            spend(book)  # a spend leaves a proposal open
        status = bob.raise_budget("d", Budget(2.0), "agreed")
        assert (status.budget.epsilon, status.proposal) == (2.0, "")
        # less needs one, and ends what was proposed
        assert ada.raise_budget("d", Budget(1.5), "less").budget.epsilon == 1.5
        assert bob.raise_budget("d", Budget(2.0), "again").budget.epsilon == 1.5
        assert ada.expire("d", "2999-01-01", "an end").expires.startswith("2999")
        assert ada.raise_budget("d", Budget(2.0), "too late").budget.epsilon == 1.5
        assert bob.expire("d", "2999-02-01", "later").expires.startswith("2999-01")
        assert ada.expire("d", "2999-02-01", "later").expires.startswith("2999-02")
        assert ada.expire("d", "2999-01-15", "earlier").expires.startswith("2999-01-15")
    verify(any_book)


def test_a_history_lists_proposals_and_what_came_of_them(any_book, people):
    people.make(any_book, raise_needs=2)
    with people.open(any_book, "ada") as ada, people.open(any_book, "bob") as bob:
        ada.raise_budget("d", Budget(2.0), "a second wave")
        before = ada.history("d")
        bob.raise_budget("d", Budget(2.0), "agreed")
        bob.expire("d", "2999-01-01", "an end")
        ada.raise_budget("d", Budget(3.0), "a third wave")
        bob.raise_budget("d", Budget(4.0), "a fourth too")
        ada.raise_budget("d", Budget(1.5), "less")
        bob.expire("d", "2999-02-01", "later")
        lines = ada.history("d")
        assert [(line.kind, line.author, line.outcome, line.what) for line in lines[1:]] == [
            ("proposal", "ada", "seconded",
             "proposal of budget epsilon 2 at delta 0 (a second wave), seconded by bob"),
            ("terms", "bob", "raised", "budget epsilon 2 at delta 0 (agreed)"),
            ("terms", "bob", "expires", "expires 2999-01-01T00:00:00.000000+00:00 (an end)"),
            ("proposal", "ada", "lapsed", "proposal of budget epsilon 3 at delta 0 (a third wave)"),
            ("proposal", "bob", "lapsed", "proposal of budget epsilon 4 at delta 0 (a fourth too)"),
            ("terms", "ada", "raised", "budget epsilon 1.5 at delta 0 (less)"),
            ("proposal", "bob", "open",
             "proposal of expires 2999-02-01T00:00:00.000000+00:00 (later)"),
        ]  # fmt: skip
        assert {line.epsilon for line in lines} == {0.1}
        assert repr(lines) == "<History: 1 spends>"
        assert [line.seq for line in ada.history("d", last=2)] == [lines[-2].seq, lines[-1].seq]
        # what comes later than a selection decides what came of its proposals
        assert ada.history("d", until=lines[1].seq) == lines[:2]
        assert [line.outcome for line in before] == ["answered", "open"]
        ada.set_roles(people.roles(), "one is enough")
        bob.set_roles(people.roles(), "one is enough")
        assert ada.history("d")[-1].outcome == "lapsed"


def test_other_roles_need_two_curators_too(any_book, people):
    people.make(any_book, raise_needs=2)
    alone = people.roles(curators="ada eve")
    with people.open(any_book, "ada") as ada, people.open(any_book, "bob") as bob:
        assert ada.set_roles(alone, "eve is me too") == people.roles(raise_needs=2)
        assert ada.proposed_roles.startswith("other roles (eve is me too), proposed by ada")
        with pytest.raises(RoleRefused, match="'ada' has proposed it"):
            ada.set_roles(alone, "eve is me too")
        assert ada.raise_budget("d", Budget(2.0), "more").proposal
        assert bob.set_roles(alone, "well then") == alone
        assert ada.proposed_roles == ada.status("d").proposal == ""
        assert ada.raise_budget("d", Budget(2.0), "more").budget.epsilon == 2.0
        with pytest.raises(RoleRefused):
            bob.set_roles(people.roles(), "back")
    verify(any_book)


@pytest.mark.parametrize("lists", [{"curators": "ada"}, None], ids=["one curator", "no roles"])
def test_a_data_set_asks_for_two_curators_only_where_there_are_two(lists, any_book, people):
    roles, key = (None, None) if lists is None else (people.roles(**lists), people.keys["ada"])
    with Book.create(any_book.url, key=key, roles=roles) as book:
        with pytest.raises(ParameterError, match="a book whose roles name two curators"):
            book.dataset("d", Budget(1.0), raise_needs=2)
        assert book.names == []
        book.dataset("d", Budget(1.0), raise_needs=1)


# --- roles, and keys


@pytest.mark.parametrize(
    ("lists", "sentence"),
    [
        ({"curators": []}, "curators must be keys of at least 1 people"),
        ({"curators": ["ada"], "raise_needs": 2}, "curators must be keys of at least 2 people"),
        ({"curators": ["ada"], "raise_needs": 3}, "raise_needs must be"),
        ({"curators": "ada"}, "curators must be a list of keys"),
        ({"curators": ["ada"], "analysts": ["ada as ana"]}, "each has one name"),
        ({"curators": ["ada"], "analysts": ["bob as ada"]}, "each has one name"),
    ],
)  # fmt: skip
def test_roles_that_say_no_roles_are_refused(people, lists, sentence):
    def line(name):
        holder, _, comment = name.partition(" as ")
        text = people.lines[holder]
        return text.rpartition(" ")[0] + f" {comment}" if comment else text

    stated = {
        name: [line(one) for one in value] if isinstance(value, list) else value
        for name, value in lists.items()
    }
    with pytest.raises(ParameterError, match=sentence):
        Roles(**stated)


@pytest.mark.parametrize(
    "line",
    ["", "ada", "ssh-ed25519", "ssh-rsa AAAAB3NzaC1yc2E= ada", "ssh-ed25519 AAAA ada", 3, b"x"],
)
def test_what_is_no_public_key_is_refused(line):
    with pytest.raises(ParameterError, match="curators must be lines 'ssh-ed25519"):
        Roles(curators=[line])


def test_a_key_has_the_fingerprint_that_ssh_keygen_shows(people, tmp_path):
    file = tmp_path / "ada.pub"
    file.write_text(people.lines["ada"] + "\n")
    assert Roles(curators=[file]) == Roles(curators=[people.lines["ada"]])
    try:
        words = ["ssh-keygen", "-l", "-f", str(file)]
        shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    except OSError:
        pytest.skip("no ssh-keygen")
    assert Roles(curators=[file]).keys["ada"].fingerprint in shown


def test_without_the_package_a_book_with_roles_is_read_and_not_verified(
    sqlite_book, people, monkeypatch
):
    people.make(sqlite_book)
    monkeypatch.setattr("accountant.book.chain.signatures.has_ed25519", lambda: False)
    monkeypatch.setattr(author_keys, "has_ed25519", lambda: False)
    with Book.open(sqlite_book.url) as book:
        assert book.spent("d") == 0.1
        with pytest.raises(
            ParameterError, match=r"cryptography is installed \(pip install cryptography"
        ):
            book.verify()
    with pytest.raises(ParameterError, match="cryptography is installed"):
        people.open(sqlite_book, "ana")


@pytest.mark.slow
def test_the_version_before_roles_reads_such_a_book_and_writes_nothing(
    sqlite_book, people, tmp_path
):
    history = subprocess.run(
        ["git", "archive", "b6288598", "accountant", "mechanisms", "algorithms", "audits",
         "dp_attest"],
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    if history.returncode:
        pytest.skip("no history of the repository here")
    subprocess.run(["tar", "x", "-C", tmp_path], input=history.stdout, check=True)
    people.make(sqlite_book)
    before = sqlite_book.hash_rows()
    attack = f"""
import importlib.metadata
importlib.metadata.entry_points = lambda **_: []  # those of today's version
import numpy as np
from accountant import Book
from mechanisms import Laplace
with Book.open({sqlite_book.url!r}) as book:
    print(book.spent("d"))
    try:
        book.ledger("d", np.arange(5.0)).release(Laplace(10.0), np.sum)
    except Exception as error:
        print(error)
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", attack], env=environment, cwd=tmp_path, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("0.1\n")
    assert "has the format 3, which this version does not know" in done.stdout
    assert sqlite_book.hash_rows() == before
    assert np.isfinite(verify(sqlite_book).entries)
