"""The tilts of the next run: none, that of the reverse run, and some towards a target loss."""

from __future__ import annotations

import math

import numpy as np

from accountant.numerics import Array

MIN_UNTILTED_SHARE = 1 / 3  # least share of runs without a tilt, so that no weight is above 3
PILOT_UNTILTED_SHARE, REVERSE_TILT_SHARE, LAST_TILT_SHARE = 0.9, 1 / 8, 0.45
MIN_PILOT_RUNS = 20  # least number of runs before the tilts are placed
TILT_SPACING, MAX_TILTS = 2.0, 3  # deviations of the loss from tilt to tilt; most tilts
MIN_VARIANCE = 1e-24  # a variance that may be rounding of sums of log-densities
MAX_DEVIATIONS = 7.0  # deviations beyond which a Gaussian loss has a delta below 1e-12


class TiltSchedule:
    """The ``tilts`` of the next run and their ``shares``, by the losses of the runs before it.

    The first tilt is 0, the second -1; the others reach mean losses a little above ``epsilon``.
    The first ``pilot_runs`` runs place them, and do not count as evidence of rare losses.
    """

    def __init__(self, runs: int, epsilon: float) -> None:
        self.tilts = np.array([0.0, -1.0])
        self.shares = np.array([PILOT_UNTILTED_SHARE, 1 - PILOT_UNTILTED_SHARE])
        self._epsilon = epsilon
        self.pilot_runs = self._pilot_left = min(max(MIN_PILOT_RUNS, runs // 15), runs // 2)
        self._pilot_losses: list[float] = []
        self._target_losses = np.zeros(0)
        self._counts = np.zeros(0)
        self._variance, self._max_tilt = 0.0, 0.0

    def update(self, drawn: int, loss: float) -> None:
        """Place the tilts after the pilot runs, then move each by the losses drawn from it."""
        if math.isnan(loss):
            return
        if drawn >= 2:
            self._adjust_tilt(drawn, loss)
        elif self._pilot_left > 0:
            if drawn == 0 and math.isfinite(loss):
                self._pilot_losses.append(loss)
            self._pilot_left -= 1
            if self._pilot_left == 0 and len(self._pilot_losses) > 1:
                self._place_tilts(
                    float(np.mean(self._pilot_losses)), float(np.var(self._pilot_losses, ddof=1))
                )

    def _place_tilts(self, mean: float, variance: float) -> None:
        if not (variance > MIN_VARIANCE and math.isfinite(self._epsilon)):
            return
        # E (1 - e^{eps - L})_+ of a Gaussian loss comes from an excess over eps with a Gamma(2, r)
        # law, r = eps / variance + 1/2
        target = self._epsilon + 2 / (self._epsilon / variance + 0.5)
        spread = math.sqrt(variance)
        distance = min((target - mean) / spread, MAX_DEVIATIONS)
        if distance < 1:
            return
        count = min(MAX_TILTS, max(1, round(distance / TILT_SPACING)))
        climbed = distance * np.arange(1, count + 1) / count
        self._target_losses = mean + spread * climbed
        # a Gaussian loss has the mean variance (1/2 + t) under the tilt t
        positive_tilts = climbed / spread
        self._variance, self._max_tilt, self._counts = (
            variance,
            4 * positive_tilts[-1],
            np.ones(count),
        )
        self.tilts = np.concatenate([[0.0, -1.0], positive_tilts])
        climbing_share = 1 - MIN_UNTILTED_SHARE - REVERSE_TILT_SHARE
        climb = np.full(count, (climbing_share - LAST_TILT_SHARE) / max(count - 1, 1))
        climb[-1] = LAST_TILT_SHARE if count > 1 else climbing_share
        self.shares = np.concatenate([[MIN_UNTILTED_SHARE, REVERSE_TILT_SHARE], climb])

    def _adjust_tilt(self, drawn: int, loss: float) -> None:
        """One step of Robbins & Monro (1951) towards the tilt whose mean loss is its target."""
        index, spread = drawn - 2, math.sqrt(self._variance)
        self._counts[index] += 1
        miss = float(np.clip(self._target_losses[index] - loss, -spread, spread))
        moved = self.tilts[drawn] + miss / self._variance / self._counts[index]
        tilts: Array = self.tilts.copy()
        tilts[drawn] = min(max(moved, 0.0), self._max_tilt)
        self.tilts = tilts
