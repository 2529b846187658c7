"""One direction of a plan: the route to its epsilon, and the answers by that route."""

from __future__ import annotations

import enum
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
from accountant.composition.certificate import Certificate, intersection
from accountant.composition.certified_composition import (
    CertifiedComposition,
    total_rounding,
)
from accountant.composition.closed_form import ENVELOPE, closed_form
from accountant.composition.composed_loss import loss_of_plan, losses_of_items
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

DISCRETISATION_ERROR = 1e-6  # of epsilon: by how much a discretised loss is too large
COARSE_WIDTH = 1e-5  # the same of an envelope whose profile is expensive
CURVE_WIDTH = 1e-4  # of epsilon: the same where many deltas are asked for
LOOSE_WIDTH = 0.01
SURE_BITS = 40  # of an epsilon from Rényi curves, whose last digits are round-off
ROUGH_WIDTH = 0.05  # of epsilon: enough to see that a parallel part costs less
MAX_GRID_LOSSES = 300  # different ones, of the pair that `PLD` composes
MAX_RELEASES_ABOVE = 10**8  # of this pair, whose round-off is small against its width
GRID_ABOVE = "pair above on a grid"
MAX_TERMS = 5000
GRID_WIDTH = 1e-7  # of epsilon: what a lattice aims at where a contour is wide
MAX_CHOICES = 8  # of one part in each parallel, for a lower end
MAX_GRID_RELEASES = 10**5  # the round-off of a lattice grows with them
MAX_QUICK_GRID_RELEASES = 1_800  # up to them it is quicker than a smoothed contour
FEW_RELEASES = 19  # so few may have a long contour, and then a lattice is quicker
LARGEST_LOSS_ULPS = 64  # by which the largest loss of a sample is rounded up, at most
MAX_DISCRETISED_LOSSES = 200  # each takes some 20 ms, and more would gain little
# what they know of a plan, its dominating pairs do not know
ENVELOPE_ACCOUNTANTS: tuple[Accountant, ...] = (Basic(), Advanced(), ZCDP(), RDP())


class Route(enum.Enum):
    """How an answer is computed; the quickest route comes first."""

    SUM_OF_BOUNDS = enum.auto()  # the largest losses add up: all there is to say at a delta of 0
    CLOSED_FORM = enum.auto()  # one release: its own profile
    PARALLEL = enum.auto()  # one release of parallel plans: the part that costs most
    EXACT_COMPOSITION = enum.auto()  # exact cumulants: enumeration, lattice or contour
    DISCRETISED_COMPOSITION = enum.auto()  # finite losses above and below those without
    ENVELOPE_ACCOUNTANTS = enum.auto()  # Rényi curves say all: no composition is sharper


COMPOSED = {Route.EXACT_COMPOSITION, Route.DISCRETISED_COMPOSITION, Route.ENVELOPE_ACCOUNTANTS}


