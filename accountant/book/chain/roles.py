"""The roles of a book: who may write which entries, by their public keys.

Curators open data sets and claims and change terms, analysts spend, and auditors read, and add
evidence on claims.  One person may have several roles.  An entry of kind "roles" states them all;
each later entry names the entry that states the roles in force, and is signed by its author.
`ACTS` is the one table of which act is whose: the log asks it before it writes an entry, and
verification after it has read one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from accountant.book.chain.author_keys import AuthorKey, PublicKey, fingerprint
from accountant.book.chain.entries import (
    CLAIM,
    CLOCK,
    EVIDENCE,
    PROPOSAL,
    RESTORED,
    ROLES,
    TERMS,
)
from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.table_display import Table, TableDisplay

CURATOR, ANALYST, AUDITOR = "curator", "analyst", "auditor"
# the fact of an entry of roles that lists the keys of each role
LISTS = {CURATOR: "curators", ANALYST: "analysts", AUDITOR: "auditors"}
RAISE_NEEDS = IntegerRange(1, 2)  # curators whom a change that gives more needs
KeyLine = str | os.PathLike[str]


class Act(NamedTuple):
    """Whose act an entry is, and what it does, in words."""

    role: str
    words: str


SET_ASIDE = "set aside"  # the act of a "plan" entry that charges runs at the opening of a data set
ACTS = {
    "dataset": Act(CURATOR, "opens a data set"),
    SET_ASIDE: Act(CURATOR, "sets a plan aside"),
    TERMS: Act(CURATOR, "changes the terms of a data set"),
    PROPOSAL: Act(CURATOR, "proposes a change"),
    ROLES: Act(CURATOR, "changes the roles"),
    CLOCK: Act(CURATOR, "corrects the clock"),
    RESTORED: Act(CURATOR, "accepts a book that was put back"),
    CLAIM: Act(CURATOR, "opens a claim"),
    EVIDENCE: Act(AUDITOR, "adds evidence"),
    "plan": Act(ANALYST, "pays for a plan"),
    "reserve": Act(ANALYST, "spends"),
    "step": Act(ANALYST, "makes a step of a plan"),
    "release": Act(ANALYST, "stores an answer"),
    "failed": Act(ANALYST, "notes that a release failed"),
    "seed": Act(ANALYST, "uses seeded noise"),
}


def with_article(role: str) -> str:
    """Return "a curator", say."""
    return f"{'an' if role[0] == 'a' else 'a'} {role}"


def act_of(facts: dict[str, Any]) -> Act | None:
    """Return the act of an entry; None of a kind that no role may write."""
    kind = facts["kind"]
    return ACTS.get(SET_ASIDE if kind == "plan" and "runs" in facts else kind)


@dataclass(frozen=True)
class Roles(TableDisplay):
    """The people of a book, by public keys of OpenSSH: ``ssh-ed25519 AAAA... NAME``.

    The comment of a key is the name of its holder, and the author of what the holder writes.

    Parameters
    ----------
    curators : iterable of str or path
        Keys, or files of one key each, of those who open data sets, raise, close, expire, set
        quotas and change roles; at least one.
    analysts : iterable of str or path
        Keys of those who spend.
    auditors : iterable of str or path
        Keys of those who read, may sign heads, and add evidence on claims.
    raise_needs : {1, 2}
        How many curators a change needs that gives more: a larger budget, a later end, other roles.

    Examples
    --------
    >>> from accountant import Roles
    >>> key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGq5d3PrZ3tqyiGKEpAJ6Zqwg2rWTOrRxrMvRZ2wAPqR ada"
    >>> Roles(curators=[key], analysts=[key]).roles_of("ada")
    ('curator', 'analyst')
    """

    curators: Iterable[KeyLine]
    analysts: Iterable[KeyLine] = ()
    auditors: Iterable[KeyLine] = ()
    raise_needs: int = 1

    def __post_init__(self) -> None:
        for argument in LISTS.values():
            stated = getattr(self, argument)
            if isinstance(stated, str | os.PathLike):
                raise ParameterError(argument, str(stated), "a list of keys")
            lines = dict.fromkeys(PublicKey.of(argument, line).line for line in stated)
            object.__setattr__(self, argument, tuple(lines))
        needed = RAISE_NEEDS.check("raise_needs", self.raise_needs)
        if len(self.facts()["curators"]) < needed:
            raise ParameterError("curators", self.curators, f"keys of at least {needed} people")
        different = {key for argument in LISTS.values() for key in self._keys_in(argument)}
        for field in ("name", "raw"):
            if len({getattr(key, field) for key in different}) < len(different):
                allowed = "keys of which each has one name, that no other key has"
                raise ParameterError("roles", sorted(key.line for key in different), allowed)

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Roles:
        """Return the roles that an entry states.

        Parameters
        ----------
        facts : dict
            As `facts` returns them.

        Returns
        -------
        Roles
            The roles.
        """
        lists = {argument: facts[argument] for argument in LISTS.values()}
        # `PublicKey.of` takes a text without a space for a path: one in an entry would be read as a
        # file of the reader's.
        if not all(" " in line for lines in lists.values() for line in lines):
            raise ParameterError("roles", lists, "lines of public keys")
        return cls(**lists, raise_needs=facts["raise_needs"])

    def facts(self) -> dict[str, Any]:
        """Return the roles as an entry states them.

        Returns
        -------
        dict
            The lists of keys, and how many curators a raise needs.
        """
        lists = {argument: list(getattr(self, argument)) for argument in LISTS.values()}
        return {**lists, "raise_needs": self.raise_needs}

    def _keys_in(self, argument: str) -> list[PublicKey]:
        return [PublicKey.of(argument, line) for line in getattr(self, argument)]

    @cached_property
    def keys(self) -> dict[str, PublicKey]:
        """Return the public key of each person, by name."""
        return {key.name: key for argument in LISTS.values() for key in self._keys_in(argument)}

    def roles_of(self, name: str) -> tuple[str, ...]:
        """Return the roles of a person.

        Parameters
        ----------
        name : str
            The comment of the person's key.

        Returns
        -------
        tuple of str
            "curator", "analyst" or "auditor"; empty for a name without a key.
        """
        line = self.keys[name].line if name in self.keys else ""
        return tuple(role for role, argument in LISTS.items() if line in getattr(self, argument))

    def name_of(self, key: AuthorKey) -> str | None:
        """Return the name of the holder of a private key.

        Parameters
        ----------
        key : AuthorKey
            The private key.

        Returns
        -------
        str or None
            The name; None of a key that has no role.
        """
        return next((name for name, known in self.keys.items() if known.raw == key.public), None)

    def refusal(self, author: str, facts: dict[str, Any]) -> str:
        """Return why an author may not write an entry.

        Parameters
        ----------
        author : str
            The name of one of the people.
        facts : dict
            What the entry states.

        Returns
        -------
        str
            Whose act it is, in words; "" where the author may write it.
        """
        act, roles = act_of(facts), self.roles_of(author)
        if act is None:
            return f"no role writes entries of the kind {facts['kind']!r} here"
        if act.role in roles:
            return ""
        whose = ", ".join(name for name in self.keys if act.role in self.roles_of(name)) or "nobody"
        author_is = " and ".join(map(with_article, roles))
        return f"{author!r} is {author_is}, and only {with_article(act.role)} {act.words}: {whose}"

    def refuse_unless_curator(self, key: object) -> str:
        """Return the name of the holder of a key, who must be a curator of these roles.

        Parameters
        ----------
        key : object
            What the caller gave as key.

        Returns
        -------
        str
            The curator's name.
        """
        name = self.name_of(key) if isinstance(key, AuthorKey) else None
        if name is None or CURATOR not in self.roles_of(name):
            allowed = "the private key of one of the curators, such as ~/.ssh/id_ed25519"
            shown = fingerprint(key.public) if isinstance(key, AuthorKey) else "no private key"
            raise ParameterError("key", shown, allowed)
        return name

    def _table(self) -> Table:
        rows = [
            (" and ".join(self.roles_of(name)), name, key.fingerprint)
            for name, key in self.keys.items()
        ]
        return Table(("roles", "name", "key"), rows)
