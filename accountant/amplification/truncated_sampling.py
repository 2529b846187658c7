"""Poisson sampling with a largest batch: records beyond it are left out at random.

Let K others be sampled, of which the batch B takes the first in a random order.  The bound takes
the order to be seen, and whether K < B - 1: then the record is sampled as usual.  Where K is B - 1
or more, a record that is kept always stands with the first B - 1 others.  What it hides behind are
these B - 1 alone, if K = B - 1, which moves the sum by its own contribution; and the same with one
more, if K >= B, of which it takes the place.  Both are one loss, `FullBatchLoss`.

References: Ganesh, McKenna, Steinke et al. (2024), arXiv 2411.04205, and arXiv 2508.15089, for the
exchange if K >= B; `docs/proofs/truncated_sampling.md`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.amplification.exchanged_record import NO_LOSS
from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.losses.connect_the_dots import FinitePair, pair_above
from accountant.losses.finite import DiscretisedLoss, FiniteLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss, epsilons, single_loss
from accountant.losses.loss_numerics import LossNumerics
from accountant.losses.mixture_of_gaussians import MixturePairLoss
from accountant.losses.mixture_pair import MixturePair
from accountant.losses.normal_mixture import ORIGIN, side
from accountant.losses.public_choice import PublicChoice
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_sum
from accountant.numerics.rounding import MAX_EXPONENT, ULP, round_up
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
TAIL_ERROR = 1e-12  # binomial tails are inexact by about 1e-13 of themselves


@final
@dataclass(frozen=True, slots=True)
class FullBatchLoss(FiniteLoss):
    """The loss of a sampled record that fills the batch, or takes the place of another one.

    The others leave the last place with chance ``last_place``, and else none.  Where their sum is 0
    in the first case, it is up to ``mu`` away from 0 in the second one.  A record that is sampled,
    with chance ``rate``, makes it up to ``mu`` away from 0 in the first case, and with chance
    ``exchanged``, that of the second case and of being kept then, in the second one.  The profile
    is the greatest over all such moves, and the cumulant that of a finite pair above it.
    """

    mu: float
    rate: float
    last_place: float
    exchanged: float
    relation: Adjacency
    added: bool = False  # whether the record is only in Q; under zero-out neighbours, the blank

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the greatest ``c_2 P(Z > t - mu) + c_1 P(Z > t) + c_0 P(Z > t + mu)`` over t.

        The coefficients are those of P - e^eps Q on three normal laws in a row, the record's at
        one end.  At the best t the densities cancel, so that the sum is one of profiles of two of
        the laws each, with positive weights.
        """
        growth = np.expm1(np.minimum(epsilons(epsilon), MAX_EXPONENT))
        delta, square = np.zeros(growth.shape), self.mu * self.mu
        c_2, c_1, c_0 = self.coefficients(growth)
        # A place that only lessens the sum is best put where the last one is.
        is_less = c_2 <= 0
        c_2, c_1, c_0 = np.where(is_less, (c_1, c_0 + c_2, np.zeros_like(c_2)), (c_2, c_1, c_0))
        is_positive = c_2 > 0
        c_2, c_1, c_0 = (c[is_positive] / (1 + growth[is_positive]) for c in (c_2, c_1, c_0))
        # With y = e^{mu t - mu^2 / 2} the densities cancel where c_2 y^2 + c_1 y + c_0 e^{-mu^2} is
        # 0.  The quotient below is the greater solution without cancellation, up to a factor.
        root = np.hypot(c_1, 2 * math.exp(-square / 2) * np.sqrt(c_2) * np.sqrt(-c_0))
        log_y = np.where(
            c_1 > 0,
            np.log(-2 * np.minimum(c_0, -1e-300)) - square - np.log(np.abs(c_1) + root),
            np.log(root + np.abs(c_1)) - np.log(2 * c_2),
        )
        # Of the greatest coefficient the share -c_1 / (c_2 y) pays for the middle law.
        share = np.where(c_1 > 0, 0.0, 2 * np.abs(c_1) / (root + np.abs(c_1)))
        profile = GaussianLoss(self.mu).profile_any_epsilon
        middle = c_2 * share * profile(log_y)
        middle += np.maximum(c_1, 0.0) * profile(square + log_y)
        far = GaussianLoss(2 * self.mu).profile_any_epsilon(square + 2 * log_y)
        delta[is_positive] = (middle + c_2 * (1 - share) * far) * (1 + growth[is_positive])
        return delta

    def coefficients(self, growth: Array) -> tuple[Array, Array, Array]:
        """Return the coefficients of three normal laws in a row in P - e^eps Q.

        Parameters
        ----------
        growth : array
            e^eps - 1, at least 0.

        Returns
        -------
        tuple of array
            That of the law at which the best test begins comes first.
        """
        q, one_left, full = self.rate, self.last_place, 1 - self.last_place
        in_batch, never = q * (one_left + self.exchanged), full - q * self.exchanged
        alike, odds = growth * (1 - q) * one_left, 1 + growth
        rows: tuple[Any, Any, Any]
        match self.relation, self.added:
            case Adjacency.ADD_REMOVE, False:
                rows = in_batch, -alike - q * odds * one_left, -growth * full - q * self.exchanged
            case Adjacency.ADD_REMOVE, True:
                rows = -growth * never + q * self.exchanged, q * one_left - alike, -in_batch * odds
            case Adjacency.REPLACE_ONE, _:
                rows = in_batch, -alike, -in_batch * odds - growth * never
            case _, False:
                rows = in_batch, -in_batch * odds - alike, -growth * never
            case _:
                rows = in_batch - alike, -in_batch * odds - growth * never, 0.0
        c_2, c_1, c_0 = (np.broadcast_to(row, growth.shape) for row in rows)
        return c_2, c_1, c_0

    @property
    def reversed(self) -> FullBatchLoss:
        """The loss with the record only on the other side."""
        if self.relation is Adjacency.REPLACE_ONE:
            return self
        return replace(self, added=not self.added)

    @property
    def infinity(self) -> float:
        """What the profile has beyond the largest exponent of a float."""
        return float(self.profile(np.array(MAX_EXPONENT)))

    @property
    def gdp_mu(self) -> float:
        """That of two contributions, as a record may take the place of an opposite one."""
        return GaussianLoss(2 * self.mu).gdp_mu

    @property
    def rho(self) -> float:
        """That of two contributions."""
        return GaussianLoss(2 * self.mu).rho

    @property
    def max_loss(self) -> float:
        """The largest loss: finite where the record is only added, at a rate below 1."""
        is_added = self.relation is Adjacency.ADD_REMOVE and self.added and self.rate < 1
        return round_up(-math.log1p(-self.rate)) if is_added else math.inf

    def without_rare_losses(self, mass: float) -> Loss:
        """Return a finite loss above this one, whose losses of at most ``mass`` are infinite."""
        loss, masses = self.loss_pmf  # by growing loss
        tail = np.cumsum(masses[::-1])[::-1]
        size = max(int(np.count_nonzero(tail > mass)), 1)
        infinity = self.infinity + float(tail[size:][:1].sum()) * (1 + loss.size * ULP)
        return DiscretisedLoss(loss[:size], masses[:size], infinity)

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """The losses and masses of the finite pair above the profile."""
        pair = finite_pair_above(self)
        return pair.loss, pair.mass

    def edges(self, test: Array) -> Array:
        """Return epsilons of at least 0 at which a best test is the half-line from ``test``.

        Parameters
        ----------
        test : array
            Where the half-line begins, in a row of normal laws at mu, 0 and -mu.

        Returns
        -------
        array
            In no order.
        """
        at_0, at_1 = (np.array(self.coefficients(growth)) for growth in (np.zeros(1), np.ones(1)))
        places, edges = np.array([self.mu, 0.0, -self.mu]), []
        # With the first place where it is, and where the last one is.
        for own_place in (0, 2):
            at = places[[own_place, 1, 2]]
            exponents = np.multiply.outer(at, test) - (at * at / 2)[:, None]
            density = np.exp(exponents - np.max(exponents, axis=0))
            # Coefficients are linear in e^eps - 1.
            constant, falls = (ordered_sum(c[:, 0], density) for c in (at_0, at_0 - at_1))
            has_edge = (constant >= 0) & (falls > 1e-300)
            edges.append(np.log1p(constant[has_edge] / falls[has_edge]))
        return np.concatenate(edges)


