"""Claims of every kind, and the point of each at which an audit decides.

Every claim implies a privacy profile: for each epsilon, P(S) - e^epsilon Q(S) is at most
delta(epsilon) for every event S, where P and Q are the outputs of two neighbours.  A claim that is
a whole curve is tested at one of a few points (epsilon, delta), `claim_points`.  The audit's first
runs choose the point.  At epsilon 0 every run counts, which shows a Gaussian with slightly too
little noise; a large epsilon shows a rare leak.

References: Balle, Barthe & Gaboardi (2018) for profiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.accountants.budget import Budget
from accountant.domains import DELTA, EPSILON, NON_NEGATIVE, POSITIVE, Interval
from accountant.errors import ParameterError
from accountant.losses.loss import Loss, SymmetricLoss, epsilons
from accountant.losses.loss_numerics import MANY_PAIRS, LossNumerics
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from accountant.numerics import Array
from accountant.numerics.rounding import ULP
from accountant.numerics.search import furthest_that

# The claim that the output does not depend on the input.
INDEPENDENT = ApproxLoss(0.0, 0.0)
TAIL_DELTAS = 10.0 ** -np.arange(1.0, 7.0)  # deltas at which tails of a profile are tested
CLAIM_FORMS = "a loss such as PureLoss(1.0), a number epsilon, a pair (epsilon, delta) or a Budget"
ClaimLike = Loss | Budget | float | tuple[float, float]
ORDER = Interval(1.0, 1e300, "()")
PROBABILITY = Interval(0.0, 1.0)
# A convex curve whose points were rounded to floats is not exactly convex.  Its slopes may exceed 0
# by the first number, and fall from one line to the next by the second, a share of the slope.
SLOPE_ROUND_OFF = 1e-12
CONVEXITY_ROUND_OFF = 1e-9
# The grid of `bernoulli_profile` reaches from this probability to 1 minus it.
LEAST_P = 1e-12


@final
@dataclass(frozen=True, slots=True)
class RenyiLoss(SymmetricLoss):
    """The claim that the Rényi divergence of one order is at most ``value``, in both directions.

    Its profile is the largest that the claim allows: the maximum over pairs of Bernoulli
    distributions with this divergence, by data processing.

    Parameters
    ----------
    order : float
        The order of the divergence, above 1.
    value : float
        The divergence in nats, positive.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Asoodeh, Liao, Calmon, Kosut & Sankar (2021), Theorem 3.

    Examples
    --------
    >>> from audits import RenyiLoss
    >>> round(RenyiLoss(order=2.0, value=0.5).delta_at(1.0), 4)
    0.0897
    """

    order: float
    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", ORDER.check("order", self.order))
        object.__setattr__(self, "value", POSITIVE.check("value", self.value))

    @property
    def numerics(self) -> LossNumerics:
        """The profile is a bound on many pairs, which no pair need attain."""
        return MANY_PAIRS

    @property
    def infinity(self) -> float:
        """0: a finite divergence allows no output that is possible on one neighbour alone."""
        return 0.0

    def profile(self, epsilon: ArrayLike) -> Array:
        """``max p - e^eps q`` over Bernoulli p, q within the divergence; rounded up."""
        return bernoulli_profile(epsilons(epsilon), np.array([self.order]), np.array([self.value]))


@final
@dataclass(frozen=True, slots=True)
class TradeoffLoss(SymmetricLoss):
    """The claim that no test of two neighbours has errors below the line through ``points``.

    Parameters
    ----------
    points : tuple of (float, float)
        Pairs (type I error, type II error) in [0, 1] on a falling convex curve.  The point (1, 0)
        is added, and (0, 1) if no point has type I error 0.

    Raises
    ------
    ParameterError
        If the points do not lie on a falling convex curve.

    References
    ----------
    Dong, Roth & Su (2022): a curve through points is the profile of finitely many lines.

    Examples
    --------
    >>> from audits import TradeoffLoss
    >>> claim = TradeoffLoss(((0.0, 0.9), (0.3, 0.3), (0.9, 0.0)))
    >>> round(claim.delta_at(0.0), 6)
    0.4
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        checked_points = [
            (PROBABILITY.check("points", a), PROBABILITY.check("points", b)) for a, b in self.points
        ]
        start = min((b for a, b in checked_points if a == 0.0), default=1.0)
        later_points = [point for point in checked_points if point[0] > 0]
        corners = sorted({(0.0, start), *later_points, (1.0, 0.0)})
        type_one_steps, type_two_steps = np.diff(np.array(corners), axis=0).T
        # Two points of one type I error have step 0; the slope is then very large and refused.
        slopes = type_two_steps / np.maximum(type_one_steps, 1e-300)
        rises = np.any(slopes > SLOPE_ROUND_OFF)
        if rises or np.any(np.diff(slopes) < -CONVEXITY_ROUND_OFF * np.abs(slopes[1:])):
            raise ParameterError("points", self.points, "points of a falling convex curve")
        object.__setattr__(self, "points", tuple(corners))

    @property
    def numerics(self) -> LossNumerics:
        """The profile is a bound on many pairs, which no pair need attain."""
        return MANY_PAIRS

    def profile(self, epsilon: ArrayLike) -> Array:
        """``max 1 - type II - e^eps type I`` over the corners of the curve, both directions."""
        eps = epsilons(epsilon)[..., None]
        corners = np.array(self.points)
        type_one, type_two = np.concatenate([corners, corners[:, ::-1]]).T
        with np.errstate(over="ignore", invalid="ignore"):  # e^eps may be infinite
            cost = np.where(type_one > 0, np.exp(eps) * type_one, 0.0)
        deltas: Array = np.max(1 - type_two - cost, axis=-1, initial=0.0)
        return deltas


