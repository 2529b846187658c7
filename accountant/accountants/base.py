"""The base class of accountants, which bound the epsilon and the delta of a plan.

An accountant states an upper bound on epsilon at each delta, for one direction of the neighbours.
`least_delta` inverts such a bound by a search, so that delta agrees with it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from accountant.domains import DELTA, EPSILON, each_checked
from accountant.numerics import Array
from accountant.numerics.rounding import LARGEST_BELOW_ONE
from accountant.plans.plan import Plan, as_plan, directions
from dp_attest.calls import shows_call

# Constants of `least_delta`; logarithms are natural.
NEAR = 2e-10  # in ln delta: how far the answer may be from a delta that is too small
LEAST_LOG_DELTA = -700.0  # smaller values of ln delta are not looked for
USUAL_DELTA = 1e-5  # a search without a guess starts here
LEAST_CHORD = 1e-7  # in ln delta: the slope between two nearer points would be round-off
# Evaluations at most; every STEPS_TO_HALVE-th of them halves the interval instead of a secant step.
MAX_STEPS, STEPS_TO_HALVE = 200, 8
# While the answer is not between two points: the factor by which each step in ln delta is larger
# than the one before, and the largest step.
GROWTH, MAX_STEP = 8.0, 20.0


class Accountant(ABC):
    """Upper bounds on the epsilon and the delta of a plan, over both directions of neighbours."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name of the accountant in tables."""
        return type(self).__name__

    @shows_call("epsilon(plan, delta=1e-6) with a plan such as 3 * Laplace(10.0)")
    def epsilon(self, plan: Plan, delta: float) -> float:
        """Return an upper bound on the epsilon of a plan at ``delta``.

        Parameters
        ----------
        plan : Plan
            A plan, a loss or a mechanism.
        delta : float
            In [0, 1).

        Returns
        -------
        float
            Rounded up, over both directions of the neighbours; infinite where there is no bound.

        Raises
        ------
        UnsupportedPlan
            If this accountant cannot bound the plan.
        """
        plan, delta = as_plan(plan), DELTA.check("delta", delta)
        upper_bounds = [self.one_way_epsilon(direction, delta) for direction in directions(plan)]
        return math.inf if any(map(math.isnan, upper_bounds)) else max(0.0, *upper_bounds)

    @shows_call("delta(plan, epsilon=1.0) with a plan such as 3 * Laplace(10.0)")
    def delta(self, plan: Plan, epsilon: float) -> float:
        """Return an upper bound on the delta of a plan at ``epsilon``.

        Parameters
        ----------
        plan : Plan
            A plan, a loss or a mechanism.
        epsilon : float
            At least 0.

        Returns
        -------
        float
            Rounded up, over both directions of the neighbours; at most 1.
        """
        plan, epsilon = as_plan(plan), EPSILON.check("epsilon", epsilon)
        upper_bounds = [self.one_way_delta(direction, epsilon) for direction in directions(plan)]
        return 1.0 if any(map(math.isnan, upper_bounds)) else min(1.0, max(0.0, *upper_bounds))

    def epsilons(self, plan: Plan, deltas: Sequence[float] | Array) -> Array:
        """Return an upper bound on the epsilon of a plan at each of many deltas.

        Parameters
        ----------
        plan : Plan
            A plan, a loss or a mechanism.
        deltas : sequence of float
            Each in [0, 1).

        Returns
        -------
        array of shape (n,)
            `epsilon` at each delta, rounded up.
        """
        return np.array(
            [self.epsilon(plan, delta) for delta in each_checked(DELTA, "deltas", deltas)]
        )

    def deltas(self, plan: Plan, epsilons: Array) -> Array:
        """Return an upper bound on the delta of a plan at each of many epsilons.

        Parameters
        ----------
        plan : Plan
            A plan, a loss or a mechanism.
        epsilons : array of shape (n,)
            Each at least 0.

        Returns
        -------
        array of shape (n,)
            `delta` at each epsilon, rounded up.
        """
        return np.array(
            [self.delta(plan, epsilon) for epsilon in each_checked(EPSILON, "epsilons", epsilons)]
        )

    @abstractmethod
    def one_way_epsilon(self, plan: Plan, delta: float) -> float:
        """Return an upper bound on the epsilon of one direction of a plan.

        Parameters
        ----------
        plan : Plan
            A checked plan.
        delta : float
            In [0, 1).

        Returns
        -------
        float
            Rounded up.
        """

    def one_way_delta(self, plan: Plan, epsilon: float) -> float:
        """Return an upper bound on the delta of one direction of a plan.

        Parameters
        ----------
        plan : Plan
            A checked plan.
        epsilon : float
            At least 0.

        Returns
        -------
        float
            Rounded up.
        """
        if self.one_way_epsilon(plan, 0.0) <= epsilon:
            return 0.0
        return least_delta(lambda delta: self.one_way_epsilon(plan, delta), epsilon)


