"""The HTML page of the privacy statement on one run of DP-SGD.

It shows the epsilon of the run, what the same noise would cost under every other loader (the way in
which batches are drawn), and what must be true of the training code.  This file computes the bars,
tables and ranges; the template `training.html` places them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.metadata import version
from typing import final

from accountant.planning.interpretation import explanation
from accountant.plans.adjacency import SAMPLING_RELATIONS
from accountant.reports.html_document import csv_address, render
from accountant.reports.people_picture import Guesses
from accountant.reports.svg_axes import LogScale, padded_range
from accountant.training import words
from accountant.training.loaders import LOADERS, MEANINGS, TITLES
from accountant.training.rows import RECORD, USER, TrainingCost
from accountant.training.statement import COLUMNS, TrainingStatement


@final
@dataclass(frozen=True, slots=True)
class Bar:
    """One loader's bar on the logarithmic scale of epsilon, in percent of its length.

    The bar is dark up to ``sure``, the lower bound of epsilon, and pale from there up to
    ``possible``, the upper bound.  ``is_own`` says that the run itself used this loader.
    """

    loader: str
    text: str  # epsilon, written next to the bar
    sure: float
    possible: float
    is_own: bool


@final
@dataclass(frozen=True, slots=True)
class CostTable:
    """Epsilons of all loaders for one unit of privacy.

    Each neighbouring relation has one entry of ``heads``, and under each of them lie columns with
    the names ``below``.  A row is a loader's name, whether the run used it, and its texts.
    """

    name: str
    heads: tuple[str, ...]
    below: tuple[str, ...]
    rows: tuple[tuple[str, bool, tuple[str, ...]], ...]


def training_page(statement: TrainingStatement, command_line: str = "") -> str:
    """Return a statement as one HTML page, which asks no server for anything.

    Parameters
    ----------
    statement : TrainingStatement
        What `dp_sgd` made.
    command_line : str
        The command that makes the page again; "" for none.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from accountant import dp_sgd, training_page
    >>> page = training_page(dp_sgd(examples=100, batch=100, epochs=2, noise=2.0))
    >>> "shuffled passes" in page
    True
    """
    ends = (end for row in _own_rows(statement) for end in (row.lower, row.upper))
    low, high = padded_range(end for end in ends if math.isfinite(end))
    scale = LogScale(low / 2, high)  # low / 2: even the shortest bar has some length
    tables = [_table(statement, "One record", RECORD, (False, True))]
    if statement.run.examples_per_user is not None:
        name = f"One user of at most {statement.run.examples_per_user:,} records"
        tables.append(_table(statement, name, USER, (statement.run.microbatching,)))
    if math.isfinite(statement.epsilon):
        meaning = explanation(statement.epsilon, statement.delta, statement.relation)
    else:
        meaning = f"Nothing: there is no bound of epsilon ({statement.relation})."
    csv_rows = [COLUMNS, *([getattr(row, name) for name in COLUMNS] for row in statement.rows)]
    return render(
        "training.html", statement=statement, run=statement.run, words=words, title=TITLES,
        meaning=meaning, guesses=Guesses(statement.advantage), infinity=math.inf,
        bars=_bars(statement, scale), scale=scale, tables=tables, meanings=MEANINGS, user_unit=USER,
        own_costs=[statement.row(relation=relation) for relation in statement.relations],
        saved=csv_address(csv_rows), json_lines=statement.to_json().splitlines(),
        command_line=command_line, version=version("dp-attest"),
    )  # fmt: skip


def _own_rows(statement: TrainingStatement) -> list[TrainingCost]:
    """Return the cost under each loader, for the unit, relation and microbatching of the run."""
    return [statement.row(loader) for loader in LOADERS]


def _bars(statement: TrainingStatement, scale: LogScale) -> list[Bar]:
    def share(value: float) -> float:
        """Return the position of an epsilon on the scale, in percent from 0 to 100."""
        if value <= 0:
            return 0.0
        return 100 * min(max(scale.share(min(value, scale.high)), 0.0), 1.0)

    return [
        Bar(
            row.loader,
            words.interval(row),
            share(row.lower),
            share(row.upper),
            row.loader == statement.run.loader,
        )
        for row in _own_rows(statement)
    ]


def _table(
    statement: TrainingStatement, name: str, unit: str, columns: tuple[bool, ...]
) -> CostTable:
    """Return the table of a unit; ``columns`` say of each column whether it has microbatches."""

    def texts(loader: str) -> tuple[str, ...]:
        rows = (
            statement.row(loader, unit=unit, relation=relation, microbatching=micro)
            for relation in SAMPLING_RELATIONS
            for micro in columns
        )
        return tuple(map(words.interval, rows))

    heads = tuple(words.neighbours_words(unit, relation) for relation in SAMPLING_RELATIONS)
    below = tuple("microbatches" if micro else "plain" for micro in columns)
    rows = [
        (loader_name, loader_name == statement.run.loader, texts(loader_name))
        for loader_name in LOADERS
    ]
    return CostTable(name, heads, below, tuple(rows))
