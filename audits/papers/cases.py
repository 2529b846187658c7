"""Published privacy claims as rows of a report: the claim, what is provable, what an attack shows.

Each case takes a claim as a paper prints it.  Its provable epsilon is an upper bound by accounting;
an attack gives a lower bound.  A claim is false if the lower bound is above it.

A row's outcome is FALSIFIED where the claim is shown to be false.  SURVIVED also stands for a claim
that is neither proved nor refuted.  `Outcome` in the table of `cases` is the one expected.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.losses.pure_and_approximate import ApproxLoss
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Plan
from audits.attacks.front import audit
from audits.claims.findings import Outcome
from audits.known_densities.hockey_stick import exact_epsilon
from audits.papers.frank_wolfe import attacked_epsilon, printed_selections
from audits.papers.private_labels import PrintedRate, printed_lower_rate, printed_upper_rate
from audits.papers.sparse_regression import (
    PublishedClaim,
    printed_label_noise,
    printed_noisy_threshold,
    printed_peeling,
    printed_probability,
    printed_votes,
    public_label_noise,
)
from audits.results.rows import FAMILY_ERROR, AuditCase, ReportRow, Settings
from mechanisms.gaussian import Gaussian

DELTA = 1e-3  # the delta at which most of the claims are taken
NOT_A_NUMBER = float("nan")  # the claimed epsilon and delta of a row that claims neither


@final
@dataclass(frozen=True, slots=True)
class AttackResult:
    """Lower bounds on epsilon: ``computed`` exactly, ``sampled`` from ``runs`` runs.

    ``refuted`` says that the runs refute the claim at the confidence of the verdict.
    """

    computed: float | None
    sampled: float | None
    refuted: bool
    runs: int
    description: str  # how it was attacked, for the row's evidence


Attacker = Callable[[PublishedClaim, Settings, np.random.Generator], AttackResult]


def cases() -> list[AuditCase]:
    """One case per published claim."""
    label_noise = functools.partial(printed_label_noise, 1.0, DELTA)
    selections = functools.partial(printed_selections, 1.0, 1e-6, iterates=50)
    claims: list[tuple[PublishedClaim, Attacker, Outcome]] = [
        # All claim epsilon 1.  With the sparsity s* of theta and the bound C on the noise of y,
        # label noise is scaled to a sensitivity of 4 C, but a label moves by 2 (sqrt(s*) + C): more
        # if C is below sqrt(s*).
        (label_noise(true_sparsity=5, noise_bound=0.05), _gaussian, Outcome.FALSIFIED),
        (label_noise(true_sparsity=5, noise_bound=1.0), _gaussian, Outcome.FALSIFIED),
        (label_noise(true_sparsity=4, noise_bound=3.0), _gaussian, Outcome.SURVIVED),
        (
            public_label_noise(1.0, DELTA, true_sparsity=5, noise_bound=0.05),
            _gaussian,
            Outcome.FALSIFIED,
        ),
        # Frank-Wolfe.
        (selections(), _selections, Outcome.SURVIVED),
        (selections(relation=Adjacency.ADD_REMOVE), _selections, Outcome.SURVIVED),
        (selections(noise="gumbel"), _selections, Outcome.SURVIVED),
        # Selections of features.
        (printed_votes(1.0, DELTA, select=10), _not_attacked, Outcome.SURVIVED),
        (printed_peeling(1.0, DELTA, select=10), _not_attacked, Outcome.SURVIVED),
        (printed_noisy_threshold(1.0, DELTA, select=10), _not_attacked, Outcome.SURVIVED),
    ]
    return [
        *(
            AuditCase(
                claim.name,
                "paper",
                claim.source,
                expected,
                functools.partial(_published_row, claim, attack, expected),
                attack,
            )
            for claim, attack, expected in claims
        ),
        _probability_case(sparsity=5, true_sparsity=5, noise_bound=0.05),
        _rate_case(printed_upper_rate(classes=100)),
        _rate_case(printed_lower_rate(classes=100)),
    ]


def verdict_confidence() -> float:
    """The confidence of each verdict at which all hold together at ``1 - FAMILY_ERROR``.

    Each case may err with an equal part of the error (Bonferroni).
    """
    return 1 - FAMILY_ERROR / len(cases())


def _published_row(
    claim: PublishedClaim,
    attack: Attacker,
    expected: Outcome,
    settings: Settings,
    rng: np.random.Generator,
) -> ReportRow:
    """The row of a claim with a plan: what is provable, and what its attack shows."""
    start = time.perf_counter()
    provable, attacked = claim.true_epsilon, attack(claim, settings, rng)
    bounds = [bound for bound in (attacked.computed, attacked.sampled) if bound is not None]
    exceeds = attacked.computed is not None and attacked.computed > claim.epsilon
    is_false = attacked.refuted or exceeds
    verdict = "false" if is_false else "neither proved nor refuted"
    if claim.holds:
        verdict = "holds"
    evidence = f"{verdict}; provable {provable:.4g}{attacked.description}"
    return ReportRow(
        subject=claim.name,
        kind="paper",
        claim=(claim.epsilon, claim.delta),
        exact_epsilon=provable,
        epsilon_lower=max(bounds, default=None),
        confidence=settings.confidence,
        runs=attacked.runs,
        outcome=Outcome.FALSIFIED if is_false else Outcome.SURVIVED,
        expected=expected,
        witness=f"{claim.source}: {evidence}",
        evidence=evidence,
        seconds=round(time.perf_counter() - start, 6),
        verdict_lower=attacked.computed,
    )


def _gaussian(claim: PublishedClaim, settings: Settings, rng: np.random.Generator) -> AttackResult:
    """Attack one Gaussian release: exactly by its density, and by guesses from sampled outputs."""
    plan: Plan | Gaussian = claim.plan
    if not isinstance(plan, Gaussian):
        raise TypeError("one Gaussian release is attacked so")
    with settings.workers() as pool:
        finding = audit(
            plan,
            claim=ApproxLoss(claim.epsilon, claim.delta),
            runs=settings.samples,
            confidence=settings.confidence,
            rng=rng,
            executor=pool,
        )
    certain = exact_epsilon(plan, claim.delta)
    description = (
        f", exactly {certain:.4g} by its density; guesses show {finding.epsilon_lower:.3g}"
    )
    refuted = finding.refutes(verdict_confidence())
    return AttackResult(certain, finding.epsilon_lower, refuted, settings.samples, description)


def _selections(
    claim: PublishedClaim, settings: Settings, rng: np.random.Generator
) -> AttackResult:
    """Attack noisy maxima with two candidates, whose composition is computed exactly."""
    del settings, rng
    epsilon_lower = attacked_epsilon(claim)
    return AttackResult(
        computed=epsilon_lower,
        sampled=None,
        refuted=False,
        runs=0,
        description=f", at least {epsilon_lower:.4g} by two candidates",
    )


def _not_attacked(
    claim: PublishedClaim, settings: Settings, rng: np.random.Generator
) -> AttackResult:
    del claim, settings, rng
    return AttackResult(
        computed=None, sampled=None, refuted=False, runs=0, description="; not attacked"
    )


def _probability_case(sparsity: int, true_sparsity: int, noise_bound: float) -> AuditCase:
    """The case of a printed algorithm whose coin would need a probability above 1."""
    name = f"gradient reports, s=s*={sparsity}, C={noise_bound:g}"
    source = "Wang & Xu (2021), Algorithms 1 and 4"

    def check(settings: Settings, rng: np.random.Generator) -> ReportRow:
        del rng
        probability = printed_probability(sparsity, true_sparsity, noise_bound)
        finding = f"asks a coin to fall with probability {probability:.4g}"
        return _computed_row(
            name,
            witness=f"{source}: {finding}: as printed it is no mechanism",
            evidence=finding,
            is_false=probability > 1,
            settings=settings,
        )

    return AuditCase(name, "paper", source, Outcome.FALSIFIED, check)


def _rate_case(rate: PrintedRate) -> AuditCase:
    """The case of a printed rate of a risk, which is compared with the true one."""

    def check(settings: Settings, rng: np.random.Generator) -> ReportRow:
        del rng
        true_power, printed = f"{rate.true_power:.3g}", f"{rate.power:g}"
        comparison = f"squared risk grows like epsilon^-{true_power}, printed epsilon^-{printed}"
        return _computed_row(
            rate.name,
            witness=f"{rate.source}: {comparison}",
            evidence=comparison,
            is_false=not rate.holds,
            settings=settings,
        )

    return AuditCase(rate.name, "paper", rate.source, Outcome.FALSIFIED, check)


def _computed_row(
    subject: str, *, witness: str, evidence: str, is_false: bool, settings: Settings
) -> ReportRow:
    """The row of a claim that is not about epsilon, which a computation refutes if it ``is_false``.

    All such claims here are expected to be false.
    """
    outcome = Outcome.FALSIFIED if is_false else Outcome.SURVIVED
    return ReportRow(
        subject=subject,
        kind="paper",
        claim=(NOT_A_NUMBER, NOT_A_NUMBER),
        exact_epsilon=None,
        epsilon_lower=None,
        confidence=settings.confidence,
        runs=0,
        outcome=outcome,
        expected=Outcome.FALSIFIED,
        witness=witness,
        evidence=evidence,
        seconds=0.0,
    )
