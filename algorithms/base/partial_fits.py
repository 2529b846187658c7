"""Fits in parts: each call of `partial_fit` brings the records of other persons.

A person's record is in one call, so that a person pays for one call, whatever the other calls are:
the plan of all calls is a `Parallel` of theirs, whose cost is that of the dearest.  It is public
who is in which call.  Nothing here can see that a person came twice: the caller answers for it.
"""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from accountant.errors import ParameterError
from accountant.ledger.ledger import Ledger
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Plan
from accountant.randomness import Rng
from algorithms.base.estimators import PrivateEstimator
from algorithms.base.fit_data import generator_of


class Calls(NamedTuple):
    """The calls since the last `fit`: their plans, their users, and the sums of their reports.

    The sums are None after the first call: they follow from its transcript.
    """

    plans: tuple[Plan, ...] = ()
    users: int = 0
    sums: Any = None


NO_CALLS = Calls()


class PartlyFitted(PrivateEstimator):
    """An estimator whose users report once, and whose reports add up over calls."""

    n_samples_seen_: int
    transcript_: Any
    _calls: Calls = NO_CALLS

    @abstractmethod
    def run(self, ledger: Any, executor: Executor | None = None, before: Calls = NO_CALLS) -> Any:
        """Return the result of the reports of a call and of those before it."""

    @abstractmethod
    def _report_sums(self, plan: Plan, transcript: Any) -> Any:
        """Return the sums of the reports of a call, which can be added to those of another."""

    def _fit_call(self, data: Any, executor: Executor | None, ledger: Any, before: Calls) -> Any:
        """Return the result of a call and of those before it; the call alone is charged."""
        plan, sums = self.plan(data.shape), None
        if before.plans and before.sums is None:
            first_sums = self._report_sums(before.plans[0], self.transcript_)
            before = before._replace(sums=first_sums)
        self.ledger_ = open_call(self, data, plan, before.plans, ledger=ledger)
        if before.plans:
            result = self.run(self.ledger_, executor, before)
            sums = before.sums + self._report_sums(plan, self.ledger_.transcript)
        else:  # a subclass may run in its own way
            result = self.run(self.ledger_, executor)
        self.transcript_ = self.ledger_.transcript
        self.n_samples_seen_ = before.users + data.shape[0]
        self._calls = Calls((*before.plans, plan), self.n_samples_seen_, sums)
        return result


def open_call(
    estimator: PrivateEstimator, data: Any, plan: Plan, earlier: tuple[Plan, ...], **settings: Any
) -> Ledger:
    """Return the gate of a call after ``earlier`` ones, whose plan is charged to its ledger.

    ``plan_`` is then the plan of all calls.
    """
    if earlier and first_release(plan) != first_release(earlier[0]):
        allowed = f"{first_release(earlier[0])!r}, that of earlier calls; fit starts anew"
        raise ParameterError("randomizer", first_release(plan), allowed)
    rng = rng_of_call(estimator.random_state, len(earlier))
    gate = estimator.open_ledger(data, plan, rng=rng, **settings)
    if earlier:
        estimator.plan_ = Parallel([*earlier, plan])
    return gate


def first_release(plan: Any) -> Any:
    """Return the first release of a plan of users in parallel, or of calls in parallel."""
    while isinstance(plan, Parallel):
        plan = plan.parts[0]
    return plan


def rng_of_call(random_state: Any, call: int) -> Rng:
    """Return the source of noise of a call: a seed gives each call other noise."""
    rng = generator_of(random_state)
    if call and isinstance(random_state, (int, np.integer)):
        return np.random.default_rng([int(random_state), call])
    return rng
