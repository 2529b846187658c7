"""What a composition says of its own numbers."""

import numpy as np
import pytest

from accountant import (
    BoundedRangeLoss,
    GaussianLoss,
    LaplaceLoss,
    Parallel,
    PureLoss,
    Tight,
    ZCDPLoss,
)
from accountant.composition.composed_loss import loss_of_item, loss_of_plan


def test_a_composition_with_an_upper_envelope_is_one():
    assert ZCDPLoss(0.1).numerics.is_upper_envelope
    found = loss_of_plan(PureLoss(0.5) + 2 * ZCDPLoss(0.1)).numerics
    assert (found.is_upper_envelope, found.is_numerical) == (True, True)
    found = loss_of_plan(PureLoss(0.5) + 2 * GaussianLoss(0.1)).numerics
    assert (found.is_upper_envelope, found.is_numerical) == (False, True)


def test_the_attained_pair_of_a_composition_is_that_of_its_parts():
    plan = 3 * BoundedRangeLoss(0.5) + LaplaceLoss(0.4)
    composed = loss_of_plan(plan)
    pairs = 3 * BoundedRangeLoss(0.5).attained_pair + LaplaceLoss(0.4)
    epsilon = np.array([0.0, 0.3, 1.0])
    attained = composed.attained_pair.profile(epsilon)
    assert attained == pytest.approx([Tight().delta(pairs, e) for e in epsilon], rel=1e-5)
    assert np.all(attained <= composed.profile(epsilon) * (1 + 1e-9))


def test_the_greatest_of_several_profiles_is_an_envelope():
    assert loss_of_item(Parallel([LaplaceLoss(0.3), GaussianLoss(0.2)])).numerics.is_upper_envelope
