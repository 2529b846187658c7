"""How far one record, or one user, moves what passes over the data release.

A pass goes through all records, in batches that it cuts from a shuffled or a fixed order.  A blank
record keeps its place.  A removed one does not: the loader cuts the other records into batches
anew.  Lengths are in clipping norms, and their squares are summed over the steps, as Gaussian noise
adds them up.  Proof: `docs/proofs/training.md`, "Passes".
"""

from __future__ import annotations

import math

from accountant.training.run import TrainingRun


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

    The squares are summed over the batches; the bound holds for any order of the other records,
    also where it is known.  The number of batches must stay the same (`removal_takes_a_batch`).
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
