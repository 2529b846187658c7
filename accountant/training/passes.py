"""How far one record, or one user, moves what passes over the data release.

A blank record keeps its place.  A removed one does not: the loader cuts the other records into
batches anew.  Lengths are in clipping norms, squared and summed over the steps, as Gaussian noise
adds them up.  Proof: `docs/proofs/training.md`, "Passes".
"""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.amplification.single_pass import (
    REACH,
    cells_of_greatest,
    pair_of_cells,
)
from accountant.losses.finite_pair import PairLoss
from accountant.numerics.rounding import UNDERFLOW
from accountant.training.run import TrainingRun

SIDE_CELLS = 120  # cells for the last batch; the greatest of the others has its own
RATIO_CELLS = 1000


def removal_takes_a_batch(run: TrainingRun, size: int = 1) -> bool:
    """Return whether a pass over the data without ``size`` records has fewer batches."""
    full, remainder = divmod(run.examples - size, run.batch)
    return full + (remainder > 0 and not run.drop_last) < run.batches


def steps_of_passes(run: TrainingRun) -> int:
    """Return the steps of a loader that goes through the data."""
    return math.ceil(run.passes * run.batches)


def blanked_squares(run: TrainingRun, size: int = 1) -> int:
    """Return by how much ``size`` blank records move one pass: squares, summed over batches."""
    # the records fill one batch, then the next
    full, remainder = divmod(size, run.batch)
    return full * run.batch**2 + remainder**2


def shuffled_removal_squares(run: TrainingRun, size: int = 1) -> int:
    """Return what ``size`` removed records move one shuffled pass by, given the others' order."""
    # The last records of the order fill the holes.  This exchanges records where the holes were,
    # and removes as many from the last batch, unless they were left out before.
    if run.dropped:
        return 4 * size**2
    return size**2 + (4 * size**2 if run.batches > 1 else 0)


def ordered_removal_squares(run: TrainingRun, size: int = 1) -> int:
    """Return what ``size`` removed records move all steps of passes in a fixed order by."""
    # ``size`` records leave each batch after the hole and as many enter it.  None enters the last
    # batch of a pass, unless a pass leaves records out.
    steps = steps_of_passes(run)
    ends = 0 if run.dropped else steps // run.batches
    return size**2 * (4 * (steps - ends) + ends)


def root_up(squares: int) -> float:
    """Return the square root, rounded up."""
    root = math.isqrt(squares)
    return float(root) if root * root == squares else math.sqrt(squares) * (1 + 1e-15)


@functools.lru_cache(maxsize=64)
def removal_pair(mu: float, batches: int, last_share: float) -> PairLoss:
    """Return a pair below a shuffled pass with and without a record, in cells.

    The others contribute the opposite of the record.  The last batch has ``last_share`` of all
    records, and one less without the record.
    """
    # With the record its batch moves by 2 and the last batch by -1; or, if it is in the last batch,
    # that one moves by 1.  Two outputs are kept: the greatest of the others, and the last.
    ends = np.linspace(2 * mu - REACH, 2 * mu + REACH, 1000)
    with_record, without = (cells_of_greatest(ends, m, batches - 1) for m in (2 * mu, 0.0))
    sides = np.linspace(-mu - REACH, mu + REACH, SIDE_CELLS)
    moved, ends_there, stays = (cells_of_greatest(sides, m, 1) for m in (-mu, mu, 0.0))
    p = (1 - last_share) * np.outer(with_record, moved) + last_share * np.outer(without, ends_there)
    q = np.outer(without, stays)
    has_mass = q >= UNDERFLOW
    ratio = np.log(np.maximum(p, UNDERFLOW) / np.where(has_mass, q, 1.0))
    # merging cells is post-processing; cells with similar ratios lose least
    edges = np.linspace(ratio[has_mass].min(), ratio[has_mass].max(), RATIO_CELLS)
    cell = np.where(has_mass, np.searchsorted(edges, ratio), RATIO_CELLS)
    masses = (np.bincount(cell.ravel(), joint.ravel(), RATIO_CELLS + 1) for joint in (p, q))
    p, q = (cell_masses[np.unique(cell)] for cell_masses in masses)
    return pair_of_cells(p, q)
