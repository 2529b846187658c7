"""Convex optimisation with private labels: one pass of projected stochastic gradients.

Features are public.  Each user randomises the own label once; the server turns the report into one
coefficient for each label (`report_decoders`), and the gradients of all labels, weighted by these,
add up to an unbiased estimate of the user's gradient.

With Duchi's randomiser (`RotatedGradientDecoder`) a user randomises the own gradient in the span of
all labels' gradients: a vector, the corner of the span that belongs to the label.  That span may
move with the coefficients theta; then the users of a batch report only after the batch before it.

References: "Convex Optimization with Local Label Differential Privacy", Theorem 1, Algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from accountant.accountants.tight import Tight
from accountant.domains import POSITIVE, IntegerRange
from accountant.errors import ParameterError
from accountant.formatting import format_guarantee
from accountant.ledger.chunks import Chunks
from accountant.numerics import Array
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Parallel
from algorithms.base.estimators import PrivateEstimator
from algorithms.base.fit_data import (
    checked_shape,
    split_pairs,
    validated_data,
    validated_fit_data,
)
from algorithms.base.non_private import NoPrivacy
from algorithms.base.partial_fits import NO_CALLS, Calls, first_release, open_call
from algorithms.base.renamed_parameters import renamed_attribute, renamed_parameters
from algorithms.base.row_blocks import row_blocks, squared_lengths
from algorithms.label_privacy.gradient_span import GradientSpan
from algorithms.label_privacy.label_losses import LabelLoss, check_loss, label_loss_of
from algorithms.label_privacy.label_randomizers import CLASSES, RANDOMIZER, randomizer_of
from algorithms.label_privacy.report_decoders import (
    ReportDecoder,
    RotatedGradientDecoder,
    decoder_of,
)
from mechanisms.hemisphere import HemisphereL2

BLOCK_COEFFICIENTS = 1 << 20  # coefficients in memory at a time
FULL_TRANSCRIPT_NUMBERS = 50_000_000  # most numbers that a transcript keeps in full


@renamed_parameters(classes="k", batch_size="batch")
@dataclass(eq=False, repr=False)
class LabelSGD(PrivateEstimator):
    """Minimise a convex loss of public rows and private labels ``0 .. k - 1``.

    Every label is randomised once, with ``epsilon``.  Users are taken in a random order, each once,
    ``batch`` a step: ``theta - eta gradient``, projected to the ball of ``diameter`` around 0,
    with ``eta = D / (L sqrt(V_b T))`` for T steps and ``V_b = 1 + (V - 1) / batch``, where V bounds
    the mean square of a gradient estimate, in units of L^2.

    Parameters
    ----------
    epsilon : float
        Target epsilon of each label, positive, in nats; infinity with ``non_private=True``.
    k : int
        Number of labels, at least 2.
    loss : str or LabelLoss
        "logistic", "hinge" (Crammer & Singer), "linear", or a loss object.
    diameter : float
        Diameter D of the ball of coefficients around 0.
    randomizer : {"auto", "unary", "subset", "response", "duchi"}
        How each label is randomised; "auto" takes the one with the least second moment.
    batch : int
        Number of users in one gradient step.
    non_private : bool
        Fit without noise, for comparison; needs ``epsilon=inf``.
    random_state : int, numpy.random.Generator or None
        Seed of the noise and the order of users; None draws from the operating system's entropy.

    Attributes
    ----------
    coef_ : numpy.ndarray of shape (k, features)
        The average of all iterates; of another shape if the loss says so.
    lipschitz_ : float
        The Lipschitz constant L.
    second_moment_ : float
        The mean square of the gradient estimates, in units of ``lipschitz_ ** 2``.
    n_samples_seen_ : int
        Number of users of all calls.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    "Convex Optimization with Local Label Differential Privacy", Theorem 1, Algorithm 1 and
    Appendices A and B; Appendix B here with a public centre, which saves a dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import LabelSGD
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    >>> sgd = LabelSGD(epsilon=3.0, k=2, diameter=2.0, batch=50, random_state=0)
    >>> coef = sgd.fit(X, (X[:, 0] > 0).astype(int)).coef_
    >>> coef.shape, (coef[1] > 0.2).tolist()
    ((2, 2), [True, False])
    >>> round(sgd.plan_.parts[0].keep, 4)
    0.9526
    """

    neighbours: ClassVar[str] = Adjacency.LABEL_REPLACE
    delta = 0.0

    _: KW_ONLY
    epsilon: float
    k: int
    loss: str | LabelLoss = "logistic"
    diameter: float
    randomizer: str = "auto"
    batch: int = 1
    non_private: bool = False
    random_state: Any = None

    _calls = NO_CALLS

    def plan(self, shape: tuple[int, ...]) -> Parallel:
        """Return what a fit on ``shape = (users, features)`` will release; needs no data."""
        users, _ = checked_shape(shape)
        POSITIVE.check("diameter", self.diameter)
        k, epsilon = CLASSES.check("k", self.k), self._checked_epsilon()
        RANDOMIZER.check("randomizer", self.randomizer)
        if self.non_private:
            return Parallel([NoPrivacy()] * len(self._user_blocks(users, NoPrivacy())))
        mechanism = randomizer_of(self.randomizer, k, epsilon)
        return Parallel([mechanism] * len(self._user_blocks(users, mechanism)))

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return ``coef_``, computed from released values and the ledger's public rows only."""
        return self._run_sgd(ledger, executor).coefficients

    def fit(
        self, X: Any, y: Any = None, executor: Executor | None = None, ledger: Any = None
    ) -> Self:
        """Fit on public features and private labels, anew; nothing is released on bad input.

        Parameters
        ----------
        X : array_like, sparse array or Chunks
            Public features of shape (users, features); may be a memory map.  With y None, `Chunks`
            that read pairs (X, y) anew for each of three passes: users are then taken in their
            order.
        y : array_like of shape (users,) or None
            Private labels in ``0 .. k - 1``; any other counts as 0, as an error would reveal it.
            None if X gives the pairs.
        executor : concurrent.futures.Executor or None
            Where labels are randomised; None takes threads.  It changes no bit of the result.
        ledger : Budget, Filter, Book, tuple or None
            What the fit draws on, see `PrivateEstimator`; None charges nothing.

        Returns
        -------
        self
            The fitted estimator.
        """
        X, y = validated_fit_data(self, X, y)
        if y is None:
            X, y = split_pairs(X)
        return self._fit_call(X, y, executor, ledger, NO_CALLS)

    def partial_fit(
        self, X: Any, y: Any, executor: Executor | None = None, ledger: Any = None
    ) -> Self:
        """Go on with other users: each person in one call only.

        A stream has no last user, so step t has ``eta_t = D / (L sqrt(2 V_b t))``, L the Lipschitz
        constant of the rows so far: the excess risk is at most sqrt(2) times that of a `fit` on all
        of them.  A person pays for the own call, so `plan_` is that of all calls in parallel;
        `ledger_` and `transcript_` are those of the last call.

        Parameters
        ----------
        X : array_like or sparse array of shape (users, features)
            Public features of the users of this call.
        y : array_like of shape (users,)
            Their private labels, as in `fit`.
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
        rules = {"dtype": np.float64, "y_numeric": True, "accept_sparse": "csr"}
        X, y = validated_data(self, X, y, reset=not self._calls.plans, **rules)
        return self._fit_call(X, y, executor, ledger, self._calls, streamed=True)

    def _fit_call(
        self,
        X: Any,
        y: Any,
        executor: Executor | None,
        ledger: Any,
        before: Calls,
        streamed: bool = False,
    ) -> Self:
        """Go on from the calls before."""
        plan, labels, loss = self.plan(X.shape), checked_labels(y, self.k), label_loss_of(self.loss)
        check_loss(loss, X, self.k, self._lipschitz(X))
        start = None
        if streamed:
            start = before.sums or Descent(np.zeros(loss.shape(X.shape[1], self.k)))
        transcript = "full" if labels.size * self.k <= FULL_TRANSCRIPT_NUMBERS else "digest"
        self.ledger_ = open_call(
            self, labels, plan, before.plans, public=X, transcript=transcript, ledger=ledger
        )
        self._warn_if_not_private("coefficients are")
        descent = self._run_sgd(self.ledger_, executor, start)
        users = before.users + labels.size
        self.coef_, self.lipschitz_ = descent.coefficients, descent.lipschitz
        self.second_moment_ = descent.square / (users * descent.lipschitz**2)
        self.transcript_, self.n_samples_seen_ = self.ledger_.transcript, users
        self._calls = Calls((*before.plans, plan), users, descent)
        return self

    def summary(self) -> str:
        """Return the guarantee, and the mean square of gradients with its bound."""
        check_is_fitted(self)
        name, bound = type(self).__name__, self._decoder(self.plan_).second_moment
        moment = f"mean square of gradients {self.second_moment_:.4g} L^2, at most V = {bound:.8g}"
        if self._is_not_private:
            return f"{super().summary()}; {moment}"
        epsilon, protected = Tight().epsilon(self.plan_, 0.0), Adjacency(self.neighbours).difference
        guarantee = f"{format_guarantee(epsilon, 0.0)}: {protected}"
        return f"{name}: {guarantee}; labels by {first_release(self.plan_)!r}; {moment}"

    excess_bound = renamed_attribute("LabelSGD", "excess_bound", "utility_bound")

    def utility_bound(self, users: int, lipschitz: float) -> float:
        """Return a bound of the expected excess loss over the minimum: ``D L sqrt(V_b / T)``.

        Parameters
        ----------
        users : int
            Number of users.
        lipschitz : float
            The Lipschitz constant L of the loss.

        Returns
        -------
        float
            An upper bound, in units of the loss.
        """
        moment, steps = self._moment_and_steps(self._decoder(self.plan((users, 1))), users)
        lipschitz = POSITIVE.check("lipschitz", lipschitz)
        return self.diameter * lipschitz * math.sqrt(moment / steps)

    def _run_sgd(
        self, ledger: Any, executor: Executor | None, start: Descent | None = None
    ) -> Descent:
        """Return where one pass over the users ends, from ``start`` if it is a part of a stream."""
        X, loss, size = ledger.public, label_loss_of(self.loss), self.batch
        users, features = X.shape
        decoder, before = self._decoder(ledger.plan), start
        if before is None:
            before = Descent(np.zeros(loss.shape(features, self.k)))
        lipschitz = max(self._lipschitz(X), before.lipschitz)
        moment, steps = self._moment_and_steps(decoder, users)
        first_eta, radius = self.diameter / (lipschitz * math.sqrt(moment)), self.diameter / 2
        eta = first_eta / math.sqrt(steps)
        theta = before.theta.copy()
        total, square, done = np.zeros_like(theta), 0.0, before.steps
        blocks: list[Any] = self._user_blocks(users, decoder.mechanism)
        if not isinstance(X, Chunks):  # chunks are read in their order
            order = ledger.coins.permutation(users)
            blocks = [order[block] for block in blocks]
        for rows, coefficients in self._decoded_blocks(ledger, decoder, blocks, theta, executor):
            for first in range(0, len(coefficients), size):
                batch = slice(first, first + size)
                # the sum of the users' gradient estimates, and that of their squared lengths
                gradient, squares = loss.estimate(theta, rows[batch], coefficients[batch])
                # A last, short batch counts as a fraction of a step.
                remaining = len(coefficients) - first
                total += theta * (remaining / size) if remaining < size else theta
                done += 1
                if start is not None:  # how many steps there will be is not known
                    eta = first_eta / math.sqrt(2 * done)
                gradient *= eta / size
                theta -= gradient  # in place: `_decoded_blocks` reads it for the next batch
                length = math.sqrt(np.vdot(theta, theta))
                if length > radius:
                    theta *= radius / length
                square += squares
        steps += before.steps
        return Descent(theta, before.total + total, steps, before.square + square, lipschitz)

    def _decoder(self, plan: Any) -> ReportDecoder:
        return decoder_of(first_release(plan), self.k, label_loss_of(self.loss).regular)

    def _decoded_blocks(
        self,
        ledger: Any,
        decoder: ReportDecoder,
        blocks: list[Any],
        theta: Array,
        executor: Executor | None,
    ) -> Iterator[tuple[Any, Array]]:
        """Yield the rows of each block, and K coefficients for each user's report.

        ``theta`` is the caller's array, which is changed in place between two blocks.
        """
        X, mechanism, loss = ledger.public, decoder.mechanism, label_loss_of(self.loss)
        if self._waits_for_theta(mechanism):
            for block_users in blocks:  # sequentially interactive: theta has moved
                rows = X[block_users]
                span = GradientSpan.from_gram(loss.gram(theta, rows))
                yield (
                    rows,
                    span.coefficients(
                        ledger.release_each(mechanism, span.label_corners, block_users)
                    ),
                )
            return
        query, decode = label_query, decoder.coefficients
        if isinstance(decoder, RotatedGradientDecoder):  # the span is the same for all theta
            simplex = GradientSpan.regular_simplex(self.k)
            query, decode = simplex.label_corners, simplex.coefficients
        reports = ledger.release_blocks(mechanism, query, blocks, executor)
        for block_users, report in zip(blocks, reports, strict=True):
            yield X[block_users], decode(report)

    def _moment_and_steps(self, decoder: ReportDecoder, users: int) -> tuple[float, float]:
        """Return ``V_b`` and the number of steps, of which the last may be a fraction."""
        # The mean of b independent estimates has E |.|^2 <= L^2 (V / b + 1 - 1 / b) = L^2 V_b.
        return 1 + (decoder.second_moment - 1) / self.batch, users / self.batch

    def _user_blocks(self, users: int, mechanism: Any) -> list[slice]:
        """Return blocks of users who report at once.

        A block is one batch if reports depend on theta, which each batch moves; else it is as many
        whole batches as fit into memory together.
        """
        size = IntegerRange(1).check("batch", self.batch)
        if size > users:
            request = f"{size} for n_samples={users}"
            raise ParameterError("batch", request, "at most the number of users")
        waits = self._waits_for_theta(mechanism)
        block_users = size if waits else max(1, BLOCK_COEFFICIENTS // self.k // size) * size
        return [slice(start, start + block_users) for start in range(0, users, block_users)]

    def _waits_for_theta(self, mechanism: Any) -> bool:
        """Return whether users report gradients (Duchi's randomiser) whose span moves with theta.

        The gradients of a *regular* loss are corners of a regular simplex at any theta, and those
        of two labels the two ends of a segment.
        """
        has_fixed_span = label_loss_of(self.loss).regular or self.k == 2
        return isinstance(mechanism, HemisphereL2) and not has_fixed_span

    def __sklearn_tags__(self) -> Any:
        """Return tags that allow sparse features."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _lipschitz(self, X: Any) -> float:
        """Return the Lipschitz constant of the loss, from the longest row of X."""
        length = (
            math.sqrt(max(squared_lengths(X[block_rows]).max() for block_rows in row_blocks(X)))
            or 1.0
        )
        bound = label_loss_of(self.loss).lipschitz(length, self.k)
        return POSITIVE.check("loss.lipschitz", bound)


@final
@dataclass(frozen=True, slots=True)
class Descent:
    """Where a descent stands: the last iterate, the sum of all, and the number of steps.

    ``square`` is the sum of the squared lengths of the gradient estimates.
    """

    theta: Array
    total: Array | float = 0.0
    steps: float = 0.0
    square: float = 0.0
    lipschitz: float = 0.0

    @property
    def coefficients(self) -> Array:
        """The average of all iterates."""
        return np.asarray(self.total / self.steps)


def label_query(labels: Any) -> Any:
    """Return labels as they are: the query of mechanisms that randomise a label itself."""
    return labels


def checked_labels(y: Any, classes: int) -> Any:
    """Return labels as integers; a label outside 0 to ``classes - 1`` counts as 0."""
    labels = np.asarray(y)  # private: an error about one label would reveal it
    if labels.ndim != 1 or labels.dtype.kind not in "biuf":
        allowed = f"whole numbers from 0 to {classes - 1}, one for each row"
        raise ParameterError("y", f"{labels.dtype}{labels.shape}", allowed)
    valid = (labels >= 0) & (labels < classes) & (labels == np.floor(labels))
    return np.where(valid, labels, 0).astype(np.intp)
