"""Local hashing: a public random hash of the label, released by randomised response.

Each user draws a hash function from labels to buckets.  The report is the function, with the
label's bucket or, with probability 1 - ``keep``, another one.  It supports all labels that the
function maps to the reported bucket.

References: Bassily & Smith (2015); Wang, Blocki, Li & Jha (2017).
"""

from __future__ import annotations

import functools
import math
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.numerics.rounding import LARGEST_BELOW_ONE
from accountant.randomness import public_generator
from mechanisms.base import FiniteRows, declare, param
from mechanisms.exact_noise.exact_bernoulli import bernoulli
from mechanisms.families.frequency_oracle import FrequencyOracle, Reports, calibrated_safely

# The largest prime below 2^31, so that products of two residues fit into 64 bits.
MAX_PRIME = 2**31 - 1


@final
@declare
class LocalHashing(FrequencyOracle):
    """Rows ``a, b, bucket``: a random hash, and the label's bucket or another one.

    The hash is ``((a x + b) mod prime) mod buckets`` with the smallest prime from ``k`` on.  The
    bucket is the label's own with probability ``keep``.

    Examples
    --------
    >>> from mechanisms import LocalHashing
    >>> one = LocalHashing(k=5, buckets=3, keep=0.75)
    >>> reports = one.release([0, 1, 2], rng=0)
    >>> reports.tolist(), one.supports(reports, [0, 1, 2]).tolist()
    ([[4, 1, 1], [3, 1, 1], [3, 0, 1]], [True, True, True])
    >>> round(one.loss.pure, 4)
    1.7918
    """

    releases: ClassVar[str] = "a hash and a bucket of each user"
    reference: ClassVar[str] = (
        "Bassily & Smith (2015); Wang, Blocki, Li & Jha (2017); Carter & Wegman (1979) for the hash"
    )

    k: int = param(IntegerRange(2, MAX_PRIME), "number of labels 0 .. k-1", typical=(5,))
    buckets: int = param(IntegerRange(2, MAX_PRIME), "number of buckets", typical=(3,))
    # At the typical value, e / (e + 2) with 3 buckets, epsilon is 1.
    keep: float = param(
        lambda self: Interval(1 / self.buckets, 1.0, "()"),
        "probability of the label's own bucket, in (1 / buckets, 1)",
        typical=(0.5761169,),
        knob=True,
    )

    @classmethod
    def optimised(cls, k: int, epsilon: float) -> Self:
        """Return the mechanism with the buckets of smallest variance, about ``e^epsilon + 1``.

        Parameters
        ----------
        k : int
            Number of labels.
        epsilon : float
            Largest pure epsilon, in nats.

        Returns
        -------
        LocalHashing
            Its epsilon is at most ``epsilon``, to rounding.
        """
        epsilon = POSITIVE.check("epsilon", epsilon)
        buckets = round(math.exp(min(epsilon, 20.0))) + 1  # below MAX_PRIME buckets
        keep = min(1 / (1 + (buckets - 1) * math.exp(-epsilon)), LARGEST_BELOW_ONE)
        return calibrated_safely(lambda x: cls(k, buckets, x), keep, 1 / buckets, epsilon)

    @property
    def prime(self) -> int:
        """The smallest prime that is at least ``k``."""
        return least_prime_from(self.k)

    @property
    def collision(self) -> float:
        """The probability that two given labels have the same hash."""
        # The pair (a x + b, a y + b) is uniform among the ordered pairs of different residues.  Of
        # those below the prime, `larger_buckets` buckets hold `bucket_size` + 1 and the others hold
        # `bucket_size`.
        bucket_size, larger_buckets = divmod(self.prime, self.buckets)
        pairs = larger_buckets * (bucket_size + 1) * bucket_size + (
            self.buckets - larger_buckets
        ) * bucket_size * (bucket_size - 1)
        return pairs / (self.prime * (self.prime - 1))

    @classmethod
    def _closed_form(cls, epsilon: float, delta: float, fields: Any) -> float | None:
        return None if delta else 1 / (1 + (fields.buckets - 1) * math.exp(-epsilon))

    @property
    def own_label_probability(self) -> float:
        """The probability ``keep``."""
        return self.keep

    @property
    def other_label_probability(self) -> float:
        """The probability of a hash collision with the reported bucket."""
        return self.collision * self.keep + self.exclusive_support[1]

    @property
    def exclusive_support(self) -> tuple[float, float]:
        """The probabilities that a report supports the true label only, and a given other only.

        The two labels must be in different buckets, of which randomised response reports one.
        """
        lie = (1 - self.keep) / (self.buckets - 1)
        return (1 - self.collision) * self.keep, (1 - self.collision) * lie

    @property
    def report_layout(self) -> tuple[tuple[int, ...], Any]:
        """A row of ``a``, ``b`` and the bucket."""
        return (3,), np.int32

    def randomise(self, labels: NDArray[np.intp], rng: np.random.Generator) -> Reports:
        """Return a random hash and a bucket for each label."""
        # The hash function is part of the report and does not depend on the label.
        public = public_generator(rng)
        factor = public.integers(1, self.prime, labels.size)
        offset = public.integers(0, self.prime, labels.size)
        steps = rng.integers(1, self.buckets, labels.size)
        steps *= ~bernoulli(self.keep, labels.shape, rng)
        bucket = (self._hash(factor, offset, labels) + steps) % self.buckets
        return np.stack([factor, offset, bucket], axis=-1)

    def supports(self, reports: Reports, labels: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return whether the label's hash is the bucket."""
        factor, offset, bucket = np.moveaxis(reports, -1, 0)
        return np.asarray(self._hash(factor, offset, labels) == bucket)

    def is_report(self, reports: Reports) -> NDArray[np.bool_]:
        """Return whether rows are a hash of the family and a bucket."""
        ends = np.array([self.prime, self.prime, self.buckets])
        return np.asarray(((reports >= [1, 0, 0]) & (reports < ends)).all(axis=-1))

    def log_probabilities_by_support(self, reports: Reports) -> tuple[float, float]:
        """Return log-probabilities: uniform hashes, and buckets by randomised response."""
        del reports
        hashes = math.log(self.prime) + math.log(self.prime - 1)
        lie = math.log1p(-self.keep) - math.log(self.buckets - 1)
        return math.log(self.keep) - hashes, lie - hashes

    @property
    def support(self) -> FiniteRows:
        """All hashes with all buckets."""
        ends = self.prime - 1, self.prime, self.buckets

        def reports() -> Reports:
            rows = np.indices(ends, dtype=np.int32).reshape(3, -1).T
            rows[:, 0] += 1  # the factor of a hash is not 0
            return np.ascontiguousarray(rows)

        return FiniteRows(math.prod(ends), reports)

    def _hash(
        self, factor: NDArray[Any], offset: NDArray[Any], labels: NDArray[Any]
    ) -> NDArray[np.int64]:
        a, b, x = (np.asarray(array).astype(np.uint64) for array in (factor, offset, labels))
        hashed = np.asarray(a * x + b)
        for modulus in (np.uint64(self.prime), np.uint64(self.buckets)):
            hashed -= hashed // modulus * modulus  # numpy vectorises this, but not %
        return hashed.astype(np.int64)


@functools.cache
def least_prime_from(number: int) -> int:
    """Return the smallest prime that is at least ``number``."""
    while any(number % divisor == 0 for divisor in range(2, math.isqrt(number) + 1)):
        number += 1
    return number
