"""A linear classifier with public features and private labels, each randomised by its own user.

A user with label y reports it through a randomiser that is epsilon-DP (local label privacy).  The
coefficients are then found from the reports and the public features: by maximum likelihood
(`LabelLikelihood`), or by one pass of stochastic gradient descent (`LabelSGD`, in `label_sgd`).

With x' the standardised features of a record, the fit sees the row ``z = (x', 1) / |(x', 1)|`` of
length 1, and class k has the score ``<theta_k, z>``.

References: "Convex Optimization with Local Label Differential Privacy", Algorithm 1; Patrini et al.
(2017), Section 4, for the likelihood through a known label noise.
"""

from __future__ import annotations

import copy
import math
import warnings
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from accountant.domains import NON_NEGATIVE, POSITIVE, IntegerRange, OneOf
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Parallel
from algorithms.base.binary_labels import checked_classes, encode_classes, public_classes
from algorithms.base.estimators import PrivateEstimator
from algorithms.base.fit_data import checked_shape, generator_of, validated_data
from algorithms.base.non_private import NoPrivacy, NotPrivateWarning
from algorithms.base.renamed_parameters import renamed_parameters
from algorithms.base.row_blocks import equal_slices, row_products, squared_lengths
from algorithms.base.score_classifier import ScoreClassifier
from algorithms.label_privacy.gradient_span import GradientSpan
from algorithms.label_privacy.label_losses import LABEL_LOSSES, LabelLoss, ScoreLoss, label_loss_of
from algorithms.label_privacy.label_randomizers import CLASSES, RANDOMIZER, randomizer_of
from algorithms.label_privacy.label_sgd import (
    BLOCK_COEFFICIENTS,
    FULL_TRANSCRIPT_NUMBERS,
    LabelSGD,
    checked_labels,
    label_query,
)
from mechanisms.hemisphere import HemisphereL2

METHOD = OneOf(("auto", "likelihood", "one pass"))
MOST_STEPS = 300  # iterations of the quasi-Newton search (L-BFGS)
BLOCK_NUMBERS = 1 << 22  # scores and features in memory at a time


