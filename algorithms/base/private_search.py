"""Private tuning: the best of a random number of fits, at random settings, scored privately.

A *try* draws one of the candidate settings, makes a fit with it on one part of the records, and
releases a noisy score of the fit on the other part.  Each record is in one of the two parts, so a
try costs what a fit costs, or the score.  The number of tries is random, from a law that is public,
and only the try with the best score is ever shown.  Then the search costs two to three times one
try, however many candidates there are (Liu & Talwar 2019; `Repeated` computes it).

References: Liu & Talwar (2019); Papernot & Steinke (2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.model_selection import ParameterGrid
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from accountant.accountants.tight import Tight
from accountant.amplification.repeated import Repeated
from accountant.amplification.tries import NegativeBinomial, Tries, tries_of_mean
from accountant.domains import DELTA, POSITIVE, Interval
from accountant.errors import OffPlan, ParameterError
from accountant.formatting import format_guarantee, short_upper
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.planning.calibration import calibrate
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency
from accountant.plans.parallel import Parallel, Stated
from accountant.plans.plan import Plan
from accountant.randomness import generator
from algorithms.base.binary_labels import encode_classes
from algorithms.base.budgets import PAID, Gates, charge, refuse_repeats, warn_of_delta
from algorithms.base.estimators import PrivateEstimator, cloned, name_errors
from algorithms.base.fit_data import checked_shape, generator_of, validated_data
from algorithms.base.renamed_parameters import settings_under_new_names
from algorithms.base.running_fits import refuse_transformers_in_front
from mechanisms.gaussian import Gaussian
from mechanisms.laplace import Laplace

SHARE = Interval(0.0, 1.0, "()")
# The epsilon of a fit is found by trials: the cost of the search comes as close to its budget as
# PRECISION, relative.  A smaller number takes more trials; usually there are four or five.
PRECISION, MAX_TRIALS = 1e-3, 30


class Try(NamedTuple):
    """A fit, its setting, and its noisy score."""

    model: Any
    settings: dict[str, Any]
    score: float


def _delegated(name: str) -> Any:
    return available_if(lambda self: hasattr(self.estimator, name))


@dataclass(eq=False, repr=False)
class PrivateSearchCV(MetaEstimatorMixin, BaseEstimator):
    """The best setting of a private estimator, (epsilon, delta)-DP with the cost of the search.

    A random number of fits is made, each with a setting drawn from the candidates, on one part of
    the records.  A noisy score on the other part says which fit is best, and only this fit is kept:
    the others, and their number, are never shown.  So the search costs two to three times a fit,
    however many candidates there are.  How long it takes shows about how many fits there were.
    There is one split into two parts, not several as in cross-validation: a record pays for one
    part alone.

    Parameters
    ----------
    estimator : PrivateEstimator
        A central estimator with ``fit(X, y)``, ``predict``, and parameters ``epsilon`` and
        ``delta``, which the search sets.
    candidates : dict or list of dict
        Lists of values to try for each parameter, as scikit-learn's ``ParameterGrid`` takes them.
    epsilon : float
        Target epsilon of the whole search, positive, in nats.
    delta : float
        Target delta, in [0, 1).
    tries : Tries or None
        Law of the number of fits, at least 1; None takes the logarithmic law whose mean is twice
        the number of candidates.
    validation : float
        Share of the records that score, in (0, 1).
    score_bound : float
        Largest absolute error that counts, for regressions; larger ones count as it.
    random_state : int, numpy.random.Generator or None
        Seed of the search and of all noise; None draws from the operating system's entropy.

    Attributes
    ----------
    best_estimator_ : PrivateEstimator
        The best fit, on the records that did not score.
    best_params_ : dict
        Its setting.
    best_score_ : float
        Its noisy score: the share of right classes, or 1 minus the mean absolute error over
        ``score_bound``.
    run_epsilon_ : float
        The epsilon of a single fit, at ``delta``.
    plan_ : Repeated
        What the search released.

    References
    ----------
    Liu & Talwar (2019); Papernot & Steinke (2022), Theorem 2.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import PrivateLasso, PrivateSearchCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, (4000, 5))
    >>> search = PrivateSearchCV(
    ...     PrivateLasso(epsilon=1.0, delta=1e-6, rounds=10), {"radius": [0.1, 1.0]},
    ...     epsilon=2.0, delta=1e-6, random_state=0,
    ... ).fit(X, X[:, 0])
    >>> search.best_params_, search.plan_.part.parts[0].count
    ({'radius': 1.0}, 12)
    """

    estimator: Any
    candidates: Any
    _: KW_ONLY
    epsilon: float
    delta: float = 0.0
    tries: Tries | None = None
    validation: float = 0.2
    score_bound: float = 1.0
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Repeated:
        """Return what a search on ``shape = (records, features)`` will release; needs no data.

        Parameters
        ----------
        shape : tuple of int
            (records, features).

        Returns
        -------
        Repeated
            The best of a random number of fits and scores, within epsilon and delta.

        Raises
        ------
        ParameterError
            If a parameter is out of range, or the estimator cannot be tuned.
        """
        search = self._search_plan()
        return search.plan_of(search.fit_epsilon(shape), shape)

    def fit(self, X: Any, y: Any, ledger: Any = None) -> Self:
        """Search on features and targets; nothing is released if the input is bad.

        Parameters
        ----------
        X : array_like of shape (records, features)
            Features.
        y : array_like of shape (records,)
            Targets or classes.
        ledger : Budget, Filter, Book, tuple or None
            What the search draws on, see `PrivateEstimator`; a `Book` is charged, and keeps no
            answers.

        Returns
        -------
        self
            The fitted search.

        Raises
        ------
        BudgetExceeded
            If the budget does not suffice; nothing is spent, read or drawn.
        """
        search, classes = self._search_plan(), None
        search.settings()  # refuses wrong candidates before the data are looked at
        if is_classifier(self.estimator) and y is not None:
            classes, y = encode_classes(y, self.estimator.classes)
        X, y = validated_data(self, X, y, y_numeric=True, dtype=np.float64)
        run_epsilon = search.fit_epsilon(X.shape)
        plan = search.plan_of(run_epsilon, X.shape)
        part: Any = plan.part
        stated = Stated(plan, search.adjacency(part.parts[:-1]))
        seed = generator_of(self.random_state)
        rng = generator(seed)
        refuse_transformers_in_front(self)
        warn_of_delta(self, X.shape[0], ledger, seed)
        # The whole search is charged here, before the first fit; the gates of its fits charge
        # nothing.  An audit passes such gates itself, and nothing is charged at all.
        gates = ledger if isinstance(ledger, Gates) else PAID
        if ledger is None:
            refuse_repeats(self._charged_estimator(), stated)
        elif ledger is not gates:
            charge(self._charged_estimator(), stated, X.shape[0], ledger)
        self.plan_, self.run_epsilon_ = plan, run_epsilon
        order, fit_size = rng.permutation(X.shape[0]), search.sizes(X.shape)[0]
        train, test = order[:fit_size], order[fit_size:]
        further_tries = draw_tries(search.checked_tries(), rng) - 1
        best = self._one_try(X, y, classes, train, test, rng, gates)
        for _ in range(further_tries):
            candidate = self._one_try(X, y, classes, train, test, rng, gates)
            if candidate.score > best.score:
                best = candidate
        self.best_estimator_, self.best_params_, self.best_score_ = best
        return self

    @_delegated("predict")
    def predict(self, X: Any) -> Any:
        """Return the predictions of the best fit for X (records, features)."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @_delegated("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the best fit for X (records, features)."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @_delegated("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of the best fit for X (records, features)."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    @_delegated("score")
    def score(self, X: Any, y: Any) -> float:
        """Return the score of the best fit: accuracy or R^2."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y))

    @property
    def classes_(self) -> Any:
        """The classes of the best fit."""
        return self.best_estimator_.classes_

    def summary(self) -> str:
        """Return the guarantee of the whole search, what a fit of it costs, and the best setting.

        Returns
        -------
        str
            One line; epsilons are rounded up.
        """
        check_is_fitted(self)
        epsilon, fit_epsilon = (
            Tight().epsilon(plan, self.delta) for plan in (self.plan_, self.plan_.part)
        )
        protected = self.best_estimator_.adjacency(self.best_estimator_.plan_).difference
        return (
            f"PrivateSearchCV: {format_guarantee(epsilon, self.delta)}: {protected}; "
            f"the best of {self.plan_.tries.mean:.3g} fits and scores on average, one of which "
            f"alone is ({short_upper(fit_epsilon)}, {short_upper(self.delta)}); "
            f"best {self.best_params_}, score {self.best_score_:.3g}"
        )

    def _one_try(
        self,
        X: Array,
        y: Array,
        classes: Any,
        train: Array,
        test: Array,
        rng: np.random.Generator,
        gates: Gates,
    ) -> Try:
        """Make a fit with a setting drawn from the candidates, and score it."""
        search = self._search_plan()
        settings = search.settings()
        number = int(rng.integers(len(settings)))
        seed = None if self.random_state is None else np.random.default_rng(rng.integers(2**63))
        model = search.estimator_with(settings[number], self.run_epsilon_)
        model.set_params(random_state=seed)
        targets = y if classes is None else classes[y.astype(np.intp)]
        model.fit(X[train], targets[train], ledger=gates)
        part: Any = self.plan_.part
        *fits, noisy_score = part.parts
        if model.plan_ != fits[number]:
            raise OffPlan(model.plan_, fits[number], "a fit released something else")
        gate = gates.open((X[test], y[test]), noisy_score, rng=seed, transcript="full")
        score = gate.release(noisy_score, lambda data: self._mean_score(model, classes, *data))
        return Try(model, settings[number], float(score))

    def _mean_score(self, model: Any, classes: Any, X: Array, y: Array) -> float:
        """Return the mean of a score in [0, 1] of every record: the query.

        A prediction that is NaN counts as an error of ``score_bound``.  A refusal of the query
        would tell something of the data.
        """
        predicted = model.predict(X)
        if classes is not None:
            return float(np.mean(predicted == classes[y.astype(np.intp)]))
        bound = POSITIVE.check("score_bound", self.score_bound)
        error = np.abs(np.asarray(predicted, dtype=float) - y) / bound
        return float(np.mean(1 - np.fmin(error, 1.0)))

    def _search_plan(self) -> SearchPlan:
        """Return what the search releases, by the parameters as they are now."""
        return SearchPlan(
            self.estimator, self.candidates, self.epsilon, self.delta, self.tries, self.validation
        )

    def _charged_estimator(self) -> Any:
        """Return a copy of the tuned estimator that has the whole budget, and shares its meters."""
        estimator = clone(self.estimator).set_params(epsilon=self.epsilon, delta=self.delta)
        estimator.spends_with(self.estimator)
        return estimator

    def __sklearn_clone__(self) -> Any:
        """Return a copy that shares generators: copies would repeat the noise."""
        return cloned(self)

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the estimator that is tuned."""
        tags = super().__sklearn_tags__()
        if not isinstance(self.estimator, PrivateEstimator):  # its `fit` refuses it
            return tags
        inner = self.estimator.__sklearn_tags__()
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags.required = tags.input_tags.allow_nan = True
        tags.non_deterministic = self.random_state is None
        return tags


