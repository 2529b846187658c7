"""What a check of another library is, what it returns, and how it becomes a row of a report.

A check tests one claim of the library, such as that an epsilon is an upper bound, or that noise
hides a value.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.accountants.tight import Tight
from accountant.losses.loss import Loss
from accountant.plans.plan import Plan
from audits.claims.arguments import claimed_delta
from audits.claims.findings import Finding, Outcome
from audits.results.rows import FAMILY_ERROR, ReportRow, Settings

# The error probability of all verdicts together, FAMILY_ERROR, is shared equally by this many
# checks.  There are fewer checks than that.
MAX_CHECKS = 50
VERDICT_CONFIDENCE = 1 - FAMILY_ERROR / MAX_CHECKS
CERTIFIED_TOLERANCE = 1e-6  # relative: a library's bound that is below the truth by less may pass
NOT_A_NUMBER = float("nan")
DELTA = 1e-5  # the delta at which accountants are asked for epsilon
NOT_REPORTED = "no report that we know of"


@final
@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check: whether the claim is false, bounds if any, and the witness."""

    falsified: bool
    witness: str
    lower: float | None = None  # lower bound on epsilon at the confidence of the settings
    runs: int = 1
    claim: tuple[float, float] = (NOT_A_NUMBER, NOT_A_NUMBER)  # epsilon and delta
    exact: float | None = None  # epsilon that is known without runs, such as a certified bound
    verdict_lower: float | None = None  # lower bound at VERDICT_CONFIDENCE


CheckFunction = Callable[[Settings, np.random.Generator], CheckResult]


@final
@dataclass(frozen=True, slots=True)
class LibraryCheck:
    """One claim of a library."""

    library: str
    name: str
    about: str  # what is looked at, in words
    function: CheckFunction
    faulty: tuple[str, ...] = ()  # the versions that are known to break it; empty for a control
    fixed_since: tuple[str, ...] = ()  # the versions that are known to be mended
    reported: str = NOT_REPORTED  # where the fault was reported first, as a thread or a paper

    def expected(self, version: str) -> Outcome | None:
        """The expected outcome for a version; None for one in which a fault may be fixed."""
        if version in self.faulty:
            return Outcome.FALSIFIED
        return Outcome.SURVIVED if not self.faulty or version in self.fixed_since else None


def result_of_finding(finding: Finding, claim: Loss) -> CheckResult:
    """The result of an audit as that of a check."""
    delta = claimed_delta(claim)
    return CheckResult(
        finding.refutes(VERDICT_CONFIDENCE),
        finding.witness,
        lower=finding.epsilon_lower,
        runs=finding.runs,
        claim=(claim.epsilon_at(delta), delta),
        verdict_lower=finding.guesses.epsilon_lower(delta, VERDICT_CONFIDENCE),
    )


def compare_with_certified(
    reported: float, plan: Plan, name: str, delta: float = DELTA
) -> CheckResult:
    """Compare a library's upper bound on epsilon with a certified lower bound.

    The true epsilon is at least the certified one: an upper bound that is smaller is false.  So is
    a NaN, which bounds nothing.
    """
    proof = Tight().certify(plan, delta)
    witness = f"{name} says {reported:.7g}, the truth is in [{proof.lower:.8g}, {proof.upper:.8g}]"
    is_false = not reported >= proof.lower * (1 - CERTIFIED_TOLERANCE)
    return CheckResult(is_false, witness, claim=(reported, delta), exact=proof.lower)


def check_row(
    check: LibraryCheck,
    name: str,
    expected: Outcome | None,
    settings: Settings,
    rng: np.random.Generator,
) -> ReportRow:
    """The row of a check; an error in the check is raised, it is no verdict on the library.

    Where no outcome is ``expected``, the row counts as expected whatever came out.
    """
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = check.function(settings, rng)
    outcome = Outcome.FALSIFIED if result.falsified else Outcome.SURVIVED
    faults = f"; known of {', '.join(check.faulty)}" if check.faulty else "; a sound control"
    return ReportRow(
        subject=name,
        kind="library",
        claim=result.claim,
        exact_epsilon=result.exact,
        epsilon_lower=result.lower,
        confidence=settings.confidence,
        runs=result.runs,
        outcome=outcome,
        expected=outcome if expected is None else expected,
        witness=f"{check.about}: {result.witness}",
        evidence=check.about + faults,
        seconds=round(time.perf_counter() - start, 6),
        verdict_lower=result.verdict_lower,
        facts=(("reported", check.reported),) if check.faulty else (),
    )
