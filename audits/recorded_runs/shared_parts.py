"""A recorded run and its replay compared: pairs of events, and by how much values moved.

The cost of a pair of runs and its findings are both computed from these pairs.
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
    """A flat view of the first run, and by how much its value moved in the second.

    ``other_factors`` are those of the second run.
    """

    noises: NDArray[np.int64]
    factors: NDArray[np.float64]
    value: NDArray[np.float64]
    moved: NDArray[np.float64]
    same_noise: bool
    same_factors: bool
    other_factors: NDArray[np.float64]


def pairs_of_events(first_tape: Tape, second_tape: Tape) -> Iterator[tuple[Event, Event]]:
    """Events of both runs, up to where they part."""
    return zip(first_tape.events, second_tape.events, strict=False)


def moved_view(recorded: View, replayed: View) -> Moved:
    """Compare the views that two runs have of one output."""
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
    """By how much numbers moved: 0 for equal ones, infinite if one is no number."""
    with np.errstate(all="ignore"):
        gap = np.asarray(other - one, dtype=float)
        largest = np.maximum(np.abs(one), np.abs(other))
    is_equal = (one == other) | (np.isnan(one) & np.isnan(other))
    # 4e-16 is about two units of rounding, by which sums of the same numbers may differ
    is_rounding = np.abs(gap) <= 4e-16 * largest
    return np.where(is_equal | is_rounding, 0.0, np.where(np.isnan(gap), np.inf, gap))


def is_only_compared(event: Event, replayed: Event) -> bool:
    """True of uniform noise alone that was compared, and not used in any other way."""
    return event.uniform and event.asked > 0 and not (event.steps or event.used or replayed.used)


def is_released(event: Event, replayed: Event) -> bool:
    """True if the number counts as released: it was used, or nothing recorded was done with it."""
    if event.used or replayed.used:
        return True
    unread = not (event.steps or event.asked)
    if event.view is None or replayed.view is None:
        return False
    if event.pure:
        # noise alone, or a function of it, matters only if a private value is in it after all
        moved = moved_view(event.view, replayed.view).moved
        return bool(np.any(moved != 0)) and (unread or event.name not in ("[]", "copy"))
    return unread
