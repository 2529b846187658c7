"""What the recorded draws cost between the two runs: losses of noise, coins, selections and calls.

A function runs on private data, and every draw of noise and every comparison is recorded.  A second
run, on a neighbouring data set, replays the recorded outputs.  There the values that the noise is
added to have moved, so each noise must have moved too for the same outputs to come.  The privacy
loss of the run is bounded by the losses of these moves, which `Spent` collects and `Tight`
composes.  Noises are numbered, and those of one draw are a block with one law.

`spent_between` charges the moves in turn.  First it charges comparisons by what their answers tell:
*coins*, uniform numbers that are only compared with plain numbers, their *levels*, and
*selections*, the places of extremes of scores with Gumbel noise (the exponential mechanism).  A
noise that alone makes a released number has one possible move, which is *forced*; these are next,
and then sums of Gaussian noise.  What remains is charged by the least cost of any moves.  The
proofs of these statements are in docs/proofs/recorded_runs.md:

1. Moves t_k of the noises that keep every released number, and which side of every comparison is
   greater, cost the sum of c_k |t_k|, if the density of noise k changes by at most e^{c_k |t|} over
   a distance t.
2. Noise that alone makes a released number has one possible move, and costs the loss of its law at
   that shift.  A sum of Gaussian noises costs the loss of a Gaussian shift.
3. A coin tells in which cell between its levels it lies, and a selection which score won: each
   costs the loss between two laws on finitely many outcomes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from accountant.losses.gaussian import GaussianLoss
from accountant.losses.laplace import LaplaceLoss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from audits.recorded_runs.comparisons import ROUND_OFF
from audits.recorded_runs.draws.declared_calls import Primitive, sensitivity_of
from audits.recorded_runs.draws.parametric_draws import pair_losses
from audits.recorded_runs.event_pairs import EventPair, Moved
from audits.recorded_runs.events import SEEDS, Call, Draw, Event, Question
from audits.recorded_runs.noise_shifts import (
    NO_SOLUTION,
    Condition,
    Conflict,
    Constraints,
    Laws,
    Released,
    conditions_of,
    constraints_of,
    forced_moves,
    least_cost,
)
from audits.recorded_runs.spent import Spent
from audits.recorded_runs.tape import NoiseBlock, Tape

# If there are more different Laplace shifts than this, shifts within a relative 1 / MOST_SHIFTS of
# each other count as the larger one: the cost is then a little higher, and faster to compose.
MOST_SHIFTS = 200
# A residual of least squares counts as rounding up to this times the largest move of the sums, each
# divided by the length of its row, and up to ROUND_OFF times its own sum's move.  Where a residual
# is larger, no moves of the noises fit.
RESIDUAL_ROUND_OFF = 1e-13
# Laws that are charged as Laplace noise of their scale.  Logistic noise never costs more than that
# (docs/proofs/recorded_runs.md), and the logarithm of a uniform number is exponential noise, which
# is Laplace noise if a coin gives the sign.
LIKE_LAPLACE = ("laplace", "log of uniform", "logistic")
LEVEL_ROUND_OFF = 1e-12  # a level of a coin that is so near to 0 or 1 counts as 0 or 1
# the factor of scores that turns the question for an extreme into that for the largest score
SIGN_OF_EXTREME = {"argmax": 1.0, "argmin": -1.0}


class _ForcedMoves(NamedTuple):
    """Forced moves by the numbers of their noises, and which comparisons may have forced them."""

    moves: dict[int, float]
    by_releases: dict[int, float]  # those that released numbers force without any comparison
    questions: list[Question]  # the comparisons whose numbers count as released


def spent_between(pairs: list[EventPair], laws: Laws) -> tuple[Spent, list[Conflict]]:
    """Return what a pair of runs cost, and conflicts between released numbers.

    ``pairs`` are the events of both runs, and ``laws`` the laws of all noises.  Each step below
    charges what it can judge, and leaves the other constraints to the next.
    """
    spent = Spent()
    recorded = [pair.recorded for pair in pairs]
    # The logarithm of a uniform number is one half of Laplace noise if a coin chooses its sign, and
    # one-sided noise if none does.  Such a coin is a comparison, or a draw that was handed out as a
    # plain number: no other event can decide a sign.
    compares = any(isinstance(event, Question) and event.sides is not None for event in recorded)
    draws_plain = any(isinstance(event, Draw) and event.noisy is None for event in recorded)
    if not (compares or draws_plain):
        laws = laws.without_signs()
    constraints = constraints_of(pairs)
    constraints = spend_coins(constraints, laws, spent)
    constraints = spend_selections(constraints, laws, spent)
    # Numbers with Gaussian noise that were compared count as released from here on.
    constraints = gaussians_released(constraints, laws)
    moves, conflicts, remaining = forced_moves(constraints)
    released = [row for row in constraints.released if not isinstance(row.event, Question)]
    questions = [row.event for row in constraints.released if isinstance(row.event, Question)]
    by_releases = forced_moves(Constraints(released))[0] if questions else moves
    forced = _ForcedMoves(moves, by_releases, questions)
    for event, reason in conflicts:
        # What a comparison tells is less than a release of its numbers, so no conflict is sure.
        if isinstance(event, Question):
            spent.unknown.append(_compared_at(event))
        else:
            spent.infinite.append((event.site, reason))
    _spend_forced(moves, laws, spent)
    remaining = _without_gaussian_sums(remaining, forced, laws, spent)
    _spend_least(remaining, forced, laws, spent)
    for pair in pairs:
        _spend_parameter(pair, spent)
        _spend_call(pair, spent)
    return spent, conflicts


def spend_coins(constraints: Constraints, laws: Laws, spent: Spent) -> Constraints:
    """Spend and remove the coins: uniform numbers that are compared with plain numbers.

    The comparisons tell in which cell between its levels a coin lies.  So the loss is that between
    the two laws of the cell, whose probabilities are the differences of successive levels in each
    run (statement 3).  If the levels have another order in the second run, it is unknown.
    """
    remaining = Constraints(released=constraints.released)
    levels: dict[int, list[tuple[float, float]]] = {}
    for row in constraints.compared:
        coin = _coin_levels(row.left, row.right, laws) or _coin_levels(row.right, row.left, laws)
        if coin is None:
            remaining.compared.append(row)
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
            spent.levels_reordered = True
            spent.unknown.append("the loss of a uniform number that is compared with many others")
            continue
        for loss, count in pair_losses(cells[0], cells[1]):
            spent.losses[loss] += count
    return remaining


def _as_probability(level: float) -> float:
    """Return the probability that a uniform number in [0, 1] is below a level."""
    if level < LEVEL_ROUND_OFF:
        return 0.0
    return 1.0 if level > 1 - LEVEL_ROUND_OFF else level


def _coin_levels(
    noisy: Moved, threshold: Moved, laws: Laws
) -> list[tuple[int, float, float]] | None:
    """Return each noise of a comparison, with its level in both runs, where it is a coin.

    ``noisy`` must be values plus one uniform noise each, v + f U, and ``threshold`` plain numbers
    t: then U is compared with the level (t - v) / f.  The result is None for other sides.
    """
    noises, value, level = noisy.view.noises, noisy.view.value, threshold.view.value
    if not noises.size:
        return []
    if (threshold.view.noises >= 0).any() or noises.shape[-1] != 1 or (noises < 0).any():
        return None
    if any(laws.block(k).law != "uniform" for k in {int(noises.min()), int(noises.max())}):
        return None
    noises = noises[:, 0]
    with np.errstate(all="ignore"):
        data_levels = (level - value) / noisy.view.factors[:, 0]
        neighbour_levels = (level + threshold.gap - value - noisy.gap) / noisy.other_factors[:, 0]
    return list(zip(noises.tolist(), data_levels.tolist(), neighbour_levels.tolist(), strict=True))


def spend_selections(constraints: Constraints, laws: Laws, spent: Spent) -> Constraints:
    """Spend and remove selections: the place of an extreme of scores with Gumbel noise.

    The largest of scores s_j plus noises of scale b, and the smallest of scores -s_j less such
    noises, is at place j with probability softmax(s / b)_j (statement 3).
    """
    remaining = Constraints(released=constraints.released)
    noises_used_once = constraints.noises_used_once()
    for row in constraints.compared:
        sign = SIGN_OF_EXTREME.get(row.question.name, 0.0)
        moved = row.left if sign < 0 else row.right
        scores, noises = moved.view, moved.view.noises.ravel()
        has_own_noises = scores.noises.shape[-1] == 1 and np.unique(noises).size == noises.size
        if not (
            sign
            and has_own_noises
            and moved.same_factors
            and np.isin(noises, noises_used_once).all()
            and laws.names(noises) == {"gumbel"}
        ):
            remaining.compared.append(row)
            continue
        scales = sign * scores.factors[:, 0] * laws.scales(noises)
        scale = float(scales[0])
        if scale < 0 or np.any(scales != scale):
            remaining.compared.append(row)
            continue
        if not np.all(np.isfinite(moved.gap)) or scale == 0:
            reason = "a score is no number, or the noise has scale 0"
            spent.infinite.append((row.question.site, reason))
            continue
        probabilities = softmax(sign * scores.value / scale)
        neighbour_probabilities = softmax(sign * (scores.value + moved.gap) / scale)
        for loss, count in pair_losses(probabilities, neighbour_probabilities):
            spent.losses[loss] += count
    return remaining


def gaussians_released(constraints: Constraints, laws: Laws) -> Constraints:
    """Treat numbers with Gaussian noise that were compared as released.

    The loss then is an upper bound, since a comparison reveals less than the numbers.
    """
    remaining = Constraints(released=list(constraints.released))
    for row in constraints.compared:
        sides = (row.left, row.right)
        noises = np.concatenate([side.view.noises.ravel() for side in sides])
        block_numbers = np.unique(laws.numbers_of_blocks(noises[noises >= 0]))
        if any(laws.blocks[number].law == "gaussian" for number in block_numbers):
            remaining.released += [
                Released(side, row.question) for side in sides if (side.view.noises >= 0).any()
            ]
        else:
            remaining.compared.append(row)
    return remaining


def _spend_parameter(pair: EventPair, spent: Spent) -> None:
    """Spend the losses of a draw between the laws with its private parameter in both runs."""
    recorded, replayed = pair.recorded, pair.replayed
    if not isinstance(recorded, Draw) or recorded.parameter is None:
        return
    other = replayed.parameter if isinstance(replayed, Draw) else None
    other_value = None if other is None else other.value
    for loss, count in recorded.parameter.losses(recorded.parameter.value, other_value):
        spent.losses[loss] += count


def _spend_call(pair: EventPair, spent: Spent) -> None:
    """Spend the declared loss of a call, unless its value did not move.

    ``spent.calls`` gets the whole loss.  ``spent.scaled`` gets a pure loss times the share of the
    sensitivity that the value moved by.  This is what Laplace noise costs there.  For other
    mechanisms it is no bound, and it enters no cost: where the whole losses exceed a claim, it
    decides whether that is a finding, or is only named as unchecked.
    """
    call = pair.recorded
    if not isinstance(call, Call) or call.declared is None:
        return
    loss, sensitivity, distance = call.declared, call.sensitivity, pair.call_distance
    if distance == 0:
        return
    spent.calls[loss] += 1
    if (
        isinstance(loss, PureLoss)
        and distance is not None
        and sensitivity
        and distance < sensitivity
    ):
        loss = PureLoss(loss.epsilon * distance / sensitivity)
    spent.scaled[loss] += 1


def _spend_forced(moves: dict[int, float], laws: Laws, spent: Spent) -> None:
    """Spend the losses of noises that have one possible move each (statement 2).

    ``moves`` has the move of each noise by its number.  A move over the scale of its noise is a
    shift.  All Gaussian shifts are one loss, of the root of the sum of their squares.
    """
    noises = np.fromiter(moves, dtype=np.int64, count=len(moves))
    distances = np.abs(np.fromiter(moves.values(), dtype=float, count=len(moves)))
    noises, distances = noises[distances != 0], distances[distances != 0]
    gaussian_squares, laplace_shifts = 0.0, []
    block_numbers = laws.numbers_of_blocks(noises)
    for number in np.unique(block_numbers):
        block, in_block = laws.blocks[number], block_numbers == number
        scale, block_distances = block.scale[noises[in_block] - block.start], distances[in_block]
        if block.law == "unknown":
            spent.unknown.append(f"the law of the noise of {block.name} at {block.site}")
        elif not np.all(np.isfinite(block_distances)):
            spent.infinite.append((block.site, "a value is no number, or infinite"))
        elif np.any(scale <= 0):
            spent.infinite.append((block.site, "noise of scale 0"))
        elif block.law == "gaussian":
            gaussian_squares += float(np.sum((block_distances / scale) ** 2))
        elif block.law in LIKE_LAPLACE:
            laplace_shifts += (block_distances / scale).tolist()
            if block.law == "log of uniform":
                reason = f"noise made of uniform draws at {block.site} is taken for Laplace noise"
                spent.assumed.append(reason)
        else:
            _spend_uniform_or_other(block, block_distances, spent)
    if gaussian_squares:
        spent.losses[GaussianLoss(math.sqrt(gaussian_squares))] += 1
    for shift, count in _grouped(laplace_shifts):
        spent.losses[LaplaceLoss(shift)] += count


def _spend_uniform_or_other(
    block: NoiseBlock, distances: NDArray[np.float64], spent: Spent
) -> None:
    """Spend moves of noise of one block, whose law is uniform, Gumbel or one-sided.

    Uniform noise is recorded with width 1 (its factor has the width).  If it moves by a distance
    below 1, an output shows that it moved with a probability of just this distance.  One-sided
    noise costs an infinite loss in one direction.
    """
    if block.law == "gumbel":
        spent.unknown.append(f"the loss of Gumbel noise that is released, at {block.site}")
    elif block.law == "uniform":
        for distance in distances.tolist():
            if distance < 1:
                spent.losses[ApproxLoss(0.0, distance)] += 1
            else:
                spent.infinite.append((block.site, "uniform noise is smaller than a move"))
    else:
        spent.infinite.append((block.site, f"{block.law} noise shows a move in one direction"))


def _grouped(shifts: list[float]) -> list[tuple[float, int]]:
    """Return shifts with their counts; shifts that are nearly equal count as the largest of them.

    See `MOST_SHIFTS` for what is nearly equal.
    """
    groups: list[list[float]] = []
    tolerance = ROUND_OFF if len(set(shifts)) <= MOST_SHIFTS else 1 / MOST_SHIFTS
    for shift in sorted(shifts, reverse=True):
        if groups and groups[-1][0] - shift <= tolerance * groups[-1][0]:
            groups[-1].append(shift)
        else:
            groups.append([shift])
    return [(group[0], len(group)) for group in groups]


def _compared_at(question: Question) -> str:
    """What is not known where Gaussian noise that was compared cannot be charged as released."""
    return f"the loss of Gaussian noise compared at {question.site}"


def _spend_least(remaining: Constraints, forced: _ForcedMoves, laws: Laws, spent: Spent) -> None:
    """Spend the sums and comparisons that remain, by the least cost of moves (statement 1).

    It is a pure loss, the larger of the costs from the first data to the second and back.
    """
    events: list[Event] = [row.question for row in remaining.compared]
    events += [row.event for row in remaining.released]
    if not events:
        return
    # The cost is that of all conditions together: the first event stands for them in a message.
    site, largest_cost = events[0].site, 0.0
    for sign in (1.0, -1.0):
        cost, _ = least_cost(remaining, forced.moves, laws, sign)
        if cost == math.inf:
            # The reason is a sentence; or the name of a law for which statement 1 has no cost,
            # though another bound may be finite.  Without the moves that only comparisons force it
            # may be "": then some moves do.
            _, reason = least_cost(remaining, forced.by_releases, laws, sign)
            if reason and all(block.law != reason for block in laws.blocks):
                spent.infinite.append((site, reason))
            else:
                spent.unknown.append(f"the loss of {reason or 'the'} noise compared at {site}")
            return
        largest_cost = max(largest_cost, cost)
    if largest_cost:
        spent.losses[PureLoss(largest_cost)] += 1


def _without_gaussian_sums(
    constraints: Constraints, forced: _ForcedMoves, laws: Laws, spent: Spent
) -> Constraints:
    """Spend and remove the released numbers that hold Gaussian noise alone.

    Noises with a forced move are not counted: they are fixed, and add their move to the number's.
    """
    remaining = Constraints(compared=constraints.compared)
    sums: list[Condition] = []
    surely_released: list[tuple[Condition, Event]] = []
    for moved, event in constraints.released:
        for k, condition in enumerate(conditions_of(moved)):
            free = _without_forced(condition, forced.moves)
            if free.factors and all(laws.law(n)[0] == "gaussian" for n in free.factors):
                sums.append(free)
                if not isinstance(event, Question):
                    without_comparisons = _without_forced(condition, forced.by_releases)
                    surely_released.append((without_comparisons, event))
            else:
                remaining.released.append(Released(moved.rows(np.array([k])), event))
    if not any(condition.gap for condition in sums):
        return remaining
    shift = _least_gaussian_shift(sums, laws)
    if shift is not None:
        spent.losses[GaussianLoss(shift)] += 1
    # A comparison tells less than its numbers.  So the loss is surely infinite only if the numbers
    # that were released have no solution by themselves.
    elif (
        surely_released
        and _least_gaussian_shift([condition for condition, _ in surely_released], laws) is None
    ):
        # No single sum is to blame: the first one stands for all.
        spent.infinite.append((surely_released[0][1].site, NO_SOLUTION))
    else:
        spent.unknown.append(_compared_at(forced.questions[0]))
    return remaining


def _without_forced(condition: Condition, moves: dict[int, float]) -> Condition:
    """Return the condition on the other noises, with forced moves added to the value's own."""
    factors, gap = condition
    fixed_move = sum(factor * moves[n] for n, factor in factors.items() if n in moves)
    return Condition(
        {n: factor for n, factor in factors.items() if n not in moves}, gap + fixed_move
    )


