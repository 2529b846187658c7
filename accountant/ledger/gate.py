"""The gate: an algorithm asks queries through it and never holds the data.

`Ledger` is a gate that spends a budget; an audit's replay is a gate that returns recorded answers.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, final

import numpy as np

from accountant.domains import BOOLEAN
from accountant.errors import OffPlan, ParameterError, PrivateValueError
from accountant.ledger.block_answers import Answer, Reduction
from accountant.ledger.frames import FrameFacts
from accountant.ledger.immutable_arrays import fresh_view
from accountant.ledger.interfaces import (
    PrivacyMeter,
    Query,
    Releasable,
    Shape,
    ShapedQuery,
    class_name,
    shaped_query,
)
from accountant.ledger.plan_cursor import PlanCursor
from accountant.ledger.private_copies import PrivateCopies, shown
from accountant.ledger.private_data import (
    FRAME_HOLDERS,
    Users,
    checked_data,
    checked_users,
    count_users,
    first_array,
    take_rows,
)
from accountant.plans.plan import Plan, Sampler, Sequential, as_plan
from dp_attest.calls import shows_call

# What the releases of this thread answer, in words, which the log of a book notes.
QUESTION: ContextVar[str] = ContextVar("QUESTION", default="")


@contextmanager
def answering(question: str) -> Iterator[None]:
    """Name what is charged and released inside the block, at any gate; see `Gate.answering`."""
    token = QUESTION.set(question)
    try:
        yield
    finally:
        QUESTION.reset(token)


class Gate(ABC):
    """Data, plan, public facts and coins; every gate charges its meter before it reads data.

    A mechanism that is asked for is copied first, from its declared class and its parameters, and
    the copy is what is charged, drawn and recorded: what a query changes later has no effect.

    Parameters
    ----------
    data : array, tuple of arrays or data frame
        One row a user; of a frame of pandas, polars, Arrow or Dask each query gets its own object.
    plan : Plan or None
        What may be released; None where a meter alone decides.
    public : Any
        What is public next to the data.
    coin_words : sequence of int
        What ``coins``, the public randomness, is made from.
    meter : PrivacyMeter, optional
        Charged before every release.
    undeclared : bool
        Whether mechanisms of classes that were not declared are released too.
    """

    def __init__(
        self,
        data: Any,
        plan: Plan | None,
        public: Any,
        coin_words: Sequence[int],
        meter: PrivacyMeter | None = None,
        undeclared: bool = False,
    ) -> None:
        takes_undeclared = BOOLEAN.check("undeclared", undeclared)
        self._data = checked_data("data", data)
        self._users = first_array(self._data).shape[0]
        self._copies = PrivateCopies(takes_undeclared)
        self._plan = None if plan is None else self._copies.of_plan(as_plan(plan))
        # releases follow the plan; without one, each must fit the meter
        self._meter = PlanCursor(as_plan(self._plan), self._users) if meter is None else meter
        self._next_shown: tuple[Plan | None, Plan | None] = (None, None)
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._answering, self._executor = False, ""
        self._reduce: Reduction | None = None
        self.plan: Plan = Sequential(()) if plan is None else plan
        self.public = public
        self.coin_words = tuple(coin_words)
        self.coins = np.random.default_rng(np.random.SeedSequence(self.coin_words))

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the public array where there is one, else of the data."""
        shape: tuple[int, ...]
        shape = first_array(self._data if self.public is None else self.public).shape
        return shape

    @property
    def frame_facts(self) -> FrameFacts | None:
        """Return the library and the columns of a data frame, which are public; None of arrays."""
        return self._data.facts if isinstance(self._data, FRAME_HOLDERS) else None

    @property
    def next(self) -> Plan | None:
        """Return the leaf of the plan that may be released next; None when all is spent."""
        leaf, (last_leaf, copy) = self._meter.next, self._next_shown
        if leaf is not last_leaf:
            copy = shown(leaf)
            self._next_shown = leaf, copy
        return copy

    @final
    def check(self, plan: Plan) -> None:
        """Refuse a plan whose releases would not all be allowed now, one after another.

        Parameters
        ----------
        plan : Plan
            What will be released next.

        Raises
        ------
        OffPlan
            If the plan of the gate does not allow it; nothing is spent.
        BudgetExceeded
            If the budget does not suffice for all of it; nothing is spent.
        ParameterError
            If the gate is the ledger of a book that was opened without a plan: it charges a
            release when it is made, and a plan in `reserving`.
        """
        copy = self._copies.of_spent(as_plan(plan))
        self._refuse_other_process(copy)
        with self._lock:
            self._refuse_within_a_query(copy)
            check = getattr(self._meter, "check", None)
            if check is not None:
                check(copy)
            else:  # a meter that decides when a release is made
                allowed = "opened with this plan, Book.ledger(name, data, plan), or `reserving` it"
                raise ParameterError("ledger", class_name(self), allowed)

    @contextmanager
    def answering(self, question: str) -> Iterator[None]:
        """Name the releases inside the block by the question that they answer, in a book's history.

        Parameters
        ----------
        question : str
            In words, such as "mean of cost by region"; it is public.

        Yields
        ------
        None
            The releases are made through the gate itself.
        """
        with answering(question):
            yield

    @contextmanager
    def reserving(self, plan: Plan, label: str | None = None) -> Iterator[None]:
        """Allow the releases of a plan inside the block, or refuse all of them before the first.

        The ledger of a `Book` that follows no plan charges all of it here, as a run of its own.

        Parameters
        ----------
        plan : Plan
            What is released inside the block.
        label : str, optional
            Name of the run in a book: under the same name it gives its answers again.  Other gates
            refuse one.

        Yields
        ------
        None
            The releases are made through the gate itself.

        Raises
        ------
        ParameterError
            If there is a label, and the gate is no ledger of a book or follows a plan.
        OffPlan
            If the plan of the gate does not allow it; nothing is spent.
        BudgetExceeded
            If the budget does not suffice for all of it; nothing is spent.
        """
        if label is not None:
            allowed = "None: only the ledger of a book that follows no plan names several releases"
            raise ParameterError("label", label, allowed)
        self.check(plan)
        yield

    @final
    @shows_call("gate.release(mechanism, query), query a function of the data such as np.sum")
    def release(
        self,
        mechanism: Releasable,
        query: Query,
        label: str | None = None,
        shape: Shape | None = None,
    ) -> Any:
        """Charge a mechanism, then read the data and release ``query(data)``.

        A query that fails is charged; one that asks the gate itself is refused.  The query of a
        sampled mechanism gets the rows of a secret sample, none at all now and then.

        The shape of a release is public, so it is declared before the data are read.  A value of
        another shape is refused after the charge; the message says the declared shape alone.  That
        it was refused is known, so make the value of the declared shape for any data.

        Parameters
        ----------
        mechanism : Mechanism or loss
            What is released; of a declared class, unless the gate takes undeclared ones.
        query : callable
            A function of the data; its value is released by the mechanism, never returned.
        label : str, optional
            Name of the answer in a `Book`, which gives it again for the same label; gates in memory
            refuse one.
        shape : int or tuple of int, optional
            Shape of ``query(data)``, which must be public: the length of a vector, such as the
            number of public keys, or the number of candidates.  By default that of the mechanism,
            or a single number.

        Returns
        -------
        Any
            The mechanism's output, immutable.

        Raises
        ------
        ParameterError
            If it is no mechanism, or not declared, or it has vectors of any length and no shape
            is given; before anything is spent, read or drawn.
        PrivateValueError
            If the query's value is not of the declared shape; the release is charged.
        OffPlan
            If the plan does not allow it; before anything is spent, read or drawn.
        BudgetExceeded
            If the budget does not suffice; before anything is spent, read or drawn.
        """
        copy, shaped = self._admitted(mechanism, query, shape)
        if label is None:
            return self._charge_and_answer(copy, shaped, None)
        return self._release_once(copy, shaped, label)

    @final
    @shows_call("gate.release_each(mechanism, query), query a function of rows")
    def release_each(
        self,
        mechanism: Releasable,
        query: Query,
        who: Any = None,
        shape: Shape | None = None,
    ) -> Any:
        """Let every user randomise their own row of ``query(rows)``.

        Parameters
        ----------
        mechanism : Mechanism or loss
            What is released.
        query : callable
            A function of the rows of those users alone, one value a row.
        who : slice, mask or indices, optional
            Distinct users; all by default.
        shape : int or tuple of int, optional
            Shape of one user's value, as in `release`.

        Returns
        -------
        Any
            One output a user, immutable.
        """
        copy, shaped = self._admitted(mechanism, query, shape)
        self._refuse_secret_sample(copy)
        return self._charge_and_answer(copy, shaped, self._checked_users(who))

    @final
    def release_blocks(
        self,
        mechanism: Releasable,
        query: Query,
        blocks: Iterable[Any],
        executor: Executor | None = None,
        reduce: Reduction | None = None,
        shape: Shape | None = None,
    ) -> Iterator[Any]:
        """Yield what `release_each` gives for every block of users, one block after another.

        The same seed gives the same bits on any executor.  Until the last block was taken nothing
        else is answered.

        Parameters
        ----------
        mechanism : Mechanism or loss
            What is released.
        query : callable
            As in `release_each`.
        blocks : iterable
            Users of each block, as ``who`` of `release_each`.
        executor : concurrent.futures.Executor, optional
            Works on some blocks at a time; threads by default.  Processes get pickled rows and
            query.  It sees rows and makes the answers, so it is trusted: they are checked to be
            what the mechanism can release, and the transcript names the executor.
        reduce : callable, optional
            A function of the outputs of a block, such as their sum, which is given instead of them.
            Of `WorkerChunks`, with digests in the transcript, it alone comes back from the workers,
            which then check the outputs.
        shape : int or tuple of int, optional
            Shape of one user's value, as in `release`.

        Yields
        ------
        Any
            The outputs of one block, or what ``reduce`` makes of them.
        """
        copy, shaped = self._admitted(mechanism, query, shape)
        self._refuse_secret_sample(copy)
        if executor is not None and not isinstance(executor, Executor):
            raise ParameterError(
                "executor", type(executor), "a concurrent.futures.Executor, or None"
            )
        if reduce is not None and not callable(reduce):
            raise PrivateValueError("reduce", "a function of the outputs of a block, or None")
        with self._lock:
            self._refuse_within_a_query(copy)
            self._answering = True
            self._executor = "" if executor is None else class_name(executor)
            self._reduce = reduce

        def charged() -> Iterator[Users]:
            for block in blocks:
                who = self._checked_users(block)
                with self._lock:
                    self._charge(copy, who)
                yield who

        try:
            for block_output in self._answer_blocks(copy, shaped, charged(), executor):
                if isinstance(block_output, Answer):  # reduced by a worker
                    yield block_output.reduced
                else:
                    yield block_output if reduce is None else reduce(block_output)
        finally:
            self._answering, self._executor, self._reduce = False, "", None

    @abstractmethod
    def _answer(self, mechanism: Releasable, query: ShapedQuery, who: Users | None) -> Any:
        """Answer a charged request."""

    def _answer_blocks(
        self,
        mechanism: Releasable,
        query: ShapedQuery,
        charged: Iterable[Users],
        executor: Executor | None,
    ) -> Iterator[Any]:
        """Answer the blocks of a charged request."""
        del executor
        return (self._answer(mechanism, query, who) for who in charged)

    @abstractmethod
    def _sample(self, sampler: Sampler) -> Users:
        """Return the users in the secret sample of one release."""

    def _release_once(self, mechanism: Releasable, query: ShapedQuery, label: str) -> Any:
        """Release under a label; a gate that stores answers overrides this method."""
        del mechanism, query
        allowed = "None at this gate: only the ledger of a book, Book.ledger, finds answers again"
        raise ParameterError("label", label, allowed)

    def _admitted(
        self, mechanism: Releasable, query: Query, shape: Shape | None
    ) -> tuple[Any, ShapedQuery]:
        """Return the gate's copy of a mechanism, and the query; refuse what no gate releases."""
        copy = self._copies.of(mechanism)
        if not callable(query):
            raise PrivateValueError("query", "a function of the data")
        self._refuse_other_process(mechanism)
        return copy, shaped_query(copy, query, shape)

    def _refuse_secret_sample(self, mechanism: Releasable) -> None:
        if mechanism.sampler is not None:
            allowed = "released at once: the sample is secret"
            raise ParameterError("mechanism", shown(mechanism), allowed)

    def _checked_users(self, who: Any) -> Users:
        return checked_users(who, self._users)

    def _refuse_other_process(self, mechanism: Any) -> None:
        if os.getpid() != self._process:
            # two children would spend the plan twice, with the same noise
            raise OffPlan(mechanism, self.next, "this gate belongs to the process that forked")

    def _charge(self, mechanism: Releasable, who: Users | None) -> None:
        """Charge the meter; a refusal shows copies, never the plans that the gate itself holds."""
        try:
            self._meter.charge(mechanism, who)
        except OffPlan as error:
            raise OffPlan(shown(error.asked), shown(error.allowed), error.why) from None

    def _refuse_within_a_query(self, mechanism: Releasable | Plan) -> None:
        if self._answering:
            reason = "a query may not ask the gate itself; else wait until all blocks are taken"
            raise OffPlan(shown(mechanism), self.next, reason)

    def _charge_and_answer(
        self, mechanism: Releasable, query: ShapedQuery, who: Users | None
    ) -> Any:
        """Charge a copy that `_admitted` made, then answer."""
        with self._lock:
            self._refuse_within_a_query(mechanism)
            # Charge before the data are read: from here on the release is spent, even on an error.
            self._charge(mechanism, who)
            self._answering = True
            try:
                return self._answer(mechanism, query, who)
            finally:
                self._answering = False

    def _query_value(self, mechanism: Releasable, query: ShapedQuery, who: Users | None) -> Any:
        """Return the query's value: one that a single release pays for, or one for each user."""
        sampler = mechanism.sampler
        selected_users = who if sampler is None else self._sample(sampler)
        # a query may set the shape and type of a view, and not what lies in memory
        data = self._data
        rows = fresh_view(data) if selected_users is None else take_rows(data, selected_users)
        return query.value(rows, None if who is None else count_users(who))
