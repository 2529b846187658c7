"""Trade-off curves against their closed forms."""

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from accountant import GaussianLoss, PairLoss, PureLoss, tradeoff

LEVELS = np.array([[0.0, 0.01, 0.2], [0.5, 0.9, 1.0]])


@pytest.mark.parametrize(
    ("plan", "truth"),
    [
        (PureLoss(1.0), lambda a: np.maximum.reduce([0 * a, 1 - math.e * a, (1 - a) / math.e])),
        (GaussianLoss(0.8), lambda a: ndtr(-ndtri(a) - 0.8)),
        # the worse of both directions of a pair: in each, the better of two events
        (PairLoss((0.9, 0.1), (0.6, 0.4)), lambda a: np.minimum(
            np.maximum(1 - 4 * a, (1 - a) * 2 / 3), np.maximum(1 - 1.5 * a, (1 - a) / 4))),
    ],
    ids=["pure", "Gaussian", "pair"],
)  # fmt: skip
def test_a_curve_is_below_its_closed_form_and_near(plan, truth):
    found = tradeoff(plan, LEVELS)
    assert found.shape == LEVELS.shape
    assert np.all(found <= truth(LEVELS) + 1e-12)
    assert np.all(found >= truth(LEVELS) - 0.01)
