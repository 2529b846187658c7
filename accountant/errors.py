"""All errors of the project: types with data, and a message that names the remedy."""

from __future__ import annotations


def _first_line(value: object, longest: int) -> str:
    """Return the first line of a value's repr, cut to at most ``longest`` characters.

    Arrays and tables may be the data, given in the place of another argument: none is shown.
    """
    shape = getattr(value, "shape", ())
    if shape and isinstance(shape, tuple):
        return f"{type(value).__name__} of shape {shape}"
    line = (repr(value).splitlines() or [""])[0]
    return line if len(line) <= longest else line[: longest - 3] + "..."


class ParameterError(ValueError):
    """An argument is outside its allowed values.

    Parameters
    ----------
    argument : str
        Its name.
    value : object
        What was given; never a private value.
    allowed : str
        What is allowed.

    Examples
    --------
    >>> from accountant import ParameterError, PureLoss
    >>> try:
    ...     PureLoss(-1.0)
    ... except ParameterError as error:
    ...     print(error)
    epsilon must be a number in [1e-300, 1e+300], got -1.0
    """

    def __init__(self, argument: str, value: object, allowed: str) -> None:
        self.argument, self.value, self.allowed = argument, value, allowed
        self.owner = ""  # the class whose argument it is, where that is known
        super().__init__(argument, value, allowed)

    def __str__(self) -> str:
        shown = _first_line(self.value, longest=300 if isinstance(self.value, str) else 80)
        owner = f"{self.owner}: " if self.owner else ""
        return f"{owner}{self.argument} must be {self.allowed}, got {shown}"


class PrivateValueError(ParameterError):
    """A private value is not what it must be: the message names the rule, never the value.

    Parameters
    ----------
    argument : str
        Its name.
    allowed : str
        What is allowed.
    index : tuple of int, optional
        Place of the first wrong entry; None where the whole value is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import Budget, Filter, PrivateValueError
    >>> from mechanisms import Laplace
    >>> gate = Filter(np.array([1.0, 2.0]), Budget(1.0))
    >>> try:
    ...     gate.release(Laplace(1.0), lambda data: data / 0 * 0 if data.size > 9 else "text")
    ... except PrivateValueError as error:
    ...     print(type(error).__name__)
    PrivateValueError
    """

    def __init__(self, argument: str, allowed: str, index: tuple[int, ...] | None = None) -> None:
        super().__init__(argument, None, allowed)
        self.index = index
        self.args = (argument, allowed, index)

    def __str__(self) -> str:
        index_text = ", ".join(map(str, self.index or ()))
        where = f"wrong at index {index_text}; " if index_text else ""
        return f"{self.argument} must be {self.allowed} ({where}the value is private and not shown)"


class IdealisedNoiseWarning(UserWarning):
    """Floats decide the noise of a release of data: its last digits can reveal them.

    A gate without a seed warns once.  ``arithmetic="exact"``, the default of every mechanism that
    offers it, is safe to publish.

    References
    ----------
    Mironov (2012).

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from accountant import Budget, Filter, IdealisedNoiseWarning
    >>> from mechanisms import Laplace
    >>> gate = Filter(np.ones(50, bool), Budget(1.0))
    >>> with warnings.catch_warnings(record=True, action="always") as found:
    ...     answer = gate.release(Laplace(10.0, arithmetic="idealised"), np.sum)
    >>> [one.category.__name__ for one in found]
    ['IdealisedNoiseWarning']
    """


class LargeDeltaWarning(UserWarning):
    """A budget's delta is above 1/n: it allows publishing the whole record of a random person.

    A gate on data of n users warns of it, and so does the fit of an estimator, without a seed.
    Where n is not known, as by `calibrate`, a delta above 0.01 is warned of.

    References
    ----------
    Dwork & Roth (2014), Section 2.3: a mechanism that releases delta n random records whole.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from accountant import Budget, Filter, LargeDeltaWarning
    >>> with warnings.catch_warnings(record=True, action="always") as found:
    ...     gate = Filter(np.arange(50.0), Budget(1.0, 0.1))
    >>> [one.category.__name__ for one in found]
    ['LargeDeltaWarning']
    """


