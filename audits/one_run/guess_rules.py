"""Which canaries an audit of one training run guesses about: rules fixed before the coins.

A canary is a record made for the audit.  A fair coin puts it into the training data ("in") or
leaves it out ("out").  After the run each canary has a score: the greater, the more likely it is
"in".  A rule guesses a number of coins that is fixed beforehand: those with the most extreme
scores, either both ways (the highest scores "in", the lowest "out") or "in" alone.  Too many right
guesses refute a privacy claim.

Several rules are tested at once, each with a fixed share of alpha, the probability of refuting a
true claim.  Half of alpha goes to the rule that is best against the claim if scores are normal, as
those of gradients are (`planned_rule`), and the other half to rules for scores of any shape
(`ladder`).
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

# Shares of alpha: of the planned rule, and of the rule that guesses every coin.  The other rules of
# the ladder share the rest equally.
PLANNED, EVERY = 0.5, 0.125
# A rule of the ladder guesses LADDER_STEP times fewer coins than the one before it, and none
# guesses fewer than LEAST_GUESSES.
LEAST_GUESSES, LADDER_STEP = 8, 4
# A rule is planned with 32 to 63 lines of a claim's curve, or fewer if it has fewer.  More lines
# would plan a little better and take longer; the test itself uses all lines.
PLANNED_LINES = 32
# Distances of the mean scores "in" and "out", in standard deviations, that a rule is planned for.
# They decide which rule is chosen, never whether it is valid.
SHIFTS = np.geomspace(0.02, 12.0, 160)


@final
@dataclass(frozen=True, slots=True)
class GuessRule:
    """Guess ``guesses`` coins, ``both`` ways or "in" alone, with a ``share`` of alpha."""

    guesses: int
    both: bool
    share: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class RankedCoins:
    """How many guesses are right, for any number of guesses from either end of the scores.

    Entry k of ``highest`` says how many of the k highest scores are "in", and entry k of ``lowest``
    how many of the k lowest are "out".  Of all scores in falling order the first ``split`` are
    guessed "in" at most, and the others "out".
    """

    highest: NDArray[np.int64]
    lowest: NDArray[np.int64]
    split: int

    @property
    def coins(self) -> int:
        """The number of coins."""
        return self.highest.size - 1

    def right(self, rule: GuessRule) -> int:
        """Return the number of right guesses of a rule.

        With guesses both ways a half of them, or one more, is "in"; where one side of the split has
        too few coins, the other side gets more guesses.
        """
        top = rule.guesses
        if rule.both:
            below = self.coins - self.split
            top = min(max((rule.guesses + 1) // 2, rule.guesses - below), self.split)
        return int(self.highest[top] + self.lowest[rule.guesses - top])


def ranked_coins(scores: Array, is_in: NDArray[np.bool_]) -> RankedCoins:
    """Return ranked coins, one for each canary.

    Equal scores keep their order in ``scores``, which must not depend on the coins.
    """
    order = np.argsort(-scores, kind="stable")
    falling, inside = scores[order], is_in[order].astype(np.int64)
    # About a half of the coins are guessed "in".  Where equal scores lie across the middle, the
    # split is at the nearer end of their run.
    middle = falling.size // 2
    start = int(np.searchsorted(-falling, -falling[middle], side="left"))
    stop = int(np.searchsorted(-falling, -falling[middle], side="right"))
    ends = [end for end in (start, stop) if 0 < end < falling.size]
    split = min(ends, key=lambda end: abs(end - middle), default=middle)
    return RankedCoins(
        np.append(0, np.cumsum(inside)), np.append(0, np.cumsum(1 - inside[::-1])), split
    )


def ranked_pairs(inside: Array, outside: Array, rng: np.random.Generator) -> RankedCoins:
    """Return ranked pairs of a canary that is in and one that is out, matched at random.

    The coin of a pair is which of the two is in.  The one with the greater score is guessed to be,
    and pairs of a greater difference are guessed earlier.
    """
    pairs = min(inside.size, outside.size)
    difference = rng.permutation(inside)[:pairs] - rng.permutation(outside)[:pairs]
    right = np.where(difference == 0, rng.random(pairs) < 0.5, difference > 0)
    order = np.argsort(-np.abs(difference), kind="stable")
    counts = np.append(0, np.cumsum(right[order].astype(np.int64)))
    return RankedCoins(counts, np.zeros(1, dtype=np.int64), pairs)


@functools.lru_cache(maxsize=64)
def ladder(coins: int, *, one_way: bool) -> tuple[GuessRule, ...]:
    """Return the rules for scores of any shape, which guess numbers of coins on a ladder.

    The first rule guesses every coin both ways.  The largest number of the other rules is a fourth
    of the coins both ways, and, if ``one_way``, a half of the coins "in" alone.
    """
    two_way = _steps(coins // LADDER_STEP)
    one_way_counts = _steps(coins // 2) if one_way else []
    error_share = (1 - PLANNED - EVERY) / max(len(two_way) + len(one_way_counts), 1)
    return (
        GuessRule(coins, True, EVERY),
        *(GuessRule(count, True, error_share) for count in two_way),
        *(GuessRule(count, False, error_share) for count in one_way_counts),
    )


def _steps(largest: int) -> list[int]:
    """Return counts of guesses: the ``largest``, then each a fourth of the one before it."""
    guess_counts = []
    while largest >= LEAST_GUESSES:
        guess_counts.append(largest)
        largest //= LADDER_STEP
    return guess_counts


def planned_rule(coins: int, epsilons: Array, leaks: Array, alpha: float) -> GuessRule:
    """Return the rule that is expected to refute the claim at the smallest shift of normal scores.

    Scores "in" and "out" are taken to be normal with variance 1 and means ``shift / 2`` and
    ``-shift / 2``: the smaller the shift, the less the run leaks.  The rule does not depend on the
    actual scores.  Its guesses go both ways.

    ``epsilons`` and ``leaks`` are the lines of the claim's curve.  Each bounds the guesses of m
    coins by P(right) <= e^epsilon P(wrong) + leak / m; see `tail_of_right_guesses`.
    """
    sizes, accuracy = _normal_accuracy(coins)
    share, line_step = alpha * PLANNED, max(1, epsilons.size // PLANNED_LINES)

    def not_enough(right: Array) -> NDArray[np.bool_]:
        tails = tail_of_right_guesses(
            np.floor(right)[:, None], sizes[:, None], epsilons[::line_step], leaks[::line_step]
        )
        return np.asarray(tails.min(axis=1) > share)

    # ``needed`` is about the least number of right guesses that refutes the claim.  It is above the
    # number of guesses where not even right guesses alone refute it.
    largest_right = np.where(not_enough(sizes), 2 * sizes, sizes)
    needed = np.where(
        largest_right > sizes, largest_right, furthest_that(not_enough, sizes / 2, sizes, steps=12)
    )
    # A row for each shift, a column for each number of guesses.  The expected number of right
    # guesses, rounded to nearest, is compared.
    is_refuted = accuracy * sizes >= needed - 0.5
    smallest_shift = np.where(is_refuted.any(axis=0), np.argmax(is_refuted, axis=0), SHIFTS.size)
    return GuessRule(int(sizes[int(np.argmin(smallest_shift))]), True, PLANNED)


@functools.lru_cache(maxsize=16)
def _normal_accuracy(coins: int) -> tuple[Array, Array]:
    """Return numbers of guesses, and the share of them that is right, with a row for each shift.

    The numbers are 8, and then each sqrt(2) times the one before it, up to all coins.  A score
    above ``cut`` is guessed "in" and one below ``-cut`` "out".  With the normal law function Phi a
    guess is right with probability Phi(shift/2 - cut), and wrong with Phi(-shift/2 - cut).  For
    each number of guesses the cut is the one at which the two add up to its share of the coins.
    """
    from scipy.special import ndtr

    half_octaves = LEAST_GUESSES * 2.0 ** np.arange(0, 40, 0.5)
    sizes = np.unique(np.append(np.round(half_octaves[half_octaves < coins]), coins))
    cut = np.linspace(0.0, 20.0, 4001)  # the cut of each number is interpolated between these
    rows = []
    for shift in SHIFTS:
        right, wrong = ndtr(shift / 2 - cut), ndtr(-shift / 2 - cut)
        cut_of_size = np.interp(sizes / coins, (right + wrong)[::-1], cut[::-1])
        right, wrong = ndtr(shift / 2 - cut_of_size), ndtr(-shift / 2 - cut_of_size)
        rows.append(right / np.maximum(right + wrong, 1e-300))
    return sizes, np.array(rows)