@renamed_parameters(batch_size="batch", penalty="ridge")
@dataclass(eq=False, repr=False)
class LabelPrivateClassifier(ScoreClassifier, ClassifierMixin, PrivateEstimator):
    """Linear classification with private labels and public features.

    Features are standardised, a constant is added, and rows are scaled to length 1: all of it
    public.  Each label is randomised once; the coefficients are those under which the reports are
    most probable, less a penalty, or the average of one pass of `LabelSGD` over them.

    Parameters
    ----------
    epsilon : float
        Target epsilon of each label, positive, in nats; infinity with ``non_private=True``.
    classes : array_like or None
        The public labels, in any order; any other label counts as the first in order.  None is
        enough for boolean labels, and with ``non_private=True``.
    loss : str or ScoreLoss
        "logistic", "hinge" (Crammer & Singer), "linear", or a loss of scores.
    method : {"auto", "likelihood", "one pass"}
        How coefficients are found; "auto" maximises the likelihood for the logistic loss, and takes
        one pass of `LabelSGD` for others.
    ridge : float
        Coefficient c of the term ``c |theta|^2 / 2`` that is added to minus the log-likelihood; for
        the likelihood only.
    diameter : float
        Diameter of the l2 ball around 0 that coefficients are projected to, for one pass only.
    randomizer : {"auto", "unary", "subset", "response", "duchi"}
        How each label is randomised; "auto" takes the one with the least second moment.
    batch : int
        Number of users in one gradient step, for one pass only.
    non_private : bool
        Fit without noise, for comparison; needs ``epsilon=inf``.
    random_state : int, numpy.random.Generator or None
        Seed of the noise and the order of users; None draws from the operating system's entropy.

    Attributes
    ----------
    classes_ : numpy.ndarray of shape (classes,)
        The labels.
    coef_ : numpy.ndarray of shape (1, features) or (classes, features)
        Coefficients of the features as they are given; one row for two classes, which is the
        difference of theirs.
    intercept_ : numpy.ndarray of shape (1,) or (classes,)
        The constants.  Scores are ``(coef_ x + intercept_) / |(x', 1)|``, as in the fit; the label
        with the largest score does not depend on this length of the standardised row.
    optimiser_ : LabelSGD or LabelLikelihood
        The fitted optimiser.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    "Convex Optimization with Local Label Differential Privacy", Theorem 1 and Algorithm 1; Patrini
    et al. (2017), Section 4, for the likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import LabelPrivateClassifier
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> model = LabelPrivateClassifier(epsilon=3.0, classes=["no", "yes"], random_state=0)
    >>> model.fit(X, y).predict([[2.0, 0.0], [-2.0, 0.0]]).tolist()
    ['yes', 'no']
    """

    neighbours: ClassVar[str] = Adjacency.LABEL_REPLACE
    delta = 0.0

    epsilon: float
    _: KW_ONLY
    classes: Any = None
    loss: str | LabelLoss = "logistic"
    method: str = "auto"
    ridge: float = 0.5
    diameter: float = 100.0
    randomizer: str = "auto"
    batch: int = 32
    non_private: bool = False
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Parallel:
        """Return what a fit on ``shape = (users, features)`` will release; needs ``classes``."""
        users, features = checked_shape(shape)
        return self._optimiser(users, len(self._declared_classes())).plan((users, features + 1))

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return the theta_k of `prepared` rows, (classes, features + 1); needs ``classes``.

        The ledger holds labels as indices of the sorted classes, and the public rows of `prepared`.
        """
        users = ledger.public.shape[0]
        return self._optimiser(users, len(self._declared_classes())).run(ledger, executor)

    def fit(self, X: Any, y: Any, executor: Executor | None = None, ledger: Any = None) -> Self:
        """Fit on public features and private labels, anew; nothing is released on bad input.

        Parameters
        ----------
        X : array_like or sparse array of shape (users, features)
            Public features.
        y : array_like of shape (users,)
            Private labels.
        executor : concurrent.futures.Executor or None
            Where labels are randomised; None takes threads.  It changes no bit of the result.
        ledger : Budget, Filter, Book, tuple or None
            What the fit draws on, see `PrivateEstimator`; None charges nothing.

        Returns
        -------
        self
            The fitted estimator.
        """
        classes, X, codes = self._labelled(X, y, self.classes)
        optimiser = self._checked_optimiser(codes, X, classes)
        self.classes_ = classes
        self.shift_, self.scale_ = _shift_and_scale(X)
        with warnings.catch_warnings():
            # This class gives the warning itself, below.
            warnings.simplefilter("ignore", NotPrivateWarning)
            self.optimiser_ = optimiser.fit(self.prepared(X), codes, executor, ledger)
        return self._keep_result()

    @available_if(lambda self: not self._takes_likelihood())
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        executor: Executor | None = None,
        ledger: Any = None,
    ) -> Self:
        """Go on with other users, each person in one call only; for one pass, as `LabelSGD` does.

        Features are standardised as those of the first call are.

        Parameters
        ----------
        X : array_like or sparse array of shape (users, features)
            Public features of the users of this call.
        y : array_like of shape (users,)
            Their private labels.
        classes : array_like or None
            The public labels, in the first call; None takes those of the constructor.
        executor : concurrent.futures.Executor or None
            As in `fit`.
        ledger : Budget, Filter, Book, tuple or None
            What this call draws on: a budget of its own persons.  One that several calls share is
            charged for each.

        Returns
        -------
        self
            The estimator, fitted on the users of all calls since the last `fit`.
        """
        begun = isinstance(getattr(self, "optimiser_", None), LabelSGD)
        declared = self.classes if classes is None else checked_classes(classes)
        if begun:
            if classes is not None and not np.array_equal(declared, self.classes_):
                allowed = f"{self.classes_.tolist()}, as in the first call; fit starts anew"
                raise ParameterError("classes", declared, allowed)
            declared = self.classes_
        class_names, X, codes = self._labelled(X, y, declared, reset=not begun)
        optimiser: Any = self._checked_optimiser(codes, X, class_names)
        if begun:
            optimiser = copy.copy(self.optimiser_).set_params(**optimiser.get_params())
        else:
            self.classes_ = class_names
            self.shift_, self.scale_ = _shift_and_scale(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPrivateWarning)
            self.optimiser_ = optimiser.partial_fit(self.prepared(X), codes, executor, ledger)
        return self._keep_result()

    def _labelled(self, X: Any, y: Any, classes: Any, reset: bool = True) -> tuple[Any, Any, Any]:
        """Return the classes, checked features, and indices of labels."""
        rules = {"dtype": np.float64, "accept_sparse": "csr", "reset": reset}
        if y is None:  # This raises scikit-learn's own error.
            validated_data(self, X, None, **rules)
        classes, codes = encode_classes(y, classes, self.non_private)
        X, codes = validated_data(self, X, codes, **rules)
        return classes, X, codes.astype(np.intp)

    def _checked_optimiser(self, codes: Any, X: Any, classes: Any) -> LabelSGD | LabelLikelihood:
        """Return the optimiser of a fit, after a check of all settings."""
        optimiser = self._optimiser(len(codes), len(classes))
        optimiser.__dict__["_called_as"] = type(self).__name__
        optimiser.plan((len(codes), X.shape[1] + 1))
        optimiser.spends_with(self)
        return optimiser

    def _keep_result(self) -> Self:
        """Keep the coefficients of the features as they are given, and what was released."""
        classes = self.classes_
        theta, self.plan_ = self.optimiser_.coef_, self.optimiser_.plan_
        if len(classes) == 2:
            theta = theta[1:] - theta[:1]
        self.coef_ = theta[:, :-1] / self.scale_
        self.intercept_ = theta[:, -1] - np.einsum("kj,j->k", theta[:, :-1], self.shift_)
        self.ledger_, self.transcript_ = self.optimiser_.ledger_, self.optimiser_.transcript_
        self._warn_if_not_private("coefficients are")
        return self

    def prepared(self, X: Any) -> Any:
        """Return the rows ``z = (x', 1) / |(x', 1)|`` that the fit sees, x' standardised features.

        Parameters
        ----------
        X : numpy.ndarray or sparse array of shape (records, features)
            Features.

        Returns
        -------
        numpy.ndarray or sparse array of shape (records, features + 1)
            Rows of length 1; the last coordinate is that of the constant.
        """
        if hasattr(X, "multiply"):
            rows = sparse.hstack(
                [X.multiply(1 / self.scale_), sparse.csr_array(np.ones((X.shape[0], 1)))]
            ).tocsr()
            return sparse.csr_array(rows.multiply(1 / np.sqrt(squared_lengths(rows))[:, None]))
        rows = np.ones((X.shape[0], X.shape[1] + 1))
        np.divide(X, self.scale_, out=rows[:, :-1])
        rows[:, :-1] -= self.shift_
        rows /= np.sqrt(squared_lengths(rows))[:, None]
        return rows

    def decision_function(self, X: Any) -> Array:
        """Return the scores of every record."""
        check_is_fitted(self)
        X = validated_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        self._warn_if_not_private("predictions are")
        products = np.stack([row_products(X, coefficients) for coefficients in self.coef_], axis=1)
        # `prepared` divides rows by the lengths sqrt(squares + 1); 1 is the constant's square.
        if hasattr(X, "multiply"):
            squares = squared_lengths(X.multiply(1 / self.scale_).tocsr())
        else:
            squares = squared_lengths(X / self.scale_ - self.shift_)
        scores = (products + self.intercept_) / np.sqrt(squares + 1)[:, None]
        return np.asarray(scores[:, 0] if len(self.coef_) == 1 else scores)

    def summary(self) -> str:
        """Return the guarantee, and how labels were randomised, as the fitted optimiser says it."""
        check_is_fitted(self)
        name = type(self.optimiser_).__name__
        return self.optimiser_.summary().replace(name, type(self).__name__)

    def _optimiser(self, users: int, classes: int) -> LabelSGD | LabelLikelihood:
        """Return the optimiser of the coefficients, after a check of every setting."""
        size = IntegerRange(1).check("batch", self.batch)
        if isinstance(self.loss, LabelLoss) and not isinstance(self.loss, ScoreLoss):
            raise ParameterError(
                "loss", self.loss, "a loss of scores, by name or a ScoreLoss; LabelSGD takes others"
            )
        by_likelihood = self._takes_likelihood()
        if self.method == "likelihood" and not by_likelihood:
            allowed = "'auto' or 'one pass' unless loss='logistic'"
            raise ParameterError("method", self.method, allowed)
        NON_NEGATIVE.check("ridge", self.ridge)
        POSITIVE.check("diameter", self.diameter)
        if by_likelihood:
            return LabelLikelihood(
                epsilon=self.epsilon,
                k=classes,
                ridge=self.ridge,
                randomizer=self.randomizer,
                non_private=self.non_private,
                random_state=self.random_state,
            )
        return LabelSGD(
            epsilon=self.epsilon,
            k=classes,
            loss=self.loss,
            diameter=self.diameter,
            randomizer=self.randomizer,
            batch=min(size, users),
            non_private=self.non_private,
            random_state=self.random_state,
        )

    def _takes_likelihood(self) -> bool:
        """Return whether coefficients are those of the largest likelihood, by all reports."""
        logistic = label_loss_of(self.loss) is LABEL_LOSSES["logistic"]
        return logistic and METHOD.check("method", self.method) != "one pass"

    def _declared_classes(self) -> Any:
        """Return the declared classes in increasing order."""
        return public_classes(self.classes, object)

    def __sklearn_tags__(self) -> Any:
        """Return tags that expect no accuracy and allow sparse features."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        tags.input_tags.sparse = True
        return tags


