"""Comparisons whose law is known: coins with private probabilities, and Gumbel selections."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from audits.recorded_runs.draws.parametric_draws import pair_losses
from audits.recorded_runs.noise_shifts import Constraints, Laws
from audits.recorded_runs.shared_parts import Moved
from audits.recorded_runs.spent import Spent

ROUND_OFF = 1e-12  # of sums of probabilities


def without_coins(found: Constraints, laws: Laws, spent: Spent) -> Constraints:
    """Take out comparisons of uniform numbers with plain ones: coins with known probabilities."""
    left = Constraints(released=found.released)
    levels: dict[int, list[tuple[float, float]]] = {}
    for one, other, event in found.compared:
        coin = _coin_levels(one, other, laws) or _coin_levels(other, one, laws)
        if coin is None:
            left.compared.append((one, other, event))
            continue
        for noise, first, second in coin:
            levels.setdefault(noise, []).append((first, second))
    for seen in levels.values():
        if all(first == second for first, second in seen):
            continue
        ordered = sorted({(_level(first), _level(second)) for first, second in seen})
        cells = [np.diff([0.0, *(level[k] for level in ordered), 1.0]) for k in (0, 1)]
        if min(cell.min() for cell in cells) < 0:
            spent.no_coins = True
            spent.unknown.append("the loss of a uniform number that is compared with many others")
            continue
        for loss, count in pair_losses(cells[0], cells[1]):
            spent.losses[loss] += count
    return left


def _level(level: float) -> float:
    """A level as a probability: sums of probabilities end at 1 up to their rounding."""
    if level < ROUND_OFF:
        return 0.0
    return 1.0 if level > 1 - ROUND_OFF else level


def _coin_levels(one: Moved, other: Moved, laws: Laws) -> list[tuple[int, float, float]] | None:
    """Noise, and its level in both runs, if one side is uniform noise alone and the other plain."""
    if not one.noises.size:
        return []
    if (other.noises >= 0).any() or one.noises.shape[-1] != 1 or (one.noises < 0).any():
        return None
    if any(laws.block(k).law != "uniform" for k in {int(one.noises.min()), int(one.noises.max())}):
        return None
    noises = one.noises[:, 0]
    with np.errstate(all="ignore"):
        first = (other.value - one.value) / one.factors[:, 0]
        second = (other.value + other.moved - one.value - one.moved) / one.other_factors[:, 0]
    return list(zip(noises.tolist(), first.tolist(), second.tolist(), strict=True))


def without_selections(found: Constraints, laws: Laws, spent: Spent) -> Constraints:
    """Take out the largest of numbers with Gumbel noise: the exponential mechanism."""
    left = Constraints(released=found.released)
    for one, other, event in found.compared:
        numbers = one if event.name == "argmin" else other
        selects = event.name in ("argmax", "argmin") and numbers.noises.shape[-1] == 1
        blocks = {laws.block(int(k)).law for k in numbers.noises[:1, 0] if k >= 0}
        if not selects or blocks != {"gumbel"} or len(set(numbers.factors.ravel())) != 1:
            left.compared.append((one, other, event))
            continue
        scale = abs(float(numbers.factors[0, 0])) * laws.law(int(numbers.noises[0, 0]))[1]
        if not np.all(np.isfinite(numbers.moved)) or scale <= 0:
            spent.infinite.append((event, "a score is no number, or the noise has scale 0"))
            continue
        first = softmax(numbers.value / scale)
        second = softmax((numbers.value + numbers.moved) / scale)
        for loss, count in pair_losses(first, second):
            spent.losses[loss] += count
    return left


def gaussians_released(found: Constraints, laws: Laws) -> Constraints:
    """Take compared Gaussian noise for released: a bound, as comparisons say less."""
    gaussian = {k for k, block in enumerate(laws.blocks) if block.law == "gaussian"}
    left = Constraints(released=list(found.released))
    for one, other, event in found.compared:
        kinds = [
            {int(np.searchsorted([b.start for b in laws.blocks], k, side="right")) - 1
             for k in side.noises.ravel() if k >= 0}
            for side in (one, other)
        ]  # fmt: skip
        if any(kind & gaussian for kind in kinds):
            left.released += [(side, event) for side in (one, other) if (side.noises >= 0).any()]
        else:
            left.compared.append((one, other, event))
    return left
