"""Laws of a log-ratio l = ln(P/Q) under Q that have a few atoms and an exponential density.

P and Q are the laws of an output on two neighbours.  An atom is one value with a mass of its own.
Laplace noise has such a law: outcomes outside the two centres have one ratio, an atom, and between
the centres the ratio grows linearly with the outcome.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class RatioLaw:
    """The law under Q of ``l = ln(P / Q)``: atoms, and a density ``scale e^{-l/2}``.

    The density is that between ``low`` and ``high``.  ``atoms`` are pairs of a value of l and its
    mass; l is minus infinity at outcomes that only Q can have.
    """

    atoms: tuple[tuple[float, float], ...]
    scale: float
    low: float
    high: float


def laplace_ratio_law(shift: float, reach: float = math.inf) -> RatioLaw | None:
    """Return the law for Q = Laplace(0, 1) within ``reach``, and P the same moved by ``shift``.

    The result is None where the two have no outcome in common.
    """
    # Q has the density c e^-|x| for |x| <= reach.  Where both are possible l is -shift for x < 0,
    # 2x - shift between the centres 0 and shift, and shift beyond.  Between the centres x is
    # (l + shift) / 2, hence l has the density c/2 e^{-(l + shift) / 2}.
    c = -0.5 / math.expm1(-reach)
    scale = c / 2 * math.exp(-shift / 2)
    if shift >= 2 * reach:
        return None
    if shift >= reach:
        # Both are possible for shift - reach <= x <= reach, which lies between the centres.  Q
        # alone has -reach <= x < shift - reach, two pieces on both sides of 0.
        beyond = c * -(math.expm1(-reach) + math.expm1(reach - shift))
        return RatioLaw(((-math.inf, beyond),), scale, shift - 2 * reach, 2 * reach - shift)
    # Q of x in [shift - reach, 0), where l is -shift, and of x in (shift, reach], where l is shift
    below_centres = c * -math.expm1(shift - reach)
    above_centres = c * math.exp(-shift) * -math.expm1(shift - reach)
    atoms = [(shift, above_centres), (-shift, below_centres)]
    if math.isfinite(reach):  # Q alone has -reach <= x < shift - reach
        atoms.append((-math.inf, c * math.exp(shift - reach) * -math.expm1(-shift)))
    return RatioLaw(tuple(atom for atom in atoms if atom[1] > 0), scale, -shift, shift)