def _least_gaussian_shift(rows: list[Condition], laws: Laws) -> float | None:
    """Return the shift of Gaussian noise that keeps all sums, in deviations; None if there is none.

    A row has the factor of each noise of a sum, and the sum's own move.  Let A be the matrix of the
    factors times the scales, and d the moves of the sums.  The shift is the least norm of a u with
    A u = -d (statement 2).
    """
    column_of = {n: k for k, n in enumerate(sorted({n for row in rows for n in row.factors}))}
    matrix = np.zeros((len(rows), len(column_of)))
    for k, row in enumerate(rows):
        for noise, factor in row.factors.items():
            _, scale = laws.law(noise)
            matrix[k, column_of[noise]] = factor * scale
    gaps = np.array([row.gap for row in rows])
    # Rows are scaled to length 1: this keeps the solutions, and the least-squares solver does not
    # mistake rows of small factors for rows of zeros.
    lengths = np.linalg.norm(matrix, axis=1)
    lengths[lengths == 0] = 1.0
    matrix, gaps = matrix / lengths[:, None], gaps / lengths
    solved = np.linalg.lstsq(matrix, -gaps, rcond=None)[0]
    tolerance = RESIDUAL_ROUND_OFF * float(np.abs(gaps).max())
    is_solution = np.allclose(matrix @ solved, -gaps, rtol=ROUND_OFF, atol=tolerance)
    return float(np.linalg.norm(solved)) if is_solution else None


def declared_cost(
    pairs: list[EventPair], first_tape: Tape, draws: dict[str, Primitive], delta: float
) -> float | None:
    """Return epsilon at ``delta`` of the declared sensitivities and losses; None if one has none.

    Each block of noise is charged as if a value had moved by the declared sensitivity, over the
    least scale of the block.  The call that makes a generator has no loss, and is passed over.
    """
    spent = Spent()
    for recorded in (pair.recorded for pair in pairs):
        if isinstance(recorded, Draw) and recorded.parameter is not None:
            return None
        if isinstance(recorded, Call) and recorded.name not in SEEDS:
            if recorded.declared is None:
                return None
            spent.losses[recorded.declared] += 1
    for block in first_tape.blocks:
        primitive = draws.get(block.name)
        if block.law not in ("laplace", "gaussian") or primitive is None:
            return None
        # A draw has no arguments, so its sensitivity is declared as a number.
        limit = sensitivity_of(primitive, arguments={})
        if limit is None or not block.scale.size or block.scale.min() <= 0:
            return None
        kind = LaplaceLoss if block.law == "laplace" else GaussianLoss
        spent.losses[kind(limit / float(block.scale.min()))] += 1
    return spent.epsilon(delta)