@final
@dataclass(frozen=True, slots=True)
class OneWay:
    """One direction of a plan; ``width`` is that of `Tight`."""

    plan: Plan
    width: float
    route: Route
    losses: list[tuple[Loss, int]]
    parts: tuple[OneWay, ...] = ()  # of parallel plans
    choices: tuple[OneWay, ...] = ()  # what one user may pay for, where it holds parallel plans
    exact: CertifiedComposition | None = None  # of the route with this name

    def certify(self, delta: float, rival: float = 0.0) -> Certificate:
        """Return the interval that holds epsilon at ``delta``.

        It may be wide where its upper end is at most ``rival``, what another direction costs.
        """
        if self.route in COMPOSED and self._is_within_variations(delta):
            return Certificate(0.0, 0.0, "sum of the bounds")
        interval, least_above = self._certify(delta, rival)
        if self.route in COMPOSED:
            interval = self._no_worse_than_pld(interval, least_above, delta, rival)
            if math.isinf(interval.upper) and not math.isinf(interval.lower):  # hardly any noise
                interval = replace(interval, upper=self._envelope_epsilon(delta), engine=ENVELOPE)
            upper = self._near_the_largest_loss(interval.upper, delta)
            if upper < interval.upper:
                interval = replace(interval, lower=min(interval.lower, upper), upper=upper)
        lower = min(self._least_of_choices(delta, interval), interval.upper)
        return (
            replace(interval, lower=max(lower, interval.lower))
            if lower > interval.lower
            else interval
        )

    def _near_the_largest_loss(self, upper: float, delta: float) -> float:
        """Return an upper end, where it is the largest loss the least that others prove.

        At a delta of 0 epsilons add up as they are printed, without the round-off of sums of
        floats; great Rényi orders say how far below the largest loss epsilon is.  It hardly falls
        there: digits that round-off may change are left out, so that delta agrees with it.
        """
        if self.exact is None or not self.exact.max_loss * (1 - 32 * ULP) <= upper < math.inf:
            return upper
        others = round_up_to_bits(self._envelope_epsilon(delta), SURE_BITS)
        return min(upper, Basic().one_way_epsilon(self.plan, 0.0), others)

    def _is_within_variations(self, delta: float) -> bool:
        """Return whether the deltas of all losses at epsilon 0 add up to at most ``delta``."""
        total = 0.0
        for loss, count in self.losses:
            total += count * float(loss.profile(0.0)) * (1 + ACCURACY)
            if not total <= delta:
                return False  # after a few of many losses
        return True

    def _least_of_choices(self, delta: float, interval: Certificate) -> float:
        """Return a lower end from what one user pays at least, where the interval is wide."""
        lower = interval.lower
        for choice in self.choices:  # the truth is at least what any one user pays
            if interval.upper - lower <= self.width * min(interval.upper, 1e300):
                break
            if not (lower > 0 and choice.is_surely_within(lower, delta)):
                of_choice = choice._certify(delta, 0.0)[0]  # noqa: SLF001
                lower = max(lower, of_choice.lower, choice._least_of_choices(delta, of_choice))  # noqa: SLF001
        return lower

    def _no_worse_than_pld(
        self, interval: Certificate, least_above: float, delta: float, rival: float
    ) -> Certificate:
        """Return the interval, its upper end that of the pair that `PLD` composes if this is less.

        ``least_above`` is what this pair costs at least: where that is near, where the other
        direction costs more, or the losses are too many, the interval stays as it is.
        """
        releases = sum(n for _, n in self.losses)
        if interval.upper <= rival or math.isinf(least_above):
            return interval
        if (
            interval.upper - least_above <= self.width * interval.upper
            and not self._has_bent_bounds
        ):
            return interval
        if releases > MAX_RELEASES_ABOVE or len(self.losses) > MAX_GRID_LOSSES:
            return interval
        try:
            step = step_of_grid(self.plan, delta_of_lattice(delta))
        except UnsupportedPlan:
            return interval
        tail = delta_of_lattice(delta) * TAIL_SHARE
        upper = LatticeAbove(self.losses, step, tail).epsilon(delta, interval.upper)
        if upper >= interval.upper:
            return interval
        return Certificate(min(interval.lower, upper), upper, GRID_ABOVE, interval.nodes)

    def _certify(self, delta: float, rival: float) -> tuple[Certificate, float]:
        """Return the interval, and what a pair above each loss costs at least."""
        match self.route:
            case Route.SUM_OF_BOUNDS:
                total = Basic().one_way_epsilon(self.plan, delta)
                lower = total if math.isinf(total) else _lower_sum(self.plan, total)
                interval = Certificate(lower, total, "sum of the bounds")
            case Route.CLOSED_FORM:
                interval = self._certify_single(delta)
            case Route.PARALLEL:
                interval = self._certify_parallel(delta)
            case Route.EXACT_COMPOSITION:
                composition = self.exact or CertifiedComposition(self.losses, self.width)
                interval = self._certify_exact(composition, delta, rival)
            case _:
                grid = self._certify_on_grid(delta) if self._has_lattice else None
                if grid is not None:
                    interval, least_above, is_fine = grid
                    if not is_fine:
                        finite = self._certify_discretised(delta, with_envelopes=False)
                        interval = intersection(interval, finite)
                    return interval, least_above
                interval = self._certify_discretised(delta)
        return interval, interval.lower

    def _certify_parallel(self, delta: float) -> Certificate:
        """Return the interval of the part that costs most; others are only shown to cost less."""
        intervals: list[Certificate] = []
        lower = 0.0
        for part in self.parts:
            rough_interval = part.rough_certificate(delta) if lower > 0 else None
            is_less = rough_interval is not None and rough_interval.upper <= lower
            intervals.append(
                rough_interval
                if rough_interval is not None and is_less
                else part.certify(delta, lower)
            )
            lower = max(lower, intervals[-1].lower)
        worst = max(intervals, key=lambda interval: interval.upper)
        return Certificate(lower, worst.upper, worst.engine, worst.nodes)

    def rough_certificate(self, delta: float) -> Certificate | None:
        """Return a wide interval by a coarse lattice where the narrow one is expensive."""
        releases = sum(n for _, n in self.losses)
        if self.exact is None or self.choices or releases > MAX_QUICK_GRID_RELEASES:
            return None
        if self.exact.has_quick_engine(delta):
            return None
        return grid_certificate(self.losses, delta, ROUGH_WIDTH)

    def _certify_single(self, delta: float) -> Certificate:
        """Return the interval by the loss's own profile, or a bound that is less."""
        interval = closed_form(self.losses[0][0], delta)
        if math.isinf(interval.upper) or interval.width <= LOOSE_WIDTH * interval.upper:
            return interval
        upper = max(interval.lower, min(interval.upper, self._envelope_epsilon(delta)))
        return (
            interval if upper == interval.upper else replace(interval, upper=upper, engine=ENVELOPE)
        )

    def is_surely_within(self, epsilon: float, delta: float, like: OneWay | None = None) -> bool:
        """Return whether a bound quicker than the interval says it costs at most ``epsilon``.

        ``like``: the other direction, where that was answered before.
        """
        if not 0 < epsilon < math.inf or self.route is Route.SUM_OF_BOUNDS:
            return False
        if self.route is Route.CLOSED_FORM:
            return self.losses[0][0].is_surely_within(epsilon, delta)
        if self.exact is not None:
            return self.exact.is_surely_within(epsilon, delta, like and like.exact)
        if self.has_envelopes and self._envelope_epsilon(delta) <= epsilon:
            return True
        return chernoff_epsilon(self.plan, delta) <= epsilon

    def _certify_exact(
        self, composition: CertifiedComposition, delta: float, rival: float
    ) -> Certificate:
        """Return the interval by exact cumulants, or on a lattice where a contour is long."""
        releases = sum(n for _, n in self.losses)
        grid: Certificate | None = None
        if releases <= FEW_RELEASES and not composition.has_quick_engine(delta):
            grid = grid_certificate(self.losses, delta, max(self.width, GRID_WIDTH))
            if grid is not None and (
                grid.width <= self.width * min(grid.upper, 1e300) or grid.upper <= rival
            ):
                return grid
        interval = Certificate(0.0, math.inf, ENVELOPE)
        if grid is None and releases <= MAX_QUICK_GRID_RELEASES and len(self.losses) <= MAX_CHOICES:
            interval = composition.certify(delta, quick_only=True)
            if interval.width > self.width * min(interval.upper, 1e300) and interval.upper > rival:
                grid = grid_certificate(self.losses, delta, max(self.width, GRID_WIDTH))
                interval = interval if grid is None else intersection(interval, grid)
        if interval.width > self.width * min(interval.upper, 1e300) and interval.upper > rival:
            interval = intersection(composition.certify(delta), interval)
        if self._is_narrow(interval) or math.isinf(interval.lower) or interval.upper <= rival:
            return interval
        if len(self.losses) > MAX_DISCRETISED_LOSSES:
            upper = min(interval.upper, composition.chernoff(delta))
            return Certificate(min(interval.lower, upper), upper, interval.engine, interval.nodes)
        if grid is None and releases <= MAX_GRID_RELEASES:
            grid = grid_certificate(self.losses, delta, max(self.width, GRID_WIDTH))
        if grid is not None:
            interval = intersection(interval, grid)
        if self._is_narrow(interval):
            return interval
        # few smooth losses, far up a contour: finite ones need fewer terms
        return intersection(interval, self._certify_discretised(delta, max_terms=MAX_TERMS))

    def _is_narrow(self, interval: Certificate) -> bool:
        """Return whether an interval is as narrow as wanted, or as discretised losses can be."""
        return interval.width <= max(self.width, DISCRETISATION_ERROR) * min(interval.upper, 1e300)

    def _certify_on_grid(self, delta: float) -> tuple[Certificate, float, bool] | None:
        """Return the interval by pairs on a lattice, and whether no finite losses are narrower.

        Between them what the pairs above cost at least.  None where there is no such lattice.
        """
        width = self._lattice_width
        grids = [grid_certificate(self.losses, delta, width)]
        # of numerical profiles no more than an upper bound is known
        pairs = [
            (loss.attained_pair if loss.numerics.is_upper_envelope else loss, n)
            for loss, n in self.losses
            if not self._is_numerical
        ]
        if pairs and pairs != self.losses:
            grids.append(grid_certificate(pairs, delta, max(width, DISCRETISATION_ERROR)))
        above, *below = grids
        if above is None:
            return None
        max_width = CURVE_WIDTH if self._is_coarse else max(self.width, DISCRETISATION_ERROR)
        intervals = [grid for grid in grids if grid is not None]
        is_fine = all(grid.width <= max_width * min(grid.upper, 1e300) for grid in intervals)
        if not self.has_envelopes and not self._is_numerical:
            return above, above.lower, is_fine
        upper = min(above.upper, self._envelope_epsilon(delta) if self.has_envelopes else math.inf)
        lower = max([0.0, *(grid.lower for grid in below if grid is not None)])
        if self._is_numerical:
            lower = 0.0
        engine = above.engine if upper == above.upper else ENVELOPE
        interval = Certificate(min(lower, upper), upper, engine, above.nodes)
        return interval, above.lower, is_fine

    def upper_epsilons(self, deltas: Sequence[float], *, with_envelopes: bool) -> list[float]:
        """Return upper bounds at ``deltas``, positive and descending; about `CURVE_WIDTH` loose.

        Without envelopes `ENVELOPE_ACCOUNTANTS` are left out where there is another bound.
        """
        if self.route in {Route.SUM_OF_BOUNDS, Route.CLOSED_FORM, Route.PARALLEL}:
            return [self.certify(delta).upper for delta in deltas]
        if self._is_few_samples:
            exact = CertifiedComposition(self.losses, DISCRETISATION_ERROR)
            coarse = replace(self, width=DISCRETISATION_ERROR, exact=exact)
            return [coarse.certify(delta).upper for delta in deltas]
        uppers, alone = [math.inf] * len(deltas), self.route is Route.ENVELOPE_ACCOUNTANTS
        if deltas and not alone:
            finite = with_coarse_cgf(self.losses, deltas[-1])
            uppers = upper_epsilons(CertifiedComposition(finite, CURVE_WIDTH), deltas)
        if self.has_envelopes and (with_envelopes or alone):
            others = [self._envelope_epsilon(delta) for delta in deltas]
            uppers = [min(pair) for pair in zip(uppers, others, strict=True)]
        return [self._near_the_largest_loss(*pair) for pair in zip(uppers, deltas, strict=True)]

    @property
    def _is_few_samples(self) -> bool:
        """Whether certificates are quicker than contours alone, which are wide there, too."""
        few = sum(n for _, n in self.losses) <= FEW_RELEASES
        return few and self.exact is not None and self.exact.may_have_certain_violations

    def quick_delta(self, epsilon: float) -> tuple[float, float]:
        """Return two bounds on delta, near each other where a quick engine is exact."""
        match self.route:
            case Route.CLOSED_FORM:
                value = float(self.losses[0][0].profile(epsilon))
                is_exact = not (self.has_envelopes or self._is_numerical)
                return value * (1 - ACCURACY) * is_exact, min(1.0, value * (1 + ACCURACY))
            case Route.PARALLEL:
                bounds = [part.quick_delta(epsilon) for part in self.parts]
                return max(low for low, _ in bounds), max(high for _, high in bounds)
        if epsilon == 0:
            return 0.0, self._total_variation()
        return (0.0, 1.0) if self.exact is None else self.exact.delta(epsilon, smoothed=False)

    def _total_variation(self) -> float:
        """Return an upper bound on delta at an epsilon of 0."""
        total = math.fsum(n * float(loss.profile(0.0)) * (1 + ACCURACY) for loss, n in self.losses)
        if self.route is not Route.ENVELOPE_ACCOUNTANTS:
            width = self.width if self.exact else max(self.width, DISCRETISATION_ERROR)
            finite = with_exact_cgf(self.losses, 1e-12, upper=True)
            total = min(total, CertifiedComposition(finite, width).delta(0.0)[1])
        if self.has_envelopes:
            others = (
                accountant.one_way_delta(self.plan, 0.0) for accountant in ENVELOPE_ACCOUNTANTS
            )
            total = min(total, *others)
        return total

    @property
    def _has_lattice(self) -> bool:
        """Whether pairs on a lattice may be narrower than all else."""
        by_renyi = self.route is Route.ENVELOPE_ACCOUNTANTS
        return not by_renyi and sum(n for _, n in self.losses) <= MAX_GRID_RELEASES

    @property
    def _lattice_width(self) -> float:
        """What a lattice aims at: what is finer takes long where a profile is expensive."""
        if not self._is_coarse:
            return self.width
        return max(self.width, COARSE_WIDTH if self.has_envelopes else DISCRETISATION_ERROR)

    @property
    def _is_coarse(self) -> bool:
        return any(loss.numerics.is_coarse for loss, _ in self.losses)

    @property
    def _is_numerical(self) -> bool:
        """Whether the profile of some loss is computed, and rounded up."""
        return any(loss.numerics.is_numerical for loss, _ in self.losses)

    @property
    def _has_bent_bounds(self) -> bool:
        """Whether some profile is a bound that need not be convex, hence that of no pair."""
        # lines between few of its points may lie above lines between all of them
        envelopes = [loss for loss, _ in all_losses(self.plan) if loss.numerics.is_upper_envelope]
        return any(loss.cell_masses(np.array([0.0, 1.0])) is None for loss in envelopes)

    @property
    def has_envelopes(self) -> bool:
        """Whether the profile of some loss is a bound on many pairs."""
        return any(loss.numerics.is_upper_envelope for loss, _ in self.losses)

    def _envelope_epsilon(self, delta: float) -> float:
        epsilon_upper = min(
            accountant.one_way_epsilon(self.plan, delta) for accountant in ENVELOPE_ACCOUNTANTS
        )
        return max(epsilon_upper, 0.0)

    def _certify_discretised(
        self, delta: float, max_terms: float = math.inf, *, with_envelopes: bool = True
    ) -> Certificate:
        """Return the interval by finite losses above and below those without an exact cumulant.

        ``with_envelopes``: and by what is known of bounds on many pairs, which may be expensive.
        """
        width = max(self.width, DISCRETISATION_ERROR)
        above = Certificate(0.0, math.inf, ENVELOPE)
        if self.route is not Route.ENVELOPE_ACCOUNTANTS:
            finite = with_exact_cgf(self.losses, delta, upper=True, max_terms=max_terms)
            above = CertifiedComposition(finite, width).certify(delta)
        upper, lower = above.upper, 0.0
        # a bound on many pairs that is known already is not asked for again
        loose = not self.has_envelopes and not above.width < LOOSE_WIDTH * above.upper
        if loose or (self.has_envelopes and with_envelopes):
            upper = min(upper, self._envelope_epsilon(delta))
        upper = max(0.0, upper)
        if not any(loss.numerics.is_numerical for loss, _ in self.losses):
            pairs = [(loss.attained_pair, n) for loss, n in self.losses]
            finite = with_exact_cgf(pairs, delta, upper=False, max_terms=max_terms)
            below = CertifiedComposition(finite, width, total_rounding(pairs)).certify(delta)
            lower = below.lower
        engine = f"{above.engine}, connect-the-dots" if upper == above.upper else ENVELOPE
        return Certificate(min(lower, upper), upper, engine, above.nodes)


