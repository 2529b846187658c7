"""Moments of a loss of which only the profile is known, by one quadrature.

The profile is delta as a function of epsilon.  Let d_PQ(e) be the profile at epsilon = e, d_QP that
of the reversed pair, and d = d_PQ(oo) the mass at infinity.  Then the moment of the loss
L = ln(P/Q) is

    E_P[e^{zL}; L finite] = 1 - d (z + 1) + z (z + 1) [ int_0^oo e^{ze} (d_PQ(e) - d) de
                                                      + int_0^oo e^{-(z + 1) e} d_QP(e) de ].
"""

from __future__ import annotations

import functools
import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from accountant.numerics import Array
from accountant.numerics.quadrature import legendre
from accountant.numerics.rounding import MAX_EXPONENT

# Panels of the Gauss-Legendre rule between 0 and its end, and points of each panel.  The error of
# the rule is not bounded here: moments are rounded to nearest.
PANELS, POINTS = 128, 16
# An integral ends where its integrand is below e^-50 of its largest value.
NEGLIGIBLE = 50.0


class Profiled(Protocol):
    """The part of a loss that its moments are made from."""

    def __hash__(self) -> int:
        """Equal losses share what was computed."""
        ...

    @property
    def infinity(self) -> float:
        """Mass of the outcomes that are impossible on the neighbour."""
        ...

    @property
    def max_loss(self) -> float:
        """Epsilon beyond which the profile stays at `infinity`."""
        ...

    @property
    def reversed(self) -> Profiled:
        """The loss of (Q, P)."""
        ...

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the privacy profile at ``epsilon >= 0``."""
        ...


def moment(loss: Profiled, z: complex) -> complex:
    """Return ``E_P[e^{zL}; L finite]`` by quadrature of two profiles (infinite if it diverges).

    It is real where z is a float.
    """
    end, mass_at_infinity = _integration_limit(loss, z.real), loss.infinity
    if math.isinf(end):
        return math.inf
    nodes, weights, profile = _profile_on_panels(loss, end)
    # The two factors are multiplied as logarithms, since e^{ze} alone may overflow.
    with np.errstate(divide="ignore"):
        log_profile = np.log(np.maximum(profile - mass_at_infinity, 0.0))
    with np.errstate(over="ignore"):
        forward = np.sum(weights * np.exp(z * nodes + log_profile))
    # From e = 40 / (Re z + 1) on the factor e^{-(z + 1) e} is below e^-40.  This end is rounded up
    # to a power of 2^(1/4), so that different orders share the profiles.
    far = 2.0 ** (math.ceil(4 * math.log2(40.0 / (z.real + 1.0))) / 4)
    end = min(loss.reversed.max_loss, MAX_EXPONENT, max(end, far))
    nodes, weights, profile = _profile_on_panels(loss.reversed, end)
    backward = np.sum(weights * np.exp(-(z + 1) * nodes) * profile)
    # beyond the end the reversed profile is its mass at infinity
    backward += loss.reversed.infinity * np.exp(-(z + 1) * end) / (z + 1)
    moment = 1 - mass_at_infinity * (z + 1) + z * (z + 1) * (forward + backward)
    return float(moment.real) if isinstance(z, float) else complex(moment)


def _integration_limit(loss: Profiled, a: float) -> float:
    """Return where ``e^{a e} (delta(e) - d)`` becomes negligible; infinity where it never does.

    That is the first point of a ladder, beyond the largest value there, with a value below
    e^-`NEGLIGIBLE` of it.
    """
    if math.isfinite(loss.max_loss):
        return max(loss.max_loss, 1e-9)
    ladder: Array = 2.0 ** np.arange(-6, 9.1, 0.25)  # epsilons, each 2^(1/4) times the one before
    profile = loss.profile(ladder)
    with np.errstate(divide="ignore"):
        log_size = a * ladder + np.log(np.maximum(profile - loss.infinity, 0.0))
    is_negligible = log_size < np.max(log_size) - NEGLIGIBLE
    is_negligible &= np.arange(ladder.size) > np.argmax(log_size)
    return float(ladder[np.argmax(is_negligible)]) if is_negligible.any() else math.inf


@functools.lru_cache(maxsize=16)
@functools.lru_cache(maxsize=64)
def _profile_on_panels(loss: Profiled, end: float) -> tuple[Array, Array, Array]:
    """Return nodes and weights on ``[0, end]``, and the profile at the nodes."""
    x, w = legendre(POINTS)
    width = end / PANELS
    nodes = ((width * np.arange(PANELS))[:, None] + width * (x + 1) / 2).ravel()
    return nodes, np.tile(w * width / 2, PANELS), loss.profile(nodes)
