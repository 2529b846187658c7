"""Verification of claims: the wealth against each follows from the evidence, once each.

A claim says of a program that it is private, and an entry of kind "evidence" adds what an audit
found, as e-values (`accountant.book.evidence`).
"""

from __future__ import annotations

import math

from accountant.book.chain.entries import (
    CLAIM,
    EVIDENCE,
    LogEntry,
    claim_key,
    evidence_of_runs_key,
)
from accountant.book.evidence import (
    ALPHA,
    grown,
    log_total,
    loss_of,
    proof,
    refuse_stronger,
)
from accountant.book.log import Log
from accountant.errors import LedgerCorrupt, ParameterError
from accountant.plans.adjacency import check_relation

# Other versions of the libraries may compute a slightly different logarithm of the wealth.
ROUND_OFF = 1e-9


class EvidenceCheck:
    """Reads along the entries of a book, and adds up anew the evidence on each claim."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._openings: dict[str, LogEntry] = {}  # by claim
        self._last_entries: dict[str, LogEntry] = {}  # by claim
        self._runs: set[tuple[str, str]] = set()  # (claim, digest of the generator) that count
        self._last_opening = 0

    def check_entry(self, entry: LogEntry) -> None:
        """Check an entry that opens a claim, or is evidence on it; others are passed over."""
        if entry.kind == CLAIM:
            self.check_opening(entry)
        elif entry.kind == EVIDENCE:
            self.check_evidence(entry)
        else:
            return
        self._last_entries[entry.facts["claim"]] = entry

    def check_opening(self, entry: LogEntry) -> None:
        """Check an entry that opens a claim."""
        facts, name = entry.facts, entry.facts["claim"]
        if name in self._openings:  # the evidence so far would be forgotten
            self._refuse("opens a claim for a second time", entry)
        if facts["before"] != self._last_opening:
            self._refuse("does not name the claim before it", entry)
        if facts["key"] != claim_key(name):
            self._refuse("opens a claim under another key", entry)
        loss_of(entry)
        ALPHA.check("alpha", facts["alpha"])
        if facts["relation"] is not None:
            check_relation("relation", facts["relation"])
        if (facts["wealth"], facts["nth"], facts["alarm"]) != ([], 0, 0):
            self._refuse("opens a claim with evidence on it", entry)
        self._openings[name], self._last_opening = entry, entry.seq

    def check_evidence(self, entry: LogEntry) -> None:
        """Check an entry that adds what an audit found."""
        facts, name, runs = entry.facts, entry.facts["claim"], entry.facts["runs"]
        if name not in self._openings:
            self._refuse("is evidence on a claim that was not opened", entry)
        opening, last_entry = self._openings[name], self._last_entries[name]
        nth = last_entry.facts["nth"] + 1
        if (facts["before"], facts["nth"]) != (last_entry.seq, nth):
            self._refuse("does not name the evidence before it", entry)
        if (name, runs) in self._runs:
            self._refuse("counts the same runs twice", entry)
        if facts["key"] != evidence_of_runs_key(name, runs):
            self._refuse("is not under the key of its runs", entry)
        try:
            refuse_stronger(loss_of(opening), facts["points"], name)
        except ParameterError:
            self._refuse("tests more than is claimed", entry)
        wealth = grown(last_entry.facts["wealth"], facts["bets"], nth)
        if not all(
            math.isclose(stated, right, rel_tol=ROUND_OFF, abs_tol=ROUND_OFF)
            for stated, right in zip(facts["wealth"], wealth, strict=True)
        ):
            self._refuse("its wealth is not what the evidence so far brought", entry)
        log_wealth, needed = log_total(facts["wealth"], nth), proof(opening.facts["alpha"])
        alarms = {entry.seq if log_wealth >= needed else 0}
        if math.isclose(log_wealth, needed, rel_tol=ROUND_OFF):
            alarms = {0, entry.seq}
        if last_entry.facts["alarm"]:  # an alarm stays
            alarms = {last_entry.facts["alarm"]}
        if facts["alarm"] not in alarms:
            self._refuse("does not say which evidence brought the alarm", entry)
        self._runs.add((name, runs))

    def _refuse(self, why: str, entry: LogEntry) -> None:
        raise LedgerCorrupt(self._log.name, why, entry.seq)
