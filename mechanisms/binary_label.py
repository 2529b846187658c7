"""A bounded number, rounded to an end of its range and released by randomised response.

The number is rounded to +-bound at random, without bias.  The sign of that is reported with
probability ``keep``, else the opposite sign; the reports are scaled so that their expectation is
the number.

References: Duchi, Jordan & Wainwright (2018), Section 4.2.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE, Interval
from accountant.losses.finite_pair import PairLoss
from accountant.numerics import Array
from accountant.randomness import Rng, generator, public_generator
from mechanisms.base import (
    EXACT,
    Arithmetic,
    BoundedNumbers,
    FiniteRows,
    declare,
    draw_shape,
    param,
    sum_log_density,
)
from mechanisms.exact_noise.exact_bernoulli import bernoulli
from mechanisms.families.mean_oracle import FixedLengthMeanOracle, out_of_range, stochastic_round


@final
@declare
class BinaryLabel(FixedLengthMeanOracle):
    """One of the two numbers ``+-bound / (2 keep - 1)``, with the user's number as expectation.

    Examples
    --------
    >>> from mechanisms import BinaryLabel
    >>> sign = BinaryLabel(bound=1.0, keep=0.75)
    >>> sign.release([0.5, -1.0, 1.0], rng=0).tolist()
    [2.0, 2.0, -2.0]
    >>> round(sign.loss.pure, 4)
    1.0986
    """

    releases: ClassVar[str] = "a bounded number of each user, for its mean"
    reference: ClassVar[str] = "Duchi, Jordan & Wainwright (2018), Section 4.2, in one dimension"

    bound: float = param(POSITIVE, "largest absolute value of the number", typical=(1.0,))
    keep: float = param(
        Interval(0.5, 1.0, "()"),
        "probability of the own sign for a number at an end of its range",
        typical=(0.7310585786300049,),  # e / (1 + e), at which epsilon is 1
        knob=True,
    )
    larger: str = out_of_range("larger number")

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return one randomised report for every number; see `Mechanism.release`."""
        numbers, source = self.values.check(value), generator(rng)
        shape = draw_shape(size, numbers.shape)
        # The number is rounded to +-bound without bias, and the sign kept with probability keep.
        # The rounding only mixes the two, so its floats cannot cost privacy, and it may be public
        # (docs/proofs/vectors.md); `bernoulli` is exact.
        reported = bernoulli(self.keep, shape, source) == stochastic_round(
            numbers / self.bound, shape, public_generator(source)
        )
        return np.where(reported, self.length, -self.length)[()]

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return ``ln (1/2 +- (keep - 1/2) value / bound)``, summed."""
        numbers, reports = self.values.check(value), np.asarray(output, dtype=float)
        tilt = (2 * self.keep - 1) * (numbers / self.bound)
        possible = np.abs(reports) == self.length
        terms = np.where(possible, np.log1p(np.sign(reports) * tilt) - np.log(2), -np.inf)
        return sum_log_density(terms, numbers.ndim, each)

    @property
    def length(self) -> float:
        """The absolute value of every report, in the units of the number."""
        return self.bound / (2 * self.keep - 1)

    @classmethod
    def _closed_form(cls, epsilon: float, delta: float, fields: Any) -> float | None:
        del fields
        return (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))

    @property
    def loss(self) -> PairLoss:
        """The loss of binary randomised response: the sign, or its opposite."""
        return PairLoss((self.keep, 1 - self.keep), (1 - self.keep, self.keep))

    def worst_pair(self, epsilon: float = 0.0) -> tuple[float, float]:
        """Return the two ends of the range, for any epsilon."""
        del epsilon
        return self.bound, -self.bound

    @property
    def values(self) -> BoundedNumbers:
        """The numbers within the bound."""
        return BoundedNumbers(self.bound, self.larger == "clip")

    @property
    def support(self) -> FiniteRows:
        """The two numbers that are reported."""
        return FiniteRows(2, lambda: np.array([-self.length, self.length]))

    @property
    def arithmetic(self) -> Arithmetic:
        """EXACT: exact Bernoulli bits decide the sign."""
        return EXACT
