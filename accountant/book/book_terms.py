"""Terms of data sets that change: each change is an entry of the log, with a reason."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from accountant.accountants.budget import Budget
from accountant.book.book_history import BookHistory
from accountant.book.dataset_opening import checked_name
from accountant.book.history import Status
from accountant.book.limits.terms import utc_time
from accountant.book.terms_changes import close_dataset, raise_budget, set_expiry, set_quota


class BookTerms(BookHistory):
    """What may be spent of a data set, until when, and by whom.

    Parameters
    ----------
    log : Log
        What `Book.open` opens.
    """

    def close_dataset(self, name: str, reason: str) -> Status:
        """Close a data set for good: nothing more is spent, and stored answers stay readable.

        Steps of a plan that was paid for are refused too.

        Parameters
        ----------
        name : str
            Name of the data set.
        reason : str
            Why; it stays in the log.

        Returns
        -------
        Status
            Where the data set stands.
        """
        return self._changed(name, reason, close_dataset)

    def raise_budget(self, name: str, budget: Budget, reason: str) -> Status:
        """Give a data set another budget, in the notion and at the order of its opening.

        If answers decided on the change, the deltas of all its budgets add up
        (docs/proofs/two_filters.md).

        Parameters
        ----------
        name : str
            Name of the data set.
        budget : Budget
            One that holds what was spent; its delta may not be less than before.
        reason : str
            Why; it stays in the log.

        Returns
        -------
        Status
            Where the data set stands.

        Raises
        ------
        DatasetClosed
            If it was closed.
        """
        return self._changed(name, reason, raise_budget, budget)

    def expire(self, name: str, when: str | datetime, reason: str) -> Status:
        """Set the time from which on a data set refuses to spend; it may be moved on later.

        The latest time in the log counts, also where the clock of a machine runs behind it.

        Parameters
        ----------
        name : str
            Name of the data set.
        when : str or datetime
            The time: ISO 8601, UTC where it states no time zone.
        reason : str
            Why; it stays in the log.

        Returns
        -------
        Status
            Where the data set stands.

        Raises
        ------
        DatasetClosed
            If it was closed.
        """
        return self._changed(name, reason, set_expiry, utc_time("when", when))

    def set_quota(self, name: str, author: str, quota: Budget | float, reason: str) -> Status:
        """Limit what one author's own spends may cost, within the budget of the data set.

        A quota limits use.  What protects people is the budget, which all authors share.  Authors
        are who they say they are.

        Parameters
        ----------
        name : str
            Name of the data set.
        author : str
            Who; see `Book.open`.
        quota : float or Budget
            The largest epsilon of the author's own spends, as `quotas` shows it, at the delta of
            the data set; 0 refuses all.  With ``users`` it is for each user, with a window for
            each window; spends on several buckets add up.
        reason : str
            Why; it stays in the log.

        Returns
        -------
        Status
            Where the data set stands.

        Raises
        ------
        DatasetClosed
            If it was closed.
        """
        return self._changed(name, reason, set_quota, author, quota)

    def _changed(
        self, name: str, reason: str, change: Callable[..., None], *stated: object
    ) -> Status:
        """Change the terms of a data set, with a reason, and return where it stands."""
        account = self._account(name)
        change(account, *stated, checked_name("reason", reason))
        return self.status(name)