def one_way(plan: Plan, width: float, *, at_zero: bool = False) -> OneWay:
    """Choose the route for one direction of a plan; ``at_zero``: for a delta of 0."""
    if at_zero:
        return OneWay(plan, width, Route.SUM_OF_BOUNDS, [])
    items = list(plan.losses())
    match items:
        case [(Parallel() as parallel, 1)]:
            parts = tuple(one_way(part, width) for part in parallel.distinct)
            return OneWay(plan, width, Route.PARALLEL, [], parts)
    losses, route = losses_of_items(items), Route.EXACT_COMPOSITION
    if len(items) == 1 and items[0][1] == 1:
        route = Route.CLOSED_FORM
    elif not all(loss.numerics.is_exact for loss, _ in losses):
        by_renyi = all(loss.numerics.determined_by_rdp for loss, _ in losses)
        route = Route.ENVELOPE_ACCOUNTANTS if by_renyi else Route.DISCRETISED_COMPOSITION
    choices = tuple(one_way(choice, width) for choice in _choices(items))
    exact = None
    if route is Route.EXACT_COMPOSITION:
        exact = CertifiedComposition(losses, width)
    return OneWay(plan, width, route, losses, choices=choices, exact=exact)


def _choices(items: list[tuple[Item, int]]) -> list[Plan]:
    """Return plans of one user each, who is in one part of every parallel; none without these."""
    if not any(isinstance(item, Parallel) for item, _ in items):
        return []
    parts = [_dearest_first(item) if isinstance(item, Parallel) else [item] for item, _ in items]
    if math.prod(len(options) for options in parts) <= MAX_CHOICES:
        rows = list(itertools.product(*parts))
    else:  # any choices are sound: the dearest parts together, then the next
        max_rows = min(MAX_CHOICES, max(len(options) for options in parts))
        rows = [
            tuple(options[min(i, len(options) - 1)] for options in parts) for i in range(max_rows)
        ]
    counts = [n for _, n in items]
    return [Sequential(n * part for part, n in zip(row, counts, strict=True)) for row in rows]


