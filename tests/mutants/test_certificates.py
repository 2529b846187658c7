"""Wrong certificates, each caught by a truth that does not lie in it."""

import math

import numpy as np
import pytest

from accountant import (
    ApproxLoss,
    GaussianLoss,
    LaplaceLoss,
    PoissonSampled,
    PureLoss,
    Sequential,
    Tight,
)
from accountant.composition.certified_composition import CertifiedComposition
from accountant.composition.cgf import PlanCGF
from accountant.composition.contour import Contour
from accountant.composition.saddlepoint import AliasingBound
from accountant.numerics.exponential_sums import complex_power

SCALES = np.linspace(50, 150, 50)
MIXED = Sequential(
    [10 * LaplaceLoss(1 / s) for s in SCALES] + [10 * GaussianLoss(1 / s) for s in SCALES]
)
DP_SGD = 15_000 * PoissonSampled(GaussianLoss(1 / 0.8), 0.004)
# truths: tests/references/truth.json
TRUTHS = [
    (MIXED, 1e-6, 1.60676542832806054),
    (64 * LaplaceLoss(1 / 20), 1e-6, 1.70036092537116301),
    (10_000 * LaplaceLoss(0.01), 1e-6, 4.87625757940063966),
    (DP_SGD, 1e-5, 4.37947436007037055),
    (DP_SGD.reversed, 1e-5, 4.37947436007037055),
    (40 * ApproxLoss(0.1, 1e-8) + GaussianLoss(0.3), 4.1e-7, None),
]


def holds():
    """Whether every truth lies in its certificate."""
    for plan, delta, truth in TRUTHS:
        found = Tight().certify(plan, delta)
        slack = 0.0
        if truth is None:  # almost all of delta is spent on the mass at infinity
            mass = -math.expm1(40 * math.log1p(-1e-8))
            rest = 40 * PureLoss(0.1) + GaussianLoss(0.3)
            truth, slack = Tight().epsilon(rest, (delta - mass) / (1 - mass)), 1e-6
        if not found.lower * (1 - slack) <= truth <= found.upper * (1 + slack):
            return False
    return True


def aliases_forgotten(patch):
    made = AliasingBound.__init__

    def short(self, *given):
        made(self, *given)
        self.period /= 3

    patch.setattr(AliasingBound, "__init__", short)
    patch.setattr(AliasingBound, "log_bound", lambda self, epsilon: -math.inf)


def cut_off_too_early(patch):
    reach = Contour._find_cutoff
    patch.setattr(Contour, "_find_cutoff", lambda self, epsilon: reach(self, epsilon) / 6)
    patch.setattr(PlanCGF, "log_cf_bound", lambda self, a, u: np.full(u.shape, -80.0))


def smoothing_not_taken_off(patch):
    made = Contour.integrate

    def forgets(self):
        made(self)
        self._density = None

    patch.setattr(Contour, "integrate", forgets)


def smoothing_taken_off_the_upper_end(patch):
    bounds = Contour.bounds

    def wrong(self, epsilon):
        low, high = bounds(self, epsilon)
        return low, low if self.smoothing else high

    patch.setattr(Contour, "bounds", wrong)


def count_off_by_one(patch):
    patch.setattr(
        "accountant.losses.laplace_cgf.complex_power",
        lambda base, count: complex_power(base, count - 1),
    )


def one_direction(patch):
    patch.setattr("accountant.accountants.tight.directions", lambda plan: (plan,))


def mass_at_infinity_forgotten(patch):
    made = CertifiedComposition.__init__

    def forgets(self, *given):
        made(self, *given)
        self.infinity = 0.0

    patch.setattr(CertifiedComposition, "__init__", forgets)


def laplace_without_its_slope(patch):
    def atoms_only(shift, z):
        value = np.log(0.5 * np.exp(z * shift) + 0.5 * np.exp(-(z + 1) * shift))
        return value, np.zeros(value.shape)

    patch.setattr("accountant.losses.laplace_cgf._laplace_cgf", atoms_only)


def sampled_rate_doubled(patch):
    made = PoissonSampled.sampled_gaussian.fget
    doubled = property(lambda self: replaced(made(self)))
    patch.setattr(PoissonSampled, "sampled_gaussian", doubled)


def replaced(sampled):
    return type(sampled)(sampled.mu, sampled.rate * 1.01, sampled.record_added)


MUTANTS = [
    aliases_forgotten, cut_off_too_early, smoothing_not_taken_off, count_off_by_one,
    smoothing_taken_off_the_upper_end, one_direction, mass_at_infinity_forgotten,
    laplace_without_its_slope, sampled_rate_doubled,
]  # fmt: skip


def test_the_right_certificates_hold():
    assert holds()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_truth_catches_the_certificate(mutant, monkeypatch):
    mutant(monkeypatch)
    assert not holds()
