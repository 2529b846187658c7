"""OpenDP: faults by issue number, and its exact samplers as sound controls.

It draws its own randomness, which no seed repeats.
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
from audits.libraries.checks import VERDICT, Check, Look, Seen, guessed
from audits.results.rows import Settings

dp: Any = importlib.import_module("opendp.prelude")
dp.enable_features("contrib")
BIG = 2.0**50
MOST = 20_000  # a release takes a fifth of a millisecond
TIMED, ROUNDS = 500, 8  # pairs of releases that are timed, and how often


def many(one: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """A measurement of vectors as releases of one number: independent noise a coordinate."""

    def release(value: Any, rng: np.random.Generator, size: int) -> Any:
        del rng
        return np.array(one([value] * size)) if size else np.empty(0)

    return release


def _vectors(kind: str, scale: float) -> Callable[..., Any]:
    metric = dp.l1_distance if kind == "laplace" else dp.l2_distance
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), metric(T=float)
    return many(getattr(dp.m, f"make_{kind}")(*space, scale=scale))


def _looked(kind: str, scale: float, claim: Any, by: Callable[..., Any]) -> Look:
    def look(settings: Settings, rng: np.random.Generator) -> Seen:
        release = _vectors(kind, scale)
        runs = min(settings.samples, MOST)
        return guessed(by(release, (0.0, 1.0), claim, runs, settings.confidence, rng=rng), claim)

    return look


def squared_deviations(settings: Settings, rng: np.random.Generator) -> Seen:
    """One record moves the rounded mean, and with it every deviation."""
    from audits.claims.claims import Sensitivity

    size = 1024
    space = dp.vector_domain(dp.atom_domain(bounds=(BIG, BIG + 1), nan=False), size=size)
    query = dp.t.make_sum_of_squared_deviations(space, dp.symmetric_distance())
    first = np.full(size, BIG + 0.25)
    second = first.copy()
    second[0] = BIG + 0.5
    finding = audit_sensitivity(
        lambda data: query(data.tolist()), (first, second), Sensitivity(float(query.map(2))),
        settings.samples, settings.confidence, rng,
    )  # fmt: skip
    return Seen(finding.outcome.name == "FALSIFIED", finding.witness, runs=finding.runs)


def threshold_delta(settings: Settings, rng: np.random.Generator) -> Seen:
    """A key that one person alone holds is released more often than delta says."""
    del rng
    users = [str(i) for i in range(max(settings.samples, 10_000))]
    counts = dp.t.make_count_by(dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance())
    release = counts >> dp.m.then_laplace_threshold(scale=1.0, threshold=5)
    epsilon, delta = release.map(1)
    # without its one person a key is never released: its chance is delta at least
    return above(len(release(users)), len(users), (float(epsilon), float(delta)))


def above(seen: int, runs: int, claim: tuple[float, float]) -> Seen:
    """Whether an event that the neighbour never shows is too frequent for delta; exact."""
    from audits.statistics.binomial_bounds import success_lower

    least = float(success_lower(np.array(float(seen)), np.array(float(runs)), 1 - VERDICT))
    words = f"{seen:,} of {runs:,} keys held by one person were released: delta is at least"
    return Seen(least > claim[1], f"{words} {least:.3g}, {claim[1]:.3g} is claimed", None, runs,
                claim)  # fmt: skip


def _bit_vector(f: float, weight: int) -> tuple[Callable[..., Any], PureLoss]:
    made = dp.m.make_randomized_response_bitvec(
        dp.bitvector_domain(max_weight=weight), dp.discrete_distance(), f=f
    )

    def release(value: bytes, rng: np.random.Generator) -> bytes:
        del rng
        return bytes(made(value))

    return release, PureLoss(float(made.map(1)))


def _bits_of(pair: tuple[bytes, bytes]) -> Look:
    def look(settings: Settings, rng: np.random.Generator) -> Seen:
        release, claim = _bit_vector(0.5, 1)
        runs = min(settings.samples, 2000)
        return guessed(audit(release, pair, claim, runs, settings.confidence, rng=rng), claim)

    return look


def integer_laplace_time(settings: Settings, rng: np.random.Generator) -> Seen:
    """Larger noise takes longer to draw; rounds of their own, for machines that are busy."""
    from scipy.stats import chi2

    del settings
    made = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1e6)
    found = [
        audit_timing(lambda value, source: made(value), (0, 1), TIMED, 1, VERDICT, rng)
        for _ in range(ROUNDS)
    ]
    # Fisher (1925): -2 sum ln p of independent tests is chi squared at most
    p = float(chi2.sf(-2 * sum(np.log(max(one.noise_p, 1e-300)) for one in found), 2 * ROUNDS))
    correlation = float(np.median([one.noise_correlation for one in found]))
    words = f"rank correlation {correlation:.2f} of time and size of the noise, p = {p:.2g}"
    return Seen(p < 1 - VERDICT, words, runs=4 * TIMED * ROUNDS)


NOW = ("0.16.0",)
ONE, TWO = PureLoss(1.0), ApproxLoss(1.0, 1e-5)
CHECKS = [
    Check("opendp", "sum of squared deviations (#2923)", "sensitivity of the deterministic part",
          squared_deviations, NOW),
    Check("opendp", "Laplace threshold (#2922)", "delta of one-person keys", threshold_delta, NOW),
    Check("opendp", "bit vector, last bit (#2707)", "one bit of the vector never flips",
          _bits_of((b"\x80", b"\x00")), ("0.14.2",), NOW),
    Check("opendp", "bit vector, length (#2930)", "the length of the output",
          _bits_of((b"\x01", b"\x01\x00")), NOW),
    Check("opendp", "integer Laplace, time", "time against the size of the noise",
          integer_laplace_time, NOW),
    Check("opendp", "Laplace, values", "guesses of its releases",
          _looked("laplace", 1.0, ONE, audit)),
    Check("opendp", "Laplace, bits", "low-order bits", _looked("laplace", 1.0, ONE, audit_bits)),
    Check("opendp", "Gaussian, values", "guesses of its releases",
          _looked("gaussian", 3.7306317, TWO, audit)),
    Check("opendp", "Gaussian, bits", "low-order bits",
          _looked("gaussian", 3.7306317, TWO, audit_bits)),
]  # fmt: skip
