"""Lower bounds as one self-contained HTML page."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from audits.minimax.checks.enumeration import Check
from audits.minimax.performance.answers import ProblemReport
from audits.report.bounds import (
    ALGORITHM_HEAD,
    CHECK_HEAD,
    algorithm_cells,
    bound_facts,
    check_cells,
    closest_checks,
)
from audits.report.style import STYLE
from audits.report.words import escape_control, format_number


def to_html(answers: Sequence[ProblemReport], checks: Sequence[Check], repeat_command: str) -> str:
    """The bounds as a page; all text from outside is escaped."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width,initial-scale=1'>",
        "<meta name=color-scheme content='light dark'>",
        f"<title>dp-attest bounds</title><style>{STYLE}</style><main><h1>Lower bounds</h1>",
        "<p>No private algorithm has a worst-case risk below the bound. Algorithms of this project "
        "were run on the family that proves it: a large quotient may be the algorithm's fault, or "
        "the bound's.</p>",
    ]
    for answer in answers:
        parts += _section(answer)
    parts += _checks(checks)
    parts.append(
        f"<h2>To repeat it</h2><p><code>{_escape(repeat_command)}</code></p></main></html>"
    )  # fmt: skip
    return "\n".join(parts) + "\n"


def _section(answer: ProblemReport) -> Iterable[str]:
    yield f"<h2>{_escape(answer.problem)}</h2>"
    tiles = [(format_number(answer.bound.value), "the bound")]
    if answer.bound.published is not None:
        tiles.append((format_number(answer.bound.published), "as published"))
    tiles += [(f"{format_number(one.ratio, '.3g')} times", one.algorithm) for one in answer.gaps]
    inside = "".join(
        f"<div><b>{_escape(value)}</b> {_escape(words)}</div>" for value, words in tiles
    )
    yield f"<div class=tiles>{inside}</div>"
    lines = "".join(f"<tr><th>{_escape(a)}<td>{_escape(b)}</tr>" for a, b in bound_facts(answer))
    yield f"<table class=facts>{lines}</table>"
    if answer.gaps:
        yield _table(ALGORITHM_HEAD, map(algorithm_cells, answer.gaps), range(1, 6))


def _checks(checks: Sequence[Check]) -> Iterable[str]:
    held = sum(one.holds for one in checks)
    colour = "good" if held == len(checks) else "bad"
    yield "<h2>Every inequality against channels that can be enumerated</h2>"
    yield f"<p><strong class={colour}>{held} of {len(checks)}</strong> checks hold.</p>"
    yield _table(CHECK_HEAD, map(check_cells, closest_checks(checks)), range(2, 5))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: range) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=number' if place in numbers else ''}>{_escape(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        )

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    top = f"<thead><tr>{line(head, 'th')}</tr></thead>"
    return f"<div class=wide><table>{top}<tbody>{body}</tbody></table></div>"


def _escape(words: object) -> str:
    return html.escape(escape_control(words))
