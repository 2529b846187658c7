"""Smoothed log-odds of a number: an estimate of its log-likelihood ratio under two values.

An audit learns from runs on two neighbouring values how much likelier each output is under the
first.  This is the estimate for outputs that are one number, from a histogram: the log-odds of a
cell are ln(p / q) if a run lies in it with probability p under the first value and q under the
second.  ``ones`` are the numbers of runs in each cell on the first value, ``zeros`` on the second.

Numbers that occur often (atoms) are cells of their own; the others are cut at quantiles, finer in
the tails.  Penalised second differences smooth the log-odds of neighbouring cells.  The constants
decide only how good the estimate is: an audit tests the score on other runs, so no choice of them
can make its verdict wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array

# At most this many different numbers have a cell each, if on average each occurs in MIN_MEAN_COUNT
# runs.  In more cells, or with fewer runs in each, chance would decide the log-odds of a cell.
MAX_CATEGORIES, MIN_MEAN_COUNT = 64, 4
# Shares of runs below the ends of the quantile cells: in either tail, where the largest log-odds
# often are, from 0.05 % on, each 1.3 to 2 times the one before; between the tails every 1 %.
TAIL_SHARES = np.array([0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.025, 0.04, 0.06, 0.08])
QUANTILE_SHARES = np.concatenate([TAIL_SHARES, np.arange(0.1, 0.9001, 0.01), 1 - TAIL_SHARES[::-1]])
RIDGE = 0.01  # weight of the squared log-odds, which keeps the linear system positive definite
# Of many cells, the one with the most extreme estimate is often extreme by chance.  Among at most
# this many, chance is small, so they are estimated from all runs and hardly drawn towards 0.
FEW_CELLS = 8
MIN_CELL_RUNS = 8  # quantile cells have at least about this many runs on average
FREQUENT_SHARE = 0.005  # a number in at least this share of the runs always has a cell of its own
# Rare atoms: of the numbers in a smaller share of the runs, but in at least MIN_ATOM_RUNS, the most
# frequent MAX_RARE_ATOMS have cells too.  A release may leak by a number that is seldom released.
MIN_ATOM_RUNS, MAX_RARE_ATOMS = 8, 32
# A rare atom whose count is this many standard errors from what its neighbours predict is not
# smoothed with them: with up to 32 rare atoms, chance seldom moves one so far.
UNLIKE = 4.0
# Whether second differences are taken by rank (else by number), and the weight of their squares.
Smoothing = tuple[bool, float]
# The weights that are tried: from hardly smoothed to nearly a line.
SMOOTHING_WEIGHTS = (0.1, 2.0, 40.0, 800.0, 20_000.0)
NONFINITE_CENTRE = 1e300  # the centre of a cell of NaN or infinities; `_roughness` clips it
# Newton's method: its most steps, the log-odds that one step may change, and the change at which it
# ends, which is small against any statistical error of the log-odds.
MAX_NEWTON_STEPS, MAX_NEWTON_CHANGE, NEWTON_TOLERANCE = 25, 2.0, 1e-4
# In units of the distance between the quartiles of the cells' centres: a centre farther from the
# middle counts as being so far, and the least gap between neighbours, which keeps penalties finite.
MAX_DISTANCE, MIN_GAP = 50.0, 0.02


@final
@dataclass(frozen=True, slots=True)
class HistogramCells:
    """Cells ``(edges[k-1], edges[k]]`` of numbers; the first and the last have no outer edge."""

    edges: NDArray[Any]  # in rising order, one fewer than cells
    log_odds: Array  # of the first value, for each cell
    mass: Array  # the share of all runs in each cell
    smoothing: Smoothing | None = None  # how the log-odds were smoothed; None if they were not

    def cell_of(self, numbers: NDArray[Any]) -> NDArray[np.intp]:
        """The cell of every number."""
        return np.searchsorted(self.edges, numbers)


@final
@dataclass(frozen=True, slots=True)
class StepFunction:
    """Smoothed log-odds of a number: constant on cells."""

    cells: HistogramCells

    def __call__(self, numbers: NDArray[Any]) -> Array:
        """The log-odds of the cells that the numbers lie in."""
        log_odds: Array = self.cells.log_odds[self.cells.cell_of(numbers)]
        return log_odds


def histogram_cells(
    first: NDArray[Any], second: NDArray[Any], smoothing: Smoothing | None = None
) -> HistogramCells:
    """Cells of numbers of both values: each number if there are few, else smoothed quantiles.

    The smoothing is chosen if none is given.
    """
    pooled = np.concatenate([first, second])
    values, counts = np.unique(pooled, return_counts=True)
    # Few numbers that rarely repeat are a small sample of a continuous law, not atoms.
    most_values = max(min(MAX_CATEGORIES, pooled.size // MIN_MEAN_COUNT), 1)
    has_few_values = values.size <= most_values
    # Each of few values is the upper end of its own cell.
    edges = values[:-1] if has_few_values else _edges(values, counts, pooled)
    ones = np.bincount(np.searchsorted(edges, first), minlength=edges.size + 1).astype(float)
    zeros = np.bincount(np.searchsorted(edges, second), minlength=edges.size + 1).astype(float)
    mass = (ones + zeros) / pooled.size
    if has_few_values or ones.size < 4:  # so few cells leave hardly anything to smooth
        return HistogramCells(edges, raw_log_odds(ones, zeros), mass)
    # The centre of a cell is the mean of the numbers in it.
    total = np.bincount(
        np.searchsorted(edges, pooled),
        np.nan_to_num(
            pooled.astype(float),
            nan=NONFINITE_CENTRE,
            posinf=NONFINITE_CENTRE,
            neginf=-NONFINITE_CENTRE,
        ),
        minlength=edges.size + 1,
    )
    centres = total / np.maximum(ones + zeros, 1.0)
    # Which cells are rare atoms: each is the upper end of its own cell.
    rare = np.isin(np.append(edges, values[-1]), _rare_atoms(values, counts))
    # ``smooth_cells`` is 1 for the cells whose runs take part in the fit, and 0 for the others: for
    # these the fit predicts the log-odds from their neighbours.  First the rare atoms are left out.
    # Those that are as predicted then take part in a second fit like other cells.
    smooth_cells = (~rare).astype(float)
    chosen = (
        best_smoothing(ones * smooth_cells, zeros * smooth_cells, centres)
        if smoothing is None
        else smoothing
    )
    log_odds = smoothed_log_odds(ones * smooth_cells, zeros * smooth_cells, centres, chosen)
    if rare.any():
        runs = ones + zeros
        # The predicted share of the first value among a cell's runs, for the numbers of runs that
        # there are of each value.  The count of ones in the cell is binomial with this share.
        share = 1 / (1 + np.exp(-log_odds - np.log((ones.sum() + 1.0) / (zeros.sum() + 1.0))))
        error = np.sqrt(np.maximum(runs * share * (1 - share), 1e-12))  # above 0
        unlike = rare & (np.abs(ones - runs * share) > UNLIKE * error)
        smooth_cells = (~unlike).astype(float)
        log_odds = smoothed_log_odds(ones * smooth_cells, zeros * smooth_cells, centres, chosen)
        log_odds = np.where(unlike, raw_log_odds(ones, zeros, 0.5), log_odds)
    return HistogramCells(edges, log_odds, mass, chosen)


def raw_log_odds(ones: Array, zeros: Array, pseudo_runs: float | None = None) -> Array:
    """Log-odds of each cell if both values were run equally often, with pseudo-runs of each value.

    Few cells get half a pseudo-run of each value (Jeffreys' prior), so that a rare cell with runs
    of one value only still has large log-odds.  Among many cells the luckiest would look the most
    extreme, so each gets 1.5, which draws cells with few runs towards 0.
    """
    if pseudo_runs is None:
        pseudo_runs = 0.5 if ones.size <= FEW_CELLS else 1.5
    total_odds = np.log((ones.sum() + pseudo_runs) / (zeros.sum() + pseudo_runs))
    odds: Array = np.log((ones + pseudo_runs) / (zeros + pseudo_runs)) - total_odds
    return odds


def best_smoothing(ones: Array, zeros: Array, centres: Array) -> Smoothing:
    """The smoothing whose fit to half of the counts has the largest likelihood on the other half.

    Differences are taken along the cells' numbers (a Gaussian's log-odds are a line there) or
    along their ranks.
    """
    rng = np.random.default_rng(0)  # splits counts, never noise: the learner is deterministic
    half_ones, half_zeros = (rng.binomial(n.astype(int), 0.5).astype(float) for n in (ones, zeros))
    tried = [(by_rank, weight) for by_rank in (False, True) for weight in SMOOTHING_WEIGHTS]
    by_number_and_by_rank = _roughness(centres), _roughness(np.arange(ones.size, dtype=float))
    penalties = [weight * by_number_and_by_rank[by_rank] for by_rank, weight in tried]
    log_likelihood = np.zeros(len(tried))
    for fit_ones, fit_zeros in ((half_ones, half_zeros), (ones - half_ones, zeros - half_zeros)):
        fits = _fit_log_odds(
            np.tile(fit_ones, (len(tried), 1)),
            np.tile(fit_zeros, (len(tried), 1)),
            np.hstack(penalties),
        )
        # With log-odds x a run is one of the first value with probability 1 / (1 + e^-x), and one
        # of the second with 1 / (1 + e^x).
        other_ones, other_zeros = ones - fit_ones, zeros - fit_zeros
        log_likelihood -= np.logaddexp(0, -fits) @ other_ones + np.logaddexp(0, fits) @ other_zeros
    by_rank, weight = tried[int(np.argmax(log_likelihood))]
    # Each fit had half of the runs; with all of them twice the penalty is as strong against them.
    return by_rank, 2 * weight


def smoothed_log_odds(ones: Array, zeros: Array, centres: Array, smoothing: Smoothing) -> Array:
    """Penalised log-odds of each cell if both values were run equally often.

    The fit gives log-odds for as many runs as there are of each value; the log-odds of these
    numbers of runs are subtracted, in which one pseudo-run of each value keeps them finite.
    """
    by_rank, weight = smoothing
    roughness = _roughness(np.arange(ones.size, dtype=float) if by_rank else centres)
    total_odds = np.log((ones.sum() + 1.0) / (zeros.sum() + 1.0))
    log_odds: Array = _fit_log_odds(ones[None], zeros[None], weight * roughness)[0] - total_odds
    return log_odds


def _edges(values: NDArray[Any], counts: NDArray[np.intp], pooled: NDArray[Any]) -> NDArray[Any]:
    """Upper ends of the cells: quantiles, and both ends of the cell of every atom.

    ``values`` are the different numbers in rising order, and ``counts`` how often each occurs.
    """
    # With few runs only every k-th quantile is taken, k = ceil(quantiles * MIN_CELL_RUNS / runs).
    every = max(1, -(-QUANTILE_SHARES.size * MIN_CELL_RUNS // pooled.size))
    shares = QUANTILE_SHARES[::every]
    # np.quantile would be NaN if any number is; a sort puts NaN after every number.
    cuts = np.sort(pooled)[np.ceil(shares * pooled.size).astype(int) - 1]
    atoms = np.flatnonzero(counts >= max(FREQUENT_SHARE * pooled.size, 2.0))
    atoms = np.union1d(atoms, np.searchsorted(values, _rare_atoms(values, counts)))
    below = values[atoms[atoms > 0] - 1]
    ends: NDArray[Any] = np.unique(np.concatenate([cuts, values[atoms], below]))
    edges: NDArray[Any] = ends[ends <= values[-2]]  # the greatest value ends the last cell
    return edges


def _rare_atoms(values: NDArray[Any], counts: NDArray[np.intp]) -> NDArray[Any]:
    """The rare atoms, in rising order; see `MIN_ATOM_RUNS`."""
    rare = np.flatnonzero((counts >= MIN_ATOM_RUNS) & (counts < FREQUENT_SHARE * counts.sum()))
    most_frequent = rare[np.argsort(-counts[rare], kind="stable")[:MAX_RARE_ATOMS]]
    atoms: NDArray[Any] = values[np.sort(most_frequent)]
    return atoms


def _fit_log_odds(ones: Array, zeros: Array, penalty: Array) -> Array:
    """The log-odds of most penalised likelihood, row by row, by Newton's method.

    With log-odds x_j of the cells, it is the greatest value of

        sum_j ones_j ln(1 / (1 + e^-x_j)) + zeros_j ln(1 / (1 + e^x_j)) - x' (P + RIDGE I) x / 2,

    with the matrix P of ``penalty``.  ``ones`` and ``zeros`` have a row for each fit and a column
    for each cell.  All fits are solved as one banded system: ``penalty`` has its diagonal and two
    off-diagonals as rows, in which the penalties of the fits follow each other.  A fit whose system
    cannot be solved ends where it is.
    """
    from scipy.linalg.lapack import dpbsv

    total_log_odds = np.log((ones.sum(axis=1) + 1.0) / (zeros.sum(axis=1) + 1.0))
    all_ones, runs = ones.ravel(), (ones + zeros).ravel()
    log_odds = np.repeat(total_log_odds, ones.shape[1])
    for _ in range(MAX_NEWTON_STEPS):
        share = 1 / (1 + np.exp(-log_odds))
        slope = all_ones - runs * share - _banded_product(penalty, log_odds) - RIDGE * log_odds
        hessian = penalty.copy()
        hessian[0] += runs * share * (1 - share) + RIDGE
        _, step, failed = dpbsv(hessian, slope, lower=1)  # solves hessian step = slope
        if failed and len(ones) > 1:  # a row that fails must not keep the others from converging
            parts = zip(ones, zeros, np.hsplit(penalty, len(ones)), strict=True)
            return np.vstack([_fit_log_odds(a[None], b[None], part) for a, b, part in parts])
        if failed:
            break
        step = np.clip(step, -MAX_NEWTON_CHANGE, MAX_NEWTON_CHANGE)
        log_odds = log_odds + step
        if np.max(np.abs(step)) < NEWTON_TOLERANCE:
            break
    return log_odds.reshape(ones.shape)


def _banded_product(banded: Array, x: Array) -> Array:
    """A symmetric matrix, given as its diagonal and two off-diagonals, times a vector."""
    result: Array = banded[0] * x
    for k in (1, 2):
        off = banded[k, :-k]
        result[:-k] += off * x[k:]
        result[k:] += off * x[:-k]
    return result


def _roughness(centres: Array) -> Array:
    """Banded form of the integrated square of the second derivative of the log-odds.

    It is taken along t, a centre's distance from the middle cell's over the distance of the cells
    at 1/4 and 3/4 of their number.  Over three cells with the gaps g and h the second derivative is
    about (right slope - left slope) / ((g + h) / 2), with slopes (difference of log-odds) / gap.
    Its square times the length (g + h) / 2 is 2 / (g + h) (right slope - left slope)^2: a quadratic
    form in the log-odds of the three cells.  The result is the sum of these forms, as a diagonal
    and two off-diagonals.
    """
    low, middle, high = (centres[int(share * (centres.size - 1))] for share in (0.25, 0.5, 0.75))
    with np.errstate(over="ignore"):  # a centre may stand for NaN or infinities
        t = (centres - middle) / max(high - low, 1e-300)
    t = np.clip(t, -MAX_DISTANCE, MAX_DISTANCE)
    gap = np.maximum(np.diff(t), MIN_GAP)
    per_left_gap, per_right_gap = 1 / gap[:-1], 1 / gap[1:]
    weight = 2 / (gap[:-1] + gap[1:])
    # right slope - left slope = the sum of these factors times the log-odds of the three cells
    factors = np.stack([per_left_gap, -per_left_gap - per_right_gap, per_right_gap])
    banded = np.zeros((3, centres.size))
    count = centres.size - 2
    for i in range(3):
        for j in range(i, 3):
            banded[j - i, i : i + count] += weight * factors[i] * factors[j]
    return banded
