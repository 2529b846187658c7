"""An engine for few losses with few outcomes: it lists every possible sum of losses.

Then delta is a plain sum over them, ``delta(epsilon) = sum P(l) (1 - e^{epsilon - l})_+``.
Releases of the same loss are counted by outcome, so that the sums are multinomial.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from accountant.composition.composition import Neighbourhood
from accountant.composition.engine import Attempt, DeltaBounds, EngineNearEpsilon
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

MAX_SUMS = 200_000  # sums at most: above it other engines are quicker
COST_OF_A_SUM = 200  # complex products of 2 ns: each sum is evaluated at many epsilons
BLOCK = 2**20  # sums times epsilons that are held in memory at once: a few arrays of 8 MB


def number_of_sums(items: list[tuple[Loss, int]]) -> float:
    """Return how many different sums the losses have at most.

    Infinite where a loss is not finite, or has too many outcomes to count the releases of each.
    """
    total = 1.0
    for loss, count in items:
        outcomes = loss.loss_pmf
        if outcomes is None or total > 2 * MAX_SUMS:
            return math.inf
        # binomial(count + kinds - 1, kinds - 1) ways to share `count` releases among the outcomes
        kinds = outcomes[0].size
        log_ways = math.lgamma(count + kinds) - math.lgamma(kinds) - math.lgamma(count + 1)
        if kinds > 1:  # at large counts the difference above is all round-off
            log_ways = max(log_ways, math.log(count + 1))
        multisets = math.exp(min(log_ways, 700.0))
        if multisets * kinds > 20 * MAX_SUMS:  # they are listed in a few arrays of 32 MB
            return math.inf
        total *= multisets
    return total


class Enumeration:
    """The profile of a composition from all its sums, with bounds on the round-off.

    A computed sum of losses is off by at most ``_mismatch`` nats, and a logarithm of delta by at
    most ``_error``.
    """

    name = "enumeration"

    def __init__(self, items: list[tuple[Loss, int]]) -> None:
        from scipy.special import gammaln

        # all sums so far, and the logarithms of their probabilities
        loss, log_mass = np.zeros(1), np.zeros(1)
        self._mismatch, self._error = 0.0, 64 * ULP  # 64 ulps are for the sum over them
        for item_loss, count in items:
            values, masses = item_loss.loss_pmf or (np.zeros(0), np.zeros(0))
            vectors = _count_vectors(count, values.size)
            # the multinomial coefficient count! / prod_k vectors[k]!
            log_multiplicity = gammaln(count + 1.0) - gammaln(vectors + 1.0).sum(axis=1)
            loss = (loss[:, None] + ordered_dot(vectors, values)).ravel()
            log_mass = (
                log_mass[:, None] + log_multiplicity + ordered_dot(vectors, np.log(masses))
            ).ravel()
            size = float(gammaln(count + 1.0)) + count * float(np.max(np.abs(np.log(masses))))
            # A logarithm of a mass is a sum of terms of at most these sizes, each inexact by ulps.
            self._error += 8 * ULP * (size + count)
            self._mismatch += 4 * ULP * count * float(np.max(np.abs(values), initial=0.0))
        self._loss, self._log_mass = loss, log_mass
        self.nodes = loss.size

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Return logarithms of a lower and an upper bound on delta at ``epsilon``."""
        ends = np.array([epsilon + self._mismatch, epsilon - self._mismatch])
        low, high = self._log_deltas(ends).tolist()
        return low - self._error, high + self._error

    def log_upper_bounds(self, epsilon: Array) -> Array:
        """Return the logarithms of upper bounds on delta at each epsilon."""
        high: Array = self._log_deltas(epsilon - self._mismatch) + self._error
        return high

    def _log_deltas(self, epsilon: Array) -> Array:
        """Return ``ln sum P (1 - e^(eps - L))+`` at each epsilon, in blocks of bounded memory."""
        block = max(1, BLOCK // self.nodes)
        log_deltas = []
        for i in range(0, epsilon.size, block):
            column = epsilon[i : i + block, None]
            logs = np.where(self._loss > column, self._log_mass, -np.inf)
            top = np.max(logs, axis=1, initial=-np.inf)
            top = np.where(np.isfinite(top), top, 0.0)  # at epsilons above all sums delta is 0
            share = -np.expm1(np.minimum(column - self._loss, 0.0))
            with np.errstate(divide="ignore"):
                log_sum = np.log(np.sum(np.exp(logs - top[:, None]) * share, axis=1))
            log_deltas.append(top + log_sum)
        return np.concatenate(log_deltas)


def _count_vectors(count: int, kinds: int) -> Array:
    """Return every way to share ``count`` releases among ``kinds`` outcomes, one in each row."""
    if kinds == 1:
        return np.full((1, 1), float(count))
    # The counts are "stars and bars": kinds - 1 bars stand at count + kinds - 1 places, and the
    # stars between two bars are the releases of one outcome.
    bars = np.array(list(itertools.combinations(range(count + kinds - 1), kinds - 1)))
    ends = np.full((len(bars), 1), count + kinds - 1)
    shares: Array = np.diff(np.hstack([np.full((len(bars), 1), -1), bars, ends]), axis=1) - 1.0
    return shares


class EnumerationEngine(EngineNearEpsilon):
    """The engine that lists every sum of a few finite losses."""

    name = "enumeration"
    planning_cost = 0.0

    def near(self, neighbourhood: Neighbourhood) -> Iterator[Attempt[DeltaBounds]]:
        """Yield the enumeration, where there are not too many sums."""
        items = neighbourhood.composition.items
        sums = number_of_sums(items)
        if sums <= MAX_SUMS:
            yield Attempt(COST_OF_A_SUM * sums, lambda: Enumeration(items))
