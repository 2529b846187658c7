"""What a composition says of its own numbers."""

from accountant import GaussianLoss, PureLoss, ZCDPLoss
from accountant.composition.composed_loss import loss_of_plan


def test_a_composition_with_an_upper_envelope_is_one():
    assert ZCDPLoss(0.1).numerics.is_upper_envelope
    found = loss_of_plan(PureLoss(0.5) + 2 * ZCDPLoss(0.1)).numerics
    assert (found.is_upper_envelope, found.is_numerical) == (True, True)
    found = loss_of_plan(PureLoss(0.5) + 2 * GaussianLoss(0.1)).numerics
    assert (found.is_upper_envelope, found.is_numerical) == (False, True)
