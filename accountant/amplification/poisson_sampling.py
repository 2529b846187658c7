"""Poisson sampling: a release sees a random sample of the records, so each one pays less.

The *part* is the release on the sample.  With P and Q the laws of its outputs with and without a
record in the sample, and q the rate, the output has the law P' = (1 - q) Q + q P on data with the
record, and Q on data without it.  The pair P' against Q (`_RecordRemoved`) has the loss
ln(1 - q + q e^L), L = ln P/Q; the pair Q against P' (`_RecordAdded`) has minus that loss, of an
output from Q.  A record that is exchanged has a pair of its own (`exchanged_record`).  Losses are
infinite where the other law has no mass; the first law's mass there is the ``infinity``.

References: Balle, Barthe & Gaboardi (2018), Theorems 8 and 11; Zhu, Dong & Wang (2022),
Theorem 11 (Poisson sampling of any dominating pair); Ullman (2017) for pure losses; Mironov, Talwar
& Zhang (2019) for the Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.amplification.exchanged_record import exchanged_loss
from accountant.amplification.sampled_cgf import SampledCGF
from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian
from accountant.amplification.sampled_gaussian.sampled_gaussian_renyi import SampledGaussianRenyi
from accountant.amplification.sampled_ratio_cgf import (
    MAX_SHIFT,
    SampledRatioCGF,
    SampledRatioLaw,
)
from accountant.amplification.sampled_renyi import is_known_by_its_curve, sampled_divergence
from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import POSITIVE, Interval
from accountant.errors import ParameterError
from accountant.losses.cell_masses import CellMasses
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.least_rho import rho_of_bounded
from accountant.losses.loss import Loss, epsilons, exact_cgf, orders
from accountant.losses.loss_numerics import LossNumerics
from accountant.numerics import Array
from accountant.numerics.logspace import inverse_log_mixture, log_mixture
from accountant.numerics.rounding import ULP, round_up, round_up_product
from accountant.plans.adjacency import (
    PRESENCE_RELATIONS,
    SAMPLING_RELATIONS,
    Adjacency,
    check_relation,
)
from accountant.plans.declared_releases import declare_release
from accountant.plans.plan import Item, Plan, as_plan

RATE = Interval(0.0, 1.0)
# A rate above 0 and below this one is charged like this one, which costs more: the reciprocal of a
# smaller one may overflow.
LEAST_RATE = POSITIVE.low
CGF = SampledCGF()  # exact cumulants of samples of Gaussian parts, and of parts with finite losses
RATIO_CGF = SampledRatioCGF()  # of parts whose loss has a density


@final
@declare_release
@dataclass(frozen=True, slots=True)
class PoissonSampled(Loss):
    """A plan on a sample that holds every record independently with probability ``rate``.

    For add-remove neighbours P has the record and Q has not.  A part with several releases sees
    one and the same sample.

    For replace-one neighbours the record is exchanged for another, sampled by the same coin.  State
    the part by what one record's presence costs, not by what an exchange costs: for contributions
    of norm at most C and noise of deviation s by ``GaussianLoss(C / s)``, though two of them may
    differ by 2 C.  The loss is then that of the worst two records.  A part that is itself stated
    for replace-one neighbours does not say what a sample without either record looks like: no more
    is known than that delta falls by the factor ``rate``, at the same epsilon.

    Parameters
    ----------
    part : Plan
        What is released from the sample.
    rate : float
        Sampling probability, in [0, 1].
    relation : str
        "add-remove" (default), "zero-out" or "replace-one".  The first two cost the same: whether
        the other records are drawn does not depend on the record.

    Examples
    --------
    >>> from accountant import GaussianLoss, PoissonSampled, Tight
    >>> dp_sgd = 15_000 * PoissonSampled(GaussianLoss(1 / 0.8), rate=0.004)
    >>> round(Tight().epsilon(dp_sgd, delta=1e-5), 6)
    4.379474
    """

    part: Plan
    rate: float
    relation: Adjacency = Adjacency.ADD_REMOVE
    # Whether the pair is Q against P': the direction in which the record is added.
    _added: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", RATE.check("rate", self.rate))
        relation = check_relation("relation", self.relation, SAMPLING_RELATIONS)
        object.__setattr__(self, "relation", relation)
        stated = as_plan(self.part).relation  # `as_plan` refuses what is no plan
        # A part that is stated for a blank record does not say what a missing one costs.
        if stated not in (None, Adjacency.ADD_REMOVE, relation):
            reason = (
                "stated for add-remove neighbours: Poisson sampling compares the data with and "
                f"without a record, and a part stated for {stated!r} does not say what that costs"
            )
            raise ParameterError("part", self.part, reason)

    @property
    def loss(self) -> Loss:
        """The loss of the part for a record that is in the sample."""
        return loss_of_plan(self.part)

    @property
    def exchanged(self) -> Loss | None:
        """The loss under replace-one neighbours; None under add-remove and zero-out ones."""
        if self.relation in PRESENCE_RELATIONS:
            return None
        compares_two_records = self.part.relation is Adjacency.REPLACE_ONE
        loss = exchanged_loss(self.loss, self.rate, part_is_exchanged=compares_two_records)
        return loss.reversed if self._added else loss

    @property
    def _pair(self) -> Loss | _RecordRemoved | _RecordAdded:
        """The case: a record that is exchanged, added or removed."""
        if self.exchanged is not None:
            return self.exchanged
        return (_RecordAdded if self._added else _RecordRemoved)(self.loss, self.rate)

    @property
    def sampler(self) -> PoissonSampled:
        """This plan: it draws the sample."""
        return self

    def select(self, users: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Return a secret Poisson sample of the users.

        Parameters
        ----------
        users : int
            Number of users.
        rng : numpy.random.Generator
            The ledger's noise generator.

        Returns
        -------
        array of int
            Indices of the sampled users, each kept with probability ``rate`` at most, whatever the
            last bits of the draws.
        """
        # A draw is a multiple of 2^-53 below 1.
        return np.flatnonzero(rng.random(users) + 2.0**-53 <= self.rate)

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield this loss once; nothing at rate 0, and the loss of the part at rate 1.

        A sample of a Poisson sample is one sample, at the product of the rates.
        """
        if self.rate == 0:
            return
        if self.exchanged is not None:
            yield self.exchanged, 1
        elif self.rate == 1:
            yield (self.loss.reversed if self._added else self.loss), 1
        elif self.rate < LEAST_RATE:
            yield from PoissonSampled(self.part, LEAST_RATE, self.relation, self._added).losses()
        else:
            match list(self.part.losses()):
                # One Poisson sample that has the record where P has it.
                case [(PoissonSampled(_added=False) as inner_sample, 1)]:
                    rate = max(round_up_product(self.rate, inner_sample.rate), LEAST_RATE)
                    yield PoissonSampled(inner_sample.part, rate, self.relation, self._added), 1
                case _:
                    yield self, 1

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return delta of the pair at each epsilon: 0 at rate 0."""
        e = epsilons(epsilon)
        return self._pair.profile(e) if self.rate > 0 else np.zeros(e.shape)

    def profile_any_epsilon(self, epsilon: Array) -> Array:
        """Return the profile at any real epsilon, from the part's one at any real epsilon.

        A part whose profile takes long has a quicker one there, for sums of losses.
        """
        if self.exchanged is not None or not self.rate or not self.loss.numerics.is_coarse:
            return Loss.profile_any_epsilon(self, epsilon)
        # delta(-e) = 1 - e^-e + e^-e delta_reversed(e), as in the base class
        pair, reversed_pair = (
            _RecordRemoved(self.loss, self.rate),
            _RecordAdded(self.loss, self.rate),
        )
        pairs = (reversed_pair, pair) if self._added else (pair, reversed_pair)
        size, is_positive = np.abs(epsilon), np.asarray(epsilon) >= 0
        delta, below = np.empty(np.shape(epsilon)), size[~is_positive]
        delta[is_positive] = pairs[0].profile(size[is_positive], in_sum=True)
        reversed_delta = pairs[1].profile(below, in_sum=True)
        delta[~is_positive] = -np.expm1(-below) + np.exp(-below) * reversed_delta
        return delta

    def is_surely_within(self, epsilon: float, delta: float) -> bool:
        """Return whether a quick bound on the part shows that ``delta`` is enough at ``epsilon``.

        It has an answer where the record is added: see `_RecordAdded.profile`.
        """
        if not self._added or self.exchanged is not None or epsilon > 700:
            return False
        factor = self.rate - (1 - self.rate) * math.expm1(epsilon)
        if factor <= 0:
            return False
        # less epsilon and less delta than those of the part, by more than round-off
        part_epsilon = math.log1p(math.expm1(epsilon) / factor) * (1 - 1e-12)
        return self.loss.reversed.is_surely_within(part_epsilon, delta / factor * (1 - 1e-12))

    @property
    def reversed(self) -> PoissonSampled:
        """The loss with the record only on the other side."""
        return PoissonSampled(self.part, self.rate, self.relation, not self._added)

    @property
    def infinity(self) -> float:
        """The mass at infinity: that of the part times the rate, where it stays infinite."""
        return self._pair.infinity

    @property
    def max_loss(self) -> float:
        """The largest finite loss.

        It is ``ln(1 + q (e^b - 1))`` with b that of the part; at most ``-ln(1 - q)`` if added.
        """
        return self._pair.max_loss

    @property
    def rho(self) -> float:
        """The lesser of two bounds: that of its own curve, and the greater rho of the part."""
        if self.exchanged is not None:
            return self.exchanged.rho
        if self._infinity_becomes_finite:
            return rho_of_bounded(self)
        return min(rho_of_bounded(self), max(self.loss.rho, self.loss.reversed.rho))

    @property
    def _infinity_becomes_finite(self) -> bool:
        """Whether infinite losses, which the part's divergences leave out, are finite here."""
        return self._added and self.loss.reversed.infinity > 0

    def renyi(self, order: ArrayLike) -> Array:
        """Return the least of the bounds that are known for the part.

        These are the part's own divergence, a bound from its Rényi curve (`sampled_divergence`),
        and the divergence that is computed from the sampled loss itself.
        """
        if self.exchanged is not None:
            return self.exchanged.renyi(order)
        a, loss = orders(order), self.loss
        if isinstance(loss, GaussianLoss):
            curve = SampledGaussianRenyi(loss.mu, self.rate, self._added)
            return np.minimum(curve.divergence(a), loss.renyi(a))
        # Moments are convex: that of a mixture of P and Q is at most the greater of the part's own
        # and of 1, the moment of Q against Q.  The part's may be below 1, and so the divergence
        # below 0, as it leaves out the outcomes that only one of the data sets can have.
        bound = np.maximum(np.maximum(loss.renyi(a), loss.reversed.renyi(a)), 0.0)
        if self._infinity_becomes_finite:
            bound = np.full(a.shape, self.max_loss)
        if 0 < self.rate < 1 and is_known_by_its_curve(self.part):
            bound = np.minimum(bound, sampled_divergence(loss, self.rate, a, added=self._added))
        if not self.numerics.has_exact_cgf:
            return np.minimum(Loss.renyi(self, a), bound)
        bound = np.minimum(bound, self.max_loss)
        value, error = exact_cgf(self).sum_cgf([self], np.ones(1), (a - 1).astype(complex))
        if self.loss_pmf is not None:
            # The masses themselves are mixed with round-off, and sum to about 1.
            error = error + 4 * ULP
        with np.errstate(invalid="ignore"):
            moment = np.where(np.isfinite(value.real), (value.real + error) / (a - 1), np.inf)
        return np.minimum(moment, bound)

    @property
    def numerics(self) -> LossNumerics:
        """Those of the part, but exact cumulants: Gaussian and finite parts have them."""
        if self.exchanged is not None:
            return self.exchanged.numerics
        part = self.loss.numerics
        exact = isinstance(self.loss, GaussianLoss) or self.loss_pmf is not None
        ratio_method = RATIO_CGF if self.sampled_ratio_law is not None else None
        return LossNumerics(
            CGF if exact else ratio_method,
            is_upper_envelope=part.is_upper_envelope,
            is_numerical=part.is_numerical,
            discretisation_points=part.discretisation_points,
            grid_points=part.grid_points,
        )

    @property
    def attained_pair(self) -> Loss:
        """The sampled loss of the pair that the part attains."""
        if self.exchanged is not None:
            return self.exchanged.attained_pair
        loss = self.loss
        pair = loss.attained_pair
        return self if pair is loss else PoissonSampled(pair, self.rate, self.relation, self._added)

    @property
    def loss_pmf(self) -> tuple[Array, Array] | None:
        """The finite losses and their masses, where the part has finitely many; else None."""
        return self._pair.loss_pmf

    def cell_masses(self, edges: Array) -> CellMasses | None:
        """Return the masses of the sampled loss between edges, from those of the part's loss."""
        return self._pair.cell_masses(edges)

    def cumulant(self, z: ArrayLike) -> Any:
        """Return the cumulant, by quadrature over the output, a finite sum, or the profile."""
        if self.exchanged is not None:
            return self.exchanged.cumulant(z)
        s = np.asarray(z, dtype=complex)
        if not self.numerics.has_exact_cgf:
            return Loss.cumulant(self, s)
        return exact_cgf(self).sum_cgf([self], np.ones(1), s)[0][()]

    @property
    def sampled_gaussian(self) -> SampledGaussian | None:
        """The sampled Gaussian pair where the part is Gaussian; else None."""
        inner = self.loss
        if not isinstance(inner, GaussianLoss):
            return None
        return SampledGaussian(inner.mu, self.rate, self._added)

    @property
    def sampled_ratio_law(self) -> SampledRatioLaw | None:
        """The sampled law of the part's log-ratio where that has a density; else None."""
        law = self.loss.ratio_law
        if law is None or law.high > MAX_SHIFT or not self.rate > 0:
            return None
        return SampledRatioLaw(law, self.rate, self._added)


