"""Which losses the next run is drawn around: its own, those of the reverse, and rungs to an aim."""

from __future__ import annotations

import math

import numpy as np

from accountant.numerics import Array

PLAIN = 1 / 3  # least share of runs as they are, so that no weight is above 3
FIRST, REVERSED, MAIN = 0.9, 1 / 8, 0.45
PILOT = 20  # least number of runs before the rungs are placed
SPACING, RUNGS = 2.0, 3  # deviations of the loss from rung to rung; most rungs
NOTHING = 1e-24  # a variance that may be rounding of sums of log-densities
FAR = 7.0  # deviations beyond which a Gaussian loss has a delta below 1e-12: nobody asks


class Ladder:
    """``tilts`` of the next run and their ``shares``, by the losses of the runs before it.

    The first tilt is 0, the second -1; the others aim at losses up to a little above ``epsilon``.
    The first ``pilot`` runs place them; what they say of rare losses is not worth counting.
    """

    def __init__(self, runs: int, epsilon: float) -> None:
        self.tilts = np.array([0.0, -1.0])
        self.shares = np.array([FIRST, 1 - FIRST])
        self._epsilon = epsilon
        self.pilot = self._wait = min(max(PILOT, runs // 15), runs // 2)
        self._seen: list[float] = []
        self._aims = np.zeros(0)
        self._counts = np.zeros(0)
        self._variance, self._most = 0.0, 0.0

    def learn(self, drawn: int, loss: float) -> None:
        """Place the rungs after the pilot runs, then move each by the losses drawn from it."""
        if math.isnan(loss):
            return
        if drawn >= 2:
            self._steer(drawn, loss)
        elif self._wait > 0:
            if drawn == 0 and math.isfinite(loss):
                self._seen.append(loss)
            self._wait -= 1
            if self._wait == 0 and len(self._seen) > 1:
                self._place(float(np.mean(self._seen)), float(np.var(self._seen, ddof=1)))

    def _place(self, mean: float, variance: float) -> None:
        if not (variance > NOTHING and math.isfinite(self._epsilon)):
            return
        # E (1 - e^{eps - L})_+ of a Gaussian loss comes from an excess over eps with a Gamma(2, r)
        # law, r = eps / variance + 1/2
        aim = self._epsilon + 2 / (self._epsilon / variance + 0.5)
        spread = math.sqrt(variance)
        distance = min((aim - mean) / spread, FAR)
        if distance < 1:
            return
        rungs = min(RUNGS, max(1, round(distance / SPACING)))
        climbed = distance * np.arange(1, rungs + 1) / rungs
        self._aims = mean + spread * climbed
        # a Gaussian loss has the mean variance (1/2 + t) under the tilt t
        first = climbed / spread
        self._variance, self._most, self._counts = variance, 4 * first[-1], np.ones(rungs)
        self.tilts = np.concatenate([[0.0, -1.0], first])
        rest = 1 - PLAIN - REVERSED
        climb = np.full(rungs, (rest - MAIN) / max(rungs - 1, 1))
        climb[-1] = MAIN if rungs > 1 else rest
        self.shares = np.concatenate([[PLAIN, REVERSED], climb])

    def _steer(self, drawn: int, loss: float) -> None:
        """One step of Robbins & Monro (1951) towards the tilt whose mean loss is the aim."""
        rung, spread = drawn - 2, math.sqrt(self._variance)
        self._counts[rung] += 1
        miss = float(np.clip(self._aims[rung] - loss, -spread, spread))
        moved = self.tilts[drawn] + miss / self._variance / self._counts[rung]
        tilts: Array = self.tilts.copy()
        tilts[drawn] = min(max(moved, 0.0), self._most)
        self.tilts = tilts
