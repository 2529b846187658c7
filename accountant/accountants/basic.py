"""Accounting by basic composition: the epsilons of the releases add up, and so do their deltas.

The delta that is asked about is shared by the releases that need one.  Each has the epsilon of its
own profile at its share.  The mass at infinity of a release is the probability of outcomes that are
impossible on the neighbour; no epsilon covers these, so that it is the least delta of the release.

References: Dwork, Kenthapadi, McSherry, Mironov & Naor (2006), Theorem 1.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from decimal import ROUND_UP, Context, Decimal
from typing import final

from accountant.accountants.base import Accountant
from accountant.composition.plan_totals import infinity_mass
from accountant.losses.loss import single_loss
from accountant.numerics.rounding import LARGEST_BELOW_ONE, ULP
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan

# Decimal arithmetic with 700 digits.  Deltas are at most 1: as printed, and times any count that a
# float holds, they need 650, so that their sums and differences are exact.  Sums of epsilons are
# exact, or rounded up.
DECIMAL_CONTEXT = Context(prec=700, rounding=ROUND_UP)


@final
@dataclass(frozen=True, slots=True)
class Basic(Accountant):
    """Basic composition: epsilons add, and delta is shared equally among the releases not pure.

    Epsilons are added in decimal as they are printed, so ten times 0.1 is 1.0 exactly.

    References
    ----------
    Dwork, Kenthapadi, McSherry, Mironov & Naor (2006), Theorem 1.

    Examples
    --------
    >>> from accountant import Basic, PureLoss
    >>> Basic().epsilon(10 * PureLoss(0.1), delta=0.0)
    1.0
    """

    def one_way_epsilon(self, plan: Plan, delta: float) -> float:
        """Return the sum of the epsilons of one direction of the neighbours."""
        items = list(plan.losses())
        # A release is leaky if it has no epsilon at delta 0.
        leaky_count = sum(count for item, count in items if not math.isfinite(_pure_epsilon(item)))
        # Each release keeps its own mass at infinity as its delta.  The rest of delta is shared
        # equally by the leaky releases.
        spare = printed_decimal(delta)
        for item, count in items:
            spare = DECIMAL_CONTEXT.subtract(
                spare, DECIMAL_CONTEXT.multiply(printed_decimal(_item_infinity(item)), count)
            )
        shared = float(spare)
        if leaky_count and shared < 0:
            return math.inf
        # What a leaky release gets beside its own mass; the factor is for the round-off of
        # ``shared`` and of the quotient.
        part = printed_decimal(shared / max(leaky_count, 1) * (1 - 4 * ULP))
        exact = Decimal(0)
        for item, count in items:
            if math.isfinite(_pure_epsilon(item)):
                epsilon = _pure_epsilon(item)
            else:
                share = _item_infinity(item)  # all it has, if nothing is left to be shared
                if shared > 0:
                    # The sum is exact and then rounded down, as its round-off may be larger than
                    # the part.  A delta is below 1.
                    total = DECIMAL_CONTEXT.add(printed_decimal(share), part)
                    share = min(float_floor(total), LARGEST_BELOW_ONE)
                epsilon = _item_epsilon(item, share)
            if math.isinf(epsilon):
                return math.inf
            exact = DECIMAL_CONTEXT.add(
                exact, DECIMAL_CONTEXT.multiply(printed_decimal(epsilon), count)
            )
        return float_ceiling(exact)


@functools.lru_cache(maxsize=4096)
def _item_epsilon(item: Item, delta: float) -> float:
    """Return the epsilon of one release at a delta, of at least its mass at infinity.

    The result is cached, because several accountants ask for this bound.
    """
    if isinstance(item, Parallel):
        return max(_part_epsilon(part, delta) for part in item.distinct)
    loss = single_loss(item)
    return loss.inverse_profile(delta) if delta > loss.infinity else loss.max_loss


def _pure_epsilon(item: Item) -> float:
    """Return the epsilon at which delta is 0; infinite where there is none."""
    if isinstance(item, Parallel):
        return max(_part_epsilon(part, 0.0) for part in item.distinct)
    return single_loss(item).pure


@functools.lru_cache(maxsize=4096)
def _part_epsilon(part: Plan, delta: float) -> float:
    """Return the sum of the epsilons of one parallel part at a delta.

    The result is cached, because parts inside parts ask for it several times.
    """
    return Basic().one_way_epsilon(part, delta)


def _item_infinity(item: Item) -> float:
    if isinstance(item, Parallel):
        return max(infinity_mass(part) for part in item.distinct)
    return single_loss(item).infinity


def printed_decimal(x: float) -> Decimal:
    """Return the decimal number that a float is printed as."""
    return Decimal(repr(x))


def float_ceiling(exact: Decimal) -> float:
    """Return the least float whose shortest decimal is not below ``exact``."""
    nearest = float(exact)
    return nearest if printed_decimal(nearest) >= exact else math.nextafter(nearest, math.inf)


def float_floor(exact: Decimal) -> float:
    """Return the greatest float whose shortest decimal is not above ``exact``."""
    nearest = float(exact)
    return nearest if printed_decimal(nearest) <= exact else math.nextafter(nearest, -math.inf)
