"""Frequency oracles: local randomisers whose reports estimate how often each label occurs.

Each of many users has one of k labels and sends one randomised report.  A report supports some
labels.  It supports the user's own label with probability p (``own_label_probability``), and any
other label with probability q (``other_label_probability``).  If C_v of n reports support label v,
the share of users with that label is estimated, without bias, by (C_v / n - q) / (p - q).

The file has the base class of such mechanisms, and functions that these share.

References: Wang, Blocki, Li & Jha (2017), pure protocols.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
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
from mechanisms.base import EXACT, Arithmetic, Categories, Mechanism, draw_shape, sum_log_density
from mechanisms.base.mechanism import CACHE_BYTES, cache_blocks

Reports = NDArray[Any]
O_co = TypeVar("O_co", bound="FrequencyOracle", covariant=True)


class FrequencyOracle(Mechanism):
    """A local randomiser of labels 0 .. ``k - 1``; all pairs of labels have the same privacy loss.

    Subclasses say how a report is drawn, which labels it supports, and how likely it is.
    """

    __slots__ = ()
    k: int

    @property
    @abstractmethod
    def own_label_probability(self) -> float:
        """The probability that a report supports the user's label."""

    @property
    @abstractmethod
    def other_label_probability(self) -> float:
        """The probability that a report supports a given other label."""

    @property
    @abstractmethod
    def exclusive_support(self) -> tuple[float, float]:
        """Two probabilities, for a report and any other given label.

        The first is that the report supports the user's label and not the other one; the second is
        that it supports the other one and not the user's.
        """

    @property
    @abstractmethod
    def report_layout(self) -> tuple[tuple[int, ...], Any]:
        """The shape and dtype of one report."""

    @property
    def bytes_per_label(self) -> int:
        """The memory that randomising one label needs, in bytes."""
        shape, dtype = self.report_layout
        return math.prod(shape) * int(np.dtype(dtype).itemsize)

    @abstractmethod
    def randomise(self, labels: NDArray[np.intp], rng: np.random.Generator) -> Reports:
        """Return one report for each label; exact, given ideal random bits.

        Parameters
        ----------
        labels : numpy.ndarray of shape (users,)
            Labels in 0 .. ``k - 1``.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        numpy.ndarray
            Reports of shape (users, ...), as `report_layout` says.
        """

    @abstractmethod
    def supports(self, reports: Reports, labels: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return whether each report supports the label of the same row.

        Parameters
        ----------
        reports : numpy.ndarray
            Reports.
        labels : numpy.ndarray
            Labels, broadcast against the reports.

        Returns
        -------
        numpy.ndarray of bool
            True where the label is supported.
        """

    @abstractmethod
    def is_report(self, reports: Reports) -> NDArray[np.bool_]:
        """Return whether each row is a possible report.

        Parameters
        ----------
        reports : numpy.ndarray
            Rows to check.

        Returns
        -------
        numpy.ndarray of bool
            False for rows that the mechanism never releases.
        """

    @abstractmethod
    def log_probabilities_by_support(self, reports: Reports) -> tuple[ArrayLike, ArrayLike]:
        """Return the log-probabilities of reports from a supported and from an unsupported label.

        Parameters
        ----------
        reports : numpy.ndarray
            Possible reports.

        Returns
        -------
        supported : array_like
            Natural logarithm of the probability, if the report supports the user's label.
        unsupported : array_like
            The same, if it does not.
        """

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return one randomised report for each label; see `Mechanism.release`."""
        labels, source = self.values.check(value), generator(rng)
        labels = np.broadcast_to(labels, draw_shape(size, labels.shape))
        return randomise_in_blocks(
            lambda block: self.randomise(block, source),
            labels,
            *self.report_layout,
            self.bytes_per_label,
        )

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return the log-probability of reports, summed; see `Mechanism.log_density`.

        That of one report depends on whether it supports the label.
        """
        reports, labels = as_integers(output), self.values.check(value)
        inside, outside = self.log_probabilities_by_support(reports)
        terms = np.where(self.supports(reports, labels), inside, outside)
        return sum_log_density(
            np.where(self.is_report(reports), terms, -math.inf), labels.ndim, each
        )

    def _may_release(self, outputs: Reports, values: NDArray[Any]) -> bool:
        del values  # every label can lead to every report
        return bool(self.is_report(outputs).all())

    def supported_labels(self, reports: ArrayLike) -> NDArray[np.bool_]:
        """Return which labels each report supports.

        Parameters
        ----------
        reports : array_like
            Reports of shape (..., *report).

        Returns
        -------
        numpy.ndarray of bool
            Along a new last axis of length ``k``.
        """
        rows = np.expand_dims(np.asarray(reports), -1 - len(self.report_layout[0]))
        return self.supports(rows, np.arange(self.k))

    def coefficients(self, reports: ArrayLike) -> Array:
        """Return unbiased indicators of every label: ``(1[supported] - other) / (own - other)``.

        Parameters
        ----------
        reports : array_like
            Reports of shape (..., *report).

        Returns
        -------
        numpy.ndarray
            Of shape (..., k); the expectation is 1 at the user's label and 0 elsewhere.
        """
        gap = self.own_label_probability - self.other_label_probability
        # Every coefficient is one of two numbers: of a label that is not supported, or is.
        values = np.array(
            [-self.other_label_probability / gap, (1 - self.other_label_probability) / gap]
        )
        picked: Array = values[self.supported_labels(reports).astype(np.uint8)]
        return picked

    def decode(self, reports: ArrayLike) -> Array:
        """Return an unbiased estimate of each label's share of the users.

        Parameters
        ----------
        reports : array_like
            One report for each user, of shape (users, *report).

        Returns
        -------
        numpy.ndarray of shape (k,)
            Estimated shares; some may be negative, and they need not sum to 1.

        Raises
        ------
        ParameterError
            If ``reports`` has another shape.
        """
        rows = np.asarray(reports)
        shape, _ = self.report_layout
        fits = rows.ndim == 1 + len(shape) and rows.shape[1:] == shape and len(rows) > 0
        fits = fits and rows.dtype.kind in "iu"
        if not fits or not all(
            self.is_report(rows[block]).all() for block in cache_blocks(rows, self.bytes_per_label)
        ):
            raise ParameterError("reports", f"shape {rows.shape}", f"reports of {self!r}")
        return self.estimate(self.support_counts(rows), len(rows))

    def estimate(self, counts: NDArray[np.int64], users: int) -> Array:
        """Return each label's estimated share of the users, from support counts.

        Parameters
        ----------
        counts : numpy.ndarray of shape (k,)
            How many reports support each label.
        users : int
            The number of reports.

        Returns
        -------
        numpy.ndarray of shape (k,)
            Unbiased estimates of the shares.
        """
        share: Array = counts / users
        return (share - self.other_label_probability) / (
            self.own_label_probability - self.other_label_probability
        )

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports support each label.

        Parameters
        ----------
        reports : numpy.ndarray
            One report for each user.

        Returns
        -------
        numpy.ndarray of shape (k,)
            Counts.
        """
        total = np.zeros(self.k, dtype=np.int64)
        for block in cache_blocks(reports, 16 * self.k):
            total += self.supported_labels(reports[block]).sum(axis=0)
        return total

    @property
    def coefficient_variances(self) -> tuple[float, float]:
        """The variances of one user's coefficient, at the user's label and at another label."""
        p, q = self.own_label_probability, self.other_label_probability
        return p * (1 - p) / (p - q) ** 2, q * (1 - q) / (p - q) ** 2

    def variance(self, frequencies: ArrayLike, count: int) -> Array:
        """Return the variance of `decode` for users whose labels have these frequencies.

        Parameters
        ----------
        frequencies : array_like of shape (k,)
            True shares of the labels.
        count : int
            The number of users.

        Returns
        -------
        numpy.ndarray of shape (k,)
            Variance of each estimated share.
        """
        share = np.asarray(frequencies, dtype=float)
        true_variance, wrong_variance = self.coefficient_variances
        mean: Array = share * true_variance + (1 - share) * wrong_variance
        return mean / RECORDS.check("count", count)

    @property
    def arithmetic(self) -> Arithmetic:
        """EXACT: reports are made of integers and exact Bernoulli bits."""
        return EXACT

    @property
    def relation(self) -> Adjacency:
        """Each user randomises their own record."""
        return Adjacency.LOCAL_REPLACE

    @property
    def is_about_two_values(self) -> bool:
        """Whether there are two labels; `accountant.Shuffled` asks for it."""
        return self.k == 2

    @property
    def loss(self) -> PairLoss:
        """The loss of a pair of labels, with three outcomes of a report.

        The report supports only the one label, or only the other, or both or neither.  The last
        outcome is as likely from either label.
        """
        return response_pair(*self.exclusive_support)

    def worst_pair(self, epsilon: float = 0.0) -> tuple[int, int]:
        """Return two labels, at any epsilon; all pairs have the same loss."""
        del epsilon
        return 0, 1

    @property
    def values(self) -> Categories:
        """The labels 0 .. ``k - 1``."""
        return Categories(self.k)


def randomise_in_blocks(
    make: Callable[[NDArray[np.intp]], Reports],
    labels: NDArray[np.intp],
    shape: tuple[int, ...],
    dtype: Any,
    width: int,
) -> Any:
    """Return a report of every label, made by ``make`` for a block of users at a time.

    Reports have this shape and dtype; ``width`` is the memory that one label needs, in bytes.
    """
    users = labels.reshape(-1)
    reports = np.empty((users.size, *shape), dtype=dtype)
    for block in cache_blocks(reports, width):
        reports[block] = make(users[block])
    return reports.reshape(labels.shape + shape)[()]


def smallest_uint(largest: int) -> np.dtype[Any]:
    """Return the smallest unsigned integer type, of 16 bits or more, that holds ``largest``."""
    return np.result_type(np.uint16, np.min_scalar_type(largest))


def count_labels(labels: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return how often each of 0 .. ``count - 1`` occurs.

    Labels are converted to 8 bytes each, one chunk at a time, because a copy of all would be large.
    """
    flat, total = labels.reshape(-1), np.zeros(count, dtype=np.int64)
    step = max(CACHE_BYTES // 8, count)
    for start in range(0, flat.size, step):
        chunk = flat[start : start + step].astype(np.intp, copy=False)
        total += np.bincount(chunk, minlength=count)
    return total


def as_integers(output: ArrayLike) -> NDArray[np.int64]:
    """Return reports as integers; entries that are no integers become -1, which no report has."""
    numbers = np.asarray(output)
    if numbers.dtype.kind not in "iu":
        number = np.isfinite(numbers) & (np.floor(numbers) == numbers) & (np.abs(numbers) < 2**62)
        numbers = np.where(number, numbers, -1)
    return numbers.astype(np.int64, copy=False)


def calibrated_safely(
    build: Callable[[float], O_co], start: float, safe: float, epsilon: float
) -> O_co:
    """Return ``build(x)``, where x is ``start``, or nearer to ``safe`` if epsilon demands it.

    By rounding the mechanism at ``start`` may have a pure epsilon slightly above ``epsilon``.  Then
    x moves by growing steps until it is at most that; the first step is an ulp of the distance.
    """
    step = ULP
    while (mechanism := build(start)).loss.pure > epsilon:
        start, step = start + (safe - start) * step, 2 * step
    return mechanism
