"""Time as an output: does the time of a release depend on the value, or on the noise?

Batches of releases are timed in pairs, one after the other, so that a drift of the machine's speed
affects both.  A fair coin chooses the order.  Both values are copied before each pair, outside the
clock; another coin chooses which is copied first, so that neither always has the better place in
memory.  If time does not depend on the value, the sign of each difference is a fair coin whatever
the sizes, and the signed-rank sum has an exact distribution.  The same holds for two batches of one
value and the noise that they drew, since noise that time does not depend on could as well have been
drawn in the other order.

References: Wilcoxon (1945); Spearman (1904); Jin, McMurtry, Rubinstein & Ohrimenko (2022).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.randomness import Rng
from audits.claims.arguments import CONFIDENCE, seed_and_generator
from audits.claims.findings import Outcome
from audits.runs.command import Command
from audits.runs.release_functions import Vectorised, release_name, vectorised
from audits.values.copies import remaker
from audits.values.tracebacks import without_values
from mechanisms.base.mechanism import Mechanism

PAIRS = IntegerRange(8, 100_000)  # with 8 pairs the least p-value is 2^-7
BATCH = IntegerRange(1)
# A function that draws a batch of outputs from copies of the value.
Batch = Callable[[list[Any], np.random.Generator], Any]


@final
@dataclass(frozen=True, slots=True)
class Timing:
    """What the clock shows: two exact p-values, each of "time does not depend on it".

    ``value_correlation`` and ``noise_correlation`` are Spearman's rank correlations of the time of
    a batch with the value (first 0, second 1) and with the mean size of its noise.  ``noise_p`` is
    1 if the outputs are not numbers.  FALSIFIED if one p-value is below half of ``1 - confidence``,
    INCONCLUSIVE if so few pairs cannot have such a p-value.
    """

    outcome: Outcome
    value_correlation: float
    value_p: float
    noise_correlation: float
    noise_p: float
    confidence: float
    pairs: int
    batch: int
    witness: str
    seconds: float
    seed: int | None


@without_values
def audit_timing(
    release: Mechanism | Callable[..., Any],
    pair: tuple[Any, Any],
    pairs: int = 200,
    batch: int = 1,
    confidence: float = 0.95,
    rng: Rng = None,
    clock: Callable[[], float] | None = None,
) -> Timing:
    """Try to falsify that the time of a release depends on neither the value nor the noise.

    Batches of the two values are timed in pairs, in an order that a fair coin chooses, and on
    copies made before each pair in the order of another coin.  If time does not depend on the
    value, the signs of the differences are fair coins, and the signed-rank test is exact.

    Parameters
    ----------
    release : Mechanism or callable
        As for `audit`.
    pair : tuple of two values
        Two neighbouring values.
    pairs : int, optional
        Number of pairs of batches, 8 to 100,000.
    batch : int, optional
        Releases per batch, at least 1.
    confidence : float, optional
        Probability in (0, 1) with which a release of constant time survives.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator of the noise and the coins.
    clock : callable, optional
        Returns the time in seconds.  None takes that of this process, or the own clock of a
        `Command`.

    Returns
    -------
    Timing
        Two exact p-values, for the value and for the mean distance of outputs from the value.

    Raises
    ------
    ParameterError
        If an argument is out of its range.

    References
    ----------
    Wilcoxon (1945); Jin, McMurtry, Rubinstein & Ohrimenko (2022).

    Examples
    --------
    >>> from audits import audit_timing
    >>> ticks = [0.0]
    >>> def slow_for_one(value, rng, size):
    ...     ticks[0] += 1.0 + value
    ...     return value + rng.laplace(size=size)
    >>> found = audit_timing(slow_for_one, (0.0, 1.0), pairs=20, rng=0, clock=lambda: ticks[0])
    >>> found.outcome.name, found.value_p < 1e-5
    ('FALSIFIED', True)
    """
    start = time.perf_counter()
    pairs, batch = PAIRS.check("pairs", pairs), BATCH.check("batch", batch)
    confidence = CONFIDENCE.check("confidence", confidence)
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ParameterError("pair", type(pair).__name__, "two neighbouring values")
    seed, source = seed_and_generator(rng)
    seconds, noise = BatchTimer(release, pair, batch, source, clock).measure(pairs)
    timing = judged_times(seconds, noise, batch, confidence)
    return replace(timing, seconds=time.perf_counter() - start, seed=seed)


def judged_times(seconds: Array, noise: Array, batch: int, confidence: float) -> Timing:
    """What the times and the noise of batches show, in the form that `BatchTimer` measures."""
    pairs = len(seconds)
    value_p = signed_rank_p(seconds[:, 1] - seconds[:, 0])
    # Batches of the same value are compared, separately for each value: each row of an odd index
    # with the row before it.  If time does not depend on the noise, the batch with the larger noise
    # is as often the faster one, so the differences of time with this sign have fair signs too.
    paired_rows = 2 * (pairs // 2)
    more_seconds = seconds[1:paired_rows:2] - seconds[0:paired_rows:2]
    more_noise = noise[1:paired_rows:2] - noise[0:paired_rows:2]
    noise_p = signed_rank_p((more_seconds * np.sign(more_noise)).ravel())
    value_correlation = spearman(np.repeat([0.0, 1.0], pairs), seconds.T.ravel())
    noise_correlation = float(np.mean([spearman(noise[:, j], seconds[:, j]) for j in (0, 1)]))
    is_refuted = min(value_p, noise_p) < (1 - confidence) / 2
    # The p-value is least if all signs are the same: 2^(1 - pairs).
    can_refute = 2.0 ** (1 - pairs) < (1 - confidence) / 2
    unrefuted_outcome = Outcome.SURVIVED if can_refute else Outcome.INCONCLUSIVE
    compared = "the value" if value_p <= noise_p else "the noise"
    correlation = value_correlation if value_p <= noise_p else noise_correlation
    return Timing(
        outcome=Outcome.FALSIFIED if is_refuted else unrefuted_outcome,
        value_correlation=value_correlation,
        value_p=value_p,
        noise_correlation=noise_correlation,
        noise_p=noise_p,
        confidence=confidence,
        pairs=pairs,
        batch=batch,
        witness=(
            f"time against {compared}: rank correlation {correlation:.3f}, "
            f"p = {min(value_p, noise_p):.3g} in {pairs} pairs of batches of {batch}"
        ),
        seconds=float(np.sum(seconds)),
        seed=None,
    )


def spearman(x: Array, y: Array) -> float:
    """Spearman's rank correlation, ties at their mean rank; 0 where one of them is constant."""
    from scipy.stats import spearmanr

    constant = np.ptp(x) == 0 or np.ptp(y) == 0  # scipy warns and returns NaN for a constant
    return 0.0 if constant else float(spearmanr(x, y).statistic)


