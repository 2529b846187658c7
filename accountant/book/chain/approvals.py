"""Which changes need two curators, and whether a proposal by another curator approves a change.

The first curator's call writes a proposal, and the same call by a second one writes the change,
which names the proposal in the fact "proposal".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accountant.book.chain.entries import (
    CHANGES,
    EVERY_CLOCK,
    PROPOSAL,
    ROLES,
    TERMS,
    LogEntry,
    asks_for_two,
)
from accountant.book.chain.roles import LISTS, Roles


def needs_two(roles: Roles | None) -> bool:
    """Return whether roles ask for two curators, where a change gives more."""
    return roles is not None and roles.raise_needs > 1


def needs_second(
    roles: Roles | None, kind: str, before: dict[str, Any], after: dict[str, Any]
) -> bool:
    """Return whether a change needs a second curator: other roles, more budget, or a later end.

    ``before`` and ``after`` are the facts of two entries that state the terms of a data set, or the
    roles.  The roles ask for two curators, or the data set itself does.
    """
    if roles is None or not (needs_two(roles) or asks_for_two(before)):
        return False
    if kind == ROLES:
        return True
    return kind == TERMS and (
        asks_for_two(before) > asks_for_two(after)
        or after["epsilon"] > before["epsilon"]
        or after["delta"] > before["delta"]
        or (after.get("expires") or EVERY_CLOCK) > (before.get("expires") or EVERY_CLOCK)
    )


def guarded_roles(facts: dict[str, Any], is_asked_for: bool) -> dict[str, Any]:
    """Return the facts of roles, which need two curators where a data set asks for them.

    Else one curator could add a second key of his own.
    """
    return {**facts, "raise_needs": 2} if is_asked_for else facts


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


def missing_approval(
    entry: LogEntry, before: LogEntry, roles: Roles | None, entry_of: Callable[[int], LogEntry]
) -> str:
    """Return why an entry lacks a second curator, in words; "" if it has one, or needs none.

    ``before`` is the entry that stated the same terms before, or the roles, and ``roles`` are those
    in force then.  ``entry_of`` returns the entry with a number.
    """
    facts = entry.facts
    if not needs_second(roles, entry.kind, before.facts, facts):
        return ""
    number = facts.get("proposal", 0)
    is_earlier = isinstance(number, int) and 0 < number < entry.seq
    why = refusal_of(entry_of(number) if is_earlier else None, facts, before.seq)
    if why:
        return f"needs two curators, and {why}"
    return ""
