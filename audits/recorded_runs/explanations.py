"""Findings of a pair of runs, and the explanation that leaves none: which draws are public."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, final

from audits.recorded_runs.costs import spent_between
from audits.recorded_runs.draws.declared_calls import Primitive
from audits.recorded_runs.events import DrawSite, Event
from audits.recorded_runs.findings import (
    RecordedFinding,
    bare_values,
    control_flow,
    exception_of,
    lost_noise,
    on_other_data,
    reused,
    too_far,
    unequal_bounds,
    unequal_inputs,
    unequal_result,
)
from audits.recorded_runs.noise_shifts import Laws
from audits.recorded_runs.public_draws import blamed_draws, draws_without_law, is_threshold
from audits.recorded_runs.shared_parts import pairs_of_events
from audits.recorded_runs.tape import Parted, Tape
from audits.recorded_runs.verdict import Claim, Recorded, judged

Run = tuple[Tape, Any]  # a tape and the result


@final
class Explanation(NamedTuple):
    """The verdict if some draws are public, and which others may be."""

    verdict: Recorded
    suspects: frozenset[DrawSite]
    counts: bool  # False if a public threshold was taken for a coin


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
    if not _raised(first_run) and not _raised(distant_run):
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


def _raised(run: Run) -> bool:
    return bool(exception_of(run[1]))


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
    """Draws of the first finding, else those of which the law is not known."""
    blamed: frozenset[DrawSite] = frozenset()
    if conflicts is not None:
        blamed = blamed_draws(pairs, first_tape, second_tape, conflicts) - first_tape.public
    return blamed or draws_without_law(pairs, first_tape) - first_tape.public


def best(tried: list[Explanation]) -> Recorded:
    """The verdict that explains the runs; the first one if none does."""
    counted = [explanation.verdict for explanation in tried if explanation.counts] or [
        tried[-1].verdict
    ]
    unsuspected = [verdict for verdict in counted if not verdict.findings]
    if unsuspected:
        return min(unsuspected, key=lambda verdict: (verdict.cost is None, len(verdict.unchecked)))
    # noise that was wrongly taken for public changes the result: such a verdict is no better
    kinds = {finding.kind for finding in counted[0].findings} - {"result", "no noise"}
    alike = [v for v in counted if {finding.kind for finding in v.findings} <= kinds]
    return min([counted[0], *alike], key=lambda verdict: len(verdict.findings))
