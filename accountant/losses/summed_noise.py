"""Noise on whole numbers that many clients add in shares: the law of the sum, and what it costs.

Under secure aggregation a server sees the sum of all clients' integer vectors and nothing else.  To
each coordinate every client adds a share of the noise: a discrete Gaussian, or the difference of
two Poisson numbers (Skellam).  `DiscreteGaussianSum` and `SkellamNoise` are the laws of the sum.

On one number a shift costs what `SummedNoiseLoss` lists, outcome by outcome.  On vectors any shift
s of whole numbers costs at most a Gaussian of mu |s|, where mu follows from how much more probable
0 is than 1.  Theorem and proof: `docs/proofs/summed_noise.md`.

References: Kairouz, Liu & Steinke (2021), distributed discrete Gaussian; Agarwal, Kairouz & Liu
(2021), Skellam; Regev & Stephens-Davidowitz (2017) for the inequality behind the theorem.
"""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE, IntegerRange
from accountant.errors import ParameterError, PrivateValueError
from accountant.losses.discrete_gaussian import MAX_LISTED_OUTCOMES, SHIFT, normaliser
from accountant.losses.finite import FiniteLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss, orders
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP, UNDERFLOW, round_up, round_up_square
from accountant.numerics.search import smallest_root
from accountant.plans.declared_releases import PlanField, plan_field

CLIENTS = IntegerRange(1, 10**9)
LISTED_MASS = 1e-280  # the least mass of an outcome that is listed
UNLISTED_MASS = 1e-100  # of all others together: far less than any delta that is asked for
# From this scale of a share on, the sum of discrete Gaussians is a discrete Gaussian, but for a
# factor of 1 +- 10 n e^(-4 pi^2), which is 1e-16 n for n clients (Kairouz, Liu & Steinke 2021,
# Theorem 1).
CLOSED_FROM = 2.0
# Up to this reach logarithms are convolved: shares may be so narrow that masses are no floats.
NARROW_REACH = 200
WIDE_SHARE = 0.5  # narrower shares of discrete Gaussians vary far less than their scale says
# From this variance on the curvature of Skellam noise has its closed bound, 1.5 / variance too
# large in relation: below it floats tell I_0 from I_1 well enough.
CLOSED_SKELLAM_FROM = 1e6


