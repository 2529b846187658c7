"""The greatest output of an epoch of which one random step is moved: a pair below all outputs.

An analyst who looks at the greatest output alone sees less than all of them, so that the pair of
its two laws, in cells, gives lower ends.

Reference: Chua et al. (2024), "How private are DP-SGD implementations?".  Proof:
`docs/proofs/shuffled_epoch.md`.
"""

from __future__ import annotations

import functools

import numpy as np

from accountant.losses.finite_pair import PairLoss
from accountant.numerics.logspace import log1mexp, log_ndtr
from accountant.numerics.rounding import UNDERFLOW

# The outputs are put into CELLS + 1 cells, whose ends reach up to REACH standard deviations from
# the mean: more cells bring the lower end nearer to the epsilon of the greatest output.
CELLS, REACH = 1000, 9.0
# A bound on the relative error of the mass of a cell: that of `log_ndtr`, times what the logarithms
# of its two ends lose in their difference, with a factor of more than 10 to spare.
CELL_ACCURACY = 1e-11
# The first cell has at least this mass of Q.  What all other cells are rounded by is moved to it: a
# 10^5th of its mass, which so stays positive, and its ratio P / Q stays the least.
FIRST_CELL_MASS = 1e-6


@functools.lru_cache(maxsize=64)
def greatest_output_pair(mu: float, offset: float, steps: int) -> PairLoss:
    """Return the loss of the greatest output of all steps, in cells, of one pair of data sets.

    The outputs have deviation 1.  One random step has the mean ``offset + mu`` on the first data
    set and ``offset`` on the second; all others have mean 0.  The pair is below the one of the
    exact cells.
    """
    ends = np.linspace(offset + mu - REACH, offset + mu + REACH, CELLS)
    cells = []
    for mean in (offset + mu, offset):
        # P(greatest <= x) = Phi(x - mean) Phi(x)^{steps - 1}
        log_cdf = log_ndtr(ends - mean) + (steps - 1) * log_ndtr(ends)
        log_cdf = np.concatenate([[-np.inf], log_cdf, [0.0]])
        cells.append(np.exp(log_cdf[1:] + log1mexp(np.minimum(log_cdf[:-1] - log_cdf[1:], 0.0))))
    p, q = cells
    # The ratio P / Q grows with the output.  Cells beyond the last one that has mass under Q are
    # merged with it.  At the low end, the cells up to ``first_cell`` are merged into one, so that
    # it has mass enough.
    last_cell = int(np.flatnonzero(q >= UNDERFLOW)[-1])
    p, q = (np.append(masses[:last_cell], masses[last_cell:].sum()) for masses in (p, q))
    first_cell = int(np.searchsorted(np.cumsum(q), FIRST_CELL_MASS))
    # P is rounded down and Q up in all cells but the first, where P / Q is least.  That cell takes
    # what they are rounded by, at most CELL_ACCURACY.  It has far more mass, so its ratio is hardly
    # raised and stays the least.  So for every epsilon the exact pair has the greater delta.
    p, q = (1 - CELL_ACCURACY) * p[first_cell + 1 :], (1 + CELL_ACCURACY) * q[first_cell + 1 :]
    p, q = np.append(1 - p.sum(), p), np.append(1 - q.sum(), q)
    return PairLoss(p.tolist(), q.tolist())
