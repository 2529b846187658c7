"""Opening a data set: what is stated once.  `terms_changes` writes what may change later."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Any, NamedTuple

from accountant.accountants.budget import Budget
from accountant.book.account import Account
from accountant.book.chain.hash_chain import canonical_json
from accountant.book.limits.terms import utc_time
from accountant.book.log import Log
from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.ledger.composition_notions import ORDER_RANGE, notion_of

USERS = IntegerRange(1, (1 << 31) - 1)


class DatasetTerms(NamedTuple):
    """The stated terms of a data set; None where the caller leaves the choice to the book."""

    budget: Budget | None
    notion: str | None
    order: float | None
    users: int | None
    unit: str | None
    idealised: bool | None = None
    expires: str | datetime | None = None
    people: str | None = None

    def checked_facts(self) -> dict[str, Any]:
        """Return the terms as an entry states them, each checked."""
        if not isinstance(self.budget, Budget):
            raise ParameterError("budget", self.budget, "a Budget")
        budget = self.budget
        if self.order is not None:
            ORDER_RANGE.check("order", self.order)  # also where the notion has none: it is written
        notion = notion_of(self.notion, budget, self.order)
        return {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "notion": notion.name,
            "order": notion.order,
            "users": None if self.users is None else USERS.check("users", self.users),
            "unit": "one row" if self.unit is None else checked_name("unit", self.unit),
            **({"idealised": True} if self._takes_idealised() else {}),
            **({} if self.expires is None else {"expires": utc_time("expires", self.expires)}),
            **({} if self.people is None else {"people": checked_name("people", self.people)}),
        }

    def _takes_idealised(self) -> bool:
        if self.idealised is not None and not isinstance(self.idealised, bool):
            raise ParameterError("idealised", self.idealised, "True or False")
        return bool(self.idealised)

    def write(self, log: Log, name: str) -> None:
        """Write the terms, unless another process did so first."""
        facts = self.checked_facts()
        with log.writing():
            if log.entry_with_key(dataset_key(name)) is None:
                log.append("dataset", facts, name, dataset_key(name))

    def refuse_unless_equal(self, account: Account) -> None:
        """Raise `ParameterError` unless the stored data set has these terms."""
        opened, terms = account.opening, account.terms
        # a script that opened it goes on after the budget was raised
        budget = opened.budget if self.budget == opened.budget else terms.budget
        expires = None if self.expires is None else utc_time("expires", self.expires)
        for argument, given, held in (
            ("budget", self.budget, budget),
            ("expires", expires, expires if expires == opened.expires else terms.expires),
            ("notion", self.notion, account.notion.name),
            ("order", self.order, account.notion.order),
            ("users", self.users, account.users),
            ("unit", self.unit, account.unit),
            ("idealised", self.idealised, account.idealised),
            ("people", self.people, account.people),
        ):
            if given is not None and given != held:
                raise ParameterError(argument, given, f"{held!r}, as the data set was opened")


def dataset_key(name: str) -> str:
    """Return the key of a data set's first entry."""
    return canonical_json({"dataset": name})


def checked_name(argument: str, name: object) -> str:
    """Return the name, or refuse one that could look like another when it is shown."""
    if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable():
        raise ParameterError(argument, name, "1 to 200 printable characters")
    if name != name.strip() or name != unicodedata.normalize("NFC", name):
        allowed = "without spaces at its ends and in Unicode's composed form (NFC)"
        raise ParameterError(argument, name, allowed)
    return name
