"""What a check of a library is, and how it becomes a row."""

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
from audits.results.rows import FAMILY_ERROR, Row, Settings

CHECKS_AT_MOST = 50  # the verdicts of all libraries together hold at 1 - FAMILY_ERROR
VERDICT = 1 - FAMILY_ERROR / CHECKS_AT_MOST
NOTHING = float("nan")
DELTA = 1e-5  # of accountants


@final
@dataclass(frozen=True, slots=True)
class Seen:
    """What a check saw: whether the claim is false, a bound if there is one, and the witness."""

    false: bool
    witness: str
    lower: float | None = None
    runs: int = 1
    claim: tuple[float, float] = (NOTHING, NOTHING)
    exact: float | None = None


Look = Callable[[Settings, np.random.Generator], Seen]


@final
@dataclass(frozen=True, slots=True)
class Check:
    """One claim of a library; ``faulty`` are the versions known to break it, none if sound."""

    library: str
    name: str
    about: str
    look: Look
    faulty: tuple[str, ...] = ()
    since: tuple[str, ...] = ()

    def expected(self, version: str) -> Outcome | None:
        """What is known of a version; nothing of one in which a fault may be mended."""
        if version in self.faulty:
            return Outcome.FALSIFIED
        return Outcome.SURVIVED if not self.faulty or version in self.since else None


def guessed(finding: Finding, claim: Loss) -> Seen:
    """What an audit saw."""
    delta = claimed_delta(claim)
    return Seen(
        finding.refutes(VERDICT), finding.witness, finding.epsilon_lower, finding.runs,
        (claim.epsilon_at(delta), delta),
    )  # fmt: skip


def below_truth(found: float, plan: Plan, name: str) -> Seen:
    """Whether an upper bound on epsilon is below a lower one that is certified."""
    proof = Tight().certify(plan, DELTA)
    words = f"{name} says {found:.6g}, the truth is in [{proof.lower:.6g}, {proof.upper:.6g}]"
    false = bool(found < proof.lower * (1 - 1e-6))
    return Seen(false, words, None, 1, (found, DELTA), proof.lower)


def row_of(
    check: Check,
    name: str,
    expected: Outcome | None,
    settings: Settings,
    rng: np.random.Generator,
) -> Row:
    """The row of a check; a check that raises is no verdict on the library, and says so."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = check.look(settings, rng)
    outcome = Outcome.FALSIFIED if seen.false else Outcome.SURVIVED
    known = f"; known of {', '.join(check.faulty)}" if check.faulty else "; a sound control"
    return Row(
        name, "library", seen.claim, seen.exact, seen.lower, settings.confidence, seen.runs,
        outcome, outcome if expected is None else expected, f"{check.about}: {seen.witness}",
        check.about + known, round(time.perf_counter() - start, 6), True,
    )  # fmt: skip
