"""What a test asserts of a release: the accountant checks the claim first, then attacks run.

A test marked ``dp`` returns what is to be audited: a declared mechanism, a function with a pair of
values, or an algorithm with two data sets.  The pytest plugin loads this file when a test audits.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from accountant.accountants.tight import Tight
from accountant.domains import DELTA
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss
from accountant.numerics.search import grow_until
from accountant.plans.plan import Plan, Release
from audits.algorithm_runs.fits import declared_plan
from audits.algorithm_runs.loss_profile import audit_algorithm
from audits.attacks.assertion import excess_over
from audits.attacks.front import audit
from audits.attacks.half_noise import (
    TESTED_SHARE,
    all_runs,
    least_factor_seen,
    least_test_runs,
)
from audits.claims.arguments import RUNS, claimed_delta
from audits.claims.claims import ClaimLike, Sensitivity, checked_claim, claim_points
from audits.claims.findings import ClaimPoint, Finding, Outcome, is_only_weak, kinds_of
from audits.known_densities.outcome_models import true_epsilon
from audits.pytest_support.failures import (
    ClaimFailed,
    Trial,
    bound_text,
    display_name,
    fail_misuse,
    failure_text,
    report_parameter_errors,
    type_text,
)
from audits.pytest_support.progress import duration
from audits.statistics.binomial_bounds import max_correct_probability
from audits.values.descriptions import describe_hidden_pair
from mechanisms.base.mechanism import Mechanism

# One run and replay of an algorithm counts as this number of runs of a release, as it takes longer.
RUNS_OF_ONE_LOSS = 1000
MAX_RUNS = 10**12  # no advice to use more runs than this is given
# Words for where a claim is from.
TEST_CLAIM, DECLARED_CLAIM = "claimed by the test", "as declared"
RETURN_FORMS = (
    "a test marked dp must return a declared mechanism; (release, pair); (release, pair, claim); "
    "(algorithm, data, neighbour); or (algorithm, data, neighbour, public)"
)


def assert_returned(
    returned: Any,
    epsilon: float,
    delta: float,
    runs: int | None,
    trial: Trial,
    claim: ClaimLike | None = None,
) -> Finding | None:
    """Assert that what a marked test returned is private as claimed, as far as audits see.

    The claim is (epsilon, delta) unless another is given, and ``runs`` are those of the trial.  An
    algorithm runs once for every thousand of them, and has no finding.
    """
    with report_parameter_errors():
        requested = checked_claim(claim) or ApproxLoss(epsilon, delta)
        runs = trial.runs if runs is None else RUNS.check("runs", runs)
    subject, *parameters = returned if isinstance(returned, tuple) and returned else (returned,)
    if isinstance(subject, Mechanism) and not parameters:
        return _assert_returned_release(subject, None, None, requested, runs, trial)
    if _is_algorithm(subject) and len(parameters) in {2, 3}:
        _assert_algorithm(subject, *parameters, requested=requested, runs=runs, trial=trial)
        return None
    if _is_release(subject) and len(parameters) in {1, 2}:
        returned_claim = parameters[1] if len(parameters) == 2 else None
        return _assert_returned_release(
            subject, parameters[0], returned_claim, requested, runs, trial
        )
    return fail_misuse(f"{RETURN_FORMS}. This one returned {type_text(returned)}")


def assert_release(
    release: Any, pair: Any, claim: Any, delta: float | None, runs: int | None, trial: Trial
) -> Finding:
    """Assert a claim of a mechanism (by default its own) or of a function, as `audit` tests it."""
    __tracebackhide__ = True
    if not _is_release(release):
        fail_misuse(
            f"audit takes a mechanism or a function of (value, rng), not {type_text(release)}"
        )
    if claim is None and not isinstance(release, Mechanism):
        fail_misuse("audit of a function needs the claim that it makes, such as PureLoss(1.0)")
    with report_parameter_errors():
        claim = claim if isinstance(claim, Sensitivity) else checked_claim(claim)
        runs = trial.runs if runs is None else RUNS.check("runs", runs)
        tested_delta = None if delta is None else DELTA.check("delta", delta)
    if isinstance(release, Mechanism) and (claim is None or isinstance(claim, Loss)):
        if claim is not None:
            _assert_within(repr(release), release, claim, tested_delta, trial)
        # Its own loss is within the claim, so refuting it needs a smaller fault.
        claim, claim_source = release.loss, DECLARED_CLAIM
    else:
        claim_source = TEST_CLAIM
    return _attack(
        release,
        pair,
        claim=claim,
        claim_source=claim_source,
        delta=tested_delta,
        runs=runs,
        trial=trial,
    )


def _assert_returned_release(
    release: Any, pair: Any, returned_claim: Any, requested: Loss, runs: int, trial: Trial
) -> Finding:
    """Attack the declared claim (given, or the mechanism's own), else the requested one.

    The declared claim costs at most the requested one, so it is attacked where it reveals most.
    """
    with report_parameter_errors():
        returned_claim = checked_claim(returned_claim)
    claim: Loss
    if isinstance(release, Mechanism):
        _assert_within(repr(release), release, requested, delta=None, trial=trial)
        claim, claim_source, delta = release.loss, DECLARED_CLAIM, None
    elif returned_claim is not None:
        name = f"the claim {returned_claim!r}"
        _assert_within(name, returned_claim, requested, delta=None, trial=trial)
        claim, claim_source, delta = returned_claim, "returned by the test", None
    else:
        claim, claim_source = requested, TEST_CLAIM
        delta = requested.delta if isinstance(requested, ApproxLoss) else None
    return _attack(
        release, pair, claim=claim, claim_source=claim_source, delta=delta, runs=runs, trial=trial
    )


def _attack(
    release: Any,
    pair: Any,
    *,
    claim: Any,
    claim_source: str,
    delta: float | None,
    runs: int,
    trial: Trial,
) -> Finding:
    """Audit, and fail unless the claim survives a test that could have falsified it.

    In a strict session it must also survive a test that would have seen half the noise.

    ``claim_source`` says in words where the claim is from.  Without a ``delta`` the claim is tested
    where audits test it.
    """
    __tracebackhide__ = True
    advice = functools.partial(faster_audit, release, claim, delta, runs, trial.confidence)
    with report_parameter_errors(), trial.progress(runs, advice):  # a traceback shows the pair
        finding = audit(release, pair, claim, runs, trial.confidence, delta, trial.seed)
    point = finding.point
    if point is None and isinstance(claim, Loss):
        point = ClaimPoint(claim.epsilon_at(finding.delta), finding.delta, finding.guesses)
    is_passed = finding.outcome is Outcome.SURVIVED or (is_only_weak(finding) and not trial.strict)
    if is_passed:
        return finding
    if finding.outcome is Outcome.INCONCLUSIVE:
        _fail_inconclusive(finding, point, runs, trial)
    headline = f"FALSIFIED: {display_name(release)}"
    event = finding.witness.partition(" was right ")[0]
    hidden = "" if pair is None else describe_hidden_pair(*pair)
    optional_facts = {
        name: fact
        for name, fact in {
            "pair": hidden,
            "notes": " ".join(finding.notes),
            "others": finding.not_tested and f"not tested: {kinds_of(finding.not_tested)}",
        }.items()
        if fact
    }
    if point is None:  # a claim of sensitivity has no guesses
        raise ClaimFailed(
            failure_text(
                headline, trial, event=event, claim=f"{claim!r}, {claim_source}", **optional_facts
            )
        )
    guesses, allowed = point.guesses, max_correct_probability(point.epsilon)
    epsilon_bound = guesses.epsilon_lower(point.delta, trial.confidence)
    leaks = f" beside {point.delta:.4g} of the runs" if point.delta else ""
    raise ClaimFailed(
        failure_text(
            headline,
            trial,
            event=event,
            **optional_facts,
            counts=f"{guesses.correct:,} right of {guesses.made:,} guesses ({guesses.share:.2%}; "
            f"the claim allows {allowed:.2%}{leaks}) in {guesses.runs:,} runs",
            bound=bound_text(epsilon_bound, point.delta, trial),
            claim=f"epsilon <= {point.epsilon:.6g} at delta = {point.delta:.4g}, {claim_source}",
        )
    )


def faster_audit(
    release: Any, claim: Any, delta: float | None, runs: int, confidence: float, per_run: float
) -> str:
    """What an audit with fewer runs would see, and in what time, at ``per_run`` seconds a run.

    It has a tenth of the runs, or if they would not see half the noise as many as would; "" if
    fewer runs would not.
    """
    if not isinstance(claim, Loss):
        return ""
    mechanism = release if isinstance(release, Mechanism) else None
    tested_delta = claimed_delta(claim) if delta is None else delta
    is_curve = True if delta is None and claim_points(claim) else None
    settings = mechanism, claim, tested_delta, 1 - confidence
    factor, fewer = 2.0, all_runs(least_test_runs(*settings, 2.0, is_curve))
    if fewer is not None and fewer <= runs // 10:
        fewer = runs // 10
        factor = least_factor_seen(*settings, int(TESTED_SHARE * fewer), is_curve) or factor
    if fewer is None or fewer >= runs:
        return ""
    epsilon = true_epsilon(mechanism, claim, tested_delta, factor)
    violation = f"epsilon >= {epsilon:.3g}" if epsilon < math.inf else "half the noise"
    return f"; runs={fewer} would see {violation} in {duration(per_run * fewer)}"


def _assert_algorithm(
    algorithm: Any,
    data: Any,
    neighbour: Any,
    public: Any = None,
    *,
    requested: Loss,
    runs: int,
    trial: Trial,
) -> None:
    """Replay an algorithm on both data sets, and fail if that refutes its plan's own cost.

    The test fails before any run if the plan costs more than the requested claim.
    """
    name = display_name(algorithm)
    delta = requested.delta if isinstance(requested, ApproxLoss) else claimed_delta(requested)
    plan = declared_plan(algorithm, data, public)
    _assert_within(f"the plan of {name}", plan, requested, delta=None, trial=trial)
    # The attack is on the plan's own cost, which is at most the requested one.
    cost = Tight().epsilon(plan, delta)
    declared = ApproxLoss(cost, delta)
    losses, rng = -(-runs // RUNS_OF_ONE_LOSS), np.random.default_rng(trial.seed)
    algorithm_audit = audit_algorithm(
        algorithm, data, neighbour, declared, losses, rng, public=public
    )
    refutation = algorithm_audit.refutation(trial.confidence)
    if refutation:
        bound = algorithm_audit.epsilon_lower(delta, trial.confidence)
        no_bound = "none: the replay already differs, so no losses were sampled"
        raise ClaimFailed(
            failure_text(
                f"FALSIFIED: {name}",
                trial,
                event=refutation,
                counts=f"a run and its replay, {algorithm_audit.losses.size:,} privacy losses",
                bound=no_bound if bound is None else bound_text(bound, delta, trial),
                claim=f"epsilon <= {cost:.6g} at delta = {delta:g}, {DECLARED_CLAIM}",
            )
        )


def _assert_within(
    name: str, declared: Release | Plan | Loss, requested: Loss, delta: float | None, trial: Trial
) -> None:
    """Fail if the declared loss costs more than the requested one, computed without sampling.

    They are compared at ``delta``; if it is None, at every delta of audits.
    """
    __tracebackhide__ = True
    excess = excess_over(requested, declared, delta)
    if excess is not None:
        raise ClaimFailed(
            failure_text(
                f"OVERCLAIMED: {name} costs more than the test claims (computed, no runs)",
                trial,
                cost=f"epsilon = {excess.cost:.6g} at delta = {excess.delta:g}, by the accountant",
                claim=f"epsilon <= {excess.allowed:.6g} at delta = {excess.delta:g}",
            )
        )


def _fail_inconclusive(
    finding: Finding, point: ClaimPoint | None, runs: int, trial: Trial
) -> NoReturn:
    """Fail a test that decides nothing: name what was not seen, or the runs that it needs."""
    __tracebackhide__ = True
    if finding.unseen:
        fail_misuse(
            f"the audit cannot look into {', '.join(finding.unseen)}, so nothing is known of it; "
            "return its numbers, or an object with fields or items"
        )
    if is_only_weak(finding):
        fail_misuse(f"{finding.why_too_few} (--dp-strict)")
    if point is None:  # a claim of sensitivity has no guesses
        fail_misuse(f"{finding.outcome.value}: {finding.witness}")
    share = point.guesses.runs / runs  # of the runs that test; the others were learned from

    def could_refute(count: float) -> bool:
        """Whether ``count`` runs falsify the claim if all are guessed, and all rightly."""
        best_guesses = replace(point.guesses, runs=int(count * share), blocks=()).all_right
        return replace(point, guesses=best_guesses).refutes(trial.confidence)

    _, needed_runs = grow_until(could_refute, runs, MAX_RUNS)
    advice = (
        f"; use {needed_runs:,} (--dp-runs, or runs= of the test)" if needed_runs < MAX_RUNS else ""
    )
    fail_misuse(
        f"{runs:,} runs are too few: no outcome could falsify a claim of epsilon = "
        f"{point.epsilon:.6g} at delta = {point.delta:.4g}{advice}"
    )


def _is_algorithm(value: Any) -> bool:
    methods = (getattr(value, name, None) for name in ("plan", "run"))
    return not isinstance(value, (type, Mechanism)) and all(map(callable, methods))


def _is_release(value: Any) -> bool:
    return isinstance(value, Mechanism) or (
        callable(value) and not isinstance(value, type) and not _is_algorithm(value)
    )