@final
@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The claim that a deterministic function moves by at most ``value`` between neighbours.

    It is no claim about noise: `audit` tests it by the probe of deterministic functions.

    Parameters
    ----------
    value : float
        The sensitivity, at least 0, in the units of the answer.
    norm : float, optional
        Order of the norm, at least 1.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from audits import Box, Sensitivity, audit
    >>> box = Box(0.0, 1.0, shape=(5,))
    >>> found = audit(lambda data: data.mean(), box, Sensitivity(0.1), runs=100, rng=0)
    >>> print(found.witness)
    one low, first low: answers 0.8 and 0.6 are 0.2 apart, 0.1 is declared (100 evaluations)
    """

    value: float
    norm: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", NON_NEGATIVE.check("value", self.value))
        object.__setattr__(self, "norm", Interval(1.0, math.inf).check("norm", self.norm))


def checked_claim(claim: Any) -> Loss | None:
    """The claim as a loss: a number is pure, two are (epsilon, delta); None stays None."""
    if claim is None or isinstance(claim, Loss):
        return claim
    if isinstance(claim, Budget):
        claim = (claim.epsilon, claim.delta)
    numbers = claim if isinstance(claim, tuple) else (claim, 0.0)
    if len(numbers) == 2 and all(map(_is_number, numbers)):
        epsilon, delta = EPSILON.check("claim", numbers[0]), DELTA.check("claim", numbers[1])
        pure = delta == 0 and epsilon > 0
        return PureLoss(epsilon) if pure else ApproxLoss(epsilon, delta)
    shown = claim if isinstance(claim, (str, bool)) else type(claim).__name__
    raise ParameterError("claim", shown, CLAIM_FORMS)


def checked_claims(claims: Any) -> list[Loss | None]:
    """The claims of a family as losses: one claim, or a list of claims."""
    is_single = isinstance(claims, str) or (
        isinstance(claims, tuple) and len(claims) == 2 and all(map(_is_number, claims))
    )
    several = isinstance(claims, Iterable) and not is_single
    return [checked_claim(claim) for claim in (claims if several else [claims])]


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def claim_points(claim: Loss) -> list[tuple[float, float]]:
    """Points (epsilon, delta) of a claim that is a whole curve; empty for other claims.

    A pure or approximate claim is given by its own epsilon and delta.  Of a curve the points are at
    epsilon 0, at `TAIL_DELTAS` and at delta 0.  A curve that follows from Rényi divergences alone,
    such as that of zCDP, has points at shares of its epsilon at the last of these deltas.  There
    its delta is lowered to `bernoulli_profile`, which is what the divergences imply.
    """
    if isinstance(claim, (PureLoss, ApproxLoss)):
        return []
    follows_from_renyi = claim.numerics.determined_by_rdp
    if isinstance(claim, RenyiLoss) or follows_from_renyi:
        # Any shares give true points of the claim, and any orders valid bounds on it.
        shares = np.array([0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0])
        points_at = claim.epsilon_at(float(TAIL_DELTAS[-1])) * shares
        deltas = np.array([claim.delta_at(float(e)) for e in points_at])
        if follows_from_renyi:
            orders = 1 + np.geomspace(1e-3, 1e3, 25)
            divergences = np.asarray(claim.renyi(orders))
            deltas = np.minimum(deltas, bernoulli_profile(points_at, orders, divergences))
        return [(float(e), float(d)) for e, d in zip(points_at, deltas, strict=True) if d < 1]
    tails = [(claim.epsilon_at(float(d)), float(d)) for d in TAIL_DELTAS]
    points = [(0.0, claim.delta_at(0.0)), *tails, (claim.pure, 0.0)]
    return [(e, d) for e, d in points if math.isfinite(e) and d < 1]


def bernoulli_profile(epsilon: Array, orders: Array, values: Array) -> Array:
    """The largest ``p - e^eps q`` of Bernoulli p, q whose divergences are within all the values.

    The divergence of order a is within its value where
    ``p^a q^(1-a) + (1-p)^a (1-q)^(1-a) <= e^{(a-1) value}``, and the same with p and q exchanged.
    For each p the smallest such q is found by bisection, and rounded down.  The result is rounded
    up.
    """
    # A finer grid would make the bound a little smaller; it holds between the points of any grid.
    tail = np.geomspace(LEAST_P, 1e-3, 200)
    p = np.unique(np.concatenate([tail, np.linspace(1e-3, 1 - 1e-3, 1501), 1 - tail]))

    logs_of_p = np.stack([np.log(p), np.log1p(-p)])

    def is_outside(q: Array) -> NDArray[np.bool_]:
        logs_of_q = np.stack([np.log(q), np.log1p(-q)])
        is_within = np.ones(p.size, dtype=bool)
        for order, value in zip(orders, values, strict=True):
            limit = (order - 1) * value
            is_within &= _log_moment(logs_of_p, logs_of_q, order) <= limit
            is_within &= _log_moment(logs_of_q, logs_of_p, order) <= limit
        return ~is_within

    # At q = p both divergences are 0, and at q near 0 the first is too large.  A hundred steps
    # leave an error below 2^-100, which is negligible also when it is multiplied by e^60.
    smallest_q = furthest_that(is_outside, start=np.zeros_like(p), end=p, steps=100)
    p, smallest_q = np.append(0.0, p), np.append(0.0, smallest_q)
    # The gap falls with epsilon, so that the one at epsilon 60 is a bound at larger ones.
    gap = p - np.exp(np.minimum(epsilon, 60.0))[..., None] * smallest_q
    # The pairs (p, q) within the values are a convex set, as p^a q^(1-a) is convex in (p, q).  So
    # the smallest q is convex in p and the gap is concave.  On an interval of the grid a concave
    # function is below the lines through its values on the interval before and on the one after.
    # Each line has its largest value on the interval at one of the interval's ends.
    step = np.diff(p)
    slope = np.diff(gap, axis=-1) / step
    from_left = np.maximum(gap[..., 1:-1] + slope[..., :-1] * step[1:], gap[..., 1:-1])
    from_right = np.maximum(gap[..., 1:-1] - slope[..., 1:] * step[:-1], gap[..., 1:-1])
    # The first interval has a line from the right alone, and the last one from the left.
    between = np.minimum(from_left[..., :-1], from_right[..., 1:])
    at_ends = np.maximum(from_right[..., 0], from_left[..., -1])
    largest_gap = np.maximum(np.max(between, axis=-1), np.max(gap, axis=-1, initial=0.0))
    largest_gap = np.maximum(largest_gap, at_ends)
    # Beyond the last point of the grid the gap rises by less than p does, by LEAST_P at most.  The
    # rest of what is added is for round-off.
    upper: Array = np.minimum(largest_gap + 1.1 * LEAST_P, 1.0)
    return upper


def _log_moment(logs_of_p: Array, logs_of_q: Array, order: float) -> Array:
    """``ln(p^a q^(1-a) + (1-p)^a (1-q)^(1-a))``, rounded down, for the order a.

    The arguments hold ``ln p`` and ``ln(1-p)``, and the same of q.
    """
    # The logarithms are at most 0.  Each product has the errors of a logarithm, of a difference and
    # of itself, and their sum has one more; four units in the last place are more than that.
    positive, negative = (1 - order) * logs_of_q, -order * logs_of_p
    heads, tails = positive - negative - 4 * ULP * (positive + negative)
    return np.asarray(np.logaddexp(heads, tails) - 4 * ULP)
