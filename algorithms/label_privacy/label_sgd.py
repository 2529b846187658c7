"""Convex optimisation with private labels: one pass of projected stochastic gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from accountant.accountants.tight import Tight
from accountant.domains import POSITIVE, Whole
from accountant.errors import ParameterError
from accountant.ledger.chunks import Chunks
from accountant.ledger.ledger import Ledger
from accountant.numerics import Array
from accountant.plans.adjacency import RELATIONS
from accountant.plans.parallel import Parallel
from algorithms.base.estimators import (
    PrivateEstimator,
    apart,
    checked_fit,
    checked_shape,
    noise_source,
)
from algorithms.base.non_private import Revealed
from algorithms.base.row_blocks import row_blocks
from algorithms.label_privacy.gradient_span import Span
from algorithms.label_privacy.label_checks import check_loss, checked_labels
from algorithms.label_privacy.label_losses import LabelLoss, loss_of, squares
from algorithms.label_privacy.label_randomizers import CLASSES, RANDOMIZER, randomizer_of
from algorithms.label_privacy.report_decoders import Analyser, Turned, analyser_of
from mechanisms.hemisphere import HemisphereL2

ENTRIES = 1 << 20  # coefficients in memory at a time
KEPT = 50_000_000  # entries of all reports that a transcript keeps in full


class LabelSGD(PrivateEstimator):
    """Minimise a convex loss of public rows and private labels ``0 .. classes - 1``.

    Every label is randomised once, at ``epsilon``.  Users are taken in a random order, each once,
    ``batch_size`` a step: ``theta - eta gradient``, projected to the ball of ``diameter`` about 0,
    with ``eta = D / (L sqrt(V_b T))`` for T steps and ``V_b = 1 + (V - 1) / batch_size``.
    ``coef_`` is the average of all iterates, of shape (classes, features) unless the loss says
    otherwise.  ``loss`` is "logistic", "hinge" (Crammer & Singer), "linear" or a `LabelLoss`;
    ``randomizer`` is "auto", "unary", "subset", "response" or "duchi".

    After ``fit``: ``coef_``, ``plan_``, ``ledger_``, ``transcript_``, ``lipschitz_``, and
    ``second_moment_``, the gradients' mean square in squares of it.
    Source: "Convex Optimization with Local Label Differential Privacy", Theorem 1, Algorithm 1 and
    Appendices A and B; its Appendix B about a public centre, which saves a dimension.
    """

    neighbours: ClassVar[str] = "label-replace"

    def __init__(
        self,
        *,
        epsilon: float,
        classes: int,
        loss: str | LabelLoss = "logistic",
        diameter: float,
        randomizer: str = "auto",
        batch_size: int = 1,
        non_private: bool = False,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.classes = classes
        self.loss = loss
        self.diameter = diameter
        self.randomizer = randomizer
        self.batch_size = batch_size
        self.non_private = non_private
        self.random_state = random_state

    def plan(self, shape: tuple[int, ...]) -> Parallel:
        """Return what a fit on ``shape = (users, features)`` will release; needs no data."""
        users, _ = checked_shape(shape)
        POSITIVE.check("diameter", self.diameter)
        classes, epsilon = CLASSES.check("classes", self.classes), self._budget()
        RANDOMIZER.check("randomizer", self.randomizer)
        if self.non_private:
            return Parallel([Revealed()] * len(self._blocks(users, Revealed())))
        mechanism = randomizer_of(self.randomizer, classes, epsilon)
        return Parallel([mechanism] * len(self._blocks(users, mechanism)))

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return the average of all iterates, seen through the gate alone."""
        return self._descend(ledger, executor)[0]

    def fit(self, X: Any, y: Any = None, executor: Executor | None = None) -> Self:
        """Fit on public X (users, features), dense or sparse, and private y (users,).

        X may be a memory map, or with y None `Chunks` that read pairs (X, y) anew for each of
        three passes: users are then taken in their order.  ``executor`` (threads by default)
        randomises labels, and changes no bit.
        """
        X, y = checked_fit(self, X, y)
        if y is None:
            X, y = apart(X)
        plan, rng = self.plan(X.shape), noise_source(self.random_state)
        labels = checked_labels(y, self.classes)
        self.lipschitz_ = self._lipschitz(X)
        check_loss(loss_of(self.loss), X, self.classes, self.lipschitz_)
        self.plan_ = plan
        self._mark("coefficients are")
        kept = "full" if labels.size * self.classes <= KEPT else "digest"
        self.ledger_ = Ledger(labels, plan, rng=rng, public=X, transcript=kept)
        self.coef_, self.second_moment_ = self._descend(self.ledger_, executor)
        self.transcript_ = self.ledger_.transcript
        return self

    def summary(self) -> str:
        """What the fit guarantees, and the gradients' mean square beside what it is at most."""
        check_is_fitted(self)
        name, most = type(self).__name__, self._analyser(self.plan_).second_moment
        moment = f"mean square of gradients {self.second_moment_:.4g} L^2, at most V = {most:.8g}"
        if self.non_private:
            return f"{super().summary()}; {moment}"
        epsilon, who = Tight().epsilon(self.plan_, 0.0), RELATIONS[self.neighbours]
        guarantee = f"({epsilon:.6g}, 0)-differential privacy: {who}"
        return f"{name}: {guarantee}; labels by {self.plan_.parts[0]!r}; {moment}"

    def excess_bound(self, users: int, lipschitz: float) -> float:
        """Most that the expected loss exceeds the least by: ``D L sqrt(V_b / T)``."""
        moment, steps = self._pace(self._analyser(self.plan((users, 1))), users)
        return self.diameter * lipschitz * math.sqrt(moment / steps)

    def _descend(self, ledger: Any, executor: Executor | None) -> tuple[Array, float]:
        X, loss, size = ledger.public, loss_of(self.loss), self.batch_size
        users, features = X.shape
        analyser, lipschitz = self._analyser(ledger.plan), self._lipschitz(X)
        moment, steps = self._pace(analyser, users)
        eta, radius = self.diameter / (lipschitz * math.sqrt(moment * steps)), self.diameter / 2
        theta = np.zeros(loss.shape(features, self.classes))
        total, square = np.zeros_like(theta), 0.0
        blocks: list[Any] = self._blocks(users, analyser.mechanism)
        if not isinstance(X, Chunks):  # which are read in their order
            order = ledger.coins.permutation(users)
            blocks = [order[block] for block in blocks]
        for rows, coefficients in self._estimates(ledger, analyser, blocks, theta, executor):
            for start in range(0, len(coefficients), size):
                some = slice(start, start + size)
                gradient, squared = loss.estimate(theta, rows[some], coefficients[some])
                # a last, short batch is a part of a step
                left = len(coefficients) - start
                total += theta * (left / size) if left < size else theta
                gradient *= eta / size
                theta -= gradient
                length = math.sqrt(np.vdot(theta, theta))
                if length > radius:
                    theta *= radius / length
                square += squared
        return total / steps, square / (users * lipschitz**2)

    def _analyser(self, plan: Any) -> Analyser:
        return analyser_of(plan.parts[0], self.classes, loss_of(self.loss).regular)

    def _estimates(
        self,
        ledger: Any,
        analyser: Analyser,
        blocks: list[Any],
        theta: Array,
        executor: Executor | None,
    ) -> Iterator[tuple[Any, Array]]:
        """Rows of each block, and one coefficient for every label of each user's report."""
        X, mechanism, loss = ledger.public, analyser.mechanism, loss_of(self.loss)
        if isinstance(analyser, Turned) and not self._regular:
            for who in blocks:  # sequentially interactive: theta has moved
                rows = X[who]
                span = Span.of(loss.gram(theta, rows))
                yield rows, span.coefficients(ledger.release_each(mechanism, span.corner, who))
            return
        query, decode = _labels, analyser.coefficients
        if isinstance(analyser, Turned):  # the span is the same whatever theta
            query, decode = (one := Span.regular(self.classes)).corner, one.coefficients
        reports = ledger.release_blocks(mechanism, query, blocks, executor)
        for who, report in zip(blocks, reports, strict=True):
            yield X[who], decode(report)

    def _pace(self, analyser: Analyser, users: int) -> tuple[float, float]:
        """``V_b``, and the number of steps, of which the last may be a part of one."""
        # of the mean of b independent estimates E|.|^2 <= L^2 (V / b + 1 - 1 / b)
        return 1 + (analyser.second_moment - 1) / self.batch_size, users / self.batch_size

    def _blocks(self, users: int, mechanism: Any) -> list[slice]:
        """Users who report at once: whole batches, one if reports depend on theta."""
        size = Whole(1).check("batch_size", self.batch_size)
        if size > users:
            got = f"{size} for n_samples={users}"
            raise ParameterError("batch_size", got, "at most the number of users")
        waits = isinstance(mechanism, HemisphereL2) and not self._regular
        each = size if waits else max(1, ENTRIES // self.classes // size) * size
        return [slice(start, start + each) for start in range(0, users, each)]

    @property
    def _regular(self) -> bool:
        return loss_of(self.loss).regular or self.classes == 2

    def _lipschitz(self, X: Any) -> float:
        length = math.sqrt(max(squares(X[who]).max() for who in row_blocks(X))) or 1.0
        bound = loss_of(self.loss).lipschitz(length, self.classes)
        return POSITIVE.check("loss.lipschitz", bound)


def _labels(labels: Any) -> Any:
    return labels
