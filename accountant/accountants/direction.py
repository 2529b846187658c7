"""One direction of a plan, and the interval that contains its epsilon.

A plan compares the answers from two neighbouring data sets; a direction says which of the two is P
and which is Q.  Its losses form a composition, whose epsilon the engines of
`accountant.composition.engines` bound.  This file adds what only a plan has:

- parts that run in parallel, of which each user is in one;
- losses that cover several pairs of distributions, called envelopes here: their profile is an
  upper bound that no single pair need attain, so a lower end of epsilon comes from one of the
  pairs (``loss.attained_pair``);
- other accountants, such as `RDP`, whose bounds are sometimes sharper for envelopes.

The cumulant of a loss L is ln E e^{zL}; it is exact if it is known up to round-off, and then narrow
intervals are possible.  A lattice above the losses replaces each by a loss of finitely many values,
evenly spaced; the delta of their sum is at least that of the plan.  `Tight` takes the worse of the
two directions.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np

from accountant.accountants.advanced import Advanced, adaptive_value
from accountant.accountants.base import USUAL_DELTA, Accountant
from accountant.accountants.basic import Basic, printed_decimal
from accountant.accountants.pld import step_of_grid
from accountant.accountants.rdp import RDP
from accountant.accountants.zcdp import ZCDP
from accountant.composition.certificate import Certificate, intersection
from accountant.composition.closed_form import ENVELOPE
from accountant.composition.composed_loss import (
    loss_of_item,
    loss_of_plan,
    losses_of_items,
    plans_of_users,
)
from accountant.composition.composition import Composition, EpsilonProblem, attained_losses
from accountant.composition.engine import (
    NOTHING_KNOWN,
    Journal,
    certify,
    delta_interval,
    least_cost,
    least_cost_near,
)
from accountant.composition.engines import ENGINES, ENGINES_NEAR_EPSILON, EXACT_ENGINES
from accountant.composition.epsilon_curve import upper_epsilons
from accountant.composition.finite_pairs import with_coarse_cgf, with_exact_cgf
from accountant.composition.grid_certificate import delta_of_lattice, grid_certificate
from accountant.composition.lattice_above import LatticeAbove
from accountant.composition.plan_totals import all_losses
from accountant.errors import UnsupportedPlan
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.losses.laplace import LaplaceLoss
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import PureLoss
from accountant.numerics.rounding import ACCURACY, MAX_EXPONENT, ULP, round_up_to_bits
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan, Sequential

if TYPE_CHECKING:
    from accountant.composition.value_function import ValueFunction

# Relative widths of an interval of epsilon.  The first is the narrowest that losses without exact
# cumulants reach; the second that of expensive profiles, and of curves over many deltas.  Where an
# interval is wider than the third, other accountants may be sharper.  The fourth is enough to see
# that another direction or part has the larger epsilon.
INEXACT_WIDTH = 1e-6
COARSE_WIDTH = 1e-4
LOOSE_WIDTH = 0.01
ROUGH_WIDTH = 0.05
QUICK_COST = 1e7  # complex products (20 ms): a cheaper problem needs no rough answer first
# The mass above the cuts of a lattice, or of losses that are taken to be infinite, as a share of
# delta.
TAIL_SHARE = 1e-10
MAX_GRID_LOSSES = 300  # different losses of a lattice above: each needs a law of its own
# Choices of one part in each parallel that are tried for a lower end: each takes a certificate.
# Up to as many parts, or selections where there is no parallel, engines narrow what choices cost.
MAX_CHOICES = 8
CHOSEN = (BoundedRangeLoss, Parallel)  # items that stand for several pairs, of which one is chosen
USUAL_CHOICES = 2e-3  # an interval of V that is wider gets the lower ends of users
SURE_BITS = 40  # significant bits of an epsilon from Rényi curves; round-off may change the others
LARGEST_LOSS_ULPS = 64  # units of round-off by which a largest loss is rounded up at most
ULPS_BELOW_TOP = 32  # an upper end that close to the largest loss may be this loss
# The mass that finite losses in place of others may move to infinity, where delta is asked at an
# epsilon of 0: it is added to delta.
MOVED_MASS = 1e-12
TWO_EDGES = np.array([0.0, 1.0])  # of any one cell, to ask whether a loss knows its masses at all
# accountants that use more about a plan than its dominating pairs
ENVELOPE_ACCOUNTANTS: tuple[Accountant, ...] = (Basic(), Advanced(), ZCDP(), RDP())


@final
@dataclass(frozen=True)
class Direction:
    """One direction of a plan, with the intervals of its epsilon and its delta.

    ``width`` is the width of an interval that is aimed at, relative to epsilon.
    """

    plan: Plan
    width: float

    @functools.cached_property
    def items(self) -> list[tuple[Item, int]]:
        """The releases of the plan, with their counts."""
        return list(self.plan.losses())

    @functools.cached_property
    def composition(self) -> Composition:
        """The losses of the plan; parts that run in parallel count as one loss."""
        return Composition(losses_of_items(self.items))

    @functools.cached_property
    def parts(self) -> tuple[Direction, ...]:
        """The parts of a plan that is a single parallel; empty for other plans."""
        match self.items:
            case [(Parallel() as parallel, 1)]:
                return tuple(Direction(part, self.width) for part in plans_of_users(parallel))
        return ()

    @property
    def is_exact(self) -> bool:
        """Whether this is a composition of several releases whose cumulants are exact."""
        composition = self.composition
        return not self.parts and composition.single_loss is None and composition.has_exact_cgf

    def problem(self, delta: float) -> EpsilonProblem:
        """Return the problem for the losses, with no smaller width than engines can reach.

        Of several losses some of which are envelopes, the `ENVELOPE_ACCOUNTANTS` give the upper
        bound that engines must improve on.
        """
        width = self.width
        if not self.composition.has_exact_cgf:
            is_coarse = any(loss.numerics.is_coarse for loss, _ in self.composition.items)
            width = max(width, COARSE_WIDTH if is_coarse else INEXACT_WIDTH)
        known_upper = math.inf
        if self.has_envelopes and delta > 0 and self.composition.single_loss is None:
            known_upper = self._envelope_epsilon(delta)
        return EpsilonProblem(
            self._without_rare_losses(delta), delta, width, known_upper, is_bound=self.has_envelopes
        )

    def _without_rare_losses(self, delta: float) -> Composition:
        """Return the composition, of bounds whose rarest great losses are taken to be infinite."""
        composition = self.composition
        if not self.has_envelopes or composition.single_loss is not None:
            return composition
        mass = delta * self.width / 10 / composition.releases
        items = [(loss.without_rare_losses(mass), n) for loss, n in composition.items]
        return composition if items == composition.items else Composition(items)

    def certify(
        self, delta: float, rival: float = 0.0, problem: EpsilonProblem | None = None
    ) -> Certificate:
        """Return the interval that holds epsilon at ``delta``.

        It may be wide where its upper end is at most ``rival``, a lower bound on the epsilon of
        another direction.  ``problem`` is that of the losses, if the caller has made it.
        """
        if delta == 0:
            total = Basic().one_way_epsilon(self.plan, 0.0)
            # A numerical bound may have infinite losses where those of the plan are only large.
            is_loose = any(
                loss.numerics.is_numerical and loss.infinity for loss, _ in self.composition.items
            )
            lower = 0.0 if is_loose else _lower_sum(self.composition, total)
            return Certificate(lower, total, "sum of the bounds")
        if self.parts:
            return self._certify_parallel(delta)
        if self.composition.single_loss is not None:
            interval = certify(self.problem(delta), ENGINES)
            if math.isfinite(interval.upper) and interval.width > LOOSE_WIDTH * interval.upper:
                interval = _at_most(interval, self._envelope_epsilon(delta))
            return interval
        strategies = self._certify_choices(delta)
        if strategies.upper < math.inf and (
            strategies.upper <= rival
            or strategies.width <= self._usual_choice_width * strategies.upper
        ):
            return strategies
        interval = self._certify_losses(
            problem or self.problem(delta), max(rival, strategies.lower)
        )
        return self._with_paths(intersection(interval, strategies), delta, self.width)

    def _with_paths(self, interval: Certificate, delta: float, width: float) -> Certificate:
        """Return the interval, its lower end that of one choice in every parallel if this is more.

        Each user is in one part of every parallel, and epsilon is at least that of any user.  Users
        are tried until the interval has the relative ``width``.
        """
        lower = interval.lower
        for choice in self.choices:
            if interval.upper - lower <= width * min(interval.upper, 1e300):
                break
            if not (lower > 0 and choice.is_surely_within(lower, delta)):
                coarse = replace(choice, width=max(self.width, width / 4))
                lower = max(lower, coarse.certify(delta).lower)
        return replace(interval, lower=max(min(lower, interval.upper), interval.lower))

    def _value(self, delta: float) -> ValueFunction | None:
        """Return the greatest delta of all strategies of choices; None where there are none."""
        return adaptive_value(self.plan, delta) if self.has_choices else None

    @functools.cached_property
    def has_choices(self) -> bool:
        """Whether some release stands for several pairs, chosen with all earlier answers."""
        return not self.parts and any(isinstance(item, CHOSEN) for item, _ in self.items)

    def _certify_choices(self, delta: float) -> Certificate:
        """Return the interval of the costliest strategy of choices, where there are any."""
        value = self._value(delta)
        if value is None:
            return NOTHING_KNOWN
        lower, upper = value.epsilon_bounds(delta)
        interval = Certificate(lower, upper, "adaptive choices", value.high.size)
        interval = _at_most(interval, self._envelope_epsilon(delta))
        return self._with_paths(interval, delta, USUAL_CHOICES)

    @functools.cached_property
    def _usual_choice_width(self) -> float:
        """The relative width of `_certify_choices` from which on engines are asked, too.

        They are quick where few parts may be chosen, and narrow what few selections cost.
        """
        parallels = [item.distinct for item, _ in self.items if isinstance(item, Parallel)]
        selections = sum(n for item, n in self.items if isinstance(item, BoundedRangeLoss))
        is_quick = all(len(parts) <= MAX_CHOICES for parts in parallels)
        is_quick &= bool(parallels) or selections <= MAX_CHOICES
        return INEXACT_WIDTH if is_quick else LOOSE_WIDTH

    def journal(self, delta: float) -> list[tuple[str, float, Certificate | None]]:
        """Return what engines were planned for the losses at ``delta``, in this order.

        Each row has the name of the engine, the estimated cost in complex products of about 2 ns,
        and the interval, or None where the attempt was not made.  Engines without a row were
        estimated to cost more, or do not apply.  A last row has the interval of `certify` where
        another bound than those of the engines decides it.
        """
        if delta == 0:
            return [("sum of the bounds", 0.0, self.certify(0.0))]
        if self.parts:
            return [row for part in self.parts for row in part.journal(delta)]
        answer = self.certify(delta)
        if self._value(delta) is not None:
            return [(answer.engine, 0.0, answer)]
        rows: list[tuple[str, float, Certificate | None]] = []
        is_single = self.composition.single_loss is not None
        if is_single or not self._is_determined_by_rdp:
            journal: Journal = []
            certify(self.problem(delta), ENGINES, journal=journal)
            has_bounds = not is_single and (self.has_envelopes or self._is_numerical)
            for engine, attempt in journal:
                interval = attempt.result
                if interval is not None and has_bounds:
                    # the profiles are upper bounds, and so is what an engine finds
                    interval = replace(interval, lower=0.0)
                rows.append((engine.name, attempt.cost, interval))
        if not any(
            interval is not None and interval.upper <= answer.upper for *_, interval in rows
        ):
            rows.append((answer.engine, 0.0, answer))
        return rows

    def _certify_parallel(self, delta: float) -> Certificate:
        """Return the interval of the part with the largest epsilon.

        For the other parts a rough upper bound is enough, which shows that theirs is smaller.
        """
        intervals: list[Certificate] = []
        lower = 0.0
        for part in self.parts:
            problem = part.problem(delta)
            interval = part.rough_certificate(problem) if lower > 0 else NOTHING_KNOWN
            if interval.upper > lower:
                interval = part.certify(delta, lower, problem)
            intervals.append(interval)
            lower = max(lower, interval.lower)
        worst = max(intervals, key=lambda interval: interval.upper)
        return Certificate(lower, worst.upper, worst.engine, worst.nodes)

    def _certify_losses(self, problem: EpsilonProblem, rival: float) -> Certificate:
        """Return the interval of several losses, or of one that is released several times."""
        delta, losses = problem.delta, self.composition.items
        if self._is_determined_by_rdp:
            composed = problem.outcome_bounds()
        else:
            composed = certify(problem, ENGINES, rival)
        if composed.upper == 0:
            return composed
        interval = composed
        if self.has_envelopes or self._is_numerical:
            # The profiles are upper bounds: their lower end of epsilon is not one of the plan.  Of
            # envelopes the pairs that they cover give one instead, further below; of numerical
            # profiles none is known.
            interval = _at_most(replace(interval, lower=0.0), problem.known_upper)
            if interval.upper > rival and not self._is_numerical:
                attained = Composition(attained_losses(losses))
                lower = certify(EpsilonProblem(attained, delta, problem.width), ENGINES).lower
                interval = replace(interval, lower=min(lower, interval.upper))
        elif interval.upper > rival and interval.width > LOOSE_WIDTH * min(interval.upper, 1e300):
            interval = _at_most(interval, self._envelope_epsilon(delta))
        interval = self._no_worse_than_pld(interval, composed.lower, delta, rival)
        interval = self._near_the_largest_loss(interval, delta)
        if interval.upper > MAX_EXPONENT and not problem.is_narrow(interval):
            # loaded for plans of nearly no noise alone
            from accountant.amplification.known_samples import (
                known_samples_interval,
            )

            beyond_floats = problem.of_mechanisms(known_samples_interval(losses, delta))
            interval = intersection(beyond_floats, interval)
        return interval

    def _envelope_epsilon(self, delta: float) -> float:
        """Return the least epsilon of the `ENVELOPE_ACCOUNTANTS`."""
        epsilon_upper = min(
            accountant.one_way_epsilon(self.plan, delta) for accountant in ENVELOPE_ACCOUNTANTS
        )
        return max(epsilon_upper, 0.0)

    def _near_the_largest_loss(self, interval: Certificate, delta: float) -> Certificate:
        """Return the interval; other bounds may lower an upper end that is near the largest loss.

        `Basic` adds the decimals of the largest losses as they are printed, without the round-off
        of sums of floats.  Rényi divergences of large orders show how far epsilon is below the
        largest loss.  Epsilon is almost constant in delta there, so that only `SURE_BITS` bits are
        kept: otherwise round-off would decide which delta belongs to an epsilon.
        """
        largest_loss = self.composition.max_loss
        least_near = largest_loss * (1 - ULPS_BELOW_TOP * ULP)
        if not (self.is_exact and least_near <= interval.upper < math.inf):
            return interval
        by_renyi = round_up_to_bits(self._envelope_epsilon(delta), SURE_BITS)
        upper = min(interval.upper, Basic().one_way_epsilon(self.plan, 0.0), by_renyi)
        return replace(interval, lower=min(interval.lower, upper), upper=upper)

    def _no_worse_than_pld(
        self, interval: Certificate, composed_lower: float, delta: float, rival: float
    ) -> Certificate:
        """Return the interval, its upper end that of a lattice above the losses if this is less.

        The lattice is the one that `PLD` composes.  It can be sharper in two cases: the upper end
        is far above ``composed_lower``, the lower end that engines proved for the losses; or a
        profile is a bound that is not convex, hence not the profile of a pair.  Lines between few
        points of such a profile may lie above lines between all lattice points.
        """
        composition = self.composition
        if interval.upper <= rival or math.isinf(composed_lower):
            return interval
        is_narrow = interval.upper - composed_lower <= self.width * interval.upper
        # an envelope that is known by its profile alone need not be convex
        if is_narrow and not (
            self.has_envelopes
            and any(
                loss.numerics.is_upper_envelope and loss.cell_masses(TWO_EDGES) is None
                for loss, _ in all_losses(self.plan)
            )
        ):
            return interval
        if len(composition.items) > MAX_GRID_LOSSES:
            return interval
        lattice_delta = delta_of_lattice(delta)
        try:
            step = step_of_grid(self.plan, lattice_delta)
        except UnsupportedPlan:
            return interval
        lattice = LatticeAbove.of(composition.items, step, lattice_delta * TAIL_SHARE)
        upper = math.inf if lattice is None else lattice.epsilon(delta, interval.upper)
        if upper >= interval.upper:
            return interval
        return Certificate(min(interval.lower, upper), upper, "pair above on a grid")

    @functools.cached_property
    def choices(self) -> tuple[Direction, ...]:
        """The plans of single users, each in one part of every parallel; none without parallels.

        Items stand together here, in another order than that of the plan.  So whatever else may be
        chosen is one pair in them: of single pairs the order does not matter.
        """
        if not any(isinstance(item, Parallel) for item, _ in self.items):
            return ()
        # The parts of a parallel by falling rho, which is roughly the order of their epsilons.
        options = [
            [
                of_single_pairs(part)
                for part in sorted(item.distinct, key=lambda part: -loss_of_plan(part).rho)
            ]
            if isinstance(item, Parallel)
            else [of_single_pairs(item)]
            for item, _ in self.items
        ]
        if math.prod(map(len, options)) <= MAX_CHOICES:
            chosen = list(itertools.product(*options))
        else:  # any choice is sound: all the costliest parts, then all the second costliest, ...
            number = min(MAX_CHOICES, max(map(len, options)))
            chosen = [
                tuple(plans[min(i, len(plans) - 1)] for plans in options) for i in range(number)
            ]
        counts = [count for _, count in self.items]
        plans = (
            Sequential(n * part for part, n in zip(parts, counts, strict=True)) for parts in chosen
        )
        return tuple(Direction(plan, self.width) for plan in plans)

    def rough_certificate(self, problem: EpsilonProblem) -> Certificate:
        """Return a wide interval where the narrow one takes long, else the trivial interval."""
        # A rough answer tabulates each different loss.
        rough_cost = QUICK_COST * len(self.composition.items)
        if not self.is_exact or self.choices or least_cost(problem, ENGINES) < rough_cost:
            return NOTHING_KNOWN
        rough_interval = grid_certificate(self.composition.items, problem.delta, ROUGH_WIDTH)
        return rough_interval or NOTHING_KNOWN

    def is_surely_within(self, epsilon: float, delta: float) -> bool:
        """Return whether a quick bound proves that epsilon at ``delta`` is at most ``epsilon``."""
        if not 0 < epsilon < math.inf or delta == 0:
            return False
        loss = self.composition.single_loss
        if loss is not None and not self.parts:
            return loss.is_surely_within(epsilon, delta)
        if self.is_exact:
            return self.composition.chernoff(delta) <= epsilon
        if self.has_envelopes and self._envelope_epsilon(delta) <= epsilon:
            return True
        return chernoff_epsilon(self.plan, delta) <= epsilon

    def upper_epsilons(self, deltas: Sequence[float], *, with_envelopes: bool) -> list[float]:
        """Return upper bounds on epsilon at ``deltas``, which are positive and descending.

        They are at most about 1e-4 of themselves too large, and 1e-2 where the losses have no exact
        cumulants.  Without ``with_envelopes`` the `ENVELOPE_ACCOUNTANTS` and the strategies of
        choices are left out where there is another bound.
        """
        composition, losses = self.composition, self.composition.items
        is_single = self.parts or composition.single_loss is not None
        if is_single or (with_envelopes and deltas and self._value(min(deltas)) is not None):
            return [self.certify(delta).upper for delta in deltas]
        coarse = replace(self, width=COARSE_WIDTH)
        if deltas and self.is_exact:
            # The bounds of one engine serve many deltas.  Certificates use all engines, and one of
            # these may be so much quicker that a certificate for each delta costs less.
            problem = coarse.problem(deltas[len(deltas) // 2])
            if problem.finite_delta[0] > 0:
                cost = least_cost_near(problem.neighbourhood, ENGINES_NEAR_EPSILON)
                if len(deltas) * least_cost(problem, ENGINES) < cost:
                    return [coarse.certify(delta).upper for delta in deltas]
        uppers = [math.inf] * len(deltas)
        only_envelopes = all(loss.numerics.determined_by_rdp for loss, _ in losses)
        if deltas and not only_envelopes:
            finite_losses = Composition(with_coarse_cgf(losses, deltas[-1]))
            quick_uppers = upper_epsilons(finite_losses, deltas, COARSE_WIDTH)
            uppers = [
                coarse.certify(delta).upper if upper is None else upper
                for delta, upper in zip(deltas, quick_uppers, strict=True)
            ]
        if self.has_envelopes and (with_envelopes or only_envelopes):
            envelopes = [self._envelope_epsilon(delta) for delta in deltas]
            uppers = [min(pair) for pair in zip(uppers, envelopes, strict=True)]
        intervals = [Certificate(0.0, upper, ENVELOPE) for upper in uppers]
        return [
            self._near_the_largest_loss(interval, delta).upper
            for interval, delta in zip(intervals, deltas, strict=True)
        ]

    def quick_delta(self, epsilon: float) -> tuple[float, float]:
        """Return a lower and an upper bound on delta, close together where cumulants are exact.

        Elsewhere the lower bound is 0, and for several losses the upper one is 1 or, at an epsilon
        of 0, the total variation.
        """
        if self.parts:
            bounds = [part.quick_delta(epsilon) for part in self.parts]
            return max(low for low, _ in bounds), max(high for _, high in bounds)
        loss = self.composition.single_loss
        if loss is not None:
            value = float(loss.profile(epsilon))
            is_exact = not (self.has_envelopes or self._is_numerical)
            lower = value * (1 - ACCURACY) if is_exact else 0.0
            return lower, min(1.0, value * (1 + ACCURACY))
        if (strategies := self._value(USUAL_DELTA)) is not None:
            return strategies.delta_bounds(epsilon)
        if epsilon == 0:
            return 0.0, self._total_variation()
        if not self.is_exact:
            return 0.0, 1.0
        low, high = 0.0, 1.0
        # Which losses are rare depends on delta.  Without an engine the upper bound is Chernoff's.
        rounds = ((), EXACT_ENGINES, EXACT_ENGINES) if self.has_envelopes else (EXACT_ENGINES,)
        for engines in rounds:
            composition = self._without_rare_losses(high)
            low, high = delta_interval(composition, epsilon, width=self.width, engines=engines)
        return low, high

    def _total_variation(self) -> float:
        """Return an upper bound on delta at an epsilon of 0.

        The total variation of several releases is at most the sum of theirs; other bounds may be
        less.
        """
        losses = self.composition.items
        total = math.fsum(n * float(loss.profile(0.0)) * (1 + ACCURACY) for loss, n in losses)
        if not all(loss.numerics.determined_by_rdp for loss, _ in losses):
            finite_losses = Composition(with_exact_cgf(losses, MOVED_MASS, upper=True))
            width = self.width if self.is_exact else max(self.width, INEXACT_WIDTH)
            _, upper = delta_interval(
                finite_losses, epsilon=0.0, width=width, engines=ENGINES_NEAR_EPSILON
            )
            total = min(total, upper)
        if self.has_envelopes:
            envelopes = (
                accountant.one_way_delta(self.plan, 0.0) for accountant in ENVELOPE_ACCOUNTANTS
            )
            total = min(total, *envelopes)
        return total

    @functools.cached_property
    def _is_determined_by_rdp(self) -> bool:
        """Whether no engine is sharper than the Rényi curves of the losses."""
        return all(loss.numerics.determined_by_rdp for loss, _ in self.composition.items)

    @functools.cached_property
    def _is_numerical(self) -> bool:
        """Whether the profile of some loss is a numerical upper bound, not a formula."""
        return any(loss.numerics.is_numerical for loss, _ in self.composition.items)

    @functools.cached_property
    def has_envelopes(self) -> bool:
        """Whether the profile of some loss is a bound on many pairs."""
        return any(loss.numerics.is_upper_envelope for loss, _ in self.composition.items)


def _at_most(interval: Certificate, envelope_epsilon: float) -> Certificate:
    """Return the interval, its upper end that of `ENVELOPE_ACCOUNTANTS` if this is less."""
    if envelope_epsilon >= interval.upper:
        return interval
    lower = min(interval.lower, envelope_epsilon)
    return replace(interval, lower=lower, upper=envelope_epsilon, engine=ENVELOPE)


def _lower_sum(composition: Composition, total: float) -> float:
    """Return a lower bound on the epsilon at delta 0, whose upper bound ``total`` is of `Basic`."""
    if math.isinf(total):
        return total
    # `Basic` adds the decimals of the losses.  A number of at most 15 digits is what the user gave,
    # and exact; a longer one was computed, and rounded up.
    losses = composition.items
    numbers = [total, *(loss.pure for loss, _ in losses)]
    are_printed = all(isinstance(loss, PureLoss | LaplaceLoss) for loss, _ in losses)
    if are_printed and all(len(printed_decimal(x).as_tuple().digits) <= 15 for x in numbers):
        return total
    return max(0.0, total * (1 - LARGEST_LOSS_ULPS * ULP) - 2 * composition.rounding)


def of_single_pairs(plan: Plan) -> Plan:
    """Return the plan with a pair that each of its choices attains in place of the choice."""
    return Sequential(
        count * (loss_of_item(item).attained_pair if isinstance(item, CHOSEN) else item)
        for item, count in plan.losses()
    )


def chernoff_epsilon(plan: Plan, delta: float) -> float:
    """Return Chernoff's bound on epsilon, quickly; infinite where some cumulant is not exact.

    A direction whose bound is below the epsilon of the other direction needs no engine.
    """
    losses = [
        (item, n)
        for item, n in plan.losses()
        if isinstance(item, Loss) and item.numerics.has_exact_cgf
    ]
    if delta == 0 or len(losses) < len(list(plan.losses())):
        return math.inf
    return Composition(losses).chernoff(delta)
