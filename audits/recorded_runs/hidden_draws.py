"""Draws that code got as plain numbers: whether they may explain what a recorded run shows.

An audit runs a function on data, and on a neighbour with the same random numbers, and follows the
noise.  Some noise goes out of sight: code turns it into a plain number, draws whole numbers or bits
that are handed out plain, draws in another thread, or asks whether a uniform number is below a
level.  Such noise may be in any later number, and hide there what seems to show the data.

So where something was found, the hidden draws alone are drawn again, many times on both data, and
all others are replayed.  Where what a finding is about varies with them, it cannot be judged.
Where it is always the same on the data, and another on the neighbour, they do not explain it
(statement 7 of docs/proofs/recorded_runs.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, final

import numpy as np

from audits.recorded_runs.comparisons import (
    leaves_of,
    paths_of_differences,
    where_they_differ,
)
from audits.recorded_runs.event_pairs import EventPair, pairs_of_events
from audits.recorded_runs.events import Call, Draw, Event, Question
from audits.recorded_runs.findings import LOST_NOISE, NOT_FOLLOWED, UNDECIDED, RecordedFinding
from audits.recorded_runs.runs import Run, Runs
from audits.recorded_runs.tape import DrawSite, HiddenDraws, Tape
from audits.recorded_runs.verdict import Recorded

# A false finding has at most the chance e^-14, below 1e-6.
LOG_CHANCE = 14.0
MOST_REDRAWS = 400  # runs on each of the two data sets
REDRAWN_EVENTS = 200_000  # of all runs on one of them, for time: a longer run is repeated less
MOST_OUTCOMES = 256  # a result with more different values than these is not one of a few
FEW_RUNS = 5  # if no outcome came twice in so many runs, it is not one of a few
EVERY_DRAW = HiddenDraws(0, frozenset(), np.empty(0, dtype=np.int64), ())
WHOLE = ""  # stands for the whole result among the paths of its parts
MADE_LAWS = {"unknown", "log of uniform", "uniform"}  # of noise that functions make of other noise
ORDERS = {"permutation", "permuted", "shuffle", "sample"}  # draws of row numbers


def hidden_draws(pairs: list[EventPair], tape: Tape) -> HiddenDraws | None:
    """Return the draws of the first run that went out of sight; None if there are none.

    Orders and samples of records are no noise, and neither are the coins of which each record has
    its own: `answered_by_coins` draws those again.
    """
    stop = max((block.stop for block in tape.blocks), default=0)
    # Uniform numbers choose the sign of noise that their logarithms make, and that is followed.
    log_origins = frozenset[DrawSite]().union(
        *(block.origins for block in tape.blocks if block.law == "log of uniform")
    )
    is_hidden, is_coin, is_shown = np.zeros((3, stop + 1), dtype=bool)
    # the numbers of the events that drew a noise, and that had it where it first went out of sight
    drawn_by, lost_at = np.zeros((2, stop + 1), dtype=int)
    events: set[int] = set()
    for index, event in reversed(list(enumerate(tape.events))):
        noisy, pair = event.noisy, pairs[index] if index < len(pairs) else None
        if noisy is None:
            if isinstance(event, Draw) and event.name not in ORDERS:
                # Plain numbers may be noise, but for rows, and for draws by private chances.
                candidates = event.equal.get("the number of candidates")
                is_row = event.of_records is not None or candidates == tape.records
                before = event.parameter
                after = (
                    pair.replayed.parameter if pair and isinstance(pair.replayed, Draw) else None
                )
                is_chance = before is not None and (
                    after is None or bool(before.losses(before.value, after.value))
                )
                if not is_row and (event.coins if before is None else not is_chance):
                    events.add(index)
            continue
        # A number without noise has the index -1, and marks the last element, which is spare.
        numbers = noisy.view.noises.ravel()
        drawn_by[numbers] = index
        is_shown[numbers] |= noisy.shown and noisy.view.noises.shape[-1] == 1
        is_coin[numbers] |= isinstance(event, Draw) and event.coins
        # Libraries add a location to noise: where it is 0 in both runs, the noise is still alone.
        moved = None if pair is None else pair.moved
        is_at_zero = moved is not None and not (moved.gap.any() or noisy.view.value.any())
        # Compiled code reads an array without a sign of it.
        is_sign = noisy.pure and noisy.steps and bool(log_origins & tape.origins_of(noisy.view))
        is_asked = noisy.questions and not is_sign
        is_read = bool(noisy.used or is_asked or not noisy.steps)
        if (noisy.pure and is_read) or (noisy.used and is_at_zero):
            is_hidden[numbers] = True
            lost_at[numbers] = index
    # Noise that the result shows alone hides nothing: a reader of the result can subtract it.
    is_hidden &= ~is_shown
    lost = np.flatnonzero(is_hidden[:stop] & ~is_coin[:stop])
    first_lost = {*events, *lost_at[lost].tolist()}
    # A function makes new noise of other noise, which is hidden too.
    origins = frozenset().union(
        *(
            block.origins
            for block in tape.blocks
            if block.law in MADE_LAWS and is_hidden[block.start : block.stop].any()
        )
    )
    for block in tape.blocks:
        is_hidden[block.start : block.stop] |= bool(block.origins & origins)
    noises = np.flatnonzero(is_hidden[:stop] & ~is_coin[:stop])
    events |= set(drawn_by[noises].tolist())
    if not events and not tape.elsewhere:
        return None
    sites = dict.fromkeys([*(tape.events[k].site for k in sorted(events)), *tape.elsewhere])
    start = -1 if tape.elsewhere else min(first_lost or events)
    return HiddenDraws(start, frozenset(events), noises, tuple(sites))


@final
class Evidence(NamedTuple):
    """What two runs showed: the runs, how each is made again, and which events findings are about.

    ``rerun`` draws the hidden draws again, or all draws if there are none of them; on the first
    data, or else on the second.
    """

    runs: tuple[Run, Run]
    rerun: Callable[[HiddenDraws | None, bool], Run]
    hidden: HiddenDraws | None
    events: dict[RecordedFinding, int]  # the number of the event that a finding is about


def evidence_of(
    runs: Runs, replayed: tuple[Run, Run], events: dict[RecordedFinding, int]
) -> Evidence:
    """The evidence for findings of a run of the function, and its replay."""
    first_tape, second_tape = (run.tape for run in replayed)
    seeds = itertools.count(runs.seed + 1)

    def rerun(hidden: HiddenDraws | None, of_neighbour: bool) -> Run:
        recorded = None if hidden is None else first_tape
        reseeded_runs = runs._replace(seed=next(seeds))
        return reseeded_runs.run(recorded, of_neighbour, varied=hidden or EVERY_DRAW)

    hidden = hidden_draws(pairs_of_events(first_tape, second_tape), first_tape)
    return Evidence(replayed, rerun, hidden, events)


def explained_by_hidden_draws(verdict: Recorded, evidence: Evidence | None) -> Recorded:
    """Return the verdict, in which findings that hidden draws may explain are lost noise.

    Where nothing could be followed, all draws are drawn again, and what a result then always shows
    of one of the data alone is a finding.
    """
    if evidence is None:
        return verdict
    hidden = evidence.hidden
    claimed = 1.0 if verdict.claimed is None else min(verdict.claimed, 100.0)
    needed = math.ceil(LOG_CHANCE / math.log1p(math.exp(-claimed)))
    sizes = [len(run.tape.events) for run in evidence.runs]
    limit = min(MOST_REDRAWS, REDRAWN_EVENTS // max(*sizes, 1))
    if any(finding.kind == NOT_FOLLOWED for finding in verdict.findings):
        in_result = RecordedFinding("result", "", "")
        redrawn = _Redrawn(evidence, None, {in_result})
        while redrawn.is_open(in_result, needed, limit):
            redrawn.add()
        if not redrawn.excludes(in_result, needed):
            return verdict
        path = redrawn.path_of_data(needed)
        sentence = f"{path} had a value often on one of the data, and never on the other"
        shown = RecordedFinding("result", "", sentence)
        return replace(verdict, findings=(shown, *verdict.findings))
    # What came before noise first went out of sight, or with it, no hidden draw can explain.
    doubtful = {
        finding
        for finding in verdict.findings
        if hidden is not None
        and finding.kind not in UNDECIDED
        and evidence.events.get(finding, math.inf) > hidden.start
    }
    if hidden is None or not doubtful:
        return verdict
    redrawn = _Redrawn(evidence, hidden, doubtful)
    shown_anyway: set[RecordedFinding] = set()
    while any(redrawn.is_open(finding, needed, limit) for finding in doubtful - shown_anyway):
        redrawn.add()
        shown_anyway = {finding for finding in doubtful if redrawn.excludes(finding, needed)}
    sites = ", ".join(hidden.sites[:3])
    findings = [
        RecordedFinding(
            LOST_NOISE,
            finding.site or hidden.sites[0],
            f"{finding.sentence}, but noise drawn at {sites} was lost from sight before it was "
            "added: name the function that adds it in `primitives`",
        )
        if finding in doubtful - shown_anyway
        else finding
        for finding in verdict.findings
    ]
    return replace(verdict, findings=tuple(dict.fromkeys(findings)))


@final
class _Redrawn:
    """Runs in which draws were drawn again, compared with those of the evidence."""

    def __init__(
        self, evidence: Evidence, hidden: HiddenDraws | None, findings: set[RecordedFinding]
    ) -> None:
        self.evidence, self.hidden = evidence, hidden
        # numbers of the events that are compared; None stands for all that have noise
        self.watched = {evidence.events.get(finding) for finding in findings}
        self.runs = 0  # on each of the two data
        self.varying: set[int] = set()  # numbers of events that differ on one of them
        # For the whole result, and for each part that differs: its values, and how often each came
        # on the two data.
        self.outcomes: dict[str, list[tuple[Any, list[int]]]] = {WHOLE: []}

    def add(self) -> None:
        """Run the function once more on both data."""
        repeated = [self.evidence.rerun(self.hidden, is_second) for is_second in (False, True)]
        if not self.runs:
            paths = paths_of_differences(*(run.result for run in repeated))
            self.outcomes.update({path: [] for path in paths})
        self.runs += 1
        for side, (run, again) in enumerate(zip(self.evidence.runs, repeated, strict=True)):
            events, events_again = run.tape.events, again.tape.events
            for index, (event, event_again) in enumerate(zip(events, events_again, strict=False)):
                is_noisy = None in self.watched and event.noisy is not None
                is_watched = index in self.watched or is_noisy
                if is_watched and where_they_differ(_facts(event), _facts(event_again)):
                    self.varying.add(index)
            # Where the runs part, all that follows differs.
            partings = run.tape.parted, again.tape.parted
            reasons = [
                "" if parted is None or parted.is_end else str(parted) for parted in partings
            ]
            if len(events) != len(events_again) or reasons[0] != reasons[1]:
                stop = min(len(events), len(events_again))
                self.varying |= set(range(stop, len(events) + 1))
            if where_they_differ(run.tape.bounds, again.tape.bounds):
                self.varying.add(len(events))
            parts = {} if again.tape.parted is not None else dict(leaves_of(again.result))
            parts[WHOLE] = again.result
            for path, values in self.outcomes.items():
                value = parts.get(path)
                matches = (counts for past, counts in values if not where_they_differ(past, value))
                counts = next(matches, None)
                if counts is None:
                    counts = [0, 0]
                    values.append((value, counts))
                counts[side] += 1
        self.outcomes = {
            path: values for path, values in self.outcomes.items() if len(values) <= MOST_OUTCOMES
        }

    def excludes(self, finding: RecordedFinding, needed: int) -> bool:
        """Whether the draws do not explain a finding, by what these runs showed."""
        if _is_about_result(finding):
            return bool(self.path_of_data(needed))
        return self.runs >= needed and not self._varies(finding)

    def is_open(self, finding: RecordedFinding, needed: int, limit: int) -> bool:
        """Whether more runs, up to the limit, may still exclude it."""
        if not _is_about_result(finding):
            return limit >= needed > self.runs and not self._varies(finding)
        if self.runs < FEW_RUNS:
            return limit >= needed
        largest = max(
            (
                max(counts)
                for values in self.outcomes.values()
                for _, counts in values
                if min(counts) == 0
            ),
            default=0,
        )
        return 1 < largest < needed and self.runs < limit and largest * limit >= needed * self.runs

    def path_of_data(self, needed: int) -> str:
        """The path to what came so often on one of the data and never on the other; "" if none."""
        return next(
            (
                path or "the result"
                for path, values in reversed(self.outcomes.items())
                for _, counts in values
                if max(counts) >= needed and min(counts) == 0
            ),
            "",
        )

    def _varies(self, finding: RecordedFinding) -> bool:
        """Whether the event that a finding is about differs; of a cost, one that has noise."""
        index = self.evidence.events.get(finding)
        return bool(self.varying) if index is None else index in self.varying


def _is_about_result(finding: RecordedFinding) -> bool:
    """Whether a finding is about the results of the runs, of which one may be an exception."""
    return finding.kind == "result" or (finding.kind == "control flow" and not finding.site)


def _facts(event: Event) -> list[Any]:
    """What an event shows of the data, other than its output."""
    views = [] if event.noisy is None else [event.noisy.view]
    if isinstance(event, Question):
        views += event.sides or ()
    facts: list[Any] = [event.equal, *(part for view in views for part in view)]
    if isinstance(event, Call):
        facts.append(event.private_value)
    if isinstance(event, Draw) and event.parameter is not None:
        facts.append(event.parameter.value)
    return facts
