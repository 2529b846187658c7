"""One direction of a plan, and the interval that holds its epsilon.

The losses of a direction are a composition, which the engines of `accountant.composition.engines`
are asked about.  Here is what a plan adds to that: parts that run in parallel, losses that stand
for several pairs of distributions, and accountants whose bounds know more than any such pair.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from accountant.accountants.advanced import Advanced
from accountant.accountants.base import Accountant
from accountant.accountants.basic import Basic, printed_decimal
from accountant.accountants.pld import step_of_grid
from accountant.accountants.rdp import RDP
from accountant.accountants.zcdp import ZCDP
from accountant.composition.certificate import Certificate
from accountant.composition.closed_form import ENVELOPE
from accountant.composition.composed_loss import loss_of_plan, losses_of_items
from accountant.composition.composition import Composition, Query, costs_at_most, total_rounding
from accountant.composition.engine import (
    NOTHING_KNOWN,
    Journal,
    certify,
    delta_interval,
    least_cost,
)
from accountant.composition.engines import ENGINES, ENGINES_NEAR_EPSILON, EXACT_ENGINES
from accountant.composition.epsilon_curve import upper_epsilons
from accountant.composition.exact_cgf import with_coarse_cgf, with_exact_cgf
from accountant.composition.grid_certificate import delta_of_lattice, grid_certificate
from accountant.composition.lattice_above import TAIL_SHARE, LatticeAbove
from accountant.composition.plan_totals import all_losses
from accountant.errors import UnsupportedPlan
from accountant.losses.laplace import LaplaceLoss
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import PureLoss
from accountant.numerics.rounding import ACCURACY, ULP, round_up_to_bits
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan, Sequential

INEXACT_WIDTH = 1e-6  # of epsilon: what losses without exact cumulants reach
COARSE_WIDTH = 1e-4  # the same of an expensive profile, and where many deltas are asked for
LOOSE_WIDTH = 0.01
ROUGH_WIDTH = 0.05  # of epsilon: enough to see that another direction or part costs less
QUICK_COST = 1e7  # of a query that needs no rough answer first: 20 ms
MAX_ROUGH_RELEASES = 1_800  # of more a rough answer takes as long as a narrow one
MAX_GRID_LOSSES = 300  # different ones, of the pair that `PLD` composes
MAX_RELEASES_ABOVE = 10**8  # of this pair, whose round-off is small against its width
FEW_RELEASES = 19  # of samples, whose contours are long and wide
MAX_CHOICES = 8  # of one part in each parallel, for a lower end
SURE_BITS = 40  # of an epsilon from Rényi curves, whose last digits are round-off
LARGEST_LOSS_ULPS = 64  # by which the largest loss of a sample is rounded up, at most
# what they know of a plan, its dominating pairs do not know
ENVELOPE_ACCOUNTANTS: tuple[Accountant, ...] = (Basic(), Advanced(), ZCDP(), RDP())


@final
@dataclass(frozen=True)
class Direction:
    """One direction of a plan; ``width`` is that of `Tight`."""

    plan: Plan
    width: float

    @functools.cached_property
    def items(self) -> list[tuple[Item, int]]:
        """The releases of the plan, with their counts."""
        return list(self.plan.losses())

    @functools.cached_property
    def composition(self) -> Composition:
        """The losses of the plan; those of parallel parts as one loss."""
        return Composition(losses_of_items(self.items))

    @functools.cached_property
    def parts(self) -> tuple[Direction, ...]:
        """The parts of a plan that is one parallel; none of other plans."""
        match self.items:
            case [(Parallel() as parallel, 1)]:
                return tuple(Direction(part, self.width) for part in parallel.distinct)
        return ()

    @property
    def is_exact(self) -> bool:
        """Whether the epsilon of a composition is asked for, whose cumulants are exact."""
        composition = self.composition
        return not self.parts and composition.single_loss is None and composition.has_exact_cgf

    def query(self, delta: float) -> Query:
        """Return the query of the losses, no narrower than they can be answered."""
        width = self.width
        if not self.composition.has_exact_cgf:
            is_coarse = any(loss.numerics.is_coarse for loss, _ in self.composition.items)
            width = max(width, COARSE_WIDTH if is_coarse else INEXACT_WIDTH)
        return Query(self.composition, delta, width)

    def certify(self, delta: float, rival: float = 0.0, query: Query | None = None) -> Certificate:
        """Return the interval that holds epsilon at ``delta``.

        It may be wide where its upper end is at most ``rival``, what another direction costs;
        ``query`` is that of the losses, where the caller made it.
        """
        if delta == 0:
            total = Basic().one_way_epsilon(self.plan, 0.0)
            lower = total if math.isinf(total) else _lower_sum(self.composition, total)
            return Certificate(lower, total, "sum of the bounds")
        if self.parts:
            return self._certify_parallel(delta)
        if self.composition.single_loss is not None:
            interval = certify(self.query(delta), ENGINES)
            if math.isfinite(interval.upper) and interval.width > LOOSE_WIDTH * interval.upper:
                interval = self._within_envelopes(interval, delta)
            return interval
        interval = self._certify_losses(query or self.query(delta), rival)
        lower = min(self._least_of_choices(delta, interval), interval.upper)
        return replace(interval, lower=max(lower, interval.lower))

    def journal(self, delta: float) -> list[tuple[str, float, Certificate | None]]:
        """Return what engines were planned for the losses at ``delta``, in this order.

        Each with what it was to cost, in products of some 2 ns, and its interval; None where it
        was not made.  Other engines were to cost more, or do not apply.
        """
        if delta == 0:
            return [("sum of the bounds", 0.0, self.certify(0.0))]
        if self.parts:
            return [row for part in self.parts for row in part.journal(delta)]
        journal: Journal = []
        interval = certify(self.query(delta), ENGINES, journal=journal)
        if not journal:
            return [(interval.engine, 0.0, interval)]
        return [(engine.name, attempt.cost, attempt.result) for engine, attempt in journal]

    def _certify_parallel(self, delta: float) -> Certificate:
        """Return the interval of the part that costs most; others are only shown to cost less."""
        intervals: list[Certificate] = []
        lower = 0.0
        for part in self.parts:
            query = part.query(delta)
            interval = part.rough_certificate(query) if lower > 0 else NOTHING_KNOWN
            if interval.upper > lower:
                interval = part.certify(delta, lower, query)
            intervals.append(interval)
            lower = max(lower, interval.lower)
        worst = max(intervals, key=lambda interval: interval.upper)
        return Certificate(lower, worst.upper, worst.engine, worst.nodes)

    def _certify_losses(self, query: Query, rival: float) -> Certificate:
        """Return the interval of several losses, or of one that is released several times."""
        delta, losses = query.delta, self.composition.items
        if self.composition.is_within_variations(query.finite_delta[0]):
            return Certificate(0.0, 0.0, "sum of the bounds")
        if all(loss.numerics.determined_by_rdp for loss, _ in losses):
            composed = NOTHING_KNOWN  # nothing but `PLD` is sharper than their Rényi curves
        else:
            composed = certify(query, ENGINES, rival)
        interval = composed
        if self.has_envelopes or self._is_numerical:
            # the losses stand for more than one pair: their own lower end is not the plan's
            interval = replace(interval, lower=0.0)
            if self.has_envelopes:
                interval = self._within_envelopes(interval, delta)
            if interval.upper > rival and not self._is_numerical:
                attained = Composition([(loss.attained_pair, n) for loss, n in losses])
                lower = certify(Query(attained, delta, query.width), ENGINES).lower
                interval = replace(interval, lower=min(lower, interval.upper))
        elif interval.width > LOOSE_WIDTH * min(interval.upper, 1e300):
            interval = self._within_envelopes(interval, delta)
        interval = self._no_worse_than_pld(interval, composed.lower, delta, rival)
        return self._near_the_largest_loss(interval, delta)

    def _within_envelopes(self, interval: Certificate, delta: float) -> Certificate:
        """Return the interval with the upper end of accountants that know no pair, if less."""
        upper = self._envelope_epsilon(delta)
        if upper >= interval.upper:
            return interval
        return replace(interval, lower=min(interval.lower, upper), upper=upper, engine=ENVELOPE)

    def _envelope_epsilon(self, delta: float) -> float:
        epsilon_upper = min(
            accountant.one_way_epsilon(self.plan, delta) for accountant in ENVELOPE_ACCOUNTANTS
        )
        return max(epsilon_upper, 0.0)

    def _near_the_largest_loss(self, interval: Certificate, delta: float) -> Certificate:
        """Return the interval, its upper end no more than others prove of the largest loss.

        At a delta of 0 epsilons add up as they are printed, without the round-off of sums of
        floats; great Rényi orders say how far below the largest loss epsilon is.  It hardly falls
        there: digits that round-off may change are left out, so that delta agrees with it.
        """
        largest_loss = self.composition.max_loss
        if not (self.is_exact and largest_loss * (1 - 32 * ULP) <= interval.upper < math.inf):
            return interval
        by_renyi = round_up_to_bits(self._envelope_epsilon(delta), SURE_BITS)
        upper = min(interval.upper, Basic().one_way_epsilon(self.plan, 0.0), by_renyi)
        return replace(interval, lower=min(interval.lower, upper), upper=upper)

    def _no_worse_than_pld(
        self, interval: Certificate, composed_lower: float, delta: float, rival: float
    ) -> Certificate:
        """Return the interval, its upper end that of the pair that `PLD` composes if this is less.

        It can be where the upper end is far above ``composed_lower``, what the composition of the
        losses costs at least; or where some profile is a bound that is not convex, and hence that
        of no pair: lines between few of its points may lie above lines between all.
        """
        composition = self.composition
        if interval.upper <= rival or math.isinf(composed_lower):
            return interval
        is_narrow = interval.upper - composed_lower <= self.width * interval.upper
        if is_narrow and not (self.has_envelopes and self._has_bent_bounds):
            return interval
        if composition.releases > MAX_RELEASES_ABOVE or len(composition.items) > MAX_GRID_LOSSES:
            return interval
        lattice_delta = delta_of_lattice(delta)
        try:
            step = step_of_grid(self.plan, lattice_delta)
        except UnsupportedPlan:
            return interval
        lattice = LatticeAbove(composition.items, step, lattice_delta * TAIL_SHARE)
        upper = lattice.epsilon(delta, interval.upper)
        if upper >= interval.upper:
            return interval
        return Certificate(min(interval.lower, upper), upper, "pair above on a grid")

    @functools.cached_property
    def _has_bent_bounds(self) -> bool:
        envelopes = [loss for loss, _ in all_losses(self.plan) if loss.numerics.is_upper_envelope]
        return any(loss.cell_masses(np.array([0.0, 1.0])) is None for loss in envelopes)

    def _least_of_choices(self, delta: float, interval: Certificate) -> float:
        """Return a lower end from what one user pays at least, where the interval is wide."""
        lower = interval.lower
        for choice in self.choices:  # the truth is at least what any one user pays
            if interval.upper - lower <= self.width * min(interval.upper, 1e300):
                break
            if not (lower > 0 and choice.is_surely_within(lower, delta)):
                lower = max(lower, choice.certify(delta).lower)
        return lower

    @functools.cached_property
    def choices(self) -> tuple[Direction, ...]:
        """Plans of one user each, who is in one part of every parallel; none without these."""
        if not any(isinstance(item, Parallel) for item, _ in self.items):
            return ()
        options = [
            _costliest_first(item) if isinstance(item, Parallel) else [item]
            for item, _ in self.items
        ]
        if math.prod(map(len, options)) <= MAX_CHOICES:
            chosen = list(itertools.product(*options))
        else:  # any choices are sound: the costliest parts together, then the next
            number = min(MAX_CHOICES, max(map(len, options)))
            chosen = [
                tuple(plans[min(i, len(plans) - 1)] for plans in options) for i in range(number)
            ]
        counts = [count for _, count in self.items]
        plans = (
            Sequential(n * part for part, n in zip(parts, counts, strict=True)) for parts in chosen
        )
        return tuple(Direction(plan, self.width) for plan in plans)

    def rough_certificate(self, query: Query) -> Certificate:
        """Return a wide interval, where the narrow one takes long; else nothing is known."""
        if not self.is_exact or self.choices or self.composition.releases > MAX_ROUGH_RELEASES:
            return NOTHING_KNOWN
        if least_cost(query, ENGINES) < QUICK_COST:
            return NOTHING_KNOWN
        rough_interval = grid_certificate(self.composition.items, query.delta, ROUGH_WIDTH)
        return rough_interval or NOTHING_KNOWN

    def is_surely_within(self, epsilon: float, delta: float, like: Query | None = None) -> bool:
        """Return whether a bound quicker than the interval says it costs at most ``epsilon``.

        ``like``: the query of the other direction, where that was answered before.
        """
        if not 0 < epsilon < math.inf or delta == 0:
            return False
        loss = self.composition.single_loss
        if loss is not None and not self.parts:
            return loss.is_surely_within(epsilon, delta)
        if self.is_exact:
            return costs_at_most(self.query(delta), epsilon, like)
        if self.has_envelopes and self._envelope_epsilon(delta) <= epsilon:
            return True
        return chernoff_epsilon(self.plan, delta) <= epsilon

    def upper_epsilons(self, deltas: Sequence[float], *, with_envelopes: bool) -> list[float]:
        """Return upper bounds at ``deltas``, positive and descending; about 1e-4 loose.

        Without envelopes `ENVELOPE_ACCOUNTANTS` are left out where there is another bound.
        """
        composition, losses = self.composition, self.composition.items
        if self.parts or composition.single_loss is not None:
            return [self.certify(delta).upper for delta in deltas]
        if self._is_few_samples:  # certificates are quicker than contours alone, and narrower
            coarse = replace(self, width=INEXACT_WIDTH)
            return [coarse.certify(delta).upper for delta in deltas]
        uppers = [math.inf] * len(deltas)
        only_envelopes = all(loss.numerics.determined_by_rdp for loss, _ in losses)
        if deltas and not only_envelopes:
            finite_losses = Composition(with_coarse_cgf(losses, deltas[-1]))
            uppers = upper_epsilons(finite_losses, deltas, COARSE_WIDTH)
        if self.has_envelopes and (with_envelopes or only_envelopes):
            envelopes = [self._envelope_epsilon(delta) for delta in deltas]
            uppers = [min(pair) for pair in zip(uppers, envelopes, strict=True)]
        intervals = [Certificate(0.0, upper, ENVELOPE) for upper in uppers]
        return [
            self._near_the_largest_loss(interval, delta).upper
            for interval, delta in zip(intervals, deltas, strict=True)
        ]

    @property
    def _is_few_samples(self) -> bool:
        composition = self.composition
        few = composition.releases <= FEW_RELEASES
        return few and self.is_exact and composition.rough_epsilon(-1.0) is not None

    def quick_delta(self, epsilon: float) -> tuple[float, float]:
        """Return two bounds on delta, near each other where a quick engine is exact."""
        if self.parts:
            bounds = [part.quick_delta(epsilon) for part in self.parts]
            return max(low for low, _ in bounds), max(high for _, high in bounds)
        loss = self.composition.single_loss
        if loss is not None:
            value = float(loss.profile(epsilon))
            is_exact = not (self.has_envelopes or self._is_numerical)
            return value * (1 - ACCURACY) * is_exact, min(1.0, value * (1 + ACCURACY))
        if epsilon == 0:
            return 0.0, self._total_variation()
        if not self.is_exact:
            return 0.0, 1.0
        return delta_interval(self.composition, epsilon, self.width, EXACT_ENGINES)

    def _total_variation(self) -> float:
        """Return an upper bound on delta at an epsilon of 0."""
        losses = self.composition.items
        total = math.fsum(n * float(loss.profile(0.0)) * (1 + ACCURACY) for loss, n in losses)
        if not all(loss.numerics.determined_by_rdp for loss, _ in losses):
            finite_losses = Composition(with_exact_cgf(losses, 1e-12, upper=True))
            width = self.width if self.is_exact else max(self.width, INEXACT_WIDTH)
            total = min(total, delta_interval(finite_losses, 0.0, width, ENGINES_NEAR_EPSILON)[1])
        if self.has_envelopes:
            envelopes = (
                accountant.one_way_delta(self.plan, 0.0) for accountant in ENVELOPE_ACCOUNTANTS
            )
            total = min(total, *envelopes)
        return total

    @functools.cached_property
    def _is_numerical(self) -> bool:
        """Whether the profile of some loss is computed, and rounded up."""
        return any(loss.numerics.is_numerical for loss, _ in self.composition.items)

    @functools.cached_property
    def has_envelopes(self) -> bool:
        """Whether the profile of some loss is a bound on many pairs."""
        return any(loss.numerics.is_upper_envelope for loss, _ in self.composition.items)


def _costliest_first(parallel: Parallel) -> list[Plan]:
    return sorted(parallel.distinct, key=lambda part: -loss_of_plan(part).rho)


def _lower_sum(composition: Composition, total: float) -> float:
    """Return a lower bound on the sum of the largest losses, some of which were rounded up."""
    # `Basic` adds numbers as they are printed: short ones were given so, long ones rounded up
    losses = composition.items
    numbers = [total, *(loss.pure for loss, _ in losses)]
    are_printed = all(isinstance(loss, PureLoss | LaplaceLoss) for loss, _ in losses)
    if are_printed and all(len(printed_decimal(x).as_tuple().digits) <= 15 for x in numbers):
        return total
    rounding = total_rounding(losses)
    return max(0.0, total * (1 - LARGEST_LOSS_ULPS * ULP) - 2 * rounding)


def chernoff_epsilon(plan: Plan, delta: float) -> float:
    """Return a Chernoff bound from one sweep over orders; infinite where none is at hand.

    A direction whose bound is below the other's epsilon needs no engine.
    """
    losses = [
        (item, n)
        for item, n in plan.losses()
        if isinstance(item, Loss) and item.numerics.has_exact_cgf
    ]
    if delta == 0 or len(losses) < len(list(plan.losses())):
        return math.inf
    return Composition(losses).chernoff(delta)
