"""Which draws may be public instead of noise: random thresholds, centres and projections.

Draws that are the same in both runs, and that nothing hides behind, cost nothing: if the runs are
explained so, they are explained (docs/proofs/recorded_runs.md, statement 4).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from audits.recorded_runs.events import DrawSite, Event, EventKind, View
from audits.recorded_runs.findings import same_inputs
from audits.recorded_runs.shared_parts import is_only_compared, moved_view
from audits.recorded_runs.tape import Tape

Pairs = list[tuple[Event, Event]]
NO_NOISE = {"uniform", "unknown"}  # laws that rarely protect a value


def blamed_draws(
    pairs: Pairs, first_tape: Tape, second_tape: Tape, conflicts: list[tuple[Event, str]]
) -> frozenset[DrawSite]:
    """Places of the draws in the first finding, as if noise were computed with private numbers.

    Later findings may be consequences of the first one; the next runs show whether they are.
    """
    conflicting = {id(event) for event, _ in conflicts}
    for recorded, replayed in pairs:
        if recorded.view is None or replayed.view is None:
            continue
        moved = moved_view(recorded.view, replayed.view)
        factors = moved.same_factors or is_only_compared(recorded, replayed)
        equal = same_inputs(recorded, replayed) and moved.same_noise and factors
        if not equal or id(recorded) in conflicting:
            return first_tape.origins_of(recorded.view)
    views: list[View | None] = []
    if second_tape.parted is not None:
        if len(second_tape.events) < len(first_tape.events):
            missing_event = first_tape.events[len(second_tape.events)]
            if missing_event.kind is not EventKind.DRAW:  # a new draw is not the cause
                views += [missing_event.view, *(missing_event.sides or ())]
        views += [second_tape.asked.get("view"), *(second_tape.asked.get("sides") or ())]
    return frozenset().union(*(first_tape.origins_of(view) for view in views if view is not None))


def draws_without_law(pairs: Pairs, first_tape: Tape) -> frozenset[DrawSite]:
    """Places of uniform draws that were compared with private numbers, and of unknown noise."""
    sites: set[DrawSite] = set()
    for block in first_tape.blocks:
        if block.law == "unknown":
            sites |= block.origins
    for view in _moved_questions(pairs, first_tape, NO_NOISE):
        sites |= first_tape.origins_of(view)
    return frozenset(sites)


def is_threshold(pairs: Pairs, first_tape: Tape) -> bool:
    """True if a uniform number was compared with a private one and is known as well: no coin."""
    compared_noises = [view.noises for view in _moved_questions(pairs, first_tape, {"uniform"})]
    released_noises = [
        recorded.view.noises for recorded, _ in pairs if recorded.view is not None and recorded.used
    ]
    shared_noises: NDArray[np.int64] = np.intersect1d(
        _numbers(compared_noises), _numbers(released_noises)
    )
    return bool(np.any(shared_noises >= 0))


def _numbers(noises: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, dtype=np.int64), *(array.ravel() for array in noises)])


def _moved_questions(pairs: Pairs, first_tape: Tape, laws: set[str]) -> Iterator[View]:
    """Noise of these laws in questions of which a plain side moved."""
    blocks = [(b.start, b.stop) for b in first_tape.blocks if b.law in laws]
    for recorded, replayed in pairs:
        if recorded.sides is None or replayed.sides is None or not _moved(recorded, replayed):
            continue
        for side in recorded.sides:
            if any(np.any((side.noises >= a) & (side.noises < b)) for a, b in blocks):
                yield side


def _moved(recorded: Event, replayed: Event) -> bool:
    sides = zip(recorded.sides or (), replayed.sides or (), strict=True)
    return any(not np.array_equal(a.value, b.value, equal_nan=True) for a, b in sides)