@dataclass(frozen=True, slots=True)
class _RecordRemoved:
    """The pair P' against Q: only the first data have the record."""

    loss: Loss  # of the part, P against Q
    rate: float

    def profile(self, e: Array, *, in_sum: bool = False) -> Array:
        """Return ``q delta(e)``, e = ln(1 + (e^eps - 1) / q) and delta the profile of the part.

        For P' - e^eps Q = q (P - e^e Q).
        """
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            profile = self.loss.profile_any_epsilon if in_sum else self.loss.profile
            return self.rate * profile(inverse_log_mixture(e, self.rate))

    @property
    def infinity(self) -> float:
        return self.rate * self.loss.infinity

    @property
    def max_loss(self) -> float:
        return sampled_max_loss(self.loss.max_loss, self.rate)

    @property
    def loss_pmf(self) -> tuple[Array, Array] | None:
        outcomes = _sampled_outcomes(self.loss, self.rate)
        return None if outcomes is None else (outcomes.loss, outcomes.p)

    def cell_masses(self, edges: Array) -> CellMasses | None:
        return sampled_cell_masses(self.loss, self.rate, edges)


@dataclass(frozen=True, slots=True)
class _RecordAdded:
    """The pair Q against P': only the second data have the record."""

    loss: Loss  # of the part, P against Q
    rate: float

    def profile(self, e: Array, *, in_sum: bool = False) -> Array:
        """Return ``f delta_reversed(ln(q e^eps / f))``, or 0 where f is not positive.

        f is 1 - (1 - q) e^eps, and delta_reversed the profile of Q against P.  For
        Q - e^eps P' = f Q - q e^eps P.
        """
        q = self.rate
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            factor = q - (1 - q) * np.expm1(e) if q < 1 else np.ones(e.shape)
            is_positive = factor > 0
            divisor = np.where(is_positive, factor, 1.0)
            # ln(q e^eps / f) = ln(1 + (e^eps - 1) / f).  e^eps overflows at 709.  Below rate 1 the
            # factor is positive up to -ln(1 - q) < 37 alone; at rate 1 the profile at 700 bounds it
            # beyond.
            growth = np.where(is_positive, np.expm1(np.minimum(e, 700.0)), 0.0)
            part = self.loss.reversed
            profile = part.profile_any_epsilon if in_sum else part.profile
            part_profile = profile(np.log1p(growth / divisor))
            return np.where(is_positive, divisor * part_profile, 0.0)

    @property
    def infinity(self) -> float:
        return self.loss.reversed.infinity if self.rate == 1 else 0.0

    @property
    def max_loss(self) -> float:
        largest = -math.log1p(-self.rate) if self.rate < 1 else math.inf
        if self.loss.reversed.infinity:  # an outcome that only the data without it can have
            return round_up(largest)
        # Minus the largest loss is the least loss of the removed record.
        lowest = sampled_max_loss(-self.loss.reversed.max_loss, self.rate)
        return max(0.0, min(round_up(largest), -lowest))

    @property
    def loss_pmf(self) -> tuple[Array, Array] | None:
        outcomes = _sampled_outcomes(self.loss, self.rate)
        if outcomes is None:
            return None
        has_mass = outcomes.q > 0  # it may be too small for a float
        return -outcomes.loss[has_mass], outcomes.q[has_mass]

    def cell_masses(self, edges: Array) -> CellMasses | None:
        # This pair's first law is the second one of the removed record, and its loss is negated.
        removed = sampled_cell_masses(self.loss, self.rate, -edges[::-1])
        if removed is None:
            return None
        p, q = removed.q[::-1], removed.p[::-1]
        if edges[0] == -np.inf:  # the first cell also has what only data with the record can have
            q = np.append(q[0] + self.rate * self.loss.infinity, q[1:])
        return CellMasses(p, q, removed.q_error[::-1], removed.p_error[::-1], removed.edge_error)


