"""Quantiles of the rows of every cell of a frame, by the tree of quantiles, with intervals.

All cells take part in each release.  The releases are, in this order: a selection of keys, if the
keys that sort rows into cells are private; a noisy count of the rows of each cell, if intervals are
wanted and the count is not public; one release for each level of the tree, the middle quantile of
every part that is known so far; and the ends of the intervals, as further places on the grid of
numbers.  `QuantileQuery` is the question with its plan, `CellSearch` the search by these releases.

A *place* is a point of that grid.  The *ends* are the two ends of the interval around a quantile.

References: Kaplan, Schnapp & Stemmer (2022); docs/proofs/quantiles.md, docs/proofs/frames.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, cast, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.ledger.frames import FrameFacts
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.planning.calibration import calibrate
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Plan, Sequential
from algorithms.base.renamed_parameters import renamed_parameters
from algorithms.frames.bases import Count, sensitivities
from algorithms.frames.cell_places import CellPlaces, grid_of
from algorithms.frames.cells import Axis, shape_of_sums, table_shape
from algorithms.frames.columns.dates import Date
from algorithms.frames.columns.kinds import DROP
from algorithms.frames.columns.numbers import Integer
from algorithms.frames.conditions import Condition
from algorithms.frames.framed import ListedAnswer, named_cells, unused_name
from algorithms.frames.guarantees import Guarantee
from algorithms.frames.private_keys import (
    SHARE,
    kept_keys,
    private_key,
    selection_in_words,
    selections_of,
    with_keys,
)
from algorithms.frames.questions import Question, unseen
from algorithms.frames.schema import Schema
from algorithms.statistics.quantile_ends import EndPart, Ends, end_parts, ends_found, ends_of
from algorithms.statistics.quantile_scores import Part
from algorithms.statistics.quantile_tree import levels_of, part_share, tree_levels
from mechanisms.families.key_selection import KeySelection
from mechanisms.run_length_exponential import RunLengthExponential

MOST_PARTS = 2**16  # quantiles and ends of all cells
# Share of epsilon for the count, by the number of releases of ends: one for a single quantile,
# whose two ends do not meet, else two.  Any share is valid: a smaller one leaves more for the
# quantiles, and the count decides only how far ends are sought.
COUNT_SHARES = {1: 1 / 256, 2: 1 / 64}
SLACK = 1 + 1e-12  # factor of a scale that covers the rounding of a sum of costs
Places = NDArray[np.int64]


@renamed_parameters(shares="quantiles", level="confidence")
@final
@dataclass(frozen=True, slots=True)
class QuantileQuery(Question[ListedAnswer]):
    """Quantiles of a column; made by `quantiles`, `quantile` and `median`.

    Parameters
    ----------
    column : str
        A column of numbers.
    quantiles : tuple of float
        The quantiles, each in [0, 1].
    single : bool
        Whether the answer is one number a cell, without an axis of quantiles.
    keys : tuple of Axis
        What rows are sorted by into cells.
    where : Condition or None
        Which rows count.
    epsilon, delta : float
        The privacy that the answer may cost.
    confidence : float or None
        Probability that an interval covers; None releases no intervals.

    Examples
    --------
    >>> from accountant import Tight
    >>> from algorithms.frames import Number, Schema, median
    >>> plan = median("age", epsilon=0.5).plan(Schema({"age": Number(0, 100)}))
    >>> 0.49 < Tight().epsilon(plan, delta=0.0) <= 0.5
    True
    """

    by_private_keys: ClassVar[bool] = True

    column: str
    quantiles: tuple[float, ...]
    single: bool
    keys: tuple[Axis, ...]
    where: Condition | None
    epsilon: float | None
    delta: float
    confidence: float | None

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that it reads, but the one that names persons."""
        return self._used(self.column)

    @property
    def targets(self) -> int:
        """How many quantiles of a cell are found, with the ends of intervals."""
        return len(self.quantiles) * (1 if self.confidence is None else 3)

    @property
    def group_axes(self) -> tuple[Axis, ...]:
        """None: a row of any group moves ranks alike, so the first rows of a person count."""
        return ()

    @property
    def _cost(self) -> Guarantee:
        return Guarantee(self.epsilon, self.delta)

    @property
    def _epsilon(self) -> float:
        return cast("float", self.epsilon)  # `check` refuses a question without a cost

    def _check_own(self, schema: Schema) -> None:
        """Refuse a column without bounds, and too many cells."""
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
        exchanged = schema.relation is Adjacency.REPLACE_ONE and schema.joined is None
        return every and exchanged and not self.keys and self.where is None

    def _planned(self, schema: Schema) -> Plan:
        """Return a noisy count of rows where intervals need it, levels of the tree, and ends.

        A row more or less moves the scores of all parts of all cells by 1/2 in sum, so a person
        with m rows moves them by m / 2, and an exchanged person by m.  If keys are private, their
        selection comes first.
        """
        if (key := private_key(self.keys, schema)) is not None:
            selection, key_query, public = self._by_keys(key, schema)
            steps = key_query.plan(public).leaves()
            return Sequential([selection, *steps])
        row_move = 1.0 if schema.row_relation is Adjacency.REPLACE_ONE else 0.5
        sensitivity = schema.rows_per_person * row_move
        end_scales, counts, remaining_epsilon = self._ends(schema), list[Any](), self._epsilon
        if end_scales is not None and not self._all_count(schema):
            cells, share = self._cells(schema), COUNT_SHARES[end_scales.releases] * self._epsilon
            moved = sensitivities(Count(None).basis(schema, "laplace"), schema, cells)
            counts = [Guarantee(share).mechanism("laplace", moved, cells, 1.0)]
            remaining_epsilon -= share
        levels = levels_of(len(self.quantiles))

        def plan_of(scale: float) -> Sequential:
            tree_steps = [RunLengthExponential(scale, sensitivity)] * levels
            if end_scales is not None:
                ends = RunLengthExponential(round_up(end_scales.scale(scale)), sensitivity)
                tree_steps += [ends] * end_scales.releases
            return Sequential(tree_steps)

        if self.delta:
            ranked = plan_of(calibrate(plan_of, epsilon=remaining_epsilon, delta=self.delta))
        elif end_scales is None:
            ranked = plan_of(round_up(2 * sensitivity * levels / remaining_epsilon))
        else:
            budget = remaining_epsilon / (2 * sensitivity)
            ranked = plan_of(SLACK * end_scales.tree_scale(levels, budget))
        return Sequential([*counts, *ranked.parts])

    def _by_keys(
        self, key: str, schema: Schema, names: Sequence[str | int] = ("", " ")
    ) -> tuple[KeySelection, QuantileQuery, Schema]:
        """Return the selection of keys, the query for the selected keys, and a schema with keys.

        A person moves the scores of two keys and of more keys equally, so the plan is that of two.
        """
        (selection,) = selections_of(self.epsilon, self.delta, key, schema, in_rounds=False)
        key_query = dataclasses.replace(self, epsilon=(1 - SHARE) * self._epsilon, delta=0.0)
        return selection, key_query, with_keys(schema, key, names)

    def _ends(self, schema: Schema) -> Ends | None:
        """Return how far the ends of intervals lie from their quantiles; None without them."""
        if self.confidence is None:
            return None
        return ends_of(tuple(sorted(self.quantiles)), self.confidence, self._all_count(schema))

    def _noise_lines(self, schema: Schema, steps: list[Any]) -> Iterator[str]:
        """Yield how keys are selected, rows counted, and quantiles and ends found."""
        levels, end_scales = levels_of(len(self.quantiles)), self._ends(schema)
        if (key := private_key(self.keys, schema)) is not None:
            yield selection_in_words([steps.pop(0)], key, schema)
        if end_scales is not None and not self._all_count(schema):
            yield f"the rows are counted with noise of scale {steps.pop(0).scale:.6g}"
        yield f"{levels} times exponential mechanism of scale {steps[0].scale:.6g} on ranks"
        if end_scales is not None:
            ends = f"ends of {self.confidence:g} intervals: {end_scales.releases} times"
            yield f"{ends} of scale {steps[-1].scale:.6g}"

    def __str__(self) -> str:
        # All digits: a book takes questions of the same words for one question.
        shares = ", ".join(str(share).removesuffix(".0") for share in self.quantiles)
        return self._words(f"quantile {shares} of {self.column}")

    def _released(
        self, ledger: Any, schema: Schema, steps: list[Any], facts: FrameFacts, label: str | None
    ) -> ListedAnswer:
        """Release the quantiles; if keys are private, only those of the selected keys."""
        key = private_key(self.keys, schema)
        if key is None:
            return self.released_by(ledger, schema, steps, facts.backend)
        selection, max_keys = steps.pop(0), MOST_PARTS // self.targets
        names = kept_keys(self, key, ledger, [selection], schema, facts, max_keys)
        _, key_query, public = self._by_keys(key, schema, names)
        return key_query.released_by(ledger, public, steps, facts.backend)

    def released_by(
        self, ledger: Any, schema: Schema, steps: list[Any], backend: str
    ) -> ListedAnswer:
        """Release the quantiles of cells that are public, by steps of a plan.

        Parameters
        ----------
        ledger : Ledger
            Holds the frame.
        schema : Schema
            What is public of the frame.
        steps : list of Mechanism
            What is released, one after another.
        backend : str
            The library of the frame.

        Returns
        -------
        ListedAnswer
            The quantiles, and their intervals.
        """
        end_scales = self._ends(schema)
        # The last steps release ends; the one before them is of the tree.
        tree_scale = steps[-1 - (0 if end_scales is None else end_scales.releases)].scale
        if not self._cells(schema):  # no key was selected; the planned releases are still made
            for step in steps:
                # A list with one run of one place, or a count of no rows.
                of_lists = isinstance(step, RunLengthExponential)
                no_rows, shape = ([[[0.0], [1.0]]], (1,)) if of_lists else (0, ())
                ledger.release(step, lambda _, no_rows=no_rows: np.array(no_rows), shape=shape)
            values = np.empty((0, len(self.quantiles), 1 if self.confidence is None else 3))
            return self._answer(values, schema, tree_scale, backend)
        order = np.argsort(self.quantiles, kind="stable")
        shares = np.array(self.quantiles)[order].tolist()
        rows = float(ledger.shape[0]) if self._all_count(schema) else None
        grid = grid_of(self.column, schema)
        search = CellSearch(ledger, self.read_by(schema), shares, self._cells(schema), grid.places)
        if end_scales is None:
            places = search.quantiles(steps)[..., None]
        else:
            places = search.with_ends(steps, end_scales, cast("float", self.confidence), rows)
        quantiles = np.empty(places.shape)
        quantiles[:, order] = grid.value_at(places)
        return self._answer(quantiles, schema, tree_scale, backend)

    def read_by(self, schema: Schema) -> CellPlaces:
        """Return what the releases read.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.

        Returns
        -------
        CellPlaces
            Private where it has read.
        """
        everyone = self._all_count(schema)
        return CellPlaces(self.column, self.keys, self.where, self.used, schema, everyone)

    def _answer(self, quantiles: Array, schema: Schema, scale: float, backend: str) -> ListedAnswer:
        """Return the answer in the shape of the cells, with an axis of quantiles behind it."""
        if isinstance(schema.kind(self.column), Integer):
            quantiles = np.rint(quantiles).astype(np.int64)
        if isinstance(schema.kind(self.column), Date):
            quantiles = np.rint(quantiles).astype("datetime64[D]")
        cells = table_shape(self.keys, schema)
        shape = (*cells, *(() if self.single else (len(self.quantiles),)))
        labels = named_cells(self.keys, (*cells, len(self.quantiles)), schema)
        labels[unused_name("quantile", labels)] = [*self.quantiles] * math.prod(cells)
        value = quantiles[..., 0].reshape(shape)
        ends = None if self.confidence is None else quantiles[..., 1:].reshape(*shape, 2)
        return ListedAnswer(
            str(self),
            labels,
            self.column,
            value if shape else value.item(),
            ends,
            self.confidence,
            scale,
            backend,
        )


