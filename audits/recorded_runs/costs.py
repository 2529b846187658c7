"""What the recorded draws cost between the two runs, and what they were declared to cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accountant.losses.gaussian import GaussianLoss
from accountant.losses.laplace import LaplaceLoss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from audits.recorded_runs.coins_and_selections import (
    gaussians_released,
    without_coins,
    without_selections,
)
from audits.recorded_runs.events import Event, EventKind
from audits.recorded_runs.noise_shifts import (
    Constraints,
    Laws,
    constraints_of,
    forced_moves,
    is_question,
    least_cost,
    some_rows,
)
from audits.recorded_runs.shared_parts import distances
from audits.recorded_runs.spent import Spent

MOST_SHIFTS = 200  # different Laplace shifts that are kept apart; more are rounded up
NO_MOVE = 1e-13  # relative to the largest move: the rounding of least squares
SMALL = 1e-9  # relative: shifts that differ by less count as equal


def spent_between(pairs: list[tuple[Event, Event]], laws: Laws) -> tuple[Spent, list[Any]]:
    """What the pair of runs cost, and conflicts between what was released."""
    spent = Spent()
    if not any(recorded.sides is not None or is_coin(recorded) for recorded, _ in pairs):
        laws = laws.without_signs()
    constraints = constraints_of(pairs)
    constraints = without_coins(constraints, laws, spent)
    constraints = without_selections(constraints, laws, spent)
    constraints = gaussians_released(constraints, laws)
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
    """Whether an event is a draw that was handed out as a plain number: it may choose a sign."""
    return event.kind is EventKind.DRAW and event.view is None


def _spend_call(recorded: Event, moved: float | None, spent: Spent) -> None:
    loss, limit = recorded.declared, recorded.sensitivity
    if loss is None or moved == 0:
        return
    spent.calls[loss] += 1
    if moved is not None and limit and moved < limit and isinstance(loss, PureLoss):
        loss = PureLoss(loss.epsilon * moved / limit)
    spent.scaled[loss] += 1


def call_moved(recorded: Event, replayed: Event) -> float | None:
    """By how much the value of a declared call moved, in its norm; None if it is not known."""
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
    noises = np.fromiter(moves, dtype=np.int64, count=len(moves))
    needed = np.abs(np.fromiter(moves.values(), dtype=float, count=len(moves)))
    noises, needed = noises[needed != 0], needed[needed != 0]
    squares, shifts = 0.0, []
    numbers = laws.numbers_of_blocks(noises)
    for number in np.unique(numbers):
        block, in_block = laws.blocks[number], numbers == number
        scale = block.scale[noises[in_block] - block.start]
        if block.law == "unknown":
            spent.unknown.append(f"the law of the noise of {block.name} at {block.site}")
        elif not np.all(np.isfinite(needed[in_block])):
            spent.infinite.append((_event_at(block), "a value is no number, or infinite"))
        elif np.any(scale <= 0):
            spent.infinite.append((_event_at(block), "noise of scale 0"))
        elif block.law == "gaussian":
            squares += float(np.sum((needed[in_block] / scale) ** 2))
        elif block.law in ("laplace", "log of uniform", "logistic"):
            shifts += (needed[in_block] / scale).tolist()
            if block.law == "log of uniform":
                reason = f"noise made of uniform draws at {block.site} is taken for Laplace noise"
                spent.assumed.append(reason)
        elif block.law == "uniform":
            for gap in needed[in_block].tolist():
                if gap < 1:
                    spent.losses[ApproxLoss(0.0, gap)] += 1
                else:
                    reason = "uniform noise is smaller than a move"
                    spent.infinite.append((_event_at(block), reason))
        elif block.law == "gumbel":
            spent.unknown.append(f"the loss of Gumbel noise that is released, at {block.site}")
        else:
            reason = f"{block.law} noise shows a move in one direction"
            spent.infinite.append((_event_at(block), reason))
    if squares:
        spent.losses[GaussianLoss(math.sqrt(squares))] += 1
    for shift, count in _grouped(shifts):
        spent.losses[LaplaceLoss(shift)] += count


def _grouped(shifts: list[float]) -> list[tuple[float, int]]:
    """Shifts with their counts; nearly equal ones count as the greatest of them."""
    groups: list[list[float]] = []
    room = SMALL if len(set(shifts)) <= MOST_SHIFTS else 1 / MOST_SHIFTS
    for shift in sorted(shifts, reverse=True):
        if groups and groups[-1][0] - shift <= room * groups[-1][0]:
            groups[-1].append(shift)
        else:
            groups.append([shift])
    return [(group[0], len(group)) for group in groups]


def _compared_at(event: Event) -> str:
    return f"the loss of Gaussian noise compared at {event.site}"


def _event_at(block: Any) -> Event:
    return Event(EventKind.DRAW, block.name, block.site, (), None)


def _spend_least(remaining: Constraints, moves: dict[int, float], laws: Laws, spent: Spent) -> None:
    if not remaining.released and not remaining.compared:
        return
    worst = 0.0
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
        worst = max(worst, cost)
    if worst:
        spent.losses[PureLoss(worst)] += 1


def _without_gaussian_sums(
    constraints: Constraints, moves: dict[int, float], laws: Laws, spent: Spent
) -> Constraints:
    """Spend and remove released sums of Gaussian noises: their cost is a least-squares norm."""
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
                remaining.released.append((some_rows(moved, np.array([k])), event))
    if any(gap for _, gap in rows):
        column_of = {n: k for k, n in enumerate(sorted({n for free, _ in rows for n in free}))}
        matrix = np.zeros((len(rows), len(column_of)))
        for k, (free, _) in enumerate(rows):
            for noise, factor in free.items():
                matrix[k, column_of[noise]] = factor * laws.law(noise)[1]
        gaps = np.array([gap for _, gap in rows])
        # scaling keeps the solutions, and rows of small factors are not mistaken for rows of zeros
        lengths = np.linalg.norm(matrix, axis=1)
        lengths[lengths == 0] = 1.0
        matrix, gaps = matrix / lengths[:, None], gaps / lengths
        solved = np.linalg.lstsq(matrix, -gaps, rcond=None)[0]
        small = NO_MOVE * float(np.abs(gaps).max())
        if not np.allclose(matrix @ solved, -gaps, rtol=1e-9, atol=small):
            question = next(
                (event for _, event in constraints.released if is_question(event)), None
            )
            if question is None:
                spent.infinite.append((constraints.released[0][1], "no move of the noise does it"))
            else:
                spent.unknown.append(_compared_at(question))
        else:
            spent.losses[GaussianLoss(float(np.linalg.norm(solved)))] += 1
    return remaining
