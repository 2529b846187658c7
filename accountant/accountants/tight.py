"""The accountant `Tight`: the true epsilon of a plan, between two proved bounds.

A plan has one or two directions, by which of two neighbouring data sets is the first one.
`Direction` finds the interval of one direction; `Tight` takes the worse one, and turns the question
of delta at an epsilon into that of epsilon at a delta.

References: Zhu, Dong & Wang (2022) for the characteristic function of a loss; Gopi, Lee &
Wutschitz (2021) for two-sided answers; the certificate is proved in `docs/proofs/contour.md`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np

from accountant.accountants.base import USUAL_DELTA, Accountant, least_delta
from accountant.accountants.direction import Direction, chernoff_epsilon
from accountant.composition.certificate import Certificate
from accountant.composition.plan_totals import infinity_mass
from accountant.domains import DELTA, EPSILON, Interval, each_checked
from accountant.numerics import Array
from accountant.numerics.rounding import ULP
from accountant.plans.plan import Plan, as_plan, directions
from dp_attest.calls import shows_call

# relative to delta: bounds on delta that are so close agree with those on epsilon, and no search
# for the delta of an epsilon is needed
SAME_DELTA = 5e-10


@final
@dataclass(frozen=True, slots=True)
class Tight(Accountant):
    """The exact composition, rounded up: the number to quote.

    Exact for additive noise, the smallest proven upper bound for selection: where a loss covers
    several worst pairs, it is the least of all sound bounds, and the lower end of `bracket` is
    that of one of those pairs.  Valid for plans fixed in advance.

    Parameters
    ----------
    width : float
        Relative width of the certified interval that is aimed at, in [1e-10, 1e-2].  An interval
        a hundred times as wide is enough where a narrower one costs more than ten seconds.

    References
    ----------
    Zhu, Dong & Wang (2022) for the characteristic function of a loss; Gopi, Lee & Wutschitz
    (2021) for two-sided answers.  The certificate is proved in ``docs/proofs/contour.md``.

    Examples
    --------
    >>> from accountant import GaussianLoss, Tight
    >>> round(Tight().epsilon(100 * GaussianLoss(0.1), delta=1e-6), 6)
    4.886554
    """

    width: float = 1e-6

    def __post_init__(self) -> None:
        Interval(1e-10, 1e-2).check("width", self.width)

    def certify(
        self, plan: Plan, delta: float, *, proof: str | os.PathLike[str] | None = None
    ) -> Certificate:
        """Return the interval that holds the epsilon of a plan at ``delta``, over both directions.

        Parameters
        ----------
        plan : Plan
            A plan, a loss or a mechanism.
        delta : float
            In [0, 1).
        proof : path, optional
            A file, replaced as a whole: what others need to prove the interval again, by
            ``dp-attest account verify``.  It is checked before it is written.

        Returns
        -------
        Certificate
            Lower end rounded down, upper end rounded up, and the method that answered; its
            ``verify()`` proves it again.  With ``proof``, the ends that the file proves: where
            pairs on a lattice prove it, up to about 1e-5 of epsilon wider than without.

        Raises
        ------
        UnsupportedPlan
            If a proof is wanted and the checker accepts none for such a plan; nothing is written.
        ParameterError
            If a proof is wanted without python-flint (``pip install python-flint``).

        References
        ----------
        ``docs/certificates.md`` says what a proof holds.
        """
        plan, delta = as_plan(plan), DELTA.check("delta", delta)
        if proof is None:
            interval = self._interval(plan, delta)
            return replace(
                interval, check=partial(_check_claim, plan, delta, interval.lower, interval.upper)
            )
        # what writes proofs is loaded where one is wanted
        from accountant.files import write_atomically
        from accountant.proofs.checked_proof import checked_target, proof_of_claim

        target = checked_target(proof)
        interval = self._interval(plan, delta)
        claim = (plan, delta, interval.lower, interval.upper)
        checked = proof_of_claim(*claim)
        write_atomically(target, checked.document)
        lower, upper = checked.verdict.lower, checked.verdict.upper
        return replace(interval, lower=lower, upper=upper, check=partial(_check_claim, *claim))

    def _interval(self, plan: Plan, delta: float) -> Certificate:
        """Return the interval of a checked plan, over both directions."""
        first_direction, *further_directions = (
            Direction(direction, self.width) for direction in directions(plan)
        )
        interval = first_direction.certify(delta)
        for direction in further_directions:
            if delta > 0 and interval.upper == 0 and direction.is_exact:
                continue  # epsilon is 0: delta is the total variation, the same in both directions
            if direction.is_surely_within(interval.lower, delta):
                continue  # it cannot be the worse direction
            problem = direction.problem(delta) if delta > 0 else None
            if (
                problem is not None
                and interval.lower > 0
                and direction.rough_certificate(problem).upper <= interval.lower
            ):
                continue
            other_interval = direction.certify(delta, interval.lower, problem)
            worse = max(interval, other_interval, key=lambda candidate: candidate.upper)
            lower = max(interval.lower, other_interval.lower)
            interval = Certificate(min(lower, worse.upper), worse.upper, worse.engine, worse.nodes)
        return interval

    def bracket(self, plan: Plan, delta: float) -> tuple[float, float]:
        """Return an interval around the true epsilon at ``delta``.

        Parameters
        ----------
        plan : Plan
            A plan, a loss or a mechanism.
        delta : float
            In [0, 1).

        Returns
        -------
        tuple of float
            Lower end, rounded down, and upper end, rounded up.
        """
        certificate = self.certify(plan, delta)
        return certificate.lower, certificate.upper

    @shows_call("Tight().epsilon(plan, delta=1e-6)")
    def epsilon(self, plan: Plan, delta: float) -> float:
        """Return the upper end of `bracket`."""
        return self._interval(as_plan(plan), DELTA.check("delta", delta)).upper

    def epsilons(
        self, plan: Plan, deltas: Sequence[float] | Array, *, with_envelopes: bool = True
    ) -> Array:
        """Return upper bounds on epsilon at many deltas, quicker than `epsilon` at each.

        They are at most about 1e-4 of themselves above `epsilon`, for no lower end is proved
        with them, and 1e-2 where losses have no exact cumulants (shuffling, allocation, exchanged
        samples).  ``with_envelopes=False`` leaves out what is sharper only where a loss covers many
        pairs: other accountants, and strategies of choices.  It is sound, and quicker.
        """
        plan, checked_deltas = as_plan(plan), each_checked(DELTA, "deltas", deltas)
        positive = sorted({delta for delta in checked_deltas if delta > 0}, reverse=True)
        uppers = {0.0: self.epsilon(plan, 0.0)} if 0.0 in checked_deltas else {}
        middle = positive[len(positive) // 2] if positive else 1.0
        for direction in directions(plan):
            open_deltas = positive
            # Chernoff's bound at each delta costs more than the answers: it is asked at one first.
            if middle in uppers and chernoff_epsilon(direction, middle) <= uppers[middle]:
                open_deltas = [d for d in positive if chernoff_epsilon(direction, d) > uppers[d]]
            bounds = Direction(direction, self.width).upper_epsilons(
                open_deltas, with_envelopes=with_envelopes
            )
            for delta, bound in zip(open_deltas, bounds, strict=True):
                uppers[delta] = max(uppers.get(delta, bound), bound)
        return np.array([uppers[delta] for delta in checked_deltas])

    @shows_call("Tight().delta(plan, epsilon=1.0)")
    def delta(self, plan: Plan, epsilon: float) -> float:
        """Return an upper bound on the delta of a plan at ``epsilon``.

        It is the least delta at which `epsilon` is at most ``epsilon``, so that the two agree.

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
        return self._delta(directions(plan), epsilon, partial(self._interval, plan))

    def _delta(
        self, plans: Sequence[Plan], epsilon: float, interval: Callable[[float], Certificate]
    ) -> float:
        """Return the least delta at which the upper end of an interval is at most ``epsilon``."""
        if interval(0.0).upper <= epsilon:
            return 0.0
        checked = [Direction(direction, self.width) for direction in plans]
        if epsilon == 0 and checked[0].is_exact:
            checked = checked[:1]  # delta is the total variation, the same in both directions
        ends = [direction.quick_delta(epsilon) for direction in checked]
        low, high = max(low for low, _ in ends), max(high for _, high in ends)
        if epsilon == 0 or high - low <= SAME_DELTA * low:
            return min(high, 1.0)
        has_bounds = any(direction.has_envelopes for direction in checked)
        has_choices = any(direction.has_choices for direction in checked)
        if has_bounds and not has_choices and high - low <= math.sqrt(self.width) * low:
            # No pair need attain a bound: half of the digits of epsilon need no search.
            delta_above = min(high + 4 * (high - low), 1.0)
            if interval(delta_above).upper <= epsilon:
                return delta_above
        floor = max(map(infinity_mass, plans)) * (1 - 32 * ULP)
        start = high if high < 1 else USUAL_DELTA
        delta_upper = least_delta(lambda delta: interval(delta).upper, epsilon, start, floor)
        return min(delta_upper, high, 1.0)

    def certify_one_way(self, plan: Plan, delta: float) -> Certificate:
        """Return the interval that holds the epsilon of one direction of a plan.

        Parameters
        ----------
        plan : Plan
            A checked plan.
        delta : float
            In [0, 1).

        Returns
        -------
        Certificate
            Lower end rounded down, upper end rounded up.
        """
        return Direction(plan, self.width).certify(delta)

    def one_way_epsilon(self, plan: Plan, delta: float) -> float:
        """Return the upper end of one direction of a checked plan."""
        return self.certify_one_way(plan, delta).upper

    def one_way_delta(self, plan: Plan, epsilon: float) -> float:
        """Return an upper bound on the delta of one direction of a checked plan."""
        return self._delta([plan], epsilon, partial(self.certify_one_way, plan))


def _check_claim(plan: Plan, delta: float, lower: float, upper: float) -> Any:
    """Prove an interval again; the prover is imported only now, because most users need none."""
    from accountant.proofs.checked_proof import check_claim

    return check_claim(plan, delta, lower, upper)
