"""The facts of a statement: what its text, its JSON and its page are made of."""

from __future__ import annotations

from dataclasses import dataclass

from accountant.errors import ParameterError
from accountant.plans.adjacency import SAMPLING_RELATIONS, Adjacency
from accountant.plans.plan import Plan
from accountant.table_display import TableDisplay
from accountant.training.loaders import check_loader
from accountant.training.rows import RECORD, USER, RunCosts, TrainingCost
from accountant.training.run import TrainingRun
from accountant.training.schemes import record_scheme


@dataclass(frozen=True)
class StatementFacts(TableDisplay):
    """What a run costs, by rows.

    `TrainingStatement` adds the forms in which a person reads it.

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
        loader; where batches are truncated, the largest advantage that epsilon and delta admit.
    found_records : float
        Upper bound on the true-positive rate of an attacker whose false-positive rate is one in a
        thousand: `accountant.true_positive_rate` of the run under its own loader; where batches are
        truncated, the largest rate that epsilon and delta admit.
    """

    run: TrainingRun
    noise: float
    delta: float
    relation: Adjacency
    rows: RunCosts
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
            "add-remove", "zero-out" or "replace-one".
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
        key = (
            self.run.loader if loader is None else check_loader("loader", loader),
            unit,
            self.relation if relation is None else relation,
            self.run.microbatching if microbatching is None else microbatching,
        )
        for known_key in self.rows.row_keys():
            if key == known_key:
                return self.rows.row(*known_key)
        allowed = (
            "a row of the statement: users need examples_per_user, and the run's microbatching"
        )
        raise ParameterError("row", key, allowed)

    @property
    def relations(self) -> tuple[Adjacency, ...]:
        """The neighbours of all rows, those of `epsilon` first."""
        others = (relation for relation in SAMPLING_RELATIONS if relation is not self.relation)
        return (self.relation, *others)

    @property
    def epsilon(self) -> float:
        """What a record pays under the run's own loader and relation: an upper bound."""
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
        scheme = record_scheme(run, self.noise, run.loader, self.relation, microbatching=micro)
        return scheme.plan