def _dearest_first(parallel: Parallel) -> list[Plan]:
    return sorted(parallel.distinct, key=lambda part: -loss_of_plan(part).rho)


def _lower_sum(plan: Plan, total: float) -> float:
    """Return a lower bound on the sum of the largest losses, some of which were rounded up."""
    losses = losses_of_items(list(plan.losses()))
    rounding = total_rounding(losses)
    # `Basic` adds numbers as they are printed: short ones were given so, long ones rounded up
    numbers = [total, *(loss.pure for loss, _ in losses)]
    are_printed = all(isinstance(loss, PureLoss | LaplaceLoss) for loss, _ in losses)
    if are_printed and all(len(printed_decimal(x).as_tuple().digits) <= 15 for x in numbers):
        return total
    return max(0.0, total * (1 - LARGEST_LOSS_ULPS * ULP) - 2 * rounding)


def chernoff_epsilon(plan: Plan, delta: float) -> float:
    """Return a Chernoff bound from one sweep over orders; infinite where none is at hand.

    A direction whose bound is below the other's epsilon needs no route.
    """
    items = [
        (item, n)
        for item, n in plan.losses()
        if isinstance(item, Loss) and item.numerics.has_exact_cgf
    ]
    if delta == 0 or len(items) < len(list(plan.losses())):
        return math.inf
    return CertifiedComposition(items, CURVE_WIDTH).chernoff(delta)
