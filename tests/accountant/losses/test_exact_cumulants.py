"""Of every family with exact cumulants, ratios on a contour are those of its cumulants."""

import math

import numpy as np
import pytest

from accountant import GaussianLoss, LaplaceLoss, MixtureOfGaussians, PairLoss, PoissonSampled
from accountant.losses.loss import exact_cgf
from accountant.losses.upper_envelope import UpperEnvelope
from accountant.numerics.ordered_sums import sum_with_errors

FAMILIES = {
    "Gaussian": [GaussianLoss(0.5), GaussianLoss(0.3)],
    "Laplace": [LaplaceLoss(0.4), LaplaceLoss(0.1)],
    "pair": [PairLoss((0.6, 0.4), (0.5, 0.5)), PairLoss((0.3, 0.7), (0.4, 0.6))],
    "sampled Gaussian": [
        PoissonSampled(GaussianLoss(1.0), 0.1),
        PoissonSampled(GaussianLoss(0.7), 0.2),
    ],
    "mixture": [MixtureOfGaussians(1.0, [0.0, 1.0], [0.9, 0.1])],
    "bound on many pairs": [
        UpperEnvelope(GaussianLoss(0.5), GaussianLoss(0.4)),
        UpperEnvelope(LaplaceLoss(0.3), LaplaceLoss(0.2)),
    ],
}


@pytest.mark.parametrize("name", FAMILIES)
def test_ratios_on_a_contour_are_those_of_the_cumulants(name):
    losses, counts = FAMILIES[name], np.array([3.0, 2.0])[: len(FAMILIES[name])]
    cgf = exact_cgf(losses[0])
    members = cgf.prepared(losses)
    z = 2.5 + 0.3j * np.arange(12.0).reshape(3, 4)
    ratio, error = cgf.cf_ratios(members, counts, z)
    value, value_error = cgf.sum_cgf(members, counts, z.ravel())
    height, height_error = cgf.sum_cgf(members, counts, z.ravel()[:1])
    expected = np.exp(value - height[0]).reshape(z.shape)
    slack = np.exp(np.max(value_error) + np.max(height_error)) - 1
    assert np.all(np.abs(ratio - expected) <= error + slack + 1e-12)
    assert np.max(np.abs(ratio)) <= 1 + 1e-12
    assert ratio[0, 0] == pytest.approx(1.0)
    assert np.abs(ratio[-1, -1]) < 0.99


@pytest.mark.parametrize("factor", [1.0, 1j])
def test_a_sum_of_many_cumulants_counts_its_own_round_off(factor):
    terms, counts = [(np.array([0.1 * factor]), np.zeros(1))] * 3000, np.full(3000, 3.0)
    total, error = sum_with_errors(terms, counts, np.array([factor]))
    round_off = abs(total[0] / factor - math.fsum([0.1] * 9000))
    assert 1e-11 < round_off <= error[0] < 1e-9