class SensitivityWarning(UserWarning):
    """The sensitivity of a release is hardly that of its query.

    A gate without a seed warns where a plain sum of numbers has the sensitivity 1 that a mechanism
    has by default, before it answers; and where an answer, with its noise, is far above sensitivity
    times rows.  It looks at the mechanism, the code of the query, the type of the data and their
    number of rows, and what was released: at no value, so that the warning reveals nothing.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from accountant import Budget, Filter
    >>> from mechanisms import Laplace
    >>> gate = Filter(np.array([23.0, 35.0, 51.0]), Budget(1.0))
    >>> with warnings.catch_warnings(record=True, action="always") as found:
    ...     answer = gate.release(Laplace(10.0), np.sum)  # which says sensitivity 1
    >>> [one.category.__name__ for one in found]
    ['SensitivityWarning']
    >>> total = Laplace(1000.0, sensitivity=100.0)
    >>> answer = gate.release(total, lambda ages: np.clip(ages, 0, 100).sum())
    """


class UnsupportedPlan(RuntimeError):
    """An accountant cannot bound a plan.

    Parameters
    ----------
    node : object
        The part of the plan that it cannot bound.
    accountant : str
        Its name.
    instead : str
        The remedy: what would work.

    Examples
    --------
    >>> from accountant import GDP, UnsupportedPlan, ZCDPLoss
    >>> try:
    ...     GDP().epsilon(ZCDPLoss(0.1), delta=1e-6)
    ... except UnsupportedPlan as error:
    ...     print(error.accountant)
    GDP
    """

    def __init__(self, node: object, accountant: str, instead: str) -> None:
        self.node, self.accountant, self.instead = node, accountant, instead
        super().__init__(node, accountant, instead)

    def __str__(self) -> str:
        node = _first_line(self.node, longest=300)
        return f"{self.accountant} cannot bound {node}; {self.instead}"


class OffPlan(RuntimeError):
    """A release that the plan does not allow was asked for: nothing was spent, read or drawn.

    Parameters
    ----------
    asked : object
        The mechanism that was asked for.
    allowed : object
        What the plan allows next; None at its end.
    why : str
        Further words, such as which users were already asked.

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import Ledger, OffPlan
    >>> from mechanisms import Laplace
    >>> ledger = Ledger(np.ones(3, bool), 1 * Laplace(2.0))
    >>> try:
    ...     ledger.release(Laplace(1.0), np.sum)
    ... except OffPlan as error:
    ...     print(error.allowed)
    Laplace(scale=2.0, sensitivity=1.0, arithmetic=EXACT)
    """

    def __init__(self, asked: object, allowed: object, why: str = "") -> None:
        self.asked, self.allowed, self.why = asked, allowed, why
        super().__init__(asked, allowed, why)

    def __str__(self) -> str:
        allowed = "nothing more" if self.allowed is None else repr(self.allowed)
        return f"asked to release {self.asked!r}; the plan allows {allowed}" + (
            f" ({self.why})" if self.why else ""
        )


