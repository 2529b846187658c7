"""The report as one self-contained HTML page: no request to anywhere, no script."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import numpy as np

from audits.cases import Row
from audits.report.figure import profile_figure
from audits.report.story import PROFILE_HEAD, TITLES, facts, profile, profile_rows

STYLE = """
:root { color-scheme: light dark; --good: #1a7f37; --bad: #cf222e; --line: #8884 }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #ff7b72 } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100%; margin: 1rem 0 }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line) }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td:first-child { overflow-wrap: anywhere } .good { color: var(--good) } .bad { color: var(--bad) }
td:first-child { min-width: 11rem }
small { opacity: .8 }
svg { max-width: 42rem; font-size: 12px } svg text { fill: currentColor }
svg line { stroke: var(--line) } .band { fill: #58a6ff; opacity: .25 }
polyline { fill: none; stroke-width: 2 } polyline.mean { stroke: #58a6ff }
polyline.paid { stroke: var(--bad) } svg text.mean { fill: #58a6ff }
svg text.paid { fill: var(--bad) }
"""
HEAD = ("subject", "claimed epsilon", "delta", "exact", "at least", "verdict", "witness")


def to_html(rows: Sequence[Row], seed: int) -> str:
    """The rows as a page; every word that came from outside is escaped."""
    wrong = sum(not row.as_expected for row in rows)
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width,initial-scale=1'>",
        f"<title>dp-attest audit</title><style>{STYLE}</style><main><h1>dp-attest audit</h1>",
        f"<p>{len(rows) - wrong} of {len(rows)} subjects as expected. Verdicts hold together at "
        f"1 &minus; 10<sup>&minus;6</sup>. An audit falsifies or fails to; "
        f"<em>survived</em> proves nothing.</p>",
    ]
    for kind, title in TITLES.items():
        some = [row for row in rows if row.kind == kind]
        if some:
            parts += [f"<h2>{title}</h2>", _table(HEAD, map(_cells, some), numbers=range(1, 5))]
    for row in rows:
        if row.detail is not None:
            parts += [f"<h2>{html.escape(row.subject)}</h2>"]
            parts += [_table(("what", "value"), ([_text(a), _text(b)] for a, b in facts(row)))]
            parts.append(profile_figure(profile(row, np.linspace(0.0, 1.0, 41))))
            curve = ([_text(cell) for cell in cells] for cells in profile_rows(row))
            parts += [_table(PROFILE_HEAD, curve, numbers=range(4))]
    again = f"python -m audits --seed {seed}"
    parts.append(f"<p><small>Repeat with <code>{again}</code>.</small></p></main></html>\n")
    return "\n".join(parts)


def _cells(row: Row) -> list[str]:
    colour = "good" if row.as_expected else "bad"
    exact = "&ndash;" if row.exact_epsilon is None else f"{row.exact_epsilon:.4f}"
    return [
        _text(row.subject), f"{row.claim[0]:.4g}", f"{row.claim[1]:g}", exact,
        _bound(row),
        f"<strong class={colour}>{row.outcome.name.lower()}</strong>", _text(row.witness),
    ]  # fmt: skip


def _bound(row: Row) -> str:
    if row.epsilon_lower is None:
        return "&ndash;"
    return f"{row.epsilon_lower:.3f} <small>({100 * row.confidence:.6g} %)</small>"


def _table(head: Sequence[str], rows: Iterable[list[str]], numbers: range = range(0)) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        sides = (" class=number" if i in numbers else "" for i in range(len(cells)))
        return "<tr>" + "".join(
            f"<{tag}{side}>{cell}</{tag}>" for side, cell in zip(sides, cells, strict=True)
        )

    body = "".join(line(cells, "td") for cells in rows)
    top = f"<thead>{line(head, 'th')}</thead>"
    return f"<div class=wide><table>{top}<tbody>{body}</tbody></table></div>"


def _text(words: str) -> str:
    return html.escape(words)
