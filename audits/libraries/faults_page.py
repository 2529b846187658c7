"""Writes docs/faults.md, the page of the faults that were found in released libraries.

It has a section for each check that a library failed, with the command that shows the fault again.
"""

from __future__ import annotations

import math
import re
import shlex
import textwrap
from collections.abc import Iterator

from audits.claims.findings import Outcome
from audits.libraries import LIBRARIES, version
from audits.results.result_file import Result
from audits.results.rows import FAMILY_ERROR, ReportRow
from mechanisms.base.marked_table import markdown_table

WIDTH = 100  # most characters of a line
THREAD = re.compile(r"\b([\w-]+/[\w-]+)#(\d+)")  # owner/repository#number
THREAD_LINK = r"[\1#\2](https://github.com/\1/issues/\2)"
INTRODUCTION = """\
# Faults of released libraries

Each fault below was found again when this page was written, by
`{command}`.
Its own command shows it alone. A lower bound on ε holds with probability {confidence:g}; all
verdicts together hold with probability {certainty:.7g}. Some libraries draw their own randomness,
so bounds differ a little from run to run. `pip install '.[libraries]'` installs these versions.
For programs the same is in [faults.json](faults.json), with the [errata](errata.md) of papers.

"""


def faults_page(result: Result) -> str:
    """The page of the rows that fell, library by library; the absent libraries are named."""
    by_library = {
        library: [row for row in result.rows if row.subject.startswith(f"{library}: ")]
        for library in LIBRARIES
    }
    request = result.request
    command = (
        f"dp-attest audit libraries --runs {request.samples} --seed {request.seed} "
        "--faults docs/faults.md"
    )
    introduction = INTRODUCTION.format(
        confidence=request.confidence, command=command, certainty=1 - FAMILY_ERROR
    )
    parts = [introduction, _summary(by_library)]
    for library, rows in by_library.items():
        parts += ["".join(_section(library, row)) for row in rows if _fell(row)]
    if result.absent:
        parts.append("\n## Not looked at\n\n")
        parts += [f"- {library}: {why}\n" for library, why in result.absent.items()]
    return "".join(parts).rstrip("\n") + "\n"


def _summary(by_library: dict[str, list[ReportRow]]) -> str:
    """A table with a row for each library: its faults, and the checks that it survived."""
    rows = [
        (
            f"{library} {version(library)}",
            str(sum(map(_fell, rows))),
            "; ".join(_name(row) for row in rows if not _fell(row)) or "none",
        )
        for library, rows in by_library.items()
        if rows
    ]
    return markdown_table(("library", "faults", "survived, which proves nothing"), rows)


def _section(library: str, row: ReportRow) -> Iterator[str]:
    """Yield the heading and the items of one fault."""
    epsilon, delta = row.claim
    yield f"\n## {library} {version(library)}: {_name(row)}\n\n"
    if not math.isnan(epsilon):  # it is where the fault is no claim of an epsilon
        yield _item("claimed", f"ε {epsilon:.7g}" + (f", δ {delta:g}" if delta else ""))
    yield _item("found", row.witness)
    if row.epsilon_lower is not None:
        yield _item("bound", f"ε is at least {row.epsilon_lower:.3g}")
    if reported := dict(row.facts).get("reported"):
        yield _item("reported", THREAD.sub(THREAD_LINK, reported))
    yield f"- command: `dp-attest audit libraries {shlex.quote(row.subject)}`\n"


def _item(name: str, text: str) -> str:
    line = f"- {name}: {' '.join(text.split())}"
    lines = textwrap.wrap(
        line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines) + "\n"


def _fell(row: ReportRow) -> bool:
    return row.outcome is Outcome.FALSIFIED


def _name(row: ReportRow) -> str:
    return row.subject.split(": ", 1)[1]
