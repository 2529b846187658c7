"""Bounds on Rényi divergences of a subsampled mechanism whose own Rényi curve is all that is known.

The *part* is the mechanism that runs on the sample, P its output law with the record, Q the law
without it, r = P/Q, and E the mean under Q.  D(a) is the greater Rényi divergence of order a of
(P, Q) and (Q, P).  As E r^a <= e^{(a-1) D(a)} for a > 1, it bounds the moments of a sample that
has the record with probability q (``rate`` or ``share``).

Moments are kept as logarithms.  The *size* of one is about the sum of the absolute values of all
logarithms that were added up to make it: of the rate, of binomial coefficients, of E r^k - 1.
Each of these errs by a few ulps of itself, so that the result errs by a few ulps of its size:
`_log_moment` raises it for that.

References: Mironov, Talwar & Zhang (2019); Zhu & Wang (2019), Theorem 5; Wang, Balle &
Kasiviswanathan (2019), Theorem 9.  The bounds are sharper than those of the two theorems; proof:
`docs/proofs/sampled_renyi.md`.
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

# The largest order at which binomial sums, of as many terms as the order, are evaluated: the time
# of all orders grows with its square.  Beyond it the divergence of the part is the bound.
MAX_ORDER = 2048
# The formula of `_log_mean_curvature` divides by u (u - 1), which is 0 at the powers u = 0 and 1.
# Powers between -END_MARGIN and 1 + END_MARGIN get the bound at these two ends instead.
END_MARGIN = 1e-4


def is_known_by_its_curve(plan: Plan) -> bool:
    """Return whether the functions of this file serve a plan.

    All its losses are finite and have a Rényi curve, and of some the curve is all that is known.
    """
    losses = [loss for loss, _ in plan.losses() if isinstance(loss, Loss)]
    numerics = [loss.numerics for loss in losses]
    # `Loss.renyi` leaves out the outcomes that only one of the data sets can have.
    is_finite = all(loss.infinity == 0 == loss.reversed.infinity for loss in losses)
    has_curve = all(method.determined_by_rdp or method.is_exact for method in numerics)
    all_are_losses = len(losses) == len(list(plan.losses()))
    some_by_curve = any(method.determined_by_rdp for method in numerics)
    return all_are_losses and is_finite and has_curve and some_by_curve


def sampled_divergence(part: Loss, rate: float, order: Array, *, added: bool) -> Array:
    """Return an upper bound of the Rényi divergence of a Poisson sample, 0 < rate < 1, rounded up.

    The record is in the first data set: it is that of ((1 - rate) Q + rate P, Q).  With ``added``
    the record is in the second one: it is that of (Q, (1 - rate) Q + rate P).
    """
    a = orders(order)
    if not added:
        return _between_integers(part, a, lambda n: _log_excess_of_sample(part, rate, n))
    # The divergence is ln E (1 - q + q r)^-s / s with s = order - 1.  At r = 1, the mean of r, the
    # power has the value 1.  Its second derivative is s (s + 1) q^2 (1 - q + q r)^-(s + 2), at most
    # s (s + 1) q^2 r^{-q (s + 2)}, as 1 - q + q r >= r^q (means of 1 and r).  So the moment is at
    # most 1 + s (s + 1) q^2 E phi_u(r) with u = 2 - q (s + 2) and phi_u of `_log_mean_curvature`.
    s = a - 1
    log_mean, size = _log_mean_curvature(part, 2 - rate * (s + 2))
    log_excess = np.log(s) + np.log1p(s) + 2 * math.log(rate) + log_mean
    size = size + np.abs(np.log(s)) + np.log1p(s) - 2 * math.log(rate)
    return np.minimum(_log_moment(log_excess, size) / s, _of_part(part, a))


def subset_divergence(part: Loss, share: float, order: Array) -> Array:
    """Return an upper bound of the Rényi divergence of a sample of fixed size, 0 < share < 1.

    One record is replaced, and the bound holds in both directions: ``part`` compares the two
    records, and the greater of the divergences of its two directions is used.
    """
    return _between_integers(part, orders(order), lambda n: _log_excess_of_subset(part, share, n))


def _between_integers(
    part: Loss, order: Array, log_excess: Callable[[int], tuple[float, float]]
) -> Array:
    """Return bounds on divergences at any order from moments at whole orders.

    ``log_excess(n)`` returns a bound of ``ln(E m^n - 1)`` and its size, m being the likelihood
    ratio of the sample.  The divergence of order a is ``ln E m^a / (a - 1)``.
    """
    low = np.floor(np.minimum(order, MAX_ORDER - 1)).astype(int)
    ends = {int(n) for n in np.unique(np.append(low, low + 1)) if n > 1}
    excess_at = {n: log_excess(n) for n in ends} | {1: (-np.inf, 0.0)}
    # at the whole orders below and above each order
    (excess_below, size_below), (excess_above, size_above) = (
        np.array([excess_at[int(n)] for n in integers.flat]).T for integers in (low, low + 1)
    )
    flat, n = order.ravel(), low.ravel()
    share = np.clip(flat - n, 0.0, 1.0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # ln E m^a is convex in a, and so is ln E phi_a(m) = ln((E m^a - 1) / (a (a - 1))).  The
        # chord of each from n to n + 1 is therefore an upper bound; the lesser bound is taken.
        log_moment_chord = (1 - share) * _log_moment(excess_below, size_below)
        log_moment_chord += share * _log_moment(excess_above, size_above)
        curvature_chord = (1 - share) * (excess_below - np.log(n * (n - 1.0)))
        curvature_chord += share * (excess_above - np.log(n * (n + 1.0)))
        curvature_chord += np.log(flat * (flat - 1))
        curvature_chord = np.where(
            n > 1, _log_moment(curvature_chord, size_below + size_above + 8 * np.log(flat)), np.inf
        )
        divergence = np.minimum(log_moment_chord * (1 + 4 * ULP), curvature_chord) / (flat - 1)
    divergence = np.where((flat > MAX_ORDER) | np.isnan(divergence), np.inf, divergence).reshape(
        order.shape
    )
    return np.minimum(divergence, _of_part(part, order))


def _of_part(part: Loss, order: Array) -> Array:
    """Return the greater divergence of the part's two directions, which no sample exceeds."""
    return np.maximum(part.renyi(order), part.reversed.renyi(order))


