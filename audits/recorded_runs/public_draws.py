"""Which draws may be no noise: random thresholds, centres and projections that all may know.

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
NO_NOISE = {"uniform", "unknown"}  # laws that seldom hide a value


def blamed_draws(
    pairs: Pairs, first: Tape, second: Tape, conflicts: list[tuple[Event, str]]
) -> frozenset[DrawSite]:
    """Places of the draws in the first finding, as if noise were computed with private numbers.

    What comes after it may follow from it: the next runs tell.
    """
    conflicting = {id(event) for event, _ in conflicts}
    for recorded, replayed in pairs:
        if recorded.view is None or replayed.view is None:
            continue
        moved = moved_view(recorded.view, replayed.view)
        factors = moved.same_factors or is_only_compared(recorded, replayed)
        equal = same_inputs(recorded, replayed) and moved.same_noise and factors
        if not equal or id(recorded) in conflicting:
            return first.origins_of(recorded.view)
    views: list[View | None] = []
    if second.parted is not None:
        if len(second.events) < len(first.events):
            views += _views_of(first.events[len(second.events)])  # a new draw is not the cause
        views += [second.asked.get("view"), *(second.asked.get("sides") or ())]
    return frozenset().union(*(first.origins_of(view) for view in views if view is not None))


def _views_of(event: Event) -> list[View | None]:
    return [] if event.kind is EventKind.DRAW else [event.view, *(event.sides or ())]


def draws_without_law(pairs: Pairs, first: Tape) -> frozenset[DrawSite]:
    """Places of uniform draws that were compared with private numbers, and of unknown noise."""
    sites: set[DrawSite] = set()
    for block in first.blocks:
        if block.law == "unknown":
            sites |= block.origins
    for view in _moved_questions(pairs, first, NO_NOISE):
        sites |= first.origins_of(view)
    return frozenset(sites)


def is_threshold(pairs: Pairs, first: Tape) -> bool:
    """True if a uniform number was compared with a private one and is known as well: no coin."""
    compared_noises = [view.noises for view in _moved_questions(pairs, first, {"uniform"})]
    released_noises = [
        recorded.view.noises for recorded, _ in pairs if recorded.view is not None and recorded.used
    ]
    shared_noises: NDArray[np.int64] = np.intersect1d(
        _numbers(compared_noises), _numbers(released_noises)
    )
    return bool(np.any(shared_noises >= 0))


def _numbers(noises: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, dtype=np.int64), *(array.ravel() for array in noises)])


def _moved_questions(pairs: Pairs, first: Tape, laws: set[str]) -> Iterator[View]:
    """Noise of these laws in questions of which a plain side moved."""
    blocks = [(b.start, b.stop) for b in first.blocks if b.law in laws]
    for recorded, replayed in pairs:
        if recorded.sides is None or replayed.sides is None or not _moved(recorded, replayed):
            continue
        for side in recorded.sides:
            if any(np.any((side.noises >= a) & (side.noises < b)) for a, b in blocks):
                yield side


def _moved(one: Event, other: Event) -> bool:
    sides = zip(one.sides or (), other.sides or (), strict=True)
    return any(not np.array_equal(a.value, b.value, equal_nan=True) for a, b in sides)
