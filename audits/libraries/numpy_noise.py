"""numpy's noise added to a float: the textbook sampler, which its low-order bits reveal.

Reference: Mironov (2012).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from audits.attacks.floating_point import audit_bits
from audits.attacks.front import audit
from audits.claims.findings import Finding
from audits.libraries.checks import CheckFunction, CheckResult, LibraryCheck, result_of_finding
from audits.results.rows import Settings

PURE_CLAIM = PureLoss(1.0)
GAUSSIAN_SCALE = 3.7306317  # calibrated to (1, 1e-5), Balle & Wang (2018)
FAULTY_VERSIONS = (np.__version__,)
KNOWN_SINCE = "Mironov (2012); numpy promises no privacy"


def laplace(value: float, rng: np.random.Generator, size: int) -> Any:
    """Laplace noise of scale 1 on one number."""
    return value + rng.laplace(size=size)


def gaussian(value: float, rng: np.random.Generator, size: int) -> Any:
    """Gaussian noise for (1, 1e-5) on one number."""
    return value + rng.normal(scale=GAUSSIAN_SCALE, size=size)


def _check_with(
    release: Callable[..., Any], claim: Loss, by: Callable[..., Finding]
) -> CheckFunction:
    def run_check(settings: Settings, rng: np.random.Generator) -> CheckResult:
        finding = by(release, (0.0, 1.0), claim, settings.samples, settings.confidence, rng=rng)
        return result_of_finding(finding, claim)

    return run_check


CHECKS = [
    LibraryCheck(
        "numpy",
        "Laplace on a float, bits",
        "low-order bits",
        _check_with(laplace, PURE_CLAIM, audit_bits),
        FAULTY_VERSIONS,
        reported=KNOWN_SINCE,
    ),
    LibraryCheck(
        "numpy",
        "Gaussian on a float, bits",
        "low-order bits",
        _check_with(gaussian, ApproxLoss(1.0, 1e-5), audit_bits),
        FAULTY_VERSIONS,
        reported=KNOWN_SINCE,
    ),
    LibraryCheck(
        "numpy",
        "Laplace on a float, as a real number",
        "its values",
        _check_with(laplace, PURE_CLAIM, audit),
    ),
]
