"""A curve from a line above the real one to a cut, on which no frequency oscillates.

``y(t) = c - w ln(1 + e^-t) + i g w / (1 + e^t)``, g at most 1: the height of its left part is g w.
Proof: `docs/proofs/schedules.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.numerics import Array, Complex

STRIP = 0.97 * math.pi / 4  # of the parameter: curve and strip stay left of the cut
STRIP_NATS = 34.0  # e^{2 pi d / h}
LAST_PARAMETER = 34.0
MAX_POINTS = 2_000
STEP = 2 * math.pi * STRIP / STRIP_NATS


@dataclass(frozen=True, slots=True)
class CurveToCut:
    """Nodes of a trapezoid rule in the parameter: ``w`` is `width`."""

    t: Array
    end: float
    width: float
    is_short: bool

    @classmethod
    def between(cls, lowest: float, end: float, width: float) -> CurveToCut:
        """Return the curve that ends at ``end``, with nodes from about ``lowest`` on."""
        first = -(max(end - lowest, 0.0)) / width
        steps = math.ceil((LAST_PARAMETER - first) / STEP) + 1
        is_short = steps <= MAX_POINTS
        t = first + STEP * np.arange(float(steps if is_short else 1))
        return cls(t, end, width, is_short)

    def nodes(self, share: float = 1.0) -> tuple[Complex, Complex]:
        """Return the nodes, and derivatives times the step; ``share`` is g."""
        y, speed = _place(self.t, self.end, self.width, share)
        return y, speed * STEP

    def edges(self, share: float = 1.0) -> tuple[Complex, Array]:
        """Return both edges of the strip with the cut, and what a sum errs by for each.

        Relative to the absolute value of what is integrated there.
        """
        both = [_place(self.t + side * 1j, self.end, self.width, share) for side in (STRIP, -STRIP)]
        y = np.concatenate([one for one, _ in both] + [np.array([self.end + 0j])])
        missed = 2 * math.exp(-STRIP_NATS) * STEP * np.abs([speed for _, speed in both])
        # nodes beyond the last one are less than e^-t from the cut
        end = 40 * self.width * math.exp(-LAST_PARAMETER)
        return y, np.append(missed.ravel(), end)


def _place(t: Any, end: float, width: float, share: float) -> tuple[Complex, Complex]:
    """Return the curve at ``t``, and its derivative."""
    fall = 1 / (1 + np.exp(t))
    # ln(1 + e^-t), of the exponential that is small
    near = np.log1p(np.exp(-np.copysign(1.0, np.real(t)) * t))
    log_term = near - np.where(np.real(t) > 0, 0.0, t)
    y = end - width * log_term + 1j * (width * share) * fall
    return y, fall * width * (1 - 1j * share * (1 - fall))
