"""Clamping: noisy numbers outside a range are moved to its ends.

References: Dwork & Roth (2014), Proposition 2.1 (post-processing).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import REAL, Interval
from accountant.numerics import Array
from accountant.randomness import Rng
from mechanisms.base import Cells, RealLine, Support, declare, param, sum_log_density
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.families.post_processing import MechanismsWithAttribute, PostProcessing
from mechanisms.laplace import Laplace


@final
@declare
class Clamped(PostProcessing):
    """The release of ``inner``, moved to the nearest number from ``low`` to ``high``.

    Examples
    --------
    >>> from mechanisms import Clamped, Laplace
    >>> one = Clamped(Laplace(scale=2.0), low=0.0, high=10.0)
    >>> one.release([-5.0, 15.0], rng=0).tolist()
    [0.0, 10.0]
    >>> one.loss == Laplace(scale=2.0).loss
    True
    """

    releases: ClassVar[str] = "a number or vector, within a range"
    reference: ClassVar[str] = "Dwork & Roth (2014), Proposition 2.1"
    limits: ClassVar[str] = "biased near the ends"

    inner: Any = param(
        MechanismsWithAttribute("log_below", "a mechanism of numbers, such as Laplace"),
        "mechanism that adds the noise",
        typical=(Laplace(1.0), DiscreteLaplace(1.0)),
    )
    low: float = param(REAL, "smallest number released", typical=(-5.0,))
    high: float = param(
        lambda self: Interval(self.low, 1e300, "(]"),
        "largest number released, above `low`",
        typical=(6.0,),
    )

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the clamped release of ``inner``; see `Mechanism.release`."""
        return np.clip(self.inner.release(value, rng, size), self.low, self.high)

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return the inner log-density between the ends, and at an end that of the mass beyond."""
        reported = np.asarray(output, dtype=float)
        between = (reported > self.low) & (reported < self.high)
        inside = np.where(between, self.inner.terms(reported, value), -np.inf)
        below = self.inner.log_below(self.low, value)
        # The noise is symmetric about its centre, so the mass above `high` is that below the mirror
        # image of `high`.
        above = self.inner.log_below(
            2 * np.asarray(self.inner.noise_centre(value)) - self.high, value
        )
        terms = np.where(
            reported == self.low, below, np.where(reported == self.high, above, inside)
        )
        return sum_log_density(terms, np.ndim(value), each)

    @property
    def support(self) -> Support:
        """The two ends, and the inner mechanism's support between them."""
        inner = self.inner.support
        if isinstance(inner, RealLine):
            return RealLine(inner.breakpoints, (self.low, self.high))
        return ClampedSupport(inner, self.low, self.high)


@dataclass(frozen=True, slots=True)
class ClampedSupport(Support):
    """The outputs of another mechanism between two ends, and the ends."""

    inner: Support
    low: float
    high: float

    def may_hold(self, outputs: NDArray[Any]) -> bool:
        """Return whether all outputs lie between the ends."""
        return bool(((outputs >= self.low) & (outputs <= self.high)).all())

    def cells(self, first: Any, second: Any) -> Cells | None:
        """Return the inner cells between the ends, and the two ends."""
        inner_cells = self.inner.cells(first, second)
        if inner_cells is None:
            return None
        inside = (inner_cells.outputs > self.low) & (inner_cells.outputs < self.high)
        outputs = np.concatenate([[self.low], inner_cells.outputs[inside], [self.high]])
        measure = np.concatenate([[1.0], inner_cells.measure[inside], [1.0]])
        return Cells(outputs, measure, lambda output: np.searchsorted(outputs, output))
