"""Where the targets of a regression lie: their shares in equal cells between the bounds.

The range [-y_bound, y_bound] is divided into cells of equal width.  The share of the records in
each cell is released, with Gaussian noise.  The shortest run of cells that holds most targets says
where they lie, and how far they scatter (`TargetRange.of`).  A descent that starts there, with
clipping norms in that unit, has a short way to go, and its noise is in proportion to what targets
scatter instead of to what their bound allows.

docs/proofs/clipped_gradients.md, point 3b, proves how far one record moves shares and mean.
References: Andrews et al. (1972) for the shortest half of a sample as an estimate of location;
Karwa & Vadhan (2018) for a noisy histogram in place of bounds, before a clipped mean.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np

from accountant.numerics import Array
from algorithms.base.clipped_gradient_descent import WITHIN
from algorithms.base.row_blocks import MeanOfBlocks
from algorithms.linear_models.mapped_plan import noise_of

CELLS = 64
# The run holds the share HELD of the records, and half of them even if its noise has SURE
# deviations.  Targets reach REACH times as far from its middle as its ends.
HELD, SURE, REACH = 0.9, 3.0, 1.5


class TargetRange(NamedTuple):
    """Where most targets lie: no farther from the centre than the reach."""

    centre: float
    reach: float

    @classmethod
    def of(cls, released: Array, noise: float, y_bound: float) -> Self:
        """Return the range that released shares give, whose noise has the deviation ``noise``.

        It is the shortest run of cells that holds most records; between equally short ones the one
        that holds most.  Where noise hides it, the range is the whole one.
        """
        sums, width = np.concatenate([[0.0], np.cumsum(released)]), 2 * y_bound / CELLS
        for length in range(1, CELLS):
            run_shares = sums[length:] - sums[:-length]
            start = int(run_shares.argmax())
            if run_shares[start] >= max(HELD, 0.5 + SURE * noise * math.sqrt(length)):
                reach = min(REACH * length * width / 2, y_bound)
                return cls((start + length / 2) * width - y_bound, reach)
        return cls(0.0, y_bound)

    def about_zero(self) -> Self:
        """Return the range with the centre 0, for models without a constant."""
        return type(self)(0.0, abs(self.centre) + self.reach)


@final
@dataclass(frozen=True, slots=True)
class BlockTargets:
    """The number of records of a block in each cell."""

    y_bound: float

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return one vector."""
        # Divided first, a target could overflow, and the warning would tell of it.
        places = np.clip(block[1], -self.y_bound, self.y_bound) / self.y_bound
        cells = np.minimum((places + 1) * (CELLS / 2), CELLS - 1).astype(np.intp)
        return np.bincount(cells, minlength=CELLS).astype(float)


@final
@dataclass(frozen=True, slots=True)
class BlockMean:
    """The sum over a block of targets less the centre of their range, over its reach, clipped."""

    y_bound: float
    targets: TargetRange

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return one number."""
        clipped = np.clip(block[1], -self.y_bound, self.y_bound)
        places = (clipped - self.targets.centre) / self.targets.reach
        return np.array([WITHIN * np.clip(places, -1.0, 1.0).sum()])


def released_range(
    ledger: Any, y_bound: float, centred: bool, executor: Executor | None
) -> TargetRange:
    """Release the shares, the first part of the plan; return the range that they give."""
    part = ledger.plan.parts[0]
    query = MeanOfBlocks(BlockTargets(y_bound), ledger.shape[0], executor)
    released = ledger.release(part, query, shape=CELLS)
    targets = TargetRange.of(released, noise_of(part), y_bound)
    return targets if centred else targets.about_zero()


def released_constant(ledger: Any, y_bound: float, executor: Executor | None) -> float:
    """Release where targets lie, and their mean there; return the mean without its noise.

    Its distance from the centre is shortened by the share of its square that is noise.
    """
    targets = released_range(ledger, y_bound, True, executor)
    part = ledger.plan.parts[1]
    query = MeanOfBlocks(BlockMean(y_bound, targets), ledger.shape[0], executor)
    mean = float(ledger.release(part, query, shape=1)[0])
    signal_share = max(0.0, 1 - noise_of(part) ** 2 / mean**2) if mean else 0.0
    return float(np.clip(targets.centre + signal_share * targets.reach * mean, -y_bound, y_bound))
