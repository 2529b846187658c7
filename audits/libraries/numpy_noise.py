"""Checks of numpy's noise added to a float, the textbook sampler.

The low-order bits of the sum reveal the number under the noise, so a claim of privacy is false for
the floats that are released, though it holds for sums of real numbers.

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
# The standard deviation for epsilon 1 and delta 1e-5 at sensitivity 1, after Balle & Wang (2018).
GAUSSIAN_SCALE = 3.7306317
# The installed version is expected to fail, whichever it is.
FAULTY_VERSIONS = (np.__version__,)
KNOWN_SINCE = "Mironov (2012); numpy promises no privacy"


def laplace(value: float, rng: np.random.Generator, size: int) -> Any:
    """Draws of one number plus Laplace noise of scale 1."""
    return value + rng.laplace(size=size)


def gaussian(value: float, rng: np.random.Generator, size: int) -> Any:
    """Draws of one number plus Gaussian noise for epsilon 1 and delta 1e-5."""
    return value + rng.normal(scale=GAUSSIAN_SCALE, size=size)


def _check_with(
    release: Callable[..., Any], claim: Loss, audit_release: Callable[..., Finding]
) -> CheckFunction:
    """The check that audits a release of 0 against 1 with one of the two audits."""

    def run_check(settings: Settings, rng: np.random.Generator) -> CheckResult:
        finding = audit_release(
            release,
            pair=(0.0, 1.0),
            claim=claim,
            runs=settings.samples,
            confidence=settings.confidence,
            rng=rng,
        )
        return result_of_finding(finding, claim)

    return run_check


CHECKS = [
    LibraryCheck(
        "numpy",
        "Laplace on a float, bits",
        "low-order bits",
        _check_with(laplace, PURE_CLAIM, audit_bits),
        faulty=FAULTY_VERSIONS,
        reported=KNOWN_SINCE,
    ),
    LibraryCheck(
        "numpy",
        "Gaussian on a float, bits",
        "low-order bits",
        _check_with(gaussian, ApproxLoss(1.0, 1e-5), audit_bits),
        faulty=FAULTY_VERSIONS,
        reported=KNOWN_SINCE,
    ),
    LibraryCheck(
        "numpy",
        "Laplace on a float, as a real number",
        "its values",
        _check_with(laplace, PURE_CLAIM, audit),
    ),
]
