"""Frequency oracles: local randomisers whose reports count how often each label occurs.

Pure protocols of Wang, Blocki, Li & Jha (2017): a report supports some labels.  It supports the
user's own with probability `truth`, and any other label with probability `other`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import RECORDS
from accountant.errors import ParameterError
from accountant.losses.finite_pair import PairLoss, response_pair
from accountant.numerics import ULP, Array
from accountant.randomness import Rng, generator
from mechanisms.base.mechanism import EXACT, Arithmetic, Mechanism, draws, summed
from mechanisms.base.values import Categories

CACHED = 1 << 19  # so many bytes are worked on at a time
BELOW_ONE = 1 - 2.0**-53  # the greatest probability below 1

Reports = NDArray[Any]
O_co = TypeVar("O_co", bound="FrequencyOracle", covariant=True)


class FrequencyOracle(Mechanism):
    """A local randomiser of labels; all pairs of labels cost the same."""

    __slots__ = ()
    k: int

    @property
    @abstractmethod
    def truth(self) -> float:
        """Probability that a report supports the user's label."""

    @property
    @abstractmethod
    def other(self) -> float:
        """Probability that a report supports some label that is not the user's."""

    @property
    @abstractmethod
    def alone(self) -> tuple[float, float]:
        """Of two labels, probability that only the user's is supported, and only the other."""

    @property
    @abstractmethod
    def layout(self) -> tuple[tuple[int, ...], Any]:
        """Shape and dtype of one report."""

    @property
    def width(self) -> int:
        """Bytes that randomising one label works on."""
        shape, dtype = self.layout
        return math.prod(shape) * int(np.dtype(dtype).itemsize)

    @abstractmethod
    def randomised(self, labels: NDArray[np.intp], rng: np.random.Generator) -> Reports:
        """One report for each of a few labels; exact, given ideal random bits."""

    @abstractmethod
    def supports(self, reports: Reports, labels: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether each report supports the label beside it; they broadcast."""

    @abstractmethod
    def possible(self, reports: Reports) -> NDArray[np.bool_]:
        """Whether a report can be one at all."""

    @abstractmethod
    def log_masses(self, reports: Reports) -> tuple[ArrayLike, ArrayLike]:
        """Log-probability of a report from a label that it supports, and from one it does not."""

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Randomise every label; see `Mechanism.release`."""
        labels, source = self.values.check(value), generator(rng)
        labels = np.broadcast_to(labels, draws(size, labels.shape))
        return in_blocks(
            lambda some: self.randomised(some, source), labels, *self.layout, self.width
        )

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Log-probability by whether the report supports the label, summed."""
        reports, labels = whole(output), self.values.check(value)
        inside, outside = self.log_masses(reports)
        terms = np.where(self.supports(reports, labels), inside, outside)
        return summed(np.where(self.possible(reports), terms, -math.inf), labels.ndim, each)

    def supported(self, reports: ArrayLike) -> NDArray[np.bool_]:
        """Which labels each report supports, along a new last axis."""
        rows = np.expand_dims(np.asarray(reports), -1 - len(self.layout[0]))
        return self.supports(rows, np.arange(self.k))

    def coefficients(self, reports: ArrayLike) -> Array:
        """``(1[supported] - other) / (truth - other)``: on average 1 at the true label, else 0."""
        gap = self.truth - self.other
        # a coefficient is one of two numbers
        values = np.array([-self.other / gap, (1 - self.other) / gap])
        picked: Array = values[self.supported(reports).astype(np.uint8)]
        return picked

    def decode(self, reports: ArrayLike) -> Array:
        """Unbiased estimate of each label's share of the users, one report each."""
        given = np.asarray(reports)
        shape, _ = self.layout
        fits = given.ndim == 1 + len(shape) and given.shape[1:] == shape and len(given) > 0
        fits = fits and given.dtype.kind in "iu"
        if not fits or not all(self.possible(given[at]).all() for at in blocks(given, self.width)):
            raise ParameterError("reports", f"shape {given.shape}", f"reports of {self!r}")
        return self.estimate(self.counts(given), len(given))

    def estimate(self, counts: NDArray[np.int64], users: int) -> Array:
        """Each label's share of the users, from how many reports support it."""
        share: Array = counts / users
        return (share - self.other) / (self.truth - self.other)

    def counts(self, reports: Reports) -> NDArray[np.int64]:
        """How many reports support each label."""
        total = np.zeros(self.k, dtype=np.int64)
        for at in blocks(reports, 16 * self.k):
            total += self.supported(reports[at]).sum(axis=0)
        return total

    @property
    def variances(self) -> tuple[float, float]:
        """Variance of the coefficient of the true label, and of another."""
        p, q = self.truth, self.other
        return p * (1 - p) / (p - q) ** 2, q * (1 - q) / (p - q) ** 2

    def variance(self, frequencies: ArrayLike, count: int) -> Array:
        """Variance of `decode` when ``count`` users have labels of these frequencies."""
        share, (own, others) = np.asarray(frequencies, dtype=float), self.variances
        mean: Array = share * own + (1 - share) * others
        return mean / RECORDS.check("count", count)

    @property
    def arithmetic(self) -> Arithmetic:
        """Integers and exact coins."""
        return EXACT

    @property
    def relation(self) -> str:
        """Each user randomises their own record."""
        return "local-replace"

    @property
    def loss(self) -> PairLoss:
        """Three outcomes matter: only the one label is supported, only the other, and the rest."""
        # a report that supports both or neither is as likely from either label
        return response_pair(*self.alone)

    def worst_pair(self, epsilon: float = 0.0) -> tuple[int, int]:
        """Any two labels, whatever epsilon."""
        del epsilon
        return 0, 1

    @property
    def values(self) -> Categories:
        """The labels."""
        return Categories(self.k)


def blocks(rows: NDArray[Any], width: int) -> Iterator[slice]:
    """Slices of the first axis that keep within the cache, at ``width`` bytes a row."""
    step = max(64, CACHED // width)  # of very wide rows enough to be worth the calls
    return (slice(start, start + step) for start in range(0, len(rows), step))


def in_blocks(
    make: Callable[[NDArray[np.intp]], Reports],
    labels: NDArray[np.intp],
    shape: tuple[int, ...],
    dtype: Any,
    width: int,
) -> Any:
    """``make`` a report of every label, a block of users at a time."""
    users = labels.reshape(-1)
    reports = np.empty((users.size, *shape), dtype=dtype)
    for at in blocks(reports, width):
        reports[at] = make(users[at])
    return reports.reshape(labels.shape + shape)[()]


def narrow(most: int) -> np.dtype[Any]:
    """The unsigned integers that reach ``most`` and are drawn the fastest: of 16 bits or more."""
    return np.result_type(np.uint16, np.min_scalar_type(most))


def tally(labels: NDArray[Any], count: int) -> NDArray[np.int64]:
    """How often each of 0 .. count-1 occurs; narrow integers are never widened all at once."""
    flat, total = labels.reshape(-1), np.zeros(count, dtype=np.int64)
    step = max(CACHED // 8, count)
    for start in range(0, flat.size, step):
        some = flat[start : start + step].astype(np.intp, copy=False)
        total += np.bincount(some, minlength=count)
    return total


def whole(output: ArrayLike) -> NDArray[np.int64]:
    """Reports as integers; what is no whole number becomes -1, which is in no report."""
    given = np.asarray(output)
    if given.dtype.kind not in "iu":
        number = np.isfinite(given) & (np.floor(given) == given) & (np.abs(given) < 2**62)
        given = np.where(number, given, -1)
    return given.astype(np.int64, copy=False)


def within(build: Callable[[float], O_co], knob: float, safe: float, epsilon: float) -> O_co:
    """``build(knob)``, with the knob moved towards ``safe`` until it costs at most epsilon."""
    step = ULP
    while (made := build(knob)).loss.pure > epsilon:
        knob, step = knob + (safe - knob) * step, 2 * step
    return made
