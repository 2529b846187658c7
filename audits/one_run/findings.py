"""What the audit of one training run returns: the verdict, the bound on epsilon, the guesses.

In such an audit fair coins put canaries into the training data, and rules guess these coins from
the scores of the canaries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from accountant.formatting import format_lower
from accountant.plans.plan import Plan
from accountant.table_display import FACTS, Table, TableDisplay
from audits.claims.findings import Outcome


@final
@dataclass(frozen=True, slots=True)
class OneRunFinding(TableDisplay):
    """The result of an audit of one training run by its canaries.

    Parameters
    ----------
    outcome : Outcome
        FALSIFIED if the claim is contradicted at ``confidence``, INCONCLUSIVE if there are too few
        coins to contradict it.
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
        The epsilon at ``delta`` that these coins would have proved had every guess been right.
    mu_lower : float, optional
        For a Gaussian claim: every smaller mu is refuted at the same confidence, rounded down.

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

    def __repr__(self) -> str:
        claimed = "" if self.claim is None else f", claimed {self.claim!r}"
        bound_text = f"epsilon >= {format_lower(self.epsilon_lower)} at delta {self.delta:g}"
        return f"<OneRunFinding: {self.outcome.name}, {bound_text}{claimed}, {self.coins:,} coins>"

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
        ]
        return Table(FACTS, rows, lower=("epsilon, at least",))
