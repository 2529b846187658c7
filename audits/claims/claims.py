"""Claims of every kind, and the point of each at which an audit decides.

Every claim implies a privacy profile: for each epsilon, P(S) - e^epsilon Q(S) is at most
delta(epsilon) for every event S.  An event is most informative at one epsilon, so a claim is
tested at the point that learning runs show to be the most revealing: epsilon 0 (a guess in every
run, one exact binomial) for a Gaussian with slightly too little noise, a tail for rare leaks.

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
from accountant.numerics.search import furthest_that

# claims that the output does not depend on the input
INDEPENDENT = ApproxLoss(0.0, 0.0)
TAIL_DELTAS = 10.0 ** -np.arange(1.0, 7.0)  # deltas at which tails of a profile are tested
CLAIM_FORMS = "a loss such as PureLoss(1.0), a number epsilon, a pair (epsilon, delta) or a Budget"
ClaimLike = Loss | Budget | float | tuple[float, float]
ORDER = Interval(1.0, 1e300, "()")
PROBABILITY = Interval(0.0, 1.0)


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
        """A bound on many pairs: many mechanisms have this divergence."""
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
        Pairs (type I error, type II error) in [0, 1] on a falling convex curve.

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
        line = sorted({(0.0, start), *later_points, (1.0, 0.0)})
        steps = np.diff(np.array(line), axis=0)
        slopes = steps[:, 1] / np.maximum(steps[:, 0], 1e-300)
        if np.any(slopes > 1e-12) or np.any(np.diff(slopes) < -1e-9 * np.abs(slopes[1:])):
            raise ParameterError("points", self.points, "points of a falling convex curve")
        object.__setattr__(self, "points", tuple(line))

    @property
    def numerics(self) -> LossNumerics:
        """The claim bounds many pairs, and is that of none of them."""
        return MANY_PAIRS

    def profile(self, epsilon: ArrayLike) -> Array:
        """``max 1 - type II - e^eps type I`` over the corners of the curve, both directions."""
        e = epsilons(epsilon)
        corners = np.array(self.points)
        corners = np.concatenate([corners, corners[:, ::-1]])
        with np.errstate(over="ignore", invalid="ignore"):
            cost = np.where(corners[:, 0] > 0, np.exp(e[..., None]) * corners[:, 0], 0.0)
        heights: Array = np.max(1 - corners[:, 1] - cost, axis=-1, initial=0.0)
        return heights


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
    epsilon 0, at `TAIL_DELTAS` and at delta 0; of a curve that follows from Rényi divergences they
    are at epsilon 0 and at shares of its epsilon at the last of these deltas.
    """
    if isinstance(claim, (PureLoss, ApproxLoss)):
        return []
    by_renyi = claim.numerics.determined_by_rdp
    if isinstance(claim, RenyiLoss) or by_renyi:
        largest_epsilon = claim.epsilon_at(float(TAIL_DELTAS[-1]))
        shares = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0])
        epsilons = np.concatenate([[0.0], largest_epsilon * shares])
        orders = 1 + np.geomspace(1e-3, 1e3, 25)
        values = claim.renyi(orders) if by_renyi else np.empty(0)
        deltas = np.array([claim.delta_at(float(e)) for e in epsilons])
        if by_renyi:
            deltas = np.minimum(deltas, bernoulli_profile(epsilons, orders, np.asarray(values)))
        return [(float(e), float(d)) for e, d in zip(epsilons, deltas, strict=True) if d < 1]
    tails = [(claim.epsilon_at(float(d)), float(d)) for d in TAIL_DELTAS]
    points = [(0.0, claim.delta_at(0.0)), *tails, (claim.pure, 0.0)]
    return [(e, d) for e, d in points if math.isfinite(e) and d < 1]


def bernoulli_profile(epsilon: Array, orders: Array, values: Array) -> Array:
    """The largest ``p - e^eps q`` of Bernoulli p, q whose divergences are within all the values.

    The divergence of order a is within its value where
    ``p^a q^(1-a) + (1-p)^a (1-q)^(1-a) <= e^{(a-1) value}``, both ways.  For each p the smallest
    such q is found by bisection, and rounded down.
    """
    # A finer grid would make the bound a little smaller; it holds between the points of any grid.
    tail = np.geomspace(1e-12, 1e-3, 200)
    p = np.unique(np.concatenate([tail, np.linspace(1e-3, 1 - 1e-3, 1501), 1 - tail]))

    def outside(q: Array) -> NDArray[np.bool_]:
        inside = np.ones(p.size, dtype=bool)
        for order, value in zip(orders, values, strict=True):
            limit = (order - 1) * value
            inside &= (_bernoulli_log_moment(p, q, order) <= limit) & (
                _bernoulli_log_moment(q, p, order) <= limit
            )
        return ~inside

    smallest_q = furthest_that(outside, np.zeros_like(p), p, steps=50)
    p, smallest_q = np.append(0.0, p), np.append(0.0, smallest_q)
    # The gap falls with epsilon, so that the one at epsilon 60 is a bound at larger ones.
    gap = p - np.exp(np.minimum(epsilon, 60.0))[..., None] * smallest_q
    # the gap is concave in p, so on an interval of the grid it is below the lines through the
    # intervals on both sides
    step = np.diff(p)
    slope = np.diff(gap, axis=-1) / step
    from_left = np.maximum(gap[..., 1:-1] + slope[..., :-1] * step[1:], gap[..., 1:-1])
    from_right = np.maximum(gap[..., 1:-1] - slope[..., 1:] * step[:-1], gap[..., 1:-1])
    between = np.minimum(from_left[..., :-1], from_right[..., 1:])
    largest_gap = np.maximum(np.max(between, axis=-1), np.max(gap, axis=-1, initial=0.0))
    # the first and the last interval have a line on one side alone
    at_ends = np.maximum(from_right[..., 0], from_left[..., -1])
    upper: Array = np.minimum(np.maximum(largest_gap, at_ends) + 1e-12, 1.0)
    return upper


def _bernoulli_log_moment(p: Array, q: Array, order: float) -> Array:
    """``ln(p^a q^(1-a) + (1-p)^a (1-q)^(1-a))``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = order * np.log(p) + (1 - order) * np.log(q)
        sides = order * np.log1p(-p) + (1 - order) * np.log1p(-q)
        return np.asarray(np.nan_to_num(np.logaddexp(heads, sides), nan=np.inf, posinf=np.inf))
