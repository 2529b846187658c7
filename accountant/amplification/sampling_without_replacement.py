"""Sampling without replacement: a release sees a random sample of fixed size.

With q the share of the records that is sampled and delta_1 the profile of the part for a record in
the sample, the profile is delta(eps) = q delta_1(ln(1 + (e^eps - 1) / q)) for eps >= 0, as for
Poisson sampling at rate q; the worse direction of the part counts.

References: Balle, Barthe & Gaboardi (2018), Theorem 9; Zhu, Dong & Wang (2022), Proposition 30.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from accountant.amplification.poisson_sampling import (
    PoissonSampled,
    sampled_cell_masses,
    sampled_max_loss,
)
from accountant.amplification.sampled_renyi import is_known_by_its_curve, subset_divergence
from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.losses.cell_masses import CellMasses, mirrored
from accountant.losses.least_rho import rho_of_bounded
from accountant.losses.loss import Loss, SymmetricLoss, epsilons, orders
from accountant.losses.loss_numerics import LossNumerics
from accountant.numerics import Array
from accountant.numerics.logspace import inverse_log_mixture
from accountant.plans.adjacency import Adjacency, check_relation
from accountant.plans.plan import Item, Plan, as_plan

SIZE = IntegerRange(1)


@final
@dataclass(frozen=True, slots=True)
class SampledWithoutReplacement(SymmetricLoss):
    """A plan on a uniform sample of ``sample`` of the ``population`` records.

    The pair that dominates is (q P + (1 - q) Q, Q) at positive epsilons and (P, (1 - q) P + q Q) at
    negative ones, q the sampled share.  One release attains it.  Many releases need not: the lower
    end of a certificate is that of data whose other records are all like the one that is put in.

    Parameters
    ----------
    part : Plan
        What is released from the sample; stated for replace-one neighbours, or for none.
    sample : int
        Records in the sample, from 0 to ``population``.
    population : int
        Records in all, at least 1.
    relation : str
        "replace-one".

    References
    ----------
    Balle, Barthe & Gaboardi (2018), Theorem 9; Zhu, Dong & Wang (2022), Proposition 30.

    Examples
    --------
    >>> from accountant import PureLoss, SampledWithoutReplacement, Tight
    >>> round(Tight().epsilon(SampledWithoutReplacement(PureLoss(1.0), 10, 100), delta=0.0), 4)
    0.1586
    """

    part: Plan
    sample: int
    population: int
    relation: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "population", SIZE.check("population", self.population))
        allowed = IntegerRange(0, self.population)
        object.__setattr__(self, "sample", allowed.check("sample", self.sample))
        stated = check_relation("relation", self.relation, (Adjacency.REPLACE_ONE,))
        object.__setattr__(self, "relation", stated)
        if as_plan(self.part).relation not in (None, stated):
            reason = "stated for replace-one neighbours: a sample of fixed size replaces records"
            raise ParameterError("part", self.part, reason)

    @property
    def loss(self) -> Loss:
        """The loss of the part for a record that is in the sample."""
        return loss_of_plan(self.part)

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield this loss once; no loss for an empty sample."""
        if self.sample:
            yield self, 1

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return ``q delta(ln(1 + (e^eps - 1) / q))``, q the sampled share, worse direction."""
        e, q = epsilons(epsilon), self.sample / self.population
        if q == 0:
            return np.zeros(e.shape)
        inner = inverse_log_mixture(e, q)
        worse: Array = q * np.maximum(self.loss.profile(inner), self.loss.reversed.profile(inner))
        return worse

    @property
    def infinity(self) -> float:
        """The mass at infinity of the part, times the sampled share."""
        worst = max(self.loss.infinity, self.loss.reversed.infinity)
        return self.sample / self.population * worst

    @property
    def max_loss(self) -> float:
        """The largest finite loss, in nats: ``ln(1 + q (e^b - 1))``."""
        worst = max(self.loss.max_loss, self.loss.reversed.max_loss)
        return sampled_max_loss(worst, self.sample / self.population)

    def cell_masses(self, edges: Array) -> CellMasses | None:
        """Return the masses of the pair of this profile; None where the part is asymmetric."""
        if self.loss != self.loss.reversed or self.sample == 0:
            return None
        # Above 0 the profile is that of Poisson sampling, below it is the mirror image, and the
        # remaining mass has the loss 0.
        rate = self.sample / self.population

        def masses(ends: Array) -> CellMasses | None:
            return sampled_cell_masses(self.loss, rate, ends)

        return None if masses(edges) is None else mirrored(masses, edges, self.infinity)

    @property
    def numerics(self) -> LossNumerics:
        """An upper envelope: the worst other records depend on epsilon."""
        return LossNumerics(is_upper_envelope=True, is_numerical=self.loss.numerics.is_numerical)

    @property
    def attained_pair(self) -> Loss:
        """The pair (q P + (1 - q) Q, Q): all other records are like the one that is put in."""
        part = self.loss.attained_pair
        if self.sample == self.population:
            return part
        return PoissonSampled(part, self.sample / self.population)

    @property
    def rho(self) -> float:
        """The rho of the part, as sampling makes no divergence larger, or that of its own curve."""
        return min(rho_of_bounded(self), max(self.loss.rho, self.loss.reversed.rho))

    def renyi(self, order: ArrayLike) -> Array:
        """Return the Rényi divergence of the profile, or that of the part's own Rényi curve."""
        divergence, share = Loss.renyi(self, order), self.sample / self.population
        if not (0 < share < 1 and is_known_by_its_curve(self.part)):
            return divergence
        return np.minimum(divergence, subset_divergence(self.loss, share, orders(order)))
