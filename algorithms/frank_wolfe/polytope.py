"""Private Frank-Wolfe over any polytope, for any convex loss of bounded gradients."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from accountant.domains import DELTA, POSITIVE, IntegerRange
from accountant.ledger.ledger import Ledger
from accountant.numerics import Array
from accountant.plans.adjacency import RECORD_RELATIONS, REPLACE, check_relation
from accountant.plans.plan import Repeat
from algorithms.base.estimators import PrivateEstimator, checked_shape, generator_of, validated_data
from algorithms.base.glm_losses import SQUARED, DeclaredLoss, LinearLoss, glm_loss_of
from algorithms.frank_wolfe.constants import (
    SELECTION,
    Bounds,
    noise_scale,
    optimal_l1_rounds,
    optimal_rounds,
    selection_mechanism,
    selection_regret,
    utility_bound,
)
from algorithms.frank_wolfe.dense_scores import DeclaredScores, DenseScores, clipped_entries
from algorithms.frank_wolfe.polytopes import L1Ball, Polytope
from algorithms.frank_wolfe.user_sets import polytope_of
from mechanisms.families.selection import BOOLEAN

__all__ = [
    "Bounds",
    "DenseScores",
    "FrankWolfe",
    "clipped_entries",
    "optimal_l1_rounds",
    "run_frank_wolfe",
]


class FrankWolfe(PrivateEstimator):
    """Minimise a mean loss over a polytope; (epsilon, delta)-DP for every record.

    ``loss`` is "squared", "logistic" (labels -1 and 1), a `LinearLoss` or a `DeclaredLoss`;
    ``vertices_or_oracle`` an array (vertices, features), an `L1Ball`, a `Simplex`, a `box`, or an
    object as `Polytope` has it.  Features and targets are clipped to ``x_bound`` and ``y_bound``.
    ``rounds`` is the number of selections, the paper's T - 1; None takes the optimum T* of the
    utility bound.  ``average`` returns the mean of the iterates, later ones weighing more, in
    place of the last.  ``relation="add-remove"`` takes the number of records as public: a record is
    exchanged for one whose gradient is 0.

    After ``fit``: ``coef_``, ``rounds_``, ``plan_``, ``ledger_``, ``transcript_``.
    Source: Talwar, Thakurta & Zhang (2015), Algorithm 2, its noise recalibrated.
    """

    def __init__(
        self,
        loss: str | LinearLoss | DeclaredLoss,
        vertices_or_oracle: Any,
        epsilon: float,
        delta: float,
        *,
        rounds: int | None = None,
        selection: str = "gumbel",
        average: bool = False,
        x_bound: float = 1.0,
        y_bound: float = 1.0,
        relation: str = REPLACE,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.vertices_or_oracle = vertices_or_oracle
        self.epsilon = epsilon
        self.delta = delta
        self.rounds = rounds
        self.selection = selection
        self.average = average
        self.x_bound = x_bound
        self.y_bound = y_bound
        self.relation = relation
        self.random_state = random_state

    def plan(self, shape: tuple[int, ...]) -> Repeat:
        """Return what a fit on ``shape = (records, features)`` will release; needs no data."""
        records, features = checked_shape(shape)
        BOOLEAN.check("average", self.average)
        loss, polytope, bounds = self._problem()
        vertices = polytope.count(features)
        relation = check_relation("relation", self.relation, RECORD_RELATIONS)
        selection = SELECTION.check("selection", self.selection)
        epsilon, delta = POSITIVE.check("epsilon", self.epsilon), DELTA.check("delta", self.delta)
        sensitivity = bounds.score_sensitivity(records, relation, loss)
        if self.rounds is None:
            curvature = bounds.curvature(loss)
            rounds = optimal_rounds(curvature, sensitivity, vertices, selection, epsilon, delta)
        else:
            rounds = IntegerRange(1).check("rounds", self.rounds)
        scale = noise_scale(epsilon, delta, rounds, selection, sensitivity)
        return Repeat(selection_mechanism(scale, sensitivity, selection), rounds)

    def utility_bound(self, shape: tuple[int, ...], gap: float) -> float:
        """Bound the expected excess of the loss; ``gap`` is the excess of the starting point."""
        loss, polytope, bounds = self._problem()
        plan: Any = self.plan(shape)
        noise = plan.part.scale * selection_regret(polytope.count(shape[1]), self.selection)
        return utility_bound(bounds.curvature(loss), plan.count, noise, gap, self.average)

    def run(self, ledger: Any) -> Array:
        """Return the coefficients, seen through the gate alone."""
        loss, polytope, bounds = self._problem()
        plan = ledger.plan
        return run_frank_wolfe(ledger, plan.part, plan.count, bounds, loss, polytope, self.average)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on X (records, features), dense or sparse, and y; nothing is spent on bad input."""
        X, y = validated_data(self, X, y, dtype=np.float64, y_numeric=True, accept_sparse="csr")
        plan, rng = self.plan(X.shape), generator_of(self.random_state)
        self.plan_, self.rounds_ = plan, plan.count
        self.ledger_ = Ledger((X, y), plan, rng=rng)
        self.coef_ = self.run(self.ledger_)
        self.transcript_ = self.ledger_.transcript
        return self

    def _problem(self) -> tuple[LinearLoss | DeclaredLoss, Polytope, Bounds]:
        polytope = polytope_of(self.vertices_or_oracle)
        x, y = POSITIVE.check("x_bound", self.x_bound), POSITIVE.check("y_bound", self.y_bound)
        return glm_loss_of(self.loss), polytope, Bounds(polytope.norm, x, y)


def run_frank_wolfe(
    ledger: Any,
    mechanism: Any,
    rounds: int,
    bounds: Bounds,
    loss: LinearLoss | DeclaredLoss = SQUARED,
    polytope: Polytope | None = None,
    average: bool = False,
    query: Any = None,
) -> Array:
    """Run the rounds through the gate; return the last iterate, or the mean of all."""
    polytope, features = polytope or L1Ball(bounds.radius), ledger.shape[1]
    if query is None and isinstance(loss, DeclaredLoss):
        query = DeclaredScores(loss, polytope)
    elif query is None and isinstance(loss, LinearLoss):
        query = DenseScores(bounds, loss, polytope)
    theta = polytope.start(features)
    mean = theta.copy()
    for t in range(1, rounds + 1):
        vertex = polytope.vertex(int(ledger.release(mechanism, query)), features)
        where = np.flatnonzero(vertex)
        at = int(where[0]) if where.size == 1 else where
        step = 2 / (t + 2)
        theta *= 1 - step
        theta[at] += step * vertex[at]
        query.move(step, at, vertex[at])
        if average:
            # iterate t + 1 weighs 2 (t + 1) / ((t + 1) (t + 2)) of the mean so far
            mean += step * (theta - mean)
    return mean if average else theta
