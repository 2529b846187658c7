"""Rényi divergences of samples, where nothing is known of a part but its own Rényi curve.

References: Mironov, Talwar & Zhang (2019); Zhu & Wang (2019), Theorem 5; Wang, Balle &
Kasiviswanathan (2019), Theorem 9.  Sharper than both; proof: `docs/proofs/sampled_renyi.md`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from accountant.losses.loss import Loss, orders
from accountant.numerics import Array
from accountant.numerics.logspace import log1mexp, logsumexp
from accountant.numerics.rounding import ULP
from accountant.plans.plan import Plan

MAX_ORDER = 2048  # of a sum of as many terms; beyond it the divergence of the part is returned
# Mean curvatures of the powers u in [0, 1] are bounded by those at -1e-4 and 1 + 1e-4, where the
# formula's u (u - 1) is not 0.
END_MARGIN = 1e-4


def is_known_by_its_curve(part: Plan) -> bool:
    """Return whether some loss of a plan is known by its Rényi curve, and all have one at hand."""
    losses = [loss for loss, _ in part.losses() if isinstance(loss, Loss)]
    numerics = [loss.numerics for loss in losses]
    # A Rényi divergence does not see an outcome that only one of the data sets can have.
    is_finite = all(loss.infinity == 0 == loss.reversed.infinity for loss in losses)
    has_curve = all(method.determined_by_rdp or method.is_exact for method in numerics)
    all_are_losses = len(losses) == len(list(part.losses()))
    some_by_curve = any(method.determined_by_rdp for method in numerics)
    return all_are_losses and is_finite and has_curve and some_by_curve


def sampled_divergence(part: Loss, rate: float, order: Array, *, added: bool) -> Array:
    """Return a bound of the Rényi divergence of a Poisson sample, 0 < rate < 1, rounded up.

    ``added``: of the pair (Q, (1 - rate) Q + rate P) instead of ((1 - rate) Q + rate P, Q).
    """
    a = orders(order)
    if not added:
        return _between_integers(part, a, lambda n: _log_excess_of_sample(part, rate, n))
    # With s = order - 1 and u = 2 - q (s + 2) the moment is at most
    # 1 + s (s + 1) q^2 E phi_u(P/Q).
    s = a - 1
    log_mean, size = _log_mean_curvature(part, 2 - rate * (s + 2))
    log_excess = np.log(s) + np.log1p(s) + 2 * math.log(rate) + log_mean
    size = size + np.abs(np.log(s)) + np.log1p(s) - 2 * math.log(rate)
    return np.minimum(_log_moment(log_excess, size) / s, _of_part(part, a))


def subset_divergence(part: Loss, share: float, order: Array) -> Array:
    """Return a bound of the Rényi divergence of a sample of fixed size, 0 < share < 1.

    Of either direction; ``part`` compares two records, and its curve is that of both directions.
    """

    return _between_integers(part, orders(order), lambda n: _log_excess_of_subset(part, share, n))


def _between_integers(
    part: Loss, order: Array, log_excess: Callable[[int], tuple[float, float]]
) -> Array:
    """Return divergences whose log-moments are known at integers, and convex in the order."""
    low = np.floor(np.minimum(order, MAX_ORDER - 1)).astype(int)
    ends = {int(n) for n in np.unique(np.append(low, low + 1)) if n > 1}
    excess_at = {n: log_excess(n) for n in ends} | {1: (-np.inf, 0.0)}
    below, above = (
        np.array([excess_at[int(n)] for n in integers.flat]).T for integers in (low, low + 1)
    )
    flat, n = order.ravel(), low.ravel()
    share = np.clip(flat - n, 0.0, 1.0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # ln E r^a is convex in a, and so is ln E psi_a(r) with
        # psi_a(r) = (r^a - 1 - a (r - 1)) / (a (a - 1)): chords between whole orders are above.
        chord = (1 - share) * _log_moment(*below) + share * _log_moment(*above)
        bent = (1 - share) * (below[0] - np.log(n * (n - 1.0)))
        bent += share * (above[0] - np.log(n * (n + 1.0))) + np.log(flat * (flat - 1))
        bent = np.where(n > 1, _log_moment(bent, below[1] + above[1] + 8 * np.log(flat)), np.inf)
        divergence = np.minimum(chord * (1 + 4 * ULP), bent) / (flat - 1)
    divergence = np.where((flat > MAX_ORDER) | np.isnan(divergence), np.inf, divergence).reshape(
        order.shape
    )
    return np.minimum(divergence, _of_part(part, order))


def _of_part(part: Loss, order: Array) -> Array:
    """Return the divergence of the part, which no sample exceeds, over both directions."""
    return np.maximum(part.renyi(order), part.reversed.renyi(order))


@functools.lru_cache(maxsize=64)
def _log_moments(part: Loss) -> Array:
    """Return ``ln E_Q (P/Q)^k`` for k from 0 to `MAX_ORDER`, over both directions."""
    k = np.arange(2.0, MAX_ORDER + 1)
    log_moments = np.append([0.0, 0.0], (k - 1) * _of_part(part, k))
    log_moments.flags.writeable = False
    return log_moments


def _log_expm1(x: Array) -> Array:
    """Return ``ln(e^x - 1)`` for x >= 0."""
    return x + log1mexp(-x)


@functools.lru_cache(maxsize=4096)
def _log_excess_of_sample(part: Loss, rate: float, order: int) -> tuple[float, float]:
    """Return ``ln(E r^order - 1)`` of a sample at an integer order, and the size of its terms."""
    from scipy.special import gammaln

    # E (1 - q + q r)^n - 1 = sum_{k >= 2} C(n, k) (1 - q)^{n-k} q^k (E r^k - 1), all positive.
    k = np.arange(2.0, order + 1)
    log_q, log_rest = math.log(rate), math.log1p(-rate)
    x = _log_moments(part)[2 : order + 1]
    log_choices = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    terms = log_choices + k * log_q + (order - k) * log_rest + _log_expm1(x)
    size = float(gammaln(order + 1)) + order * (abs(log_q) + abs(log_rest))
    return float(logsumexp(terms)), size + abs(float(x[int(np.argmax(terms))]))


@functools.lru_cache(maxsize=4096)
def _log_excess_of_subset(part: Loss, share: float, order: int) -> tuple[float, float]:
    """Return a bound of ``ln(E r^order - 1)`` of a subset at an integer order, and a size."""
    from scipy.special import gammaln

    # n (n - 1) q^2 {sum_j C(n-2, j) (1-q)^{n-2-j} q^j M_j  +  M_0},
    # M_j = E phi_{j+2} + (1 - q) E phi_{j+1}: losses above 0, and those below it
    j, log_q, log_rest = np.arange(order - 1.0), math.log(share), math.log1p(-share)
    means, size = _log_mean_curvature(part, np.arange(1.0, order + 1))
    log_curvature = np.logaddexp(means[1:], log_rest + means[:-1])
    log_choices = gammaln(order - 1) - gammaln(j + 1) - gammaln(order - 1 - j)
    terms = np.append(
        log_choices + (order - 2 - j) * log_rest + j * log_q + log_curvature, log_curvature[0]
    )
    log_excess = float(logsumexp(terms)) + math.log(order * (order - 1)) + 2 * log_q
    top = float(size[min(int(np.argmax(terms)) + 1, order - 1)])
    return log_excess, top + float(gammaln(order + 1)) + order * (abs(log_q) + abs(log_rest))


def _log_mean_curvature(part: Loss, u: Array) -> tuple[Array, Array]:
    """Return a bound of ``ln E_Q phi_u(P/Q)``, ``phi_u(r) = (r^u - 1 - u (r - 1)) / (u (u - 1))``.

    And the size of its terms.  The mean is convex in u, as a logarithm: between 0 and 1 the
    greater of both ends is above it.
    """
    # E r^u = e^{(u-1) D_u(P, Q)} for u > 1, and e^{-u D_{1-u}(Q, P)} for u < 0
    outer = np.maximum(np.maximum(u, 1 - u), 1 + END_MARGIN)
    x = (outer - 1) * _of_part(part, outer)
    log_curvature: Array = _log_expm1(x) - np.log(outer * (outer - 1))
    return log_curvature, x + np.abs(np.log(outer - 1)) + 1


def _log_moment(log_excess: Array, size: Array) -> Array:
    """Return ``ln(1 + e^log_excess)``, raised by the round-off of terms of this size."""
    raised = np.logaddexp(0.0, log_excess) * (1 + 16 * ULP * (8 + size))
    log_moment: Array = np.where(np.isnan(raised), np.inf, raised)
    return log_moment
