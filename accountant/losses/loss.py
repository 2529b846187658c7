"""A loss is a function: what one release costs, known by its privacy profile.

The profile is delta as a function of epsilon.  `Loss` is the base of all families of losses.
Accountants compose losses by what a family knows beyond the profile: `LossNumerics` says whether
its cumulants ``ln E e^{zL}`` are exact, whether it is an upper envelope (a bound on many pairs,
with no single worst pair), or known by a numerical curve only.

References: Balle, Barthe & Gaboardi (2018), privacy profiles; Zhu, Dong & Wang (2022), Theorem 10
(a pair whose profile dominates stays dominating under adaptive composition).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import DELTA, REAL
from accountant.errors import ParameterError
from accountant.losses.cell_masses import CellMasses, finite_cell_masses
from accountant.losses.connect_the_dots import pair_above_all
from accountant.losses.least_rho import rho_of_bounded
from accountant.losses.loss_numerics import PROFILE_ONLY, ExactCGF, LossNumerics
from accountant.losses.mgf import moment
from accountant.losses.ratio_law import RatioLaw
from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import sum_of_finite_cgfs
from accountant.numerics.rounding import ACCURACY, MAX_EXPONENT, round_up
from accountant.numerics.search import smallest_root
from accountant.plans.plan import Item, Release


class Loss(Item, Release):
    """The privacy loss ln(P/Q) of one release, P and Q its distributions on two neighbours.

    A subclass gives `profile` and `reversed`; everything else follows from them and is overridden
    where a closed form is faster or a fact of its own is sharper.  The neighbours are those its
    sensitivity was stated for.  P and Q are the worst pair, or a pair that dominates all.

    References
    ----------
    Balle, Barthe & Gaboardi (2018), privacy profiles; Zhu, Dong & Wang (2022), Theorem 10: a pair
    whose profile dominates stays dominating under adaptive composition.

    Examples
    --------
    >>> from accountant import GaussianLoss, Loss
    >>> loss = GaussianLoss(mu=1.0)
    >>> isinstance(loss, Loss), round(loss.epsilon_at(1e-5), 4), round(loss.delta_at(1.0), 4)
    (True, 4.3772, 0.1269)
    """

    __slots__ = ()

    @abstractmethod
    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the privacy profile ``sup_S P(S) - e^epsilon Q(S)``.

        Parameters
        ----------
        epsilon : array
            Each at least 0; infinity is allowed.

        Returns
        -------
        array
            Of the shape of ``epsilon``, accurate to 2^-36 of itself.
        """

    @property
    @abstractmethod
    def reversed(self) -> Loss:
        """The loss of (Q, P): the same loss unless it is asymmetric."""

    @property
    def infinity(self) -> float:
        """Mass of the outcomes that are impossible on the neighbour: the limit of the profile."""
        # The profile falls: at the largest epsilon of a float it bounds its limit from above.
        return float(self.profile(np.array(MAX_EXPONENT)))

    @property
    def max_loss(self) -> float:
        """Epsilon beyond which the profile stays at `infinity`; infinite where none is known."""
        return math.inf

    @property
    def pure(self) -> float:
        """Smallest epsilon at delta 0, over both directions; infinite where none is known."""
        directions = (self, self.reversed)
        bounded = all(direction.infinity == 0 for direction in directions)
        return max(direction.max_loss for direction in directions) if bounded else math.inf

    @property
    def rho(self) -> float:
        """Least rho such that every Rényi divergence is at most rho times its order.

        References
        ----------
        Harrison & Manurangsi (2025), arXiv 2510.25746.
        """
        return rho_of_bounded(self)

    @property
    def gdp_mu(self) -> float:
        """Least mu known such that no test does better than on N(0, 1) against N(mu, 1)."""
        from scipy.special import ndtri_exp

        # The trade-off curve of epsilon-DP touches the Gaussian's at its corner:
        # Phi(-mu / 2) = 1 / (1 + e^epsilon).
        epsilon = self.pure
        if epsilon == 0 or math.isinf(epsilon):
            return epsilon
        # 1e-15 and 64 ulps are room for the round-off of `ndtri_exp`, near mu = 0 and elsewhere.
        return round_up(max(-2 * float(ndtri_exp(-np.logaddexp(0.0, epsilon))), 0.0) + 1e-15, 64)

    def renyi(self, order: ArrayLike) -> Array:
        """Return the Rényi divergence of the finite part.

        Parameters
        ----------
        order : array
            Each above 1.

        Returns
        -------
        array
            In nats, of the shape of ``order``, rounded up.
        """
        a = orders(order) - 1.0
        if math.isfinite(self.max_loss):
            # The divergence of a finite pair above the profile is an upper bound.
            pair = pair_above_all(self)
            value, error = sum_of_finite_cgfs([(pair.loss, pair.mass)], np.ones(1), a)
            with np.errstate(invalid="ignore", divide="ignore"):
                # The pair may have moved mass from losses above its points to infinity.  In the
                # moment of x = e^L this is at most the mass times the slope of x^(a+1) at the
                # largest x.  A NaN, of masses that are none, is refused later.
                moved = np.log(np.maximum(pair.infinity - self.infinity, 0.0))
                moved = moved + np.log1p(a) + a * self.max_loss
                divergence: Array = np.logaddexp(value + error, moved) / a
            return np.minimum(divergence, self.max_loss)
        with np.errstate(divide="ignore"):  # the finite part may be empty
            moments = np.vectorize(lambda z: moment(self, z), otypes=[float])
            log_moment: Array = np.log(moments(a))
        return log_moment / a

    def cumulant(self, z: ArrayLike) -> Any:
        """Return ``ln E_P[e^{zL}; L finite]``.

        Parameters
        ----------
        z : complex array
            Where it converges.

        Returns
        -------
        complex array
            Of the shape of ``z``; rounded to nearest, not to a side.
        """
        moments = np.vectorize(lambda one: moment(self, one), otypes=[complex])
        return np.log(moments(np.asarray(z, dtype=complex)))[()]

    @property
    def rounding(self) -> float:
        """How far the logarithm of a mass may be from that of the true mechanism.

        The masses are rounded so that the loss grows.  So the upper end of a certificate is that of
        these masses, and the lower end is lowered by this much.
        """
        return 0.0

    @property
    def numerics(self) -> LossNumerics:
        """What composition may use: the profile alone, unless a family overrides this."""
        return PROFILE_ONLY

    @property
    def loss_pmf(self) -> tuple[Array, Array] | None:
        """The finite losses and their masses under P, where there are finitely many; else None."""
        return None

    @property
    def ratio_law(self) -> RatioLaw | None:
        """The law of ln(P/Q) under Q where it has atoms and an exponential density; else None."""
        return None

    def cell_masses(self, edges: Array) -> CellMasses | None:
        """Return the masses of the loss between edges, under P and under Q.

        Parameters
        ----------
        edges : array
            Increasing; minus infinity and infinity are allowed.

        Returns
        -------
        CellMasses or None
            With bounds on their errors; None where the profile alone is known.
        """
        pmf = self.loss_pmf
        return None if pmf is None else finite_cell_masses(edges, *pmf, self.reversed.infinity)

    def for_group(self, size: int) -> Loss | None:
        """Return the loss that a group of records has.

        Parameters
        ----------
        size : int
            Records in the group, at least 1.

        Returns
        -------
        Loss or None
            None where there is no closed form.
        """
        return self if size == 1 else None

    def dominates(self, other: Loss) -> bool:
        """Return whether this loss is known to be at least as large as another.

        Parameters
        ----------
        other : Loss
            The other loss.

        Returns
        -------
        bool
            True where this profile is known to be nowhere below the other's.
        """
        return self == other

    @property
    def attained_pair(self) -> Loss:
        """The loss of one pair that does occur, for lower ends; itself unless an upper envelope."""
        return self

    def attained_items(self, count: int) -> list[tuple[Loss, int]]:
        """Return losses of pairs that do occur together, with counts, for lower ends.

        Parameters
        ----------
        count : int
            How often this loss is released, at least 1.

        Returns
        -------
        list of (Loss, int)
            `attained_pair` as often, unless more is known of so many together.
        """
        return [(self.attained_pair, count)]

    def without_rare_losses(self, mass: float) -> Loss:
        """Return a loss above this one where its greatest losses hinder the sum of many.

        Moments of large orders are decided by the greatest losses, however rare they are.  A bound
        on many pairs, which no pair attains, may take them to be infinite.

        Parameters
        ----------
        mass : float
            The mass that may become infinite, above 0.

        Returns
        -------
        Loss
            This one, unless it overrides this.
        """
        del mass
        return self

    def log_profile(self, epsilon: ArrayLike) -> Array:
        """Return the logarithm of `profile`, also where that is too small for a float.

        Parameters
        ----------
        epsilon : array
            Each at least 0.

        Returns
        -------
        array
            Of the shape of ``epsilon``.
        """
        with np.errstate(divide="ignore"):
            logarithm: Array = np.log(self.profile(epsilon))
        return logarithm

    def delta_at(self, epsilon: float) -> float:
        """Return the smallest delta at ``epsilon``.

        Parameters
        ----------
        epsilon : float
            Any real number.

        Returns
        -------
        float
            Rounded up, over both directions.
        """
        epsilon = REAL.check("epsilon", epsilon)
        delta = max(
            direction.profile_any_epsilon(np.array(epsilon)).item()
            for direction in {self, self.reversed}
        )
        return min(1.0, delta * (1 + ACCURACY)) + 0.0

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon at ``delta``.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        float
            Rounded up, over both directions; infinite where delta is below the mass at infinity.
        """
        delta = DELTA.check("delta", delta)
        largest_infinity = max(self.infinity, self.reversed.infinity)
        # The mass at infinity is reached at the largest loss, and a lesser delta nowhere.
        if delta <= largest_infinity:
            return (
                max(self.max_loss, self.reversed.max_loss)
                if delta == largest_infinity
                else math.inf
            )
        return max(direction.inverse_profile(delta) for direction in {self, self.reversed})

    def profile_any_epsilon(self, epsilon: Array) -> Array:
        """Return the privacy profile at any real epsilon.

        Parameters
        ----------
        epsilon : array
            Real numbers.

        Returns
        -------
        array
            Of the shape of ``epsilon``.
        """
        # delta(-e) = 1 - e^-e + e^-e delta_reversed(e), a form in which nothing cancels.
        delta, is_positive = np.empty(np.shape(epsilon)), np.asarray(epsilon) >= 0
        size = np.abs(epsilon)
        below = size[~is_positive]
        if is_positive.any():
            delta[is_positive] = self.profile(size[is_positive])
        if below.size:
            delta[~is_positive] = -np.expm1(-below) + np.exp(-below) * self.reversed.profile(below)
        return delta

    def is_surely_within(self, epsilon: float, delta: float) -> bool:
        """Return whether a quick bound shows that ``delta`` is enough at ``epsilon``.

        False where nothing is known that is quicker than the profile.

        Parameters
        ----------
        epsilon : float
            At least 0.
        delta : float
            In (0, 1).

        Returns
        -------
        bool
            True only if the profile at ``epsilon`` is at most ``delta``.
        """
        del epsilon, delta
        return False

    def profile_bounds(self, epsilon: Array) -> tuple[Array, Array]:
        """Return bounds on the privacy profile, at any real epsilon.

        Parameters
        ----------
        epsilon : array
            Real numbers.

        Returns
        -------
        tuple of array
            Lower and upper bounds: on the profile of one pair, or on that of an upper envelope.
        """
        value = self.profile_any_epsilon(epsilon)
        below = self if self.numerics.is_upper_envelope else self.attained_pair
        low = value if below is self else below.profile_any_epsilon(epsilon)
        return low * (1 - ACCURACY), value * (1 + ACCURACY)

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield this loss, once."""
        yield self, 1

    def inverse_profile(self, delta: float) -> float:
        """Return the smallest epsilon at which the profile is at most ``delta``, in this direction.

        Parameters
        ----------
        delta : float
            Above the mass at infinity.

        Returns
        -------
        float
            Rounded up.
        """
        # The profile has a relative error of `ACCURACY`: the root is sought at a smaller delta.
        target_delta = delta - ACCURACY * (delta - self.infinity)
        root = smallest_root(self.profile, target_delta, self.max_loss)
        return min(round_up(root, 16), self.max_loss) if delta >= self.infinity else root


