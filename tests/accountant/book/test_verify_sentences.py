"""Every sentence in which `verify` refuses a book, and a forged book that makes it say each."""

import ast
import tempfile
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import accountant.book
from accountant import Book, Budget, LedgerCorrupt
from accountant.book import verification
from accountant.book.chain.entries import LogEntry
from accountant.book.chain.head_pin import HeadPin
from accountant.book.chain.key_index import new_nodes
from accountant.book.log import Log
from accountant.book.opening import connect
from accountant.book.verification import IndexCheck
from mechanisms import Laplace
from tests.accountant.book.forged_books import (
    DATA,
    EXACT,
    KEY,
    OTHER_KEY,
    TENTH,
    Forged,
    said,
    write_claims,
    write_corrected,
    write_honest,
    write_listed,
)
from tests.accountant.book.test_index_check import checked

SOURCES = Path(accountant.book.__file__).parent


def test_the_honest_books_are_good(tmp_path):
    assert said(Forged(tmp_path).path) == said(Forged(tmp_path, write=write_corrected).path) == ""
    assert said(Forged(tmp_path, write=write_claims).path) == ""
    signed = Forged(tmp_path, KEY).path
    assert said(signed) == said(signed, key=KEY) == ""


# --- what is wrong, and what is said


class Case(NamedTuple):
    """A change to the facts of an entry: where, what becomes of them, and the sentence."""

    says: str
    where: tuple[Any, ...]  # data set, kind, nth
    change: Any  # facts that are put in; ... takes a fact away
    write: Any = write_honest


TOTAL, COST, PAID = (
    "its total is not the sum of what was spent",
    "its cost is not what its loss",
    "paid",
)
NEITHER = "counts windows by neither the clock nor the entry before"
NO_CLOCK = "states a latest time that no clock showed"
NOT_AHEAD = "corrects a clock that had not run ahead"
TERMS_OTHER = "changes other terms than it says"
PLACE = {"seq", "index", "root", "time", "latest", "key"}  # what belongs to the place of an entry


def opened_again(forged):
    """The facts of the opening of a data set, at the place of a later entry."""
    return {
        name: fact for name, fact in forged.find("plain", "dataset").items() if name not in PLACE
    }


def with_quota(forged, dataset, charge):
    """The facts of a quota that is below what was spent, which that charge states too."""
    forged.find(dataset, "reserve", charge)["quota"] = 0.05
    return {"quota": 0.05}


def with_one_run(forged):
    """The facts of a data set of which a single run was set aside, though two were made."""
    one_run = {"runs": 1, "plan": forged.find("aside", "plan", 1)["plan"]}
    for nth in range(3):
        forged.find("aside", "plan", nth)["total"] = ["0.2", "0.0"]
    forged.find("aside", "plan").update(one_run)
    return {"aside": one_run}


EVERY_KIND = ["plain", "users", "buckets", "window", *(
    f"{kind}quota" for kind in ("", "users with a ", "buckets with a "))]  # fmt: skip
