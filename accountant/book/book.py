"""The durable ledger: budgets of data sets in a database, spent from any process, over months."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self, final

from accountant.accountants.budget import Budget
from accountant.book.book_ledger import BookLedger
from accountant.book.book_terms import BookTerms
from accountant.book.chain.entries import FIRST_PREDECESSOR, ChainHead
from accountant.book.chain.head_pin import HeadPin
from accountant.book.chain.signing_key import SigningKey
from accountant.book.databases.connection import connect
from accountant.book.databases.database_files import MissingBook
from accountant.book.dataset_opening import DatasetTerms, checked_buckets, checked_name
from accountant.book.history import (
    Status,
)
from accountant.book.limits.plan_proofs import refuse_unplanned
from accountant.book.log import ENTRIES_CHECKED_ON_OPEN, Log
from accountant.errors import LedgerCorrupt, ParameterError
from accountant.plans.plan import Plan, as_plan
from accountant.randomness import Rng


@final
class Book(BookTerms):
    """The durable ledger: data sets, their budgets and every spend, in a log that only grows.

    Threads may share a book; every process opens its own, with `Book.open`.  A reservation is on
    disk before the data are read and an answer before it is returned, so a crash can waste budget
    and never leaks.  Entries are chained by hashes.

    Parameters
    ----------
    log : Log
        What `Book.open` opens.
    verified : bool
        As in `Book.open`.

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

    def __init__(self, log: Log, verified: bool = False) -> None:
        super().__init__(log)
        self._verified = verified

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
        verified: bool = False,
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
        verified : bool
            Whether data sets are opened with ``verified=True``, and plans of all others also only
            with a proof, by this object.

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
        if not isinstance(verified, bool):
            raise ParameterError("verified", verified, "True or False")
        who = None if author is None else checked_name("author", author)
        head_pin = None if pin is None else HeadPin(pin)
        signs = None if key is None else SigningKey(key)
        has_pinned_head = head_pin is not None and head_pin.read() is not None
        try:
            storage = connect(url, wait, create and not has_pinned_head)
        except MissingBook as missing:
            if not has_pinned_head:
                raise
            problem = "is empty, though entries of it are known"
            raise LedgerCorrupt(str(missing.value), problem) from None
        log = Log(storage, head_pin, who, wait, signs)
        try:
            with log.storage.reading():
                empty = log.storage.empty
            if empty and not create:
                raise ParameterError("url", log.name, "a book that exists")  # noqa: TRY301
            if empty:
                with log.writing():
                    pass
            with log.reading():
                first_checked = max(log.head.seq - ENTRIES_CHECKED_ON_OPEN, 0)
                start = (
                    log.entry(first_checked).chain_head
                    if first_checked
                    else ChainHead(0, FIRST_PREDECESSOR)
                )
                for _ in log.entries_after(start):
                    pass
        except BaseException:
            log.close()
            raise
        return cls(log, verified)

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
        window: str | None = None,
        carry: int | None = None,
        buckets: str | None = None,
        plan: Plan | None = None,
        runs: int | None = None,
        verified: bool | None = None,
        proof: bytes | str | os.PathLike[str] | None = None,
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
        window : {"month", "30 days"}, optional
            The budget is of each calendar month, or of any 30 days in a row (UTC, by the times of
            the log): it protects a person's data of one window, if each release reads data of its
            own window only.
        carry : int, optional
            How many windows before leave what they did not spend to a later one; 0 by default.
        buckets : str, optional
            What the buckets of people are, such as "region": the people of each have the budget,
            and a release is paid by the buckets that `ledger` was given.
        plan : Plan, optional
            Set aside at the opening, at its exact cost if its sum does not fit: a run of it is
            then paid for.  Without ``notion`` the one in which it fits is chosen.
        runs : int, optional
            How many runs of the plan are set aside; 1 by default.
        verified : bool, optional
            Whether nothing is spent but by plans whose cost is proved: `ledger` then needs ``plan``
            and ``proof``, and ``plan`` here the proof of all its runs.  False by default.
        proof : bytes or path, optional
            What ``Tight().certify(runs * plan, delta, proof=...)`` wrote, at the budget's delta: it
            is checked before anything is written, and the log names its digest.

        Returns
        -------
        Status
            Where the data set stands.

        Raises
        ------
        BudgetExceeded
            If the plan does not fit; nothing is opened.
        ParameterError
            If the data set is there with other terms; its budget may be that of the opening.
        """
        requested_terms = DatasetTerms(
            budget, notion, order, users, unit, idealised, expires, people, window, carry, buckets,
            plan, runs, verified, proof,
        )  # fmt: skip
        if budget is not None and self._opened_account(checked_name("name", name)) is None:
            if self._verified and verified is None:
                requested_terms = requested_terms._replace(verified=True)
            requested_terms.write(self._log, name)
        account = self._account(name)
        with self._log.reading():
            account.follow_terms()
        requested_terms.refuse_unless_equal(account)
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
        buckets: Iterable[str] | None = None,
        proof: bytes | str | os.PathLike[str] | None = None,
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
            What is public next to the data.
        run : str, optional
            Name of a plan's run: it is paid for once, and after a crash goes on where it stopped.
        undeclared : bool
            As in `Ledger`; the log and every report show what was released so.
        buckets : iterable of str, optional
            The buckets whose people the data are of: each pays for all that is released here.
        proof : bytes or path, optional
            What ``Tight().certify(plan, delta, proof=...)`` wrote, at the budget's delta: it is
            checked before the plan is paid for, and the log names its digest.  Needed where the
            data set, or the book, was opened with ``verified=True``, but for a run that is paid.

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
        paid_plan = None if plan is None else as_plan(plan)
        account = self._account(name)
        named, verified = checked_buckets(account.buckets, buckets), self._verified
        if paid_plan is None and proof is not None:
            raise ParameterError("proof", "a proof", "given with plan=")
        if paid_plan is None and (verified or account.verified):
            refuse_unplanned()
        return BookLedger(
            account, data, paid_plan, rng, public, run, undeclared, named, proof, verified
        )

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
