"""How far one record, or one user, moves what passes over the data release.

A pass goes through all records, in batches that it cuts from a shuffled or a fixed order.  A blank
record keeps its place.  A removed one does not: the loader cuts the other records into batches
anew.  Lengths are in clipping norms, and their squares are summed over the steps, as Gaussian noise
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

# Points of the grids on which `removal_pair` takes the greatest output of the other batches, that
# of the last batch, and the log-ratio of the pair's two masses.  With more points the lower bound
# would be closer to the truth, and take longer.
GREATEST_CELLS = 1000
SIDE_CELLS = 120
RATIO_CELLS = 1000


def removal_takes_a_batch(run: TrainingRun, size: int = 1) -> bool:
    """Return whether a pass over the data without ``size`` records has fewer batches."""
    full, remainder = divmod(run.examples - size, run.batch)
    return full + (remainder > 0 and not run.drop_last) < run.batches


def steps_of_passes(run: TrainingRun) -> int:
    """Return the steps of a loader that goes through the data."""
    return math.ceil(run.passes * run.batches)


def blanked_squares(run: TrainingRun, size: int = 1) -> int:
    """Return the square of how far ``size`` blank records move one pass, summed over its batches.

    The largest is that of records which fill one batch, then the next.
    """
    full, remainder = divmod(size, run.batch)
    return full * run.batch**2 + remainder**2


def shuffled_removal_squares(run: TrainingRun, size: int = 1) -> int:
    """Return the square of how far ``size`` removed records move one shuffled pass.

    It is that for any order of the other records, summed over the batches.
    """
    # The last records of the order fill the holes.  This exchanges records where the holes were,
    # and removes as many from the last batch, unless they were left out before (``run.dropped``
    # records are, in each pass).  An exchanged record moves its batch by up to two clips, a removed
    # one by one.  The moves of all batches add up to at most 2 size and size clips, so that the
    # sums of their squares are at most (2 size)^2 and size^2.
    if run.dropped:
        return 4 * size**2
    return size**2 + (4 * size**2 if run.batches > 1 else 0)


def ordered_removal_squares(run: TrainingRun, size: int = 1) -> int:
    """Return the square of how far ``size`` removed records move passes in a fixed order.

    It is summed over all steps of the run.
    """
    # ``size`` records leave each batch after the hole and as many enter it.  None enters the last
    # batch of a pass, unless a pass leaves records out.  So a batch moves by up to 2 size clips,
    # and such a last one by size.
    steps = steps_of_passes(run)
    ends = 0 if run.dropped else steps // run.batches
    return size**2 * (4 * (steps - ends) + ends)


def root_up(squares: int) -> float:
    """Return the square root of a whole number, rounded up."""
    root = math.isqrt(squares)
    # a root that is no whole number is rounded by less than 2e-16 of itself
    return float(root) if root * root == squares else math.sqrt(squares) * (1 + 1e-15)


@functools.lru_cache(maxsize=64)
def removal_pair(mu: float, batches: int, last_share: float) -> PairLoss:
    """Return a pair of finitely many masses: a lower bound on the worst pair of a shuffled pass.

    The two laws are those of a pass with and without one record, if every other record contributes
    the opposite of it.  ``mu`` is the clipping norm over the deviation of the noise, and
    ``batches`` is at least 2.  With the record the last batch has ``last_share`` of all records;
    without it that batch has one record less.
    """
    # Compared with the data without the record, its batch moves by 2 mu (an opposite one left it)
    # and the last batch by -mu (that one came in); or, if the record is in the last batch, that one
    # moves by mu.  Two outputs are kept, in cells: the greatest of the other batches, and the last
    # one.  The grids reach up to REACH deviations from the means.  `cells_of_greatest(ends, shift,
    # count)` has the masses of the greatest of ``count`` normal laws, of which one is shifted.
    ends = np.linspace(2 * mu - REACH, 2 * mu + REACH, GREATEST_CELLS)
    with_record, without = (cells_of_greatest(ends, m, batches - 1) for m in (2 * mu, 0.0))
    sides = np.linspace(-mu - REACH, mu + REACH, SIDE_CELLS)
    moved, ends_there, stays = (cells_of_greatest(sides, m, 1) for m in (-mu, mu, 0.0))
    p = (1 - last_share) * np.outer(with_record, moved) + last_share * np.outer(without, ends_there)
    q = np.outer(without, stays)
    has_mass = q >= UNDERFLOW
    ratio = np.log(np.maximum(p, UNDERFLOW) / np.where(has_mass, q, 1.0))
    # Merging cells is post-processing, so the pair stays a lower bound; cells with similar ratios
    # are merged, as they lose least.  One more cell, the last, has the outputs where q is 0 in
    # floats, which cost most; cells that nothing falls in are left out.
    edges = np.linspace(ratio[has_mass].min(), ratio[has_mass].max(), RATIO_CELLS)
    cell = np.where(has_mass, np.searchsorted(edges, ratio), RATIO_CELLS)
    masses = (np.bincount(cell.ravel(), joint.ravel(), RATIO_CELLS + 1) for joint in (p, q))
    p, q = (cell_masses[np.unique(cell)] for cell_masses in masses)
    return pair_of_cells(p, q)
