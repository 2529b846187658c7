"""By how much noise must move so that the second run gives the first run's outputs.

If noise k moves by t_k, a number with value moved by d and factors f moves by d + sum f_k t_k.
What was released must not move, and of two numbers that were compared the greater must stay the
greater.  The least cost of such moves bounds the privacy loss (docs/proofs/recorded_runs.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array

from audits.recorded_runs.events import COMPARISON, Event, EventKind, NoiseBlock
from audits.recorded_runs.shared_parts import Moved, is_released, moved_view

BOUNDED = {
    "laplace", "log of uniform", "logistic", "exponential", "geometric", "negated exponential",
}  # fmt: skip
RISES, FALLS = {"exponential", "geometric"}, {"negated exponential"}  # moves in one direction alone


@final
@dataclass(slots=True)
class Constraints:
    """Linear conditions on the moves: equalities of what is released, and inequalities."""

    released: list[tuple[Moved, Event]] = field(default_factory=list)
    compared: list[tuple[Moved, Moved, Event]] = field(default_factory=list)


@final
@dataclass(slots=True)
class Laws:
    """The laws of all noises by number."""

    blocks: list[NoiseBlock]

    def without_signs(self) -> Laws:
        """These laws where no coin chose a sign: the log of a uniform number is one-sided noise."""
        one_sided = "negated exponential"
        return Laws(
            [
                replace(block, law=one_sided) if block.law == "log of uniform" else block
                for block in self.blocks
            ]
        )

    def numbers_of_blocks(self, noises: NDArray[np.int64]) -> NDArray[np.intp]:
        """Which block each noise is of."""
        starts = np.array([block.start for block in self.blocks], dtype=np.int64)
        return np.searchsorted(starts, noises, side="right") - 1

    def block(self, noise: int) -> NoiseBlock:
        """The block of a noise."""
        return self.blocks[int(self.numbers_of_blocks(np.array([noise]))[0])]

    def law(self, noise: int) -> tuple[str, float]:
        """The law of a noise, and its scale."""
        block = self.block(noise)
        return block.law, float(block.scale[noise - block.start])


def constraints_of(pairs: list[tuple[Event, Event]]) -> Constraints:
    """Collect what was released and what was compared."""
    found = Constraints()
    for one, other in pairs:
        if one.view is not None and other.view is not None and is_released(one, other):
            found.released.append((moved_view(one.view, other.view), one))
        if one.sides is not None and other.sides is not None:
            left, right = (moved_view(a, b) for a, b in zip(one.sides, other.sides, strict=True))
            found.compared.append((left, right, one))
    return found


def forced_moves(
    found: Constraints,
) -> tuple[dict[int, float], list[tuple[Event, str]], Constraints]:
    """Moves of noises that alone make up a released number, conflicts, and what is left.

    A noise that is released in two numbers which moved differently shows their difference.
    Noise that was only compared tells less: there a conflict says only that the loss is not known.
    """
    moves: dict[int, float] = {}
    conflicts: list[tuple[Event, str]] = []
    left = Constraints(compared=found.compared)
    for moved, event in found.released:
        parts = (moved.noises >= 0) & (moved.factors != 0)
        single = parts.sum(axis=1) == 1
        which = parts.argmax(axis=1)
        rows = np.flatnonzero(single)
        noises = moved.noises[rows, which[rows]]
        with np.errstate(all="ignore"):
            needed = -moved.moved[rows] / moved.factors[rows, which[rows]]
        for noise, move in zip(noises.tolist(), needed.tolist(), strict=True):
            known = moves.setdefault(noise, move)
            if known != move and not abs(known - move) <= 1e-9 * max(abs(known), abs(move)):
                conflicts.append((event, "compared" if is_question(event) else "reused noise"))
        bare = np.flatnonzero(~parts.any(axis=1) & (moved.moved != 0))
        if len(bare):
            conflicts.append((event, "compared" if is_question(event) else "no noise"))
        several = np.flatnonzero(parts.sum(axis=1) > 1)
        if len(several):
            left.released.append((some_rows(moved, several), event))
    return moves, conflicts, left


def is_question(event: Event) -> bool:
    """Whether noise was compared, and not released."""
    return event.kind is EventKind.QUESTION


def some_rows(moved: Moved, rows: NDArray[np.intp]) -> Moved:
    """These numbers alone."""
    return moved._replace(
        noises=moved.noises[rows], factors=moved.factors[rows],
        value=moved.value[rows], moved=moved.moved[rows],
        other_factors=moved.other_factors[rows],
    )  # fmt: skip


def least_cost(
    left: Constraints, moves: dict[int, float], laws: Laws, sign: float
) -> tuple[float, str]:
    """The least cost of moves that keep released sums and comparisons; and why there is none.

    ``sign`` is 1 from the first data to the second, -1 back.
    """
    equal, least = _rows_of(left)
    noises = sorted({k for terms, _ in equal + least for k in terms} - set(moves))
    if not equal and not least:
        return 0.0, ""
    if not all(np.isfinite(gap) for _, gap in equal + least):
        return np.inf, "a value is no number, or infinite"
    place = {noise: k for k, noise in enumerate(noises)}
    scales, rising, falling = [], [], []
    for noise in noises:
        law, scale = laws.law(noise)
        if law not in BOUNDED:
            return np.inf, law
        if not 0 < scale < np.inf:
            return np.inf, "noise of scale 0"
        scales.append(scale)
        rising.append((0.0, 0.0 if law in FALLS else None))
        falling.append((0.0, 0.0 if law in RISES else None))
    # each move, in units of its scale, is a difference of two non-negative parts
    matrices = [_matrix(rows, place, scales, moves, sign) for rows in (equal, least)]
    count, limits = len(noises), rising + falling
    (a_eq, b_eq), (a_ub, b_ub) = matrices
    if not count:
        ok = (b_eq is None or np.abs(b_eq).max() <= 1e-9) and (b_ub is None or b_ub.min() >= -1e-9)
        return (0.0, "") if ok else (np.inf, "no noise is left that could move")
    found: Any = linprog(  # type: ignore[call-overload]
        np.ones(2 * count), A_ub=a_ub, b_ub=b_ub, A_eq=a_eq, b_eq=b_eq, bounds=limits,
        method="highs",
    )  # fmt: skip
    return (float(found.fun), "") if found.status == 0 else (np.inf, "no move of the noise does it")


Terms = tuple[dict[int, float], float]


def _rows_of(left: Constraints) -> tuple[list[Terms], list[Terms]]:
    equal = [row for moved, _ in left.released for row in _terms(moved)]
    least = []
    for one, other, event in left.compared:
        rows = list(zip(_terms(one), _terms(other), strict=True))
        held = np.ravel(event.output).astype(bool) if event.name == COMPARISON else None
        for k, (first, second) in enumerate(rows):
            is_first = held is None or held[k]
            (greater, up), (smaller, down) = (first, second) if is_first else (second, first)
            terms = dict(greater)
            for noise, factor in smaller.items():
                terms[noise] = terms.get(noise, 0.0) - factor
            terms = {noise: factor for noise, factor in terms.items() if factor}
            least.append((terms, up - down))
    return equal, [row for row in least if row[0] or row[1] < 0]


def _terms(moved: Moved) -> list[Terms]:
    rows = []
    for noises, factors, gap in zip(moved.noises, moved.factors, moved.moved, strict=True):
        terms: dict[int, float] = {}
        for noise, factor in zip(noises.tolist(), factors.tolist(), strict=True):
            if noise >= 0 and factor:
                terms[noise] = terms.get(noise, 0.0) + factor
        rows.append((terms, float(gap)))
    return rows


def _matrix(
    rows: list[Terms],
    place: dict[int, int],
    scales: list[float],
    moves: dict[int, float],
    sign: float,
) -> tuple[coo_array | None, NDArray[np.float64] | None]:
    """Rows as a matrix for ``sum f t = -d`` and ``-sum f t <= d``, each divided by its size.

    The solver's tolerance is absolute: it is so in units of noise, whatever the units of the data.
    """
    if not rows:
        return None, None
    entries, limits = [], []
    for k, (terms, gap) in enumerate(rows):
        known = [sign * gap, *(f * sign * moves[n] for n, f in terms.items() if n in moves)]
        free = {place[n]: f * scales[place[n]] for n, f in terms.items() if f and n not in moves}
        size = max(map(abs, free.values())) if free else sum(map(abs, known)) or 1.0
        for at, factor in free.items():
            entries += [(k, at, factor / size), (k, at + len(place), -factor / size)]
        limits.append(sum(known) / size)
    row, column, value = np.array(entries).T if entries else np.zeros((3, 0))
    shape = (len(rows), 2 * len(place))
    matrix = coo_array((-value, (row.astype(int), column.astype(int))), shape=shape)
    return matrix, np.array(limits)
