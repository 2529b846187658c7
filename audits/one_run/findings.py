"""What audits of one training run return: the verdict, the bound on epsilon, the guesses.

In such an audit fair coins put canaries into the training data, and rules guess these coins from
the scores of the canaries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from accountant.formatting import format_lower, format_upper
from accountant.plans.plan import Plan
from accountant.table_display import FACTS, Table, TableDisplay
from audits.claims.findings import OTHER_EVENTS, OTHER_PAIRS, NotTested, Outcome, kinds_of
from audits.known_densities.sample_size import POWER

# What no audit of one training run looks at.
NOT_TESTED = (
    NotTested(OTHER_PAIRS, "the records of the canaries were tried, in one training run"),
    NotTested(OTHER_EVENTS, "only the scores were looked at"),
)


@final
@dataclass(frozen=True, slots=True)
class OneRunFinding(TableDisplay):
    """The result of an audit of one training run by its canaries.

    Parameters
    ----------
    outcome : Outcome
        FALSIFIED if the claim is contradicted at ``confidence``, INCONCLUSIVE if there are too few
        coins to contradict it; of gradient canaries, too few to contradict half the noise.
    epsilon_lower : float
        Lower bound on the true epsilon at ``delta``, rounded down; it holds with a probability of
        at least ``confidence``.
    delta : float
        The delta in [0, 1) of the bound.
    coins : int
        Number of coins: canaries, or pairs of canaries of a fixed split.
    confidence : float
        Least probability, in (0, 1), with which the bound holds, and a true claim survives.
    witness : str
        What was seen, in words.
    seconds : float
        Duration of the audit of the scores.
    seed : int or None
        The seed that repeats it; None if the caller passed a generator, or none was needed.
    claim : Plan or None
        What was claimed.
    right : int
        Number of right guesses of the most revealing rule.
    guesses : int
        Number of its guesses.
    provable : float
        The epsilon at ``delta`` that these coins would have proved had every guess been right; of
        gradient canaries, had no noise been added but that of records which are not known.
    mu_lower : float, optional
        For a Gaussian claim: every smaller mu is refuted at the same confidence, rounded down.
    noise : str, optional
        The noise of which half would have been seen, or not; "" where this was not judged.
    needed_coins : int, optional
        A number of canaries that would see half of it with probability 95 %, if these would not;
        None if they would, or if no number is known to.
    not_tested : tuple of (str, str), optional
        What the audit did not look at, as pairs of a kind and a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from audits import OneRunFinding, audit_scores
    >>> rng = np.random.default_rng(0)
    >>> finding = audit_scores(rng.normal(3, 1, 500), rng.normal(0, 1, 480), delta=1e-5)
    >>> isinstance(finding, OneRunFinding), finding.coins, finding.epsilon_lower > 2
    (True, 980, True)
    """

    outcome: Outcome
    epsilon_lower: float
    delta: float
    coins: int
    confidence: float
    witness: str
    seconds: float
    seed: int | None
    claim: Plan | None
    right: int
    guesses: int
    provable: float
    mu_lower: float | None = None
    noise: str = ""
    needed_coins: int | None = None
    not_tested: tuple[NotTested, ...] = NOT_TESTED

    @property
    def why_too_few(self) -> str:
        """Why an INCONCLUSIVE audit decides nothing, and how many canaries would; else ""."""
        if self.outcome is not Outcome.INCONCLUSIVE:
            return ""
        if not self.noise:
            return "too few coins to contradict the claim had all guesses been right"
        if self.needed_coins is None:
            return f"no number of canaries is known to see half of {self.noise}"
        return f"too few canaries to see half of {self.noise}; {self.needed_coins:,} would"

    def __repr__(self) -> str:
        claimed = "" if self.claim is None else f", claimed {self.claim!r}"
        bound_text = f"epsilon >= {format_lower(self.epsilon_lower)} at delta {self.delta:g}"
        untested = f"; not tested: {kinds_of(self.not_tested)}"
        coins = f"{self.coins:,} coins{untested}"
        return f"<OneRunFinding: {self.outcome.name}, {bound_text}{claimed}, {coins}>"

    def _table(self) -> Table:
        rows = [
            ("outcome", self.outcome.name),
            ("epsilon, at least", self.epsilon_lower),
            ("at delta", self.delta),
            ("claimed", self.claim),
            ("coins", self.coins),
            ("provable with so many coins", self.provable),
            ("confidence", self.confidence),
            ("seed", self.seed),
            ("seen", self.witness),
            *([("inconclusive", self.why_too_few)] if self.why_too_few else []),
            ("not tested", kinds_of(self.not_tested)),
        ]
        return Table(FACTS, rows, lower=("epsilon, at least",))


@final
@dataclass(frozen=True, slots=True)
class NoiseFinding(TableDisplay):
    """The result of an audit of the noise of a training: whether it is as large as declared.

    Parameters
    ----------
    outcome : Outcome
        FALSIFIED if normal noise of the declared multiplier, or more, would hardly have been so
        small, INCONCLUSIVE if half of it would not be falsified with probability 95 %.
    declared : float
        The declared noise multiplier: the standard deviation in clipping lengths.
    estimate : float
        The noise multiplier that was seen.
    upper : float
        Upper bound on the multiplier, rounded up; if the noise is normal and independent, it holds
        with probability ``confidence``.
    confidence : float
        Probability in (0, 1) with which noise as declared survives.
    numbers : int
        How many numbers of noise were seen.

    Examples
    --------
    >>> from audits import NoiseFinding
    >>> NoiseFinding.of(1.1, squares=800.0, numbers=1000, confidence=0.95)
    <NoiseFinding: FALSIFIED, noise multiplier 0.9839, at most 1.022, declared 1.1, 1,000 numbers>
    """

    outcome: Outcome
    declared: float
    estimate: float
    upper: float
    confidence: float
    numbers: int

    @classmethod
    def of(cls, declared: float, squares: float, numbers: int, confidence: float) -> NoiseFinding:
        """Judge a sum of squares of noise.

        Under the claim it is a chi-square variable of so many degrees of freedom, or larger.

        Parameters
        ----------
        declared : float
            The declared noise multiplier.
        squares : float
            The sum of squares, in units of the declared variance.
        numbers : int
            How many numbers were squared.
        confidence : float
            Probability in (0, 1) with which noise as declared survives.

        Returns
        -------
        NoiseFinding
            The verdict and an upper bound on the multiplier.
        """
        from scipy.special import chdtr, chdtri

        quantile = float(chdtri(max(numbers, 1), confidence))
        upper = declared * math.sqrt(squares / quantile) * (1 + 1e-9) if numbers else math.inf
        outcome = Outcome.SURVIVED
        if upper < declared:
            outcome = Outcome.FALSIFIED
        elif chdtr(max(numbers, 1), 4 * quantile) < POWER:
            outcome = Outcome.INCONCLUSIVE
        estimate = declared * math.sqrt(squares / max(numbers, 1))
        return cls(outcome, declared, estimate, upper, confidence, numbers)

    def __repr__(self) -> str:
        return (
            f"<NoiseFinding: {self.outcome.name}, noise multiplier {self.estimate:.4g}, at most "
            f"{format_upper(self.upper)}, declared {self.declared:g}, {self.numbers:,} numbers>"
        )

    def _table(self) -> Table:
        rows = [
            ("outcome", self.outcome.name),
            ("declared noise multiplier", self.declared),
            ("seen", f"{self.estimate:.4g}"),
            ("at most", self.upper),
            ("confidence", self.confidence),
            ("numbers of noise", self.numbers),
        ]
        return Table(FACTS, rows)
