"""Which canaries an audit of one training run guesses about: rules fixed before the coins.

A fair coin puts each canary into the training data ("in") or leaves it out.  The scores of the
canaries say how likely each is "in".  A rule guesses a number of coins that is fixed beforehand:
those with the most extreme scores, either both ways or "in" alone.

Several rules are tested at once, each with a fixed share of the allowed error.  Half of the error
goes to the rule that is best against the claim if scores are normal, as those of gradients are
(`planned_rule`); the other half to rules for scores of any shape (`ladder`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from accountant.numerics.search import furthest_that
from audits.statistics.single_run import tail_of_right_guesses

PLANNED, EVERY = 0.5, 0.125  # shares of the error: the planned rule, and a guess of every coin
# a rule of the ladder guesses LADDER_STEP times fewer coins than the one before, but at least 8
LEAST_GUESSES, LADDER_STEP = 8, 4
PLANNED_LINES = 32  # about as many points of the claim's curve are used to plan a rule
SHIFTS = np.geomspace(0.02, 12.0, 160)  # shifts of the normal scores that a rule is planned for


@final
@dataclass(frozen=True, slots=True)
class GuessRule:
    """Guess ``guesses`` coins, ``both`` ways or "in" alone, for a share of the error."""

    guesses: int
    both: bool
    share: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class RankedCoins:
    """The coins in the order of their scores: how many of the first guesses are right.

    Entry k of ``highest`` counts the k highest scores that are "in", of ``lowest`` the k lowest
    that are "out"; the split is where the scores change from guessed "in" to guessed "out".
    """

    highest: NDArray[np.int64]
    lowest: NDArray[np.int64]
    split: int

    @property
    def coins(self) -> int:
        """The number of coins."""
        return self.highest.size - 1

    def right(self, rule: GuessRule) -> int:
        """The number of right guesses of a rule."""
        top = rule.guesses
        if rule.both:
            below = self.coins - self.split
            top = min(max((rule.guesses + 1) // 2, rule.guesses - below), self.split)
        return int(self.highest[top] + self.lowest[rule.guesses - top])


def ranked_coins(scores: Array, is_in: NDArray[np.bool_]) -> RankedCoins:
    """Ranked single coins.  Equal scores keep their order, which must not depend on the coins."""
    order = np.argsort(-scores, kind="stable")
    inside = is_in[order].astype(np.int64)
    return RankedCoins(
        np.append(0, np.cumsum(inside)),
        np.append(0, np.cumsum(1 - inside[::-1])),
        _split(scores[order]),
    )


def ranked_pairs(inside: Array, outside: Array, rng: np.random.Generator) -> RankedCoins:
    """Pairs of one that is in and one that is not, matched at random: a coin tells which is which.

    The greater score is guessed to be "in"; the greater the difference, the earlier.
    """
    pairs = min(inside.size, outside.size)
    difference = rng.permutation(inside)[:pairs] - rng.permutation(outside)[:pairs]
    right = np.where(difference == 0, rng.random(pairs) < 0.5, difference > 0)
    order = np.argsort(-np.abs(difference), kind="stable")
    counts = np.append(0, np.cumsum(right[order].astype(np.int64)))
    return RankedCoins(counts, np.zeros(1, dtype=np.int64), pairs)


def _split(falling: Array) -> int:
    """The middle of the sorted scores, moved to the nearer end of a run of equal scores."""
    middle = falling.size // 2
    middle_score = falling[middle]
    start = int(np.searchsorted(-falling, -middle_score, side="left"))
    stop = int(np.searchsorted(-falling, -middle_score, side="right"))
    ends = [end for end in (start, stop) if 0 < end < falling.size]
    return min(ends, key=lambda end: abs(end - middle), default=middle)


@functools.lru_cache(maxsize=64)
def ladder(coins: int, *, one_way: bool) -> tuple[GuessRule, ...]:
    """The rules for scores of any shape; ``one_way`` says whether to guess "in" alone as well."""
    two_way = _steps(coins // LADDER_STEP)
    one_way_counts = _steps(coins // 2) if one_way else []
    error_share = (1 - PLANNED - EVERY) / max(len(two_way) + len(one_way_counts), 1)
    return (
        GuessRule(coins, True, EVERY),
        *(GuessRule(count, True, error_share) for count in two_way),
        *(GuessRule(count, False, error_share) for count in one_way_counts),
    )


def _steps(largest: int) -> list[int]:
    """Counts of guesses: the ``largest``, then a fourth of the count before, down to 8 at least."""
    counts = []
    while largest >= LEAST_GUESSES:
        counts.append(largest)
        largest //= LADDER_STEP
    return counts


def planned_rule(coins: int, epsilons: Array, leaks: Array, alpha: float) -> GuessRule:
    """The rule that is expected to refute the claim's curve at the smallest shift of normal scores.

    Scores "in" and "out" are taken to be normal with means ``shift / 2`` and ``-shift / 2``: the
    smaller the shift, the less the run leaks.  The rule does not depend on the actual scores.
    """
    sizes, accuracy = _normal_accuracy(coins)
    share, thin = alpha * PLANNED, max(1, epsilons.size // PLANNED_LINES)

    def not_enough(right: Array) -> NDArray[np.bool_]:
        tails = tail_of_right_guesses(
            np.floor(right)[:, None], sizes[:, None], epsilons[::thin], leaks[::thin]
        )
        return np.asarray(tails.min(axis=1) > share)

    # the least number of right guesses that refutes, above the number of guesses if none does
    largest_right = np.where(not_enough(sizes), 2 * sizes, sizes)
    needed = np.where(
        largest_right > sizes, largest_right, furthest_that(not_enough, sizes / 2, sizes, steps=12)
    )
    is_refuted = accuracy * sizes >= needed - 0.5  # a row for each shift
    smallest_shift = np.where(is_refuted.any(axis=0), np.argmax(is_refuted, axis=0), SHIFTS.size)
    return GuessRule(int(sizes[int(np.argmin(smallest_shift))]), True, PLANNED)


@functools.lru_cache(maxsize=16)
def _normal_accuracy(coins: int) -> tuple[Array, Array]:
    """Numbers of guesses, and the share that is right at each shift, one row per shift."""
    from scipy.special import ndtr

    half_octaves = LEAST_GUESSES * 2.0 ** np.arange(0, 40, 0.5)
    sizes = np.unique(np.append(np.round(half_octaves[half_octaves < coins]), coins))
    cut = np.linspace(0.0, 20.0, 4001)
    rows = []
    for shift in SHIFTS:
        right, wrong = ndtr(shift / 2 - cut), ndtr(-shift / 2 - cut)
        cut_of_size = np.interp(sizes / coins, (right + wrong)[::-1], cut[::-1])
        right, wrong = ndtr(shift / 2 - cut_of_size), ndtr(-shift / 2 - cut_of_size)
        rows.append(right / np.maximum(right + wrong, 1e-300))
    return sizes, np.array(rows)
