"""How the fit of a private estimator is paid for, in full and before it reads any data.

The argument ``ledger`` of `fit` says what is charged: nothing (None: the estimator's own epsilon
and delta are the whole budget), a `Budget` that several fits share, a `Filter`, or a data set of a
`Book`.  `open_ledger` charges it and returns the *gate*: the `Ledger` through which alone the fit
asks the data, one planned release after another.

A fit on a `Budget` or a `Filter` may follow from the answers of earlier fits.  So what is charged
to them is added up by a filter, which allows that (a `FilterMeter` holds the running total).

References: Rogers, Roth, Ullman & Vadhan (2016), for fits that follow from earlier answers.
"""

from __future__ import annotations

import copy
import math
import os
import threading
import uuid
import weakref
from collections.abc import Iterable
from typing import Any, ClassVar, Final

import numpy as np

from accountant.accountants.budget import Budget
from accountant.accountants.tight import Tight
from accountant.domains import warn_of_large_delta
from accountant.errors import (
    BudgetExceeded,
    ParameterError,
    UnsupportedPlan,
)
from accountant.ledger.composition_notions import notion_of
from accountant.ledger.filters import Filter, FilterMeter
from accountant.ledger.gate import QUESTION, answering
from accountant.ledger.ledger import Ledger
from accountant.ledger.private_data import Lent, first_array
from accountant.plans.parallel import Stated
from accountant.plans.plan import Plan, Repeat
from accountant.randomness import Rng
from algorithms.base.non_private import level_of_caller

ALLOWED = (
    "a Budget, a Filter, a Book of one data set, (book, name), or a ledger of a book; "
    "a Ledger with a plan of its own takes run(ledger)"
)


class Gates:
    """The value of ``ledger`` for a fit that is paid for elsewhere: it charges nothing.

    A private search passes it to its fits, whose cost it has paid itself; an audit passes a
    subclass, whose gates record what a fit asks.  So `open_ledger` also opens its gates by this
    class where ``ledger`` is None.
    """

    within_a_fit: ClassVar[bool] = False  # one that opens a ledger of its own for the same data

    def open(
        self, data: Any, plan: Plan, *, rng: Rng = None, public: Any = None, transcript: str
    ) -> Any:
        """Return a gate on the data; the arguments are those of `Ledger`."""
        return Ledger(Lent(data), plan, rng=rng, public=public, transcript=transcript)


PAID: Final = Gates()

IMPORTED = uuid.uuid4().hex  # tells this process from others that have or had its number


def this_process() -> str:
    """Return what tells this process from all others, those that it forks included."""
    return f"{IMPORTED}-{os.getpid()}"


