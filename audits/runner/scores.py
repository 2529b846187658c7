"""The audit of one training run from two files of scores, as a row of a report."""

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

    inside: str
    outside: str
    claim: Plan | None
    delta: float | None
    split: str

    @classmethod
    def from_request(cls, request: Request) -> ScoresRequest:
        """Check a request; raises `ParameterError` before anything is computed."""
        if len(request.names) != 2:
            raise ParameterError("INSIDE.npy OUTSIDE.npy", list(request.names), "two .npy files")
        given = request.options
        named = [one for one in ("epsilon", "mu", "plan") if given.get(one) is not None]
        if len(named) > 1:
            shown = ", ".join(f"--{one}" for one in named)
            raise ParameterError("--epsilon, --mu, --plan", shown, "at most one: they are claims")
        text = given.get("delta")
        delta = None if text is None else DELTA.check("--delta", parse_number(str(text)))
        split = SPLITS.check("--split", given.get("split", "coins"))
        for name, path in zip(("INSIDE.npy", "OUTSIDE.npy"), request.names, strict=True):
            checked_scores(name, path)
        return cls(*request.names, _claim(given, delta), delta, split)


def scores_cases(asked: ScoresRequest) -> list[AuditCase]:
    """The one case of two files of scores."""
    subject = f"{asked.inside} against {asked.outside}"
    return [AuditCase(subject, "scores", "scores of canaries of one training run",
                      Outcome.SURVIVED, functools.partial(_audit, subject, asked))]  # fmt: skip


def count_scores(paths: tuple[str, ...]) -> int:
    """The number of scores in both files."""
    return sum(checked_scores("INSIDE.npy OUTSIDE.npy", path).size for path in paths)


def _claim(given: dict[str, Any], delta: float | None) -> Plan | None:
    if given.get("epsilon") is not None:
        epsilon = EPSILON.check("--epsilon", parse_number(str(given["epsilon"])))
        return ApproxLoss(epsilon, delta) if delta else PureLoss(epsilon)
    if given.get("mu") is not None:
        return GaussianLoss(POSITIVE.check("--mu", parse_number(str(given["mu"]))))
    if given.get("plan") is not None:
        from accountant.formats.plan_toml import read_plan

        return read_plan(str(given["plan"]))
    return None


def _audit(
    subject: str, asked: ScoresRequest, settings: Settings, rng: np.random.Generator
) -> ReportRow:
    """The row; its verdict holds at the confidence of its bound."""
    del rng  # the seed itself, so that a call from Python gives the same
    found = audit_scores(
        asked.inside, asked.outside, asked.claim, asked.delta, settings.confidence,
        split=asked.split, rng=settings.seed,
    )  # fmt: skip
    epsilon = _claimed_epsilon(asked.claim, found.delta)
    return ReportRow(
        subject, "scores", (epsilon, found.delta), None, found.epsilon_lower, found.confidence,
        found.coins, found.outcome, Outcome.SURVIVED, found.witness, found.witness,
        round(found.seconds, 6),
        found.epsilon_lower, (found.right, found.guesses, found.coins), tuple(_facts(found)),
    )  # fmt: skip


def _claimed_epsilon(claim: Plan | None, delta: float) -> float:
    """The claim's epsilon at delta, NaN if there is no claim."""
    if claim is None:
        return math.nan
    return claim.epsilon_at(delta) if isinstance(claim, Loss) else Tight().epsilon(claim, delta)


def _facts(found: OneRunFinding) -> Iterator[tuple[str, str]]:
    yield "claim", "none: the bound alone" if found.claim is None else repr(found.claim)
    yield "coins", f"{found.coins:,}"
    yield "right guesses", f"{found.right:,} of {found.guesses:,}"
    yield "could have proved", f"epsilon {found.provable:.4g} at delta {found.delta:g}"
    if found.mu_lower is not None:
        yield "Gaussian curves refuted", f"every mu below {math.floor(found.mu_lower * 1e4) / 1e4}"