class _Outcomes(NamedTuple):
    """The outcomes of a sampled part whose loss ln(P' / Q) is finite."""

    loss: Array  # ln(1 - q + q e^L)
    p: Array  # their masses under P' = (1 - q) Q + q P
    q: Array  # and under Q


def _sampled_outcomes(loss: Loss, rate: float) -> _Outcomes | None:
    """Return the outcomes of a part with finitely many losses, sampled at a rate; else None."""
    if loss.numerics.is_upper_envelope or loss.loss_pmf is None or loss.reversed.loss_pmf is None:
        return None
    # Of losses above 0 the masses of P are read, of those below 0 the masses of Q: the other one
    # may be too small for a float.
    ratio, p = loss.loss_pmf
    opposite, q = loss.reversed.loss_pmf
    above, below = ratio >= 0, opposite > 0
    ratio, p, q = np.append(-opposite[below], ratio[above]), p[above], q[below]
    ratio_of_q, ratio_of_p = np.exp(ratio[: q.size]), np.exp(-ratio[q.size :])
    sampled = log_mixture(ratio, rate)
    sampled_p = np.append(q * (1 - rate + rate * ratio_of_q), p * (rate + (1 - rate) * ratio_of_p))
    q = np.append(q, p * ratio_of_p)
    q_alone = loss.reversed.infinity  # the mass of Q where P has none: there P' is (1 - rate) Q
    if q_alone and rate < 1:
        sampled = np.append(sampled, math.log1p(-rate))
        sampled_p, q = np.append(sampled_p, q_alone * (1 - rate)), np.append(q, q_alone)
    return _Outcomes(sampled, sampled_p, q)


