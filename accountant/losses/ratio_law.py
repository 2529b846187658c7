"""Laws of a log-ratio: a few atoms, and between two ends the density of an exponential."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class RatioLaw:
    """The law under Q of ``l = ln(P / Q)``: atoms, and a density ``scale e^{-l/2}``.

    ``atoms`` are ratios and masses; minus infinity is the ratio of what only Q can have.
    """

    atoms: tuple[tuple[float, float], ...]
    scale: float
    low: float
    high: float


def laplace_ratio_law(shift: float, reach: float = math.inf) -> RatioLaw | None:
    """Return the law for Laplace(0, 1) within ``reach`` and the same moved by ``shift``."""
    # The noise has the density c e^-|x|, and l is 2x - shift between the centres, else +-shift.
    c = -0.5 / math.expm1(-reach)
    scale = c / 2 * math.exp(-shift / 2)
    if shift >= 2 * reach:
        return None
    if shift >= reach:
        beyond = c * -(math.expm1(-reach) + math.expm1(reach - shift))
        return RatioLaw(((-math.inf, beyond),), scale, shift - 2 * reach, 2 * reach - shift)
    above, below = c * -math.expm1(shift - reach), c * math.exp(-shift)
    atoms = [(shift, below * -math.expm1(shift - reach)), (-shift, above)]
    if math.isfinite(reach):
        atoms.append((-math.inf, c * math.exp(shift - reach) * -math.expm1(-shift)))
    return RatioLaw(tuple(atom for atom in atoms if atom[1] > 0), scale, -shift, shift)
