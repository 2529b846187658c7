"""A whole algorithm under audit: replay, then samples of its privacy loss against its claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.loss import Loss
from accountant.numerics import Array
from accountant.plan import Plan
from accountant.tight import Tight
from audits.bounds import mean_band
from audits.gates import OffTranscript
from audits.replaying import Algorithm, Replayed, declared_plan, replay, sampled_losses

# Epsilons at which the profile is bounded, as shares of the claim's own: fixed before any sample
# is seen, since the union bound over them must not be chosen by the data.
SHARES = np.concatenate([[0.0], 2.0 ** np.arange(-6.0, 3.1, 0.5)])
TOLERANCE = 1e-6  # a sampled loss this much (relative) above a pure claim is float rounding


@final
@dataclass(frozen=True, slots=True)
class Profile:
    """The empirical profile of loss samples: its mean and band, beside the accountant's curve."""

    epsilon: Array
    mean: Array
    lower: Array
    upper: Array
    accountant: Array


@final
@dataclass(frozen=True, slots=True)
class Examination:
    """What replay and loss samples say of an algorithm on one pair of data sets."""

    plan: Plan
    claim: Loss
    replayed: Replayed
    losses: Array

    def refutation(self, confidence: float) -> str:
        """Why the claim is false, in words; "" where the evidence does not say so."""
        if not self.replayed.sound:
            return f"replay: {self.replayed.witness}"
        # a pure claim bounds every single loss, so one sample above it is a proof
        pure, most = self.claim.pure, float(np.max(self.losses, initial=-np.inf))
        if not most <= pure * (1 + TOLERANCE):
            return f"privacy losses: one run lost {most:.4g}, the claim allows {pure:.4g}"
        epsilons = self.points()
        lower = self.band(epsilons, confidence)[1]
        claimed = np.array([self.claim.delta_at(e) for e in epsilons])
        over = np.flatnonzero(lower > claimed)
        if over.size == 0:
            return ""
        at = over[0]
        return (
            f"privacy losses: delta at epsilon {epsilons[at]:.3g} is at least {lower[at]:.3g}, "
            f"the claim allows {claimed[at]:.3g}"
        )

    def epsilon_lower(self, delta: float, confidence: float) -> float | None:
        """Lower bound on the epsilon at ``delta`` between these data sets; None without losses."""
        if self.losses.size == 0:
            return None
        epsilons = self.points()
        lower = self.band(epsilons, confidence)[1]
        return float(np.max(epsilons[lower > delta], initial=0.0))

    def band(self, epsilons: Array, confidence: float) -> tuple[Array, Array, Array]:
        """Mean and simultaneous band of delta(epsilon) = E (1 - e^{eps - loss})_+."""
        sticks = -np.expm1(np.minimum(epsilons - self.losses[:, None], 0.0))
        lower, upper = mean_band(sticks, (1 - confidence) / epsilons.size)
        return sticks.mean(axis=0), lower, upper

    def points(self) -> Array:
        """Epsilons from 0 to eight times the claim's."""
        own = self.claim.epsilon_at(max(self.claim.infinity, 1e-5))
        return np.asarray((own if 0 < own < np.inf else 1.0) * SHARES)

    def profile(self, epsilons: Array, confidence: float) -> Profile:
        """The empirical profile and the accountant's at the given epsilons."""
        curve = np.array([Tight().delta(self.plan, e) for e in epsilons])
        return Profile(epsilons, *self.band(epsilons, confidence), curve)


def examine(
    algorithm: Algorithm,
    data: Any,
    neighbour: Any,
    claim: Loss,
    runs: int,
    rng: np.random.Generator,
    public: Any = None,
    tick: Callable[[], None] = lambda: None,
) -> Examination:
    """Replay once, then sample ``runs`` privacy losses unless the replay already failed."""
    first, second = rng.spawn(2)
    replayed = replay(algorithm, data, neighbour, public=public, rng=first)
    found = []
    if replayed.sound:
        try:
            for loss in sampled_losses(algorithm, data, neighbour, runs, public, second):
                found.append(loss)
                tick()
        except OffTranscript as error:
            replayed = Replayed(False, False, True, np.nan, str(error))
    plan = declared_plan(algorithm, data, public)
    return Examination(plan, claim, replayed, np.array(found))
