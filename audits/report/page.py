"""The report as one self-contained HTML page, without scripts or requests."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from audits.report.figure import interval_figure, power_figure, profile_figure
from audits.report.style import STYLE
from audits.report.words import escape_control, format_number, format_percent
from audits.results.facts import CLOSING, PROFILE_HEAD, profile_rows, title_of
from audits.results.result_file import Result
from audits.results.rows import FAMILY_ERROR, ReportRow

HEAD = ("subject", "claimed epsilon", "delta", "exact", "at least", "interval", "verdict")
# true epsilons of the power curve, where 1 is claimed
TRUE_EPSILONS = (1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0)
POWER = 0.95


def to_html(result: Result) -> str:
    """The result as a page; all text from outside is escaped."""
    rows = result.rows
    wrong = [row for row in rows if not row.as_expected]
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width,initial-scale=1'>",
        "<meta name=color-scheme content='light dark'>",
        f"<title>dp-attest audit</title><style>{STYLE}</style><main><h1>dp-attest audit</h1>",
        *_summary(result, wrong),
    ]
    if wrong:
        parts += [f"<h2 class=bad>Not as expected</h2>{_rows(wrong)}"]
    for kind in dict.fromkeys(row.kind for row in rows):
        some = [row for row in rows if row.kind == kind]
        parts += [f"<h2>{_escape(title_of(kind))}</h2>", _rows(some)]
    for row in rows:
        if row.facts:
            parts += _facts_section(row)
    if rows:
        parts += _power_section(result)
    parts += _repeat_section(result)
    return "\n".join(parts) + "\n"


def _summary(result: Result, wrong: Sequence[ReportRow]) -> Iterable[str]:
    rows, weak = result.rows, sum(not row.decisive for row in result.rows)
    fell = sum(row.outcome.name == "FALSIFIED" for row in rows)
    tiles = [
        (f"{len(rows) - len(wrong)} of {len(rows)}", "as expected", "bad" if wrong else "good"),
        (str(fell), "falsified", ""), (str(len(rows) - fell), "survived", ""),
        *([(str(weak), "with too few runs to decide", "")] if weak else []),
        *([(str(len(result.absent)), "libraries not there", "")] if result.absent else []),
    ]  # fmt: skip
    yield (
        "<div class=tiles>"
        + "".join(
            f"<div><b class='{colour}'>{_escape(value)}</b> {_escape(words)}</div>"
            for value, words, colour in tiles
        )
        + "</div>"
    )
    yield (
        "<p>Verdicts hold together at 1 &minus; 10<sup>&minus;6</sup>. An audit falsifies or "
        "fails to; <em>survived</em> proves nothing. An interval runs from the least epsilon "
        "that the runs allow, at its own confidence, upwards; "
        "<svg class=key viewBox='0 0 8 16' width=8 height=16><path class=claim d='M4 1V15'/></svg> "
        "is the claim, <svg class=key viewBox='0 0 8 16' width=8 height=16>"
        "<circle cx=4 cy=8 r=3.5 /></svg> what the density says exactly.</p>"
    )


def _rows(rows: Sequence[ReportRow]) -> str:
    body = "".join(map(_row, rows))
    head = "".join(f"<th{_number_class(i)}>{name}</th>" for i, name in enumerate(HEAD))
    return f"<table class=rows><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(row: ReportRow) -> str:
    colour = "good" if row.as_expected else "bad"
    word = row.outcome.name.lower() + ("" if row.decisive else " (too few runs)")
    bound = format_number(row.epsilon_lower, ".3f")
    cells = [
        f"<strong>{_escape(row.subject)}</strong>",
        format_number(row.claim[0]),
        format_number(row.claim[1], "g"),
        format_number(row.exact_epsilon, ".4f"),
        bound if bound == "-" else f"{bound} <small>({format_percent(row.confidence)})</small>",
        interval_figure(row),
        f"<strong class={colour}>{word}</strong>",
    ]
    line = "".join(
        f"<td{_number_class(i)} data-label='{HEAD[i]}'><span>{_dash(cell)}</span></td>"
        for i, cell in enumerate(cells)
    )
    return f"<tr>{line}</tr><tr class=more><td colspan={len(HEAD)}>{_details(row)}</td></tr>"


def _details(row: ReportRow) -> str:
    words = [f"<p>{_escape(row.witness)}</p>"]
    if row.guesses is not None:
        right, made, runs = row.guesses
        words.append(
            f"<p>{right:,} of {made:,} guesses right in {runs:,} test runs of {row.runs:,}; "
            f"epsilon is at least {format_number(row.epsilon_lower)} at "
            f"{format_percent(row.confidence)}, and at "
            f"least {format_number(row.verdict_lower)} at the confidence of the verdict.</p>"
        )
    words.append(
        f"<p><small>expected: {row.expected.name.lower()}; {row.seconds:.2f} s</small></p>"
    )
    figure, name = "", "witness"
    if row.curve is not None and not row.facts:
        figure, name = f"<figure>{profile_figure(row.curve)}</figure>", "witness and profile"
    inside = f"<div class=witness>{''.join(words)}{figure}</div>"
    return f"<details><summary>{name}</summary>{inside}</details>"


def _facts_section(row: ReportRow) -> Iterable[str]:
    yield f"<h2>{_escape(row.subject)}</h2>"
    facts = "".join(f"<tr><th>{_escape(a)}<td>{_escape(b)}</tr>" for a, b in row.facts)
    yield f"<div class=wide><table>{facts}</table></div>"
    if row.curve is None or not row.curve.mean:
        return
    yield f"<figure>{profile_figure(row.curve, 'accountant')}</figure>"
    head = "".join(f"<th class=number>{name}</th>" for name in PROFILE_HEAD)
    lines = ("".join(f"<td class=number>{_escape(cell)}</td>" for cell in cells)
             for cells in profile_rows(row.curve))  # fmt: skip
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    yield f"<div class=wide>{table}</div>"


def _power_section(result: Result) -> Iterable[str]:
    """The smallest violation that this many runs detect, at the confidence of the verdicts."""
    from audits.known_densities.outcome_models import laplace
    from audits.known_densities.sample_size import runs_needed

    alpha, runs = FAMILY_ERROR / len(result.rows), result.request.samples
    found = [runs_needed(laplace(truth), 1.0, 0.0, alpha, POWER) for truth in TRUE_EPSILONS]
    guess = [(truth, one.guess) for truth, one in zip(TRUE_EPSILONS, found, strict=True)]
    limit = [(truth, one.limit) for truth, one in zip(TRUE_EPSILONS, found, strict=True)]
    least = next((truth for truth, one in guess if one <= runs), None)
    told = "none of these" if least is None else f"a true epsilon of {least:g} or more"
    yield "<h2>What so many runs can see</h2>"
    yield (
        f"<p>Runs that it takes, with probability {POWER:.0%} and at the confidence of the "
        f"verdicts, to falsify a claim of epsilon 1 by Laplace noise: {runs:,} runs see {told}."
    )
    yield f"<figure>{power_figure(guess, limit, runs, '1')}</figure>"


def _repeat_section(result: Result) -> Iterable[str]:
    asked = result.request
    facts = {
        "repeat with": f"<code>{_escape(asked.repeat_command)}</code>", "seed": f"{asked.seed}",
        "runs of each guess test": f"{asked.samples:,}",
        "confidence of the bounds": format_percent(asked.confidence),
        "versions": _escape(", ".join(f"{name} {v}" for name, v in result.versions.items())),
        **{f"not audited: {_escape(name)}": _escape(why) for name, why in result.absent.items()},
    }  # fmt: skip
    lines = "".join(f"<tr><th>{what}<td>{value}</tr>" for what, value in facts.items())
    yield f"<h2>To repeat it</h2><table class=facts>{lines}</table>"
    yield f"<p><small>{_escape(CLOSING)}</small></p></main></html>"


def _dash(cell: str) -> str:
    return "&ndash;" if cell == "-" else cell


def _number_class(place: int) -> str:
    return " class=number" if 1 <= place <= 4 else ""


def _escape(words: object) -> str:
    return html.escape(escape_control(words))
