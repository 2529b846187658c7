"""The statement of a training run: what it costs, under the loader it had and under others."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

from accountant.accountants.attack_rates import advantage, true_positive_rate
from accountant.domains import POSITIVE, POSITIVE_DELTA
from accountant.formatting import format_upper
from accountant.numerics.rounding import round_up
from accountant.plans.adjacency import SAMPLING_RELATIONS, check_relation
from accountant.table_display import Table
from accountant.training import words
from accountant.training.document import ARGUMENTS, check_same, read_document, to_text
from accountant.training.facts import StatementFacts
from accountant.training.loaders import LOADERS, TITLES
from accountant.training.rows import RECORD, USER, rows_of
from accountant.training.run import TrainingRun
from accountant.training.schemes import record_scheme

FALSE_POSITIVES = 1e-3
WIDTH, CELL = 80, 20  # columns of the page of text, and of a cell of its tables
COLUMNS = ("loader", "unit", "relation", "microbatching", "lower", "upper", "note")


@final
@dataclass(frozen=True)
class TrainingStatement(StatementFacts):
    """What a run of DP-SGD costs, in a form that a person can file.  Prints a page of text.

    `dp_sgd` makes it.

    Parameters
    ----------
    run : TrainingRun
        Records, batches, steps and the loader.
    noise : float
        The noise multiplier: deviation of the noise over the clipping norm.
    delta : float
        At which epsilon is stated.
    relation : str
        "add-remove", "zero-out" or "replace-one": the neighbours of `epsilon` and `plan`.
    rows : tuple of TrainingCost
        What every loader costs.
    found : str
        "noise" or "epochs" where that was found from a target; "" where all was given.
    target : float, optional
        The epsilon aimed at.
    own_delta : bool
        Whether delta is the default of `dp_sgd`.
    advantage : float
        How much more often an attacker is right than wrong about a record, at most: that of
        `accountant.advantage`, under the run's own loader; what epsilon and delta admit, where
        batches are truncated.
    found_records : float
        The share of records in the data that an attacker finds, at most, who takes one in a
        thousand others for one of them: `accountant.true_positive_rate`, or the same.

    Examples
    --------
    >>> from accountant import dp_sgd
    >>> statement = dp_sgd(examples=100, batch=100, epochs=2, noise=2.0, delta=1e-4)
    >>> round(statement.epsilon, 4), statement.plan.count, statement.plan.part.rate
    (2.5325, 2, 1.0)
    """

    def __str__(self) -> str:
        lines = ["DP-SGD privacy statement", "", *_filled(words.run_words(self)), ""]
        lines += [f"    {line}" for line in words.cost_words(self)]
        if self.user_epsilon is not None:
            lines += [f"    {line}" for line in words.cost_words(self, USER)]
        lines += ["", *_filled(words.interval_words(self))]
        if self.own_delta:
            lines += _filled("No delta was given: it is examples^-1.1, rounded down to one digit.")
        lines += _filled(words.attack_words(self))
        lines += [""] * bool(words.warnings(self))
        for warning in words.warnings(self):
            lines += _filled(f"! {warning}", 2)
        lines += [
            "",
            "Epsilon of every loader at the same noise, length and delta (*: of this run)",
        ]
        # fewer digits where lines get too long
        tables = [_epsilon_table(self, digits) for digits in (4, 3, 2, 1)]
        lines += [
            "",
            *next((table for table in tables if max(map(len, table)) <= WIDTH), tables[-1]),
        ]
        if self.run.examples_per_user is None:
            lines += ["", *_filled("Users: no bound is possible without examples_per_user.")]
        lines.append("")
        for note in words.notes(self):
            lines += _filled(note)
        lines += ["", "Assumptions"]
        for assumption in words.assumptions(self):
            lines += _filled(f"- {assumption}", 2)
        return "\n".join(lines)

    def __repr__(self) -> str:
        upper = format_upper(self.epsilon, 6)
        at = f"at delta {self.delta:g}, {self.relation}"
        return f"<TrainingStatement: epsilon {upper} {at}, {self.run.loader}>"

    def to_json(self) -> str:
        """Return the statement as JSON, its assumptions and its plan within.

        Returns
        -------
        str
            Infinite epsilons are null; `from_json` reads it.
        """
        return to_text(self)

    @classmethod
    def from_json(cls, text: str) -> TrainingStatement:
        """Return the statement of a document, computed again from what it says of the run.

        Parameters
        ----------
        text : str
            What `to_json` wrote.

        Returns
        -------
        TrainingStatement
            The same statement; it takes as long as the first time.

        Raises
        ------
        ParameterError
            If the document is no statement, or a number is not what the run costs: by more than
            a thousandth, which other versions may differ by.
        """
        document = read_document(text)
        run, solved = document["run"], document["found"]
        facts = {name: run[name] for name in ARGUMENTS}
        again = statement_of(TrainingRun(**facts), run["noise"], run["delta"], run["relation"])
        statement = replace(
            again, found=solved["what"], target=solved["target"], own_delta=solved["default_delta"]
        )
        check_same(statement, document)
        return statement

    def _table(self) -> Table:
        rows = [[getattr(row, name) for name in COLUMNS] for row in self.rows]
        named = self.row()
        caption = (
            f"epsilon {format_upper(named.upper, 6)} at delta {self.delta:g}, {self.relation}, "
            f"{self.run.loader} loader; epsilon of other loaders at the same noise"
        )
        return Table(COLUMNS, rows, caption, upper=("upper",), lower=("lower",))


def statement_of(
    run: TrainingRun,
    noise: object,
    delta: object,
    relation: object,
    on_row: Callable[[], None] = lambda: None,
) -> TrainingStatement:
    """Return the statement of a run whose noise and delta are given."""
    adjacency = check_relation("relation", relation, SAMPLING_RELATIONS)
    noise_multiplier, at = POSITIVE.check("noise", noise), POSITIVE_DELTA.check("delta", delta)
    statement = TrainingStatement(
        run, noise_multiplier, at, adjacency, rows_of(run, noise_multiplier, at, on_row)
    )
    if run.loader == "truncated_poisson":  # its trade-off curve takes long
        best, power = _rates_of_epsilon(statement.row().upper, at)
    else:
        scheme = record_scheme(
            run, noise_multiplier, run.loader, adjacency, microbatching=run.microbatching
        )
        best = min(advantage(plan).upper for plan in scheme.above)
        power = min(true_positive_rate(plan, FALSE_POSITIVES).upper for plan in scheme.above)
    return replace(statement, advantage=best, found_records=power)


def _rates_of_epsilon(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the advantage and the power that (epsilon, delta) admits at most, rounded up.

    Kairouz, Oh & Viswanath (2015): f(x) >= 1 - delta - e^eps x and >= e^-eps (1 - delta - x), so
    the advantage is at most (e^eps - 1 + 2 delta) / (e^eps + 1).
    """
    fall = math.exp(-epsilon)  # e^eps may be no float
    best = (1 - fall + 2 * delta * fall) / (1 + fall)
    remaining_mass = 1 - delta - FALSE_POSITIVES
    power = 1 - remaining_mass * fall
    if epsilon < 50:
        power = min(power, delta + math.exp(epsilon) * FALSE_POSITIVES)
    return min(round_up(best), 1.0), min(round_up(power), 1.0)


def _filled(text: str, indent: int = 0) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def _epsilon_table(statement: StatementFacts, digits: int) -> list[str]:
    """Return the rows of records, without and with microbatches, then those of users."""
    run_micro = statement.run.microbatching
    blocks = [("one record, plain", RECORD, False), ("with microbatches", RECORD, True)]
    if statement.run.examples_per_user is not None:
        blocks.append(("one user", USER, run_micro))
    lines: list[str] = []
    for name, unit, micro in blocks:
        lines += ["", name.ljust(CELL) + "".join(str(r).ljust(CELL) for r in SAMPLING_RELATIONS)]
        for loader in LOADERS:
            is_own = loader == statement.run.loader and micro == run_micro
            text = f"{'*' if is_own else ' '} {TITLES[loader]}".ljust(CELL)
            for relation in SAMPLING_RELATIONS:
                cost = statement.row(loader, unit=unit, relation=relation, microbatching=micro)
                text += f"{words.interval(cost, digits):<{CELL - 1}} "
            lines.append(text)
    return [line.rstrip() for line in lines[1:]]
