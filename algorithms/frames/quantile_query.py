"""Quantiles of the rows of every cell of a frame, by the tree of quantiles.

References: Kaplan, Schnapp & Stemmer (2022); docs/proofs/quantiles.md, docs/proofs/frames.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.ledger.frame_partitions import is_partitioned
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.planning.calibration import calibrate
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Stated
from accountant.plans.plan import Sequential
from algorithms.frames.bases import Count
from algorithms.frames.cells import Axis, table_shape
from algorithms.frames.column_kinds import DROP, Integer
from algorithms.frames.conditions import Condition
from algorithms.frames.dates import Date
from algorithms.frames.guarantees import Guarantee
from algorithms.frames.listing import ListedAnswer
from algorithms.frames.questions import Question, refuse_unless_whole, unseen
from algorithms.frames.schema import Schema
from algorithms.frames.sensitivities import sensitivities
from algorithms.statistics.private_quantiles import COUNT_SHARE
from algorithms.statistics.quantile_intervals import ascending, with_ends
from algorithms.statistics.quantile_scores import Part, QuantileScores, ValueGrid
from algorithms.statistics.quantile_tree import levels_of, part_share, tree_levels
from mechanisms.run_length_exponential import RunLengthExponential

MOST_PARTS = 2**16  # quantiles and ends of all cells


@final
@dataclass(frozen=True, slots=True)
class QuantileQuery(Question):
    """Quantiles of a column; made by `quantiles`, `quantile` and `median`.

    Parameters
    ----------
    column : str
        A column of numbers.
    shares : tuple of float
        The quantiles, each in [0, 1].
    single : bool
        Whether the answer is one number a cell, without an axis of quantiles.
    keys : tuple of Axis
        What rows are sorted by into cells.
    where : Condition or None
        Which rows count.
    epsilon, delta : float
        What it may cost.
    level : float or None
        Chance that an interval covers; None releases no intervals.

    Examples
    --------
    >>> from accountant import Tight
    >>> from algorithms.frames import Number, Schema, median
    >>> plan = median("age", epsilon=0.5).plan(Schema({"age": Number(0, 100)}))
    >>> 0.49 < Tight().epsilon(plan, delta=0.0) <= 0.5
    True
    """

    column: str
    shares: tuple[float, ...]
    single: bool
    keys: tuple[Axis, ...]
    where: Condition | None
    epsilon: float
    delta: float
    level: float | None

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that it reads, but the one that names persons."""
        return self._used(self.column)

    @property
    def targets(self) -> int:
        """How many quantiles of a cell are found, with the ends of intervals."""
        return len(self.shares) * (1 if self.level is None else 3)

    def check(self, schema: Schema) -> None:
        """Refuse columns that the schema does not declare, or not as they are used.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.
        """
        self._check(schema)
        if schema.kind(self.column).bounds is None:
            allowed = "a Number, an Integer or a Date, which have public bounds"
            raise ParameterError(f"column {self.column!r}", schema.kind(self.column), allowed)
        if self._cells(schema) * self.targets > MOST_PARTS:
            allowed = f"columns of fewer labels: at most {MOST_PARTS:,} quantiles and ends in all"
            raise ParameterError("by", self._cells(schema), allowed)

    def _cells(self, schema: Schema) -> int:
        return math.prod(table_shape(self.keys, schema))

    def _all_count(self, schema: Schema) -> bool:
        """Return whether the number of rows is public: each is a person, and all of them count."""
        every = schema.person is None and schema.kind(self.column).missing != DROP
        exchanged = schema.relation is Adjacency.REPLACE_ONE
        return every and exchanged and not self.keys and self.where is None

    def plan(self, schema: Schema) -> Stated:
        """Return what will be released; needs no data.

        A row more or less moves the scores of all parts of all cells by 1/2 in sum, so a person
        with m rows by m / 2, and one who is exchanged by m.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.

        Returns
        -------
        Stated
            A noisy count of the rows of cells, where intervals need it; then a release for each
            level of the tree.
        """
        self.check(schema)
        replaced, rows = schema.relation is Adjacency.REPLACE_ONE, schema.rows_per_person
        sensitivity, levels = rows * (1.0 if replaced else 0.5), levels_of(self.targets)
        counts: list[Any] = []
        left = self.epsilon
        if self.level is not None and not self._all_count(schema):
            cells, share = self._cells(schema), COUNT_SHARE * self.epsilon
            moved = sensitivities(Count(None).basis(schema, "laplace"), schema, cells)
            counts = [Guarantee(share).mechanism("laplace", moved, cells, 1.0)]
            left -= share

        def plan_of(scale: float) -> Sequential:
            return Sequential([RunLengthExponential(scale, sensitivity)] * levels)

        if self.delta:
            chosen = plan_of(calibrate(plan_of, epsilon=left, delta=self.delta))
        else:
            chosen = plan_of(round_up(2 * sensitivity * levels / left))
        return Stated(Sequential([*counts, *chosen.parts]), schema.relation)

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
        steps = list(self.plan(schema).leaves())
        lines = self._lines(schema)
        lines.append(f"  neighbours: {schema.unit}")
        if len(steps) > levels_of(self.targets):
            lines.append(f"  the rows are counted with noise of scale {steps[0].scale:.6g}")  # type: ignore[attr-defined]  # a mechanism
        ends = f" with ends of {self.level:g} intervals" if self.level is not None else ""
        found = f"{levels_of(self.targets)} times exponential mechanism"
        lines.append(f"  {found} of scale {steps[-1].scale:.6g} on ranks{ends}")  # type: ignore[attr-defined]  # the same
        lines.append(f"  costs {Guarantee(self.epsilon, self.delta)}")
        return "\n".join(lines)

    def __str__(self) -> str:
        shares = ", ".join(f"{one:g}" for one in self.shares)
        return self._words(f"quantile {shares} of {self.column}")

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
            The quantiles, and their intervals.

        Raises
        ------
        ParameterError
            If the frame has no such columns, or of other types; nothing is spent.
        OffPlan, BudgetExceeded
            If the ledger does not allow all of it; nothing is spent.
        """
        plan = self.plan(schema)
        facts = self._opened(ledger, schema)
        refuse_unless_whole(ledger, plan, label)
        steps: list[Any] = list(plan.leaves())
        cells, shares = self._cells(schema), np.array(self.shares)
        targets = np.repeat(shares[None, :, None], cells, axis=0)
        replaced = self._all_count(schema)
        if self.level is not None:
            rows = np.full(cells, float(ledger.shape[0]))
            if not replaced:
                counted = unseen(lambda frame: self.counted(frame, schema))
                rows = np.atleast_1d(np.asarray(ledger.release(steps.pop(0), counted), dtype=float))
            exact, points = np.zeros(shares.size), self._grid(schema).points
            given = steps[0].scale, self.level, points, replaced
            targets = np.stack([with_ends(shares, exact, max(n, 1.0), *given) for n in rows])
        found = self._found(ledger, schema, steps, targets)
        if self.level is not None:  # nothing is known beyond the least and the greatest row
            low, high = self._grid(schema).lower, self._grid(schema).upper
            found[..., 1][targets[..., 1] <= 0] = low
            found[..., 2][targets[..., 2] >= 1] = high
        return self._answer(found, schema, steps[-1].scale, facts.backend)

    def _grid(self, schema: Schema) -> ValueGrid:
        kind = schema.kind(self.column)
        bounds = cast("tuple[float, float]", kind.bounds)  # `check` was called
        return ValueGrid.of(*bounds, 1.0 if isinstance(kind, Integer | Date) else None)

    def counted(self, frame: Any, schema: Schema) -> Any:
        """Return the number of rows in every cell; an int where there is one.

        Parameters
        ----------
        frame : data frame
            The rows.
        schema : Schema
            What is public of the frame.

        Returns
        -------
        numpy.ndarray or int
            Before noise.
        """
        from algorithms.frames.cell_sums import cell_sums
        from algorithms.frames.partitions.reduction import Reading, reduced

        given = {"statistic": Count(None), "keys": self.keys, "schema": schema, "kind": "laplace"}
        return reduced(frame, Reading(self.used, self.where, schema), partial(cell_sums, **given))

    def numbers(self, frame: Any, schema: Schema, held: dict[str, Any] | None = None) -> list[Any]:
        """Return the numbers of the rows that count in every cell.

        Parameters
        ----------
        frame : data frame
            The rows.
        schema : Schema
            What is public of the frame.
        held : dict, optional
            What workers hold of a frame in partitions from one level to the next.

        Returns
        -------
        list of numpy.ndarray
            For each cell its numbers, clipped; private.  Of a frame in partitions their places,
            which stay on the workers.
        """
        from algorithms.frames.partitions.reduction import Reading

        reading = Reading(self.used, self.where, schema)
        if not is_partitioned(frame):
            return self.of_cells(reading.of(frame), schema)
        from algorithms.frames.partitions.ranks import places_of_cells

        held = {} if held is None else held
        if "places" not in held:
            numbers = partial(self.of_cells, schema=schema)
            held["places"] = places_of_cells(
                frame, reading, numbers, self._grid(schema), self._cells(schema)
            )
        found: list[Any] = held["places"]
        return found

    def of_cells(self, rows: Any, schema: Schema) -> list[Array]:
        """Return the numbers of rows as declared in every cell.

        Parameters
        ----------
        rows : Rows
            Those that count.
        schema : Schema
            What is public of the frame.

        Returns
        -------
        list of numpy.ndarray
            For each cell its numbers, clipped; private.
        """
        from algorithms.frames.cell_sums import cells_of

        values, _ = rows.kept()
        shape, column = table_shape(self.keys, schema), values[self.column]
        if not shape:
            return [column]
        index = cells_of(values, self.keys, shape, schema)
        order = np.argsort(index, kind="stable")
        ends = np.searchsorted(index[order], np.arange(math.prod(shape) + 1))
        return np.split(column[order], ends)[1:-1]

    def scores(
        self,
        frame: Any,
        schema: Schema,
        parts: Sequence[Sequence[Part]],
        scale: float,
        held: dict[str, Any] | None = None,
    ) -> Array:
        """Return the scores of a level of all cells, before noise.

        Parameters
        ----------
        frame : data frame
            The rows.
        schema : Schema
            What is public of the frame.
        parts : list of list of Part
            The parts of each cell that earlier levels left.
        scale : float
            Of the exponential mechanism.
        held : dict, optional
            What workers hold of a frame in partitions from one level to the next.

        Returns
        -------
        numpy.ndarray
            Of shape (parts, 2, runs), those of a cell after those of the cell before.
        """
        grid = self._grid(schema)
        whole = self._all_count(schema) and len(parts[0]) == 1
        found = []
        for column, own in zip(self.numbers(frame, schema, held), parts, strict=True):
            found.append(QuantileScores(grid, own, scale, lambda rows: rows, whole)(column))
        width = max(one.shape[2] for one in found)
        # a run of length 0 stands for none
        filled = [np.pad(one, ((0, 0), (0, 0), (0, width - one.shape[2]))) for one in found]
        return np.concatenate(filled)

    def _found(self, ledger: Any, schema: Schema, steps: Sequence[Any], targets: Array) -> Array:
        """Return the released quantile of every target of every cell."""
        grid, count = self._grid(schema), targets[0].size
        sorted_ones = [ascending(one) for one in targets]
        ends = [{-1: 0, count: grid.places} for _ in sorted_ones]
        held: dict[str, Any] = {}
        for mechanism, nodes in zip(steps, tree_levels(count), strict=True):
            parts = [
                [Part(at[n.below], at[n.above], part_share(levels, n)) for n in nodes]
                for at, (levels, _) in zip(ends, sorted_ones, strict=True)
            ]
            given = {"schema": schema, "parts": parts, "scale": mechanism.scale, "held": held}
            read = partial(self.scores, **given)
            drawn: NDArray[Any] = ledger.release(mechanism, unseen(read)).reshape(
                len(parts), len(nodes)
            )
            for at, own, places in zip(ends, parts, drawn.tolist(), strict=True):
                for node, part, place in zip(nodes, own, places, strict=True):
                    at[node.at] = part.start + place
        found = np.empty(targets.shape)
        for cell, at, (_, order) in zip(found, ends, sorted_ones, strict=True):
            cell.flat[order] = grid.value_at(np.array([at[i] for i in range(count)]))
        return found

    def _answer(self, found: Array, schema: Schema, scale: float, backend: str) -> ListedAnswer:
        """Return the answer in the shape of the cells, with an axis of quantiles behind it."""
        if isinstance(schema.kind(self.column), Integer):
            found = np.rint(found).astype(np.int64)
        if isinstance(schema.kind(self.column), Date):
            found = np.rint(found).astype("datetime64[D]")
        shape = (*table_shape(self.keys, schema), *(() if self.single else (len(self.shares),)))
        size = math.prod(table_shape(self.keys, schema))
        index = np.indices(table_shape(self.keys, schema)).reshape(len(self.keys), size)
        labels: dict[str, list[Any]] = {}
        for key, places in zip(self.keys, np.repeat(index, len(self.shares), axis=1), strict=True):
            labels.update(key.shown(places, schema))
        labels["quantile" + "_" * ("quantile" in labels)] = [*self.shares] * size
        value = found[..., 0].reshape(shape)
        ends = None if self.level is None else found[..., 1:].reshape(*shape, 2)
        return ListedAnswer(
            str(self), labels, self.column, value if shape else value.item(), ends, self.level,
            scale, backend,
        )  # fmt: skip
