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
from accountant.numerics import Array
from accountant.numerics.rounding import ULP
from accountant.plans.adjacency import Adjacency
from accountant.randomness import Rng, generator
from mechanisms.base.mechanism import EXACT, Arithmetic, Mechanism, draw_shape, sum_log_density
from mechanisms.base.values import Categories

CACHE_BYTES = 1 << 19  # so many bytes are worked on at a time

Reports = NDArray[Any]
O_co = TypeVar("O_co", bound="FrequencyOracle", covariant=True)


class FrequencyOracle(Mechanism):
    """A local randomiser of labels; all pairs of labels cost the same."""

    __slots__ = ()
    k: int

    @property
    @abstractmethod
    def own_label_probability(self) -> float:
        """Probability that a report supports the user's label."""

    @property
    @abstractmethod
    def other_label_probability(self) -> float:
        """Probability that a report supports some label that is not the user's."""

    @property
    @abstractmethod
    def exclusive_support(self) -> tuple[float, float]:
        """Of two labels, probability that only the user's is supported, and only the other."""

    @property
    @abstractmethod
    def report_layout(self) -> tuple[tuple[int, ...], Any]:
        """Shape and dtype of one report."""

    @property
    def bytes_per_label(self) -> int:
        """Bytes that randomising one label works on."""
        shape, dtype = self.report_layout
        return math.prod(shape) * int(np.dtype(dtype).itemsize)

    @abstractmethod
    def randomise(self, labels: NDArray[np.intp], rng: np.random.Generator) -> Reports:
        """One report for each of a few labels; exact, given ideal random bits."""

    @abstractmethod
    def supports(self, reports: Reports, labels: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether each report supports the label beside it; they broadcast."""

    @abstractmethod
    def is_report(self, reports: Reports) -> NDArray[np.bool_]:
        """Whether a report can be one at all."""

    @abstractmethod
    def log_probabilities_by_support(self, reports: Reports) -> tuple[ArrayLike, ArrayLike]:
        """Log-probability of a report from a label that it supports, and from one it does not."""

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Randomise every label; see `Mechanism.release`."""
        labels, source = self.values.check(value), generator(rng)
        labels = np.broadcast_to(labels, draw_shape(size, labels.shape))
        return randomise_in_blocks(
            lambda some: self.randomise(some, source),
            labels,
            *self.report_layout,
            self.bytes_per_label,
        )

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Log-probability by whether the report supports the label, summed."""
        reports, labels = as_integers(output), self.values.check(value)
        inside, outside = self.log_probabilities_by_support(reports)
        terms = np.where(self.supports(reports, labels), inside, outside)
        return sum_log_density(
            np.where(self.is_report(reports), terms, -math.inf), labels.ndim, each
        )

    def supported_labels(self, reports: ArrayLike) -> NDArray[np.bool_]:
        """Which labels each report supports, along a new last axis."""
        rows = np.expand_dims(np.asarray(reports), -1 - len(self.report_layout[0]))
        return self.supports(rows, np.arange(self.k))

    def coefficients(self, reports: ArrayLike) -> Array:
        """``(1[supported] - other) / (truth - other)``: on average 1 at the true label, else 0."""
        gap = self.own_label_probability - self.other_label_probability
        # a coefficient is one of two numbers
        values = np.array(
            [-self.other_label_probability / gap, (1 - self.other_label_probability) / gap]
        )
        picked: Array = values[self.supported_labels(reports).astype(np.uint8)]
        return picked

    def decode(self, reports: ArrayLike) -> Array:
        """Unbiased estimate of each label's share of the users, one report each."""
        given = np.asarray(reports)
        shape, _ = self.report_layout
        fits = given.ndim == 1 + len(shape) and given.shape[1:] == shape and len(given) > 0
        fits = fits and given.dtype.kind in "iu"
        if not fits or not all(
            self.is_report(given[at]).all() for at in cache_blocks(given, self.bytes_per_label)
        ):
            raise ParameterError("reports", f"shape {given.shape}", f"reports of {self!r}")
        return self.estimate(self.support_counts(given), len(given))

    def estimate(self, counts: NDArray[np.int64], users: int) -> Array:
        """Each label's share of the users, from how many reports support it."""
        share: Array = counts / users
        return (share - self.other_label_probability) / (
            self.own_label_probability - self.other_label_probability
        )

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """How many reports support each label."""
        total = np.zeros(self.k, dtype=np.int64)
        for at in cache_blocks(reports, 16 * self.k):
            total += self.supported_labels(reports[at]).sum(axis=0)
        return total

    @property
    def coefficient_variances(self) -> tuple[float, float]:
        """Variance of the coefficient of the true label, and of another."""
        p, q = self.own_label_probability, self.other_label_probability
        return p * (1 - p) / (p - q) ** 2, q * (1 - q) / (p - q) ** 2

    def variance(self, frequencies: ArrayLike, count: int) -> Array:
        """Variance of `decode` when ``count`` users have labels of these frequencies."""
        share, (own, others) = np.asarray(frequencies, dtype=float), self.coefficient_variances
        mean: Array = share * own + (1 - share) * others
        return mean / RECORDS.check("count", count)

    @property
    def arithmetic(self) -> Arithmetic:
        """Integers and exact coins."""
        return EXACT

    @property
    def relation(self) -> Adjacency:
        """Each user randomises their own record."""
        return Adjacency.LOCAL_REPLACE

    @property
    def loss(self) -> PairLoss:
        """Three outcomes matter: only the one label is supported, only the other, and the rest."""
        # a report that supports both or neither is as likely from either label
        return response_pair(*self.exclusive_support)

    def worst_pair(self, epsilon: float = 0.0) -> tuple[int, int]:
        """Any two labels, whatever epsilon."""
        del epsilon
        return 0, 1

    @property
    def values(self) -> Categories:
        """The labels."""
        return Categories(self.k)


def cache_blocks(rows: NDArray[Any], width: int) -> Iterator[slice]:
    """Slices of the first axis that keep within the cache, at ``width`` bytes a row."""
    step = max(64, CACHE_BYTES // width)  # of very wide rows enough to be worth the calls
    return (slice(start, start + step) for start in range(0, len(rows), step))


def randomise_in_blocks(
    make: Callable[[NDArray[np.intp]], Reports],
    labels: NDArray[np.intp],
    shape: tuple[int, ...],
    dtype: Any,
    width: int,
) -> Any:
    """``make`` a report of every label, a block of users at a time."""
    users = labels.reshape(-1)
    reports = np.empty((users.size, *shape), dtype=dtype)
    for at in cache_blocks(reports, width):
        reports[at] = make(users[at])
    return reports.reshape(labels.shape + shape)[()]


def smallest_uint(largest: int) -> np.dtype[Any]:
    """Return the fastest unsigned integers that reach ``largest``: of 16 bits or more."""
    return np.result_type(np.uint16, np.min_scalar_type(largest))


def count_labels(labels: NDArray[Any], count: int) -> NDArray[np.int64]:
    """How often each of 0 .. count-1 occurs; narrow integers are never widened all at once."""
    flat, total = labels.reshape(-1), np.zeros(count, dtype=np.int64)
    step = max(CACHE_BYTES // 8, count)
    for start in range(0, flat.size, step):
        some = flat[start : start + step].astype(np.intp, copy=False)
        total += np.bincount(some, minlength=count)
    return total


def as_integers(output: ArrayLike) -> NDArray[np.int64]:
    """Reports as integers; what is no whole number becomes -1, which is in no report."""
    given = np.asarray(output)
    if given.dtype.kind not in "iu":
        number = np.isfinite(given) & (np.floor(given) == given) & (np.abs(given) < 2**62)
        given = np.where(number, given, -1)
    return given.astype(np.int64, copy=False)


def calibrated_safely(
    build: Callable[[float], O_co], start: float, safe: float, epsilon: float
) -> O_co:
    """``build(knob)``, with the knob moved towards ``safe`` until it costs at most epsilon."""
    step = ULP
    while (made := build(start)).loss.pure > epsilon:
        start, step = start + (safe - start) * step, 2 * step
    return made
