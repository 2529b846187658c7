"""Every subject that ``dp-attest audit run`` audits, and how each becomes a row of the report.

The subjects are the declared mechanisms, the lowest bits of their floating-point outputs, the
specimens of the zoo (deliberately broken implementations), and one estimator on real data.  In a
guess test an adversary guesses from an output which of two neighbouring inputs it came from.
Algorithms are replayed on neighbouring data instead, and their privacy losses sampled.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from accountant.accountants.tight import Tight
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss
from accountant.numerics import Array
from audits.attacks.floating_point import audit_bits
from audits.attacks.front import audit
from audits.attacks.half_noise import judged
from audits.claims.arguments import claimed_delta
from audits.claims.findings import (
    OTHER_PAIRS,
    SIDE_EFFECTS,
    TIMING,
    Finding,
    NotTested,
    Outcome,
    outcome_at,
)
from audits.known_densities.hockey_stick import exact, exact_epsilon
from audits.results.rows import FAMILY_ERROR, AuditCase, ProfileCurve, ReportRow, Settings
from audits.runner.california_housing import algorithm_facts, load
from audits.statistics.binomial_bounds import max_correct_probability, mean_confidence_band
from audits.zoo.catalogue import ZOO
from audits.zoo.specimen import Specimen
from mechanisms import EXACT, IDEALISED, Mechanism, PiecewiseUniform, SparseVector, registry
from mechanisms.base.supports import RealLine
from mechanisms.families.additive import AdditiveNoise

if TYPE_CHECKING:
    from audits.algorithm_runs.loss_profile import AlgorithmAudit

# Runs of an algorithm whose releases are replayed on the neighbouring data.  Each is a whole fit;
# more of them give narrower bands.
LOSS_SAMPLES = 300
HOUSING = "PrivateLasso on California housing"
EPSILON, DELTA, RADIUS, ROUNDS = 1.0, 1e-6, 1.5, 100  # the arguments of this `PrivateLasso`
# Values of a sparse vector whose first answer is surely above its threshold of -100.
ANSWERS_ABOVE = np.array([1.0, 1.0]), np.zeros(2)
# The figure of a mechanism's privacy profile, its delta at each epsilon: numbers of epsilons, of
# pairs of values, and of outputs that are drawn for each pair.
POINTS, PAIRS, DRAWS = 17, 5, 20_000
# A replay compares all that an algorithm publishes, bit by bit, on one pair of data sets.
NOT_REPLAYED = (
    NotTested(TIMING, "audit_timing looks at it"),
    NotTested(OTHER_PAIRS, "one pair of data sets was tried"),
    NotTested(SIDE_EFFECTS, "files, network, globals"),
)
LOSS_POINTS = 41  # number of epsilons in the figure of an algorithm's profile
# No figure goes beyond MAX_EPSILON.  The figure of a claim that is not pure ends at its epsilon at
# FIGURE_DELTA.  A probability of an infinite loss below ROUNDED_DELTA is taken for a rounding of 0.
MAX_EPSILON, FIGURE_DELTA, ROUNDED_DELTA = 20.0, 1e-5, 1e-12


def cases() -> list[AuditCase]:
    """Every instance of the registry, every specimen of the zoo, every algorithm."""
    instances = [instance for cls in registry() for instance in cls.instances()]
    audit_cases = [_mechanism_case(instance) for instance in instances]
    releases_noisy_numbers = AdditiveNoise, PiecewiseUniform
    audit_cases += [
        _bits_case(instance)
        for instance in instances
        if isinstance(instance, releases_noisy_numbers) and isinstance(instance.support, RealLine)
    ]
    # The first answer of a sparse vector shows the low bits of its noise.
    audit_cases += [
        _bits_case(SparseVector(-100.0, 8.0, 1.0, arithmetic=arithmetic), ANSWERS_ABOVE)
        for arithmetic in (IDEALISED, EXACT)
    ]
    audit_cases += [_specimen_case(specimen) for specimen in ZOO]
    audit_cases.append(
        AuditCase(
            HOUSING,
            "algorithm",
            "replayed and attacked on real data",
            Outcome.SURVIVED,
            _housing_row,
            "algorithms:PrivateLasso",
        )
    )
    return audit_cases


def verdict_confidence() -> float:
    """The confidence of each verdict with which all hold together at ``1 - FAMILY_ERROR``."""
    return 1 - FAMILY_ERROR / len(cases())


def _mechanism_case(mechanism: Mechanism) -> AuditCase:
    """The guess test of a mechanism's own claim, with its exact epsilon for comparison."""
    subject, expected = repr(mechanism), Outcome.SURVIVED

    def check(settings: Settings, rng: np.random.Generator) -> ReportRow:
        runs, confidence = settings.samples, settings.confidence
        with settings.workers() as pool:
            finding = audit(mechanism, runs=runs, confidence=confidence, rng=rng, executor=pool)
        true_epsilon = exact_epsilon(mechanism, finding.delta)
        curve = mechanism_curve(mechanism, settings) if settings.curves else None
        return guess_test_row(
            subject,
            "mechanism",
            mechanism.loss,
            finding,
            expected,
            exact=true_epsilon,
            confidence_of_verdict=verdict_confidence(),
            curve=curve,
            mechanism=mechanism,
        )

    return AuditCase(subject, "mechanism", mechanism.releases, expected, check, type(mechanism))


