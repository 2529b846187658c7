"""Candidates for the score of a release, the simplest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.numerics import Array
from audits.classifiers.feature_schema import Outputs, as_numbers, infer_schema, single_numbers
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
from audits.classifiers.smoothed_log_odds import MAX_CATEGORIES, StepFunction, histogram_cells

FOLDS = 3
PENALTIES = (20.0, 500.0)
MAX_DISTINCT_SHARE = 0.1  # largest share of distinct outputs for a table of them
Folds = Sequence[tuple[Any, Any]]


@final
@dataclass(frozen=True, slots=True)
class ModelCandidate:
    """A kind of score: learning runs in folds, how to train on folds, how to read an output."""

    description: str
    folds: Folds
    train: Callable[[list[int]], Callable[[Any], Array]]
    extract: Callable[[Outputs], Any]
    is_number: bool = False


def model_candidates(first: Outputs, second: Outputs) -> Iterator[ModelCandidate]:
    """Candidates for the score of such outputs."""
    alike = first.dtype.kind == second.dtype.kind or not (len(first) and len(second))
    if alike and single_numbers(first) and single_numbers(second):
        return _number_candidates(first, second)
    return _row_candidates(first, second)


def _number_candidates(first: Outputs, second: Outputs) -> Iterator[ModelCandidate]:
    yield ModelCandidate(
        "the output", [(first, second)], lambda _: _identity, as_numbers, is_number=True
    )
    cells = histogram_cells(first, second)
    parts = _split_folds(first, second) if cells.smoothing else [(first, second)]
    smoothing = cells.smoothing

    def train(folds: list[int]) -> Callable[[Any], Array]:
        return StepFunction(histogram_cells(*_concatenate_folds(parts, folds), smoothing))

    yield ModelCandidate(
        "smoothed log-odds of the output", parts, train, as_numbers, is_number=True
    )


def _identity(numbers: Any) -> Any:
    return numbers


def _row_candidates(first: Outputs, second: Outputs) -> Iterator[ModelCandidate]:
    layout = infer_schema(first, second)
    rows_a, rows_b = layout.feature_matrix(first), layout.feature_matrix(second)
    raw_a, raw_b = layout.numbers(first), layout.numbers(second)
    atoms_a, atoms_b = layout.categories(first), layout.categories(second)
    atoms = _split_folds(atoms_a, atoms_b)
    runs = len(atoms_a) + len(atoms_b)
    distinct = np.unique(np.concatenate([atoms_a, atoms_b])).size
    if distinct <= max(2, MAX_DISTINCT_SHARE * runs):
        # the counts of a few outputs are their cells: folds would shrink a rare one three times
        parts = [(atoms_a, atoms_b)] if distinct <= MAX_CATEGORIES else atoms
        yield ModelCandidate(
            "log-odds of the whole output", parts,
            lambda folds: fit_category_table(*_with_labels(*_concatenate_folds(parts, folds))),
            layout.categories,
        )  # fmt: skip
    raw = _split_folds(raw_a, raw_b)
    if raw_a.shape[1] > 1:

        def summed(folds: list[int]) -> Callable[[Array], Array]:
            weights = mean_difference_weights(*_with_labels(*_concatenate_folds(raw, folds)))
            return Pipeline((_replace_nonfinite, LinearScore(weights)))

        yield ModelCandidate("a weighted sum", raw, summed, layout.numbers)
    labels = np.append(np.ones(len(rows_a)), np.zeros(len(rows_b)))
    if raw_a.shape[1] > 1:
        steps = fit_pooled_steps(np.concatenate([raw_a, raw_b]), labels)
        yield from _additive_candidates(
            "pooled log-odds of numbers", PENALTIES[:1], _split_folds(steps(raw_a), steps(raw_b)),
            Pipeline((layout.numbers, steps)),
        )  # fmt: skip
    basis = fit_spline_basis(np.concatenate([rows_a, rows_b]), labels, layout.width)
    yield from _additive_candidates(
        "additive log-odds of features", PENALTIES, _split_folds(basis(rows_a), basis(rows_b)),
        Pipeline((layout.feature_matrix, basis)),
    )  # fmt: skip


def _additive_candidates(
    words: str, penalties: Sequence[float], parts: Folds, extract: Callable[[Outputs], Any]
) -> Iterator[ModelCandidate]:
    blocks = [design_block(a, b) for a, b in parts]

    def trained(penalty: float) -> Callable[[list[int]], Callable[[Any], Array]]:
        def train(folds: list[int]) -> Callable[[Any], Array]:
            weights = fit_logistic([blocks[fold] for fold in folds], penalty).astype(np.float32)
            return LinearScore(weights)

        return train

    yield from (ModelCandidate(words, parts, trained(penalty), extract) for penalty in penalties)


def _replace_nonfinite(rows: Array) -> Array:
    result: Array = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
    return result


def _split_folds(first: Any, second: Any) -> list[tuple[Any, Any]]:
    return [(first[fold::FOLDS], second[fold::FOLDS]) for fold in range(FOLDS)]


def _concatenate_folds(parts: Folds, folds: list[int]) -> tuple[Any, Any]:
    chosen = [parts[fold] for fold in folds]
    return np.concatenate([a for a, _ in chosen]), np.concatenate([b for _, b in chosen])


def _with_labels(first: Any, second: Any) -> tuple[Any, Array]:
    return np.concatenate([first, second]), np.append(np.ones(len(first)), np.zeros(len(second)))
