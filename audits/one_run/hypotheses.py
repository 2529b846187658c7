"""Hypotheses on one run: what scores say of (epsilon, delta), of a curve, and of every Gaussian."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.accountants.tight import Tight
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.search import greatest_float_that
from accountant.plans.plan import Plan
from audits.one_run.guess_rules import GuessRule, RankedCoins, ladder, planned_rule
from audits.statistics.single_run import (
    MOST_EPSILON,
    refutes_curve,
    tail_of_right_guesses,
)

LINES, PLAN_LINES = 160, 64  # points of a curve, each at one epsilon: for a loss, and for a plan
BLOCK = 1.15  # ratio of the largest to the least hypothesis with the same planned rule
LEAST_EPSILON, LEAST_MU, MOST_MU = 0.02, 0.01, 30.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Ranked coins, the error allowed, and whether rules guess "in" alone as well."""

    coins: RankedCoins
    alpha: float
    one_way: bool

    def leaks(self, deltas: Array, *, both: bool) -> Array:
        """What all canaries together may leak to guesses of a rule."""
        return deltas * self.coins.coins / (1 if both else 2)

    def epsilon_lower(self, delta: float) -> float:
        """Lower bound on epsilon at ``delta``."""

        def refuted(epsilon: float, rules: tuple[GuessRule, ...]) -> bool:
            at, deltas = np.array([epsilon]), np.array([delta])
            return any(
                float(
                    tail_of_right_guesses(
                        self.coins.right(rule), rule.guesses, at, self.leaks(deltas, both=rule.both)
                    )[0]
                )
                <= self.alpha * rule.share
                for rule in rules
            )

        def lines(epsilon: float) -> tuple[Array, Array]:
            return np.array([epsilon]), np.array([delta])

        return self._greatest_refuted(refuted, lines, LEAST_EPSILON, MOST_EPSILON)

    def rules_at(self, epsilon: float, delta: float) -> tuple[GuessRule, ...]:
        """The rules for one hypothesis."""
        return self._rules((np.array([epsilon]), np.array([delta])))

    def refutes(self, claim: Plan) -> bool:
        """Whether the claim's whole curve is refuted."""
        lines = curve_lines(claim, self.coins.coins, self.alpha)
        return self._refutes_lines(lines, self._rules(lines))

    def mu_lower(self) -> float:
        """The mu below which every Gaussian curve is refuted."""
        lines = functools.lru_cache(maxsize=8)(
            lambda mu: curve_lines(GaussianLoss(mu), self.coins.coins, self.alpha)
        )
        return self._greatest_refuted(
            lambda mu, rules: self._refutes_lines(lines(mu), rules), lines, LEAST_MU, MOST_MU
        )

    def _refutes_lines(self, lines: tuple[Array, Array], rules: tuple[GuessRule, ...]) -> bool:
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
        """The planned rule for the lines of a hypothesis, and the ladder."""
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
        """The largest hypothesis up to which all are refuted, each at the error of its block.

        Inside a block the rules are fixed, so what refutes its end refutes all of it.
        """
        fixed = ladder(self.coins.coins, one_way=self.one_way)
        ladder_bound = 0.0
        if refuted(start, fixed):
            ladder_bound = greatest_float_that(
                lambda x: refuted(x, fixed), start, largest, relative=1e-3
            )
        low, high = 0.0, start
        while high < largest:
            # every block has the ladder's rules, which refute all hypotheses below their bound
            rules = self._rules(lines(high)) if high > ladder_bound else fixed
            if high > ladder_bound and not refuted(high, rules):
                break
            low, high = high, min(high * BLOCK, largest)
        rules = self._rules(lines(high))
        return greatest_float_that(lambda x: refuted(x, rules), low, high, relative=1e-6, steps=40)


def curve_lines(claim: Plan, coins: int, alpha: float) -> tuple[Array, Array]:
    """Epsilons, falling, and the claim's deltas there, rounded up.

    They end where fewer than a thousandth of a leak is left for all coins.
    """
    negligible_delta = 1e-3 * alpha / coins
    if not isinstance(claim, Loss):
        deltas = np.geomspace(negligible_delta, 0.9, PLAN_LINES)
        epsilons = np.minimum(Tight().epsilons(claim, deltas), MOST_EPSILON)
        order = np.argsort(-epsilons, kind="stable")
        return epsilons[order], deltas[order]
    infinity_mass = max(claim.infinity, claim.reversed.infinity)
    top = min(claim.epsilon_at(min(infinity_mass + negligible_delta, 0.5)), MOST_EPSILON)
    epsilons = np.linspace(top, 0.0, LINES)
    profiles = [direction.profile_bounds(epsilons)[1] for direction in {claim, claim.reversed}]
    return epsilons, np.minimum(np.max(profiles, axis=0), 1.0)
