"""The durable ledger: budgets of data sets in a database, spent from any process, over months."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from accountant.accountants.budget import Budget
from accountant.book.account import Account
from accountant.book.book_ledger import BookLedger
from accountant.book.databases.connection import connect
from accountant.book.databases.database_files import MissingBook
from accountant.book.dataset_opening import DatasetTerms, checked_name, dataset_key
from accountant.book.hash_chain import FIRST_PREDECESSOR, ChainHead
from accountant.book.head_pin import HeadPin
from accountant.book.history import (
    History,
    Line,
    PeopleTable,
    Quotas,
    Status,
    people_of,
    quotas_of,
    status_of,
    statuses_table,
    stored_answer,
)
from accountant.book.history_reader import Selection, read_history
from accountant.book.log import ENTRIES_CHECKED_ON_OPEN, Log
from accountant.book.signing_key import SigningKey
from accountant.book.terms import utc_time
from accountant.book.terms_changes import close_dataset, raise_budget, set_expiry, set_quota
from accountant.book.verification import Verified, verify_log
from accountant.errors import LedgerCorrupt, ParameterError
from accountant.plans.plan import Plan, as_plan
from accountant.randomness import Rng
from accountant.table_display import Table, TableDisplay


@final
class Book(TableDisplay):
    """The durable ledger: data sets, their budgets and every spend, in a log that only grows.

    Threads may share a book; every process opens its own, with `Book.open`.  A reservation is on
    disk before the data are read and an answer before it is returned, so a crash can waste budget
    and never leaks.  Entries are chained by hashes.

    Parameters
    ----------
    log : Log
        What `Book.open` opens.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from accountant import Book, Budget
    >>> from mechanisms import Laplace
    >>> folder = tempfile.TemporaryDirectory()
    >>> book = Book.open(f"sqlite:///{folder.name}/budgets.db")
    >>> status = book.dataset("ages", budget=Budget(1.0))
    >>> with book.ledger("ages", np.arange(50.0)) as ledger:
    ...     answer = ledger.release(Laplace(4.0), np.sum)
    >>> book.spent("ages"), len(book.history("ages"))
    (0.25, 1)
    >>> book.close(); folder.cleanup()
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._accounts: dict[str, Account] = {}

    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str],
        *,
        pin: str | os.PathLike[str] | None = None,
        wait: float = 30.0,
        create: bool = True,
        author: str | None = None,
        key: bytes | str | os.PathLike[str] | None = None,
    ) -> Self:
        """Open or create a book.

        Parameters
        ----------
        url : str or path
            A file, which SQLite makes, ``sqlite:///PATH`` or ``postgresql://...``.
        pin : path, optional
            A file, best on another machine, that holds the last entry's hash, so that a book put
            back from a backup is noticed.
        wait : float
            Seconds to wait for others at most.
        create : bool
            Whether a book that is not there is made.
        author : str, optional
            Who spends; by default the user of the operating system.
        key : bytes or path, optional
            A secret of at least 16 bytes, or a file of it: signs every entry that is written and
            every head, by HMAC-SHA256 (RFC 2104).  A signed book is written to with its key only.

        Returns
        -------
        Book
            The book.

        Raises
        ------
        LedgerBusy
            If others kept it locked for ``wait`` seconds.
        LedgerCorrupt
            If the last entries do not fit together, or SQLite's log ahead is damaged; `verify`
            checks all.
        """
        who = None if author is None else checked_name("author", author)
        held = None if pin is None else HeadPin(pin)
        signs = None if key is None else SigningKey(key)
        known = held is not None and held.read() is not None
        try:
            storage = connect(url, wait, create and not known)
        except MissingBook as missing:
            if not known:
                raise
            words = "is empty, though entries of it are known"
            raise LedgerCorrupt(str(missing.value), words) from None
        log = Log(storage, held, who, wait, signs)
        try:
            with log.storage.reading():
                empty = log.storage.empty
            if empty and not create:
                raise ParameterError("url", log.name, "a book that exists")  # noqa: TRY301
            if empty:
                with log.writing():
                    pass
            with log.reading():
                first = max(log.head.seq - ENTRIES_CHECKED_ON_OPEN, 0)
                start = log.entry(first).chain_head if first else ChainHead(0, FIRST_PREDECESSOR)
                for _ in log.entries_after(start):
                    pass
        except BaseException:
            log.close()
            raise
        return cls(log)

    def dataset(
        self,
        name: str,
        budget: Budget | None = None,
        notion: str | None = None,
        *,
        order: float | None = None,
        users: int | None = None,
        unit: str | None = None,
        idealised: bool | None = None,
        expires: str | datetime | None = None,
        people: str | None = None,
    ) -> Status:
        """Create a data set with its budget, or open the one that is there.

        Parameters
        ----------
        name : str
            Name of the data set.
        budget : Budget, optional
            Needed to create it.
        notion : {"pure", "zcdp", "rdp", "gdp", "pure-or-rdp"}, optional
            As in `Filter`.
        order : float, optional
            As in `Filter`.
        users : int, optional
            Each of so many users has the budget: `release_each` is paid by those who answer,
            `release` by all.
        unit : str, optional
            Who is protected; "one row" by default.
        idealised : bool, optional
            Whether its gates also draw idealised noise, whose last digits can reveal the data; they
            refuse it by default.
        expires : str or datetime, optional
            From this time on nothing is spent; UTC where it states no time zone.
        people : str, optional
            A name for those whom the data are about: budgets of data sets of one name add up in
            `people`.

        Returns
        -------
        Status
            Where the data set stands.

        Raises
        ------
        ParameterError
            If the data set is there with other terms; its budget may be that of the opening.
        """
        asked = DatasetTerms(budget, notion, order, users, unit, idealised, expires, people)
        if budget is not None and self._found(checked_name("name", name)) is None:
            asked.write(self._log, name)
        account = self._account(name)
        with self._log.reading():
            account.follow_terms()
        asked.refuse_unless_equal(account)
        return self.status(name)

    def ledger(
        self,
        name: str,
        data: Any,
        plan: Plan | None = None,
        rng: Rng = None,
        *,
        insecure_seed: bool = False,
        public: Any = None,
        run: str | None = None,
        undeclared: bool = False,
    ) -> BookLedger:
        """Return a gate to data that spends the budget of a data set.

        Parameters
        ----------
        name : str
            Name of the data set.
        data : array, tuple of arrays or data frame
            One row a user.
        plan : Plan, optional
            Paid for as a whole at once.
        rng : int or numpy.random.Generator, optional
            Repeats a run in tests: needs ``insecure_seed=True``, never twice in a book.
        insecure_seed : bool
            Whether a seed is wanted; entries say so.
        public : Any
            What is public beside the data.
        run : str, optional
            Name of a plan's run: it is paid for once, and after a crash goes on where it stopped.
        undeclared : bool
            As in `Ledger`; the log and every report show what was released so.

        Returns
        -------
        BookLedger
            A context manager; closed at its end.

        Raises
        ------
        BudgetExceeded
            If the plan does not fit; nothing is spent.
        """
        if rng is not None and insecure_seed is not True:
            allowed = "None: noise that can be made again gives no privacy; insecure_seed=True"
            raise ParameterError("rng", "a seed or a generator", allowed)
        if run is not None and (plan is None or checked_name("run", run) == ""):
            raise ParameterError("run", run, "given with a plan")
        whole = None if plan is None else as_plan(plan)
        return BookLedger(self._account(name), data, whole, rng, public, run, undeclared)

    @property
    def names(self) -> list[str]:
        """Return the names of the data sets, in the order in which they were opened."""
        with self._log.reading():
            found = self._log.storage.ask("SELECT dataset FROM datasets ORDER BY seq")
        return [row[0] for row in found]

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
            Rounded down; at most 10^9, and 0 after its end.  Of users with own budgets, for all.

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
        return notion.remaining(total, as_plan(plan))

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
        close_dataset(self._account(name), reason)
        return self.status(name)

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
        raise_budget(self._account(name), budget, reason)
        return self.status(name)

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
        set_expiry(self._account(name), utc_time("when", when), reason)
        return self.status(name)

    def set_quota(self, name: str, author: str, quota: Budget | float, reason: str) -> Status:
        """Limit what one author's own spends may cost, within the budget of the data set.

        A quota limits use.  What protects people is the budget, which all authors share.  Authors
        are who they say they are.

        Parameters
        ----------
        name : str
            Name of a data set that was opened without ``users``.
        author : str
            Who; see `Book.open`.
        quota : float or Budget
            The largest epsilon of the author's own spends, as `quotas` shows it, at the delta of
            the data set; 0 refuses all.
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
        set_quota(self._account(name), author, quota, reason)
        return self.status(name)

    def quotas(self, name: str) -> Quotas:
        """Return what each author spent of a data set, and may spend.

        It reads the whole log once; `status` has those with a quota at once.

        Parameters
        ----------
        name : str
            Name of a data set that was opened without ``users``.

        Returns
        -------
        Quotas of Quota
            By author; each ``epsilon`` is that of the author's spends alone, rounded up.
        """
        account = self._account(name)
        if account.users is not None:
            raise ParameterError("name", name, "a data set without users=")
        with self._log.reading():
            return quotas_of(account)

    def people(self) -> PeopleTable:
        """Return the sums of budgets over data sets about the same people.

        What all data sets of a name together reveal of a person has at most the sums of epsilons
        and deltas of their budgets, in whatever order they are asked.

        Returns
        -------
        PeopleTable of People
            For each name that `dataset` was given as ``people``; sums are rounded up.

        References
        ----------
        Vadhan & Zhang (2023), Lyu (2022): concurrent composition of interactive mechanisms.
        """
        return people_of(self.status(name) for name in self.names)

    def history(
        self,
        name: str,
        *,
        since: int | str | datetime | None = None,
        last: int | None = None,
        author: str | None = None,
        run: str | None = None,
        until: int | str | datetime | None = None,
    ) -> History:
        """Return the spends of a data set, and the changes of its terms, in order.

        A number as ``since``, and ``last`` alone, read only what they return, so ``since`` the
        number of the last line of a page begins the next page.

        Parameters
        ----------
        name : str
            Name of the data set.
        since : int, str or datetime, optional
            Only lines after the entry of this number, or from this time on: ISO 8601, UTC where it
            states no time zone.
        last : int, optional
            Of these lines, only so many at the end.
        author : str, optional
            Only lines of this author.
        run : str, optional
            Only the plan and the steps of this run.
        until : int, str or datetime, optional
            Only lines up to the entry of this number, or up to this time.

        Returns
        -------
        History of Line
            The oldest first; epsilons are rounded up.
        """
        lines = self.iter_history(name, since=since, last=last, author=author, run=run, until=until)
        return History(lines)

    def iter_history(
        self,
        name: str,
        *,
        since: int | str | datetime | None = None,
        last: int | None = None,
        author: str | None = None,
        run: str | None = None,
        until: int | str | datetime | None = None,
    ) -> Iterator[Line]:
        """Return the lines of `history` one by one: a million of them fit into memory.

        Parameters
        ----------
        name : str
            Name of the data set.
        since : int, str or datetime, optional
            As in `history`.
        last : int, optional
            As in `history`.
        author : str, optional
            As in `history`.
        run : str, optional
            As in `history`.
        until : int, str or datetime, optional
            As in `history`.

        Returns
        -------
        iterator of Line
            The oldest first, up to the last one at the start; epsilons are rounded up.
        """
        return read_history(self._account(name), Selection.of(since, last, author, run, until))

    def answer(self, line: Line) -> Any:
        """Return the stored answer of a line of the history.

        Parameters
        ----------
        line : Line
            One of `history`.

        Returns
        -------
        Any
            The answer; None where there is none.
        """
        with self._log.reading():
            return stored_answer(self._log, line)

    def verify(self, head: str | None = None) -> Verified:
        """Check every hash, total, user, answer, index and page, and pin the end.

        Parameters
        ----------
        head : str, optional
            What `head` or an earlier check gave: the log must go on from it.  With a key it must
            be signed, ``NUMBER:HASH:SIGNATURE``, and the entries too.

        Returns
        -------
        Verified
            Number of entries, and the head to note.

        Raises
        ------
        LedgerCorrupt
            If something was changed, cut off, removed or put back.
        """
        return verify_log(self._log, head)

    @property
    def head(self) -> str:
        """Return the end of the log, to note elsewhere: NUMBER:HASH, signed if there is a key."""
        with self._log.reading():
            return self._log.signed_head()

    def close(self) -> None:
        """Close the connection to the database."""
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a book cannot be copied or pickled: open it again by its URL")

    def __repr__(self) -> str:
        return f"Book({self._log.name!r})"

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
