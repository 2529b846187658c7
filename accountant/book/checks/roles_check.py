"""Verification of roles: each entry names the roles in force, and two curators made what needs two.

That an entry is signed by its author, and that the author's role allows it, is checked as it is
read (`accountant.book.chain.signatures`).
"""

from __future__ import annotations

from accountant.book.chain.approvals import missing_approval
from accountant.book.chain.author_keys import AuthorKey, refuse_without_ed25519
from accountant.book.chain.entries import FORMAT, PROPOSAL, ROLES, TERMS, LogEntry
from accountant.book.limits.second_curator import proposed_words
from accountant.book.log import Log
from accountant.errors import LedgerCorrupt


class RolesCheck:
    """Reads the entries of a log in order and checks what needs roles, or states them.

    Their hashes and signatures are right.  An entry must name the roles in force.  A book that was
    made with roles states them in entry 2, and later roles have a reason.  What gives more budget
    or a later end, and new roles, had a second curator where the roles ask for two.
    """

    def __init__(self, log: Log) -> None:
        if log.head.roles_after:
            refuse_without_ed25519()
        self._log = log
        self._roles = 0  # the number of the entry that states the roles in force
        self._starts_with_roles = False  # whether entry 1 says that entry 2 states roles
        self._terms: dict[str, LogEntry] = {}  # the last entry of each data set that states them

    def check_entry(self, entry: LogEntry) -> None:
        """Check the next entry, or raise `LedgerCorrupt`."""
        facts, log, kind = entry.facts, self._log, entry.kind
        log.signatures.refuse_other_roles(self._roles, facts)
        if entry.seq == 1:
            self._starts_with_roles = facts.get("schema") == FORMAT
        elif entry.seq == 2 and self._starts_with_roles and kind != ROLES:
            self._refuse("states no roles, though the book was made with them", entry)
        if kind in {"dataset", TERMS}:
            before = self._terms.get(facts["dataset"], entry)
            roles = log.signatures.roles_at(self._roles)
            if why := missing_approval(entry, before, roles, log.entry):
                self._refuse(why, entry)
            self._terms[facts["dataset"]] = entry
        elif kind == PROPOSAL:
            proposed_words(log, entry)
        elif kind == ROLES:
            if not facts["reason"]:
                self._refuse("changes the roles without a reason", entry)
            # It refuses roles that are none, and those of one curator where two are needed.
            log.signatures.roles_at(entry.seq)
            self._roles = entry.seq

    def check_end(self) -> None:
        """Check that a log that is read with the key of a person has roles."""
        if isinstance(self._log.signing_key, AuthorKey) and not self._roles:
            raise LedgerCorrupt(self._log.name, "has no roles, and no entry is signed by a person")

    def _refuse(self, why: str, entry: LogEntry) -> None:
        raise LedgerCorrupt(self._log.name, why, entry.seq)