PASSED = "2001-01-01T00:00:00.000000+00:00"
# what is said of a charge, whatever is limited in its data set
CHARGED = (
    [
        Case(says, (dataset, "reserve", 1), change)
        for dataset in EVERY_KIND
        for says, change in (
            ("does not name the charge before it", {"before": 0}),
            (COST, {"cost": ["0.05", "0.0"]}),
            (TOTAL, {"total": ["0.1", "0.0"]}),
            ("counts what was spent in another way", {"certified": 0.1}),
        )
    ]
    + [
        Case(says, (dataset, "dataset", 0), change)
        for dataset in [*EVERY_KIND, "aside", "certified"]
        for says, change in (
            (
                "spends more than the budget",
                {"epsilon": EXACT * 0.99 if dataset == "certified" else 0.09},
            ),
            ("was made after its data set was closed", {"expires": PASSED}),
        )
    ]
    + [
        Case(says, (dataset, kind, nth), change)
        for dataset in EVERY_KIND
        for says, kind, nth, change in (
            ("what its author spent is not the sum of it", "reserve", 1, {"own": ["0.1", "0.0"]}),
            ("does not say what its author spent", "reserve", 1, {"own": None}),
            ("does not say the quota of its author", "reserve", 1, {"quota": 0.15}),
            ("does not say what its author spent before", "terms", 0, {"own": {}}),
            (
                "does not say what each author spent before",
                "terms",
                0,
                {"used": {"ada": ["0.1", "0.0"]}},
            ),
            (TERMS_OTHER, "terms", 0, {"limited_authors": 2}),
        )
        if "quota" in dataset
    ]
    + [
        Case(says, (dataset, kind, nth), change)
        for dataset in ("users", "buckets", "window")
        for says, kind, nth, change in (
            ("spends outside of a plan", "dataset", 0, {"verified": True}),
            ("changes the terms without a reason", "terms", 0, {"reason": ""}),
            (TERMS_OTHER, "terms", 0, {"change": "expires"}),
        )
    ]
)
CASES = [
    *CHARGED,
    Case("opens a data set for a second time", ("plain", "reserve", 2), opened_again),
    # the chain of charges and answers
    Case("does not name the charge before it", ("plain", "reserve", 2), {"before": 2}),
    Case("does not name the charge before it", ("aside", "plan", 1), {"before": 0}),
    Case("answers what was not reserved", ("plain", "release", 0), {"of": 1}),
    Case("answers what was not reserved", ("plain", "failed", 0), {"of": 1}),
    Case("or was answered before", ("plain", "failed", 0), lambda forged: {
        "of": forged.find("plain", "reserve")["seq"]}),
    Case("its bytes are others than were stored", ("plain", "release", 0), {"answer": "0" * 64}),
    Case("its bytes are missing", ("plain", "reserve", 2), {"block": "0" * 64}),
    # totals
    Case(TOTAL, ("plain", "reserve", 0), {"total": ["0.05", "0.0"]}),
    Case(TOTAL, ("plain", "reserve", 2), {"total": ["0.5", "0.0"]}),
    Case(TOTAL, ("aside", "plan", 1), {"total": ["0.6", "0.0"]}),
    Case(COST, ("plain", "reserve", 0), {"cost": ["0.05", "0.0"]}),
    Case(COST, ("plain", "reserve", 2), {"loss": {"kind": "PureLoss", "epsilon": 0.3}}),
    Case("its total is not the sum of what a bucket spent", ("buckets", "reserve", 1),
         {"buckets": {"a": ["0.1", "0.0"], "b": ["0.1", "0.0"]}}),
    Case("its total is not the sum of what a bucket spent", ("buckets", "reserve", 0),
         {"buckets": {}}),
    Case("its parts are not the sums", ("window", "reserve", 1), lambda forged: {
        "parts": forged.find("window", "reserve")["parts"]}),
    Case("its parts are not the sums", ("window", "plan", 0), lambda forged: {
        "parts": forged.find("window", "reserve", 1)["parts"]}),
    # plans
    Case("counts what was spent in another way", ("plain", "reserve", 0), {"certified": 0.1}),
    Case("counts what was spent in another way", ("certified", "plan", 0), {"certified": ...}),
    Case("counts what was spent in another way", ("certified", "plan", 0), {"counting": ...}),
    Case("counts what was spent in another way", ("certified", "reserve", 0), {"counting": ...}),
    Case("its total is less than what its plan costs", ("certified", "plan", 0),
         {"certified": EXACT * 0.99}),
    Case("sets other runs aside", ("aside", "plan", 0), {"runs": 3}),
    Case("sets other runs aside", ("aside", "plan", 1), {"runs": 2}),
    Case("sets other runs aside", ("aside", "dataset", 0), {"aside": ...}),
    Case("sets other runs aside", ("certified", "plan", 0), {"runs": 1}),
    Case("is a run of a plan that was not set aside", ("aside", "plan", 0), {"runs": ...}),
    Case("is a run of a plan that was not set aside", ("certified", "plan", 0), {PAID: 1}),
    Case("is a run of another plan", ("aside", "plan", 1), {PAID: 1}),
    Case("is a run of another plan", ("aside", "plan", 2), lambda forged: {
        "plan": forged.find("aside", "plan")["plan"]}),
    Case("is one run more", ("aside", "plan", 2), {"nth": 1}),
    Case("is one run more", ("aside", "plan", 1), {"nth": 2}),
    Case("is one run more", ("aside", "dataset", 0), with_one_run),
    Case("spends outside of a plan", ("plain", "dataset", 0), {"verified": True}),
    Case("opens a plan without a proof", ("certified", "dataset", 0), {"verified": True}),
    # terms
    Case("changes the terms of a data set that was closed", ("terms", "terms", 1),
         {"change": "closed", "expires": None}),
    Case("its time is before that of the entry before", ("certified", "plan", 0),
         {"time": "2001-01-01T00:00:00.000000+00:00"}),
    Case("its time is before that of the entry before", ("window", "step", 0),
         {"time": "2001-01-01T00:00:00.000000+00:00"}),
    # else a charge after the end of its data set would count as one before it
    Case(NO_CLOCK, ("window", "step", 0), lambda forged: {
        "time": "2999-01-01T00:00:00.000000+00:00",
        "latest": forged.find("window", "step")["time"]}),
    Case(TERMS_OTHER, ("terms", "terms", 0), {"change": "expires"}),
    Case(TERMS_OTHER, ("terms", "terms", 0), {"change": "all"}),
    Case(TERMS_OTHER, ("terms", "terms", 1), {"epsilon": 3.0}),
    Case(TERMS_OTHER, ("terms", "terms", 2), {"expires": None}),
    Case(TERMS_OTHER, ("terms", "terms", 0), {"quotas": {"ada": 1.0}}),
    Case(TERMS_OTHER, ("quota", "terms", 1), {"quotas": {"ada": 0.9, "bob": 0.5}}),
    Case(TERMS_OTHER, ("quota", "terms", 1), {"limited_authors": 1}),
    Case(TERMS_OTHER, ("quota", "terms", 1), {"quota": ..., "quotas": {"bob": 0.5}}),
    Case("changes the terms without a reason", ("terms", "terms", 0), {"reason": ""}),
    Case("lowers a delta that spends relied on", ("terms", "terms", 0), {"delta": 1e-7}),
    Case("does not say the largest budget", ("window", "terms", 0), {"largest": 1.0}),
    Case("does not say the largest budget", ("window", "terms", 0), {"largest": 5.0}),
    Case("lowers the budget below what was spent", ("terms", "terms", 0), {"epsilon": 0.15}),
    Case("lowers the budget below what was spent", ("window", "terms", 0),
         {"epsilon": 0.15, "largest": 1.0}),
    Case("lowers the budget below what was spent", ("users", "terms", 0), {"epsilon": 0.15}),
    Case("lowers the budget below what was spent", ("buckets", "terms", 0), {"epsilon": 0.15}),
    Case("spends more than the quota of its author", ("quota", "terms", 0), lambda forged: (
        forged.find("quota", "reserve", 1).update(quota=0.15), {"quota": 0.15})[1]),
    *(Case("spends more than the quota of its author", (dataset, "terms", 0),
           lambda forged, dataset=dataset: with_quota(forged, dataset, 1))
      for dataset in EVERY_KIND if "quota" in dataset),
    Case("spends more than the quota of its author", ("month", "terms", 0),
         lambda forged: with_quota(forged, "month", 2), write_corrected),
    Case("does not say the quota of its author", ("quota", "terms", 0), {"quota": 0.15}),
    Case("does not say the quota of its author", ("quota", "reserve", 0), {"quota": 0.15}),
    Case("does not say what its author spent", ("plain", "reserve", 0), {"own": ["0.1", "0.0"]}),
    Case("does not say what its author spent before", ("quota", "terms", 0),
         {"own": ["0.0", "0.0"]}),
    Case("does not say what each author spent before", ("quota", "terms", 1),
         {"used": {"ada": ["0.2", "0.0"]}}),
    # quotas as an earlier version listed them
    *(Case(says, where, change, write_listed) for says, where, change in (
        (TERMS_OTHER, ("quota", "terms", 1), {"quotas": {"ada": 0.9, "bob": 0.5}}),
        (TERMS_OTHER, ("quota", "terms", 1), {"quotas": {"bob": 0.5}}),
        (TERMS_OTHER, ("quota", "terms", 1), {"limited_authors": 1}),
        ("what its author spent is not the sum of it", ("quota", "reserve", 2),
         {"own": ["0.1", "0.0"]}),
        ("spends more than the quota of its author", ("quota", "terms", 0),
         {"quotas": {"ada": 0.15}}),
        ("does not say what its author spent", ("quota", "reserve", 3), {"own": None}),
        ("does not say what each author spent before", ("quota", "terms", 0),
         {"used": {"ada": ["0.0", "0.0"]}}),
        ("does not say what each author spent before", ("users", "terms", 0), {"used": {}}),
        ("does not say what each author spent before", ("month", "terms", 2), {"used": {}}),
    )),
    Case("was made in another window than the one that paid for it", ("window", "step", 0),
         {"time": "2999-01-01T00:00:00.000000+00:00"}),
    # clocks
    *(Case(says, where, change, write_corrected) for says, where, change in (
        (NEITHER, ("month", "reserve", 1), {"window_time": "2001-01-01T00:00:00.000000+00:00"}),
        (NEITHER, ("month", "reserve", 1), {"window_time": "2026-11-12T11:00:00.000000+00:00"}),
        (NO_CLOCK, ("month", "reserve", 1), {"latest": "2999-01-01T00:00:00.000000+00:00"}),
        (NEITHER, ("month", "reserve", 4), {"window_time": "2026-11-14T12:00:00.000000+00:00"}),
        ("corrects the clock without a reason", (None, "clock", 0), {"reason": ""}),
        (NOT_AHEAD, (None, "clock", 0), {"was": "2027-04-01T12:00:00.000000+00:00"}),
        (NOT_AHEAD, (None, "clock", 0), {"latest": "2027-03-01T12:00:00.000000+00:00"}),
        (NOT_AHEAD, (None, "clock", 0), {"window_time": "2026-11-12T12:00:00.000000+00:00"}),
        (NOT_AHEAD, (None, "clock", 0), {"time": "2027-03-01T12:00:00.000000+00:00"}),
        ("does not name the correction before it", (None, "clock", 1), {"earlier": 0}),
        ("does not name the correction before it", (None, "clock", 0), {"earlier": 3}),
        ("came step by step", (None, "clock", 0), {"time": "2026-11-11T18:00:00.000000+00:00"}),
        ("came step by step", (None, "clock", 1), {"time": "2026-11-13T11:00:00.000000+00:00"}),
        ("brings an expired data set back", ("ends", "terms", 0),
         {"expires": "2026-12-01T12:00:00.000000+00:00"}),
        ("counts windows anew where no clock was", ("month", "terms", 0), {"change": "clock"}),
        ("comes before all windows are counted", ("month", "terms", 1), {"change": "closed"}),
        ("comes before all windows are counted", ("days", "terms", 0), {"dataset": "unspent"}),
        ("ends before all windows are counted", ("plain", "dataset", 0), lambda forged:
         forged.facts.__delitem__(slice(-2, None)) or {}),
        ("its parts are not the sums by the corrected", ("month", "terms", 1), lambda forged: {
            "parts": forged.find("month", "reserve", 2)["parts"]}),
        ("its parts are not the sums by the corrected", ("month", "terms", 1), lambda forged: {
            "parts": forged.find("month", "reserve", 1)["parts"]}),
        ("its parts are not the sums by the corrected", ("days", "terms", 0), lambda forged: {
            "parts": forged.find("days", "plan")["parts"]}),
        ("its total is not that of the open window", ("month", "terms", 1),
         {"total": ["0.1", "0.0"]}),
        ("does not name the charge before it", ("month", "terms", 1), {"before": 0}),
        ("what its author spent is not the sum of it", ("month", "reserve", 2), lambda forged: {
            "own": forged.find("month", "terms")["own"]}),
        ("does not say what its author spent", ("month", "reserve", 2), {"own": None}),
        ("does not say the quota of its author", ("month", "reserve", 2), {"quota": 0.05}),
        ("does not say what each author spent before", ("month", "terms", 1), {"used": {
            "ada": {"2027-03": ["0.1", "0.0"]}}}),
        ("does not say what its author spent before", ("month", "terms", 2), lambda forged: {
            "own": forged.find("month", "reserve", 2)["own"]}),
        ("comes before other quotas have an entry", ("month", "terms", 2), {"quota": 5.0}),
        ("comes before other quotas have an entry", ("month", "terms", 2), {"change": "expires"}),
        ("comes before other quotas have an entry", ("month", "terms", 2), {"kind": "seed"}),
        ("changes the terms without a reason", ("month", "terms", 1), {"reason": ""}),
        (TERMS_OTHER, ("month", "terms", 1), {"epsilon": 3.0}),
    )),
    # claims, and the evidence on them
    *(Case(says, where, change, write_claims) for says, where, change in (
        ("opens a claim for a second time", (None, "claim", 1), {"claim": "program"}),
        ("does not name the claim before it", (None, "claim", 1), {"before": 0}),
        ("opens a claim under another key", (None, "claim", 0), {"key": "program"}),
        ("opens a claim with evidence on it", (None, "claim", 0), {"wealth": [1.0]}),
        ("opens a claim with evidence on it", (None, "claim", 1), {"alarm": 1}),
        ("opens a claim with evidence on it", (None, "claim", 1), {"nth": 1}),
        ("does not name the evidence before it", (None, "evidence", 1), {"nth": 1}),
        ("is evidence on a claim that was not opened", (None, "evidence", 0), {"claim": "third"}),
        ("does not name the evidence before it", (None, "evidence", 1), {"before": 1}),
        # else the evidence before it would be forgotten
        ("does not name the evidence before it", (None, "evidence", 1), lambda forged: {
            "before": forged.find(None, "claim")["seq"]}),
        ("counts the same runs twice", (None, "evidence", 1), {"runs": "0" * 64}),
        ("is not under the key of its runs", (None, "evidence", 1), {"runs": "f" * 64}),
        ("tests more than is claimed", (None, "evidence", 0), {"points": [[0.5, 0.0]]}),
        ("tests more than is claimed", (None, "evidence", 1), {"points": [[1.0, 0], [0.9, 0.01]]}),
        ("tests more than is claimed", (None, "claim", 0),
             {"loss": {"kind": "PureLoss", "epsilon": 2.0}}),
        ("its wealth is not what the evidence", (None, "evidence", 0), {"bets": [3.0]}),
        ("its wealth is not what the evidence", (None, "evidence", 1), {"wealth": [9.0]}),
        ("its wealth is not what the evidence", (None, "evidence", 2), {"bets": [0.0]}),
        ("does not say which evidence brought the alarm", (None, "evidence", 1), {"alarm": 0}),
        ("does not say which evidence brought the alarm", (None, "evidence", 2), {"alarm": 0}),
        ("does not say which evidence brought the alarm", (None, "evidence", 0), lambda forged: {
            "alarm": forged.find(None, "evidence")["seq"]}),
        ("does not say which evidence brought the alarm", (None, "claim", 0), {"alpha": 0.6}),
        ("does not say which evidence brought the alarm", (None, "claim", 0), {"alpha": 0.01}),
        ("an entry does not say what it must", (None, "claim", 0), {"alpha": 1.0}),
        ("an entry does not say what it must", (None, "claim", 1), {"relation": "siblings"}),
        ("an entry does not say what it must", (None, "evidence", 1), {"bets": ...}),
        ("an entry does not say what it must", (None, "evidence", 1), {"bets": [1.0, 1.0, "x"]}),
        ("an entry holds no plan, mechanism or loss", (None, "claim", 0), {"loss": {}}),
    )),
    # the index of keys
    Case("is not under its keys", ("plain", "reserve", 0), lambda forged: {
        "index": [["other", forged.find("plain", "reserve")["index"][0][1]]]}),
    Case("its place in the index is wrong", ("plain", "reserve", 1), lambda forged: {
        "index": [[key, [1, *path]] for key, path in forged.find("plain", "reserve", 1)["index"]]}),
    Case("its place in the index is wrong", ("plain", "failed", 0), lambda forged: {"root": 1}),
    # what an entry is
    Case("names no users", ("users", "reserve", 0), {"block": None}),
    Case("names no users", ("users", "reserve", 1), {"who": []}),
    Case("its bytes are missing or others", ("users", "reserve", 0), {"block": "0" * 64}),
    Case("an entry holds no plan, mechanism or loss", ("plain", "reserve", 0), {"loss": {}}),
    Case("an entry holds no plan, mechanism or loss", ("certified", "plan", 0),
         {"plan": {"kind": "Repeat"}}),
    Case("an entry does not say what it must", ("plain", "reserve", 0), {"cost": ...}),
    Case("an entry does not say what it must", ("plain", "reserve", 0), {"total": "much"}),
    Case("an entry does not say what it must", ("window", "reserve", 0), {"parts": ...}),
    Case("an entry does not say what it must", ("plain", "release", 0), {"of": ...}),
    Case("kind must be declared here", ("plain", "reserve", 0), {"loss": {"kind": "Unknown"}}),
    Case("is not signed, as entries before it are", ("plain", "dataset", 0), {"mac": "0" * 64}),
]  # fmt: skip


