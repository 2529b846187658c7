"""How often a tuned release is run: the laws of the random number of tries.

Private tuning runs a release a random number of times and publishes the best result.  The law of
that number, which does not depend on the data, decides what it costs.

References: Papernot & Steinke (2022), Definition 1 (truncated negative binomial) and Section 3.3
(Poisson).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from accountant.domains import Interval
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.numerics.search import least_float_that

# Domains: of the mean of a Poisson law, and of both parameters of a negative binomial law.
MEAN = Interval(1e-300, 1e15)
STOP = Interval(1e-15, 1.0)
SHAPE = Interval(-1.0, 1000.0, "(]")


class Tries(ABC):
    """The law of a number of tries, drawn apart from the data and never released.

    Examples
    --------
    >>> from accountant.amplification.tries import GeometricTries, Tries
    >>> isinstance(GeometricTries(0.1), Tries), round(GeometricTries(0.1).mean, 6)
    (True, 10.0)
    """

    __slots__ = ()

    if TYPE_CHECKING:  # Some laws have these as fields, and others compute them.

        @property
        def mean(self) -> float:
            """The mean number of tries, rounded up."""

        @property
        def shape(self) -> float:
            """The shape of its negative binomial family; infinite for Poisson."""

    @abstractmethod
    def generating_function(self, x: float) -> float:
        """Return the mean of ``x`` to the power of the number of tries.

        Parameters
        ----------
        x : float
            In [0, 1].

        Returns
        -------
        float
            To nearest; 1 at 1, and at 0 the chance of no try.
        """

    @abstractmethod
    def log_slope_ratio(self, tail: Array, gap: Array) -> Array:
        """Return ``ln f'(1 - tail) - ln f'(1 - tail - gap)``, f being `generating_function`.

        The best run is an outcome, which one run betters with probability ``tail``, with
        ``f'(1 - tail)`` times the density that the outcome has in one run.  The ratio falls with
        ``tail``, and along a line ``gap = a + b tail`` it rises all the way or falls all the way.

        Parameters
        ----------
        tail, gap : array
            Both and their sum in [0, 1].

        Returns
        -------
        array
            To nearest.
        """

    @abstractmethod
    def chance_of_best(self, tail: Array, mass: Array) -> Array:
        """Return ``f(1 - tail) - f(1 - tail - mass)``, f being `generating_function`.

        It is the chance that the best run has an outcome of chance ``mass`` in one run, which one
        run betters with chance ``tail``.

        Parameters
        ----------
        tail, mass : array
            Both and their sum in [0, 1].

        Returns
        -------
        array
            To nearest, relative to itself.
        """


@final
@dataclass(frozen=True, slots=True)
class PoissonTries(Tries):
    """A Poisson number of tries; with chance ``exp(-mean)`` there is none, and nothing comes out.

    Parameters
    ----------
    mean : float
        Mean number of tries, above 0.

    References
    ----------
    Papernot & Steinke (2022), Theorem 6.

    Examples
    --------
    >>> from accountant import GaussianLoss, PoissonTries, Repeated, Tight
    >>> round(Tight().epsilon(Repeated(GaussianLoss(0.2), PoissonTries(10.0)), 1e-6), 3)
    1.558
    """

    mean: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", MEAN.check("mean", self.mean))

    @property
    def shape(self) -> float:
        """Infinity: the limit of the negative binomial family."""
        return math.inf

    def generating_function(self, x: float) -> float:
        """Return ``e^{mean (x - 1)}``."""
        return math.exp(self.mean * (x - 1))

    def log_slope_ratio(self, tail: Array, gap: Array) -> Array:
        """Return ``mean gap``."""
        log_ratio: Array = self.mean * gap
        return log_ratio

    def chance_of_best(self, tail: Array, mass: Array) -> Array:
        """Return ``e^{-mean tail} (1 - e^{-mean mass})``."""
        chance: Array = np.exp(-self.mean * tail) * -np.expm1(-self.mean * mass)
        return chance


class NegativeBinomial(Tries):
    """The family of truncated negative binomial laws, whose member `shape` and ``stop`` name.

    The number k, at least 1, has a probability proportional to ``(1 - stop)^k`` times
    ``shape (shape + 1) ... (shape + k - 1) / k!``, or in the limit of shape 0 times ``1 / k``.
    """

    __slots__ = ()

    stop: float

    @property
    def mean(self) -> float:
        """``shape (1 - stop) / (stop (1 - stop^shape))``, rounded up."""
        nats = -math.log(self.stop)
        if nats == 0:
            return 1.0
        # stop^shape = e^{-shape nats}; for the shape 0 it is the limit.
        share = self.shape / -math.expm1(-self.shape * nats) if self.shape else 1 / nats
        return round_up(share * (-math.expm1(-nats) / self.stop), 32)

    def generating_function(self, x: float) -> float:
        """Return ``((1 - (1 - stop) x)^-shape - 1) / (stop^-shape - 1)``, or its limit."""
        # -ln of 1 - (1 - stop) x, which is `nats` at x = 1; nothing cancels in `expm1` of it.
        nats = -math.log(self.stop)
        nats_at_x = -math.log1p(-(1 - self.stop) * x)
        if nats == 0:
            return x
        if self.shape == 0:
            return nats_at_x / nats
        return math.expm1(self.shape * nats_at_x) / math.expm1(self.shape * nats)

    def log_slope_ratio(self, tail: Array, gap: Array) -> Array:
        """Return ``(1 + shape) ln(1 + (1 - stop) gap / (stop + (1 - stop) tail))``."""
        going_on = 1 - self.stop
        log_ratio: Array = (1 + self.shape) * np.log1p(
            going_on * gap / (self.stop + going_on * tail)
        )
        return log_ratio

    def chance_of_best(self, tail: Array, mass: Array) -> Array:
        """Return ``(s^-shape - (s + (1 - stop) mass)^-shape) / (stop^-shape - 1)``, or its limit.

        s is ``stop + (1 - stop) tail``.
        """
        going_on, nats = 1 - self.stop, -math.log(self.stop)
        s = self.stop + going_on * tail
        log_growth: Array = np.log1p(going_on * mass / s)
        if self.shape == 0:
            return log_growth / nats
        chance: Array = (
            s**-self.shape * np.expm1(-self.shape * log_growth) / -math.expm1(self.shape * nats)
        )
        return chance


@final
@dataclass(frozen=True, slots=True)
class NegativeBinomialTries(NegativeBinomial):
    """A truncated negative binomial number of tries, at least 1.

    Parameters
    ----------
    shape : float
        Above -1; 1 is geometric, 0 logarithmic.
    stop : float
        The gamma of the reference, in [1e-15, 1]: the smaller, the more tries; 1 is one try.

    References
    ----------
    Papernot & Steinke (2022), Definition 1 and Theorem 2.

    Examples
    --------
    >>> from accountant import NegativeBinomialTries
    >>> round(NegativeBinomialTries(shape=0.5, stop=0.01).mean, 4)
    55.0
    """

    shape: float
    stop: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", SHAPE.check("shape", self.shape))
        object.__setattr__(self, "stop", STOP.check("stop", self.stop))


@final
@dataclass(frozen=True, slots=True)
class GeometricTries(NegativeBinomial):
    """A geometric number of tries: after each one, stop with probability ``stop``.

    Parameters
    ----------
    stop : float
        In [1e-15, 1]; the mean number of tries is its inverse.

    References
    ----------
    Liu & Talwar (2019), Theorem 3.1; Papernot & Steinke (2022), Theorem 2 with shape 1.

    Examples
    --------
    >>> from accountant import GeometricTries, PureLoss, Repeated, Tight
    >>> round(Tight().epsilon(Repeated(PureLoss(0.1), GeometricTries(0.01)), 0.0), 6)
    0.296033
    """

    stop: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", STOP.check("stop", self.stop))

    @property
    def shape(self) -> float:
        """1."""
        return 1.0


@final
@dataclass(frozen=True, slots=True)
class LogarithmicTries(NegativeBinomial):
    """A logarithmic number of tries: k has a probability proportional to ``(1 - stop)^k / k``.

    Parameters
    ----------
    stop : float
        In [1e-15, 1]: the smaller, the more tries.

    References
    ----------
    Papernot & Steinke (2022), Theorem 2 with shape 0.

    Examples
    --------
    >>> from accountant import LogarithmicTries, PureLoss, Repeated, Tight
    >>> round(Tight().epsilon(Repeated(PureLoss(0.1), LogarithmicTries(0.01)), 0.0), 6)
    0.198017
    """

    stop: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", STOP.check("stop", self.stop))

    @property
    def shape(self) -> float:
        """0."""
        return 0.0


TRIES_KINDS: dict[str, type[Tries]] = {
    kind.__name__: kind
    for kind in (PoissonTries, NegativeBinomialTries, GeometricTries, LogarithmicTries)
}


def tries_of_mean(mean: float, shape: float) -> Tries:
    """Return the tries of a family with this mean, or with the least one found above it.

    ``shape`` is that of the negative binomial family, infinite for Poisson.
    """
    if shape == math.inf:
        return PoissonTries(mean)

    def of_stop(stop: float) -> Tries:
        if shape == 1:
            return GeometricTries(stop)
        return NegativeBinomialTries(shape, stop) if shape else LogarithmicTries(stop)

    Interval(1.0, of_stop(STOP.low).mean).check("mean", mean)
    # The mean falls as `stop` grows.  The least `stop` with a smaller mean is searched; the float
    # below it has this mean or a larger one.
    stop_below = least_float_that(lambda stop: of_stop(stop).mean < mean, STOP.low, 1.0)
    return of_stop(max(STOP.low, math.nextafter(stop_below, 0.0)) if stop_below < 1 else 1.0)