def _bits_case(mechanism: Mechanism, pair: tuple[Any, Any] | None = None) -> AuditCase:
    """The floating-point leak test: idealised samplers must fail it, exact ones must pass."""
    subject = f"low bits of {mechanism!r}"
    expected = Outcome.SURVIVED if mechanism.arithmetic is EXACT else Outcome.FALSIFIED

    def check(settings: Settings, rng: np.random.Generator) -> ReportRow:
        finding = audit_bits(
            mechanism, pair, runs=settings.samples, confidence=settings.confidence, rng=rng
        )
        return guess_test_row(
            subject,
            "bits",
            mechanism.loss,
            finding,
            expected,
            exact=None,
            confidence_of_verdict=verdict_confidence(),
        )

    about = "the lowest bit of a release"
    return AuditCase(subject, "bits", about, expected, check, type(mechanism))


def _specimen_case(specimen: Specimen) -> AuditCase:
    """The test that is to catch a specimen: the guess test, or a replay for an algorithm."""
    name, claim, expected = specimen.name, specimen.claim, specimen.expected

    def guess(settings: Settings, rng: np.random.Generator) -> ReportRow:
        runs, confidence = settings.samples, settings.confidence
        with settings.workers() as pool:
            finding = audit(
                specimen.implementation,
                specimen.pair,
                claim,
                runs,
                confidence,
                rng=rng,
                executor=pool,
            )
        return guess_test_row(
            name,
            "specimen",
            claim,
            finding,
            expected,
            exact=specimen.true_epsilon,
            confidence_of_verdict=verdict_confidence(),
        )

    def replayed(settings: Settings, rng: np.random.Generator) -> ReportRow:
        # It loads scikit-learn, which would take half the time to start a command that fits
        # nothing.
        from audits.algorithm_runs.loss_profile import audit_algorithm

        start = time.perf_counter()
        result = audit_algorithm(specimen.implementation, *specimen.pair, claim, LOSS_SAMPLES, rng)
        return _algorithm_row(
            name,
            "specimen",
            result,
            expected,
            settings,
            exact=specimen.true_epsilon,
            seconds=time.perf_counter() - start,
        )

    check = guess if specimen.caught_by == "guess test" else replayed
    implementation = specimen.implementation
    return AuditCase(name, "specimen", specimen.description, expected, check, implementation)


