"""Which coordinates are not zero, and their signs, by a private vote of machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from accountant.accountants.tight import Tight
from accountant.domains import DELTA, NON_NEGATIVE, POSITIVE, POSITIVE_DELTA, IntegerRange, OneOf
from accountant.errors import ParameterError
from accountant.ledger.ledger import Ledger
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Stated
from algorithms.base.estimators import PrivateEstimator, generator_of
from algorithms.voting.machine_votes import SIGN_ESTIMATORS, MachineVote
from algorithms.voting.peeling import calibrated_plan, peeled_signs, published_plan
from algorithms.voting.vote_collection import collect_votes

ESTIMATOR = OneOf(tuple(SIGN_ESTIMATORS))
FORM = OneOf(("calibrated", "published"))


# no check_estimator: scikit-learn's checks fit (X, y), and this is fitted on machines
class SignVote(PrivateEstimator):
    """Sign selection by majority vote of machines, (epsilon, delta)-DP for all data of a machine.

    Every machine sends one ternary vote: signs of its means ("mean", data X), of its Lasso
    ("lasso", data (X, y)), of its partial correlations ("graph", data X, one vote a pair in the
    order of ``numpy.triu_indices``), or whatever a function makes of its data.  ``select`` features
    are selected, and each gets a sign or 0.  ``threshold`` None takes
    `algorithms.voting.machine_votes.threshold_rule`, for data of about unit deviation.

    Machines work on ``executor`` (threads by default); those that take longer than ``timeout``
    seconds, fail, or send no vote count as null votes.  More than half must vote.  ``votes_`` and
    ``report_`` are for the operator and not protected; pickling leaves them behind.

    After ``fit``: ``signs_``, ``votes_``, ``report_``, ``plan_``, ``ledger_``, ``transcript_``.
    Source: Liu, Tu, Mao & Chen (2022), Algorithms 2 to 4; "calibrated" recalibrates its noise.
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        select: int,
        estimator: str | Callable[[Any], Any] = "mean",
        threshold: float | None = None,
        form: str = "calibrated",
        executor: Executor | None = None,
        timeout: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.select = select
        self.estimator = estimator
        self.threshold = threshold
        self.form = form
        self.executor = executor
        self.timeout = timeout
        self.random_state = random_state

    def plan(self, shape: tuple[int, ...]) -> Stated:
        """Return what a fit on ``shape = (machines, features)`` will release; needs no data.

        Features are what is voted on: of a graph its pairs of variables.
        """
        if not isinstance(shape, tuple) or len(shape) != 2:
            raise ParameterError("shape", shape, "(machines, features)")
        IntegerRange(2).check("machines", shape[0])
        select = IntegerRange(1, IntegerRange(1).check("features", shape[1])).check(
            "select", self.select
        )
        epsilon = POSITIVE.check("epsilon", self.epsilon)
        if FORM.check("form", self.form) == "calibrated":
            return calibrated_plan(epsilon, DELTA.check("delta", self.delta), select)
        plan = published_plan(epsilon, POSITIVE_DELTA.check("delta", self.delta), select)
        if Tight().epsilon(plan, self.delta) > epsilon:
            allowed = "small enough for the published constants, or use form='calibrated'"
            raise ParameterError("epsilon", epsilon, allowed)
        return plan

    def run(self, ledger: Any) -> NDArray[np.int8]:
        """Return the signs, seen through the gate alone; its data are votes."""
        return peeled_signs(ledger)

    def fit(self, machines: Iterable[Any]) -> Self:
        """Fit on machines: X or (X, y) of each, or a function that loads them where it runs.

        Nothing is spent unless more than half of them vote on the same features.
        """
        handles = checked_machines(machines)
        count, features = len(handles), known_features(handles)
        if self.estimator == "graph" and features is not None:
            features = features * (features - 1) // 2
        if callable(self.estimator):
            features = None
        local = self._machine_vote(count)
        # all settings are checked before any machine is asked
        self.plan((count, local.select if features is None else features))
        rng = generator_of(self.random_state)
        timeout = None if self.timeout is None else POSITIVE.check("timeout", self.timeout)
        box = collect_votes(local, handles, self.executor, timeout)
        votes, report = box.read_votes(features)
        self.plan_ = self.plan(votes.shape)
        self.votes_, self.report_ = votes, report
        self.ledger_ = Ledger(votes, self.plan_, rng=rng)
        self.signs_ = self.run(self.ledger_)
        self.transcript_ = self.ledger_.transcript
        return self

    def summary(self) -> str:
        """What the fit guarantees, what noise it took, and what it found."""
        check_is_fitted(self)
        epsilon = Tight().epsilon(self.plan_, self.delta)
        peel, signs = self.plan_.part.parts
        guarantee = f"({epsilon:.6g}, {self.delta:g})-differential privacy"
        who = Adjacency.MACHINE_REPLACE.difference
        return (
            f"SignVote: {guarantee}: {who}; {peel.part.noise} noise of "
            f"scale {peel.part.scale:.4g} on the votes in {peel.count} selections, {signs.count} "
            f"signs drawn at scale {signs.part.scale:.4g}: {np.count_nonzero(self.signs_)} signs"
        )

    def _machine_vote(self, machines: int) -> MachineVote:
        estimator = self.estimator
        if not callable(estimator):
            ESTIMATOR.check("estimator", estimator)
        threshold = self.threshold
        if threshold is not None:
            threshold = NON_NEGATIVE.check("threshold", threshold)
        return MachineVote(
            estimator,
            threshold,
            IntegerRange(2).check("machines", machines),
            IntegerRange(1).check("select", self.select),
            POSITIVE.check("epsilon", self.epsilon),
            DELTA.check("delta", self.delta),
        )

    def __getstate__(self) -> Any:
        """What may travel: not the ledger, nor what is not protected, nor the executor."""
        kept = {k: v for k, v in super().__getstate__().items() if k not in NOT_PROTECTED}
        return {**kept, "executor": None}


NOT_PROTECTED = ("ledger_", "votes_", "report_")


def checked_machines(machines: Any) -> list[Any]:
    """The handles of at least two machines."""
    if isinstance(machines, (str, bytes, dict)) or not isinstance(machines, Iterable):
        raise ParameterError("machines", type(machines), "a sequence of X or (X, y), one a machine")
    handles = list(machines)
    if len(handles) < 2:
        raise ParameterError("machines", f"{len(handles)} of them", "at least two: one is no vote")
    return handles


def known_features(handles: list[Any]) -> int | None:
    """The number of features of all data that are here; None where none are."""
    here = [one[0] if isinstance(one, tuple) else one for one in handles]
    found = {one.shape[1] for one in here if len(getattr(one, "shape", ())) == 2}
    if len(found) > 1:
        raise ParameterError("machines", f"of {sorted(found)} features", "of equally many features")
    return found.pop() if found else None
