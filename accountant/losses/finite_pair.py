"""Privacy losses of two distributions on finitely many outcomes.

Outcome i has probability p_i on one data set and q_i on its neighbour, and the loss ln(p_i / q_i).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from accountant.errors import ParameterError
from accountant.losses.finite import FiniteLoss
from accountant.losses.loss import epsilons, orders
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.numerics.rounding import ULP, round_up, round_up_sum

# The error of the logarithms of masses where p and q are exact floats: outcomes are merged, and
# logarithms rounded.
OWN_ROUNDING = 8 * ULP


@final
@dataclass(frozen=True, slots=True)
class PairLoss(FiniteLoss):
    """Two finite distributions: outcome i has probability ``p[i]``, and ``q[i]`` on the neighbour.

    Outcomes of equal ratio are merged and sorted, so equal losses compare equal.

    Parameters
    ----------
    p : sequence of float
        Probabilities that sum to 1.
    q : sequence of float
        Probabilities that sum to 1, as many.

    Examples
    --------
    >>> from accountant import PairLoss
    >>> round(PairLoss([0.75, 0.25], [0.25, 0.75]).pure, 4)
    1.0986
    """

    p: tuple[float, ...]
    q: tuple[float, ...]
    rounding: float = field(default=OWN_ROUNDING, compare=False, repr=False)

    def __init__(self, p: Sequence[float], q: Sequence[float]) -> None:
        p_masses, q_masses = _distribution("p", p), _distribution("q", q)
        if p_masses.size != q_masses.size:
            raise ParameterError("q", q, f"as long as p, which has {p_masses.size} outcomes")
        merged: dict[tuple[int, float], list[float]] = {}
        for a, b in zip(p_masses.tolist(), q_masses.tolist(), strict=True):
            if a or b:
                total = merged.setdefault(_likelihood_ratio_order(a, b), [0.0, 0.0])
                total[0] += a
                total[1] += b
        atoms = [merged[ratio] for ratio in sorted(merged)]
        object.__setattr__(self, "p", tuple(a for a, _ in atoms))
        object.__setattr__(self, "q", tuple(b for _, b in atoms))
        object.__setattr__(self, "rounding", OWN_ROUNDING)

    def with_rounding(self, rounding: float) -> PairLoss:
        """Return an equal pair that says how far its masses are from a mechanism's.

        Parameters
        ----------
        rounding : float
            The largest distance of the logarithms of two masses.

        Returns
        -------
        PairLoss
            Equal to this one; a certificate's lower end is lowered by what it says.
        """
        pair = PairLoss(self.p, self.q)
        object.__setattr__(pair, "rounding", rounding)
        return pair

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return ``sum_i (p_i - e^eps q_i)_+``."""
        p, loss = self._finite()
        e = epsilons(epsilon)[..., None]
        with np.errstate(over="ignore"):
            sticks = p * -np.expm1(np.minimum(e - loss, 0.0))
        total: Array = np.minimum(sticks.sum(axis=-1) + self.infinity, 1.0)
        return total

    @property
    def reversed(self) -> PairLoss:
        """The loss of (q, p)."""
        return PairLoss(self.q, self.p).with_rounding(self.rounding)

    @property
    def max_loss(self) -> float:
        """The largest finite ``ln p_i / q_i``, at least 0, in nats, rounded up."""
        return round_up(float(np.max(self._finite()[1], initial=0.0)))

    @property
    def infinity(self) -> float:
        """The mass of p where q has none."""
        return sum(a for a, b in zip(self.p, self.q, strict=True) if b == 0)

    def renyi(self, order: ArrayLike) -> Array:
        """Return ``ln sum_i p_i (p_i / q_i)^{order - 1} / (order - 1)`` over the finite part."""
        p, loss = self._finite()
        a = orders(order)[..., None] - 1
        if p.size == 0:  # no finite part is left
            return np.full(a.shape[:-1], -np.inf)
        log_moment = logsumexp(a * loss + np.log(p))
        size = np.max(np.abs(loss)) * a[..., 0]
        divergence: Array = round_up_sum(log_moment, size) / a[..., 0]
        return divergence

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """The finite log-ratios and their masses."""
        p, loss = self._finite()
        return loss, p

    def _finite(self) -> tuple[Array, Array]:
        """Return the masses of P and the losses of the outcomes that both laws have."""
        common = [(a, b) for a, b in zip(self.p, self.q, strict=True) if a and b]
        p, q = np.array(common).reshape(-1, 2).T
        # ln p/q is computed without cancellation where p and q are near each other, and without
        # overflow where one is far larger.
        similar = np.abs(p - q) < q / 2
        gap = np.where(similar, (p - q) / np.where(similar, q, 1.0), 0.0)
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            ratio = p / q
            representable = (ratio > 1e-300) & (ratio < 1e300)
            log_ratio = np.where(
                representable, np.log(np.where(representable, ratio, 1.0)), np.log(p) - np.log(q)
            )
        return p, np.where(similar, np.log1p(gap), log_ratio)


def response_pair(
    greater_mass: float, lesser_mass: float, ulps: float = 4.0, moved: float = 0.0
) -> PairLoss:
    """Return the pair of three outcomes with the masses g, l, 1 - g - l, and l, g, 1 - g - l.

    g is ``greater_mass`` and l ``lesser_mass``.  g is rounded up and l down by ``ulps``, which
    moves the pair apart; ``moved`` is by how much the caller has moved their logarithms already.
    The pair's ``rounding`` says how far all of this may be from the true logarithms of masses.
    """
    rounding = moved + (2 * ulps + 16) * ULP
    greater_mass, lesser_mass = (
        min(round_up(greater_mass, ulps), 1.0),
        max(round_up(lesser_mass, -ulps), 0.0),
    )
    shared_mass = max(0.0, 1 - greater_mass - lesser_mass)
    # The shared mass is off by as much as g and l are.  Where it is not far greater than that, its
    # logarithm is unknown: it is moved to the greater mass instead.
    unknown_mass = rounding * (greater_mass + lesser_mass) + ULP
    if shared_mass <= 2 * unknown_mass:
        greater_mass, shared_mass = min(greater_mass + shared_mass, 1.0), 0.0
        return PairLoss((greater_mass, lesser_mass), (lesser_mass, greater_mass)).with_rounding(
            rounding + 4 * unknown_mass / greater_mass
        )
    # The true shared mass is less by at most `unknown_mass`.
    rounding = max(rounding, unknown_mass / (shared_mass - unknown_mass))
    pair = PairLoss(
        (greater_mass, lesser_mass, shared_mass), (lesser_mass, greater_mass, shared_mass)
    )
    return pair.with_rounding(rounding)


def _likelihood_ratio_order(p: float, q: float) -> tuple[int, float]:
    """Return what outcomes are sorted by: ``p / q``, then ratios that overflow, then q = 0."""
    if q == 0:
        return 2, 0.0
    ratio = p / q
    return (0, ratio) if ratio < math.inf else (1, math.log(p) - math.log(q))


def _distribution(argument: str, probabilities: Sequence[float]) -> Array:
    """Return checked probabilities; their sum may be off by 1e-12 for each."""
    allowed = "a list of probabilities that sum to 1"
    try:
        x = np.asarray(probabilities, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(argument, probabilities, allowed) from None
    wrong = x.ndim != 1 or x.size == 0 or not np.all(x >= 0)
    if wrong or not abs(x.sum() - 1.0) <= 1e-12 * x.size:
        raise ParameterError(argument, probabilities, allowed)
    return x