def least_delta(
    epsilon_at: Callable[[float], float],
    epsilon: float,
    start: float = USUAL_DELTA,
    floor: float = 0.0,
) -> float:
    """Return the least delta evaluated at which an accountant's epsilon is at most ``epsilon``.

    It is a secant search over ``x = ln(delta - floor)`` for the zero of
    ``ln(epsilon_at(delta) / epsilon)``, which falls.  The answer is 1 where no delta below 1 that
    was evaluated is enough.

    Parameters
    ----------
    epsilon_at : callable
        An upper bound on epsilon at a delta, which falls.
    epsilon : float
        At least 0.
    start : float
        About the answer.
    floor : float
        A delta up to which epsilon is infinite.

    Returns
    -------
    float
        Rounded up; where the bound is continuous, and ``x`` of the answer above -700, it is at most
        a share of 2e-10 too large.
    """
    top = math.log(LARGEST_BELOW_ONE - floor) if floor < LARGEST_BELOW_ONE else -math.inf
    # Both are values of x: the greatest that was too small, and the least that was enough.
    too_small, sufficient = -math.inf, math.inf
    previous, slope, step = (math.nan, math.nan), 0.0, NEAR
    x = max(min(math.log(max(start - floor, 1e-300)), top), LEAST_LOG_DELTA)
    for i in range(MAX_STEPS):
        epsilon_upper = epsilon_at(floor + math.exp(x))
        if epsilon_upper <= epsilon:
            sufficient = min(sufficient, x)
        else:
            too_small = max(too_small, x)
        if sufficient - too_small <= NEAR or sufficient == LEAST_LOG_DELTA or too_small >= top:
            break
        is_positive = min(epsilon_upper, epsilon) > 0
        value = math.log(epsilon_upper) - math.log(epsilon) if is_positive else math.nan
        if abs(x - previous[0]) > LEAST_CHORD and math.isfinite(value - previous[1]):
            slope = (value - previous[1]) / (x - previous[0])
        if not slope < 0:
            slope = 1 / (2 * min(x, -NEAR))  # of Gaussian noise: epsilon grows as sqrt(-x)
        previous = x, value
        # The guess lies a little beyond the root, so that two steps close the interval.
        guess = x - value / slope + math.copysign(NEAR / 3, value)
        # As long as the answer is not between two points, the steps grow.
        step = min(max(GROWTH * step, abs(guess - x) if math.isfinite(guess) else 1.0), MAX_STEP)
        if math.isinf(sufficient):
            x = min(x + step, top)
        elif math.isinf(too_small):
            x = max(x - step, LEAST_LOG_DELTA)
        elif too_small < guess < sufficient and (i + 1) % STEPS_TO_HALVE:
            x = guess
        else:
            x = (too_small + sufficient) / 2
    return floor + math.exp(sufficient) if math.isfinite(sufficient) else 1.0
