"""What a report says first: the verdict in a sentence, and what is worth a look."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from accountant.formatting import escape_control, format_lower, format_short
from audits.claims.findings import Outcome, kinds_of
from audits.report.power import Power
from audits.report.words import bound_percent
from audits.results.result_file import Result
from audits.results.rows import ReportRow
from audits.results.short_names import short_name

MAX_NAMES = 3  # names in a sentence; of others only the number is given
MAX_FIRST = 8  # rows that are shown before the tables
FEW_ROWS = 20  # largest number of rows of a report without a summary


def verdict_sentence(rows: Sequence[ReportRow]) -> str:
    """The verdict of all rows: violations, known faults not found, what is inconclusive."""
    if not rows:
        return "Nothing was audited."
    wrong = [row for row in rows if not row.as_expected]
    falsified = [row for row in wrong if row.outcome is Outcome.FALSIFIED]
    missed = [row for row in wrong if row.outcome is not Outcome.FALSIFIED]
    undecided = [row for row in rows if not row.decisive and row.as_expected]
    sentences = []
    if falsified:
        violations = _some(map(violation, falsified), "; ")
        sentences.append(f"{_count(len(falsified), 'violation')}: {violations}.")
    if missed:
        names = _some((_name(row) for row in missed), ", ")
        sentences.append(f"{_count(len(missed), 'known fault')} not found: {names}.")
    if undecided:
        sentences.append(_inconclusive(undecided, len(rows)))
    return " ".join(sentences) or " ".join(_no_violation(rows))


def _no_violation(rows: Sequence[ReportRow]) -> Iterator[str]:
    """The verdict where nothing is wrong and nothing undecided."""
    if all(math.isnan(row.claim[0]) and row.kind == "scores" for row in rows):  # no claim
        for row in rows:
            lower, delta = row.verdict_lower or 0.0, format_short(row.claim[1])
            yield f"ε ≥ {format_lower(lower)} at δ = {delta}; no claim was tested."
        return
    broken = sum(row.outcome is Outcome.FALSIFIED for row in rows)
    if broken < len(rows):
        yield f"No violation seen in {_count(len(rows) - broken, 'audit')}."
    if broken:
        sentence = (
            "The known fault was found" if broken == 1 else f"All {broken} known faults found"
        )
        yield f"{sentence}."


def _inconclusive(undecided: Sequence[ReportRow], count: int) -> str:
    """How many of ``count`` rows are inconclusive, why, and their names."""
    parts = []
    for reason in dict.fromkeys(row.why_inconclusive for row in undecided):
        names = _some((_name(row) for row in undecided if row.why_inconclusive == reason), ", ")
        parts.append(f"{escape_control(reason)} ({names})")
    verb, total = "is" if len(undecided) == 1 else "are", _count(count, "audit")
    return f"{len(undecided)} of {total} {verb} inconclusive: {_some(parts, '; ')}."


def violation(row: ReportRow) -> str:
    """The epsilon that a row leaks at the confidence of its verdict, else that its claim fails."""
    (epsilon, delta), lower = row.claim, row.verdict_lower
    claimed = f"{epsilon:.4g}" + (f" at δ = {format_short(delta)}" if delta > 0 else "")
    if lower is not None and lower > epsilon:
        return f"{_name(row)} leaks ε ≥ {format_lower(lower)}, claimed {claimed}"
    return f"{_name(row)} breaks its claim" + ("" if math.isnan(epsilon) else f", ε = {claimed}")


def power_sentence(result: Result, power: Power | None) -> str:
    """What the runs of a report, or the coins of an audit of one run, would have seen."""
    if power is not None:
        return power.sentence
    shown = [
        f"{row.runs:,} coins could have proved {value}."
        for row in result.rows
        for name, value in row.facts
        if name == "could have proved"
    ]
    return " ".join(shown)


def not_tested_sentence(rows: Sequence[ReportRow]) -> str:
    """What the audits did not look at: of one row with which and why, of several the kinds."""
    reasons = [reason for row in rows for reason in row.not_tested]
    if not reasons:
        return ""
    shown = "; ".join(map(str, reasons)) if len(rows) == 1 else kinds_of(reasons)
    return f"Not tested: {escape_control(shown)}."


def baseline_sentence(rows: Sequence[ReportRow]) -> str:
    """Which rows were kept from a baseline and from when, and why others were not; else ""."""
    kept_rows = [row for row in rows if row.kept]
    sentences = []
    for date in dict.fromkeys(row.compared.date for row in kept_rows if row.compared):
        of_date = [row for row in kept_rows if row.compared and row.compared.date == date]
        names = _some(list(map(_name, of_date)), ", ")
        sentences.append(f"Kept from {date or 'an earlier day'}, unchanged: {names}.")
    if known_rows := [row for row in kept_rows if not row.as_expected]:
        names = _some(list(map(_name, known_rows)), ", ")
        sentences.append(f"Known from the baseline, so that it fails nothing: {names}.")
    new_rows = [row for row in rows if row.compared and not row.kept]
    for reason in dict.fromkeys(row.compared.reason for row in new_rows if row.compared):
        of_reason = [row for row in new_rows if row.compared and row.compared.reason == reason]
        names = _some(list(map(_name, of_reason)), ", ")
        sentences.append(f"Audited now, as {escape_control(reason)}: {names}.")
    if kept_rows:
        sentences.insert(
            0, f"{len(kept_rows)} of {_count(len(rows), 'row')} kept from the baseline."
        )
    return " ".join(sentences)


def confidence_sentence(rows: Sequence[ReportRow]) -> str:
    """What the confidence of the column "at least" is; "" where the rows have no bounds."""
    if rows and all(row.kind == "record" for row in rows):
        return ""
    if len(rows) == 1:
        return f'The bound "at least" holds with {bound_percent(rows)} confidence.'
    return f'Bounds "at least" hold with {bound_percent(rows)} confidence, all of them together.'


def first_rows(rows: Sequence[ReportRow]) -> list[ReportRow]:
    """Rows that are shown before the tables of kinds: what is wrong, and what is undecided."""
    wrong = [row for row in rows if not row.as_expected]
    undecided = [row for row in rows if row.as_expected and not row.decisive]
    return [*wrong, *undecided][:MAX_FIRST]


def needs_summary(rows: Sequence[ReportRow]) -> bool:
    """Whether there are so many rows that their tables do not fit one screen."""
    return len(rows) > FEW_ROWS


def closest_sentences(rows: Sequence[ReportRow]) -> Iterator[str]:
    """The row that survived nearest to its claim, and the fault that exceeds it by least."""
    bounded = [row for row in rows if row.verdict_lower is not None and row.claim[0] > 0]
    # The share of the claimed epsilon that the lower bound reaches; above 1 it refutes the claim.
    shares = {id(row): (row.verdict_lower or 0.0) / row.claim[0] for row in bounded}
    survived = [row for row in bounded if row.outcome is Outcome.SURVIVED]
    exceeding = [row for row in bounded if row.outcome is Outcome.FALSIFIED and shares[id(row)] > 1]
    if survived:
        yield _closest(
            "Nearest to its claim of those that survived",
            max(survived, key=lambda row: shares[id(row)]),
        )
    if exceeding:
        yield _closest(
            "Above its claim by least of those that fell",
            min(exceeding, key=lambda row: shares[id(row)]),
        )


def _closest(opening: str, row: ReportRow) -> str:
    lower = format_lower(row.verdict_lower or 0.0)
    return f"{opening}: {_name(row)}, at least {lower} where {row.claim[0]:.4g} is claimed."


def _name(row: ReportRow) -> str:
    return escape_control(short_name(row.subject))


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _some(phrases: Iterator[str] | Sequence[str], between: str) -> str:
    """The first few, and how many more there are."""
    all_phrases = list(phrases)
    remainder = [f"and {len(all_phrases) - MAX_NAMES} more"] if len(all_phrases) > MAX_NAMES else []
    return between.join([*all_phrases[:MAX_NAMES], *remainder])
