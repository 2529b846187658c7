"""The noise of least variance for a bounded number that each user reports.

References: Duchi, Jordan & Wainwright (2018); Wang et al. (2019); Geng & Viswanath (2014).
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from accountant.errors import ParameterError
from accountant.planning.calibration import calibrate
from accountant.plans.plan import Release
from mechanisms.binary_label import BinaryLabel
from mechanisms.gaussian import Gaussian
from mechanisms.laplace import Laplace
from mechanisms.piecewise_uniform import PiecewiseUniform
from mechanisms.staircase import Staircase

# The mechanisms by name, with the fields that are always the same.
NUMBER_NOISE: dict[str, tuple[Any, dict[str, Any]]] = {
    "bounded": (BinaryLabel, {"larger": "clip"}),
    "piecewise": (PiecewiseUniform, {"larger": "clip"}),
    "staircase": (Staircase, {"arithmetic": "exact", "upper": "least variance"}),
    "laplace": (Laplace, {"arithmetic": "exact"}),
}


@lru_cache(maxsize=256)
def number_noise(name: str, bound: float, epsilon: float) -> Release:
    """Return the named mechanism, at epsilon, for numbers of [-bound, bound]."""
    kind, fields = NUMBER_NOISE[name]
    name_of_size = {BinaryLabel: "bound", PiecewiseUniform: "radius"}.get(kind, "sensitivity")
    size = 2 * bound if name_of_size == "sensitivity" else bound
    arguments: dict[str, Any] = {name_of_size: size, **fields}
    mechanism: Release = calibrate(kind, epsilon=epsilon, **arguments)
    return mechanism


@lru_cache(maxsize=256)
def least_noise(bound: float, epsilon: float, delta: float = 0.0) -> Release:
    """Return the mechanism whose variance is least at the worst number of [-bound, bound].

    Pure mechanisms meet epsilon alone; Gaussian noise also takes delta.  The choice depends on
    these three numbers only.
    """
    candidates: list[Release] = []
    for name in NUMBER_NOISE:
        # The parameter of a mechanism may not reach such an epsilon.
        with suppress(ParameterError):
            candidates.append(number_noise(name, bound, epsilon))
    if delta > 0:
        candidates.append(
            calibrate(
                Gaussian, sensitivity=2 * bound, arithmetic="exact", epsilon=epsilon, delta=delta
            )
        )
    if not candidates:
        raise ParameterError("epsilon", epsilon, "in the range of the noise on a number")
    return min(candidates, key=lambda mechanism: noise_variance(mechanism, bound))


def noise_variance(mechanism: Any, bound: float) -> float:
    """Return the largest variance of a report on a number of [-bound, bound]."""
    if isinstance(mechanism, Laplace):
        return 2 * float(mechanism.scale) ** 2
    if isinstance(mechanism, Gaussian):
        return float(mechanism.scale) ** 2
    if isinstance(mechanism, Staircase):
        return float(mechanism.deviation) ** 2
    if isinstance(mechanism, (BinaryLabel, PiecewiseUniform)):
        # The variance is a + b v^2 for the number v, so it is largest at 0 or at the bound.
        return float(np.max(mechanism.variance(np.array([0.0, bound]))))
    return math.inf  # of another mechanism it is not known: it is never the one with the least
