"""Group privacy: the loss of a group of records, from a plan stated for one record.

P and Q are the laws of the output on two data sets that differ in all records of the group.  The
loss of the group is the first of these that applies to the loss of one record:

1. Poisson-sampled Gaussian noise.  Of g records in the group some are in the data of P alone, the
   others in that of Q alone.  For each of the g + 1 ways to split the group, both outputs are
   mixtures of normal laws (`sampled_group_loss`); the group pays for the worst way.
2. A closed form of the loss itself: epsilon times g, mu times g, rho times g^2, ...
3. The trade-off curve.  Let h(a) be the greatest power, P(S) over events S, of a test of level
   Q(S) = a.  Against a group of g the greatest power is h(h(... h(a))), g times (`GroupLoss`).

References: Dong, Roth & Su (2022), Theorem 2.14: group privacy by iterating the trade-off curve;
`docs/proofs/mixtures.md` for groups of sampled records.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.composition.composed_loss import loss_of_item
from accountant.domains import RECORDS
from accountant.errors import ParameterError
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.losses.connect_the_dots import lower_hull
from accountant.losses.finite import FINITE_CGF, FiniteLoss, discretised
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.least_rho import rho_of_bounded
from accountant.losses.loss import Loss, epsilons
from accountant.losses.loss_numerics import LossNumerics
from accountant.losses.mixture_of_gaussians import MixturePairLoss
from accountant.losses.mixture_pair import MixturePair
from accountant.losses.normal_mixture import Side, side
from accountant.numerics import Array
from accountant.numerics.rounding import ULP, round_up
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan, Repeat, Sequential, as_plan

# The most records of a group for which every split into added and removed records is composed (case
# 1 above), one composition for each.  For a larger group the trade-off curve is iterated (case 3).
MAX_SAMPLED_GROUP = 64
# The most records of a group for which a trade-off curve is iterated: the first for losses of
# finitely many values, the second for losses that are discretised first.  The corners of a
# discretised curve, some 4,000, grow with the group, and the time with its square: seconds for 300.
MAX_ITERATED_SIZE, MAX_ITERATED_CURVE_SIZE = 2_000, 300


@final
@dataclass(frozen=True, slots=True)
class Grouped(Plan):
    """A plan as a group of ``size`` records sees it, all of which change.

    Noise that is added to a value costs what it would cost if the sensitivity were ``size`` times
    as large.  A Poisson sample with Gaussian noise holds Bin(size, rate) records of the group.
    There the cost is the worst over all ways to add some of the records and to remove the others,
    and each way is composed over the whole part.  For any other loss the trade-off curve is
    iterated.

    Parameters
    ----------
    part : Plan
        The plan as one record sees it.
    size : int
        Records in the group, at least 1.

    References
    ----------
    Dong, Roth & Su (2022), Theorem 2.14.

    Examples
    --------
    >>> from accountant import Grouped, PureLoss, Tight
    >>> round(Tight().epsilon(Grouped(PureLoss(0.1), 3), delta=0.0), 9)
    0.3
    """

    part: Plan
    size: int

    def __post_init__(self) -> None:
        as_plan(self.part)
        object.__setattr__(self, "size", RECORDS.check("size", self.size))

    @property
    def relation(self) -> Adjacency | None:
        """The relation of the part, for ``size`` records."""
        return self.part.relation

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield the losses that the group pays for."""
        items = [(loss_of_item(item), count) for item, count in self.part.losses()]
        sampled = [sampled_group_loss(loss, self.size, 0) for loss, _ in items]
        if all(loss is None for loss in sampled):
            # Different losses may have equal group losses, which a sequence merges.
            yield from Sequential(n * group_loss(loss, self.size) for loss, n in items).losses()
            return
        # In one split, ``in_p`` records of the group are in the data of P alone, and the others in
        # that of Q alone.  They are the same ones in all releases, so each split is composed by
        # itself.  Its releases keep their order where that matters: with choices among them.
        released: Plan = Sequential(n * loss for loss, n in items)
        if any(isinstance(item, BoundedRangeLoss | Parallel) for item, _ in self.part.losses()):
            released = self.part
        splits = (_split(released, self.size, in_p) for in_p in reversed(range(self.size + 1)))
        yield Parallel(splits), 1

    def losses_in_order(self) -> Iterator[tuple[Item, int]]:
        """Yield the losses that the group pays for; splits of sampled records once for all."""
        items = [(loss_of_item(item), count) for item, count in self.part.losses_in_order()]
        if any(sampled_group_loss(loss, self.size, 0) is not None for loss, _ in items):
            return self.losses()
        return ((group_loss(loss, self.size), count) for loss, count in items)

    def leaves(self) -> Iterator[Plan]:
        """Yield the leaves of the part: a group changes what a plan costs, not what it releases."""
        return self.part.leaves()

    @property
    def reversed(self) -> Grouped:
        """The same group with the part reversed."""
        return Grouped(self.part.reversed, self.size)