def sampled_cell_masses(loss: Loss, rate: float, edges: Array) -> CellMasses | None:
    """Return the masses of ``ln(1 - rate + rate e^L)`` between edges, the record present."""
    part_edges = inverse_log_mixture(edges, rate)
    part = loss.cell_masses(part_edges)
    if part is None:
        return None
    # P' = (1 - rate) Q + rate P.  Its 4 ULP are more than the roundings of 1 - rate, the products
    # and the sum together.
    p = (1 - rate) * part.q + rate * part.p
    p_error = (1 - rate) * part.q_error + rate * part.p_error + 4 * ULP * p
    # An edge of the part's loss errs by at most five roundings, of an ULP of 1 + its size each; 8
    # are taken.  The edge itself errs by the slope of the mixture times as much, which is
    # 1 - (1 - rate) e^-edge, at most |1 - e^-edge| + rate e^-edge.
    is_finite = np.isfinite(edges) & np.isfinite(part_edges)
    finite_edges = edges[is_finite]
    size = float(np.max(np.abs(part_edges[is_finite]), initial=0.0))
    with np.errstate(over="ignore"):
        slopes = np.abs(np.expm1(-finite_edges)) + rate * np.exp(-finite_edges)
    largest_slope = float(np.max(np.minimum(slopes, 1.0), initial=0.0))
    edge_error = largest_slope * (8 * ULP * (1 + size) + part.edge_error)
    return CellMasses(p, part.q, p_error, part.q_error, edge_error)


def sampled_max_loss(max_loss: float, rate: float) -> float:
    """Return ``ln(1 + rate (e^bound - 1))``, rounded away from 0."""
    if max_loss == math.inf:
        return math.inf
    if max_loss == -math.inf:
        mixed = math.log1p(-rate) if rate < 1 else -math.inf
    else:
        mixed = float(log_mixture(np.array(max_loss), rate)) if max_loss else 0.0
    # 16 ULP, as `log_mixture` errs by a few ULP of itself
    return math.copysign(round_up(abs(mixed), 16), mixed)
