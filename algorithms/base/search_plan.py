"""What a private search releases, from public numbers: settings, their fits and scores, tries.

References: Liu & Talwar (2019); Papernot & Steinke (2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from accountant.accountants.tight import Tight
from accountant.amplification.repeated import Repeated
from accountant.amplification.tries import NegativeBinomial, Tries, tries_of_mean
from accountant.domains import DELTA, POSITIVE, Interval
from accountant.errors import ParameterError
from accountant.numerics.rounding import round_up
from accountant.planning.calibration import calibrate
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Plan
from algorithms.base.estimators import PrivateEstimator
from algorithms.base.fit_data import checked_shape
from mechanisms.gaussian import Gaussian
from mechanisms.laplace import Laplace

SHARE = Interval(0.0, 1.0, "()")
PRECISION = 1e-3  # how close a fit's epsilon comes to what the budget allows
MAX_TRIALS = 30  # of the search for this epsilon; it usually takes four or five


@final
@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The parameters of a search."""

    estimator: Any
    candidates: Any
    epsilon: float
    delta: float
    tries: Any
    validation: float

    def run_epsilon(self, shape: tuple[int, ...]) -> float:
        """Return the epsilon of a fit, the greatest found that the budget of the search allows."""
        target, delta = POSITIVE.check("epsilon", self.epsilon), DELTA.check("delta", self.delta)

        # the cost is nearly proportional to the epsilon of a fit
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
        """Return the plan of a search whose fits and scores each have ``epsilon``."""
        train, test = self.rows(shape)
        fits = [self.at(setting, epsilon).plan((train, shape[1])) for setting in self.settings()]
        self.adjacency(fits)
        # A record is used for fitting or for scoring, and pays for one of the two.
        return Repeated(Parallel([*fits, self._scoring(epsilon, test)]), self.checked_tries())

    def _scoring(self, epsilon: float, rows: int) -> Plan:
        moved = round_up(1 / rows)  # how far a record moves a mean of numbers in [0, 1]
        if self.delta:
            return calibrate(Gaussian, sensitivity=moved, epsilon=epsilon, delta=self.delta)
        return Laplace(round_up(moved / epsilon), moved)

    def rows(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Return how many records fit, and how many score."""
        records, _ = checked_shape(shape)
        share = SHARE.check("validation", self.validation)
        if records < 2:
            raise ParameterError("X", f"n_samples={records}", "at least 2 records: one scores")
        test = min(max(1, round(share * records)), records - 1)
        return records - test, test

    def at(self, settings: dict[str, Any], epsilon: float) -> Any:
        """Return an estimator at a setting."""
        return clone(self.estimator).set_params(**settings, epsilon=epsilon, delta=self.delta)

    def settings(self) -> list[dict[str, Any]]:
        """Return the candidates; refuse settings that the search itself sets."""
        if not isinstance(self.estimator, PrivateEstimator):
            raise ParameterError("estimator", type(self.estimator), "a private estimator")
        try:
            candidates = list(ParameterGrid(self.candidates))
        except (TypeError, ValueError) as error:
            allowed = f"lists of values for parameters: {error}"
            raise ParameterError("candidates", self.candidates, allowed) from None
        if not candidates:
            raise ParameterError("candidates", self.candidates, "one setting at least")
        reserved = {"epsilon", "delta", "random_state", "non_private"} & {
            k for setting in candidates for k in setting
        }
        parameters = self.estimator.get_params()
        unknown = sorted({k for setting in candidates for k in setting} - set(parameters)) + sorted(
            reserved
        )
        if unknown or "delta" not in parameters:
            allowed = "lists of values for parameters of the estimator that the search does not set"
            raise ParameterError("candidates", unknown or "no delta", allowed)
        return candidates

    def checked_tries(self) -> Tries:
        """Return the law of the number of fits, at least one."""
        tries: Any = self.tries
        if tries is None:
            return tries_of_mean(2.0 * len(self.settings()), 0.0)
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
    # P(1) is the generating function at a small x, divided by x.  P(k + 1) / P(k) is
    # (1 - stop) (k + shape) / (k + 1)
    chance, number = 1e8 * tries.generating_function(1e-8), 1
    remaining = rng.random() - chance
    while remaining > 0 and chance > 0:
        chance *= (1 - tries.stop) * (number + tries.shape) / (number + 1)
        number += 1
        remaining -= chance
    return number
