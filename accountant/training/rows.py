"""The rows of a statement: what every loader costs, for every unit of privacy.

A statement says what a run of DP-SGD costs.  A loader is the way in which batches are made, the
unit of privacy is a record or a user, and a row is for one relation of neighbours.

A *scheme* (`accountant.training.schemes`) has the plans that bound one row: each of its plans
``above`` costs at least as much as the run, each ``below`` at most as much; its ``note`` says why
the two differ, or why nothing bounds the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

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
# the number of rows: of records without and with microbatches, and of users
MOST_ROWS = 3 * len(LOADERS) * len(SAMPLING_RELATIONS)


def rows_of(
    run: TrainingRun, noise: float, delta: float, tick: Tick = lambda: None
) -> tuple[TrainingCost, ...]:
    """Return the rows of all loaders: a record's with and without microbatches, then a user's."""
    wanted = [
        (loader, RECORD, relation, micro)
        for micro in (False, True)
        for relation in SAMPLING_RELATIONS
        for loader in LOADERS
    ]
    if run.examples_per_user is not None:
        wanted += [
            (loader, USER, relation, run.microbatching)
            for relation in SAMPLING_RELATIONS
            for loader in LOADERS
        ]
    run_costs = RunCosts(run, noise, delta)
    costs: dict[tuple[str, str, Adjacency, bool], TrainingCost] = {}
    for loader, unit, relation, micro in wanted:
        # Where records are drawn independently, a blank one costs what a removed one does, whose
        # row came before: add-remove is the first of `SAMPLING_RELATIONS`.
        if relation is ZERO_OUT and loader in INDEPENDENT:
            cost = replace(costs[loader, unit, ADD_REMOVE, micro], relation=relation)
        else:
            cost = run_costs.cost(loader, unit, relation, micro)
        costs[loader, unit, relation, micro] = cost
        tick()
    return tuple(costs.values())


class RunCosts:
    """What a run costs at one delta; the intervals of plans are computed once for all rows."""

    def __init__(self, run: TrainingRun, noise: float, delta: float) -> None:
        self._run, self._noise, self._delta = run, noise, delta
        self._brackets: dict[Plan, tuple[float, tuple[float, float]]] = {}  # width and interval

    def bracket(self, plan: Plan, width: float) -> tuple[float, float]:
        """Return an interval around a plan's epsilon: of this width, or of another one if known.

        Only `FINE` is insisted on.  Other rows take any interval that was computed before for the
        same plan: a `LOOSE` one also where `COARSE` is asked for.
        """
        if plan not in self._brackets or (width == FINE and self._brackets[plan][0] > width):
            self._brackets[plan] = width, Tight(width).bracket(plan, self._delta)
        return self._brackets[plan][1]

    def cost(self, loader: str, unit: str, relation: Adjacency, micro: bool) -> TrainingCost:
        """Return what the run costs a record or a user with this loader, for these neighbours."""
        run = self._run
        scheme_of = record_scheme if unit == RECORD else user_scheme
        scheme = scheme_of(run, self._noise, loader, relation, microbatching=micro)
        is_this_run = loader == run.loader and micro == run.microbatching and unit == RECORD

        def certify(plan: Plan) -> tuple[float, float]:
            is_above = plan in scheme.above
            if is_above and unit == USER and is_long(run, loader):
                return 0.0, RDP().epsilon(plan, self._delta)  # its mixtures would take long
            if is_above and is_this_run:
                return self.bracket(plan, FINE)
            is_wide = is_above and (scheme.note or loader == "truncated_poisson")
            return self.bracket(plan, LOOSE if is_wide else COARSE)

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
