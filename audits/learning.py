"""A one-dimensional score learned from runs: smoothed log-odds on few cells of the output.

Numbers that occur often are cells of their own (atoms); the rest are cut at quantiles, finer in
the tails, and the log-odds of neighbouring cells are smoothed by penalised second differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.numerics import Array
from audits.rules import Score

MOST_ATOMS = 64
# Tail shares of the quantile cells; between the last two, 5 % steps.
TAIL = np.array([0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.025, 0.04, 0.06, 0.08])
SHARES = np.concatenate([TAIL, np.arange(0.1, 0.9001, 0.04), 1 - TAIL[::-1]])


def learned_score(first: NDArray[Any], second: NDArray[Any]) -> Score:
    """Learn log-odds of the first side from outputs of both, which must be numbers."""
    a, b = _numbers(first), _numbers(second)
    pooled = np.concatenate([a, b])
    values, counts = np.unique(pooled, return_counts=True)
    if values.size <= MOST_ATOMS:
        return _atoms_score(values, a, b)
    edges = _edges(values.astype(float), counts, pooled.astype(float))
    ones = np.bincount(np.searchsorted(edges, a), minlength=edges.size + 1).astype(float)
    zeros = np.bincount(np.searchsorted(edges, b), minlength=edges.size + 1).astype(float)
    log_odds = smoothed_log_odds(ones, zeros)
    return lambda output: log_odds[np.searchsorted(edges, _numbers(output))]


def _atoms_score(values: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Score:
    """Log-odds of each distinct output, with 1.5 pseudo-runs a side; 0 for outputs never seen."""
    ones = np.bincount(np.searchsorted(values, a), minlength=values.size)
    zeros = np.bincount(np.searchsorted(values, b), minlength=values.size)
    log_odds = np.log((ones + 1.5) / (zeros + 1.5)) - np.log((a.size + 1.5) / (b.size + 1.5))

    def score(output: NDArray[Any]) -> Array:
        number = _numbers(output)
        at = np.minimum(np.searchsorted(values, number), values.size - 1)
        return np.where(values[at] == number, log_odds[at], 0.0)

    return score


def _edges(values: Array, counts: NDArray[np.intp], pooled: Array) -> Array:
    """Upper ends of the cells: quantiles, and both sides of every atom of half a percent."""
    cuts = np.quantile(pooled, SHARES, method="inverted_cdf")
    atoms = values[counts >= 0.005 * pooled.size]
    below: Array = np.nextafter(atoms, -np.inf)
    return np.unique(np.concatenate([cuts, atoms, below]))


def smoothed_log_odds(ones: Array, zeros: Array) -> Array:
    """Penalised log-odds of each cell; the penalty is chosen by held-out likelihood."""
    total_odds = np.log((ones.sum() + 1.0) / (zeros.sum() + 1.0))
    rough = _second_differences(ones.size)
    rng = np.random.default_rng(0)  # splits counts, never noise: the learner is deterministic
    half_ones, half_zeros = (rng.binomial(n.astype(int), 0.5).astype(float) for n in (ones, zeros))
    best, best_fit = None, -np.inf
    for weight in (0.3, 3.0, 30.0, 300.0, 3000.0):
        fit = _fit(half_ones, half_zeros, weight * rough)
        held = -(ones - half_ones) @ np.logaddexp(0, -fit) - (zeros - half_zeros) @ np.logaddexp(
            0, fit
        )
        if held > best_fit:
            best, best_fit = weight, held
    log_odds: Array = _fit(ones, zeros, (best or 30.0) * rough) - total_odds
    return log_odds


def _fit(ones: Array, zeros: Array, penalty: Array) -> Array:
    runs = ones + zeros
    odds = np.zeros(ones.size)
    for _ in range(25):
        chance = 1 / (1 + np.exp(-odds))
        gradient = ones - runs * chance - penalty @ odds - 0.01 * odds
        hessian = np.diag(runs * chance * (1 - chance) + 0.01) + penalty
        step = np.clip(np.linalg.solve(hessian, gradient), -2.0, 2.0)
        odds = odds + step
        if np.max(np.abs(step)) < 1e-8:
            break
    return odds


def _second_differences(cells: int) -> Array:
    second = np.diff(np.eye(cells), n=2, axis=0)
    result: Array = second.T @ second
    return result


def _numbers(output: NDArray[Any]) -> NDArray[Any]:
    """Outputs as floats or exact integers; NaN becomes infinity, infinity the greatest float."""
    array = np.asarray(output)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        shown = f"outputs of shape {array.shape[1:]} and type {array.dtype}"
        raise ParameterError("release", shown, "a function whose outputs are single numbers")
    if array.dtype.kind in "iu":  # large integers differ where their floats would not
        return array
    real = array.astype(float)
    return np.where(np.isnan(real), np.inf, np.minimum(real, np.finfo(float).max))
