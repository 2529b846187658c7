"""Advanced composition: the optimal bound from the epsilons and deltas of the releases alone.

Releases that are only known to be (epsilon_i, delta_i)-DP cost at most as much as randomised
responses.  Such a response reveals the record with probability delta_i, which is an infinite loss.
Otherwise its loss is +epsilon_i with probability e^epsilon_i / (1 + e^epsilon_i), else -epsilon_i.
So delta of the plan follows from the law of a sum of independent losses +-epsilon_i.  For equal
epsilons that is a binomial; for up to a thousand different ones the engines of
`accountant.composition` bound it; for more a martingale's tail bound is computed, which is not
optimal.

Exponential mechanisms cost less than randomised responses of their epsilon, because the losses of
one release lie in a range of length epsilon, not 2 epsilon.  If all of them are chosen in advance,
the worst choice is one pair for all; if each may follow the answers so far, it is a strategy
(`accountant.composition.value_function`).

References: Kairouz, Oh & Viswanath (2015), Theorems 3.3 (equal epsilons) and 3.5 (martingale);
Murtagh & Vadhan (2016) (unequal ones); Dong, Durfee & Rogers (2020) (bounded range).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from accountant.accountants.base import Accountant
from accountant.accountants.basic import Basic
from accountant.composition.composition import Composition, EpsilonProblem
from accountant.composition.engine import certify, delta_interval
from accountant.composition.engines import ENGINES_NEAR_EPSILON
from accountant.composition.plan_totals import infinity_mass
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.losses.loss import single_loss
from accountant.losses.pure_and_approximate import PureLoss
from accountant.numerics import Array
from accountant.numerics.logspace import log1mexp
from accountant.numerics.rounding import ULP, round_up
from accountant.numerics.search import falling_root, smallest_root
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Plan

if TYPE_CHECKING:
    from accountant.composition.value_function import ValueFunction

# With more releases of one epsilon the binomial takes seconds, and another bound is computed.
MAX_BINOMIAL_RELEASES = 10**8
MAX_DISTINCT_EPSILONS = 1000  # of more, the martingale bound is taken: it needs no integral
WIDTH = 1e-8  # width of the interval around the epsilon of unequal releases, relative to epsilon
# For more exponential mechanisms, all chosen in advance, their own bound is not computed.
MAX_NONADAPTIVE_RELEASES = 1000
# V is computed for deltas of at least a power of ten, whose exponent is a multiple of this.
DIGITS_OF_DELTA = 6
LATTICE_DELTA = 1e-12  # deltas from here on share one lattice
# The binomial is summed over a window around its mean: DEVIATIONS standard deviations and
# EXTRA_HEADS heads on each side.  By Bernstein's inequality at most 2 e^-800 lies outside of it.
DEVIATIONS, EXTRA_HEADS = 40, 1000
BLOCK = 400_000  # numbers of the binomial's sums that are in memory together


@final
@dataclass(frozen=True, slots=True)
class Advanced(Accountant):
    """Advanced composition: the optimum over all releases with these bounds, never above `Basic`.

    - Releases of one epsilon: the binomial, exact (up to 10^8 releases).
    - Up to 1000 different epsilons, or more releases of one: the optimum, certified to 1e-8.
    - More different epsilons: the martingale bound, not optimal.
    - Exponential mechanisms of one range: the optimum of adaptive ones, within 0.2 % up to some
      thousand of them; or, with epsilon at a given delta, that of up to 1000 chosen in advance.
      For delta at a given epsilon, these count as (epsilon, 0)-DP releases.

    Parameters
    ----------
    adaptive : bool
        Whether an exponential mechanism may follow the answers before it.  False is for those
        that are all chosen in advance.

    References
    ----------
    Kairouz, Oh & Viswanath (2015); Dong, Durfee & Rogers (2020).

    Examples
    --------
    >>> from accountant import Advanced, PureLoss
    >>> round(Advanced().epsilon(100 * PureLoss(0.1), delta=1e-6), 3)
    4.775
    """

    adaptive: bool = True

    def one_way_epsilon(self, plan: Plan, delta: float) -> float:
        """Return a bound on the epsilon of one direction; the class says where it is optimal."""
        basic = Basic().one_way_epsilon(plan, delta)
        epsilon_counts = _pure_epsilons(plan)
        if epsilon_counts is None or not epsilon_counts:
            return basic
        # mass: the probability that some response reveals the record.
        # finite_delta: the delta that the other responses, with finite losses, may have.
        #
        #     1 - delta = (1 - mass) (1 - finite_delta)
        #
        # finite_delta is negative if the mass alone exceeds delta.
        mass = infinity_mass(plan, worse_direction=True)
        finite_delta = (delta - mass) / (1 - mass) if mass < 1 else -1.0
        if finite_delta <= 0:
            return min(basic, _sum_of_epsilons(epsilon_counts)) if finite_delta == 0 else basic
        if len(epsilon_counts) == 1 and max(epsilon_counts.values()) <= MAX_BINOMIAL_RELEASES:
            ((epsilon, count),) = epsilon_counts.items()
            bounded_range_epsilon = self._bounded_range_epsilon(plan, finite_delta)
            return min(basic, bounded_range_epsilon, optimal_epsilon(epsilon, count, finite_delta))
        if len(epsilon_counts) <= MAX_DISTINCT_EPSILONS:
            return min(basic, unequal_epsilon(epsilon_counts, finite_delta))
        return min(basic, kov_epsilon(epsilon_counts, finite_delta))

    def _bounded_range_epsilon(self, plan: Plan, delta: float) -> float:
        """Return the optimum of exponential mechanisms of one range; infinite for other plans.

        It is infinite, too, for more of them than the computation allows.
        """
        items = list(plan.losses())
        loss, count = items[0] if len(items) == 1 else (None, 0)
        if not isinstance(loss, BoundedRangeLoss):
            return math.inf
        if not self.adaptive and count <= MAX_NONADAPTIVE_RELEASES:
            return nonadaptive_epsilon(loss.epsilon, count, delta)
        if count == 1:
            return loss.inverse_profile(delta)
        value = adaptive_value(plan, delta) if self.adaptive else None
        return math.inf if value is None else value.epsilon_bounds(delta)[1]

    def one_way_delta(self, plan: Plan, epsilon: float) -> float:
        """Return a bound on the delta of one direction; the class says where it is optimal."""
        if self.one_way_epsilon(plan, 0.0) <= epsilon:
            return 0.0  # exactly, where the sum over the binomial would leave its round-off
        epsilon_counts, items = _pure_epsilons(plan), list(plan.losses())
        loss, count = items[0] if len(items) == 1 else (None, 0)
        if self.adaptive and isinstance(loss, BoundedRangeLoss):
            if count == 1:
                return round_up(float(loss.profile(epsilon)), 64)
            if (value := adaptive_value(plan, LATTICE_DELTA)) is not None:
                return value.delta_bounds(epsilon)[1]
        if not epsilon_counts or len(epsilon_counts) > MAX_DISTINCT_EPSILONS:
            return Accountant.one_way_delta(self, plan, epsilon)
        mass = infinity_mass(plan, worse_direction=True)
        ((release_epsilon, releases), *others) = epsilon_counts.items()
        if not others and releases <= MAX_BINOMIAL_RELEASES:
            finite_delta = float(_Binomial(release_epsilon, releases).delta(np.array([epsilon]))[0])
        else:
            responses = _randomised_responses(epsilon_counts)
            _, finite_delta = delta_interval(
                responses, epsilon, width=WIDTH, engines=ENGINES_NEAR_EPSILON
            )
        return round_up(mass + (1 - mass) * finite_delta)


def adaptive_value(plan: Plan, delta: float) -> ValueFunction | None:
    """Return V of one direction of a plan with choices, for deltas near ``delta`` and above.

    V is the greatest delta of all strategies, as a function of epsilon.  The result is None where
    no release is chosen, and where V would take too long.
    """
    # what goes through choices is loaded where there are any
    from accountant.composition.adaptive_choices import value_of

    digits = DIGITS_OF_DELTA * math.ceil(-math.log10(delta) / DIGITS_OF_DELTA)
    return value_of(plan, max(digits, DIGITS_OF_DELTA))


def nonadaptive_epsilon(e0: float, count: int, delta: float) -> float:
    """Return the least epsilon of ``count`` releases of range ``e0``, all chosen in advance."""
    top = round_up(count * e0)  # the largest loss

    def excess(epsilon: float) -> float:
        delta_at_epsilon = nonadaptive_delta(e0, count, epsilon)
        return math.log(delta_at_epsilon) - math.log(delta) if delta_at_epsilon > 0 else -math.inf

    root, _ = falling_root(excess, start=top / 4, tilt=1.0, max_epsilon=top)
    # The losses, of size ``top``, are computed in four operations, and t in three.  Near ``top``
    # delta falls so steeply that their round-off counts.
    return min(top, root + 16 * ULP * top)


def nonadaptive_delta(e0: float, count: int, epsilon: float) -> float:
    """Return the greatest delta of ``count`` releases with one t, rounded up.

    With k the number of releases whose loss is t - e0, and not t, the summed loss is
    count t - k e0.  So at one t

        delta = sum over k of C(count, k) p_t^(count - k) (1 - p_t)^k (1 - e^{epsilon - loss})_+.
    """
    from scipy.special import gammaln

    k = np.arange(count + 1.0)
    # The greatest is attained at some t = (epsilon + (k + 1) e0) / (count + 1), or at an end.
    t = np.unique(np.clip((epsilon + (k + 1) * e0) / (count + 1), 0.0, e0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # ln p_t and ln (1 - p_t)
        log_p = log1mexp(np.minimum(t - e0, 0.0)) - math.log(-math.expm1(-e0))
        log_rest = t + log1mexp(-t) - e0 - math.log(-math.expm1(-e0))
        log_binomials = gammaln(count + 1.0) - gammaln(k + 1) - gammaln(count - k + 1)
        # The power 0 of a probability 0 is 1.
        log_powers = np.where(k < count, (count - k) * log_p[:, None], 0.0)
        log_powers += np.where(k > 0, k * log_rest[:, None], 0.0)
        loss = count * t[:, None] - k * e0
        terms = np.exp(log_binomials + log_powers) * -np.expm1(np.minimum(epsilon - loss, 0.0))
    # A term is e to a sum of logarithms, each inexact by some ulps of its size.
    error = 1 + 16 * ULP * (count * (1 + e0) + float(gammaln(count + 1.0)))
    return float(np.max(np.sum(terms, axis=1))) * error


def optimal_epsilon(epsilon: float, count: int, delta: float) -> float:
    """Return the least epsilon of ``count`` adaptive epsilon-DP releases (exact, rounded up)."""
    binomial = _Binomial(epsilon, count)
    # Above all losses of the binomial, which are raised by 4 ULP, its delta is 0: a root is found.
    above_all_losses = round_up(count * epsilon, 8)
    root = smallest_root(binomial.delta, target=delta, high=above_all_losses)
    return min(round_up(root), round_up(count * epsilon))


class _Binomial:
    """The law of the summed loss of ``count`` binary randomised responses.

    A response has the loss +epsilon ("head"), with the chance e^epsilon / (1 + e^epsilon), or
    -epsilon ("tail").  ``loss`` are the sums ``(2 heads - count) epsilon`` for the numbers of heads
    in a window, rounded up, and ``p`` upper bounds on the probabilities of these numbers.
    """

    def __init__(self, epsilon: float, count: int) -> None:
        from scipy.special import gammaln

        chance = 1 / (1 + math.exp(-epsilon))
        # Only positive losses matter: the window starts at count / 2 heads or above.
        reach = DEVIATIONS * math.sqrt(count * chance * (1 - chance)) + EXTRA_HEADS
        lowest_heads = max(count // 2, math.floor(count * chance - reach))
        heads = np.arange(
            lowest_heads, min(count, math.ceil(count * chance + reach)) + 1, dtype=float
        )
        log_heads, log_tails = -np.logaddexp(0, -epsilon), -np.logaddexp(0, epsilon)
        log_factorial = gammaln(count + 1.0)
        log_p = log_factorial - gammaln(heads + 1) - gammaln(count - heads + 1)
        log_p += heads * log_heads + (count - heads) * log_tails
        # ln P is a sum of three log-factorials and two products, whose sizes add up to at most
        # S = 2 ln count! + count epsilon + count.  Each of the five terms is right to 2 ULP of its
        # size, and each of four sums to half an ULP of S: in all 4 ULP S, which is at most this.
        error = 8 * ULP * (log_factorial + count * epsilon + count)
        self.loss = (2 * heads - count) * epsilon * (1 + 4 * ULP)
        self.p: Array = np.exp(np.minimum(log_p + error, 0.0))
        # Below the window masses are missing, so delta is taken to be 1 at epsilons below its first
        # loss.  The masses above the window are too small for a float.
        self.window_start = 0.0 if lowest_heads <= count // 2 else self.loss[0]

    def delta(self, epsilon: Array) -> Array:
        """Return ``sum_heads P(heads) (1 - e^{epsilon - loss})_+``; 1 below the window."""
        step = max(1, BLOCK // self.p.size)  # epsilons at a time
        blocks = [epsilon[i : i + step, None] for i in range(0, epsilon.size, step)]
        sums = [(self.p * -np.expm1(np.minimum(e - self.loss, 0.0))).sum(axis=1) for e in blocks]
        result = np.concatenate(sums)
        return np.where(epsilon < self.window_start, 1.0, np.minimum(result, 1.0))


def unequal_epsilon(epsilon_counts: dict[float, int], delta: float) -> float:
    """Return the least epsilon of releases with these epsilons and counts, at most 1e-8 too large.

    Murtagh & Vadhan (2016) show that this optimum is hard to compute exactly.
    """
    problem = EpsilonProblem(_randomised_responses(epsilon_counts), delta, WIDTH)
    return certify(problem, ENGINES_NEAR_EPSILON).upper


def _randomised_responses(epsilon_counts: dict[float, int]) -> Composition:
    """Return randomised responses with these epsilons and counts."""
    return Composition([(PureLoss(e), n) for e, n in epsilon_counts.items()])


def kov_epsilon(epsilon_counts: dict[float, int], delta: float) -> float:
    """Return the martingale bound, rounded up: Kairouz et al. (2015), Theorem 3.5.

    The sum of the losses exceeds this with probability at most delta (Azuma's inequality):

        sum_i e_i tanh(e_i / 2) + sqrt(2 ln(1 / delta) sum_i e_i^2)

    The first sum, the drift, is the mean of the losses.
    """
    drift = math.fsum(count * e * math.tanh(e / 2) for e, count in epsilon_counts.items())
    square = math.fsum(count * e * e for e, count in epsilon_counts.items())
    return round_up(drift + math.sqrt(-2 * math.log(delta) * square), 16)


def _pure_epsilons(plan: Plan) -> dict[float, int] | None:
    """Return the epsilons that bound the finite losses of the releases, each with its count.

    The result is None where the finite losses of some release are unbounded.  A record is in one of
    several parallel parts, so the part with the largest sum of epsilons bounds them all.  Releases
    of epsilon 0 are left out.
    """
    counts: dict[float, int] = {}
    for item, count in plan.losses():
        if isinstance(item, Parallel):
            parts = [_pure_epsilons(part) for part in item.distinct]
            if any(part is None for part in parts):
                return None
            bound = max(_sum_of_epsilons(part) for part in parts if part is not None)
        else:
            loss = single_loss(item)
            bound = max(loss.max_loss, loss.reversed.max_loss)
        if math.isinf(bound):
            return None
        if bound:
            counts[bound] = counts.get(bound, 0) + count
    return counts


def _sum_of_epsilons(epsilon_counts: dict[float, int]) -> float:
    return round_up(sum(count * e for e, count in epsilon_counts.items()), 4 + len(epsilon_counts))
