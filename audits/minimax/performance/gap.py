"""The gap between an algorithm's measured risk and the minimax lower bound of its problem.

The risk is the mean loss of runs on the hard family of the bound, with and without noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.domains import IntegerRange
from accountant.randomness import Rng
from audits.claims.arguments import seed_and_generator
from audits.minimax.bounds.bound import LowerBound
from audits.minimax.performance.algorithm_table import AlgorithmEntry
from audits.minimax.problems import lower_bound


@final
@dataclass(frozen=True, slots=True)
class RiskGap:
    """An algorithm's losses on the hard family of a bound, one per run.

    ``risk`` and ``noiseless_risk`` are the means with and without privacy noise, each with its
    standard error.  ``theorem_bound`` is the upper bound that a theorem proves, or None.  ``ratio``
    is risk over lower bound; if it is large, the algorithm or the bound may be improved.
    """

    algorithm: str
    setting: dict[str, Any]
    bound: LowerBound
    losses: tuple[float, ...]
    noiseless_losses: tuple[float, ...]
    theorem_bound: float | None

    @property
    def risk(self) -> tuple[float, float]:
        """Mean and its standard error."""
        return _mean_and_error(self.losses)

    @property
    def noiseless_risk(self) -> tuple[float, float]:
        """The same without noise, on the same data."""
        return _mean_and_error(self.noiseless_losses)

    @property
    def ratio(self) -> float:
        """Risk over lower bound."""
        return self.risk[0] / self.bound.value if self.bound.value > 0 else math.inf


def measure_risk_gap(
    entry: AlgorithmEntry, setting: dict[str, Any], runs: int = 20, rng: Rng = None
) -> RiskGap:
    """Run an algorithm ``runs`` times on the hard family of its problem's bound."""
    runs = IntegerRange(1).check("runs", runs)
    bound = lower_bound(entry.problem, **setting)
    _, source = seed_and_generator(rng)
    seeds = [int(seed) for seed in source.integers(2**53, size=runs)]

    def losses(noise: float) -> tuple[float, ...]:
        # the same seeds give the same points and data with and without noise
        return tuple(
            entry.loss(setting, bound, np.random.default_rng(seed), noise) for seed in seeds
        )

    return RiskGap(
        algorithm=entry.algorithm,
        setting=setting,
        bound=bound,
        losses=losses(noise=1.0),
        noiseless_losses=losses(noise=0.0),
        theorem_bound=entry.theorem_bound(setting, bound),
    )


def _mean_and_error(sample: tuple[float, ...]) -> tuple[float, float]:
    """The mean and its standard error, NaN for a single run."""
    values = np.array(sample)
    error = values.std(ddof=1) / math.sqrt(values.size) if values.size > 1 else math.nan
    return float(values.mean()), float(error)
