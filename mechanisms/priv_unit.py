"""Local privacy for the mean of vectors: each is reported as a random direction of a cap around it.

A user's vector of the Euclidean ball is first rounded at random to a vector v of full length along
its line, without bias.  The cap around v has the unit vectors u with <u, v/|v|> >= h, the
``height``.  A report is uniform on the cap with probability ``keep``, else uniform on the rest of
the sphere, and it has a length at which its expectation is the user's vector.

In this file the *mass* of a cap is the probability that a uniform direction lies in it.  The same
law of reports is drawn in another way: from the cap with probability b, `_cap_share`, and from the
whole sphere else, so that keep = b + (1 - b) mass.  Exact draws are of directions of integer
vectors, for which the mass of a cap is known up to an error; they use a slightly smaller b, which
pays for the error in privacy (docs/proofs/vectors.md, section 5).

References: Bhowmick et al. (2018), Algorithm 1; Asi, Feldman & Talwar (2022).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.losses.finite_pair import PairLoss, response_pair
from accountant.numerics import Array
from accountant.planning.calibration import calibrate
from accountant.randomness import Rng, generator, public_generator
from mechanisms.base import (
    EXACT,
    IDEALISED,
    Ball,
    arithmetic_field,
    declare,
    draw_shape,
    norms,
    param,
    refuse_size_for_batch,
    sum_log_density,
)
from mechanisms.base.mechanism import cache_blocks
from mechanisms.exact_noise.exact_bernoulli import bernoulli
from mechanisms.exact_noise.integer_directions import (
    cap_mass_error,
    directions,
    integer_axes,
    log_acceptance,
)
from mechanisms.families.mean_oracle import (
    FixedLengthMeanOracle,
    gamma_ratio,
    on_sphere,
    out_of_range,
    relative_norm,
    stochastic_round,
)
from mechanisms.families.sphere_support import SphereSupport

ROUND_OFF = 2.0**-49  # absolute error of the probability `_cap_share` from floating-point errors
MASS_ERROR = 1e-12  # relative error of a cap's mass as scipy computes it
LEAST_MASS = 1e-290  # a cap of less mass is refused: quotients by it may leave the range of floats
# The smallest probability outside the cap that `optimised` chooses.  It is far above the distance
# of floats below 1, so that rounding moves it by a small share of itself.
REST = 2.0**-36
# `optimised` chooses caps of at least this mass, for which exact draws accept at least this share
# of their proposals, so that they are not slow.
SMALLEST_CAP = 2.0**-24
LEAST_ACCEPTANCE = 2.0**-11


@final
@declare
class PrivUnit(FixedLengthMeanOracle):
    """A direction of the cap around the value with probability ``keep``, else of the rest.

    A vector shorter than the radius is rounded at random to one of full length along its line.  In
    exact arithmetic a report is the direction of a random vector of integers.

    Examples
    --------
    >>> from mechanisms import PrivUnit
    >>> one = PrivUnit(dimension=3, height=0.25, keep=0.75)
    >>> one.release([0.0, 0.6, 0.8], rng=0).round(4).tolist()
    [-2.2066, 0.6969, -1.3253]
    >>> round(one.length, 4), round(one.loss.pure, 4)
    (2.6667, 1.6094)
    """

    releases: ClassVar[str] = "a vector of each user, for its mean"
    reference: ClassVar[str] = "Bhowmick et al. (2018), Algorithm 1; Asi, Feldman & Talwar (2022)"
    limits: ClassVar[str] = (
        "idealised: low-order bits leak; exact: refuses caps of too small a share of the sphere"
    )

    dimension: int = param(IntegerRange(2), "number of coordinates", typical=(3,))
    height: float = param(
        Interval(1e-300, 1.0, "[)"),
        "where the cap begins, as a share of the radius",
        typical=(0.25,),
    )
    # At the typical value epsilon is 1: its odds are e times 3/5, those of a cap with 3/8 of the
    # sphere (dimension 3, height 1/4).
    keep: float = param(
        lambda self: Interval(least_keep(self), 1.0, "()"),
        "probability of the cap, above the cap's share of the sphere and below 1",
        typical=(0.6199119,),
        knob=True,
    )
    radius: float = param(
        POSITIVE, "largest Euclidean norm of a vector", typical=(1.0,), default=1.0
    )
    longer: str = out_of_range("longer vector")
    arithmetic: str = arithmetic_field(EXACT, IDEALISED)

    @staticmethod
    def optimised(dimension: int, epsilon: float, radius: float = 1.0) -> PrivUnit:
        """Return the mechanism with the height and probability of smallest variance at ``epsilon``.

        Parameters
        ----------
        dimension : int
            Number of coordinates, at least 2.
        epsilon : float
            Largest pure epsilon, in nats.
        radius : float
            Largest Euclidean norm of a vector.

        Returns
        -------
        PrivUnit
            Its epsilon is at most ``epsilon``.
        """
        from scipy.optimize import minimize_scalar

        p, target = (
            IntegerRange(2).check("dimension", dimension),
            POSITIVE.check("epsilon", epsilon),
        )

        # At cost epsilon the reports have length (1 + (e^epsilon - 1) mass) / (1 - h^2)^((p-1)/2)
        # times a constant, with the mass of the cap of height h.  The shortest have keep > 1/2,
        # thus a mass above e^-epsilon / 2.  As the mass of a cap is at most e^(-p h^2 / 2),
        # their h^2 is below 2 (epsilon + ln 2) / p.
        def log_length(height: float) -> float:
            mass = max(cap_mass(p, height), 1e-300)  # not 0, as its logarithm is taken
            length = np.logaddexp(math.log1p(-mass), target + math.log(mass))
            return float(length - (p - 1) / 2 * math.log1p(-height * height))

        highest = min(math.sqrt(2 * (target + 1) / p), highest_provable(p))
        height = float(minimize_scalar(log_length, bounds=(0.0, highest), method="bounded").x)
        fields: dict[str, Any] = {"dimension": p, "height": height, "radius": radius}
        mass = cap_mass(p, height)
        if (1 - mass) * math.exp(-target) < mass * REST:  # keep would round to 1
            return PrivUnit(keep=1 - REST, **fields)
        return calibrate(PrivUnit, epsilon=target, **fields)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return one randomised direction for every vector; see `Mechanism.release`."""
        vectors, source = self.values.check(value), generator(rng)
        refuse_size_for_batch(size, vectors, 1)
        if self.arithmetic is EXACT:
            return self._exact_reports(vectors, draw_shape(size, vectors.shape), source)
        return self._float_reports(vectors, size, source)

    def _exact_reports(
        self, vectors: Array, shape: tuple[int, ...], source: np.random.Generator
    ) -> Array:
        """Return reports whose law is exact: the directions of random vectors of integers.

        A vector is drawn in the cap with probability `_cap_share`, else anywhere on the sphere,
        with one law for all values.
        """
        # The random words for the rounding to full length, and for the axis of a zero vector, may
        # be public.  They are drawn without a look at the value, by the position of a row alone,
        # and for every outcome of them the report is epsilon-DP: its cap is then a function of the
        # value (docs/proofs/vectors.md).
        rows = np.broadcast_to(vectors, shape).reshape(-1, self.dimension)
        reports: Array = np.empty(rows.shape)
        # About this number of proposals are needed until one is in the cap.  No more than e^12 are
        # drawn at once, which bounds the memory.
        log_chance = log_acceptance(self.dimension, self.height, self._cap_mass)
        trials = math.exp(min(-log_chance, 12.0))
        for at in cache_blocks(rows, 8 * self.dimension):
            block, public = rows[at], public_generator(source)
            up = stochastic_round(relative_norm(block, self.radius), (len(block),), public)
            is_zero = ~block.any(axis=-1, keepdims=True)
            if is_zero.any():
                block = np.where(is_zero, public.standard_normal(block.shape), block)
            axes = integer_axes(np.where(up[:, None], block, -block))
            capped = bernoulli(self._cap_share, (len(block),), source)
            drawn = directions(axes, capped, self.height, source, trials)
            reports[at] = drawn * (self.length / norms(drawn, 2))[:, None]
        return reports.reshape(shape)

    def _float_reports(
        self, vectors: Array, size: int | None, source: np.random.Generator
    ) -> Array:
        """Return reports in floats: a height along the value, and a uniform direction around it."""
        from scipy.special import betaincinv

        reports: Array = source.standard_normal(draw_shape(size, vectors.shape))
        users = reports.shape[:-1]
        # For uniform u and a unit vector v, (1 + <u, v>) / 2 follows Beta((p-1)/2, (p-1)/2).  Its
        # upper tail is inverted for the cap, its lower tail for the rest.  Given <u, v>, all
        # directions around v are equally probable.
        in_cap = source.random(users) < self.keep
        tail = source.random(users) * np.where(in_cap, self._cap_mass, 1 - self._cap_mass)
        half = (self.dimension - 1) / 2
        along = (1 - 2 * betaincinv(half, half, tail)) * np.where(in_cap, 1.0, -1.0)
        # The value is rounded to full length or to the opposite of that, without bias.
        along *= np.where(
            stochastic_round(relative_norm(vectors, self.radius), users, source), 1.0, -1.0
        )
        # The report is drawn around -sign times the first axis, which Householder's reflection then
        # maps onto v.  This sign avoids cancellation.
        reports[..., 0] = 0.0
        reports *= (self.length * np.sqrt(1 - along * along) / norms(reports, 2))[..., None]
        # The direction of a zero vector is drawn at random.
        is_zero = ~vectors.any(axis=-1, keepdims=True)
        if is_zero.any():
            vectors = np.where(is_zero, source.standard_normal(reports.shape), vectors)
        mirror = unit_vectors(vectors)
        sign = np.where(mirror[..., 0] < 0, -1.0, 1.0)
        mirror[..., 0] += sign
        reports[..., 0] = -sign * along * self.length
        across = np.einsum("...i,...i", reports, mirror) / np.abs(mirror[..., 0])
        reports -= across[..., None] * mirror
        return reports

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return the log-density relative to the uniform distribution on the sphere, summed."""
        # The value v is rounded to the direction of v with probability (1 + |v| / radius) / 2, else
        # to the opposite.  The density is `inside` in the cap of what it was rounded to, and
        # `outside` elsewhere.
        vectors, reports = self.values.check(value), np.asarray(output, dtype=float)
        axes = unit_vectors(vectors)
        along = np.einsum("...i,...i", reports / self.length, axes)
        outside = 1 - self._cap_share
        inside = outside + self._cap_share / self._cap_mass
        weight = (1 + relative_norm(vectors, self.radius)) / 2
        density = weight * np.where(along >= self.height, inside, outside)
        density += (1 - weight) * np.where(-along >= self.height, inside, outside)
        density = np.where(axes.any(axis=-1), density, 1.0)
        terms = np.where(on_sphere(reports, self.length), np.log(density), -np.inf)
        return sum_log_density(terms, vectors.ndim - 1, each)

    @property
    def length(self) -> float:
        """The Euclidean length of every report, which makes it unbiased."""
        # A unit vector u reported for a unit vector v has
        #     E<u, v> = M keep / mass - M (1 - keep) / (1 - mass) = M b / mass
        # with the mass of the cap and b of `_cap_share`, where M = E<u, v> 1{<u, v> >= h} of
        # uniform u, which is (1 - h^2)^a / (2 a B(1/2, a)) with a = (p-1)/2.
        a, mass = (self.dimension - 1) / 2, self._cap_mass
        beta = math.sqrt(math.pi) / gamma_ratio(a)
        moment = math.exp(a * math.log1p(-self.height * self.height)) / (2 * a * beta)
        return self.radius / self._cap_share * (mass / moment)

    @property
    def _cap_share(self) -> float:
        """The probability b of a draw from the cap alone; other draws are from the whole sphere.

        It is (keep - mass) / (1 - mass), which makes the cap's probability b + (1 - b) mass equal
        to keep.  Exact reports have a little less.
        """
        mass = self._cap_mass
        cap_probability = (self.keep - mass) / (1 - mass)
        if self.arithmetic is IDEALISED:
            return cap_probability
        return (
            cap_probability - (1 - cap_probability) * lost_share(self.dimension, mass) - ROUND_OFF
        )

    @classmethod
    def _closed_form(cls, epsilon: float, delta: float, fields: Any) -> float | None:
        # For delta 0: the odds of keep are e^epsilon times those of the cap's mass.
        mass = cap_mass(fields.dimension, fields.height)
        if least_keep(fields) >= 1 or mass < LEAST_MASS:
            raise ParameterError("PrivUnit.height", fields.height, "where the cap has more mass")
        return None if delta else mass / (mass + (1 - mass) * math.exp(-epsilon))

    @property
    def loss(self) -> PairLoss:
        """The loss of opposite vectors: a report is in one of their caps, or in neither."""
        mass = self._cap_mass
        if mass < LEAST_MASS:
            raise ParameterError("PrivUnit.height", self.height, "where the cap has some mass")
        # The caps of two values overlap least where these are opposite.  The probability of the
        # other's cap is rounded down by the error of the mass; `moved` allows for more than that.
        lesser_mass = (1 - self.keep) * mass / (1 - mass) * (1 - MASS_ERROR)
        return response_pair(self.keep, lesser_mass, moved=4 * MASS_ERROR)

    @property
    def drawn_numbers(self) -> dict[str, Any]:
        """The probability of a draw from the cap alone, and the error of a cap's mass."""
        exact = self.arithmetic is EXACT
        error = cap_mass_error(self.dimension) if exact else 0.0
        return {"cap_share": self._cap_share, "error": error}

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Array, Array]:
        """Return two opposite vectors of full length, for any epsilon."""
        del epsilon
        vector = self.radius * np.eye(self.dimension)[0]
        return vector, -vector

    @property
    def values(self) -> Ball:
        """The vectors of the ball."""
        return Ball(self.dimension, self.radius, 2.0, self.longer == "clip")

    @property
    def support(self) -> SphereSupport:
        """The sphere of reports, divided at two opposite caps."""
        return SphereSupport(self.dimension, self.length, (self.height,))

    @property
    def _cap_mass(self) -> float:
        return cap_mass(self.dimension, self.height)


