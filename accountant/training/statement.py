"""The statement of a DP-SGD run: its epsilon at a delta, under its own data loader and others.

`statement_of` computes it from the run, the noise multiplier and delta.  `TrainingStatement` prints
it as a page of text, writes it as JSON, and reads the JSON by computing every number again.

References: Kairouz, Oh & Viswanath (2015) for the attack rates that (epsilon, delta) admits.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

from accountant.accountants.attack_rates import advantage, true_positive_rate
from accountant.domains import POSITIVE, POSITIVE_DELTA
from accountant.formatting import format_upper, short_upper
from accountant.numerics.rounding import round_up
from accountant.plans.adjacency import SAMPLING_RELATIONS, check_relation
from accountant.table_display import Table
from accountant.training import words
from accountant.training.document import ARGUMENTS, check_same, read_document, to_text
from accountant.training.facts import StatementFacts
from accountant.training.loaders import LOADERS, TITLES
from accountant.training.rows import RECORD, USER, RunCosts
from accountant.training.run import TrainingRun
from accountant.training.schemes import record_scheme

FALSE_POSITIVES = 1e-3  # the false-positive rate at which `found_records` is stated
WIDTH, CELL = 80, 20  # characters in a line of the page of text, and in a cell of its tables
# Columns of a statement's table in a notebook: attributes of `TrainingCost`.
COLUMNS = ("loader", "unit", "relation", "microbatching", "lower", "upper", "note")


@final
@dataclass(frozen=True)
class TrainingStatement(StatementFacts):
    """What a run of DP-SGD costs, in a form that a person can file.  Prints ten lines.

    `dp_sgd` makes it.

    Parameters
    ----------
    run : TrainingRun
        Records, batches, steps and the loader.
    noise : float
        The noise multiplier: deviation of the noise over the clipping norm.
    delta : float
        The delta at which epsilon is stated.
    relation : str
        "add-remove", "zero-out" or "replace-one": the neighbours of `epsilon` and `plan`.
    rows : RunCosts
        What the run costs under every loader, relation and unit of privacy: a sequence of
        `TrainingCost`, each of which is computed when it is asked for.
    found : str
        "noise" or "epochs" if that was computed from a target epsilon; "" if both were given.
    target : float, optional
        The target epsilon.
    own_delta : bool
        Whether delta is the default of `dp_sgd`.
    advantage : float
        Upper bound on the true-positive rate minus the false-positive rate of an attacker who
        decides whether a record is in the data: `accountant.advantage` of the run under its own
        loader; where batches are truncated, the largest that epsilon and delta admit.
    found_records : float
        Upper bound on the true-positive rate of an attacker whose false-positive rate is one in a
        thousand: `accountant.true_positive_rate` of the run under its own loader; where batches are
        truncated, the largest rate that epsilon and delta admit.

    Examples
    --------
    >>> from accountant import dp_sgd
    >>> statement = dp_sgd(examples=100, batch=100, epochs=2, noise=2.0, delta=1e-4)
    >>> round(statement.epsilon, 4), statement.plan.count, statement.plan.part.rate
    (2.5325, 2, 1.0)
    """

    def __str__(self) -> str:
        return self.text()

    def text(self, all_loaders: bool = False) -> str:
        """Return the statement as text: about ten lines, or a page.

        Parameters
        ----------
        all_loaders : bool
            Whether to give the whole page: with what must be true of the code, and with the table
            of all loaders, which takes seconds to compute.

        Returns
        -------
        str
            Lines of at most 80 characters.
        """
        costs = [f"    {line}" for line in words.cost_words(self)]
        if self.user_epsilon is not None:
            user_costs = words.cost_words(self, USER)
            costs += [f"    {line}" for line in (user_costs if all_loaders else user_costs[:1])]
        if not all_loaders:
            run_sentence, sentences = words.short_words(self)
            lines = [*_filled(run_sentence), *costs]
            for sentence in sentences:
                lines += _filled(sentence, 2)
            return "\n".join(lines)
        lines = ["DP-SGD privacy statement", "", *_filled(words.run_words(self)), "", *costs]
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
        # The table has the largest number of digits, from 4 to 1, that fits the page.
        tables = [_epsilon_table(self, digits) for digits in (4, 3, 2, 1)]
        fitting = (table for table in tables if max(map(len, table)) <= WIDTH)
        lines += ["", *next(fitting, tables[-1])]
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
        at = f"at delta {short_upper(self.delta)}, {self.relation}"
        return f"<TrainingStatement: epsilon {upper} {at}, {self.run.loader}>"

    def to_json(self) -> str:
        """Return the statement as JSON, with its assumptions and its plan.

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
            The same statement; computing it takes as long as the first time.

        Raises
        ------
        ParameterError
            If the document is no statement, or if a number of it differs from what the run costs
            by more than a thousandth of it.  (Numbers of other versions may differ by less.)
        """
        document = read_document(text)
        run, target_facts = document["run"], document["found"]
        facts = {name: run[name] for name in ARGUMENTS}
        recomputed = statement_of(TrainingRun(**facts), run["noise"], run["delta"], run["relation"])
        statement = replace(
            recomputed,
            found=target_facts["what"],
            target=target_facts["target"],
            own_delta=target_facts["default_delta"],
        )
        check_same(statement, document)
        return statement

    def _table(self) -> Table:
        rows = [[getattr(row, name) for name in COLUMNS] for row in self.rows]
        own_row = self.row()
        caption = (
            f"epsilon {format_upper(own_row.upper, 6)} at delta {short_upper(self.delta)}, "
            f"{self.relation}, {self.run.loader} loader; epsilon of other loaders at the same noise"
        )
        return Table(COLUMNS, rows, caption, upper=("upper",), lower=("lower",))


def statement_of(
    run: TrainingRun,
    noise: object,
    delta: object,
    relation: object,
    on_row: Callable[[], None] = lambda: None,
) -> TrainingStatement:
    """Return the statement of a run whose noise and delta are given.

    ``on_row`` is called whenever a row is computed, to show progress.
    """
    adjacency = check_relation("relation", relation, SAMPLING_RELATIONS)
    noise_multiplier, checked_delta = (
        POSITIVE.check("noise", noise),
        POSITIVE_DELTA.check("delta", delta),
    )
    statement = TrainingStatement(
        run=run,
        noise=noise_multiplier,
        delta=checked_delta,
        relation=adjacency,
        rows=RunCosts(run, noise_multiplier, checked_delta, on_row),
    )
    if run.loader == "truncated_poisson":  # Its trade-off curve would take long.
        advantage_upper, power_upper = rates_of_epsilon(statement.row().upper, checked_delta)
    else:
        # Each plan above costs at least as much as the run, so the least of their rates is a bound.
        scheme = record_scheme(
            run, noise_multiplier, run.loader, adjacency, microbatching=run.microbatching
        )
        # Of one record some plan always is above: without a theorem, one that reveals it.
        advantage_upper = min(advantage(plan).upper for plan in scheme.above)
        power_upper = min(true_positive_rate(plan, FALSE_POSITIVES).upper for plan in scheme.above)
    return replace(statement, advantage=advantage_upper, found_records=power_upper)


def rates_of_epsilon(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the largest advantage and power of a test that (epsilon, delta) admits, rounded up.

    Let f(x) be the least false-negative rate at the false-positive rate x, and a the rate
    FALSE_POSITIVES.  By Kairouz, Oh & Viswanath (2015),

        f(x) >= max(1 - delta - e^eps x, e^-eps (1 - delta - x)),
        advantage = max over x of 1 - x - f(x) <= (e^eps - 1 + 2 delta) / (e^eps + 1),
        power = 1 - f(a) <= min(delta + e^eps a, 1 - e^-eps (1 - delta - a)).
    """
    # Numerator and denominator are multiplied by e^-eps, since e^eps may overflow.  1 - e^-eps is
    # computed by itself, so that nothing cancels: each result errs by less than 4 ULP.
    exp_minus_epsilon, one_minus_exp = math.exp(-epsilon), -math.expm1(-epsilon)
    advantage_upper = (one_minus_exp + 2 * delta * exp_minus_epsilon) / (1 + exp_minus_epsilon)
    power_upper = one_minus_exp + (delta + FALSE_POSITIVES) * exp_minus_epsilon
    if epsilon < 50:  # Beyond, e^eps a is far above 1, and the other bound is the smaller one.
        power_upper = min(power_upper, delta + math.exp(epsilon) * FALSE_POSITIVES)
    return min(round_up(advantage_upper), 1.0), min(round_up(power_upper), 1.0)


def _filled(text: str, indent: int = 0) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def _epsilon_table(statement: StatementFacts, digits: int) -> list[str]:
    """Return the lines of the table of epsilons: a row for each loader, a column for each relation.

    It has a block for one record without microbatches, one with them, and one for a user if the
    number of a user's examples is known.  A star marks the loader of the run.
    """
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
