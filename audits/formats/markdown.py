"""The report as Markdown: the verdict, what needs a look, and all rows, for the summary of a job.

Texts of the audited code are shown as they are: none of them can be a link, a mention or markup.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from accountant.formatting import escape_control
from audits.report.power import power_of
from audits.report.summary import (
    baseline_sentence,
    confidence_sentence,
    not_tested_sentence,
    power_sentence,
    verdict_sentence,
)
from audits.report.words import (
    CLOSING,
    bound_percent,
    claim_text,
    error_sentence,
    format_bound,
    format_number,
    title_of,
)
from audits.results.result_file import Result
from audits.results.rows import ReportRow
from audits.results.short_names import short_name

MARKUP = re.compile(r"[\\`*_{}\[\]<>&|~@#$!]|://|www\.", re.IGNORECASE)
MAX_CELL = 300  # characters of a cell: a witness may be long
MAX_ROWS = 1000  # rows of a table; a job's summary has at most a megabyte
HEAD = ("verdict", "subject", "claimed", "exact", "at least", "where and what")


def to_markdown(result: Result) -> str:
    """The report as a section; rows that are as expected are folded away if others are not."""
    rows = result.rows
    urgent_rows = [row for row in rows if row.fails or not row.as_expected or not row.decisive]
    other_rows = [row for row in rows if row not in urgent_rows]
    sentences = [
        f"**{plain(verdict_sentence(rows))}**",
        plain(baseline_sentence(rows)),
        plain(power_sentence(result, power_of(result))),
        plain(not_tested_sentence(rows)),
    ]
    parts = ["## dp-attest audit", *filter(None, sentences)]
    if urgent_rows:
        parts += ["### Look at these first", markdown_table(urgent_rows)]
    for kind in dict.fromkeys(row.kind for row in other_rows):
        of_kind = [row for row in other_rows if row.kind == kind]
        title = f"{title_of(kind)} ({bound_percent(of_kind)}): {len(of_kind)}"
        is_open = "" if urgent_rows or len(other_rows) > len(of_kind) else " open"
        # The blank lines let Markdown read the table inside of the element.
        folded = [f"<details{is_open}><summary>{plain(title)}</summary>", markdown_table(of_kind)]
        parts += [*folded, "</details>"]
    parts += [f"Not audited: {plain(name)}, {plain(why)}." for name, why in result.absent.items()]
    confidence = confidence_sentence(rows) if rows else ""
    parts.append(plain(f"{confidence} {error_sentence(rows)} {CLOSING}".strip()))
    # A code span ends at a backtick alone.
    command = escape_control(result.request.repeat_command).replace("`", "'")
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    parts.append(f"Repeat with `{command}`. Versions: {plain(versions)}.")
    return "\n\n".join(parts) + "\n"


def markdown_table(rows: Sequence[ReportRow]) -> str:
    """A table with a line for each row; of more than `MAX_ROWS` the last line has the number."""
    lines = [HEAD, ("---",) * len(HEAD)]
    for row in rows[:MAX_ROWS]:
        evidence = row.evidence if row.decisive else row.why_inconclusive
        phrases = [str(code_place) for code_place in row.places[:1]]
        phrases += [code_place.sentence for code_place in row.places if code_place.sentence] or [
            evidence
        ]
        phrases += [f"unchanged since {row.compared.date}"] if row.compared and row.kept else []
        verdict = f"**{row.outcome.name}**" if row.fails else row.outcome.name
        cells = [
            short_name(row.subject),
            claim_text(row.claim),
            format_number(row.exact_epsilon, ".4f"),
            format_bound(row.verdict_lower),
            "; ".join(phrases),
        ]
        cut = [cell if len(cell) <= MAX_CELL else cell[: MAX_CELL - 3] + "..." for cell in cells]
        lines.append((verdict, *map(plain, cut)))
    if len(rows) > MAX_ROWS:
        lines.append((f"and {len(rows) - MAX_ROWS:,} more", *[""] * (len(HEAD) - 1)))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def plain(text: str) -> str:
    """Text as Markdown shows it literally."""
    literal = escape_control(text)
    return MARKUP.sub(lambda match: "".join(f"&#{ord(sign)};" for sign in match[0]), literal)
