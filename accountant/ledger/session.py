"""A session over a book: questions to one frame, each answered, charged and kept under its words.

The questions are those of `algorithms.frames`, or others that have their methods `costing`, `plan`
and `release`: this layer knows no statistics.
"""

from __future__ import annotations

import hashlib
import unicodedata
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any, Self, final

from accountant.accountants.tight import Tight
from accountant.table_display import Table, TableDisplay


@final
class Session(TableDisplay):
    """Questions to a frame at the cost of a data set of a book; made by `Book.session`.

    Calling it answers a question.  A question that was asked before, the same in all that it says
    and at the same cost, has its answer already: it is given again, and costs nothing.

    Parameters
    ----------
    book : Book
        What is charged.
    name : str
        Name of the data set.
    frame : data frame
        The rows.
    schema : Schema
        What is public of the frame.
    facts : dict
        Further arguments of `Book.ledger`.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from accountant import Book, Budget
    >>> from algorithms.frames import Category, Schema, count
    >>> folder = tempfile.TemporaryDirectory()
    >>> book = Book.create(f"sqlite:///{folder.name}/budgets.db")
    >>> status = book.dataset("visits", budget=Budget(1.0))
    >>> frame = pd.DataFrame({"region": ["north", "south"] * 500})
    >>> schema = Schema({"region": Category(["north", "south"])})
    >>> with book.session("visits", frame, schema) as ask:
    ...     answer = ask(count(by="region"), epsilon=0.25)
    ...     round(ask.cost(count(), epsilon=0.5), 6), ask.fits(count(), epsilon=0.25)
    (0.5, 3)
    >>> bool(abs(answer.value - 500).max() < 80), list(ask.answers)
    (True, ['count by region, epsilon 0.25'])
    >>> book.close(); folder.cleanup()
    """

    def __init__(
        self, book: Any, name: str, frame: Any, schema: Any, facts: dict[str, Any]
    ) -> None:
        self._book, self._name, self._schema = book, name, schema
        self._stack, self._answers = ExitStack(), dict[str, Any]()
        self._labels = dict[str, str]()  # of the first question of the same words
        self._ledger = self._stack.enter_context(book.ledger(name, frame, **facts))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __call__(self, question: Any, **cost: Any) -> Any:
        """Return the answer of a question, and charge the book.

        Parameters
        ----------
        question : Question
            Such as ``count(by="region")``.
        **cost : Any
            What it may cost, where the question does not say: epsilon and delta, or rho.

        Returns
        -------
        Answer, ListedAnswer or RegressionAnswer
            Values with noise, and their intervals.

        Raises
        ------
        ParameterError
            If the frame has no such columns, or no cost is said; nothing is spent.
        BudgetExceeded
            If it does not fit what is left; nothing is spent.
        """
        stated = self._stated(question, cost)
        title = f"{stated}, {stated.cost}"
        # Words do not say all of a question, such as its confidence, and a book's names are short.
        digest = hashlib.sha256(repr((stated, self._schema)).encode()).hexdigest()[:12]
        printable = "".join(letter if letter.isprintable() else "?" for letter in title)
        label = f"{unicodedata.normalize('NFC', printable)[:150]} ({digest})"
        answer = stated.release(self._ledger, self._schema, label=label)
        first_label = self._labels.setdefault(title, label)
        self._answers[title if label == first_label else label] = answer
        return answer

    @property
    def answers(self) -> MappingProxyType[str, Any]:
        """The answers of this session, by question and cost.

        Where two questions have the same words, those of the second end in a code in brackets.
        """
        return MappingProxyType(self._answers)

    @property
    def left(self) -> float:
        """The epsilon that is left, at the budget's delta."""
        remaining: float = self._book.left(self._name)
        return remaining

    def cost(self, question: Any, **cost: Any) -> float:
        """Return the epsilon that a question costs alone, at the budget's delta.

        Parameters
        ----------
        question : Question
            It is not asked.
        **cost : Any
            As when it is asked.

        Returns
        -------
        float
            Rounded up.
        """
        plan = self._stated(question, cost).plan(self._schema)
        epsilon: float = Tight().epsilon(plan, self._book.status(self._name).budget.delta)
        return epsilon

    def fits(self, question: Any, **cost: Any) -> int:
        """Return how many times a question fits what is left.

        Parameters
        ----------
        question : Question
            It is not asked.
        **cost : Any
            As when it is asked.

        Returns
        -------
        int
            0 where it does not fit.
        """
        plan = self._stated(question, cost).plan(self._schema)
        times: int = self._book.remaining(self._name, plan)
        return times

    def __repr__(self) -> str:
        return f"<Session of {self._name!r}: {len(self._answers)} answers>"

    def _stated(self, question: Any, cost: dict[str, Any]) -> Any:
        return question.costing(**cost) if cost else question

    def _table(self) -> Table:
        rows = [(title, repr(answer)) for title, answer in self._answers.items()]
        return Table(["question", "answer"], rows, f"answers of {self._name}")
