"""Random allocation (balls in bins): an epoch in which each record is used in random steps.

P is the law of the answers with the record, Q without it; the loss is ln P / Q of a draw from P.

References: Chua et al. (2024), balls and bins; Choquette-Choo et al. (2024), Lemma 3.2; Feldman &
Shenfeld (2025) for several steps a record.  Proof: `docs/proofs/random_allocation.md`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from accountant.amplification.allocation.allocated_gaussian import AllocatedGaussian
from accountant.amplification.allocation.picked_sum import PickOfSeveral
from accountant.amplification.exchanged_record import NO_LOSS
from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.losses.finite_pair import PairLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import MAX_EXPONENT, ULP
from accountant.plans.adjacency import PRESENCE_RELATIONS, Adjacency, check_relation
from accountant.plans.plan import Item, Plan, Release, as_plan

STEPS = IntegerRange(1, 10**7)
EPOCHS = IntegerRange(1)
# Most outcomes of an epoch, each of which is an atom of its loss: time and memory grow with them.
# An epoch of so many takes about a tenth of a second.
MAX_OUTCOMES = 20_000


@final
@dataclass(frozen=True, slots=True)
class RandomAllocation(Release):
    """Epochs of ``steps`` releases; each record is used in ``picks`` random ones of an epoch.

    Also known as balls in bins.  Each record draws its steps alone, and the number of steps is
    fixed in advance, so that the other records keep their steps when one is added or removed: this
    costs what blanking the record does.  With one pick the loss is exact: some pair of data sets
    has it.  With more picks it is an upper bound: cut the steps at random into ``picks`` blocks of
    ``steps // picks`` steps (or one more, which costs less), and draw one step of each block.  That
    is the same random set of steps, and for given blocks it is ``picks`` epochs with one pick.

    Parameters
    ----------
    part : Plan
        What one step releases of the records in it; Gaussian, or with finitely many outcomes.
    steps : int
        Steps of an epoch, at least 1.
    picks : int
        Steps of an epoch in which a record is used, from 1 to ``steps``.
    epochs : int
        How many epochs, at least 1; each draws anew.
    relation : str
        "add-remove" or "zero-out", which cost the same.

    References
    ----------
    Chua et al. (2024), "Balls-and-bins sampling for DP-SGD"; Choquette-Choo et al. (2024), Lemma
    3.2; Feldman & Shenfeld (2025), "Privacy amplification by random allocation".

    Examples
    --------
    >>> from accountant import GaussianLoss, RandomAllocation, Tight
    >>> round(Tight().epsilon(RandomAllocation(GaussianLoss(1.0), steps=1000), delta=1e-6), 8)
    0.17172868
    """

    part: Plan
    steps: int
    picks: int = 1
    epochs: int = 1
    relation: Adjacency = Adjacency.ADD_REMOVE
    _added: bool = field(default=False, repr=False)  # whether the loss is ln Q / P, under Q

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", STEPS.check("steps", self.steps))
        allowed = IntegerRange(1, self.steps)
        object.__setattr__(self, "picks", allowed.check("picks", self.picks))
        object.__setattr__(self, "epochs", EPOCHS.check("epochs", self.epochs))
        relation = check_relation("relation", self.relation, PRESENCE_RELATIONS)
        object.__setattr__(self, "relation", relation)
        stated = as_plan(self.part).relation
        if stated not in (None, Adjacency.ADD_REMOVE, relation):
            reason = (
                f"stated for {relation} neighbours, not {stated}: a replaced record is one that is "
                "removed, and one that is added"
            )
            raise ParameterError("part", self.part, reason)
        # A part whose epoch cannot be computed is refused at once.  What is computed is kept.
        self._one_pick()

    @property
    def loss(self) -> Loss:
        """The loss of all epochs."""
        return loss_of_plan(self)

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield the loss of one pick, as often as records are picked in all epochs."""
        loss = self._one_pick()
        if self._added:
            loss = loss.reversed
        # One pick is exact, and so is a record in every step.  Else the blocks give a bound only,
        # and a lower end comes from a test of whole epochs.
        if 1 < self.picks < self.steps:
            step = loss_of_plan(self.part)
            loss = PickOfSeveral(loss, NO_LOSS, step, self.steps, self.picks, self._added)
        yield loss, self.picks * self.epochs

    @property
    def reversed(self) -> RandomAllocation:
        """The loss seen from the data without the record."""
        return replace(self, _added=not self._added)

    def _one_pick(self) -> Loss:
        """Return the loss of an epoch of ``steps // picks`` steps with one pick, from P to Q."""
        part, steps = loss_of_plan(self.part), self.steps // self.picks
        if steps == 1:
            return part
        if isinstance(part, GaussianLoss):
            return AllocatedGaussian(part.mu, steps)
        forward, backward = part.loss_pmf, part.reversed.loss_pmf
        loose = part.numerics.is_upper_envelope or part.numerics.is_numerical
        if forward is None or backward is None or loose:
            reason = "Gaussian, or a loss of finitely many outcomes such as PureLoss or PairLoss"
            raise ParameterError("part", self.part, reason)
        if np.abs(forward[0]).max(initial=0.0) > MAX_EXPONENT:
            reason = (
                f"Gaussian, or of finite losses up to {MAX_EXPONENT:g}: their e^loss is a float"
            )
            raise ParameterError("part", self.part, reason)
        # The losses ln P / Q of one step, and one more outcome for what only Q can have.
        mass_of_q_alone = part.reversed.infinity
        outcomes = forward[0].size + bool(mass_of_q_alone)
        # An outcome of an epoch is how often each outcome of a step occurs.
        if math.comb(steps + outcomes - 1, outcomes - 1) > MAX_OUTCOMES:
            reason = f"few enough for {MAX_OUTCOMES:,} outcomes of an epoch; or a Gaussian part"
            raise ParameterError("steps", self.steps, reason)
        return _allocated_pair(part, steps)


