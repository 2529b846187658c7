"""The score of a declared mechanism: the log-likelihood ratio of its own densities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from audits.classifiers.decision_rules import ScoreFunction
from mechanisms.base.mechanism import Mechanism


@final
@dataclass(frozen=True, slots=True)
class LogLikelihoodRatio:
    """The log-likelihood ratio of a pair of values under a declared mechanism."""

    mechanism: Mechanism
    first: Any
    second: Any

    def __call__(self, output: NDArray[Any]) -> Array:
        """The log-odds of outputs."""
        log_density = self.mechanism.log_density
        return log_density(output, self.first) - log_density(output, self.second)


@final
@dataclass(frozen=True, slots=True)
class LogOddsTable:
    """The log-odds of outputs 0, 1, 2 and so on."""

    log_odds: Array

    def __call__(self, output: NDArray[Any]) -> Array:
        """The log-odds of outputs."""
        return np.asarray(self.log_odds[output])


def likelihood_ratio_score(mechanism: Mechanism, pair: tuple[Any, Any]) -> ScoreFunction:
    """The exact log-likelihood ratio of a declared mechanism."""
    ratio, outcomes = LogLikelihoodRatio(mechanism, *pair), mechanism.support.outcomes(pair[0])
    if outcomes is None or np.ndim(pair[0]) != mechanism.value_axes:
        return ratio
    return LogOddsTable(ratio(outcomes))