@functools.lru_cache(maxsize=64)
def _log_moments(part: Loss) -> Array:
    """Return bounds ``(k - 1) D(k)`` of ``ln E r^k`` for k from 0 to `MAX_ORDER`."""
    k = np.arange(2.0, MAX_ORDER + 1)
    log_moments = np.append([0.0, 0.0], (k - 1) * _of_part(part, k))
    log_moments.flags.writeable = False
    return log_moments


def _log_expm1(x: Array) -> Array:
    """Return ``ln(e^x - 1)`` for x >= 0."""
    return x + log1mexp(-x)


@functools.lru_cache(maxsize=4096)
def _log_excess_of_sample(part: Loss, rate: float, order: int) -> tuple[float, float]:
    """Return a bound of ``ln(E m^n - 1)``, m = 1 - q + q r, at a whole order n, and its size."""
    from scipy.special import gammaln

    # E (1 - q + q r)^n - 1 = sum_{k >= 2} C(n, k) (1 - q)^{n-k} q^k (E r^k - 1), all terms positive
    k = np.arange(2.0, order + 1)
    log_q, log_rest = math.log(rate), math.log1p(-rate)
    log_excess_of_part = _log_expm1(_log_moments(part)[2 : order + 1])
    log_choices = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    terms = log_choices + k * log_q + (order - k) * log_rest + log_excess_of_part
    size = float(gammaln(order + 1)) + order * (abs(log_q) + abs(log_rest))
    return float(logsumexp(terms)), size + abs(float(log_excess_of_part[int(np.argmax(terms))]))


@functools.lru_cache(maxsize=4096)
def _log_excess_of_subset(part: Loss, share: float, order: int) -> tuple[float, float]:
    """Return a bound of ``ln(E m^n - 1)``, m that of a sample of fixed size, and its size."""
    from scipy.special import gammaln

    # By section 3 of the proof E m^n - 1 is at most
    # n (n - 1) q^2 {sum_j C(n-2, j) (1-q)^{n-2-j} q^j M_j  +  M_0}, j from 0 to n - 2, with
    # M_j = E phi_{j+2}(r) + (1 - q) E phi_{j+1}(r).  The sum bounds what losses above 0 add to the
    # moment, and the single M_0 what losses below 0 add.
    j, log_q, log_rest = np.arange(order - 1.0), math.log(share), math.log1p(-share)
    means, size = _log_mean_curvature(part, np.arange(1.0, order + 1))
    log_curvature = np.logaddexp(means[1:], log_rest + means[:-1])
    log_choices = gammaln(order - 1) - gammaln(j + 1) - gammaln(order - 1 - j)
    terms = np.append(
        log_choices + (order - 2 - j) * log_rest + j * log_q + log_curvature, log_curvature[0]
    )
    log_excess = float(logsumexp(terms)) + math.log(order * (order - 1)) + 2 * log_q
    # Term j has the means at the powers j + 1 and j + 2; the last term has those at 1 and 2.
    largest_term = int(np.argmax(terms)) % (order - 1)
    size_of_means = float(size[largest_term : largest_term + 2].max())
    size_of_factors = float(gammaln(order + 1)) + order * (abs(log_q) + abs(log_rest))
    return log_excess, size_of_means + size_of_factors


def _log_mean_curvature(part: Loss, u: Array) -> tuple[Array, Array]:
    """Return a bound of ``ln E phi_u(r)``, ``phi_u(r) = (r^u - 1 - u (r - 1)) / (u (u - 1))``.

    Its size is returned too.  The second derivative of phi_u is r^{u-2}.  As E r = 1, the mean is
    (E r^u - 1) / (u (u - 1)).  Its logarithm is convex in u: between 0 and 1 it is at most the
    greater of its values at two powers outside.
    """
    # E r^u = e^{(u-1) D_u(P, Q)} for u > 1, and e^{-u D_{1-u}(Q, P)} for u < 0: the same bound
    # holds at u and at 1 - u, of which `outer` is the one above 1.  The 1 of the size is for the
    # logarithm of `outer`, which is small where u is.
    outer = np.maximum(np.maximum(u, 1 - u), 1 + END_MARGIN)
    log_moment = (outer - 1) * _of_part(part, outer)
    log_excess = _log_expm1(log_moment)
    log_curvature: Array = log_excess - np.log(outer * (outer - 1))
    return log_curvature, np.abs(log_excess) + np.abs(np.log(outer - 1)) + 1


def _log_moment(log_excess: Array, size: Array) -> Array:
    """Return ``ln(1 + e^log_excess)``, raised for the round-off of terms of this size.

    An error e of the exponent x changes ln(1 + e^x) by at most a share e of itself, as its
    derivative e^x / (1 + e^x) is at most ln(1 + e^x).  16 ulps of 8 + size are several times e.
    """
    raised = np.logaddexp(0.0, log_excess) * (1 + 16 * ULP * (8 + size))
    log_moment: Array = np.where(np.isnan(raised), np.inf, raised)
    return log_moment
