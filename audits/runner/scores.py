"""The audit of one training run from two files of scores, as a row of a report.

Before a training, coins choose which of some records, the canaries, take part in it.  One file has
the scores of those that did (inside), the other those of the rest (outside).  The audit guesses the
coins from the scores; with privacy most guesses are little better than chance.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.accountants.tight import Tight
from accountant.cli.exit_status import parse_number
from accountant.domains import DELTA, EPSILON, POSITIVE
from accountant.errors import ParameterError
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from accountant.plans.plan import Plan
from audits.claims.findings import Outcome
from audits.one_run.findings import OneRunFinding
from audits.one_run.scores import SPLITS, audit_scores, checked_scores
from audits.results.result_file import Request
from audits.results.rows import AuditCase, ReportRow, Settings


@final
@dataclass(frozen=True, slots=True)
class ScoresRequest:
    """The audit of scores that the command line asks for, checked."""

    inside: str  # the two files
    outside: str
    claim: Plan | None  # None asks for the bound alone
    delta: float | None  # of the bound; None for that of the claim
    split: str  # how the canaries were chosen, one of `SPLITS`

    @classmethod
    def from_request(cls, request: Request) -> ScoresRequest:
        """Check a request; raises `ParameterError` before anything is computed."""
        if len(request.names) != 2:
            raise ParameterError("INSIDE.npy OUTSIDE.npy", list(request.names), "two .npy files")
        options = request.options
        claim_options = [
            option for option in ("epsilon", "mu", "plan") if options.get(option) is not None
        ]
        if len(claim_options) > 1:
            shown = ", ".join(f"--{option}" for option in claim_options)
            raise ParameterError("--epsilon, --mu, --plan", shown, "at most one: they are claims")
        text = options.get("delta")
        delta = None if text is None else DELTA.check("--delta", parse_number(str(text)))
        split = SPLITS.check("--split", options.get("split", "coins"))
        for name, path in zip(("INSIDE.npy", "OUTSIDE.npy"), request.names, strict=True):
            checked_scores(name, path)
        return cls(*request.names, _claim(options, delta), delta, split)


def scores_cases(request: ScoresRequest) -> list[AuditCase]:
    """The one case of two files of scores."""
    subject = f"{request.inside} against {request.outside}"
    return [
        AuditCase(
            subject,
            kind="scores",
            about="scores of canaries of one training run",
            expected=Outcome.SURVIVED,
            check=functools.partial(_audit, subject, request),
            definition=audit_scores,
        )
    ]


def count_scores(paths: tuple[str, ...]) -> int:
    """The number of scores in both files."""
    return sum(checked_scores("INSIDE.npy OUTSIDE.npy", path).size for path in paths)


def _claim(options: dict[str, Any], delta: float | None) -> Plan | None:
    """The claim of the options: a loss of --epsilon or --mu, or the plan of a file."""
    if options.get("epsilon") is not None:
        epsilon = EPSILON.check("--epsilon", parse_number(str(options["epsilon"])))
        return ApproxLoss(epsilon, delta) if delta else PureLoss(epsilon)
    if options.get("mu") is not None:
        return GaussianLoss(POSITIVE.check("--mu", parse_number(str(options["mu"]))))
    if options.get("plan") is not None:
        from accountant.formats.plan_toml import read_plan

        return read_plan(str(options["plan"]))
    return None


def _audit(
    subject: str, request: ScoresRequest, settings: Settings, rng: np.random.Generator
) -> ReportRow:
    """The row; its verdict holds at the confidence of its bound."""
    del rng  # the seed itself, so that a call from Python gives the same
    finding = audit_scores(
        request.inside,
        request.outside,
        request.claim,
        request.delta,
        settings.confidence,
        split=request.split,
        rng=settings.seed,
    )
    claim = request.claim
    if claim is None:
        epsilon = math.nan
    elif isinstance(claim, Loss):
        epsilon = claim.epsilon_at(finding.delta)
    else:
        epsilon = Tight().epsilon(claim, finding.delta)
    return ReportRow(
        subject=subject,
        kind="scores",
        claim=(epsilon, finding.delta),
        exact_epsilon=None,
        epsilon_lower=finding.epsilon_lower,
        confidence=finding.confidence,
        runs=finding.coins,
        outcome=finding.outcome,
        expected=Outcome.SURVIVED,
        witness=finding.witness,
        evidence=finding.witness,
        seconds=round(finding.seconds, 6),
        verdict_lower=finding.epsilon_lower,
        guesses=(finding.right, finding.guesses, finding.coins),
        facts=tuple(_facts(finding)),
        not_tested=finding.not_tested,
    )


def _facts(finding: OneRunFinding) -> Iterator[tuple[str, str]]:
    yield "claim", "none: the bound alone" if finding.claim is None else repr(finding.claim)
    yield "coins", f"{finding.coins:,}"
    yield "right guesses", f"{finding.right:,} of {finding.guesses:,}"
    yield "could have proved", f"epsilon {finding.provable:.4g} at delta {finding.delta:g}"
    if finding.mu_lower is not None:
        yield (
            "Gaussian curves refuted",
            f"every mu below {math.floor(finding.mu_lower * 1e4) / 1e4}",
        )