def _split(plan: Plan, size: int, in_p: int) -> Plan:
    """Return a plan with the loss of a group in place of each loss, in the same order."""
    match plan:
        case Sequential(parts):
            return Sequential(_split(part, size, in_p) for part in parts)
        case Repeat(part, count):
            return Repeat(_split(part, size, in_p), count)
    losses = ((loss_of_item(item), count) for item, count in plan.losses_in_order())
    return Sequential(
        count * (sampled_group_loss(loss, size, in_p) or group_loss(loss, size))
        for loss, count in losses
    )


@final
@dataclass(frozen=True, slots=True)
class GroupLoss(FiniteLoss):
    """One release of ``loss`` against a group of ``size``, from the iterated trade-off curve."""

    loss: Loss
    size: int

    @property
    def reversed(self) -> GroupLoss:
        """The same profile: a record of the group may change either way."""
        # The pair below changes one way alone.
        is_envelope = self.loss.numerics.is_upper_envelope
        return GroupLoss(self.loss.reversed, self.size) if is_envelope else self

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return ``sup_a h(h(...h(a))) - e^eps a``, with h(a) the greatest power at level a."""
        level, power, *_ = _power_curve(self.loss, self.size)
        e = epsilons(epsilon)
        # The power is concave in the level.  So the supremum lies at the first corner from which on
        # the slope is at most e^eps.  An exponent above 700 nats could overflow.
        slope = np.diff(power) / np.diff(level)
        corner = np.searchsorted(-slope, -np.exp(np.minimum(e, 700.0)))
        stick = power[corner] - np.exp(np.minimum(e, 700.0)) * level[corner]
        # Where it is above 0, both terms are at most 1: 4 ULP are more than their round-off.
        return np.clip(stick + 4 * ULP * (stick > 0), 0.0, 1.0)

    @property
    def infinity(self) -> float:
        """The power at level 0, which is the mass of the outcomes that Q never has."""
        return float(_power_curve(self.loss, self.size)[1][0])

    @property
    def max_loss(self) -> float:
        """The largest finite loss, in nats: ``size`` times that of one record."""
        return round_up(self.size * max(self.loss.max_loss, self.loss.reversed.max_loss))

    @property
    def rounding(self) -> float:
        """How far the curve is raised for its round-off, in logarithms, twice: for both laws."""
        return 2 * _power_curve(self.loss, self.size)[2]

    @property
    def rho(self) -> float:
        """``size^2`` times the rho of one record, or the group's own, whichever is less.

        References
        ----------
        Bun & Steinke (2016), Proposition 1.9.
        """
        of_records = round_up(self.size**2 * max(self.loss.rho, self.loss.reversed.rho))
        return min(of_records, rho_of_bounded(self))

    @property
    def numerics(self) -> LossNumerics:
        """A finite sum; a numerical bound where the curve is not that of finitely many outcomes."""
        is_cut = _power_curve(self.loss, self.size)[3]
        is_numerical = self.loss.loss_pmf is None or is_cut
        return LossNumerics(FINITE_CGF, self.loss.numerics.is_upper_envelope, is_numerical)

    @property
    def attained_pair(self) -> Loss:
        """The loss itself; of a bound on many pairs, a pair that differs in one record alone."""
        # The trade-off curve of that pair, iterated, need not be that of a pair of data sets: two
        # records that are sampled apart cost less.
        return self.loss.attained_pair if self.loss.numerics.is_upper_envelope else self

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """The finite losses and their masses: each piece of the power curve is an outcome."""
        level, power, *_ = _power_curve(self.loss, self.size)
        p, q = np.diff(power), np.diff(level)
        possible = (p > 0) & (q > 0)
        return np.log(p[possible]) - np.log(q[possible]), p[possible]

    def for_group(self, size: int) -> Loss:
        """Return the loss of one group that unites ``size`` such groups."""
        return group_loss(self.loss, self.size * RECORDS.check("size", size))


def group_loss(loss: Loss, size: int) -> Loss:
    """Return the loss of ``size`` records, by a closed form or else by the trade-off curve.

    Raises `ParameterError` where the curve of so large a group would take too long.
    """
    closed = loss.for_group(RECORDS.check("size", size))
    if closed is not None:
        return closed
    max_size = MAX_ITERATED_CURVE_SIZE if loss.loss_pmf is None else MAX_ITERATED_SIZE
    if size > max_size:
        allowed = (
            f"at most {max_size:,} where the trade-off curve is iterated: bound the part "
            "by a PureLoss, a GaussianLoss or a ZCDPLoss, which have a closed form"
        )
        raise ParameterError("size", size, allowed)
    return GroupLoss(loss, size)


def sampled_group_loss(loss: Loss, size: int, in_p: int) -> MixturePairLoss | None:
    """Return the loss of a sampled group, ``in_p`` of it in P alone and the others in Q alone.

    With noise of deviation 1 and a record that adds mu, the output is N(mu Bin(in_p, rate), 1)
    under P, and N(-mu Bin(size - in_p, rate), 1) under Q.  The result is None where the loss is no
    sampled Gaussian under add-remove neighbours, or the group is larger than `MAX_SAMPLED_GROUP`.
    """
    if not isinstance(loss, PoissonSampled) or size > MAX_SAMPLED_GROUP:
        return None
    part = loss.loss
    if loss.exchanged is not None or not isinstance(part, GaussianLoss):
        return None
    sides = (_hits(part.mu, loss.rate, in_p), _hits(part.mu, loss.rate, size - in_p))
    return MixturePairLoss(MixturePair(*sides))


def _hits(mu: float, rate: float, records: int) -> Side:
    """Return the law of mu times Bin(records, rate): the shifts j mu, and their probabilities."""
    weights = [
        math.comb(records, j) * rate**j * (1 - rate) ** (records - j) for j in range(records + 1)
    ]
    return side([round_up(j * mu) for j in range(records + 1)], weights)


@functools.lru_cache(maxsize=64)
def _power_curve(loss: Loss, size: int) -> tuple[Array, Array, float, bool]:
    """Return corners (level, power) of the most powerful tests against a group, and their error.

    The last value says whether levels too small for a float were taken for 0.

    h(a) is the greatest power at level a against one record, which may change either way.  So h is
    the least concave curve above the curves of both directions.  Against a group the power is
    h(h(... h(a))).  Levels go from 0 to 1, and powers are raised by their relative error.
    """
    first, second = (_test_corners(either) for either in (loss, loss.reversed))
    curves = [first[:2], second[:2]]
    all_levels = np.union1d(*(curve_level for curve_level, _ in curves))
    powers_at_levels = []
    for curve_level, curve_power in curves:
        # Where a curve jumps, the last point of a level has its greatest power.
        is_upper_end = np.append(np.diff(curve_level) > 0, True)
        powers_at_levels.append(
            np.interp(all_levels, curve_level[is_upper_end], curve_power[is_upper_end])
        )
    greatest = np.maximum(*powers_at_levels)
    hull = lower_hull(all_levels, -greatest)
    level, power = all_levels[hull], greatest[hull]
    levels, powers, is_cut = level, power, False
    for _ in range(size - 1):
        # ``level``, ``power`` are the corners of h; ``levels``, ``powers`` those of g, h iterated
        # so far.  The corners of h(g(a)) are those of g, and the levels a at which g(a) is the
        # level of a corner of h.
        preimages = np.interp(level, powers, levels)
        is_corner = level >= powers[0]
        # The level of a corner may be too small for a float.  Its power is then that of level 0:
        # the loss there counts as infinite.
        is_lost = (level > powers[0]) & (preimages < np.finfo(float).tiny)
        corners = np.union1d(levels, preimages[is_corner & ~is_lost])
        powers = np.interp(np.interp(corners, levels, powers), level, power)
        powers = np.maximum(powers, np.max(power[is_lost], initial=0.0))
        is_cut |= bool(is_lost.any())
        levels = corners
        keep = np.append(np.diff(levels) > 0, True)
        levels, powers = levels[keep], powers[keep]
    # h is concave and h(0) >= 0, so a h'(a) <= h(a): h makes no relative error larger.  Each use of
    # it adds that of its own corners, and at most 8 ULP of the straight line between two of them;
    # the error of a level counts as one of the power.
    error = 2 * size * (max(first[2], second[2]) + 8 * ULP)
    powers = np.minimum(powers * (1 + error), 1.0)
    # Round-off may leave corners that are not concave.  The slopes of the hull fall, as
    # `GroupLoss.profile`, which searches them, needs; it is nowhere below the corners.
    hull = lower_hull(levels, -powers)
    return levels[hull], powers[hull], error, is_cut


def _test_corners(loss: Loss) -> tuple[Array, Array, float]:
    """Return level and power of the likelihood-ratio tests of one loss, and their relative error.

    A test rejects Q for all losses from some value upwards.  The first test rejects for infinite
    losses alone, and each further one adds the next smaller loss.  A loss l of mass p under P has
    the mass p e^-l under Q.
    """
    loss_pmf = loss.loss_pmf
    if loss_pmf is None:
        # A loss of finitely many values that dominates this one; at most 1e-250 of mass is moved.
        finite_loss = discretised(loss, 1e-250, upper=True)
        loss_pmf, infinity_mass = (finite_loss.loss, finite_loss.mass), finite_loss.infinity_mass
    else:
        infinity_mass = loss.infinity
    order = np.argsort(-loss_pmf[0])
    values, mass = loss_pmf[0][order], loss_pmf[1][order]
    level = np.append(0.0, np.cumsum(mass * np.exp(-values)))
    power = infinity_mass + np.append(0.0, np.cumsum(mass))
    # An ULP for each term of a sum, and for each nat of an exponent, whose own error counts so.
    error = (values.size + float(np.max(np.abs(values), initial=0.0)) + 4) * ULP
    return np.append(np.minimum(level, 1.0), 1.0), np.append(np.minimum(power, 1.0), 1.0), error