def what_is_said(case, folder):
    """The sentence on a book with the case's change."""
    forged = Forged(folder, write=case.write)
    facts = forged.find(*case.where)
    for name, value in (case.change(forged) if callable(case.change) else case.change).items():
        facts[name] = value
        if value is ...:
            del facts[name]
    forged.write()
    return said(forged.path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.says[:40]}, {case.where}")
def test_a_forged_entry_is_refused_in_words(tmp_path, case):
    assert case.says in what_is_said(case, tmp_path)


def violation(sentence):
    """The law for one sentence: which of its cases does not make `verify` say it."""
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if case.says in sentence:
                found = what_is_said(case, Path(folder))
                if case.says not in found:
                    return f"{case.where}: {case.says!r} is not said, but {found!r}"
    return ""


def damaged(words):
    """A change of the database itself; the entries stay as they are."""
    return lambda forged: (forged.ask(words), {})[1]


def with_body(body):
    """An entry of another body, under a right hash."""
    return lambda forged: (forged.write({5: body}), {})[1]


def without_last_charges(log):
    """An index of the database that leads to no charge."""
    log.last_charge = lambda dataset: None


def accepting_unsigned(log):
    """Who reads the book is to sign it from the next entry on."""
    log.signatures.accepts_unsigned = True


# what is done to the file, and how it is then verified
DAMAGES = {
    "an entry is missing": (damaged("DELETE FROM entries WHERE seq = 5"), {}),
    "an entry does not fit its hash": (
        damaged("UPDATE entries SET body = replace(body, 'ada', 'bob') WHERE seq = 5"), {}),
    "an entry is not JSON": (with_body("{"), {}),
    "an entry is no entry": (with_body("[]"), {}),
    "a column does not say what its entry says": (
        damaged("UPDATE entries SET kind = 'step' WHERE seq = 5"), {}),
    "has lost or gained entries: its length is noted as another": (
        damaged("PRAGMA user_version = 5"), {}),
    "ends at entry ": (damaged("SELECT 1"), {"head": f"999:{'0' * 64}"}),
    "is another chain than the one that is known": (
        damaged("SELECT 1"), {"head": f"5:{'0' * 64}"}),
    "is not signed with the key, as the last entry must be": (damaged("SELECT 1"), {"key": KEY}),
    "no entry of it is signed with this key": (
        damaged("SELECT 1"), {"key": KEY, "patch": accepting_unsigned}),
    "an index does not lead to the last spends": (
        damaged("SELECT 1"), {"patch": without_last_charges}),
    "its bytes are missing": (damaged("DELETE FROM blobs WHERE seq > 20"), {}),
    "its bytes are others than were stored": (
        damaged("UPDATE blobs SET body = x'00' WHERE seq = (SELECT max(seq) FROM blobs)"), {}),
}  # fmt: skip
OTHER_ENTRIES = {
    "a list": "[]", "another number": '{"seq":6,"dataset":null,"kind":"x","key":null}',
    "no data set": '{"seq":5,"kind":"x","key":null}', "no kind": '{"seq":5,"dataset":null}',
    "no key": '{"seq":5,"dataset":null,"kind":"x"}',
}  # fmt: skip


