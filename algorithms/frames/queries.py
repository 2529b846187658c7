"""The question for one statistic of a private data frame: a count, sum, mean, variance, histogram.

Rows are sorted into cells, and each cell has the sums of a few whole numbers of every row (the
`Statistic`).  One mechanism adds noise to all sums of all cells at once; the answer computes the
statistic from the noisy sums.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from accountant.errors import ParameterError
from accountant.ledger.frames import FrameFacts
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Plan, Sequential
from algorithms.frames.answer import Answer
from algorithms.frames.bases import Count, Persons, Statistic
from algorithms.frames.cells import Axis, shape_of_sums, table_shape
from algorithms.frames.columns.kinds import DROP
from algorithms.frames.conditions import Condition
from algorithms.frames.guarantees import Guarantee
from algorithms.frames.moments import Moment
from algorithms.frames.noise_tails import NAMES, Noise
from algorithms.frames.private_keys import (
    private_key,
    released_by_keys,
    selection_in_words,
    steps_by_keys,
)
from algorithms.frames.questions import Question, unseen
from algorithms.frames.schema import Schema


@final
@dataclass(frozen=True, slots=True)
class FrameQuery(Question[Answer]):
    """One statistic of a frame; made by `count`, `sum_`, `mean`, `variance`, `histogram` and so on.

    All its numbers are released at once by one mechanism, so a ledger takes the whole of it or
    refuses it before anything is spent.

    Parameters
    ----------
    statistic : Statistic
        What is asked of each cell.
    keys : tuple of Axis
        What rows are sorted by into cells.
    where : Condition or None
        Which rows count.
    guarantee : Guarantee
        The privacy that the answer may cost.

    Examples
    --------
    >>> from accountant import Tight
    >>> from algorithms.frames import Number, Schema, mean
    >>> query = mean("age", epsilon=0.5)
    >>> schema = Schema({"age": Number(0, 100)})
    >>> Tight().epsilon(query.plan(schema), delta=0.0) <= 0.5
    True
    """

    by_private_keys: ClassVar[bool] = True

    statistic: Statistic
    keys: tuple[Axis, ...]
    where: Condition | None
    guarantee: Guarantee

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that it reads, but the one that names persons."""
        names = [*self._used(self.statistic.column), self.statistic.weight]
        return tuple(dict.fromkeys(name for name in names if name is not None))

    @property
    def _cost(self) -> Guarantee:
        return self.guarantee

    def _check_own(self, schema: Schema) -> None:
        """Refuse a column of a kind that the statistic cannot be asked of."""
        self.statistic.check(schema)
        unit = self.statistic.basis(schema, "laplace").unit  # it has the largest weight in it
        if not 0 < unit < math.inf:
            allowed = "with bounds on weights and numbers whose product is from 1e-290 to 1e300"
            raise ParameterError("weighted_by", self.statistic.weight, allowed)

    def weighted_by(self, column: str) -> FrameQuery:
        """Return the question with rows that count by weights: their sums, or weighted means.

        Parameters
        ----------
        column : str
            A Number or an Integer from 0 on, whose upper bound is the public one of a weight.

        Returns
        -------
        FrameQuery
            A person moves it by no more than rows of the largest weight do.

        Examples
        --------
        >>> from algorithms.frames import Number, Schema, mean
        >>> schema = Schema({"age": Number(0, 100), "weight": Number(0, 4)})
        >>> print(mean("age", epsilon=1.0).weighted_by("weight").explain(schema))
        mean of age weighted by weight
          age: clipped to 0 .. 100, rows without one do not count
          weight: clipped to 0 .. 4, rows without one do not count
          neighbours: one person more or less (each row is a person)
          DiscreteLaplace noise of scale 1 rows of weight 4
          costs epsilon 1
        """
        if not isinstance(column, str) or not column:
            raise ParameterError("weighted_by", type(column), "the name of a column of weights")
        if isinstance(self.statistic, Persons) or self.statistic.weight is not None:
            raise ParameterError("weighted_by", column, f"left out: {self} takes no other weight")
        statistic = dataclasses.replace(self.statistic, weight=column)
        return dataclasses.replace(self, statistic=statistic)

    def mechanism(self, schema: Schema) -> Noise:
        """Return the mechanism that releases it: of those that are allowed, the least error.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.

        Returns
        -------
        DiscreteLaplace or DiscreteGaussian
            Noise on whole numbers, such as steps of 2^-30 of a range: `Answer` has the units.
        """
        self.check(schema)
        statistic, cells = self.asked_of(schema), math.prod(table_shape(self.keys, schema))

        def noise_of(kind: str) -> Noise:
            basis = statistic.basis(schema, kind)
            moved = statistic.moved(schema, kind, cells)
            return self.guarantee.mechanism(kind, moved, cells * basis.size, basis.unit)

        kinds = self.guarantee.kinds
        if len(kinds) == 1:
            return noise_of(kinds[0])
        usual_errors = {kind: statistic.usual_error(kind) for kind in kinds}

        def error(noise: Noise) -> float:
            return noise.deviation * usual_errors[NAMES[type(noise)]]

        return min(map(noise_of, kinds), key=error)

    def asked_of(self, schema: Schema) -> Statistic:
        """Return the statistic, with the number of rows public where it is.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.

        Returns
        -------
        Statistic
            A moment of all rows knows their number if persons are exchanged and have a row each.
        """
        column = self.statistic.column
        weighted = self.statistic.weight is not None
        if (
            weighted
            or not isinstance(self.statistic, Moment)
            or self.keys
            or self.where is not None
        ):
            return self.statistic
        all_count = schema.person is None and schema.kind(column).missing != DROP
        exchanged = schema.relation is Adjacency.REPLACE_ONE and schema.joined is None
        public = all_count and exchanged
        return dataclasses.replace(self.statistic, public_rows=public)

    def _planned(self, schema: Schema) -> Plan:
        """Return one release; with private keys the selections of keys, then the statistic."""
        key = private_key(self.keys, schema)
        if key is None:
            return self.mechanism(schema)
        selections, noise = steps_by_keys(self, key, schema)
        return Sequential([*selections, noise])

    def _known(self, schema: Schema) -> str:
        """Return whether the number of rows is public, in words."""
        public = getattr(self.asked_of(schema), "public_rows", False)
        return ", the number of rows is public" if public else ""

    def _noise_lines(self, schema: Schema, steps: list[Any]) -> Iterator[str]:
        """Yield how keys are selected, and the noise."""
        mechanism = steps[-1]
        if (key := private_key(self.keys, schema)) is not None:
            yield selection_in_words(steps[:-1], key, schema)
        unit = self.statistic.basis(schema, NAMES[type(mechanism)]).unit
        kind = type(mechanism).__name__
        is_sum = self.statistic.name == "sum"
        counted = "persons" if self.statistic.name == "persons" else "rows"
        if self.statistic.weight is not None and not isinstance(self.statistic, Count):
            counted += f" of weight {self.statistic.largest_weight(schema):g}"
        elif self.statistic.weight is not None:
            counted = f"on the sum of {self.statistic.weight}"
        of_what = f"on the sum of {self.statistic.column}" if is_sum else counted
        yield f"{kind} noise of scale {mechanism.scale * unit:.6g} {of_what}"

    def __str__(self) -> str:
        column = self.statistic.column
        title = self.statistic.name + ("" if column is None else f" of {column}")
        weight = self.statistic.weight
        return self._words(title + ("" if weight is None else f" weighted by {weight}"))

    def _released(
        self, ledger: Any, schema: Schema, steps: list[Any], facts: FrameFacts, label: str | None
    ) -> Answer:
        """Release the sums; if keys are private, only those of the selected keys."""
        if (key := private_key(self.keys, schema)) is not None:
            return released_by_keys(self, key, ledger, schema, facts)
        (mechanism,) = steps
        kind = NAMES[type(mechanism)]
        exact_sums = unseen(lambda frame: self.sums(frame, schema, kind))
        statistic = self.asked_of(schema)
        cells = math.prod(table_shape(self.keys, schema))
        shape = shape_of_sums(cells * statistic.basis(schema, kind).size)
        released = np.atleast_1d(ledger.release(mechanism, exact_sums, label, shape))
        rows = ledger.shape[0] if getattr(statistic, "public_rows", False) else 0
        return Answer(
            str(self), statistic, self.keys, schema, mechanism, released, facts.backend, rows
        )

    def sums(self, frame: Any, schema: Schema, kind: str) -> Any:
        """Return what is released, before noise: exact sums of whole numbers.

        Parameters
        ----------
        frame : data frame
            The rows.
        schema : Schema
            What is public of the frame.
        kind : str
            The noise, "laplace" or "gaussian".

        Returns
        -------
        numpy.ndarray or int
            The numbers of each cell after those of the cell before; an int where there is one.
        """
        from algorithms.frames.cell_sums import cell_sums
        from algorithms.frames.rows import Reading

        reading = Reading(self.used, self.where, schema)
        return cell_sums(frame, reading, self.asked_of(schema), self.keys, kind)
