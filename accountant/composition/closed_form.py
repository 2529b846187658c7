"""The interface of all engines, and the engine of a single loss, a closed form."""

from __future__ import annotations

import math
from typing import Protocol

from accountant.composition.certificate import Certificate
from accountant.losses.loss import Loss
from accountant.numerics.rounding import ACCURACY, LARGEST_BELOW_ONE, ULP

ENVELOPE = "a bound on many pairs"


class Engine(Protocol):
    """An engine: bounds on the finite part of delta near the epsilon it was made for."""

    @property
    def name(self) -> str:
        """The name of the engine in a certificate."""
        ...

    @property
    def nodes(self) -> float:
        """The number of terms of its sum."""
        ...

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Return logarithms of a lower and an upper bound on delta."""
        ...


class ClosedForm:
    """The engine of a single loss: its own profile."""

    name, nodes = "closed form", 0

    def __init__(self, loss: Loss) -> None:
        self._loss = loss

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Return logarithms of a lower and an upper bound on delta at ``epsilon``."""
        value = float(self._loss.log_profile(epsilon))
        return value - ACCURACY, value + ACCURACY


def closed_form(loss: Loss, delta: float) -> Certificate:
    """Return the interval for one release of one loss, by inverting its profile."""
    upper = one_way_epsilon(loss, delta)
    if loss.numerics.is_numerical:
        return Certificate(0.0, upper, ENVELOPE)
    pair = loss.attained_pair
    # the profile is inexact by ACCURACY of itself, and the inverse asks for as much less; with
    # masses within e^{+-r} of the mechanism's, delta(eps) <= e^r true delta(eps - 2r)
    raised_delta = delta * (1 + 4 * ACCURACY) * math.exp(min(pair.rounding, 1.0))
    lower = one_way_epsilon(pair, min(raised_delta, LARGEST_BELOW_ONE))
    lower = max(0.0, lower * (1 - 64 * ULP) - 2 * pair.rounding)  # an inverse is rounded up
    lower = min(lower, upper)
    return Certificate(lower, upper, ENVELOPE if loss.numerics.is_upper_envelope else "closed form")


def one_way_epsilon(loss: Loss, delta: float) -> float:
    """Return the smallest epsilon of one direction at ``delta``, rounded up, or infinity."""
    if delta <= loss.infinity:
        return loss.max_loss if delta == loss.infinity else math.inf
    return loss.inverse_profile(delta)
