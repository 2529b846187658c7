"""A pair below the best of a random number of runs: an explicit order of the scores.

One run is replaced by a pair below it, with finitely many outcomes in the order of their losses:
the sum of the losses of its releases, each rounded to a lattice, whose laws on both data sets are
exact convolutions.  The score then prefers outcomes of small loss, the smaller the better, up to a
threshold; beyond it the greater loss is the better one.  So an outcome of great loss is published
only if no run gave a small one, which is rarer on the data set where these are rare.

Proof: `docs/proofs/repeated.md`, 6.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from accountant.amplification.allocation.picked_sum import (
    DEVIATIONS,
    LATTICE_POINTS,
    ScoreLaw,
    merged_pair,
)
from accountant.amplification.tries import Tries
from accountant.losses.finite_pair import PairLoss
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

MOST_POINTS = 16_000  # of the lattice of one loss
PIECES = 500  # outcomes into which the whole mass is split at least
THRESHOLDS = 32  # of the score that are tried, and the orders of Rényi that compare them
ORDERS, COMPARED_AT = 1 + np.geomspace(0.1, 1e3, 40), 1e-6
LEAST_MASS = 1e-16  # of losses that the lattice has points for
CELL_ROUND_OFF = 1e-9  # relative, of the mass of a cell; cells that are less certain are merged
WIDE_LOSSES = np.sinh(np.linspace(-8.0, 8.0, 2001))  # nats: edges that find mean and variance


@functools.lru_cache(maxsize=64)
def best_run_pair(items: tuple[tuple[Loss, int], ...], tries: Tries, count: int) -> PairLoss | None:
    """Return the pair of the best run where each makes these releases; None where none is known.

    Of the thresholds of the score the one is taken that costs most where the best of runs is
    released ``count`` times, by a bound on Rényi divergences.
    """
    run = _pair_of_run(items)
    if run is None:
        return None
    levels = np.append(np.linspace(0.0, 1.0, THRESHOLDS), 1 - np.geomspace(0.03, 1e-12, THRESHOLDS))
    better = np.append(0.0, np.cumsum(run.q))
    # Numbers of outcomes of small loss that are better than all others.
    thresholds = np.unique(np.searchsorted(better, levels * better[-1])).tolist()
    tests = [_of_best(run, threshold, tries) for threshold in thresholds]
    p, q = max(tests, key=lambda masses: _renyi_epsilon(masses[0], masses[1], count))
    sensitivity = 2 + (max(tries.shape, 0.0) if math.isfinite(tries.shape) else tries.mean)
    pair = PairLoss((p / p.sum()).tolist(), (q / q.sum()).tolist())
    return pair.with_rounding(sensitivity * run.rounding)


class _Run(NamedTuple):
    """Masses of the outcomes of one run on both data sets, by growing loss.

    ``rounding`` bounds the error of their logarithms.
    """

    p: Array
    q: Array
    rounding: float


def _pair_of_run(items: tuple[tuple[Loss, int], ...]) -> _Run | None:
    """Return a pair below one run; None where none is known.

    An outcome of much mass is split into equal ones: a score may depend on a random number too.
    """
    variance = widest = 0.0
    for loss, n in items:
        cells = loss.cell_masses(WIDE_LOSSES)
        if cells is None or loss.infinity:
            return None
        middle = (WIDE_LOSSES[1:] + WIDE_LOSSES[:-1]) / 2
        mean = ordered_dot(middle, cells.p)
        variance += n * float(ordered_dot((middle - mean) ** 2, cells.p))
        sizes = np.abs(middle[np.maximum(cells.p, cells.q) > LEAST_MASS])
        widest = max(widest, float(sizes.max(initial=0.0)))
    reach = DEVIATIONS * math.sqrt(variance)
    step = 2 * max(reach / LATTICE_POINTS, (reach + widest) / MOST_POINTS)
    if not 0 < step < math.inf:
        return None
    laws, rounding = [ScoreLaw(0, np.ones(1)), ScoreLaw(0, np.ones(1))], 0.0
    for loss, n in items:
        rounded = _rounded_losses(loss, step, math.ceil((reach + widest) / step))
        if rounded is None:
            return None
        laws = [law.times(part.power(n)) for law, part in zip(laws, rounded, strict=True)]
        rounding += n * (CELL_ROUND_OFF + loss.rounding + 4 * MOST_POINTS * ULP)
    pair = merged_pair(*laws)
    pieces = np.ceil(PIECES * np.maximum(pair.p, pair.q)).astype(int)
    p, q = (np.repeat(masses / pieces, pieces) for masses in (np.array(pair.p), np.array(pair.q)))
    return _Run(p, q, rounding)


def _of_best(run: _Run, threshold: int, tries: Tries) -> tuple[Array, Array]:
    """Return the masses of the best run on both data sets, the last that of no run at all."""
    # Outcomes from the best to the worst.
    size = run.p.size
    order = np.append(np.arange(threshold), np.arange(size - 1, threshold - 1, -1))
    no_run = tries.generating_function(0.0)

    def masses_of_best(masses: Array) -> Array:
        better = np.append(0.0, np.cumsum(masses)[:-1])
        return np.append(tries.chance_of_best(better, masses), no_run)

    return masses_of_best(run.p[order]), masses_of_best(run.q[order])


def _renyi_epsilon(p: Array, q: Array, count: int) -> float:
    """Return about the epsilon of ``count`` pairs at the delta `COMPARED_AT`."""
    is_known = (p > 0) & (q > 0)
    log_p, loss = np.log(p[is_known]), np.log(p[is_known] / q[is_known])
    log_moments = logsumexp(log_p + (ORDERS[:, None] - 1) * loss)
    return float(np.min((count * log_moments - math.log(COMPARED_AT)) / (ORDERS - 1)))


def _rounded_losses(loss: Loss, step: float, last: int) -> tuple[ScoreLaw, ScoreLaw] | None:
    """Return the laws of a loss on both data sets, rounded to multiples of ``step`` up to ``last``.

    Cells whose masses are not certain join the cell at the loss 0.
    """
    edges = np.append(np.append(-np.inf, (np.arange(-last, last) + 0.5) * step), np.inf)
    cells = loss.cell_masses(edges)
    if cells is None:
        return None
    is_certain = (cells.p_error <= CELL_ROUND_OFF * cells.p) & (
        cells.q_error <= CELL_ROUND_OFF * cells.q
    )
    is_certain[last] = True
    laws = []
    for masses in (cells.p, cells.q):
        kept = np.where(is_certain, masses, 0.0)
        kept[last] += masses[~is_certain].sum()
        used = np.flatnonzero(kept)
        laws.append(ScoreLaw(int(used[0]) - last, kept[used[0] : used[-1] + 1] / kept.sum()))
    return laws[0], laws[1]
