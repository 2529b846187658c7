"""The loss of a release whose kind is drawn by a public coin: one of several losses is paid.

Part i has chance w_i, whatever the data are, and everybody sees which part was drawn.  So the
profile, delta as a function of epsilon, is the weighted mean of the parts' profiles.  With the
cumulants K_i(z) = ln E e^{zL_i} of their losses, the moment e^{K(z)} is the weighted mean of the
e^{K_i(z)}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.losses.cell_masses import CellMasses
from accountant.losses.least_rho import rho_of_bounded
from accountant.losses.loss import Loss, epsilons, exact_cgf, orders
from accountant.losses.loss_numerics import ExactCGF, LossNumerics
from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import complex_power
from accountant.numerics.logspace import logsumexp
from accountant.numerics.ordered_sums import ordered_dot, ordered_sum, sum_with_errors
from accountant.numerics.rounding import ULP

# A bound on the relative error of the chances that are given; it is added to the errors of moments
# and masses.  Chances sum to 1, so that one of them is no more inexact than the others together.
CHANCE_ERROR = 1e-12


@final
class PublicChoiceCGF(ExactCGF["PublicChoice"]):
    """``ln sum_i w_i e^{K_i(z)}``, from the cumulants of the parts."""

    def sum_cgf(self, losses: Sequence[PublicChoice], counts: Array, z: Any) -> tuple[Any, Array]:
        """Return the sum of the cumulants, and a bound on its error."""
        return sum_with_errors((_cgf(loss, z) for loss in losses), counts, z)

    def cf_ratios(
        self, losses: Sequence[PublicChoice], counts: Array, z: Complex
    ) -> tuple[Complex, Array]:
        """Return the product of the means of the parts' ratios, and a bound on its error."""
        a, product, total_error = (
            float(z[0, 0].real),
            np.ones(z.shape, dtype=complex),
            np.zeros(z.shape),
        )
        for loss, count in zip(losses, counts.tolist(), strict=True):
            chances, chance_error = _tilted_chances(loss, a)
            ratio, error = np.zeros(z.shape, dtype=complex), np.full(z.shape, chance_error)
            for part, chance in zip(loss.parts, chances.tolist(), strict=True):
                part_ratio, part_error = exact_cgf(part).cf_ratios([part], np.ones(1), z)
                ratio += chance * part_ratio
                error += chance * part_error
            # No factor is above 1, so that errors add.
            product = product * complex_power(ratio, int(count))
            total_error += count * (error + 16 * ULP)
        return product, total_error

    def log_cf_bounds(
        self, losses: Sequence[PublicChoice], counts: Array, a: float, u: Array
    ) -> Array:
        """Return the bounds of the parts, weighted by their tilted chances."""
        total = np.zeros(u.shape)
        for loss, count in zip(losses, counts.tolist(), strict=True):
            log_chance = np.log(_tilted_chances(loss, a)[0])
            bounds = [
                exact_cgf(part).log_cf_bounds([part], np.ones(1), a, u) + log_chance[i]
                for i, part in enumerate(loss.parts)
            ]
            # 1e-12 is for the round-off of the chances
            total += count * np.minimum(logsumexp(np.array(bounds), axis=0) + 1e-12, 0.0)
        return total

    def quadrature_terms(self, loss: PublicChoice, frequency: float) -> float:
        """Return the terms of all parts."""
        return sum(exact_cgf(part).quadrature_terms(part, frequency) for part in loss.parts)


CGF = PublicChoiceCGF()


