"""Changes of the roles of a book, and the proposals that wait for a second curator."""

from __future__ import annotations

from accountant.book.chain.entries import ROLES, checked_name
from accountant.book.chain.roles import Roles
from accountant.book.limits.second_curator import append_or_propose
from accountant.book.log import Log
from accountant.errors import ParameterError


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