class Spending:
    """What an estimator and all its clones have spent together, with one meter for each `Budget`.

    Estimators are also copied by pickling.  What is unpickled in the same process is this very
    object, found by its name; in another process it is a copy that refuses to charge anything.
    """

    _known: ClassVar[weakref.WeakValueDictionary[str, Spending]] = weakref.WeakValueDictionary()
    # Strong references: a pickled object stays, even if its estimators are gone, since what was
    # spent must still be known when the copy comes back.
    _pickled: ClassVar[dict[str, Spending]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()  # one for all, as a charge may be to several

    def __init__(self, name: str | None = None, process: str | None = None) -> None:
        self._name, self._process = name or uuid.uuid4().hex, process or this_process()
        self.meters: dict[Budget, FilterMeter] = {}
        Spending._known[self._name] = self

    def charge(self, budget: Budget, plan: Plan, others: Iterable[Spending] = ()) -> None:
        """Charge a plan to what remains of a budget, here and in ``others``.

        Where an error is raised, nothing is spent in any of them.
        """
        with self._lock:
            meters = {spending: spending.charged(budget, plan) for spending in (*others, self)}
            for spending, meter in meters.items():
                spending.meters[budget] = meter

    def charged(self, budget: Budget, plan: Plan) -> FilterMeter:
        """Return a copy of the meter of a budget that is charged a plan."""
        if self._process != this_process():
            allowed = "a Book, as this process does not see what clones in others spend"
            raise ParameterError("ledger", budget, allowed)
        meter = copy.copy(self.meters.get(budget)) or FilterMeter(
            notion_of(name=None, budget=budget)
        )
        try:
            meter.charge_plan(plan)
        except UnsupportedPlan:
            # The budget may be large enough, and the plan still cannot be added: an earlier fit was
            # charged the certified epsilon of its whole plan, to which only plans of pure epsilon
            # can be added (`FilterMeter.charge_plan`).  The caller gets the usual error.
            spent = meter.notion.shown(meter.total).amount
            needed = Tight().epsilon(plan, budget.delta)
            remedy = "less epsilon for each fit, so that their sum fits"
            limit = max(budget.epsilon, spent)
            raise BudgetExceeded(spent, needed, budget, limit=limit, remedy=remedy) from None
        return meter

    def __reduce__(self) -> Any:
        """Pickle the name and the process, from which `named` finds the object again."""
        Spending._pickled[self._name] = self
        return Spending.named, (self._name, self._process)

    @classmethod
    def named(cls, name: str, process: str) -> Spending:
        """Return the object of this name, or one marked with the process that it came from."""
        return cls._known.get(name) or cls(name, process)


def open_ledger(
    estimator: Any,
    data: Any,
    plan: Plan,
    *,
    rng: Rng = None,
    public: Any = None,
    transcript: str = "full",
    ledger: Any = None,
) -> Ledger:
    """Charge the plan of a fit as a whole, and return the gate through which it asks the data.

    Parameters
    ----------
    estimator : PrivateEstimator
        The estimator whose `fit` was called.
    data : array or tuple of arrays
        One row a user.
    plan : Plan
        What the fit releases.
    rng : int, numpy.random.Generator or None
        Source of the noise.
    public : Any
        What is public in addition to the data.
    transcript : {"full", "digest"}
        As in `Ledger`.
    ledger : Budget, Filter, Book, tuple, Gates or None
        What is charged; see `PrivateEstimator`.

    Returns
    -------
    Ledger
        A gate on the data.

    Raises
    ------
    BudgetExceeded
        If the plan does not fit; nothing is spent, read or drawn.
    """
    is_private = not estimator.is_not_private(plan)
    if is_private and not (isinstance(ledger, Gates) and ledger.within_a_fit):
        # Imported here: it imports scikit-learn, which audits of releases need not load.
        from algorithms.base.running_fits import refuse_transformers_in_front

        refuse_transformers_in_front(estimator, ledger)
    if ledger is None:
        refuse_repeats(estimator, plan)
    if is_private:
        warn_of_delta(estimator, first_array(data).shape[0], ledger, rng)
    if ledger is None or isinstance(ledger, Gates):
        gates = PAID if ledger is None else ledger
        opened: Ledger = gates.open(data, plan, rng=rng, public=public, transcript=transcript)
        return opened
    # Who is charged learns which neighbours the plan protects.
    stated = Stated(plan, estimator.adjacency(plan))
    with answering(QUESTION.get() or f"fit of {type(estimator).__name__}"):
        if (dataset := _dataset_of_a_book(ledger)) is not None:
            book, name = dataset
            # The gate of a book charges and asks the data; its transcript is always a full one.
            gate: Ledger = book.ledger(
                name, Lent(data), stated, rng, insecure_seed=rng is not None, public=public
            )
            gate.plan = plan  # the fit reads the parts of its own plan
            return gate
        charge(estimator, stated, first_array(data).shape[0], ledger)
    return Ledger(Lent(data), plan, rng=rng, public=public, transcript=transcript)


def warn_of_delta(estimator: Any, users: int, ledger: Any, rng: Rng) -> None:
    """Warn of a delta above 1 / n, unless the noise has a seed or another ledger warns itself.

    A fit with a seed is for tests; it has no privacy that a delta could weaken.
    """
    if rng is None and (ledger is None or isinstance(ledger, Budget)):
        delta = estimator.delta if ledger is None else ledger.delta
        warn_of_large_delta(delta, users, 1 + level_of_caller())


def charge(estimator: Any, plan: Plan, rows: int, ledger: Any) -> None:
    """Charge a plan on ``rows`` records to a budget or a ledger, without opening a gate for it."""
    from accountant.book.book_ledger import BookLedger

    if (dataset := _dataset_of_a_book(ledger)) is not None:
        book, name = dataset
        # A gate of a book charges its plan when it opens.  Nothing asks these rows.
        book.ledger(name, np.zeros(rows), plan).close()
    elif isinstance(ledger, Budget):
        from algorithms.base.running_fits import spending_behind

        # What a step of a pipeline spends is also spent by the estimator that learns from it.
        estimator.spending().charge(ledger, plan, spending_behind(estimator))
    elif isinstance(ledger, (Filter, BookLedger)):
        # Fewer rows are allowed: a fold of the data, as in cross-validation.
        if rows > ledger.shape[0]:
            allowed = f"of these data: it has {ledger.shape[0]} rows, and the fit {rows}"
            raise ParameterError("ledger", ledger, allowed)
        spend = ledger.spend_plan if isinstance(ledger, Filter) else ledger.spend
        spend(plan)
    else:
        raise ParameterError("ledger", type(ledger), ALLOWED)


def _dataset_of_a_book(ledger: Any) -> tuple[Any, str] | None:
    """Return the book and the name of the data set to charge; None where ``ledger`` is no book."""
    from accountant.book.book import Book

    is_pair = isinstance(ledger, tuple) and len(ledger) == 2
    book, name = ledger if is_pair else (ledger, None)
    if not isinstance(book, Book):
        return None
    if name is not None:
        return book, name
    if len(book.names) != 1:
        raise ParameterError("ledger", book.names, "(book, name): this book has not one data set")
    return book, book.names[0]


def refuse_repeats(estimator: Any, plan: Plan) -> None:
    """Refuse a fit inside a routine such as cross-validation, which fits clones of an estimator.

    Without a shared ledger each of these fits on the same data would spend the estimator's whole
    epsilon and delta.

    Raises
    ------
    BudgetExceeded
        If scikit-learn is fitting clones now; it names what all fits cost together.
    """
    from algorithms.base.running_fits import repeated_fits

    repeats = repeated_fits()
    if repeats is None or repeats.fits == 1 or estimator.is_not_private(plan):
        return
    budget = Budget(estimator.epsilon, estimator.delta)
    fits = repeats.fits or 2  # two where the number is not known: the least that repeats
    repetition = f"{fits} fits" if repeats.fits else "two fits, and there may be more,"
    total = total_epsilon(plan, fits, budget.delta)
    remedy = (
        f"{repetition} of {type(estimator).__name__} by {repeats.routine} cost that much at delta "
        f"{budget.delta:g}: PrivateSearchCV tunes for less"
    )
    shared = shared_budget(plan, fits, total, budget.delta)
    if shared is not None:
        remedy += (
            f"; to spend it, give every fit ledger={shared} (params={{'ledger': ...}} of "
            "cross_val_score, a keyword of GridSearchCV.fit), or (book, name)"
        )
    raise BudgetExceeded(0.0, total, budget, limit=budget.epsilon, remedy=remedy)


def total_epsilon(plan: Plan, fits: int, delta: float) -> float:
    """Return the epsilon at ``delta`` of ``fits`` fits of one plan together.

    Where `Tight` cannot compose the plan with itself, the epsilons at delta / fits are added up.
    """
    try:
        return Tight().epsilon(Repeat(plan, fits), delta)
    except UnsupportedPlan:
        return fits * Tight().epsilon(plan, delta / fits)


def shared_budget(plan: Plan, fits: int, total: float, delta: float) -> Budget | None:
    """Return a budget that pays for all fits, each charged by itself; None where none is found.

    Each fit may follow from answers of earlier ones.  So it needs more than the ``total`` epsilon
    of a plan that is fixed in advance.
    """
    try:
        for step in range(100):  # up to 2.7 times the total
            budget = Budget(math.ceil(1000 * total * 1.01**step) / 1000, delta)
            notion = notion_of(name=None, budget=budget)
            cost = notion.after(notion.zero, plan)
            if not notion.refuses(notion.zero, notion.times(cost, fits)):
                return budget
    except (OverflowError, UnsupportedPlan):  # an infinite total, or costs that do not add up
        pass
    return None
