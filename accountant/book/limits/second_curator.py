"""Changes that give more, where the roles of a book ask for two curators, and of the roles.

The first curator's call writes a proposal, and the same call by a second one writes the change,
which names the proposal.  A proposal is open until the roles change, or the terms of its data set.
`accountant.book.chain.approvals` says what needs two curators.
"""

from __future__ import annotations

from typing import Any

from accountant.book.chain.approvals import (
    guarded_roles,
    missing_approval,
    needs_second,
    needs_two,
    own_proposal,
    proposed_facts,
    refusal_of,
)
from accountant.book.chain.entries import (
    PROPOSAL,
    ROLES,
    LogEntry,
    asks_for_two,
    checked_name,
    proposal_key,
    stated_roles,
)
from accountant.book.chain.roles import Roles
from accountant.book.limits.terms import changed_words
from accountant.book.log import Log
from accountant.errors import LedgerCorrupt, ParameterError, RoleRefused


def terms_of_one(
    log: Log, opening: LogEntry, last: LogEntry, checked: str
) -> tuple[str, int] | None:
    """Return why terms of a data set lack a second curator, and in which entry; None if none do.

    Entries of terms are looked at from ``last`` back, to the one with the hash ``checked``, or to
    the ``opening``.  Call it inside a transaction.
    """
    stating_roles = []  # the numbers of the entries that state roles, the latest first
    roles = log.head.roles_after
    while roles:
        stating_roles.append(roles)
        # a damaged entry cannot lead in a circle
        roles = min(stated_roles(log.entry(roles).facts), roles - 1)
    roles_at = log.signatures.roles_at
    is_asked_for = asks_for_two(opening.facts)
    if not is_asked_for and not any(needs_two(roles_at(seq)) for seq in stating_roles):
        return None
    entry = last
    while entry.hash not in {checked, opening.hash}:
        roles = next((seq for seq in stating_roles if seq < entry.seq), 0)
        if not roles:  # the entry, and those before it, are older than the first roles
            return None
        before = log.last_terms(opening.facts["dataset"], entry.seq - 1) or opening
        why = missing_approval(entry, before, roles_at(roles), log.entry)
        if why:
            return why, entry.seq
        entry = before
    return None


def append_or_propose(
    log: Log,
    kind: str,
    facts: dict[str, Any],
    dataset: str | None,
    before: dict[str, Any],
    changed_at: int,
) -> LogEntry:
    """Append a change, or a proposal of it where a second curator must make the same call.

    ``before`` are the terms as they are, and ``changed_at`` the number of the entry that states
    them, or the roles.
    """
    if not needs_second(log.roles, kind, before, facts):
        return log.append(kind, facts, dataset)
    proposal = log.entry_with_key(proposal_key(dataset))
    written = {
        "kind": kind, "dataset": dataset, "author": log.author, "roles": log.head.roles_after,
    }  # fmt: skip
    why = refusal_of(proposal, {**facts, **written}, changed_at)
    if proposal is not None and not why:
        return log.append(kind, {**facts, "proposal": proposal.seq}, dataset)
    if why == own_proposal(log.author):
        raise RoleRefused(log.name, why)
    stated = {"proposed": proposed_facts(facts, kind), "reason": facts["reason"]}
    return log.append(PROPOSAL, stated, dataset)


def is_open(log: Log, proposal: LogEntry, changed_at: int) -> bool:
    """Return whether a proposal waits for another curator; inside a transaction.

    ``changed_at`` is the number of the last entry that stated the same terms, or the roles.
    """
    last_proposal = log.entry_with_key(proposal_key(proposal.facts["dataset"]))
    is_last = last_proposal is not None and last_proposal.seq == proposal.seq
    is_of_roles_in_force = stated_roles(proposal.facts) == log.head.roles_after
    return is_last and is_of_roles_in_force and proposal.seq > changed_at


def proposed_words(log: Log, proposal: LogEntry) -> str:
    """Return in words what a proposal would change."""
    try:
        facts = {**proposal.facts, **proposal.facts["proposed"]}
        if facts["dataset"] is None:
            return f"other roles ({facts['reason']})"
        return changed_words(facts)
    except (KeyError, TypeError, ValueError):
        problem = "an entry does not say what it must"
        raise LedgerCorrupt(log.name, problem, proposal.seq) from None


def open_proposal(log: Log, dataset: str | None, changed_at: int) -> str:
    """Return the open proposal for a data set, or of roles, in words; "" where there is none."""
    if not log.head.roles_after:
        return ""
    proposal = log.entry_with_key(proposal_key(dataset))
    if proposal is None or not is_open(log, proposal, changed_at):
        return ""
    what, author = proposed_words(log, proposal), proposal.facts["author"]
    return f"{what}, proposed by {author}; another curator approves it by the same call"


def outcome_of(log: Log, proposal: LogEntry, changed_at: int) -> tuple[str, str]:
    """Return what came of a proposal for a data set, and who seconded it; inside a transaction.

    It is open, seconded or lapsed.  ``changed_at`` is the number of the last entry of its terms.
    """
    if is_open(log, proposal, changed_at):
        return "open", ""
    rows = log.storage.ask(  # the next change of the terms, which seconds the proposal or ends it
        "SELECT seq FROM entries WHERE dataset = :d AND seq > :seq AND kind = 'terms' "
        "ORDER BY seq LIMIT 1",
        d=proposal.facts["dataset"],
        seq=proposal.seq,
    )
    change = log.entry(rows[0][0]).facts if rows else {}
    if change.get("proposal") != proposal.seq:
        return "lapsed", ""
    return "seconded", change["author"]


def set_roles(log: Log, roles: Roles, reason: str) -> Roles | None:
    """State other roles, or propose them, and return those in force; see `Book.set_roles`."""
    if not isinstance(roles, Roles):
        raise ParameterError("roles", roles, "Roles, with the public keys of curators")
    facts = {"reason": checked_name("reason", reason)}
    with log.writing():
        if "mac" in log.head.facts:
            allowed = "of a book that is not signed with one secret: such a book stays with it"
            raise ParameterError("roles", log.name, allowed)
        if log.roles is None:
            log.append_roles(roles, facts)
        else:
            is_asked_for = log.asked_before(log.head.seq + 1)
            if is_asked_for and len(roles.facts()["curators"]) < 2:
                allowed = "keys of at least 2 people, as a data set asks for two curators"
                raise ParameterError("curators", roles.curators, allowed)
            append_or_propose(
                log,
                ROLES,
                {**roles.facts(), **facts},
                None,
                guarded_roles({}, is_asked_for),
                log.head.roles_after,
            )
        return log.roles
