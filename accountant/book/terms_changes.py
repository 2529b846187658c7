"""Changes of the terms of a data set: each is an entry in the log, with a reason."""

from __future__ import annotations

from typing import Any

from accountant.accountants.budget import Budget
from accountant.book.account import Account
from accountant.book.dataset_opening import checked_name
from accountant.book.terms import Terms, exceeds_every_way
from accountant.errors import ParameterError
from accountant.formatting import format_lower, format_upper


def close_dataset(account: Account, reason: str) -> None:
    """Close a data set for good, unless it is closed."""
    checked_name("reason", reason)
    with account.log.writing():
        if not account.follow_terms().closed:
            _append(account, "closed", {}, reason)


def raise_budget(account: Account, budget: Budget, reason: str) -> None:
    """Set another budget, within which all that was spent must be."""
    checked_name("reason", reason)
    if not isinstance(budget, Budget):
        raise ParameterError("budget", budget, "a Budget")
    account.read_ahead()
    with account.log.writing():
        held = account.follow_terms().budget
        if budget.delta < held.delta:
            allowed = f"one with delta of at least {held.delta:g}: what was spent relies on it"
            raise ParameterError("budget", budget, allowed)
        before, notion = account.standing(), account.notions_of(budget)
        after = notion[before.notion is not account.notion]
        each = None if account.users is None else account.user_totals().totals
        if exceeds_every_way(after, before.total, each):
            unit, spent, limit = after.shown(before.total)
            allowed = f"one that holds what was spent, {unit} {format_upper(spent)}"
            allowed += f" (its limit is {format_lower(limit)})"
            raise ParameterError("budget", budget, allowed)
        _append(account, "raised", {"epsilon": budget.epsilon, "delta": budget.delta}, reason)


def set_expiry(account: Account, when: str, reason: str) -> None:
    """Set the time from which on nothing is spent; it may be later than the one before."""
    checked_name("reason", reason)
    with account.log.writing():
        account.follow_terms()
        _append(account, "expires", {"expires": when}, reason)


def _append(account: Account, change: str, facts: dict[str, Any], reason: str) -> None:
    """Append the whole terms with a change; a closed data set takes none."""
    terms: Terms = account.terms
    terms.refuse_if_closed(account.name)
    whole = {**terms.facts(), **facts, "change": change, "reason": reason}
    account.log.append("terms", whole, account.name)
