"""Poisson sampling with a largest batch: records beyond it are left out at random.

The bound has two cases, and it is taken to be seen which one holds.  Either the other records leave
room in the batch, and the record is sampled as usual; or they fill it, and the record can only take
the place of another one.

References: Ganesh, McKenna, Steinke et al. (2024), arXiv 2411.04205; arXiv 2508.15089;
`docs/proofs/truncated_sampling.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.losses.loss_numerics import LossNumerics
from accountant.losses.mixture_of_gaussians import MixturePairLoss
from accountant.losses.mixture_pair import MixturePair
from accountant.losses.normal_mixture import ORIGIN, side
from accountant.losses.public_choice import PublicChoice
from accountant.numerics import Array
from accountant.plans.adjacency import (
    PRESENCE_RELATIONS,
    SAMPLING_RELATIONS,
    Adjacency,
    check_relation,
)
from accountant.plans.plan import Item, Plan, as_plan

RATE, SIZE = Interval(0.0, 1.0), IntegerRange(1)
# Up to this batch the terms of a binomial tail are summed one by one.  There the incomplete beta
# function errs by up to 5e-8, where few of very many records are sampled.
MAX_SUMMED_BATCH = 64
# Rates are raised by this factor, as binomial tails are inexact by about 1e-13 of themselves.
ROUNDED_UP = 1 + 1e-12


@final
@dataclass(frozen=True, slots=True)
class TruncatedPoisson(Loss):
    """A Gaussian release from a Poisson sample of at most ``batch`` records.

    Every record is sampled with probability ``rate``; of a sample of more than ``batch`` records
    that many are kept, at random.  An upper bound: whether the other records alone fill the batch
    is taken to be seen.  If they do not, the record is sampled as usual; if they do, it takes the
    place of another one, which moves the sum by up to twice its own contribution.  The lower end
    of a certificate is that of data whose other records contribute nothing.

    Parameters
    ----------
    part : Plan
        What is released from the sample: Gaussians, of which mu is the norm of one record's
        contribution over the noise scale.
    rate : float
        Sampling probability, in [0, 1].
    records : int
        Records in all, the one that is added or removed among them; at least 1.
    batch : int
        The largest batch, at least 1.
    relation : str
        "add-remove" (default), "zero-out" or "replace-one".  A blank record is sampled, and takes
        the place of another, as the record does.

    References
    ----------
    arXiv 2411.04205 and 2508.15089, of which dp-accounting's event has the same two cases.

    Examples
    --------
    >>> from accountant import GaussianLoss, Tight, TruncatedPoisson
    >>> dp_sgd = 100 * TruncatedPoisson(GaussianLoss(1.0), 0.01, records=10_000, batch=150)
    >>> round(Tight().epsilon(dp_sgd, delta=1e-5), 4)
    0.7188
    """

    part: Plan
    rate: float
    records: int
    batch: int
    relation: Adjacency = Adjacency.ADD_REMOVE
    _added: bool = field(default=False, repr=False)  # whether the record is only in Q

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", RATE.check("rate", self.rate))
        object.__setattr__(self, "records", SIZE.check("records", self.records))
        object.__setattr__(self, "batch", SIZE.check("batch", self.batch))
        relation = check_relation("relation", self.relation, SAMPLING_RELATIONS)
        object.__setattr__(self, "relation", relation)
        allowed_relations = {relation} & set(PRESENCE_RELATIONS) | {None, Adjacency.ADD_REMOVE}
        if as_plan(self.part).relation not in allowed_relations:
            reason = "stated for add-remove neighbours: what the presence of one record costs"
            raise ParameterError("part", self.part, reason)
        if not isinstance(loss_of_plan(self.part), GaussianLoss):
            raise ParameterError("part", self.part, "made of Gaussian releases")

    @property
    def mu(self) -> float:
        """The norm of one record's contribution over the noise scale."""
        loss = loss_of_plan(self.part)
        return loss.mu if isinstance(loss, GaussianLoss) else 0.0

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield the loss of the two cases once; no loss at rate 0."""
        if self.rate > 0:
            yield self.choice, 1

    @property
    def choice(self) -> PublicChoice:
        """The two cases, and their chances: the others leave room in the batch, or they fill it."""
        full, rate_if_full = self._chance_of_full_batch()
        cases = [(1 - full, self._sampled(self.mu, self.rate))]
        if full > 0:
            raised_rate = min(rate_if_full * ROUNDED_UP, 1.0)
            # A blank record that takes the place of another one moves the sum by that one alone.
            blank = self.mu if self.relation is Adjacency.ZERO_OUT else 0.0
            cases.append((full, self._sampled(2 * self.mu, raised_rate, blank)))
        cases = [(chance, sampled) for chance, sampled in cases if chance > 0]
        if len(cases) == 1 and full == 0:
            return PublicChoice((cases[0][1],), (1.0,))
        # The attained pair gives the lower end of a certificate, so that its rate is rounded down.
        mean_rate = ((1 - full) * self.rate + full * rate_if_full) * (2 - ROUNDED_UP)
        return PublicChoice(
            tuple(sampled for _, sampled in cases),
            tuple(chance for chance, _ in cases),
            self._sampled(self.mu, mean_rate),
        )

    def _chance_of_full_batch(self) -> tuple[float, float]:
        """Return the chance that others fill the batch, and that the record is in it then."""
        if self.batch >= self.records or self.rate == 0:
            return 0.0, 0.0
        # With k ~ Bin(n - 1, q) others sampled, the record is kept with chance B / (k + 1) where
        # k >= B; the mean of q B / (k + 1) over k >= B is (B / n) P(Bin(n, q) > B).
        n, k = self.records, self.batch
        full = binomial_tail(n - 1, self.rate, k)
        joint_chance = binomial_tail(n, self.rate, k + 1) * k / n
        return full, (joint_chance / full if full > 0 else 0.0)

    def _sampled(self, mu: float, rate: float, blank: float = 0.0) -> MixturePairLoss:
        """Return a sampled Gaussian under the relation, in this direction.

        The record moves the output by ``mu`` where it is sampled.  ``blank`` is by how much the
        blank record moves it, under zero-out neighbours.
        """
        moved = stays = side((0.0, mu), (1 - rate, rate))
        if self.relation in PRESENCE_RELATIONS:
            stays = side((0.0, blank), (1 - rate, rate)) if blank else ORIGIN
        pair = MixturePair(moved, stays)
        return MixturePairLoss(pair.mirrored if self._added else pair)

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the mean of the profiles of both cases."""
        return np.minimum(self.choice.profile(epsilon), 1.0)

    @property
    def reversed(self) -> TruncatedPoisson:
        """The loss with the record only on the other side."""
        sizes = (self.rate, self.records, self.batch)
        return TruncatedPoisson(self.part, *sizes, self.relation, not self._added)

    @property
    def infinity(self) -> float:
        """0: every outcome is possible on both neighbours."""
        return 0.0

    @property
    def max_loss(self) -> float:
        """The largest loss of the two cases."""
        return self.choice.max_loss

    @property
    def rho(self) -> float:
        """The larger rho of the two cases."""
        return self.choice.rho

    @property
    def gdp_mu(self) -> float:
        """The larger mu of the two cases."""
        return self.choice.gdp_mu

    @property
    def numerics(self) -> LossNumerics:
        """Exact cumulants of a bound on many pairs; of the pair itself where no batch is full."""
        return self.choice.numerics

    @property
    def attained_pair(self) -> Loss:
        """The pair of data whose other records contribute nothing."""
        return self.choice.attained_pair

    def renyi(self, order: ArrayLike) -> Array:
        """Return the Rényi divergence of both cases."""
        return self.choice.renyi(order)

    def cumulant(self, z: ArrayLike) -> Any:
        """Return the cumulant of both cases."""
        return self.choice.cumulant(z)


def binomial_tail(n: int, q: float, k: int) -> float:
    """Return P(Bin(n, q) >= k) for 1 <= k <= n and 0 < q <= 1."""
    if q == 1:
        return 1.0
    if k > MAX_SUMMED_BATCH:
        from scipy.special import betainc

        return float(betainc(k, n - k + 1, q))  # P(Bin(n, q) >= k) = I_q(k, n - k + 1)
    # P(Bin = 0), and from one term to the next the factor (n - i) / (i + 1) q / (1 - q).
    term, odds = math.exp(n * math.log1p(-q)), q / (1 - q)
    head = []
    for i in range(k):
        head.append(term)
        term *= (n - i) / (i + 1) * odds
    below = math.fsum(head)
    if below <= 0.5:
        return 1 - below
    tail = []
    for i in range(k, n + 1):  # k is at least the median, so that terms fall.
        tail.append(term)
        term *= (n - i) / (i + 1) * odds
        if term <= 1e-18 * tail[0]:
            break
    return math.fsum(tail)
