"""Runs drawn where privacy is lost, each weighted by its probability under the algorithm itself.

Where one data set gives a release the value v and the other v', its output is drawn around
v + t (v - v').  With t = 0 that is the run itself, with t = -1 the run on the other data, with
t > 0 one whose loss is rare.  A run draws its t with probabilities pi that were fixed before it,
and has weight ``w = p / sum_k pi_k p_k`` for every t: the mean of w f is that of f under p (Veach
& Guibas 1995, the balance heuristic).  Later runs choose t by the losses of earlier ones.
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
from audits.algorithm_runs.coupled_gate import PendingRelease
from audits.algorithm_runs.coupled_runs import run_coupled
from audits.algorithm_runs.recording import OffTranscript
from audits.algorithm_runs.replaying import Algorithm, data_of_runs
from audits.algorithm_runs.tilt_schedule import TiltSchedule
from mechanisms.base.values import Integers, Reals, Scores

ADDITIVE_VALUES = (Reals, Scores, Integers)  # values that may be any numbers
MAX_EXACT_INTEGER = 2.0**53  # whole numbers beyond it are not all floats


@final
@dataclass(frozen=True, slots=True)
class WeightedLoss:
    """One run: its privacy loss log p/q, and its weight on each data set.

    ``first_weight`` and ``second_weight`` are p and q over the density that it was drawn from;
    ``untilted`` is True if it was drawn from p itself, ``pilot`` if it is one of the first runs, by
    which t was chosen.
    """

    loss: float
    first_weight: float
    second_weight: float
    untilted: bool
    pilot: bool


def weighted_losses(
    algorithm: Algorithm,
    data: Any,
    neighbour: Any,
    runs: int,
    epsilon: float,
    public: Any = None,
    rng: Rng = None,
) -> Iterator[WeightedLoss]:
    """Yield weighted runs, most of which lose about ``epsilon``, one run at a time.

    Raises `OffTranscript` if the algorithm's releases depend on the data.
    """
    data, neighbour = data_of_runs(algorithm, data, neighbour)
    schedule = TiltSchedule(IntegerRange(1).check("runs", runs), epsilon)
    for index, run_rng in enumerate(generator(rng).spawn(runs)):
        # the coins are public, the noise must not follow from them
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
    """The log-densities of one run's outputs under every tilt."""

    def __init__(self, tilts: Array, drawn: int, noise: np.random.Generator) -> None:
        self._tilts, self._drawn, self._noise = tilts, drawn, noise
        self._logs = np.zeros(tilts.size)
        self._has_secret_sample = False

    def answer(self, first_release: PendingRelease, second_release: PendingRelease) -> Any:
        """The output of a release, drawn around the value of this run's tilt."""
        if first_release.mechanism.sampler is not None:
            self._has_secret_sample = True  # the density would be a mixture over all samples
            return first_release.output
        if first_release.who is None:
            if np.all(first_release.value == second_release.value):
                return first_release.output  # as likely under every tilt
            return self._draw_tilted(first_release.mechanism, first_release, second_release, None)
        changed = (
            (first_release.value != second_release.value)
            .reshape(len(first_release.value), -1)
            .any(axis=1)
        )
        users = np.flatnonzero(changed)
        if users.size > 1:
            # in the local model at most one user's value may differ
            reason = f"the values of {users.size} users changed with one user's record"
            raise OffTranscript(reason)
        if users.size == 0:
            return first_release.output
        return self._draw_tilted(
            first_release.mechanism, first_release, second_release, int(users[0])
        )

    def _draw_tilted(
        self,
        mechanism: Any,
        first_release: PendingRelease,
        second_release: PendingRelease,
        user: int | None,
    ) -> Any:
        pair = (first_release.value, second_release.value)
        if user is not None:
            pair = (first_release.value[user], second_release.value[user])
        values = tilted_values(mechanism, *pair, self._tilts)
        output = (first_release, second_release)[self._drawn].output if self._drawn < 2 else None
        if output is None:
            value = values[self._drawn]
            if user is not None:
                value = first_release.value.copy()
                value[user] = values[self._drawn]
            output = mechanism.release(value, self._noise)
        output_of_user = output if user is None else output[user]
        self._logs += _log_densities(mechanism, output_of_user, values)
        return output

    def weighted_loss(self, shares: Array, *, pilot: bool) -> WeightedLoss:
        """The loss and both weights, from the sums over all releases."""
        plain, logs = self._drawn == 0, self._logs
        if self._has_secret_sample:
            return WeightedLoss(math.nan, math.nan, math.nan, plain, pilot)
        log_density, neighbour_log_density = float(logs[0]), float(logs[1])
        together = float(np.logaddexp.reduce(np.log(shares) + logs))
        if math.isnan(together) or together == -math.inf:
            # an answer that is impossible where it was drawn is no evidence for the claim
            return WeightedLoss(math.inf, 1.0, 0.0, plain, pilot)
        loss = log_density - neighbour_log_density if log_density > -math.inf else -math.inf
        return WeightedLoss(
            loss,
            math.exp(log_density - together),
            math.exp(neighbour_log_density - together),
            plain,
            pilot,
        )


def tilted_values(mechanism: Any, mine: Any, theirs: Any, tilts: Array) -> Any:
    """The values to draw around, one per tilt; the first two are the values of both runs."""
    kind = mine.dtype.kind
    shape = (tilts.size, *mine.shape)
    if kind in "iuf" and isinstance(getattr(mechanism, "values", None), ADDITIVE_VALUES):
        step = tilts.reshape(-1, *[1] * mine.ndim) * (mine.astype(float) - theirs)
        values = mine + (step if kind == "f" else np.rint(step))
        if np.abs(values).max() < MAX_EXACT_INTEGER:
            values = values.astype(mine.dtype, copy=False)
            values[0], values[1] = mine, theirs
            return values
    # other mechanisms draw the output from one of the two data sets
    values = np.empty(shape, dtype=np.result_type(mine, theirs))
    values[tilts >= 0], values[tilts < 0] = mine, theirs
    return values


def _log_densities(mechanism: Any, output: Any, values: Any) -> Array:
    released = np.asarray(output)
    outputs = np.empty((len(values), *released.shape), dtype=released.dtype)
    outputs[...] = released
    logs: Array = np.asarray(mechanism.log_density(outputs, values, each=True), dtype=float)
    return logs
