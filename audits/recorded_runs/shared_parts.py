"""A recorded run and its replay compared: pairs of events, and by how much values moved.

A function is recorded on data, and replayed on their neighbour with the recorded outputs.  The two
tapes have the same events up to where the runs part.  `costs` and `noise_shifts` compute the
privacy loss from these pairs, `findings` what depends on the data without enough noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from audits.recorded_runs.tape import Event, Tape
from audits.recorded_runs.views import View


@final
class Moved(NamedTuple):
    """The flattened view of an output in the first run, and how it differs in the second.

    Row i is an element of the output: value[i] + sum_j factors[i, j] x noise number noises[i, j].
    ``moved`` is the value of the second run less that of the first: NaN if the shapes differ, and
    infinite if one is no number.  ``same_noise`` and ``same_factors`` say whether the noises and
    the factors are equal in both runs, and ``other_factors`` are the factors of the second.
    """

    noises: NDArray[np.int64]
    factors: NDArray[np.float64]
    value: NDArray[np.float64]
    moved: NDArray[np.float64]
    same_noise: bool
    same_factors: bool
    other_factors: NDArray[np.float64]


def pairs_of_events(first_tape: Tape, second_tape: Tape) -> Iterator[tuple[Event, Event]]:
    """Pairs of an event and its replay, up to where the runs part."""
    return zip(first_tape.events, second_tape.events, strict=False)


def moved_view(recorded: View, replayed: View) -> Moved:
    """Compare the views that two runs have of one output.

    Where the noises differ, ``other_factors`` are those of the first run.
    """
    parts = recorded.noises.shape[-1]
    noises, factors = recorded.noises.reshape(-1, parts), recorded.factors.reshape(-1, parts)
    same_noise = recorded.noises.shape == replayed.noises.shape and bool(
        np.array_equal(recorded.noises, replayed.noises)
    )
    same_factors = same_noise and np.allclose(
        recorded.factors, replayed.factors, rtol=1e-9, atol=0.0, equal_nan=True
    )
    moved = np.full(recorded.value.size, np.nan)
    if recorded.value.shape == replayed.value.shape:
        moved = distances(recorded.value, replayed.value).ravel()
    others = replayed.factors.reshape(-1, parts) if same_noise else factors
    return Moved(
        noises, factors, recorded.value.ravel(), moved, same_noise, bool(same_factors), others
    )


def distances(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """``other - one``, elementwise: 0 within rounding; of NaNs 0 if both are, else infinite."""
    with np.errstate(all="ignore"):
        gap = np.asarray(other - one, dtype=float)
        largest = np.maximum(np.abs(one), np.abs(other))
    is_equal = (one == other) | (np.isnan(one) & np.isnan(other))
    # 4e-16 is about two units of rounding, by which sums of the same numbers may differ
    is_rounding = np.abs(gap) <= 4e-16 * largest
    return np.where(is_equal | is_rounding, 0.0, np.where(np.isnan(gap), np.inf, gap))


def is_only_compared(event: Event, replayed: Event) -> bool:
    """Whether this is uniform noise alone that was compared, and not used in any other way.

    ``event`` is of the first run and ``replayed`` of the second, as in `is_released`.
    """
    return event.uniform and event.asked > 0 and not (event.steps or event.used or replayed.used)


def is_released(event: Event, replayed: Event) -> bool:
    """Whether a number counts as released: it was used, or no step or question had it as operand.

    Noise alone counts only if its value moved.
    """
    if event.used or replayed.used:
        return True
    unread = not (event.steps or event.asked)
    if event.view is None or replayed.view is None:
        return False
    if event.pure:
        # Noise alone, or a function of it, tells nothing unless what was added to it moved: a
        # private value is then in it after all.  A selection or copy that was read is not counted.
        moved = moved_view(event.view, replayed.view).moved
        return bool(np.any(moved != 0)) and (unread or event.name not in ("[]", "copy"))
    return unread
