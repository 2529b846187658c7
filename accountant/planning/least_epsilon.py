"""The least epsilon for wanted accuracies: which mechanism answers each statistic, at what noise.

Each statistic has an error that it may exceed with a small probability only.  For every mechanism
that can answer it, the largest noise that keeps to this error is known before the data are.  What
remains is a choice of one mechanism each, so that all together cost the least epsilon at a delta.
Rényi divergences add up: at one order the best choice is that of the least divergence for each
statistic by itself.  Each of a grid of orders gives such a choice, and the one with the least exact
cost is taken.

`allocate` answers the reverse question: the least error that a budget allows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from accountant.accountants.tight import Tight
from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import BOOLEAN, DELTA, POSITIVE, IntegerRange, OneOf, OrNone
from accountant.errors import ParameterError
from accountant.formatting import format_lower, format_upper
from accountant.numerics import Array
from accountant.planning.error_measures import PROBABILITY, Measure, Quantile, Selection
from accountant.planning.requests import MAX_NAME_LENGTH, Wanted
from accountant.plans.plan import Plan, Repeat, Sequential
from accountant.serialisation.registry import plan_kinds
from accountant.table_display import Table, TableDisplay

KIND = OneOf(("count", "sum", "selection"))
CANDIDATES = OrNone(IntegerRange(2))
WHOLE = IntegerRange(1)
ORDERS = 1 + np.geomspace(0.01, 1e4, 61)  # of Rényi divergences that decide a delta
COLUMNS = ("statistic", "count", "wanted", "mechanism", "noise", "error")
SEARCH_ACCOUNTANT = Tight(width=1e-3)  # choices nearer than this share of epsilon are equally good


class Answer(NamedTuple):
    """How a statistic is answered: a mechanism with its noise, and the error that this gives."""

    mechanism: Plan
    scale: float
    error: float


@final
@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic, and the error that its answer may exceed with a small probability only.

    Parameters
    ----------
    kind : {"count", "sum", "selection"}
        A whole number, a real number (also a mean: its sensitivity is that of the sum over the
        number of records), or the index of the best of some candidates.
    error : float
        Positive, in the units of the statistic.  Of a selection: how far the winner's score may lie
        below the best.
    probability : float, optional
        In (0, 1): the error is not exceeded with this probability, for each answer by itself.
    count : int, optional
        Number of statistics of this kind, at least 1; a person may be in all of them.
    sensitivity : float, optional
        How far one person moves the statistic, or each score; whole for a count.
    candidates : int, optional
        Number of candidates of a selection, at least 2.
    monotone : bool, optional
        Of a selection: whether a person moves all scores up, or all down.
    name : str, optional
        For tables.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or given for another kind.

    Examples
    --------
    >>> from accountant import Statistic
    >>> Statistic("count", error=5.0, probability=0.95, count=12, name="visits each month").label
    'visits each month'
    """

    kind: str
    error: float
    probability: float = 0.95
    count: int = 1
    sensitivity: float = 1.0
    candidates: int | None = None
    monotone: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        kind = KIND.check("kind", self.kind)
        domains: dict[str, Any] = {
            "error": POSITIVE,
            "probability": PROBABILITY,
            "count": WHOLE,
            "sensitivity": IntegerRange(1, floats=True) if kind == "count" else POSITIVE,
            "candidates": CANDIDATES,
            "monotone": BOOLEAN,
        }
        for name, domain in domains.items():
            object.__setattr__(self, name, domain.check(name, getattr(self, name)))
        if (self.candidates is None) == (kind == "selection"):
            allowed = "given for a selection" if kind == "selection" else "left out: no selection"
            raise ParameterError("candidates", self.candidates, allowed)
        if self.monotone and kind != "selection":
            raise ParameterError("monotone", self.monotone, "False, as it is no selection")
        is_text = isinstance(self.name, str) and self.name.isprintable()
        if not (is_text and len(self.name) <= MAX_NAME_LENGTH):
            allowed = f"printable text of at most {MAX_NAME_LENGTH} characters"
            raise ParameterError("name", self.name, allowed)

    @property
    def label(self) -> str:
        """The name of the statistic, or of its kind."""
        return self.name or self.kind

    @property
    def measure(self) -> Measure:
        """The measure of its error."""
        if self.candidates is not None:
            return Selection(self.candidates, self.probability)
        return Quantile(self.probability)

    def requests(self) -> list[Wanted]:
        """Return a request for each mechanism that can answer the statistic.

        Returns
        -------
        list of Wanted
            With the error as their target, in the order of the mechanisms' names.
        """
        monotone = {"monotone": True} if self.monotone else {}
        return [
            Wanted(
                kind,
                self.measure,
                count=self.count,
                target=self.error,
                name=self.name,
                sensitivity=self.sensitivity,
                **monotone,
            )
            for name, kind in sorted(plan_kinds().items())
            if getattr(kind, "statistic", None) == self.kind
        ]

    def answers(self, delta: float) -> list[Answer]:
        """Return how each mechanism would answer, with the largest noise that keeps to the error.

        Parameters
        ----------
        delta : float
            In [0, 1); mechanisms without a finite epsilon at it are left out.

        Returns
        -------
        list of Answer
            At least one.

        Raises
        ------
        ParameterError
            If no mechanism can reach the error.
        """
        answers = []
        for request in self.requests():
            try:
                scale = request.settled
                mechanism = request.plan(scale)
                error = request.error_of(mechanism, scale)
            except ParameterError:  # this mechanism has no such error
                continue
            if scale is not None and math.isfinite(Tight().epsilon(mechanism, delta)):
                answers.append(Answer(mechanism, scale, error))
        if not answers:
            allowed = f"one that a mechanism can reach, for {self.label}"
            raise ParameterError("error", self.error, allowed)
        return answers


