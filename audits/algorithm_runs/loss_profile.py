"""A whole algorithm under audit: replay, then weighted samples of its privacy loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.accountants.tight import Tight
from accountant.errors import OffPlan
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.plans.plan import Plan
from audits.algorithm_runs.fits import declared_plan
from audits.algorithm_runs.importance_sampling import (
    MIN_UNTILTED_SHARE,
    WeightedLoss,
    weighted_losses,
)
from audits.algorithm_runs.recording import OffTranscript
from audits.algorithm_runs.replaying import Algorithm, Replayed, replay
from audits.claims.arguments import claimed_delta
from audits.statistics.binomial_bounds import mean_confidence_band
from audits.statistics.mean_bounds import mean_lower

# Epsilons at which the profile is bounded, as shares of the claim's own: fixed before any sample
# is seen, since the union bound over them must not be chosen by the data.
EPSILON_SHARES = np.unique(
    np.concatenate([[0.0], 2.0 ** np.arange(-6.0, 3.1, 0.25), np.arange(0.9, 1.15, 0.1)]).round(12)
)
TOLERANCE = 1e-6  # a sampled loss this much (relative) above a pure claim is float rounding


@final
@dataclass(frozen=True, slots=True)
class EmpiricalProfile:
    """The empirical profile of loss samples: its mean and band, with the accountant's curve."""

    epsilon: Array
    mean: Array
    lower: Array
    upper: Array
    accountant: Array


@final
@dataclass(frozen=True, slots=True)
class AlgorithmAudit:
    """The result of replay and loss samples on one pair of data sets.

    ``losses`` are of all runs, ``untilted`` marks those drawn as the algorithm draws them,
    ``pilot`` the first ones; ``weights[i]`` are the likelihoods of run i on either data set over
    the density that it was drawn from.
    """

    plan: Plan
    claim: Loss
    replayed: Replayed
    losses: Array
    weights: Array
    untilted: NDArray[np.bool_]
    pilot: NDArray[np.bool_]

    def refutation(self, confidence: float) -> str:
        """Why the claim is false, in words; "" if the evidence does not refute it."""
        if not self.replayed.data_independent:
            return f"replay: {self.replayed.witness}"
        epsilons, pure = self.epsilon_grid(), self.claim.pure
        claimed = np.array([self.claim.delta_at(e) for e in epsilons])  # over both directions
        for is_reverse, direction in ((False, ""), (True, " from neighbour to data")):
            # a pure claim bounds every single loss, so one sample above it is a proof; a run that
            # is impossible on the data set of this direction says nothing
            possible = (self.weights[:, int(is_reverse)] != 0) & ~np.isnan(self.losses)
            signed_losses = -self.losses if is_reverse else self.losses
            largest_loss = float(np.max(signed_losses[possible], initial=-np.inf))
            if not largest_loss <= pure * (1 + TOLERANCE):
                return (
                    f"privacy losses: one run lost {largest_loss:.4g}, "
                    f"the claim allows {pure:.4g}{direction}"
                )
            lower = self.profile_lower(epsilons, 1 - (1 - confidence) / 2, reverse=is_reverse)
            refuted = np.flatnonzero(lower > claimed)
            if refuted.size:
                excess = lower[refuted] / np.maximum(claimed[refuted], 1e-300)
                worst_index = refuted[np.argmax(excess)]
                return (
                    f"privacy losses: delta at epsilon {epsilons[worst_index]:.3g} is at least "
                    f"{lower[worst_index]:.3g}, the claim allows {claimed[worst_index]:.3g}"
                    f"{direction}"
                )
        return ""

    def epsilon_lower(self, delta: float, confidence: float) -> float | None:
        """Lower bound on the epsilon at ``delta`` between these data sets; None without losses."""
        if self.losses.size == 0:
            return None
        epsilons, half = self.epsilon_grid(), 1 - (1 - confidence) / 2
        lower = np.maximum(
            self.profile_lower(epsilons, half), self.profile_lower(epsilons, half, reverse=True)
        )
        return float(np.max(epsilons[lower > delta], initial=0.0))

    def confidence_band(self, epsilons: Array, confidence: float) -> tuple[Array, Array, Array]:
        """Mean and simultaneous band of delta(epsilon) = E (1 - e^{eps - loss})_+."""
        sticks = self._hockey_stick_terms(epsilons, reverse=False)
        if len(sticks) == 0:
            return np.zeros(epsilons.size), np.zeros(epsilons.size), np.ones(epsilons.size)
        lower = self.profile_lower(epsilons, 1 - (1 - confidence) / 2)
        # no weight is above 1 / MIN_UNTILTED_SHARE; an unknown loss may have any value
        upper_terms = np.where(np.isnan(sticks), 1.0, np.minimum(sticks * MIN_UNTILTED_SHARE, 1.0))
        upper = (
            mean_confidence_band(upper_terms, (1 - confidence) / epsilons.size)[1]
            / MIN_UNTILTED_SHARE
        )
        mean = np.nan_to_num(sticks).mean(axis=0)
        return np.minimum(mean, 1.0), lower, np.minimum(upper, 1.0)

    def profile_lower(self, epsilons: Array, confidence: float, *, reverse: bool = False) -> Array:
        """Simultaneous lower bounds on the profile, ``reverse`` from the neighbour to the data."""
        # a loss is a sum of floats: what exceeds epsilon by their rounding is no excess
        beyond = epsilons * (1 + TOLERANCE) + 1e-9
        sticks = np.nan_to_num(self._hockey_stick_terms(beyond, reverse=reverse))
        bound = mean_lower(sticks, (1 - confidence) / epsilons.size)
        # a profile falls with epsilon, so a lower bound at an epsilon holds at all smaller ones
        order = np.argsort(-epsilons)
        result = np.empty_like(bound)
        result[order] = np.maximum.accumulate(bound[order])
        return result

    def epsilon_grid(self) -> Array:
        """Epsilons from 0 to eight times the claim's."""
        return np.asarray(claimed_epsilon(self.claim) * EPSILON_SHARES)

    def profile(self, epsilons: Array, confidence: float) -> EmpiricalProfile:
        """The empirical profile and the accountant's at the given epsilons."""
        curve = np.array([Tight().delta(self.plan, e) for e in epsilons])
        return EmpiricalProfile(epsilons, *self.confidence_band(epsilons, confidence), curve)

    def _hockey_stick_terms(self, epsilons: Array, *, reverse: bool) -> Array:
        """Weighted (1 - e^{eps - loss})_+ of every run but the pilot's, one column per epsilon.

        Their mean is the profile; NaN is an unknown loss.
        """
        losses, weight = self.losses[~self.pilot], self.weights[~self.pilot, int(reverse)]
        size = np.where(weight == 0, -np.inf, -losses if reverse else losses)
        sticks: Array = -np.expm1(np.minimum(epsilons - size[:, None], 0.0)) * weight[:, None]
        return sticks


