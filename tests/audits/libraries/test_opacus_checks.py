"""The checks of Opacus on stand-ins of its accountants: bounds below the truth are false."""

import importlib
import math
import sys
import types

import numpy as np
import pytest

from accountant import GaussianLoss, PoissonSampled, Tight
from audits.claims.findings import Outcome
from audits.libraries.checks import check_row
from audits.results.rows import Settings

MODULE = "audits.libraries.opacus_checks"
ACCOUNTANTS = ["GaussianAccountant", "RDPAccountant", "PRVAccountant"]


def checks_of(share, patch):
    """The checks, by name, of accountants that report a share of the true epsilon."""

    class Accountant:
        def get_epsilon(self, delta):
            [(noise, rate, steps)] = self.history
            return share * Tight().epsilon(
                steps * PoissonSampled(GaussianLoss(1 / noise), rate), delta
            )

    made = types.ModuleType("opacus.accountants")
    vars(made).update(dict.fromkeys(ACCOUNTANTS, Accountant))
    patch.setitem(sys.modules, "opacus", types.ModuleType("opacus"))
    patch.setitem(sys.modules, "opacus.accountants", made)
    patch.delitem(sys.modules, MODULE, raising=False)
    module = importlib.import_module(MODULE)
    patch.delitem(sys.modules, MODULE)
    return {check.name: check for check in module.CHECKS}


@pytest.mark.parametrize(
    ("share", "is_false"), [(1.0, False), (1.5, False), (0.999, True), (math.nan, True)]
)
@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_a_bound_below_the_truth_is_false(name, share, is_false, monkeypatch):
    checks = checks_of(share, monkeypatch)
    assert list(checks) == ACCOUNTANTS
    check = checks[name]
    outcome = Outcome.FALSIFIED if is_false else Outcome.SURVIVED
    settings = Settings(1000, 0.95, 7)
    row = check_row(check, name, outcome, settings, np.random.default_rng(7))
    assert row.outcome is outcome, row
    assert row.claim == pytest.approx((share * row.exact_epsilon, 1e-5), nan_ok=True)
    assert f"{name} says {row.claim[0]:.7g}, the truth is in" in row.witness
    known = name == "GaussianAccountant"
    assert check.library == "opacus"
    assert check.expected("1.5.4") is (Outcome.FALSIFIED if known else Outcome.SURVIVED)