Choice = tuple[Answer, ...]  # an answer for each kind of statistics
# from the statistics and a delta to an epsilon below which no mechanism has these errors
EpsilonBound = Callable[[tuple[Statistic, ...], float], float]


@final
@dataclass(frozen=True)
class LeastEpsilon(TableDisplay):
    """Statistics with the mechanisms that answer them at the least epsilon.  Prints as a table.

    Parameters
    ----------
    statistics : tuple of Statistic
        What is wanted.
    answers : tuple of Answer
        A mechanism, its noise scale, and the error at the wanted probability, for each.
    delta : float
        The delta at which epsilon is least.
    epsilon : float
        What all answers cost at ``delta``, by `Tight`; rounded up.
    lower : float or None
        No mechanism at all has these errors with a smaller epsilon; None where no bound was asked.

    Examples
    --------
    >>> from accountant import Statistic, least_epsilon
    >>> found = least_epsilon([Statistic("count", error=3.0)], delta=0.0)
    >>> type(found.answers[0].mechanism).__name__, round(found.epsilon, 6)
    ('DiscreteLaplace', 0.831889)
    """

    statistics: tuple[Statistic, ...]
    answers: tuple[Answer, ...]
    delta: float
    epsilon: float
    lower: float | None = None

    @property
    def plan(self) -> Plan:
        """All answers in sequence, as the plan to give to a `Ledger`."""
        return _plan(self.statistics, self.answers)

    def __repr__(self) -> str:
        return f"<LeastEpsilon: epsilon {format_upper(self.epsilon, 9)} for {self.plan!r}>"

    def _table(self) -> Table:
        rows = [
            (
                statistic.label,
                statistic.count,
                f"{statistic.error:g} with probability {statistic.probability:g}",
                type(answer.mechanism).__name__,
                answer.scale,
                answer.error,
            )
            for statistic, answer in zip(self.statistics, self.answers, strict=True)
        ]
        return Table(COLUMNS, rows, self._caption())

    def _caption(self) -> str:
        cost = f"epsilon {format_upper(self.epsilon, 9)} at delta {self.delta:g}"
        if self.lower is None:
            return cost
        return f"{cost}; no mechanism has these errors below {format_lower(self.lower, 9)}"

    def __str__(self) -> str:
        table = self._table()
        rows = [COLUMNS, *map(table.shown_row, table.rows)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
        lines = [
            "  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)) for row in rows
        ]
        return "\n".join([*(line.rstrip() for line in lines), self._caption()])


def least_epsilon(
    statistics: Iterable[Statistic], delta: float, lower_bound: EpsilonBound | None = None
) -> LeastEpsilon:
    """Return mechanisms that keep to the errors of all statistics, of the least epsilon found.

    Each statistic may be answered by every mechanism that declares its kind, with the largest noise
    that keeps to the error.  Never sees data.

    Parameters
    ----------
    statistics : iterable of Statistic
        What is to be answered, and how exactly.
    delta : float
        In [0, 1).
    lower_bound : callable, optional
        ``lower_bound(statistics, delta)``: an epsilon below which no mechanism has these errors,
        such as `audits.minimax.least_epsilon_bound`.

    Returns
    -------
    LeastEpsilon
        The mechanisms; its ``epsilon`` is rounded up.

    Raises
    ------
    ParameterError
        If a statistic has an error that no mechanism can reach, or delta is out of its range.

    Examples
    --------
    >>> from accountant import Statistic, least_epsilon
    >>> visits = Statistic("count", error=20.0, probability=0.95, count=52, name="visits each week")
    >>> found = least_epsilon([visits], delta=1e-6)
    >>> type(found.answers[0].mechanism).__name__, round(found.epsilon, 3)
    ('DiscreteGaussian', 3.216)
    """
    if not isinstance(statistics, Iterable):
        raise ParameterError("statistics", statistics, "a list of Statistic")
    wanted, delta = tuple(statistics), DELTA.check("delta", delta)
    if not wanted or not all(isinstance(statistic, Statistic) for statistic in wanted):
        raise ParameterError("statistics", wanted, "a list of Statistic, at least one")
    # Equal statistics have equal answers: those of their kind, which is all but count and name.
    kinds = [dataclasses.replace(statistic, count=1, name="") for statistic in wanted]
    options: dict[Statistic, list[Answer]] = {}
    for kind, statistic in zip(kinds, wanted, strict=True):
        if kind not in options:
            options[kind] = statistic.answers(delta)

    def answers_of(choice: Choice) -> tuple[Answer, ...]:
        answer_of_kind = dict(zip(options, choice, strict=True))
        return tuple(answer_of_kind[kind] for kind in kinds)

    def epsilon_of(choice: Choice) -> float:
        return SEARCH_ACCOUNTANT.epsilon(_plan(wanted, answers_of(choice)), delta)

    best_numbers = [
        np.argmin([_divergences(answer) for answer in answers], axis=0).tolist()
        for answers in options.values()
    ]
    choices = {
        tuple(answers[i] for answers, i in zip(options.values(), numbers, strict=True))
        for numbers in zip(*best_numbers, strict=True)
    }
    # Equal bounds may have several choices: the names of mechanisms decide which is taken.
    answers = answers_of(min(sorted(choices, key=repr), key=epsilon_of))
    epsilon = Tight().epsilon(_plan(wanted, answers), delta)
    lower = None if lower_bound is None else min(lower_bound(wanted, delta), epsilon)
    return LeastEpsilon(wanted, answers, delta, epsilon, lower)


def _divergences(answer: Answer) -> Array:
    """Return the Rényi divergence of the worse direction at each of `ORDERS`, the last infinite."""
    loss = loss_of_plan(answer.mechanism)
    return np.append(np.maximum(loss.renyi(ORDERS), loss.reversed.renyi(ORDERS)), loss.max_loss)


def _plan(statistics: Iterable[Statistic], answers: Iterable[Answer]) -> Plan:
    parts = [
        Repeat(answer.mechanism, statistic.count)
        for statistic, answer in zip(statistics, answers, strict=True)
    ]
    return parts[0] if len(parts) == 1 else Sequential(parts)
