"""Base classes of the scikit-learn estimators: checked data, plan, run, summary.

A fit checks its data, makes a plan of all releases, pays for the plan, and gets a *gate*: a
`Ledger` through which alone `run` asks the data.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from accountant.accountants.tight import Tight
from accountant.errors import ParameterError
from accountant.formatting import format_guarantee
from accountant.ledger.ledger import Ledger
from accountant.plans.adjacency import Adjacency, check_relation
from accountant.plans.plan import Plan
from algorithms.base.budgets import Spending, open_ledger
from algorithms.base.fit_data import fills_features
from algorithms.base.non_private import checked_epsilon, has_no_privacy, warn_not_private
from algorithms.base.signal import warn_no_signal
from dp_attest.calls import TeachingClass

PlanT = TypeVar("PlanT", bound=Plan)
MethodT = TypeVar("MethodT", bound=Callable[..., Any])
# The methods of estimators whose errors name the class.
NAMED = (
    "plan", "fit", "partial_fit", "predict", "predict_proba", "decision_function", "score",
    "transform", "interval",
)  # fmt: skip


def naming_the_class(method: MethodT) -> MethodT:
    """Return the method of an estimator; the innermost estimator names itself in its errors.

    One that another makes for itself has the name of that one, as `_called_as`.
    """

    @wraps(method)
    def named(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except ParameterError as error:
            error.owner = error.owner or getattr(self, "_called_as", type(self).__name__)
            raise

    return named  # type: ignore[return-value]


def name_errors(kind: type) -> None:
    """Make the methods `NAMED` of a class name it in their errors."""
    for name in NAMED:
        method = vars(kind).get(name)
        if hasattr(method, "fn"):  # of `available_if`
            method.fn = naming_the_class(method.fn)  # type: ignore[union-attr]
        elif callable(method) and not getattr(method, "__isabstractmethod__", False):
            setattr(kind, name, naming_the_class(method))


# A subclass is a data class of its parameters, which writes the constructor that scikit-learn asks
# for.  Estimators are equal to themselves alone, and scikit-learn shows them, hence eq=False and
# repr=False.
class PrivateEstimator(BaseEstimator, metaclass=TeachingClass):
    """An estimator that is fitted through a ledger.

    A subclass defines `plan` and `run`; its ``fit`` checks the data, makes the plan, and runs the
    algorithm on a ledger that enforces the plan.

    ``fit(..., ledger=...)`` draws on a budget.  The plan is charged as a whole before the data are
    read, and refused with nothing spent where it does not fit: by a `Filter`, by a `Book` of one
    data set or ``(book, name)``, by the ledger of a book, or by a `Budget`, which the estimator and
    all its clones spend together.  Without one, a clone that scikit-learn fits several times (in
    cross-validation, a search, an ensemble) is refused, as every fit would spend anew.

    No single record decides whether a fit is refused.  A private number that is missing (NaN, or no
    number) counts as 0, and an infinite one as the largest float, before it is clipped.  A label
    that is none of the declared classes counts as the first of them.  Public features, and fits
    with ``non_private=True``, are checked as scikit-learn checks them.

    A fit behind a transformer that learns from the private data is refused (in a ``Pipeline``, or
    of targets in a ``TransformedTargetRegressor``): no plan covers what that learns.
    `BoundsScaler` scales by public bounds, and `PrivateScaler` is let through where both draw on
    one ``ledger``, but not in front of `PrivateSearchCV`.  With a `Budget` the estimator must then
    be the last step itself.  What was fitted outside of a pipeline is not seen.

    Attributes
    ----------
    plan_ : Plan
        What the fit released.
    ledger_ : Ledger
        The ledger of the fit; pickling leaves it out.
    transcript_ : list
        The released values, in order.
    """

    random_state: Any
    plan_: Any
    _spending: Spending
    epsilon: float
    # There is no default here, as it would become that of a subclass's constructor.  A class
    # without this parameter sets it to 0.
    delta: float
    non_private: bool = False
    neighbours: ClassVar[str] = Adjacency.REPLACE_ONE  # used if the plan states no relation
    _fitted_adjacency: Adjacency  # the neighbours of the fit, whatever the parameters are now

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        name_errors(cls)

    @abstractmethod
    def plan(self, shape: tuple[int, ...]) -> Plan:
        """Return what a fit on data of this shape will release; needs no data.

        Parameters
        ----------
        shape : tuple of int
            Shape of the data, as the class says: often (records, features).

        Returns
        -------
        Plan
            Mechanisms whose composition meets the target epsilon and delta.

        Raises
        ------
        ParameterError
            If the shape or a parameter of the estimator is out of range.
        """

    @abstractmethod
    def run(self, ledger: Any) -> Any:
        """Return the result, computed from what the ledger releases and from public data only.

        Parameters
        ----------
        ledger : Ledger
            A ledger on the data, with the plan of `plan`.

        Returns
        -------
        object
            The coefficients, or another private result.
        """

    def summary(self) -> str:
        """Return the guarantee of the fit, its noise, and the share of noise in what was seen.

        Returns
        -------
        str
            One line; epsilon is rounded up, at the delta of the estimator.
        """
        check_is_fitted(self)
        if self._is_not_private:
            return f"{type(self).__name__}: NOT PRIVATE, no noise at all (non_private=True)"
        # At the requested delta the epsilon of a pure plan is smaller still.
        epsilon = Tight().epsilon(self.plan_, self.delta)
        noise = self._noise_summary()
        if self.hidden_by_noise(self.plan_, getattr(self, "n_features_in_", 0)):
            noise += "; noise exceeds any signal at this shape"
        protected = self._fitted_adjacency.difference
        guarantee = f"{format_guarantee(epsilon, self.delta)}: {protected}"
        values = {name: getattr(self, name, None) for name in ("x_bound", "y_bound", "row_bound")}
        stated = ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)
        clipped = f"records are clipped to {stated}" if stated and " clipped" not in noise else ""
        return f"{type(self).__name__}: {'; '.join(filter(None, (guarantee, noise, clipped)))}"

    def _noise_summary(self) -> str:
        """Return a description of the noise; empty if there is none."""
        return ""

    def hidden_by_noise(self, plan: Plan, features: int) -> bool:
        """Return whether noise exceeds any signal, which the plan says before the data.

        Parameters
        ----------
        plan : Plan
            A plan of this estimator.
        features : int
            Number of features.

        Returns
        -------
        bool
            True where a fit is expected to predict worse than a constant; `plan` warns then, by
            `_warned_plan`.
        """
        del plan, features
        return False

    def _warned_plan(self, plan: PlanT, features: int) -> PlanT:
        """Return the plan, after a warning where its noise exceeds any signal."""
        if not self.is_not_private(plan) and self.hidden_by_noise(plan, features):
            warn_no_signal(self)
        return plan

    def _checked_epsilon(self) -> float:
        """Return the target epsilon; infinite where no privacy is asked for."""
        return checked_epsilon(self.epsilon, self.non_private)

    @property
    def _is_not_private(self) -> bool:
        """Whether the fit was not private, whatever the parameters are now."""
        return self.is_not_private(self.plan_)

    @staticmethod
    def is_not_private(plan: Plan) -> bool:
        """Return whether a plan releases something without noise.

        Parameters
        ----------
        plan : Plan
            A plan of this estimator.

        Returns
        -------
        bool
            True after ``non_private=True``.
        """
        return has_no_privacy(plan)

    def adjacency(self, plan: Plan) -> Adjacency:
        """Return the neighbours that a plan of this estimator protects.

        Parameters
        ----------
        plan : Plan
            A plan of this estimator.

        Returns
        -------
        Adjacency
            Its own relation, the estimator's ``relation``, or that of its class.
        """
        # The plan of a local randomiser states that it protects a user's whole record.  Where it is
        # given labels alone, it protects the label only.
        labels = self.neighbours == Adjacency.LABEL_REPLACE
        of_plan = None if labels else plan.relation
        stated = of_plan or getattr(self, "relation", None) or self.neighbours
        return check_relation("relation", stated)

    def spending(self) -> Spending:
        """Return what this estimator and its clones have spent of budgets.

        Returns
        -------
        Spending
            One object for all of them.
        """
        if "_spending" not in self.__dict__:
            self._spending = Spending()
        return self._spending

    def spends_with(self, other: PrivateEstimator) -> None:
        """Charge what this estimator spends to the spending of another one, as its clones do.

        Parameters
        ----------
        other : PrivateEstimator
            The other one.
        """
        self._spending = other.spending()

    def open_ledger(self, data: Any, plan: Plan, **settings: Any) -> Ledger:
        """Return the gate of a fit, after its plan, `plan_` from now on, was charged.

        Parameters
        ----------
        data : array or tuple of arrays
            One row a user.
        plan : Plan
            What the fit releases.
        **settings : Any
            ``ledger``, the budget; ``rng``, ``public`` and ``transcript`` as in `Ledger`.

        Returns
        -------
        Ledger
            A gate on the data.

        Raises
        ------
        BudgetExceeded
            If the plan does not fit; nothing is spent, read or drawn.
        """
        adjacency, gate = self.adjacency(plan), open_ledger(self, data, plan, **settings)
        # A refused fit leaves what is said of the last one as it was.
        self._fitted_adjacency, self.plan_ = adjacency, plan
        return gate

    def _warn_if_not_private(self, what: str) -> None:
        """Warn of an output that is not private."""
        if self._is_not_private:
            warn_not_private(self, what)

    def __sklearn_tags__(self) -> Any:
        """Return tags that allow missing features where these are private."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = fills_features(self)
        return tags

    def __sklearn_clone__(self) -> Any:
        """Return a copy that shares generators and executors: copies would repeat the noise."""
        copy = cloned(self)
        copy.spends_with(self)
        return copy

    def __getstate__(self) -> Any:
        """Return everything but the ledger, which cannot be copied; the transcript is kept."""
        return {k: v for k, v in super().__getstate__().items() if k != "ledger_"}


