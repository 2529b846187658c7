"""Moments of a loss of which only the profile is known, by one quadrature."""

from __future__ import annotations

import functools
import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from accountant.numerics import Array
from accountant.numerics.quadrature import legendre

# e^700 is still a float, so the profile there is finite and bounds its own limit from above.
MAX_EXPONENT = 700.0


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
    """Return ``E_P[e^{zL}; L finite]`` by quadrature of two profiles (infinite if it diverges)."""
    # E = 1 - d(z+1) + z(z+1) [ int_0^inf e^{ze} (delta_PQ(e) - d) de
    #                         + int_0^inf e^{-(z+1)e} delta_QP(e) de ]
    end, atom, real = _integration_limit(loss, z.real), loss.infinity, isinstance(z, float)
    if math.isinf(end):
        return math.inf
    nodes, weights, profile = _profile_on_panels(loss, end)
    with np.errstate(divide="ignore"):
        log_profile = np.log(np.maximum(profile - atom, 0.0))
    with np.errstate(over="ignore"):
        forward = np.sum(weights * np.exp(z * nodes + log_profile))
    # The end is rounded up to one of few, so that different orders share the profiles.
    far = 2.0 ** (math.ceil(4 * math.log2(40.0 / (z.real + 1.0))) / 4)
    end = min(loss.reversed.max_loss, MAX_EXPONENT, max(end, far))
    nodes, weights, profile = _profile_on_panels(loss.reversed, end)
    backward = np.sum(weights * np.exp(-(z + 1) * nodes) * profile)
    backward += loss.reversed.infinity * np.exp(-(z + 1) * end) / (z + 1)
    moment = 1 - atom * (z + 1) + z * (z + 1) * (forward + backward)
    return float(moment.real) if real else complex(moment)


def _integration_limit(loss: Profiled, a: float) -> float:
    """Return where ``e^{a e} (delta(e) - d)`` becomes negligible; infinity where it never does."""
    if math.isfinite(loss.max_loss):
        return max(loss.max_loss, 1e-9)
    ladder, profile = _profile_on_ladder(loss)
    with np.errstate(divide="ignore"):
        size = a * ladder + np.log(np.maximum(profile - loss.infinity, 0.0))
    gone = size < np.max(size) - 50.0
    gone &= np.arange(ladder.size) > np.argmax(size)
    return float(ladder[np.argmax(gone)]) if gone.any() else math.inf


@functools.lru_cache(maxsize=16)
def _profile_on_ladder(loss: Profiled) -> tuple[Array, Array]:
    """Return epsilons, far apart, and the profile at each."""
    ladder: Array = 2.0 ** np.arange(-6, 9.1, 0.25)
    return ladder, loss.profile(ladder)


@functools.lru_cache(maxsize=64)
def _profile_on_panels(loss: Profiled, end: float) -> tuple[Array, Array, Array]:
    """Return nodes and weights on ``[0, end]``, and the profile at the nodes."""
    nodes, weights = _panels(end)
    return nodes, weights, loss.profile(nodes)


def _panels(end: float, panels: int = 128) -> tuple[Array, Array]:
    """Return nodes and weights of a composite 16-point Gauss-Legendre rule on ``[0, end]``."""
    x, w = legendre(16)
    width = end / panels
    starts = width * np.arange(panels)
    nodes = starts[:, None] + width * (x + 1) / 2
    return nodes.ravel(), np.tile(w * width / 2, panels)
