"""Clamping: noisy numbers beyond a range are moved to its ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import REAL, Interval
from accountant.numerics import Array
from accountant.randomness import Rng
from mechanisms.base.mechanism import sum_log_density
from mechanisms.base.parameters import declare, param
from mechanisms.base.supports import Cells, RealLine, Support
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.families.post_processing import MechanismsWithAttribute, PostProcessing
from mechanisms.laplace import Laplace


@final
@declare
class Clamped(PostProcessing):
    """What ``inner`` releases, moved to the nearest number from ``low`` to ``high``."""

    releases: ClassVar[str] = "a number or vector, within a range"
    reference: ClassVar[str] = "Dwork & Roth (2014), Proposition 2.1"
    limits: ClassVar[str] = "biased near the ends"

    inner: Any = param(
        MechanismsWithAttribute("log_below", "a mechanism of numbers, such as Laplace"),
        "adds the noise",
        typical=(Laplace(1.0), DiscreteLaplace(1.0)),
    )
    low: float = param(REAL, "least number released", typical=(-5.0,))
    high: float = param(
        lambda self: Interval(self.low, 1e300, "(]"), "greatest number released", typical=(6.0,)
    )

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Release and clamp; see `Mechanism.release`."""
        return np.clip(self.inner.release(value, rng, size), self.low, self.high)

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """That of ``inner`` between the ends, and at each end the mass beyond it."""
        told = np.asarray(output, dtype=float)
        between = (told > self.low) & (told < self.high)
        inside = np.where(between, self.inner.terms(told, value), -np.inf)
        below = self.inner.log_below(self.low, value)
        # the law is symmetric about its centre
        above = self.inner.log_below(
            2 * np.asarray(self.inner.noise_centre(value)) - self.high, value
        )
        terms = np.where(told == self.low, below, np.where(told == self.high, above, inside))
        return sum_log_density(terms, np.ndim(value), each)

    @property
    def support(self) -> Support:
        """Two ends, and what the inner mechanism has between them."""
        inner = self.inner.support
        if isinstance(inner, RealLine):
            return RealLine(inner.breakpoints, (self.low, self.high))
        return ClampedSupport(inner, self.low, self.high)


@dataclass(frozen=True, slots=True)
class ClampedSupport(Support):
    """Those outputs of another mechanism that lie between two ends, and the ends."""

    inner: Support
    low: float
    high: float

    def cells(self, first: Any, second: Any) -> Cells | None:
        """The inner cells between the ends, and the ends."""
        found = self.inner.cells(first, second)
        if found is None:
            return None
        inside = (found.outputs > self.low) & (found.outputs < self.high)
        outputs = np.concatenate([[self.low], found.outputs[inside], [self.high]])
        measure = np.concatenate([[1.0], found.measure[inside], [1.0]])
        return Cells(outputs, measure, lambda output: np.searchsorted(outputs, output))
