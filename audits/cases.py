"""Every subject the command line audits, and how each becomes one row of the report."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from accountant.loss import Loss
from accountant.responses import ApproxLoss
from audits.bits import audit_bits
from audits.densities import exact_epsilon
from audits.examination import Examination, examine
from audits.finding import Finding, Guesses, Outcome
from audits.guess import audit, claimed_delta
from audits.housing import load
from audits.zoo import ZOO, Specimen
from mechanisms import EXACT, Mechanism, registry
from mechanisms.additive import Additive
from mechanisms.supports import Line

FAMILY_ERROR = 1e-6  # chance that any honest row of a whole run is called falsified
LOSS_SAMPLES = 300
HOUSING = "PrivateLasso on California housing"
EPSILON, DELTA, RADIUS, ROUNDS = 1.0, 1e-6, 1.5, 100


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line chose; ``tick`` is called now and then while work goes on."""

    samples: int
    confidence: float
    seed: int
    tick: Callable[[str], None] = field(default=lambda subject: None)


@final
@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report; ``decisive`` says the test could have falsified the claim."""

    subject: str
    kind: str
    claim: tuple[float, float]
    exact_epsilon: float | None
    epsilon_lower: float | None
    confidence: float
    runs: int
    outcome: Outcome
    expected: Outcome
    witness: str
    evidence: str
    seconds: float
    decisive: bool
    detail: Any = None

    @property
    def as_expected(self) -> bool:
        """Whether the honest survived and the broken was caught."""
        return self.outcome is self.expected


@final
@dataclass(frozen=True, slots=True)
class Case:
    """A subject with what is known of it beforehand."""

    subject: str
    kind: str
    about: str
    expected: Outcome
    check: Callable[[Settings, np.random.Generator], Row]

    def run(self, settings: Settings) -> Row:
        """Check the subject; its seed depends on its name, not on what else is run."""
        own = np.random.SeedSequence([settings.seed, zlib.crc32(self.subject.encode())])
        return self.check(settings, np.random.default_rng(own))


def cases() -> list[Case]:
    """Every registry instance, every specimen of the zoo, every algorithm."""
    instances = [one for cls in registry() for one in cls.instances()]
    rows = [_mechanism_case(one) for one in instances]
    rows += [_bits_case(one) for one in instances if _adds_floats(one)]
    rows += [_specimen_case(one) for one in ZOO]
    rows.append(
        Case(HOUSING, "algorithm", "replayed and attacked on real data", Outcome.SURVIVED, _housing)
    )
    return rows


def verdict_confidence() -> float:
    """Confidence of each verdict, such that all together hold at ``1 - FAMILY_ERROR``."""
    return 1 - FAMILY_ERROR / len(cases())


def _mechanism_case(mechanism: Mechanism) -> Case:
    subject, expected = repr(mechanism), Outcome.SURVIVED

    def check(settings: Settings, rng: np.random.Generator) -> Row:
        finding = audit(mechanism, runs=settings.samples, confidence=settings.confidence, rng=rng)
        exact = exact_epsilon(mechanism, finding.delta)
        return _guessed(subject, "mechanism", mechanism.loss, finding, expected, exact)

    return Case(subject, "mechanism", mechanism.releases, expected, check)


def _adds_floats(mechanism: Mechanism) -> bool:
    return isinstance(mechanism, Additive) and isinstance(mechanism.support, Line)


def _bits_case(mechanism: Mechanism) -> Case:
    """Idealised samplers must be found out by their low-order bits, exact ones not."""
    subject = f"low bits of {mechanism!r}"
    expected = Outcome.SURVIVED if mechanism.arithmetic is EXACT else Outcome.FALSIFIED

    def check(settings: Settings, rng: np.random.Generator) -> Row:
        finding = audit_bits(
            mechanism, runs=settings.samples, confidence=settings.confidence, rng=rng
        )
        return _guessed(subject, "bits", mechanism.loss, finding, expected, None)

    return Case(subject, "bits", "the lowest bit of a release", expected, check)


def _specimen_case(specimen: Specimen) -> Case:
    name, claim, expected = specimen.name, specimen.claim, Outcome.FALSIFIED

    def guess(settings: Settings, rng: np.random.Generator) -> Row:
        runs, confidence = settings.samples, settings.confidence
        finding = audit(specimen.broken, specimen.pair, claim, runs, confidence, rng=rng)
        return _guessed(name, "specimen", claim, finding, expected, specimen.true_epsilon)

    def replayed(settings: Settings, rng: np.random.Generator) -> Row:
        start = time.perf_counter()
        found = examine(specimen.broken, *specimen.pair, claim, LOSS_SAMPLES, rng)
        return _examined(
            name, "specimen", found, expected, settings,
            specimen.true_epsilon, time.perf_counter() - start,
        )  # fmt: skip

    check = guess if specimen.caught_by == "guess test" else replayed
    return Case(name, "specimen", specimen.flaw, expected, check)


def _housing(settings: Settings, rng: np.random.Generator) -> Row:
    from algorithms import PrivateLasso

    start = time.perf_counter()
    data = load()
    lasso = PrivateLasso(EPSILON, DELTA, radius=RADIUS, rounds=ROUNDS, random_state=rng.spawn(1)[0])
    claim = ApproxLoss(EPSILON, DELTA)
    found = examine(
        lasso, data.train, data.neighbour(), claim, LOSS_SAMPLES, rng,
        tick=lambda: settings.tick(HOUSING),
    )  # fmt: skip
    lasso.fit(*data.train)
    return _examined(
        HOUSING, "algorithm", found, Outcome.SURVIVED, settings, None,
        time.perf_counter() - start, (lasso, data, found),
    )  # fmt: skip


def _guessed(
    subject: str,
    kind: str,
    claim: Loss,
    finding: Finding,
    expected: Outcome,
    exact: float | None,
) -> Row:
    delta, guesses, verdict = finding.delta, finding.guesses, verdict_confidence()
    epsilon = claim.epsilon_at(delta)
    # had every guess of every run been right, would the claim have fallen?
    best = Guesses(guesses.runs, guesses.runs, guesses.runs)
    allowed = 1 / (1 + np.exp(-epsilon))
    evidence = f"guess test: {guesses.share:.1%} right, the claim allows {allowed:.1%}"
    return Row(
        subject, kind, (epsilon, delta), exact, finding.epsilon_lower, finding.confidence,
        finding.runs,
        Outcome.FALSIFIED if guesses.refutes(claim, delta, verdict) else Outcome.SURVIVED,
        expected, finding.witness, evidence, finding.seconds,
        best.refutes(claim, delta, verdict),
    )  # fmt: skip


def _examined(
    subject: str,
    kind: str,
    found: Examination,
    expected: Outcome,
    settings: Settings,
    exact: float | None,
    seconds: float,
    detail: Any = None,
) -> Row:
    delta = claimed_delta(found.claim)
    why = found.refutation(verdict_confidence())
    witness = why or f"replay: {found.replayed.witness}; {found.losses.size} privacy losses"
    return Row(
        subject, kind, (found.claim.epsilon_at(delta), delta), exact,
        found.epsilon_lower(delta, settings.confidence), settings.confidence,
        int(found.losses.size) or 1, Outcome.FALSIFIED if why else Outcome.SURVIVED,
        expected, witness, witness, seconds, True, detail,
    )  # fmt: skip
