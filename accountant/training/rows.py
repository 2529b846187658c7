"""The rows of a statement: what every loader costs, for every unit of privacy.

A statement says what a run of DP-SGD costs.  A loader is the way in which batches are made, the
unit of privacy is a record or a user, and a row is for one relation of neighbours.

A *scheme* (`accountant.training.schemes`) has the plans that bound one row: each of its plans
``above`` costs at least as much as the run, each ``below`` at most as much; its ``note`` says why
the two differ, or why nothing bounds the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import final, overload

from accountant.accountants.rdp import RDP
from accountant.accountants.tight import Tight
from accountant.plans.adjacency import SAMPLING_RELATIONS, Adjacency
from accountant.plans.plan import Plan
from accountant.training.loaders import INDEPENDENT, LOADERS, PASSES
from accountant.training.run import TrainingRun
from accountant.training.schemes import ADD_REMOVE, UNBOUNDED, ZERO_OUT, certified, record_scheme
from accountant.training.users import is_long, user_scheme

RECORD, USER = "record", "user"
# Relative widths of intervals around epsilon, which take longer where they are narrower: FINE for
# the upper bound of the run itself, COARSE for other loaders, LOOSE for plans far above the run.
FINE, COARSE, LOOSE = 1e-6, 1e-4, 1e-3


@final
@dataclass(frozen=True, slots=True)
class TrainingCost:
    """What a run costs under one loader: epsilon lies between ``lower`` and ``upper``.

    Parameters
    ----------
    loader : str
        One of `LOADERS`.
    unit : str
        "record" or "user": whose data neighbours differ by.
    relation : str
        "add-remove", "zero-out" or "replace-one".
    microbatching : bool
        Whether gradients are averaged in microbatches before they are clipped.
    lower : float
        Lower end, rounded down; 0 where none is known.
    upper : float
        Upper end, rounded up; infinite where no bound is known.
    note : str
        "" where the ends meet.  Why they differ: "group", the upper end is by group privacy;
        "bound", it is by another inequality, or by the lesser of two.  Or why
        there is no bound: "none", as no theorem is known; "batches", as a pass without the record
        has a batch less; "microbatches", as a removed record changes the microbatches of others.
    """

    loader: str
    unit: str
    relation: Adjacency
    microbatching: bool
    lower: float
    upper: float
    note: str = ""


Tick = Callable[[], None]
RowKey = tuple[str, str, Adjacency, bool]  # loader, unit, relation, microbatching
# the number of rows: of records without and with microbatches, and of users
MOST_ROWS = 3 * len(LOADERS) * len(SAMPLING_RELATIONS)


@final
class RunCosts(Sequence[TrainingCost]):
    """The rows of a statement: what a run costs under every loader, for every unit of privacy.

    A row is computed when it is asked for, and kept.  As a sequence it has all rows, a record's
    without and with microbatches, then a user's: to go through it computes all of them.

    Parameters
    ----------
    run : TrainingRun
        Records, batches, steps and the loader.
    noise : float
        The noise multiplier.
    delta : float
        The delta of all rows.
    tick : callable
        Called after each row that is computed.
    known : iterable of TrainingCost
        Rows that need not be computed.
    """

    def __init__(
        self,
        run: TrainingRun,
        noise: float,
        delta: float,
        tick: Tick = lambda: None,
        known: Iterable[TrainingCost] = (),
    ) -> None:
        self._run, self._noise, self._delta, self._tick = run, noise, delta, tick
        self._intervals: dict[tuple[Plan, float], tuple[float, float]] = {}
        self._rows = {(r.loader, r.unit, r.relation, r.microbatching): r for r in known}

    def row_keys(self) -> list[RowKey]:
        """Return loader, unit, relation and microbatching of all rows, in their order."""
        units = [(RECORD, False), (RECORD, True)]
        if self._run.examples_per_user is not None:
            units.append((USER, self._run.microbatching))
        return [
            (loader, unit, relation, micro)
            for unit, micro in units
            for relation in SAMPLING_RELATIONS
            for loader in LOADERS
        ]

    def row(self, loader: str, unit: str, relation: Adjacency, micro: bool) -> TrainingCost:
        """Return the row of a loader, a unit and a relation, computed at its first use."""
        key = loader, unit, relation, micro
        if key not in self._rows:
            # Where records are drawn independently, a blank one costs what a removed one does.
            if relation is ZERO_OUT and loader in INDEPENDENT:
                removed = self.row(loader, unit, ADD_REMOVE, micro)
                self._rows[key] = replace(removed, relation=relation)
            else:
                self._rows[key] = self.cost(loader, unit, relation, micro)
            self._tick()
        return self._rows[key]

    def __len__(self) -> int:
        return len(self.row_keys())

    @overload
    def __getitem__(self, index: int) -> TrainingCost: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[TrainingCost, ...]: ...
    def __getitem__(self, index: int | slice) -> TrainingCost | tuple[TrainingCost, ...]:
        if isinstance(index, slice):
            return tuple(self.row(*key) for key in self.row_keys()[index])
        return self.row(*self.row_keys()[index])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RunCosts):
            return NotImplemented
        return self._asked == other._asked

    def __hash__(self) -> int:
        return hash(self._asked)

    @property
    def _asked(self) -> tuple[TrainingRun, float, float]:
        return self._run, self._noise, self._delta

    def _interval(self, plan: Plan, width: float) -> tuple[float, float]:
        """Return an interval of this width around a plan's epsilon, for all rows of the plan."""
        key = plan, width
        if key not in self._intervals:
            self._intervals[key] = Tight(width).bracket(plan, self._delta)
        return self._intervals[key]

    def cost(self, loader: str, unit: str, relation: Adjacency, micro: bool) -> TrainingCost:
        """Compute what the run costs a record or a user with this loader, for these neighbours."""
        run = self._run
        scheme_of = record_scheme if unit == RECORD else user_scheme
        scheme = scheme_of(run, self._noise, loader, relation, microbatching=micro)
        is_this_run = loader == run.loader and micro == run.microbatching and unit == RECORD

        def certify(plan: Plan) -> tuple[float, float]:
            is_above = plan in scheme.above
            if is_above and unit == USER and is_long(run, loader):
                return 0.0, RDP().epsilon(plan, self._delta)  # its mixtures would take long
            if is_above and is_this_run:
                return self._interval(plan, FINE)
            is_wide = is_above and (scheme.note or loader == "truncated_poisson")
            return self._interval(plan, LOOSE if is_wide else COARSE)

        lower, upper = certified(scheme, certify)
        # Lower ends rest on shares of records and on square roots that were rounded up: each moves
        # the end by far less than 1e-12 of itself.
        if unit == USER or loader in PASSES:
            lower *= 1 - 1e-12
        # A record's scheme has a plan with an epsilon, or a note of `UNBOUNDED`; a user's may have
        # no plan above.
        no_theorem = math.isinf(upper) and unit == USER and scheme.note not in UNBOUNDED
        note = "none" if no_theorem else scheme.note
        return TrainingCost(loader, unit, relation, micro, lower, upper, note)
