"""Candidates for the score of a release, the simplest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.numerics import Array
from audits.classifiers.feature_schema import Outputs, as_numbers, layout_of, single_numbers
from audits.classifiers.linear_scores import (
    Chain,
    Weighted,
    atom_table,
    basis_of,
    block_of,
    contrast,
    logistic,
    pooled_steps,
)
from audits.classifiers.smoothed_log_odds import Steps, cells_of

FOLDS = 3
PENALTIES = (20.0, 500.0)
DISTINCT = 0.1  # share of runs that may be distinct for atoms to be worth a table
Parts = Sequence[tuple[Any, Any]]


@final
@dataclass(frozen=True, slots=True)
class Candidate:
    """Learning runs in folds of both sides, how to train on some folds, how to read an output."""

    words: str
    parts: Parts
    train: Callable[[list[int]], Callable[[Any], Array]]
    extract: Callable[[Outputs], Any]
    number: bool = False


def candidates(first: Outputs, second: Outputs) -> Iterator[Candidate]:
    """Candidates for the score of such outputs."""
    alike = first.dtype.kind == second.dtype.kind or not (len(first) and len(second))
    if alike and single_numbers(first) and single_numbers(second):
        return _of_numbers(first, second)
    return _of_rows(first, second)


def _of_numbers(first: Outputs, second: Outputs) -> Iterator[Candidate]:
    yield Candidate("the output", [(first, second)], lambda _: _itself, as_numbers, number=True)
    parts, smoothing = _folds(first, second), cells_of(first, second).smoothing

    def train(folds: list[int]) -> Callable[[Any], Array]:
        return Steps(cells_of(*_pooled(parts, folds), smoothing))

    yield Candidate("smoothed log-odds of the output", parts, train, as_numbers, number=True)


def _itself(numbers: Any) -> Any:
    return numbers


def _of_rows(first: Outputs, second: Outputs) -> Iterator[Candidate]:
    layout = layout_of(first, second)
    rows_a, rows_b = layout.rows(first), layout.rows(second)
    raw_a, raw_b = layout.numbers(first), layout.numbers(second)
    atoms_a, atoms_b = layout.atoms(first), layout.atoms(second)
    atoms = _folds(atoms_a, atoms_b)
    runs = len(atoms_a) + len(atoms_b)
    distinct = np.unique(np.concatenate([atoms_a, atoms_b])).size
    if distinct <= max(2, DISTINCT * runs):
        yield Candidate(
            "log-odds of the whole output", atoms,
            lambda folds: atom_table(*_with_sides(*_pooled(atoms, folds))),
            layout.atoms,
        )  # fmt: skip
    raw = _folds(raw_a, raw_b)
    if raw_a.shape[1] > 1:

        def summed(folds: list[int]) -> Callable[[Array], Array]:
            weights = contrast(*_with_sides(*_pooled(raw, folds)))
            return Chain((_finite, Weighted(weights)))

        yield Candidate("a weighted sum", raw, summed, layout.numbers)
    sides = np.append(np.ones(len(rows_a)), np.zeros(len(rows_b)))
    if raw_a.shape[1] > 1:
        steps = pooled_steps(np.concatenate([raw_a, raw_b]), sides)
        yield from _additive(
            "pooled log-odds of numbers", PENALTIES[:1], _folds(steps(raw_a), steps(raw_b)),
            Chain((layout.numbers, steps)),
        )  # fmt: skip
    basis = basis_of(np.concatenate([rows_a, rows_b]), sides, layout.width)
    yield from _additive(
        "additive log-odds of features", PENALTIES, _folds(basis(rows_a), basis(rows_b)),
        Chain((layout.rows, basis)),
    )  # fmt: skip


def _additive(
    words: str, penalties: Sequence[float], parts: Parts, extract: Callable[[Outputs], Any]
) -> Iterator[Candidate]:
    blocks = [block_of(a, b) for a, b in parts]

    def trained(penalty: float) -> Callable[[list[int]], Callable[[Any], Array]]:
        def train(folds: list[int]) -> Callable[[Any], Array]:
            weights = logistic([blocks[fold] for fold in folds], penalty).astype(np.float32)
            return Weighted(weights)

        return train

    yield from (Candidate(words, parts, trained(penalty), extract) for penalty in penalties)


def _finite(rows: Array) -> Array:
    result: Array = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
    return result


def _folds(first: Any, second: Any) -> list[tuple[Any, Any]]:
    return [(first[fold::FOLDS], second[fold::FOLDS]) for fold in range(FOLDS)]


def _pooled(parts: Parts, folds: list[int]) -> tuple[Any, Any]:
    chosen = [parts[fold] for fold in folds]
    return np.concatenate([a for a, _ in chosen]), np.concatenate([b for _, b in chosen])


def _with_sides(first: Any, second: Any) -> tuple[Any, Array]:
    return np.concatenate([first, second]), np.append(np.ones(len(first)), np.zeros(len(second)))
