"""Audit of a declared mechanism: its own density is the score, its worst pair the pair.

The score of an output is the log-likelihood ratio ln(p / q) by the declared density.  A rule
guesses the first value where the score is at least a cut, and the second value where it is at most
a lower cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

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
from audits.classifiers.likelihood_ratio import likelihood_ratio_score
from audits.classifiers.objective import Objective
from audits.runs.parallel_runs import draw_both
from mechanisms.base.mechanism import Mechanism
from mechanisms.base.supports import Lattice, RealLine

# The worst pair depends on epsilon: it is asked for at these shares of the claim's epsilon.
EPSILON_SHARES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98)
# Share of the runs that are pilot runs, where the law of the scores is not known, and the most.
PILOT_SHARE, MAX_PILOT_RUNS = 0.05, 50_000
MAX_ENUMERATED = 1 << 16  # more outputs are not listed; pilot runs estimate the law of the scores
SCORE_DESCRIPTION = "the declared log-likelihood ratio"


def audit_declared(
    mechanism: Mechanism,
    pair: tuple[Any, Any] | None,
    claim: Loss | None,
    objective: Objective,
    points: Sequence[tuple[float, float]],
    rng: np.random.Generator,
    executor: Executor | None = None,
) -> RuleResult:
    """Test the pair and cut with the greatest expected bound, judged on pilot runs."""
    own_pair = pair is None
    if pair is not None:
        pairs = [pair]
    else:
        top = (claim or mechanism.loss).epsilon_at(objective.delta)
        candidates = [mechanism.worst_pair(share * min(top, 50.0)) for share in EPSILON_SHARES]
        pairs = list({repr(candidate): candidate for candidate in candidates}.values())
    scores = [likelihood_ratio_score(mechanism, candidate) for candidate in pairs]
    laws = [score_distribution(mechanism, candidate) for candidate in pairs]
    distributions = [law for law in laws if law is not None]
    if len(distributions) < len(pairs):  # pilot runs estimate the others
        pilot = min(max(int(PILOT_SHARE * objective.runs), 1), MAX_PILOT_RUNS)
        objective = replace(objective, runs=objective.runs - pilot)
        runs_per_pair, distributions = max(pilot // len(pairs), 1), []
        for candidate, score in zip(pairs, scores, strict=True):
            drawn = draw_both(mechanism.release, candidate, runs_per_pair, rng, executor)
            sampled = np.concatenate([score(output) for chunk in drawn for output in chunk])
            distributions.append((sampled, np.full(sampled.size, 1 / sampled.size)))
    cuts = [best_cuts(values, objective, mass) for values, mass in distributions]
    best_index = max(range(len(pairs)), key=lambda index: cuts[index].expected.bound)
    pair, score, law = pairs[best_index], scores[best_index], distributions[best_index]
    rule = _threshold_rule(score, cuts[best_index])
    rules: list[DecisionRule] = [rule]
    objectives = [
        Objective(objective.runs, d, objective.alpha, e, every_run=e == 0) for e, d in points
    ]
    # Where the claim is the mechanism's own loss, its density can refute no point of the claim.
    # Then only the first point, at epsilon 0 by a guess in every run, is tested as well.
    claims_own_loss = claim == mechanism.loss
    if claims_own_loss:
        objectives = [] if objective.delta == 0 else objectives[:1]
    best = max(
        objectives,
        key=lambda point: best_cuts(law[0], point, law[1]).expected.z_score,
        default=None,
    )
    if best is None or best.epsilon is None or best.delta == objective.delta:
        bound = count_correct(mechanism.release, pair, rules, objective.runs, rng, executor)[0]
        return RuleResult(pair, rule, bound, made_by_mechanism=own_pair)
    rules.append(_threshold_rule(score, best_cuts(law[0], best, law[1])))
    bound, counts_at_point = count_correct(
        mechanism.release, pair, rules, objective.runs, rng, executor
    )
    point = ClaimPoint(best.epsilon, best.delta, counts_at_point, decides_alone=not claims_own_loss)
    return RuleResult(pair, rule, bound, point, rules[1], made_by_mechanism=own_pair)


def _threshold_rule(score: ScoreFunction, cuts: Cuts) -> ThresholdRule:
    return ThresholdRule(score, cuts.upper, cuts.expected, SCORE_DESCRIPTION, cuts.lower)


def score_distribution(mechanism: Mechanism, pair: tuple[Any, Any]) -> tuple[Array, Array] | None:
    """Scores and their shares of all runs, by enumeration or quadrature; None if neither works."""
    line = mechanism.support
    axes, cells = mechanism.value_axes, None
    is_single = all(np.size(v) == 1 if axes is None else np.ndim(v) == axes for v in pair)
    if isinstance(line, Lattice):  # of single numbers
        is_single = is_single and axes is None
    if is_single and getattr(line, "count", 0) <= MAX_ENUMERATED:
        cells = line.cells(*pair)
    if cells is not None:
        log_p, log_q = (np.ravel(mechanism.log_density(cells.outputs, value)) for value in pair)
        share = cells.measure * (np.exp(log_p) + np.exp(log_q)) / 2
        positive = share > 0
        return log_p[positive] - log_q[positive], share[positive] / np.sum(share[positive])
    if (
        not isinstance(line, RealLine)
        or line.ends is not None
        or any(np.size(value) != 1 for value in pair)
    ):
        return None
    values = [float(np.sum(value)) for value in pair]
    # The density integrates to 1, so 1 over its height at the centre is about its width.
    width = math.exp(-float(np.min(mechanism.log_density(np.array(values[0]), values[0]))))
    ladder = width * np.concatenate([np.linspace(0.0, 16.0, 65), 16 * 1.25 ** np.arange(1, 15)])
    points = [value + side * ladder for value in values for side in (-1, 1)]
    nodes, weights, _ = gauss_legendre_panels(
        np.unique(np.concatenate([*points, *map(line.breakpoints, values)]))
    )
    log_p, log_q = (mechanism.log_density(nodes, value) for value in values)
    share = weights * (np.exp(log_p) + np.exp(log_q)) / 2
    positive = share > 0
    return log_p[positive] - log_q[positive], share[positive] / np.sum(share[positive])
