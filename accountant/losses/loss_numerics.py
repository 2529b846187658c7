"""What composition needs of a loss beyond its profile: exact cumulants and their bounds.

The privacy losses L of independent releases add up, so that their cumulants K(z) = ln E e^{zL} do
too.  Delta of the sum is an integral of e^K along a contour, a line Re z = a.  It is computed as a
sum over nodes z = a + iv on the line; the sum ends where bounds on |e^K| say that the rest is
negligible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, final

import numpy as np

from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import cf_ratios_from_cgf
from accountant.numerics.ordered_sums import sum_with_errors
from accountant.numerics.rounding import ULP


class HasCumulant(Protocol):
    """The part of a loss that its family's cumulants are made from."""

    @property
    def max_loss(self) -> float:
        """Epsilon beyond which the profile stays at its limit."""
        ...

    @property
    def loss_pmf(self) -> tuple[Array, Array] | None:
        """The finite losses and their masses, where there are finitely many; else None."""
        ...

    def cumulant(self, z: Any) -> Any:
        """Return ``ln E_P[e^{zL}; L finite]``."""
        ...


Member = TypeVar("Member", bound=HasCumulant)


class ExactCGF(Generic[Member]):
    """The cumulants ``K_i(z) = ln E_P[e^{z L_i}; L_i finite]`` of one family of losses.

    They are closed forms, or integrals with a proved error.  All methods have a default that is
    made of `HasCumulant`, for closed forms: a family overrides what it can do better, or for many
    losses at a time.
    A method that is overridden must keep its promise, because proved ends of epsilon rest on it:

    - `sum_cgf` and `cf_ratios` return a value and a number that its error does not exceed, for
      ``Re z > 0``;
    - `log_cf_bounds` returns upper bounds that hold at a frequency ``v`` and at every one above it;
      0 always is one, but with it only smoothed contours (those with a fictitious Gaussian release)
      have finitely many nodes;
    - `rough_cgf`, `rough_epsilon` and `quadrature_terms` are estimates: they decide what is tried
      and how long it takes, never what is proved.
    """

    # The number of different losses of the family from which the cost grows no further.
    distinct_cost_cap = math.inf
    # The cost of planning a contour for one more different loss, in complex products of about 2 ns;
    # this is for families that evaluate one loss at a time.
    planning_cost_of_a_loss = 5e5

    def prepared(self, losses: Sequence[Member]) -> Sequence[Member]:
        """Return the losses in the form in which all other methods are quickest."""
        return losses

    def sum_cgf(self, losses: Sequence[Member], counts: Array, z: Any) -> tuple[Any, Array]:
        """Return ``sum_i counts[i] K_i(z)``, and a bound on its error.

        ``z`` is an array, real or complex.
        """

        def with_error(loss: Member) -> tuple[Any, Array]:
            value = loss.cumulant(z) if np.iscomplexobj(z) else loss.cumulant(z).real
            # An exponent z L is inexact by ulps of itself, a cumulant by ulps of its value.
            return value, 16 * ULP * (1 + np.abs(z) * loss.max_loss + np.abs(value))

        return sum_with_errors(map(with_error, losses), counts, z)

    def rough_cgf(self, losses: Sequence[Member], counts: Array, a: Array) -> Array:
        """Return about ``sum_i counts[i] K_i(a)``, to start searches from: no bound follows.

        By default the error is added: it is infinite where ``a`` is out of reach.
        """
        value, error = self.sum_cgf(losses, counts, a)
        cumulant: Array = value + error
        return cumulant

    def has_short_sum(self, losses: Sequence[Member]) -> bool:
        """Return whether `rough_cgf` of these losses is much quicker than `sum_cgf`."""
        del losses
        return False

    def cf_ratios(
        self, losses: Sequence[Member], counts: Array, z: Complex
    ) -> tuple[Complex, Array]:
        """Return ``prod_i (E e^{zL_i} / E e^{aL_i})^{counts[i]}``, ``a = Re z``, and its round-off.

        ``z`` is a matrix with C columns of equidistant nodes, ``z[r, c] = a + i h (r C + c)``.
        """
        return cf_ratios_from_cgf(self.sum_cgf, losses, counts, z)

    def log_cf_bounds(self, losses: Sequence[Member], counts: Array, a: float, u: Array) -> Array:
        """Bound ``sum_i counts[i] ln |E e^{(a+iv)L_i} / E e^{aL_i}|`` for every ``v >= u``."""
        return np.zeros(u.shape)

    def quadrature_terms(self, loss: Member, frequency: float) -> float:
        """Return how many exponentials represent a loss on a contour that reaches ``frequency``."""
        pmf = loss.loss_pmf
        return 2.0 if pmf is None else float(pmf[0].size)

    def sum_of_terms(self, losses: Sequence[Member], frequency: float) -> tuple[float, float]:
        """Return `quadrature_terms` of all the losses together, and of the most expensive one."""
        # The first 50 losses stand for all, so that an estimate is quick.
        terms = [self.quadrature_terms(loss, frequency) for loss in losses[:50]]
        number = min(len(losses), self.distinct_cost_cap)
        return sum(terms) * max(1.0, number / len(terms)), max(terms)

    def parts(self, losses: Sequence[Member], counts: Array) -> Any:
        """Return what splits the outcomes of the releases into parts, or None.

        What is returned is a `Partition` of `accountant.composition.contour_engines`; None where
        the family has no such form.
        """
        del losses, counts
        return None

    def rough_epsilon(self, losses: Sequence[Member], counts: Array, delta: float) -> float | None:
        """Return an estimate of epsilon, to start searches from; None by default."""
        del losses, counts, delta
        return None

    def max_loss_mass(self, loss: Member) -> float:
        """Return the mass of the largest finite loss where that is `max_loss`; 0 if not known."""
        pmf = loss.loss_pmf
        if pmf is None or pmf[0].size == 0 or math.isinf(loss.max_loss):
            return 0.0
        largest = int(np.argmax(pmf[0]))
        return float(pmf[1][largest]) if pmf[0][largest] >= loss.max_loss * (1 - 8 * ULP) else 0.0


