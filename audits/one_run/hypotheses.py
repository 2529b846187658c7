"""Tests of privacy claims from one training run: of (epsilon, delta), a curve, and any Gaussian.

Each canary was put into the training data by a fair coin.  A guess rule (`guess_rules`) guesses
some of the coins by the canaries' scores; `single_run` bounds the chance of at least the number of
right guesses that was seen, if a hypothesis on the privacy of the run is true.  A hypothesis is
refuted if for some rule this bound is at most the rule's share of the allowed error alpha.  Lower
bounds on epsilon and on the mu of a Gaussian come from families of hypotheses, each tested in
increasing order.

A hypothesis is given by lines, the points (epsilon, delta) of its privacy curve; it claims them
all.  Proofs: docs/proofs/one_run.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.accountants.tight import Tight
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from accountant.numerics import Array
from accountant.numerics.search import greatest_float_that, least_integer_that
from accountant.plans.plan import Plan
from audits.one_run.guess_rules import GuessRule, RankedCoins, ladder, planned_rule
from audits.statistics.single_run import (
    MOST_EPSILON,
    refutes_curve,
    tail_of_right_guesses,
)

# Number of lines of a curve: of a loss, and of a plan, where each line takes longer.  A test with
# fewer lines is valid, and refutes a little less.
LINES, PLAN_LINES = 160, 64
# Ratio of the largest to the least hypothesis with the same planned rule.  A smaller one would plan
# more rules, which takes longer, and each would fit its hypotheses better.
BLOCK = 1.15
# Where searches start (epsilon in nats, and mu), and where that for mu ends.
LEAST_EPSILON, LEAST_MU, MOST_MU = 0.02, 0.01, 30.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What one run has shown: the coins, ranked by the scores, and how they are tested.

    A hypothesis is tested by the rules of a `ladder`, which serve scores of any shape, and by one
    rule that is planned for it.  The rules of a ladder guess numbers of coins that fall from rule
    to rule by one factor.

    ``alpha`` is the error allowed: with all rules together, a true hypothesis is refuted with this
    chance at most.
    ``one_way`` says whether some rules guess "in" alone, in addition to those that guess both ways.
    """

    coins: RankedCoins
    alpha: float
    one_way: bool

    def leaks(self, deltas: Array, *, both: bool) -> Array:
        """The leak in `single_run`: m delta of m coins for guesses both ways, half for one way."""
        return deltas * self.coins.coins / (1 if both else 2)

    def epsilon_lower(self, delta: float) -> float:
        """Lower bound on epsilon at ``delta``, of confidence ``1 - alpha``."""

        def lines(epsilon: float) -> tuple[Array, Array]:
            return np.array([epsilon]), np.array([delta])

        def is_refuted_by(rule: GuessRule, epsilon: float) -> bool:
            epsilons, deltas = lines(epsilon)
            tails = tail_of_right_guesses(
                self.coins.right(rule),
                rule.guesses,
                epsilons,
                self.leaks(deltas, both=rule.both),
            )
            return float(tails[0]) <= self.alpha * rule.share

        def refuted(epsilon: float, rules: tuple[GuessRule, ...]) -> bool:
            return any(is_refuted_by(rule, epsilon) for rule in rules)

        return self._greatest_refuted(refuted, lines, start=LEAST_EPSILON, largest=MOST_EPSILON)

    def rules_at(self, epsilon: float, delta: float) -> tuple[GuessRule, ...]:
        """The rules that test the hypothesis (epsilon, delta)."""
        return self._rules((np.array([epsilon]), np.array([delta])))

    def refutes(self, claim: Plan) -> bool:
        """Whether the claim's whole curve, all its lines together, is refuted."""
        lines = curve_lines(claim, self.coins.coins, self.alpha)
        return self._refutes_lines(lines, self._rules(lines))

    def least_right(self, claim: Plan, delta: float) -> list[tuple[GuessRule, int]]:
        """How many right guesses of each rule refute the claim; more than its guesses if none do.

        A pure or approximate claim is tested at ``delta``, any other one by its whole curve.
        """
        if isinstance(claim, (PureLoss, ApproxLoss)):
            lines = np.array([claim.epsilon_at(delta)]), np.array([delta])
        else:
            lines = curve_lines(claim, self.coins.coins, self.alpha)
        needed = []
        for rule in self._rules(lines):
            leaks, share = self.leaks(lines[1], both=rule.both), self.alpha * rule.share
            refutes = functools.partial(
                refutes_curve, guesses=rule.guesses, epsilons=lines[0], leaks=leaks, alpha=share
            )
            needed.append((rule, least_integer_that(refutes, 0, rule.guesses + 1)))
        return needed

    def mu_lower(self) -> float:
        """The mu below which every Gaussian curve is refuted."""
        lines = functools.lru_cache(maxsize=8)(
            lambda mu: curve_lines(GaussianLoss(mu), self.coins.coins, self.alpha)
        )
        return self._greatest_refuted(
            lambda mu, rules: self._refutes_lines(lines(mu), rules),
            lines,
            start=LEAST_MU,
            largest=MOST_MU,
        )

    def _refutes_lines(self, lines: tuple[Array, Array], rules: tuple[GuessRule, ...]) -> bool:
        """Whether one of the rules refutes these lines, all of them together."""
        epsilons, deltas = lines
        return any(
            refutes_curve(
                self.coins.right(rule),
                rule.guesses,
                epsilons,
                self.leaks(deltas, both=rule.both),
                self.alpha * rule.share,
            )
            for rule in rules
        )

    def _rules(self, lines: tuple[Array, Array]) -> tuple[GuessRule, ...]:
        """The rule that is planned for the lines of a hypothesis, and those of the ladder."""
        count = self.coins.coins
        leaks = self.leaks(lines[1], both=True)
        planned = planned_rule(count, lines[0], leaks, self.alpha)
        return (planned, *ladder(count, one_way=self.one_way))

    def _greatest_refuted(
        self,
        refuted: Callable[[float, tuple[GuessRule, ...]], bool],
        lines: Callable[[float], tuple[Array, Array]],
        start: float,
        largest: float,
    ) -> float:
        """The largest hypothesis up to which all are refuted; 0 if none is.

        Hypotheses are an epsilon or a mu; ``lines`` gives their lines, and ``start`` is the end of
        the first block.  A block is a range of hypotheses with a ratio of `BLOCK`, all tested by
        the rules that are planned for its upper end: what refutes the end then refutes the block.
        The search goes up block by block, and then into the first block whose end is not refuted,
        or into the last one.
        """
        ladder_rules = ladder(self.coins.coins, one_way=self.one_way)
        ladder_bound = 0.0
        if refuted(start, ladder_rules):
            ladder_bound = greatest_float_that(
                lambda x: refuted(x, ladder_rules), start, largest, relative=1e-3
            )
        low, high = 0.0, start
        while high < largest:
            # The rules of each block include the ladder, which refutes all below its own bound, so
            # that no rule has to be planned there.
            rules = self._rules(lines(high)) if high > ladder_bound else ladder_rules
            if high > ladder_bound and not refuted(high, rules):
                break
            low, high = high, min(high * BLOCK, largest)
        rules = self._rules(lines(high))
        return greatest_float_that(lambda x: refuted(x, rules), low, high, relative=1e-6, steps=40)


