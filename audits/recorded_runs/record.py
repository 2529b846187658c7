"""The entry `record`: run a function on data, and replay it on a neighbour with frozen draws.

The first run writes every drawn number and every noisy number as an event onto a tape; the second
run, on data that differ in one record, gets the same ones.  What differs between the runs although
it may not is a finding.  A value that differs and has noise is hidden by it at a privacy loss, and
the losses add up to the cost of the run.

A random threshold, centre or projection may be public: such a draw is the same in both runs and
hides nothing, so it costs nothing.  An `Explanation` is the verdict under the assumption that some
draws are public.  If it has findings that a further public draw could remove, that draw is a
suspect, and the runs are repeated with it public (docs/proofs/recorded_runs.md, statement 4).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, final

import numpy as np

from accountant.losses.loss import Loss
from audits.claims.findings import Outcome
from audits.recorded_runs.comparisons import paths_of_differences, without_parts
from audits.recorded_runs.costs import spent_between
from audits.recorded_runs.draws.declared_calls import Primitive, primitive_of
from audits.recorded_runs.draws.draw_tables import NOISE
from audits.recorded_runs.event_pairs import EventPair, pairs_of_events
from audits.recorded_runs.events import Call, Draw, Question
from audits.recorded_runs.findings import (
    NOT_FOLLOWED,
    RANDOMNESS,
    RecordedFinding,
    bare_values,
    blamed_draws,
    draws_without_law,
    exception_of,
    is_threshold,
    may_be_smooth,
    not_followed,
    on_other_data,
    reused,
    too_far,
    unequal_bounds,
    unequal_factors,
    unequal_inputs,
    unequal_result,
)
from audits.recorded_runs.held_state import HeldState
from audits.recorded_runs.hidden_draws import Evidence, evidence_of, explained_by_hidden_draws
from audits.recorded_runs.noise_shifts import Conflict, Laws
from audits.recorded_runs.patches import patched
from audits.recorded_runs.records import (
    exchanged_extreme,
    larger_first,
    number_of_records,
    other_data,
)
from audits.recorded_runs.redrawn_coins import answered_by_coins
from audits.recorded_runs.runs import Run, Runs
from audits.recorded_runs.tape import DrawSite, Parted, Tape
from audits.recorded_runs.verdict import Claim, Recorded, Stated, judged, without_replay
from audits.recorded_runs.watched_lines import WatchedLines, bare_branches, mixed_records
from audits.values.tracebacks import without_values

# Largest number of first runs, each with its replays.  Draws that the verdict on one suspects to be
# public are taken as public in the next; after the last one the best verdict so far is reported.
MOST_TRIES = 10
REMEDY_OF_RANDOMNESS = (
    "cannot judge it; a generator is not recorded, or the code depends on time, on earlier calls, "
    "or on the order of a set"
)


@without_values
def record(
    function: Callable[..., Any],
    data: Any,
    neighbour: Any,
    primitives: Mapping[Any, Any] | Iterable[Any] = (),
    claim: Claim = None,
    delta: float | None = None,
    seed: int = 0,
) -> Recorded:
    """Run any function on data, then on a neighbour with every drawn number as it was.

    While it runs, the generators of numpy, `random` and `secrets`, the mechanisms of diffprivlib
    and OpenDP, and ``primitives`` record what they draw.  Noise is followed through arithmetic to
    the value it is added to, and the noisy number is handed to the second run as it was.

    Parameters
    ----------
    function : callable
        Takes the data, and by name a generator if it has an argument ``rng``, ``generator`` or
        ``random_state``.
    data : object
        The private data.
    neighbour : object
        Data that differ in one record, or have one more or one less.
    primitives : mapping or iterable, optional
        Functions that add noise, as callables or ``"package.module:function"``, or names of draws
        (``"laplace"``); in a mapping with a `Primitive`, a loss, or a sensitivity.
    claim : Loss, float, pair of floats, or function of the result, optional
        What the function claims: a loss, epsilon, (epsilon, delta), or how to read it from the
        result.
    delta : float, optional
        The delta of the comparison; by default the claim's own, else 0 if the claim is pure, or if
        nothing is claimed and the cost is finite there, else 1e-5.  A claim that is a whole curve
        is compared at more points, and the first one at which it is exceeded counts.
    seed : int
        Seed of every generator that the function does not seed itself.

    Returns
    -------
    Recorded
        Findings, and upper bounds of epsilon for what this pair moved.

    Raises
    ------
    ParameterError
        If ``primitives`` or the claim cannot be understood.
    RuntimeError
        If a recorded run is under way in this process.

    References
    ----------
    Cebere, Erb, Desfontaines, Bellet & Fitzsimons (2026), Privacy in theory, bugs in practice.

    Examples
    --------
    >>> import numpy as np
    >>> from audits import record
    >>> def noisy_mean(data):
    ...     return (np.clip(data, 0, 1).sum() + np.random.laplace(scale=1.0)) / len(data)
    >>> verdict = record(noisy_mean, np.ones(5), np.ones(4), claim=1.0)
    >>> verdict.sound, verdict.findings[0].kind
    (False, 'input')
    """
    named, draws = _declarations(primitives)
    stated = Stated(claim, delta, draws)
    data, neighbour = larger_first(data, neighbour)
    recorded = None
    for is_last in (False, False, True):
        loaded = None if is_last else frozenset(sys.modules)
        with patched(named, function, seed) as go_back:
            state = HeldState(function)
            runs = Runs(function, data, neighbour, seed, frozenset(), state=state)
            recorded = verdict_of_runs(runs, stated, go_back, loaded)
            state.restore()
        if recorded is not None:
            break
    if recorded is None:
        raise RuntimeError("no pass had a verdict, though the last one always has one")
    return recorded


def verdict_of_runs(
    runs: Runs, stated: Stated, go_back: Callable[[], None], loaded: frozenset[str] | None
) -> Recorded | None:
    """The verdict; None if the first run imports modules beyond those ``loaded`` before.

    Draws of a module can only be recorded if it was there when generators were replaced.
    """
    tried: list[Explanation] = []
    changes: list[str] = []
    public: frozenset[DrawSite] = frozenset()
    while len(tried) < MOST_TRIES:
        go_back()
        runs = runs._replace(public=public)
        first_run = runs.run()
        if not tried:
            if loaded is not None and not loaded.issuperset(sys.modules):
                return None
            changes = runs.state.changes() if runs.state is not None else []
            unsteady = unsteady_parts(first_run, runs.run(first_run.tape))
            if isinstance(unsteady, RecordedFinding):
                return without_replay(unsteady, stated.delta, first_run.tape)
            runs = runs._replace(unsteady=unsteady)
            first_run = first_run._replace(result=without_parts(first_run.result, unsteady))
        explanation = explanation_of(runs, first_run, stated)
        tried.append(explanation)
        if not explanation.suspects:
            break
        public |= explanation.suspects
    reported = best(tried)
    go_back()
    # A finding is tested with no public draws, a verdict without one with those it assumes.
    public = frozenset() if reported.verdict.findings else reported.public
    verdict, evidence = answered_by_coins(
        reported.verdict, reported.evidence, runs._replace(public=public)
    )
    verdict = explained_by_hidden_draws(verdict, evidence)
    if verdict.outcome is not Outcome.FALSIFIED and reported.evidence is not None:
        first_tape = reported.evidence.runs[0].tape
        verdict = with_watched_lines(verdict, runs._replace(public=reported.public), first_tape)
    return withunsteady_parts(verdict, runs.unsteady, changes)


def _declarations(primitives: Any) -> tuple[dict[Any, Primitive], dict[str, Primitive]]:
    """Return functions and draws by name, with what is declared of them."""
    pairs = (
        primitives.items() if isinstance(primitives, Mapping) else [(p, None) for p in primitives]
    )
    functions, draws = {}, {}
    for key, declared in pairs:
        short = str(key).removeprefix("numpy.random.") if isinstance(key, str) else ""
        if short in NOISE:
            draws[short] = primitive_of(declared)
        else:
            functions[key] = primitive_of(declared)
    return functions, draws


def with_watched_lines(verdict: Recorded, runs: Runs, first_tape: Tape) -> Recorded:
    """Return the verdict, with branches without noise, and statistics of all records.

    More runs show them.  Besides the neighbour, they are on data in which the record with the
    largest or the smallest number is another one.
    """
    others = [runs.neighbour, *(exchanged_extreme(runs.data, k) for k in (True, False))]
    watched = []
    for data in (runs.data, *(data for data in others if data is not None)):
        lines = WatchedLines(number_of_records(data))
        watched_runs = runs._replace(neighbour=runs.neighbour if data is runs.data else data)
        watched_runs.run(first_tape, data is not runs.data, watched=lines)
        watched.append(lines)
    return replace(
        verdict,
        findings=(*verdict.findings, *mixed_records(watched[0], watched[1:])),
        unchecked=(*verdict.unchecked, *bare_branches(watched[0], watched[1:])),
    )


def unsteady_parts(first_run: Run, repeated_run: Run) -> RecordedFinding | frozenset[str]:
    """Return the paths to parts of the result that differ though data and draws are the same.

    If the runs part, this is a finding.
    """
    parted = repeated_run.tape.parted
    if parted is not None:
        sentence = f"even on the same data {parted.reason}: {REMEDY_OF_RANDOMNESS}"
        return RecordedFinding(RANDOMNESS, parted.site, sentence)
    return frozenset(paths_of_differences(first_run.result, repeated_run.result))


def withunsteady_parts(verdict: Recorded, paths: frozenset[str], changes: list[str]) -> Recorded:
    """Return the verdict, which cannot judge parts that differ between runs on the same data.

    ``changes`` are what the function kept from its call.
    """
    if changes:
        note = (
            f"what later calls show, as the function keeps {', '.join(changes[:3])}; "
            "each run began as the first one did"
        )
        verdict = replace(verdict, unchecked=(*verdict.unchecked, note))
    if not paths:
        return verdict
    shown_paths = ", ".join(sorted(paths)[:3])
    sentence = f"even on the same data {shown_paths} differs: {REMEDY_OF_RANDOMNESS}"
    finding = RecordedFinding(RANDOMNESS, "", sentence)
    return replace(verdict, findings=(*verdict.findings, finding), cost=None)


@final
class Explanation(NamedTuple):
    """The verdict under the assumption that some draws are public."""

    verdict: Recorded
    public: frozenset[DrawSite]  # call sites of the draws that are assumed to be public
    suspects: frozenset[DrawSite]  # call sites of further draws that may be public
    # False if a threshold that may be public was taken for a coin: then the cost may be wrong.
    has_right_cost: bool
    evidence: Evidence | None = None  # what the findings rest on


def explanation_of(runs: Runs, first_run: Run, stated: Stated) -> Explanation:
    """What the replay of a first run on the neighbour shows.

    If it shows no fault, the first run is also replayed on other data, whose extremes differ from
    those of the data (`other_data`).
    """
    second_run = runs.run(first_run.tape, of_neighbour=True)
    explanation = explained_by_neighbour(runs, first_run, second_run, stated)
    if explanation.verdict.findings or not explanation.has_right_cost:
        return explanation
    distant_data = other_data(runs.data, runs.neighbour)
    if distant_data is None:
        return explanation
    distant_runs = runs._replace(neighbour=distant_data)
    distant_run = distant_runs.run(first_run.tape, of_neighbour=True)
    return with_other_data(explanation, distant_runs, first_run, distant_run, stated)


def explained_by_neighbour(
    runs: Runs, first_run: Run, second_run: Run, stated: Stated
) -> Explanation:
    """Findings and cost of a run and its replay on the neighbour.

    ``conflicts`` are events that released numbers whose noise would have to move in two ways.
    """
    first_tape, second_tape = first_run.tape, second_run.tape
    claim = stated.loss(first_run.result)
    pairs, partings = _followed_pairs(first_run, second_run, claim)
    laws = Laws(first_tape.blocks)
    spent, conflicts = spent_between(pairs, laws)
    used_spent, _ = spent_between([replace(pair, counts_unread=False) for pair in pairs], laws)
    spent.unknown += [
        f"the loss of whole numbers beyond 2**53 at {site}: floats do not show how far they move"
        for site in dict.fromkeys(first_tape.beyond_floats)
    ]
    events = {
        finding: index
        for index, finding in [
            *_not_surely_private(unequal_inputs(pairs), pairs, first_tape, claim),
            *unequal_bounds(first_tape, second_tape),
            *_not_surely_private(unequal_factors(pairs), pairs, first_tape, claim),
            *bare_values(pairs),
            *reused(conflicts, pairs),
            *too_far(pairs, first_tape.blocks, stated.draws),
            *partings,
        ]
    }
    verdict = judged(list(events), spent, used_spent, pairs, first_run, stated)
    has_right_cost = not (spent.levels_reordered or is_threshold(pairs, first_tape))
    suspects: frozenset[DrawSite] = frozenset()
    if verdict.findings or verdict.unchecked or not has_right_cost:
        suspects = _suspects(
            pairs, first_tape, second_tape, conflicts if verdict.findings else None
        )
    evidence = evidence_of(runs, (first_run, second_run), events)
    return Explanation(verdict, first_tape.public, suspects, has_right_cost, evidence)


def _not_surely_private(
    indexed: Iterable[tuple[int, RecordedFinding]],
    pairs: list[EventPair],
    tape: Tape,
    claim: Loss | None,
    are_neighbours: bool = True,
) -> Iterator[tuple[int, RecordedFinding]]:
    """Findings on inputs, of which some say only that nothing can be judged.

    A number of draws may be that of keys that a delta hides, and a scale one of smooth sensitivity.
    """
    for index, finding in indexed:
        is_size = finding.sentence.startswith("size of ")
        if has_delta(claim) and is_size and _are_compared(tape, {finding.site}):
            yield index, not_followed(finding.site, finding.sentence)
        elif index < len(pairs) and may_be_smooth(pairs[index], tape, claim, are_neighbours):
            sentence = f"{finding.sentence}, and what this costs is not known"
            yield index, RecordedFinding(NOT_FOLLOWED, finding.site, sentence)
        else:
            yield index, finding


def with_other_data(
    explanation: Explanation,
    distant_runs: Runs,
    first_run: Run,
    distant_run: Run,
    stated: Stated,
) -> Explanation:
    """The explanation, with the findings of a run on other data of the same size.

    What cannot be followed there is named as unchecked, as this pair could be followed.
    """
    claim = stated.loss(first_run.result)
    pairs, partings = _followed_pairs(first_run, distant_run, claim)
    on_other = on_other_data(first_run.tape, distant_run.tape, pairs)
    indexed = list(
        _not_surely_private(on_other, pairs, first_run.tape, claim, are_neighbours=False)
    )
    if not any(exception_of(run.result) for run in (first_run, distant_run)):
        indexed += partings
    verdict = explanation.verdict
    events = {}
    for index, finding in indexed:
        there = replace(finding, sentence=f"{finding.sentence} (on other data)")
        if (index, finding) in partings and finding.kind == NOT_FOLLOWED:
            verdict = replace(verdict, unchecked=(*verdict.unchecked, str(there)))
        else:
            events[there] = index
    if not events:
        return explanation._replace(verdict=verdict)
    verdict = replace(verdict, findings=tuple(events))
    suspects = _suspects(pairs, first_run.tape, distant_run.tape, [])
    evidence = evidence_of(distant_runs, (first_run, distant_run), events)
    return explanation._replace(verdict=verdict, suspects=suspects, evidence=evidence)


def _followed_pairs(
    first_run: Run, second_run: Run, claim: Loss | None
) -> tuple[list[EventPair], list[tuple[int, RecordedFinding]]]:
    """The pairs of events of two runs, and where the runs part, or else their results differ.

    Noise that is drawn in a loop over the records, or over keys of the data that a delta may hide,
    is drawn once less where one is missing.  Nothing of such a loop can be followed: its events in
    the two runs are of different records or keys.
    """
    first_tape, second_tape = first_run.tape, second_run.tape
    pairs = pairs_of_events(first_tape, second_tape)
    end = len(second_tape.events)
    missing_event = first_tape.events[end] if end < len(first_tape.events) else None
    if second_tape.parted is None and missing_event is not None:
        sentence = f"the second run ends before it {missing_event.verb} {missing_event.name} here"
        is_sure = isinstance(missing_event, Draw | Call)
        second_tape.parted = Parted(missing_event.site, sentence, is_sure, is_end=True)
    parted = second_tape.parted
    if parted is None:
        different = unequal_result(first_run.result, second_run.result)
        return pairs, [] if different is None else [(end, different)]
    sites = {parted.site, missing_event.site if missing_event is not None else ""}
    repeats = max(sum(draw.site == site for draw in first_tape.draws()) for site in sites)
    is_for_each = first_tape.changed is not None and repeats == first_tape.records
    is_for_keys = has_delta(claim) and repeats > 1 and _are_compared(first_tape, sites)
    if parted.is_sure and not is_for_each and not is_for_keys:
        return pairs, [(end, RecordedFinding("control flow", parted.site, parted.reason))]
    # What was drawn there only once is in no loop.
    is_in_loop = [
        pair.recorded.site in sites and (repeats > 1 or not isinstance(pair.recorded, Draw))
        for pair in pairs
    ]
    followed_pairs = pairs[: [*is_in_loop, True].index(True)]
    return followed_pairs, [(end, not_followed(parted.site, parted.reason))]


def has_delta(claim: Loss | None) -> bool:
    """Whether a claim allows events that only one of the data can have."""
    return claim is not None and claim.epsilon_at(0.0) == np.inf


def _are_compared(tape: Tape, sites: set[str]) -> bool:
    """Whether noise that was drawn at these lines is in numbers that were compared.

    Noisy counts of keys that are compared with a threshold may hide keys that only one of the data
    has, up to the delta of the claim.
    """
    views = [
        side for event in tape.events if isinstance(event, Question) for side in event.sides or ()
    ]
    return any(block.site in sites for view in views for block in tape.blocks_of(view))


def _suspects(
    pairs: list[EventPair], first_tape: Tape, second_tape: Tape, conflicts: list[Conflict] | None
) -> frozenset[DrawSite]:
    """Call sites of draws that may be public: of the first finding, else of noise of unknown law.

    ``conflicts`` is None if there is no finding.
    """
    blamed: frozenset[DrawSite] = frozenset()
    if conflicts is not None:
        blamed = blamed_draws(pairs, first_tape, second_tape, conflicts) - first_tape.public
    return blamed or draws_without_law(pairs, first_tape) - first_tape.public


def best(tried: list[Explanation]) -> Explanation:
    """The explanation whose verdict to report, of those under several assumptions.

    It is one without findings, if there is one, of known cost if possible.  Else it is the one with
    the fewest findings, among the first and those with no other kinds of findings than the first.
    """
    reportable = [explanation for explanation in tried if explanation.has_right_cost] or tried[-1:]
    without_findings = [
        explanation for explanation in reportable if not explanation.verdict.findings
    ]
    if without_findings:
        return min(
            without_findings,
            key=lambda explanation: (
                explanation.verdict.cost is None,
                len(explanation.verdict.unchecked),
            ),
        )
    # Noise that was wrongly taken for public makes the results differ, or leaves values without
    # noise: a verdict with such findings is no better.
    kinds = {finding.kind for finding in reportable[0].verdict.findings} - {"result", "no noise"}
    comparable = [
        explanation
        for explanation in reportable
        if {finding.kind for finding in explanation.verdict.findings} <= kinds
    ]
    return min(
        [reportable[0], *comparable], key=lambda explanation: len(explanation.verdict.findings)
    )
