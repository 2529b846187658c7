"""Notes on a release that was audited: whether a seed repeats it, and whether it changes its value.

A few more calls of the release, after those of the audit, show this; they have generators of their
own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from audits.runs.release_functions import Vectorised
from audits.values.copies import copies, is_shared
from audits.values.digests import digest, surely_differ

# runs of the audit per additional call of a value, and the largest number of calls
RUNS_PER_CALL, MAX_CALLS = 200, 16
NO_GENERATOR, OTHER_RANDOMNESS, CHANGED_VALUE, SHARED_VALUE = range(4)
SENTENCES = (
    "The release takes no rng and draws by itself: a seed does not repeat it.",
    "Two draws under one seed differed, for the release does not draw from its rng alone: a seed "
    "does not repeat it.",
    "The release changes the value that it receives; every call had a copy of its own.",
    "A value of the pair cannot be copied: if the release changes it, the next call sees that.",
)


def release_notes(release: Any, pair: Sequence[Any], runs: int) -> tuple[str, ...]:
    """Sentences on a release that was audited in ``runs`` runs; none if nothing is unusual."""
    return tuple(SENTENCES[number] for number in observations(release, pair, runs))


def observations(release: Any, pair: Sequence[Any], runs: int) -> list[int]:
    """The numbers of the sentences that are true of a release."""
    if not isinstance(release, Vectorised):  # declared mechanisms change nothing
        return []
    size = min(max(runs // RUNS_PER_CALL, 1), MAX_CALLS)
    try:
        changed = [_draw_and_compare(release, value, size) for value in (*pair, pair[0])]
    except Exception:  # the release raised here, though not in the runs of the audit
        return []
    numbers = []
    if not release.form.generator:
        numbers.append(NO_GENERATOR)
    elif surely_differ(list(changed[0][1]), list(changed[-1][1])):
        numbers.append(OTHER_RANDOMNESS)
    if any(value_changed for value_changed, _ in changed):
        numbers.append(CHANGED_VALUE)
    if any(map(is_shared, pair)):
        numbers.append(SHARED_VALUE)
    return numbers


def _draw_and_compare(release: Vectorised, value: Any, size: int) -> tuple[bool, Any]:
    """Whether some call changed its value, and the outputs under a fixed seed."""
    digest_before, changed = digest(value), [False]
    last_copy = None

    def checked_copies() -> Iterator[Any]:
        nonlocal last_copy
        for last_copy in copies(value):  # one at a time: values may be large
            yield last_copy
            changed.append(_has_changed(last_copy, value, digest_before))

    outputs = release.draw(checked_copies(), np.random.default_rng(0), size)
    return any(changed) or _has_changed(last_copy, value, digest_before), outputs


def _has_changed(copied: Any, value: Any, digest_before: str | None) -> bool:
    """Whether a copy is no longer as the value was, as far as both can be read."""
    digest_now = None if copied is value else digest(copied)
    return None not in (digest_now, digest_before) and digest_now != digest_before
