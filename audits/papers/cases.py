"""Published specimens as rows: the claim, what can be proved, what an attack shows."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.losses.pure_and_approximate import ApproxLoss
from accountant.plans.plan import Plan
from audits.attacks.front import audit
from audits.claims.findings import Outcome
from audits.known_densities.hockey_stick import exact_epsilon
from audits.papers.frank_wolfe import attacked_epsilon, printed_selections
from audits.papers.private_labels import PrintedRate, printed_lower_rate, printed_upper_rate
from audits.papers.sign_votes import printed_noisy_threshold, printed_peeling, printed_votes
from audits.papers.sparse_regression import (
    Published,
    printed_label_noise,
    printed_probability,
    public_label_noise,
)
from audits.results.rows import FAMILY_ERROR, Case, Row, Settings
from mechanisms.gaussian import Gaussian

DELTA = 1e-3
NOTHING = float("nan")


@final
@dataclass(frozen=True, slots=True)
class Attack:
    """What is known from below: ``certain`` is computed, ``sampled`` a bound from runs."""

    certain: float | None
    sampled: float | None
    refuted: bool
    runs: int
    words: str


Attacker = Callable[[Published, Settings, np.random.Generator], Attack]


def cases() -> list[Case]:
    """One case a published claim."""
    two: list[tuple[Published, Attacker, Outcome]] = [
        (printed_label_noise(1.0, DELTA, 5, 0.05), _gaussian, Outcome.FALSIFIED),
        (printed_label_noise(1.0, DELTA, 5, 1.0), _gaussian, Outcome.FALSIFIED),
        (printed_label_noise(1.0, DELTA, 4, 3.0), _gaussian, Outcome.SURVIVED),
        (public_label_noise(1.0, DELTA, 5, 0.05), _gaussian, Outcome.FALSIFIED),
        (printed_selections(1.0, 1e-6, 50), _selections, Outcome.SURVIVED),
        (printed_selections(1.0, 1e-6, 50, relation="add-remove"), _selections, Outcome.SURVIVED),
        (printed_selections(1.0, 1e-6, 50, "gumbel"), _selections, Outcome.SURVIVED),
        (printed_votes(1.0, DELTA, 10), _nothing, Outcome.SURVIVED),
        (printed_peeling(1.0, DELTA, 10), _nothing, Outcome.SURVIVED),
        (printed_noisy_threshold(1.0, DELTA, 10), _nothing, Outcome.SURVIVED),
    ]
    found = [_published_case(*one) for one in two]
    found.append(_coin_case(5, 5, 0.05))
    return found + [_rate_case(rate) for rate in (printed_upper_rate(100), printed_lower_rate(100))]


def verdict_confidence() -> float:
    """Confidence of each verdict, such that all together hold at ``1 - FAMILY_ERROR``."""
    return 1 - FAMILY_ERROR / len(cases())


def _published_case(claim: Published, attack: Attacker, expected: Outcome) -> Case:
    check = functools.partial(_published, claim, attack, expected)
    return Case(claim.name, "paper", claim.where, expected, check)


def _published(
    claim: Published,
    attack: Attacker,
    expected: Outcome,
    settings: Settings,
    rng: np.random.Generator,
) -> Row:
    start = time.perf_counter()
    provable, found = claim.true_epsilon, attack(claim, settings, rng)
    shown = max((x for x in (found.certain, found.sampled) if x is not None), default=None)
    false = found.refuted or (found.certain is not None and found.certain > claim.epsilon)
    words = "holds" if claim.holds else "false" if false else "neither proved nor refuted"
    evidence = f"{words}; provable {provable:.4g}{found.words}"
    return Row(
        claim.name, "paper", (claim.epsilon, claim.delta), provable, shown, settings.confidence,
        found.runs, Outcome.FALSIFIED if false else Outcome.SURVIVED, expected,
        f"{claim.where}: {evidence}", evidence, round(time.perf_counter() - start, 6), True,
        found.certain, None, (), None,
    )  # fmt: skip


def _gaussian(claim: Published, settings: Settings, rng: np.random.Generator) -> Attack:
    """The exact density of one Gaussian, and guesses of its releases."""
    plan: Plan | Gaussian = claim.plan
    if not isinstance(plan, Gaussian):
        raise TypeError("one Gaussian release is attacked so")
    with settings.workers() as pool:
        finding = audit(
            plan, claim=ApproxLoss(claim.epsilon, claim.delta), runs=settings.samples,
            confidence=settings.confidence, rng=rng, executor=pool,
        )  # fmt: skip
    certain = exact_epsilon(plan, claim.delta)
    words = f", exactly {certain:.4g} by its density; guesses show {finding.epsilon_lower:.3g}"
    refuted = finding.refutes(verdict_confidence())
    return Attack(certain, finding.epsilon_lower, refuted, settings.samples, words)


def _selections(claim: Published, settings: Settings, rng: np.random.Generator) -> Attack:
    """Two candidates at the worst gap, composed exactly: a computed lower bound."""
    del settings, rng
    least = attacked_epsilon(claim)
    return Attack(least, None, False, 0, f", at least {least:.4g} by two candidates")


def _nothing(claim: Published, settings: Settings, rng: np.random.Generator) -> Attack:
    del claim, settings, rng
    return Attack(None, None, False, 0, "; not attacked")


def _coin_case(sparsity: int, true_sparsity: int, noise_bound: float) -> Case:
    name = f"gradient reports, s=s*={sparsity}, C={noise_bound:g}"
    where = "Wang & Xu (2021), Algorithms 1 and 4"

    def check(settings: Settings, rng: np.random.Generator) -> Row:
        del rng
        asked = printed_probability(sparsity, true_sparsity, noise_bound)
        words = f"asks a coin to fall with probability {asked:.4g}"
        return _computed(
            name, f"{where}: {words}: as printed it is no mechanism", words, asked > 1, settings
        )

    return Case(name, "paper", where, Outcome.FALSIFIED, check)


def _rate_case(rate: PrintedRate) -> Case:
    def check(settings: Settings, rng: np.random.Generator) -> Row:
        del rng
        found, printed = f"{rate.true_power:.3g}", f"{rate.power:g}"
        words = f"squared risk grows like epsilon^-{found}, printed epsilon^-{printed}"
        return _computed(rate.name, f"{rate.where}: {words}", words, not rate.holds, settings)

    return Case(rate.name, "paper", rate.where, Outcome.FALSIFIED, check)


def _computed(subject: str, witness: str, words: str, false: Any, settings: Settings) -> Row:
    outcome = Outcome.FALSIFIED if false else Outcome.SURVIVED
    return Row(
        subject, "paper", (NOTHING, NOTHING), None, None, settings.confidence, 0, outcome,
        Outcome.FALSIFIED, witness, words, 0.0, True,
    )  # fmt: skip
