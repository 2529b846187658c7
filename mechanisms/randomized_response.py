"""k-ary randomised response: every user tells the truth, or some other label."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import Interval, Whole
from accountant.numerics import Array
from accountant.pairs import PairLoss
from accountant.randomness import Rng, generator
from mechanisms.mechanism import Mechanism, draws, summed
from mechanisms.parameters import declare, param
from mechanisms.supports import Labels
from mechanisms.values import Categories


@final
@declare
class RandomizedResponse(Mechanism):
    """The true label with probability ``keep``, else one of the others, each alike."""

    releases: ClassVar[str] = "a label of each user"
    reference: ClassVar[str] = "Warner (1965); Kairouz, Bonawitz & Ramage (2016)"

    k: int = param(Whole(2), "number of labels 0 .. k-1", typical=(10,))
    # .2319693 is ln-odds 1 against each other label of ten
    keep: float = param(
        lambda self: Interval(1 / self.k, 1.0, "()"), "probability of the true label",
        typical=(0.2319693,), knob=True,
    )  # fmt: skip

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Randomise every label; see `Mechanism.release`."""
        truth, source = self.values.check(value), generator(rng)
        shape = draws(size, truth.shape)
        # One uniform decides both: below `keep` the truth, else which of the k-1 others.
        uniform = source.random(shape)
        other = np.minimum((uniform - self.keep) * ((self.k - 1) / (1 - self.keep)), self.k - 2)
        shifted = truth + 1 + other.astype(np.intp)
        shifted -= self.k * (shifted >= self.k)
        return np.where(uniform < self.keep, truth, shifted)[()]

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """``ln keep`` for the truth, ``ln((1 - keep) / (k - 1))`` for any other label, summed."""
        truth, lie = np.log([self.keep, (1 - self.keep) / (self.k - 1)])
        told = np.asarray(output)
        same: NDArray[np.bool_] = told == self.values.check(value)
        possible = (told >= 0) & (told < self.k)
        terms = np.where(same, truth, np.where(possible, lie, -np.inf))
        return summed(terms, np.ndim(value), each)

    @property
    def relation(self) -> str:
        """Each user randomises their own record."""
        return "local-replace"

    @property
    def loss(self) -> PairLoss:
        """Three outcomes matter: the one label, the other label, and the rest."""
        lie = (1 - self.keep) / (self.k - 1)
        rest = max(0.0, 1 - self.keep - lie)
        return PairLoss((self.keep, lie, rest), (lie, self.keep, rest))

    def worst_pair(self, epsilon: float = 0.0) -> tuple[int, int]:
        """Any two labels, whatever epsilon."""
        del epsilon
        return 0, 1

    @property
    def values(self) -> Categories:
        """The labels."""
        return Categories(self.k)

    @property
    def support(self) -> Labels:
        """The labels."""
        return Labels(self.k)
