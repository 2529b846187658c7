"""The terms of a data set: its budget, when it ends, and how many authors have a quota.

They are written when the data set is opened.  An entry of kind "terms" states the whole of them
anew, with a reason, and is the last one under the data set's key of terms: a spend finds the terms
in force in O(log n), in the transaction that charges.  Each quota is found under a key of its own
(`accountant.book.quotas`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from accountant.accountants.budget import Budget
from accountant.book.chain.entries import CLOCK
from accountant.errors import DatasetClosed, ParameterError
from accountant.ledger.totals import CompositionNotion, Total


class Terms(NamedTuple):
    """The terms in force; ``expires`` is a UTC time, from which on nothing is spent.

    ``limited_authors`` is the number of authors who have a quota under a key of their own, and
    ``listed_quotas`` has the quotas that earlier versions listed in each entry of terms.
    ``largest`` is the largest epsilon of a budget so far: a window before may have had it.
    """

    budget: Budget
    expires: str | None
    listed_quotas: dict[str, float]
    limited_authors: int = 0
    closed: str = ""  # when it was closed
    reason: str = ""  # why the terms were changed last
    largest: float = 0.0
    raise_needs: int = 1  # the curators whom a change needs that gives more

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Terms:
        """Return the terms that an entry states: the first one of a data set, or one of terms."""
        return cls(
            Budget(facts["epsilon"], facts["delta"]),
            facts.get("expires"),
            facts.get("quotas", {}),
            facts.get("limited_authors", 0),
            facts["time"] if facts.get("change") == "closed" else "",
            facts.get("reason", ""),
            facts.get("largest", facts["epsilon"]),
            facts.get("raise_needs", 1),
        )

    def facts(self) -> dict[str, Any]:
        """Return the terms as an entry states them."""
        return {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "expires": self.expires,
            "quotas": self.listed_quotas,
            **({"limited_authors": self.limited_authors} if self.limited_authors else {}),
            **({"raise_needs": self.raise_needs} if self.raise_needs > 1 else {}),
        }

    @property
    def has_quotas(self) -> bool:
        """Return whether any author of the data set has a quota."""
        return bool(self.limited_authors or self.listed_quotas)

    def is_over(self, now: str) -> bool:
        """Return whether nothing may be spent any more."""
        return bool(self.closed) or (self.expires is not None and now >= self.expires)

    def refuse_if_over(self, dataset: str, now: str, times: str = "") -> None:
        """Raise `DatasetClosed` if nothing may be spent any more.

        ``times`` are the log's time and the clock's, in words, where they differ.
        """
        self.refuse_if_closed(dataset)
        if self.is_over(now):
            # the first 19 characters of a time are those up to its second
            why = f"expired at {str(self.expires)[:19]} (UTC); Book.expire can move that time"
            raise DatasetClosed(dataset, f"{why} ({times})" if times else why)

    def refuse_if_closed(self, dataset: str) -> None:
        """Raise `DatasetClosed` if the data set was closed for good."""
        if self.closed:
            raise DatasetClosed(dataset, f"was closed at {self.closed[:19]} ({self.reason})")


def stated_quota(facts: dict[str, Any]) -> float:
    """Return the quota that an entry sets; earlier versions stated it in a list of all quotas."""
    quota: float = facts["quota"] if "quota" in facts else facts["quotas"][facts["whose"]]
    return quota


def changed_words(facts: dict[str, Any]) -> str:
    """Return what an entry of terms changed, in words."""
    change, description = facts["change"], "closed"
    if change == "raised":
        description = f"budget epsilon {facts['epsilon']:g} at delta {facts['delta']:g}"
    elif change == "expires":
        description = f"expires {facts['expires']}"
    elif change == CLOCK:
        description = f"windows counted anew by the corrected clock, {facts['time'][:19]}"
    elif change == "quota":
        description = f"quota of {facts['whose']}: epsilon {stated_quota(facts):g}"
    return f"{description} ({facts['reason']})"


def exceeds_every_way(
    notion: CompositionNotion[Any], total: Total[Any], class_totals: list[Total[Any]] | None
) -> bool:
    """Return whether a total, or with users the total of one of them, is above the limit."""
    # the largest sums may belong to different users, each of whom is within another limit
    return notion.exceeds(total) and (
        class_totals is None or any(map(notion.exceeds, class_totals))
    )


def utc_time(argument: str, value: object, number: str = "") -> str:
    """Return a time as entries state it; ``number`` says what else is allowed."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if not isinstance(moment, datetime):
        allowed = f"{number}a time such as 2026-01-31T12:00 (UTC unless it says)"
        raise ParameterError(argument, value, allowed)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="microseconds")
