"""Findings and cost of a recorded run and its replay, and which draws are best taken as public.

A random threshold, centre or projection may be public: such a draw is the same in both runs and
hides nothing, so it costs nothing.  An `Explanation` is the verdict under the assumption that some
draws are public.  If it has findings that a further public draw could remove, that draw is a
suspect, and the runs are repeated with it public (docs/proofs/recorded_runs.md, statement 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from audits.recorded_runs.costs import spent_between
from audits.recorded_runs.draws.declared_calls import Primitive
from audits.recorded_runs.findings import (
    RecordedFinding,
    bare_values,
    control_flow,
    exception_of,
    lost_noise,
    on_other_data,
    reused,
    same_inputs,
    too_far,
    unequal_bounds,
    unequal_inputs,
    unequal_result,
)
from audits.recorded_runs.noise_shifts import Laws
from audits.recorded_runs.shared_parts import is_only_compared, moved_view, pairs_of_events
from audits.recorded_runs.tape import DrawSite, Event, EventKind, Parted, Tape
from audits.recorded_runs.verdict import Claim, Recorded, judged
from audits.recorded_runs.views import View

Run = tuple[Tape, Any]  # a tape and the result
Pairs = list[tuple[Event, Event]]
NO_NOISE = {"uniform", "unknown"}  # noise of these laws rarely protects a value


@final
class Explanation(NamedTuple):
    """The verdict under the assumption that some draws are public, and suspects that may be too."""

    verdict: Recorded
    suspects: frozenset[DrawSite]
    counts: bool  # False if a public threshold was taken for a coin, so that the cost is wrong


def explained(
    first_run: Run, second_run: Run, claim: Claim, delta: float | None, draws: dict[str, Primitive]
) -> Explanation:
    """Findings and cost of a run and its replay on the neighbour."""
    (first_tape, result), (second_tape, _) = first_run, second_run
    pairs = list(pairs_of_events(first_tape, second_tape))
    spent, conflicts = spent_between(pairs, Laws(first_tape.blocks))
    findings = [
        *unequal_inputs(pairs),
        *unequal_bounds(first_tape, second_tape),
        *bare_values(pairs),
        *reused(conflicts),
        *too_far(pairs, first_tape.blocks, draws),
        *_partings(pairs, first_run, second_run),
    ]
    verdict = judged(findings, spent, pairs, claim, delta, result, first_tape, draws)
    counts = not (spent.no_coins or is_threshold(pairs, first_tape))
    suspects: frozenset[DrawSite] = frozenset()
    if verdict.findings or verdict.unchecked or not counts:
        suspects = _suspects(
            pairs, first_tape, second_tape, conflicts if verdict.findings else None
        )
    return Explanation(verdict, suspects, counts)


def explained_elsewhere(explanation: Explanation, first_run: Run, distant_run: Run) -> Explanation:
    """The explanation, with the findings of a run on other data of the same size."""
    pairs = list(pairs_of_events(first_run[0], distant_run[0]))
    findings = list(on_other_data(first_run[0], distant_run[0], pairs))
    if not any(exception_of(result) for _, result in (first_run, distant_run)):
        findings += _partings(pairs, first_run, distant_run)
    if not findings:
        return explanation
    extended = (
        replace(finding, sentence=f"{finding.sentence} (on other data)") for finding in findings
    )
    verdict = replace(explanation.verdict, findings=tuple(dict.fromkeys(extended)))
    return explanation._replace(
        verdict=verdict, suspects=_suspects(pairs, first_run[0], distant_run[0], [])
    )


def _partings(
    pairs: list[tuple[Event, Event]], first_run: Run, second_run: Run
) -> list[RecordedFinding]:
    """Where the second run diverged from the first, or else where the results differ."""
    (first_tape, result), (second_tape, second_result) = first_run, second_run
    if second_tape.parted is None and len(second_tape.events) < len(first_tape.events):
        missing_event = first_tape.events[len(second_tape.events)]
        sentence = (
            f"the second run ends before it {missing_event.kind.value} {missing_event.name} here"
        )
        second_tape.parted = Parted(missing_event.site, sentence)
    if second_tape.parted is not None:
        return [control_flow(second_tape.parted)]
    different = unequal_result(result, second_result, lost_noise(pairs, first_tape.blocks))
    return [] if different is None else [different]


def _suspects(
    pairs: list[tuple[Event, Event]],
    first_tape: Tape,
    second_tape: Tape,
    conflicts: list[tuple[Event, str]] | None,
) -> frozenset[DrawSite]:
    """Places of draws that may be public: those of the first finding, else those of unknown law.

    ``conflicts`` is None if there is no finding.
    """
    blamed: frozenset[DrawSite] = frozenset()
    if conflicts is not None:
        blamed = blamed_draws(pairs, first_tape, second_tape, conflicts) - first_tape.public
    return blamed or draws_without_law(pairs, first_tape) - first_tape.public


def best(tried: list[Explanation]) -> Recorded:
    """The verdict to report, of those under several assumptions about public draws.

    It is one without findings, if there is one, of known cost if possible.  Else it is the one with
    the fewest findings, among the first and those with no other kinds of findings than the first.
    """
    counted = [explanation.verdict for explanation in tried if explanation.counts] or [
        tried[-1].verdict
    ]
    without_findings = [verdict for verdict in counted if not verdict.findings]
    if without_findings:
        return min(
            without_findings, key=lambda verdict: (verdict.cost is None, len(verdict.unchecked))
        )
    # Noise that was wrongly taken for public makes the results differ, or leaves values without
    # noise: a verdict with such findings is no better.
    kinds = {finding.kind for finding in counted[0].findings} - {"result", "no noise"}
    alike = [v for v in counted if {finding.kind for finding in v.findings} <= kinds]
    return min([counted[0], *alike], key=lambda verdict: len(verdict.findings))


def blamed_draws(
    pairs: Pairs, first_tape: Tape, second_tape: Tape, conflicts: list[tuple[Event, str]]
) -> frozenset[DrawSite]:
    """Places of the draws in the first event that differs, or at which the runs part.

    Later findings may be consequences of the first one; the next runs show whether they are.
    """
    conflicting = {id(event) for event, _ in conflicts}
    for recorded, replayed in pairs:
        if recorded.view is None or replayed.view is None:
            continue
        moved = moved_view(recorded.view, replayed.view)
        has_same_factors = moved.same_factors or is_only_compared(recorded, replayed)
        is_equal = same_inputs(recorded, replayed) and moved.same_noise and has_same_factors
        if not is_equal or id(recorded) in conflicting:
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
    """Whether a uniform number was compared with a private one and is also released: no coin."""
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
    """The sides that have noise of these laws, of comparisons in which a side's value moved."""
    blocks = [(b.start, b.stop) for b in first_tape.blocks if b.law in laws]
    for recorded, replayed in pairs:
        if recorded.sides is None or replayed.sides is None:
            continue
        sides = zip(recorded.sides, replayed.sides, strict=True)
        if all(np.array_equal(a.value, b.value, equal_nan=True) for a, b in sides):
            continue
        for side in recorded.sides:
            if any(np.any((side.noises >= a) & (side.noises < b)) for a, b in blocks):
                yield side