class SymmetricLoss(Loss):
    """A loss that equals its own reverse."""

    __slots__ = ()

    @property
    def reversed(self) -> Loss:
        """The same loss: it is symmetric."""
        return self

    @property
    def pure(self) -> float:
        """Smallest epsilon at delta 0; infinite where none is known."""
        return math.inf if self.infinity else self.max_loss


def single_loss(item: Item) -> Loss:
    """Return the item as the loss of one release; any item but `Parallel` is one."""
    if not isinstance(item, Loss):
        raise TypeError(f"neither a loss nor parallel plans: {type(item).__name__}")
    return item


def mirrored(z: ArrayLike) -> Complex:
    """Return z, and -1 - z left of -1/2: there a symmetric loss has the same cumulant."""
    s = np.asarray(z, dtype=complex)
    return np.where(s.real < -0.5, -1 - s, s)


def exact_cgf(loss: Loss) -> ExactCGF[Any]:
    """Return the exact cumulants of the loss's family; a loss without them is an error."""
    cgf = loss.numerics.cgf
    if cgf is None:
        raise TypeError(f"no exact cumulant: {type(loss).__name__}")
    return cgf


def orders(order: ArrayLike) -> Array:
    """Return Rényi orders as an array, each checked to be a finite number above 1."""
    raw = np.asarray(order)
    if raw.dtype.kind not in "iuf" or not (np.all(raw > 1) and np.all(np.isfinite(raw))):
        raise ParameterError("order", order, "finite and greater than 1")
    return raw.astype(float, copy=False)


def epsilons(epsilon: ArrayLike) -> Array:
    """Return epsilons as an array of real numbers, infinity allowed."""
    raw = np.asarray(epsilon)
    if raw.dtype.kind not in "iuf" or np.isnan(raw).any():
        raise ParameterError("epsilon", epsilon, "a real number")
    return raw.astype(float, copy=False)
