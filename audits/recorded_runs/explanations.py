"""Findings and cost of a recorded run and its replay, and which draws are best taken as public.

A random threshold, centre or projection may be public: such a draw is the same in both runs and
hides nothing, so it costs nothing.  An `Explanation` is the verdict under the assumption that some
draws are public.  If it has findings that a further public draw could remove, that draw is a
suspect, and the runs are repeated with it public (docs/proofs/recorded_runs.md, statement 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, final

import numpy as np

from audits.recorded_runs.costs import spent_between
from audits.recorded_runs.event_pairs import EventPair, pairs_of_events
from audits.recorded_runs.events import Draw, Question
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
    unequal_factors,
    unequal_inputs,
    unequal_result,
)
from audits.recorded_runs.noise_shifts import Conflict, Laws
from audits.recorded_runs.records import other_data
from audits.recorded_runs.runs import Run, Runs
from audits.recorded_runs.tape import DrawSite, Parted, Tape
from audits.recorded_runs.verdict import Recorded, Stated, judged
from audits.recorded_runs.views import View

NO_NOISE = {"uniform", "unknown"}  # noise of these laws rarely protects a value


@final
class Explanation(NamedTuple):
    """The verdict under the assumption that some draws are public, and suspects that may be too."""

    verdict: Recorded
    suspects: frozenset[DrawSite]
    counts: bool  # False if a public threshold was taken for a coin, so that the cost is wrong


def explanation_of(runs: Runs, first_run: Run, stated: Stated) -> Explanation:
    """What the replay of a first run on the neighbour shows.

    If it shows no fault, the first run is also replayed on other data, of which the extremes differ
    (`other_data`).
    """
    second_run = runs.run(first_run.tape, of_neighbour=True)
    explanation = explained(first_run, second_run, stated)
    if explanation.verdict.findings or not explanation.counts:
        return explanation
    distant_data = other_data(runs.data, runs.neighbour)
    if distant_data is None:
        return explanation
    distant_run = runs._replace(data=distant_data, neighbour=distant_data).run(first_run.tape)
    return explained_elsewhere(explanation, first_run, distant_run)


def explained(first_run: Run, second_run: Run, stated: Stated) -> Explanation:
    """Findings and cost of a run and its replay on the neighbour."""
    first_tape, second_tape = first_run.tape, second_run.tape
    pairs = pairs_of_events(first_tape, second_tape)
    spent, conflicts = spent_between(pairs, Laws(first_tape.blocks))
    findings = [
        *unequal_inputs(pairs),
        *unequal_bounds(first_tape, second_tape),
        *unequal_factors(pairs),
        *bare_values(pairs),
        *reused(conflicts),
        *too_far(pairs, first_tape.blocks, stated.draws),
        *_partings(pairs, first_run, second_run),
    ]
    verdict = judged(findings, spent, pairs, first_run, stated)
    counts = not (spent.no_coins or is_threshold(pairs, first_tape))
    suspects: frozenset[DrawSite] = frozenset()
    if verdict.findings or verdict.unchecked or not counts:
        suspects = _suspects(
            pairs, first_tape, second_tape, conflicts if verdict.findings else None
        )
    return Explanation(verdict, suspects, counts)


def explained_elsewhere(explanation: Explanation, first_run: Run, distant_run: Run) -> Explanation:
    """The explanation, with the findings of a run on other data of the same size."""
    pairs = pairs_of_events(first_run.tape, distant_run.tape)
    findings = list(on_other_data(first_run.tape, distant_run.tape, pairs))
    if not any(exception_of(run.result) for run in (first_run, distant_run)):
        findings += _partings(pairs, first_run, distant_run)
    if not findings:
        return explanation
    extended = (
        replace(finding, sentence=f"{finding.sentence} (on other data)") for finding in findings
    )
    verdict = replace(explanation.verdict, findings=tuple(dict.fromkeys(extended)))
    return explanation._replace(
        verdict=verdict, suspects=_suspects(pairs, first_run.tape, distant_run.tape, [])
    )


def _partings(pairs: list[EventPair], first_run: Run, second_run: Run) -> list[RecordedFinding]:
    """Where the second run diverged from the first, or else where the results differ."""
    first_tape, second_tape = first_run.tape, second_run.tape
    if second_tape.parted is None and len(second_tape.events) < len(first_tape.events):
        missing_event = first_tape.events[len(second_tape.events)]
        sentence = f"the second run ends before it {missing_event.verb} {missing_event.name} here"
        second_tape.parted = Parted(missing_event.site, sentence)
    if second_tape.parted is not None:
        return [control_flow(second_tape.parted)]
    lost = lost_noise(pairs, first_tape.blocks)
    different = unequal_result(first_run.result, second_run.result, lost)
    return [] if different is None else [different]


def _suspects(
    pairs: list[EventPair], first_tape: Tape, second_tape: Tape, conflicts: list[Conflict] | None
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
    pairs: list[EventPair], first_tape: Tape, second_tape: Tape, conflicts: list[Conflict]
) -> frozenset[DrawSite]:
    """Places of the draws in the first event that differs, or at which the runs part.

    Later findings may be consequences of the first one; the next runs show whether they are.
    """
    conflicting = {id(conflict.event) for conflict in conflicts}
    for pair in pairs:
        moved = pair.moved
        if moved is None:
            continue
        has_same_factors = moved.same_factors or pair.is_only_compared
        is_equal = same_inputs(pair) and moved.same_noise and has_same_factors
        if not is_equal or id(pair.recorded) in conflicting:
            return first_tape.origins_of(moved.view)
    views: list[View] = []
    if second_tape.parted is not None:
        if len(second_tape.events) < len(first_tape.events):
            missing_event = first_tape.events[len(second_tape.events)]
            if isinstance(missing_event, Question):
                views += missing_event.sides or ()
            elif missing_event.noisy is not None and not isinstance(missing_event, Draw):
                views.append(missing_event.noisy.view)  # a new draw is not the cause
        views += second_tape.asked_views
    return frozenset().union(*map(first_tape.origins_of, views))


def draws_without_law(pairs: list[EventPair], first_tape: Tape) -> frozenset[DrawSite]:
    """Places of uniform draws that were compared with private numbers, and of unknown noise."""
    sites: set[DrawSite] = set()
    for block in first_tape.blocks:
        if block.law == "unknown":
            sites |= block.origins
    for view in _moved_questions(pairs, first_tape, NO_NOISE):
        sites |= first_tape.origins_of(view)
    return frozenset(sites)


def is_threshold(pairs: list[EventPair], first_tape: Tape) -> bool:
    """Whether a uniform number was compared with a private one and is also released: no coin."""
    compared = {
        noise
        for view in _moved_questions(pairs, first_tape, {"uniform"})
        for noise in view.noises.ravel().tolist()
        if noise >= 0
    }
    known = [pair.recorded.noisy for pair in pairs]
    released = [noisy.view.noises for noisy in known if noisy is not None and noisy.used]
    return any(not compared.isdisjoint(noises.ravel().tolist()) for noises in released)


def _moved_questions(pairs: list[EventPair], first_tape: Tape, laws: set[str]) -> Iterator[View]:
    """The sides that have noise of these laws, of comparisons in which a side's value moved."""
    for pair in pairs:
        if all(np.array_equal(a.value, b.value, equal_nan=True) for a, b in pair.sides):
            continue
        for side, _ in pair.sides:
            if first_tape.laws_of(side) & laws:
                yield side