def _housing_row(settings: Settings, rng: np.random.Generator) -> ReportRow:
    """The replay of `PrivateLasso` on California housing, with facts from one more fit."""
    from algorithms import PrivateLasso
    from audits.algorithm_runs.loss_profile import audit_algorithm

    start = time.perf_counter()
    data = load()
    lasso = PrivateLasso(
        EPSILON,
        DELTA,
        radius=RADIUS,
        rounds=ROUNDS,
        fit_intercept=False,
        random_state=rng.spawn(1)[0],
    )
    claim = ApproxLoss(EPSILON, DELTA)
    result = audit_algorithm(
        lasso,
        data.train,
        data.neighbour(),
        claim,
        LOSS_SAMPLES,
        rng,
        tick=lambda: settings.tick(HOUSING),
    )
    lasso.fit(*data.train)
    facts = tuple(algorithm_facts(lasso, data, result, (EPSILON, DELTA)))
    return _algorithm_row(
        HOUSING,
        "algorithm",
        result,
        Outcome.SURVIVED,
        settings,
        exact=None,
        seconds=time.perf_counter() - start,
        facts=facts,
        curve=profile_curve(result, settings.confidence),
    )


def guess_test_row(
    subject: str,
    kind: str,
    claim: Loss,
    finding: Finding,
    expected: Outcome,
    *,
    exact: float | None,
    confidence_of_verdict: float,
    curve: ProfileCurve | None = None,
    mechanism: Mechanism | None = None,
) -> ReportRow:
    """The row of a guess test whose verdict holds at ``confidence_of_verdict``.

    ``exact`` is the true epsilon at the delta of the finding, None if it is not known, and
    ``mechanism`` the declared mechanism that was audited, None if it was a function.
    """
    outcome = outcome_at(finding, confidence_of_verdict)
    verdict = replace(finding, outcome=outcome, needed_runs=None)
    if finding.noise:
        verdict = judged(verdict, mechanism, confidence_of_verdict)
    delta, guesses = finding.delta, finding.guesses
    epsilon = claim.epsilon_at(delta)
    # With probability delta a run may reveal its value, whatever epsilon is.
    leaks = f" beside {delta:.4g} of the runs" if delta else ""
    allowed = f"{max_correct_probability(epsilon):.1%}{leaks}"
    return ReportRow(
        subject=subject,
        kind=kind,
        claim=(epsilon, delta),
        exact_epsilon=finite_or_none(exact),
        epsilon_lower=finding.epsilon_lower,
        confidence=finding.confidence,
        runs=finding.runs,
        outcome=verdict.outcome,
        expected=expected,
        witness=finding.witness,
        evidence=f"guess test: {guesses.share:.1%} right, the claim allows {allowed}",
        seconds=round(finding.seconds, 6),
        verdict_lower=finite_or_none(guesses.epsilon_lower(delta, confidence_of_verdict)),
        guesses=(guesses.correct, guesses.made, guesses.runs),
        curve=curve,
        unseen=finding.unseen,
        notes=finding.notes,
        noise=verdict.noise,
        needed_runs=verdict.needed_runs,
        not_tested=finding.not_tested,
    )


def _algorithm_row(
    subject: str,
    kind: str,
    result: AlgorithmAudit,
    expected: Outcome,
    settings: Settings,
    *,
    exact: float | None,
    seconds: float,
    facts: tuple[tuple[str, str], ...] = (),
    curve: ProfileCurve | None = None,
) -> ReportRow:
    """The row of an algorithm's replay; its witness says what refutes the claim, if anything."""
    delta = claimed_delta(result.claim)
    refutation = result.refutation(verdict_confidence())
    witness = (
        refutation or f"replay: {result.replayed.witness}; {result.losses.size} privacy losses"
    )
    return ReportRow(
        subject=subject,
        kind=kind,
        claim=(result.claim.epsilon_at(delta), delta),
        exact_epsilon=finite_or_none(exact),
        epsilon_lower=result.epsilon_lower(delta, settings.confidence),
        confidence=settings.confidence,
        runs=int(result.losses.size) or 1,  # where the replay failed, that is the one run
        outcome=Outcome.FALSIFIED if refutation else Outcome.SURVIVED,
        expected=expected,
        witness=witness,
        evidence=witness,
        seconds=round(seconds, 6),
        verdict_lower=result.epsilon_lower(delta, verdict_confidence()),
        facts=facts,
        curve=curve,
        not_tested=NOT_REPLAYED,
    )


