"""A test of epochs in which a record is used in several random steps: the sum of a score.

With t steps of which k are picked, an outcome of one step has the chance q without the record and p
where the step is picked.  Its score is ``ln(1 + s p / q)`` with the odds s of `score_odds`, rounded
to a lattice: up to a constant the log-ratio of a step that is picked with these odds.  The sum of
the scores of all steps has the law Q^t without the record, and P^k Q^(t - k) with it, whichever
steps were picked: products are convolutions of the laws P and Q of one score.  The sum is a
function of the answers, so no epsilon of the epoch is below that of this pair.

Proof: `docs/proofs/random_allocation.md`, "A pair below k of t".
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from accountant.amplification.exchanged_record import NO_LOSS
from accountant.losses.finite_pair import PairLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.losses.upper_envelope import UpperEnvelope
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP
from accountant.numerics.search import least_float_that

# Points of the lattice between the ends that matter, and outcomes of the pair that is returned.
LATTICE_POINTS, OUTCOMES = 4000, 2000
EVIDENCE = 4.0  # steps that seem picked in the answers that decide delta, over those that are
DEVIATIONS = 12  # of a sum, on both sides of its mean, that matter
TRIMMED = 1e-40  # mass that is dropped at each end of a convolution
OUTCOME_MASS = 1e-22  # of a mass of the pair that is not 0: far above what was dropped
CELLS_OF_ONE = 2**12  # the finest cells of a Gaussian
CELL_ROUND_OFF = 1e-10  # relative, of the mass of a cell, a difference of normal probabilities


@final
@dataclass(frozen=True, slots=True)
class ScoreLaw:
    """Masses of a score at the lattice points from ``start`` on; a little may be missing of 1."""

    start: int
    masses: Array

    def times(self, other: ScoreLaw) -> ScoreLaw:
        """Return the law of the sum of two independent scores.

        All masses are positive, so that each has a small relative error.
        """
        masses = np.convolve(self.masses, other.masses)
        below = int(np.searchsorted(np.cumsum(masses), TRIMMED))
        above = int(np.searchsorted(np.cumsum(masses[::-1]), TRIMMED))
        trimmed = masses[below : masses.size - above]
        return ScoreLaw(self.start + other.start + below, trimmed)

    def plus(self, other: ScoreLaw, weight: float) -> ScoreLaw:
        """Return the masses of this law and ``weight`` times those of another."""
        start = min(self.start, other.start)
        end = max(law.start + law.masses.size for law in (self, other))
        masses = np.zeros(end - start)
        for law, share in ((self, 1.0), (other, weight)):
            offset = law.start - start
            masses[offset : offset + law.masses.size] += share * law.masses
        return ScoreLaw(start, masses)

    def power(self, count: int) -> ScoreLaw:
        """Return the law of the sum of ``count`` independent scores."""
        if count == 0:
            return ScoreLaw(0, np.ones(1))
        half = self.power(count // 2)
        square = half.times(half)
        return square.times(self) if count % 2 else square


@final
@dataclass(frozen=True, slots=True)
class PickOfSeveral(UpperEnvelope):
    """One of the ``picks`` random steps of an epoch; all picks of an epoch attain one known pair.

    The bound is that of one pick in its own block of steps.  ``added`` says that the loss is seen
    from the data without the record.
    """

    step: Loss
    steps: int
    picks: int
    added: bool = False

    @property
    def reversed(self) -> PickOfSeveral:
        """The loss seen from the other data set."""
        return replace(self, bound=self.bound.reversed, added=not self.added)

    def attained_items(self, count: int) -> list[tuple[Loss, int]]:
        """Return the pair of the sum of the scores of an epoch, once for each epoch."""
        if count % self.picks:
            return [(self.attained, count)]
        pair = picked_sum_pair(self.step, self.steps, self.picks)
        return [(pair.reversed if self.added else pair, count // self.picks)]


@functools.lru_cache(maxsize=64)
def picked_sum_pair(step: Loss, steps: int, picks: int) -> Loss:
    """Return the pair of the sum of the scores of an epoch; no loss where none is computed.

    ``step`` is the loss of one step, Gaussian or with finitely many outcomes.
    """
    laws = score_laws(step, steps, picks)
    if laws is None:
        return NO_LOSS
    law_p, law_q, points = laws
    unpicked = law_q.power(steps - picks)
    with_record, without_record = (
        law_p.power(picks).times(unpicked),
        law_q.power(picks).times(unpicked),
    )
    # A convolution adds an ULP for each of its terms, and as often as there are steps.
    of_step = CELL_ROUND_OFF + step.rounding + (with_record.masses.size + points) * ULP
    return merged_pair(with_record, without_record).with_rounding(2 * steps * of_step)


def score_laws(step: Loss, steps: int, picks: int) -> tuple[ScoreLaw, ScoreLaw, int] | None:
    """Return the laws of one step's score, picked and not, and how many outcomes a step has.

    None if the step has other than finitely many outcomes and is not Gaussian.
    """
    if isinstance(step, GaussianLoss):
        edges = cell_edges(step.mu, picks / steps)
        outcomes = gaussian_cells(edges, step.mu), gaussian_cells(edges, 0.0)
    elif step.infinity or step.loss_pmf is None:
        return None
    else:
        losses, p = step.loss_pmf
        q = p * np.exp(-losses)
        outcomes = np.append(p, 0.0), np.append(q, max(1 - q.sum(), 0.0))
    p, q = (masses / masses.sum() for masses in outcomes)
    scores = np.log1p(score_odds(p, q, steps, picks) * _ratio(p, q))
    mean_without, moved = ordered_dot(scores, q), ordered_dot(scores, p - q)
    squares = (scores - mean_without) ** 2
    variance = steps * ordered_dot(squares, q) + picks * ordered_dot(squares, p)
    span = picks * moved + 2 * DEVIATIONS * math.sqrt(variance) + float(scores.max())
    points = np.rint(scores / (span / LATTICE_POINTS)).astype(int)
    lowest = int(points.min())
    law_p, law_q = (
        ScoreLaw(lowest, np.asarray(np.bincount(points - lowest, masses), dtype=float))
        for masses in (p, q)
    )
    return law_p, law_q, points.size


def _ratio(p: Array, q: Array) -> Array:
    """Return p / q; 0 for outcomes that have no mass."""
    ratio: Array = np.divide(p, q, out=np.zeros_like(p), where=q > 0)
    return ratio


def score_odds(p: Array, q: Array, steps: int, picks: int) -> float:
    """Return the odds s of a score ``ln(1 + s p / q)``; any s gives a valid test.

    The epoch's ratio is the mean of all products of k of the ratios r = p / q of its steps.  At the
    saddle point it is about ``sum ln(1 + s r) - k ln s``, where the terms ``s r / (1 + s r)``, the
    chances that the steps were picked, sum to k.  They do so on average where the record is present
    for s = k / (t - k).  The rarer answers that decide delta look as if more steps were picked.
    """
    ratio = _ratio(p, q)
    evident = min(EVIDENCE * picks, steps)

    def is_enough(log_odds: float) -> bool:
        terms = math.exp(log_odds) * ratio
        chances = terms / (1 + terms)
        return float(ordered_dot(chances, evident * p + (steps - evident) * q)) >= picks

    log_usual = math.log(picks / (steps - picks))
    return math.exp(least_float_that(is_enough, log_usual - 20, log_usual, relative=1e-3))


def cell_edges(mu: float, chance: float) -> Array:
    """Return the edges of cells, half at equal steps of x, half at equal steps of the score.

    They are multiples of 2^-12, so that no cell is narrower.
    """
    ends = np.linspace(-DEVIATIONS, DEVIATIONS + mu, 4 * LATTICE_POINTS)
    scores = np.log1p(chance * np.expm1(mu * ends - mu * mu / 2))
    even = np.interp(np.linspace(scores[0], scores[-1], LATTICE_POINTS), scores, ends)
    edges: Array = np.unique(np.rint(np.concatenate([ends[::4], even]) * CELLS_OF_ONE))
    return edges / CELLS_OF_ONE


def gaussian_cells(edges: Array, mean: float) -> Array:
    """Return the masses of N(mean, 1) between edges, and beyond both ends."""
    from scipy.special import ndtr

    x = edges - mean
    # Of the two differences the one of small numbers has the digits.
    below, above = np.diff(ndtr(x)), -np.diff(ndtr(-x))
    return np.concatenate([[ndtr(x[0])], np.where(x[1:] <= 0, below, above), [ndtr(-x[-1])]])


def merged_pair(with_record: ScoreLaw, without_record: ScoreLaw) -> PairLoss:
    """Return the pair of two laws on one lattice, neighbouring points merged to few outcomes."""
    start = min(with_record.start, without_record.start)
    end = max(law.start + law.masses.size for law in (with_record, without_record))
    p, q = np.zeros((2, end - start))
    for row, law in ((p, with_record), (q, without_record)):
        row[law.start - start : law.start - start + law.masses.size] = law.masses
    lesser = (
        np.minimum(np.cumsum(p), np.cumsum(q)),
        np.minimum(np.cumsum(p[::-1]), np.cumsum(q[::-1])),
    )
    low, high = (int(np.searchsorted(sums, OUTCOME_MASS)) + 1 for sums in lesser)
    # The first and the last outcome are the sums of what lies beyond.
    starts = np.unique(np.linspace(low, p.size - high, OUTCOMES).astype(int))
    starts = np.append(0, starts[(starts > 0) & (starts < p.size)])
    p, q = np.add.reduceat(p, starts), np.add.reduceat(q, starts)
    # Outcomes of too little mass, which what was dropped could matter to, join the first one.
    lesser_mass, greater_mass = np.minimum(p, q), np.maximum(p, q)
    is_negligible = (lesser_mass > 0) & (lesser_mass < OUTCOME_MASS)
    is_negligible |= greater_mass < OUTCOME_MASS
    is_negligible[0] = False
    for masses in (p, q):
        masses[0] += masses[is_negligible].sum()
    p, q = p[~is_negligible], q[~is_negligible]
    return PairLoss((p / p.sum()).tolist(), (q / q.sum()).tolist())
