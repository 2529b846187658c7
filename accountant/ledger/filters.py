"""`Filter`, a gate to private data without a plan: answers may choose what is asked next.

A gate is what an algorithm asks for releases; it holds the data and charges each release.  A filter
refuses a release after which the total cost would exceed the budget, however the releases were
chosen.
"""

from __future__ import annotations

from typing import Any, final

from accountant.accountants.budget import Budget
from accountant.accountants.tight import Tight
from accountant.domains import warn_of_large_delta
from accountant.errors import (
    BudgetExceeded,
    ParameterError,
    UnsupportedPlan,
)
from accountant.ledger.composition_notions import certified_total, notion_of, pure_after_plan
from accountant.ledger.interfaces import Releasable
from accountant.ledger.ledger import Ledger
from accountant.ledger.private_data import Users
from accountant.ledger.pure_or_renyi_notion import PureOrRenyiNotion
from accountant.ledger.totals import CompositionNotion
from accountant.plans.adjacency import joint_relation
from accountant.plans.plan import Plan, as_plan
from accountant.randomness import Rng
from dp_attest.calls import shows_call


class FilterMeter:
    """The meter of a filter: it adds the costs of all releases in one notion of privacy."""

    next = None

    def __init__(self, notion: CompositionNotion[Any]) -> None:
        self.notion, self.total = notion, notion.zero
        self._relation: str | None = None

    def charge(self, mechanism: Releasable | Plan, who: Users | None) -> None:
        """Charge a release to all users, also where only some of them answer."""
        plan = as_plan(mechanism)
        relation = joint_relation(self._relation, plan)
        self.total, self._relation = self.notion.charge(self.total, plan), relation

    def check(self, plan: Plan) -> None:
        """Refuse releases that do not fit one after another; the first that fails is named."""
        total, relation = self.total, joint_relation(self._relation, plan)
        for leaf in plan.leaves():
            relation = joint_relation(relation, leaf)
            total = self.notion.charge(total, leaf)

    def charge_plan(self, plan: Plan) -> None:
        """Charge a whole plan as the sum of its releases, or else by its certified epsilon.

        The certified epsilon is charged if the plan is the first charge, its sum does not fit, and
        the notion is the default one.  Pure releases alone may then follow.
        """
        try:
            self.charge(plan, None)  # a plan is charged like a release
        except (BudgetExceeded, UnsupportedPlan):
            budget = self.notion.budget
            after_plan = pure_after_plan(budget)
            unspent = self._relation is None and self.total == self.notion.zero
            if not unspent or self.notion.name != PureOrRenyiNotion.name:
                raise
            plan_total = certified_total(Tight().epsilon(plan, budget.delta))
            if after_plan.exceeds(plan_total):
                raise
            self.notion, self.total, self._relation = after_plan, plan_total, plan.relation


@final
class Filter(Ledger):
    """Data that can be asked anything, in any order, until a budget is spent; in memory.

    Each notion has a theorem that allows the next release to depend on earlier answers; profiles
    and grids have none and are refused.

    Parameters
    ----------
    data : array, tuple of arrays or data frame
        One row a user.
    budget : Budget
        What may be spent in all.
    notion : {"pure", "zcdp", "rdp", "gdp", "pure-or-rdp"}, optional
        What is added up: by default "pure" where the budget's delta is 0, else "pure-or-rdp", which
        admits whatever fits by its epsilons or by its Rényi divergences.
    rng : int or numpy.random.Generator, optional
        Repeats a run, for audits and tests.
    public : Any
        What is public next to the data.
    transcript : {"full", "digest"}
        As in `Ledger`.
    order : float, optional
        The Rényi order of "rdp" and "pure-or-rdp", above 1, fixed here.
    undeclared : bool
        As in `Ledger`.

    References
    ----------
    Rogers, Roth, Ullman & Vadhan (2016); Feldman & Zrnic (2021); Whitehouse, Ramdas, Rogers & Wu
    (2023).

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import Budget, Filter
    >>> from mechanisms import Laplace
    >>> gate = Filter(np.ones(10), Budget(1.0), rng=0)
    >>> answer = gate.release(Laplace(10.0), np.sum)
    >>> gate.spent <= 0.1000001
    True
    """

    @shows_call("Filter(data, Budget(epsilon=1.0, delta=1e-6))")
    def __init__(
        self,
        data: Any,
        budget: Budget,
        notion: str | None = None,
        rng: Rng = None,
        public: Any = None,
        transcript: str = "full",
        order: float | None = None,
        undeclared: bool = False,
    ) -> None:
        if not isinstance(budget, Budget):
            raise ParameterError(
                "budget",
                type(budget).__name__,  # its value may be the data, as in Filter(budget, data)
                "a Budget, after the data: Filter(data, Budget(epsilon=1.0, delta=1e-6))",
            )
        self._filter_meter = FilterMeter(notion_of(notion, budget, order))
        super().__init__(data, None, rng, public, transcript, undeclared, self._filter_meter)
        if not self._seeded:
            warn_of_large_delta(budget.delta, self._users)
        self.budget = budget

    def spend(self, mechanism: Releasable) -> None:
        """Charge a release that was made elsewhere on the same data.

        Parameters
        ----------
        mechanism : Mechanism, loss or plan
            What was released.

        Raises
        ------
        BudgetExceeded
            If it does not fit; nothing is spent.
        OffPlan
            If a query of this gate asks, or a fork of the process; nothing is spent.
        """
        copy = self._copies.of_spent(mechanism)
        self._refuse_other_process(copy)
        with self._lock:
            self._refuse_within_a_query(copy)
            self._filter_meter.charge(copy, None)

    def remaining(self, plan: Plan) -> int:
        """Return how many more times a release, or a whole plan, fits what is left.

        Parameters
        ----------
        plan : Plan
            A mechanism, a loss or a plan.

        Returns
        -------
        int
            Rounded down; at most 10^9, also where it costs nothing.

        Raises
        ------
        UnsupportedPlan
            If the filter cannot add it up.

        Examples
        --------
        >>> import numpy as np
        >>> from accountant import Budget, Filter
        >>> from mechanisms import Laplace
        >>> Filter(np.arange(10.0), Budget(1.0)).remaining(Laplace(10.0))
        10
        """
        with self._lock:
            return self._filter_meter.notion.remaining(self._filter_meter.total, as_plan(plan))

    def spend_plan(self, plan: Plan) -> None:
        """Charge a whole plan that a ledger of its own will follow on the same data.

        With "pure-or-rdp" a plan that is the first spend, and whose sum does not fit, is charged
        its exact epsilon; what is released next to it then adds its own epsilon
        (docs/proofs/two_filters.md).

        Parameters
        ----------
        plan : Plan
            What will be released.

        Raises
        ------
        BudgetExceeded
            If it does not fit; nothing is spent.
        OffPlan
            If a query of this gate asks, or a fork of the process; nothing is spent.
        """
        copy = self._copies.of_spent(plan)
        self._refuse_other_process(copy)
        with self._lock:
            self._refuse_within_a_query(copy)
            self._filter_meter.charge_plan(as_plan(copy))

    @property
    def spent(self) -> float:
        """Return the running total: epsilon, rho, the divergence at its order, or mu squared.

        Of several sums it is the one that uses the smallest share of its limit; `repr` names it.
        """
        return self._filter_meter.notion.shown(self._filter_meter.total).amount

    def __repr__(self) -> str:
        unit, amount, _ = self._filter_meter.notion.shown(self._filter_meter.total)
        return f"Filter(shape={self.shape}, budget={self.budget!r}, spent {unit}={amount:.6g})"