@pytest.mark.parametrize("sentence", DAMAGES)
def test_a_damaged_file_is_refused_in_words(tmp_path, sentence):
    damage, options = DAMAGES[sentence]
    forged = Forged(tmp_path)
    damage(forged)
    assert said(forged.path, **options).startswith(sentence)


@pytest.mark.parametrize("what", OTHER_ENTRIES)
def test_what_is_no_entry_is_none(tmp_path, what):
    forged = Forged(tmp_path)
    forged.write({5: OTHER_ENTRIES[what]})
    assert said(forged.path) == "an entry is no entry"


def test_the_last_entry_is_the_one_that_is_known(tmp_path):
    forged = Forged(tmp_path)
    count = len(forged.facts)
    assert said(forged.path, f"{count}:{'0' * 64}").startswith("is another chain")
    assert "rolled back" in said(forged.path, f"{count + 1}:{'0' * 64}")


def test_a_signature_is_of_this_key_and_of_this_place(tmp_path):
    other = "an entry is signed with another key, or was written anew without the key"
    forged = Forged(tmp_path, KEY)
    assert said(forged.path, key=OTHER_KEY) == other
    forged.find("plain", "reserve")["author"] = "bob"
    forged.write()
    assert (said(forged.path), said(forged.path, key=KEY)) == ("", other)
    del forged.find("plain", "reserve")["mac"]
    forged.write()
    assert said(forged.path) == "is not signed, as entries before it are"
    assert said(forged.path, key=KEY) == other


