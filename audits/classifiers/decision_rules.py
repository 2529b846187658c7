"""Decision rules: a score for every output, and the two tails of it in which a guess is made.

A score is the log-odds that the output came from the first value of the pair.  Rules are fixed
on runs of their own before the test runs are drawn, which is all that the exact bound requires.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from audits.classifiers.objective import NO_GUESS, ExpectedOutcome, Objective
from audits.classifiers.output_walk import as_float

ScoreFunction = Callable[[NDArray[Any]], Array]
# up to this number of intervals, comparisons are faster than a binary search
MAX_COMPARED_INTERVALS = 8
MAX_SHOWN_INTERVALS = 4  # of each label in the description of a rule; the others are counted
MAX_CUTS = 500  # cuts that are tried on either side of the scores: more change a bound hardly
CUT_MARGIN = 1e-9  # how much nearer to 0 a cut is than its score, relative to it: see `best_cuts`
LARGEST_CUT = float(np.finfo(float).max)  # of infinite scores, as an infinite cut is never reached


class DecisionRule(Protocol):
    """A rule: what it counts, what is expected of it, and its description in words.

    A test calls ``counts`` on its runs, and bounds epsilon by their sums.
    """

    @property
    def expected(self) -> ExpectedOutcome:
        """The outcome that was expected when the rule was chosen.

        A leak is a run that reveals its value, with probability delta at most.  The bound allows an
        error for each possible number of leaks; the expected outcome decides how much for which.
        """
        ...

    @property
    def guessed_values(self) -> int:
        """The number of values, 0 to 2, that the rule ever guesses.

        A rule that guesses one value profits only by leaks of that value's runs.
        """
        ...

    @property
    def every_run(self) -> bool:
        """True if the rule guesses in every run: then the bound counts no leaks."""
        ...

    def counts(self, first: NDArray[Any], second: NDArray[Any]) -> tuple[int, int]:
        """(right guesses, guesses) on outputs of the first and of the second value."""
        ...

    def describe(self, first: str, second: str) -> str:
        """The rule in words, for the witness; ``first`` and ``second`` are names of the values."""
        ...


@final
@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """Guess the first value if the score is at least ``cut``, the second if it is at most ``low``.

    ``low`` is -cut by default.  An infinite cut is for a value that is never guessed: no score
    reaches it, not even an infinite one.
    """

    score: ScoreFunction
    cut: float
    expected: ExpectedOutcome
    description: str
    low: float | None = None

    @property
    def lower_cut(self) -> float:
        """The score at and below which the second value is guessed."""
        return -self.cut if self.low is None else self.low

    @property
    def guessed_values(self) -> int:
        """The number of values, 0 to 2, that the rule ever guesses."""
        return int(self.cut < np.inf) + int(self.lower_cut > -np.inf)

    @property
    def every_run(self) -> bool:
        """True if the rule guesses in every run."""
        return bool(self.lower_cut >= np.nextafter(self.cut, -np.inf))

    def counts(self, first: NDArray[Any], second: NDArray[Any]) -> tuple[int, int]:
        """(right guesses, guesses) on outputs of the first and of the second value."""
        right = guesses = 0
        # Where both cuts are equal, a score at the cut is a guess of the first value alone.
        below = min(self.lower_cut, float(np.nextafter(self.cut, -np.inf)))
        for outputs, is_first in ((first, True), (second, False)):
            if len(outputs):
                scores = self.score(outputs)
                guessed_first = guessed_second = 0
                if self.cut < np.inf:
                    guessed_first = int(np.count_nonzero(scores >= self.cut))
                if below > -np.inf:
                    guessed_second = int(np.count_nonzero(scores <= below))
                right += guessed_first if is_first else guessed_second
                guesses += guessed_first + guessed_second
        return right, guesses

    def describe(self, first: str, second: str) -> str:
        """The rule in words: which value it guesses for which outputs."""
        parts = []
        if self.cut < np.inf:
            parts.append(f"{first} where {self.description} is at least {self.cut:.4g}")
        if self.lower_cut > -np.inf:
            score_text = "it" if parts else self.description
            parts.append(f"{second} where {score_text} is at most {self.lower_cut:.4g}")
        return " and ".join(parts) or "nothing"


@final
@dataclass(frozen=True, slots=True)
class IntervalRule:
    """Guesses by the interval ``(edges[k-1], edges[k]]`` in which one number lies.

    Labels are 1 for the first value, -1 for the second, 0 for no guess.  NaN counts as above every
    number, and so does an output that is no number.  Raw numbers are compared with the edges,
    without arithmetic on them.
    """

    edges: NDArray[Any]
    labels: NDArray[np.int8]
    expected: ExpectedOutcome

    @property
    def guessed_values(self) -> int:
        """The number of values, 0 to 2, that the rule ever guesses."""
        return int((self.labels == 1).any()) + int((self.labels == -1).any())

    @property
    def every_run(self) -> bool:
        """True if the rule guesses in every run."""
        return bool((self.labels != 0).all())

    def counts(self, first: NDArray[Any], second: NDArray[Any]) -> tuple[int, int]:
        """(right guesses, guesses) on outputs of the first and of the second value."""
        right_of_first, wrong_of_first = self._count_labels(as_numbers(first))
        wrong_of_second, right_of_second = self._count_labels(as_numbers(second))
        right = right_of_first + right_of_second
        return right, right + wrong_of_first + wrong_of_second

    def _count_labels(self, numbers: NDArray[Any]) -> tuple[int, int]:
        """How many of the numbers have label 1, and how many label -1."""
        if len(self.labels) > MAX_COMPARED_INTERVALS:
            guessed = self.labels[np.searchsorted(self.edges, numbers)]
            return int(np.count_nonzero(guessed == 1)), int(np.count_nonzero(guessed == -1))
        if numbers.dtype.kind == "f":  # NaN counts as above every edge
            above = [len(numbers) - int(np.count_nonzero(numbers <= edge)) for edge in self.edges]
        else:
            above = [int(np.count_nonzero(numbers > edge)) for edge in self.edges]
        # The numbers in an interval are above its lower edge and not above its upper one.
        cell_counts = -np.diff([len(numbers), *above, 0])
        return int(cell_counts[self.labels == 1].sum()), int(cell_counts[self.labels == -1].sum())

    def describe(self, first: str, second: str) -> str:
        """The rule in words: which value it guesses for which outputs."""
        names = {1: first, -1: second}
        parts = []
        for label, name in names.items():
            intervals = [self._interval_text(int(k)) for k in np.flatnonzero(self.labels == label)]
            if intervals:
                shown = " or ".join(intervals[:MAX_SHOWN_INTERVALS])
                hidden_count = len(intervals) - MAX_SHOWN_INTERVALS
                remainder = f" or in {hidden_count} more bands" if hidden_count > 0 else ""
                parts.append(f"{name} where the output is {shown}{remainder}")
        return " and ".join(parts) or "nothing"

    def _interval_text(self, k: int) -> str:
        if len(self.edges) == 0:
            return "anything"
        if k == 0:
            return f"at most {self.edges[0]:.4g}"
        if k == len(self.edges):
            return f"above {self.edges[-1]:.4g}"
        return f"in ({self.edges[k - 1]:.4g}, {self.edges[k]:.4g}]"


def single_numbers(outputs: NDArray[Any]) -> bool:
    """True if every output is one number."""
    return outputs.ndim == 1 and outputs.dtype.kind in "biuf"


def as_numbers(outputs: NDArray[Any]) -> NDArray[Any]:
    """Outputs of a release of single numbers; an output of another kind counts as NaN."""
    if single_numbers(outputs):
        return outputs
    numbers = [
        as_float(output) if isinstance(output, int) else output if _is_number(output) else np.nan
        for output in outputs
    ]
    return np.array(numbers, float)


def _is_number(output: Any) -> bool:
    """Whether an array of such outputs has one of the types of `single_numbers`."""
    is_span = isinstance(output, np.timedelta64)  # a subclass of np.integer
    return isinstance(output, (float, np.integer, np.floating, np.bool_)) and not is_span


def merge_intervals(
    edges: NDArray[Any], labels: NDArray[np.int8], expected: ExpectedOutcome
) -> IntervalRule:
    """The rule with adjacent intervals of one label merged."""
    change = labels[1:] != labels[:-1]
    return IntervalRule(edges[change], labels[np.append(True, change)], expected)


class Cuts(NamedTuple):
    """Where a score is cut into guesses of either value, and what is expected of them."""

    upper: float  # the first value is guessed at this score and above
    lower: float  # the second value is guessed at this score and below
    expected: ExpectedOutcome


def best_cuts(scores: Array, objective: Objective, mass: Array) -> Cuts:
    """The cuts of exact log-odds that suit the objective best.

    A guess at score s is right with probability ``1 / (1 + e^-|s|)``, so the expected count of
    right guesses comes from the pooled scores and not from noisy counts of each value.  ``mass`` is
    the share of all runs that each score stands for.  Three kinds of cuts are compared: with a size
    c > 0, both values are guessed, at scores >= c and <= -c, or one of them alone.
    """
    if objective.every_run:
        right = mass @ (1 / (1 + np.exp(-np.abs(scores))))
        every_run = np.ones(1, dtype=bool)
        return Cuts(0.0, 0.0, objective.best_rule(np.array([right]), np.ones(1), every_run)[1])
    # Both values are guessed; only the first, at high scores; only the second, at low ones.
    tails = [_tail_rates(side, mass) for side in (np.abs(scores), scores, -scores)]
    both, only_first, only_second = range(3)
    kind = np.repeat([both, only_first, only_second], [len(sizes) for sizes, _, _ in tails])
    sizes, guess_rate, right = (np.concatenate(parts) for parts in zip(*tails, strict=True))
    if sizes.size == 0:
        return Cuts(np.inf, -np.inf, NO_GUESS)
    best, expected = objective.best_rule(right, guess_rate, two_sided=kind == both)
    # Many outputs may have the score of the cut, up to rounding: all of them are to be guessed on.
    cut = min(float(sizes[best]) * (1 - CUT_MARGIN), LARGEST_CUT)
    upper = np.inf if kind[best] == only_second else cut
    lower = -np.inf if kind[best] == only_first else -cut
    return Cuts(upper, lower, expected)


def _tail_rates(scores: Array, mass: Array) -> tuple[Array, Array, Array]:
    """Cuts of positive scores, the share of runs beyond each, and that of right guesses there."""
    positive = np.flatnonzero(scores > 0)
    falling = positive[np.argsort(-scores[positive], kind="stable")]
    sizes, shares = scores[falling], mass[falling]
    guess_rate, right = np.cumsum(shares), np.cumsum(shares / (1 + np.exp(-sizes)))
    # A cut takes all runs of its size or more, so it is at the last of equal sizes.
    cut_index = np.flatnonzero(np.append(sizes[1:] < sizes[:-1], True)[: sizes.size])
    if cut_index.size:  # at most `MAX_CUTS` of them, evenly spread
        spread = np.linspace(0, cut_index.size - 1, MAX_CUTS).astype(int)
        cut_index = cut_index[np.unique(spread)]
    return sizes[cut_index], guess_rate[cut_index], right[cut_index]
