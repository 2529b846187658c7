"""Chooses the numbers in a proof of what one epoch of random allocation with Gaussian noise costs.

Each record is used in one of t steps, drawn in secret.  P is the law of the outputs with the
record, Q that without it.  With V = e^{mu x - mu^2/2}, x standard normal, and S a sum of t such V,
dP/dQ is S / t under Q, and E S = t.  Let phi(s) = E e^{-sV} and

    g(K) = E (K - S)_+ = (1 / 2 pi i) int e^{sK} phi(s)^t s^{-2} ds    along Re s = a.

For the pair (P, Q) delta is E (S - K)_+ / t = (g(K) + t - K) / t with K = t e^eps; for (Q, P) it is
(e^eps / t) g(K) with K = t e^-eps.

The proof names the line of the integral over s: the abscissa ``a``, and nodes a + ijh for j below
``nodes``.  At each node phi is an integral over x, which a trapezoid rule sums at points ``step``
apart on the line Im x = -``y``.  Beyond the last node the verifier bounds phi by the same integral
on the line Im x = -``turn``.  ``bits`` is the precision of its numbers, and ``road`` names this way
to prove.  Reals are rounded to 24 bits and written as hexadecimal text.

This file chooses all of them by floats.  `accountant/verifier/allocation.py` recomputes the
integral with balls and bounds all errors: a bad choice here can only make a proof long, or fail.
Constants without another reason beside them came out well in trials.
Mathematics: docs/proofs/random_allocation.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import optimize

from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.proofs.no_method import NoMethod

# Values of x at which phi is summed in floats; beyond 9 the normal law has a mass of 2e-19.
GRID = np.linspace(-9, 9, 700)
MAX_LAST_INDEX = 2**17 - 1  # of the nodes of a line, from 0 on: the verifier reads 2^17 nodes
MARGIN = 32.0  # nats: the error that is aimed at is e^-32 of delta
RULE_MARGIN = 14.0  # nats: the rule for phi may cause e^-14 of that error
# nats: no rule for phi aims at an error below e^-150; it would only have more points
LOG_RULE_ERROR_FLOOR = -150.0
LOG_ABSCISSAS = (-18, 12)  # ln a is sought in this range
MULTIPLES = 2.0 ** np.arange(0, 7)  # abscissas that are tried, over that of the saddle point
# The rule for phi is on Im x = -y.  The verifier demands 2 y mu <= pi/2, of which 4.01 leaves room
# for rounding.  Its error has the factor e^{2 y^2}, which DEPTH_LIMIT keeps below e^12.5.
DEPTH_DIVISOR, DEPTH_LIMIT = 4.01, 2.5
# Bits of the verifier's numbers beyond those that the rule's error needs.  The second is for a line
# that serves many epsilons: `allocation_entry` makes such lines for compositions.
GUARD_BITS, WIDE_GUARD_BITS = 64, 128


class _LogNormal:
    """V = e^{mu x - mu^2/2}, x standard normal, and its transform phi(s) = E e^{-sV} in floats."""

    def __init__(self, mu: float) -> None:
        self.mu = mu
        self._values: Array = np.exp(mu * GRID - mu * mu / 2)

    def log_transform(self, s: float) -> float:
        """Return ``ln phi(s)`` at a real s."""
        log_sum = float(logsumexp(-s * self._values - GRID**2 / 2))
        return log_sum + math.log((GRID[1] - GRID[0]) / math.sqrt(2 * math.pi))

    def decay(self, a: float, u: float) -> tuple[float, float]:
        """Return a bound on ``ln |phi(a + iv)|`` for all v >= u, and the depth D that gives it.

        Moving x to Im x = -D gives ``|phi(a + iv)| <= e^{D^2/2} phi(a cos mu D + v sin mu D)`` for
        0 <= mu D <= pi/2.  The least bound of 28 depths is returned, from 0.99 pi/2 down, each
        smaller by the factor sqrt 2.
        """
        depths = math.pi / 2 / self.mu * 2.0 ** -np.arange(0.01, 14, 0.5)
        return min(
            (
                depth * depth / 2
                + self.log_transform(a * math.cos(depth * self.mu) + u * math.sin(depth * self.mu)),
                depth,
            )
            for depth in map(float, depths)
        )


def _nodes(
    variable: _LogNormal, steps: int, threshold: float, a: float, log_error: float
) -> tuple[int, float]:
    """Return the last index of the nodes that a line at the abscissa ``a`` needs, and their step h.

    ``threshold`` is K, ``log_error`` the logarithm of the error of g(K) that is aimed at.  The
    period T = 2 pi / h is more than K, as the verifier demands, and so long that the aliases, of
    about (K + T) e^{-aT}, are below that error.  The last node, at height U, is so high that
    ``e^{aK} |phi|^t / U`` beyond it is below it, too.  The search stops at an index above
    `MAX_LAST_INDEX`, where the line is too long.
    """
    # T is not known yet: 1000 (K + 1) stands for K + T, with 10 nats to spare.
    period = max(1.01 * threshold, (math.log(1e3 * threshold + 1e3) - log_error + 10) / a)
    h = float(np.float32(2 * math.pi / period))
    count = 8
    while a * threshold + steps * variable.decay(a, count * h)[0] - math.log(count * h) > log_error:
        count = int(1.1 * count) + 1
        if count > MAX_LAST_INDEX:
            break
    return count, h


def allocation_entry(
    mu_squared: float,
    steps: int,
    back: bool,
    epsilon: float,
    delta: float,
    multiple: float | None = None,
) -> dict[str, Any]:
    """Return the fields of an entry of the proof, which the module's docstring explains.

    ``mu_squared`` is mu^2, and ``back`` asks for the pair (Q, P).  The line is for delta at
    ``epsilon``, which is expected near ``delta``; its abscissa is the multiple of the saddle point
    in `MULTIPLES` that needs the fewest nodes.  Where a ``multiple`` is given it is taken, and the
    line serves many epsilons: phi is then computed with a smaller error and more bits.
    """
    serves_many = multiple is not None
    variable = _LogNormal(math.sqrt(mu_squared))
    # An error r of g is an error r / t of the delta of (P, Q), and r e^eps / t of that of (Q, P).
    log_error = math.log(delta) - MARGIN + math.log(steps) - max(0.0, epsilon)
    threshold = steps * math.exp(-epsilon if back else epsilon)

    def log_integrand(log_a: float) -> float:
        a = math.exp(log_a)
        return a * threshold + steps * variable.log_transform(a) - 2 * log_a

    minimum = optimize.minimize_scalar(log_integrand, bounds=LOG_ABSCISSAS, method="bounded")
    # The saddle point is where e^{aK} phi(a)^t / a^2 is least on the real line.  Further right
    # phi is smaller and the aliases fall faster with T, so that fewer nodes may be enough.
    saddle = math.exp(minimum.x)
    lines = [
        (_nodes(variable, steps, threshold, factor * saddle, log_error), factor)
        for factor in (MULTIPLES if multiple is None else [multiple])
    ]
    (last_index, h), chosen_multiple = min(lines)
    if last_index > MAX_LAST_INDEX:
        raise NoMethod("a contour of so many nodes is too long to check")
    a = float(np.float32(chosen_multiple * saddle))
    period = 2 * math.pi / h
    y = float(np.float32(min(math.pi / DEPTH_DIVISOR / variable.mu, DEPTH_LIMIT)))
    # An error r of phi changes phi^t by about t r phi^{t-1}, so the integrand by a share t r / phi
    # of itself.  At s = a, where it is e^log_integrand, the change is to be at most
    # e^{log_error - RULE_MARGIN}; where the integrand is below e^log_error already, a share of
    # e^-RULE_MARGIN is enough.  About a T nodes, 2 pi / T apart, add up such changes: hence the
    # factor a T where it is above 1.  A line that serves many epsilons has other K too, where the
    # integrand may be larger, up to e^{aK} / a^2: r is smaller by this factor as well.
    log_rule_error = (
        log_error - max(log_integrand(math.log(a)), log_error) - math.log(steps) - RULE_MARGIN
    )
    log_rule_error += min(0.0, variable.log_transform(a)) - max(0.0, math.log(period * a))
    if serves_many:
        log_rule_error -= max(0.0, a * threshold - 2 * math.log(a))
    # A rule of this step on Im x = -y errs by about e^{2 y^2 - 2 pi y / step}: e^log_rule_error.
    exponent = -max(log_rule_error, LOG_RULE_ERROR_FLOOR) + 2 * y * y
    step = float(np.float32(2 * math.pi * y / exponent))
    # 0.9999: rounding must not raise mu turn, which the verifier lets be pi/2 at most.
    turn = float(np.float32(variable.decay(a, last_index * h)[1] * 0.9999))
    # The power t and the sum over the nodes may multiply a relative round-off by t times the nodes.
    bits = (WIDE_GUARD_BITS if serves_many else GUARD_BITS) + 8 * math.ceil(
        (-log_rule_error + math.log(steps * last_index)) / math.log(2) / 8
    )
    return {
        "road": "allocation",
        "a": a.hex(),
        "h": h.hex(),
        "nodes": last_index + 1,
        "y": y.hex(),
        "step": step.hex(),
        "turn": turn.hex(),
        "bits": bits,
    }
