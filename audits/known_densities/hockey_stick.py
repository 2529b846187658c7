"""The hockey-stick divergence of a mechanism's declared density: its delta at each epsilon.

For the outputs P and Q of two neighbouring values with densities p and q it is

    delta(epsilon) = sup_S P(S) - e^epsilon Q(S) = integral of (p - e^epsilon q)_+,

a sum over cells where the outputs can be enumerated, else an integral over the line by Gauss-
Legendre quadrature.  It is an independent check of the loss that a mechanism declares.

Reference: Balle, Barthe & Gaboardi (2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.domains import DELTA, REAL
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.quadrature import gauss_legendre_panels
from accountant.numerics.search import greatest_float_that, grow_until
from mechanisms.base.mechanism import Mechanism
from mechanisms.base.supports import RealLine


def exact(mechanism: Mechanism, epsilon: float) -> float:
    """Compute delta at ``epsilon`` from the mechanism's own density at its worst pair.

    The value is a sum over all outputs, or a quadrature with an error of about 1e-12.  The declared
    loss is not used, so the value is a check of it.

    Parameters
    ----------
    mechanism : Mechanism
        A declared mechanism with a density.
    epsilon : float
        Any real number.

    Returns
    -------
    float
        The hockey-stick divergence, a delta in [0, 1], not rounded to either side.

    Raises
    ------
    ParameterError
        If the mechanism is not a declared one, or its worst pair is not two single numbers and
        cannot be enumerated.

    Examples
    --------
    >>> from audits import exact
    >>> from mechanisms import Laplace
    >>> round(exact(Laplace(scale=1.0), epsilon=0.5), 6)
    0.221199
    """
    epsilon = REAL.check("epsilon", epsilon)
    if not isinstance(mechanism, Mechanism):
        raise ParameterError("mechanism", mechanism, "a declared mechanism")
    return min(1.0, hockey_stick(mechanism, mechanism.worst_pair(epsilon), epsilon))


def hockey_stick(mechanism: Mechanism, pair: tuple[Any, Any], epsilon: float) -> float:
    """``sup_S P(S) - e^epsilon Q(S)`` between the releases of two values (numbers or scores)."""
    return hockey_sticks(mechanism, pair, [epsilon])[0]


def hockey_sticks(
    mechanism: Mechanism, pair: tuple[Any, Any], epsilons: Sequence[float]
) -> list[float]:
    """`hockey_stick` of one pair at each epsilon; cells have their densities computed only once."""
    first_value, second_value = pair
    cells = mechanism.support.cells(first_value, second_value)
    if cells is not None:
        p, q = (mechanism.log_density(cells.outputs, value) for value in pair)
        return [float(np.sum(cells.measure * _hockey_stick_terms(p, q, e))) for e in epsilons]
    line = mechanism.support
    if np.size(first_value) != 1 or not isinstance(line, RealLine):
        raise ParameterError("pair", f"shape {np.shape(first_value)}", "two single numbers")
    values = float(np.sum(first_value)), float(np.sum(second_value))
    return [_integrate_on_line(mechanism, line, values, e) for e in epsilons]


def exact_epsilon(mechanism: Mechanism, delta: float) -> float:
    """Least epsilon at which `exact` is at most ``delta``, rounded down by a share of up to 1e-9.

    It is infinite where it is not found at 1, 2, 4, ... or 256 or below.
    """
    delta = DELTA.check("delta", delta)
    # The error of quadrature is about 1e-12, so a smaller divergence counts as 0.
    target = max(delta, 1e-12)
    _, high = grow_until(lambda e: exact(mechanism, e) <= target, 1.0, 500.0)
    if high > 500:
        return math.inf
    return greatest_float_that(lambda e: exact(mechanism, e) > target, 0.0, high, relative=1e-9)


def _hockey_stick_terms(log_p: Array, log_q: Array, epsilon: float) -> Array:
    """``(p - e^epsilon q)_+ = p (1 - e^min(epsilon + ln q - ln p, 0))``, without cancellation."""
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.where(np.isneginf(log_q), -np.inf, epsilon + log_q - log_p)
        stick: Array = np.exp(log_p) * -np.expm1(np.minimum(gap, 0.0))
    return np.where(np.isneginf(log_p), 0.0, stick)


def _integrate_on_line(
    mechanism: Mechanism, line: RealLine, values: tuple[float, float], epsilon: float
) -> float:
    """The divergence on the line: Gauss-Legendre on panels inside which the integrand is smooth.

    Panels end at the two values, at jumps of the densities, where ln p - ln q - epsilon changes
    its sign, and at points around the values: up to 16 widths of the density they are 1/4 of a
    width apart, and then their distance from the value grows by a factor 1.25 to some 1700 widths.
    A bounded line has 256 equal parts instead, and its two ends are added as point masses.
    """

    def log_density_of(value: float) -> Callable[[Array], Array]:
        return lambda x: mechanism.log_density(x, value)

    log_p, log_q = map(log_density_of, values)
    at_ends = 0.0
    if line.ends is not None:
        ends = np.array(line.ends)
        at_ends = float(np.sum(_hockey_stick_terms(log_p(ends), log_q(ends), epsilon)))
        points = np.concatenate([np.linspace(line.ends[0], line.ends[1], 257), np.array(values)])
    else:
        # The density integrates to 1, so 1 / (its height at the centre) is about its width.
        width = math.exp(-min(float(log_p(np.array(values[0]))), float(log_q(np.array(values[1])))))
        near, far = np.linspace(0.0, 16.0, 65), 16 * 1.25 ** np.arange(1, 22)
        distances = width * np.concatenate([near, far])
        points = np.concatenate([v + side * distances for v in values for side in (-1, 1)])
    points = np.concatenate([points, *map(line.breakpoints, values)])
    points = np.unique(points if line.ends is None else np.clip(points, *line.ends))

    def excess(x: Array) -> Array:
        with np.errstate(invalid="ignore"):  # where both densities are 0
            return log_p(x) - log_q(x) - epsilon

    # The integrand has a kink where the sign changes: a panel ends there.
    sign = excess(points) > 0
    changes = np.flatnonzero(sign[:-1] != sign[1:])
    kinks = _sign_changes(excess, points[changes], points[changes + 1], sign[changes + 1])
    nodes, weights, _ = gauss_legendre_panels(np.unique(np.concatenate([points, kinks])))
    return at_ends + float(
        np.sum(weights * _hockey_stick_terms(log_p(nodes), log_q(nodes), epsilon))
    )


def _sign_changes(
    excess: Callable[[Array], Array], low: Array, high: Array, rising: NDArray[np.bool_]
) -> Array:
    """For each cell from ``low`` to ``high``, the last float before the sign of ``excess`` changes.

    ``rising`` says whether the sign is positive at the upper end.  Each round cuts every cell into
    ``parts`` and keeps the part with the change; about 80 halvings reach neighbouring floats.
    """
    parts = max(2, min(64, 2048 // max(1, low.size)))
    shares = np.arange(1, parts)[:, None] / parts
    column = np.arange(low.size)
    for _ in range(math.ceil(80 / math.log2(parts))):
        middle = (low + high) / 2
        if ((middle == low) | (middle == high)).all():
            break  # all ends are neighbouring floats, or there are no cells
        inner = np.minimum(low + shares * (high - low), high)
        before = (excess(inner.ravel()) > 0).reshape(inner.shape) != rising
        # The first point behind the change, or the end of the cell.
        change = np.where(before.all(axis=0), parts - 1, before.argmin(axis=0))
        edges = np.concatenate([low[None], inner, high[None]])
        low, high = edges[change, column], edges[change + 1, column]
    return low