def cap_mass(dimension: int, height: float) -> float:
    """Return the mass of the cap of a height h, ``(1 - I_{h^2}(1/2, (p-1)/2)) / 2``.

    It is the share of the sphere, in p dimensions, at or above the height.
    """
    from scipy.special import betainc, betaincc

    half, square = (dimension - 1) / 2, height * height
    if square > 0.5:  # near 1 the square is rounded, and 1 - height is not
        return float(betainc(half, 0.5, (1 - height) * (1 + height))) / 2
    below = float(betainc(0.5, half, square))
    # The complement 1 - I by scipy is accurate where it is small; where I is below 3/4, 1 - I is
    # subtracted here, as scipy's complement has an error of up to 1e-10 there.
    return (1 - below) / 2 if below < 0.75 else float(betaincc(0.5, half, square)) / 2


def highest_provable(dimension: int) -> float:
    """Return the height of the smallest cap that `PrivUnit.optimised` takes, by bisection.

    The error of its mass in exact draws is at most 1/128 of the mass; `SMALLEST_CAP` and
    `LEAST_ACCEPTANCE` are its other limits.
    """
    smallest = max(SMALLEST_CAP, 128 * cap_mass_error(dimension))
    low, high = 0.0, 1 - 1e-9  # the cap of height 1 is a single point
    for _ in range(60):
        middle = (low + high) / 2
        mass = cap_mass(dimension, middle)
        fast = log_acceptance(dimension, middle, mass) >= math.log(LEAST_ACCEPTANCE)
        low, high = (middle, high) if mass >= smallest and fast else (low, middle)
    return low


