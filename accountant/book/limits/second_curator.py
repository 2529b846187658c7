"""Changes that give more, where the roles of a book ask for two curators, and of the roles.

The first curator's call writes a proposal, and the same call by a second one writes the change,
which names the proposal.  A proposal is open until the roles change, or the terms of its data set.
"""

from __future__ import annotations

from typing import Any

from accountant.book.chain.entries import (
    EVERY_CLOCK,
    PROPOSAL,
    ROLES,
    TERMS,
    LogEntry,
    checked_name,
    proposal_key,
)
from accountant.book.chain.roles import LISTS, Roles
from accountant.book.limits.terms import CHANGES, changed_words
from accountant.book.log import Log
from accountant.errors import ParameterError, RoleRefused


def needs_second(roles: Roles, kind: str, before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Return whether a change needs a second curator: other roles, more budget, or a later end.

    ``before`` and ``after`` are the facts of two entries that state the terms of a data set.
    """
    if roles.raise_needs == 1:
        return False
    if kind == ROLES:
        return True
    return kind == TERMS and (
        after["epsilon"] > before["epsilon"]
        or after["delta"] > before["delta"]
        or (after.get("expires") or EVERY_CLOCK) > (before.get("expires") or EVERY_CLOCK)
    )


def proposed_facts(facts: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return what an entry changes, as a proposal of it states that."""
    names = (*LISTS.values(), "raise_needs")
    if kind == TERMS:
        names = ("change", *CHANGES[facts["change"]])
    return {"kind": kind, **{name: facts[name] for name in names}}


def refusal_of(proposal: LogEntry | None, facts: dict[str, Any], changed_at: int) -> str:
    """Return why a proposal does not approve an entry with these facts, in words; "" if it does.

    ``changed_at`` is the number of the last entry that stated the same terms, or the roles.
    """
    if proposal is None or proposal.kind != PROPOSAL:
        return "names no proposal of another curator"
    stated = proposal.facts
    if stated["dataset"] != facts["dataset"] or stated["proposed"] != proposed_facts(
        facts, facts["kind"]
    ):
        return "names a proposal of another change"
    if stated["roles"] != facts["roles"] or proposal.seq < changed_at:
        return "names a proposal from before the last change"
    if stated["author"] == facts["author"]:
        return own_proposal(facts["author"])
    return ""


def own_proposal(author: str) -> str:
    """Return why the author of a proposal does not approve it."""
    return f"{author!r} has proposed it: another curator approves it by the same call"


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
    roles = log.roles
    if roles is None or not needs_second(roles, kind, before, facts):
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


def open_proposal(log: Log, dataset: str | None, changed_at: int) -> str:
    """Return the open proposal for a data set, or of roles, in words; "" where there is none."""
    if not log.head.roles_after:
        return ""
    proposal = log.entry_with_key(proposal_key(dataset))
    roles = log.head.roles_after
    if proposal is None or proposal.facts["roles"] != roles or proposal.seq < changed_at:
        return ""
    facts = {**proposal.facts, **proposal.facts["proposed"]}
    what = changed_words(facts) if dataset is not None else f"other roles ({facts['reason']})"
    author = proposal.facts["author"]
    return f"{what}, proposed by {author}; another curator approves it by the same call"


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
            append_or_propose(
                log, ROLES, {**roles.facts(), **facts}, None, {}, log.head.roles_after
            )
        return log.roles
