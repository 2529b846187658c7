"""A matrix mechanism whose steps use records at random: the plan of such a run.

References: Choquette-Choo, Ganesh, Haque, Steinke & Thakurta (2024), arXiv 2410.06266; Dong &
Ganesh (2026), arXiv 2602.09338.  Proofs: `docs/proofs/bins_in_a_chain.md`,
`docs/proofs/spaced_poisson.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import final

from accountant.amplification.exchanged_record import NO_LOSS
from accountant.composition.composed_loss import loss_of_plan
from accountant.correlated_noise.sampled_steps import (
    MissedReleases,
    SampledSteps,
    bands_of,
    sampled_steps_loss,
)
from accountant.correlated_noise.strategy import Strategy
from accountant.domains import POSITIVE
from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss
from accountant.numerics.rounding import round_up_ratio
from accountant.plans.adjacency import PRESENCE_RELATIONS, Adjacency, check_relation
from accountant.plans.declared_releases import is_plan_field
from accountant.plans.plan import Item, Release

SCALES = (1e-100, 1e100)  # in step sensitivities: their squares, and the inverses, are floats


@final
@dataclass(frozen=True, slots=True)
class AmplifiedMatrix(Release):
    """Correlated noise for a run of steps, each of which uses a record at random.

    C x plus noise is released, C the strategy's matrix, a row of x the sum of what the records of a
    step add.  Each record draws the steps that use it alone and in secret, as ``sampling`` says.
    Later steps may depend on what was released before: C is lower triangular.  The upper end is a
    bound on all data sets; the lower end is that of a pair of data sets.

    Parameters
    ----------
    strategy : Strategy
        A lower triangular strategy, best one with few bands.
    scale : float
        Standard deviation of the noise that is added to C x.
    sampling : SampledSteps
        `BallsInBins(bins)` or `SpacedPoisson(rate, separation)`.
    step_sensitivity : float
        The greatest L2 norm of what a record adds to a step: the clipping norm.
    relation : str
        "add-remove" or "zero-out", which cost the same: no record moves another.

    References
    ----------
    Choquette-Choo, Ganesh, Haque, Steinke & Thakurta (2024), Lemma 3.2; Dong & Ganesh (2026).

    Examples
    --------
    >>> from accountant import AmplifiedMatrix, BallsInBins, Tight, Toeplitz
    >>> banded = Toeplitz((0.8, 0.5, 0.3), steps=40)
    >>> plan = AmplifiedMatrix(banded, scale=2.0, sampling=BallsInBins(bins=40))
    >>> round(Tight().epsilon(plan, delta=1e-5), 2)
    0.53
    """

    strategy: Strategy
    scale: float
    sampling: SampledSteps
    step_sensitivity: float = 1.0
    relation: Adjacency = Adjacency.ADD_REMOVE
    _added: bool = field(default=False, repr=False)  # whether the loss is ln Q / P, under Q

    def __post_init__(self) -> None:
        if not isinstance(self.strategy, Strategy) or not is_plan_field(self.strategy):
            raise ParameterError("strategy", self.strategy, "a strategy, such as Toeplitz")
        if not isinstance(self.sampling, SampledSteps) or not is_plan_field(self.sampling):
            allowed = "BallsInBins(bins) or SpacedPoisson(rate, separation)"
            raise ParameterError("sampling", self.sampling, allowed)
        object.__setattr__(self, "scale", POSITIVE.check("scale", self.scale))
        norm = POSITIVE.check("step_sensitivity", self.step_sensitivity)
        object.__setattr__(self, "step_sensitivity", norm)
        if not SCALES[0] <= self.scale / norm <= SCALES[1]:
            allowed = f"step_sensitivity times a number in [{SCALES[0]:g}, {SCALES[1]:g}]"
            raise ParameterError("scale", self.scale, allowed)
        relation = check_relation("relation", self.relation, PRESENCE_RELATIONS)
        object.__setattr__(self, "relation", relation)
        bands_of(self.strategy)
        self.sampling.check_fit(self.strategy)

    @property
    def loss(self) -> Loss:
        """The loss of the run."""
        return loss_of_plan(self)

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield the releases of the bound, and the chance that they do not suffice."""
        mu = round_up_ratio(self.step_sensitivity, self.scale)
        loss = sampled_steps_loss(self.sampling, self.strategy, mu)
        yield loss.reversed if self._added else loss, self.sampling.releases(self.strategy)
        if self.sampling.missed:
            yield MissedReleases(ApproxLoss(0.0, self.sampling.missed), NO_LOSS), 1

    @property
    def reversed(self) -> AmplifiedMatrix:
        """The run seen from the data without the record."""
        return replace(self, _added=not self._added)