def claimed_epsilon(claim: Loss) -> float:
    """The claim's epsilon at its own delta; 1 if that is 0 or infinite."""
    epsilon = claim.epsilon_at(claimed_delta(claim))
    return epsilon if 0 < epsilon < np.inf else 1.0


def audit_algorithm(
    algorithm: Algorithm,
    data: Any,
    neighbour: Any,
    claim: Loss,
    runs: int,
    rng: np.random.Generator,
    public: Any = None,
    tick: Callable[[], None] = lambda: None,
) -> AlgorithmAudit:
    """Replay once, then sample ``runs`` privacy losses unless the replay already failed."""
    replay_rng, loss_rng = rng.spawn(2)
    replayed = replay(algorithm, data, neighbour, public=public, rng=replay_rng)
    losses: list[WeightedLoss] = []
    if replayed.data_independent:
        target = claimed_epsilon(claim)
        try:
            for weighted in weighted_losses(
                algorithm, data, neighbour, runs, target, public, loss_rng
            ):
                losses.append(weighted)
                tick()
        except (OffTranscript, OffPlan) as error:
            replayed = Replayed(False, False, True, np.nan, str(error))
    weights = [(weighted.first_weight, weighted.second_weight) for weighted in losses]
    return AlgorithmAudit(
        declared_plan(algorithm, data, public),
        claim,
        replayed,
        np.array([weighted.loss for weighted in losses]),
        np.array(weights).reshape(-1, 2),
        np.array([weighted.untilted for weighted in losses], dtype=bool),
        np.array([weighted.pilot for weighted in losses], dtype=bool),
    )
