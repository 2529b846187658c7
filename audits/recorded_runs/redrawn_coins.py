"""Recorded functions in which coins choose between private values, as in randomised response.

An audit runs a function on data and on a neighbour, in which one record is changed, with the same
random numbers.  Randomised response then shows either the private value or a lie in both runs, so
the two results differ although the function is private.  Therefore the coins of the changed record
alone are drawn again, many times on both data.  Under the claim, every result must then come on
both data, with frequencies whose ratio the claim allows (statement 6 of
docs/proofs/recorded_runs.md).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple, final

import numpy as np

from audits.recorded_runs.comparisons import where_they_differ
from audits.recorded_runs.events import Draw
from audits.recorded_runs.findings import RecordedFinding, unequal_result
from audits.recorded_runs.hidden_draws import Evidence, evidence_of
from audits.recorded_runs.records import differing_rows, number_of_records
from audits.recorded_runs.runs import Runs
from audits.recorded_runs.tape import Tape
from audits.recorded_runs.verdict import Recorded
from audits.statistics.binomial_bounds import clopper_pearson_lower

# Redraws of the changed record's coins, to look for a difference, if the runs have no finding.
OTHER_COINS = 8
# Runs on each of the two data sets, from which frequencies are counted.  More of them show smaller
# excesses over the claim.
MOST_REDRAWS, LEAST_REDRAWS = 400, 100
# Events of all redraws together, for time: a longer run is redrawn fewer times.
REDRAWN_EVENTS = 16_000
MOST_OUTCOMES = 64  # more different results are not the answers of a coin
# An outcome with this expected count has the probability e^-14, below 1e-6, of not coming at all.
EXPECTED_COUNT = 14.0
ORDERS = {"permutation", "permuted", "shuffle", "choice", "sample"}  # draws of row numbers
# Error probability of each comparison of two outcomes.  A smaller one gives fewer false findings,
# and needs larger excesses over the claim.
ALPHA = 1e-7


@final
class RecordRedrawn:
    """The outputs of a first run, with fresh draws for one record.

    An array of draws has a part for each record.  Single draws, as of code that loops over the
    records, are in groups, one for each record.  A group begins with a draw of the *leader*: the
    first call site that draws as many times as there are records.
    """

    def __init__(self, first_tape: Tape, record: int, records: int) -> None:
        draws = first_tape.draws()
        singles = Counter((draw.site, draw.name) for draw in draws if draw.shape == ())
        self.leader = next((key for key, count in singles.items() if count == records), None)
        # ``group`` is that of the current draw; group -1 has the draws before the first leader
        self.record, self.records, self.group = record, records, -1
        self.draws_of_group: dict[int, list[Draw]] = {}
        group = -1
        for draw in draws:
            group += (draw.site, draw.name) == self.leader
            self.draws_of_group.setdefault(group, []).append(draw)
        self.remaining_draws = list(self.draws_of_group.get(-1, ()))

    def output(self, site: str, name: str, fresh: Any) -> Any:
        """Return what a draw hands out: the first run's output, or the ``fresh`` one.

        It is None if the run asks for another draw than the first run did.
        """
        if (site, name) == self.leader:
            self.group += 1
            self.remaining_draws = list(self.draws_of_group.get(self.group, ()))
        if self.records == 1 or (self.leader is not None and self.group == self.record):
            return fresh
        if not self.remaining_draws:
            return None
        recorded = self.remaining_draws.pop(0)
        if (recorded.site, recorded.name) != (site, name) or recorded.shape != np.shape(fresh):
            return None
        if not _has_part_for_each(recorded, self.records):
            return recorded.output
        mixed = np.array(recorded.output)
        mixed[self.record] = fresh[self.record]
        return mixed


@final
class CoinRedraws(NamedTuple):
    """Runs like the first one, in which the coins of one record are drawn again."""

    runs: Runs
    first_tape: Tape
    record: int  # the number of the changed record
    records: int

    @property
    def are_drawn_for_each(self) -> bool:
        """Whether some coins are drawn for each record."""
        for_each = any(_has_part_for_each(draw, self.records) for draw in self.first_tape.draws())
        return for_each or self.coins().leader is not None

    def coins(self) -> RecordRedrawn:
        """The outputs for the draws of one run."""
        return RecordRedrawn(self.first_tape, self.record, self.records)

    def reseeded_runs(self, redraw: int) -> Runs:
        """The runs with another seed for each redraw, counted from 0."""
        return self.runs._replace(seed=self.runs.seed + 1 + redraw)


def answered_by_coins(
    verdict: Recorded, evidence: Evidence | None, runs: Runs
) -> tuple[Recorded, Evidence | None]:
    """Return the verdict and its evidence, changed by what coins of the changed record show.

    Where the runs have no finding, the coins are drawn again a few times to look for one.  Where
    the only finding is that the results differ, results are counted over many redraws: counts that
    contradict the claim are a finding, and counts that do not are named as unchecked.
    """
    size, neighbour_size = number_of_records(runs.data), number_of_records(runs.neighbour)
    # Data without a length are one record.
    has_length = size is not None and neighbour_size is not None
    changed = differing_rows(runs.data, runs.neighbour) if has_length else [0]
    if size != neighbour_size or len(changed) != 1:
        return verdict, evidence
    redraws = CoinRedraws(runs, runs.run().tape, record=changed[0], records=size or 1)
    if not verdict.findings:
        new_evidence = _with_other_coins(redraws)
        if new_evidence is not None:
            verdict = replace(verdict, findings=tuple(new_evidence.events))
            evidence = new_evidence
    if {finding.kind for finding in verdict.findings} != {"result"}:
        return verdict, evidence
    outcome_counts = _outcome_counts(redraws)
    if outcome_counts is None:
        return verdict, evidence
    # Under the claim an outcome that came ``count`` times on one of the data sets is expected at
    # least e^-claimed times as often on the other.  If it never came there although many were
    # expected, no coins explain it, and the finding stays.
    smallest_share = 1.0 if verdict.claimed is None else math.exp(-verdict.claimed)
    if any(
        min(counts) == 0 and max(counts) * smallest_share >= EXPECTED_COUNT
        for counts in outcome_counts
    ):
        return verdict, evidence
    redrawn = sum(count for count, _ in outcome_counts)
    # Half a run added to each count keeps the log-ratio finite, for the message alone.
    largest_log_ratio = max(
        abs(math.log((count + 0.5) / (neighbour_count + 0.5)))
        for count, neighbour_count in outcome_counts
    )
    shown_cost = f"{largest_log_ratio:.2g}"
    if verdict.claimed is not None and _exceed_claim(
        outcome_counts, verdict.claimed, verdict.delta
    ):
        sentence = f"coins choose what is shown of a record, and cost about {shown_cost}"
        finding = RecordedFinding("cost", verdict.findings[0].site, sentence)
        return replace(verdict, findings=(finding,)), None
    caution = (
        f"coins choose what is shown of a record: drawn again {redrawn} times on both data, they "
        f"cost about {shown_cost} besides; name the function that tosses them, with its loss"
    )
    unchecked = (*verdict.unchecked, caution)
    return replace(verdict, findings=(), unchecked=unchecked, cost=None), None


def _with_other_coins(redraws: CoinRedraws) -> Evidence | None:
    """Return a finding of results that differ where the record has other coins, or None."""
    if not redraws.are_drawn_for_each:
        return None
    for redraw in range(OTHER_COINS):
        runs = redraws.reseeded_runs(redraw)
        redrawn_run = runs.run(redraw=redraws.coins().output)
        replayed_run = runs.run(redrawn_run.tape, of_neighbour=True)
        if redrawn_run.tape.parted is None and replayed_run.tape.parted is None:
            finding = unequal_result(redrawn_run.result, replayed_run.result)
            if finding is not None:
                sentence = f"{finding.sentence} (with other coins of the record)"
                events = {replace(finding, sentence=sentence): len(redrawn_run.tape.events)}
                return evidence_of(runs, (redrawn_run, replayed_run), events)
    return None


def _has_part_for_each(draw: Draw, records: int) -> bool:
    """Return whether a draw has an independent part for each record.

    The parts of an order are not independent, since each place is taken once.
    """
    if draw.shape[:1] != (records,):
        return False
    return draw.name not in ORDERS or np.unique(draw.output).size < np.size(draw.output)


def _outcome_counts(redraws: CoinRedraws) -> list[list[int]] | None:
    """Return how often each result came on each data set, as pairs of counts.

    It is None if the runs part, if there are too many results or only one, or if no result came on
    both data sets.
    """
    results: list[Any] = []  # the different results so far
    counts: list[list[int]] = []  # for each of them, how often it came on either data set
    if redraws.records > 1 and not redraws.are_drawn_for_each:
        return None
    affordable_redraws = REDRAWN_EVENTS // max(len(redraws.first_tape.events), 1)
    for redraw in range(max(min(MOST_REDRAWS, affordable_redraws), LEAST_REDRAWS)):
        runs = redraws.reseeded_runs(redraw)
        first_run = runs.run(redraw=redraws.coins().output)
        # The run on the neighbour gets the same coins and noisy numbers, whose noise is charged
        # apart.  Where it then asks for other events, it gets the same coins alone.
        second_run = runs.run(first_run.tape, of_neighbour=True)
        if second_run.tape.parted is not None:
            second_run = runs.run(of_neighbour=True, redraw=redraws.coins().output)
        for side, (tape, result) in enumerate((first_run, second_run)):
            if tape.parted is not None:
                return None
            matches = (
                k for k, earlier in enumerate(results) if not where_they_differ(earlier, result)
            )
            index = next(matches, len(results))
            if index == len(results):
                results.append(result)
                counts.append([0, 0])
            if len(results) > MOST_OUTCOMES:
                return None
            counts[index][side] += 1
    came_on_both = any(count and neighbour_count for count, neighbour_count in counts)
    return counts if len(counts) > 1 and came_on_both else None


def _exceed_claim(outcome_counts: list[list[int]], claimed: float, delta: float) -> bool:
    """Return whether an outcome is shown to be likelier on one data set than the claim allows.

    That is p > e^claimed q + delta for its probabilities p and q on the two data sets; p is
    replaced by its lower confidence bound, and q by its upper one.
    """
    redraws = np.array(sum(count for count, _ in outcome_counts))
    for counts in outcome_counts:
        for count, opposite_count in (counts, counts[::-1]):
            p_lower = clopper_pearson_lower(np.array(count), redraws, ALPHA)
            q_upper = 1 - clopper_pearson_lower(redraws - opposite_count, redraws, ALPHA)
            if p_lower > math.exp(claimed) * q_upper + delta:
                return True
    return False
