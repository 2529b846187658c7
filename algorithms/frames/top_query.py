"""The labels that most persons have, of a column whose labels are public.

References: Dwork, McSherry, Nissim & Smith (2006); Durfee & Rogers (2019).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.ledger.frames import FrameFacts
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Plan, Sequential
from algorithms.base.renamed_parameters import renamed_parameters
from algorithms.frames.cells import Axis, table_shape
from algorithms.frames.conditions import Condition
from algorithms.frames.framed import ListedAnswer, named_cells
from algorithms.frames.guarantees import Guarantee
from algorithms.frames.questions import Question, unseen
from algorithms.frames.schema import Schema
from algorithms.statistics.private_top_k import count_noise, largest, released_top, top_k_plan


@renamed_parameters(level="confidence")
@final
@dataclass(frozen=True, slots=True)
class TopQuery(Question[ListedAnswer]):
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
        The privacy that the answer may cost.
    confidence : float
        Probability that an interval covers its number of persons, at least.
    keys : tuple of Axis
        What rows are sorted by into cells, of which each has its own labels.

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
    epsilon: float | None
    delta: float
    confidence: float
    keys: tuple[Axis, ...] = ()

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that it reads, but the one that names persons."""
        return self._used(self.column)

    @property
    def group_axes(self) -> tuple[Axis, ...]:
        """The keys, then the column: each label of a cell is a group."""
        return *self.keys, Axis(self.column)

    @property
    def _cost(self) -> Guarantee:
        return Guarantee(self.epsilon, self.delta)

    def _check_own(self, schema: Schema) -> None:
        """Refuse a column that has no labels, or fewer than are asked for."""
        if self.column in (key.column for key in self.keys):
            allowed = f"columns beside {self.column!r}, whose labels are ranked"
            raise ParameterError("by", self.column, allowed)
        schema.check_persons("count(by=...), which counts joined rows")
        *_, labels = table_shape(self.group_axes, schema)
        if self.k > labels:
            raise ParameterError("k", self.k, f"at most {labels}, the labels of {self.column!r}")

    def _planned(self, schema: Schema) -> Plan:
        """Return noise on all counts, or rounds of selection and noise on the selected counts.

        A person counts once for each label of a cell, and these are groups of the schema.
        """
        size = math.prod(table_shape(self.group_axes, schema))
        replaced = schema.relation is Adjacency.REPLACE_ONE
        epsilon = cast("float", self.epsilon)  # `check` refuses a question without a cost
        labels_each = min(schema.groups, size)
        if not self.keys:
            return top_k_plan(size, self.k, labels_each, replaced, epsilon, self.delta)
        moved = min(labels_each * (2 if replaced else 1), size)
        return Sequential([count_noise(moved, size, epsilon, self.delta)])

    def _noise_lines(self, schema: Schema, steps: list[Any]) -> Iterator[str]:
        """Yield the rounds, and the noise."""
        *rounds, noise = steps
        if rounds:
            yield f"{len(rounds)} rounds of the exponential mechanism"
        yield f"{type(noise).__name__} noise of scale {noise.scale:.6g} persons"

    def __str__(self) -> str:
        return self._words(f"top {self.k} of {self.column}")

    def _released(
        self, ledger: Any, schema: Schema, steps: list[Any], facts: FrameFacts, label: str | None
    ) -> ListedAnswer:
        """Release the counts, and rank the labels of each cell."""
        counted = unseen(lambda frame: self.persons_of_labels(frame, schema))
        noise, (*cells, size) = steps[-1], table_shape(self.group_axes, schema)
        if self.keys:
            shape = math.prod(cells) * size
            noisy = np.reshape(ledger.release(noise, counted, shape=shape), (*cells, size))
            top, counts, ends = largest(noisy, self.k, self.confidence, noise)
        else:
            top, counts, ends = released_top(ledger, steps, size, self.k, self.confidence, counted)
        named = named_cells(self.keys, counts.shape, schema)
        named.update(Axis(self.column).shown(top.ravel(), schema))
        return ListedAnswer(
            str(self),
            named,
            "persons",
            counts.astype(np.int64),
            ends,
            self.confidence,
            float(noise.scale),
            facts.backend,
        )

    def persons_of_labels(self, frame: Any, schema: Schema) -> NDArray[np.int64]:
        """Return how many persons have each label in each cell.

        Parameters
        ----------
        frame : data frame
            The rows.
        schema : Schema
            What is public of the frame.

        Returns
        -------
        numpy.ndarray of int
            Private: the labels of a cell after those of the cell before.
        """
        from algorithms.frames.cell_sums import persons_in_cells
        from algorithms.frames.rows import Reading

        reading = Reading(self.used, self.where, schema)
        return persons_in_cells(frame, reading, self.group_axes)
