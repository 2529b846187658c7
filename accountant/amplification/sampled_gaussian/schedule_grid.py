"""Nodes that the integrals of many similar sampled Gaussians share, on a line that may be raised.

The integrand is ``n(y; m, mu^2) (1 + e^y)^p``; proof: `docs/proofs/schedules.md`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accountant.numerics import Array

DEVIATIONS = 9.8  # e^{-9.8^2 / 2} / 2 is 7e-22: what is left out at a side
LOG_LEFT_OUT = -48.0
LOG_QUADRATURE_ERROR = -37.0  # relative to the real moment
MAX_LOG_LOST = 1.2  # round-off on a raised line is larger by its exponential
QUADRATURE_ERROR = 2e-16  # with what is left out
MAX_GRID_POINTS = 4_000
STEP_BITS = 12


def shared_grid(
    mu: Array, log_odds: Array, powers: Array, frequency: float
) -> tuple[Array, float, float] | None:
    """Return nodes, their distance and the height of their line; None out of reach.

    ``powers``: the real parts of p, all of one sign; ``frequency``: the largest imaginary part.
    """
    low, high = _range(mu, log_odds, powers)
    step, raised = _step(
        float(np.min(mu)), float(np.min(powers)), frequency, float(np.max(log_odds))
    )
    if not high - low <= MAX_GRID_POINTS * step:
        return None
    # a step of few bits and its multiples: nodes are exact
    bits = STEP_BITS - math.frexp(step)[1]
    step = math.ldexp(math.floor(math.ldexp(step, bits)), -bits)
    nodes: Array = step * np.arange(math.floor(low / step), math.ceil(high / step) + 1.0)
    return nodes, step, raised


def log_one_plus_exp(y: Array, height: float) -> Any:
    """Return ``ln(1 + e^{y + i height})``, real on the real line."""
    if height == 0:
        return np.logaddexp(0.0, y)
    # |1 + e^w|^2 = (1 + e^y)^2 - 4 e^y sin(h/2)^2
    share = np.exp(np.minimum(y, 0.0)) / (1 + np.exp(-np.abs(y)))
    lost = np.log1p(-4 * share * (1 - share) * math.sin(height / 2) ** 2) / 2
    inner = np.exp(-np.abs(y))
    angle = np.where(
        y > 0,
        np.arctan2(math.sin(height), inner + math.cos(height)),
        np.arctan2(inner * math.sin(height), 1 + inner * math.cos(height)),
    )
    return np.logaddexp(0.0, y) + lost + 1j * angle


def _range(mu: Array, log_odds: Array, powers: Array) -> tuple[float, float]:
    """Return ends beyond which less than 1e-20 of the tilted mass of any member lies."""
    mean, max_mu = log_odds - mu * mu / 2, float(np.max(mu))
    lowest_mean, highest_mean = float(np.min(mean)), float(np.max(mean))
    if np.min(powers) < 0:
        # the tilt moves mass to the left, by at most a mu^2, and G >= (1 + o)^-a
        a = float(np.max(-powers))
        nats = a * float(np.logaddexp(0.0, np.max(log_odds)))
        reach = min(max_mu * a, math.sqrt(DEVIATIONS**2 + 2 * nats) - DEVIATIONS)
        return lowest_mean - max_mu * (DEVIATIONS + reach), highest_mean + max_mu * DEVIATIONS
    return lowest_mean - max_mu * DEVIATIONS, right_end(
        highest_mean, max_mu, float(np.max(powers)), float(np.min(log_odds))
    )


def right_end(mean: float, mu: float, power: float, least_log_odds: float) -> float:
    """Return where the mass ``n(y) (1 + e^y)^p`` to the right is negligible."""
    # on a cell the normal density falls and the power grows; beyond all cells
    # (1 + e^y)^p <= (1 + e^{-end})^p e^{py}, a shifted normal; that end is always enough
    width = mu / 4
    if mu * power > MAX_GRID_POINTS:
        return math.inf
    cell_starts = mean + mu + width * np.arange(math.ceil(4 * (mu * power + DEVIATIONS + 1)))
    cells = (
        -(((cell_starts - mean) / mu) ** 2) / 2
        - math.log(4)
        + power * np.logaddexp(0.0, cell_starts + width)
    )
    end = float(cell_starts[-1] + width)
    beyond = power * (mean + float(np.logaddexp(0.0, -end))) + (mu * power) ** 2 / 2
    beyond += LOG_LEFT_OUT
    log_tail = np.logaddexp.accumulate(np.append(beyond, cells[::-1]))[::-1]
    least_log_power = power * float(np.logaddexp(0.0, least_log_odds))  # G >= (1 + o)^p
    is_negligible = log_tail <= least_log_power + LOG_LEFT_OUT
    return float(cell_starts[np.argmax(is_negligible[:-1])]) if is_negligible[:-1].any() else end


def _step(mu: float, power: float, frequency: float, log_odds: float) -> tuple[float, float]:
    """Return a step of the trapezoid rule, and the height of the line that allows it."""
    # |f(y + ig)| <= f(y) e^{g^2/(2 mu^2)}, times cos(g/2)^p where p < 0, times e^{u|g|}
    # on the side where the power's phase grows
    widest = 3.0 if power >= 0 else 1.5
    flat = np.minimum(mu * np.array([4.0, 6.0, 8.7]), widest)
    grown = flat**2 / (2 * mu * mu) + frequency * flat + _log_grown(flat, power, log_odds)
    raised = np.minimum(mu * np.array([0.5, 1.0, 1.5]), widest / 2)
    lost = raised**2 / (2 * mu * mu) + _log_grown(raised, power, log_odds)
    top = (2 * raised) ** 2 / (2 * mu * mu) + _log_grown(2 * raised, power, log_odds)
    distance = np.append(flat, raised)
    rate = (np.append(grown, top) - LOG_QUADRATURE_ERROR + math.log(4)) / distance
    rate[np.append(0 * flat, lost) > MAX_LOG_LOST] = math.inf
    best = int(np.argmin(rate))
    return 2 * math.pi / float(rate[best]), float(np.append(0 * flat, raised)[best])


def _log_grown(height: Array, power: float, log_odds: float) -> Array:
    """Return a bound on ``ln |1 + e^{y + ih}|^p`` over that at h = 0, or over ``ln G``."""
    if power >= 0:
        return np.zeros(height.shape)
    # |1 + e^{y + ih}| >= cos(h/2) (1 + e^y), and >= 1 up to a right angle, where G >= (1 + o)^p
    grown: Array = np.minimum(
        power * np.log(np.cos(height / 2)), -power * float(np.logaddexp(0.0, log_odds))
    )
    return grown
