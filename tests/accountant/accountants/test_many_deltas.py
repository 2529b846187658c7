"""Many deltas at once say what Tight says of each."""

import pytest

from accountant import (
    ApproxLoss,
    GaussianLoss,
    PoissonSampled,
    PureLoss,
    Sequential,
    Tight,
    ZCDPLoss,
)
from mechanisms import Gaussian, Laplace, NoisyMax

PLANS = {
    "laplace": 64 * Laplace(scale=20.0),
    "gaussians": 12 * Gaussian(scale=15.0) + 3 * Gaussian(scale=30.0),
    "mixed": 8 * Laplace(scale=20.0) + 6 * Gaussian(scale=15.0) + NoisyMax(scale=9.0),
    "sampled": 500 * PoissonSampled(GaussianLoss(1.0), 0.01),
    "single": Sequential([GaussianLoss(0.3)]),
    "pure": 30 * PureLoss(0.02),
    "atoms": 5 * PureLoss(0.1) + 5 * ApproxLoss(0.1, 1e-9),
    "rho": 20 * ZCDPLoss(0.01),
}


@pytest.mark.parametrize("name", PLANS)
def test_many_deltas_at_once_say_what_tight_says(name):
    plan, deltas = PLANS[name], [0.0, 1e-12, 3e-10, 1e-8, 1e-6, 1e-5, 1e-3]
    for delta, found in zip(deltas, Tight().epsilons(plan, deltas), strict=True):
        lower, upper = Tight().bracket(plan, delta)
        assert found == upper or lower * (1 - 1e-12) <= found <= upper * (1 + 3e-4)
