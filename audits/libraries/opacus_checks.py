"""Opacus accountants against certified lower bounds on the same training."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.plans.plan import Repeat
from audits.libraries.checks import DELTA, Check, Look, Seen, below_truth
from audits.results.rows import Settings
from mechanisms.gaussian import Gaussian

library: Any = importlib.import_module("opacus.accountants")
NOISE, RATE, STEPS = 0.8, 0.004, 1500


def _against(name: str) -> Look:
    def look(settings: Settings, rng: np.random.Generator) -> Seen:
        del settings, rng
        accountant = getattr(library, name)()
        accountant.history = [(NOISE, RATE, STEPS)]
        plan = Repeat(PoissonSampled(Gaussian(NOISE), RATE), STEPS)
        return below_truth(float(accountant.get_epsilon(DELTA)), plan, name)

    return look


CHECKS = [
    Check("opacus", "GaussianAccountant", "its bound against a certified one",
          _against("GaussianAccountant"), ("1.5.4",)),
    Check("opacus", "RDPAccountant", "its bound against a certified one",
          _against("RDPAccountant")),
    Check("opacus", "PRVAccountant", "its bound against a certified one",
          _against("PRVAccountant")),
]  # fmt: skip