@functools.lru_cache(maxsize=64)
def _allocated_pair(part: Loss, steps: int) -> PairLoss:
    """Return the pair of an epoch of which each step has finitely many outcomes.

    An outcome of the epoch says how often each outcome of a step occurs.  Its probability q without
    the record is multinomial; with the record in a uniformly random step, p = q times the mean of
    the ratios P / Q of all steps.
    """
    loss_pmf = part.loss_pmf
    if loss_pmf is None:
        raise TypeError(f"not finitely many losses: {type(part).__name__}")
    losses, mass_p = loss_pmf
    # The ratios P / Q of the outcomes of one step, and their probabilities under Q.
    ratio, mass = np.exp(losses), mass_p * np.exp(-losses)
    if part.reversed.infinity:  # the mass under Q of outcomes that P cannot have
        ratio, mass = np.append(ratio, 0.0), np.append(mass, part.reversed.infinity)
    counts = _compositions(steps, ratio.size)
    # In extended precision, as logarithms of thousands cancel.
    log_factorial = np.append(0.0, np.cumsum(np.log(np.arange(1, steps + 1, dtype=np.longdouble))))
    log_mass = np.log((mass / mass.sum()).astype(np.longdouble))
    log_q = log_factorial[steps] - log_factorial[counts].sum(axis=1) + ordered_dot(counts, log_mass)
    ratio = ordered_dot(counts, ratio) / steps
    # The lesser of two masses, where it is above 0, may be too small for a float.  Both are then
    # raised by one factor, which keeps the loss.  Where this would add much to the greater one, the
    # lesser becomes 0, an infinite loss.
    least_mass = 4 * float(np.finfo(float).tiny)
    with np.errstate(divide="ignore"):
        log_ratio = np.log(ratio)
    log_lesser = log_q + np.where(ratio > 0, np.minimum(log_ratio, 0.0), 0.0)
    log_factor = np.maximum(math.log(least_mass) - log_lesser, 0.0)
    raised = np.exp(log_q + log_factor + np.maximum(log_ratio, 0.0))
    is_split = (log_factor > 0) & (raised > ULP * ULP)
    q = np.exp(log_q + np.where(is_split, 0.0, log_factor)).astype(float)
    p = q * ratio
    p[is_split] = np.maximum(np.exp(log_q + log_ratio).astype(float), least_mass)[is_split]
    q[is_split] = np.maximum(q[is_split], least_mass)
    q[is_split & (ratio > 1)], p[is_split & (ratio < 1)] = 0.0, 0.0
    # The sums are these already, but for round-off.
    if p.any():  # else P has outcomes alone that Q never has
        p *= mass_p.sum() / p.sum()
    q /= q.sum()
    if part.infinity:  # the mass under P of outcomes that Q cannot have: they reveal the record
        p, q = np.append(p, part.infinity), np.append(q, 0.0)
    # The logarithm of a mass of one step errs by `of_step`: by what the part states, by two errors
    # of a loss, and by an ULP for each of the few operations and terms of the sum.  In a
    # probability of the epoch it counts once for each step.  The logarithms of factorials err by an
    # ULP of extended precision a term.  Dividing by the sums doubles all this.
    of_step = part.rounding + (2 * float(np.abs(losses).max(initial=0.0)) + ratio.size + 8) * ULP
    of_factorials = steps * float(log_factorial[steps] * np.finfo(np.longdouble).eps)
    rounding = 2 * ((steps + 1) * of_step + of_factorials) + 32 * ULP
    return PairLoss(p.tolist(), q.tolist()).with_rounding(rounding)


def _compositions(total: int, parts: int) -> Array:
    """Return all rows of ``parts`` whole numbers from 0 on that sum to ``total``."""
    if parts == 1:
        return np.array([[total]])
    rows = []
    for first_part in range(total + 1):
        other_parts = _compositions(total - first_part, parts - 1)
        rows.append(np.insert(other_parts, 0, first_part, axis=1))
    compositions: Array = np.concatenate(rows)
    return compositions