# --- old books, whose keys get an index


def checked_index(*entries, signing_key=None):
    """Check the index of entries: their key, and the facts that put it in the index."""
    check = IndexCheck(SimpleNamespace(name="book", signing_key=signing_key))
    for seq, (key, facts) in enumerate(entries, 1):
        whole = {"dataset": "d", "kind": "release", "key": key, **facts}
        check.check_entry(LogEntry(seq, "", whole))
    check.check_end()


def brings(seq, root, key, at):
    """An entry that brings an old key under the index."""
    nodes = {} if root is None else {root: [["a", []]]}
    index = new_nodes([key], root or 0, seq, nodes.get)
    return (None, {"kind": "index", "at": at, "index": index})


INDEXES = {
    "": [("a", {}), ("b", {}), brings(3, None, "a", 1), brings(4, 3, "b", 2)],
    "brings an old key under a wrong entry": [("a", {}), ("b", {}), brings(3, None, "a", 2)],
    "comes before the old keys have an index": [
        ("a", {}), ("b", {}), brings(3, None, "a", 1), (None, {"root": 3}),
    ],
    "has old keys that the index does not lead to": [
        ("a", {}), ("b", {}), brings(3, None, "a", 1),
    ],
    "its place in the index is wrong": [("a", {}), brings(2, None, "a", 1), (None, {"root": 1})],
    "is not under its keys": [("a", {"index": [["b", []]]})],
}  # fmt: skip


