"""Changes of the terms of a data set: each is an entry in the log, with a reason."""

from __future__ import annotations

from typing import Any

from accountant.accountants.budget import Budget
from accountant.book.account import Account
from accountant.book.dataset_opening import checked_name
from accountant.book.limits.terms import Terms, exceeds_every_way
from accountant.domains import Interval
from accountant.errors import ParameterError
from accountant.formatting import format_lower, format_upper
from accountant.ledger.totals import CompositionNotion
from accountant.losses.pure_and_approximate import PureLoss

QUOTA = Interval(0.0, 1e300)


def close_dataset(account: Account, reason: str) -> None:
    """Close a data set for good, unless it is closed."""
    with account.log.writing():
        if not account.follow_terms().closed:
            _append(account, "closed", {}, reason)


def raise_budget(account: Account, budget: Budget, reason: str) -> None:
    """Set another budget, within which all that was spent must be."""
    if not isinstance(budget, Budget):
        raise ParameterError("budget", budget, "a Budget")
    account.read_ahead()
    with account.log.writing():
        current_budget = account.follow_terms().budget
        if budget.delta < current_budget.delta:
            allowed = (
                f"one with delta of at least {current_budget.delta:g}: what was spent relies on it"
            )
            raise ParameterError("budget", budget, allowed)
        before = account.standing()
        after = account.limit_under(
            _notions_under(account, budget),
            account.counts_after_plan(before.notion),
            account.log.last_charge(account.name),
            account.log.latest,
        )
        if exceeds_every_way(after, before.total, account.each_total()):
            unit, spent, limit = after.shown(before.total)
            allowed = f"one that holds what was spent, {unit} {format_upper(spent)}"
            allowed += f" (its limit is {format_lower(limit)})"
            raise ParameterError("budget", budget, allowed)
        _append(account, "raised", {"epsilon": budget.epsilon, "delta": budget.delta}, reason)


def _notions_under(
    account: Account, budget: Budget
) -> tuple[CompositionNotion[Any], CompositionNotion[Any]]:
    """Return the notions under another budget, at the order of the opening."""
    try:
        return account.notions_of(budget)
    except ParameterError:
        order = account.notion.order
        allowed = f"a larger one: at the order of the opening, {order:.6g}, it leaves nothing"
        raise ParameterError("budget", budget, allowed) from None


def set_expiry(account: Account, when: str, reason: str) -> None:
    """Set the time from which on nothing is spent; it may be later than the one before."""
    with account.log.writing():
        account.follow_terms()
        _append(account, "expires", {"expires": when}, reason)


def set_quota(account: Account, author: str, quota: object, reason: str) -> None:
    """Set how much of the budget one author's own spends may cost."""
    checked_name("author", author)
    with account.log.reading():
        account.owns()  # most entries are read before the lock, for which others wait
    with account.log.writing():
        quotas = account.follow_terms().quotas
        epsilon = _checked_quota(account, quota)
        facts = {"quotas": {**quotas, author: epsilon}, "whose": author}
        if not quotas:  # from now on each charge states its author's total
            facts["used"] = account.stated_owns(account.standing().notion, account.owns())
        _append(account, "quota", facts, reason)


def _checked_quota(account: Account, quota: object) -> float:
    """Return the epsilon of a quota, at the delta of its data set."""
    if isinstance(quota, Budget):
        if quota.delta != account.budget.delta:
            allowed = f"an epsilon, or a Budget of delta {account.budget.delta:g} as the data set's"
            raise ParameterError("quota", quota, allowed)
        return quota.epsilon
    epsilon = QUOTA.check("quota", quota)
    notion = account.standing().notion
    smallest_epsilon = notion.epsilon(notion.cost(PureLoss(1e-12)))
    if 0 < epsilon < smallest_epsilon:
        allowed = f"0, or at least epsilon {format_upper(smallest_epsilon)}, "
        allowed += "what the notion gives any spend"
        raise ParameterError("quota", quota, allowed)
    return epsilon


def _append(account: Account, change: str, facts: dict[str, Any], reason: str) -> None:
    """Append the whole terms with a change; a closed data set takes none."""
    terms: Terms = account.terms
    terms.refuse_if_closed(account.name)
    changed_terms = {**terms.facts(), **facts, "change": change, "reason": reason}
    if account.window is not None:  # an earlier window may have spent this much
        changed_terms["largest"] = max(terms.largest, changed_terms["epsilon"])
    account.log.append("terms", changed_terms, account.name)
