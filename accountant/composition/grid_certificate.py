"""The interval around epsilon from finite pairs of distributions on a lattice of losses.

Each loss is replaced by a finite loss above and one below it, whose values lie on a common lattice,
and these are summed by Fourier transforms: `GridBounds` proves bounds on delta near an epsilon.
This file chooses its parameters: the step of the lattice, where each law is cut, and the epsilons
that are covered.  Coarse lattices find roughly where epsilon is; finer ones make the interval
narrow: its width falls about as the square of the step.  An `Outline` is a rough law of one loss,
and the tilt a the order of Chernoff's bound, delta(e) <= c(a) e^{-a e}, near epsilon.  An atom is
one loss with a mass of its own, at an end of the range of a loss.

No choice of parameters can make a bound wrong, only wide: this holds for all the numbers below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from accountant.composition.certificate import Certificate, bracket_epsilon
from accountant.composition.composition import EpsilonProblem, total_rounding
from accountant.composition.engine import NOTHING_KNOWN, Attempt, Engine
from accountant.composition.grid_bounds import GridBounds
from accountant.composition.grid_pairs import centred_offset
from accountant.composition.loss_outline import LADDER, Outline
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.rounding import ULP

COARSE_POINTS = 64  # lattice points between 0 and epsilon, while epsilon is only being located
MAX_POINTS = 2**19  # lattice points of a sum: limits the time and memory of its transforms
FEW_POINTS = 2**11  # lattice points: so coarse a lattice may miss an atom, and a finer one is tried
NO_PAIR = 1e-12  # relative to epsilon: round-off may put a lower end so far above the upper end
USUAL_NATS = 6.0  # how far ln of Chernoff's bound usually is above ln delta
# ln of the share that delta is of Chernoff's bound: a smaller share drowns in round-off
LEAST_LOG_SHARE = -25.0
NEGLIGIBLE = 0.03  # the mass outside of the lattice, as a share of (relative width times delta)
# the tilted mass that may wrap around in a transform, as a share of (relative width times delta)
LOG_WRAPPED_SHARE = -12.0
POINTS_COST = 7.5e6  # complex products that take as long as the lattice points of one release
EXACT_INDICES = 2.0**52  # numbers of lattice points that floats hold, with half steps
MAX_RELEASES = 10**5  # the round-off of a lattice grows with the number of releases
# relative widths of epsilon: where each value of a profile takes long to compute, and where in
# addition the profile is a bound on many pairs, which itself is not sharper
EXPENSIVE_WIDTH, COARSE_WIDTH = 1e-6, 1e-5
LOG_DELTA_STEP = 2.0**-12  # nats: lattices are made for deltas whose logarithm is a multiple of it
# Of the search for a step and a range of epsilon; widths are relative to epsilon.
LATTICES = 24  # lattices that are made at most
TRIAL_END = 1.3  # until epsilon is located, a lattice covers 0 to this multiple of the guess
LOCATED = 0.3  # an interval of less width locates epsilon: a lattice then covers its surroundings,
MARGIN = 1e-4  # at least this much on either side of the guess
# The guess is replaced if epsilon is below or above these multiples of it, or the interval is wide.
BELOW_GUESS, ABOVE_GUESS, WIDE = 0.8, 1.25, 0.5
AIM = 0.6  # of the wanted width: what a finer step is to reach, so that it surely suffices
# The factor by which the next step is shorter is between these, and leaves room for a lattice of
# more points than expected.  With less than WORTHWHILE the search ends.
FINER, FINEST, ROOM, WORTHWHILE = 1.5, 64.0, 0.8, 1.2
# A step this many times shorter that leaves more than this share of the width has hardly helped.
MUCH_FINER, HARDLY = 4.0, 0.9


def delta_of_lattice(delta: float) -> float:
    """Return ``delta`` rounded down to one of the deltas that lattices are made for.

    Deltas near each other share one lattice.  With two lattices, whose bounds differ by a part of
    their width, the computed epsilon might rise as delta rises; with one it falls.
    """
    return math.exp(math.floor(math.log(delta) / LOG_DELTA_STEP) * LOG_DELTA_STEP)


@np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")
def grid_certificate(
    items: list[tuple[Loss, int]],
    delta: float,
    width: float,
    max_points: int = MAX_POINTS,
    known_upper: float = math.inf,
) -> Certificate | None:
    """Return the interval of epsilon at ``delta``, or None where a lattice does not apply.

    A lattice does not apply where some loss is too small, or where its profile is not known well
    enough.  The interval aims at a relative ``width``, and is wider where ``max_points`` lattice
    points are too few for that, or where its lower end is at least ``known_upper``.
    """
    outlines = _outlines(items, delta)
    if outlines is None:
        return None
    nats = math.fsum(-outline.count * math.log1p(-outline.loss.infinity) for outline in outlines)
    infinity = -math.expm1(-nats)
    if delta <= infinity * (1 + 32 * ULP):  # no finite epsilon has so small a delta
        lower = math.inf if delta < infinity * (1 - 32 * ULP) else 0.0
        return Certificate(lower, math.inf, "mass at infinity")
    return _GridSearch(outlines, delta, width, max_points, known_upper).certify()


def _outlines(items: list[tuple[Loss, int]], delta: float) -> list[Outline] | None:
    """Return the outlines of the losses; None where a lattice does not apply to one of them.

    A profile must be known to 1 % at deltas down to a thousandth of an average release's share.
    """
    outlines = [Outline(loss, n) for loss, n in items]
    needed = 1e-3 * delta / sum(n for _, n in items)
    good = all(outline.is_on_ladder and outline.known_to <= needed for outline in outlines)
    return outlines if good else None


class _GridSearch:
    """The search for a step and a range of epsilon with which the interval is narrow.

    ``least`` and ``most`` are the ends of the range of the summed loss.  In `certify`
    ``per_epsilon`` is the number of lattice points between 0 and epsilon, ``feasible`` the last
    such number that was not too large, ``gap`` the relative width of the interval, and ``finer``
    the factor by which the last step was shorter than the one before.
    """

    def __init__(
        self,
        outlines: list[Outline],
        delta: float,
        width: float,
        max_points: int,
        known_upper: float,
    ) -> None:
        self._outlines, self._asked, self._width = outlines, delta, width
        self._known_upper = known_upper
        self._delta = delta_of_lattice(delta)
        self._max_points = max_points
        self._releases = sum(outline.count for outline in outlines)
        self._rounding = total_rounding([(outline.loss, outline.count) for outline in outlines])
        self._least = math.fsum(outline.count * outline.least for outline in outlines)
        largest_sums = [outline.count * outline.loss.max_loss for outline in outlines]
        self._most = math.fsum(largest_sums) if all(map(math.isfinite, largest_sums)) else math.inf
        # ln of the share that delta is of Chernoff's bound, plus USUAL_NATS, but at most 0; rare
        # large losses make it small
        self._log_share = 0.0

    def certify(self) -> Certificate:
        """Return the interval, by finer and finer lattices."""
        width = self._width
        lower, upper, nodes = 0.0, self._most, 0.0
        epsilon, tilt = self._guess()
        per_epsilon, gap, finer, feasible = float(COARSE_POINTS), 1.0, 1.0, math.inf
        lower_engine: GridBounds | None = None  # the bounds that gave the two ends
        upper_engine: GridBounds | None = None
        for _ in range(LATTICES):
            # The second term is for the rounding of delta in `delta_of_lattice`.
            margin = max(2 * gap, MARGIN) * epsilon + LOG_DELTA_STEP / tilt
            around_epsilon = epsilon - margin, epsilon + margin
            window = around_epsilon if gap < LOCATED else (0.0, TRIAL_END * epsilon)
            engine = self._engine(epsilon, window, tilt, epsilon / per_epsilon)
            if engine is None:  # too many points: try a step between this and the last feasible one
                if not per_epsilon > 1.5 * feasible:  # little is left to gain in between
                    break
                per_epsilon = math.sqrt(per_epsilon * feasible)
                continue
            feasible = per_epsilon
            tilt, nodes = engine.tilt, engine.nodes
            log_share = math.log(self._delta) - engine.log_scale(epsilon) + USUAL_NATS
            self._log_share = min(log_share, 0.0)
            low, high = self._ends(engine, self._delta, epsilon)
            lower_engine = engine if lower_engine is None or low > lower else lower_engine
            upper_engine = engine if upper_engine is None or high < upper else upper_engine
            lower, upper = max(lower, low), min(upper, high)
            previous_gap = gap
            gap = (upper - lower) / upper if 0 < upper < math.inf else float(upper > 0)
            # Where a finer step hardly narrowed the interval, the bounds on the profile itself are
            # wide, and the search ends; unless there were few points, which may have missed an atom
            may_help = nodes <= FEW_POINTS and upper - lower > 4 * self._rounding
            has_hardly_helped = finer > MUCH_FINER and gap > HARDLY * previous_gap
            if gap <= width or lower >= self._known_upper or (has_hardly_helped and not may_help):
                break
            # The guess was far off: the next lattice is for the geometric middle of the interval,
            # and at least an eighth of its upper end.
            if high < BELOW_GUESS * epsilon or low > ABOVE_GUESS * epsilon or gap > WIDE:
                centre = math.sqrt(max(lower, upper / 64) * upper) if upper < 1e300 else 4 * epsilon
                if abs(centre / epsilon - 1) < 0.01:  # the guess was right, but the step too long
                    per_epsilon *= 4
                epsilon, finer = centre, 1.0
                continue
            epsilon = (lower + upper) / 2
            # The width falls as the square of the step.
            finer = max(math.sqrt(gap / (AIM * width)), FINER)
            finer = min(finer, FINEST, ROOM * self._max_points / nodes)
            if finer < WORTHWHILE:
                break
            per_epsilon *= finer
        # So far the ends were those at the rounded delta: now the true one is put in their bounds.
        if upper_engine is not None and lower_engine is not None:
            centre = upper if math.isfinite(upper) else epsilon
            low, upper = self._ends(upper_engine, self._asked, centre)
            if lower_engine is not upper_engine:
                low, _ = self._ends(lower_engine, self._asked, centre)
            lower = max(low, 0.0)
        if lower > upper * (1 + NO_PAIR):
            lower = 0.0  # the ends cross: the profile is a bound that is not convex, of no pair
        return Certificate(min(lower, upper), upper, GridBounds.name, math.ceil(nodes))

    def _ends(self, engine: GridBounds, delta: float, start: float) -> tuple[float, float]:
        """Return the ends of the interval that these bounds prove at a delta."""
        log_delta = math.log(delta)
        # With masses within e^{+-r} of the true ones, delta(e) <= e^r true_delta(e - 2r): the lower
        # end is computed at e^r delta, and 2r is subtracted from it.
        ends = (log_delta, log_delta + self._rounding)
        low, high = bracket_epsilon(
            engine.bounds, ends, start=start, tilt=engine.tilt, max_epsilon=self._most
        )
        return low - 2 * self._rounding, high

    def _engine(
        self, epsilon: float, window: tuple[float, float], tilt: float, step: float
    ) -> GridBounds | None:
        """Return bounds with about this step; None where that takes too many lattice points."""
        tail = NEGLIGIBLE * self._width * self._delta / self._releases
        step, offsets = self._lattice(step)
        _, largest_epsilon = window
        parts = [
            outline.component(
                offset=offset,
                epsilon=largest_epsilon,
                others=outline.least - self._least,
                tail=tail,
                tilt=tilt,
            )
            for outline, offset in zip(self._outlines, offsets, strict=True)
        ]
        span = max(part.ends[1] - part.ends[0] for part in parts)
        farthest = max(abs(end - part.offset) for part in parts for end in part.ends)
        if not (span < self._max_points * step and farthest < EXACT_INDICES * step):
            return None
        # The tilted mass is relative to Chernoff's bound, of which delta is a share.
        log_share = max(self._log_share, LEAST_LOG_SHARE)
        log_wrapped = math.log(self._width) + LOG_WRAPPED_SHARE + log_share
        engine = GridBounds(parts, epsilon, window, step, log_wrapped, self._max_points)
        return engine if engine.is_small else None

    def _lattice(self, step: float) -> tuple[float, list[float]]:
        """Return a step close to the given one, and the offset of each loss's lattice.

        The lattice of the first loss that has an atom at an end of its range goes through this atom
        and through the centre of its mass; all other lattices go through the centre of theirs.
        """
        with_atom = next(
            (
                outline
                for outline in self._outlines
                if outline.atom_at_end is not None
                and abs(outline.atom_at_end - outline.centre) > 2 * step
            ),
            None,
        )
        if with_atom is None:
            return step, [centred_offset(part.loss, part.centre, step) for part in self._outlines]
        offset = centred_offset(with_atom.loss, with_atom.centre, step)
        # A whole number of steps leads from there to the mean of the cell around the atom.  This
        # mean changes with the step, so three rounds come close enough.
        for _ in range(3):
            width = with_atom.mean_at_end(step) - offset
            if not abs(width) < self._max_points * step:  # too far for any lattice
                return step, [offset] * len(self._outlines)
            # 1e-6: a quotient that is whole but for round-off stays
            step = abs(width) / max(1, math.ceil(abs(width) / step * (1 - 1e-6)))
        return step, [
            offset if part is with_atom else centred_offset(part.loss, part.centre, step)
            for part in self._outlines
        ]

    def _guess(self) -> tuple[float, float]:
        """Return a rough estimate of epsilon, and a first tilt, ``1 / epsilon``, mostly too small.

        The estimate is the larger of two: epsilon if one large loss decides, from the sum of the
        profiles, and epsilon if many small losses add up, ``mean + deviation sqrt(-ln delta)``.
        """
        total: Array = np.sum([outline.count * outline.delta for outline in self._outlines], axis=0)
        edges = LADDER[1:-1]
        positive = edges > 0
        single = float(edges[positive][np.argmax(total[positive] <= self._delta)])
        mean = math.fsum(outline.count * outline.mean for outline in self._outlines)
        deviation = math.sqrt(
            math.fsum(outline.count * outline.variance for outline in self._outlines)
        )
        many = mean + deviation * math.sqrt(-math.log(self._delta))
        # The interval is 0 to ``most`` at first; 1e-9 stands for a guess of 0.
        epsilon = max(min(single, self._most), min(many, self._most), 1e-9)
        return epsilon, 1 / epsilon


class GridPairsEngine(Engine):
    """The engine: finite pairs above and below each loss, composed on one lattice."""

    name = "grid pairs"
    planning_cost = 1.5e7
    least_width = 1e-7

    def attempts(self, problem: EpsilonProblem) -> Iterator[Attempt[Certificate]]:
        """Yield one attempt, unless so many releases would add up too much round-off."""
        items, releases = problem.composition.items, problem.composition.releases
        if releases > MAX_RELEASES:
            return
        width = max(problem.width, self.least_width)
        all_numerics = [loss.numerics for loss, _ in items]
        if any(numerics.is_coarse for numerics in all_numerics):
            are_bounds = any(numerics.is_upper_envelope for numerics in all_numerics)
            width = COARSE_WIDTH if are_bounds else EXPENSIVE_WIDTH

        def certified() -> Certificate:
            interval = grid_certificate(
                items, problem.delta, width, known_upper=problem.known_upper
            )
            return interval or NOTHING_KNOWN

        # a sum of n losses is sqrt(n) times as wide as one loss, and so is its lattice
        cost_of_a_loss = self.planning_cost + POINTS_COST * math.sqrt(releases)
        yield Attempt(cost_of_a_loss * len(items), certified)
