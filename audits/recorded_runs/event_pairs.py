"""A recorded run and its replay compared: pairs of events, and by how much values moved.

A function is recorded on data, and replayed on their neighbour with the recorded outputs.  The tape
of a run lists its events: draws, steps of arithmetic on noisy numbers, questions (comparisons) and
calls of mechanisms.  The two tapes have the same events up to where the runs part.  `costs` and
`noise_shifts` compute the privacy loss from these pairs, `findings` what depends on the data
without enough noise.

An output with noise is *followed*: its ``view`` says which noises are in it, and these fields what
the code did with it.  ``pure``: it is noise alone, to which no value was added.  ``uniform``: a
step made it of uniform noise alone.  ``steps`` and ``questions``: how many later ones had it as an
operand.  ``used``: it left the followed code, which counts as its release.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from audits.recorded_runs.comparisons import ROUND_OFF
from audits.recorded_runs.events import Call, Event, Question
from audits.recorded_runs.tape import Tape
from audits.recorded_runs.views import View, select

# Relative: about two units of rounding, by which sums of the same numbers in two orders may differ.
ROUNDING_OF_SUMS = 4e-16


@final
class Moved(NamedTuple):
    """The view of an output in the first run, and how it differs in the second.

    Row i is an element of the output, flattened: value[i] + sum_j factors[i, j] x noise number
    noises[i, j], where a number below 0 stands for no noise.
    """

    view: View  # of the first run
    # For each row the value of the second run less that of the first: NaN if the shapes differ, and
    # infinite if one value is no number, or if one is infinite and the other is not the same.
    gap: NDArray[np.float64]
    same_noise: bool  # whether the same noises are in the output in both runs
    # The factors of the second run if the noises are the same, else those of the first again.
    other_factors: NDArray[np.float64]

    @property
    def same_factors(self) -> bool:
        """Whether the noises and their factors are equal in both runs."""
        return self.same_noise and np.allclose(
            self.view.factors, self.other_factors, rtol=ROUND_OFF, atol=0.0, equal_nan=True
        )

    @property
    def has_noise(self) -> NDArray[np.bool_]:
        """Which parts of the rows are noise with a factor other than 0, in the shape of factors."""
        is_noise: NDArray[np.bool_] = (self.view.noises >= 0) & (self.view.factors != 0)
        return is_noise

    def rows(self, places: NDArray[np.intp]) -> Moved:
        """The rows with these indices, compared in the same way."""
        return Moved(
            select(self.view, places),
            self.gap[places],
            self.same_noise,
            self.other_factors[places],
        )


def moved_view(recorded: View, replayed: View) -> Moved:
    """Compare the views that two runs have of one output."""
    parts = recorded.noises.shape[-1]
    same_noise = np.array_equal(recorded.noises, replayed.noises)
    gap = np.full(recorded.value.size, np.nan)
    if recorded.value.shape == replayed.value.shape:
        gap = distances(recorded.value, replayed.value).ravel()
    factors = recorded.factors.reshape(-1, parts)
    other_factors = replayed.factors.reshape(-1, parts) if same_noise else factors
    view = View(recorded.noises.reshape(-1, parts), factors, recorded.value.ravel())
    return Moved(view, gap, same_noise, other_factors)


def distances(recorded: NDArray[np.float64], replayed: NDArray[np.float64]) -> NDArray[np.float64]:
    """``replayed - recorded``, elementwise: 0 if both are equal, within rounding, or both NaN.

    Of other pairs it is infinite if one of the two is NaN, or infinite.
    """
    with np.errstate(all="ignore"):
        gap = np.asarray(replayed - recorded, dtype=float)
        largest = np.maximum(np.abs(recorded), np.abs(replayed))
    is_equal = (recorded == replayed) | (np.isnan(recorded) & np.isnan(replayed))
    # Of an infinite gap the rounding would be infinite too, and the gap would count as rounding.
    is_rounding = np.isfinite(gap) & (np.abs(gap) <= ROUNDING_OF_SUMS * largest)
    return np.where(is_equal | is_rounding, 0.0, np.where(np.isnan(gap), np.inf, gap))


@final
@dataclass(frozen=True)
class EventPair:
    """An event of the first run, and its replay in the second."""

    recorded: Event
    replayed: Event
    # Whether numbers that no step, question or result took up count as released: compiled code may
    # have read them.
    counts_unread: bool = True

    @cached_property
    def moved(self) -> Moved | None:
        """How the output differs; None unless it is followed in both runs."""
        first, second = self.recorded.noisy, self.replayed.noisy
        return None if first is None or second is None else moved_view(first.view, second.view)

    @property
    def sides(self) -> list[tuple[View, View]]:
        """The two sides of a question, each with its views in both runs.

        The list is empty for other events, and where one of the runs did not follow the sides.
        """
        recorded, replayed = self.recorded, self.replayed
        if not isinstance(recorded, Question) or not isinstance(replayed, Question):
            return []
        return list(zip(recorded.sides or (), replayed.sides or (), strict=False))

    @property
    def call_distance(self) -> float | None:
        """By how much the private value of a call moved, in its norm; None if not known."""
        recorded, replayed = self.recorded, self.replayed
        if not isinstance(recorded, Call) or not isinstance(replayed, Call):
            return None
        if recorded.private_value is None or replayed.private_value is None:
            return None
        try:
            values = [np.asarray(event.private_value) for event in (recorded, replayed)]
            # Whole numbers are subtracted exactly: as floats, large ones would seem not to move.
            are_whole = all(value.dtype.kind in "iu" for value in values)
            numbers = [value.ravel().astype(object if are_whole else float) for value in values]
        except (TypeError, ValueError):
            return None
        if values[0].shape != values[1].shape:
            return None
        gap = np.subtract(*numbers) if are_whole else distances(*numbers)
        gap = np.abs(gap).astype(float)
        return float(np.linalg.norm(gap, recorded.norm)) if gap.size else 0.0

    @property
    def is_only_compared(self) -> bool:
        """Whether the output is uniform noise alone that was compared, and not used otherwise."""
        noisy = self.recorded.noisy
        if noisy is None or not noisy.uniform or not noisy.questions:
            return False
        return not (noisy.steps or self._is_used)

    @property
    def is_released(self) -> bool:
        """Whether the output counts as released."""
        noisy = self.recorded.noisy
        if self._is_used or self.moved is None or noisy is None or not self.counts_unread:
            return self._is_used
        # What no step or question has as an operand may be the result, or a part of it.
        unread = not (noisy.steps or noisy.questions)
        if not noisy.pure:
            return unread
        # Noise alone tells nothing unless its value moved: a private value is then in it after all.
        # (A factor of it that moved is a finding of its own, `findings.unequal_factors`.)  An
        # element ("[]") or a copy that a later step or question has as an operand is no release:
        # that later event is looked at instead.
        has_moved = bool(np.any(self.moved.gap != 0))
        return has_moved and (unread or self.recorded.name not in ("[]", "copy"))

    @property
    def _is_used(self) -> bool:
        """Whether the output left the followed code in one of the runs."""
        return any(
            event.noisy is not None and event.noisy.used for event in (self.recorded, self.replayed)
        )


def pairs_of_events(first_tape: Tape, second_tape: Tape) -> list[EventPair]:
    """Pairs of an event and its replay, up to where the runs part."""
    return list(map(EventPair, first_tape.events, second_tape.events))
