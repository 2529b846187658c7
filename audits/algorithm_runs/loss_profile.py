"""The audit of a whole algorithm's privacy claim on one pair of neighbouring data sets.

First a recorded run is replayed on the other data set: the result and the requested releases must
not depend on the data except through the noisy answers.  Then privacy losses are sampled, with
weights (`importance_sampling`).  From them follow confidence bounds on the profile

    delta(eps) = E (1 - e^{eps - L})_+,  L = ln p/q the loss of a run,

and a claim whose own delta is below such a bound is refuted.  Here p and q are the densities of a
run's answers on the two data sets, and the expectation is over runs on the first one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

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
from audits.algorithm_runs.replay_gate import OffTranscript
from audits.algorithm_runs.replaying import Algorithm, Replayed, replay
from audits.claims.arguments import claimed_delta
from audits.statistics.binomial_bounds import mean_confidence_band
from audits.statistics.mean_bounds import mean_lower

# Epsilons at which the profile is bounded, in units of the claim's own epsilon: 0, then from 1/64
# to 8 in steps of a factor 2^(1/4), with 0.9, 1 and 1.1.  They are fixed before any sample is seen,
# because the union bound over them does not allow a choice by the data.  More of them make each
# bound a little weaker.
EPSILON_SHARES = np.unique(
    np.concatenate([[0.0], 2.0 ** np.arange(-6.0, 3.1, 0.25), np.arange(0.9, 1.15, 0.1)]).round(12)
)
# An excess of a sampled loss over epsilon up to these may be rounding: relative to epsilon, in
# nats.
TOLERANCE, ABSOLUTE_TOLERANCE = 1e-6, 1e-9


@final
@dataclass(frozen=True, slots=True)
class AlgorithmAudit:
    """The result of replay and loss samples on one pair of data sets."""

    plan: Plan  # the releases that the algorithm declares
    claim: Loss
    replayed: Replayed
    losses: Array  # of all runs, in nats; NaN where it is not known
    # Shape (runs, 2): the densities of a run on the first and the second data set, over the density
    # that it was drawn from.
    weights: Array
    untilted: NDArray[np.bool_]  # the runs that were drawn as the algorithm draws them
    pilot: NDArray[np.bool_]  # the first runs, by whose losses the laws of the others were chosen

    def refutation(self, confidence: float) -> str:
        """Why the claim is false, in words; "" if the evidence does not refute it.

        ``confidence`` is that of all bounds together: each direction has half of the error
        probability.
        """
        if not self.replayed.data_independent:
            return f"replay: {self.replayed.witness}"
        epsilons, pure = self.epsilon_grid(), self.claim.pure
        claimed = np.array([self.claim.delta_at(e) for e in epsilons])  # over both directions
        for is_reverse, direction in ((False, ""), (True, " from neighbour to data")):
            # A pure claim bounds every single loss, so one sample above it is a proof.  Runs with
            # probability 0 on the data set of this direction are left out.  ``pure`` is infinite
            # for other claims, which no loss exceeds.
            possible = (self.weights[:, int(is_reverse)] != 0) & ~np.isnan(self.losses)
            signed_losses = -self.losses if is_reverse else self.losses
            largest_loss = float(np.max(signed_losses[possible], initial=-np.inf))
            if not largest_loss <= pure * (1 + TOLERANCE):
                return (
                    f"privacy losses: one run lost {largest_loss:.4g}, "
                    f"the claim allows {pure:.4g}{direction}"
                )
            delta_lower = self.profile_lower(epsilons, 1 - (1 - confidence) / 2, reverse=is_reverse)
            refuted = np.flatnonzero(delta_lower > claimed)
            if refuted.size:
                excess = delta_lower[refuted] / np.maximum(claimed[refuted], 1e-300)
                worst_index = refuted[np.argmax(excess)]
                return (
                    f"privacy losses: delta at epsilon {epsilons[worst_index]:.3g} is at least "
                    f"{delta_lower[worst_index]:.3g}, the claim allows {claimed[worst_index]:.3g}"
                    f"{direction}"
                )
        return ""

    def epsilon_lower(self, delta: float, confidence: float) -> float | None:
        """Lower bound on the epsilon at ``delta`` between these data sets; None without losses.

        It is the greatest epsilon of the grid at which delta is surely larger in either direction.
        """
        if self.losses.size == 0:
            return None
        epsilons, confidence_per_direction = self.epsilon_grid(), 1 - (1 - confidence) / 2
        lower = np.maximum(
            self.profile_lower(epsilons, confidence_per_direction),
            self.profile_lower(epsilons, confidence_per_direction, reverse=True),
        )
        return float(np.max(epsilons[lower > delta], initial=0.0))

    def confidence_band(self, epsilons: Array, confidence: float) -> tuple[Array, Array, Array]:
        """Estimate, lower and upper bound of delta(epsilon), which hold for all epsilons at once.

        The lower and the upper bounds each have half of the error probability 1 - confidence.
        """
        terms = self._hockey_stick_terms(epsilons, reverse=False)
        if len(terms) == 0:
            return np.zeros(epsilons.size), np.zeros(epsilons.size), np.ones(epsilons.size)
        lower = self.profile_lower(epsilons, 1 - (1 - confidence) / 2)
        # No weight is above 1 / MIN_UNTILTED_SHARE, so the terms times this share are in [0, 1], as
        # Hoeffding's bound needs.  A run of unknown loss counts with the largest term.  The error
        # of the band is shared by the epsilons, and half of it is that of the upper bound.
        scaled_terms = np.where(np.isnan(terms), 1.0, np.minimum(terms * MIN_UNTILTED_SHARE, 1.0))
        _, scaled_upper = mean_confidence_band(scaled_terms, (1 - confidence) / epsilons.size)
        mean = np.nan_to_num(terms).mean(axis=0)
        upper = scaled_upper / MIN_UNTILTED_SHARE
        return np.minimum(mean, 1.0), lower, np.minimum(upper, 1.0)

    def profile_lower(self, epsilons: Array, confidence: float, *, reverse: bool = False) -> Array:
        """Lower bounds on the profile, which hold together with probability ``confidence``.

        ``reverse`` is the direction from the neighbour to the data.
        """
        # A loss is a sum of floats, so an excess over epsilon that may be rounding does not count.
        # A run of unknown loss counts with the smallest term, 0.
        raised_epsilons = epsilons * (1 + TOLERANCE) + ABSOLUTE_TOLERANCE
        terms = np.nan_to_num(self._hockey_stick_terms(raised_epsilons, reverse=reverse))
        bound = mean_lower(terms, (1 - confidence) / epsilons.size)
        # A profile falls with epsilon, so a lower bound at an epsilon holds at all smaller ones.
        order = np.argsort(-epsilons)
        result = np.empty_like(bound)
        result[order] = np.maximum.accumulate(bound[order])
        return result

    def epsilon_grid(self) -> Array:
        """The epsilons at which the profile is bounded: 0 to eight times the claim's."""
        return np.asarray(claimed_epsilon(self.claim) * EPSILON_SHARES)

    def _hockey_stick_terms(self, epsilons: Array, *, reverse: bool) -> Array:
        """``weight (1 - e^{eps - loss})_+`` of every run after the pilot, one column per epsilon.

        The expectation of each column is the profile at its epsilon.  NaN stands for a run whose
        loss is unknown.
        """
        losses, weight = self.losses[~self.pilot], self.weights[~self.pilot, int(reverse)]
        signed_losses = np.where(weight == 0, -np.inf, -losses if reverse else losses)
        terms: Array = (
            -np.expm1(np.minimum(epsilons - signed_losses[:, None], 0.0)) * weight[:, None]
        )
        return terms


def claimed_epsilon(claim: Loss) -> float:
    """The claim's epsilon at the delta at which it is tested; 1 if it is 0 or infinite."""
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
    """Replay once, then sample ``runs`` privacy losses unless the replay already failed.

    ``tick`` is called after each run.  Runs that ask for other releases on the neighbour count as a
    failed replay.
    """
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