def signed_rank_p(differences: Array) -> float:
    """Exact two-sided p-value of Wilcoxon's signed-rank sum; zeros are left out, ties share ranks.

    Given the sizes, each sign is a fair coin, so the distribution of the sum is a convolution.
    With ties, which clocks make, `scipy.stats.wilcoxon` is exact for 13 differences at most.
    """
    from scipy.stats import rankdata

    nonzero = differences[differences != 0]
    if nonzero.size == 0:
        return 1.0
    # Ranks are doubled, because the mean rank of ties may be half of an odd number.
    ranks = np.rint(2 * rankdata(np.abs(nonzero))).astype(int)
    largest_sum = int(ranks.sum())
    # probability[s] is that of a sum s of the ranks with a positive sign, among the ranks so far,
    # which sum to ``sum_so_far``.  One more rank r, whose sign is a fair coin, makes it
    # (probability[s] + probability[s - r]) / 2.
    probability = np.zeros(largest_sum + 1)
    probability[0], sum_so_far = 1.0, 0
    for rank in np.sort(ranks):
        half = 0.5 * probability[: sum_so_far + 1]
        probability[: sum_so_far + 1] = half
        probability[rank : rank + sum_so_far + 1] += half
        sum_so_far += int(rank)
    positive_sum = int(ranks[nonzero > 0].sum())
    # The distribution is symmetric, so both tails have the probability of the upper one.
    extreme_sum = max(positive_sum, largest_sum - positive_sum)
    return min(1.0, 2 * float(probability[extreme_sum:].sum()))


@final
class BatchTimer:
    """Times batches of both values; coins choose the order of all work, outside the clock too."""

    def __init__(
        self,
        release: Mechanism | Callable[..., Any],
        pair: Any,
        batch: int,
        rng: np.random.Generator,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._copies = 1  # of the value that a batch needs
        if isinstance(release, Mechanism):
            self._draw: Batch = lambda values, rng: release.release(values[0], rng, batch)
        else:
            draw = vectorised(release)
            if not isinstance(draw, Vectorised):
                raise ParameterError("release", release_name(release), "a function of this process")
            self._draw = lambda values, rng: draw.draw(iter(values), rng, batch)
            self._copies = 1 if draw.form.size else batch
        if clock is None:
            clock = release.clock if isinstance(release, Command) else time.perf_counter
        self._pair, self._rng, self._clock = pair, rng, clock
        self._make = remaker(pair[0]), remaker(pair[1])

    def measure(self, pairs: int) -> tuple[Array, Array]:
        """Seconds and mean noise of every batch: a row for each pair, a column for each value."""
        seconds, noise = np.zeros((pairs, 2)), np.zeros((pairs, 2))
        coins = self._rng.integers(0, 2, (pairs, 2)).tolist()
        self._row(0, 0)  # a warm-up: the first call would pay for one-time loading
        collecting = gc.isenabled()
        gc.disable()
        try:
            for row, (made_first, timed_first) in enumerate(coins):
                columns = [timed_first, 1 - timed_first]
                seconds[row, columns], noise[row, columns] = self._row(made_first, timed_first)
        finally:
            if collecting:
                gc.enable()
        return seconds, noise

    def _row(self, made_first: int, timed_first: int) -> tuple[list[float], list[float]]:
        """Seconds and mean noise of both values, the one that is timed first before the other.

        ``made_first`` is the value (0 or 1) of which copies are made first.
        """
        # The coin decides the order in which the copies are made and freed.
        copies = [
            [self._make[column]() for _ in range(self._copies)]
            for column in (made_first, 1 - made_first)
        ]
        seconds, outputs = [], []
        for column in (timed_first, 1 - timed_first):
            values = copies[0 if column == made_first else 1]
            begin = self._clock()
            output = self._draw(values, self._rng)
            seconds.append(self._clock() - begin)
            outputs.append(output)
        columns = (timed_first, 1 - timed_first)
        # The mean reads the values, so it comes after both were timed.
        timed_outputs = zip(outputs, columns, strict=True)
        noise = [_mean_noise(output, self._pair[column]) for output, column in timed_outputs]
        return seconds, noise


def _mean_noise(output: Any, value: Any) -> float:
    """Mean distance of outputs from the value; 0 if either is not a number."""
    outputs, centre = np.asarray(output), np.asarray(value)
    if outputs.dtype.kind not in "biuf" or centre.dtype.kind not in "biuf":
        return 0.0
    if outputs.shape[1:] != centre.shape:
        return float(np.mean(np.abs(outputs.astype(float))))
    return float(np.mean(np.abs(outputs.astype(float) - centre.astype(float))))