def finite_or_none(x: float | None) -> float | None:
    """The number as JSON can hold it: None if it is infinite or NaN."""
    return float(x) if x is not None and np.isfinite(x) else None


def mechanism_curve(mechanism: Mechanism, settings: Settings) -> ProfileCurve:
    """The profile of a declared mechanism at its worst pair, up to a little beyond its claim.

    The samples come from its own sampler and density; their noise is separate from the audit's.
    """
    epsilons = np.linspace(0.0, 1.1 * _largest_epsilon(mechanism.loss), POINTS)
    # With the 1 this is another seed than the audit's, which is made of the same seed and a name.
    name = zlib.crc32(repr(mechanism).encode())
    rng = np.random.default_rng(np.random.SeedSequence([settings.seed, name, 1]))
    # The worst pair may depend on epsilon: a few pairs, each the worst at its own epsilon.
    drawn: dict[str, Array] = {}
    mean, lower, upper = np.zeros((3, POINTS))
    for group in np.array_split(np.arange(POINTS), PAIRS):
        pair = mechanism.worst_pair(float(epsilons[group].mean()))
        if repr(pair) not in drawn:
            drawn[repr(pair)] = sample_losses(mechanism, pair, rng)
        losses = drawn[repr(pair)]
        # delta(eps) is the mean of (1 - e^{eps - loss})_+ over outputs of the first value.
        terms = -np.expm1(np.minimum(epsilons[group] - losses[:, None], 0.0))
        mean[group] = terms.mean(axis=0)
        # Each epsilon has an equal share of the error: the band holds at all of them at once.
        lower[group], upper[group] = mean_confidence_band(terms, (1 - settings.confidence) / POINTS)
    return ProfileCurve(
        epsilon=_as_floats(epsilons),
        claimed=_as_floats(mechanism.loss.delta_at(float(e)) for e in epsilons),
        exact=_as_floats(exact(mechanism, float(e)) for e in epsilons),
        mean=_as_floats(mean),
        lower=_as_floats(lower),
        upper=_as_floats(upper),
    )


def profile_curve(result: AlgorithmAudit, confidence: float) -> ProfileCurve:
    """The empirical profile of an algorithm's privacy losses, and its accountant's curve.

    The sampled losses are weighted, so deltas below 1 / runs can be estimated too.
    """
    epsilons = np.linspace(0.0, _largest_epsilon(result.claim), LOSS_POINTS)
    shown = _as_floats(epsilons)
    claimed = _as_floats(Tight().delta(result.plan, epsilon) for epsilon in shown)
    if result.losses.size == 0:
        return ProfileCurve(shown, claimed, exact=(), mean=(), lower=(), upper=())
    mean, lower, upper = result.confidence_band(epsilons, confidence)
    return ProfileCurve(
        shown,
        claimed,
        exact=(),
        mean=_as_floats(mean),
        lower=_as_floats(lower),
        upper=_as_floats(upper),
    )


def sample_losses(mechanism: Mechanism, pair: tuple[Any, Any], rng: np.random.Generator) -> Array:
    """Privacy losses ``log p - log q`` of a mechanism's own releases of the first value."""
    value, neighbour = pair
    output = mechanism.release(value, rng, DRAWS)
    with np.errstate(invalid="ignore", divide="ignore"):
        losses: Array = mechanism.log_density(output, value) - mechanism.log_density(
            output, neighbour
        )
    return losses.reshape(-1)


def _largest_epsilon(claim: Loss) -> float:
    """The largest epsilon of a claim's figure: where its delta is least, or `FIGURE_DELTA`.

    The least delta is the probability of an infinite loss.  A claim of epsilon 0 is shown up to 1.
    """
    delta = max(claim.infinity, claim.reversed.infinity)
    has_end = np.isfinite(claim.pure) or delta > ROUNDED_DELTA
    epsilon = claim.epsilon_at(delta if has_end else FIGURE_DELTA)
    return float(min(epsilon, MAX_EPSILON)) or 1.0


def _as_floats(values: Any) -> tuple[float, ...]:
    return tuple(float(v) for v in values)
