"""Audit of a declared mechanism: its own density is the score, its worst pair the pair.

A mechanism declares the density of its outputs and its loss; the audit draws from it, to see
whether both are true.  The score of an output is the log-likelihood ratio ln(p / q) of the two
values of a pair by the declared density.  A rule guesses the first value where the score is at
least a cut, and the second value where it is at most a lower cut.  The density also gives the law
of the scores, so the cuts are chosen without runs where outputs can be listed or integrated over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.quadrature import gauss_legendre_panels
from audits.attacks.tested_rules import RuleResult, count_correct
from audits.claims.findings import ClaimPoint
from audits.classifiers.decision_rules import (
    Cuts,
    DecisionRule,
    ScoreFunction,
    ThresholdRule,
    best_cuts,
)
from audits.classifiers.objective import Objective
from audits.runs.parallel_runs import draw_both
from mechanisms.base.mechanism import Mechanism
from mechanisms.base.supports import Lattice, RealLine

# The worst pair may depend on epsilon: it is asked for at these shares of the claim's epsilon, and
# the best of these pairs is tested.  A larger epsilon counts as MAX_EPSILON, as that of a claim may
# be infinite.
EPSILON_SHARES, MAX_EPSILON = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98), 50.0
# Where the law of the scores is not known, pilot runs estimate it: their share of all runs, and the
# most of them.  More of them choose the cuts better, and leave fewer runs for the test.
PILOT_SHARE, MAX_PILOT_RUNS = 0.05, 50_000
MAX_ENUMERATED = 1 << 16  # more labels are not listed; pilot runs estimate the law of the scores
# Distances from a value, in widths of the density, between which the quadrature integrates: every
# quarter up to 16, then each a quarter farther than the one before, to 364 for heavy tails.  They
# only decide which cuts are chosen; the bound comes from the runs of the test.
PANEL_ENDS = np.concatenate([np.linspace(0.0, 16.0, 65), 16 * 1.25 ** np.arange(1, 15)])
SCORE_DESCRIPTION = "the declared log-likelihood ratio"


class ScoreDistribution(NamedTuple):
    """The law of the scores of a pair: scores that occur, and the share of all runs of each."""

    scores: Array
    shares: Array

    def cuts(self, objective: Objective) -> Cuts:
        """The cuts that suit the objective best."""
        return best_cuts(self.scores, objective, self.shares)


def audit_declared(
    mechanism: Mechanism,
    pair: tuple[Any, Any] | None,
    claim: Loss | None,
    objective: Objective,
    points: Sequence[tuple[float, float]],
    rng: np.random.Generator,
    executor: Executor | None = None,
) -> RuleResult:
    """Test the pair and cut with the greatest expected bound on epsilon.

    Without a ``pair`` the mechanism's worst pairs are the candidates.  ``points`` (epsilon, delta)
    are on the claimed curve; of those, the one that is most surely refuted is tested too, on the
    same runs.  What is tested is chosen by the laws of the scores, or by pilot runs of their own.
    """
    own_pair = pair is None
    if pair is not None:
        pairs = [pair]
    else:
        epsilon = min((claim or mechanism.loss).epsilon_at(objective.delta), MAX_EPSILON)
        candidates = [mechanism.worst_pair(share * epsilon) for share in EPSILON_SHARES]
        # Equal pairs are tried once; their values may be arrays, so their texts are compared.
        pairs = list({repr(candidate): candidate for candidate in candidates}.values())
    scores = [likelihood_ratio_score(mechanism, candidate) for candidate in pairs]
    known = [score_distribution(mechanism, candidate) for candidate in pairs]
    distributions = [law for law in known if law is not None]
    if len(distributions) < len(pairs):  # one law is not known: pilot runs estimate all of them
        pilot = min(max(int(PILOT_SHARE * objective.runs), 1), MAX_PILOT_RUNS)
        objective = replace(objective, runs=objective.runs - pilot)
        runs_per_pair, distributions = max(pilot // len(pairs), 1), []
        for candidate, score in zip(pairs, scores, strict=True):
            drawn = draw_both(mechanism.release, candidate, runs_per_pair, rng, executor)
            sampled = np.concatenate([score(output) for chunk in drawn for output in chunk])
            shares = np.full(sampled.size, 1 / sampled.size)
            distributions.append(ScoreDistribution(sampled, shares))
    cuts = [law.cuts(objective) for law in distributions]
    best_index = max(range(len(pairs)), key=lambda index: cuts[index].expected.bound)
    pair, score, law = pairs[best_index], scores[best_index], distributions[best_index]
    rule = _threshold_rule(score, cuts[best_index])
    rules: list[DecisionRule] = [rule]
    objectives = [
        replace(objective, epsilon=epsilon, delta=delta, every_run=epsilon == 0)
        for epsilon, delta in points
    ]
    # By the declared density the mechanism's own loss holds at every point.  Only a sampler that
    # draws from another law can refute it, and the density does not show where.  So with the bound
    # only the first point is tested, at epsilon 0 with a guess in every run; none at delta 0.
    claims_own_loss = claim == mechanism.loss
    if claims_own_loss:
        objectives = [] if objective.delta == 0 else objectives[:1]
    best = max(objectives, key=lambda point: law.cuts(point).expected.z_score, default=None)
    # The bound is already a test at its own delta, so no other point at this delta is tested.
    if best is None or best.epsilon is None or best.delta == objective.delta:
        (bound,) = count_correct(mechanism.release, pair, rules, objective.runs, rng, executor)
        return RuleResult(pair, rule, bound, made_by_mechanism=own_pair)
    rules.append(_threshold_rule(score, law.cuts(best)))
    bound, counts_at_point = count_correct(
        mechanism.release, pair, rules, objective.runs, rng, executor
    )
    point = ClaimPoint(best.epsilon, best.delta, counts_at_point, decides_alone=not claims_own_loss)
    return RuleResult(pair, rule, bound, point, rules[1], made_by_mechanism=own_pair)


@final
@dataclass(frozen=True, slots=True)
class LogLikelihoodRatio:
    """The log-likelihood ratio of a pair of values under a declared mechanism."""

    mechanism: Mechanism
    first: Any
    second: Any

    def __call__(self, output: NDArray[Any]) -> Array:
        """The log-odds of outputs."""
        log_density = self.mechanism.log_density
        return log_density(output, self.first) - log_density(output, self.second)


@final
@dataclass(frozen=True, slots=True)
class LogOddsTable:
    """The log-odds of outputs 0, 1, 2 and so on."""

    log_odds: Array

    def __call__(self, output: NDArray[Any]) -> Array:
        """The log-odds of outputs."""
        return np.asarray(self.log_odds[output])


def likelihood_ratio_score(mechanism: Mechanism, pair: tuple[Any, Any]) -> ScoreFunction:
    """The exact log-likelihood ratio of a declared mechanism.

    Where outputs are 0, 1, 2, ... for one value, it is computed once for each, as a table.
    """
    ratio, outcomes = LogLikelihoodRatio(mechanism, *pair), mechanism.support.outcomes(pair[0])
    if outcomes is None or np.ndim(pair[0]) != mechanism.value_axes:
        return ratio
    return LogOddsTable(ratio(outcomes))


def _threshold_rule(score: ScoreFunction, cuts: Cuts) -> ThresholdRule:
    return ThresholdRule(score, cuts.upper, cuts.expected, SCORE_DESCRIPTION, cuts.lower)


def score_distribution(mechanism: Mechanism, pair: tuple[Any, Any]) -> ScoreDistribution | None:
    """The law of the scores, by enumeration or quadrature; None if neither works.

    A run has either value with probability 1/2, so the share of an output is (p + q) / 2, times its
    measure: that of its cell, or the weight of its node.
    """
    support = mechanism.support
    cells = None
    if _can_list_outputs(mechanism, pair):
        with suppress(ParameterError):  # too many to be listed
            cells = support.cells(*pair)
    is_number = all(np.size(value) == 1 for value in pair)
    if cells is not None:
        outputs, measure, values = cells.outputs, cells.measure, list(pair)
    elif isinstance(support, RealLine) and support.ends is None and is_number:
        values = [float(np.sum(value)) for value in pair]  # an array of one number has one as well
        # The density integrates to 1, so 1 over its height at the centre is about its width.
        width = math.exp(-float(np.min(mechanism.log_density(np.array(values[0]), values[0]))))
        ends = [value + side * width * PANEL_ENDS for value in values for side in (-1, 1)]
        outputs, measure, _ = gauss_legendre_panels(
            np.unique(np.concatenate([*ends, *map(support.breakpoints, values)]))
        )
    else:
        return None
    log_p, log_q = (np.ravel(mechanism.log_density(outputs, value)) for value in values)
    shares = measure * (np.exp(log_p) + np.exp(log_q)) / 2
    positive = shares > 0
    # The shares are divided by their sum, since what lies beyond the panels is left out.
    return ScoreDistribution(
        log_p[positive] - log_q[positive], shares[positive] / np.sum(shares[positive])
    )


def _can_list_outputs(mechanism: Mechanism, pair: tuple[Any, Any]) -> bool:
    """Whether the mechanism's support may list the outputs of this pair.

    Both values must be one value each, not one for each of several users.
    """
    support = mechanism.support
    # The number of axes of one value; a lattice lists the outputs of single numbers only.
    axes = 0 if isinstance(support, Lattice) else mechanism.value_axes
    if axes is None:
        is_single = all(np.size(value) == 1 for value in pair)
    else:
        is_single = all(np.ndim(value) == axes for value in pair)
    return is_single and getattr(support, "count", 0) <= MAX_ENUMERATED
