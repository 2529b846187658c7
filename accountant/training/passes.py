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

# Points of the three grids of `removal_pair`.  With more points the lower bound would be closer to
# the truth, and take longer.
GREATEST_CELLS = 1000  # of the greatest output of all batches but the last
LAST_CELLS = 120  # of the output of the last batch
RATIO_CELLS = 1000  # of the logarithm of the ratio of the pair's two masses


def removal_takes_a_batch(run: TrainingRun, size: int = 1) -> bool:
    """Return whether a pass over the data without ``size`` records has fewer batches."""
    full, remainder = divmod(run.examples - size, run.batch)
    return full + (remainder > 0 and not run.drop_last) < run.batches


def steps_of_passes(run: TrainingRun) -> int:
    """Return the number of steps of a loader that goes through the data."""
    return math.ceil(run.passes * run.batches)


def blanked_squares(run: TrainingRun, size: int = 1) -> int:
    """Return the square of how far ``size`` blank records move one pass, summed over its batches.

    Each moves its batch by one clip.  The sum is largest for records that fill one batch, then the
    next.
    """
    full, remainder = divmod(size, run.batch)
    return full * run.batch**2 + remainder**2


def shuffled_removal_squares(run: TrainingRun, size: int = 1) -> int:
    """Return the square of how far ``size`` removed records move one shuffled pass.

    The squares are summed over the batches; the bound holds for any order of the other records.
    The number of batches must stay the same (`removal_takes_a_batch`).
    """
    # Compared are two orders of which each is a function of the other: where records are removed,
    # the last records of the order fill the holes.  This exchanges records where the holes were,
    # and removes as many at the end, unless they were left out before (``run.dropped``
    # records are, in each pass).  An exchanged record moves its batch by up to two clips, a removed
    # one by one.  The moves of all batches add up to at most 2 size and size clips, so that the
    # sums of their squares are at most (2 size)^2 and size^2.  A batch that has holes and loses
    # records at the end fills its holes with those first, so that the two do not add up there.
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
    root = float(math.isqrt(squares))
    # A root that is no whole number, or none that is a float, is rounded by less than 4e-16 of
    # itself.
    return root if int(root) ** 2 == squares else math.sqrt(squares) * (1 + 1e-15)


@functools.lru_cache(maxsize=64)
def removal_pair(mu: float, batches: int, last_share: float) -> PairLoss:
    """Return a pair of finitely many masses: a lower bound on the worst pair of a shuffled pass.

    The two laws are those of a pass with and without one record x, if every other record
    contributes the opposite of x.  ``mu`` is the clipping norm over the deviation of the noise, and
    ``batches`` is at least 2.  With x the last batch has ``last_share`` of all records; without x
    that batch has one record less.
    """
    # What x adds, compared with the data without it: if x is in the last batch, the output of that
    # batch moves by mu.  If x is in another batch, x is there in place of an opposite one, so that
    # the output of that batch moves by 2 mu; the opposite one is in the last batch, whose output
    # moves by -mu.  Two outputs are kept, in cells: the greatest of all batches but the last, and
    # that of the last.  Any cells give a lower bound; these reach REACH deviations beyond the means
    # of the moved outputs.  `cells_of_greatest(ends, shift, count)` has the masses of the greatest
    # of ``count`` normal laws, of which one is shifted.
    ends = np.linspace(2 * mu - REACH, 2 * mu + REACH, GREATEST_CELLS)
    greatest_with, greatest_without = (
        cells_of_greatest(ends, mean, batches - 1) for mean in (2 * mu, 0.0)
    )
    last_ends = np.linspace(-mu - REACH, mu + REACH, LAST_CELLS)
    last_below, last_above, last_without = (
        cells_of_greatest(last_ends, mean, 1) for mean in (-mu, mu, 0.0)
    )
    p = (1 - last_share) * np.outer(greatest_with, last_below)
    p += last_share * np.outer(greatest_without, last_above)
    q = np.outer(greatest_without, last_without)
    has_mass = q >= UNDERFLOW
    ratio = np.log(np.maximum(p, UNDERFLOW) / np.where(has_mass, q, 1.0))
    # Cells with similar ratios p / q are merged: that is post-processing, so the pair stays a lower
    # bound, and it loses little.  One more cell, the last, has the outputs where q is 0 in floats,
    # which cost most.  Merged cells that are empty are left out.
    edges = np.linspace(ratio[has_mass].min(), ratio[has_mass].max(), RATIO_CELLS)
    cell = np.where(has_mass, np.searchsorted(edges, ratio), RATIO_CELLS)
    masses = (np.bincount(cell.ravel(), joint.ravel(), RATIO_CELLS + 1) for joint in (p, q))
    p, q = (cell_masses[np.unique(cell)] for cell_masses in masses)
    return pair_of_cells(p, q)
