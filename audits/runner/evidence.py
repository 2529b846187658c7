"""The claim of a book to which the audit of a user's function adds what it found.

A book keeps budgets, and claims on the privacy of programs: each audit of a version multiplies what
is bet against its claim, and an alarm has one error rate for the life of the claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.book.book import Book
from accountant.book.evidence import Evidence
from accountant.cli.ledger_options import ask_passphrase
from accountant.errors import (
    LedgerBusy,
    LedgerCorrupt,
    LedgerNewer,
    ParameterError,
    RoleRefused,
)
from audits.claims.arguments import stream_digest
from audits.claims.claims import checked_claim
from audits.claims.findings import Finding


@final
@dataclass(frozen=True, slots=True)
class EvidenceBook:
    """A claim of a book, and the version of the program that is audited."""

    book: Book
    claim: str
    version: str

    @property
    def evidence(self) -> Evidence:
        """The evidence so far."""
        return self.book.evidence(self.claim)

    def refuse_same_runs(self, rng: np.random.Generator) -> None:
        """Raise `ParameterError`, before any run, if the runs of this generator count already."""
        stream = stream_digest(rng)
        for line in self.evidence.lines:
            if line.runs == stream:
                allowed = f"another one: its runs count already, in entry {line.seq} of the book"
                raise ParameterError("--seed", "the same as then", allowed)

    def add(self, finding: Finding) -> None:
        """Add a finding to the evidence, whatever its outcome."""
        finding.add_to(self.book, self.claim, self.version)


@contextmanager
def evidence_book(
    name: str, claim: str, version: str, key: str | None, claimed: tuple[float, float]
) -> Iterator[EvidenceBook]:
    """Open the book with a claim; it must claim this epsilon and delta."""
    try:
        with Book.open(name, key=key, passphrase=lambda: ask_passphrase(str(key))) as book:
            stated = book.evidence(claim).claim if claim in book.claims else None
            if stated != checked_claim(claimed):
                epsilon, delta = claimed
                allowed = (
                    f"a book whose claim {claim!r} has epsilon {epsilon:g} and delta {delta:g}: "
                    f"dp-attest ledger claim BOOK {claim} --epsilon {epsilon!r} "
                    f"--delta {delta!r} opens it, or --claim NAME names another"
                )
                raise ParameterError("--evidence", stated, allowed)
            yield EvidenceBook(book, claim, version)
    except (LedgerBusy, LedgerCorrupt, LedgerNewer, RoleRefused) as error:
        raise ParameterError("--evidence", claim, f"in a book to write to: {error}") from None
