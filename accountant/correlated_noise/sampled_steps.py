"""Steps of a run that use a record at random: what is common to such samplings of steps.

With the strategy matrix C, a record that is used in the steps of a random set moves the released
rows by the sum of their columns.  What that costs depends on the inner products of columns alone
(`docs/proofs/kahane.md`): more where they are greater.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.amplification.allocation.picked_sum import cell_edges, gaussian_cells
from accountant.amplification.exchanged_record import NO_LOSS
from accountant.correlated_noise.strategy import MAX_ENTRIES, Strategy
from accountant.errors import ParameterError
from accountant.losses.finite_pair import PairLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss, epsilons
from accountant.losses.loss_numerics import MANY_PAIRS, LossNumerics
from accountant.losses.upper_envelope import UpperEnvelope
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.plans.declared_releases import PlanField

# The delta at which bounds are compared, to take one of them: any choice is sound.
COMPARED_AT = 1e-6
CELL_ERROR = 1e-8  # of the logarithms of masses of cells, and of their sums
GREATEST_SHIFT = 12.0  # of a Gaussian in a pair below: far ratios are no floats
PRODUCT_ERROR = 1e-9  # of inner products, relative to the greatest one


class SampledSteps(PlanField, ABC):
    """How the steps that use a record are drawn: `BallsInBins` or `SpacedPoisson`."""

    __slots__ = ()

    @abstractmethod
    def check_fit(self, strategy: Strategy) -> None:
        """Refuse a strategy whose steps or bands the sampling does not fit.

        Parameters
        ----------
        strategy : Strategy
            The matrix C.

        Raises
        ------
        ParameterError
            Which names the field, and what would fit.
        """

    @abstractmethod
    def bounds(self, strategy: Strategy, mu: float) -> Bounds:
        """Return losses above: of a record that is removed, and of one that is added.

        Parameters
        ----------
        strategy : Strategy
            The matrix C.
        mu : float
            The greatest norm of what a record adds to a step, over the deviation of the noise.

        Returns
        -------
        Bounds
            Of all data sets and adversaries; a run costs `releases` of them.
        """

    @abstractmethod
    def attained(self, strategy: Strategy, mu: float) -> Bounds:
        """Return pairs below what the whole run costs for some pair of data sets.

        Parameters
        ----------
        strategy : Strategy
            The matrix C.
        mu : float
            The norm of what a record adds to a step, over the deviation of the noise.

        Returns
        -------
        Bounds
            Of a record that is removed, and of one that is added.
        """

    def releases(self, strategy: Strategy) -> int:
        """Return how many releases of `bounds` the run costs at most.

        Parameters
        ----------
        strategy : Strategy
            The matrix C.

        Returns
        -------
        int
            At least 1.
        """
        return 1

    @property
    def missed(self) -> float:
        """The chance that the run costs more releases."""
        return 0.0


class Bounds(NamedTuple):
    """Losses of a record that is removed, ln P / Q, and of one that is added, ln Q / P."""

    removed: Loss
    added: Loss


@final
@dataclass(frozen=True, slots=True)
class SampledStepsLoss(UpperEnvelope):
    """A release of the bound of a run; pairs below the run are computed when they are asked for."""

    sampling: SampledSteps
    strategy: Strategy
    mu: float
    added: bool = False

    @property
    def reversed(self) -> SampledStepsLoss:
        """The loss seen from the other data set."""
        above = self.sampling.bounds(self.strategy, self.mu)
        return replace(self, bound=above[not self.added], added=not self.added)

    @property
    def numerics(self) -> LossNumerics:
        """Those of the bound; of a composition the profile alone."""
        inner = UpperEnvelope.numerics.fget(self)  # type: ignore[attr-defined]  # slots: no super
        return MANY_PAIRS if inner.is_numerical else inner

    @property
    def attained_pair(self) -> Loss:
        """A pair below a run of one release; else none."""
        return self.attained_items(1)[0][0]

    def attained_items(self, count: int) -> list[tuple[Loss, int]]:
        """Return a pair below for each run that so many releases are."""
        runs, others = divmod(count, self.sampling.releases(self.strategy))
        if others:
            return [(self.attained, count)]
        return [(self.sampling.attained(self.strategy, self.mu)[self.added], runs)]


@final
@dataclass(frozen=True, slots=True)
class MissedReleases(UpperEnvelope):
    """The chance that a run costs more releases than are counted, as a loss without bound."""

    @property
    def reversed(self) -> MissedReleases:
        """The same chance."""
        return self

    def attained_items(self, count: int) -> list[tuple[Loss, int]]:
        """Return nothing: the pair below a run has its whole cost."""
        return []


def sampled_steps_loss(sampling: SampledSteps, strategy: Strategy, mu: float) -> SampledStepsLoss:
    """Return the loss of a release of the bound, of a removed record."""
    above = sampling.bounds(strategy, mu)
    return SampledStepsLoss(above.removed, NO_LOSS, sampling, strategy, mu)


@final
@dataclass(frozen=True, slots=True)
class WithGaussian(Loss):
    """A pair of finitely many outcomes, and beside it a Gaussian: their losses add up."""

    pair: PairLoss
    gaussian: GaussianLoss

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the mean of the Gaussian's profile at epsilon less the pair's loss."""
        losses, masses = self.pair.loss_pmf
        gaps = epsilons(epsilon)[..., None] - losses
        total: Array = ordered_dot(self.gaussian.profile_any_epsilon(gaps), masses)
        return total + self.pair.infinity

    @property
    def reversed(self) -> WithGaussian:
        """The reversed pair, and the same Gaussian."""
        return WithGaussian(self.pair.reversed, self.gaussian)

    @property
    def infinity(self) -> float:
        """That of the pair."""
        return self.pair.infinity

    @property
    def rounding(self) -> float:
        """That of the pair."""
        return self.pair.rounding

    def renyi(self, order: ArrayLike) -> Array:
        """Return the sum of both divergences."""
        return self.pair.renyi(order) + self.gaussian.renyi(order)

    def cumulant(self, z: ArrayLike) -> Any:
        """Return the sum of both cumulants."""
        return self.pair.cumulant(z) + self.gaussian.cumulant(z)