class BudgetExceeded(RuntimeError):
    """More was asked for than the budget has left: nothing was spent, read or drawn.

    Parameters
    ----------
    spent : float
        Spent before, in ``unit``.
    asked : float
        Asked for, in ``unit``.
    budget : object
        The budget.
    unit : str
        What all numbers count: epsilon, or what a filter adds up, such as rho.
    limit : float, optional
        What the budget allows in all, in ``unit``.
    remedy : str
        What would fit.

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import Budget, BudgetExceeded, Filter
    >>> from mechanisms import Laplace
    >>> try:
    ...     Filter(np.ones(3, bool), Budget(1.0)).release(Laplace(0.5), np.sum)
    ... except BudgetExceeded as error:
    ...     print(error.spent, error.asked, error.limit, error.unit)
    0.0 2.0 1.0 epsilon
    """

    def __init__(
        self,
        spent: float,
        asked: float,
        budget: object,
        unit: str = "epsilon",
        limit: float | None = None,
        remedy: str = "",
    ) -> None:
        self.spent, self.asked, self.budget, self.unit = spent, asked, budget, unit
        self.limit, self.remedy = limit, remedy
        super().__init__(spent, asked, budget, unit, limit, remedy)

    def __str__(self) -> str:
        if self.limit is None:
            numbers = f"spent {self.unit} {self.spent:.6g}, asked {self.asked:.6g}"
            return f"{numbers}, budget {self.budget!r}" + (
                f"; {self.remedy}" if self.remedy else ""
            )
        remaining = max(self.limit - self.spent, 0.0)
        # enough digits to show that more is requested than remains
        digits = next(
            (d for d in range(6, 17) if f"{self.asked:.{d}g}" != f"{remaining:.{d}g}"), 17
        )
        needs = (
            f"this needs {self.unit} {self.asked:.{digits}g}, and {remaining:.{digits}g} is left"
        )
        total = f"of the limit {self.limit:.6g} ({self.spent:.6g} is spent; {self.budget!r})"
        return f"{needs} {total}" + (f"; {self.remedy}" if self.remedy else "")


class DatasetClosed(RuntimeError):
    """A data set of a book was closed or has expired: nothing was spent, read or drawn.

    Parameters
    ----------
    dataset : str
        Its name.
    why : str
        Since when, and the reason; of an expired data set the remedy too.

    Examples
    --------
    >>> from accountant import DatasetClosed
    >>> print(DatasetClosed("ages", "was closed at 2026-01-31T12:00:00 (study ended)"))
    data set 'ages' was closed at 2026-01-31T12:00:00 (study ended); stored answers can be read
    """

    def __init__(self, dataset: str, why: str) -> None:
        self.dataset, self.why = dataset, why
        super().__init__(dataset, why)

    def __str__(self) -> str:
        return f"data set {self.dataset!r} {self.why}; stored answers can be read"


class LedgerBusy(RuntimeError):
    """Other processes kept a book busy for longer than the timeout: nothing was spent or read.

    Parameters
    ----------
    book : str
        Its name, without a password.
    seconds : float
        How long was waited.
    why : str, optional
        What was waited for, where it is not a lock.

    Examples
    --------
    >>> from accountant import LedgerBusy
    >>> issubclass(LedgerBusy, RuntimeError)
    True
    """

    def __init__(self, book: str, seconds: float, why: str = "") -> None:
        self.book, self.seconds, self.why = book, seconds, why
        super().__init__(book, seconds, why)

    def __str__(self) -> str:
        busy = f": {self.why}, also after" if self.why else " was locked by others for"
        return f"{self.book}{busy} {self.seconds:g} s; nothing was spent, retry"


class LedgerClockAhead(RuntimeError):
    """The clock is far ahead of a book's log, so no window is opened by it: nothing was spent.

    Parameters
    ----------
    book : str
        Its name, without a password.
    log_time : str
        The time by which the log counts windows.
    clock : str
        What the clock says.

    Examples
    --------
    >>> from accountant import LedgerClockAhead
    >>> LedgerClockAhead("book.db", "2026-01-31T12:00:00", "2026-03-01T08:00:00").clock
    '2026-03-01T08:00:00'
    """

    def __init__(self, book: str, log_time: str, clock: str) -> None:
        self.book, self.log_time, self.clock = book, log_time, clock
        super().__init__(book, log_time, clock)

    def __str__(self) -> str:
        # the first 19 characters of a time are those up to its second, the first 10 its day
        return (
            f"{self.book}: the clock says {self.clock[:19]}, more than one day after the log's "
            f"time, {self.log_time[:19]} (UTC); nothing was spent, read or drawn; if the clock is "
            f"right, open the book with clock={self.clock[:10]!r}, or with clock='trusted' where "
            "the clock is always kept right"
        )