def unit_vectors(vectors: Array) -> Array:
    """Return every vector at length 1; zero vectors stay zero, and no square underflows."""
    greatest = np.abs(vectors).max(axis=-1, keepdims=True)
    scaled: Array = vectors / np.where(greatest > 0, greatest, 1.0)
    length = norms(scaled, 2)[..., None]
    scaled /= np.where(length > 0, length, 1.0)
    return scaled


def lost_share(dimension: int, mass: float) -> float:
    """Return how much larger 1 - b is in exact reports than in exact arithmetic, relative to it.

    Here b is `PrivUnit._cap_share`.  With nu the error of the mass of a cap of integer vectors, the
    proof asks for a 1 - b that is larger by the factor 1 / (1 - nu / mass).  `MASS_ERROR` is added
    four times for the mass itself.  The result is infinite where nu is more than half of the mass.
    """
    error = cap_mass_error(dimension) / mass
    return error / (1 - error) + 4 * MASS_ERROR if error <= 0.5 else math.inf


def least_keep(mechanism: PrivUnit) -> float:
    """Return the lower bound of ``keep``, above which the probability `_cap_share` is positive.

    It is the mass of the cap.  Exact reports raise 1 - b by `lost_share` and `ROUND_OFF`; the bound
    has room for twice as much, so that b stays clearly above 0.
    """
    mass = cap_mass(mechanism.dimension, mechanism.height)
    if mechanism.arithmetic != EXACT or mass < LEAST_MASS:
        return mass
    share_lost = min(2 * lost_share(mechanism.dimension, mass) + 2 * ROUND_OFF, 1.0)
    return mass + (1 - mass) * share_lost
