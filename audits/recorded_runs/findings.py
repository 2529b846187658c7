"""Checks that compare a recorded run with its replay on the neighbour.

Each check returns findings: a sentence about what depends on the data without enough noise, and the
line of code where it happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from audits.recorded_runs.comparisons import same_value, where_they_differ
from audits.recorded_runs.costs import call_moved
from audits.recorded_runs.draws.declared_calls import Primitive, sensitivity_of
from audits.recorded_runs.noise_shifts import Laws
from audits.recorded_runs.shared_parts import is_only_compared, is_released, moved_view
from audits.recorded_runs.tape import Event, EventKind, NoiseBlock, Parted, Tape

TOLERANCE = 1e-9  # relative rounding of a sum of the same rows in another order


@final
@dataclass(frozen=True, slots=True)
class RecordedFinding:
    """One finding of a recorded run.

    Parameters
    ----------
    kind : str
        ``"control flow"``, ``"sensitivity"``, ``"input"``, ``"result"``, ``"no noise"``,
        ``"reused noise"``, ``"cost"``, ``"randomness"`` or ``"lost noise"``.
    site : str
        The place in the code, ``file:line``; "" if it is the whole run.
    sentence : str
        What was found; no value of the data is in it.

    Examples
    --------
    >>> from audits import RecordedFinding
    >>> print(RecordedFinding("input", "code.py:12", "`scale` of laplace depends on the data"))
    code.py:12: input: `scale` of laplace depends on the data
    """

    kind: str
    site: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.site + ': ' if self.site else ''}{self.kind}: {self.sentence}"


def control_flow(parted: Parted) -> RecordedFinding:
    """Return the finding that the second run diverged from the first, with the place."""
    return RecordedFinding("control flow", parted.site, parted.reason)


def unequal_inputs(pairs: list[tuple[Event, Event]]) -> Iterator[RecordedFinding]:
    """Yield the inputs of draws and calls that must be equal in both runs and are not."""
    for recorded, replayed in pairs:
        for name in _unequal_names(recorded, replayed):
            sentence = f"{name} of {recorded.name} depends on the data"
            yield RecordedFinding("input", recorded.site, sentence)


def unequal_bounds(first_tape: Tape, second_tape: Tape) -> Iterator[RecordedFinding]:
    """Yield the places where the bounds that values are clipped to differ between the runs."""
    for site, bounds in first_tape.bounds.items():
        others = second_tape.bounds.get(site, [])
        if len(others) == len(bounds) and not same_value_of_all(bounds, others):
            yield RecordedFinding("input", site, "a bound of clip depends on the data")


def same_value_of_all(bounds: list[Any], others: list[Any]) -> bool:
    """Return whether all bounds are the same, pair by pair."""
    return all(
        len(recorded) == len(replayed) and all(map(same_value, recorded, replayed))
        for recorded, replayed in zip(bounds, others, strict=True)
    )


def on_other_data(
    first_tape: Tape, distant_tape: Tape, pairs: list[tuple[Event, Event]]
) -> Iterator[RecordedFinding]:
    """Yield arguments, bounds and factors that must be equal on all data of this size, but differ.

    ``distant_tape`` is that of a run on other data, which need not be neighbours.
    """
    calls = [pair for pair in pairs if pair[0].kind in (EventKind.DRAW, EventKind.CALL)]
    yield from unequal_inputs(calls)
    yield from unequal_bounds(first_tape, distant_tape)
    yield from _unequal_factors(pairs)


def same_inputs(recorded: Event, replayed: Event) -> bool:
    """Return whether all inputs that must be equal are equal."""
    return next(_unequal_names(recorded, replayed), None) is None


def _unequal_names(recorded: Event, replayed: Event) -> Iterator[str]:
    for name in recorded.equal:
        if not same_value(_comparable(recorded.equal[name]), _comparable(replayed.equal.get(name))):
            yield name


def _comparable(value: Any) -> Any:
    """Return a number as a float, so that 1 and 1.0 are the same; other values as they are."""
    is_number = isinstance(value, (int, float, np.generic))
    return (
        np.asarray(value, float) if is_number and not isinstance(value, np.bool_ | bool) else value
    )


def _unequal_factors(pairs: list[tuple[Event, Event]]) -> Iterator[RecordedFinding]:
    """Yield the places where noise is multiplied by numbers that depend on the data."""
    for recorded, replayed in pairs:
        if recorded.view is None or replayed.view is None:
            continue
        moved = moved_view(recorded.view, replayed.view)
        if is_only_compared(recorded, replayed):
            # Code that inverts a distribution may multiply the levels of a coin by a private sum.
            continue
        if not moved.same_noise:
            sentence = "which noise is in which number depends on the data"
            yield RecordedFinding("input", recorded.site, sentence)
        elif not moved.same_factors:
            sentence = (
                f"the number that noise is multiplied by in {recorded.name} depends on the data"
            )
            yield RecordedFinding("input", recorded.site, sentence)


def bare_values(pairs: list[tuple[Event, Event]]) -> Iterator[RecordedFinding]:
    """Yield numbers among noisy ones that moved and have no noise, and noise times private ones."""
    yield from _unequal_factors(pairs)
    for recorded, replayed in pairs:
        if recorded.view is None or replayed.view is None:
            continue
        moved = moved_view(recorded.view, replayed.view)
        bare = ~((moved.noises >= 0) & (moved.factors != 0)).any(axis=1) & (moved.moved != 0)
        if bare.any() and (is_released(recorded, replayed) or recorded.steps == 0):
            sentence = f"{int(bare.sum())} of {bare.size} numbers moved and have no noise"
            yield RecordedFinding("no noise", recorded.site, sentence)


def reused(conflicts: list[tuple[Event, str]]) -> Iterator[RecordedFinding]:
    """Yield the places of noise that is in two numbers which moved differently."""
    for event, reason in conflicts:
        if reason == "reused noise":
            sentence = "the same noise is in two numbers that moved differently: both show the data"
            yield RecordedFinding("reused noise", event.site, sentence)


def too_far(
    pairs: list[tuple[Event, Event]], blocks: list[NoiseBlock], declared: Mapping[str, Primitive]
) -> Iterator[RecordedFinding]:
    """Yield values that moved by more than the declared sensitivity of their call or draw."""
    for recorded, replayed in pairs:
        if recorded.kind is not EventKind.CALL or recorded.sensitivity is None:
            continue
        distance = call_moved(recorded, replayed)
        if distance is not None and not distance <= recorded.sensitivity * (1 + TOLERANCE):
            yield _farther(recorded.name, recorded.site, distance, recorded.sensitivity)
    if not declared:
        return
    laws = Laws(blocks)
    for recorded, replayed in pairs:
        if recorded.view is None or replayed.view is None or not is_released(recorded, replayed):
            continue
        moved = moved_view(recorded.view, replayed.view)
        with np.errstate(all="ignore"):
            gaps = np.abs(moved.moved / moved.factors[:, 0])
        names = {laws.block(int(k)).name for k in moved.noises[:, 0] if k >= 0}
        for name in names & set(declared):
            limit = sensitivity_of(declared[name], {})
            order = {"l1": 1, "l2": 2, "linf": np.inf}[declared[name].norm]
            distance = (
                float(np.linalg.norm(gaps[moved.moved != 0], order)) if moved.moved.any() else 0.0
            )
            if limit is not None and not distance <= limit * (1 + TOLERANCE):
                yield _farther(name, recorded.site, distance, limit)


def _farther(name: str, site: str, moved: float, limit: float) -> RecordedFinding:
    # The sentence has the ratio and not the distance, which would be a value of the data.
    ratio = moved / limit if limit else np.inf
    ratio_text = f"{ratio:.3g} times" if np.isfinite(ratio) else "infinitely farther than"
    sentence = f"the value of {name} moved {ratio_text} its declared sensitivity {limit:.4g}"
    return RecordedFinding("sensitivity", site, sentence)


def unequal_result(one: Any, other: Any, lost: list[NoiseBlock]) -> RecordedFinding | None:
    """Return the first difference of two results for which every drawn number was equal.

    If noise was ``lost`` from sight, the difference may come from that noise.
    """
    difference_path = where_they_differ(one, other)
    if not difference_path:
        return None
    raised = [exception_of(result) or "a result" for result in (one, other)]
    if raised[0] != raised[1]:
        sentence = f"the first run ends with {raised[0]}, the second with {raised[1]}"
        return RecordedFinding("control flow", "", sentence)
    if lost:
        sites = ", ".join(sorted({block.site for block in lost})[:3])
        sentence = (
            f"{difference_path} differs, but noise drawn at {sites} was lost from sight before "
            "it was added: name the function that adds it in `primitives`"
        )
        return RecordedFinding("lost noise", lost[0].site, sentence)
    sentence = f"{difference_path} differs although every drawn number was the same"
    return RecordedFinding("result", "", sentence)


def exception_of(result: Any) -> str:
    """Return the type of the exception that a run ended with; "" if it gave a result."""
    ended = isinstance(result, dict) and set(result) == {"exception", "message"}
    return str(result["exception"]) if ended else ""


def lost_noise(pairs: list[tuple[Event, Event]], blocks: list[NoiseBlock]) -> list[NoiseBlock]:
    """Return the noise that no number shows, or that the code used alone, as a plain number.

    Uniform numbers that the code uses alone are usually thresholds, and are not reported.
    """
    stop = max((block.stop for block in blocks), default=0)
    visible, used_alone = np.zeros((2, stop + 1), dtype=bool)
    for recorded, _ in pairs:
        if recorded.view is None:
            continue
        # A number without noise has the index -1, and marks the last element, which is spare.
        numbers = recorded.view.noises.ravel()
        if recorded.steps or recorded.asked or not recorded.pure:
            visible[numbers] = True
        if recorded.pure and recorded.used:
            used_alone[numbers] = True
    return [
        block
        for block in blocks
        if block.stop > block.start
        and (
            not visible[block.start : block.stop].any()
            or (block.law != "uniform" and used_alone[block.start : block.stop].any())
        )
    ]
