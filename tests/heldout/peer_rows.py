"""What a held-out suite of another library says of us, a row for each of its cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

PASSED = "passed"  # what the case asks holds of ours
BETTER = "better"  # ours answers more, or is nearer to the truth
REFUSED = "refused"  # ours does not answer, and says why
DISAGREES = "DISAGREES"  # the two answers contradict each other
VERDICTS = (PASSED, BETTER, REFUSED, DISAGREES)


@dataclass(frozen=True)
class PeerRow:
    """One case of a suite: the case in words, the verdict, and the reason of all but PASSED."""

    suite: str
    case: str
    verdict: str
    reason: str = ""


def judged(suite: str, case: str, holds: bool, better: str = "", why: str = "") -> PeerRow:
    """A row of what holds or not; ``better`` says why ours is better, ``why`` what is not so."""
    verdict = DISAGREES if not holds else BETTER if better else PASSED
    return PeerRow(suite, case, verdict, better if holds else why)


def table_of(rows: Iterable[PeerRow]) -> list[str]:
    """Lines of a table: a suite a line, and how often each verdict was given."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row.suite, Counter())[row.verdict] += 1
    lines = [f"{'suite':38}" + "".join(f"{one:>11}" for one in ("cases", *VERDICTS))]
    for suite, of_suite in counts.items():
        cells = (of_suite.total(), *(of_suite[verdict] for verdict in VERDICTS))
        lines.append(f"{suite:38}" + "".join(f"{cell:>11,}" for cell in cells))
    return lines


def reasons_of(rows: Iterable[PeerRow]) -> list[str]:
    """Lines of the reasons of a suite, each with how many cases have it."""
    counts = Counter((row.suite, row.verdict, row.reason) for row in rows if row.reason)
    return [f"{suite}, {verdict}, {count:,}: {reason}"
            for (suite, verdict, reason), count in counts.items()]  # fmt: skip
