"""The durable ledger: budgets of data sets in a database, spent from any process, over months.

A book is a log of entries, each chained to the one before by a hash.  An entry opens a data set
with its budget and its *notion* (how costs add up: pure privacy, zCDP, ...), changes its terms,
charges a release before the data are read (a *reservation*), or stores an answer.  Claims on the
privacy of programs, and evidence on them, stand in the same log.  The *head* is the end of the log,
a *pin* a file elsewhere that holds it.  `Book` is the public interface; the work is done by the
other modules of this folder.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from accountant.accountants.budget import Budget
from accountant.book.account import Account
from accountant.book.book_ledger import BookLedger
from accountant.book.chain.author_keys import AuthorKey, Passphrase, asking
from accountant.book.chain.entries import checked_name, dataset_key
from accountant.book.chain.roles import Roles
from accountant.book.clock import ClockCorrection, correct_clock
from accountant.book.databases.postgres_grants import grants_sql
from accountant.book.dataset_terms import (
    DatasetTerms,
    close_dataset,
    raise_budget,
    set_expiry,
    set_quota,
)
from accountant.book.evidence import (
    Evidence,
    add_evidence,
    claim_names,
    open_claim,
    read_evidence,
)
from accountant.book.excerpt import Excerpt, read_excerpt
from accountant.book.history import History, Line, Selection, read_history, stored_answer
from accountant.book.limits.plan_proofs import refuse_unplanned
from accountant.book.limits.second_curator import open_proposal, set_roles
from accountant.book.limits.terms import utc_time
from accountant.book.log import Log
from accountant.book.opening import Make, open_log
from accountant.book.status import (
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
from accountant.book.verification import Verified, verify_log
from accountant.domains import BOOLEAN
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.ledger.session import Session
from accountant.losses.loss import Loss
from accountant.plans.plan import Plan, as_plan
from accountant.randomness import Rng
from accountant.table_display import Table, TableDisplay
from dp_attest.calls import shows_call


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
    verified : bool
        As in `Book.open`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from accountant import Book, Budget
    >>> from mechanisms import Laplace
    >>> folder = tempfile.TemporaryDirectory()
    >>> book = Book.create(f"sqlite:///{folder.name}/budgets.db")
    >>> status = book.dataset("ages", budget=Budget(1.0))
    >>> total = Laplace(scale=400.0, sensitivity=100.0)  # a person moves the sum by at most 100
    >>> with book.ledger("ages", np.arange(50.0)) as ledger:
    ...     answer = ledger.release(total, lambda ages: ages.clip(0, 100).sum())
    >>> book.spent("ages"), len(book.history("ages"))
    (0.25, 1)
    >>> book.close(); folder.cleanup()
    """

    def __init__(self, log: Log, verified: bool = False) -> None:
        self._log, self._verified = log, verified
        self._accounts: dict[str, Account] = {}

    @classmethod
    @shows_call('Book.open("book.db")')
    def open(
        cls,
        url: str | os.PathLike[str],
        *,
        pin: str | os.PathLike[str] | None = None,
        wait: float = 30.0,
        create: bool | None = None,
        author: str | None = None,
        key: bytes | str | os.PathLike[str] | None = None,
        passphrase: Passphrase | None = None,
        verified: bool = False,
        accept_restored: str | None = None,
        accept_unsigned: bool = False,
        clock: str | datetime | None = None,
    ) -> Self:
        """Open a book that is there; `create` makes one.

        Each machine that writes to a book keeps its end beside the user's configuration, in
        ``~/.config/dp-attest/pins`` or the folder ``DP_ATTEST_PINS``, and refuses to spend from a
        book that was put back from a backup.

        Parameters
        ----------
        url : str or path
            A file of SQLite, ``sqlite:///PATH`` or ``postgresql://...``.
        pin : path, optional
            A file, best on another machine, that holds the last entry's hash beside the pin of this
            machine; it is flushed, and compared at each look.
        wait : float
            Seconds to wait for others at most.
        create : bool, optional
            Deprecated: whether a book that is not there is made.
        author : str, optional
            Who spends; by default the user of the operating system.  In a book with `roles` it is
            the name that they give the holder of the key.
        key : bytes or path, optional
            The file of an Ed25519 private key, such as ``~/.ssh/id_ed25519``, for a book with
            `roles`.  For other books a secret of at least 16 bytes, or a file that holds it: it
            signs every entry that is written and every head, by HMAC-SHA256 (RFC 2104).  A signed
            book is written to with keys only.  A file that others can read is refused; one newline
            at the end of a file of text is no part of the secret.
        passphrase : str or callable, optional
            The passphrase of the private key, or a function that returns it, such as one that calls
            `getpass.getpass`; it is called where the key has one.
        verified : bool
            Whether this object spends only by plans whose cost is proved: it makes data sets with
            ``verified=True``, and asks for a proof also where a data set was made without.
        accept_restored : str, optional
            Why a book that was put back from a backup is to be spent from, though the spends since
            are lost from it.  An entry says so, and the pin follows.
        accept_unsigned : bool
            Whether a secret ``key`` may sign a book whose last entry is unsigned, because it was
            begun without a key.  The next signature vouches for all entries before it, so verify
            the book first.  Once an entry is signed, the book opens without this.
        clock : str or datetime, optional
            A day or a time, UTC, up to which the clock is right, or "trusted" where it is always
            kept right, as by NTP.  Without it no window opens by a clock that is more than one day
            ahead of the log.  The clock is this machine's, or the PostgreSQL server's.

        Returns
        -------
        Book
            The book.

        Raises
        ------
        LedgerBusy
            If others kept it locked for ``wait`` seconds.
        LedgerCorrupt
            If the last entries do not fit together, the last one is not signed though ``key`` is a
            secret, or SQLite's log ahead is damaged; `verify` checks all.
        ParameterError
            If there is no book; a file without bytes is none.
        """
        make = Make.NEVER
        if create is not None:
            warnings.warn(
                "Book.open(create=...) goes with the next version: Book.create makes a book, and "
                "Book.open opens one that is there",
                FutureWarning,
                stacklevel=3,  # past `shows_call`
            )
            make = Make.IF_MISSING if create else Make.NEVER
        passphrase = asking(passphrase)  # no traceback from here on shows it
        is_verified = BOOLEAN.check("verified", verified)
        log = open_log(
            url, make, pin, wait, author, key, passphrase, clock,
            accept_restored=accept_restored, accept_unsigned=accept_unsigned,
        )  # fmt: skip
        return cls(log, is_verified)

    @classmethod
    @shows_call('Book.create("book.db")')
    def create(
        cls,
        url: str | os.PathLike[str],
        *,
        pin: str | os.PathLike[str] | None = None,
        wait: float = 30.0,
        author: str | None = None,
        key: bytes | str | os.PathLike[str] | None = None,
        passphrase: Passphrase | None = None,
        roles: Roles | None = None,
        verified: bool = False,
        clock: str | datetime | None = None,
    ) -> Self:
        """Make a new book and open it.

        Parameters
        ----------
        url : str or path
            As in `open`; there is no book yet.
        pin : path, optional
            As in `open`.
        wait : float
            As in `open`.
        author : str, optional
            As in `open`.
        key : bytes or path, optional
            As in `open`.
        passphrase : str or callable, optional
            As in `open`.
        roles : Roles, optional
            Who may write what; ``key`` is then the private key of one of the curators.
        verified : bool
            As in `open`.
        clock : str or datetime, optional
            As in `open`.

        Returns
        -------
        Book
            The book.

        Raises
        ------
        ParameterError
            If there is a book already, or a file without bytes.
        """
        passphrase = asking(passphrase)  # no traceback from here on shows it
        is_verified = BOOLEAN.check("verified", verified)
        log = open_log(url, Make.NEW, pin, wait, author, key, passphrase, clock, roles=roles)
        return cls(log, is_verified)

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

    # --- opening data sets, and gates to data

    @shows_call(
        'book.dataset("visits", Budget(epsilon=1.0, delta=1e-6))',
        epsilon='the budget is one value: book.dataset("visits", Budget(epsilon=1.0, delta=1e-6))',
        delta='the budget is one value: book.dataset("visits", Budget(epsilon=1.0, delta=1e-6))',
    )
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
        raise_needs: int | None = None,
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
            Each of this many users has the budget: `release_each` is paid by those who answer,
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
        window : str, optional
            "day", "week" (ISO, from Monday), "month", "quarter" or "year", or any number of days
            in a row such as "30 days" (UTC, by the times of the log).  The budget is of each such
            window: it protects a person's data of one window, if each release reads data of its
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
        raise_needs : {1, 2}, optional
            2 where a larger budget or a later end of this data set needs two curators, whatever the
            roles ask for; from then on other roles need two as well.  It stays so.

        Returns
        -------
        Status
            Where the data set stands.

        Raises
        ------
        BudgetExceeded
            If the plan does not fit; nothing is opened.
        ParameterError
            If the data set is there with other terms.  As ``budget`` the one in force is taken, and
            also the one of its opening, which `raise_budget` may have changed since.
        """
        requested_terms = DatasetTerms(
            budget, notion, order, users, unit, idealised, expires, people, window, carry, buckets,
            plan, runs, verified, proof, raise_needs,
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

    @shows_call(
        'book.ledger("visits", data)',
        author='the author is that of the opened book: Book.open("book.db", author="ada")',
        budget='the budget is that of the data set: book.dataset("visits", budget) opens it',
    )
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
        if run is not None:
            if plan is None:
                raise ParameterError("run", run, "given with a plan")
            checked_name("run", run)
        paid_plan = None if plan is None else as_plan(plan)
        account = self._account(name)
        paying_buckets, verified = account.checked_buckets(buckets), self._verified
        if paid_plan is None and proof is not None:
            raise ParameterError("proof", "a proof", "given with plan=")
        if paid_plan is None and (verified or account.verified):
            refuse_unplanned()
        return BookLedger(
            account, data, paid_plan, rng, public, run, undeclared, paying_buckets, proof, verified
        )

    def session(self, name: str, frame: Any, schema: Any, **facts: Any) -> Session:
        """Return a session that answers questions to a frame, and charges a data set.

        Parameters
        ----------
        name : str
            Name of the data set.
        frame : data frame
            The rows, on any engine.
        schema : Schema
            What is public of the frame.
        **facts : Any
            Further arguments of `ledger`, but a plan.

        Returns
        -------
        Session
            A context manager: ``with book.session("visits", frame, schema) as ask`` answers
            ``ask(count(by="region"), epsilon=0.1)``.
        """
        return Session(self, name, frame, schema, facts)

    def _account(self, name: str) -> Account:
        account = self._opened_account(checked_name("name", name))
        if account is None:
            raise ParameterError("name", name, "a data set of this book; dataset() opens one")
        return account

    def _opened_account(self, name: str) -> Account | None:
        if name not in self._accounts:
            with self._log.reading():
                opening_entry = self._log.entry_with_key(dataset_key(name))
                if opening_entry is None:
                    return None
                account = Account(self._log, opening_entry)
                account.follow_terms()  # before a spend, which locks others out meanwhile
            self._accounts[name] = account
        return self._accounts[name]

    # --- where data sets stand

    @property
    def names(self) -> list[str]:
        """Return the names of the data sets, in the order in which they were opened."""
        with self._log.reading():
            rows = self._log.storage.ask("SELECT dataset FROM datasets ORDER BY seq")
        return [row[0] for row in rows]

    @shows_call('book.status("visits")')
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
        account.read_ahead()  # in transactions of its own, so that no one waits for a long log
        with self._log.reading():
            notion, _ = account.standing()
            return account.user_totals().per_user(notion.epsilon)

    def left(self, name: str) -> float:
        """Return the epsilon at the budget's delta that is left of a data set.

        It is what `spent` leaves of the budget: a further plan of this epsilon, as the notion of
        the data set adds it up, still fits.  `remaining` says it for a plan.

        Parameters
        ----------
        name : str
            Name of the data set.

        Returns
        -------
        float
            Rounded down; 0 after its end.  Of users or buckets with own budgets it is what all of
            them have left, and with a window what is left of the open one.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from accountant import Book, Budget
        >>> from mechanisms import Laplace
        >>> folder = tempfile.TemporaryDirectory()
        >>> book = Book.create(f"sqlite:///{folder.name}/budgets.db")
        >>> status = book.dataset("visits", budget=Budget(1.0))
        >>> with book.ledger("visits", np.ones(50, bool)) as ledger:
        ...     answer = ledger.release(Laplace(4.0), np.sum)
        >>> book.left("visits")
        0.75
        >>> book.close(); folder.cleanup()
        """
        account = self._account(name)
        with self._log.reading():
            notion, total = account.standing()
            account.refuse_unknown_terms()
            is_over = account.terms.is_over(self._log.times.latest)
        return 0.0 if is_over else notion.epsilon_left(total)

    @shows_call(
        'book.remaining("visits", plan), which says how many more times a plan fits; '
        'book.status("visits") has the epsilon that was spent'
    )
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
            Rounded down; at most 10^9 beside the runs that were set aside, which count too, and 0
            after its end.  Of users or buckets with own budgets, for all of them.

        Raises
        ------
        UnsupportedPlan
            If the notion of the data set cannot add it up.
        """
        account = self._account(name)
        with self._log.reading():
            notion, total = account.standing()
            account.refuse_unknown_terms()
            if account.terms.is_over(self._log.times.latest):
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

        It reads the whole log once, and later what is new.

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
        and deltas of their budgets, in whatever order they are asked.  The budget of a window is
        for a person's data of one window, and that of a bucket for the data in that bucket.

        Returns
        -------
        PeopleTable of People
            For each name that `dataset` was given as ``people``; sums are rounded up.

        References
        ----------
        Vadhan & Zhang (2023), Lyu (2022): concurrent composition of interactive mechanisms.
        """
        return people_of(self.status(name) for name in self.names)

    # --- changes of their terms, each with a reason in the log

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

        Where the roles ask for two curators, the first call proposes a larger budget, and the same
        call by a second curator gives it.

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

        Where the roles ask for two curators, a later time needs both, as `raise_budget` does.

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

    def correct_clock(self, reason: str) -> ClockCorrection:
        """Set the log's time back to the clock's, where a wrong clock has moved it ahead.

        Call it where the clock is right.  Charges that are later by the log count from now on in
        the window that is open; earlier ones count as they did.  Expired data sets stay expired
        until `expire` moves their end.

        Parameters
        ----------
        reason : str
            Why; it stays in the log.

        Returns
        -------
        ClockCorrection
            Both times, the data sets whose windows count by the new one, and those that expired.

        Raises
        ------
        ParameterError
            If the log's time is not ahead, or came there in steps of at most one day; if the clock
            is before the first entry, and not confirmed.
        LedgerClockAhead
            If the clock is more than one day ahead of what the log was before, and not confirmed.
        """
        return correct_clock(self._log, reason)

    # --- who may do what

    @property
    def roles(self) -> Roles | None:
        """Return who may write what, by public keys; None of a book without roles."""
        with self._log.reading():
            return self._log.roles

    @property
    def proposed_roles(self) -> str:
        """Return in words the change of roles that waits for a second curator; "" for none."""
        with self._log.reading():
            return open_proposal(self._log, None, self._log.head.roles_after)

    def set_roles(self, roles: Roles, reason: str) -> Roles | None:
        """State anew who may write what; from then on each entry is signed by its author.

        The first roles are stated by one of the curators whom they name, later ones by a curator in
        force.  Where two curators are needed, the first call proposes the roles, and the same call
        by a second curator states them.

        Parameters
        ----------
        roles : Roles
            The public keys of all people.
        reason : str
            Why; it stays in the log.

        Returns
        -------
        Roles or None
            Those in force after the call.

        Raises
        ------
        RoleRefused
            If the roles in force do not allow it.
        """
        return set_roles(self._log, roles, reason)

    def grants(self, prefix: str = "book") -> str:
        """Return SQL by which a PostgreSQL server enforces the roles; the tables' owner runs it.

        Parameters
        ----------
        prefix : str
            The groups of logins are ``prefix_curators``, ``prefix_analysts``, ``prefix_auditors``.

        Returns
        -------
        str
            Statements that make the groups, their rights, and a trigger that checks new entries.

        Raises
        ------
        ParameterError
            If the book is a file: rights to files are those of the operating system.
        """
        with self._log.reading():
            schema = self._log.storage.schema
        if schema is None:
            raise ParameterError("url", self._log.name, "of a book on a PostgreSQL server")
        return grants_sql(schema, prefix)

    # --- claims on the privacy of programs, and evidence on them

    def claim(
        self,
        name: str,
        claim: Loss | Budget | None = None,
        *,
        alpha: float | None = None,
        relation: str | None = None,
    ) -> Evidence:
        """Open a claim on the privacy of a program, or return the one that is there.

        Audits of its versions add evidence to one e-process: if the claim holds, an alarm ever
        comes with probability at most ``alpha``.  What is claimed does not change; another claim
        is opened under another name, and begins anew.

        Parameters
        ----------
        name : str
            Name of the claim.
        claim : Loss or Budget, optional
            What is claimed; needed to open it.
        alpha : float, optional
            In (0, 1); 0.05 by default.
        relation : str, optional
            How neighbours differ, such as "add-remove"; by default as the audited pairs do.

        Returns
        -------
        Evidence
            The claim, and the evidence on it.

        Raises
        ------
        ParameterError
            If the claim is there with other terms.
        """
        open_claim(self._log, name, claim, alpha, relation)
        return self.evidence(name)

    @property
    def claims(self) -> list[str]:
        """Return the names of the claims, in the order in which they were opened."""
        with self._log.reading():
            return claim_names(self._log)

    def add_evidence(
        self,
        claim: str,
        log_e_values: Sequence[float],
        points: Sequence[tuple[float, float]],
        *,
        runs: str,
        version: str,
        seen: str = "",
    ) -> Evidence:
        """Add the evidence of one audit; a `Finding` of `audits` does so by ``add_to``.

        An e-value is a number, at least 0, whose mean is at most 1 if the claim holds, whatever
        was seen before.  Add every audit, whatever it found: who leaves out those that found
        nothing has an alarm too often.

        Parameters
        ----------
        claim : str
            Name of the claim.
        log_e_values : sequence of float
            Logarithms of the e-values, rounded down: one, or one for each bet of the claim.
        points : sequence of (float, float)
            The (epsilon, delta) that were tested, each of which follows from the claim.
        runs : str
            SHA-256 of what drew the runs; the same runs are refused a second time.
        version : str
            The version of the program.
        seen : str, optional
            What was seen, in words.

        Returns
        -------
        Evidence
            The claim, and the evidence on it.
        """
        add_evidence(self._log, claim, log_e_values, points, runs, version, seen)
        return self.evidence(claim)

    def evidence(self, claim: str) -> Evidence:
        """Return the evidence on a claim.

        Parameters
        ----------
        claim : str
            Name of the claim.

        Returns
        -------
        Evidence
            The wealth of bets against it, and whether it ever was a proof.
        """
        with self._log.reading():
            return read_evidence(self._log, claim)

    # --- what was spent, and whether the log is intact

    @shows_call('book.history("visits")')
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
        """Return the spends of a data set, and the changes and proposals of its terms, in order.

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
            Of these lines, only this many at the end.
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
        """Return the lines of `history` one by one, so that a million of them need little memory.

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

    def excerpt(
        self,
        name: str,
        key: AuthorKey,
        since: int | None = None,
        until: int | None = None,
        others: bool = False,
    ) -> Excerpt:
        """Return entries of a data set and all between them, for a receipt (`make_receipt`).

        Parameters
        ----------
        name : str
            Name of the data set.
        key : AuthorKey
            The private key that signs the head at the last of them, where the book has roles.
        since, until : int, optional
            Numbers of the first and the last entry; by default the one that opened the data set,
            and its last one.
        others : bool
            Whether entries of other data sets may lie between: readers of the receipt see them.

        Returns
        -------
        Excerpt
            The texts of the entries, and what fixes their place in the log.
        """
        account = self._account(name)
        with self._log.reading(durable=True):
            return read_excerpt(self._log, name, account.opening_seq, key, since, until, others)

    def verify(self, head: str | None = None) -> Verified:
        """Check every hash, total, user, answer, index and page, and pin the end.

        Parameters
        ----------
        head : str, optional
            What `head` or an earlier check gave: the log must go on from it.  With a secret as
            key it must be signed, ``NUMBER:HASH:SIGNATURE``, and the entries too; a checkpoint must
            be signed by a person whom the roles named then.

        Returns
        -------
        Verified
            Number of entries, the head to note, and where the book was put back from a backup.

        Raises
        ------
        LedgerCorrupt
            If something was changed, cut off, removed or put back.
        LedgerViolated
            If the log is whole, but entries of some data sets break the terms of these.
        """
        return verify_log(self._log, head)

    @property
    def head(self) -> str:
        """Return the end of the log, to note elsewhere: NUMBER:HASH, signed if there is a key.

        With the private key of a person of the book it is a checkpoint, a signed note of lines.
        With one of another person it is refused.
        """
        with self._log.reading(durable=True):
            self._log.signatures.refuse_to_sign_head(self._log.head)
            return self._log.signed_head()
