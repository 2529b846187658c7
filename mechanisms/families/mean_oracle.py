"""What unbiased reports of numbers and vectors share: decoding, variance, a gamma ratio."""

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
from mechanisms.base.checks import norms
from mechanisms.base.mechanism import Mechanism
from mechanisms.base.parameters import param


class MeanOracle(Mechanism):
    """Every user reports with noise, and the expectation of a report is the user's value."""

    __slots__ = ()

    def decode(self, reports: ArrayLike) -> Array:
        """Unbiased estimate of the mean of the users' values: the mean of their reports."""
        given = np.asarray(reports)
        if given.ndim != 1 + (self.values.axes or 0) or len(given) == 0:
            allowed = "one report along the first axis for each of at least one user"
            raise ParameterError("reports", f"shape {given.shape}", allowed)
        mean: Array = given.mean(axis=0, dtype=float)
        return mean

    @abstractmethod
    def variance(self, value: ArrayLike) -> Array:
        """``E |report - value|^2``, exactly, of a value or of each in a batch."""

    def second_moment(self, value: ArrayLike) -> Array:
        """``E |report|^2``, exactly, of a value or of each in a batch."""
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
    """All reports are of one Euclidean length, which therefore says what they vary."""

    __slots__ = ()

    @property
    @abstractmethod
    def length(self) -> float:
        """Euclidean length of every report."""

    def variance(self, value: ArrayLike) -> Array:
        """``length^2 - |value|^2``."""
        # E|Z - v|^2 = E|Z|^2 - |v|^2 as E Z = v
        spread: Array = self.length * self.length - self._squared_norm(value)
        return spread


def out_of_range(what: str) -> Any:
    """Declare the field that says what becomes of a value outside its bound."""
    text = f"a {what} is refused, or clipped to the bound"
    return param(OneOf(("refuse", "clip")), text, typical=("refuse",), default="refuse")


def relative_norm(vectors: Array, radius: float) -> Array:
    """``|vector| / radius``; where a square would overflow or vanish, dividing comes first."""
    safe = 1e-100 < radius < 1e100
    return norms(vectors, 2) / radius if safe else norms(vectors / radius, 2)


def stochastic_round(
    means: Array, shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """True with probability ``(1 + share) / 2``: a share between -1 and 1 rounded to an end.

    It is for what a user mixes before privacy is added, where the law need not be exact.
    """
    up: NDArray[np.bool_] = rng.random(shape) < (1 + means) / 2
    return up


def on_sphere(output: Array, radius: float) -> NDArray[np.bool_]:
    """Which outputs lie on the sphere, but for rounding."""
    near: NDArray[np.bool_] = np.abs(norms(output / radius, 2) - 1) < 1e-6
    return near


def gamma_ratio(x: float) -> float:
    """``Gamma(x + 1/2) / Gamma(x)`` to a few units in the last place, however large ``x``."""
    if x < 100:
        return math.gamma(x + 0.5) / math.gamma(x)
    # Tricomi & Erdelyi (1951); the first term left out is 1e-16 at x = 100
    series = (1.0, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144)
    return math.sqrt(x) * sum(term / x**i for i, term in enumerate(series))
