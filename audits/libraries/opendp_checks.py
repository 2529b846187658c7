"""Checks of OpenDP: faults by the number of their issue, and exact samplers as sound controls.

OpenDP draws its own randomness, which no seed repeats.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from audits.attacks.floating_point import audit_bits
from audits.attacks.front import audit
from audits.attacks.sensitivity import audit_sensitivity
from audits.attacks.timing import audit_timing
from audits.claims.findings import Outcome
from audits.libraries.checks import (
    VERDICT_CONFIDENCE,
    CheckFunction,
    CheckResult,
    LibraryCheck,
    result_of_finding,
)
from audits.results.rows import Settings

dp: Any = importlib.import_module("opendp.prelude")
dp.enable_features("contrib")
# Lower bound of 1024 numbers whose squared deviations are summed.  The mean comes from the sum of
# the numbers, which is about 2^60, where floats are 256 apart.
LARGE_BOUND = 2.0**50
# Noise of (1, 1e-5): the least scale of the Gaussian mechanism of Balle & Wang (2018).
GAUSSIAN_SCALE = 3.7306317
MAX_RUNS = 20_000  # most runs of an audit, as a release takes a fifth of a millisecond
TIMED_PAIRS, ROUNDS = 500, 8  # pairs of releases that are timed in a round, and number of rounds


def vector_release(measurement: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """Many releases of one number, by a measurement of vectors with independent coordinates."""

    def release(value: Any, rng: np.random.Generator, size: int) -> Any:
        del rng
        return np.array(measurement([value] * size)) if size else np.empty(0)

    return release


def _check_with(
    kind: str, scale: float, claim: Any, audit_release: Callable[..., Any]
) -> CheckFunction:
    """The check that audits "laplace" or "gaussian" noise on 0 against 1 with one of the audits."""

    def run_check(settings: Settings, rng: np.random.Generator) -> CheckResult:
        metric = dp.l1_distance if kind == "laplace" else dp.l2_distance
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), metric(T=float)
        release = vector_release(getattr(dp.m, f"make_{kind}")(*space, scale=scale))
        runs = min(settings.samples, MAX_RUNS)
        finding = audit_release(
            release,
            pair=(0.0, 1.0),
            claim=claim,
            runs=runs,
            confidence=settings.confidence,
            rng=rng,
        )
        return result_of_finding(finding, claim)

    return run_check


def squared_deviations(settings: Settings, rng: np.random.Generator) -> CheckResult:
    """The sum of squared deviations: one record moves the rounded mean, and so every deviation."""
    from audits.claims.claims import Sensitivity

    size = 1024
    space = dp.vector_domain(
        dp.atom_domain(bounds=(LARGE_BOUND, LARGE_BOUND + 1), nan=False), size=size
    )
    query = dp.t.make_sum_of_squared_deviations(space, dp.symmetric_distance())
    data = np.full(size, LARGE_BOUND + 0.25)
    neighbour = data.copy()
    neighbour[0] = LARGE_BOUND + 0.5
    finding = audit_sensitivity(
        lambda data: query(data.tolist()),
        space=(data, neighbour),
        claim=Sensitivity(float(query.map(2))),  # a replaced record: one is removed, one is added
        runs=settings.samples,
        confidence=settings.confidence,
        rng=rng,
    )
    return CheckResult(finding.outcome is Outcome.FALSIFIED, finding.witness, runs=finding.runs)


def threshold_delta(settings: Settings, rng: np.random.Generator) -> CheckResult:
    """Counts by key above a threshold: how often a key that only one person holds is released."""
    del rng
    users = [str(i) for i in range(max(settings.samples, 10_000))]
    counts = dp.t.make_count_by(dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance())
    release = counts >> dp.m.then_laplace_threshold(scale=1.0, threshold=5)
    epsilon, delta = release.map(1)
    # A key is never released without its one person: delta is at least its chance of release.
    return compare_with_delta(len(release(users)), len(users), (float(epsilon), float(delta)))


def compare_with_delta(released: int, runs: int, claim: tuple[float, float]) -> CheckResult:
    """Test whether an event that the neighbour never shows is more likely than delta.

    The bound on its probability is exact (Clopper and Pearson).
    """
    from audits.statistics.binomial_bounds import clopper_pearson_lower

    delta_lower = float(
        clopper_pearson_lower(
            np.array(float(released)), np.array(float(runs)), 1 - VERDICT_CONFIDENCE
        )
    )
    counts = f"{released:,} of {runs:,} keys held by one person were released: delta is at least"
    return CheckResult(
        delta_lower > claim[1],
        f"{counts} {delta_lower:.3g}, {claim[1]:.3g} is claimed",
        runs=runs,
        claim=claim,
    )


def _bit_vector_check(pair: tuple[bytes, bytes]) -> CheckFunction:
    """The check of randomised response on the bits of two neighbouring vectors.

    Neighbours are any two vectors with at most one bit that is 1; each bit flips with a chance that
    follows from the parameter ``f``.
    """

    def run_check(settings: Settings, rng: np.random.Generator) -> CheckResult:
        measurement = dp.m.make_randomized_response_bitvec(
            dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=0.5
        )

        def release(value: bytes, rng: np.random.Generator) -> bytes:
            del rng
            return bytes(measurement(value))

        claim, runs = PureLoss(float(measurement.map(1))), min(settings.samples, 2000)
        finding = audit(release, pair, claim, runs, settings.confidence, rng=rng)
        return result_of_finding(finding, claim)

    return run_check


def integer_laplace_time(settings: Settings, rng: np.random.Generator) -> CheckResult:
    """Whether larger noise takes longer to draw, in several rounds for machines with other load."""
    from scipy.stats import chi2

    del settings
    measurement = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1e6)
    timings = [
        audit_timing(
            lambda value, source: measurement(value),
            (0, 1),
            pairs=TIMED_PAIRS,
            batch=1,
            confidence=VERDICT_CONFIDENCE,
            rng=rng,
        )
        for _ in range(ROUNDS)
    ]
    # Fisher (1925): if time does not depend on the noise, -2 sum ln p of independent tests is at
    # most chi squared, with two degrees of freedom for each test.
    p = float(
        chi2.sf(-2 * sum(np.log(max(timing.noise_p, 1e-300)) for timing in timings), 2 * ROUNDS)
    )
    correlation = float(np.median([timing.noise_correlation for timing in timings]))
    witness = f"rank correlation {correlation:.2f} of time and size of the noise, p = {p:.2g}"
    return CheckResult(p < 1 - VERDICT_CONFIDENCE, witness, runs=2 * TIMED_PAIRS * ROUNDS)


SEEN_VERSIONS = ("0.16.0",)  # in which the outcomes below were seen
PURE_CLAIM, APPROXIMATE_CLAIM = PureLoss(1.0), ApproxLoss(1.0, 1e-5)
CHECKS = [
    LibraryCheck(
        "opendp",
        "sum of squared deviations (#2923)",
        "sensitivity of the deterministic part",
        squared_deviations,
        faulty=SEEN_VERSIONS,
        reported="opendp/opendp#2923",
    ),
    LibraryCheck(
        "opendp",
        "Laplace threshold (#2922)",
        "delta of one-person keys",
        threshold_delta,
        faulty=SEEN_VERSIONS,
        reported="opendp/opendp#2922",
    ),
    LibraryCheck(
        "opendp",
        "bit vector, last bit (#2707)",
        "one bit of the vector never flips",
        _bit_vector_check((b"\x80", b"\x00")),
        faulty=("0.14.2",),
        fixed_since=SEEN_VERSIONS,
        reported="opendp/opendp#2707",
    ),
    LibraryCheck(
        "opendp",
        "bit vector, length (#2930)",
        "the length of the output",
        _bit_vector_check((b"\x01", b"\x01\x00")),
        faulty=SEEN_VERSIONS,
        reported="opendp/opendp#2930",
    ),
    LibraryCheck(
        "opendp",
        "integer Laplace, time",
        "time against the size of the noise",
        integer_laplace_time,
        faulty=SEEN_VERSIONS,
    ),
    LibraryCheck(
        "opendp",
        "Laplace, values",
        "guesses of its releases",
        _check_with("laplace", 1.0, PURE_CLAIM, audit),
    ),
    LibraryCheck(
        "opendp",
        "Laplace, bits",
        "low-order bits",
        _check_with("laplace", 1.0, PURE_CLAIM, audit_bits),
    ),
    LibraryCheck(
        "opendp",
        "Gaussian, values",
        "guesses of its releases",
        _check_with("gaussian", GAUSSIAN_SCALE, APPROXIMATE_CLAIM, audit),
    ),
    LibraryCheck(
        "opendp",
        "Gaussian, bits",
        "low-order bits",
        _check_with("gaussian", GAUSSIAN_SCALE, APPROXIMATE_CLAIM, audit_bits),
    ),
]
