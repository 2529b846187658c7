"""The least epsilon of any mechanism whose answers keep to given errors with given probabilities.

Three arguments bound it.  All count and sum data sets together show that no mechanism is better
than noise that has one law for all of them.

1. *Shifts*: the distribution function of the noise of one statistic, moved by one person at a time,
   rises at most as the trade-off of (epsilon, delta) allows.
2. *Packings*: a few people lead from one data set to very many others, which exact answers tell
   apart; so an answer to the first data set would be right for too many of them.
3. *Traces*: the answers to many statistics, summed with the random signs of a few people, tell
   whether these people are there.

They hold for statistics that one person may change all at once, each by its sensitivity in either
direction, of data sets of any size.  Proofs: `docs/proofs/accuracy.md`.  References: Ghosh,
Roughgarden & Sundararajan (2012); Awan & Vadhan (2023) for distribution functions that rise by a
trade-off; Hardt & Talwar (2010) for packings; Dwork, Smith, Steinke, Ullman & Vadhan (2015) for
traces.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.domains import DELTA
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.search import geometric_mean, greatest_float_that
from accountant.planning.least_epsilon import Statistic
from audits.minimax.bounds.bound import round_down

# Every number of people, of wrong answers and every tilt gives a valid bound; these are tried.
MAX_PEOPLE, PEOPLE_TRIED, WRONG_TRIED = 2**40, 200, 60
TILTS = np.geomspace(0.01, 60.0, 80)
# Of the search for the largest epsilon that is refuted: smaller ones count as 0, larger ones are
# not sought, as e^epsilon is to be a float.
MIN_EPSILON, MAX_EPSILON, RELATIVE_TOLERANCE = 1e-12, 700.0, 1e-9
LEAST_RIGHT = 0.01  # tests with a smaller chance of right answers would be lost in round-off
TRACES_TRIED = 40
TRACE_EDGES = np.append(0.0, np.geomspace(0.01, 1e4, 1500))  # in deviations of the sum
# By this share bounds are lowered, and numbers of people and tests are made easier, for round-off.
ROUND_OFF = 1e-9


def least_epsilon_bound(statistics: Iterable[Statistic], delta: float) -> float:
    """Bound the epsilon of every mechanism whose answers keep to the errors of all statistics.

    Parameters
    ----------
    statistics : iterable of Statistic
        Statistics that one person may change all at once, each by its sensitivity and in either
        direction.
    delta : float
        In [0, 1).

    Returns
    -------
    float
        No mechanism of a smaller epsilon at ``delta`` has these errors; rounded down.

    Raises
    ------
    ParameterError
        If ``statistics`` is no list of `Statistic`, or delta is out of its range.

    References
    ----------
    Ghosh, Roughgarden & Sundararajan (2012); Hardt & Talwar (2010); Awan & Vadhan (2023).  Proof:
    ``docs/proofs/accuracy.md``.

    Examples
    --------
    >>> from accountant import Statistic
    >>> from audits.minimax import least_epsilon_bound
    >>> round(least_epsilon_bound([Statistic("count", error=3.0)], delta=0.0), 6)
    0.831889
    """
    wanted, delta = tuple(statistics), DELTA.check("delta", delta)
    for statistic in wanted:
        if not isinstance(statistic, Statistic):
            raise ParameterError("statistics", statistic, "a list of Statistic")
    # Errors of very many people bound nothing that matters, and fewer statistics bound less.
    wanted = tuple(
        statistic for statistic in wanted if statistic.error <= MAX_PEOPLE * statistic.sensitivity
    )
    numbers = [statistic for statistic in wanted if statistic.kind != "selection"]
    tests = [shift_test(statistic) for statistic in numbers] + packing_tests(wanted)
    if not tests:
        return 0.0
    people, log_chance, right = (np.array(column) for column in zip(*tests, strict=True))
    log_chance += ROUND_OFF * (1 + np.abs(log_chance))
    right = right * (1 - ROUND_OFF)
    traces = []
    if numbers:
        most_people = 8 * max(statistic.error / statistic.sensitivity for statistic in numbers) + 1
        traces = traces_of(
            numbers,
            np.unique(np.floor(np.geomspace(1.0, min(most_people, MAX_PEOPLE), TRACES_TRIED))),
        )

    def is_refuted(epsilon: float) -> bool:
        if np.any(group_chance(log_chance, people, epsilon, delta) < right):
            return True
        return any(trace.is_refuted(epsilon, delta) for trace in traces)

    if not is_refuted(MIN_EPSILON):
        return 0.0
    if is_refuted(MAX_EPSILON):
        return MAX_EPSILON
    largest_refuted = greatest_float_that(
        is_refuted, MIN_EPSILON, MAX_EPSILON, relative=RELATIVE_TOLERANCE, mean=geometric_mean
    )
    return round_down(largest_refuted * (1 - ROUND_OFF))


# A number of people, the logarithm of the chance of an event on one data set, and the chance that
# it must have on another one, so many people away.
Test = tuple[float, float, float]


def group_chance(log_chance: Array, people: Array, epsilon: float, delta: float) -> Array:
    """Return an upper bound of an event's chance, ``people`` people from where it is given.

    One person raises a chance x to at most ``min(e^epsilon x + delta, 1 - e^-epsilon (1 - delta -
    x))``.  The first term is the less while x is below (1 - delta) / (1 + e^epsilon).  Any order of
    the two gives an upper bound: here the first so often as it is the less, and then the second.
    """
    step = delta / math.expm1(epsilon)  # e^{j epsilon} (x + step) - step after j people
    log_start = np.logaddexp(log_chance, math.log(step) if step else -math.inf)
    turn = (1 - delta) / (1 + math.exp(epsilon))
    until_turn = (math.log(turn + step) - log_start) / epsilon
    best = np.ones_like(log_chance)
    for rounded in (np.floor(until_turn), np.ceil(until_turn)):
        before_turn = np.clip(rounded, 0.0, people)
        after_turn = people - before_turn
        grown = np.exp(np.minimum(before_turn * epsilon + log_start, 700.0)) - step
        # the chance of the opposite falls to e^{-epsilon} (y - delta), which is the first backwards
        remaining = np.exp(-after_turn * epsilon) * (1 - grown + step) - step
        best = np.minimum(best, 1 - remaining)
    return best


def shift_test(statistic: Statistic) -> Test:
    """Return the test of a single count or sum, with noise of one law (section 1 of the proof).

    The noise is below -error with half of the rest of the probability, and so many people later at
    most error with all but that half.
    """
    half = (1 - statistic.probability) / 2
    moves = 2 * statistic.error / statistic.sensitivity
    people = math.floor(moves * (1 + ROUND_OFF)) + 1
    return float(people), math.log(half), 1 - half


@final
@dataclass(frozen=True, slots=True)
class Trace:
    """The sum of all answers with random signs, which ``people`` people have or have not.

    Without them its standard deviation is at most 1, and it is subgaussian; with them its mean is
    at least ``mean``.  It is at most ``largest``.
    """

    people: float
    mean: float
    largest: float

    def is_refuted(self, epsilon: float, delta: float) -> bool:
        """Return whether no mechanism of (epsilon, delta) has so large a mean."""
        # The mean is at most int_0^largest P(sum > x) dx.  The integrand falls, so that the heights
        # at the left ends of intervals give an upper bound.
        edges = np.append(np.minimum(TRACE_EDGES, self.largest), self.largest)
        left_ends, widths = edges[:-1], np.diff(edges)
        log_chance = -left_ends * left_ends / 2
        people = np.full_like(log_chance, self.people)
        heights = group_chance(log_chance, people, epsilon, delta)
        return bool(heights @ widths * (1 + ROUND_OFF) < self.mean)


def traces_of(statistics: list[Statistic], numbers_of_people: Array) -> list[Trace]:
    """Return the traces of counts and sums, one for each number of people."""
    counts, errors, steps, successes = (
        np.array([float(getattr(statistic, name)) for statistic in statistics])
        for name in ("count", "error", "sensitivity", "probability")
    )
    traces = []
    for people in numbers_of_people.tolist():
        # Answers are cut at the error and the whole move; the weights have the best ratio of the
        # move of the mean to the deviation.
        cuts = errors + people * steps
        weights = steps / cuts**2
        deviation = math.sqrt(counts @ (weights * cuts) ** 2)
        mean = people * float(counts @ (weights * steps * successes)) / deviation
        largest = float(counts @ (weights * cuts)) / deviation
        traces.append(Trace(people, mean * (1 - ROUND_OFF), largest * (1 + ROUND_OFF)))
    return traces


def packing_tests(statistics: tuple[Statistic, ...]) -> list[Test]:
    """Return the tests of all statistics at once, by numbers of people and of wrong answers."""
    counts = np.array([float(statistic.count) for statistic in statistics])
    failures = np.array([1 - statistic.probability for statistic in statistics])
    reached = [_people_until_two(statistic) for statistic in statistics]
    if not reached:
        return []
    numbers = np.unique(
        np.floor(np.geomspace(min(reached), min(64 * max(reached), MAX_PEOPLE), PEOPLE_TRIED))
    )
    tests = []
    for people in {*numbers.tolist(), *reached}:
        values = np.array([distinct_values(statistic, people) for statistic in statistics])
        is_distinguished = values >= 2
        if not is_distinguished.any():
            continue
        number, fail, value = (row[is_distinguished] for row in (counts, failures, values))
        total = float(number.sum())
        wrong = np.unique(
            np.floor(np.append(0.0, np.geomspace(1.0, max(total - 1, 1), WRONG_TRIED)))
        )
        # Markov: more than `wrong` of the answers are wrong with at most this probability.
        right = 1 - float(number @ fail) / (wrong + 1)
        log_chance = log_chance_of_matches(number, value, total - wrong)
        possible = right >= LEAST_RIGHT
        tests += [
            (people, float(log_c), float(r))
            for log_c, r in zip(log_chance[possible], right[possible], strict=True)
        ]
    return tests


def log_chance_of_matches(counts: Array, values: Array, matches: Array) -> Array:
    """Return ln of a bound on the chance of so many matches, by Chernoff.

    Each of ``counts`` independent guesses among ``values`` matches with probability 1 / values.
    """
    # E e^{t M} = prod (1 + (e^t - 1) / v)^n, and P(M >= m) <= E e^{t M} e^{-t m}
    log_moments = counts @ np.log1p(np.expm1(TILTS) / values[:, None])
    log_chances = np.min(log_moments[:, None] - TILTS[:, None] * matches, axis=0)
    all_match = np.where(matches >= counts.sum(), -counts @ np.log(values), 0.0)
    chances: Array = np.minimum(np.minimum(log_chances, all_match), 0.0)
    return chances


def _people_until_two(statistic: Statistic) -> float:
    """Return the least number of people who lead to two values that exact answers distinguish."""
    moves = 2 if statistic.kind == "selection" and not statistic.monotone else 1
    people = statistic.error / (moves * statistic.sensitivity)
    return float(math.floor(people * (1 + ROUND_OFF)) + 1)


def distinct_values(statistic: Statistic, people: float) -> float:
    """Return how many values, which exact answers distinguish, ``people`` people can lead to.

    They move a number by at most their share in either direction.  Answers distinguish values that
    are more than twice the error apart; an answer to a count need not be whole, but counts are.  Of
    a selection each candidate can be the only one within the error of the best.
    """
    if statistic.kind == "selection":
        is_enough = people >= _people_until_two(statistic)
        return float(statistic.candidates or 1) if is_enough else 1.0
    length = 2 * people * statistic.sensitivity
    if statistic.kind == "count":
        return math.floor(length / (math.floor(2 * statistic.error) + 1)) + 1.0
    return max(1.0, float(math.ceil(length / (2 * statistic.error) * (1 - ROUND_OFF))))
