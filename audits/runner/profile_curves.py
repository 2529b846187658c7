"""Profiles as points of a figure: claimed, exact, and of samples with their band."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from accountant.accountants.tight import Tight
from accountant.losses.loss import Loss
from accountant.numerics import Array
from audits.algorithm_runs.loss_profile import AlgorithmAudit
from audits.known_densities.hockey_stick import exact
from audits.results.rows import ProfileCurve, Settings
from audits.statistics.binomial_bounds import mean_confidence_band
from mechanisms.base.mechanism import Mechanism

POINTS, PAIRS, DRAWS = 17, 5, 20_000


def mechanism_curve(mechanism: Mechanism, settings: Settings) -> ProfileCurve:
    """The profile of a declared mechanism at its worst pair, up to a little beyond its claim.

    The samples come from its own sampler and density; their noise is separate from the audit's.
    """
    epsilons = np.linspace(0.0, 1.1 * _greatest_epsilon(mechanism.loss), POINTS)
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
        sticks = -np.expm1(np.minimum(epsilons[group] - losses[:, None], 0.0))
        mean[group] = sticks.mean(axis=0)
        lower[group], upper[group] = mean_confidence_band(
            sticks, (1 - settings.confidence) / POINTS
        )
    return ProfileCurve(
        *map(_as_floats, (epsilons, [mechanism.loss.delta_at(float(e)) for e in epsilons],
                      [exact(mechanism, float(e)) for e in epsilons], mean, lower, upper))
    )  # fmt: skip


def profile_curve(result: AlgorithmAudit, confidence: float) -> ProfileCurve:
    """The empirical profile of an algorithm's privacy losses, and its accountant's curve.

    The losses are weighted, so the profile reaches below one over the number of runs.
    """
    epsilons = np.linspace(0.0, _greatest_epsilon(result.claim), 41)
    curve = [Tight().delta(result.plan, float(e)) for e in epsilons]
    if result.losses.size == 0:
        return ProfileCurve(_as_floats(epsilons), _as_floats(curve), (), (), (), ())
    mean, lower, upper = result.confidence_band(epsilons, confidence)
    return ProfileCurve(
        _as_floats(epsilons), _as_floats(curve), (), *map(_as_floats, (mean, lower, upper))
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


def _greatest_epsilon(claim: Loss) -> float:
    delta = max(claim.infinity, claim.reversed.infinity)
    top = claim.epsilon_at(delta if np.isfinite(claim.pure) or delta > 1e-12 else 1e-5)
    return float(min(top, 20.0)) or 1.0


def _as_floats(values: Any) -> tuple[float, ...]:
    return tuple(float(v) for v in values)
