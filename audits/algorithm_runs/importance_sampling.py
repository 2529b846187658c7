"""Importance sampling of the privacy loss of a whole algorithm on two neighbouring data sets.

Large losses are rare in runs of the algorithm itself, so runs are drawn from other laws, and each
has a weight.  Where one data set gives a release the value v and the other v', its output is drawn
around v + t (v - v'), with one tilt t for the whole run.  With t = 0 that is a run on the first
data set, with t = -1 a run on the other one, and with t > 0 the loss tends to be larger than in
both.

A run draws its t with probabilities pi that are fixed before it.  With p_k the density of its
outputs under the tilt t_k, and p that under t = 0, its weight is ``w = p / sum_k pi_k p_k``: then
the mean of w f is the mean of f under p, whatever the tilts are (Veach & Guibas 1995, the balance
heuristic).  Later runs choose tilts by the losses of earlier ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.domains import IntegerRange
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from audits.algorithm_runs.coupled_runs import PendingRelease, run_coupled
from audits.algorithm_runs.replay_gate import OffTranscript
from audits.algorithm_runs.replaying import Algorithm, data_of_runs
from mechanisms.base.values import Integers, Reals, Scores

# The constants decide how much the runs tell, not whether that is right: the weights are unbiased
# for any tilts and shares.

# Probability of t = 0 in the pilot runs, whose losses place the tilts; the others have t = -1.
PILOT_UNTILTED_SHARE = 0.9
# Probability of t = 0 once the tilts are placed.  No weight p / sum_k pi_k p_k is above its
# inverse, so none is above 3; a larger one would leave fewer runs for the rare losses.
MIN_UNTILTED_SHARE = 1 / 3
REVERSE_TILT_SHARE = 1 / 8  # probability of t = -1 then, which serves losses in the other direction
# Probability of the largest t then, if several are positive.  Its losses are about epsilon, where
# the profile is to be bounded, so it has more runs than the tilts on the way there.
LAST_TILT_SHARE = 0.45
# Pilot runs are all runs over PILOT_DIVISOR, but at least MIN_PILOT_RUNS, and at most half of all.
PILOT_DIVISOR, MIN_PILOT_RUNS = 15, 20
# Standard deviations of the loss from one mean loss that is aimed at to the next, and the largest
# number of positive tilts.  Laws farther apart overlap less, which makes weights uneven.
TILT_SPACING, MAX_TILTS = 2.0, 3
MIN_VARIANCE = 1e-24  # a smaller variance may be the rounding of sums of log-densities
# No tilt aims at a mean loss that is more standard deviations above the mean than this.
MAX_DEVIATIONS = 7.0
MAX_TILT_GROWTH = 4  # a tilt moves to at most this many times the largest one that was placed
ADDITIVE_VALUES = (Reals, Scores, Integers)  # kinds of values in which any number is allowed
MAX_EXACT_INTEGER = 2.0**53  # whole numbers beyond it are not all floats


class TiltSchedule:
    """The ``tilts`` of the next run and their probabilities, the ``shares``.

    The first tilt is 0 and the second -1.  The others are placed after the first ``pilot_runs``
    runs, by the mean and the variance of their losses: the mean loss under the last tilt is to be a
    little above ``epsilon``.  Pilot runs do not count as evidence of rare losses.  If losses
    above ``epsilon`` are not rare, or losses do not vary, no tilt is placed.
    """

    def __init__(self, runs: int, epsilon: float) -> None:
        self.tilts = np.array([0.0, -1.0])
        self.shares = np.array([PILOT_UNTILTED_SHARE, 1 - PILOT_UNTILTED_SHARE])
        self._epsilon = epsilon
        self.pilot_runs = self._pilot_left = min(
            max(MIN_PILOT_RUNS, runs // PILOT_DIVISOR), runs // 2
        )
        self._pilot_losses: list[float] = []
        # for each positive tilt the mean loss that it aims at, and the runs drawn with it, plus one
        self._target_losses = np.zeros(0)
        self._counts = np.zeros(0)
        self._variance, self._max_tilt = 0.0, 0.0

    def update(self, drawn: int, loss: float) -> None:
        """Learn from a run with the tilt of index ``drawn`` and its ``loss``.

        The last pilot run places the tilts.  Later runs with a positive tilt adjust this tilt.  A
        run of unknown loss, NaN, teaches nothing: the tilts are placed after as many known ones.
        """
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
        """Place the positive tilts, for losses of this mean and variance without a tilt."""
        if not (variance > MIN_VARIANCE and math.isfinite(self._epsilon)):
            return
        # The losses L that contribute to delta(eps) = E (1 - e^{eps - L})_+ are taken to exceed eps
        # by a Gamma(2, r) variable with r = eps / variance + 1/2, whose mean is 2 / r: a Gaussian
        # density falls at eps with the rate eps / variance - 1/2, and 1 - e^-x is about x e^-x.
        target = self._epsilon + 2 / (self._epsilon / variance + 0.5)
        spread = math.sqrt(variance)
        distance = min((target - mean) / spread, MAX_DEVIATIONS)
        if distance < 1:  # such losses are not rare without a tilt
            return
        count = min(MAX_TILTS, max(1, round(distance / TILT_SPACING)))
        mean_loss_gains = distance * np.arange(1, count + 1) / count
        self._target_losses = mean + spread * mean_loss_gains
        # Under the tilt t a Gaussian loss has the mean (1/2 + t) variance, so a mean that is higher
        # by g needs the tilt g / variance.
        positive_tilts = mean_loss_gains / spread
        self._variance, self._counts = variance, np.ones(count)
        self._max_tilt = MAX_TILT_GROWTH * positive_tilts[-1]
        self.tilts = np.concatenate([[0.0, -1.0], positive_tilts])
        # The last of several positive tilts has its own share, and the others share the rest.
        positive_share = 1 - MIN_UNTILTED_SHARE - REVERSE_TILT_SHARE
        positive_shares = np.full(count, (positive_share - LAST_TILT_SHARE) / max(count - 1, 1))
        positive_shares[-1] = LAST_TILT_SHARE if count > 1 else positive_share
        self.shares = np.concatenate([[MIN_UNTILTED_SHARE, REVERSE_TILT_SHARE], positive_shares])

    def _adjust_tilt(self, drawn: int, loss: float) -> None:
        """Move one tilt by a step of Robbins & Monro (1951) to bring its mean loss to its target.

        ``drawn`` is its index among all tilts, of which the first two are not adjusted.  The step
        is (target - loss) / variance / number of its runs, as d mean loss / dt = variance.  The
        difference is clipped to one standard deviation, so that no single loss moves t far.
        """
        index, spread = drawn - 2, math.sqrt(self._variance)
        self._counts[index] += 1
        miss = float(np.clip(self._target_losses[index] - loss, -spread, spread))
        moved = self.tilts[drawn] + miss / self._variance / self._counts[index]
        tilts: Array = self.tilts.copy()
        tilts[drawn] = min(max(moved, 0.0), self._max_tilt)
        self.tilts = tilts


@final
@dataclass(frozen=True, slots=True)
class WeightedLoss:
    """One run: its privacy loss ln p/q, and its weight on each data set.

    p and q are the densities of its outputs on the two data sets.  The loss and the weights are NaN
    for a run that releases from a secret sample of the records, as p and q are not known then.
    """

    loss: float
    first_weight: float  # p over the mixture density from which the run was drawn
    second_weight: float  # q over this density
    untilted: bool  # drawn with t = 0
    pilot: bool  # one of the pilot runs


def weighted_losses(
    algorithm: Algorithm,
    data: Any,
    neighbour: Any,
    runs: int,
    epsilon: float,
    public: Any = None,
    rng: Rng = None,
) -> Iterator[WeightedLoss]:
    """Yield ``runs`` weighted runs; after the pilot runs, many have a loss of about ``epsilon``.

    Raises `OffTranscript` if the algorithm asks for other releases on the other data set.
    """
    data, neighbour = data_of_runs(algorithm, data, neighbour)
    schedule = TiltSchedule(IntegerRange(1).check("runs", runs), epsilon)
    for index, run_rng in enumerate(generator(rng).spawn(runs)):
        # The coins of the algorithm are public, so the noise comes from another generator.
        noise, coins = run_rng.spawn(2)
        coin_words = coins.integers(1 << 32, size=4).tolist()
        tilts, shares = schedule.tilts, schedule.shares
        drawn = int(noise.choice(tilts.size, p=shares))
        run = _TiltedRun(tilts, drawn, noise)
        run_coupled(algorithm, (data, neighbour), public, coin_words, noise, run.answer)
        weighted = run.weighted_loss(shares, pilot=index < schedule.pilot_runs)
        schedule.update(drawn, weighted.loss)
        yield weighted


class _TiltedRun:
    """One run with a drawn tilt, and the log-densities of its outputs under every tilt.

    ``drawn`` is the index of its tilt in ``tilts``.
    """

    def __init__(self, tilts: Array, drawn: int, noise: np.random.Generator) -> None:
        self._tilts, self._drawn, self._noise = tilts, drawn, noise
        # for each tilt the log-density of all outputs so far
        self._log_densities = np.zeros(tilts.size)
        self._has_secret_sample = False

    def answer(self, first_release: PendingRelease, second_release: PendingRelease) -> Any:
        """The output of a release, drawn around the value that the tilt of this run gives."""
        if first_release.mechanism.sampler is not None:
            # the density of the output would be a mixture over all samples, so the loss is unknown
            self._has_secret_sample = True
            return first_release.output
        if first_release.who is None:
            if np.all(first_release.value == second_release.value):
                return first_release.output  # as likely under every tilt
            return self._draw_tilted(first_release, second_release, None)
        is_changed = first_release.value != second_release.value
        users = np.flatnonzero(is_changed.reshape(len(first_release.value), -1).any(axis=1))
        if users.size > 1:
            # In the local model each user releases a value of their own record.
            reason = f"the values of {users.size} users changed with one user's record"
            raise OffTranscript(reason)
        if users.size == 0:
            return first_release.output
        return self._draw_tilted(first_release, second_release, int(users[0]))

    def _draw_tilted(
        self, first_release: PendingRelease, second_release: PendingRelease, user: int | None
    ) -> Any:
        """The output of a release with the tilt of this run.

        In the local model only the value of ``user`` is tilted.
        """
        mechanism = first_release.mechanism
        pair = (first_release.value, second_release.value)
        if user is not None:
            pair = (first_release.value[user], second_release.value[user])
        values = tilted_values(mechanism, *pair, self._tilts)
        # The tilts 0 and -1 are runs on one of the data sets, whose own output is taken.
        output = (first_release, second_release)[self._drawn].output if self._drawn < 2 else None
        if output is None:
            value = values[self._drawn]
            if user is not None:
                value = first_release.value.copy()
                value[user] = values[self._drawn]
            output = mechanism.release(value, self._noise)
        output_of_user = np.asarray(output if user is None else output[user])
        # the same output under every tilt
        outputs = np.empty((len(values), *output_of_user.shape), dtype=output_of_user.dtype)
        outputs[...] = output_of_user
        log_densities = mechanism.log_density(outputs, values, each=True)
        self._log_densities += np.asarray(log_densities, dtype=float)
        return output

    def weighted_loss(self, shares: Array, *, pilot: bool) -> WeightedLoss:
        """The loss and both weights of the run, after its last release.

        ``shares`` are the probabilities with which the tilts were drawn.
        """
        is_untilted = self._drawn == 0
        if self._has_secret_sample:
            loss = first_weight = second_weight = math.nan
            return WeightedLoss(loss, first_weight, second_weight, is_untilted, pilot)
        # The tilts 0 and -1 are runs on the first and on the second data set.
        log_p, log_q = float(self._log_densities[0]), float(self._log_densities[1])
        log_mixture = float(np.logaddexp.reduce(np.log(shares) + self._log_densities))
        if math.isnan(log_mixture) or log_mixture == -math.inf:
            # An output that is impossible under the law that it was drawn from must not support
            # the claim: it counts as an infinite loss.
            loss, first_weight, second_weight = math.inf, 1.0, 0.0
            return WeightedLoss(loss, first_weight, second_weight, is_untilted, pilot)
        return WeightedLoss(
            log_p - log_q if log_p > -math.inf else -math.inf,
            math.exp(log_p - log_mixture),
            math.exp(log_q - log_mixture),
            is_untilted,
            pilot,
        )


def tilted_values(mechanism: Any, value: Any, neighbour_value: Any, tilts: Array) -> Any:
    """The values ``v + t (v - v')`` to draw around, one per tilt t; the first two are v and v'.

    The step t (v - v') is rounded for integers.  Where the mechanism does not take any number as a
    value, v stands for all t >= 0 and v' for t < 0.
    """
    kind = value.dtype.kind
    shape = (tilts.size, *value.shape)
    if kind in "iuf" and isinstance(getattr(mechanism, "values", None), ADDITIVE_VALUES):
        step = tilts.reshape(-1, *[1] * value.ndim) * (value.astype(float) - neighbour_value)
        values = value + (step if kind == "f" else np.rint(step))
        if np.abs(values).max() < MAX_EXACT_INTEGER:
            values = values.astype(value.dtype, copy=False)
            values[0], values[1] = value, neighbour_value
            return values
    values = np.empty(shape, dtype=np.result_type(value, neighbour_value))
    values[tilts >= 0], values[tilts < 0] = value, neighbour_value
    return values
