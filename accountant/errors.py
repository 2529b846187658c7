"""The errors of the whole house: types with data, and a sentence that says what to do next."""

from __future__ import annotations


class ParameterError(ValueError):
    """An argument is not what it must be: names the argument, its value and the allowed range."""

    def __init__(self, argument: str, value: object, allowed: str) -> None:
        self.argument, self.value, self.allowed = argument, value, allowed
        super().__init__(argument, value, allowed)

    def __str__(self) -> str:
        shown = (repr(self.value).splitlines() or [""])[0]
        longest = 300 if isinstance(self.value, str) else 80
        shown = shown if len(shown) <= longest else shown[: longest - 3] + "..."
        return f"{self.argument} must be {self.allowed}, got {shown}"


class PrivateValueError(ParameterError):
    """A private value is not what it must be: says which rule it broke and where, never the value.

    ``index`` is the place of the first wrong entry, None where the whole value is wrong.
    """

    def __init__(self, argument: str, allowed: str, index: tuple[int, ...] | None = None) -> None:
        super().__init__(argument, None, allowed)
        self.index = index
        self.args = (argument, allowed, index)

    def __str__(self) -> str:
        place = ", ".join(map(str, self.index or ()))
        where = f"wrong at index {place}; " if place else ""
        return f"{self.argument} must be {self.allowed} ({where}the value is private and not shown)"


class UnsupportedPlan(RuntimeError):
    """An accountant cannot bound a plan: names the node, the accountant and what would work."""

    def __init__(self, node: object, accountant: str, instead: str) -> None:
        self.node, self.accountant, self.instead = node, accountant, instead
        super().__init__(node, accountant, instead)

    def __str__(self) -> str:
        return f"{self.accountant} cannot bound {self.node!r}; {self.instead}"


class OffPlan(RuntimeError):
    """A release the plan does not allow was asked for: nothing spent, looked at or drawn."""

    def __init__(self, asked: object, allowed: object, why: str = "") -> None:
        self.asked, self.allowed, self.why = asked, allowed, why
        super().__init__(asked, allowed, why)

    def __str__(self) -> str:
        allowed = "nothing more" if self.allowed is None else repr(self.allowed)
        return f"asked to release {self.asked!r}; the plan allows {allowed}" + (
            f" ({self.why})" if self.why else ""
        )


class BudgetExceeded(RuntimeError):
    """More than the budget was asked for: names what was spent, what was asked and the budget.

    ``unit`` is what the two numbers count: epsilon, or what a filter adds up.
    """

    def __init__(self, spent: float, asked: float, budget: object, unit: str = "epsilon") -> None:
        self.spent, self.asked, self.budget, self.unit = spent, asked, budget, unit
        super().__init__(spent, asked, budget, unit)

    def __str__(self) -> str:
        numbers = f"spent {self.unit} {self.spent:.6g}, asked {self.asked:.6g}"
        return f"{numbers}, budget {self.budget!r}"


class LedgerBusy(RuntimeError):
    """Others kept a book locked for as long as one waits: nothing spent, looked at or drawn."""

    def __init__(self, book: str, seconds: float) -> None:
        self.book, self.seconds = book, seconds
        super().__init__(book, seconds)

    def __str__(self) -> str:
        return f"{self.book} was locked by others for {self.seconds:g} s; nothing was spent, retry"


class LedgerCorrupt(RuntimeError):
    """A book is not what was written into it: names the book, what is wrong, and the entry."""

    def __init__(self, book: str, why: str, entry: int | None = None) -> None:
        self.book, self.why, self.entry = book, why, entry
        super().__init__(book, why, entry)

    def __str__(self) -> str:
        where = "" if self.entry is None else f" (entry {self.entry})"
        return f"{self.book}: {self.why}{where}; spend nothing more from it and compare backups"


class LedgerUnwritable(OSError):
    """A book cannot be written, its disk full, read-only or failing: nothing was answered."""


class UnhealthyRandomness(RuntimeError):
    """The generator of noise repeats itself, or what it gave before: nothing spent or looked at."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)

    def __str__(self) -> str:
        return f"the noise is not fresh: {self.why}; nothing was released"
