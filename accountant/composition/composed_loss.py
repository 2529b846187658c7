"""A whole plan as one `Loss`, for plans that are sampled, grouped or run in parallel.

A loss is ln(dP/dQ) of a pair of output laws; its profile is delta as a function of epsilon, its
mass at infinity the probability under P of outcomes that Q has not.  A plan's items are losses, or
`Parallel` parts of which each user is in one, with counts.

Sampling and group privacy are stated for one loss, so a plan of several releases must become one:
`ComposedLoss` has the profile of their composition.  Of parallel parts a user pays for one, and it
is not known which: `PointwiseMaximum` has at each epsilon the greatest delta of its parts.
`loss_of_plan` and `loss_of_item` choose the simplest of these forms.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import cast, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.composition.composition import Composition
from accountant.composition.finite_pairs import with_exact_cgf
from accountant.composition.lattice_above import LatticeCurve
from accountant.composition.plan_totals import all_losses, infinity_mass
from accountant.composition.pld_grid import spread_of, usual_step
from accountant.composition.profile_curve import ProfileCurve
from accountant.losses.cell_masses import CellMasses
from accountant.losses.connect_the_dots import lower_hull
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.greatest_cell_masses import greatest_cell_masses
from accountant.losses.loss import Loss, epsilons, single_loss
from accountant.losses.loss_numerics import LossNumerics
from accountant.numerics import Array
from accountant.numerics.rounding import ACCURACY, ULP, round_up
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan, Sequential

# How loose the profile of a composition may be: as an error of epsilon, relative to epsilon.
CURVE_WIDTH = 1e-6
# The delta at which pairs are compared, to choose one of them for a lower bound: any choice is
# sound.
COMPARED_AT = 1e-6
# A chord of a convex hull over points is long if its ends are more than LONG_CHORD points apart.
# There the hull is made again, with every cell (between two neighbouring points) beside an end of
# the chord split into POINTS_BETWEEN parts.  The hull is valid with any points.
LONG_CHORD, POINTS_BETWEEN = 8, 32


def loss_of_plan(plan: Plan) -> Loss:
    """Return the one loss equal to a plan.

    It is the loss of the only release, the Gaussian of mu^2 = sum mu_i^2 where all releases are
    Gaussian, or else a `ComposedLoss`.
    """
    if type(plan) is GaussianLoss:  # the most frequent call, by plans of many sampled Gaussians
        return plan
    items = list(plan.losses())
    if len(items) == 1 and items[0][1] == 1:
        return loss_of_item(items[0][0])
    gaussians = [(item.mu, n) for item, n in items if isinstance(item, GaussianLoss)]
    if items and len(gaussians) == len(items):
        return GaussianLoss(round_up(math.sqrt(math.fsum(n * mu**2 for mu, n in gaussians))))
    return ComposedLoss(plan)


def losses_of_items(items: list[tuple[Item, int]]) -> list[tuple[Loss, int]]:
    """Return the items with each `Parallel` as one loss; the same list where there is none."""
    if any(not isinstance(item, Loss) for item, _ in items):
        return [(loss_of_item(item), n) for item, n in items]
    return cast("list[tuple[Loss, int]]", items)


def loss_of_item(item: Item) -> Loss:
    """Return the item if it is a loss, else the pointwise maximum of its parallel parts.

    Parts that another part is known to dominate are left out.
    """
    if not isinstance(item, Parallel):
        return single_loss(item)
    losses = tuple(dict.fromkeys(loss_of_plan(part) for part in item.distinct))
    undominated = tuple(
        loss
        for loss in losses
        if not any(rival is not loss and rival.dominates(loss) for rival in losses)
    )
    return undominated[0] if len(undominated) == 1 else PointwiseMaximum(undominated)


def plans_of_users(parallel: Parallel) -> list[Plan]:
    """Return the plans of which a user pays for one, in which the order of releases is known.

    A record that moves is in two groups, whose releases may come in any order: answers of one group
    are known before choices of the other.  So where there are choices it pays for one release,
    whose profile is above all that they can cost.
    """
    if not parallel.moves:
        return list(parallel.distinct)
    of_one_group = set(parallel.parts)
    return [
        loss_of_plan(part) if part not in of_one_group and has_bounds(part) else part
        for part in parallel.distinct
    ]


def has_bounds(plan: Plan) -> bool:
    """Return whether a loss of a plan is a bound on many pairs, of which one may be chosen."""
    return any(loss_of_item(item).numerics.is_upper_envelope for item, _ in plan.losses())


@final
@dataclass(frozen=True, slots=True)
class ComposedLoss(Loss):
    """Several releases seen as one loss, whose profile is an upper bound on their composition."""

    plan: Plan

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return delta of the composition at each epsilon, rounded up."""
        return _profile_curve(self.plan).profile(epsilons(epsilon))

    @property
    def reversed(self) -> Loss:
        """The composition of the reversed losses."""
        return loss_of_plan(self.plan.reversed)

    @property
    def infinity(self) -> float:
        """The mass at infinity, ``1 - prod (1 - d_i)`` with d_i that of release i."""
        return infinity_mass(self.plan)

    @property
    def max_loss(self) -> float:
        """The sum of the parts' largest finite losses, in nats."""
        return round_up(
            math.fsum(n * loss_of_item(item).max_loss for item, n in self.plan.losses()), 8
        )

    @property
    def rho(self) -> float:
        """The sum of the parts' rho."""
        return round_up(math.fsum(n * loss_of_item(item).rho for item, n in self.plan.losses()), 8)

    def renyi(self, order: ArrayLike) -> Array:
        """Return the sum of the parts' Rényi divergences."""
        total: Array = np.zeros(np.shape(order))
        for item, n in self.plan.losses():
            total = total + n * loss_of_item(item).renyi(order)
        return total

    @property
    def numerics(self) -> LossNumerics:
        """A numerical upper bound; an upper envelope where the profile of a part is one."""
        parts = (loss_of_item(item).numerics for item, _ in self.plan.losses())
        has_envelope = any(part.is_upper_envelope for part in parts)
        return LossNumerics(is_upper_envelope=has_envelope, is_numerical=True)

    def profile_bounds(self, epsilon: Array) -> tuple[Array, Array]:
        """Return the profile as both bounds, less and plus its accuracy.

        No separate lower bound on the composition is known here.
        """
        value = self.profile_any_epsilon(epsilon)
        return value * (1 - ACCURACY), value * (1 + ACCURACY)

    @property
    def attained_pair(self) -> Loss:
        """The composition of the pairs that the parts attain."""
        return loss_of_plan(
            Sequential(n * loss_of_item(item).attained_pair for item, n in self.plan.losses())
        )


