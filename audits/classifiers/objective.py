"""What a decision rule is chosen for: the largest bound, or the surest verdict on a claim.

A rule guesses from outputs which of two values was released.  Under (epsilon, delta)-DP a share
delta of the runs may reveal their value: these runs are called leaks, and in all others a guess is
right with probability at most e^epsilon / (1 + e^epsilon).  Bound and verdict are estimated by the
normal approximation of expected counts.  Only power depends on it: the counts of any rule on fresh
runs are bounded exactly.

A rule is chosen by counts in the learning runs, for a test on other runs, the test runs.  A rule
that guesses both values is two-sided; another one guesses a single value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from audits.statistics.binomial_bounds import max_correct_probability

# z-scores against the claim: standard deviations by which right guesses exceed what it allows.  The
# rule with the surest verdict is taken in place of the one with the largest bound if its z-score is
# above the first constant, so that a refutation is in reach, and the z-score of the other rule is
# below the second, so that its refutation is not certain anyway.
Z_IN_REACH, Z_CERTAIN = 2.0, 9.0
# Standard errors of the learning runs that a bound gives up, because the best of many rules seems
# better than it is.  A larger margin prefers rules that guess in more runs.  With a delta the best
# guesses are rare, and such a rule is no better.
SELECTION_MARGIN, SELECTION_MARGIN_WITH_LEAKS = 2.0, 0.3
# The margin, in the same unit, with which a rule of more guesses is looked for; and the standard
# errors by which a rule of fewer guesses must be better than that one to be taken in its place.
BROAD_MARGIN, CLEARLY = 6.0, 1.5
MIN_VARIANCE = 1e-12  # of one guess: keeps errors above 0 where a guess is right almost surely


@final
@dataclass(frozen=True, slots=True)
class ExpectedOutcome:
    """The outcome that is expected of a rule in the test runs."""

    bound: float  # the lower bound on epsilon; a z-score for a rule that guesses in every run
    z_score: float = -np.inf  # against the claim
    guess_rate: float = 0.0  # share of the runs with a guess
    correct_rate: float = 0.5  # share of the guesses that are right


NO_GUESS = ExpectedOutcome(-np.inf)


@final
@dataclass(frozen=True, slots=True)
class Objective:
    """A test with ``runs`` runs at ``delta`` and error ``alpha``, of a claim of ``epsilon``.

    ``learning_runs`` is the number of runs whose counts are judged, None for exact scores;
    ``every_run`` requires a rule that guesses in every run, so that leaks need not be counted.
    """

    runs: int
    delta: float
    alpha: float
    epsilon: float | None = None
    learning_runs: int | None = None
    every_run: bool = False

    def best_rule(
        self, right: Array, guess_rate: Array, two_sided: NDArray[np.bool_]
    ) -> tuple[int, ExpectedOutcome]:
        """The index of the best of some rules, and its expected outcome.

        ``right`` and ``guess_rate`` are the shares of all runs in which a rule guesses right, and
        in which it guesses; ``two_sided`` marks the rules that guess both values.
        """
        margin = SELECTION_MARGIN_WITH_LEAKS if self.delta else SELECTION_MARGIN
        bound, z_scores = self._bounds_and_z_scores(right, guess_rate, two_sided, margin)
        best_index = int(np.argmax(bound))
        if self.learning_runs is not None and self.delta == 0 and not self.every_run:
            best_index = self._broader(best_index, right, guess_rate, two_sided)
        if self.epsilon is not None:
            surest = int(np.argmax(z_scores - self._learning_error(right, guess_rate, two_sided)))
            # A z-score of the test runs has the standard error 1.  This one was scaled up from the
            # learning runs, so it has the error sqrt(runs / learning runs) besides.
            error = math.sqrt(1 + self.runs / max(self.learning_runs or self.runs, 1))
            if z_scores[surest] > Z_IN_REACH * error and z_scores[best_index] < Z_CERTAIN:
                best_index = surest
        share = float(right[best_index] / max(guess_rate[best_index], 1e-300))
        return best_index, ExpectedOutcome(
            float(bound[best_index]),
            float(z_scores[best_index]),
            float(guess_rate[best_index]),
            share,
        )

    def _broader(
        self, narrow: int, right: Array, guess_rate: Array, two_sided: NDArray[np.bool_]
    ) -> int:
        """The index of a rule of more guesses, or ``narrow`` if that rule is clearly better.

        The narrower rule is taken to guess in a part of the runs in which the broader one does.
        With n runs, of which the broader rule guesses in the share g and the narrower one in the
        share h, the difference of their shares of right guesses has the standard error
        sqrt((1 / h - 1 / g) s (1 - s) / n), s the share of right guesses.
        """
        cautious_bounds, _ = self._bounds_and_z_scores(right, guess_rate, two_sided, BROAD_MARGIN)
        broadest = int(np.argmax(cautious_bounds))
        if guess_rate[broadest] <= guess_rate[narrow] or not guess_rate[narrow] > 0:
            return narrow
        plain_bounds, _ = self._bounds_and_z_scores(right, guess_rate, two_sided, 0.0)
        share = right[broadest] / guess_rate[broadest]
        # The error of log-odds, which bounds are: the share's divided by s (1 - s).
        difference = 1 / guess_rate[narrow] - 1 / guess_rate[broadest]
        error = np.sqrt(difference / (self.learning_runs or 1))
        error /= np.sqrt(max(share * (1 - share), MIN_VARIANCE))
        gain = plain_bounds[narrow] - plain_bounds[broadest]
        return broadest if gain <= CLEARLY * error else narrow

    def _learning_error(
        self, right: Array, guess_rate: Array, two_sided: NDArray[np.bool_]
    ) -> Array:
        """The standard error, in z-scores, of each rule's counts in the learning runs, at a delta.

        Rare guesses that all seem right may have been lucky.  Where no leaks are counted the error
        is left out: it then is about sqrt(runs / learning runs) for every rule.
        """
        if self.learning_runs is None or self.delta == 0 or self.every_run:
            return np.zeros(right.shape)
        allowed = max_correct_probability(self.epsilon or 0.0)
        # The excess of right guesses over what is allowed is a sum over runs: a right guess adds
        # 1 - allowed, a wrong one takes allowed.  The rate is the mean square of a run's term.
        rate = right * (1 - allowed) ** 2 + (guess_rate - right) * allowed**2
        error: Array = (
            self.runs * np.sqrt(rate / self.learning_runs) / self._spread(guess_rate, two_sided)
        )
        return error

    def _spread(self, guess_rate: Array, two_sided: NDArray[np.bool_]) -> Array:
        """The standard deviation of right guesses if the claim holds with equality.

        A guess is right with probability ``allowed``.  The number of leaks varies too, by about
        its root, and each leak is a right guess where only ``allowed`` of one was expected.
        """
        allowed = max_correct_probability(self.epsilon or 0.0)
        leaks = self._expected_leaks(two_sided)
        guesses = np.maximum(guess_rate * self.runs - leaks, 1.0)
        variance = guesses * max(allowed * (1 - allowed), MIN_VARIANCE)
        variance = variance + leaks * (1 - allowed) ** 2
        spread: Array = np.sqrt(variance)
        return spread

    def _expected_leaks(self, two_sided: NDArray[np.bool_]) -> Array:
        """How many test runs are expected to reveal a value that a rule guesses.

        A coin chose the value of each run, so a rule that guesses one value profits from half.
        """
        return self.runs * self.delta * np.where(two_sided, 1.0, 0.5)

    def _bounds_and_z_scores(
        self, right: Array, guess_rate: Array, two_sided: NDArray[np.bool_], margin: float
    ) -> tuple[Array, Array]:
        """The expected bound of each rule, and its z-score against the claim.

        ``margin`` is the number of standard errors of the learning runs that the bound gives up.
        Rules that must guess in every run have their z-score as bound too.
        """
        from scipy.special import ndtri

        if self.every_run:
            allowed = max_correct_probability(self.epsilon or 0.0)
            allowed = self.delta + (1 - self.delta) * allowed
            error = np.sqrt(max(allowed * (1 - allowed), MIN_VARIANCE) / self.runs)
            # Guess rates are sums of shares, so that of every run may differ from 1 by rounding.
            z_scores = np.where(guess_rate >= 1 - 1e-9, (right - allowed) / error, -np.inf)
            return z_scores, z_scores
        # Leaks are taken off the guesses, as right ones.  ``wrong`` is the share of wrong guesses
        # among the others: at least half a guess of one more, as few guesses seldom show a small
        # chance, and below 1, as its log-odds are taken.
        leaks = self._expected_leaks(two_sided)
        guesses = guess_rate * self.runs - leaks
        enough_guesses = guesses > 1.0
        guesses = np.where(enough_guesses, guesses, 1.0)
        wrong = np.clip((guess_rate - right) * self.runs / guesses, 0.5 / (guesses + 1), 1 - 1e-9)
        # The error probability alpha as standard deviations of a Gaussian.
        deviations = -float(ndtri(self.alpha))
        # The counts of the learning runs are scaled up to the number of test runs.
        if self.learning_runs is not None:
            deviations += margin * math.sqrt(self.runs / max(self.learning_runs, 1))
        # Wilson (1927): the upper bound u on the chance of a wrong guess is the greater root of
        #
        #     (u - wrong)^2 guesses = deviations^2 (u (1 - u) + u^2 leaks / guesses).
        #
        # The last term is for the leaks, whose number varies: a leak in excess of the mean is a
        # right guess, so a chance of u for a wrong one is missing.  Ordered by powers of u it is
        # quadratic u^2 - linear u + wrong^2 = 0.
        square = deviations * deviations / guesses
        quadratic = 1 - square * (leaks / guesses - 1)
        linear = 2 * wrong + square
        root = np.sqrt(np.maximum(linear**2 - 4 * wrong**2 * quadratic, 0.0))
        chance = np.where(quadratic > 0, (linear + root) / (2 * np.maximum(quadratic, 1e-300)), 1.0)
        chance = np.clip(chance, 1e-300, 1 - 1e-9)
        # Under epsilon-DP the log-odds of a right guess are at most epsilon.
        bound = np.where(enough_guesses, np.log1p(-chance) - np.log(chance), -np.inf)
        if self.epsilon is None:
            return bound, np.full(bound.shape, -np.inf)
        allowed = max_correct_probability(self.epsilon)
        z_scores = guesses * (1 - wrong - allowed) / self._spread(guess_rate, two_sided)
        return bound, np.where(enough_guesses, z_scores, -np.inf)
