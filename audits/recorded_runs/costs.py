"""What the recorded draws cost between the two runs: losses of noise, coins, selections and calls.

A function runs on private data, and every draw of noise and every comparison is recorded.  A second
run, on a neighbouring data set, replays the recorded outputs.  Values have moved by then, so each
noise must have moved too for the same outputs to come.  The privacy loss of the run is bounded by
the losses of these moves, which `Spent` collects and `Tight` composes.

- A *forced* move is the only one that a noise alone in a released number can make.
- A *coin* is a uniform number that is only compared with plain numbers, its *levels*.
- A *selection* is the place of the extreme of scores with Gumbel noise: the exponential mechanism.
- A *call* is a release by other code, which declares its loss and sensitivity.

`spent_between` charges these in turn; what remains is charged by the least cost of any moves.  The
numbered statements below are those of docs/proofs/recorded_runs.md.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from accountant.accountants.tight import Tight
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.laplace import LaplaceLoss
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from accountant.plans.plan import Sequential
from audits.recorded_runs.draws.parametric_draws import pair_losses
from audits.recorded_runs.noise_shifts import (
    NO_SOLUTION,
    Constraints,
    Laws,
    constraints_of,
    forced_moves,
    is_question,
    least_cost,
    numbers_at,
)
from audits.recorded_runs.shared_parts import Moved, distances
from audits.recorded_runs.tape import Event, EventKind, NoiseBlock

# Of more different Laplace shifts than this, shifts that differ by less than a share of
# 1 / MOST_SHIFTS count as the larger one.
MOST_SHIFTS = 200
NO_MOVE = 1e-13  # the rounding of least squares, relative to the largest move
SMALL = 1e-9  # shifts that differ by less, relatively, count as equal
ROUND_OFF = 1e-12  # a level of a coin that is so near to 0 or 1 counts as 0 or 1
LIKE_LAPLACE = ("laplace", "log of uniform", "logistic")  # laws that are charged as Laplace noise


@final
@dataclass(slots=True)
class Spent:
    """Losses of one pair of runs, and what is not known of them."""

    # Losses of noise, coins and selections, and the declared losses of calls, with their counts.
    losses: Counter[Loss] = field(default_factory=Counter)
    calls: Counter[Loss] = field(default_factory=Counter)
    # Like ``calls``, but a pure loss whose value moved by a part of its sensitivity costs that part
    # of its epsilon.
    scaled: Counter[Loss] = field(default_factory=Counter)
    # Events of infinite loss, each with the reason.
    infinite: list[tuple[Event, str]] = field(default_factory=list)
    # What has a loss that is not known; with any of these the cost is unknown.
    unknown: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)  # assumptions on laws that the losses rest on
    no_coins: bool = False  # the levels of a coin are in another order in the second run

    def epsilon(self, delta: float, scaled: bool = False) -> float:
        """Return an upper bound on epsilon of the known losses at delta, by `Tight`.

        ``scaled`` says that a call costs only the part of its loss by which its value moved.
        """
        losses = self.losses + self.scaled if scaled else self.losses + self.calls
        if self.infinite:
            return math.inf
        if not losses:
            return 0.0
        plan = Sequential([count * loss for loss, count in losses.items()])
        return Tight().epsilon(plan, delta)


def spent_between(pairs: list[tuple[Event, Event]], laws: Laws) -> tuple[Spent, list[Any]]:
    """Return what a pair of runs cost, and conflicts between released numbers.

    ``pairs`` are the events of both runs side by side, and ``laws`` the laws of all noises.  A
    conflict is an event whose noise cannot make all the moves that are needed, with the reason.
    """
    spent = Spent()
    if not any(recorded.sides is not None or is_coin(recorded) for recorded, _ in pairs):
        laws = laws.without_signs()
    constraints = constraints_of(pairs)
    constraints = _without_coins(constraints, laws, spent)
    constraints = _without_selections(constraints, laws, spent)
    constraints = _gaussians_released(constraints, laws)
    moves, conflicts, remaining = forced_moves(constraints)
    spent.infinite += [conflict for conflict in conflicts if not is_question(conflict[0])]
    spent.unknown += [_compared_at(event) for event, _ in conflicts if is_question(event)]
    _spend_forced(moves, laws, spent)
    remaining = _without_gaussian_sums(remaining, moves, laws, spent)
    _spend_least(remaining, moves, laws, spent)
    for recorded, replayed in pairs:
        if recorded.losses is not None:
            for loss, count in recorded.losses(recorded, replayed):
                spent.losses[loss] += count
        elif recorded.declared is not None:
            _spend_call(recorded, call_moved(recorded, replayed), spent)
    return spent, conflicts


def is_coin(event: Event) -> bool:
    """Return whether an event is a draw that was handed out as a plain number.

    Such a number may choose a sign.
    """
    return event.kind is EventKind.DRAW and event.view is None


def _spend_call(recorded: Event, moved: float | None, spent: Spent) -> None:
    """Spend the declared loss of a call, unless its value did not move."""
    loss, limit = recorded.declared, recorded.sensitivity
    if loss is None or moved == 0:
        return
    spent.calls[loss] += 1
    if moved is not None and limit and moved < limit and isinstance(loss, PureLoss):
        loss = PureLoss(loss.epsilon * moved / limit)
    spent.scaled[loss] += 1


def call_moved(recorded: Event, replayed: Event) -> float | None:
    """Return by how much the value of a declared call moved, in its norm; None if not known."""
    if recorded.given is None or replayed.given is None:
        return None
    try:
        value, replayed_value = (
            np.asarray(event.given, dtype=float) for event in (recorded, replayed)
        )
    except (TypeError, ValueError):
        return None
    if value.shape != replayed_value.shape:
        return None
    gap = np.abs(distances(value, replayed_value)).ravel()
    return float(np.linalg.norm(gap, recorded.norm)) if gap.size else 0.0


def _spend_forced(moves: dict[int, float], laws: Laws, spent: Spent) -> None:
    """Spend the losses of noises that have one possible move each (statement 2).

    ``moves`` has the move of each noise by its number.  A move over the scale of its noise is a
    shift.  All Gaussian shifts are one loss, of the root of the sum of their squares.
    """
    noises = np.fromiter(moves, dtype=np.int64, count=len(moves))
    distances_moved = np.abs(np.fromiter(moves.values(), dtype=float, count=len(moves)))
    noises, distances_moved = noises[distances_moved != 0], distances_moved[distances_moved != 0]
    gaussian_squares, laplace_shifts = 0.0, []
    block_numbers = laws.numbers_of_blocks(noises)
    for number in np.unique(block_numbers):
        block, in_block = laws.blocks[number], block_numbers == number
        scale, gaps = block.scale[noises[in_block] - block.start], distances_moved[in_block]
        if block.law == "unknown":
            spent.unknown.append(f"the law of the noise of {block.name} at {block.site}")
        elif not np.all(np.isfinite(gaps)):
            spent.infinite.append((_draw_of(block), "a value is no number, or infinite"))
        elif np.any(scale <= 0):
            spent.infinite.append((_draw_of(block), "noise of scale 0"))
        elif block.law == "gaussian":
            gaussian_squares += float(np.sum((gaps / scale) ** 2))
        elif block.law in LIKE_LAPLACE:
            laplace_shifts += (gaps / scale).tolist()
            if block.law == "log of uniform":
                reason = f"noise made of uniform draws at {block.site} is taken for Laplace noise"
                spent.assumed.append(reason)
        else:
            _spend_uniform_or_other(block, gaps, spent)
    if gaussian_squares:
        spent.losses[GaussianLoss(math.sqrt(gaussian_squares))] += 1
    for shift, count in _grouped(laplace_shifts):
        spent.losses[LaplaceLoss(shift)] += count


def _spend_uniform_or_other(block: NoiseBlock, gaps: NDArray[np.float64], spent: Spent) -> None:
    """Spend moves of noise of one block, whose law is uniform, Gumbel or one-sided.

    Uniform noise of width 1 that moves by ``gap`` shows this with probability ``gap``; one-sided
    noise costs an infinite loss in one direction.
    """
    if block.law == "gumbel":
        spent.unknown.append(f"the loss of Gumbel noise that is released, at {block.site}")
    elif block.law == "uniform":
        for gap in gaps.tolist():
            if gap < 1:
                spent.losses[ApproxLoss(0.0, gap)] += 1
            else:
                reason = "uniform noise is smaller than a move"
                spent.infinite.append((_draw_of(block), reason))
    else:
        reason = f"{block.law} noise shows a move in one direction"
        spent.infinite.append((_draw_of(block), reason))


def _grouped(shifts: list[float]) -> list[tuple[float, int]]:
    """Return shifts with their counts; shifts that are nearly equal count as the largest of them.

    See `MOST_SHIFTS` for what is nearly equal.
    """
    groups: list[list[float]] = []
    tolerance = SMALL if len(set(shifts)) <= MOST_SHIFTS else 1 / MOST_SHIFTS
    for shift in sorted(shifts, reverse=True):
        if groups and groups[-1][0] - shift <= tolerance * groups[-1][0]:
            groups[-1].append(shift)
        else:
            groups.append([shift])
    return [(group[0], len(group)) for group in groups]


def _compared_at(event: Event) -> str:
    return f"the loss of Gaussian noise compared at {event.site}"


def _draw_of(block: NoiseBlock) -> Event:
    return Event(EventKind.DRAW, block.name, block.site, (), None)


def _spend_least(remaining: Constraints, moves: dict[int, float], laws: Laws, spent: Spent) -> None:
    """Spend the sums and comparisons that remain, by the least cost of moves (statement 1).

    It is a pure loss, the larger of the costs from the first data to the second and back.
    """
    if not remaining.released and not remaining.compared:
        return
    largest_cost = 0.0
    for sign in (1.0, -1.0):
        cost, reason = least_cost(remaining, moves, laws, sign)
        if cost == math.inf and reason in ("unknown", "gumbel", "gaussian", "uniform"):
            event = (remaining.compared or remaining.released)[0][-1]
            spent.unknown.append(f"the loss of {reason} noise compared at {event.site}")
            return
        if cost == math.inf:
            event = (remaining.compared or remaining.released)[0][-1]
            spent.infinite.append((event, reason))
            return
        largest_cost = max(largest_cost, cost)
    if largest_cost:
        spent.losses[PureLoss(largest_cost)] += 1


def _without_gaussian_sums(
    constraints: Constraints, moves: dict[int, float], laws: Laws, spent: Spent
) -> Constraints:
    """Spend and remove the released numbers that hold Gaussian noise alone.

    Noises with a forced move are not counted: they are fixed, and add their move to the number's.
    """
    remaining = Constraints(compared=constraints.compared)
    rows: list[tuple[dict[int, float], float]] = []
    for moved, event in constraints.released:
        for k in range(len(moved.moved)):
            terms = {
                int(noise): float(factor)
                for noise, factor in zip(moved.noises[k], moved.factors[k], strict=True)
                if noise >= 0 and factor
            }
            fixed = sum(factor * moves[n] for n, factor in terms.items() if n in moves)
            free = {n: factor for n, factor in terms.items() if n not in moves}
            if free and all(laws.law(n)[0] == "gaussian" for n in free):
                rows.append((free, float(moved.moved[k]) + fixed))
            else:
                remaining.released.append((numbers_at(moved, np.array([k])), event))
    if any(gap for _, gap in rows):
        _spend_gaussian_sums(rows, constraints, laws, spent)
    return remaining


def _spend_gaussian_sums(
    rows: list[tuple[dict[int, float], float]], constraints: Constraints, laws: Laws, spent: Spent
) -> None:
    """Spend sums of Gaussian noises; a row has the factor of each noise, and the sum's own move.

    Let A be the matrix of the factors times the scales, and d the moves of the sums.  The loss is
    that of a Gaussian shift by the least norm of a u with A u = -d, and infinite if there is no
    such u (statement 2).
    """
    column_of = {n: k for k, n in enumerate(sorted({n for free, _ in rows for n in free}))}
    matrix = np.zeros((len(rows), len(column_of)))
    for k, (free, _) in enumerate(rows):
        for noise, factor in free.items():
            matrix[k, column_of[noise]] = factor * laws.law(noise)[1]
    gaps = np.array([gap for _, gap in rows])
    # Rows are scaled to length 1: this keeps the solutions, and the least-squares solver does not
    # mistake rows of small factors for rows of zeros.
    lengths = np.linalg.norm(matrix, axis=1)
    lengths[lengths == 0] = 1.0
    matrix, gaps = matrix / lengths[:, None], gaps / lengths
    solved = np.linalg.lstsq(matrix, -gaps, rcond=None)[0]
    tolerance = NO_MOVE * float(np.abs(gaps).max())
    if np.allclose(matrix @ solved, -gaps, rtol=1e-9, atol=tolerance):
        spent.losses[GaussianLoss(float(np.linalg.norm(solved)))] += 1
        return
    question = next((event for _, event in constraints.released if is_question(event)), None)
    if question is None:
        spent.infinite.append((constraints.released[0][1], NO_SOLUTION))
    else:
        spent.unknown.append(_compared_at(question))


def _without_coins(constraints: Constraints, laws: Laws, spent: Spent) -> Constraints:
    """Spend and remove the coins: uniform numbers that are compared with plain numbers.

    The comparisons tell in which cell between its levels a coin lies.  So the loss is that between
    the two laws of the cell, whose probabilities are the differences of successive levels in each
    run (statement 3).  If the levels have another order in the second run, it is unknown.
    """
    remaining = Constraints(released=constraints.released)
    levels: dict[int, list[tuple[float, float]]] = {}
    for left_side, right_side, event in constraints.compared:
        coin = _coin_levels(left_side, right_side, laws)
        coin = coin or _coin_levels(right_side, left_side, laws)
        if coin is None:
            remaining.compared.append((left_side, right_side, event))
            continue
        for noise, data_level, neighbour_level in coin:
            levels.setdefault(noise, []).append((data_level, neighbour_level))
    for level_pairs in levels.values():
        if all(data_level == neighbour_level for data_level, neighbour_level in level_pairs):
            continue
        ordered = sorted(
            {
                (_as_probability(data_level), _as_probability(neighbour_level))
                for data_level, neighbour_level in level_pairs
            }
        )
        cells = [np.diff([0.0, *(level[k] for level in ordered), 1.0]) for k in (0, 1)]
        if min(cell.min() for cell in cells) < 0:
            spent.no_coins = True
            spent.unknown.append("the loss of a uniform number that is compared with many others")
            continue
        for loss, count in pair_losses(cells[0], cells[1]):
            spent.losses[loss] += count
    return remaining


def _as_probability(level: float) -> float:
    """Return the probability that a uniform number in [0, 1] is below a level."""
    if level < ROUND_OFF:
        return 0.0
    return 1.0 if level > 1 - ROUND_OFF else level


def _coin_levels(
    noisy: Moved, threshold: Moved, laws: Laws
) -> list[tuple[int, float, float]] | None:
    """Return each noise of a comparison, with its level in both runs, where it is a coin.

    ``noisy`` must be values plus one uniform noise each, v + f U, and ``threshold`` plain numbers
    t: then U is compared with the level (t - v) / f.  The result is None for other sides.
    """
    if not noisy.noises.size:
        return []
    if (threshold.noises >= 0).any() or noisy.noises.shape[-1] != 1 or (noisy.noises < 0).any():
        return None
    if any(
        laws.block(k).law != "uniform" for k in {int(noisy.noises.min()), int(noisy.noises.max())}
    ):
        return None
    noises = noisy.noises[:, 0]
    with np.errstate(all="ignore"):
        data_levels = (threshold.value - noisy.value) / noisy.factors[:, 0]
        neighbour_levels = (
            threshold.value + threshold.moved - noisy.value - noisy.moved
        ) / noisy.other_factors[:, 0]
    return list(zip(noises.tolist(), data_levels.tolist(), neighbour_levels.tolist(), strict=True))


def _without_selections(constraints: Constraints, laws: Laws, spent: Spent) -> Constraints:
    """Spend and remove selections: the place of an extreme of scores with Gumbel noise.

    With noise of scale b this is the exponential mechanism, which chooses place j of scores s_j
    with probability softmax(s / b)_j (statement 3).
    """
    remaining = Constraints(released=constraints.released)
    for left_side, right_side, event in constraints.compared:
        scores = left_side if event.name == "argmin" else right_side
        selects = event.name in ("argmax", "argmin") and scores.noises.shape[-1] == 1
        noise_laws = {laws.block(int(k)).law for k in scores.noises[:1, 0] if k >= 0}
        if not selects or noise_laws != {"gumbel"} or len(set(scores.factors.ravel())) != 1:
            remaining.compared.append((left_side, right_side, event))
            continue
        scale = abs(float(scores.factors[0, 0])) * laws.law(int(scores.noises[0, 0]))[1]
        if not np.all(np.isfinite(scores.moved)) or scale <= 0:
            spent.infinite.append((event, "a score is no number, or the noise has scale 0"))
            continue
        probabilities = softmax(scores.value / scale)
        neighbour_probabilities = softmax((scores.value + scores.moved) / scale)
        for loss, count in pair_losses(probabilities, neighbour_probabilities):
            spent.losses[loss] += count
    return remaining


def _gaussians_released(constraints: Constraints, laws: Laws) -> Constraints:
    """Treat numbers with Gaussian noise that were compared as released.

    The loss then is an upper bound, since a comparison reveals less than the numbers.
    """
    remaining = Constraints(released=list(constraints.released))
    for left_side, right_side, event in constraints.compared:
        noises = np.concatenate([left_side.noises.ravel(), right_side.noises.ravel()])
        block_numbers = np.unique(laws.numbers_of_blocks(noises[noises >= 0]))
        if any(laws.blocks[number].law == "gaussian" for number in block_numbers):
            remaining.released += [
                (side, event) for side in (left_side, right_side) if (side.noises >= 0).any()
            ]
        else:
            remaining.compared.append((left_side, right_side, event))
    return remaining
