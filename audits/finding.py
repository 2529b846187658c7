"""What an audit says: FALSIFIED or SURVIVED, with the evidence; never "private"."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.loss import Loss
from audits.bounds import epsilon_lower


class Outcome(enum.Enum):
    """What the evidence allows to say of a claim."""

    FALSIFIED = "the data contradict the claim at this confidence"
    SURVIVED = "the data do not contradict the claim; nothing is proved"


@final
@dataclass(frozen=True, slots=True)
class Guesses:
    """``correct`` of ``made`` guesses of the side were right, in ``runs`` test runs."""

    correct: int
    made: int
    runs: int

    def epsilon_lower(self, delta: float, confidence: float) -> float:
        """Lower bound on the epsilon of the audited release at ``delta``."""
        correct, made = np.array(float(self.correct)), np.array(float(self.made))
        return float(epsilon_lower(correct, made, self.runs, delta, 1 - confidence))

    @property
    def share(self) -> float:
        """Share of the guesses that were right."""
        return self.correct / self.made if self.made else 0.0

    def refutes(self, claim: Loss | None, delta: float, confidence: float) -> bool:
        """Whether the bound at ``confidence`` exceeds what the claim allows at ``delta``."""
        return claim is not None and self.epsilon_lower(delta, confidence) > claim.epsilon_at(delta)


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one audit.

    ``epsilon_lower`` bounds the true epsilon at ``delta`` from below with probability
    ``confidence``; ``runs`` counts all draws, learning included; ``seed`` repeats the audit
    (None where the caller's own generator was used).
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
    guesses: Guesses
