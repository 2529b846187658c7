"""One pass over the data in batches, in a fixed order or in a random one.

Every record is in one batch, so a pass costs at most what one batch costs.  For a fixed order
(`OnePass`) that is the cost.  For a random order (`ShuffledEpoch`) it is the upper end, and the
lower end is that of one pair of data sets with Gaussian noise.

References: Chua et al. (2024), "How private are DP-SGD implementations?", for the lower bound of
shuffled batches.  Proof: `docs/proofs/shuffled_epoch.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import final

from accountant.amplification.allocation.allocated_gaussian import AllocatedGaussian
from accountant.amplification.allocation.greatest_output import greatest_output_pair
from accountant.amplification.exchanged_record import NO_LOSS
from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import IntegerRange, OneOf
from accountant.errors import ParameterError
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.losses.upper_envelope import UpperEnvelope
from accountant.plans.adjacency import PRESENCE_RELATIONS, Adjacency, check_relation
from accountant.plans.plan import Item, Plan, Release, as_plan

BATCHES = IntegerRange(1)
RELATIONS = (Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE)
NOT_FOR_REMOVED_RECORDS = (
    "a removed record moves others to other batches; dp_sgd(loader=...) states what that costs"
)


@final
@dataclass(frozen=True, slots=True)
class OnePass(Release):
    """One pass over the data in a fixed order: every record is in one of ``batches`` batches.

    A record costs what its own batch releases.  Neighbours keep all other records in their
    batches: the record is replaced, or blanked.  The pass is for zero-out neighbours if its part is
    for add-remove neighbours, or states none.  If a record is removed, others take its place in the
    batches: `dp_sgd` states what that costs.

    Parameters
    ----------
    part : Plan
        What one batch releases.
    batches : int
        Batches of the pass, at least 1; they do not change the cost.

    References
    ----------
    McSherry (2009), Theorem 4.

    Examples
    --------
    >>> from accountant import GaussianLoss, OnePass, Tight
    >>> single = Tight().epsilon(GaussianLoss(1.0), delta=1e-6)
    >>> Tight().epsilon(OnePass(GaussianLoss(1.0), batches=100), delta=1e-6) == single
    True
    """

    part: Plan
    batches: int

    def __post_init__(self) -> None:
        as_plan(self.part)
        object.__setattr__(self, "batches", BATCHES.check("batches", self.batches))

    @property
    def loss(self) -> Loss:
        """The loss of the part."""
        return loss_of_plan(self.part)

    @property
    def relation(self) -> Adjacency:
        """The relation of the part; zero-out where that is add-remove, or not stated.

        It is never None: a pass could then be stated for add-remove neighbours.
        """
        of_part = self.part.relation
        return Adjacency.ZERO_OUT if of_part in (None, Adjacency.ADD_REMOVE) else of_part

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield the losses of the part."""
        return self.part.losses()

    def losses_in_order(self) -> Iterator[tuple[Item, int]]:
        """Yield the losses of the part in order."""
        return self.part.losses_in_order()

    @property
    def reversed(self) -> OnePass:
        """The pass of the reversed part."""
        return replace(self, part=self.part.reversed)


@final
@dataclass(frozen=True, slots=True)
class ShuffledEpoch(Release):
    """One pass over the data in a random order, cut into ``batches`` batches of equal size.

    The bound is what the record's own batch costs, whatever the part is.  Passes of clipped
    gradients with enough noise cost less: `dp_sgd` states that too.  For Gaussian parts the lower
    end of `Tight` is that of a pair of data sets that differ in one record; it is often far above
    what Poisson sampling at rate ``1 / batches`` would cost.

    Parameters
    ----------
    part : Plan
        What one batch releases.
    batches : int
        Batches of the pass, at least 1.
    relation : str
        "zero-out" (default): the record is blanked and its place kept; or "replace-one".  A removed
        record moves others to other batches: `dp_sgd` states what that costs.

    References
    ----------
    Chua et al. (2024), "How private are DP-SGD implementations?", section 4.

    Examples
    --------
    >>> from accountant import GaussianLoss, ShuffledEpoch, Tight
    >>> certificate = Tight().certify(ShuffledEpoch(GaussianLoss(1.0), batches=100), delta=1e-6)
    >>> round(certificate.lower, 1), round(certificate.upper, 1)
    (4.7, 4.9)
    """

    part: Plan
    batches: int
    relation: Adjacency = Adjacency.ZERO_OUT
    _added: bool = field(default=False, repr=False)  # whether the neighbours are exchanged

    def __post_init__(self) -> None:
        object.__setattr__(self, "batches", BATCHES.check("batches", self.batches))
        relation = check_relation("relation", self.relation)
        if relation not in RELATIONS:
            allowed = f"{OneOf(tuple(map(str, RELATIONS)))}: {NOT_FOR_REMOVED_RECORDS}"
            raise ParameterError("relation", str(relation), allowed)
        object.__setattr__(self, "relation", relation)
        stated, blanked = as_plan(self.part).relation, relation is Adjacency.ZERO_OUT
        if stated not in (None, relation, *(PRESENCE_RELATIONS if blanked else ())):
            reason = f"stated for {relation} neighbours as the epoch is, not for {stated}"
            raise ParameterError("part", self.part, reason)

    @property
    def loss(self) -> Loss:
        """The bound: the loss of the part."""
        return loss_of_plan(self.part)

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield the loss of the part once, as a bound, together with the loss of one pair."""
        loss: Loss = self.loss
        if self.batches > 1:
            attained: Loss = NO_LOSS  # for other parts no pair of data sets is known to cost more
            if isinstance(loss, GaussianLoss):
                # If the record is blanked, the others contribute the opposite of it: without it
                # its batch is mu above all others, and with it 2 mu.  If it is replaced, they
                # contribute what it is replaced by: its batch is level with them, or mu above.
                if self.relation is Adjacency.ZERO_OUT:
                    attained = greatest_output_pair(loss.mu, loss.mu, self.batches)
                else:
                    attained = AllocatedGaussian(loss.mu, self.batches).attained_pair
            loss = UpperEnvelope(loss, attained)
        yield (loss.reversed if self._added else loss), 1

    @property
    def reversed(self) -> ShuffledEpoch:
        """The epoch seen with the two neighbours exchanged."""
        return replace(self, _added=not self._added)
