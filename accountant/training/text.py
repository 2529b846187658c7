"""A statement as a page of plain text, 80 columns wide."""

from __future__ import annotations

import textwrap

from accountant.plans.adjacency import SAMPLING_RELATIONS
from accountant.training import words
from accountant.training.facts import StatementFacts
from accountant.training.loaders import LOADERS, TITLES
from accountant.training.rows import RECORD, USER

WIDTH = 80
FIRST, CELL = 20, 20


def page_of(statement: StatementFacts) -> str:
    """Return the statement as text."""
    lines = ["DP-SGD privacy statement", "", *_filled(words.run_words(statement)), ""]
    lines += [f"    {line}" for line in words.cost_words(statement)]
    if statement.user_epsilon is not None:
        lines += [f"    {line}" for line in words.cost_words(statement, USER)]
    lines += ["", *_filled(words.interval_words(statement))]
    if statement.own_delta:
        lines += _filled("No delta was given: it is examples^-1.1, rounded down to one digit.")
    lines += _filled(words.attack_words(statement))
    lines += [""] * bool(words.warnings(statement))
    for warning in words.warnings(statement):
        lines += _filled(f"! {warning}", 2)
    lines += ["", "Epsilon of every loader at the same noise, length and delta (*: of this run)"]
    # fewer digits where lines get too long
    tables = [_table(statement, digits) for digits in (4, 3, 2, 1)]
    lines += ["", *next(filter(_fits, tables), tables[-1])]
    if statement.run.examples_per_user is None:
        lines += ["", *_filled("Users: no bound is possible without examples_per_user.")]
    lines.append("")
    for note in words.notes(statement):
        lines += _filled(note)
    lines += ["", "Assumptions"]
    for assumption in words.assumptions(statement):
        lines += _filled(f"- {assumption}", 2)
    return "\n".join(lines)


def _filled(text: str, indent: int = 0) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def _fits(lines: list[str]) -> bool:
    return max(map(len, lines)) <= WIDTH


def _table(statement: StatementFacts, digits: int) -> list[str]:
    """Return the rows of records, without and with microbatches, then those of users."""
    run_micro = statement.run.microbatching
    blocks = [("one record, plain", RECORD, False), ("with microbatches", RECORD, True)]
    if statement.run.examples_per_user is not None:
        blocks.append(("one user", USER, run_micro))
    lines: list[str] = []
    for name, unit, micro in blocks:
        heads = "".join(_cell(str(relation)) for relation in SAMPLING_RELATIONS)
        lines += ["", name.ljust(FIRST) + heads]
        for loader in LOADERS:
            is_own = loader == statement.run.loader and micro == run_micro
            text = f"{'*' if is_own else ' '} {TITLES[loader]}".ljust(FIRST)
            for relation in SAMPLING_RELATIONS:
                cost = statement.row(loader, unit=unit, relation=relation, microbatching=micro)
                text += _cell(words.interval(cost, digits))
            lines.append(text)
    return [line.rstrip() for line in lines[1:]]


def _cell(text: str) -> str:
    return f"{text:<{CELL - 1}} "
