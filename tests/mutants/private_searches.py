"""Wrong private searches, and the data that convict them."""

import numpy as np

from accountant import GeometricTries
from algorithms import PrivateLasso, PrivateSearchCV
from tests.laws.algorithms import Run

RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, (60, 3))
Y = X[:, 0]
FAR = (np.where(np.arange(60)[:, None] == 0, 9.0, X), np.where(np.arange(60) == 0, -9.0, Y))


class ScoresPastTheGate(PrivateSearchCV):
    """Keeps the fit whose score without noise is best."""

    def _one_try(self, X, y, *rest):
        found = super()._one_try(X, y, *rest)
        return found._replace(score=found.score + 1e-9 * self._mean_score(found.model, None, X, y))


class PartsByTheData(PrivateSearchCV):
    """Fits to the records of least targets."""

    def _one_try(self, X, y, classes, train, test, *rest):
        order = np.argsort(y, kind="stable")
        return super()._one_try(X, y, classes, order[: len(train)], order[len(train) :], *rest)


class CentredByTheData(PrivateSearchCV):
    """Adds the mean of the targets, which is private, to the best fit."""

    def fit(self, X, y, ledger=None):
        found = super().fit(X, y, ledger)
        found.best_estimator_.coef_ = found.best_estimator_.coef_ + 1e-9 * np.mean(y)
        return found


def run_of(kind):
    """A search beside one record exchanged for another."""
    made = kind(
        PrivateLasso(1.0, 0.0, rounds=2), {"radius": [0.1, 1.0]}, epsilon=3.0,
        tries=GeometricTries(0.3), random_state=4,
    )  # fmt: skip
    return Run(made, (X, Y), FAR)


SEARCHES = {
    kind.__name__: (run_of(kind), run_of(PrivateSearchCV))
    for kind in (ScoresPastTheGate, PartsByTheData, CentredByTheData)
}