@pytest.mark.parametrize("sentence", INDEXES)
def test_the_index_of_an_old_book_is_checked(sentence):
    if not sentence:
        checked_index(*INDEXES[sentence])
        return
    with pytest.raises(LedgerCorrupt) as caught:
        checked_index(*INDEXES[sentence])
    assert caught.value.why == sentence


ROWS = {
    "the index of data sets does not lead to their entries": {"numbers": (1, 3)},
    "the index of keys does not lead to their entries": {"keys": (("label", 3),)},
    "the list of data sets is another": {"names": ()},
    "an index leads in a circle": {"numbers": (1, 2, 3, 1)},
}


@pytest.mark.parametrize("sentence", ROWS)
def test_rows_of_an_index_are_refused_in_words(sentence):
    with pytest.raises(LedgerCorrupt) as caught:
        checked(**ROWS[sentence])
    assert caught.value.why == sentence


# --- what spends say of entries that they go by


SPENDS = {
    "the index of keys leads nowhere": (("buckets with a quota", "terms", 1), lambda facts: {
        "index": [[key, [facts["seq"] - 1] * len(path)] for key, path in facts["index"]]}),
    "does not say what an author spent": (("quota", "reserve", 1), lambda facts: {
        "author": "eve"}),
    "does not say what a bucket spent": (("buckets", "reserve", 1), lambda facts: {
        "buckets": {"b": ["0.1", "0.0"]}}),
    "does not say what was set aside": (("aside", "plan", 0), lambda facts: {"runs": ...}),
    "a column does not say what its entry says": (("plain", "reserve", 2), lambda facts: {
        "dataset": "users"}),
}  # fmt: skip


