"""The candidates from which an audit chooses its score, the simplest first.

A score maps an output to the log-odds that it came from the first of two audited values, or to a
number that grows or falls with them.  A candidate is one way to learn such a score from runs.  What
the outputs are decides which candidates there are:

- single numbers: the number itself, and its smoothed log-odds;
- outputs that repeat: a table of the log-odds of each;
- at most `RAW_COLUMNS` numbers in an output: sums over its numbers, and an additive model;
- more numbers: some runs screen them for a `Reduction` to few columns; candidates are single
  columns, and an additive model of all.

A schema says how outputs are read: their numbers, padded to one width, their structure (types,
lengths and texts) as a code, and the whole output as a code, its category.  The learning runs are
cut into folds, so that a run can be scored by weights learned from the other folds.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.numerics import Array
from audits.classifiers.decision_rules import as_numbers, single_numbers
from audits.classifiers.feature_schema import FeatureSchema, Outputs, infer_schema
from audits.classifiers.linear_scores import (
    LinearScore,
    Pipeline,
    design_block,
    fit_category_table,
    fit_logistic,
    fit_pooled_steps,
    fit_spline_basis,
    mean_difference_weights,
)
from audits.classifiers.number_parts import Letter, Part, differing_parts, letter_name
from audits.classifiers.output_features import RAW_COLUMNS, Features, extract_features
from audits.classifiers.reduction import Reduction, fit_reduction
from audits.classifiers.screening import MAX_REFERENCE_ROWS, reference_of, screening_sums
from audits.classifiers.smoothed_log_odds import FEW_CELLS, StepFunction, histogram_cells

# The runs are cut in this many folds; each is scored by weights learned from the others.  With more
# folds the weights come from more runs, but are learned more often.
FOLDS = 3
# Ridge penalties of the additive model that are tried: larger ones need fewer runs, and may flatten
# a real difference.  The few columns of a reduction have a single one between these.
PENALTIES = (20.0, 500.0)
REDUCED_PENALTIES = (100.0,)
# How many of the numbers that the screening chose are tried alone, for leaks through one number.
NUMBERS_ALONE = 3
# Two columns of a larger absolute correlation are equal up to scale and rounding.
SAME_CORRELATION = 1 - 1e-9
# A table of whole outputs is tried if the number of different outputs is at most this share of that
# of runs: else most outputs occur too seldom for log-odds of their own.
MAX_DISTINCT_SHARE = 0.1
# The runs of both values in each fold.
Folds = Sequence[tuple[Any, Any]]


@final
@dataclass(frozen=True, slots=True)
class ModelCandidate:
    """A kind of score: its learning runs in folds, how to train it, and how to read an output."""

    description: str  # the score in words, for the witness of a finding
    folds: Folds  # the learning runs, as ``extract`` reads them
    train: Callable[[list[int]], Callable[[Any], Array]]  # the score learned from these folds
    extract: Callable[[Outputs], Any]  # what the score reads of outputs
    is_number: bool = False  # whether every output is a number, so that rules are intervals of it
    columns: frozenset[int] | None = None  # the columns of a reduction that are used; None for all


def model_candidates(
    first: Outputs, second: Outputs, cut_only: bool = False
) -> Iterator[ModelCandidate]:
    """Candidates for the score, from outputs of runs on the first and on the second value.

    With ``cut_only`` outputs that are single numbers are scores already, of which an audit learns
    only the cuts: the number itself is then the only candidate.
    """
    # A side without runs has a dtype too, which says nothing of its outputs.
    same_kind = first.dtype.kind == second.dtype.kind or not (len(first) and len(second))
    if same_kind and single_numbers(first) and single_numbers(second):
        if cut_only:
            return itertools.islice(_number_candidates("the score", first, second, as_numbers), 1)
        return itertools.chain(
            _number_candidates("the output", first, second, as_numbers, is_number=True),
            _part_candidates(
                first[:, None], second[:, None], NumberColumn(as_numbers), lambda _: "the output"
            ),
        )
    return _row_candidates(first, second)


def _number_candidates(
    description: str,
    first: Outputs,
    second: Outputs,
    extract: Callable[[Outputs], Any],
    is_number: bool = False,
    columns: frozenset[int] | None = None,
) -> Iterator[ModelCandidate]:
    """A number of the outputs as it is, then its smoothed log-odds.

    ``first`` and ``second`` are this number in runs on either value, as ``extract`` reads it.
    """
    # The score is the number itself, from which nothing is learned: all runs are one fold.
    one_fold = [(first, second)]
    yield ModelCandidate(description, one_fold, lambda _: np.asarray, extract, is_number, columns)
    cells = histogram_cells(first, second)
    # Few cells without smoothing can hardly be fitted to chance, so their log-odds are learned from
    # all runs.
    has_few_cells = cells.smoothing is None and cells.mass.size <= FEW_CELLS
    all_folds = one_fold if has_few_cells else _split_folds(first, second)

    def train(folds: list[int]) -> Callable[[Any], Array]:
        return StepFunction(histogram_cells(*_concatenate_folds(all_folds, folds), cells.smoothing))

    smoothed = f"smoothed log-odds of {description}"
    yield ModelCandidate(smoothed, all_folds, train, extract, is_number, columns)


def _part_candidates(
    first: Any,
    second: Any,
    read: Callable[[Outputs], Any],
    column_name: Callable[[int], str],
    parts: Sequence[Part] | None = None,
) -> Iterator[ModelCandidate]:
    """Candidates from parts of numbers whose law depends on the value: see `differing_parts`.

    ``first`` and ``second`` are rows of numbers, as ``read`` reads them from outputs.
    """
    for column, part in differing_parts(first, second, parts):
        candidates = _number_candidates(
            part.describe(column_name(column)),
            part(first[:, column]),
            part(second[:, column]),
            Pipeline((read, PartOfColumn(column, part))),
        )
        # The values of a part have no order, so only their log-odds are tried.
        yield from itertools.islice(candidates, 1, None)


@final
@dataclass(frozen=True, slots=True)
class NumberColumn:
    """Outputs that are single numbers, as rows of one number."""

    numbers: Callable[[Outputs], Any]

    def __call__(self, outputs: Outputs) -> Any:
        """The rows."""
        return self.numbers(outputs)[:, None]


@final
@dataclass(frozen=True, slots=True)
class PartOfColumn:
    """A part of one column of rows."""

    column: int
    part: Part

    def __call__(self, rows: Any) -> Array:
        """The part, for each row."""
        return self.part(rows[:, self.column])


def reduced_candidates(
    reduction: Reduction,
    first: Array,
    second: Array,
    read: Callable[[frozenset[int] | None], Callable[[Outputs], Array]],
    known: frozenset[int] | None = None,
) -> Iterator[ModelCandidate]:
    """Candidates for outputs of many numbers, which a reduction turns into rows of few columns.

    The columns of a row are weighted sums over an output's numbers, then a few chosen numbers, then
    summaries (and structures, from `ReducedOutputs`).  Candidates are some chosen numbers, each
    sum, and an additive model of all columns.

    ``first`` and ``second`` are rows of runs on either value.  ``read`` returns the function that
    makes rows of outputs, of which only the columns in its argument are needed.  An audit that
    learns again from more runs passes as ``known`` the columns of the candidate that it chose
    before: then only these are tried, and the additive model only if none can be tried alone, or
    several are known.
    """
    sum_count = len(reduction.sums)
    chosen_numbers = range(sum_count, sum_count + min(NUMBERS_ALONE, reduction.chosen.size))
    columns = [c for c in (*chosen_numbers, *range(sum_count)) if known is None or c in known]
    for column in _unlike_columns(columns, np.concatenate([first, second])):
        take, needed = Column(column), frozenset([column])
        candidates = _number_candidates(
            reduction.describe(column),
            take(first),
            take(second),
            Pipeline((read(needed), take)),
            columns=needed,
        )
        # A sum is tried as it is only, a chosen number also by its smoothed log-odds.
        yield from itertools.islice(candidates, 1 if column < sum_count else None)
    if columns and known is not None and len(known) == 1:  # this column was chosen alone before
        return
    labels = np.append(np.ones(len(first)), np.zeros(len(second)))
    basis = fit_spline_basis(np.concatenate([first, second]), labels, first.shape[1])
    used_columns = frozenset([*(column for column, *_ in basis.columns), *basis.missing])
    yield from _additive_candidates(
        "additive log-odds of features",
        REDUCED_PENALTIES,
        _split_folds(basis(first), basis(second)),
        Pipeline((read(used_columns), basis)),
        used_columns,
    )


def _unlike_columns(columns: Sequence[int], rows: Array) -> list[int]:
    """The columns without those that equal an earlier one up to scale, so give the same rules."""
    x = rows[:, columns]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        x = (x - x.mean(axis=0)) / x.std(axis=0)
    distinct: list[int] = []
    for position in range(len(columns)):
        products = np.abs(np.einsum("ij,i->j", x[:, distinct], x[:, position])) / len(x)
        if not (products > SAME_CORRELATION).any():  # comparisons with NaN are false
            distinct.append(position)
    return [columns[position] for position in distinct]


@final
@dataclass(frozen=True, slots=True)
class Column:
    """One column of rows, in which NaN counts as above every number."""

    place: int

    def __call__(self, rows: Array) -> Array:
        """The column."""
        column = rows[:, self.place]
        return np.where(np.isnan(column), np.inf, column)


@final
@dataclass(frozen=True, slots=True)
class ReducedOutputs:
    """Rows of outputs: a reduction of their numbers, and a column for each frequent structure."""

    schema: FeatureSchema
    reduction: Reduction

    def __call__(self, outputs: Outputs) -> Array:
        """The rows."""
        features = extract_features(outputs)
        numbers = self.reduction(self.schema.padded(features))
        return np.hstack([numbers, self.schema.shapes(features)])


def _row_candidates(first: Outputs, second: Outputs) -> Iterator[ModelCandidate]:
    """Candidates for outputs that are not all single numbers.

    These are a table of whole outputs if they repeat, and candidates from the numbers in them:
    screened ones if there are more than `RAW_COLUMNS`, else sums over them and an additive model.
    """
    features = [extract_features(side) for side in (first, second)]
    schema = infer_schema(*features)
    first_codes, second_codes = (side_features.category for side_features in features)
    runs = len(first_codes) + len(second_codes)
    distinct = np.unique(np.concatenate([first_codes, second_codes])).size
    if distinct <= max(2, MAX_DISTINCT_SHARE * runs):
        # If there are few different outputs, a fold would have too few runs of a rare one; if there
        # are many, some seem best by chance unless they are scored out of fold.
        has_few_outputs = distinct <= FEW_CELLS
        one_fold = [(first_codes, second_codes)]
        codes = one_fold if has_few_outputs else _split_folds(first_codes, second_codes)
        yield ModelCandidate(
            "log-odds of the whole output",
            codes,
            lambda folds: fit_category_table(*_with_labels(*_concatenate_folds(codes, folds))),
            schema.categories,
        )
    rows = [schema.padded(side_features) for side_features in features]
    yield from _part_candidates(rows[0], rows[1], schema.numbers, "number {}".format)
    letters = [schema.padded_letters(side_features) for side_features in features]
    yield from _part_candidates(letters[0], letters[1], schema.letters, letter_name, (Letter(),))
    if schema.width > RAW_COLUMNS:
        yield from _screened_candidates(schema, *features)
        return
    replace_nonfinite = functools.partial(np.nan_to_num, nan=0.0, posinf=0.0, neginf=0.0)
    numbers = _split_folds(*(schema.padded(side_features) for side_features in features))
    if schema.width > 1:

        def train_sum(folds: list[int]) -> Callable[[Array], Array]:
            weights = mean_difference_weights(*_with_labels(*_concatenate_folds(numbers, folds)))
            return Pipeline((replace_nonfinite, LinearScore(weights)))

        yield ModelCandidate("a weighted sum", numbers, train_sum, schema.numbers)
        yield _pooled_candidate(numbers, schema.numbers)
    rows = [schema.columns(side_features) for side_features in features]
    basis = fit_spline_basis(*_with_labels(*rows), schema.width)
    yield from _additive_candidates(
        "additive log-odds of features",
        PENALTIES,
        _split_folds(*map(basis, rows)),
        Pipeline((schema.feature_matrix, basis)),
    )


def _pooled_candidate(numbers: Folds, extract: Callable[[Outputs], Any]) -> ModelCandidate:
    """A sum over the numbers of one step function, times a weight for each number.

    For each fold that is scored, all of these are learned from the other folds.  The step function
    has nine steps, so only ten weights are fitted, with the smaller penalty.
    """

    def train(folds: list[int]) -> Callable[[Any], Array]:
        first_rows, second_rows = _concatenate_folds(numbers, folds)
        steps = fit_pooled_steps(*_with_labels(first_rows, second_rows))
        block = design_block(steps(first_rows), steps(second_rows))
        weights = fit_logistic([block], penalty=min(PENALTIES)).astype(np.float32)
        return Pipeline((steps, LinearScore(weights)))

    return ModelCandidate("pooled log-odds of numbers", numbers, train, extract)


def _screened_candidates(
    schema: FeatureSchema, first: Features, second: Features
) -> Iterator[ModelCandidate]:
    """Candidates for many numbers: a third of the runs screens them for a reduction.

    The other runs, as rows of the reduction, are those from which candidates are learned.
    """
    # A third of the runs on each value, rounded up.
    screened_counts = [-(-len(side) // 3) for side in (first.structure, second.structure)]
    numbers = [schema.padded(side) for side in (first, second)]
    screened = [x[:count] for x, count in zip(numbers, screened_counts, strict=True)]
    reference = reference_of(np.concatenate([x[:MAX_REFERENCE_ROWS] for x in screened]))
    sums = [screening_sums(x, reference) for x in screened]
    reduction = fit_reduction(sums[0], sums[1], reference, (screened[0], screened[1]))

    def read(columns: frozenset[int] | None) -> Callable[[Outputs], Array]:
        return ReducedOutputs(schema, reduction.only(columns))

    rows = [
        np.hstack([reduction(x[count:]), schema.shapes(side)[count:]])
        for x, count, side in zip(numbers, screened_counts, (first, second), strict=True)
    ]
    yield from reduced_candidates(reduction, rows[0], rows[1], read)


def _additive_candidates(
    description: str,
    penalties: Sequence[float],
    rows: Folds,
    extract: Callable[[Outputs], Any],
    columns: frozenset[int] | None = None,
) -> Iterator[ModelCandidate]:
    """One candidate for each ridge penalty: log-odds that are a weighted sum of a row's columns.

    ``rows`` are those of either value in folds.
    """
    blocks = [design_block(a, b) for a, b in rows]

    def training_with(penalty: float) -> Callable[[list[int]], Callable[[Any], Array]]:
        def train(folds: list[int]) -> Callable[[Any], Array]:
            weights = fit_logistic([blocks[fold] for fold in folds], penalty).astype(np.float32)
            return LinearScore(weights)

        return train

    for penalty in penalties:
        yield ModelCandidate(description, rows, training_with(penalty), extract, columns=columns)


def _split_folds(first: Any, second: Any) -> list[tuple[Any, Any]]:
    """The runs in `FOLDS` folds, or in one if a side has fewer runs than folds."""
    folds = FOLDS if min(len(first), len(second)) >= FOLDS else 1
    return [(first[fold::folds], second[fold::folds]) for fold in range(folds)]


def _concatenate_folds(all_folds: Folds, folds: list[int]) -> tuple[Any, Any]:
    """The runs of both sides in the folds of these numbers."""
    chosen = [all_folds[fold] for fold in folds]
    return np.concatenate([a for a, _ in chosen]), np.concatenate([b for _, b in chosen])


def _with_labels(first: Any, second: Any) -> tuple[Any, Array]:
    """The rows of both sides, and labels: 1 for the first value, 0 for the second."""
    return np.concatenate([first, second]), np.append(np.ones(len(first)), np.zeros(len(second)))
