"""Unbiased reports of numbers and vectors: how to decode them, and their variance.

In the local model each user reports an own value with noise; the mean of all reports estimates the
mean of the values.  Subclasses are the mechanisms that draw such reports.

References: Duchi, Jordan & Wainwright (2018).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import OneOf
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.adjacency import Adjacency
from mechanisms.base import Mechanism, norms, param

ROUND_OFF = 1e-9  # relative error up to which a report has the length that it should have


class MeanOracle(Mechanism):
    """A local randomiser of numbers or vectors: the expectation of a report is the user's value."""

    __slots__ = ()

    def decode(self, reports: ArrayLike) -> Array:
        """Return an unbiased estimate of the mean of the users' values: the mean of their reports.

        Parameters
        ----------
        reports : array_like
            One report for each user, of shape (users,) or (users, dimension).

        Returns
        -------
        numpy.ndarray
            The mean over the users.

        Raises
        ------
        ParameterError
            If ``reports`` has another shape.
        """
        rows = np.asarray(reports)
        if rows.ndim != 1 + (self.values.axes or 0) or len(rows) == 0:
            allowed = "one report along the first axis for each of at least one user"
            raise ParameterError("reports", f"shape {rows.shape}", allowed)
        mean: Array = rows.mean(axis=0, dtype=float)
        return mean

    @abstractmethod
    def variance(self, value: ArrayLike) -> Array:
        """Return the exact variance ``E |report - value|^2``.

        Parameters
        ----------
        value : array_like
            A value, or a batch of values along the first axis.

        Returns
        -------
        numpy.ndarray
            One variance for each value, in squared units of the value.
        """

    def second_moment(self, value: ArrayLike) -> Array:
        """Return the exact second moment ``E |report|^2``.

        Parameters
        ----------
        value : array_like
            A value, or a batch of values along the first axis.

        Returns
        -------
        numpy.ndarray
            One second moment for each value, in squared units of the value.
        """
        return self.variance(value) + self._squared_norm(value)

    @property
    def relation(self) -> Adjacency:
        """Each user randomises their own value."""
        return Adjacency.LOCAL_REPLACE

    def _squared_norm(self, value: ArrayLike) -> Array:
        checked = self.values.check(value)
        squares: Array = norms(checked, 2) ** 2 if self.values.axes else np.square(checked)
        return squares


class FixedLengthMeanOracle(MeanOracle):
    """A mean oracle whose reports all have the same Euclidean length."""

    __slots__ = ()

    @property
    @abstractmethod
    def length(self) -> float:
        """The Euclidean length of every report."""

    def _may_release(self, outputs: NDArray[Any], values: NDArray[Any]) -> bool:
        lengths = norms(outputs, 2) if self.values.axes else np.abs(outputs)
        alike = np.abs(lengths - self.length) <= ROUND_OFF * self.length
        return bool(alike.all()) and super()._may_release(outputs, values)

    def variance(self, value: ArrayLike) -> Array:
        """Return ``length^2 - |value|^2``."""
        # E |Z - v|^2 = E |Z|^2 - |v|^2, because E Z = v.
        spread: Array = self.length * self.length - self._squared_norm(value)
        return spread


def out_of_range(what: str) -> Any:
    """Declare the field that says whether a value beyond its bound is refused or clipped."""
    text = f"a {what} is refused, or clipped to the bound"
    return param(OneOf(("refuse", "clip")), text, typical=("refuse",), default="refuse")


def relative_norm(vectors: Array, radius: float) -> Array:
    """Return ``|vector| / radius``; extreme lengths are divided first, so no square overflows."""
    safe = 1e-100 < radius < 1e100  # then squares of norms near the radius are normal floats
    return norms(vectors, 2) / radius if safe else norms(vectors / radius, 2)


def stochastic_round(
    means: Array, shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return True with probability ``(1 + mean) / 2``: a number of [-1, 1], rounded to an end.

    It is used before privacy is added, where the probability need not be exact.
    """
    up: NDArray[np.bool_] = rng.random(shape) < (1 + means) / 2
    return up


def on_sphere(output: Array, radius: float) -> NDArray[np.bool_]:
    """Return which outputs lie on the sphere, up to 1e-6 of the radius, far more than round-off."""
    within: NDArray[np.bool_] = np.abs(norms(output / radius, 2) - 1) < 1e-6
    return within


def gamma_ratio(x: float) -> float:
    """Return ``Gamma(x + 1/2) / Gamma(x)`` to a few units in the last place, for ``x`` above 0."""
    if x < 100:
        return math.gamma(x + 0.5) / math.gamma(x)
    # The series of Tricomi & Erdelyi (1951); its first term that is left out is 2e-16 at x = 100.
    series = (1.0, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144)
    return math.sqrt(x) * sum(term / x**i for i, term in enumerate(series))
