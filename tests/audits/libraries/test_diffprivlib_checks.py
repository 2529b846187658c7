"""The checks of diffprivlib on stand-ins: one library with its faults, and one without them."""

import importlib
import sys
import threading
import types

import numpy as np
import pytest

from audits.claims.findings import Outcome
from audits.libraries.checks import check_row
from audits.results.rows import Settings


class BudgetError(ValueError):
    """What a spent budget raises."""


def library(faulty):
    """The few classes of diffprivlib that the checks use; their bounds and claims are heeded."""
    rng = np.random.default_rng(3)
    scale_of_grid = 2.0**-8  # sound noise lies on a grid, which tells nothing of low-order bits

    class Noise:
        def __init__(self, epsilon=1.0, sensitivity=1.0, delta=0.0, lower=-np.inf, upper=np.inf):
            self.scale, self.ends = sensitivity / epsilon, (lower, upper)
            self.grid = 0.0 if faulty and lower == -np.inf else scale_of_grid

        def randomise(self, value):
            noisy = value + rng.laplace(scale=self.scale) if self.scale else value
            return float(np.clip(self.grid * round(noisy / self.grid) if self.grid else noisy,
                                 *self.ends))  # fmt: skip

    class BudgetAccountant:
        def __init__(self, epsilon=np.inf, delta=1.0):
            self.budget, self.spent_budget, self.lock = epsilon, [], threading.Lock()

        def spend(self, epsilon, delta):
            with self.lock:
                spent = sum(e for e, _ in self.spent_budget)
                if not faulty and spent + epsilon > self.budget + 1e-9:
                    raise BudgetError
                self.spent_budget.append((epsilon, delta))

    class LinearRegression:
        def __init__(self, epsilon, bounds_X, bounds_y, fit_intercept, accountant):
            assert isinstance(accountant, BudgetAccountant)
            assert not fit_intercept
            low, high = bounds_X
            assert (low, bounds_y) == (0.0, (0.0, 1.0))
            # the fault: squares are taken to move by the distance of the bound from its square
            self.noise = Noise(epsilon, high**2 - high if faulty else high**2)

        def fit(self, X, y):
            assert (X.shape, y.shape) == ((50, 1), (50,))
            self._obj_coefs = 0.0, None, [[None]]
            square = float(np.einsum("ij,ik", X, X)[0, 0])
            self._obj_coefs = 0.0, None, np.array([[self.noise.randomise(square)]])
            return self

    def noisy_sum(array, epsilon, bounds, accountant):
        low, high = bounds
        assert isinstance(accountant, BudgetAccountant)
        assert np.all((low <= array) & (array <= high))
        exact = float(np.sum(array) if faulty else np.sum(array - low) + low * array.size)
        # the smallest grid of floats of this size is 256: the sound one has noise for it
        return Noise(epsilon, high - low if faulty else 512.0).randomise(exact)

    made = types.ModuleType("diffprivlib")
    made.mechanisms = types.SimpleNamespace(Laplace=Noise, GaussianAnalytic=Noise, Snapping=Noise)
    made.models = types.SimpleNamespace(LinearRegression=LinearRegression)
    made.tools = types.SimpleNamespace(sum=noisy_sum)
    made.utils = types.SimpleNamespace(BudgetError=BudgetError)
    made.BudgetAccountant = BudgetAccountant
    return made


MODULE = "audits.libraries.diffprivlib_checks"
FAULTS = {
    "Laplace, bits", "GaussianAnalytic, bits", "LinearRegression, bounds (0, 1)",
    "tools.sum, large bounds", "accountant, 8 threads",
}  # fmt: skip
CONTROLS = {"Snapping, values", "Snapping, bits"}


def checks_of(faulty, patch):
    """The checks, by name, of a module that imported a stand-in; it does not stay imported."""
    patch.setitem(sys.modules, "diffprivlib", library(faulty))
    patch.delitem(sys.modules, MODULE, raising=False)
    module = importlib.import_module(MODULE)
    patch.delitem(sys.modules, MODULE)
    patch.setattr(module, "ATTEMPTS", 2)
    return {check.name: check for check in module.CHECKS}


@pytest.mark.parametrize("faulty", [True, False])
@pytest.mark.parametrize("name", sorted(FAULTS | CONTROLS))
def test_a_check_finds_its_fault_and_nothing_where_there_is_none(name, faulty, monkeypatch):
    checks = checks_of(faulty, monkeypatch)
    assert set(checks) == FAULTS | CONTROLS
    expected = checks[name].expected("0.6.6" if faulty else "0")
    row = check_row(checks[name], name, expected, Settings(1500, 0.95, 7), np.random.default_rng(7))
    falls = faulty and name in FAULTS
    assert row.outcome is (Outcome.FALSIFIED if falls else Outcome.SURVIVED), row
    assert row.as_expected
    if name == "accountant, 8 threads":
        spent = 0.1 * 20 * 8 if faulty else 1.0
        assert f"8 threads spent {spent:.4g} of a budget of 1" in row.witness
    if name == "tools.sum, large bounds":
        assert "one record moves the sum by 256 of 1" in row.witness
        assert "e+" not in row.witness  # what is released is about 0, and not about 2^60