@final
@dataclass(frozen=True, slots=True)
class PublicChoice(Loss):
    """One of several losses, the i-th with chance ``weights[i]``, and it is seen which.

    Which part is drawn has the same law on both neighbours, so profiles and moments are means.
    Where in truth it is not seen which, they are bounds; ``attained`` is then the loss of one pair
    of data sets that does occur, for lower ends.
    """

    parts: tuple[Loss, ...]
    weights: tuple[float, ...]
    attained: Loss | None = None

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the mean of the profiles."""
        e = epsilons(epsilon)
        mean: Array = sum(
            (w * part.profile(e) for part, w in zip(self.parts, self.weights, strict=True)),
            np.zeros(e.shape),
        )
        return mean

    @property
    def reversed(self) -> PublicChoice:
        """The same choice with every loss reversed."""
        attained = None if self.attained is None else self.attained.reversed
        return PublicChoice(tuple(part.reversed for part in self.parts), self.weights, attained)

    @property
    def infinity(self) -> float:
        """The mean of the masses at infinity."""
        weighted = zip(self.parts, self.weights, strict=True)
        return sum(w * part.infinity for part, w in weighted)

    @property
    def max_loss(self) -> float:
        """The largest finite loss of a part."""
        return max(part.max_loss for part in self.parts)

    @property
    def rho(self) -> float:
        """The largest rho of a part, as divergences are quasi-convex, or that of the own curve."""
        return min(max(part.rho for part in self.parts), rho_of_bounded(self))

    @property
    def gdp_mu(self) -> float:
        """The largest mu of a part."""
        return max(part.gdp_mu for part in self.parts)

    def renyi(self, order: ArrayLike) -> Array:
        """Return ``ln sum_i w_i e^{(a-1) D_i} / (a - 1)``."""
        a = orders(order) - 1
        moments = [
            np.log(w) + a * part.renyi(a + 1)
            for part, w in zip(self.parts, self.weights, strict=True)
        ]
        total = logsumexp(np.array(moments), axis=0)
        divergence: Array = np.maximum(total + 16 * ULP * (1 + np.abs(total)), 0.0) / a
        return divergence

    @property
    def numerics(self) -> LossNumerics:
        """Exact cumulants where all parts have them."""
        numerics = [part.numerics for part in self.parts]
        exact = all(part_numerics.has_exact_cgf for part_numerics in numerics)
        has_envelope = self.attained is not None or any(
            part_numerics.is_upper_envelope for part_numerics in numerics
        )
        return LossNumerics(
            CGF if exact else None,
            has_envelope,
            any(part_numerics.is_numerical for part_numerics in numerics),
        )

    @property
    def attained_pair(self) -> Loss:
        """The pair that is known to be attained, or the choice among those of the parts."""
        if self.attained is not None:
            return self.attained
        if not self.numerics.is_upper_envelope:
            return self
        return PublicChoice(tuple(part.attained_pair for part in self.parts), self.weights)

    def without_rare_losses(self, mass: float) -> Loss:
        """Return the choice of parts without their rare losses, of at most ``mass`` in all."""
        share = mass / len(self.parts)
        weighted = zip(self.parts, self.weights, strict=True)
        parts = tuple(part.without_rare_losses(share / w) for part, w in weighted)
        return replace(self, parts=parts)

    @property
    def loss_pmf(self) -> tuple[Array, Array] | None:
        """The finite losses of all parts, where there are finitely many."""
        optional_pmfs = [part.loss_pmf for part in self.parts]
        pmfs = [pmf for pmf in optional_pmfs if pmf is not None]
        if len(pmfs) < len(optional_pmfs):
            return None
        weighted = zip(pmfs, self.weights, strict=True)
        return (
            np.concatenate([loss for loss, _ in pmfs]),
            np.concatenate([w * mass for (_, mass), w in weighted]),
        )

    def cell_masses(self, edges: Array) -> CellMasses | None:
        """Return the means of the masses of the parts."""
        optional_masses = [part.cell_masses(edges) for part in self.parts]
        masses = [part_masses for part_masses in optional_masses if part_masses is not None]
        if len(masses) < len(optional_masses):
            return None
        w = np.array(self.weights)
        rows = [np.array([part_masses[i] for part_masses in masses]) for i in range(4)]
        p, q, p_error, q_error = (ordered_sum(w, row) for row in rows)
        p_error, q_error = (
            error + ordered_sum(w * _chance_errors(self), row)
            for error, row in ((p_error, rows[0]), (q_error, rows[1]))
        )
        error = max(part_masses.edge_error for part_masses in masses)
        return CellMasses(p, q, p_error, q_error, error)

    def cumulant(self, z: ArrayLike) -> Any:
        """Return ``ln sum_i w_i e^{K_i(z)}``."""
        s = np.asarray(z, dtype=complex)
        if not self.numerics.has_exact_cgf:
            return Loss.cumulant(self, s)
        return _cgf(self, s)[0][()]


def _tilted_chances(loss: PublicChoice, a: float) -> tuple[Array, float]:
    """Return the chances of the parts under the tilted law, and a bound on all their errors.

    That of part i is ``w_i e^{K_i(a)}`` over the sum of these: the ratio E e^{zL} / E e^{aL} is the
    mean of the parts' ratios with these chances.
    """
    cumulants = _parts_at(loss, np.array([a]))
    heights, errors = (np.array(column)[:, 0] for column in zip(*cumulants, strict=True))
    chance = np.exp(np.log(loss.weights) + heights - np.max(heights))
    chance /= chance.sum()
    # Each is inexact by its own share of errors, and by that of the sum, the mean of the shares.
    share = errors + _chance_errors(loss) + 8 * ULP * (1 + np.abs(heights))
    return chance, 2 * float(ordered_dot(chance, share))


def _chance_errors(loss: PublicChoice) -> Array:
    """Return bounds on the relative errors of the chances."""
    w = np.array(loss.weights)
    errors: Array = CHANCE_ERROR * np.minimum(w, 1 - w) / w + 2 * ULP
    return errors


def _parts_at(loss: PublicChoice, z: Any) -> list[tuple[Any, Array]]:
    """Return the cumulants of the parts, and their errors."""
    return [exact_cgf(part).sum_cgf([part], np.ones(1), z) for part in loss.parts]


def _cgf(loss: PublicChoice, z: Any) -> tuple[Any, Array]:
    """Return the cumulant of one loss, and a bound on its error."""
    cumulants = _parts_at(loss, z)
    # Terms are relative to the largest part.  The sum is infinite where a part is.
    top = np.max([value.real for value, _ in cumulants], axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    weights = np.array(loss.weights)
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.array([np.exp(value - top) for value, _ in cumulants])
        total = ordered_sum(weights, terms)
        errors = np.array([np.expm1(np.minimum(error, 1.0)) for _, error in cumulants])
        errors += _chance_errors(loss).reshape(-1, *(1,) * np.ndim(z))
        error = ordered_sum(weights, np.abs(terms) * errors)
        value = top + np.log(total)
        log_error = error / np.abs(total) + 8 * ULP * (1 + np.abs(value))
    # Out of reach of a part the cumulant is infinite, and needs no error.
    wrong = ~np.isfinite(value.real)
    return np.where(wrong, np.inf, value), np.where(wrong, 0.0, log_error)
