"""What an audit says: FALSIFIED or SURVIVED, with the evidence; never "private"."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.losses.loss import Loss
from audits.statistics.binomial_bounds import epsilon_lower, epsilon_lower_every_run
from audits.statistics.combined_tests import combined_epsilon_lower
from audits.statistics.delta_leaks import epsilon_lower_with_leaks


class Outcome(enum.Enum):
    """What the evidence allows to say of a claim."""

    FALSIFIED = "the data contradict the claim at this confidence"
    SURVIVED = "the data do not contradict the claim; nothing is proved"


@final
@dataclass(frozen=True, slots=True)
class GuessCounts:
    """``correct`` of ``made`` guesses of the side were right, in ``runs`` test runs.

    ``guessed_values`` tells how many of the two values the rule ever guesses, ``every_run`` that it
    guesses in every run by its nature, ``expected`` how many guesses and which share of them right
    were expected; all are known before the runs.  Several rules, each fixed before its own runs,
    make ``blocks``; the totals are their sums.
    """

    correct: int
    made: int
    runs: int
    guessed_values: int = 2
    every_run: bool = False
    expected: tuple[float, float] | None = None
    blocks: tuple[GuessCounts, ...] = ()

    def epsilon_lower(self, delta: float, confidence: float) -> float:
        """Lower bound on the epsilon of the audited release at ``delta``."""
        alpha = 1 - confidence
        if self.blocks and delta == 0:
            return combined_epsilon_lower([(b.correct, b.made, b.runs) for b in self.blocks], alpha)
        if self.blocks:  # leaks are counted once: the last block has most of the runs
            return self.blocks[-1].epsilon_lower(delta, confidence)
        if self.every_run and delta > 0:
            return epsilon_lower_every_run(self.correct, self.runs, delta, alpha)
        if self.expected is not None and delta > 0:
            leaking = (
                delta * self.guessed_values / 2
            )  # runs of one side leak to guesses of that side
            return epsilon_lower_with_leaks(
                self.correct, self.made, self.runs, leaking, alpha, self.expected
            )
        correct, made = np.array(float(self.correct)), np.array(float(self.made))
        return float(epsilon_lower(correct, made, self.runs, delta, alpha))

    @property
    def share(self) -> float:
        """Share of the guesses that were right."""
        return self.correct / self.made if self.made else 0.0

    def refutes(self, claim: Loss | None, delta: float, confidence: float) -> bool:
        """Whether the bound at ``confidence`` exceeds what the claim allows at ``delta``."""
        return claim is not None and self.epsilon_lower(delta, confidence) > claim.epsilon_at(delta)


def pool(blocks: list[GuessCounts]) -> GuessCounts:
    """The guesses of several rules, each fixed before its own runs."""
    if len(blocks) == 1:
        return blocks[0]
    return GuessCounts(
        sum(b.correct for b in blocks),
        sum(b.made for b in blocks),
        sum(b.runs for b in blocks),
        max(b.guessed_values for b in blocks),
        all(b.every_run for b in blocks),
        None,
        tuple(blocks),
    )


@final
@dataclass(frozen=True, slots=True)
class ClaimPoint:
    """The point of a claim's profile where its verdict is decided, and the guesses there.

    It was chosen by learning runs, as the most revealing; ``delta`` is the claim's at ``epsilon``.
    Where it is not ``decides_alone`` the bound decides too, each with half of the error.
    """

    epsilon: float
    delta: float
    guesses: GuessCounts
    decides_alone: bool = True

    def refutes(self, confidence: float) -> bool:
        """Whether the guesses contradict (epsilon, delta)-DP at ``confidence``."""
        return self.guesses.epsilon_lower(self.delta, confidence) > self.epsilon


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one audit.

    ``epsilon_lower`` bounds the true epsilon at ``delta`` from below with probability
    ``confidence``; ``runs`` counts all draws, learning included; ``seed`` repeats the audit
    (None where the caller's own generator was used).  The verdict is that of ``point``, a test
    of its own at the same confidence, where the claim is more than one (epsilon, delta); else
    it is that of the bound.  ``stopped`` is the run at which an early verdict was reached.
    """

    outcome: Outcome
    epsilon_lower: float
    delta: float
    runs: int
    confidence: float
    witness: str
    seconds: float
    seed: int | None
    claim: Loss | None
    guesses: GuessCounts
    point: ClaimPoint | None = None
    stopped: int | None = None

    def refutes(self, confidence: float) -> bool:
        """Whether the same evidence falsifies the claim at another confidence."""
        if self.stopped is not None:  # the bets stopped at what they proved
            return confidence <= self.confidence
        if self.point is not None:
            if self.point.decides_alone:
                return self.point.refutes(confidence)
            half = (1 + confidence) / 2
            bound = self.guesses.refutes(self.claim, self.delta, half)
            return bound or self.point.refutes(half)
        return self.guesses.refutes(self.claim, self.delta, confidence)
