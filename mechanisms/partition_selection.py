"""Which keys may be released: the rule that keeps each key as often as any private rule can.

People hold keys, such as the words that they use, and the set of all keys is itself private.  Each
key is kept with a probability that depends on how many people hold it; see `keeping_words`.

References: Desfontaines, Voss, Gipson & Mandayam (2022); proof in docs/proofs/partitions.md.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from accountant.domains import IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.losses.finite_pair import PairLoss
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from mechanisms.base import (
    declare,
    param,
)
from mechanisms.exact_noise.exponential_coins import exponential_bounds, random_words
from mechanisms.families.key_counts import KeyCounts, KeyCountValues
from mechanisms.families.key_selection import KeySelection

# a probability p is stored as p 2^63: how many of this number of equally likely words keep the key
WORDS = 1 << 63
MOST_STEPS = 1 << 20  # counts that are neither always nor never kept, at most: a limit of the table
MOST_KEYS = 1024  # keys of one person, at most


@final
@declare
class PartitionSelection(KeySelection):
    """The keys that are kept, each by a coin that depends on how many people hold it.

    A key without people is never kept; with each person more its probability rises as fast as
    ``key_epsilon`` and ``key_delta`` allow for one key.  A value is a `KeyCounts`; a person holds
    at most ``keys`` keys.  One release gives the kept keys, ascending; ``size`` or a batch give
    rows in which -1 or an empty string stands for a key that was not kept, which are for study.

    Examples
    --------
    >>> from mechanisms import PartitionSelection
    >>> from mechanisms.families.key_counts import KeyCounts
    >>> selection = PartitionSelection(key_epsilon=1.0, key_delta=1e-6)
    >>> selection.release(KeyCounts(["coffee", "rare", "tea"], [900, 1, 40]), rng=0).tolist()
    ['coffee', 'tea']
    >>> selection.loss
    ApproxLoss(epsilon=1.0, delta=1e-06)
    """

    releases: ClassVar[str] = "the keys that many people hold"
    reference: ClassVar[str] = "Desfontaines, Voss, Gipson & Mandayam (2022)"
    limits: ClassVar[str] = "the cost of several keys a person is an upper bound"

    key_epsilon: float = param(
        Interval(1e-4, 40.0), "epsilon of one key", typical=(0.8,), knob=True
    )
    key_delta: float = param(Interval(1e-15, 1.0, "[)"), "delta of one key", typical=(1e-10,))
    keys: int = param(
        IntegerRange(1, MOST_KEYS), "keys of a person, at most", typical=(1, 2), default=1
    )

    def __post_init__(self) -> None:
        KeySelection.__post_init__(self)
        # With each person more the probability grows by the factor e^epsilon, from delta to about
        # 1/2; from there its distance from 1 shrinks by that factor, down to about delta.  Each of
        # the two halves takes about ln(1 / delta) / epsilon counts.
        if 2 * math.log(1 / self.key_delta + 1) / self.key_epsilon > MOST_STEPS:
            raise ParameterError(
                "key_epsilon", self.key_epsilon, "larger: too many counts have coins"
            )

    def _kept(
        self, counts: NDArray[np.int64], size: int, source: np.random.Generator
    ) -> NDArray[np.bool_]:
        """Return ``size`` rows of coins, one for every count: whether its key is kept."""
        table = self._words
        uniform_words = random_words(size * counts.size, source).reshape(size, counts.size)
        coins: NDArray[np.bool_] = (uniform_words >> np.uint64(1)) < table[
            np.minimum(counts, table.size - 1)
        ]
        return coins

    def chances(self, counts: NDArray[np.int64]) -> Array:
        """Return the share of the words that keep a key.

        Parameters
        ----------
        counts : numpy.ndarray of int
            Checked counts, at least 0.

        Returns
        -------
        numpy.ndarray
            Probabilities, to nearest.
        """
        probabilities: Array = self._words[np.minimum(counts, self._words.size - 1)] / float(WORDS)
        return probabilities

    @property
    def _words(self) -> NDArray[np.uint64]:
        """The table of `keeping_words`, up to the first count that is always kept."""
        return keeping_words(self.key_epsilon, self.key_delta)

    @property
    def loss(self) -> Loss:
        """That of (epsilon, delta) for one key; for several keys, the product of such pairs."""
        return loss_of_keys(self.key_epsilon, self.key_delta, self.keys)

    @property
    def loss_is_upper_bound(self) -> bool:
        """True: delta is attained at epsilon, elsewhere the profile is a bound."""
        return True

    @property
    def why_no_formula(self) -> str:
        """Why there is no closed form; "" for one key, whose delta is attained at its epsilon."""
        return "" if self.keys == 1 else "the loss of several keys composes that of one"

    @property
    def drawn_numbers(self) -> dict[str, Any]:
        """How many of 2^63 words keep a key of each count."""
        return {"words": self._words.tolist()}

    def worst_pair(self, epsilon: float = 0.0) -> tuple[KeyCounts, KeyCounts]:
        """Return counts of neighbours, with a person more in the first, at which delta is attained.

        That is the delta of one key at ``key_epsilon``.
        """
        del epsilon
        names = np.arange(self.keys)
        # The last count k for which p_{k+1} is e^eps p_k + delta: there this is not more than what
        # the bound for keys that are not kept allows, which is so for p_k up to the limit below.
        # The limit is lowered by more than the round-off.  It is positive, so k = 0 is below it.
        limit = (1 - self.key_delta) / (1 + math.exp(self.key_epsilon)) * (1 - 1e-9)
        last_count = int(np.flatnonzero(self._words < limit * WORDS)[-1])
        larger = KeyCounts(names, np.full(self.keys, last_count + 1))
        return larger, KeyCounts(names, np.full(self.keys, last_count))

    @property
    def values(self) -> KeyCountValues:
        """Keys with counts, of which a person moves ``keys`` at most."""
        return KeyCountValues(self.keys)


@functools.lru_cache(maxsize=64)
def keeping_words(epsilon: float, delta: float) -> NDArray[np.uint64]:
    """Return how many of 2^63 words keep a key, by the number 0, 1, 2, ... of people who hold it.

    The key of k people is kept with probability w_k / 2^63.  From w_0 = 0 on, each w_{k+1} is the
    greatest that satisfies ``w_{k+1} <= e^eps w_k + delta 2^63`` (a kept key) and
    ``2^63 - w_k <= e^eps (2^63 - w_{k+1}) + delta 2^63`` (a key that is not kept), with delta 2^63
    and e^eps w_k rounded down to whole numbers, and e^-eps rounded up.
    """
    _, high = exponential_bounds(Fraction(epsilon), digits=40)  # high is not below e^-epsilon
    delta_words = math.floor(Fraction(delta) * WORDS)
    thresholds = [0]
    while thresholds[-1] < WORDS:
        previous = thresholds[-1]
        rising = math.floor(previous / high) + delta_words
        falling = WORDS - math.ceil(max(WORDS - previous - delta_words, 0) * high)
        thresholds.append(min(rising, falling, WORDS))
    table = np.array(thresholds, dtype=np.uint64)
    table.flags.writeable = False
    return table


@functools.lru_cache(maxsize=256)
def loss_of_keys(epsilon: float, delta: float, keys: int) -> Loss:
    """Return the loss of ``keys`` keys that each have (epsilon, delta)."""
    if keys == 1:
        return ApproxLoss(epsilon, delta)
    # With probability (1 - delta)^keys no key has an infinite loss.  Then j of the keys have loss
    # -epsilon and the others epsilon, in sum (keys - 2 j) epsilon.  A key has the loss -epsilon
    # with the odds e^-epsilon, so that j is binomial.
    rounded_epsilon = round_up(epsilon)
    log_no_infinity = keys * math.log1p(-delta)  # the logarithm of (1 - delta)^keys
    log_normaliser, masses = keys * math.log1p(math.exp(-rounded_epsilon)), []
    for j in range(keys + 1):
        log_binomial = math.lgamma(keys + 1) - math.lgamma(j + 1) - math.lgamma(keys - j + 1)
        log_odds = log_binomial - j * rounded_epsilon
        masses.append(math.exp(log_no_infinity + log_odds - log_normaliser))
    infinity_mass = -math.expm1(log_no_infinity)
    # The scale makes the sum right in spite of the errors of lgamma.
    scale = (1 - infinity_mass) / sum(masses)
    finite = [mass * scale for mass in masses]
    pair = PairLoss((infinity_mass, *finite, 0.0), (0.0, *finite[::-1], infinity_mass))
    # All logarithms are below 50 times the number of keys, and have errors of a few 2^-53 of
    # themselves: a mass has a relative error far below 1e-12 for each key.
    return pair.with_rounding(1e-12 * keys)
