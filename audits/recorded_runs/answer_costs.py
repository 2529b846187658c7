"""What the answers to comparisons cost, where the noise in them is uniform, Gumbel or Gaussian.

In a recorded run, code may compare noisy numbers and use the answer alone.  The `Constraints` of
the run and of its replay on the neighbour say which numbers were released, and which sides were
compared, with the moves of their values.  Each function here takes them, adds to `Spent` the losses
of the comparisons that it can judge, and returns the constraints that remain.  The numbered
statement is that of docs/proofs/recorded_runs.md.

- A *coin* is a uniform number that is only compared with plain numbers, its *levels*.
- A *selection* is the place of the extreme of scores with Gumbel noise: the exponential mechanism.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from audits.recorded_runs.draws.parametric_draws import pair_losses
from audits.recorded_runs.event_pairs import Moved
from audits.recorded_runs.noise_shifts import Constraints, Laws, Released
from audits.recorded_runs.spent import Spent

ROUND_OFF = 1e-12  # a level of a coin that is so near to 0 or 1 counts as 0 or 1
# the factor of scores that turns the question for an extreme into that for the largest score
SIGN_OF_EXTREME = {"argmax": 1.0, "argmin": -1.0}


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