class SummedNoise(PlanField):
    """A symmetric law on the whole numbers whose ``-ln P`` curves most at 0.

    That is, ``P(k)^2 / (P(k - 1) P(k + 1))`` is at most ``(P(0) / P(1))^2``.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance; for discrete Gaussians that of continuous ones, an upper bound."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """An upper bound of ``2 ln(P(0) / P(1))``."""

    @abstractmethod
    def log_tail(self, distance: ArrayLike) -> Array:
        """Return Chernoff's bound of ``ln P(|k| >= distance)``.

        Parameters
        ----------
        distance : array_like
            Above 0.

        Returns
        -------
        numpy.ndarray
            Of the shape of ``distance``.
        """

    @abstractmethod
    def log_masses(self, reach: int) -> tuple[Array, float]:
        """Return ``ln P(k)`` of 0 ... ``reach``, of which the last two deviations may be inexact.

        Parameters
        ----------
        reach : int
            The last k, at least ten deviations.

        Returns
        -------
        numpy.ndarray
            Minus infinity where a mass is no float.
        float
            A bound of the error of the others.
        """

    @property
    def gdp_per_step(self) -> float:
        """The mu of a Gaussian that costs as much as moving one coordinate by 1, at least."""
        curvature = self.curvature
        if curvature <= 3:
            # mu^2 (1 - mu^2 / 12) is the curvature, in a form in which nothing cancels.
            squared = 2 * curvature / (1 + math.sqrt(1 - curvature / 3))
        else:
            squared = 2 * math.pi * curvature
        return round_up(math.sqrt(squared), 8)

    def log_mass(self, k: ArrayLike) -> Array:
        """Return the natural logarithm of the probability of whole numbers.

        Parameters
        ----------
        k : array_like
            Whole numbers.

        Returns
        -------
        numpy.ndarray
            Of the shape of ``k``.
        """
        distance = np.abs(np.asarray(k, dtype=np.int64))
        largest = int(distance.max(initial=0))
        farthest = 64 + max(largest + largest // 4, self.distance_of_tail(1e-20))
        return log_masses_of(self, 1 << farthest.bit_length())[distance]

    def distance_of_tail(self, mass: float) -> int:
        """Return a whole number that the noise reaches or exceeds, in size, with at most a mass.

        Parameters
        ----------
        mass : float
            In (0, 1).

        Returns
        -------
        int
            By Chernoff's bound.
        """

        def tail(distance: Array) -> Array:
            return np.exp(np.minimum(self.log_tail(distance), 0.0))

        return math.ceil(smallest_root(tail, mass, math.inf))

    def error_quantile(self, probability: float) -> float:
        """Return the error that the noise stays within, with a probability.

        Parameters
        ----------
        probability : float
            In (0, 1).

        Returns
        -------
        float
            A whole number: the least one, or where outcomes are too many Chernoff's bound of it.
        """
        by_chernoff = self.distance_of_tail(1 - probability) - 1
        if by_chernoff > MAX_LISTED_OUTCOMES:
            return float(by_chernoff)
        reach = self.distance_of_tail((1 - probability) * 1e-12)
        masses = np.exp(self.log_mass(np.arange(reach + 1)))
        # P(|k| > m) of m = 0, 1, ..., raised by what is beyond the reach, and by round-off.
        beyond = 2 * (np.cumsum(masses[::-1])[::-1] - masses) * (1 + 1e-9)
        beyond += (1 - probability) * 1e-9
        return float(min(by_chernoff, int(np.argmax(beyond <= 1 - probability))))

    def is_listed(self, shift: int) -> bool:
        """Return whether all outcomes that matter to a shift can be listed.

        Parameters
        ----------
        shift : int
            Distance of two numbers.

        Returns
        -------
        bool
            True where `SummedNoiseLoss` can be made.
        """
        return _listed_outcomes(self, shift) is not None


@final
@plan_field
@dataclass(frozen=True, slots=True)
class DiscreteGaussianSum(SummedNoise):
    """The sum of independent discrete Gaussians.

    Parameters
    ----------
    scale : float
        Of one share: the integer k has a probability proportional to ``exp(-k^2 / (2 scale^2))``.
    terms : int
        Number of shares.

    Examples
    --------
    >>> from accountant import DiscreteGaussianSum
    >>> round(DiscreteGaussianSum(scale=2.0, terms=100).gdp_per_step * 20, 5)
    1.0001
    """

    scale: float
    terms: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", POSITIVE.check("scale", self.scale))
        object.__setattr__(self, "terms", CLIENTS.check("terms", self.terms))

    @property
    def variance(self) -> float:
        """``terms * scale^2``, at least the true variance."""
        return self.terms * self.scale * self.scale

    @property
    def curvature(self) -> float:
        """``2 ln(P(0) / P(1))``, from the characteristic function; at most 1 / scale^2."""
        return curvature_of_sum(self.scale, self.terms)

    def log_tail(self, distance: ArrayLike) -> Array:
        """Return ``ln 2 - distance^2 / (2 variance)``, or less where shares are narrow."""
        deviations: Array = np.asarray(distance) / math.sqrt(self.variance)
        exponent = -deviations * deviations / 2  # shares are sub-Gaussian
        if self.scale < WIDE_SHARE:
            # The cumulants K(l) of a share are far below l^2 scale^2 / 2.  Any l gives a bound
            # n K(l) - l d; beyond k = 16 lies a share of the moment below e^-160.
            of_one_share = 1 / self.scale / self.scale
            tilts = np.geomspace(1e-4, 8.0, 400) * of_one_share
            k = np.arange(-16.0, 17.0)
            terms = np.multiply.outer(tilts, k) - np.square(k) * of_one_share / 2
            cumulants = np.logaddexp.reduce(terms, axis=-1) - math.log(normaliser(self.scale))
            cumulants = self.terms * (cumulants + 64 * ULP * (1 + tilts))
            bounds = cumulants - np.multiply.outer(np.asarray(distance), tilts)
            exponent = np.minimum(exponent, bounds.min(axis=-1))
        return math.log(2) + exponent

    def log_mass(self, k: ArrayLike) -> Array:
        """Return ``ln P(k)``, where it has no closed form from k modulo the number of shares."""
        distance = np.abs(np.asarray(k, dtype=np.int64))
        if self.is_closed:
            return self._closed_log_mass(distance)
        # If m is added to each share, its squares add up to 2 m r + n m^2 more, whatever they were.
        m = (distance + self.terms // 2) // self.terms
        remainder = distance - m * self.terms
        log_masses = SummedNoise.log_mass(self, remainder)
        if np.isneginf(log_masses).any():
            near = (
                f"so near to the value that its mass is a float, as scales are below {CLOSED_FROM}"
            )
            raise PrivateValueError("output", near)
        excess = m * (2.0 * remainder + float(self.terms) * m)
        log_masses -= excess / 2 / self.scale / self.scale
        return log_masses

    @property
    def is_closed(self) -> bool:
        """Whether the sum is a discrete Gaussian, but for the factor at `CLOSED_FROM`."""
        return self.scale >= CLOSED_FROM or self.terms == 1

    def _closed_log_mass(self, k: Array) -> Array:
        scale = math.sqrt(self.variance)
        log_masses: Array = -((k / scale) ** 2) / 2 - math.log(normaliser(scale))
        return log_masses

    def log_masses(self, reach: int) -> tuple[Array, float]:
        """Return ``ln P(k)``: in closed form from `CLOSED_FROM` on, else by convolution."""
        if self.is_closed:
            error = 10 * self.terms * math.exp(-((math.pi * CLOSED_FROM) ** 2)) + 2000 * ULP
            return self._closed_log_mass(np.arange(reach + 1.0)), error
        if reach > 4 * MAX_LISTED_OUTCOMES:  # a convolution takes the square of it
            raise ParameterError("scale", self.scale, f"at least {CLOSED_FROM} for a density here")
        # The sums of 1, 2, 4, ... shares are convolved with the shares that are added up already.
        # All terms are positive: a sum of N products errs by N + 1 ulps, errors of factors add.
        is_narrow = reach <= NARROW_REACH
        convolved = log_convolution if is_narrow else np.convolve
        energies = np.square(np.arange(-reach, reach + 1.0) / self.scale) / 2
        power, total = -energies - math.log(normaliser(self.scale)), np.zeros(1)
        if not is_narrow:
            power, total = np.exp(power), np.ones(1)
        error, total_error, remaining = 100 * ULP, 0.0, self.terms
        while remaining:
            if remaining & 1:
                total_error += error + (2 + np.count_nonzero(power)) * ULP
                total = _middle(convolved(total, power), reach)
            remaining >>= 1
            error = 2 * error + (2 + np.count_nonzero(power)) * ULP
            if remaining:
                power = _middle(convolved(power, power), reach)
        half = total[total.size // 2 :]
        if is_narrow:
            return half, total_error + 64 * ULP * (1 - float(half[-1]))
        with np.errstate(divide="ignore"):
            log_masses = np.log(half)
        log_masses[log_masses < math.log(UNDERFLOW)] = -math.inf
        return log_masses, total_error + 1e-12


@final
@plan_field
@dataclass(frozen=True, slots=True)
class SkellamNoise(SummedNoise):
    """The difference of two independent Poisson numbers of equal mean.

    Sums of such noise are such noise: the scales add in squares.

    Parameters
    ----------
    scale : float
        Standard deviation; both means are ``scale^2 / 2``.
    terms : int
        Number of shares of this scale.

    Examples
    --------
    >>> from accountant import SkellamNoise
    >>> round(SkellamNoise(scale=2.0, terms=100).gdp_per_step * 20, 5)
    1.00073
    """

    scale: float
    terms: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", POSITIVE.check("scale", self.scale))
        object.__setattr__(self, "terms", CLIENTS.check("terms", self.terms))

    @property
    def variance(self) -> float:
        """``terms * scale^2``."""
        return self.terms * self.scale * self.scale

    @property
    def curvature(self) -> float:
        """``2 ln(I_0(variance) / I_1(variance))``; for large variances Amos's bound of it."""
        from scipy.special import i0e, i1e

        variance = self.variance
        if variance >= CLOSED_SKELLAM_FROM:
            # I_1 / I_0 >= V / (1/2 + sqrt(V^2 + 9/4)) (Amos 1974); the difference from 1 is written
            # so that nothing cancels.
            root = math.hypot(variance, 1.5)
            excess = (0.5 + 2.25 / (root + variance)) / variance
            return round_up(2 * math.log1p(excess), 8)
        if variance < 1e-8:
            # I_0 / I_1 <= (2 / V) (1 + V^2 / 4): the first is at most e^(V^2 / 4), the second at
            # least V / 2.
            return 2 * (math.log(2) - math.log(variance)) + 1e-14
        ratio = float(i0e(variance)) / float(i1e(variance))
        return 2 * math.log(ratio) + 64 * ULP

    def log_tail(self, distance: ArrayLike) -> Array:
        """Return ``ln 2 + sqrt(d^2 + V^2) - V - d asinh(d / V)``, with the variance V."""
        x = np.asarray(distance) / self.variance
        # x * x / (1 + hypot(1, x)) is sqrt(1 + x^2) - 1 without cancellation.
        exponent: Array = x * x / (1 + np.hypot(1.0, x)) - x * np.arcsinh(x)
        return math.log(2) + self.variance * exponent

    def log_mass(self, k: ArrayLike) -> Array:
        """Return ``ln(e^-V I_k(V))``, where k or V is large by Debye's expansion."""
        distance = np.abs(np.asarray(k, dtype=np.int64))
        root = np.hypot(distance, self.variance)
        t = np.square(distance / root)
        expansion = self.log_tail(distance) - math.log(2) - np.log(2 * math.pi * root) / 2
        expansion += (3 - 5 * t) / 24 / root + (1 - t) * (1 - 5 * t) / 16 / root / root
        is_near = root < 4 * MAX_LISTED_OUTCOMES  # beyond, the next terms are below 1e-13
        if not is_near.any():
            return expansion
        listed = SummedNoise.log_mass(self, np.where(is_near, distance, 0))
        return np.where(is_near, listed, expansion)

    def log_masses(self, reach: int) -> tuple[Array, float]:
        """Return ``ln(e^-V I_k(V))`` by ratios I_{k+1} / I_k, downwards from bounds of the last."""
        from scipy.special import i0e

        variance = self.variance
        # The recurrence I_{k-1} = I_{k+1} + (2 k / V) I_k has positive terms, so that errors of the
        # start shrink by the square of a ratio in each step: 12 deviations farther by e^-144.
        start = reach + math.ceil(12 * self.scale * math.sqrt(self.terms)) + 8
        ratios, ratio = np.empty(start), variance / (start + 1 + math.hypot(variance, start + 1))
        for k in range(start, 0, -1):
            ratio = 1 / (2 * k / variance + ratio)
            ratios[k - 1] = ratio
        logs = np.append(0.0, np.cumsum(np.log(ratios[:reach])))
        return math.log(i0e(variance)) + logs, 1e-11