def curve_lines(claim: Plan, coins: int, alpha: float) -> tuple[Array, Array]:
    """The lines of a claim: epsilons, falling, and the claim's delta at each, rounded up.

    A loss has lines from the epsilon where delta is ``alpha / 1000 / coins`` more than its mass at
    infinity down to 0, a plan from that delta, rounded down to a power of ten, up to 0.9.  Epsilons
    are at most `MOST_EPSILON`.  Any lines make a valid test; a delta so small adds less than
    alpha / 1000 to a chance.
    """
    negligible_delta = 1e-3 * alpha / coins
    if not isinstance(claim, Loss):
        return plan_lines(claim, math.floor(math.log10(negligible_delta)))
    infinity_mass = max(claim.infinity, claim.reversed.infinity)
    top = min(claim.epsilon_at(min(infinity_mass + negligible_delta, 0.5)), MOST_EPSILON)
    epsilons = np.linspace(top, 0.0, LINES)
    profiles = [direction.profile_bounds(epsilons)[1] for direction in {claim, claim.reversed}]
    return epsilons, np.minimum(np.max(profiles, axis=0), 1.0)


@functools.lru_cache(maxsize=64)
def plan_lines(claim: Plan, exponent: int) -> tuple[Array, Array]:
    """The lines of a plan, whose least delta is ten to the ``exponent``; they take seconds."""
    deltas = np.geomspace(10.0**exponent, 0.9, PLAN_LINES)
    epsilons = np.minimum(Tight().epsilons(claim, deltas), MOST_EPSILON)
    order = np.argsort(-epsilons, kind="stable")
    return epsilons[order], deltas[order]
