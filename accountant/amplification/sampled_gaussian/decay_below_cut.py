"""How fast the transforms of sampled Gaussians with Y at most a cut decay: sums along curves.

    |E[(1 + e^Y)^{p+iv}; Y <= c]| <= int |n(y)| |1 + e^y|^p e^{-v arg(1 + e^y)} |dy|

on a curve above the real line, which falls with v.  Proof: `docs/proofs/schedules.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from accountant.amplification.sampled_gaussian.curve_to_cut import CurveToCut
from accountant.amplification.sampled_gaussian.sampled_schedule import products
from accountant.numerics import Array, Complex
from accountant.numerics.ordered_sums import ordered_dot

HEIGHTS = (1.0, 0.5, 0.2, 0.07)  # shares of the curve's; many members decay together on low ones
BLOCK_SIZE = 2**17


def log_transforms_below_cut(
    members: tuple[Array, Array],
    curve: CurveToCut,
    power: float,
    u: Array,
    edges: Callable[[float], tuple[Complex, Complex, Array]],
    left_out: float,
) -> Array:
    """Return a bound on ``ln |E[(1+e^Y)^{p+iv}; Y <= c]|`` for every ``v >= u``.

    A row for each member, (mu, mean), and a column for each u.  ``edges`` returns the losses on
    both edges of a strip, and beside them what a sum errs by for each, over what grows there;
    ``left_out`` bounds what both ends of the curve leave out.
    """
    mu, mean = members
    found = np.full((mu.size, u.size), math.inf)
    for share in HEIGHTS:
        y, speed = curve.nodes(share)
        loss = np.log1p(np.exp(y))
        exponent = power * loss.real - np.multiply.outer(u, loss.imag)
        kernel = np.exp(np.minimum(exponent, 700.0)) * np.abs(speed)
        edge, _, missed = edges(share)
        grown = np.exp(np.minimum(power * edge.real, 700.0))
        error = float(ordered_dot(grown, missed)) + left_out
        for first in range(0, mu.size, max(1, BLOCK_SIZE // y.size)):
            part = slice(first, first + max(1, BLOCK_SIZE // y.size))
            away = y.real - mean[part, None]
            size = np.exp((y.imag**2 - away * away) / (2 * mu[part, None] ** 2))
            size /= mu[part, None] * math.sqrt(2 * math.pi)
            log_bound = np.log(products(size, kernel) * (1 + 1e-9) + error)
            found[part] = np.minimum(found[part], log_bound)
    return found
