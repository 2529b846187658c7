"""What data sets of a book have spent, and what remains."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accountant.book.account import Account
from accountant.book.dataset_opening import checked_name, dataset_key
from accountant.book.history import (
    Buckets,
    PeopleTable,
    Quotas,
    Status,
    buckets_of,
    people_of,
    quotas_of,
    status_of,
    statuses_table,
)
from accountant.book.log import Log
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.plans.plan import Plan, as_plan
from accountant.table_display import Table, TableDisplay


class BookStatus(TableDisplay):
    """The accounts of a book, and where they stand; nothing here writes.

    Parameters
    ----------
    log : Log
        What `Book.open` opens.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._accounts: dict[str, Account] = {}

    @property
    def names(self) -> list[str]:
        """Return the names of the data sets, in the order in which they were opened."""
        with self._log.reading():
            rows = self._log.storage.ask("SELECT dataset FROM datasets ORDER BY seq")
        return [row[0] for row in rows]

    def status(self, name: str) -> Status:
        """Return budget, notion, total and limit of a data set.

        Parameters
        ----------
        name : str
            Name of the data set.

        Returns
        -------
        Status
            Its ``epsilon`` is rounded up.
        """
        account = self._account(name)
        with self._log.reading():
            return status_of(account)

    def spent(self, name: str) -> float:
        """Return the epsilon at the budget's delta of all spends, reservations included.

        It is what a fixed plan of that cost has; while answers still choose what comes next the
        guarantee is the budget.  With users, it is the largest of theirs.

        Parameters
        ----------
        name : str
            Name of the data set.

        Returns
        -------
        float
            Rounded up.
        """
        return self.status(name).epsilon

    def spent_each(self, name: str) -> NDArray[np.float64]:
        """Return `spent` for each user of a data set that was opened with ``users``.

        Parameters
        ----------
        name : str
            Name of the data set.

        Returns
        -------
        array of shape (users,)
            Rounded up.
        """
        account = self._account(name)
        account.read_ahead()
        with self._log.reading():
            notion, _ = account.standing()
            return account.user_totals().per_user(notion.epsilon)

    def remaining(self, name: str, plan: Plan) -> int:
        """Return how many more times a release, or a whole plan, fits what a data set has left.

        Parameters
        ----------
        name : str
            Name of the data set.
        plan : Plan
            A mechanism, a loss or a plan.

        Returns
        -------
        int
            Rounded down; at most 10^9, and 0 after its end.  Of users or buckets with own budgets,
            for all of them; runs of a plan that was set aside count.

        Raises
        ------
        UnsupportedPlan
            If the notion of the data set cannot add it up.
        """
        account = self._account(name)
        with self._log.reading():
            notion, total = account.standing()
            if account.terms.is_over(self._log.latest):
                return 0
            free = account.free_runs(as_plan(plan))
        try:
            return free + notion.remaining(total, as_plan(plan))
        except UnsupportedPlan:
            if not free:
                raise
            return free

    def quotas(self, name: str) -> Quotas:
        """Return what each author spent of a data set, and may spend.

        It reads the whole log once; `status` has those with a quota at once.

        Parameters
        ----------
        name : str
            Name of the data set.

        Returns
        -------
        Quotas of Quota
            By author; each ``epsilon`` is that of the author's spends alone, rounded up: with
            ``users`` the largest of any user, with a window in the one that is open.
        """
        account = self._account(name)
        with self._log.reading():
            return quotas_of(account)

    def buckets(self, name: str) -> Buckets:
        """Return what the people of each bucket of a data set spent.

        It reads the whole log once; `status` has the largest at once.

        Parameters
        ----------
        name : str
            Name of a data set that was opened with ``buckets``.

        Returns
        -------
        Buckets of Bucket
            Those that paid for something, by name; each ``epsilon`` is rounded up.
        """
        account = self._account(name)
        if account.buckets is None:
            raise ParameterError("name", name, "a data set that was opened with buckets=")
        with self._log.reading():
            return buckets_of(account)

    def people(self) -> PeopleTable:
        """Return the sums of budgets over data sets about the same people.

        What all data sets of a name together reveal of a person has at most the sums of epsilons
        and deltas of their budgets, in whatever order they are asked.  A budget of a window is of a
        person's data of one window, and a budget of buckets of those in one of them.

        Returns
        -------
        PeopleTable of People
            For each name that `dataset` was given as ``people``; sums are rounded up.

        References
        ----------
        Vadhan & Zhang (2023), Lyu (2022): concurrent composition of interactive mechanisms.
        """
        return people_of(self.status(name) for name in self.names)

    def _table(self) -> Table:
        return statuses_table(self.status(name) for name in self.names)

    def _found(self, name: str) -> Account | None:
        if name not in self._accounts:
            with self._log.reading():
                opened = self._log.entry_with_key(dataset_key(name))
            if opened is None:
                return None
            self._accounts[name] = Account(self._log, opened)
        return self._accounts[name]

    def _account(self, name: str) -> Account:
        account = self._found(checked_name("name", name))
        if account is None:
            raise ParameterError("name", name, "a data set of this book; dataset() opens one")
        return account
