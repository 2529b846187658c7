"""numpy's noise added to a float: the textbook sampler, whose low-order bits give it away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from audits.attacks.floating_point import audit_bits
from audits.attacks.front import audit
from audits.libraries.checks import Check, Look, Seen, guessed
from audits.results.rows import Settings

ONE = PureLoss(1.0)
GAUSSIAN = 3.7306317  # calibrated to (1, 1e-5), Balle & Wang (2018)
ALWAYS = (np.__version__,)


def laplace(value: float, rng: np.random.Generator, size: int) -> Any:
    """Laplace noise of scale 1 on one number."""
    return value + rng.laplace(size=size)


def gaussian(value: float, rng: np.random.Generator, size: int) -> Any:
    """Gaussian noise for (1, 1e-5) on one number."""
    return value + rng.normal(scale=GAUSSIAN, size=size)


def _bits(release: Callable[..., Any], claim: Loss) -> Look:
    def look(settings: Settings, rng: np.random.Generator) -> Seen:
        runs, level = settings.samples, settings.confidence
        return guessed(audit_bits(release, (0.0, 1.0), claim, runs, level, rng=rng), claim)

    return look


def _guesses(release: Callable[..., Any], claim: Loss) -> Look:
    def look(settings: Settings, rng: np.random.Generator) -> Seen:
        runs, level = settings.samples, settings.confidence
        return guessed(audit(release, (0.0, 1.0), claim, runs, level, rng=rng), claim)

    return look


CHECKS = [
    Check("numpy", "Laplace on a float, bits", "low-order bits", _bits(laplace, ONE), ALWAYS),
    Check("numpy", "Gaussian on a float, bits", "low-order bits",
          _bits(gaussian, ApproxLoss(1.0, 1e-5)), ALWAYS),
    Check("numpy", "Laplace on a float, as a real number", "its values", _guesses(laplace, ONE)),
]  # fmt: skip
