"""A statement as a page of plain text, 80 columns wide."""

from __future__ import annotations

import textwrap

from accountant.plans.adjacency import RECORD_RELATIONS
from accountant.training import words
from accountant.training.facts import StatementFacts
from accountant.training.loaders import LOADERS, TITLES
from accountant.training.rows import RECORD, USER

WIDTH = 80
FIRST, CELL = 20, 15


def page_of(statement: StatementFacts) -> str:
    """Return the statement as text."""
    lines = ["DP-SGD privacy statement", "", *_filled(words.run_words(statement)), ""]
    lines.append(f"    {words.cost_words(statement)}")
    if statement.user_epsilon is not None:
        lines.append(f"    {words.cost_words(statement, USER)}")
    lines += ["", *_filled(words.interval_words(statement))]
    if statement.own_delta:
        lines += _filled("No delta was given: it is examples^-1.1, rounded down to one digit.")
    lines += _filled(words.attack_words(statement))
    for one in words.warnings(statement):
        lines += ["", *_filled(f"! {one}", 2)]
    lines += ["", "Epsilon of every loader at the same noise, length and delta (*: of this run)"]
    tables = [_table(statement, digits) for digits in (4, 3, 2, 1)]  # as there is room for
    lines += ["", *next(filter(_fits, tables), tables[-1])]
    if statement.run.examples_per_user is None:
        lines += ["", *_filled("Users: no bound is possible without examples_per_user.")]
    lines.append("")
    for one in words.notes(statement):
        lines += _filled(one)
    lines += ["", "Assumptions"]
    for one in words.assumptions(statement):
        lines += _filled(f"- {one}", 2)
    return "\n".join(lines)


def _filled(text: str, indent: int = 0) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def _fits(lines: list[str]) -> bool:
    return max(map(len, lines)) <= WIDTH


def _table(statement: StatementFacts, digits: int) -> list[str]:
    """Return the rows of records, then those of users."""
    cells = [(relation, micro) for relation in RECORD_RELATIONS for micro in (False, True)]
    heads = [words.DIFFERENCES[RECORD, relation] for relation in RECORD_RELATIONS]
    lines = [
        " " * FIRST + "".join(f"{head:<{2 * CELL}}" for head in heads).rstrip(),
        f"{'':<{FIRST}}" + "".join(f"{'microbatches' if m else 'plain':<{CELL}}" for _, m in cells),
    ]
    for loader in LOADERS:
        text = _named(statement, loader)
        for relation, micro in cells:
            one = statement.row(loader, relation=relation, microbatching=micro)
            text += _cell(words.interval(one, digits), CELL)
        lines.append(text)
    if statement.run.examples_per_user is not None:
        heads = [words.DIFFERENCES[USER, relation] for relation in RECORD_RELATIONS]
        lines += ["", " " * FIRST + "".join(f"{head:<{2 * CELL}}" for head in heads)]
        for loader in LOADERS:
            text = _named(statement, loader)
            for relation in RECORD_RELATIONS:
                one = statement.row(loader, unit=USER, relation=relation)
                text += _cell(words.interval(one, digits), 2 * CELL)
            lines.append(text)
    return [line.rstrip() for line in lines]


def _named(statement: StatementFacts, loader: str) -> str:
    mark = "*" if loader == statement.run.loader else " "
    return f"{mark} {TITLES[loader]}".ljust(FIRST)


def _cell(text: str, width: int) -> str:
    return f"{text:<{width - 1}} "