class LedgerCorrupt(RuntimeError):
    """A book was changed or damaged after it was written.

    Parameters
    ----------
    book : str
        Its name, without a password.
    why : str
        What is wrong.
    entry : int, optional
        Number of the wrong entry, where one is.

    Examples
    --------
    >>> from accountant import LedgerCorrupt
    >>> LedgerCorrupt("book.db", "a hash is wrong", 3).entry
    3
    """

    def __init__(self, book: str, why: str, entry: int | None = None) -> None:
        self.book, self.why, self.entry = book, why, entry
        super().__init__(book, why, entry)

    def __str__(self) -> str:
        where = "" if self.entry is None else f" (entry {self.entry})"
        return f"{self.book}: {self.why}{where}; spend nothing more from it and compare backups"


class LedgerViolated(LedgerCorrupt):
    """Entries of some data sets break the terms of these; the log itself is whole.

    An older version of this package may have written them, which does not know such terms.

    Parameters
    ----------
    book : str
        Its name, without a password.
    datasets : dict of str to (str, int)
        For each such data set what is wrong, and the number of its first wrong entry.
    intact : int or None
        How many other data sets are as they must be; None where they were not looked at.

    Examples
    --------
    >>> from accountant import LedgerViolated
    >>> violated = LedgerViolated("b.db", {"ages": ("spends more than the budget", 3)}, None)
    >>> print(violated)
    b.db: data set 'ages': spends more than the budget (entry 3); spend nothing more from it
    """

    def __init__(self, book: str, datasets: dict[str, tuple[str, int]], intact: int | None) -> None:
        self.datasets, self.intact = datasets, intact
        super().__init__(book, *next(iter(datasets.values())))
        self.args = book, datasets, intact

    def __str__(self) -> str:
        broken = "; ".join(
            f"data set {name!r}: {why} (entry {entry})"
            for name, (why, entry) in self.datasets.items()
        )
        others = ""
        if self.intact is not None:
            others = f".  The log is whole, and {self.intact} other data sets are as they must be"
        return f"{self.book}: {broken}; spend nothing more from it{others}"


class LedgerNewer(RuntimeError):
    """A newer version wrote to a book what this one does not know: it may be read only.

    Parameters
    ----------
    book : str
        Its name, without a password.
    why : str
        What is not known.

    Examples
    --------
    >>> from accountant import LedgerNewer
    >>> print(LedgerNewer("book.db", "has the format 9"))
    book.db: has the format 9, which this version does not know; nothing was spent; update dp-attest
    """

    def __init__(self, book: str, why: str) -> None:
        self.book, self.why = book, why
        super().__init__(book, why)

    def __str__(self) -> str:
        unknown = f"{self.book}: {self.why}, which this version does not know"
        return f"{unknown}; nothing was spent; update dp-attest"


class RoleRefused(RuntimeError):
    """The roles of a book do not let an author do this: nothing was spent, read or written.

    Parameters
    ----------
    book : str
        Its name, without a password.
    why : str
        Who may do it, or what is missing.

    Examples
    --------
    >>> from accountant import RoleRefused
    >>> print(RoleRefused("book.db", "only a curator changes the roles: ada"))
    book.db: only a curator changes the roles: ada; nothing was written
    """

    def __init__(self, book: str, why: str) -> None:
        self.book, self.why = book, why
        super().__init__(book, why)

    def __str__(self) -> str:
        return f"{self.book}: {self.why}; nothing was written"


class LedgerUnwritable(OSError):
    """A book cannot be written: its disk is full, read-only or failing.  No answer was given.

    Examples
    --------
    >>> from accountant import LedgerUnwritable
    >>> issubclass(LedgerUnwritable, OSError)
    True
    """


class UnhealthyRandomness(RuntimeError):
    """The noise generator repeats itself, or what it gave before: nothing was spent or read.

    Parameters
    ----------
    why : str
        What was noticed.

    Examples
    --------
    >>> from accountant import UnhealthyRandomness
    >>> issubclass(UnhealthyRandomness, RuntimeError)
    True
    """

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)

    def __str__(self) -> str:
        return f"the noise is not fresh: {self.why}; nothing was released"
