"""A privacy claim as an assertion: `assert_private` raises `AssertionError` if an audit refutes it.

It works in any test framework, or without one.  A declared mechanism's computed cost is compared
with the claim first (`excess_over`); then the mechanism is audited with its own, smaller cost as
the claim.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from accountant.accountants.tight import Tight
from accountant.errors import ParameterError
from accountant.formatting import format_lower
from accountant.losses.loss import Loss
from accountant.plans.plan import Plan
from accountant.randomness import Rng
from audits.attacks.front import audit
from audits.claims.arguments import claimed_delta
from audits.claims.claims import CLAIM_FORMS, ClaimLike, Sensitivity, checked_claim, claim_points
from audits.claims.findings import Finding, Outcome, is_only_weak, kinds_of
from audits.runs.release_functions import release_name
from audits.values.tracebacks import without_values
from mechanisms.base.mechanism import Mechanism

TOLERANCE = 1e-9  # a cost that exceeds the claim by at most this share counts as rounding


class Excess(NamedTuple):
    """A delta at which a plan costs more than is claimed: the two epsilons there."""

    cost: float
    allowed: float
    delta: float


def excess_over(claim: Loss, plan: Plan, delta: float | None) -> Excess | None:
    """Return where the computed cost of a plan exceeds a claim; None if it does at no delta tried.

    It is tried at ``delta``.  If that is None, it is tried at the delta of audits and at the
    claim's own, and a claim that is a whole curve at its `claim_points` too.
    """

    def varies_by_more_than(claimed: float) -> bool:
        # At epsilon 0 deltas are compared: an epsilon of 0 leaves no share for the tolerance.
        return Tight().delta(plan, 0.0) > claimed * (1 + TOLERANCE)

    points = claim_points(claim) if delta is None else []
    own_delta = max(claim.infinity, claim.reversed.infinity)
    deltas = [claimed_delta(claim), own_delta] if delta is None else [delta]
    for tested_delta in dict.fromkeys([*deltas, *(d for epsilon, d in points if epsilon > 0)]):
        cost, allowed = Tight().epsilon(plan, tested_delta), claim.epsilon_at(tested_delta)
        if cost > allowed * (1 + TOLERANCE) and (allowed > 0 or varies_by_more_than(tested_delta)):
            return Excess(cost, allowed, tested_delta)
    if points and varies_by_more_than(largest_delta := claim.delta_at(0.0)):
        return Excess(Tight().epsilon(plan, largest_delta), 0.0, largest_delta)
    return None


@without_values
def assert_private(
    release: Mechanism | Callable[..., Any],
    pair: tuple[Any, Any] | None = None,
    claim: ClaimLike | Sensitivity | None = None,
    runs: int = 200_000,
    confidence: float = 0.999999,
    delta: float | None = None,
    rng: Rng = 0,
    allow_inconclusive: bool = False,
    strict: bool = False,
) -> Finding:
    """Assert that an audit does not falsify a privacy claim, in any test.

    The claim of a declared mechanism is compared with its computed cost first: at ``delta`` if it
    is given, else at every point at which audits test the claim.  Then its own computed loss is
    audited.  The seed is fixed, so a test that passed passes again.  Each call fails on a true
    claim with probability ``1 - confidence`` over the seeds; a test of Hypothesis makes a call for
    each of its examples.

    Parameters
    ----------
    release : Mechanism or callable
        As for `audit`, a coroutine function too; the call may stand in an asynchronous test.
    pair : tuple of two values, optional
        Two neighbouring values that differ; None takes the mechanism's worst pair.
    claim : Loss, Budget, float, (float, float) or Sensitivity, optional
        As for `audit`; a function needs one.
    runs : int, optional
        Number of draws, at least 10.
    confidence : float, optional
        Probability in (0, 1) with which a true claim passes.
    delta : float, optional
        The delta in [0, 1) of the bound; None as for `audit`.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator.
    allow_inconclusive : bool, optional
        Pass where no outcome of so few runs could have falsified the claim, or parts of the outputs
        were not looked into.  By default these fail.
    strict : bool, optional
        Fail where the audit would not have seen half the noise, as ``--strict`` of the command line
        does.  By default what is `INCONCLUSIVE` for that reason alone passes.

    Returns
    -------
    Finding
        What `audit` found; its bound is rounded down.

    Raises
    ------
    AssertionError
        If the claim is falsified, in a sentence that has the bound and the witness; if a mechanism
        costs more than is claimed; or if the audit is inconclusive and that is not allowed.
    ParameterError
        As for `audit`, or if the claim of a function is missing, or ``strict`` and
        ``allow_inconclusive`` are both given.

    Examples
    --------
    >>> from audits import assert_private
    >>> def noisy(value, rng, size):
    ...     return value + rng.laplace(scale=0.5, size=size)
    >>> assert_private(noisy, (0.0, 1.0), claim=2.0, runs=20_000).outcome.name
    'SURVIVED'
    >>> try:
    ...     assert_private(noisy, (0.0, 1.0), claim=1.0, runs=20_000)
    ... except AssertionError as error:
    ...     print(str(error).partition(":")[0])
    noisy leaks epsilon >= 1.848 at delta = 0, and 1 is claimed
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    if strict and allow_inconclusive:
        raise ParameterError("strict", strict, "left out where allow_inconclusive is given")
    audited_claim = claim if isinstance(claim, Sensitivity) else checked_claim(claim)
    if audited_claim is None and not isinstance(release, Mechanism):
        raise ParameterError("claim", None, CLAIM_FORMS)
    name = repr(release) if isinstance(release, Mechanism) else release_name(release)
    if isinstance(release, Mechanism) and isinstance(audited_claim, Loss):
        excess = excess_over(audited_claim, release, delta)
        if excess is not None:
            raise AssertionError(
                f"{name} costs epsilon = {excess.cost:.6g} at delta = {excess.delta:.4g}, and "
                f"{excess.allowed:.6g} is claimed (computed, no runs)"
            )
        # It is within the claim, so refuting it needs a smaller fault.
        audited_claim = release.loss
    finding = audit(release, pair, audited_claim, runs, confidence, delta, rng)
    is_allowed = allow_inconclusive or (is_only_weak(finding) and not strict)
    is_allowed = is_allowed and finding.outcome is not Outcome.FALSIFIED
    if finding.outcome is Outcome.SURVIVED or is_allowed:
        return finding
    raise AssertionError(_verdict_sentence(name, audited_claim, finding))