class PrivateRegressor(RegressorMixin, PrivateEstimator):
    """A regression that is fitted through a ledger."""

    @abstractmethod
    def fit(
        self, X: Any, y: Any = None, executor: Executor | None = None, ledger: Any = None
    ) -> Self:
        """Fit on features and targets; nothing is released if the input is bad.

        Parameters
        ----------
        X : array_like, sparse array or Chunks
            Features of shape (records, features); may be a memory map.  Arrays of numbers are read
            where they lie, and must not change while the fit runs.  With y None, `Chunks` of pairs
            (X, y): private ones of 2**28 bytes or less are read once into memory, larger ones anew
            every round, with a block of them in memory at a time.
        y : array_like of shape (records,) or None
            Targets; None if X gives the pairs.
        executor : concurrent.futures.Executor or None
            Where blocks of records are processed; None takes threads.  It changes no bit of
            the result.
        ledger : Budget, Filter, Book, tuple or None
            What the fit draws on, see `PrivateEstimator`; None charges nothing.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ParameterError
            If data or parameters are out of range; the message shows no data.
        BudgetExceeded
            If the budget does not suffice; nothing is spent, read or drawn.
        """

    @abstractmethod
    def predict(self, X: Any) -> Any:
        """Return predictions for new records.

        Parameters
        ----------
        X : array_like or sparse array of shape (records, features)
            Features.

        Returns
        -------
        numpy.ndarray of shape (records,)
            A number for each record; a class for classifiers, which share this base.
        """

    def __sklearn_tags__(self) -> Any:
        """Return tags that expect no accuracy: private fits on tiny data are noise."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags


def cloned(estimator: Any) -> Any:
    """Return a clone that shares generators and executors with its original."""
    parameters, shared = estimator.get_params(deep=False).items(), (np.random.Generator, Executor)
    made = type(estimator)(
        **{k: v if isinstance(v, shared) else clone(v, safe=False) for k, v in parameters}
    )
    # what scikit-learn's own clone copies too: routed arguments of `fit`, and the kind of outputs
    for name in ("_metadata_request", "_sklearn_output_config"):
        if hasattr(estimator, name):
            setattr(made, name, copy.deepcopy(getattr(estimator, name)))
    return made