class ColumnProducts(NamedTuple):
    """Inner products of columns of C by distance: [d, j] is that of columns j and j + d.

    ``absolute`` is that of the absolute entries.
    """

    signed: Array
    absolute: Array


def column_products(strategy: Strategy) -> ColumnProducts:
    """Return the inner products of the columns of a lower triangular strategy."""
    bands = bands_of(strategy)
    steps = strategy.columns
    if bands * steps > MAX_ENTRIES // 8:
        raise ParameterError("strategy", strategy, "of fewer bands, or of fewer steps")
    combs = (np.arange(steps)[:, None] % bands == np.arange(bands)).astype(float)
    rows = strategy.times(combs)
    places = np.arange(steps)
    diagonals = np.zeros((bands, steps))
    for d in range(bands):
        diagonals[d, : steps - d] = rows[places[d:], places[: steps - d] % bands]
    return ColumnProducts(_products(diagonals), _products(np.abs(diagonals)))


def bands_of(strategy: Strategy) -> int:
    """Return the number of bands, or raise `ParameterError` if a row of C looks ahead."""
    if strategy.bands is None:
        raise ParameterError("strategy", strategy, "square and lower triangular")
    return strategy.bands


def _products(diagonals: Array) -> Array:
    bands, steps = diagonals.shape
    products = np.zeros(diagonals.shape)
    for d in range(bands):
        earlier, later = diagonals[d:, : steps - d], diagonals[: bands - d, d:]
        products[d, : steps - d] = np.einsum("ij,ij->j", earlier, later)
    return products


def mixture_of_shifts(shifts: Array, weights: Array) -> Loss:
    """Return a pair below that of one of several shifts of a normal number, and none."""
    shifts = np.minimum(shifts, GREATEST_SHIFT)  # lesser ones cost less
    greatest = float(shifts.max())
    if greatest <= 0:
        return NO_LOSS
    if float(shifts.min()) >= greatest * (1 - 1e-9):
        return GaussianLoss(float(shifts.min()))
    edges = cell_edges(greatest, 0.5)
    p, q = np.zeros(edges.size + 1), gaussian_cells(edges, 0.0)
    for shift, weight in zip(shifts.tolist(), weights.tolist(), strict=True):
        p += weight * gaussian_cells(edges, shift)
    pair = PairLoss((p / p.sum()).tolist(), (q / q.sum()).tolist())
    return pair.with_rounding(CELL_ERROR)


def greatest_of(pairs: Iterable[Loss]) -> Bounds:
    """Return the pair that costs most for a removed record, and that for an added one.

    All are pairs (P, Q) below one pair, so that any of them may be taken.
    """
    removed_pairs = list(pairs)
    added_pairs = [pair.reversed for pair in removed_pairs]
    removed, added = (
        max(candidates, key=lambda pair: pair.inverse_profile(COMPARED_AT))
        for candidates in (removed_pairs, added_pairs)
    )
    return Bounds(removed, added)


def least_of(bounds: Iterable[Bounds]) -> Bounds:
    """Return the bounds of which the greater of both directions is least."""

    def epsilon(pair: Bounds) -> float:
        return max(loss.inverse_profile(COMPARED_AT) for loss in pair)

    return min(bounds, key=epsilon)
