"""Which coordinates of an effect are not zero, and their signs, by a private vote of machines.

This file is the estimator, `SignVote`.  Each machine votes -1, 0 or 1 for each feature on its own
data (`machine_votes`); the votes are collected from all machines (`vote_collection`); then a
private mechanism selects features with clear majorities, and draws a sign for each (`peeling`).

References: Liu, Tu, Mao & Chen (2022), Algorithms 2 to 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from accountant.accountants.tight import Tight
from accountant.domains import DELTA, NON_NEGATIVE, POSITIVE, POSITIVE_DELTA, IntegerRange, OneOf
from accountant.errors import ParameterError
from accountant.formatting import format_guarantee
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Stated
from algorithms.base.estimators import PrivateEstimator
from algorithms.base.fit_data import generator_of
from algorithms.base.renamed_parameters import renamed_parameters
from algorithms.voting.machine_votes import SIGN_ESTIMATORS, MachineVote
from algorithms.voting.peeling import calibrated_plan, peeled_signs, published_plan
from algorithms.voting.vote_collection import collect_votes

ESTIMATOR = OneOf(tuple(SIGN_ESTIMATORS))
FORM = OneOf(("calibrated", "published"))


# scikit-learn's check_estimator does not apply: it fits (X, y), and a vote fits machines.
@renamed_parameters(select="k")
@dataclass(eq=False, repr=False)
class SignVote(PrivateEstimator):
    """Sign selection by majority vote of machines, (epsilon, delta)-DP for all data of a machine.

    Every machine sends one ternary vote.  ``k`` features are selected, and each gets a sign or 0.
    Machines that exceed the timeout, fail, or send no vote count as null votes; more than half must
    vote.

    Parameters
    ----------
    epsilon : float
        Target epsilon, positive, in nats.
    delta : float
        Target delta, in [0, 1); positive for ``form="published"``.
    k : int
        Number of features to select.
    estimator : {"mean", "lasso", "graph"} or callable
        A machine's vote: signs of its means (data X), of its Lasso (data (X, y)), of its partial
        correlations (data X, one vote a pair in the order of ``numpy.triu_indices``), or the result
        of a function of its data.
    threshold : float or None
        Threshold of a vote; None takes `algorithms.voting.machine_votes.threshold_rule`, for data
        of about unit deviation.
    form : {"calibrated", "published"}
        The least noise by exact accounting, or the constants of the paper.
    executor : concurrent.futures.Executor or None
        Where machines work; None takes threads.
    timeout : float or None
        Seconds after which a missing vote counts as a null vote; None waits.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    signs_ : numpy.ndarray of int8, of shape (features,)
        The private signs, 0 where not selected.
    votes_ : numpy.ndarray of shape (machines, features)
        The votes, for the operator: **not private**; pickling leaves them out.
    report_ : VoteReport
        What happened to each machine, for the operator: **not private**.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Liu, Tu, Mao & Chen (2022), Algorithms 2 to 4; "calibrated" recalibrates the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import SignVote
    >>> machines = [np.tile([1.0, -1.0, 0.0], (50, 1))] * 300
    >>> vote = SignVote(epsilon=2.0, delta=1e-6, k=2, threshold=0.5, random_state=0)
    >>> vote.fit(machines).signs_.tolist()
    [1, -1, 0]
    """

    epsilon: float
    delta: float
    k: int
    estimator: str | Callable[[Any], Any] = "mean"
    threshold: float | None = None
    form: str = "calibrated"
    executor: Executor | None = None
    timeout: float | None = None
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Stated:
        """Return what a fit on ``shape = (machines, features)`` will release; needs no data.

        The features of a graph are its pairs of variables.
        """
        if not isinstance(shape, tuple) or len(shape) != 2:
            raise ParameterError("shape", shape, "(machines, features)")
        IntegerRange(2).check("machines", shape[0])
        k = IntegerRange(1, IntegerRange(1).check("features", shape[1])).check("k", self.k)
        epsilon = POSITIVE.check("epsilon", self.epsilon)
        if FORM.check("form", self.form) == "calibrated":
            return calibrated_plan(epsilon, DELTA.check("delta", self.delta), k)
        plan = published_plan(epsilon, POSITIVE_DELTA.check("delta", self.delta), k)
        if Tight().epsilon(plan, self.delta) > epsilon:
            allowed = "small enough for the published constants, or use form='calibrated'"
            raise ParameterError("epsilon", epsilon, allowed)
        return plan

    def run(self, ledger: Any) -> NDArray[np.int8]:
        """Return the signs, computed from released values only; the ledger holds the votes."""
        return peeled_signs(ledger)

    def fit(self, machines: Iterable[Any], ledger: Any = None) -> Self:
        """Fit on the data of machines; nothing is released unless more than half of them vote.

        Parameters
        ----------
        machines : sequence
            X or (X, y) of each machine, or a function that loads them where it runs; at least two.
        ledger : Budget, Filter, Book, tuple or None
            What the fit draws on, see `PrivateEstimator`; None charges nothing.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ParameterError
            If machines have different numbers of features, or half of them or more send no vote.
        """
        handles = checked_machines(machines)
        count, features = len(handles), known_features(handles)
        if self.estimator == "graph" and features is not None:
            features = features * (features - 1) // 2
        if callable(self.estimator):
            features = None
        local = self._machine_vote(count)
        # This call checks all settings before any machine votes.  Where the number of features is
        # not known yet, the number to be selected takes its place.
        self.plan((count, local.k if features is None else features))
        rng = generator_of(self.random_state)
        timeout = None if self.timeout is None else POSITIVE.check("timeout", self.timeout)
        box = collect_votes(local, handles, self.executor, timeout)
        votes, report = box.read_votes(features)
        self.ledger_ = self.open_ledger(votes, self.plan(votes.shape), rng=rng, ledger=ledger)
        self.votes_, self.report_ = votes, report
        self.signs_ = self.run(self.ledger_)
        self.transcript_ = self.ledger_.transcript
        return self

    def summary(self) -> str:
        """Return the guarantee of the fit, its noise, and the number of signs found."""
        check_is_fitted(self)
        epsilon = Tight().epsilon(self.plan_, self.delta)
        peel, signs = self.plan_.part.parts
        guarantee = format_guarantee(epsilon, self.delta)
        protected = Adjacency.MACHINE_REPLACE.difference
        return (
            f"SignVote: {guarantee}: {protected}; {peel.part.noise} noise of "
            f"scale {peel.part.scale:.4g} on the votes in {peel.count} selections, {signs.count} "
            f"signs drawn at scale {signs.part.scale:.4g}: {np.count_nonzero(self.signs_)} signs"
        )

    def _machine_vote(self, machines: int) -> MachineVote:
        """Return the function that each machine runs, its public numbers checked."""
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
            IntegerRange(1).check("k", self.k),
            POSITIVE.check("epsilon", self.epsilon),
            DELTA.check("delta", self.delta),
        )

    def __getstate__(self) -> Any:
        """Return the state without the ledger, the executor and what is not private."""
        state = {k: v for k, v in super().__getstate__().items() if k not in NOT_PROTECTED}
        return {**state, "executor": None}


NOT_PROTECTED = ("ledger_", "votes_", "report_")  # attributes that hold private data


def checked_machines(machines: Any) -> list[Any]:
    """Return the list of at least two machines: data X or (X, y), or functions that load them."""
    if isinstance(machines, (str, bytes, dict)) or not isinstance(machines, Iterable):
        raise ParameterError("machines", type(machines), "a sequence of X or (X, y), one a machine")
    handles = list(machines)
    if len(handles) < 2:
        raise ParameterError("machines", f"{len(handles)} of them", "at least two: one is no vote")
    return handles


def known_features(handles: list[Any]) -> int | None:
    """Return the number of features that all data in memory have; None if no data are in memory."""
    features = [handle[0] if isinstance(handle, tuple) else handle for handle in handles]
    widths = {X.shape[1] for X in features if len(getattr(X, "shape", ())) == 2}
    if len(widths) > 1:
        raise ParameterError(
            "machines", f"of {sorted(widths)} features", "of equally many features"
        )
    return widths.pop() if widths else None