@pytest.mark.parametrize("sentence", SPENDS)
def test_a_spend_goes_by_no_entry_that_says_something_else(tmp_path, sentence):
    where, change = SPENDS[sentence]
    forged = Forged(tmp_path)
    facts = forged.find(*where)
    for name, value in change(facts).items():
        facts[name] = value
        if value is ...:
            del facts[name]
    forged.write()
    asked = {"plan": 2 * TENTH} if where[0] == "aside" else {}
    if where[0].startswith("buckets"):
        asked["buckets"] = ["a"]
    with Book.open(forged.path, author="ada") as book:
        with pytest.raises(LedgerCorrupt) as caught:
            book.ledger(where[0], DATA, **asked).spend(Laplace(1000.0))
        assert caught.value.why == sentence
    assert forged.ask("SELECT count(*) FROM entries") == [(len(forged.facts),)]


def test_noise_that_leads_to_another_entry_is_refused(tmp_path):
    forged = Forged(tmp_path)
    with Book.open(forged.path) as book:
        book.ledger("plain", DATA, rng=1, insecure_seed=True)
    [(key,)] = forged.ask("SELECT key FROM entries WHERE kind = 'seed'")
    forged.write()
    with Book.open(forged.path) as book:
        forged.ask("UPDATE entries SET key = ? WHERE seq = 5", (key,))
        with pytest.raises(LedgerCorrupt, match="the index of keys is damaged"):
            book.ledger("plain", DATA, rng=1, insecure_seed=True)


def test_a_log_without_entries_is_none(tmp_path):
    assert (
        said_of_nothing(tmp_path, lambda log: verification.verify_log(log, None))
        == "has no entries"
    )
    assert said_of_nothing(tmp_path, lambda log: log.head) == "has no entries"


def test_a_log_that_is_known_is_not_begun_anew(tmp_path):
    pin = tmp_path / "book.pin"
    pin.write_text(f"{3:020d}:{'0' * 64}\n")

    def write(log):
        with log.writing():
            pass

    why = "is empty, though entries of it are known"
    assert said_of_nothing(tmp_path, write, HeadPin(pin)) == why
    assert said_of_nothing(tmp_path, write) == ""


def said_of_nothing(folder, work, pin=None):
    """What is said of a book without tables."""
    log = Log(connect(folder / "nothing.db", 30.0, True), pin, "eve")
    try:
        work(log)
    except LedgerCorrupt as error:
        return error.why
    finally:
        log.close()
    return ""


# --- what the database says of its file


def without_log_ahead(forged):
    """Remove the log ahead of an open book, as a program does that copied the file."""
    with Book.open(forged.path) as book:
        Path(f"{forged.path}-wal").unlink()
        book.dataset("new", Budget(1.0))


def with_damaged_log_ahead(forged):
    with Book.open(forged.path) as book:
        book.dataset("new", Budget(1.0))
        wal = Path(f"{forged.path}-wal")
        raw = bytearray(wal.read_bytes())
    raw[40] ^= 1
    wal.write_bytes(raw)


def with_other_bytes(forged, changes):
    """Change single bytes of the file, by their places."""
    raw = bytearray(forged.path.read_bytes())
    for place, byte in changes.items():
        raw[place] = byte
    forged.path.write_bytes(raw)


def with_a_damaged_page(forged):
    with_other_bytes(forged, {4096 + 7: 7})  # the second page's number of fragmented bytes


def with_a_damaged_schema(forged):
    """A table whose name is not text, and whose definition is none."""
    raw = forged.path.read_bytes()
    name, definition = raw.index(b"tableblobs") + 5, raw.index(b"CREATE TABLE blobs")
    with_other_bytes(forged, {name: 0xFF, definition: ord("x")})


