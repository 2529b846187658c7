"""The statement of a training run: what it costs, under the loader it had and under others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

from accountant.accountants.attack_rates import advantage, true_positive_rate
from accountant.domains import POSITIVE, POSITIVE_DELTA
from accountant.formatting import format_upper
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation
from accountant.plans.plan import Plan
from accountant.table_display import Table, TableDisplay
from accountant.training.document import ARGUMENTS, check_same, read_document, to_text
from accountant.training.rows import RECORD, USER, TrainingCost, rows_of
from accountant.training.run import TrainingRun
from accountant.training.schemes import record_scheme
from accountant.training.text import page_of

FALSE_POSITIVES = 1e-3
COLUMNS = ("loader", "unit", "relation", "microbatching", "lower", "upper", "note")


@final
@dataclass(frozen=True)
class TrainingStatement(TableDisplay):
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
        "add-remove" or "replace-one": the neighbours of `epsilon` and `plan`.
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
        `accountant.advantage`, under the run's own loader.
    found_records : float
        The share of records in the data that an attacker finds, at most, who takes one in a
        thousand others for one of them: `accountant.true_positive_rate`.

    Examples
    --------
    >>> from accountant import dp_sgd
    >>> found = dp_sgd(examples=1000, batch=100, epochs=2, noise=2.0, delta=1e-4)
    >>> round(found.epsilon, 4), found.plan
    (1.3025, Repeat(part=PoissonSampled(part=GaussianLoss(mu=0.5), rate=0.1), count=20))
    """

    run: TrainingRun
    noise: float
    delta: float
    relation: Adjacency
    rows: tuple[TrainingCost, ...]
    found: str = ""
    target: float | None = None
    own_delta: bool = False
    advantage: float = 1.0
    found_records: float = 1.0

    def row(
        self,
        loader: str | None = None,
        *,
        unit: str = RECORD,
        relation: str | None = None,
        microbatching: bool | None = None,
    ) -> TrainingCost:
        """Return what the run costs under a loader; what is left out is as in the run.

        Parameters
        ----------
        loader : str, optional
            One of `LOADERS`.
        unit : str
            "record" or "user".
        relation : str, optional
            "add-remove" or "replace-one".
        microbatching : bool, optional
            Whether gradients are averaged before they are clipped.

        Returns
        -------
        TrainingCost
            With both ends of the interval around the true epsilon.

        Raises
        ------
        ParameterError
            If the statement has no such row.
        """
        from accountant.errors import ParameterError
        from accountant.training.loaders import check_loader

        wanted = (
            self.run.loader if loader is None else check_loader("loader", loader),
            unit,
            self.relation if relation is None else relation,
            self.run.microbatching if microbatching is None else microbatching,
        )
        for one in self.rows:
            if (one.loader, one.unit, one.relation, one.microbatching) == wanted:
                return one
        allowed = (
            "a row of the statement: users need examples_per_user, and the run's microbatching"
        )
        raise ParameterError("row", wanted, allowed)

    @property
    def epsilon(self) -> float:
        """What a record pays under the run's own loader: an upper bound."""
        return self.row().upper

    @property
    def lower(self) -> float:
        """What a record pays at least, for the worst data."""
        return self.row().lower

    @property
    def user_epsilon(self) -> float | None:
        """What a user pays under the run's own loader; None without ``examples_per_user``."""
        return None if self.run.examples_per_user is None else self.row(unit=USER).upper

    @property
    def plan(self) -> Plan:
        """The plan that says what the run releases, for one record."""
        run, micro = self.run, self.run.microbatching
        found = record_scheme(run, self.noise, run.loader, self.relation, microbatching=micro)
        return found.plan

    def __str__(self) -> str:
        return page_of(self)

    def __repr__(self) -> str:
        upper = format_upper(self.epsilon, 6)
        return f"<TrainingStatement: epsilon {upper} at delta {self.delta:g}, {self.run.loader}>"

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
        read = read_document(text)
        run, found = read["run"], read["found"]
        facts = {name: run[name] for name in ARGUMENTS}
        again = statement_of(TrainingRun(**facts), run["noise"], run["delta"], run["relation"])
        made = replace(
            again, found=found["what"], target=found["target"], own_delta=found["default_delta"]
        )
        check_same(made, read)
        return made

    def _table(self) -> Table:
        rows = [[getattr(one, name) for name in COLUMNS] for one in self.rows]
        named = self.row()
        caption = (
            f"epsilon {named.upper:.6g} at delta {self.delta:g}, {self.run.loader} loader; "
            "epsilon of other loaders at the same noise"
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
    known = check_relation("relation", relation, RECORD_RELATIONS)
    used, at = POSITIVE.check("noise", noise), POSITIVE_DELTA.check("delta", delta)
    rows = rows_of(run, used, at, on_row)
    scheme = record_scheme(run, used, run.loader, known, microbatching=run.microbatching)
    best = min(advantage(plan).upper for plan in scheme.above)
    found = min(true_positive_rate(plan, FALSE_POSITIVES).upper for plan in scheme.above)
    return TrainingStatement(run, used, at, known, rows, advantage=best, found_records=found)