name_errors(PrivateSearchCV)


@final
@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What a search releases, by its parameters, which are those of `PrivateSearchCV`."""

    estimator: Any
    candidates: Any
    epsilon: float
    delta: float
    tries: Any
    validation: float

    def fit_epsilon(self, shape: tuple[int, ...]) -> float:
        """Return about the greatest epsilon of a fit with which the search stays in its budget."""
        target, delta = POSITIVE.check("epsilon", self.epsilon), DELTA.check("delta", self.delta)

        # The cost of the search is nearly proportional to the epsilon of a fit, so the next trial
        # is this epsilon times target / cost, and a little less to stay below the target.
        epsilon, best = target / 2, 0.0
        for _ in range(MAX_TRIALS):
            cost = Tight().epsilon(self.plan_of(epsilon, shape), delta)
            if cost <= target:
                best = max(best, epsilon)
                if cost >= (1 - PRECISION) * target:
                    break
            epsilon *= min(max((1 - PRECISION / 2) * target / cost, 0.1), 10.0)
        if not best:
            raise ParameterError("tries", self.tries, "fewer: not even tiny fits meet epsilon")
        return best

    def plan_of(self, epsilon: float, shape: tuple[int, ...]) -> Repeated:
        """Return the plan of a search whose fits and scores each have ``epsilon``.

        A try makes one of the fits and one score, which `Parallel` says: each record pays for the
        dearest of them alone.
        """
        fit_size, score_size = self.sizes(shape)
        fits = [
            self.estimator_with(setting, epsilon).plan((fit_size, shape[1]))
            for setting in self.settings()
        ]
        self.adjacency(fits)
        # A record is used for fitting or for scoring, and pays for one of the two.
        sensitivity = round_up(1 / score_size)  # of a mean of numbers in [0, 1]
        noisy_score: Plan = Laplace(round_up(sensitivity / epsilon), sensitivity)
        if self.delta:
            noisy_score = calibrate(
                Gaussian, sensitivity=sensitivity, epsilon=epsilon, delta=self.delta
            )
        return Repeated(Parallel([*fits, noisy_score]), self.checked_tries())

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Return how many records fit, and how many score."""
        records, _ = checked_shape(shape)
        share = SHARE.check("validation", self.validation)
        if records < 2:
            raise ParameterError("X", f"n_samples={records}", "at least 2 records: one scores")
        score_size = min(max(1, round(share * records)), records - 1)
        return records - score_size, score_size

    def estimator_with(self, settings: dict[str, Any], epsilon: float) -> Any:
        """Return an estimator with a setting, of the cost of a fit."""
        return clone(self.estimator).set_params(**settings, epsilon=epsilon, delta=self.delta)

    def settings(self) -> list[dict[str, Any]]:
        """Return the candidates; refuse settings that the search itself sets."""
        if not isinstance(self.estimator, PrivateEstimator):
            raise ParameterError("estimator", type(self.estimator), "a private estimator")
        try:
            grid = list(ParameterGrid(self.candidates))
        except (TypeError, ValueError) as error:
            allowed = f"lists of values for parameters: {error}"
            raise ParameterError("candidates", self.candidates, allowed) from None
        candidates = [settings_under_new_names(self.estimator, setting) for setting in grid]
        if not candidates:
            raise ParameterError("candidates", self.candidates, "one setting at least")
        reserved = {"epsilon", "delta", "random_state", "non_private"} & {
            k for setting in candidates for k in setting
        }
        parameters = self.estimator.get_params()
        if "delta" not in parameters:
            allowed = "an estimator with a parameter delta, which the search sets"
            raise ParameterError("estimator", type(self.estimator), allowed)
        unknown = sorted({k for setting in candidates for k in setting} - set(parameters)) + sorted(
            reserved
        )
        if unknown:
            allowed = "lists of values for parameters of the estimator that the search does not set"
            raise ParameterError("candidates", unknown, allowed)
        return candidates

    def checked_tries(self) -> Tries:
        """Return the law of the number of fits, at least one."""
        tries: Any = self.tries
        if tries is None:
            return tries_of_mean(2.0 * len(self.settings()), shape=0.0)  # the logarithmic law
        if not isinstance(tries, NegativeBinomial):
            allowed = "GeometricTries, LogarithmicTries or NegativeBinomialTries: at least one try"
            raise ParameterError("tries", tries, allowed)
        return tries

    def adjacency(self, fits: Sequence[Plan]) -> Adjacency:
        """Return the neighbours of every fit, which must be those of a curator's records."""
        relations: set[Adjacency] = {self.estimator.adjacency(fit) for fit in fits}
        if len(relations) > 1 or relations - set(RECORD_RELATIONS):
            allowed = "a central estimator, that protects records held in one place"
            raise ParameterError("estimator", sorted(map(str, relations)), allowed)
        return relations.pop()


def draw_tries(tries: Any, rng: np.random.Generator) -> int:
    """Draw a number of tries from a negative binomial law, by its cumulated probabilities."""
    if tries.stop == 1:
        return 1
    # P(1) is the generating function P(1) x + P(2) x^2 + ... at x = 1e-8, divided by x; the further
    # terms are about 1e-8 of it.  P(k + 1) / P(k) is (1 - stop) (k + shape) / (k + 1).
    chance, number = 1e8 * tries.generating_function(1e-8), 1
    remaining = rng.random() - chance
    while remaining > 0 and chance > 0:
        chance *= (1 - tries.stop) * (number + tries.shape) / (number + 1)
        number += 1
        remaining -= chance
    return number