# How many values a finite loss has that bounds another one from above or below.  With more of them
# the bound is nearer, and takes longer.
USUAL_POINTS = 4096


@final
@dataclass(frozen=True, slots=True)
class LossNumerics:
    """How composition may treat one loss.

    ``is_upper_envelope``: the profile is an upper bound on many pairs that no pair need attain, so
    that a lower end of epsilon comes from another loss, `Loss.attained_pair`.
    ``is_numerical``: the profile is a numerical upper bound, not a formula.
    ``determined_by_rdp``: the profile follows from the Rényi curve.
    ``discretisation_points``: how many values a finite loss above or below this one has.
    ``grid_points``: at how many epsilons a grid may ask for the profile, where each takes long.
    ``cgf``: the exact cumulants of its family; None where the profile alone is known.
    """

    cgf: ExactCGF[Any] | None = None
    is_upper_envelope: bool = False
    is_numerical: bool = False
    determined_by_rdp: bool = False
    discretisation_points: int = USUAL_POINTS
    grid_points: int = 2**18

    @property
    def has_exact_cgf(self) -> bool:
        """Whether the cumulant is known with a proved error."""
        return self.cgf is not None

    @property
    def is_coarse(self) -> bool:
        """Whether a finite loss above or below it has fewer values than others."""
        return self.discretisation_points < USUAL_POINTS

    @property
    def is_exact(self) -> bool:
        """Whether the cumulant is exact, and that of a pair which attains the profile."""
        return self.has_exact_cgf and not (self.is_upper_envelope or self.is_numerical)


PROFILE_ONLY = LossNumerics()
MANY_PAIRS = LossNumerics(is_upper_envelope=True)
MANY_PAIRS_BY_RENYI = LossNumerics(is_upper_envelope=True, determined_by_rdp=True)