@functools.lru_cache(maxsize=64)
def finite_pair_above(loss: FullBatchLoss) -> FinitePair:
    """Return a finite pair above a loss, with a value for each of many outputs."""
    far = loss.mu + 12.0
    test = np.concatenate([np.linspace(-far, far, 4000), np.linspace(far, far + 26, 200)])
    points = np.unique(np.concatenate([[0.0], loss.edges(test), -loss.reversed.edges(test)]))
    return pair_above(loss.profile_any_epsilon, points)


@final
@dataclass(frozen=True, slots=True)
class TruncatedPoisson(Loss):
    """A Gaussian release from a Poisson sample of at most ``batch`` records.

    Every record is sampled with probability ``rate``; of a sample of more than ``batch`` records
    that many are kept, at random.  An upper bound: whether the other records leave more than one
    place in the batch is taken to be seen.  If they do, the record is sampled as usual.  If not, it
    takes the last place or that of another record, which moves the sum by up to twice its own
    contribution, and it is not seen which.  The lower end of a certificate is that of data whose
    other records contribute nothing.

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
        """The cases, and their chances: room for more records, or for one at most."""
        sampled, (room, last_place, chance_kept, cut) = self._sampled(self.rate), self._chances()
        if chance_kept == 0 or self.mu == 0:
            return PublicChoice((sampled,), (1.0,))
        in_full = last_place + chance_kept + cut
        shares = last_place / in_full, chance_kept / in_full
        added = self._added and self.relation is not Adjacency.REPLACE_ONE  # which is symmetric
        full = FullBatchLoss(self.mu, self.rate, *shares, self.relation, added)
        cases = [(room, sampled), (in_full, full)]
        if self.mu > math.sqrt(MAX_EXPONENT) or full.infinity > 0:
            # Great losses are no exponents of floats: it is taken to be seen if others fill the
            # batch, and then the record takes the place of another one.
            rate = self.rate * chance_kept / (chance_kept + cut)
            moved = stays = side((0.0, 2 * self.mu), (1 - rate, rate))
            if self.relation is Adjacency.ADD_REMOVE:
                stays = ORIGIN
            elif self.relation is Adjacency.ZERO_OUT:  # a blank takes the place of another one
                stays = side((0.0, self.mu), (1 - rate, rate))
            pair = MixturePair(moved, stays)
            exchanged = MixturePairLoss(pair.mirrored if self._added else pair)
            cases = [(room + last_place, sampled), (chance_kept + cut, exchanged)]
        chances, losses = zip(*((c, loss) for c, loss in cases if c > 0), strict=True)
        # The attained pair gives the lower end of a certificate, so that its rate is rounded down.
        in_batch = max(1 - cut - 8 * TAIL_ERROR * (1 - room), 0.0)
        attained = self._sampled(self.rate * in_batch * (1 - 4 * ULP))
        return PublicChoice(losses, chances, attained)

    def _sampled(self, rate: float) -> Loss:
        """Return what the record costs in a Poisson sample, in this direction."""
        part = GaussianLoss(self.mu)
        losses = PoissonSampled(part, rate, self.relation, self._added).losses()
        return next((single_loss(item) for item, _ in losses), NO_LOSS)

    def _chances(self) -> tuple[float, float, float, float]:
        """Return the chances of the cases of a record that is sampled, rounded towards privacy.

        The others leave room for more than one record; for one, the last; or for none, and then
        the record is kept, or cut.
        """
        n, batch = self.records, self.batch
        if batch >= n or self.rate == 0:
            return 1.0, 0.0, 0.0, 0.0
        # With k ~ Bin(n - 1, q) others sampled, the record is kept with chance B / (k + 1) where
        # k >= B; the mean of q B / (k + 1) over k >= B is (B / n) P(Bin(n, q) > B).
        full = binomial_tail(n - 1, self.rate, batch)
        one_place = binomial_tail(n - 1, self.rate, batch - 1) if batch > 1 else 1.0
        chance_kept = binomial_tail(n, self.rate, batch + 1) * batch / n / self.rate
        # What is lost of the last place goes to the cases around it; what is not kept is less.
        low, high = one_place * (1 - TAIL_ERROR), full * (1 + TAIL_ERROR)
        high = min(low, high)
        chance_kept = min(chance_kept + 4 * TAIL_ERROR * full, high)
        return 1 - low, low - high, chance_kept, high - chance_kept

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