@final
@dataclass(frozen=True, slots=True)
class PointwiseMaximum(Loss):
    """The pointwise maximum of several losses: a user pays for one, and it is not known which."""

    parts: tuple[Loss, ...]

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the maximum of the profiles, at each epsilon."""
        greatest: Array = np.maximum.reduce([part.profile(epsilon) for part in self.parts])
        return greatest

    @property
    def reversed(self) -> Loss:
        """The maximum of the reversed parts."""
        return PointwiseMaximum(tuple(part.reversed for part in self.parts))

    @property
    def infinity(self) -> float:
        """The largest mass at infinity of a part."""
        return max(part.infinity for part in self.parts)

    @property
    def max_loss(self) -> float:
        """The largest finite loss of a part, in nats."""
        return max(part.max_loss for part in self.parts)

    @property
    def rho(self) -> float:
        """The largest rho of a part."""
        return max(part.rho for part in self.parts)

    def renyi(self, order: ArrayLike) -> Array:
        """Return the largest Rényi divergence of a part, at each order."""
        greatest: Array = np.maximum.reduce([part.renyi(order) for part in self.parts])
        return greatest

    def profile_bounds(self, epsilon: Array) -> tuple[Array, Array]:
        """Return bounds on the profile, the greatest of the parts' bounds at each epsilon.

        The upper bound of each part is first lowered to its convex hull: profiles are convex in
        e^epsilon, but computed bounds need not be.
        """
        bounds = [part.profile_bounds(epsilon) for part in self.parts]
        # The maximum of the parts' hulls is nowhere above the hull of the maximum.
        highs = [
            _hull(part, epsilon, np.minimum(high, 1.0))
            for part, (_, high) in zip(self.parts, bounds, strict=True)
        ]
        high: Array = np.maximum.reduce(highs)
        low: Array = np.maximum.reduce([low for low, _ in bounds])
        return np.minimum(low, high), high

    def cell_masses(self, edges: Array) -> CellMasses | None:
        """Return the masses of the pair whose profile is the maximum; None if a part has none."""
        # `greatest_cell_masses` needs a last edge at infinity; the cell that this adds is dropped.
        up_to_infinity = edges if edges[-1] == np.inf else np.append(edges, np.inf)
        cells = [part.cell_masses(up_to_infinity) for part in self.parts]
        known_cells = [masses for masses in cells if masses is not None]
        if len(known_cells) < len(cells):
            return None
        infinities = [part.infinity for part in self.parts]
        greatest = greatest_cell_masses(known_cells, infinities, up_to_infinity)
        p, q, p_error, q_error = (masses[: edges.size - 1] for masses in greatest[:4])
        return CellMasses(p, q, p_error, q_error, greatest.edge_error)

    @property
    def numerics(self) -> LossNumerics:
        """An upper envelope; numerical, or coarse, where the profile of a part is."""
        all_numerics = [part.numerics for part in self.parts]
        return LossNumerics(
            is_upper_envelope=True,
            is_numerical=any(part_numerics.is_numerical for part_numerics in all_numerics),
            discretisation_points=min(
                part_numerics.discretisation_points for part_numerics in all_numerics
            ),
            grid_points=min(part_numerics.grid_points for part_numerics in all_numerics),
        )

    @property
    def attained_pair(self) -> Loss:
        """Of the parts' attained pairs, the one with the largest epsilon at `COMPARED_AT`."""
        pairs = sorted(
            (part.attained_pair for part in self.parts), key=lambda pair: -pair.delta_at(0.0)
        )
        worst, epsilon = pairs[0], pairs[0].epsilon_at(COMPARED_AT)
        for pair in pairs[1:]:
            # One value of a profile says whether its epsilon, the root of a search, is larger.
            if epsilon < math.inf and pair.delta_at(epsilon) > COMPARED_AT:
                larger_epsilon = pair.epsilon_at(COMPARED_AT)
                if larger_epsilon > epsilon:
                    worst, epsilon = pair, larger_epsilon
        return worst


