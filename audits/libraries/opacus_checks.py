"""Checks of Opacus: its accountants' epsilon against a certified lower bound of the same training.

The training is DP-SGD of `STEPS` steps that sample each record with probability `RATE`, with
Gaussian noise of `NOISE` times the clipping norm.  An upper bound below the certified lower bound
is wrong.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.plans.plan import Repeat
from audits.libraries.checks import (
    DELTA,
    CheckFunction,
    CheckResult,
    LibraryCheck,
    compare_with_certified,
)
from audits.results.rows import Settings
from mechanisms.gaussian import Gaussian

library: Any = importlib.import_module("opacus.accountants")
NOISE, RATE, STEPS = 0.8, 0.004, 1500


def _check_against(name: str) -> CheckFunction:
    """The check of the epsilon that the accountant of this class gives at delta 1e-5."""

    def run_check(settings: Settings, rng: np.random.Generator) -> CheckResult:
        del settings, rng
        accountant = getattr(library, name)()
        accountant.history = [(NOISE, RATE, STEPS)]  # what its ``step`` would have recorded
        plan = Repeat(PoissonSampled(Gaussian(NOISE), RATE), STEPS)
        return compare_with_certified(float(accountant.get_epsilon(DELTA)), plan, name)

    return run_check


CHECKS = [
    LibraryCheck(
        "opacus",
        "GaussianAccountant",
        "its bound against a certified one",
        _check_against("GaussianAccountant"),
        faulty=("1.5.4",),
        reported="meta-pytorch/opacus#400",
    ),
    LibraryCheck(
        "opacus",
        "RDPAccountant",
        "its bound against a certified one",
        _check_against("RDPAccountant"),
    ),
    LibraryCheck(
        "opacus",
        "PRVAccountant",
        "its bound against a certified one",
        _check_against("PRVAccountant"),
    ),
]
