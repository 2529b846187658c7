"""Which keys may be released, by noisy sums of weights: for persons who hold many keys.

A person who holds d keys adds 1 / sqrt(d) to the weight of each, so that all their weights together
have length 1 however many keys they hold.  Each weight gets Gaussian noise, and the keys above a
threshold are kept.  Few keys of a person weigh more than many, which a rule on counts cannot have.

References: Gopi, Gulhane, Kulkarni, Shen, Shokouhi & Yekhanin (2020), weighted Gaussian; Swanberg,
Desfontaines & Haney (2023), which asks in rounds; proof in docs/proofs/partitions.md, section 4.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import IntegerRange, Interval
from accountant.losses.discrete_gaussian import discrete_gaussian_loss
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.plans.plan import Item
from mechanisms.base import declare, param
from mechanisms.exact_noise.integer_noise import IntegerNoise
from mechanisms.families.key_counts import STEPS, KeyCounts, KeyWeightValues, key_weight
from mechanisms.families.key_selection import KeySelection
from mechanisms.partition_selection import MOST_KEYS


@final
@declare
class GaussianPartitionSelection(KeySelection):
    """The keys whose weight plus Gaussian noise reaches a threshold.

    A value is a `KeyCounts` of weights in whole steps: a person who holds d keys adds
    ``key_weight(d)`` to each.  A key that no person holds is never kept.  The threshold is the
    least at which the keys of one person, held by no other person, are kept with a chance of
    ``own_delta`` at most.  One release gives the kept keys, ascending; ``size`` or a batch give
    rows in which -1 or an empty string stands for a key that was not kept, which are for study.

    Examples
    --------
    >>> from mechanisms import GaussianPartitionSelection
    >>> from mechanisms.families.key_counts import KeyCounts, key_weight
    >>> weights = KeyCounts(["coffee", "rare", "tea"], [900 * key_weight(9), 1, 80 * key_weight(1)])
    >>> selection = GaussianPartitionSelection(scale=8.0, own_delta=1e-7, keys=9)
    >>> selection.release(weights, rng=0).tolist()
    ['coffee', 'tea']
    """

    releases: ClassVar[str] = "the keys that many people hold, of many a person"
    reference: ClassVar[str] = "Swanberg, Desfontaines & Haney (2023)"
    limits: ClassVar[str] = "the time of a draw varies; weights are rounded down to steps of 2^-12"

    scale: float = param(
        Interval(0.05, 2.0**20), "deviation of the noise, in weights", typical=(3.75,), knob=True
    )
    own_delta: float = param(
        Interval(1e-15, 0.5), "chance that a person's own keys are kept", typical=(1e-10,)
    )
    keys: int = param(
        IntegerRange(1, MOST_KEYS), "keys of a person, at most", typical=(1, 2), default=1
    )
    persons: int = param(
        IntegerRange(1, 2),
        "persons between neighbours: 2 where one is replaced",
        typical=(1, 2),
        default=1,
    )

    def _kept(
        self, counts: NDArray[np.int64], size: int, source: np.random.Generator
    ) -> NDArray[np.bool_]:
        """Return ``size`` rows of draws, one for every weight: whether its key is kept."""
        noise = IntegerNoise(self._steps, power=2).draw(size * counts.size, source)
        reaches: NDArray[np.bool_] = noise.reshape(size, counts.size) >= self.threshold - counts
        return reaches & (counts > 0)

    def chances(self, counts: NDArray[np.int64]) -> Array:
        """Return the chances of whole noise, whose sums are integrals between half steps.

        Parameters
        ----------
        counts : numpy.ndarray of int
            Checked counts, at least 0.

        Returns
        -------
        numpy.ndarray
            Probabilities, to nearest.
        """
        from scipy.special import ndtr

        probabilities: Array = ndtr((counts - self.threshold + 0.5) / self._steps)
        return np.where(counts > 0, probabilities, 0.0)

    @property
    def _steps(self) -> float:
        """The scale of the noise in steps."""
        return self.scale * STEPS

    @property
    def threshold(self) -> int:
        """The least noisy weight, in steps, at which a key is kept."""
        return threshold_of(self._steps, self.own_delta, self.keys)

    @property
    def loss(self) -> Loss:
        """That of Gaussian noise on common keys, and of ``own_delta`` for keys of one person."""
        return loss_of_plan(self._gaussian + ApproxLoss(0.0, self.own_delta))

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield the loss of the noise, and that of keys which one neighbour has alone."""
        yield self._gaussian, 1
        yield ApproxLoss(0.0, self.own_delta), 1

    @property
    def _gaussian(self) -> Loss:
        """The loss of the noise: who goes and who comes move orthogonal weights at most."""
        length = round_up(math.sqrt(self.persons) * STEPS)
        return discrete_gaussian_loss(self._steps, length, self.persons * MOST_KEYS)

    @property
    def loss_is_upper_bound(self) -> bool:
        """True: only which weights reach the threshold is seen."""
        return True

    @property
    def drawn_numbers(self) -> dict[str, Any]:
        """The scale of the drawn noise in steps, and the threshold."""
        return {"drawn_scale": self._steps, "threshold": self.threshold}

    @property
    def drawn_tables(self) -> list[dict[str, Any]]:
        """The table of integers that the exact draws of the noise use."""
        return [IntegerNoise(self._steps, power=2).table]

    def worst_pair(self, epsilon: float = 0.0) -> tuple[KeyCounts, KeyCounts]:
        """Return weights of one key about the threshold, with a person more in the first."""
        del epsilon
        weights = np.array([self.threshold])
        return KeyCounts([0], weights + STEPS), KeyCounts([0], weights)

    @property
    def values(self) -> KeyWeightValues:
        """Keys with weights, of which a person moves ``keys`` at most."""
        return KeyWeightValues(self.keys, self.persons)


@functools.lru_cache(maxsize=256)
def threshold_of(scale: float, delta: float, keys: int) -> int:
    """Return the least threshold that keeps own keys of a person with a chance of ``delta``.

    Of d keys each has the weight ``key_weight(d)``, and a chance of 1 - (1 - delta)^(1/d) each
    makes ``delta`` for all.  The discrete noise is at least m with the chance that the continuous
    one is at least m - 1, at most (Canonne, Kamath & Steinke 2020, Proposition 25).
    """
    from scipy.special import ndtri

    key_numbers = np.arange(1, keys + 1)
    chance = -np.expm1(np.log1p(-delta) / key_numbers) * (1 - 1e-12)
    reach = np.ceil(np.maximum(-ndtri(chance), 0.0) * scale * (1 + 1e-12)).astype(np.int64) + 1
    return int(np.max(reach + key_weight(key_numbers)))
