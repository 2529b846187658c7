"""The epsilon and delta of a single loss that is released once: its profile needs no composition.

The profile is delta as a function of epsilon; most losses know it in closed form.
"""

from __future__ import annotations

import math

from accountant.composition.certificate import Certificate
from accountant.losses.loss import Loss
from accountant.numerics.rounding import ACCURACY, LARGEST_BELOW_ONE, ULP

# The method that a certificate names where the profile is an upper bound on those of many pairs.
ENVELOPE = "a bound on many pairs"


class ClosedForm:
    """Bounds on delta by the profile of a single loss."""

    name, nodes = "closed form", 0

    def __init__(self, loss: Loss) -> None:
        self._loss = loss

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Return logarithms of a lower and an upper bound on delta at ``epsilon``."""
        value = float(self._loss.log_profile(epsilon))
        return value - ACCURACY, value + ACCURACY


def closed_form(loss: Loss, delta: float) -> Certificate:
    """Return the interval around epsilon at ``delta`` for one release, by inverting the profile.

    The lower end is that of a pair which does occur (`Loss.attained_pair`).  A loss that is only a
    numerical bound has the lower end 0.
    """
    upper = one_way_epsilon(loss, delta)
    if loss.numerics.is_numerical:
        return Certificate(0.0, upper, ENVELOPE)
    pair = loss.attained_pair
    # The profile is exact to a relative ACCURACY, and its inverse is computed at a delta smaller by
    # as much; the factor 1 + 4 ACCURACY undoes both.  With masses within e^{+-r} of the
    # mechanism's, delta(eps) <= e^r true_delta(eps - 2r): hence e^r here, and 2r below.
    raised_delta = delta * (1 + 4 * ACCURACY) * math.exp(min(pair.rounding, 1.0))
    lower = one_way_epsilon(pair, min(raised_delta, LARGEST_BELOW_ONE))
    lower = max(0.0, lower * (1 - 64 * ULP) - 2 * pair.rounding)  # an inverse is rounded up
    lower = min(lower, upper)
    return Certificate(lower, upper, ENVELOPE if loss.numerics.is_upper_envelope else "closed form")


def one_way_epsilon(loss: Loss, delta: float) -> float:
    """Return the smallest epsilon at which the profile is at most ``delta``, rounded up.

    It is infinite where delta is below the mass at infinity.
    """
    if delta <= loss.infinity:
        return loss.max_loss if delta == loss.infinity else math.inf
    return loss.inverse_profile(delta)
