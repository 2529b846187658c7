"""Comparisons whose law is known: coins with private probabilities, and Gumbel selections."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from audits.recorded_runs.draws.parametric_draws import pair_losses
from audits.recorded_runs.noise_shifts import Constraints, Laws
from audits.recorded_runs.shared_parts import Moved
from audits.recorded_runs.spent import Spent

ROUND_OFF = 1e-12  # rounding of sums of probabilities


def without_coins(constraints: Constraints, laws: Laws, spent: Spent) -> Constraints:
    """Spend and remove the coins: uniform numbers that are compared with plain numbers."""
    remaining = Constraints(released=constraints.released)
    levels: dict[int, list[tuple[float, float]]] = {}
    for left_side, right_side, event in constraints.compared:
        coin = _coin_levels(left_side, right_side, laws) or _coin_levels(
            right_side, left_side, laws
        )
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
                (_level(data_level), _level(neighbour_level))
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


def _level(level: float) -> float:
    """A level as a probability: sums of probabilities end at 1 up to their rounding."""
    if level < ROUND_OFF:
        return 0.0
    return 1.0 if level > 1 - ROUND_OFF else level


def _coin_levels(
    noisy: Moved, threshold: Moved, laws: Laws
) -> list[tuple[int, float, float]] | None:
    """Noise, and its level in both runs, if one side is uniform noise alone and the other plain."""
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


def without_selections(constraints: Constraints, laws: Laws, spent: Spent) -> Constraints:
    """Spend and remove selections with Gumbel noise: the exponential mechanism."""
    remaining = Constraints(released=constraints.released)
    for left_side, right_side, event in constraints.compared:
        numbers = left_side if event.name == "argmin" else right_side
        selects = event.name in ("argmax", "argmin") and numbers.noises.shape[-1] == 1
        blocks = {laws.block(int(k)).law for k in numbers.noises[:1, 0] if k >= 0}
        if not selects or blocks != {"gumbel"} or len(set(numbers.factors.ravel())) != 1:
            remaining.compared.append((left_side, right_side, event))
            continue
        scale = abs(float(numbers.factors[0, 0])) * laws.law(int(numbers.noises[0, 0]))[1]
        if not np.all(np.isfinite(numbers.moved)) or scale <= 0:
            spent.infinite.append((event, "a score is no number, or the noise has scale 0"))
            continue
        probabilities = softmax(numbers.value / scale)
        neighbour_probabilities = softmax((numbers.value + numbers.moved) / scale)
        for loss, count in pair_losses(probabilities, neighbour_probabilities):
            spent.losses[loss] += count
    return remaining


def gaussians_released(constraints: Constraints, laws: Laws) -> Constraints:
    """Treat compared Gaussian noise as released: a bound, since a comparison reveals less."""
    gaussian = {k for k, block in enumerate(laws.blocks) if block.law == "gaussian"}
    remaining = Constraints(released=list(constraints.released))
    for left_side, right_side, event in constraints.compared:
        kinds = [
            {
                int(np.searchsorted([b.start for b in laws.blocks], k, side="right")) - 1
                for k in side.noises.ravel()
                if k >= 0
            }
            for side in (left_side, right_side)
        ]
        if any(kind & gaussian for kind in kinds):
            remaining.released += [
                (side, event) for side in (left_side, right_side) if (side.noises >= 0).any()
            ]
        else:
            remaining.compared.append((left_side, right_side, event))
    return remaining
