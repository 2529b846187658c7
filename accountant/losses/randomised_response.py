"""Binary randomised response: its two losses, and their cumulants many at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, final

import numpy as np

from accountant.losses.loss_numerics import ExactCGF, HasCumulant
from accountant.numerics import Array, Complex
from accountant.numerics.chebyshev import sum_in_blocks
from accountant.numerics.exponential_sums import product_of_cf_ratios
from accountant.numerics.logspace import log1p
from accountant.numerics.rounding import ULP


class Response(HasCumulant, Protocol):
    """A loss that is plus or minus epsilon."""

    @property
    def epsilon(self) -> float:
        """The size of both losses."""
        ...


@final
class ResponseCGF(ExactCGF[Response]):
    """``ln E[e^{zL}]`` of the two outcomes ``+-epsilon``."""

    def sum_cgf(self, losses: Sequence[Response], counts: Array, z: Any) -> tuple[Any, Array]:
        """Return the sum of the closed forms, many losses at a time."""
        sizes = np.fromiter((response.epsilon for response in losses), float, len(losses))
        return sum_in_blocks(response_cgf, sizes, counts, z)

    def cf_ratios(
        self, losses: Sequence[Response], counts: Array, z: Complex
    ) -> tuple[Complex, Array]:
        """Return the product of the ratios of all losses, by one matrix product each."""
        return product_of_cf_ratios(
            [response_pmf(response.epsilon) for response in losses], counts, z
        )


def response_pmf(epsilon: float) -> tuple[Array, Array]:
    """Return the losses and masses of binary randomised response."""
    high = 1 / (1 + math.exp(-epsilon))
    return np.array([epsilon, -epsilon]), np.array([high, high * math.exp(-epsilon)])


def response_cgf(epsilon: Array, z: Any) -> tuple[Any, Array]:
    """Return the cumulants of responses at ``z``, and bounds on their round-off."""
    # E e^{zL} = cosh((z + 1/2) e) / cosh(e/2) = 1 + 2 sinh((z+1) e/2) sinh(z e/2) / cosh(e/2);
    # where that would overflow, e^{ze} (1 + e^{-(2z+1)e}) / (1 + e^-e)
    far = epsilon * (z.real + 1) > 30
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.where(far, 0.0, epsilon)
        moment_less_1 = 2 * np.sinh((z + 1) * e / 2) * np.sinh(z * e / 2) / np.cosh(e / 2)
        value = log1p(moment_less_1)
        if far.any():
            s = np.broadcast_to(z, far.shape)[far]
            x = np.broadcast_to(epsilon, far.shape)[far]
            value[far] = s * x + np.log1p(np.exp(-(2 * s + 1) * x)) - np.log1p(np.exp(-x))
        terms = np.abs(z) * epsilon * np.exp(z.real * epsilon - value.real)
        size = terms + np.abs(value) + far
    return value, 16 * ULP * size
