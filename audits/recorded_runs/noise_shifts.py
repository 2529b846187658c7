"""By how much the noise must move so that a run on the neighbour gives the recorded outputs.

A recorded run numbers each noise that it draws.  A number that the run shows is a value plus noises
N_k with factors f_k.  On the neighbour the value has moved by d, its gap.  If noise k moves by t_k,
the number moves by d + sum f_k t_k.  A released number must not move, and of two numbers that were
compared the greater must stay the greater.  These are linear conditions on the moves t; the least
cost of moves that satisfy them bounds the privacy loss (docs/proofs/recorded_runs.md).  Integer
noise moves by whole numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from audits.recorded_runs.comparisons import ROUND_OFF
from audits.recorded_runs.event_pairs import EventPair, Moved, moved_view
from audits.recorded_runs.events import COMPARISON, Event, Question
from audits.recorded_runs.tape import NoiseBlock

# Laws whose log density changes by at most the move over the scale.  One-sided noise may move in
# one direction only, as its density is 0 on the other side of an end.  The logarithm of a uniform
# number counts as two-sided here, because a coin may choose its sign; see `Laws.without_signs`.
BOUNDED = {
    "laplace",
    "log of uniform",
    "logistic",
    "exponential",
    "geometric",
    "negated exponential",
}
ONLY_RISE, ONLY_FALL = {"exponential", "geometric"}, {"negated exponential"}
WHOLE = {"geometric"}  # laws of integers
# The search for whole moves stops after this many linear programs, and the loss is then not known.
MOST_PROGRAMS = 1000
INFEASIBLE = 2  # the status of `scipy.optimize.milp` where no moves satisfy the conditions
# The reason that is given if the linear program has no solution.
NO_SOLUTION = "no move of the noise keeps what was released"
NO_NOISE = np.empty(0, dtype=np.int64)


@final
class Condition(NamedTuple):
    """A linear condition on moves: the factors of the noises by number, and the value's own move.

    With t_k the move of noise k, it is gap + sum factors[k] t_k = 0, or >= 0 for a comparison.
    """

    factors: dict[int, float]  # by the number of the noise
    gap: float  # by how much the value moved, or the greater side's value more than the smaller's


@final
class Released(NamedTuple):
    """Numbers that must not move, and the event that released or compared them."""

    moved: Moved
    event: Event


@final
class Compared(NamedTuple):
    """The two sides of a question, row by row: the greater one must stay the greater."""

    left: Moved
    right: Moved
    question: Question


@final
class Conflict(NamedTuple):
    """An event whose noise cannot make all the moves that are needed, and the reason."""

    event: Event
    reason: str


@final
@dataclass(slots=True)
class Constraints:
    """Linear conditions on the moves: equalities of what is released, and inequalities."""

    released: list[Released] = field(default_factory=list)
    compared: list[Compared] = field(default_factory=list)

    def noises_used_once(self) -> NDArray[np.int64]:
        """Return the noises that are in one released output alone, or in one question alone."""
        events: list[tuple[Moved, ...]] = [(row.moved,) for row in self.released]
        events += [(row.left, row.right) for row in self.compared]
        used = [np.unique(np.concatenate([side.view.noises.ravel() for side in x])) for x in events]
        noises, counts = np.unique(np.concatenate([NO_NOISE, *used]), return_counts=True)
        used_once: NDArray[np.int64] = noises[(counts == 1) & (noises >= 0)]
        return used_once


@final
@dataclass(slots=True)
class Laws:
    """The laws of all noises by number."""

    blocks: list[NoiseBlock]

    def without_signs(self) -> Laws:
        """Return the laws for a run in which no coin chooses a sign.

        There the logarithm of a uniform number is one-sided noise, and not a half of Laplace noise.
        """
        one_sided = "negated exponential"
        return Laws(
            [
                replace(block, law=one_sided) if block.law == "log of uniform" else block
                for block in self.blocks
            ]
        )

    def numbers_of_blocks(self, noises: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the index of the block that each noise is in; a block has successive numbers."""
        starts = np.array([block.start for block in self.blocks], dtype=np.int64)
        return np.searchsorted(starts, noises, side="right") - 1

    def block(self, noise: int) -> NoiseBlock:
        """Return the block of a noise."""
        return self.blocks[int(self.numbers_of_blocks(np.array([noise]))[0])]

    def law(self, noise: int) -> tuple[str, float]:
        """Return the law of a noise, and its scale."""
        block = self.block(noise)
        return block.law, float(block.scale[noise - block.start])

    def names(self, noises: NDArray[np.int64]) -> set[str]:
        """Return the names of the laws of some noises."""
        return {self.blocks[k].law for k in np.unique(self.numbers_of_blocks(noises))}

    def scales(self, noises: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scale of each noise."""
        scales, block_numbers = np.empty(noises.shape), self.numbers_of_blocks(noises)
        for number in np.unique(block_numbers):
            block, in_block = self.blocks[number], block_numbers == number
            scales[in_block] = block.scale[noises[in_block] - block.start]
        return scales


def constraints_of(pairs: list[EventPair]) -> Constraints:
    """Return the conditions of two runs: what was released and what was compared in them."""
    constraints = Constraints()
    for pair in pairs:
        if pair.moved is not None and pair.is_released:
            constraints.released.append(Released(pair.moved, pair.recorded))
        if isinstance(pair.recorded, Question) and pair.sides:
            left_side, right_side = (moved_view(*views) for views in pair.sides)
            constraints.compared.append(Compared(left_side, right_side, pair.recorded))
    return constraints


def forced_moves(
    constraints: Constraints,
) -> tuple[dict[int, float], list[Conflict], Constraints]:
    """Return the forced moves by the number of their noise, conflicts, and what remains.

    A noise that alone is in a released number has one possible move.  If it is in two such numbers
    that need different moves, the two numbers show their difference: this is a conflict.  Noise
    that was only compared tells less: there a conflict says only that the loss is not known.
    """
    moves: dict[int, float] = {}
    conflicts: list[Conflict] = []
    remaining = Constraints(compared=constraints.compared)
    for moved, event in constraints.released:
        is_compared = isinstance(event, Question)
        has_noise = moved.has_noise
        noise_counts = has_noise.sum(axis=1)
        # If the value of a number with one noise moved by d, the noise must move by -d / factor.
        rows = np.flatnonzero(noise_counts == 1)
        part = has_noise.argmax(axis=1)[rows]
        noises = moved.view.noises[rows, part]
        with np.errstate(all="ignore"):
            needed_moves = -moved.gap[rows] / moved.view.factors[rows, part]
        for noise, move in zip(noises.tolist(), needed_moves.tolist(), strict=True):
            earlier_move = moves.setdefault(noise, move)
            tolerance = ROUND_OFF * max(abs(earlier_move), abs(move))
            # An infinite tolerance would hide that one of the two moves is infinite.
            is_rounding = abs(earlier_move - move) <= tolerance < np.inf
            if earlier_move != move and not is_rounding:
                conflicts.append(Conflict(event, "compared" if is_compared else "reused noise"))
        if np.any((noise_counts == 0) & (moved.gap != 0)):
            conflicts.append(Conflict(event, "compared" if is_compared else "no noise"))
        several = np.flatnonzero(noise_counts > 1)
        if len(several):
            remaining.released.append(Released(moved.rows(several), event))
    return moves, conflicts, remaining


def least_cost(
    constraints: Constraints, moves: dict[int, float], laws: Laws, sign: float
) -> tuple[float, str]:
    """Return the least cost of moves that keep released sums and comparisons, and an empty reason.

    The cost is the sum of the sizes of the moves over their scales.  It is infinite where no moves
    keep them, or where the law of a noise has no such cost; then the reason says why.  ``moves``
    are those that are forced, and have been charged.  ``sign`` is 1 from the first data to the
    second, where values move by their gaps, and -1 back, where they move by the opposite.
    """
    equalities, inequalities = _linear_conditions(constraints)
    conditions = equalities + inequalities
    noises = sorted({k for condition in conditions for k in condition.factors} - set(moves))
    forced = [moves[k] for condition in conditions for k in condition.factors if k in moves]
    if not any([*(condition.gap for condition in conditions), *forced]):
        return 0.0, ""  # No value has moved.
    if not np.all(np.isfinite([*(condition.gap for condition in conditions), *forced])):
        return np.inf, "a value is no number, or infinite"
    column_of = {noise: k for k, noise in enumerate(noises)}
    units, costs, rising, falling = [], [], [], []
    for noise in noises:
        law, scale = laws.law(noise)
        if law not in BOUNDED:
            return np.inf, law
        if not 0 < scale < np.inf:
            return np.inf, "noise of scale 0"
        units.append(1.0 if law in WHOLE else scale)
        costs.append(units[-1] / scale)
        rising.append(0.0 if law in ONLY_FALL else np.inf)
        falling.append(0.0 if law in ONLY_RISE else np.inf)
    # In the linear program a move over its unit is the difference of two non-negative variables,
    # its rise and its fall.  Each costs its unit over its scale, and is whole if the noise is.
    linear_constraints = []
    if equalities:  # the solver takes no empty matrix
        linear_constraints.append(
            _linear_constraint(equalities, True, column_of, units, moves, sign)
        )
    if inequalities:
        linear_constraints.append(
            _linear_constraint(inequalities, False, column_of, units, moves, sign)
        )
    if not noises:  # the conditions have constants alone
        if all(np.all((c.lb <= ROUND_OFF) & (c.ub >= -ROUND_OFF)) for c in linear_constraints):
            return 0.0, ""
        return np.inf, "no noise is left that could move"
    solve: Any = milp  # its stubs know no sparse arrays
    are_whole = [laws.law(noise)[0] in WHOLE for noise in noises]
    solution = solve(
        costs + costs,
        integrality=are_whole + are_whole,
        bounds=Bounds(0.0, rising + falling),
        constraints=linear_constraints,
        options={"node_limit": MOST_PROGRAMS},
    )
    if solution.status == 0:
        return float(solution.fun), ""
    # Without whole moves there is always an answer, but for programs that the solver gives up.
    gave_up = any(are_whole) and solution.status != INFEASIBLE
    return np.inf, "geometric" if gave_up else NO_SOLUTION


def _linear_conditions(constraints: Constraints) -> tuple[list[Condition], list[Condition]]:
    """Return equalities for what was released, and inequalities for what was compared.

    The greater side stays the greater if it moves up by at least as much as the smaller one.
    """
    equalities = [row for moved, _ in constraints.released for row in conditions_of(moved)]
    inequalities = []
    for left_side, right_side, question in constraints.compared:
        sides = zip(conditions_of(left_side), conditions_of(right_side), strict=True)
        # The answer of a comparison says which side is greater.  Where an extreme was asked for,
        # the left side is the greater one: the maximum, or all that are no less than the minimum.
        answers = np.ravel(question.output).astype(bool) if question.name == COMPARISON else None
        for row, (left, right) in enumerate(sides):
            is_left_greater = answers is None or answers[row]
            greater, smaller = (left, right) if is_left_greater else (right, left)
            factors = dict(greater.factors)
            for noise, factor in smaller.factors.items():
                factors[noise] = factors.get(noise, 0.0) - factor
            factors = {noise: factor for noise, factor in factors.items() if factor}
            gap = greater.gap - smaller.gap
            # A condition without noise holds by itself unless the smaller side moved up by more.
            if factors or gap < 0:
                inequalities.append(Condition(factors, gap))
    return equalities, inequalities


def conditions_of(moved: Moved) -> list[Condition]:
    """Return for each number the summed factors of its noises, and its value's move."""
    rows = []
    view = moved.view
    for noises, factors, gap in zip(view.noises, view.factors, moved.gap, strict=True):
        terms: dict[int, float] = {}
        for noise, factor in zip(noises.tolist(), factors.tolist(), strict=True):
            if noise >= 0 and factor:
                terms[noise] = terms.get(noise, 0.0) + factor
        rows.append(Condition(terms, float(gap)))
    return rows


def _linear_constraint(
    conditions: list[Condition],
    is_equality: bool,
    column_of: dict[int, int],
    units: list[float],
    moves: dict[int, float],
    sign: float,
) -> LinearConstraint:
    """Return the conditions as ``-sum f t = d``, or ``-sum f t <= d`` if they are inequalities.

    The unknowns t are the free moves, in ``units``.  Columns are their rises, then their falls.
    The number d is ``sign`` times the sum of the gap and of the forced ``moves`` times their
    factors.

    The solver's tolerance is absolute, so rows must be in units of the noise and not of the data:
    each row is divided by its largest factor times unit.
    """
    entries, limits = [], []
    for row, (factors, gap) in enumerate(conditions):
        constants = [sign * gap, *(f * sign * moves[k] for k, f in factors.items() if k in moves)]
        free = {
            column_of[k]: f * units[column_of[k]]
            for k, f in factors.items()
            if f and k not in moves
        }
        size = max(map(abs, free.values())) if free else sum(map(abs, constants)) or 1.0
        for column, factor in free.items():
            entries += [
                (row, column, -factor / size),
                (row, column + len(column_of), factor / size),
            ]
        limits.append(sum(constants) / size)
    rows, columns, coefficients = np.array(entries).T if entries else np.zeros((3, 0))
    shape = (len(conditions), 2 * len(column_of))
    matrix: Any = coo_array((coefficients, (rows.astype(int), columns.astype(int))), shape=shape)
    return LinearConstraint(matrix, limits if is_equality else -np.inf, limits)
