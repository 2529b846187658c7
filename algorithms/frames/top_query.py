"""The labels that most persons have, of a column whose labels are public.

References: Dwork, McSherry, Nissim & Smith (2006); Durfee & Rogers (2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.plans.parallel import Stated
from algorithms.frames.cells import Axis
from algorithms.frames.conditions import Condition
from algorithms.frames.guarantees import Guarantee
from algorithms.frames.listing import ListedAnswer
from algorithms.frames.questions import Question, refuse_unless_whole, unseen
from algorithms.frames.schema import Schema
from algorithms.statistics.private_top_k import PrivateTopK, released_top


@final
@dataclass(frozen=True, slots=True)
class TopQuery(Question):
    """The labels that most persons have; made by `top_k`.

    Parameters
    ----------
    column : str
        A column of labels.
    k : int
        How many labels.
    where : Condition or None
        Which rows count.
    epsilon, delta : float
        What it may cost.
    level : float
        Chance that an interval covers.

    Examples
    --------
    >>> from accountant import Tight
    >>> from algorithms.frames import Category, Schema, top_k
    >>> schema = Schema({"job": Category(["cook", "nurse", "pilot"])})
    >>> 0.49 < Tight().epsilon(top_k("job", 2, epsilon=0.5).plan(schema), delta=0.0) <= 0.5
    True
    """

    column: str
    k: int
    where: Condition | None
    epsilon: float
    delta: float
    level: float

    keys = ()

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that it reads, but the one that names persons."""
        return self._used(self.column)

    def check(self, schema: Schema) -> None:
        """Refuse columns that the schema does not declare, or not as they are used.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.
        """
        self._check(schema)
        Axis(self.column).size(schema)  # it has labels
        known = len(schema.kind(self.column).labels)
        if self.k > known:
            raise ParameterError("k", self.k, f"at most {known}, the labels of {self.column!r}")

    def group_by(self, keys: Any) -> NoReturn:
        """Refuse groups: the labels that most persons have are sought among all rows."""
        allowed = f"asked of all rows; contingency(['{self.column}', ...]) counts labels by group"
        raise ParameterError("keys", keys, allowed)

    def _estimator(self, schema: Schema) -> PrivateTopK:
        self.check(schema)
        return PrivateTopK(
            k=self.k, categories=range(len(schema.kind(self.column).labels)), epsilon=self.epsilon,
            delta=self.delta, level=self.level, relation=schema.relation,
        )  # fmt: skip

    def plan(self, schema: Schema) -> Stated:
        """Return what will be released; needs no data.

        A person counts once for each label, and has at most as many labels as rows.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.

        Returns
        -------
        Stated
            Noise on all counts; or rounds of selection, and noise on the counts of those selected.
        """
        chosen = self._estimator(schema).plan((1, schema.rows_per_person))
        return Stated(chosen, schema.relation)

    def explain(self, schema: Schema) -> str:
        """Return in words what is done to the data, and what it costs; needs no data.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.

        Returns
        -------
        str
            A line for each fact.
        """
        *rounds, noise = self.plan(schema).leaves()
        lines = [*self._lines(schema), f"  neighbours: {schema.unit}"]
        if rounds:
            lines.append(f"  {len(rounds)} rounds of the exponential mechanism")
        kind, scale = type(noise).__name__, noise.scale  # type: ignore[attr-defined]  # a mechanism
        lines.append(f"  {kind} noise of scale {scale:.6g} persons")
        lines.append(f"  costs {Guarantee(self.epsilon, self.delta)}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self._words(f"top {self.k} of {self.column}")

    def release(self, ledger: Any, schema: Schema, label: str | None = None) -> ListedAnswer:
        """Release it through a ledger, a filter or the ledger of a book opened with its plan.

        Parameters
        ----------
        ledger : Ledger
            Holds the frame.  All that is released through it protects persons of one column.
        schema : Schema
            What is public of the frame.
        label : str, optional
            None: it is several releases; name the run of the plan in a book instead.

        Returns
        -------
        ListedAnswer
            Labels with how many persons have them, and intervals.

        Raises
        ------
        ParameterError
            If the frame has no such columns, or of other types; nothing is spent.
        OffPlan, BudgetExceeded
            If the ledger does not allow all of it; nothing is spent.
        """
        plan, facts = self.plan(schema), self._opened(ledger, schema)
        refuse_unless_whole(ledger, plan, label)
        labels = schema.kind(self.column).labels
        counted = unseen(lambda frame: self.persons_of_labels(frame, schema))
        given = list(plan.leaves()), len(labels), self.k, self.level, counted
        top, counts, ends = released_top(ledger, *given)
        named = {self.column: [labels[i] for i in top.tolist()]}
        *_, noise = plan.leaves()
        whole, scale = counts.astype(np.int64), float(noise.scale)  # type: ignore[attr-defined]  # a mechanism
        shown = "persons", whole, ends, self.level, scale, facts.backend
        return ListedAnswer(str(self), named, *shown)

    def persons_of_labels(self, frame: Any, schema: Schema) -> NDArray[np.int64]:
        """Return how many persons have each label.

        Parameters
        ----------
        frame : data frame
            The rows.
        schema : Schema
            What is public of the frame.

        Returns
        -------
        numpy.ndarray of int
            Private.
        """
        from algorithms.frames.partitions.reduction import Reading, reduced

        size = len(schema.kind(self.column).labels)
        counted = partial(persons_of_codes, column=self.column, size=size)
        found: NDArray[np.int64]
        found = reduced(frame, Reading(self.used, self.where, schema), counted)
        return found


def persons_of_codes(rows: Any, column: str, size: int) -> NDArray[np.int64]:
    """Return how many persons have each label of a column, of the rows that count."""
    values, persons = rows.kept()
    if (np.diff(persons) > 0).all():  # each of them has one row
        return np.bincount(values[column], minlength=size)
    pairs = np.unique(persons.astype(np.int64) * size + values[column].astype(np.int64))
    return np.bincount(pairs % size, minlength=size)
