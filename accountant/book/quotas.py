"""Quotas: what an author may spend of a data set, found under a key of the author's own.

A quota is the largest epsilon that the spends of one author may cost.  The last entry under the
author's key states it, as "quota", together with what the author has charged so far, as "own".
This entry is the one that set the quota, or a later charge of the author, which repeats it.  So a
spend reads one entry for it, whatever the number of authors.  A charge of an author without a
quota states that "own" is null, while other authors of the data set have one.

Earlier versions *listed* all quotas in each entry of terms, and every charge stated what its author
had charged.  Charges of such a data set go on so.  The first quota that is set, or a correction of
the clock, changes over: it gives each author of the list an entry under a key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from accountant.accountants.budget import TOLERANCE, Budget
from accountant.book.account import Account
from accountant.book.chain.entries import author_key
from accountant.book.limits.charges import Charge
from accountant.book.limits.windows import WHOLE, Parts, decoded, encoded
from accountant.errors import BudgetExceeded, LedgerCorrupt
from accountant.ledger.totals import CompositionNotion, Total, largest_total


class AuthorLimit(NamedTuple):
    """The quota of an author, None for no quota, and what the author charged in each part of time.

    With users of own budgets the one part is the largest total of any user.
    """

    author: str
    quota: float | None
    parts: Parts

    def refuse_above(
        self,
        notion: CompositionNotion[Any],
        budget: Budget,
        before: Total[Any],
        after: Total[Any],
    ) -> None:
        """Raise `BudgetExceeded` if a spend is more than what remains of the quota.

        What costs nothing, such as a run of a plan that was set aside, is never refused.
        """
        if self.quota is None or after == before or not is_over(self.quota, notion, after):
            return
        spent = notion.epsilon(before)
        remedy = f"it is the quota of {self.author!r}, which Book.set_quota changes"
        requested = notion.epsilon(after) - spent
        raise BudgetExceeded(spent, requested, budget, "epsilon", self.quota, remedy)


def is_over(quota: float, notion: CompositionNotion[Any], own_total: Total[Any]) -> bool:
    """Return whether an author's own spends cost more than the author's quota."""
    return not notion.epsilon(own_total) <= quota * (1 + TOLERANCE)


def author_limit(
    account: Account, notion: CompositionNotion[Any], author: str
) -> AuthorLimit | None:
    """Return what the last entry under an author's key states; inside a transaction.

    It is None for an author without a quota.  Where quotas are listed, it is that of every author.
    """
    terms, log = account.terms, account.log
    if not terms.has_quotas:
        return None
    last_entry = log.entry_with_key(author_key(account.name, author))
    listed_quota = terms.listed_quotas.get(author)
    if last_entry is None:
        return AuthorLimit(author, listed_quota, {}) if terms.listed_quotas else None
    facts = last_entry.facts
    # Earlier versions stated in an entry of terms, as "used", what every author had charged.
    is_of_all = "used" in facts
    whose = author if is_of_all else facts.get("whose", facts["author"])
    own = facts["used"].get(author) if is_of_all else facts.get("own")
    if (facts["dataset"], whose) != (account.name, author) or own is None:
        raise LedgerCorrupt(log.name, "does not say what an author spent", last_entry.seq)
    if terms.listed_quotas:
        return AuthorLimit(author, listed_quota, decoded(notion, own))
    # Without a quota it is an entry from the time when quotas were listed.
    return AuthorLimit(author, facts["quota"], decoded(notion, own)) if "quota" in facts else None


def own_facts(account: Account, charge: Charge) -> dict[str, Any]:
    """Return what a charge states of its author, or raise `BudgetExceeded` above the quota.

    It is empty while no author of the data set has a quota.
    """
    if not account.terms.has_quotas:
        return {}
    notion, author = charge.notion, account.log.author
    limit = author_limit(account, notion, author)
    if limit is None:
        return {"own": None}
    if account.users is None:
        parts = charge.parts_after(account.window, limit.parts)
        before = account.total_of(notion, limit.parts)
        after = account.total_of(notion, parts)
    else:
        authors = account.own_totals()
        before, after = authors.largest_of_payers(author, charge)
        parts = {WHOLE: largest_total([authors.parts(author).get(WHOLE, notion.zero), after])}
    limit.refuse_above(notion, account.budget, before, after)
    facts = {"own": encoded(notion, parts)}
    return facts if account.terms.listed_quotas else {**facts, "quota": limit.quota}