def _hull(part: Loss, epsilon: Array, values: Array) -> Array:
    """Return upper bounds on the profile of a part, lowered to their convex hull.

    ``values`` are upper bounds at increasing ``epsilon``.
    """
    # A profile is convex in x = e^epsilon, and 1 at x = 0: this is the first point of the hull.
    x, y = np.append(0.0, np.exp(epsilon)), np.append(1.0, values)
    if not np.all(np.diff(x) > 0):  # two points are the same float: the values stay as they are
        return values
    corners = lower_hull(x, y)
    # The cells beside the ends of long chords, as indices of their left points among the epsilons.
    indices = corners[corners > 0] - 1
    long = np.flatnonzero(np.diff(indices) > LONG_CHORD)
    chord_ends = indices[np.union1d(long, long + 1)]
    cells = np.unique(np.append(chord_ends - 1, chord_ends))
    cells = cells[(cells >= 0) & (cells < epsilon.size - 1)]
    if cells.size:
        # The bound may touch its hull between the given points: more of its values are asked for.
        shares = np.arange(1, POINTS_BETWEEN) / POINTS_BETWEEN
        added = (epsilon[cells, None] + np.outer(np.diff(epsilon)[cells], shares)).ravel()
        x = np.append(x, np.exp(added))
        _, high = part.profile_bounds(added)
        y = np.append(y, np.minimum(high, 1.0))
        x, order = np.unique(x, return_index=True)
        y = y[order]
        corners = lower_hull(x, y)
    hull: Array = np.interp(np.exp(epsilon), x[corners], y[corners]) * (1 + 16 * ULP)
    return np.minimum(values, hull)


@functools.lru_cache(maxsize=32)  # a long contour, or a lattice, takes megabytes
def _profile_curve(plan: Plan) -> ProfileCurve | LatticeCurve:
    """Return the profile of a plan by the first method that serves it.

    1. Exact cumulants, where all losses have them and the sums are quick.
    2. A lattice, on which each loss is replaced by a finite one above it.
    3. Exact cumulants again, with finite losses above those that have none.  To make these, a mass
       of at most a small share of 1e-14 is moved.
    """
    items = [(loss_of_item(item), n) for item, n in plan.losses()]
    if all(loss.numerics.has_exact_cgf for loss, _ in items):
        curve = ProfileCurve(Composition(items), CURVE_WIDTH)
        if curve.is_exact:
            return curve
    lattice_curve = LatticeCurve.of(items, usual_step(spread_of(all_losses(plan))))
    if lattice_curve is not None:
        return lattice_curve
    finite_losses = with_exact_cgf(items, 1e-14, upper=True)
    return ProfileCurve(Composition(finite_losses), CURVE_WIDTH)