def _verdict_sentence(name: str, claim: Loss | Sensitivity | None, finding: Finding) -> str:
    """What was found of a claim, with the witness, the notes and the seed."""
    if finding.outcome is not Outcome.FALSIFIED:
        reason = finding.why_too_few or finding.outcome.value
        verdict = f"{name}: {finding.outcome.name}, {reason}"
    elif not isinstance(finding.claim, Loss):
        verdict = f"{name} breaks its claim {claim!r}"
    else:
        # The bound that refutes the claim is that at the finding's delta, else that at its point.
        delta, lower, point = finding.delta, finding.epsilon_lower, finding.point
        claimed = finding.claim.epsilon_at(delta)
        if point is not None and lower <= claimed:
            delta, claimed = point.delta, point.epsilon
            lower = point.guesses.epsilon_lower(delta, finding.confidence)
        if lower <= claimed:  # refuted by the bets of a sequential audit, which give no bound
            leak = f"more than the claimed epsilon = {claimed:.4g} at delta = {delta:.4g}"
        else:
            leak = f"epsilon >= {format_lower(lower)} at delta = {delta:.4g}"
            leak += f", and {claimed:.4g} is claimed"
        verdict = f"{name} leaks {leak}"
    notes = " ".join(("", *finding.notes))
    untested = f" Not tested: {kinds_of(finding.not_tested)}." if finding.not_tested else ""
    return f"{verdict}: {finding.witness} (seed {finding.seed}).{notes}{untested}"
