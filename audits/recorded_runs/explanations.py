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
    counts: bool  # no threshold was taken for a coin


def explained(
    one: Run, other: Run, claim: Claim, delta: float | None, draws: dict[str, Primitive]
) -> Explanation:
    """Findings and cost of a run and its replay on the neighbour."""
    (first, result), (second, _) = one, other
    pairs = list(pairs_of_events(first, second))
    spent, conflicts = spent_between(pairs, Laws(first.blocks))
    findings = [
        *unequal_inputs(pairs), *unequal_bounds(first, second), *bare_values(pairs),
        *reused(conflicts), *too_far(pairs, first.blocks, draws), *_partings(pairs, one, other),
    ]  # fmt: skip
    verdict = judged(findings, spent, pairs, claim, delta, result, first, draws)
    counts = not (spent.no_coins or is_threshold(pairs, first))
    suspects: frozenset[DrawSite] = frozenset()
    if verdict.findings or verdict.unchecked or not counts:
        suspects = _suspects(pairs, first, second, conflicts if verdict.findings else None)
    return Explanation(verdict, suspects, counts)


def explained_elsewhere(found: Explanation, one: Run, far: Run) -> Explanation:
    """The explanation with what other data of the same size say against it."""
    pairs = list(pairs_of_events(one[0], far[0]))
    findings = list(on_other_data(one[0], far[0], pairs))
    if not _raised(one) and not _raised(far):
        findings += _partings(pairs, one, far)
    if not findings:
        return found
    said = (replace(each, sentence=f"{each.sentence} (on other data)") for each in findings)
    verdict = replace(found.verdict, findings=tuple(dict.fromkeys(said)))
    return found._replace(verdict=verdict, suspects=_suspects(pairs, one[0], far[0], []))


def _raised(run: Run) -> bool:
    return bool(exception_of(run[1]))


def _partings(pairs: list[tuple[Event, Event]], one: Run, other: Run) -> list[RecordedFinding]:
    """Where the second run left the first, or else where the results differ."""
    (first, result), (second, others) = one, other
    if second.parted is None and len(second.events) < len(first.events):
        left = first.events[len(second.events)]
        words = f"the second run ends before it {left.kind.value} {left.name} here"
        second.parted = Parted(left.site, words)
    if second.parted is not None:
        return [control_flow(second.parted)]
    different = unequal_result(result, others, lost_noise(pairs, first.blocks))
    return [] if different is None else [different]


def _suspects(
    pairs: list[tuple[Event, Event]],
    first: Tape,
    second: Tape,
    conflicts: list[tuple[Event, str]] | None,
) -> frozenset[DrawSite]:
    """Draws of the first finding, else those of which the law is not known."""
    blamed: frozenset[DrawSite] = frozenset()
    if conflicts is not None:
        blamed = blamed_draws(pairs, first, second, conflicts) - first.public
    return blamed or draws_without_law(pairs, first) - first.public


def best(tried: list[Explanation]) -> Recorded:
    """The verdict that explains the runs; the first one if none does."""
    counted = [one.verdict for one in tried if one.counts] or [tried[-1].verdict]
    unsuspected = [verdict for verdict in counted if not verdict.findings]
    if unsuspected:
        return min(unsuspected, key=lambda found: (found.cost is None, len(found.unchecked)))
    # noise that was taken for public shows as another result: no such verdict is better
    kinds = {finding.kind for finding in counted[0].findings} - {"result", "no noise"}
    alike = [v for v in counted if {finding.kind for finding in v.findings} <= kinds]
    return min([counted[0], *alike], key=lambda verdict: len(verdict.findings))