@dataclass(frozen=True, slots=True)
class CellSearch:
    """What quantiles of all cells are sought with: all cells take part in every release.

    Parameters
    ----------
    ledger : Ledger
        Holds the frame.
    read : CellPlaces
        What is asked of the frame.
    shares : sequence of float
        The quantiles, ascending.
    cells : int
        How many cells there are.
    places : int
        How many places a number can have.
    """

    ledger: Any
    read: CellPlaces
    shares: Sequence[float]
    cells: int
    places: int

    def quantiles(self, steps: Sequence[Any]) -> Places:
        """Return the place of every quantile of every cell, by a release a level."""
        count = len(self.shares)
        # For each cell the places that are known so far, by the index of their quantile.  The
        # public bounds have the indices before the first quantile and after the last one.
        known_places = [{-1: 0, count: self.places} for _ in range(self.cells)]
        for mechanism, nodes in zip(steps, tree_levels(count), strict=True):
            parts = [
                [
                    Part(places[node.below], places[node.above], part_share(self.shares, node))
                    for node in nodes
                ]
                for places in known_places
            ]
            scores = partial(self.read.scores, parts=parts, scale=mechanism.scale)
            drawn = self._drawn(mechanism, scores, parts).tolist()
            for places, cell_parts, indices in zip(known_places, parts, drawn, strict=True):
                for node, part, index in zip(nodes, cell_parts, indices, strict=True):
                    places[node.at] = part.start + index
        return np.array([[places[i] for i in range(count)] for places in known_places])

    def with_ends(
        self, steps: Sequence[Any], end_scales: Ends, confidence: float, rows: float | None
    ) -> Places:
        """Return the place of every quantile, with its lower and upper end behind it.

        ``rows`` is the number of rows where it is public; else the first step counts them.
        """
        steps, rows_of_cells = list(steps), np.full(self.cells, rows or 0.0)
        if rows is None:
            shape = shape_of_sums(self.cells)
            counted = self.ledger.release(steps.pop(0), unseen(self.read.counted), shape=shape)
            rows_of_cells = np.atleast_1d(np.asarray(counted, dtype=float))
        levels = levels_of(len(self.shares))
        centres, scale = self.quantiles(steps[:levels]), steps[0].scale
        row_counts, shares = np.maximum(rows_of_cells, 1.0).tolist(), self.shares
        parts = [
            end_parts(quantiles, shares, end_scales, scale, confidence, row_count, self.places)
            for quantiles, row_count in zip(centres.tolist(), row_counts, strict=True)
        ]
        drawn = self._drawn_ends(steps[levels:], parts)
        ends = [
            ends_found(indices, cell_parts, shares, end_scales, scale, row_count, self.places)
            for indices, cell_parts, row_count in zip(drawn, parts, row_counts, strict=True)
        ]
        return np.concatenate([centres[..., None], np.array(ends)], axis=2)

    def _drawn_ends(
        self, steps: Sequence[Any], parts: Sequence[tuple[list[EndPart], list[EndPart]]]
    ) -> list[list[list[int]]]:
        """Return the drawn indices of the lower and of the upper ends of every cell."""
        # Parts in one release must be disjoint.  The two parts of a single quantile are.  Of
        # several quantiles, the upper part of one and the lower part of the next may overlap, so
        # the lower ends of all are one release, and the upper ends another.
        groups: list[list[list[EndPart]]] = (
            [[[*low, *high] for low, high in parts]]
            if len(steps) == 1
            else [[cell_parts[side] for cell_parts in parts] for side in (0, 1)]
        )
        drawn = [
            self._drawn(
                mechanism, partial(self.read.end_scores, parts=group, scale=mechanism.scale), group
            )
            for mechanism, group in zip(steps, groups, strict=True)
        ]
        by_side = np.concatenate(drawn, axis=1).reshape(self.cells, 2, len(self.shares))
        indices: list[list[list[int]]] = by_side.tolist()
        return indices

    def _drawn(self, mechanism: Any, scores: Any, parts: Sequence[Sequence[Any]]) -> Places:
        """Return the released index of every part, a row a cell."""
        lists = sum(map(len, parts))
        drawn: Places = np.asarray(self.ledger.release(mechanism, unseen(scores), shape=lists))
        return drawn.reshape(self.cells, -1)
