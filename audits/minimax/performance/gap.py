"""How far an algorithm is from the best that privacy allows: its risk beside the bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.domains import Whole
from accountant.randomness import Rng
from audits.claims.arguments import seeded
from audits.minimax.bounds.bound import LowerBound
from audits.minimax.performance.algorithm_table import Match
from audits.minimax.problems import lower_bound


@final
@dataclass(frozen=True, slots=True)
class Distance:
    """An algorithm's mean loss on the hard family of a bound, in runs of their own.

    ``risk`` and ``free``, without noise, come with standard errors; ``promise`` is the upper bound
    of its theorem, None where there is none.  ``ratio`` is risk over bound: a large one may be the
    algorithm's fault or the bound's.
    """

    algorithm: str
    setting: dict[str, Any]
    bound: LowerBound
    losses: tuple[float, ...]
    free_losses: tuple[float, ...]
    promise: float | None

    @property
    def risk(self) -> tuple[float, float]:
        """Mean and its standard error."""
        return _mean(self.losses)

    @property
    def free(self) -> tuple[float, float]:
        """The same without noise, on the same data."""
        return _mean(self.free_losses)

    @property
    def ratio(self) -> float:
        """Risk over lower bound."""
        return self.risk[0] / self.bound.value if self.bound.value > 0 else math.inf


def distance(match: Match, setting: dict[str, Any], runs: int = 20, rng: Rng = None) -> Distance:
    """Run an algorithm ``runs`` times on the hard family of its problem's bound."""
    runs = Whole(1).check("runs", runs)
    bound = lower_bound(match.problem, **setting)
    _, source = seeded(rng)
    seeds = [int(seed) for seed in source.integers(2**53, size=runs)]

    def losses(noise: float) -> tuple[float, ...]:
        # the same seeds: the same points and data
        return tuple(
            match.loss(setting, bound, np.random.default_rng(seed), noise) for seed in seeds
        )

    return Distance(
        match.algorithm, setting, bound, losses(1.0), losses(0.0), match.promise(setting, bound)
    )


def _mean(some: tuple[float, ...]) -> tuple[float, float]:
    values = np.array(some)
    error = values.std(ddof=1) / math.sqrt(values.size) if values.size > 1 else math.nan
    return float(values.mean()), float(error)
