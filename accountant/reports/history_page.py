"""The page of a ledger: what was spent of a data set's budget, when, by whom, and what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accountant.book.history import Line, Status
from accountant.formatting import (
    escape_html,
    format_lower,
    format_remaining,
    format_short,
    format_upper,
)
from accountant.planning.interpretation import explanation
from accountant.reports.html_document import html_page
from accountant.reports.html_tables import scrollable
from accountant.reports.ledger_figures import releases_by_kind, spending_figure
from accountant.reports.svg_figures import budget_bar

MAX_SHOWN_LINES = 1000  # the last lines; more make a page that no browser scrolls


def history_page(status: Status, lines: Sequence[Line], book: str, command_line: str = "") -> str:
    """The page as HTML; ``book`` is what the ledger is called, ``command_line`` what makes it
    again.
    """
    body = [
        *_head(status, lines, book), *_meaning(status), *_spending(status, lines),
        *_kinds(status, lines), *_lines(lines), *_foot(command_line),
    ]  # fmt: skip
    return html_page(f"{status.name}: privacy spent", body)


def _head(status: Status, lines: Sequence[Line], book: str) -> Iterator[str]:
    budget, share = status.budget, min(100 * status.total / status.limit, 100.0)
    left = format_remaining(status.limit, status.total)
    what = "of the budget" if status.counts == "epsilon" else f"of the budget's {status.counts}"
    releases = sum(line.kind != "plan" for line in lines)
    tiles = [
        ("budget", format_short(budget.epsilon), f"epsilon at delta {format_short(budget.delta)}"),
        ("spent", format_upper(status.epsilon), f"epsilon, in {releases:,} releases"),
        ("used", f"{format_upper(share, 3)} %", f"{what}, {format_upper(status.total)}"),
        ("what remains", left, f"{status.counts} of {format_lower(status.limit)}"),
    ]
    yield f"<header><p class=over-title>Privacy spent, in {escape_html(book)}</p>"
    yield f"<h1>{escape_html(status.name)}</h1>"
    told = "for each of its users" if status.users else "for all of it"
    yield (
        f"<p>Protects {escape_html(status.unit)}; opened {_when(status.opened)}, {told}; "
        f"counted as {escape_html(status.notion)}.</p></header><div class=tiles>"
    )
    for name, value, unit in tiles:
        yield f"<div><span>{name}</span><b>{value}</b><span>{escape_html(unit)}</span></div>"
    yield f"</div>{budget_bar(status.total, status.limit)}"
    if any(line.seeded for line in lines):
        yield (
            "<p class=bad><strong>Some releases were made with a seed: whoever knows it can take "
            "their noise off. They protect nobody.</strong></p>"
        )


def _meaning(status: Status) -> Iterator[str]:
    words = explanation(status.budget.epsilon, status.budget.delta, status.relation)
    yield "<section aria-labelledby=means><h2 id=means>What it means for a person in the data</h2>"
    yield f"<p class=meaning>{escape_html(words)}</p>"
    yield (
        "<p class=note>This is the budget's guarantee: it holds however the answers so far choose "
        "what is asked next.</p></section>"
    )


def _spending(status: Status, lines: Sequence[Line]) -> Iterator[str]:
    yield "<section aria-labelledby=time><h2 id=time>Spent over time</h2>"
    yield spending_figure(status, lines) if lines else "<p>Nothing was spent.</p>"
    yield "</section>"


def _kinds(status: Status, lines: Sequence[Line]) -> Iterator[str]:
    found = releases_by_kind(status, lines)
    if not found:
        return
    head = "".join(
        f"<th scope=col class=number>{words}</th>"
        for words in ("asked", "answered", "failed", "room for more")
    )
    rows = "".join(
        f"<tr><th scope=row><code>{escape_html(one.what)}</code></th><td "
        f"class=number>{one.requested:,}</td>"
        f"<td class=number>{one.answered:,}</td><td class=number>{one.failed:,}</td>"
        f"<td class=number>{'–' if one.capacity is None else f'{one.capacity:,}'}</td></tr>"
        for one in found
    )
    caption = (
        "What failed, or was reserved and never answered, is spent all the same. Room for more: "
        "releases of that kind alone that what remains would pay for."
    )
    yield "<section aria-labelledby=kinds><h2 id=kinds>By kind</h2>"
    yield scrollable(
        f"<table class=lines><caption>{caption}</caption><thead><tr><th scope=col>release</th>"
        f"{head}</tr></thead><tbody>{rows}</tbody></table>",
        "table of kinds",
    )
    yield "</section>"


def _lines(lines: Sequence[Line]) -> Iterator[str]:
    head = "".join(
        f"<th scope=col{' class=number' if number else ''}>{words}</th>"
        for words, number in (
            ("entry", True), ("when (UTC)", False), ("who", False), ("release", False),
            ("users", True), ("epsilon so far", True), ("outcome", False),
        )
    )  # fmt: skip
    rows = "".join(map(_row, reversed(lines[-MAX_SHOWN_LINES:])))
    beyond = (
        f"The last {MAX_SHOWN_LINES:,} of {len(lines):,}, latest"
        if len(lines) > MAX_SHOWN_LINES
        else "Latest"
    )
    caption = f"{beyond} first. Epsilon so far is what was spent after it."
    yield "<section aria-labelledby=entries><h2 id=entries>Every release</h2>"
    yield scrollable(
        f"<table class=entries><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table>",
        "table of releases",
    )
    yield "</section>"


def _row(line: Line) -> str:
    label = f"<b>{escape_html(line.label)}</b> " if line.label else ""
    who = "all" if line.who is None else f"{line.who:,}"
    seeded = " <strong class=bad>seeded</strong>" if line.seeded else ""
    colour = " class=bad" if line.outcome == "failed" else ""
    return (
        f"<tr><td class=number>{line.seq:,}</td><td class=when>{_when(line.time)}</td>"
        f"<td>{escape_html(line.author)}</td><td>{label}<code>{escape_html(line.what)}</code></td>"
        f"<td class=number>{who}</td><td class=number>{format_upper(line.epsilon)}</td>"
        f"<td><span{colour}>{escape_html(line.outcome)}</span>{seeded}</td></tr>"
    )


def _when(time: str) -> str:
    return escape_html(time[:19].replace("T", " "))


def _foot(command_line: str) -> Iterator[str]:
    made = f" Made with <code>{escape_html(command_line)}</code>." if command_line else ""
    yield (
        "<footer><p>Epsilons are upper bounds, rounded up; they say what a fixed plan of that cost "
        "has. No answer and no record is on this page; it asks nothing of any server.</p>"
        f"<p>Whether the ledger itself was tampered with is for <code>verify</code> to say.{made}"
        "</p></footer>"
    )