def _shift_and_scale(X: Any) -> tuple[Array, Array]:
    """Return (mean / scale, scale) of every column, so that ``x' = x / scale - mean / scale``.

    The scale is the standard deviation.  Sparse columns are not centred: their shift is 0, and
    their scale is the root mean square.  A column without spread is divided by its largest absolute
    value, or by 1 if it is zero.
    """
    if hasattr(X, "multiply"):
        scale = np.sqrt(np.asarray(X.multiply(X).mean(axis=0), dtype=float).reshape(-1))
        return np.zeros(X.shape[1]), np.where(scale > 0, scale, 1.0)
    largest = np.abs(X).max(axis=0)
    # Columns are divided by their largest absolute value first, so that no square overflows or
    # underflows.  A deviation of at most 1e-12 of that value counts as none.
    largest[largest == 0] = 1.0
    spread = (X / largest).std(axis=0)
    scale = np.where(spread > 1e-12, spread, 1.0) * largest
    return (X / scale).mean(axis=0), scale


@dataclass(eq=False, repr=False)
class LabelLikelihood(PrivateEstimator):
    """The coefficients under which the randomised labels are most probable, with a penalty.

    ``ridge / 2`` times the squared length of all coefficients is added to minus the logarithm of
    the likelihood of all reports.  Labels are randomised once, with ``epsilon``.
    """

    neighbours: ClassVar[str] = Adjacency.LABEL_REPLACE
    delta = 0.0

    _: KW_ONLY
    epsilon: float
    k: int
    ridge: float
    randomizer: str = "auto"
    non_private: bool = False
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Parallel:
        """Return what a fit on ``shape = (users, features)`` will release; needs no data."""
        users, _ = checked_shape(shape)
        NON_NEGATIVE.check("ridge", self.ridge)
        k, epsilon = CLASSES.check("k", self.k), self._checked_epsilon()
        RANDOMIZER.check("randomizer", self.randomizer)
        if self.non_private:
            return Parallel([NoPrivacy()] * len(self._user_blocks(users)))
        mechanism = randomizer_of(self.randomizer, k, epsilon)
        return Parallel([mechanism] * len(self._user_blocks(users)))

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return the coefficients, computed from released values and public rows only."""
        X, mechanism = ledger.public, ledger.plan.parts[0]
        query = label_query
        if isinstance(mechanism, HemisphereL2):
            query = GradientSpan.regular_simplex(self.k).label_corners
        blocks = self._user_blocks(X.shape[0])
        reports = ledger.release_blocks(mechanism, query, blocks, executor)
        probable = np.concatenate([probable_labels(mechanism, self.k, r) for r in reports])
        ratio = math.inf if self.non_private else mechanism.loss.pure
        return most_likely(X, probable, -ratio, self.ridge)

    def fit(
        self, X: Any, y: Any = None, executor: Executor | None = None, ledger: Any = None
    ) -> Self:
        """Fit on public features and private labels ``0 .. k - 1``."""
        plan, rng = self.plan(X.shape), generator_of(self.random_state)
        labels = checked_labels(y, self.k)
        transcript = "full" if labels.size * self.k <= FULL_TRANSCRIPT_NUMBERS else "digest"
        self.ledger_ = self.open_ledger(
            labels, plan, rng=rng, public=X, transcript=transcript, ledger=ledger
        )
        self._warn_if_not_private("coefficients are")
        self.coef_ = self.run(self.ledger_, executor)
        self.transcript_ = self.ledger_.transcript
        return self

    def _noise_summary(self) -> str:
        return f"labels by {self.plan_.parts[0]!r}"

    def _user_blocks(self, users: int) -> list[slice]:
        """Return blocks of users who report at once."""
        return equal_slices(0, users, max(1, BLOCK_COEFFICIENTS // self.k))


def probable_labels(mechanism: Any, classes: int, reports: Any) -> NDArray[np.bool_]:
    """Return for every report which labels make it more probable, by the same factor for all.

    The factor is ``e^epsilon``: unary encoding, subset selection and k-ary response support some
    labels, and Duchi's vector lies in the hemisphere of some labels' corners.
    """
    if isinstance(mechanism, NoPrivacy):
        return np.asarray(np.asarray(reports)[:, None] == np.arange(classes))
    if isinstance(mechanism, HemisphereL2):
        # Coefficient k is 1 / K + <report, corner k> times a positive constant.
        return GradientSpan.regular_simplex(classes).coefficients(reports) > 1 / classes
    # A coefficient is (1[supported] - q) / (p - q).
    probable: NDArray[np.bool_] = mechanism.coefficients(reports) > 0
    return probable


def most_likely(X: Any, probable: NDArray[np.bool_], log_ratio: float, penalty: float) -> Array:
    """Return coefficients (classes, features) of the most likely logistic model of the reports.

    The report of a row with label probabilities ``p = softmax(scores)`` has the likelihood
    ``sum_k p_k a_k``, where ``a_k`` is 1 for the probable labels and ``e^log_ratio`` for others.
    """
    from scipy.optimize import minimize

    (users, features), classes = X.shape, probable.shape[1]
    blocks = equal_slices(0, users, max(1, BLOCK_NUMBERS // (features + classes)))

    def loss_and_slope(flat: Array) -> tuple[float, Array]:
        theta = flat.reshape(classes, features)
        value, slope = penalty / 2 * float(flat @ flat), penalty * theta
        for block_rows in blocks:
            rows, scores = X[block_rows], np.asarray(X[block_rows] @ theta.T)
            # With lse the logarithm of the sum of exponentials,
            #     -ln sum_k p_k a_k = lse(scores) - lse(scores + ln a).
            # Its slope in the scores is the prior p less the posterior, p given the report.
            prior, before = _softmax(scores)
            posterior, after = _softmax(np.where(probable[block_rows], scores, scores + log_ratio))
            value += float((before - after).sum())
            slope = slope + (prior - posterior).T @ rows
        return value / users, np.asarray(slope).ravel() / users

    start = np.zeros(classes * features)
    # With noisy labels a coarser search is used: it takes half the time, and its error is smaller
    # than that of the noise.
    ends = {"ftol": 0.0, "gtol": 1e-10} if math.isinf(log_ratio) else {}
    options: Any = {"maxiter": MOST_STEPS, **ends}
    solution = minimize(loss_and_slope, start, jac=True, method="L-BFGS-B", options=options)
    theta: Array = solution.x.reshape(classes, features)
    return theta


def _softmax(scores: Array) -> tuple[Array, Array]:
    """Return softmax and logarithm of the sum of exponentials, by rows."""
    top = scores.max(axis=1, keepdims=True)
    powers = np.exp(scores - top)
    total = powers.sum(axis=1, keepdims=True)
    return powers / total, (top + np.log(total))[:, 0]