def log_convolution(first: Array, second: Array) -> Array:
    """Return the logarithms of a convolution of masses that are given by theirs."""
    terms = np.full((first.size, first.size + second.size - 1), -np.inf)
    for i, log_mass in enumerate(first):
        terms[i, i : i + second.size] = log_mass + second
    sums: Array = np.logaddexp.reduce(terms, axis=0)
    return sums


def _middle(masses: Array, reach: int) -> Array:
    """Return the masses of -reach ... reach, where there are as many."""
    extra = max(0, masses.size // 2 - reach)
    return masses[extra : masses.size - extra]


@functools.lru_cache(maxsize=4096)
def curvature_of_sum(scale: float, terms: int) -> float:
    """Return ``2 ln(P(0) / P(1))`` of the sum of so many discrete Gaussians, rounded up.

    With the characteristic function f of a share, P(0) is the mean of f(u)^n over u in [0, 1), and
    P(0) - P(1) that of f(u)^n 2 sin^2(pi u): sums of positive terms.  At N equally spaced u the
    mean is that of P(0 + l N) over all l, of which those beyond 0 are below e^-799.
    """
    of_one_share = 1 / scale / scale
    variance = terms * scale * scale
    points = 2 * math.ceil(20 * math.sqrt(variance) + 20)
    # Where u is beyond 10 / (2 pi sqrt(variance)) terms are below e^-50 of the first, and fall.
    last = (
        min(points / 2, points * 2 / math.sqrt(variance) + 2) if scale >= WIDE_SHARE else points / 2
    )
    u = np.arange(math.floor(last) + 1) / points
    n = np.arange(1, 8)[:, None]
    if scale >= WIDE_SHARE:  # by Poisson's summation
        width = 2 * (math.pi * scale) ** 2
        # From waves e^(-width n (n - 2 u)) + e^(-width n (n + 2 u)) those of u = 0 are taken away.
        waves = np.exp(-width * n * (n - 2 * u)) * np.square(np.expm1(-2 * width * n * u))
        at_zero = 1 + 2 * np.exp(-width * n * n).sum()
        log_share = -width * u * u + np.log1p(waves.sum(axis=0) / at_zero)
    else:
        weights = np.exp(-((n / scale) ** 2) / 2)
        sines = np.square(np.sin(math.pi * n * u))
        log_share = np.log1p(-4 * (weights * sines).sum(axis=0) / (1 + 2 * weights.sum()))
    mass = np.exp(terms * log_share)
    mass[0] /= 2  # u and 1 - u have equal terms; 0 stands alone, and so does 1/2
    if u[-1] * 2 >= 1:
        mass[-1] /= 2
    fall = float(ordered_dot(mass, 2 * np.square(np.sin(math.pi * u)))) / float(mass.sum())
    error = (64 + 4 * terms * min(1.0, 50 / terms)) * ULP
    if not fall < 1 - 1e-6:
        return round_up(of_one_share)
    return min(-2 * math.log1p(-fall * (1 + error)), round_up(of_one_share))


@final
@dataclass(frozen=True, slots=True)
class SummedNoiseLoss(FiniteLoss):
    """The loss of summed integer noise on numbers ``shift`` apart, listed by outcome.

    Parameters
    ----------
    noise : DiscreteGaussianSum or SkellamNoise
        The law of the noise; at most 4096 outcomes must have a mass above 1e-280.
    shift : int
        Distance of the two numbers, at least 1.

    References
    ----------
    Kairouz, Liu & Steinke (2021); Agarwal, Kairouz & Liu (2021).

    Examples
    --------
    >>> from accountant import SkellamNoise, SummedNoiseLoss
    >>> round(SummedNoiseLoss(SkellamNoise(2.0), shift=1).epsilon_at(1e-6), 4)
    1.642
    """

    noise: SummedNoise
    shift: int

    def __post_init__(self) -> None:
        if not isinstance(self.noise, SummedNoise):
            raise ParameterError("noise", self.noise, "a DiscreteGaussianSum or a SkellamNoise")
        object.__setattr__(self, "shift", SHIFT.check("shift", self.shift))
        if not self.noise.is_listed(self.shift):
            allowed = (
                f"with at most {MAX_LISTED_OUTCOMES} outcomes of some mass; else GaussianLoss("
            )
            reason = f"{allowed}shift * noise.gdp_per_step) is above it"
            raise ParameterError("noise", self.noise, reason)

    @property
    def _outcomes(self) -> ListedOutcomes:
        outcomes = _listed_outcomes(self.noise, self.shift)
        if outcomes is None:
            raise TypeError("the constructor refuses noise that is not listed")
        return outcomes

    @property
    def reversed(self) -> SummedNoiseLoss:
        """The loss itself, as the noise is symmetric."""
        return self

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """Losses and probabilities of the listed outcomes."""
        return self._outcomes.losses, self._outcomes.masses

    @property
    def max_loss(self) -> float:
        """The largest listed loss, in nats."""
        return float(self.loss_pmf[0].max())

    @property
    def infinity(self) -> float:
        """An upper bound on the mass that is not listed, at most 1e-100."""
        return self._outcomes.unlisted

    @property
    def rounding(self) -> float:
        """How far the logarithm of a mass may be from the true one."""
        return self._outcomes.rounding

    @property
    def gdp_mu(self) -> float:
        """The mu of the Gaussian above this loss, which has no unlisted mass."""
        return round_up(self.noise.gdp_per_step * self.shift)

    @property
    def rho(self) -> float:
        """Half the square of `gdp_mu`, rounded up."""
        return round_up_square(self.gdp_mu, 2)

    def renyi(self, order: ArrayLike) -> Array:
        """Return ``order * rho``, a bound of the Rényi divergence at every order."""
        divergence: Array = orders(order) * self.rho
        return divergence


@functools.lru_cache(maxsize=64)
def log_masses_of(noise: SummedNoise, reach: int) -> Array:
    """Return ``ln P(k)`` of 0 ... ``reach``, whose last two deviations may be inexact."""
    return noise.log_masses(reach)[0]


class ListedOutcomes(NamedTuple):
    """Outcomes of a pair, whose masses and losses are raised by the error of their logarithms."""

    losses: Array
    masses: Array
    unlisted: float  # an upper bound of the mass of all others
    rounding: float


@functools.lru_cache(maxsize=256)
def _listed_outcomes(noise: SummedNoise, shift: int) -> ListedOutcomes | None:
    """Return the outcomes of P about 0 against Q about ``shift``; None where they are too many."""
    distances = np.arange(MAX_LISTED_OUTCOMES // 2 + 1.0)
    is_beyond = noise.log_tail(distances) < math.log(LISTED_MASS)
    reach = int(np.argmax(is_beyond))
    if not is_beyond[-1] or 2 * reach + shift > MAX_LISTED_OUTCOMES:
        return None
    # The convolution of shares is not exact near its ends, which are a tenth farther.
    half, error = noise.log_masses(reach + reach // 10 + 2 * shift + 10)
    has_both = (half[:-shift] >= math.log(LISTED_MASS)) & np.isfinite(half[shift:])
    if not has_both.any():
        return None
    farthest = int(np.flatnonzero(has_both)[-1])
    # Masses fall ever faster, so that all beyond are less than a geometric series.
    unlisted = (
        2 * math.exp(half[farthest + 1] + error) / -math.expm1(half[farthest + 1] - half[farthest])
    )
    if unlisted > UNLISTED_MASS:
        return None
    k = np.arange(-farthest, farthest + 1)
    log_p = half[np.abs(k)]
    losses = log_p - half[np.abs(k - shift)] + 2 * error
    return ListedOutcomes(losses, np.exp(log_p + error), unlisted + 1e-300, 3 * error)


def loss_of_summed_noise(noise: SummedNoise, sensitivity: float, dimension: int) -> Loss:
    """Return the smallest loss known of vectors of whole numbers within an L2 sensitivity.

    Whole vectors that differ in one coordinate alone are two numbers apart, and the loss is exact.
    """
    # The squared distance is whole; a float such as sqrt(3) may be a little less than that.
    squared = sensitivity * sensitivity * (1 + 2.0**-40)
    distance = sensitivity * (1 + 2.0**-40)
    if 1 <= squared < 2.0**53:  # floats tell larger numbers from their neighbours no more
        steps = math.floor(squared)
        shift = math.isqrt(steps)
        if (dimension == 1 or steps == 1) and noise.is_listed(shift):
            return SummedNoiseLoss(noise, shift)
        distance = float(shift) if dimension == 1 else math.sqrt(steps)
    return GaussianLoss(round_up(noise.gdp_per_step * distance))