FILES = {
    "is no book, or its first page is damaged": damaged("PRAGMA application_id = 5"),
    "the file is damaged: ": with_a_damaged_page,
    "holds words that are none": with_a_damaged_schema,
    "its log ahead is damaged": with_damaged_log_ahead,
    "its log was removed while it was open (was the file copied by this process?); close it and "
    "open it again": without_log_ahead,
}  # fmt: skip


@pytest.mark.parametrize("sentence", FILES)
def test_a_damaged_database_is_refused_in_words(tmp_path, sentence):
    forged = Forged(tmp_path)

    def damage_and_verify():
        FILES[sentence](forged)
        with Book.open(forged.path) as book:
            book.verify()

    with pytest.raises(LedgerCorrupt) as caught:
        damage_and_verify()
    assert caught.value.why.startswith(sentence)


# --- no sentence without a case

# sentences whose cases are in another file of tests
SAID_ELSEWHERE = {
    "test_roles.py": (
        "takes for roles what are none", "names no roles that were in force",
        "does not name the roles in force before it", "states roles that are none",
        "states no roles, though the book was made with them",
        "changes the roles without a reason", "whom the roles do not name",
        ", who is said to have written it", "was not to be written by its author",
        "is not signed by a person whom the roles in force",
        "has no roles, and no entry is signed by a person",
    ),
    "../../laws/test_book_roles.py": (
        "needs two curators, and ", "names no proposal of another curator",
        "names a proposal of another change", "names a proposal from before the last change",
        " has proposed it", "no role writes entries of the kind ",
    ),
    "../cli/test_ledger_roles.py": (" is an analyst, and only a curator ",),
    "test_checkpoints.py": ("is another book than ",),
    "test_verification.py": (
        "is no pin, or a damaged one", "was replaced while it was open",
    ),
    "test_book_format.py": ("was charged by a version that does not know ",),
    "test_answer_codec.py": ("an answer of no known form",),
    "test_postgres.py": ("the server says ",),
}  # fmt: skip


def sentences():
    """Every sentence in which a book is refused as corrupt: its parts between values."""
    for path in sorted(SOURCES.rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                assigned = assigned_words(function)
                given = [one for call in ast.walk(function) for one in refusals_of(call)]
                if (ast.get_docstring(function) or "").startswith("Return why"):
                    given += [
                        one.value for one in ast.walk(function) if isinstance(one, ast.Return)
                    ]
                for one in given:
                    named = assigned[one.id] if isinstance(one, ast.Name) else [one]
                    yield from filter(None, map(parts_of, named))


def assigned_words(function):
    """The strings that a function gives names to; one name may have several."""
    found = defaultdict(list)
    for one in ast.walk(function):
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            found[one.targets[0].id].append(one.value)
    return found


def refusals_of(call):
    """What a call says is wrong, if it is one that refuses a book."""
    function = getattr(call, "func", None)
    name = getattr(function, "id", getattr(function, "attr", ""))
    if name == "LedgerViolated" and isinstance(call.args[1], ast.Dict):
        return [value.elts[0] for value in call.args[1].values if isinstance(value, ast.Tuple)]
    place = {"LedgerCorrupt": 1, "_refuse": 0}.get(name)
    return [] if place is None else [call.args[place]]


def parts_of(words):
    """The parts of a string between values, but for the shortest; none of what is no string."""
    parts = words.values if isinstance(words, ast.JoinedStr) else [words]
    constants = [one.value for one in parts if isinstance(one, ast.Constant)]
    return tuple(one for one in constants if isinstance(one, str) and len(one) > 5)


def test_every_sentence_has_a_case_that_makes_it_say_so():
    elsewhere = {one for listed in SAID_ELSEWHERE.values() for one in listed}
    said_here = {case.says for case in CASES} | {
        *DAMAGES, *INDEXES, *ROWS, *SPENDS, *FILES, *elsewhere,
        "has no entries", "the index of keys is damaged",
        "is empty, though entries of it are known",
        "an entry is signed with another key, or was written anew without the key",
    } - {""}  # fmt: skip
    found = set(sentences())
    assert len(found) > 90

    def is_of(case, parts):
        return any(part in case or case in part for part in parts)

    assert [parts for parts in found if not any(is_of(case, parts) for case in said_here)] == []
    # and no case is of a sentence that is gone
    kinds = "kind must be declared here"
    listed = said_here - {kinds}
    assert [case for case in listed if not any(is_of(case, parts) for parts in found)] == []


@pytest.mark.parametrize("name", SAID_ELSEWHERE)
def test_a_case_elsewhere_has_the_words(name):
    text = (Path(__file__).parent / name).read_text()
    assert [words for words in SAID_ELSEWHERE[name] if words not in text] == []
